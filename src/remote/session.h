/*
 * One connection to the server as the pool sees it: the vtable that sftp/ (and ftp/)
 * implements. All functions run on the thread of the lane that owns the session, one at a
 * time. See op.h for why protocols may include this header.
 */
#ifndef MOORFS_REMOTE_SESSION_H
#define MOORFS_REMOTE_SESSION_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"

struct op;
struct remote_file;
struct session;

/* What a server can do; filled by connect, the same for all lanes of a mount. */
struct remote_caps {
	uint32_t max_read, max_write; /* bytes of one request, never 0 */
	bool posix_rename;            /* OP_RENAME replaces atomically */
	bool hardlink;
	bool statfs;
	bool fsync;
	bool lsetattr;
	bool copy;         /* OP_COPY */
	bool names;        /* OP_NAMES */
	bool random_write; /* OP_WRITE at any offset */
	bool ordered;      /* what is sent by one lane about one file is done in that order */
};

/* Calls from the session up to its lane. */
struct session_events {
	/* The op has ended with op->err set; it is the pool's again. */
	void (*done)(void *lane, struct op *op);
};

struct session_ops {
	const char *protocol; /* "sftp" */

	/*
	 * Connects, authenticates and agrees on the protocol. Blocks up to `deadline_ns`
	 * (monotonic); gives up early when *cancel becomes true (looked at at least twice a
	 * second). 0, or -1 with the failure filled and nothing left open.
	 */
	int (*connect)(struct session *session, uint64_t deadline_ns,
	               const _Atomic bool *cancel, struct failure *failure);

	/* Takes over an op: encodes it and queues its requests, sends nothing yet. */
	void (*submit)(struct session *session, struct op *op);

	/*
	 * Fills what to wait for; returns the number of entries (at most `max`, 4 suffice).
	 * *ready is set when there is work without waiting (bytes buffered inside a library).
	 */
	int (*poll_set)(struct session *session, struct pollfd *fds, int max, bool *ready);

	/*
	 * Sends and receives what can be without blocking; ends ops through events->done.
	 * 0, or -errno when the connection is dead, with the failure saying why.
	 */
	int (*progress)(struct session *session, struct failure *failure);

	/* Requests in flight or queued are forgotten: each op is handed back by events->done
	 * with err -ENOLINK (its `sent` tells whether it can have happened). Closes the
	 * connection at once, without waiting for the peer. Harmless when not connected. */
	void (*disconnect)(struct session *session);

	/* The op was cancelled or ran out of time: if its buffers may be released safely (no
	 * reply can write into them any more) ends it by events->done with `err` and returns
	 * true; its late replies are swallowed. */
	bool (*cancel)(struct session *session, struct op *op, int err);

	/* Releases the protocol's part of the file for this session (already closed or lost).
	 */
	void (*destroy)(struct session *session);
};

struct session {
	const struct session_ops *ops;
	const struct session_events *events;
	void *lane;              /* first argument of the events */
	int index;               /* of the lane, 0..REMOTE_MAX_LANES-1 */
	uint32_t generation;     /* counts the connects of this lane, from 1 */
	struct remote_caps caps; /* valid after connect */
	const char *kind;        /* of transport, for logs: "ssh2", "ssh" */
	/* bytes on the wire since connect: silence of the peer is seen by them */
	uint64_t bytes_in, bytes_out;
	/* kept by the protocol: an idle lane with open handles is not closed */
	atomic_uint open_handles;
};

/*
 * Makes sessions of one protocol to one server; the pool calls `create` once per lane. Owned
 * by main, outlives the pool.
 */
struct session_factory {
	struct session *(*create)(struct session_factory *factory, int lane_index,
	                          const struct session_events *events, void *lane);
	const char *peer; /* "user@host" for messages */
};

#endif
