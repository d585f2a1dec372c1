noinst_LIBRARIES += libvfs.a
libvfs_a_SOURCES =
