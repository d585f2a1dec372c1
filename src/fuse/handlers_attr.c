/*
 * Operations on attributes.
 *
 * umount(8), df and shells look at the mountpoint itself: while the server hangs they are given
 * what was last known of it, after a moment, so that they do not hang with it.
 */
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fuse/handlers.h"

static struct vfs_file *file_of(const struct fuse_file_info *fi)
{
	return fi && fi->fh ? open_file_of(fi)->file : NULL;
}

#define ROOT_PATIENCE_NS (2 * NS_PER_SEC)

/* `known` is one of the root's fields: without anything to fall back on the call may last. */
static void be_impatient(struct fusefs *fs, struct call *call, fuse_ino_t ino,
                         const bool *known)
{
	if (ino != FUSE_ROOT_ID)
		return;
	pthread_mutex_lock(&fs->lock);
	const bool limited = *known;
	pthread_mutex_unlock(&fs->lock);
	if (limited)
		call_limit(call, ROOT_PATIENCE_NS);
}

/* Keeps the root's answer, or takes the kept one for a call that was too late. The new err. */
static int settle_root(struct fusefs *fs, const struct call *call, int err, void *answer,
                       void *kept, size_t size, bool *known)
{
	LOCK_SCOPE(&fs->lock);
	if (!err) {
		memcpy(kept, answer, size);
		*known = true;
	} else if (call->late && *known) {
		memcpy(answer, kept, size);
		return 0;
	}
	return err;
}

void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fusefs *fs = fusefs_of(req);
	struct stat st;
	uint64_t valid_ns = 0;
	struct changes changes;
	struct call call;
	changes_begin(&changes);
	sync_begin(&call, req);
	be_impatient(fs, &call, ino, &fs->root_stat_known);
	int err = vfs_getattr(fs->vfs, node_of(fs, ino), file_of(fi), &st, &valid_ns);
	sync_end(&call);
	if (!err)
		changes_told(&changes, ino);
	changes_end(fs, &changes);
	if (ino == FUSE_ROOT_ID)
		err = settle_root(fs, &call, err, &st, &fs->root_stat, sizeof(st),
		                  &fs->root_stat_known);
	reply_attr(req, err, &st, valid_ns);
}

/* FUSE_SET_ATTR_CTIME has no counterpart: the server sets ctime by itself. */
static unsigned fields_to_set(int to_set)
{
	static const struct {
		int fuse;
		unsigned vfs;
	} fields[] = {
	    {FUSE_SET_ATTR_MODE, VFS_SET_MODE},
	    {FUSE_SET_ATTR_UID, VFS_SET_UID},
	    {FUSE_SET_ATTR_GID, VFS_SET_GID},
	    {FUSE_SET_ATTR_SIZE, VFS_SET_SIZE},
	    {FUSE_SET_ATTR_ATIME, VFS_SET_ATIME},
	    {FUSE_SET_ATTR_MTIME, VFS_SET_MTIME},
	    {FUSE_SET_ATTR_ATIME_NOW, VFS_SET_ATIME_NOW},
	    {FUSE_SET_ATTR_MTIME_NOW, VFS_SET_MTIME_NOW},
	};
	unsigned which = 0;
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (to_set & fields[i].fuse)
			which |= fields[i].vfs;
	/* The kernel sets both bits for "now"; the time it sends along is of no use then. */
	if (which & VFS_SET_ATIME_NOW)
		which &= ~(unsigned)VFS_SET_ATIME;
	if (which & VFS_SET_MTIME_NOW)
		which &= ~(unsigned)VFS_SET_MTIME;
	return which;
}

void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
                struct fuse_file_info *fi)
{
	struct fusefs *fs = fusefs_of(req);
	struct stat st;
	uint64_t valid_ns = 0;
	struct changes changes;
	struct call call;
	changes_begin(&changes);
	sync_begin(&call, req);
	int err = vfs_setattr(fs->vfs, node_of(fs, ino), file_of(fi), fields_to_set(to_set),
	                      attr, &st, &valid_ns);
	sync_end(&call);
	if (!err)
		changes_told(&changes, ino);
	changes_end(fs, &changes);
	reply_attr(req, err, &st, valid_ns);
}

void on_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	struct fusefs *fs = fusefs_of(req);
	struct call call;
	sync_begin(&call, req);
	int err = vfs_access(fs->vfs, node_of(fs, ino), mask);
	sync_end(&call);
	reply_status(req, err);
}

void on_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct fusefs *fs = fusefs_of(req);
	struct statvfs out;
	memset(&out, 0, sizeof(out));
	struct call call;
	sync_begin(&call, req);
	be_impatient(fs, &call, ino, &fs->root_statvfs_known);
	int err = vfs_statfs(fs->vfs, node_of(fs, ino), &out);
	sync_end(&call);
	if (ino == FUSE_ROOT_ID)
		err = settle_root(fs, &call, err, &out, &fs->root_statvfs, sizeof(out),
		                  &fs->root_statvfs_known);
	if (err)
		reply_status(req, err);
	else
		fuse_reply_statfs(req, &out);
}
