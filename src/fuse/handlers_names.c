/* Operations on names. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuse/handlers.h"

void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fusefs *fs = fusefs_of(req);
	struct vfs_entry entry = {0};
	struct changes changes;
	struct call call;
	changes_begin(&changes);
	sync_begin(&call, req);
	int err = vfs_lookup(fs->vfs, node_of(fs, parent), name, &entry);
	sync_end(&call);
	if (!err)
		changes_told(&changes, ino_of(fs, entry.node));
	changes_end(fs, &changes);
	reply_entry(req, err, &entry);
}

static void forget(struct fusefs *fs, fuse_ino_t ino, uint64_t lookups)
{
	/* The root is not counted: it lives as long as the mount. */
	if (ino != FUSE_ROOT_ID)
		vfs_forget(fs->vfs, node_of(fs, ino), lookups);
}

void on_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
	forget(fusefs_of(req), ino, lookups);
	fuse_reply_none(req);
}

void on_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	for (size_t i = 0; i < count; i++)
		forget(fusefs_of(req), forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

void on_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct fusefs *fs = fusefs_of(req);
	CLEANUP_FREE char *target = NULL;
	struct call call;
	sync_begin(&call, req);
	int err = vfs_readlink(fs->vfs, node_of(fs, ino), &target);
	sync_end(&call);
	if (err)
		reply_status(req, err);
	else
		fuse_reply_readlink(req, target);
}

void on_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	struct fusefs *fs = fusefs_of(req);
	struct vfs_entry entry = {0};
	struct call call;
	sync_begin(&call, req);
	int err = vfs_symlink(fs->vfs, target, node_of(fs, parent), name, &entry);
	sync_end(&call);
	reply_entry(req, err, &entry);
}

void on_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name)
{
	struct fusefs *fs = fusefs_of(req);
	struct vfs_entry entry = {0};
	struct call call;
	sync_begin(&call, req);
	int err =
	    vfs_link(fs->vfs, node_of(fs, ino), node_of(fs, new_parent), new_name, &entry);
	sync_end(&call);
	reply_entry(req, err, &entry);
}

void on_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	struct fusefs *fs = fusefs_of(req);
	struct vfs_entry entry = {0};
	struct call call;
	sync_begin(&call, req);
	int err = vfs_mkdir(fs->vfs, node_of(fs, parent), name, mode, &entry);
	sync_end(&call);
	reply_entry(req, err, &entry);
}

void on_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	(void)rdev;
	struct fusefs *fs = fusefs_of(req);
	struct vfs_entry entry = {0};
	struct call call;
	sync_begin(&call, req);
	int err = vfs_mknod(fs->vfs, node_of(fs, parent), name, mode, &entry);
	sync_end(&call);
	reply_entry(req, err, &entry);
}

void on_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fusefs *fs = fusefs_of(req);
	struct call call;
	sync_begin(&call, req);
	int err = vfs_unlink(fs->vfs, node_of(fs, parent), name);
	sync_end(&call);
	reply_status(req, err);
}

void on_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct fusefs *fs = fusefs_of(req);
	struct call call;
	sync_begin(&call, req);
	int err = vfs_rmdir(fs->vfs, node_of(fs, parent), name);
	sync_end(&call);
	reply_status(req, err);
}

void on_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
               const char *new_name, unsigned flags)
{
	struct fusefs *fs = fusefs_of(req);
	struct call call;
	sync_begin(&call, req);
	int err = vfs_rename(fs->vfs, node_of(fs, parent), name, node_of(fs, new_parent),
	                     new_name, flags);
	sync_end(&call);
	reply_status(req, err);
}
