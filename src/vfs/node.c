#include "vfs/node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static struct node *node_alloc(uint64_t ino, mode_t kind)
{
	struct node *node = calloc(1, sizeof(*node));
	if (!node)
		return NULL;
	node->ino = ino;
	node->kind = kind;
	list_init(&node->names);
	list_init(&node->children);
	list_init(&node->files);
	list_init(&node->of_listings);
	list_init(&node->of_places);
	list_init(&node->of_dead);
	return node;
}

int nodes_init(struct nodes *nodes, const char *root_path, void (*bury)(struct node *node))
{
	memset(nodes, 0, sizeof(*nodes));
	nodes->root = node_alloc(INODE_ROOT, S_IFDIR);
	if (!nodes->root)
		return -ENOMEM;
	nodes->root->refs = 1;
	nodes->count = 1;
	nodes->root_path = root_path;
	nodes->bury = bury;
	pthread_mutex_init(&nodes->lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&nodes->renamed, &attr);
	pthread_condattr_destroy(&attr);
	map_init(&nodes->dentries);
	inodes_init(&nodes->inodes);
	list_init(&nodes->negatives);
	list_init(&nodes->dead);
	return 0;
}

static void bury(struct nodes *nodes, struct node *node)
{
	nodes->bury(node);
	free(node);
}

void nodes_release(struct nodes *nodes)
{
	/* What the kernel did not forget goes too, so nothing is taken apart in order. */
	void *each;
	for (size_t at = 0; (each = map_next(&nodes->dentries, &at));)
		free(each);
	for (size_t at = 0; (each = inodes_next_live(&nodes->inodes, &at));)
		bury(nodes, each);
	bury(nodes, nodes->root);
	map_release(&nodes->dentries);
	inodes_release(&nodes->inodes);
	pthread_cond_destroy(&nodes->renamed);
	pthread_mutex_destroy(&nodes->lock);
}

void nodes_lock(struct nodes *nodes)
{
	pthread_mutex_lock(&nodes->lock);
}

void nodes_unlock(struct nodes *nodes)
{
	struct list_node dead;
	list_init(&dead);
	list_splice_back(&dead, &nodes->dead);
	pthread_mutex_unlock(&nodes->lock);
	struct list_node *link;
	while ((link = list_pop_front(&dead)))
		bury(nodes, list_entry(link, struct node, of_dead));
}

uint64_t nodes_stamp(struct nodes *nodes)
{
	return ++nodes->stamp;
}

/* ---- life ---- */

void node_hold(struct node *node)
{
	node->refs++;
}

static void die_if_unused(struct nodes *nodes, struct node *node)
{
	if (node->refs || node->lookups)
		return;
	/* No positive child is left (it would hold a reference), only negative entries. */
	node->refs = 1;
	list_for_each_safe (link, &node->children)
		dentry_detach(nodes, list_entry(link, struct dentry, of_parent));
	list_for_each_safe (link, &node->names)
		dentry_detach(nodes, list_entry(link, struct dentry, of_node));
	node->refs = 0;
	inodes_live_remove(&nodes->inodes, node->ino, node);
	list_remove(&node->of_listings);
	list_remove(&node->of_places);
	nodes->count--;
	list_push_back(&nodes->dead, &node->of_dead);
}

void node_drop(struct nodes *nodes, struct node *node)
{
	node->refs--;
	die_if_unused(nodes, node);
}

void node_forget(struct nodes *nodes, struct node *node, uint64_t lookups)
{
	node->lookups -= MIN(lookups, node->lookups);
	die_if_unused(nodes, node);
}

struct node *node_make(struct nodes *nodes, struct node *parent, const char *name,
                       size_t length, mode_t kind)
{
	void *owner;
	uint64_t ino = inodes_assign(&nodes->inodes, parent->ino, name, length, &owner);
	struct node *node = owner;
	if (node && node->kind != kind) {
		/* Somebody has replaced the link. */
		inodes_removed(&nodes->inodes, inode_hash(parent->ino, name, length));
		ino = inodes_assign(&nodes->inodes, parent->ino, name, length, &owner);
		node = NULL;
	}
	struct dentry *dentry = dentry_new(name, length);
	if (!dentry)
		return NULL;
	if (!node) {
		node = node_alloc(ino, kind);
		if (node && !inodes_live_add(&nodes->inodes, ino, node)) {
			free(node);
			node = NULL;
		}
		if (!node) {
			free(dentry);
			return NULL;
		}
		nodes->count++;
	}
	node_hold(node);
	if (!dentry_attach(nodes, dentry, parent, node)) {
		free(dentry);
		node_drop(nodes, node);
		return NULL;
	}
	return node;
}

/* ---- names ---- */

struct key {
	const struct node *parent;
	const char *name;
	size_t length;
};

static bool match_dentry(const void *entry, const void *key)
{
	const struct dentry *dentry = entry;
	const struct key *want = key;
	return dentry->parent == want->parent && dentry->length == want->length &&
	       memcmp(dentry->name, want->name, want->length) == 0;
}

