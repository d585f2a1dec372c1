/*
 * Fetching ahead of programs: the small files of a directory that are opened one after the
 * other, and the subdirectories that are listed one after the other. What comes next is told by
 * order.h and sequence.h, how much of it by pace.h. For the files of vfs/.
 *
 * A file counts as fetched only while nothing of ours has touched it since: whatever we change
 * is dropped here. So what is found is as old as its fetch, PREFETCH_VALID_NS at most.
 */
#ifndef MOORFS_VFS_PREFETCH_H
#define MOORFS_VFS_PREFETCH_H

#include <stdbool.h>
#include <stddef.h>

struct answer;
struct bytes;
struct io_whole;
struct node;
struct prefetch;
struct vfs;

/* 0 or -ENOMEM. */
int prefetch_init(struct vfs *vfs);
/* The mount is over: ends all fetches and waits for them. Harmless when done before. */
void prefetch_stop(struct vfs *vfs);
void prefetch_free(struct vfs *vfs);
void prefetch_report(struct vfs *vfs, struct bytes *out);

/* ---- events; called without locks, and none waits for the server unless it says so ---- */

/* A program opens the file for reading: fetches what it will open next. */
void prefetch_file_opened(struct vfs *vfs, struct node *node);

/*
 * The file's contents, if they were fetched ahead and hold; waits for them when they are under
 * way, as a remote call does. The answer is filled with what the server told beside them. NULL:
 * open the file. The contents are the caller's.
 */
struct io_whole *prefetch_take(struct vfs *vfs, struct node *node, struct answer *answer);

/*
 * Whether the file of this name was fetched ahead and is the one that is known; waits as
 * prefetch_take() does. The answer is filled then.
 */
bool prefetch_confirms(struct vfs *vfs, struct node *parent, const char *name,
                       struct answer *answer);

/* A program opens the directory; `cached`: by a listing at hand. Lists others ahead. */
void prefetch_dir_opened(struct vfs *vfs, struct node *node, bool cached);

/* ---- with nodes.lock ---- */

/* We have changed this name or its file. */
void prefetch_drop(struct vfs *vfs, const struct node *dir, const char *name, size_t length);

/* ---- without locks ---- */

/* The node is dead. */
void prefetch_bury(struct node *node);

#endif
