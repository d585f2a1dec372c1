#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "fake_internal.h"

enum { LIST_BATCH = 100 };

struct open_file {
	struct list_node link;
	struct remote_file *file;
	struct tree_node *node;
};

void *fake_need(void *memory)
{
	if (!memory)
		abort();
	return memory;
}

/* ---- what a server tells of the reason ---- */

static int as_server_tells(int err)
{
	static const struct {
		int reason, told;
	} table[] = {
	    {0, 0},
	    {-ENOENT, -ENOENT},
	    {-ENOTDIR, -ENOENT},
	    {-EBADF, -ENOENT},
	    {-ELOOP, -ENOENT},
	    {-EPERM, -EACCES},
	    {-EACCES, -EACCES},
	    {-EINVAL, -EINVAL},
	    {-ENAMETOOLONG, -EINVAL},
	    {-EOPNOTSUPP, -EOPNOTSUPP},
	    {-ESTALE, -ESTALE},
	};
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (table[i].reason == err)
			return table[i].told;
	return -EREMOTEIO;
}

/* ---- open files ---- */

static struct open_file *find_open(struct fake_remote *fake, const struct remote_file *file)
{
	list_for_each (at, &fake->open_files) {
		struct open_file *open = list_entry(at, struct open_file, link);
		if (open->file == file)
			return open;
	}
	return NULL;
}

static int open_file(struct fake_remote *fake, struct remote_file *file, unsigned flags,
                     uint32_t mode, struct open_file **result)
{
	char *path = fake_need(remote_file_path(file));
	struct tree_node *node;
	int err = tree_open(&fake->tree, path, flags, mode, &node);
	free(path);
	if (err)
		return err;
	struct open_file *open = fake_need(calloc(1, sizeof(*open)));
	open->file = file;
	open->node = node;
	list_push_back(&fake->open_files, &open->link);
	struct remote_handle *handle = fake_need(remote_file_handle(file, 0));
	handle->open = true;
	*result = open;
	return 0;
}

static void close_file(struct open_file *open)
{
	list_remove(&open->link);
	tree_unref(open->node);
	free(open);
}

void fake_close_files(struct fake_remote *fake)
{
	while (!list_empty(&fake->open_files))
		close_file(list_entry(fake->open_files.next, struct open_file, link));
}

/* The node of the op's file; opened late, as on a new lane, when OP_OPEN never came. */
static int node_of(struct fake_remote *fake, struct remote_file *file, struct tree_node **node)
{
	struct open_file *open = find_open(fake, file);
	if (!open) {
		pthread_mutex_lock(&file->lock);
		bool unlinked = file->unlinked;
		pthread_mutex_unlock(&file->lock);
		if (unlinked || open_file(fake, file, file->access, 0, &open))
			return -ESTALE;
	}
	*node = open->node;
	return 0;
}

/* ---- executing, one function per kind ---- */

static int run_lstat(struct fake_remote *fake, struct op *op)
{
	struct tree_node *node;
	int err = tree_find(&fake->tree, op->path, op->kind == OP_STAT, &node);
	if (!err)
		tree_getattr(node, &op->attr);
	return err;
}

static int run_setattr(struct fake_remote *fake, struct op *op)
{
	if (op->kind == OP_LSETATTR && !fake->remote.caps.lsetattr)
		return -EOPNOTSUPP;
	struct tree_node *node;
	int err = tree_find(&fake->tree, op->path, op->kind == OP_SETATTR, &node);
	if (!err && (op->attr.valid & ATTR_SIZE) && !S_ISREG(node->mode))
		err = S_ISDIR(node->mode) ? -EISDIR : -EINVAL;
	if (!err)
		tree_setattr(node, &op->attr);
	return err;
}

static int run_readlink(struct fake_remote *fake, struct op *op)
{
	struct tree_node *node;
	int err = tree_find(&fake->tree, op->path, false, &node);
	if (!err && !S_ISLNK(node->mode))
		err = -EINVAL;
	if (!err)
		op->text = fake_need(strdup(node->data));
	return err;
}

static int run_symlink(struct fake_remote *fake, struct op *op)
{
	return tree_symlink(&fake->tree, op->path2, op->path);
}

static int run_link(struct fake_remote *fake, struct op *op)
{
	return fake->remote.caps.hardlink ? tree_link(&fake->tree, op->path, op->path2)
	                                  : -EOPNOTSUPP;
}

static int run_mkdir(struct fake_remote *fake, struct op *op)
{
	return tree_mkdir(&fake->tree, op->path,
	                  op->attr.valid & ATTR_MODE ? op->attr.mode : 0777);
}

