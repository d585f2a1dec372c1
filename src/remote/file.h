/*
 * An open remote file. Handles belong to one connection each, so a file has up to one for
 * every lane: the first made by OP_OPEN, others made by the protocol when an op of the file
 * reaches another lane, or the same lane after a reconnect. Such later opens never create or
 * truncate, and find the same file or fail with -ESTALE.
 *
 * A file whose contents are known already needs no OP_OPEN at all: with nothing in `version` it
 * is opened by the first op that reaches a lane, and is the file that is found then.
 */
#ifndef MOORFS_REMOTE_FILE_H
#define MOORFS_REMOTE_FILE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "remote/op.h"

enum { REMOTE_MAX_LANES = 16 };

struct remote;

/*
 * A lane's handle. Only the lane's thread touches it, save `open` and `generation`, which
 * others may read. A protocol that has an open of its own making in flight holds a reference to
 * the file until the reply has come or the session has ended.
 */
struct remote_handle {
	atomic_bool open;
	_Atomic uint32_t generation; /* of the session that opened it */
	uint8_t state;               /* the protocol's */
	uint16_t length;             /* of the protocol's handle string */
	char bytes[256];
	struct list_node waiting;     /* ops that wait for the handle (op.proto.link) */
	struct remote_handle *reader; /* the protocol's: one more, for servers that cannot read
	                               * by a handle that is for writing; freed with this one */
};

struct remote_file {
	struct remote *remote;
	atomic_uint refs;
	unsigned access;      /* OPEN_READ | OPEN_WRITE */
	atomic_int home_lane; /* where it was opened; -1 before */

	pthread_mutex_t lock; /* protects the fields below */
	char *path;
	bool unlinked;   /* no new handle can be made: ops stay on lanes that have one */
	bool one_lane;   /* the protocol's: it cannot be opened again; ops stay likewise */
	bool own_writes; /* we changed it since: size and mtime prove nothing */
	unsigned moving; /* renames and removals of ours under way: the path proves nothing */
	struct remote_attr version; /* size and mtime as opened or last revalidated; nothing
	                             * valid: the first handle fills it */
	_Atomic(struct remote_handle *) handles[REMOTE_MAX_LANES];
};

/* A file not yet open, one reference. NULL when memory is out. Copies the path. */
struct remote_file *remote_file_new(struct remote *remote, const char *path, unsigned access);
struct remote_file *remote_file_ref(struct remote_file *file);

/* The last one closes the handles behind the caller's back; errors there are logged. */
void remote_file_unref(struct remote_file *file);

/* The server has opened the file, and told this of it. */
void remote_file_opened(struct remote_file *file, unsigned open_flags,
                        const struct remote_attr *attr);

/* The file was renamed by us; later opens use the new path. -ENOMEM or 0. */
int remote_file_moved(struct remote_file *file, const char *path);

/*
 * Around a rename or removal of the file, or of a directory above it: as long as a lane has the
 * file open, others do not open it by a path that may lead elsewhere meanwhile.
 */
void remote_file_moving(struct remote_file *file, bool begins);

/* The file has no name any more; see `unlinked`. */
void remote_file_set_unlinked(struct remote_file *file);

/* Marks that our own writes or truncation have begun. */
void remote_file_set_written(struct remote_file *file);

/* True when some lane has a handle of it. Any thread; may have changed on return. */
bool remote_file_has_handle(struct remote_file *file);

/* A copy of the present path, malloc'ed; NULL when memory is out. */
char *remote_file_path(struct remote_file *file);

/* The handle structure for the lane, made on first use (lane's thread only); NULL: no memory.
 */
struct remote_handle *remote_file_handle(struct remote_file *file, int lane);

#endif
