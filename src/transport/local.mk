noinst_LIBRARIES += libtransport.a
libtransport_a_SOURCES =
