noinst_LIBRARIES += libremote.a
libremote_a_SOURCES = \
	src/remote/call.c src/remote/call.h \
	src/remote/calls_files.c \
	src/remote/calls_names.c \
	src/remote/choose.c src/remote/choose.h \
	src/remote/estimate.c src/remote/estimate.h \
	src/remote/file.c src/remote/file.h \
	src/remote/keeper.c \
	src/remote/lane.c \
	src/remote/op.c src/remote/op.h \
	src/remote/pool.c src/remote/pool.h src/remote/pool_internal.h \
	src/remote/remote.h \
	src/remote/report.c \
	src/remote/session.h
