/* Operations on open directories. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "fuse/handlers.h"

static struct open_dir *open_dir_of(const struct fuse_file_info *fi)
{
	return (struct open_dir *)(uintptr_t)fi->fh;
}

struct open_dir *open_dir_new(struct fusefs *fs, struct vfs_dir *dir)
{
	struct open_dir *open = malloc(sizeof(*open));
	if (!open)
		return NULL;
	open->dir = dir;
	LOCK_SCOPE(&fs->opens.lock);
	list_push_back(&fs->opens.dirs, &open->link);
	return open;
}

void open_dir_close(struct fusefs *fs, struct open_dir *open)
{
	pthread_mutex_lock(&fs->opens.lock);
	list_remove(&open->link);
	pthread_mutex_unlock(&fs->opens.lock);
	vfs_releasedir(fs->vfs, open->dir);
	free(open);
}

void on_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fusefs *fs = fusefs_of(req);
	struct vfs_dir *dir = NULL;
	bool keep_cache = false;
	struct call call;
	sync_begin(&call, req);
	int err = vfs_opendir(fs->vfs, node_of(fs, ino), &dir, &keep_cache);
	sync_end(&call);
	if (err) {
		reply_status(req, err);
		return;
	}
	struct open_dir *open = open_dir_new(fs, dir);
	if (!open) {
		vfs_releasedir(fs->vfs, dir);
		reply_status(req, -ENOMEM);
		return;
	}
	fi->fh = (uintptr_t)open;
	fi->cache_readdir = fs->config->vfs.dir_cache;
	fi->keep_cache = keep_cache;
	if (fuse_reply_open(req, fi) != 0)
		open_dir_close(fs, open);
}

/* ---- listings ---- */

/* A buffer of entries in the kernel's form, and the nodes that it counts as looked up. */
struct listing {
	fuse_req_t req;
	bool plus;
	char *buffer;
	size_t size, used;
	struct node **nodes;
	size_t node_count;
};

/* The least that an entry with attributes takes: bounds the number of nodes of a buffer. */
enum { MIN_PLUS_ENTRY = 128 };

static int emit(void *context, const char *name, const struct vfs_entry *entry,
                uint64_t next_offset)
{
	struct listing *listing = context;
	char *to = listing->buffer + listing->used;
	const size_t room = listing->size - listing->used;
	size_t needed;

	if (listing->plus) {
		struct fuse_entry_param param;
		fill_entry_param(fusefs_of(listing->req), entry, &param);
		param.attr = entry->st; /* "." and ".." have no node here */
		needed = fuse_add_direntry_plus(listing->req, to, room, name, &param,
		                                (off_t)next_offset);
	} else {
		needed = fuse_add_direntry(listing->req, to, room, name, &entry->st,
		                           (off_t)next_offset);
	}
	if (needed > room)
		return 1;
	listing->used += needed;
	if (listing->plus && entry->node)
		listing->nodes[listing->node_count++] = entry->node;
	return 0;
}

static void forget_listed(struct fusefs *fs, const struct listing *listing)
{
	for (size_t i = 0; i < listing->node_count; i++)
		vfs_forget(fs->vfs, listing->nodes[i], 1);
}

static void read_dir(fuse_req_t req, size_t size, off_t offset, struct fuse_file_info *fi,
                     bool plus)
{
	struct fusefs *fs = fusefs_of(req);
	CLEANUP_FREE char *buffer = malloc(size);
	CLEANUP_FREE struct node **nodes =
	    plus ? calloc(size / MIN_PLUS_ENTRY + 1, sizeof(struct node *)) : NULL;
	if (!buffer || (plus && !nodes)) {
		reply_status(req, -ENOMEM);
		return;
	}
	struct listing listing = {req, plus, buffer, size, 0, nodes, 0};
	struct changes changes;
	struct call call;
	changes_begin(&changes);
	sync_begin(&call, req);
	int err =
	    vfs_readdir(fs->vfs, open_dir_of(fi)->dir, (uint64_t)offset, plus, emit, &listing);
	sync_end(&call);
	for (size_t i = 0; i < listing.node_count; i++)
		changes_told(&changes, ino_of(fs, listing.nodes[i]));
	changes_end(fs, &changes);

	/* Names that were taken before an error are given first; the error comes again. */
	if (err && listing.used == 0) {
		reply_status(req, err);
		return;
	}
	if (fuse_reply_buf(req, listing.buffer, listing.used) != 0)
		forget_listed(fs, &listing);
}

void on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                struct fuse_file_info *fi)
{
	(void)ino;
	read_dir(req, size, offset, fi, false);
}

void on_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
	(void)ino;
	read_dir(req, size, offset, fi, true);
}

void on_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	open_dir_close(fusefs_of(req), open_dir_of(fi));
	reply_status(req, 0);
}

/* Names are on the server when their operation returns. */
void on_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	(void)fi;
	reply_status(req, 0);
}
