# fuzz

EXTRA_DIST += tests/fuzz/corpus/sftp_wire tests/fuzz/corpus/sftp_session
if FUZZERS_ENABLED
noinst_PROGRAMS += fuzz_sftp_wire fuzz_sftp_session
fuzz_sftp_wire_SOURCES = tests/fuzz/fuzz_sftp_wire.c
fuzz_sftp_wire_LDADD = libsftp.a libbase.a
fuzz_sftp_wire_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
fuzz_sftp_session_SOURCES = tests/fuzz/fuzz_sftp_session.c
fuzz_sftp_session_LDADD = libsftp.a libremote.a libbase.a
fuzz_sftp_session_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
endif

EXTRA_DIST += tests/fuzz/corpus/url
if FUZZERS_ENABLED
noinst_PROGRAMS += fuzz_url
fuzz_url_SOURCES = tests/fuzz/fuzz_url.c
fuzz_url_LDADD = libconfig.a libbase.a
fuzz_url_LDFLAGS = $(AM_LDFLAGS) -fsanitize=fuzzer
endif
