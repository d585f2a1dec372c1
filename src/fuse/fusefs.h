/*
 * The top floor: a vfs shown to the kernel as a mount. The only floor that knows libfuse.
 *
 * Life: fusefs_new, fusefs_mount, fusefs_wait (or fusefs_stop from a signal), fusefs_drain,
 * then the vfs may be freed, then fusefs_free. All on one thread, save where it says otherwise.
 *
 * Threads it runs: the libfuse loop with its workers; one that watches interrupted requests
 * (interrupt.h); one that sends notifications to the kernel (notify.h).
 */
#ifndef MOORFS_FUSE_FUSEFS_H
#define MOORFS_FUSE_FUSEFS_H

#include "base/failure.h"
#include "config/config.h"
#include "vfs/vfs.h"

struct fusefs;

/*
 * `mountpoint` is what mountpoint_prepare() gave. The configuration, the vfs and the string
 * outlive the fusefs; the vfs' events are taken. NULL with the failure filled.
 */
struct fusefs *fusefs_new(const struct config *config, struct vfs *vfs, const char *mountpoint,
                          struct failure *failure);

/*
 * Mounts, serves, and returns 0 once the mount has answered a request: lstat of its root, or
 * with delay_connect the kernel's first greeting (the server may be away). -1 with the failure
 * (FAILURE_MOUNT) otherwise; then nothing is mounted any more.
 */
int fusefs_mount(struct fusefs *fs, struct failure *failure);

/* Asks fusefs_wait() to unmount and return. Any thread but a worker; never blocks. */
void fusefs_stop(struct fusefs *fs);

/*
 * Waits until the mount is gone: unmounted from outside, or after fusefs_stop(). 0, or -errno
 * when serving failed.
 */
int fusefs_wait(struct fusefs *fs);

/* Detaches the mount at once, because the program is about to end. Any thread; may block. */
void fusefs_abandon(struct fusefs *fs);

/*
 * Flushes and closes what programs had open at the end; logs what could not be written. After
 * it the vfs gets no more calls.
 */
void fusefs_drain(struct fusefs *fs);

/* NULL is allowed. */
void fusefs_free(struct fusefs *fs);

#endif
