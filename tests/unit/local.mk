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
check_PROGRAMS += test_sftp_wire test_sftp_session test_sftp_fetch test_sftp_files \
	test_sftp_list test_sftp_live
TESTS += test_sftp_wire test_sftp_session test_sftp_fetch test_sftp_files \
	test_sftp_list test_sftp_live
test_sftp_wire_SOURCES = tests/unit/test_sftp_wire.c
test_sftp_wire_LDADD = libsftp.a libbase.a $(UNIT_LIBS)
test_sftp_session_SOURCES = tests/unit/test_sftp_session.c $(SFTP_HARNESS)
test_sftp_session_LDADD = libsftp.a libremote.a libbase.a $(UNIT_LIBS)
test_sftp_fetch_SOURCES = tests/unit/test_sftp_fetch.c $(SFTP_HARNESS)
test_sftp_fetch_LDADD = libsftp.a libremote.a libbase.a $(UNIT_LIBS)
test_sftp_files_SOURCES = tests/unit/test_sftp_files.c $(SFTP_HARNESS)
test_sftp_files_LDADD = libsftp.a libremote.a libbase.a $(UNIT_LIBS)
test_sftp_list_SOURCES = tests/unit/test_sftp_list.c $(SFTP_HARNESS)
test_sftp_list_LDADD = libsftp.a libremote.a libbase.a $(UNIT_LIBS)
test_sftp_live_SOURCES = tests/unit/test_sftp_live.c $(SFTP_HARNESS)
test_sftp_live_LDADD = libsftp.a libremote.a libbase.a $(UNIT_LIBS)

IO_HARNESS = tests/unit/io_harness.c tests/unit/io_harness.h $(FAKE_REMOTE)
check_PROGRAMS += test_window test_io_read test_io_write test_io_stress
TESTS += test_window test_io_read test_io_write test_io_stress
test_window_SOURCES = tests/unit/test_window.c
test_window_LDADD = libio.a libbase.a $(UNIT_LIBS)
test_io_read_SOURCES = tests/unit/test_io_read.c $(IO_HARNESS)
test_io_read_LDADD = libio.a libremote.a libbase.a $(UNIT_LIBS)
test_io_write_SOURCES = tests/unit/test_io_write.c $(IO_HARNESS)
test_io_write_LDADD = libio.a libremote.a libbase.a $(UNIT_LIBS)
check_PROGRAMS += test_io_setattr
TESTS += test_io_setattr
test_io_setattr_SOURCES = tests/unit/test_io_setattr.c $(IO_HARNESS)
test_io_setattr_LDADD = libio.a libremote.a libbase.a $(UNIT_LIBS)
test_io_stress_SOURCES = tests/unit/test_io_stress.c $(IO_HARNESS)
test_io_stress_LDADD = libio.a libremote.a libbase.a $(UNIT_LIBS)

check_PROGRAMS += test_url test_options test_ssh_config test_prompter test_man test_mount_words
TESTS += test_url test_options test_ssh_config test_prompter test_man test_mount_words
test_url_SOURCES = tests/unit/test_url.c
test_url_LDADD = libconfig.a libbase.a $(UNIT_LIBS)
test_options_SOURCES = tests/unit/test_options.c
test_options_LDADD = libconfig.a libbase.a $(UNIT_LIBS)
test_ssh_config_SOURCES = tests/unit/test_ssh_config.c
test_ssh_config_LDADD = libconfig.a libbase.a $(UNIT_LIBS)
test_prompter_SOURCES = tests/unit/test_prompter.c
test_prompter_LDADD = libconfig.a libbase.a $(UNIT_LIBS) -lutil
test_man_SOURCES = tests/unit/test_man.c
test_man_LDADD = libconfig.a libbase.a $(UNIT_LIBS)
test_mount_words_SOURCES = tests/unit/test_mount_words.c mount/mount_words.c \
	mount/mount_words.h
test_mount_words_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)
test_mount_words_LDADD = $(UNIT_LIBS)

# Transports; the *_live tests start a private sshd and are skipped where there is none.
STREAM_CHECK = tests/unit/stream_check.c tests/unit/stream_check.h
TRANSPORT_TEST_LIBS = libtransport.a libbase.a $(UNIT_LIBS) $(SSH2_LIBS) $(CURL_LIBS) $(CRYPTO_LIBS)
LIVE_SETUP = tests/unit/live_setup.c tests/unit/live_setup.h tests/unit/live_sshd.c \
	tests/unit/live_sshd.h $(STREAM_CHECK)
