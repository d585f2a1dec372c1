noinst_LIBRARIES += libfusefs.a
libfusefs_a_SOURCES = \
	src/fuse/fusefs.h \
	src/fuse/handlers.c src/fuse/handlers.h \
	src/fuse/handlers_attr.c \
	src/fuse/handlers_data.c \
	src/fuse/handlers_dir.c \
	src/fuse/handlers_names.c \
	src/fuse/interrupt.c src/fuse/interrupt.h \
	src/fuse/lowlevel.h \
	src/fuse/mount.c \
	src/fuse/mountinfo.c src/fuse/mountinfo.h \
	src/fuse/mountpoint.c src/fuse/mountpoint.h \
	src/fuse/notify.c src/fuse/notify.h \
	src/fuse/options.c src/fuse/options.h \
	src/fuse/proc_status.c src/fuse/proc_status.h \
	src/fuse/session.c
