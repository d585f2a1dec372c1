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
