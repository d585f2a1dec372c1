#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "vfs/internal.h"

/* A rename from its preparation to its end; all is found and allocated before it is sent. */
struct move {
	struct node *parent, *new_parent;
	const char *name, *new_name;
	struct node *source, *target; /* referenced; NULL when not in the table */
	struct dentry *dentry;        /* the new name, to be attached */
	struct node **symlinks;       /* referenced: the kernel's copies of them are void */
	size_t symlink_count;
	struct moving_files files;
};

static struct node *node_of_name(struct vfs *vfs, struct node *parent, const char *name)
{
	struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, strlen(name));
	if (dentry && dentry->node)
		node_hold(dentry->node);
	return dentry ? dentry->node : NULL;
}

/* From here to move_end() calls by an old path wait before they believe in -ENOENT. */
static int move_begin(struct vfs *vfs, struct move *move)
{
	move->dentry = dentry_new(move->new_name, strlen(move->new_name));
	if (!move->dentry)
		return -ENOMEM;
	NODES_SCOPE(&vfs->nodes);
	move->source = node_of_name(vfs, move->parent, move->name);
	move->target = node_of_name(vfs, move->new_parent, move->new_name);
	if (!move->source || node_is_dir(move->source))
		vfs->nodes.renames++;
	if (move->source)
		move->source->renames++;
	if (move->source && node_is_below(move->new_parent, move->source))
		return -EINVAL;
	if (move->source)
		files_moving(vfs, move->source, &move->files);
	if (move->target)
		files_moving(vfs, move->target, &move->files);
	return 0;
}

static void move_end(struct vfs *vfs, struct move *move)
{
	nodes_lock(&vfs->nodes);
	if (!move->source || node_is_dir(move->source)) {
		vfs->nodes.renames--;
		vfs->nodes.moves++;
	}
	if (move->source) {
		move->source->renames--;
		move->source->moves++;
		node_drop(&vfs->nodes, move->source);
	}
	if (move->target)
		node_drop(&vfs->nodes, move->target);
	pthread_cond_broadcast(&vfs->nodes.renamed);
	nodes_unlock(&vfs->nodes);
	files_moved_on(&move->files);
	free(move->dentry);
}

static int send_rename(struct vfs *vfs, struct move *move, bool replace)
{
	/* Writes on other lanes may still have to open the file by its old path. */
	int err = creations_wait(vfs);
	if (!err && move->source)
		err = files_drain(vfs, move->source);
	if (!err && move->target)
		err = files_drain(vfs, move->target);
	if (err)
		return err;
	if (move->source && !node_is_dir(move->source))
		files_hold(vfs, move->source);
	if (move->target)
		files_hold(vfs, move->target);
	PATH_TRY from = {.no_wait = true}, to = {0};
	do {
		path_try_release(&to);
		err = path_of(vfs, &from, move->parent, move->name);
		if (!err)
			err = path_of(vfs, &to, move->new_parent, move->new_name);
		if (!err)
			err = remote_rename(vfs->remote, from.path, to.path, replace);
	} while (path_again(vfs, &from, err));
	return err;
}

/* ---- the table after the rename, with nodes.lock held ---- */

/* Calls `take` for every known symlink at and below the node. */
static void each_symlink(struct node *node, void (*take)(struct move *, struct node *),
                         struct move *move)
{
	if (node_is_symlink(node))
		take(move, node);
	list_for_each (link, &node->children) {
		const struct dentry *child = list_entry(link, struct dentry, of_parent);
		if (child->node)
			each_symlink(child->node, take, move);
	}
}

static void count_symlink(struct move *move, struct node *node)
{
	(void)node;
	move->symlink_count++;
}

static void take_symlink(struct move *move, struct node *node)
{
	node_hold(node);
	move->symlinks[move->symlink_count++] = node;
}

