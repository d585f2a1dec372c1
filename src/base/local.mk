noinst_LIBRARIES += libbase.a
libbase_a_SOURCES = \
	src/base/bytes.c src/base/bytes.h \
	src/base/cleanup.h \
	src/base/clock.h \
	src/base/failure.c src/base/failure.h \
	src/base/hist.c src/base/hist.h \
	src/base/list.h \
	src/base/log.c src/base/log.h \
	src/base/map.c src/base/map.h \
	src/base/secret.c src/base/secret.h \
	src/base/wake.c src/base/wake.h
