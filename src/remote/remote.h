/*
 * One server seen from above. vfs/ and io/ talk to a struct remote and never learn which
 * protocol or how many connections serve it; tests put a fake one in its place.
 */
#ifndef MOORFS_REMOTE_REMOTE_H
#define MOORFS_REMOTE_REMOTE_H

#include "remote/file.h"
#include "remote/op.h"
#include "remote/session.h"

struct remote;

struct remote_ops {
	/* Takes the op; see op.h. Never blocks. Any thread. */
	void (*submit)(struct remote *remote, struct op *op);
	/* The op is of no interest any more: it ends soon, with -EINTR unless it just ended. */
	void (*cancel)(struct remote *remote, struct op *op);
};

/* Estimates of the link, for window arithmetic. Zero: not known yet. */
struct remote_link {
	uint64_t rtt_ns;        /* lowest round trip seen lately */
	uint64_t bytes_per_sec; /* highest rate of bulk data seen lately */
	unsigned lanes;         /* connected now */
};

struct remote {
	const struct remote_ops *ops;
	struct remote_caps caps; /* fixed before the mount appears */
	void (*link)(struct remote *remote, struct remote_link *link);
};

void remote_submit(struct remote *remote, struct op *op);
void remote_cancel(struct remote *remote, struct op *op);

/* ---- Straight-line calls: submit, wait, settle. They block; any thread but a lane's. ----
 *
 * All return 0 or -errno as a local program expects it: what the server left vague
 * (-EREMOTEIO) is found out by looking, and an operation that was under way when its lane was
 * lost (-ENOLINK) is settled by asking the server whether it happened. Blocked calls end with
 * -EINTR when the thread's current call is interrupted: see remote_call_scope().
 */
int remote_lstat(struct remote *remote, const char *path, struct remote_attr *attr);
int remote_stat(struct remote *remote, const char *path, struct remote_attr *attr);
int remote_setattr(struct remote *remote, const char *path, const struct remote_attr *attr,
                   bool is_symlink);
/* *target is malloc'ed. */
int remote_readlink(struct remote *remote, const char *path, char **target);
int remote_symlink(struct remote *remote, const char *target, const char *path);
int remote_link(struct remote *remote, const char *from, const char *to);
int remote_mkdir(struct remote *remote, const char *path, uint32_t mode);
int remote_rmdir(struct remote *remote, const char *path);
int remote_unlink(struct remote *remote, const char *path);
/* `replace` false: fails with -EEXIST when `to` exists (RENAME_NOREPLACE). */
int remote_rename(struct remote *remote, const char *from, const char *to, bool replace);
int remote_statfs(struct remote *remote, const char *path, struct remote_statfs *statfs);
int remote_realpath(struct remote *remote, const char *path, char **result);
/* Names of the ids, NUL-separated in *names (malloc'ed), empty where unknown. */
int remote_names(struct remote *remote, const uint32_t *ids, size_t count, bool groups,
                 char **names);
/* `attr` in: mode when creating; out: the file as opened. */
int remote_open(struct remote_file *file, unsigned open_flags, struct remote_attr *attr);
int remote_fstat(struct remote_file *file, struct remote_attr *attr);
int remote_fsetattr(struct remote_file *file, const struct remote_attr *attr);
int remote_fsync(struct remote_file *file);
int remote_read(struct remote_file *file, uint64_t offset, void *data, size_t length,
                size_t *count);
int remote_copy(struct remote_file *from, uint64_t from_offset, struct remote_file *to,
                uint64_t to_offset, uint64_t length);
int remote_ping(struct remote *remote);

/*
 * Turns a vague failure of writing to `path` into a reason: -ENOSPC or -EDQUOT when the
 * server's file system is full, else -EIO. Blocks.
 */
int remote_explain_write(struct remote *remote, const char *path, int err);

/*
 * A scope in which this thread's blocking calls can be broken off from another thread; FUSE
 * handlers use it for interrupts. Scopes do not nest.
 */
struct remote_scope {
	pthread_mutex_t lock;
	bool interrupted;
	struct remote *remote;
	struct op *waiting;
};
void remote_scope_begin(struct remote_scope *scope);
void remote_scope_end(struct remote_scope *scope);
/* True when this thread is in a scope that was interrupted: waits of other kinds look at it. */
bool remote_scope_interrupted(void);
/* Any thread, while the scope exists. */
void remote_scope_interrupt(struct remote_scope *scope);

#endif
