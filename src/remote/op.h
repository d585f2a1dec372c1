/*
 * One remote operation, the unit that travels down the house: what is wanted, until when, and
 * who is told. This header and session.h are the contract between the pool (remote/) and the
 * protocols (sftp/, ftp/); those may include them although remote/ is the floor above.
 *
 * Life: the submitter fills the first part, hands the op to remote_submit() and keeps the op
 * and everything it points to alive until `done` has been called, exactly once, on a lane's
 * thread or on the submitting thread. `done` must not block and may submit other ops.
 */
#ifndef MOORFS_REMOTE_OP_H
#define MOORFS_REMOTE_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "base/list.h"

struct remote_file;

enum op_kind {
	OP_LSTAT,    /* path -> attr; does not follow a final symlink */
	OP_STAT,     /* path -> attr; follows */
	OP_SETATTR,  /* path (follows), attr.valid names the fields */
	OP_LSETATTR, /* as SETATTR, a symlink itself; -EOPNOTSUPP when the server cannot */
	OP_READLINK, /* path -> text (malloc'ed by the protocol, freed by the submitter) */
	OP_SYMLINK,  /* path = the new link, path2 = what it says */
	OP_LINK,     /* path = existing, path2 = new; -EOPNOTSUPP when the server cannot */
	OP_MKDIR,    /* path, attr.mode */
	OP_RMDIR,    /* path */
	OP_UNLINK,   /* path */
	OP_RENAME, /* path -> path2, replacing atomically; -EOPNOTSUPP when the server cannot */
	OP_RENAME_NEW, /* path -> path2, fails when path2 exists (plain SFTP v3 rename) */
	OP_LIST,     /* path -> entries(), in batches; attr: its own, if the server lists it */
	OP_STATFS,   /* path -> statfs; -EOPNOTSUPP when the server cannot */
	OP_REALPATH, /* path -> text, attr is not filled */
	OP_NAMES, /* ids -> text; users or groups by id; -EOPNOTSUPP when the server cannot */
	OP_OPEN,  /* file, open_flags, attr.mode when creating -> attr of the opened file */
	OP_CLOSE, /* file: this lane's handle; sent by remote_file_unref() only */
	OP_READ,  /* file, offset, length, data -> count; less than length only at EOF */
	OP_WRITE, /* file, offset, length, data; all of it or an error */
	OP_FSTAT, /* file -> attr */
	OP_FSETATTR, /* file, attr */
	OP_FSYNC,    /* file; -EOPNOTSUPP when the server cannot */
	OP_COPY,     /* file, offset -> file2, offset2, length; inside the server */
	/*
	 * path, data, length -> attr, count: a regular file whole, opened, read and closed
	 * again. The attributes are no younger than the contents. -EFBIG when it is longer than
	 * `length`, -ESTALE when it changed meanwhile, -EINVAL when it is no regular file.
	 */
	OP_FETCH,
	OP_PING, /* answers when the server is alive */
	OP_KINDS
};

/* What an op waits behind: metadata is never queued behind bulk. */
enum op_class {
	OP_CLASS_META,
	OP_CLASS_BULK,
	OP_CLASS_PREFETCH, /* yields to both */
};

/* Fields present in an attr. */
enum {
	ATTR_SIZE = 1 << 0,
	ATTR_OWNER = 1 << 1, /* uid and gid */
	ATTR_MODE = 1 << 2,  /* type (when reported) and permission bits */
	ATTR_TIMES = 1 << 3, /* atime and mtime */
	ATTR_NLINK = 1 << 4,
};

struct remote_attr {
	unsigned valid;
	uint32_t mode;
	uint32_t uid, gid;
	uint32_t nlink;
	uint64_t size;
	struct timespec atime, mtime;
};

/* One name of a directory. The name is not NUL-terminated and lives until entries() returns. */
struct remote_entry {
	const char *name;
	size_t name_length;
	struct remote_attr attr;
};

/* The fields of statvfs(3), in its units. */
struct remote_statfs {
	uint64_t bsize, frsize, blocks, bfree, bavail, files, ffree, favail;
	uint64_t fsid; /* 0: not known */
	uint64_t namemax;
	bool read_only;
};

enum {
	OPEN_READ = 1 << 0,
	OPEN_WRITE = 1 << 1,
	OPEN_CREATE = 1 << 2,
	OPEN_TRUNC = 1 << 3,
	OPEN_EXCL = 1 << 4,
};

struct op {
	/* ---- filled by the submitter ---- */
	enum op_kind kind;
	enum op_class op_class;
	const char *path, *path2; /* full remote paths, NUL-terminated, raw bytes */
	struct remote_file *file, *file2;
	unsigned open_flags;
	uint64_t offset, offset2;
	size_t length;
	void *data;              /* OP_READ's and OP_FETCH's destination, OP_WRITE's source */
	struct remote_attr attr; /* also a result */
	const uint32_t *ids;     /* OP_NAMES */
	size_t id_count;
	bool ids_are_groups;
	/* Of a file: runs on the lane where the file was opened, if that one still has it open,
	 * so that such ops of one file are sent in the order of their submission. No promise: a
	 * lane may be lost, and ops that were on it go elsewhere (see `attempts` and `ran_on`).
	 */
	bool at_home;
	void (*done)(struct op *op);
	/*
	 * OP_LIST: a batch, on the lane's thread; must not block. Nonzero stops the listing,
	 * which then ends with -ECANCELED.
	 */
	int (*entries)(struct op *op, const struct remote_entry *entries, size_t count);
	void *owner;          /* for the submitter */
	uint64_t deadline_ns; /* 0: the pool sets now + its time-out */

	/* ---- results, valid in done() ---- */
	/*
	 * 0 or -errno. Two values have a meaning of their own below remote/calls:
	 * -EREMOTEIO  the server said "failure" without a reason;
	 * -ENOLINK    the lane was lost after the op was sent: it may have happened or not.
	 */
	int err;
	size_t count;
	char *text;
	struct remote_statfs statfs;
	int ran_on; /* index + 1 of the lane that answered last; 0: none did */

	/* ---- the pool's and the protocol's ---- */
	struct list_node link;
	void *lane;      /* the pool's lane that holds it */
	int pinned_lane; /* index + 1 of the only lane that may run it; 0: any */
	bool stays; /* a lane could not open its file again: one that has it open must do */
	bool sent;  /* (some of) its request may have reached the server */
	unsigned attempts; /* how often it was submitted again; also a result */
	uint64_t submitted_ns;
	_Atomic bool cancelled; /* the submitter lost interest; result is dropped early */
	struct {                /* scratch of the protocol while it runs the op */
		uint32_t step, outstanding;
		size_t progress;
		int err;
		bool eof;
		void *pointer;
		struct list_node link;
	} proto;
};

/* True for kinds that may be repeated after a lost connection without harm. */
bool op_is_idempotent(const struct op *op);

/* The kind's name for traces and statistics: "lstat", "read". */
const char *op_kind_name(enum op_kind kind);

#endif
