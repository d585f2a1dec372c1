noinst_LIBRARIES += libremote.a
libremote_a_SOURCES =
