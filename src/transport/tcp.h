/*
 * Connects to a TCP port (names, IPv6 and IPv4 side by side, by libcurl), and a byte stream
 * straight over such a socket (directport=: an SFTP server in clear).
 */
#ifndef MOORFS_TRANSPORT_TCP_H
#define MOORFS_TRANSPORT_TCP_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/transport.h"

/*
 * Blocks until connected, `deadline_ns` (monotonic) or *cancel (looked at every 100 ms). 0 and
 * *fd, a non-blocking CLOEXEC socket with TCP_NODELAY that is the caller's, and *connect_ns,
 * the round trip of the TCP handshake; or -1 and the failure. `family` is AF_UNSPEC, AF_INET or
 * AF_INET6. Proxies in the environment are not used. Any thread.
 */
int tcp_connect(const char *host, unsigned port, unsigned family, uint64_t deadline_ns,
                const _Atomic bool *cancel, int *fd, uint64_t *connect_ns,
                struct failure *failure);

/* A transport over the socket, which it owns from then on. NULL when memory is out. */
struct transport *tcp_transport_new(int fd);

#endif