check_PROGRAMS += test_connector test_connector_live test_exec test_hostkey_live test_keyfile test_knownhosts test_ssh2_live
TESTS += test_connector test_connector_live test_exec test_hostkey_live test_keyfile test_knownhosts test_ssh2_live
test_connector_SOURCES = tests/unit/test_connector.c
test_connector_LDADD = $(TRANSPORT_TEST_LIBS)
# It pretends a round trip.
test_connector_live_SOURCES = tests/unit/test_connector_live.c $(LIVE_SETUP)
test_connector_live_LDADD = $(TRANSPORT_TEST_LIBS)
test_connector_live_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=tcp_connect
test_exec_SOURCES = tests/unit/test_exec.c $(STREAM_CHECK)
test_exec_LDADD = $(TRANSPORT_TEST_LIBS)
test_hostkey_live_SOURCES = tests/unit/test_hostkey_live.c $(LIVE_SETUP)
test_hostkey_live_LDADD = $(TRANSPORT_TEST_LIBS)
test_keyfile_SOURCES = tests/unit/test_keyfile.c
test_keyfile_LDADD = $(TRANSPORT_TEST_LIBS)
test_knownhosts_SOURCES = tests/unit/test_knownhosts.c
test_knownhosts_LDADD = $(TRANSPORT_TEST_LIBS)
test_ssh2_live_SOURCES = tests/unit/test_ssh2_live.c $(LIVE_SETUP)
test_ssh2_live_LDADD = $(TRANSPORT_TEST_LIBS)

VFS_HARNESS = tests/unit/vfs_harness.c tests/unit/vfs_harness.h $(FAKE_REMOTE)
VFS_TEST_LIBS = libvfs.a libio.a libremote.a libbase.a $(UNIT_LIBS)
check_PROGRAMS += test_vfs_pure test_vfs_names test_vfs_files test_vfs_dirs test_vfs_stress
TESTS += test_vfs_pure test_vfs_names test_vfs_files test_vfs_dirs test_vfs_stress
test_vfs_pure_SOURCES = tests/unit/test_vfs_pure.c
test_vfs_pure_LDADD = $(VFS_TEST_LIBS)
test_vfs_names_SOURCES = tests/unit/test_vfs_names.c $(VFS_HARNESS)
test_vfs_names_LDADD = $(VFS_TEST_LIBS)
test_vfs_files_SOURCES = tests/unit/test_vfs_files.c $(VFS_HARNESS)
test_vfs_files_LDADD = $(VFS_TEST_LIBS)
check_PROGRAMS += test_vfs_defer
TESTS += test_vfs_defer
test_vfs_defer_SOURCES = tests/unit/test_vfs_defer.c $(VFS_HARNESS)
test_vfs_defer_LDADD = $(VFS_TEST_LIBS)
check_PROGRAMS += test_vfs_async
TESTS += test_vfs_async
test_vfs_async_SOURCES = tests/unit/test_vfs_async.c $(VFS_HARNESS)
test_vfs_async_LDADD = $(VFS_TEST_LIBS)
test_vfs_dirs_SOURCES = tests/unit/test_vfs_dirs.c $(VFS_HARNESS)
test_vfs_dirs_LDADD = $(VFS_TEST_LIBS)
test_vfs_stress_SOURCES = tests/unit/test_vfs_stress.c $(VFS_HARNESS)
test_vfs_stress_LDADD = $(VFS_TEST_LIBS)

check_PROGRAMS += test_prefetch_policy test_prefetch_files test_prefetch_dirs \
	test_prefetch_stress
TESTS += test_prefetch_policy test_prefetch_files test_prefetch_dirs \
	test_prefetch_stress
test_prefetch_policy_SOURCES = tests/unit/test_prefetch_policy.c
test_prefetch_policy_LDADD = $(VFS_TEST_LIBS)
test_prefetch_files_SOURCES = tests/unit/test_prefetch_files.c $(VFS_HARNESS)
test_prefetch_files_LDADD = $(VFS_TEST_LIBS)
test_prefetch_dirs_SOURCES = tests/unit/test_prefetch_dirs.c $(VFS_HARNESS)
test_prefetch_dirs_LDADD = $(VFS_TEST_LIBS)
test_prefetch_stress_SOURCES = tests/unit/test_prefetch_stress.c $(VFS_HARNESS)
test_prefetch_stress_LDADD = $(VFS_TEST_LIBS)
