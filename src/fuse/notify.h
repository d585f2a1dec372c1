/*
 * Tells the kernel what of its caches is stale. From a thread of its own and never from inside
 * a handler: the kernel may need a lock that is held by the very request being handled.
 *
 * Nodes are remembered by number only: the kernel ignores a number that it has forgotten.
 */
#ifndef MOORFS_FUSE_NOTIFY_H
#define MOORFS_FUSE_NOTIFY_H

#include <stdbool.h>

#include "fuse/lowlevel.h"

struct notifier;

/* Starts the thread. The session outlives the notifier. NULL when memory or threads are out. */
struct notifier *notifier_new(struct fuse_session *session);

/* Any thread; never blocks. What does not fit the queue is left to the kernel's time-outs. */
void notifier_data_changed(struct notifier *notifier, fuse_ino_t ino);
void notifier_entry_changed(struct notifier *notifier, fuse_ino_t parent, const char *name);

/*
 * Tells at once, from inside the handler of an open, that the kernel's attributes of the node
 * are out of date, so that the reads that follow ask for the size first. This notice alone
 * needs no lock of the kernel's that a request may hold. `pages_dropped`: the reply makes the
 * kernel drop its pages, which settles the queued notices of the node's data.
 */
void notifier_attr_changed(struct notifier *notifier, fuse_ino_t ino, bool pages_dropped);

/*
 * Sends nothing more and ends the thread; later changes are ignored. While the mount is still
 * served: the thread may be waiting in the kernel for a lock that a request under way holds.
 */
void notifier_stop(struct notifier *notifier);

/* NULL is allowed. */
void notifier_free(struct notifier *notifier);

#endif
