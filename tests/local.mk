# Each suite lists itself in its own file.
UNIT_LIBS = $(CMOCKA_LIBS)
include tests/unit/local.mk
include tests/fuzz/local.mk
include tests/lint/local.mk
include tests/servers/local.mk
include tests/mount/local.mk
include tests/bench/local.mk
