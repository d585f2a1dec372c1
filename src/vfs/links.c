/* Symbolic and hard links. */
#include <errno.h>
#include <string.h>

#include "vfs/internal.h"

/* ---- symbolic ---- */

/* What the policy lets be seen of `target` of a link in `dir`; takes the target over. */
static int show_target(struct vfs *vfs, const char *dir, char *target, char **shown)
{
	CLEANUP_FREE char *text = NULL;
	const char *rest;
	enum symlink_verdict verdict = symlink_judge(&vfs->symlinks, dir, target, &text, &rest);
	if (verdict == SYMLINK_ASK) {
		CLEANUP_FREE char *resolved = NULL;
		int err = remote_realpath(vfs->remote, text, &resolved);
		free(text);
		text = NULL;
		static const int no_way[] = {-ENOENT, -ENOTDIR, -EACCES, -EPERM,
		                             -EIO,    -ELOOP,   -EINVAL, -EOPNOTSUPP};
		verdict = SYMLINK_REFUSE;
		for (size_t i = 0; err && i < ARRAY_LEN(no_way); i++)
			if (err == no_way[i])
				err = 0;
		if (err) {
			free(target);
			return err;
		}
		if (resolved)
			verdict = symlink_settle(&vfs->symlinks, dir, resolved, rest, &text);
	}
	if (verdict == SYMLINK_KEEP) {
		*shown = target;
		return 0;
	}
	free(target);
	if (verdict == SYMLINK_REWRITE) {
		*shown = text;
		text = NULL;
		return 0;
	}
	return verdict == SYMLINK_NOMEM ? -ENOMEM : -EPERM;
}

int vfs_readlink(struct vfs *vfs, struct node *node, char **target)
{
	*target = NULL;
	PATH_TRY at = {0};
	CLEANUP_FREE char *dir = NULL;
	char *told = NULL;
	int err;
	do {
		free(dir);
		dir = NULL;
		err = path_of(vfs, &at, node, NULL);
		if (err)
			break;
		nodes_lock(&vfs->nodes);
		const struct node *parent = node_parent(node);
		err = parent ? node_relative_path(&vfs->nodes, parent, &dir) : -ENOENT;
		nodes_unlock(&vfs->nodes);
		if (!err)
			err = remote_readlink(vfs->remote, at.path, &told);
	} while (path_again(vfs, &at, err));
	if (!err && !told)
		err = -EIO;
	if (!err && strlen(told) >= 4096) /* more than the kernel takes in one piece */
		err = -ENAMETOOLONG;
	if (err) {
		free(told);
		return err;
	}
	return show_target(vfs, dir, told, target);
}

int vfs_symlink(struct vfs *vfs, const char *target, struct node *parent, const char *name,
                struct vfs_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	int err = check_name(name);
	if (err)
		return err;
	PATH_TRY at = {0};
	do {
		err = path_of(vfs, &at, parent, name);
		if (!err)
			err = remote_symlink(vfs->remote, target, at.path);
	} while (path_again(vfs, &at, err));
	if (err) {
		name_uncertain(vfs, parent, name, err);
		return err;
	}
	nodes_lock(&vfs->nodes);
	names_added(vfs, parent, name, strlen(name));
	nodes_unlock(&vfs->nodes);
	return entry_enter_new(vfs, parent, name, entry);
}

/* ---- hard ---- */

/*
 * Enters the new name as one more of the node. With a name of somebody else's making in its
 * place, or without memory, the next lookup finds out.
 */
static void add_name(struct vfs *vfs, struct node *node, struct node *parent, const char *name)
{
	NODES_SCOPE(&vfs->nodes);
	size_t length = strlen(name);
	names_added(vfs, parent, name, length);
	attr_changed(vfs, node);
	if (list_empty(&node->names))
		return;
	const struct dentry *first = list_entry(node->names.next, struct dentry, of_node);
	inodes_linked(&vfs->nodes.inodes,
	              inode_hash(first->parent->ino, first->name, first->length),
	              inode_hash(parent->ino, name, length), node->ino);
	if (node->attr.valid & ATTR_NLINK)
		node->attr.nlink++;
	struct dentry *before = dentry_find(&vfs->nodes, parent, name, length);
	if (before && before->node == node)
		return;
	if (before)
		dentry_detach(&vfs->nodes, before);
	struct dentry *dentry = dentry_new(name, length);
	if (!dentry)
		return;
	dentry->changed = parent->names_changed;
	if (!dentry_attach(&vfs->nodes, dentry, parent, node))
		free(dentry);
}