/* What is shown of a link's target depends on where the link is. */
static void collect_symlinks(struct vfs *vfs, struct move *move, struct node *node)
{
	if (!vfs->events.data_changed)
		return;
	each_symlink(node, count_symlink, move);
	if (move->symlink_count)
		move->symlinks = calloc(move->symlink_count, sizeof(struct node *));
	if (!move->symlinks && move->symlink_count)
		log_warn(
		    "out of memory: targets of symbolic links below the renamed '%s' may be "
		    "seen as before for a while",
		    move->new_name);
	bool room = move->symlinks != NULL;
	move->symlink_count = 0;
	if (room)
		each_symlink(node, take_symlink, move);
}

/* Puts the new dentry into the place that names_added() has marked. */
static void attach_moved(struct vfs *vfs, struct move *move, struct node *node)
{
	struct dentry *mark = dentry_find(&vfs->nodes, move->new_parent, move->dentry->name,
	                                  move->dentry->length);
	if (mark)
		dentry_detach(&vfs->nodes, mark);
	move->dentry->changed = move->new_parent->names_changed;
	if (dentry_attach(&vfs->nodes, move->dentry, move->new_parent, node))
		move->dentry = NULL;
	else
		log_error("out of memory: '%s' is looked up anew after its renaming",
		          move->new_name);
}

static void relink(struct vfs *vfs, struct move *move)
{
	struct nodes *nodes = &vfs->nodes;
	size_t length = strlen(move->name), new_length = strlen(move->new_name);
	struct dentry *target =
	    dentry_find(nodes, move->new_parent, move->new_name, new_length);
	struct dentry *source = dentry_find(nodes, move->parent, move->name, length);
	struct node *node = source ? source->node : NULL;
	if (target && target == source)
		return;
	if (target && target->node)
		name_unlinked(vfs, target);
	if (!node) {
		names_removed(vfs, move->parent, move->name, length);
		names_added(vfs, move->new_parent, move->new_name, new_length);
		return;
	}
	node_hold(node);
	move->dentry->seen_ns = source->seen_ns;
	dentry_detach(nodes, source);
	inodes_moved(&nodes->inodes, inode_hash(move->parent->ino, move->name, length),
	             inode_hash(move->new_parent->ino, move->new_name, new_length), node->ino);
	names_removed(vfs, move->parent, move->name, length);
	names_added(vfs, move->new_parent, move->new_name, new_length);
	attach_moved(vfs, move, node);
	files_moved(vfs, node);
	collect_symlinks(vfs, move, node);
	node_drop(nodes, node);
}

static void tell_of_symlinks(struct vfs *vfs, struct move *move)
{
	for (size_t i = 0; i < move->symlink_count; i++)
		vfs->events.data_changed(vfs->events.context, move->symlinks[i]);
	nodes_lock(&vfs->nodes);
	for (size_t i = 0; i < move->symlink_count; i++)
		node_drop(&vfs->nodes, move->symlinks[i]);
	nodes_unlock(&vfs->nodes);
	free(move->symlinks);
}

int vfs_rename(struct vfs *vfs, struct node *parent, const char *name, struct node *new_parent,
               const char *new_name, unsigned flags)
{
	if (flags & ~(unsigned)RENAME_NOREPLACE)
		return -EINVAL;
	int err = check_name(name);
	if (!err)
		err = check_name(new_name);
	if (err)
		return err;
	struct move move = {
	    .parent = parent, .new_parent = new_parent, .name = name, .new_name = new_name};
	err = move_begin(vfs, &move);
	if (err && !move.dentry)
		return err;
	if (!err)
		err = send_rename(vfs, &move, !(flags & RENAME_NOREPLACE));
	if (!err) {
		nodes_lock(&vfs->nodes);
		relink(vfs, &move);
		nodes_unlock(&vfs->nodes);
	}
	move_end(vfs, &move);
	if (err) {
		name_uncertain(vfs, parent, name, err);
		name_uncertain(vfs, new_parent, new_name, err);
		return err;
	}
	tell_of_symlinks(vfs, &move);
	return 0;
}
