/* What the files of vfs/ share with each other. Not for other floors. */
#ifndef MOORFS_VFS_INTERNAL_H
#define MOORFS_VFS_INTERNAL_H

#include <stdatomic.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/log.h"
#include "vfs/ids.h"
#include "vfs/listing.h"
#include "vfs/node.h"
#include "vfs/prefetch.h"
#include "vfs/symlink.h"
#include "vfs/vfs.h"

/* Where answers came from; for vfs_report(). */
struct vfs_counters {
	atomic_uint_least64_t lookups, lookups_cached, lookups_listed, lookups_negative;
	atomic_uint_least64_t lookups_fetched, opens_fetched;
	atomic_uint_least64_t getattrs, getattrs_cached, setattrs, setattrs_deferred;
	atomic_uint_least64_t opendirs, opendirs_cached, listed_names;
	atomic_uint_least64_t opens, opens_kept, stale_replies, path_retries, changed_files;
};

struct vfs {
	struct remote *remote;
	struct io *io;
	struct vfs_config config; /* its strings are NULL, save the two below */
	char *root, *mountpoint;
	struct symlink_policy symlinks;
	struct vfs_events events;
	struct ids *ids;
	struct timeout_range attr_range;

	struct nodes nodes;
	/* kept and running listings, least recently used first; protected by nodes.lock */
	struct list_node listings;
	size_t listings_bytes;
	struct list_node open_files; /* struct vfs_file; protected by nodes.lock */
	struct list_node open_dirs;  /* struct vfs_dir; protected by nodes.lock */

	struct prefetch *prefetch;
	/* who the server takes us for, as the owner of what we made last; nodes.lock */
	bool login_known;
	uint32_t login_uid, login_gid; /* the group is known from where the directory's is not
	                                * passed on */
	bool login_gid_known;

	struct vfs_counters counters;
};

struct vfs_file {
	struct node *node; /* one reference */
	struct list_node of_node, of_all;
	struct io_handle *handle;
	unsigned access; /* OPEN_READ | OPEN_WRITE */
	bool unopened;   /* its contents were fetched ahead: the server has not opened it */
};

