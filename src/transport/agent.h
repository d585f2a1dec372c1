/*
 * The SSH agent: which keys it holds, and a signature by one of them. Never blocks beyond its
 * deadline, unlike the agent code of libssh2: a forwarded agent may hang. Not thread-safe.
 */
#ifndef MOORFS_TRANSPORT_AGENT_H
#define MOORFS_TRANSPORT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent_key {
	uint8_t *blob; /* public key */
	size_t length;
	char *comment;
};

/* How long an exchange with the agent may take. */
struct agent_limit {
	uint64_t deadline_ns;       /* monotonic */
	const _Atomic bool *cancel; /* looked at every 200 ms; may be NULL */
};

/* Start with all zero and fd -1. */
struct agent {
	int fd;
	struct agent_key *keys;
	size_t count;
};

/* Connects to the socket and asks for the keys. 0 or -errno (-EPROTO: it answers nonsense). */
int agent_open(struct agent *agent, const char *socket_path, struct agent_limit limit);
void agent_close(struct agent *agent);

enum { AGENT_RSA_SHA2_256 = 2, AGENT_RSA_SHA2_512 = 4 };

/*
 * The signature of the data: the bare one, without the algorithm's name around it. `flags` are
 * of AGENT_RSA_*. malloc'ed. 0; -EACCES when the agent refuses; other -errno.
 */
int agent_sign(struct agent *agent, const struct agent_key *key, const void *data,
               size_t length, uint32_t flags, struct agent_limit limit, uint8_t **signature,
               size_t *signature_length);

#endif
