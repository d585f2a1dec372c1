/* Entering names into the table, and what our own changes of names do to what is cached. */
#include <errno.h>
#include <string.h>

#include "vfs/internal.h"

static mode_t kind_of(const struct answer *answer, mode_t otherwise)
{
	mode_t kind = attr_kind(&answer->attr);
	return kind ? kind : otherwise;
}

/* The dentry that the answer is about, made when there is none; NULL when memory is out. */
static struct dentry *take_dentry(struct vfs *vfs, struct node *parent, const char *name,
                                  size_t length, const struct answer *answer)
{
	struct nodes *nodes = &vfs->nodes;
	struct dentry *dentry = dentry_find(nodes, parent, name, length);
	if (dentry && dentry->node && dentry->node->kind == kind_of(answer, dentry->node->kind))
		return dentry;
	/* It was a negative entry, or somebody has put a file of another kind in its place. */
	uint64_t changed = dentry ? dentry->changed : 0;
	if (dentry)
		dentry_detach(nodes, dentry);
	struct node *node = node_make(nodes, parent, name, length, kind_of(answer, S_IFREG));
	if (!node)
		return NULL;
	dentry = dentry_find(nodes, parent, name, length);
	dentry->changed = changed;
	/* The lookup that the caller counts keeps it from here on. */
	node->refs--;
	return dentry;
}

/* Fills the entry and counts the lookup; nothing is counted when it cannot be shown. */
static int fill_entry(struct vfs *vfs, struct node *node, uint64_t seen_ns,
                      struct vfs_entry *entry)
{
	uint64_t now_ns = clock_now_ns();
	memset(entry, 0, sizeof(*entry));
	int err = attr_show(vfs, node, &entry->st);
	if (err)
		return err;
	entry->entry_valid_ns = entry_left(vfs, node, seen_ns, now_ns);
	entry->attr_valid_ns = attr_left(vfs, node, now_ns);
	entry->node = node;
	node->lookups++;
	return 0;
}

int entry_enter_known(struct vfs *vfs, struct dentry *dentry, struct vfs_entry *entry)
{
	return fill_entry(vfs, dentry->node, dentry->seen_ns, entry);
}

/* What was stored is told to io before it is shown: the size may come from there. */
static int enter_checked(struct vfs *vfs, struct node *node, uint64_t seen_ns,
                         const struct answer *answer, bool stored, struct vfs_entry *entry)
{
	if (stored)
		attr_data_check(vfs, node, answer);
	NODES_SCOPE(&vfs->nodes);
	int err = fill_entry(vfs, node, seen_ns, entry);
	node_drop(&vfs->nodes, node);
	return err;
}

/* False when we have made the name or taken it away since the server was asked about it. */
static bool answer_is_current(const struct vfs *vfs, const struct node *parent,
                              const char *name, size_t length, const struct answer *answer)
{
	const struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, length);
	return (dentry ? dentry->changed : parent->names_forgotten) <= answer->stamp;
}

int entry_enter(struct vfs *vfs, struct node *parent, const char *name, size_t length,
                const struct answer *answer, struct vfs_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	nodes_lock(&vfs->nodes);
	if (!answer_is_current(vfs, parent, name, length, answer)) {
		nodes_unlock(&vfs->nodes);
		return ENTRY_AGAIN;
	}
	struct dentry *dentry = take_dentry(vfs, parent, name, length, answer);
	if (!dentry) {
		nodes_unlock(&vfs->nodes);
		return -ENOMEM;
	}
	struct node *node = dentry->node;
	node_hold(node);
	bool stored = attr_store(vfs, node, answer);
	uint64_t seen_ns = dentry->seen_ns = MAX(dentry->seen_ns, answer->asked_ns);
	nodes_unlock(&vfs->nodes);
	return enter_checked(vfs, node, seen_ns, answer, stored, entry);
}

/*
 * Adds a negative entry. One with valid_ns 0 answers nobody, but remembers that we changed the
 * name (`changed`), so that answers on their way are known to be old.
 */
static void add_negative(struct vfs *vfs, struct node *parent, const char *name, size_t length,
                         uint64_t valid_ns, uint64_t changed)
{
	struct dentry *dentry = dentry_new(name, length);
	if (dentry) {
		dentry->seen_ns = clock_now_ns();
		dentry->valid_ns = valid_ns;
		dentry->changed = changed;
		if (dentry_attach(&vfs->nodes, dentry, parent, NULL))
			return;
		free(dentry);
	}
	/* Without memory all answers about names that are not known are taken for old. */
	parent->names_forgotten = MAX(parent->names_forgotten, changed);
}

void entry_enter_negative(struct vfs *vfs, struct node *parent, const char *name, size_t length,
                          const struct answer *answer, struct vfs_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	NODES_SCOPE(&vfs->nodes);
	if (!answer_is_current(vfs, parent, name, length, answer))
		return;
	struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, length);
	uint64_t changed = dentry ? dentry->changed : 0;
	if (dentry)
		dentry_detach(&vfs->nodes, dentry);
	inodes_removed(&vfs->nodes.inodes, inode_hash(parent->ino, name, length));
	entry->entry_valid_ns =
	    timeout_left(answer->asked_ns, negative_timeout(vfs), clock_now_ns());
	if (entry->entry_valid_ns)
		add_negative(vfs, parent, name, length, entry->entry_valid_ns, changed);
}