int vfs_link(struct vfs *vfs, struct node *node, struct node *new_parent, const char *new_name,
             struct vfs_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	/* EPERM is what link(2) says of a file system without hard links. */
	if (vfs->config.disable_hardlink || !vfs->remote->caps.hardlink)
		return -EPERM;
	int err = check_name(new_name);
	if (err)
		return err;
	if (vfs->config.async)
		err = files_drain(vfs, node);
	if (err)
		return err;
	PATH_TRY from = {0}, to = {0};
	do {
		path_try_release(&to);
		err = path_of(vfs, &from, node, NULL);
		if (!err)
			err = path_of(vfs, &to, new_parent, new_name);
		if (!err)
			err = remote_link(vfs->remote, from.path, to.path);
	} while (path_again(vfs, &from, err));
	if (err) {
		name_uncertain(vfs, new_parent, new_name, err);
		return err == -EOPNOTSUPP ? -EPERM : err;
	}
	add_name(vfs, node, new_parent, new_name);
	return entry_enter_new(vfs, new_parent, new_name, entry);
}

static bool same_file(const struct remote_attr *a, const struct remote_attr *b)
{
	return a->size == b->size && (a->mode & 07777) == (b->mode & 07777) &&
	       a->uid == b->uid && a->gid == b->gid && a->mtime.tv_sec == b->mtime.tv_sec &&
	       a->mtime.tv_nsec == b->mtime.tv_nsec;
}

/* A name that does not look as the other names of its node do. */
struct doubt {
	struct node *node;  /* referenced */
	char *path, *other; /* of the name, and of one more of the node */
};

static void doubt_release(struct vfs *vfs, struct doubt *doubt)
{
	free(doubt->path);
	free(doubt->other);
	if (!doubt->node)
		return;
	NODES_SCOPE(&vfs->nodes);
	node_drop(&vfs->nodes, doubt->node);
}

/* True with the doubt filled, to be released in any case. */
static bool is_suspicious(struct vfs *vfs, struct node *parent, const char *name,
                          const struct answer *answer, struct doubt *doubt)
{
	NODES_SCOPE(&vfs->nodes);
	size_t length = strlen(name);
	const struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, length);
	struct node *node = dentry ? dentry->node : NULL;
	if (!node)
		node = inodes_shared(&vfs->nodes.inodes, parent->ino, name, length);
	if (!node || node_is_dir(node) || attr_is_dirty(node) ||
	    same_file(&node->attr, &answer->attr))
		return false;
	node_hold(node);
	doubt->node = node;
	list_for_each (link, &node->names) {
		const struct dentry *other = list_entry(link, struct dentry, of_node);
		if (other != dentry)
			return node_path(&vfs->nodes, parent, name, &doubt->path) == 0 &&
			       node_path(&vfs->nodes, other->parent, other->name,
			                 &doubt->other) == 0;
	}
	return false;
}

bool links_agree(struct vfs *vfs, struct node *parent, const char *name,
                 const struct answer *answer)
{
	struct doubt doubt = {0};
	bool agree = !is_suspicious(vfs, parent, name, answer, &doubt);
	doubt_release(vfs, &doubt);
	return agree;
}

/* Asks the server about both names: true when they are certainly two files. */
static bool are_two_files(struct vfs *vfs, const struct doubt *doubt)
{
	struct answer begin;
	struct remote_attr ours, theirs;
	answer_begin(vfs, &begin, doubt->node);
	/* A name that is gone, perhaps by a rename of ours, says nothing: its next lookup does.
	 */
	if (remote_lstat(vfs->remote, doubt->other, &theirs) != 0 ||
	    remote_lstat(vfs->remote, doubt->path, &ours) != 0 || same_file(&ours, &theirs))
		return false;
	/* A write of ours between the two answers makes them differ, too. */
	NODES_SCOPE(&vfs->nodes);
	return !attr_is_outdated(doubt->node, &begin);
}

void links_check(struct vfs *vfs, struct node *parent, const char *name,
                 const struct answer *answer)
{
	struct doubt doubt = {0};
	if (is_suspicious(vfs, parent, name, answer, &doubt) && are_two_files(vfs, &doubt)) {
		NODES_SCOPE(&vfs->nodes);
		struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, strlen(name));
		if (dentry && dentry->node == doubt.node)
			dentry_detach(&vfs->nodes, dentry);
		inodes_removed(&vfs->nodes.inodes, inode_hash(parent->ino, name, strlen(name)));
	}
	doubt_release(vfs, &doubt);
}
