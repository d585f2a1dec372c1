/*
 * The file system of the fake server: directories, files and symlinks in memory with the
 * semantics of a Unix host. Functions return 0 or the -errno of the system call they stand for;
 * fake_remote.c turns that into what a server would tell. The caller holds a lock of its own.
 */
#ifndef MOORFS_TESTS_FAKE_TREE_H
#define MOORFS_TESTS_FAKE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/list.h"
#include "remote/op.h"

/* An inode. Lives while it has a name or is open. */
struct tree_node {
	unsigned refs; /* names and opens */
	uint32_t mode; /* type and permissions */
	uint32_t uid, gid, nlink;
	time_t atime, mtime;
	char *data; /* of a file; a symlink's target with its NUL */
	size_t size, capacity;
	struct list_node entries; /* of a directory: struct tree_entry */
	struct tree_node *parent; /* of a directory */
};

struct tree_entry {
	struct list_node link;
	struct tree_node *node;
	char name[256];
};

struct tree {
	struct tree_node *root;
};

void tree_init(struct tree *tree);
void tree_release(struct tree *tree);

/* The node of the path; a final symlink is followed or not. No reference is added. */
int tree_find(struct tree *tree, const char *path, bool follow, struct tree_node **node);
/* Opens or creates as open(2) does; adds a reference, dropped by tree_unref(). */
int tree_open(struct tree *tree, const char *path, unsigned open_flags, uint32_t mode,
              struct tree_node **node);
void tree_unref(struct tree_node *node);

int tree_mkdir(struct tree *tree, const char *path, uint32_t mode);
int tree_symlink(struct tree *tree, const char *target, const char *path);
int tree_link(struct tree *tree, const char *from, const char *to);
int tree_unlink(struct tree *tree, const char *path);
int tree_rmdir(struct tree *tree, const char *path);
int tree_rename(struct tree *tree, const char *from, const char *to, bool replace);
/* The path without symlinks and dots; malloc'ed. */
int tree_realpath(struct tree *tree, const char *path, char **result);

void tree_getattr(const struct tree_node *node, struct remote_attr *attr);
void tree_setattr(struct tree_node *node, const struct remote_attr *attr);
/* Bytes read, at most `length`; -EISDIR for a directory. */
ssize_t tree_read(struct tree_node *node, uint64_t offset, void *data, size_t length);
int tree_write(struct tree_node *node, uint64_t offset, const void *data, size_t length);

#endif
