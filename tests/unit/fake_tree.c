#include "fake_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"

enum { MAX_LINKS = 20 };

/* Where a path leads: the directory, the last name in it and what is there (or NULL). */
struct place {
	struct tree_node *dir, *node;
	char name[256];
};

/* A test program that runs out of memory has nothing better to do. */
static void *need(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

static struct tree_node *node_new(uint32_t mode)
{
	struct tree_node *node = need(calloc(1, sizeof(*node)));
	node->mode = mode;
	node->uid = getuid();
	node->gid = getgid();
	node->atime = node->mtime = time(NULL);
	list_init(&node->entries);
	return node;
}

void tree_unref(struct tree_node *node)
{
	if (--node->refs)
		return;
	free(node->data);
	free(node);
}

static struct tree_entry *dir_find(struct tree_node *dir, const char *name)
{
	list_for_each (at, &dir->entries) {
		struct tree_entry *entry = list_entry(at, struct tree_entry, link);
		if (!strcmp(entry->name, name))
			return entry;
	}
	return NULL;
}

static void dir_add(struct tree_node *dir, const char *name, struct tree_node *node)
{
	struct tree_entry *entry = need(calloc(1, sizeof(*entry)));
	memccpy(entry->name, name, 0, sizeof(entry->name) - 1);
	entry->node = node;
	node->refs++;
	node->nlink++;
	if (S_ISDIR(node->mode))
		node->parent = dir;
	list_push_back(&dir->entries, &entry->link);
	dir->mtime = time(NULL);
}

static void dir_remove(struct tree_node *dir, const char *name)
{
	struct tree_entry *entry = dir_find(dir, name);
	list_remove(&entry->link);
	entry->node->nlink--;
	tree_unref(entry->node);
	free(entry);
	dir->mtime = time(NULL);
}

void tree_init(struct tree *tree)
{
	tree->root = node_new(S_IFDIR | 0755);
	tree->root->refs = 1;
	tree->root->parent = tree->root;
}

static void dir_empty(struct tree_node *dir)
{
	while (!list_empty(&dir->entries)) {
		struct tree_entry *entry =
		    list_entry(dir->entries.next, struct tree_entry, link);
		if (S_ISDIR(entry->node->mode))
			dir_empty(entry->node);
		dir_remove(dir, entry->name);
	}
}

void tree_release(struct tree *tree)
{
	dir_empty(tree->root);
	tree_unref(tree->root);
}

/* ---- walking ---- */

/* Takes the next component out of *path into name: 0 at the end, 1, or -ENAMETOOLONG. */
static int next_component(const char **path, char name[256])
{
	*path += strspn(*path, "/");
	size_t length = strcspn(*path, "/");
	if (!length)
		return 0;
	if (length > 255)
		return -ENAMETOOLONG;
	memcpy(name, *path, length);
	name[length] = 0;
	*path += length;
	*path += strspn(*path, "/");
	return 1;
}

static int walk(struct tree *tree, struct tree_node *dir, const char *path, bool follow,
                int links, struct place *place)
{
	if (*path == '/')
		dir = tree->root;
	*place = (struct place){.dir = dir, .node = dir};
	char name[256];
	int more;
	while ((more = next_component(&path, name)) > 0) {
		if (!place->node)
			return -ENOENT;
		if (!S_ISDIR(place->node->mode))
			return -ENOTDIR;
		dir = place->node;
		if (!strcmp(name, ".") || !strcmp(name, "..")) {
			dir = name[1] ? dir->parent : dir;
			*place = (struct place){.dir = dir, .node = dir};
			continue;
		}
		struct tree_entry *entry = dir_find(dir, name);
		struct tree_node *node = entry ? entry->node : NULL;
		if (node && S_ISLNK(node->mode) && (*path || follow)) {
			if (!links)
				return -ELOOP;
			int err = walk(tree, dir, node->data, true, links - 1, place);
			if (err)
				return err;
			continue;
		}
		place->dir = dir;
		place->node = node;
		memcpy(place->name, name, sizeof(name));
	}
	return more;
}

static int locate(struct tree *tree, const char *path, bool follow, struct place *place)
{
	return walk(tree, tree->root, path, follow, MAX_LINKS, place);
}

int tree_find(struct tree *tree, const char *path, bool follow, struct tree_node **node)
{
	struct place place;
	int err = locate(tree, path, follow, &place);
	if (err)
		return err;
	*node = place.node;
	return place.node ? 0 : -ENOENT;
}

/* The place of a name that must not exist yet. */
static int locate_new(struct tree *tree, const char *path, struct place *place)
{
	int err = locate(tree, path, false, place);
	if (err)
		return err;
	return place->node ? -EEXIST : 0;
}

/* The place of a name that must exist, and is not the root. */
static int locate_old(struct tree *tree, const char *path, struct place *place)
{
	int err = locate(tree, path, false, place);
	if (err)
		return err;
	if (!place->node)
		return -ENOENT;
	return place->name[0] ? 0 : -EBUSY;
}

/* ---- operations ---- */

int tree_open(struct tree *tree, const char *path, unsigned open_flags, uint32_t mode,
              struct tree_node **node)
{
	struct place place;
	bool exclusive = open_flags & OPEN_EXCL;
	int err = locate(tree, path, !exclusive, &place);
	if (err)
		return err;
	if (!place.node) {
		if (!(open_flags & OPEN_CREATE))
			return -ENOENT;
		place.node = node_new(S_IFREG | (mode & 07777));
		dir_add(place.dir, place.name, place.node);
	} else {
		if (exclusive && (open_flags & OPEN_CREATE))
			return -EEXIST;
		if (S_ISDIR(place.node->mode) && (open_flags & OPEN_WRITE))
			return -EISDIR;
		if (open_flags & OPEN_TRUNC)
			tree_setattr(place.node, &(struct remote_attr){.valid = ATTR_SIZE});
	}
	place.node->refs++;
	*node = place.node;
	return 0;
}

int tree_mkdir(struct tree *tree, const char *path, uint32_t mode)
{
	struct place place;
	int err = locate_new(tree, path, &place);
	if (!err)
		dir_add(place.dir, place.name, node_new(S_IFDIR | (mode & 07777)));
	return err;
}

int tree_symlink(struct tree *tree, const char *target, const char *path)
{
	struct place place;
	int err = locate_new(tree, path, &place);
	if (err)
		return err;
	struct tree_node *node = node_new(S_IFLNK | 0777);
	node->data = need(strdup(target));
	node->size = strlen(target);
	dir_add(place.dir, place.name, node);
	return 0;
}

int tree_link(struct tree *tree, const char *from, const char *to)
{
	struct place old, new;
	int err = locate_old(tree, from, &old);
	if (err)
		return err;
	if (S_ISDIR(old.node->mode))
		return -EPERM;
	err = locate_new(tree, to, &new);
	if (!err)
		dir_add(new.dir, new.name, old.node);
	return err;
}

int tree_unlink(struct tree *tree, const char *path)
{
	struct place place;
	int err = locate_old(tree, path, &place);
	if (err)
		return err;
	if (S_ISDIR(place.node->mode))
		return -EISDIR;
	dir_remove(place.dir, place.name);
	return 0;
}

int tree_rmdir(struct tree *tree, const char *path)
{
	struct place place;
	int err = locate_old(tree, path, &place);
	if (err)
		return err;
	if (!S_ISDIR(place.node->mode))
		return -ENOTDIR;
	if (!list_empty(&place.node->entries))
		return -ENOTEMPTY;
	dir_remove(place.dir, place.name);
	return 0;
}

static bool is_below(const struct tree_node *dir, const struct tree_node *top)
{
	for (; dir != dir->parent; dir = dir->parent)
		if (dir == top)
			return true;
	return dir == top;
}

/* Whether what is at `new` may be replaced by what is at `old`. */
static int may_replace(const struct place *old, const struct place *new)
{
	bool old_dir = S_ISDIR(old->node->mode), new_dir = S_ISDIR(new->node->mode);
	if (old_dir && !new_dir)
		return -ENOTDIR;
	if (!old_dir && new_dir)
		return -EISDIR;
	return new_dir && !list_empty(&new->node->entries) ? -ENOTEMPTY : 0;
}

int tree_rename(struct tree *tree, const char *from, const char *to, bool replace)
{
	struct place old, new;
	int err = locate_old(tree, from, &old);
	if (!err)
		err = locate(tree, to, false, &new);
	if (err)
		return err;
	if (S_ISDIR(old.node->mode) && is_below(new.dir, old.node))
		return -EINVAL;
	if (new.node) {
		if (!replace)
			return -EEXIST;
		if (new.node == old.node)
			return 0;
		err = may_replace(&old, &new);
		if (err)
			return err;
		dir_remove(new.dir, new.name);
	}
	dir_add(new.dir, new.name, old.node);
	dir_remove(old.dir, old.name);
	return 0;
}

static void add_path_of(struct bytes *out, struct tree_node *dir)
{
	if (dir == dir->parent)
		return;
	add_path_of(out, dir->parent);
	list_for_each (at, &dir->parent->entries) {
		struct tree_entry *entry = list_entry(at, struct tree_entry, link);
		if (entry->node == dir)
			bytes_addf(out, "/%s", entry->name);
	}
}

int tree_realpath(struct tree *tree, const char *path, char **result)
{
	struct place place;
	int err = locate(tree, path, true, &place);
	if (err)
		return err;
	struct bytes out = BYTES_INIT;
	add_path_of(&out, place.dir);
	if (place.name[0])
		bytes_addf(&out, "/%s", place.name);
	if (!out.length)
		bytes_add_str(&out, "/");
	*result = need(bytes_steal(&out));
	return 0;
}

/* ---- nodes ---- */

void tree_getattr(const struct tree_node *node, struct remote_attr *attr)
{
	/* as SFTP v3: no link count, whole seconds */
	*attr = (struct remote_attr){
	    .valid = ATTR_SIZE | ATTR_OWNER | ATTR_MODE | ATTR_TIMES,
	    .mode = node->mode,
	    .uid = node->uid,
	    .gid = node->gid,
	    .size = S_ISDIR(node->mode) ? 4096 : node->size,
	    .atime.tv_sec = node->atime,
	    .mtime.tv_sec = node->mtime,
	};
}

static void resize(struct tree_node *node, size_t size)
{
	if (size > node->capacity) {
		size_t capacity = MAX(size, node->capacity * 2);
		node->data = need(realloc(node->data, capacity));
		node->capacity = capacity;
	}
	if (size > node->size)
		memset(node->data + node->size, 0, size - node->size);
	node->size = size;
}

void tree_setattr(struct tree_node *node, const struct remote_attr *attr)
{
	if (attr->valid & ATTR_SIZE) {
		resize(node, attr->size);
		node->mtime = time(NULL);
	}
	if (attr->valid & ATTR_OWNER) {
		node->uid = attr->uid;
		node->gid = attr->gid;
	}
	if (attr->valid & ATTR_MODE)
		node->mode = (node->mode & S_IFMT) | (attr->mode & 07777);
	if (attr->valid & ATTR_TIMES) {
		node->atime = attr->atime.tv_sec;
		node->mtime = attr->mtime.tv_sec;
	}
}

ssize_t tree_read(struct tree_node *node, uint64_t offset, void *data, size_t length)
{
	if (S_ISDIR(node->mode))
		return -EISDIR;
	if (offset >= node->size)
		return 0;
	size_t count = MIN(length, node->size - (size_t)offset);
	memcpy(data, node->data + offset, count);
	return (ssize_t)count;
}

int tree_write(struct tree_node *node, uint64_t offset, const void *data, size_t length)
{
	if (S_ISDIR(node->mode))
		return -EISDIR;
	if (length && offset + length > node->size)
		resize(node, (size_t)offset + length);
	if (length)
		memcpy(node->data + offset, data, length);
	node->mtime = time(NULL);
	return 0;
}