static int run_rmdir(struct fake_remote *fake, struct op *op)
{
	return tree_rmdir(&fake->tree, op->path);
}

static int run_unlink(struct fake_remote *fake, struct op *op)
{
	return tree_unlink(&fake->tree, op->path);
}

static int run_rename(struct fake_remote *fake, struct op *op)
{
	bool replace = op->kind == OP_RENAME;
	if (replace && !fake->remote.caps.posix_rename)
		return -EOPNOTSUPP;
	return tree_rename(&fake->tree, op->path, op->path2, replace);
}

static int run_statfs(struct fake_remote *fake, struct op *op)
{
	struct tree_node *node;
	if (!fake->remote.caps.statfs)
		return -EOPNOTSUPP;
	int err = tree_find(&fake->tree, op->path, true, &node);
	uint64_t free_blocks = fake->full ? 0 : 500000;
	op->statfs = (struct remote_statfs){.bsize = 4096,
	                                    .frsize = 4096,
	                                    .blocks = 1000000,
	                                    .bfree = free_blocks,
	                                    .bavail = free_blocks,
	                                    .files = 100000,
	                                    .ffree = 50000,
	                                    .favail = 50000,
	                                    .fsid = 1,
	                                    .namemax = 255};
	return err;
}

static int run_realpath(struct fake_remote *fake, struct op *op)
{
	return tree_realpath(&fake->tree, op->path, &op->text);
}

static int run_names(struct fake_remote *fake, struct op *op)
{
	if (!fake->remote.caps.names)
		return -EOPNOTSUPP;
	struct bytes out = BYTES_INIT;
	for (size_t i = 0; i < op->id_count; i++) {
		if (op->ids[i] == 0)
			bytes_add_str(&out, "root");
		else if (op->ids[i] == 1000)
			bytes_add_str(&out, op->ids_are_groups ? "people" : "alice");
		bytes_add_byte(&out, 0);
	}
	op->count = out.length;
	op->text = fake_need(bytes_steal(&out));
	return 0;
}

static int run_open(struct fake_remote *fake, struct op *op)
{
	struct open_file *open = find_open(fake, op->file);
	if (open)
		close_file(open);
	uint32_t mode = op->attr.valid & ATTR_MODE ? op->attr.mode : 0666;
	int err = open_file(fake, op->file, op->open_flags, mode, &open);
	if (!err)
		tree_getattr(open->node, &op->attr);
	return err;
}

static int run_close(struct fake_remote *fake, struct op *op)
{
	struct open_file *open = find_open(fake, op->file);
	if (open)
		close_file(open);
	remote_file_handle(op->file, 0)->open = false;
	return 0;
}

static int run_read(struct fake_remote *fake, struct op *op)
{
	struct tree_node *node;
	int err = node_of(fake, op->file, &node);
	if (!err && !(op->file->access & OPEN_READ))
		err = -EBADF;
	if (err)
		return err;
	ssize_t count = tree_read(node, op->offset, op->data, op->length);
	if (count < 0)
		return (int)count;
	op->count = (size_t)count;
	fake->bytes_read += op->count;
	return 0;
}

static int run_fetch(struct fake_remote *fake, struct op *op)
{
	struct tree_node *node;
	int err = tree_open(&fake->tree, op->path, OPEN_READ, 0, &node);
	if (err)
		return err;
	tree_getattr(node, &op->attr);
	if (!S_ISREG(node->mode))
		err = -EINVAL;
	else if (node->size > op->length)
		err = -EFBIG;
	ssize_t count = err ? 0 : tree_read(node, 0, op->data, node->size);
	tree_unref(node);
	if (count < 0)
		return (int)count;
	op->count = (size_t)count;
	fake->bytes_read += op->count;
	return err;
}

static int run_write(struct fake_remote *fake, struct op *op)
{
	struct tree_node *node;
	int err = node_of(fake, op->file, &node);
	if (!err && !(op->file->access & OPEN_WRITE))
		err = -EBADF;
	if (!err && fake->full)
		err = -ENOSPC;
	return err ? err : tree_write(node, op->offset, op->data, op->length);
}

static int run_fstat(struct fake_remote *fake, struct op *op)
{
	struct tree_node *node;
	int err = node_of(fake, op->file, &node);
	if (!err)
		tree_getattr(node, &op->attr);
	return err;
}

static int run_fsetattr(struct fake_remote *fake, struct op *op)
{
	struct tree_node *node;
	int err = node_of(fake, op->file, &node);
	if (!err)
		tree_setattr(node, &op->attr);
	return err;
}

