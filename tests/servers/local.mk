# The line between client and server, for mount tests and benchmarks.
noinst_PROGRAMS += tests/servers/delayproxy
tests_servers_delayproxy_SOURCES = tests/servers/delayproxy.c
tests_servers_delayproxy_LDADD =
EXTRA_DIST += \
	tests/servers/__init__.py \
	tests/servers/accounts.py \
	tests/servers/odd_sftp.py \
	tests/servers/openssh.py \
	tests/servers/peers.py \
	tests/servers/process.py \
	tests/servers/proxy.py \
	tests/servers/test_delayproxy.py
