noinst_LIBRARIES += libio.a
libio_a_SOURCES = \
	src/io/batch.c \
	src/io/budget.c \
	src/io/buffers.c src/io/buffers.h \
	src/io/cache.c \
	src/io/create.c \
	src/io/fetch.c \
	src/io/file.c \
	src/io/flush.c \
	src/io/internal.h \
	src/io/io.c src/io/io.h \
	src/io/plan.c \
	src/io/read.c \
	src/io/send.c \
	src/io/setattr.c \
	src/io/window.c src/io/window.h \
	src/io/whole.c \
	src/io/write.c