static int run_fsync(struct fake_remote *fake, struct op *op)
{
	struct tree_node *node;
	return fake->remote.caps.fsync ? node_of(fake, op->file, &node) : -EOPNOTSUPP;
}

static int run_copy(struct fake_remote *fake, struct op *op)
{
	struct tree_node *from, *to;
	if (!fake->remote.caps.copy)
		return -EOPNOTSUPP;
	int err = node_of(fake, op->file, &from);
	if (!err)
		err = node_of(fake, op->file2, &to);
	if (err || op->offset >= from->size)
		return err;
	size_t length = MIN(op->length, from->size - (size_t)op->offset);
	char *copy = fake_need(malloc(length + 1));
	ssize_t count = tree_read(from, op->offset, copy, length);
	err = count < 0 ? (int)count : tree_write(to, op->offset2, copy, (size_t)count);
	free(copy);
	op->count = length;
	return err;
}

static int run_ping(struct fake_remote *fake, struct op *op)
{
	(void)fake;
	(void)op;
	return 0;
}

/* Listing calls the submitter in between, so it works on copies and lets the lock go. */
struct listing {
	struct remote_entry *entries;
	char (*names)[256];
	size_t count;
};

static void listing_add(struct listing *listing, const char *name, const struct tree_node *node)
{
	struct remote_entry *entry = &listing->entries[listing->count];
	char *copy = listing->names[listing->count++];
	entry->name_length = strlen(name);
	memcpy(copy, name, entry->name_length + 1);
	entry->name = copy;
	tree_getattr(node, &entry->attr);
}

static int take_listing(struct fake_remote *fake, const char *path, struct listing *listing,
                        struct remote_attr *attr)
{
	struct tree_node *dir;
	int err = tree_find(&fake->tree, path, true, &dir);
	if (err)
		return err;
	if (!S_ISDIR(dir->mode))
		return -ENOTDIR;
	size_t count = 2;
	list_for_each (at, &dir->entries)
		count++;
	listing->entries = fake_need(calloc(count, sizeof(*listing->entries)));
	listing->names = fake_need(calloc(count, sizeof(*listing->names)));
	tree_getattr(dir, attr);
	listing_add(listing, ".", dir);
	listing_add(listing, "..", dir->parent);
	list_for_each (at, &dir->entries) {
		struct tree_entry *entry = list_entry(at, struct tree_entry, link);
		listing_add(listing, entry->name, entry->node);
	}
	return 0;
}

static int run_list(struct fake_remote *fake, struct op *op)
{
	struct listing listing = {0};
	int err = take_listing(fake, op->path, &listing, &op->attr);
	pthread_mutex_unlock(&fake->lock);
	for (size_t at = 0; !err && at < listing.count; at += LIST_BATCH) {
		size_t count = MIN((size_t)LIST_BATCH, listing.count - at);
		if (op->cancelled)
			err = -EINTR;
		else if (op->entries(op, listing.entries + at, count))
			err = -ECANCELED;
	}
	free(listing.entries);
	free(listing.names);
	pthread_mutex_lock(&fake->lock);
	return err;
}

int fake_execute(struct fake_remote *fake, struct op *op)
{
	static int (*const table[OP_KINDS])(struct fake_remote *, struct op *) = {
	    [OP_LSTAT] = run_lstat,       [OP_STAT] = run_lstat,
	    [OP_SETATTR] = run_setattr,   [OP_LSETATTR] = run_setattr,
	    [OP_READLINK] = run_readlink, [OP_SYMLINK] = run_symlink,
	    [OP_LINK] = run_link,         [OP_MKDIR] = run_mkdir,
	    [OP_RMDIR] = run_rmdir,       [OP_UNLINK] = run_unlink,
	    [OP_RENAME] = run_rename,     [OP_RENAME_NEW] = run_rename,
	    [OP_LIST] = run_list,         [OP_STATFS] = run_statfs,
	    [OP_REALPATH] = run_realpath, [OP_NAMES] = run_names,
	    [OP_OPEN] = run_open,         [OP_CLOSE] = run_close,
	    [OP_READ] = run_read,         [OP_WRITE] = run_write,
	    [OP_FSTAT] = run_fstat,       [OP_FSETATTR] = run_fsetattr,
	    [OP_FSYNC] = run_fsync,       [OP_COPY] = run_copy,
	    [OP_FETCH] = run_fetch,       [OP_PING] = run_ping,
	};
	int err = table[op->kind](fake, op);
	/* these are not words of the server */
	return err == -EINTR || err == -ECANCELED || err == -EFBIG ? err : as_server_tells(err);
}
