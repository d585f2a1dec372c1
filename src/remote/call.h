/* Submit and wait: the base of the straight-line calls of remote.h. Private to remote/. */
#ifndef MOORFS_REMOTE_CALL_H
#define MOORFS_REMOTE_CALL_H

#include "remote/remote.h"

/*
 * Submits the op (its `done` and `owner` are set here) and blocks until it has ended; obeys the
 * thread's remote_scope. Returns op->err, which may be -EREMOTEIO or -ENOLINK.
 */
int remote_call(struct remote *remote, struct op *op);

/* As remote_call for kinds that need no settling: the vague values become -EIO. */
int remote_call_plain(struct remote *remote, struct op *op);

/* How often an operation is sent whose connection is lost each time before the answer. */
enum { SETTLE_TRIES = 5 };

/* Why a file system with these numbers refuses a change: -EROFS, -ENOSPC, else -EIO. */
int remote_statfs_refusal(const struct remote_statfs *fs);

/* -EREMOTEIO and -ENOLINK as a local program may see them. */
int remote_plain_error(int err);

#endif
