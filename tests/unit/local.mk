# Unit tests (cmocka). A test program lists the floors it links itself.
EXTRA_DIST += tests/unit/fake_remote.h