static uint64_t hash_of(const struct node *parent, const char *name, size_t length)
{
	return map_hash(name, length, (uint64_t)(uintptr_t)parent);
}

struct dentry *dentry_find(const struct nodes *nodes, const struct node *parent,
                           const char *name, size_t length)
{
	const struct key key = {parent, name, length};
	return map_find(&nodes->dentries, hash_of(parent, name, length), match_dentry, &key);
}

struct dentry *dentry_new(const char *name, size_t length)
{
	struct dentry *dentry = calloc(1, sizeof(*dentry) + length + 1);
	if (!dentry)
		return NULL;
	memcpy(dentry->name, name, length);
	dentry->length = length;
	list_init(&dentry->of_parent);
	list_init(&dentry->of_node);
	return dentry;
}

bool dentry_attach(struct nodes *nodes, struct dentry *dentry, struct node *parent,
                   struct node *node)
{
	if (!map_add(&nodes->dentries, hash_of(parent, dentry->name, dentry->length), dentry))
		return false;
	dentry->parent = parent;
	dentry->node = node;
	list_push_back(&parent->children, &dentry->of_parent);
	if (node) {
		node_hold(parent);
		list_push_back(&node->names, &dentry->of_node);
		return true;
	}
	/* Negative entries keep nothing alive, and their number is bounded. */
	list_push_back(&nodes->negatives, &dentry->of_node);
	if (++nodes->negative_count > NEGATIVE_ENTRIES_MAX)
		dentry_detach(nodes, list_entry(nodes->negatives.next, struct dentry, of_node));
	return true;
}

void dentry_detach(struct nodes *nodes, struct dentry *dentry)
{
	struct node *parent = dentry->parent, *node = dentry->node;
	map_remove(&nodes->dentries, hash_of(parent, dentry->name, dentry->length), dentry);
	list_remove(&dentry->of_parent);
	list_remove(&dentry->of_node);
	parent->names_forgotten = MAX(parent->names_forgotten, dentry->changed);
	free(dentry);
	if (!node) {
		nodes->negative_count--;
		return;
	}
	die_if_unused(nodes, node);
	node_drop(nodes, parent);
}

bool node_is_unlinked(const struct nodes *nodes, const struct node *node)
{
	return node != nodes->root && list_empty(&node->names);
}

static const struct dentry *first_name(const struct node *node)
{
	return list_empty(&node->names) ? NULL
	                                : list_entry(node->names.next, struct dentry, of_node);
}

struct node *node_parent(const struct node *node)
{
	const struct dentry *dentry = first_name(node);
	return dentry ? dentry->parent : NULL;
}

unsigned node_name_count(const struct node *node)
{
	unsigned count = 0;
	list_for_each (link, &node->names)
		count++;
	return count;
}

bool node_is_below(const struct node *node, const struct node *ancestor)
{
	while (node && node != ancestor)
		node = node_parent(node);
	return node != NULL;
}

/* ---- paths ---- */

/* Length of "/a/b" for the node; -1 when a name is missing on the way up. */
static ssize_t tail_length(const struct nodes *nodes, const struct node *node)
{
	size_t length = 0;
	while (node != nodes->root) {
		const struct dentry *dentry = first_name(node);
		if (!dentry)
			return -1;
		length += 1 + dentry->length;
		node = dentry->parent;
	}
	return (ssize_t)length;
}

/* Writes "/a/b" so that it ends before `end`. */
static void put_tail(const struct nodes *nodes, const struct node *node, char *end)
{
	while (node != nodes->root) {
		const struct dentry *dentry = first_name(node);
		end -= dentry->length;
		memcpy(end, dentry->name, dentry->length);
		*--end = '/';
		node = dentry->parent;
	}
}

static int build_path(const struct nodes *nodes, const char *base, const struct node *node,
                      const char *name, char **path)
{
	*path = NULL;
	ssize_t tail = tail_length(nodes, node);
	if (tail < 0)
		return -ENOENT;
	size_t base_length = strcmp(base, "/") == 0 ? 0 : strlen(base);
	size_t name_length = name ? 1 + strlen(name) : 0;
	size_t length = base_length + (size_t)tail + name_length;
	char *text = malloc(length + 2); /* one more for a bare "/" */
	if (!text)
		return -ENOMEM;
	memcpy(text, base, base_length);
	put_tail(nodes, node, text + base_length + tail);
	if (name) {
		text[length - name_length] = '/';
		memcpy(text + length - name_length + 1, name, name_length - 1);
	}
	if (!length)
		text[length++] = '/';
	text[length] = '\0';
	*path = text;
	return 0;
}

int node_path(const struct nodes *nodes, const struct node *node, const char *name, char **path)
{
	return build_path(nodes, nodes->root_path, node, name, path);
}

int node_relative_path(const struct nodes *nodes, const struct node *node, char **path)
{
	int err = build_path(nodes, "", node, NULL, path);
	if (!err) /* take the slash in front away */
		memmove(*path, *path + 1, strlen(*path));
	return err;
}
