/*
 * Inode numbers. A number is a pure function of the path below the mount's root (a chain: the
 * directory's number and the name), so it is the same after a forget, and after a remount.
 * Names that we renamed or hard-linked keep their number by an entry in a bounded table of
 * exceptions; as numbers below a directory derive from its number, a moved directory needs one
 * entry for its whole subtree.
 *
 * Not thread-safe: the tree's lock protects it.
 */
#ifndef MOORFS_VFS_INODES_H
#define MOORFS_VFS_INODES_H

#include "base/list.h"
#include "base/map.h"

enum { INODE_ROOT = 1, INODE_EXCEPTIONS_MAX = 32768 };

struct inodes {
	struct map live;        /* owners by number */
	struct map by_key;      /* exceptions by what the number would be without them */
	struct map by_number;   /* exceptions by number */
	struct list_node order; /* exceptions, oldest first */
};

void inodes_init(struct inodes *inodes);
void inodes_release(struct inodes *inodes);

/* The number a name has by rule: never 0 or INODE_ROOT. */
uint64_t inode_hash(uint64_t parent, const char *name, size_t length);

/* The number that the name shows, or would show if it were looked up now. */
uint64_t inodes_peek(const struct inodes *inodes, uint64_t parent, const char *name,
                     size_t length);

/*
 * The number for a name that gets a new node. When the name was hard-linked by us and the node
 * it shares is alive, *shared is that owner, else NULL.
 */
uint64_t inodes_assign(struct inodes *inodes, uint64_t parent, const char *name, size_t length,
                       void **shared);

/* The live owner that the name shares by a hard link of ours, or NULL. */
void *inodes_shared(const struct inodes *inodes, uint64_t parent, const char *name,
                    size_t length);

/* The number is in use by this owner. False when memory is out. */
bool inodes_live_add(struct inodes *inodes, uint64_t number, void *owner);
void inodes_live_remove(struct inodes *inodes, uint64_t number, const void *owner);

/* Iterates over the owners as map_next() does. */
void *inodes_next_live(const struct inodes *inodes, size_t *at);

/* The name was moved and keeps the number. Lack of memory only makes it less stable. */
void inodes_moved(struct inodes *inodes, uint64_t old_key, uint64_t new_key, uint64_t number);

/* Both names (keys are inode_hash() values) are one file with this number. */
void inodes_linked(struct inodes *inodes, uint64_t key, uint64_t other_key, uint64_t number);

/* How many names the number has by hard links of ours, those that nobody has looked up for a
 * while among them; 0 without any. */
unsigned inodes_link_count(const struct inodes *inodes, uint64_t number);

/* The name is gone: what comes in its place is another file. */
void inodes_removed(struct inodes *inodes, uint64_t key);

#endif
