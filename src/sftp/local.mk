noinst_LIBRARIES += libsftp.a
libsftp_a_SOURCES =
