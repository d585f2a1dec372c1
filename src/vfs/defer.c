/*
 * Changes of attributes that need not be waited for: those of a file that is open for writing,
 * when they are sure to succeed. They travel behind the file's writes, several as one; the
 * server's word comes with fsync(2) or close(2). All others are made at once (setattr.c).
 */
#include <string.h>

#include "vfs/internal.h"

enum {
	SET_ATIME = VFS_SET_ATIME | VFS_SET_ATIME_NOW,
	SET_MTIME = VFS_SET_MTIME | VFS_SET_MTIME_NOW,
	SPECIAL_BITS = 07000, /* servers grant and take them as they see fit */
	ALL = ATTR_SIZE | ATTR_OWNER | ATTR_MODE | ATTR_TIMES,
};

void login_learn(struct vfs *vfs, const struct node *parent, const struct remote_attr *made)
{
	if (!(made->valid & ATTR_OWNER))
		return;
	vfs->login_known = true;
	vfs->login_uid = made->uid;
	if (parent->attr.valid & ATTR_MODE && !(parent->attr.mode & S_ISGID)) {
		vfs->login_gid = made->gid;
		vfs->login_gid_known = true;
	}
}

static bool login_is_root(const struct vfs *vfs)
{
	return vfs->login_known && vfs->login_uid == 0;
}

static bool login_owns(const struct vfs *vfs, const struct node *node)
{
	return vfs->login_known && node->attr.uid == vfs->login_uid;
}

bool login_may_create(const struct vfs *vfs, const struct node *parent, mode_t mode,
                      struct remote_attr *attr)
{
	const struct remote_attr *dir = &parent->attr;
	const unsigned need = ATTR_MODE | ATTR_OWNER;
	if (!vfs->login_known || (dir->valid & need) != need || mode & SPECIAL_BITS)
		return false;
	const bool writable =
	    login_is_root(vfs) || (login_owns(vfs, parent) && (dir->mode & 0300) == 0300);
	const bool passes_group = dir->mode & S_ISGID;
	const struct timespec now = {.tv_sec = time(NULL)};
	*attr = (struct remote_attr){.valid = ALL,
	                             .mode = S_IFREG | (mode & 0777),
	                             .uid = vfs->login_uid,
	                             .gid = passes_group ? dir->gid : vfs->login_gid,
	                             .atime = now,
	                             .mtime = now};
	return writable && (passes_group || vfs->login_gid_known);
}

static struct io_handle *handle_for_writing(const struct node *node)
{
	list_for_each (link, &node->files) {
		struct vfs_file *file = list_entry(link, struct vfs_file, of_node);
		if (file->access & OPEN_WRITE)
			return file->handle;
	}
	return NULL;
}

static bool foresee_mode(const struct node *node, const struct stat *values,
                         struct remote_attr *attr)
{
	attr->valid |= ATTR_MODE;
	attr->mode = values->st_mode & 07777;
	return !(attr->mode & SPECIAL_BITS) && !(node->attr.mode & SPECIAL_BITS);
}

static bool foresee_owner(const struct vfs *vfs, const struct node *node, unsigned which,
                          const struct stat *values, struct remote_attr *attr)
{
	attr->uid = node->attr.uid;
	attr->gid = node->attr.gid;
	if (which & VFS_SET_UID && ids_remote_uid(vfs->ids, values->st_uid, &attr->uid) != 0)
		return false;
	if (which & VFS_SET_GID && ids_remote_gid(vfs->ids, values->st_gid, &attr->gid) != 0)
		return false;
	if (node->attr.mode & SPECIAL_BITS) /* even one that changes nothing takes them away */
		return false;
	if (attr->uid == node->attr.uid && attr->gid == node->attr.gid)
		return true;
	attr->valid |= ATTR_OWNER;
	return login_is_root(vfs);
}

/* The time that is asked for, or `old` when it is to stay; false when the protocol cannot. */
static bool foresee_time(unsigned which, unsigned set, unsigned set_now,
                         const struct timespec *value, const struct timespec *old,
                         struct timespec *result)
{
	if (which & set_now)
		*result = (struct timespec){.tv_sec = time(NULL)};
	else
		*result =
		    (struct timespec){.tv_sec = which & set ? value->tv_sec : old->tv_sec};
	return result->tv_sec >= 0 && result->tv_sec <= UINT32_MAX;
}

/*
 * The protocol sets both times. That of the last access is as it was at the open, as writing
 * does not change it; that of the last write must be known to be kept.
 */
static bool foresee_times(struct vfs *vfs, const struct node *node, unsigned which,
                          const struct stat *values, struct remote_attr *attr)
{
	const struct remote_attr *old = &node->attr;
	if (!(which & SET_MTIME) && !attr_left(vfs, node, clock_now_ns()))
		return false;
	attr->valid |= ATTR_TIMES;
	return foresee_time(which, VFS_SET_ATIME, VFS_SET_ATIME_NOW, &values->st_atim,
	                    &old->atime, &attr->atime) &&
	       foresee_time(which, VFS_SET_MTIME, VFS_SET_MTIME_NOW, &values->st_mtim,
	                    &old->mtime, &attr->mtime);
}

/* Fills what the server is to be told; false when it may say no, or do something else. */
static bool foresee(struct vfs *vfs, const struct node *node, unsigned which,
                    const struct stat *values, struct remote_attr *attr)
{
	if (!node_is_regular(node) || which & VFS_SET_SIZE || (node->attr.valid & ALL) != ALL)
		return false;
	if (!login_is_root(vfs) && !login_owns(vfs, node))
		return false;
	if (which & VFS_SET_MODE && !foresee_mode(node, values, attr))
		return false;
	if (which & (VFS_SET_UID | VFS_SET_GID) &&
	    !foresee_owner(vfs, node, which, values, attr))
		return false;
	return !(which & (SET_ATIME | SET_MTIME)) ||
	       foresee_times(vfs, node, which, values, attr);
}

/* The node is as it was told to be, and with the times set all of it is known. */
static void take_over(struct vfs *vfs, struct node *node, const struct remote_attr *attr,
                      uint64_t writes)
{
	struct remote_attr now = *attr;
	node->unsettled = true; /* answers that cross the change are not of now */
	if (attr->valid & ATTR_TIMES) {
		node->foreseen = true;
		node->foreseen_writes = writes;
		now.valid |= ATTR_SIZE;
		now.size = io_file_size(node->io_file);
		files_set_written(node);
		node->attr_asked_ns = clock_now_ns();
		node->own_change = false;
	}
	attr_patch(vfs, node, &now);
	count(&vfs->counters.setattrs_deferred);
}

bool setattr_defer(struct vfs *vfs, struct node *node, unsigned which,
                   const struct stat *values)
{
	struct remote_attr attr = {0};
	uint64_t writes = 0;
	nodes_lock(&vfs->nodes);
	struct io_handle *handle = handle_for_writing(node);
	bool deferred = handle && foresee(vfs, node, which, values, &attr) &&
	                (!attr.valid || io_setattr(handle, &attr, &writes));
	if (deferred && attr.valid)
		take_over(vfs, node, &attr, writes);
	struct io_file *data = node->io_file;
	nodes_unlock(&vfs->nodes);
	if (deferred && attr.valid)
		io_file_send(data);
	return deferred;
}
