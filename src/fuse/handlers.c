#include "fuse/handlers.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"

/*
 * Not defined on purpose, so that libfuse says ENOSYS and the kernel stops asking: extended
 * attributes and fallocate (programs get EOPNOTSUPP), ioctl, bmap, poll, and locks, which the
 * kernel then keeps itself, for this mount.
 */
const struct fuse_lowlevel_ops fusefs_ops = {
    .init = on_init,
    .lookup = on_lookup,
    .forget = on_forget,
    .forget_multi = on_forget_multi,
    .getattr = on_getattr,
    .setattr = on_setattr,
    .readlink = on_readlink,
    .mknod = on_mknod,
    .mkdir = on_mkdir,
    .unlink = on_unlink,
    .rmdir = on_rmdir,
    .symlink = on_symlink,
    .rename = on_rename,
    .link = on_link,
    .open = on_open,
    .create = on_create,
    .read = on_read,
    .write = on_write,
    .flush = on_flush,
    .release = on_release,
    .fsync = on_fsync,
    .opendir = on_opendir,
    .readdir = on_readdir,
    .readdirplus = on_readdirplus,
    .releasedir = on_releasedir,
    .fsyncdir = on_fsyncdir,
    .statfs = on_statfs,
    .access = on_access,
    .copy_file_range = on_copy_file_range,
    .lseek = on_lseek,
};

static double seconds(uint64_t ns)
{
	return (double)ns / (double)NS_PER_SEC;
}

void reply_status(fuse_req_t req, int err)
{
	fuse_reply_err(req, -err);
}

void reply_attr(fuse_req_t req, int err, const struct stat *st, uint64_t valid_ns)
{
	if (err)
		fuse_reply_err(req, -err);
	else
		fuse_reply_attr(req, st, seconds(valid_ns));
}

void fill_entry_param(struct fusefs *fs, const struct vfs_entry *entry,
                      struct fuse_entry_param *param)
{
	memset(param, 0, sizeof(*param));
	param->entry_timeout = seconds(entry->entry_valid_ns);
	if (!entry->node)
		return;
	param->ino = ino_of(fs, entry->node);
	/* A node's address may be used again for another file; the inode number is not. */
	param->generation = entry->st.st_ino;
	param->attr = entry->st;
	param->attr_timeout = seconds(entry->attr_valid_ns);
}

void reply_entry(fuse_req_t req, int err, const struct vfs_entry *entry)
{
	struct fusefs *fs = fusefs_of(req);
	const bool negative = err == -ENOENT && !entry->node && entry->entry_valid_ns > 0;
	if (err && !negative) {
		fuse_reply_err(req, -err);
		return;
	}
	struct fuse_entry_param param;
	fill_entry_param(fs, entry, &param);
	if (fuse_reply_entry(req, &param) != 0 && entry->node)
		vfs_forget(fs->vfs, entry->node, 1);
}