int entry_ask(struct vfs *vfs, struct node *parent, const char *name, struct answer *answer)
{
	PATH_TRY at = {0};
	int err;
	do {
		err = 0;
		nodes_lock(&vfs->nodes);
		struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, strlen(name));
		struct node *node = dentry ? dentry->node : NULL;
		if (node)
			node_hold(node);
		nodes_unlock(&vfs->nodes);
		/* It may have still to be created. */
		if (node && vfs->config.async)
			err = files_drain(vfs, node);
		answer_begin(vfs, answer, node);
		if (node) {
			nodes_lock(&vfs->nodes);
			node_drop(&vfs->nodes, node);
			nodes_unlock(&vfs->nodes);
		}
		if (!err)
			err = path_of(vfs, &at, parent, name);
		if (!err)
			err = attr_ask(vfs, at.path, &answer->attr);
	} while (path_again(vfs, &at, err));
	return err;
}

int entry_enter_new(struct vfs *vfs, struct node *parent, const char *name,
                    struct vfs_entry *entry)
{
	struct answer answer;
	for (int tries = 0;; tries++) {
		int err = entry_ask(vfs, parent, name, &answer);
		if (err)
			return err;
		if (tries >= 3)
			answer_expire(&answer);
		err = entry_enter(vfs, parent, name, strlen(name), &answer, entry);
		if (err != ENTRY_AGAIN)
			return err;
	}
}

void answer_expire(struct answer *answer)
{
	answer->stamp = UINT64_MAX;
	answer->asked_ns = 0;
}

/* ---- our own changes of names ---- */

void names_added(struct vfs *vfs, struct node *parent, const char *name, size_t length)
{
	attr_changed(vfs, parent);
	prefetch_drop(vfs, parent, name, length);
	uint64_t stamp = parent->names_changed = nodes_stamp(&vfs->nodes);
	struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, length);
	if (dentry && dentry->node) {
		dentry->changed = stamp;
	} else {
		if (dentry)
			dentry_detach(&vfs->nodes, dentry);
		add_negative(vfs, parent, name, length, 0, stamp);
	}
	if (parent->listing && !listing_patch_add(parent->listing, name, length, stamp))
		dircache_drop(vfs, parent);
}

void names_removed(struct vfs *vfs, struct node *parent, const char *name, size_t length)
{
	attr_changed(vfs, parent);
	prefetch_drop(vfs, parent, name, length);
	uint64_t stamp = parent->names_changed = nodes_stamp(&vfs->nodes);
	if (parent->listing && !listing_patch_remove(parent->listing, name, length, stamp))
		dircache_drop(vfs, parent);
	struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, length);
	if (dentry)
		dentry_detach(&vfs->nodes, dentry);
	add_negative(vfs, parent, name, length, negative_timeout(vfs), stamp);
}

void name_unlinked(struct vfs *vfs, struct dentry *dentry)
{
	char name[NAME_LENGTH_MAX + 1];
	size_t length = dentry->length;
	struct node *parent = dentry->parent, *node = dentry->node;
	memcpy(name, dentry->name, length + 1);
	node_hold(parent);
	node_hold(node);
	dentry_detach(&vfs->nodes, dentry);
	inodes_removed(&vfs->nodes.inodes, inode_hash(parent->ino, name, length));
	if (node->attr.valid & ATTR_NLINK && node->attr.nlink > 1)
		node->attr.nlink--;
	if (node_is_unlinked(&vfs->nodes, node)) {
		files_set_unlinked(node);
		dircache_drop(vfs, node);
	} else {
		files_moved(vfs, node);  /* it may be open by the name that went */
		attr_changed(vfs, node); /* listings tell its count of links */
	}
	names_removed(vfs, parent, name, length);
	node_drop(&vfs->nodes, node);
	node_drop(&vfs->nodes, parent);
}

/* True when the error says that the name is as it was, and as the kernel believes it is. */
static bool error_is_harmless(int err)
{
	static const int harmless[] = {EACCES, EPERM,  ENOSPC, EDQUOT,     EROFS,
	                               EXDEV,  EINVAL, ENOMEM, EOPNOTSUPP, ENAMETOOLONG};
	for (size_t i = 0; i < ARRAY_LEN(harmless); i++)
		if (err == -harmless[i])
			return true;
	return false;
}

void name_uncertain(struct vfs *vfs, struct node *parent, const char *name, int err)
{
	if (error_is_harmless(err))
		return;
	nodes_lock(&vfs->nodes);
	names_added(vfs, parent, name, strlen(name)); /* if only perhaps */
	dircache_drop(vfs, parent);
	struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, strlen(name));
	if (dentry && dentry->node) {
		dentry->seen_ns = 0;
		attr_changed(vfs, dentry->node);
	}
	nodes_unlock(&vfs->nodes);
	if (vfs->events.entry_changed)
		vfs->events.entry_changed(vfs->events.context, parent, name);
}
