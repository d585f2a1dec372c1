/*
 * A byte stream to the server's SFTP subsystem, and the way to get one. Owned by one lane; all
 * calls on its thread.
 */
#ifndef MOORFS_TRANSPORT_TRANSPORT_H
#define MOORFS_TRANSPORT_TRANSPORT_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/failure.h"

struct transport;

struct transport_ops {
	/*
	 * Up to the iovec's size of received bytes. > 0: bytes; 0: the peer closed; -EAGAIN:
	 * nothing yet; other -errno: broken.
	 */
	ssize_t (*readv)(struct transport *transport, const struct iovec *iov, int count);
	/* > 0: bytes taken; -EAGAIN; other -errno. After -EAGAIN the caller repeats with the
	 * same bytes first (more may follow them). */
	ssize_t (*writev)(struct transport *transport, const struct iovec *iov, int count);
	/*
	 * What to poll for; `want_write` tells that writev has said -EAGAIN. Returns the number
	 * of entries (1 to 3; `fds` has room for 4). *ready: readv has bytes without polling.
	 * After poll any entry may have fired for the transport's own sake: call readv, and
	 * writev if there is something to write; each may say -EAGAIN again.
	 */
	int (*poll_set)(struct transport *transport, bool want_write, struct pollfd *fds,
	                bool *ready);
	/* Why the stream ended, as far as is known (ssh's stderr, libssh2's message); "" if
	 * not. Valid until the next call. May wait up to 200 ms for a dying child's last words.
	 */
	const char *(*last_words)(struct transport *transport);
	/* The stream ended or broke before the server's first reply: see transport_explain().
	 * NULL: last_words is all that is known. */
	void (*explain)(struct transport *transport, struct failure *failure);
	/* Closes at once and frees; a child is killed and reaped. */
	void (*close)(struct transport *transport);
};

struct transport {
	const struct transport_ops *ops;
	const char *kind; /* "ssh2", "ssh", "sftp-server", "tcp" */
};

/*
 * Turns "the stream ended (or broke, or nothing came in time) before the server's VERSION" into
 * the failure that a person needs: a child ssh is started without waiting for it to
 * authenticate, so a wrong password, host key or host name comes to light only here. Always
 * fills `failure`. May wait up to 200 ms for a dying child. Call it before close.
 */
void transport_explain(struct transport *transport, struct failure *failure);

#endif
