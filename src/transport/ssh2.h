/*
 * SSH within this process, by libssh2: over a connected socket to the open channel of the SFTP
 * server. libssh2's transport, authentication and channel are used; its SFTP is not.
 *
 * The session allocates from a free list of its own, receives through a buffer of 256 KiB and
 * gathers what it sends, so that libssh2 meets neither malloc nor small system calls; its
 * channel announces a window of 32 MiB, so that a long round trip does not bound the rate.
 */
#ifndef MOORFS_TRANSPORT_SSH2_H
#define MOORFS_TRANSPORT_SSH2_H

#include <pthread.h>
#include <stdint.h>

#include "base/bytes.h"
#include "transport/ssh_target.h"
#include "transport/transport.h"

/* What all lanes of a connector know together. */
struct ssh2_shared {
	pthread_mutex_t accepted_lock;
	struct bytes accepted_key; /* host key that a person said yes to; empty: none */
};

struct ssh2_request {
	const struct ssh_target *target;
	struct ssh_prompter *prompter; /* never NULL; may be called from any lane's thread */
	struct ssh2_shared *shared;
	int fd;               /* connected, non-blocking; closed by ssh2_open when it fails */
	uint64_t deadline_ns; /* monotonic; time that a person takes to answer is not counted */
	const _Atomic bool *cancel;
	/* The ssh program can be tried: do not ask a person for what it could do without. */
	bool may_fall_back;
};

/*
 * Handshake, host key, authentication, channel. 0 and *out, or -1 and the failure, and
 * *ssh_may_help: whether the ssh program could succeed where libssh2 did not.
 */
int ssh2_open(const struct ssh2_request *request, struct transport **out, bool *ssh_may_help,
              struct failure *failure);

#endif
