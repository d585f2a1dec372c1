/* Operations on attributes. */
#include <string.h>

#include "base/cleanup.h"
#include "fuse/handlers.h"

static struct vfs_file *file_of(const struct fuse_file_info *fi)
{
	return fi && fi->fh ? open_file_of(fi)->file : NULL;
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
	int err = vfs_getattr(fs->vfs, node_of(fs, ino), file_of(fi), &st, &valid_ns);
	sync_end(&call);
	if (!err)
		changes_told(&changes, ino);
	changes_end(fs, &changes);
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
	int err = vfs_statfs(fs->vfs, node_of(fs, ino), &out);
	sync_end(&call);
	if (err)
		reply_status(req, err);
	else
		fuse_reply_statfs(req, &out);
}
