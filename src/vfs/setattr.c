#include <errno.h>
#include <string.h>

#include "vfs/internal.h"

enum {
	SET_OWNER = VFS_SET_UID | VFS_SET_GID,
	SET_ATIME = VFS_SET_ATIME | VFS_SET_ATIME_NOW,
	SET_MTIME = VFS_SET_MTIME | VFS_SET_MTIME_NOW,
};

/* Sends the attributes by the open file, or by path. */
static int send_attr(struct vfs *vfs, struct node *node, struct vfs_file *file,
                     unsigned need_access, const struct remote_attr *attr)
{
	struct remote_file *open = NULL;
	nodes_lock(&vfs->nodes);
	if (file && (file->access & need_access) == need_access)
		open = remote_file_ref(io_handle_remote(file->handle));
	else if (node_is_unlinked(&vfs->nodes, node))
		open = file_any(node, need_access);
	nodes_unlock(&vfs->nodes);
	if (open) {
		int err = remote_fsetattr(open, attr);
		remote_file_unref(open);
		return err;
	}
	PATH_TRY at = {0};
	int err;
	do {
		err = path_of(vfs, &at, node, NULL);
		if (!err)
			err = remote_setattr(vfs->remote, at.path, attr, node_is_symlink(node));
	} while (path_again(vfs, &at, err));
	return err;
}

static int set_size(struct vfs *vfs, struct node *node, struct vfs_file *file, uint64_t size)
{
	if (!node_is_regular(node))
		return node_is_dir(node) ? -EISDIR : -EINVAL;
	const struct remote_attr attr = {.valid = ATTR_SIZE, .size = size};
	int err = send_attr(vfs, node, file, OPEN_WRITE, &attr);
	if (err)
		return err;
	struct io_file *data = file_data(vfs, node);
	if (data)
		io_file_truncated(data, size);
	NODES_SCOPE(&vfs->nodes);
	files_set_written(node);
	attr_patch(vfs, node, &attr);
	attr_changed(vfs, node); /* its mtime moved too */
	return 0;
}

static struct timespec new_time(unsigned which, unsigned set, unsigned set_now,
                                const struct timespec *value, const struct timespec *old)
{
	/* The protocols carry whole seconds. */
	if (which & set_now)
		return (struct timespec){.tv_sec = time(NULL)};
	return (struct timespec){.tv_sec = which & set ? value->tv_sec : old->tv_sec};
}

/* The present attributes, for what is sent unchanged. `times` must be the server's of now. */
static int present(struct vfs *vfs, struct node *node, struct vfs_file *file, bool times,
                   struct remote_attr *attr)
{
	int err = attr_refresh(vfs, node, file, times);
	if (err)
		return err;
	NODES_SCOPE(&vfs->nodes);
	*attr = node->attr;
	return 0;
}

/* What is to be sent besides the size. */
static int make_attr(struct vfs *vfs, struct node *node, struct vfs_file *file, unsigned which,
                     const struct stat *values, struct remote_attr *attr)
{
	struct remote_attr old = {0};
	bool half_owner = (which & SET_OWNER) && (which & SET_OWNER) != SET_OWNER;
	bool half_times = !(which & SET_ATIME) != !(which & SET_MTIME);
	int err = 0;
	if (half_owner || half_times)
		err = present(vfs, node, file, half_times, &old);
	if (!err && ((half_owner && !(old.valid & ATTR_OWNER)) ||
	             (half_times && !(old.valid & ATTR_TIMES))))
		err = -EOPNOTSUPP;
	if (which & VFS_SET_MODE) {
		attr->valid |= ATTR_MODE;
		attr->mode = values->st_mode & 07777;
	}
	if (which & SET_OWNER) {
		attr->valid |= ATTR_OWNER;
		attr->uid = old.uid;
		attr->gid = old.gid;
	}
	if (!err && which & VFS_SET_UID)
		err = ids_remote_uid(vfs->ids, values->st_uid, &attr->uid);
	if (!err && which & VFS_SET_GID)
		err = ids_remote_gid(vfs->ids, values->st_gid, &attr->gid);
	if (which & (SET_ATIME | SET_MTIME)) {
		attr->valid |= ATTR_TIMES;
		attr->atime = new_time(which, VFS_SET_ATIME, VFS_SET_ATIME_NOW,
		                       &values->st_atim, &old.atime);
		attr->mtime = new_time(which, VFS_SET_MTIME, VFS_SET_MTIME_NOW,
		                       &values->st_mtim, &old.mtime);
	}
	return err;
}

static int set_rest(struct vfs *vfs, struct node *node, struct vfs_file *file, unsigned which,
                    const struct stat *values)
{
	struct remote_attr attr = {0};
	int err = make_attr(vfs, node, file, which, values, &attr);
	if (!err && attr.valid)
		err = send_attr(vfs, node, file, 0, &attr);
	if (err)
		return err;
	struct io_file *data = file_data(vfs, node);
	if (data && attr.valid & ATTR_TIMES) /* the data is of the new version all the same */
		io_file_truncated(data, io_file_size(data));
	NODES_SCOPE(&vfs->nodes);
	attr_patch(vfs, node, &attr);
	/* A server takes set-id bits away as it sees fit: then it is asked. */
	if (attr.valid & ATTR_OWNER || (attr.valid & ATTR_MODE && attr.mode & 07000))
		attr_changed(vfs, node);
	if (attr.valid & ATTR_TIMES)
		files_set_written(node);
	return 0;
}

int vfs_setattr(struct vfs *vfs, struct node *node, struct vfs_file *file, unsigned which,
                const struct stat *values, struct stat *st, uint64_t *valid_ns)
{
	attr_learn_login(vfs);
	count(&vfs->counters.setattrs);
	if (setattr_defer(vfs, node, which, values)) {
		NODES_SCOPE(&vfs->nodes);
		*valid_ns = attr_left(vfs, node, clock_now_ns());
		return attr_show(vfs, node, st);
	}
	int err = files_drain(vfs, node);
	/* a name that is still to be made would change the times of its directory again */
	if (!err && node_is_dir(node))
		err = creations_wait(vfs);
	if (!err && which & VFS_SET_SIZE)
		err = set_size(vfs, node, file, (uint64_t)values->st_size);
	if (!err && which & ~(unsigned)VFS_SET_SIZE)
		err = set_rest(vfs, node, file, which, values);
	if (err) {
		/* It may have happened in part, or be on its way. */
		NODES_SCOPE(&vfs->nodes);
		attr_changed(vfs, node);
		return err;
	}
	/* Asks only for what is not known; and the change is made, whatever comes of it. */
	attr_refresh(vfs, node, file, false);
	NODES_SCOPE(&vfs->nodes);
	*valid_ns = attr_left(vfs, node, clock_now_ns());
	return attr_show(vfs, node, st);
}
