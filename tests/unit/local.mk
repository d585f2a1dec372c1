# Unit tests (cmocka). A test program lists the floors it links itself.
# The fake server; its users link libremote.a and libbase.a too.
FAKE_REMOTE = tests/unit/fake_remote.c tests/unit/fake_remote.h tests/unit/fake_internal.h \
	tests/unit/fake_execute.c tests/unit/fake_tree.c tests/unit/fake_tree.h
EXTRA_DIST += $(FAKE_REMOTE)

check_PROGRAMS += test_base test_calls test_choose test_pool
TESTS += test_base test_calls test_choose test_pool
test_base_SOURCES = tests/unit/test_base.c
test_base_LDADD = libbase.a $(UNIT_LIBS)
test_calls_SOURCES = tests/unit/test_calls.c $(FAKE_REMOTE)
test_calls_LDADD = libremote.a libbase.a $(UNIT_LIBS)
test_choose_SOURCES = tests/unit/test_choose.c
test_choose_LDADD = libremote.a libbase.a $(UNIT_LIBS)
test_pool_SOURCES = tests/unit/test_pool.c
test_pool_LDADD = libremote.a libbase.a $(UNIT_LIBS)

check_PROGRAMS += test_interrupt test_interrupt_watch test_mountinfo test_mount_options
TESTS += test_interrupt test_interrupt_watch test_mountinfo test_mount_options
test_interrupt_SOURCES = tests/unit/test_interrupt.c
test_interrupt_LDADD = libfusefs.a libbase.a $(UNIT_LIBS)
test_interrupt_watch_SOURCES = tests/unit/test_interrupt_watch.c
test_interrupt_watch_LDADD = libfusefs.a libremote.a libbase.a $(UNIT_LIBS)
test_mountinfo_SOURCES = tests/unit/test_mountinfo.c
test_mountinfo_LDADD = libfusefs.a libbase.a $(UNIT_LIBS)
test_mount_options_SOURCES = tests/unit/test_mount_options.c
test_mount_options_LDADD = libfusefs.a libbase.a $(UNIT_LIBS)

SFTP_HARNESS = tests/unit/sftp_harness.c tests/unit/sftp_harness.h
check_PROGRAMS += test_sftp_wire test_sftp_session test_sftp_files test_sftp_live
TESTS += test_sftp_wire test_sftp_session test_sftp_files test_sftp_live
test_sftp_wire_SOURCES = tests/unit/test_sftp_wire.c
test_sftp_wire_LDADD = libsftp.a libbase.a $(UNIT_LIBS)
test_sftp_session_SOURCES = tests/unit/test_sftp_session.c $(SFTP_HARNESS)
test_sftp_session_LDADD = libsftp.a libremote.a libbase.a $(UNIT_LIBS)
test_sftp_files_SOURCES = tests/unit/test_sftp_files.c $(SFTP_HARNESS)
test_sftp_files_LDADD = libsftp.a libremote.a libbase.a $(UNIT_LIBS)
test_sftp_live_SOURCES = tests/unit/test_sftp_live.c $(SFTP_HARNESS)
test_sftp_live_LDADD = libsftp.a libremote.a libbase.a $(UNIT_LIBS)
