noinst_LIBRARIES += libfusefs.a
libfusefs_a_SOURCES =
