/*
 * Files created without waiting for the server (writeback=async). The name is entered into the
 * table and the listing at once, so that all programs on the mount see it; the node is held
 * until the server has answered. What asks the server for names waits for that.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vfs/internal.h"

enum { CREATIONS_MAX = 128 }; /* on their way to the server at once */

struct creation {
	struct vfs *vfs;
	struct node *node; /* one reference */
};

int creations_wait(struct vfs *vfs)
{
	return vfs->config.async ? io_wait_created(vfs->io, 1) : 0;
}

/* On a lane's thread. */
static void created(void *context, int err)
{
	struct creation *creation = context;
	struct vfs *vfs = creation->vfs;
	struct node *node = creation->node;
	free(creation);
	NODES_SCOPE(&vfs->nodes);
	if (err) /* there is no such file: who asks for it is told by the server */
		attr_changed(vfs, node);
	list_for_each (link, &node->names) {
		struct dentry *dentry = list_entry(link, struct dentry, of_node);
		attr_changed(vfs, dentry->parent); /* its time moved only now */
		if (err) {
			dentry->seen_ns = 0;
			dircache_drop(vfs, dentry->parent);
		}
	}
	node_drop(&vfs->nodes, node);
}

/* Whether the name is free beyond doubt; nodes.lock held. */
static bool is_free(struct vfs *vfs, struct node *parent, const char *name)
{
	const size_t length = strlen(name);
	const struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, length);
	if (dentry && dentry->node)
		return false;
	struct listing *listing = dircache_fresh(vfs, parent, clock_now_ns(), NULL);
	struct listing_record record;
	return listing && listing_find(listing, name, length, &record) == LISTING_ABSENT;
}

/* Enters the name as if the server had told of it. Lock held; true, with the path, if so. */
static bool claim(struct vfs *vfs, struct node *parent, const char *name, mode_t mode,
                  struct answer *answer, char **path)
{
	if (vfs->nodes.renames || !is_free(vfs, parent, name) ||
	    !login_may_create(vfs, parent, mode, &answer->attr) ||
	    node_path(&vfs->nodes, parent, name, path) != 0)
		return false;
	io_create_begin(vfs->io);
	names_added(vfs, parent, name, strlen(name));
	answer->stamp = vfs->nodes.stamp;
	return true;
}

/* Puts the creation into the file's queue. False when memory is out. */
static bool queue_creation(struct vfs *vfs, struct vfs_file *file, unsigned open_flags,
                           const struct remote_attr *attr)
{
	struct creation *creation = malloc(sizeof(*creation));
	if (!creation)
		return false;
	*creation = (struct creation){.vfs = vfs, .node = file->node};
	NODES_SCOPE(&vfs->nodes);
	if (!io_create(file->handle, open_flags, attr, created, creation)) {
		free(creation);
		return false;
	}
	node_hold(file->node);
	file->node->unsettled = true;
	attr_changed(vfs, file->node); /* the time is the server's to tell */
	return true;
}

/* The name was claimed, and memory is out: nothing is known of it. */
static void unclaim(struct vfs *vfs, struct node *parent, const char *name,
                    struct vfs_entry *entry)
{
	if (entry->node)
		vfs_forget(vfs, entry->node, 1);
	memset(entry, 0, sizeof(*entry));
	io_create_end(vfs->io);
	name_uncertain(vfs, parent, name, -EIO);
}

bool create_ahead(struct vfs *vfs, struct node *parent, const char *name, mode_t mode,
                  unsigned open_flags, struct vfs_entry *entry, struct vfs_open_info *info)
{
	if (!vfs->config.async || io_wait_created(vfs->io, CREATIONS_MAX) != 0)
		return false;
	CLEANUP_FREE char *path = NULL;
	struct answer answer;
	answer_begin(vfs, &answer, NULL);
	nodes_lock(&vfs->nodes);
	const bool claimed = claim(vfs, parent, name, mode, &answer, &path);
	nodes_unlock(&vfs->nodes);
	if (!claimed)
		return false;

	const unsigned access = open_flags & (OPEN_READ | OPEN_WRITE);
	struct remote_file *remote_file = remote_file_new(vfs->remote, path, access);
	if (!remote_file || entry_enter(vfs, parent, name, strlen(name), &answer, entry) != 0) {
		if (remote_file)
			remote_file_unref(remote_file);
		unclaim(vfs, parent, name, entry);
		return false;
	}
	struct vfs_file *file = file_new(vfs, entry->node, remote_file, access, &answer);
	if (!file || !queue_creation(vfs, file, open_flags, &answer.attr)) {
		if (file)
			vfs_release(vfs, file);
		unclaim(vfs, parent, name, entry);
		return false;
	}
	io_file_send(file->node->io_file);
	entry->attr_valid_ns = 0;
	*info = (struct vfs_open_info){
	    .file = file, .keep_cache = true, .direct_io = vfs->config.direct_io};
	count(&vfs->counters.opens);
	return true;
}
