noinst_LIBRARIES += libsftp.a
libsftp_a_SOURCES = \
	src/sftp/client.c src/sftp/client.h \
	src/sftp/data.c \
	src/sftp/fetch.c \
	src/sftp/files.c \
	src/sftp/hello.c \
	src/sftp/list.c \
	src/sftp/ops.c \
	src/sftp/outq.c src/sftp/outq.h \
	src/sftp/realpath.c \
	src/sftp/session.c \
	src/sftp/sftp.h \
	src/sftp/wire.h \
	src/sftp/wire_decode.c \
	src/sftp/wire_encode.c \
	src/sftp/wire_names.c
