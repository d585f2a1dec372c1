/*
 * The table of nodes: every file the kernel knows, and its names.
 *
 * A node is one file (the kernel's inode); a dentry is one name of it in one directory. Names
 * that we hard-linked are several dentries of one node. A dentry keeps its directory alive. A
 * node without dentries (unlinked, but open or still known to the kernel) has no path. Paths
 * are built by walking up, so renaming a directory relinks one dentry. A dentry without a node
 * is a negative entry: the name is known not to exist.
 *
 * Everything here is called with nodes->lock held, save nodes_lock(). The lock protects the
 * table, all nodes and all dentries; it is held for short sections, never over a remote call.
 * It is taken before a listing's lock and before the locks of io.
 */
#ifndef MOORFS_VFS_NODE_H
#define MOORFS_VFS_NODE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/list.h"
#include "base/map.h"
#include "remote/op.h"
#include "vfs/inodes.h"
#include "vfs/timeout.h"

struct io_file;
struct listing;
struct node;
struct place;

enum { NAME_LENGTH_MAX = 255, NEGATIVE_ENTRIES_MAX = 16384 };

struct dentry {
	struct node *parent;
	struct node *node;          /* NULL: negative */
	struct list_node of_parent; /* in parent->children */
	struct list_node of_node;   /* in node->names, or in nodes->negatives (oldest first) */
	uint64_t seen_ns;           /* when the server was last asked about the name */
	uint64_t valid_ns;          /* negative: how long it holds from then; 0: not at all */
	uint64_t changed;           /* stamp of when we made it or took it away; 0: never */
	size_t length;
	char name[];
};

struct node {
	uint64_t lookups; /* counted by the kernel */
	unsigned refs;    /* ours: dentries in it, open files, running calls */
	uint64_t ino;
	struct list_node names;    /* dentries; the first makes the path */
	struct list_node children; /* dentries, negative ones too */

	mode_t kind;             /* S_IFMT part of its mode; never changes */
	struct remote_attr attr; /* the last known */
	uint64_t attr_asked_ns;  /* when the server was asked for it; 0: out of date */
	struct timeout timeout;
	uint64_t changed;         /* stamp of our last change of the file */
	uint64_t names_changed;   /* directory: stamp of our last change of a name in it */
	uint64_t names_forgotten; /* the latest `changed` of a dentry of it that has gone */
	bool own_change;          /* a new mtime is no surprise: we changed the file */
	unsigned writers;         /* writes being queued just now */
	bool unsettled;           /* written to or changed, and not seen drained since */
	bool foreseen;            /* `attr` holds although the server has yet to be told, */
	uint64_t foreseen_writes; /* unless there are more writes than these */
	uint64_t settled;         /* stamp of when it was seen drained */
	unsigned renames;         /* of this node under way */
	uint64_t moves;           /* counts its renames, at their end */

	bool shown; /* attributes were given to the kernel; the last ones: */
	uint64_t shown_size;
	struct timespec shown_mtime;

	struct io_file *io_file; /* made at the first open, lives as long as the node */
	bool pages_stale;        /* the kernel's pages are older than the server's file */
	struct list_node files;  /* struct vfs_file */

	struct listing *listing;      /* directory: kept or running; one reference */
	struct list_node of_listings; /* in vfs->listings, least recently used first */
	size_t listing_bytes;         /* as counted in vfs->listings_bytes */
	uint64_t kernel_listing; /* version of the listing that the kernel read to its end */

	struct place *place; /* directory: what its visits tell, see prefetch.h; or NULL */
	struct list_node of_places; /* in a list of places */

	struct list_node of_dead;
};

struct nodes {
	pthread_mutex_t lock;
	pthread_cond_t renamed; /* a rename under way has ended */
	struct node *root;
	const char *root_path; /* the owner's */
	size_t count;          /* of nodes, the root among them */
	struct map dentries;
	struct inodes inodes;
	struct list_node negatives;
	size_t negative_count;
	uint64_t stamp;        /* counts our changes; see node->changed */
	uint64_t moves;        /* counts our renames of directories, at their end */
	unsigned renames;      /* of directories under way */
	struct list_node dead; /* nodes that nodes_unlock() hands to `bury` */
	void (*bury)(
	    struct node *node); /* releases what hangs from the node, without the lock */
};

/* 0 or -ENOMEM. */
int nodes_init(struct nodes *nodes, const char *root_path, void (*bury)(struct node *node));
/* Buries all nodes. */
void nodes_release(struct nodes *nodes);

void nodes_lock(struct nodes *nodes);
/* Lets go of the lock, then buries what has died under it. */
void nodes_unlock(struct nodes *nodes);

static inline void nodes_unlock_scope(struct nodes **nodes)
{
	nodes_unlock(*nodes);
}

/* Holds the lock until the enclosing scope ends. */
#define NODES_SCOPE(table)                                                  \
	struct nodes *CLEANUP_JOIN(nodes_scope_, __LINE__)                  \
	    __attribute__((cleanup(nodes_unlock_scope), unused)) = (table); \
	nodes_lock(CLEANUP_JOIN(nodes_scope_, __LINE__))

static inline bool node_is_dir(const struct node *node)
{
	return S_ISDIR(node->kind);
}

static inline bool node_is_symlink(const struct node *node)
{
	return S_ISLNK(node->kind);
}

static inline bool node_is_regular(const struct node *node)
{
	return S_ISREG(node->kind);
}

void node_hold(struct node *node);
/* May kill the node. */
void node_drop(struct nodes *nodes, struct node *node);
/* Takes back lookups of the kernel; may kill the node. */
void node_forget(struct nodes *nodes, struct node *node, uint64_t lookups);

/* True when the file has no name left. */
bool node_is_unlinked(const struct nodes *nodes, const struct node *node);
/* The directory of the node's first name, NULL for the root and for unlinked ones. */
struct node *node_parent(const struct node *node);
unsigned node_name_count(const struct node *node);
/* True when the node is `ancestor` or below it. */
bool node_is_below(const struct node *node, const struct node *ancestor);
/*
 * The full remote path of the node, or of `name` in it when that is not NULL; malloc'ed.
 * -ENOENT when the node has no name any more, -ENOMEM.
 */
int node_path(const struct nodes *nodes, const struct node *node, const char *name,
              char **path);
/* As node_path, below the root: "" for the root itself, "a/b". */
int node_relative_path(const struct nodes *nodes, const struct node *node, char **path);

struct dentry *dentry_find(const struct nodes *nodes, const struct node *parent,
                           const char *name, size_t length);
/* A dentry not yet in the table, to be attached or free()d. Needs no lock. */
struct dentry *dentry_new(const char *name, size_t length);
/*
 * Enters it; `node` NULL makes a negative entry. An entry of this name must not be in. False
 * when memory is out (it is still the caller's then).
 */
bool dentry_attach(struct nodes *nodes, struct dentry *dentry, struct node *parent,
                   struct node *node);
/* Takes it out and frees it; may kill its node and its directory. */
void dentry_detach(struct nodes *nodes, struct dentry *dentry);

/*
 * A new node for the name, with one reference of ours, entered under it; or the node that the
 * name shares by a hard link of ours. NULL when memory is out. An entry of this name must not
 * be in, and a shared node must be of this kind, or a new one is made.
 */
struct node *node_make(struct nodes *nodes, struct node *parent, const char *name,
                       size_t length, mode_t kind);

/* The next stamp: what was asked of the server before it is older than this change. */
uint64_t nodes_stamp(struct nodes *nodes);

#endif
