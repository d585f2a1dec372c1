noinst_LIBRARIES += libio.a
libio_a_SOURCES =
