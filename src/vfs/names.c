/* Making and removing names. */
#include <errno.h>
#include <string.h>

#include "vfs/internal.h"

/* An operation of the server on one path. */
typedef int one_path_fn(struct vfs *vfs, const char *path, mode_t mode);

static int on_name(struct vfs *vfs, struct node *parent, const char *name, one_path_fn *run,
                   mode_t mode)
{
	int err = check_name(name);
	if (err)
		return err;
	PATH_TRY at = {0};
	do {
		err = path_of(vfs, &at, parent, name);
		if (!err)
			err = run(vfs, at.path, mode);
	} while (path_again(vfs, &at, err));
	if (err)
		name_uncertain(vfs, parent, name, err);
	return err;
}

/* ---- making ---- */

static int run_mkdir(struct vfs *vfs, const char *path, mode_t mode)
{
	return remote_mkdir(vfs->remote, path, mode & 07777);
}

/* The server's umask has taken bits away that the program was granted: they are put back. */
static int repair_mode(struct vfs *vfs, struct node *parent, const char *name, mode_t mode,
                       struct vfs_entry *entry)
{
	nodes_lock(&vfs->nodes);
	struct remote_attr attr = entry->node->attr;
	nodes_unlock(&vfs->nodes);
	if (!(attr.valid & ATTR_MODE) || (attr.mode & 0777) == (mode & 0777))
		return 0;
	const struct remote_attr wanted = {.valid = ATTR_MODE,
	                                   .mode = (attr.mode & 07000) | (mode & 0777)};
	PATH_TRY at = {0};
	int err;
	do {
		err = path_of(vfs, &at, parent, name);
		if (!err)
			err = remote_setattr(vfs->remote, at.path, &wanted, false);
	} while (path_again(vfs, &at, err));
	if (err) /* as with a server that has no such bits: the directory is there all the same
	          */
		log_debug("cannot set mode %o of the new '%s': %s", (unsigned)(mode & 0777),
		          name, strerror(-err));
	NODES_SCOPE(&vfs->nodes);
	if (!err)
		attr_patch(vfs, entry->node, &wanted);
	return attr_show(vfs, entry->node, &entry->st);
}

/* A directory that we have just made is known to be empty. */
static void keep_empty_listing(struct vfs *vfs, struct node *dir)
{
	NODES_SCOPE(&vfs->nodes);
	if (dir->names_changed || dir->listing || !node_is_dir(dir))
		return;
	struct listing *listing = listing_new_empty(nodes_stamp(&vfs->nodes));
	if (!listing)
		return;
	dircache_put(vfs, dir, listing);
	listing_leave(listing);
	listing_unref(listing);
}

int vfs_mkdir(struct vfs *vfs, struct node *parent, const char *name, mode_t mode,
              struct vfs_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	attr_learn_login(vfs);
	int err = on_name(vfs, parent, name, run_mkdir, mode);
	if (err)
		return err;
	nodes_lock(&vfs->nodes);
	names_added(vfs, parent, name, strlen(name));
	nodes_unlock(&vfs->nodes);
	err = entry_enter_new(vfs, parent, name, entry);
	if (err)
		return err;
	nodes_lock(&vfs->nodes);
	login_learn(vfs, parent, &entry->node->attr);
	nodes_unlock(&vfs->nodes);
	keep_empty_listing(vfs, entry->node);
	err = repair_mode(vfs, parent, name, mode, entry);
	if (err)
		vfs_forget(vfs, entry->node, 1);
	return err;
}

static int run_mknod(struct vfs *vfs, const char *path, mode_t mode)
{
	struct remote_file *file = remote_file_new(vfs->remote, path, OPEN_WRITE);
	if (!file)
		return -ENOMEM;
	struct remote_attr attr = {.valid = ATTR_MODE, .mode = mode & 07777};
	int err = remote_open(file, OPEN_WRITE | OPEN_CREATE | OPEN_EXCL, &attr);
	remote_file_unref(file);
	return err;
}

int vfs_mknod(struct vfs *vfs, struct node *parent, const char *name, mode_t mode,
              struct vfs_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	/* The protocols carry no devices, pipes and sockets. */
	if ((mode & S_IFMT) && !S_ISREG(mode))
		return -EPERM;
	attr_learn_login(vfs);
	int err = on_name(vfs, parent, name, run_mknod, mode);
	if (err)
		return err;
	nodes_lock(&vfs->nodes);
	names_added(vfs, parent, name, strlen(name));
	nodes_unlock(&vfs->nodes);
	return entry_enter_new(vfs, parent, name, entry);
}

/* ---- removing ---- */

static int run_unlink(struct vfs *vfs, const char *path, mode_t mode)
{
	(void)mode;
	return remote_unlink(vfs->remote, path);
}

static int run_rmdir(struct vfs *vfs, const char *path, mode_t mode)
{
	(void)mode;
	return remote_rmdir(vfs->remote, path);
}

static int remove_name(struct vfs *vfs, struct node *parent, const char *name, one_path_fn *run)
{
	int err = on_name(vfs, parent, name, run, 0);
	if (err)
		return err;
	NODES_SCOPE(&vfs->nodes);
	struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, strlen(name));
	if (dentry && dentry->node)
		name_unlinked(vfs, dentry);
	else
		names_removed(vfs, parent, name, strlen(name));
	return 0;
}

int vfs_unlink(struct vfs *vfs, struct node *parent, const char *name)
{
	struct moving_files files = {0};
	nodes_lock(&vfs->nodes);
	struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, strlen(name));
	struct node *node = dentry ? dentry->node : NULL;
	if (node) {
		node_hold(node);
		files_moving(vfs, node, &files);
	}
	nodes_unlock(&vfs->nodes);
	/* Who has the file open reads back what was written, which may not have found its way
	 * to other lanes yet. */
	int err = node && (files.count || vfs->config.async) ? files_drain(vfs, node) : 0;
	if (files.count)
		files_hold(vfs, node);
	if (!err)
		err = remove_name(vfs, parent, name, run_unlink);
	files_moved_on(&files);
	if (node) {
		nodes_lock(&vfs->nodes);
		node_drop(&vfs->nodes, node);
		nodes_unlock(&vfs->nodes);
	}
	return err;
}

int vfs_rmdir(struct vfs *vfs, struct node *parent, const char *name)
{
	int err = creations_wait(vfs);
	return err ? err : remove_name(vfs, parent, name, run_rmdir);
}