static inline void count(atomic_uint_least64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* -ENAMETOOLONG for names that no server could have. */
int check_name(const char *name);

/* ---- paths (path.c) ----
 *
 * A call by path races with our own renames: the path may be out of date when it reaches the
 * server. So it is made in a loop:
 *
 *	PATH_TRY at = {0};
 *	do {
 *		err = path_of(vfs, &at, node, NULL);
 *		if (!err)
 *			err = remote_...(vfs->remote, at.path, ...);
 *	} while (path_again(vfs, &at, err));
 */
struct path_try {
	char *path;
	const struct node *node;
	uint64_t moves, node_moves; /* as they were when the path was built */
	unsigned tries;
	bool no_wait; /* set by who is renaming: it must not wait for itself */
};
void path_try_release(struct path_try *at);
#define PATH_TRY struct path_try __attribute__((cleanup(path_try_release)))

/* The path of node, or of `name` in it; 0, -ENOENT or -ENOMEM. */
int path_of(struct vfs *vfs, struct path_try *at, const struct node *node, const char *name);
/* True when `err` may be due to a rename: waits for its end. */
bool path_again(struct vfs *vfs, struct path_try *at, int err);

/* ---- attributes (attr.c) ---- */

/* An answer of the server: what it is about was asked at this time and stamp. */
struct answer {
	struct remote_attr attr;
	uint64_t asked_ns, stamp;
	bool has_mark;
	uint64_t mark; /* io_file_mark() of the file, when it was known and had been opened */
};

/* Fills time, stamp and mark; to be called before the server is asked. `node` may be NULL. */
void answer_begin(struct vfs *vfs, struct answer *answer, const struct node *node);

/*
 * All with nodes.lock held.
 *
 * Takes the answer over unless it is older than our own last change. True when taken over; the
 * caller then calls attr_data_check() without the lock.
 */
bool attr_store(struct vfs *vfs, struct node *node, const struct answer *answer);
/* True when our own changes have crossed the question. */
bool attr_is_outdated(const struct node *node, const struct answer *answer);
/*
 * Whether the answer, perhaps not of now, may stand for the file as it is: nothing of ours is
 * younger, and a younger answer tells the same version; that one is filled in then.
 */
bool attr_confirms(const struct node *node, struct answer *answer);
/* Same size, mtime and permissions. */
bool attr_is_same_file(const struct remote_attr *a, const struct remote_attr *b);
/* We changed the file: answers asked before are void, and the next is asked when wanted. */
void attr_changed(struct vfs *vfs, struct node *node);
/* We changed these fields to these values, and know all else to be as before. */
void attr_patch(struct vfs *vfs, struct node *node, const struct remote_attr *attr);
/* What the attributes hold from now on, ns; 0 when out of date or being written. */
uint64_t attr_left(struct vfs *vfs, const struct node *node, uint64_t now_ns);
/* As attr_left for a name that was last asked for at `seen_ns`. */
uint64_t entry_left(struct vfs *vfs, const struct node *node, uint64_t seen_ns,
                    uint64_t now_ns);
uint64_t negative_timeout(const struct vfs *vfs);
/* The shortest time attributes hold. */
uint64_t attr_timeout_min(const struct vfs *vfs);
/* The stat to show. 0 or -EPERM (idmap). */
int attr_show(struct vfs *vfs, struct node *node, struct stat *st);
/* True unless the last attr_show() told the present size and mtime. Lock held. */
bool attr_differs_from_shown(const struct node *node);
bool attr_is_dirty(const struct node *node);
/* True when the attributes are known although the file is dirty: times were set behind its
 * writes. */
bool attr_is_foreseen(const struct node *node);
/* The file's kind, an S_IFMT value that the kernel takes; 0 when the server did not tell one.
 */
mode_t attr_kind(const struct remote_attr *attr);

/* Tells io of the version on the server. True when the cached data is still right. */
bool attr_data_check(struct vfs *vfs, struct node *node, const struct answer *answer);

/* Asks the server about a node (through an open file where it has no name). */
int attr_fetch(struct vfs *vfs, struct node *node, struct vfs_file *file,
               struct answer *answer);
/* Makes the node's attributes fresh: asks unless they are. */
int attr_refresh(struct vfs *vfs, struct node *node, struct vfs_file *file, bool force);
/* The server does not know the file by its names any more: they are to be looked up anew. */
void attr_vanished(struct vfs *vfs, struct node *node);
/* lstat or, with follow_symlinks, stat; the type is always filled in. */
int attr_ask(struct vfs *vfs, const char *path, struct remote_attr *attr);
/* idmap=user: finds the login's remote ids out, once. */
void attr_learn_login(struct vfs *vfs);

/* ---- changes that are not waited for (defer.c) ---- */

/* With nodes.lock held: we have made a file or directory, and the server told this of it. */
void login_learn(struct vfs *vfs, const struct node *parent, const struct remote_attr *made);
/*
 * With nodes.lock held: fills what a file of this mode would be like that we make in the
 * directory; false when that may fail, or is not known.
 */
bool login_may_create(const struct vfs *vfs, const struct node *parent, mode_t mode,
                      struct remote_attr *attr);
/*
 * Lets the change travel behind the writes of the open file, if it is sure to succeed: then the
 * node is as told from now on, and true is returned. Without the lock; does not block.
 */
bool setattr_defer(struct vfs *vfs, struct node *node, unsigned which,
                   const struct stat *values);

/* ---- entries (entry.c) ---- */

enum { ENTRY_AGAIN = 1 };
/*
 * Enters what the server told of a name and counts a lookup for the kernel. 0 or -errno;
 * ENTRY_AGAIN when we have made the name or taken it away since the server was asked.
 */
int entry_enter(struct vfs *vfs, struct node *parent, const char *name, size_t length,
                const struct answer *answer, struct vfs_entry *entry);
/* With nodes.lock held: counts a lookup of a name in the table, as it is known. */
int entry_enter_known(struct vfs *vfs, struct dentry *dentry, struct vfs_entry *entry);
/* The answer is entered whatever changed meanwhile, and is out of date at once. */
void answer_expire(struct answer *answer);
/* The name is known not to exist, as asked at this stamp; fills the negative entry. */
void entry_enter_negative(struct vfs *vfs, struct node *parent, const char *name, size_t length,
                          const struct answer *answer, struct vfs_entry *entry);
/* Asks the server about a name. */
int entry_ask(struct vfs *vfs, struct node *parent, const char *name, struct answer *answer);
/* Asks the server for a name that we have just made, and enters it. */
int entry_enter_new(struct vfs *vfs, struct node *parent, const char *name,
                    struct vfs_entry *entry);

/*
 * With nodes.lock held: a name was made or taken away by us. Patches the directory's listing,
 * takes negative entries out, and makes answers asked before void.
 */
void names_added(struct vfs *vfs, struct node *parent, const char *name, size_t length);
void names_removed(struct vfs *vfs, struct node *parent, const char *name, size_t length);
/* With the lock held: the dentry's name is gone by our doing; detaches it. */
void name_unlinked(struct vfs *vfs, struct dentry *dentry);
/* Without the lock: an operation on the name failed; what is cached of it is out of date. */
void name_uncertain(struct vfs *vfs, struct node *parent, const char *name, int err);

/*
 * Before an answer about a name of a hard-linked file is entered: when its attributes are not
 * those of the other names, somebody has replaced it, and the name is parted from the node.
 */
void links_check(struct vfs *vfs, struct node *parent, const char *name,
                 const struct answer *answer);
/* The first half of it, without asking the server: false when the answer is doubtful. */
bool links_agree(struct vfs *vfs, struct node *parent, const char *name,
                 const struct answer *answer);
/* True when the record's attributes can be entered as they are. */
bool attr_is_usable(const struct vfs *vfs, const struct listing_record *record);

/* ---- files created without waiting (create.c) ---- */

/*
 * With vfs_config.async: creates the file behind the caller's back, when the directory's
 * listing shows that the name is free and we may write there. False: it is to be created in
 * the usual way.
 */
bool create_ahead(struct vfs *vfs, struct node *parent, const char *name, mode_t mode,
                  unsigned open_flags, struct vfs_entry *entry, struct vfs_open_info *info);
/* Before the server is asked for names of directories: those that we have made are there. 0 or
 * -EINTR. */
int creations_wait(struct vfs *vfs);

/* ---- listings (dircache.c), with nodes.lock held ---- */

/*
 * The listing of the directory that may answer now, or NULL; *left_ns (may be NULL) for how
 * long still. No reference is added.
 */
struct listing *dircache_fresh(struct vfs *vfs, struct node *dir, uint64_t now_ns,
                               uint64_t *left_ns);
/* Keeps it for the directory (adds a reference); replaces the one before. */
void dircache_put(struct vfs *vfs, struct node *dir, struct listing *listing);
void dircache_drop(struct vfs *vfs, struct node *dir);
/* Counts the listing's bytes anew, and drops the least recently used ones over the limit. */
void dircache_account(struct vfs *vfs, struct node *dir);

/* ---- open directories (dir.c) ---- */

/* Releases those that the kernel did not. */
void dirs_release_all(struct vfs *vfs);

/* ---- open files (file.c) ---- */

/* With nodes.lock held: the remote file of any open file of the node, referenced; NULL. */
struct remote_file *file_any(struct node *node, unsigned access);
/* With nodes.lock held: marks all open files of the node. */
void files_set_unlinked(struct node *node);
void files_set_written(struct node *node);
/* With nodes.lock held: gives the open files of the node and below their new paths. */
void files_moved(struct vfs *vfs, struct node *node);
/*
 * The open files of nodes that a rename or removal of ours is about to move. From
 * files_moving() to files_moved_on() they are not opened on further lanes by a path that may
 * lead elsewhere. Without memory they take their chance.
 */
struct moving_files {
	struct remote_file **files; /* referenced */
	size_t count;
};
/* With nodes.lock held. To be added up over several nodes; begins zeroed. */
void files_moving(struct vfs *vfs, struct node *node, struct moving_files *moving);
/* Without the lock. */
void files_moved_on(struct moving_files *moving);
/*
 * Before the file loses a name: those of its open files that the server has not opened yet, as
 * their contents were fetched ahead, are opened while they can be. Blocks.
 */
void files_hold(struct vfs *vfs, struct node *node);
/* Takes over the reference to `remote_file`, also when memory is out (NULL). */
struct vfs_file *file_new(struct vfs *vfs, struct node *node, struct remote_file *remote_file,
                          unsigned access, const struct answer *answer);
/* Blocks until queued writes of the node are on the server; 0 or -EINTR. */
int files_drain(struct vfs *vfs, struct node *node);
/* Takes note when all writes of the node have been answered. */
void files_settle(struct vfs *vfs, struct node *node);
/* The node's io_file, NULL when it was never opened. It lives as long as the node. */
struct io_file *file_data(struct vfs *vfs, const struct node *node);

#endif
