noinst_LIBRARIES += libtransport.a
libtransport_a_SOURCES = \
	src/transport/agent.c src/transport/agent.h \
	src/transport/connector.c src/transport/connector.h \
	src/transport/exec.c src/transport/exec.h \
	src/transport/exec_argv.c src/transport/exec_argv.h \
	src/transport/keyfile.c src/transport/keyfile.h \
	src/transport/knownhosts.c src/transport/knownhosts.h \
	src/transport/ssh2.c src/transport/ssh2.h src/transport/ssh2_internal.h \
	src/transport/ssh2_auth.c \
	src/transport/ssh2_hostkey.c \
	src/transport/ssh2_memory.c src/transport/ssh2_memory.h \
	src/transport/ssh2_methods.c \
	src/transport/ssh2_publickey.c \
	src/transport/ssh2_stream.c \
	src/transport/ssh_target.h \
	src/transport/ssh_words.c src/transport/ssh_words.h \
	src/transport/sshkey.c src/transport/sshkey.h \
	src/transport/tail.c src/transport/tail.h \
	src/transport/tcp.c src/transport/tcp.h \
	src/transport/transport.c src/transport/transport.h
