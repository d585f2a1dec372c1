noinst_LIBRARIES += libvfs.a
libvfs_a_SOURCES = \
	src/vfs/attr.c \
	src/vfs/dir.c \
	src/vfs/create.c \
	src/vfs/defer.c \
	src/vfs/dircache.c \
	src/vfs/entry.c \
	src/vfs/file.c \
	src/vfs/getattr.c \
	src/vfs/ids.c src/vfs/ids.h \
	src/vfs/inodes.c src/vfs/inodes.h \
	src/vfs/internal.h \
	src/vfs/links.c \
	src/vfs/listing.c src/vfs/listing.h src/vfs/listing_internal.h \
	src/vfs/listing_read.c \
	src/vfs/lookup.c \
	src/vfs/names.c \
	src/vfs/node.c src/vfs/node.h \
	src/vfs/order.c src/vfs/order.h \
	src/vfs/pace.c src/vfs/pace.h \
	src/vfs/path.c \
	src/vfs/prefetch.c src/vfs/prefetch.h src/vfs/prefetch_internal.h \
	src/vfs/prefetch_dirs.c \
	src/vfs/prefetch_files.c \
	src/vfs/prefetch_parcels.c \
	src/vfs/prefetch_use.c \
	src/vfs/rename.c \
	src/vfs/sequence.c src/vfs/sequence.h \
	src/vfs/setattr.c \
	src/vfs/symlink.c src/vfs/symlink.h \
	src/vfs/timeout.c src/vfs/timeout.h \
	src/vfs/vfs.c src/vfs/vfs.h
