# What mount(8) runs for `mount -t moorfs`.
mounthelper_PROGRAMS = mount.moorfs
mount_moorfs_SOURCES = mount/mount.moorfs.c mount/mount_words.c mount/mount_words.h \
	src/base/failure.h
mount_moorfs_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
