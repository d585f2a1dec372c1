/* Operations on open files. READ and WRITE never block: a completion answers them. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "fuse/handlers.h"

/* ---- what is open ---- */

void open_table_init(struct open_table *table)
{
	pthread_mutex_init(&table->lock, NULL);
	pthread_cond_init(&table->settled, NULL);
	list_init(&table->files);
	list_init(&table->dirs);
	atomic_init(&table->unanswered, 0);
}

void open_table_release(struct open_table *table)
{
	pthread_cond_destroy(&table->settled);
	pthread_mutex_destroy(&table->lock);
}

/* The counter may vanish once it is 0: it is not touched after the subtraction. */
static void count_down(struct open_table *table, atomic_uint *counter)
{
	if (atomic_fetch_sub(counter, 1) != 1)
		return;
	LOCK_SCOPE(&table->lock);
	pthread_cond_broadcast(&table->settled);
}

void open_table_wait_answered(struct open_table *table)
{
	LOCK_SCOPE(&table->lock);
	while (atomic_load(&table->unanswered) > 0)
		pthread_cond_wait(&table->settled, &table->lock);
}

/* Takes the vfs_file over; NULL when memory is out. */
static struct open_file *open_file_new(struct fusefs *fs, struct vfs_file *file)
{
	struct open_file *open = malloc(sizeof(*open));
	if (!open)
		return NULL;
	open->file = file;
	atomic_init(&open->pending, 0);
	LOCK_SCOPE(&fs->opens.lock);
	list_push_back(&fs->opens.files, &open->link);
	return open;
}

void open_file_close(struct fusefs *fs, struct open_file *open)
{
	pthread_mutex_lock(&fs->opens.lock);
	while (atomic_load(&open->pending) > 0)
		pthread_cond_wait(&fs->opens.settled, &fs->opens.lock);
	list_remove(&open->link);
	pthread_mutex_unlock(&fs->opens.lock);
	vfs_release(fs->vfs, open->file);
	free(open);
}

/* Fills `fi` for the reply; -ENOMEM leaves nothing open. */
static int install(struct fusefs *fs, const struct vfs_open_info *info,
                   struct fuse_file_info *fi)
{
	struct open_file *open = open_file_new(fs, info->file);
	if (!open) {
		vfs_release(fs->vfs, info->file);
		return -ENOMEM;
	}
	fi->fh = (uintptr_t)open;
	fi->keep_cache = info->keep_cache;
	fi->direct_io = info->direct_io;
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 11)
	/* Nothing to wait for when it is closed. */
	fi->noflush = (fi->flags & O_ACCMODE) == O_RDONLY;
#endif
	return 0;
}

void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct fusefs *fs = fusefs_of(req);
	struct vfs_open_info info = {0};
	struct changes changes;
	struct call call;
	changes_begin(&changes);
	sync_begin(&call, req);
	int err = vfs_open(fs->vfs, node_of(fs, ino), fi->flags, &info);
	sync_end(&call);
	const bool pages_dropped = !err && !info.keep_cache;
	if (pages_dropped)
		changes_told(&changes, ino);
	changes_end(fs, &changes);
	if (!err)
		err = install(fs, &info, fi);
	if (err) {
		reply_status(req, err);
		return;
	}
	/* Before the reply, for the first read() relies on the size. */
	if (pages_dropped || info.attr_changed)
		notifier_attr_changed(fs->notifier, ino, pages_dropped);
	if (fuse_reply_open(req, fi) != 0)
		open_file_close(fs, open_file_of(fi));
}

void on_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
               struct fuse_file_info *fi)
{
	struct fusefs *fs = fusefs_of(req);
	struct vfs_entry entry = {0};
	struct vfs_open_info info = {0};
	struct call call;
	sync_begin(&call, req);
	int err =
	    vfs_create(fs->vfs, node_of(fs, parent), name, mode, fi->flags, &entry, &info);
	sync_end(&call);
	if (err) {
		reply_status(req, err);
		return;
	}
	struct fuse_entry_param param;
	fill_entry_param(fs, &entry, &param);
	err = install(fs, &info, fi);
	if (err)
		reply_status(req, err);
	else if (fuse_reply_create(req, &param, fi) != 0)
		open_file_close(fs, open_file_of(fi));
	else
		return;
	vfs_forget(fs->vfs, entry.node, 1);
}

/* ---- reading and writing ---- */

/* A READ or WRITE under way; one reference for its completion, one while it is cancelled. */
struct transfer {
	struct call call;
	struct fusefs *fs;
	struct open_file *open;
	size_t length;
	atomic_uint references;
};

static void transfer_unref(struct transfer *transfer)
{
	if (atomic_fetch_sub(&transfer->references, 1) != 1)
		return;
	count_down(&transfer->fs->opens, &transfer->open->pending);
	free(transfer);
}

static void transfer_hold(struct call *call)
{
	struct transfer *transfer = CONTAINER_OF(call, struct transfer, call);
	atomic_fetch_add(&transfer->references, 1);
}

/* NULL when memory is out, and then the request has been answered. */
static struct transfer *transfer_begin(fuse_req_t req, const struct fuse_file_info *fi,
                                       size_t length, void (*cancel)(struct call *))
{
	struct transfer *transfer = malloc(sizeof(*transfer));
	if (!transfer) {
		reply_status(req, -ENOMEM);
		return NULL;
	}
	transfer->fs = fusefs_of(req);
	transfer->open = open_file_of(fi);
	transfer->length = length;
	atomic_init(&transfer->references, 1);
	atomic_fetch_add(&transfer->open->pending, 1);
	atomic_fetch_add(&transfer->fs->opens.unanswered, 1);
	transfer->call.kind = CALL_ASYNC;
	transfer->call.hold = transfer_hold;
	transfer->call.cancel = cancel;
	call_enter(transfer->fs->interrupts, &transfer->call, req);
	return transfer;
}

static void transfer_answered(struct transfer *transfer)
{
	count_down(&transfer->fs->opens, &transfer->fs->opens.unanswered);
}

static void read_done(void *context, int err, const struct iovec *iov, int count)
{
	struct transfer *transfer = context;
	if (call_leave(&transfer->call)) {
		if (err)
			reply_status(transfer->call.req, err);
		else
			fuse_reply_iov(transfer->call.req, iov, count);
		transfer_answered(transfer);
	}
	transfer_unref(transfer);
}

static void cancel_read(struct call *call)
{
	struct transfer *transfer = CONTAINER_OF(call, struct transfer, call);
	vfs_read_cancel(transfer->fs->vfs, transfer->open->file, transfer);
	transfer_unref(transfer);
}

void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
             struct fuse_file_info *fi)
{
	(void)ino;
	struct transfer *transfer = transfer_begin(req, fi, size, cancel_read);
	if (transfer)
		vfs_read(transfer->fs->vfs, transfer->open->file, (uint64_t)offset, size,
		         read_done, transfer);
}

static void answer_write(struct transfer *transfer, int err)
{
	if (!call_leave(&transfer->call))
		return;
	if (err)
		reply_status(transfer->call.req, err);
	else
		fuse_reply_write(transfer->call.req, transfer->length);
	transfer_answered(transfer);
}

static void write_done(void *context, int err)
{
	answer_write(context, err);
	transfer_unref(context);
}

/* The data has been copied: the program may go while the write waits for room. */
static void cancel_write(struct call *call)
{
	struct transfer *transfer = CONTAINER_OF(call, struct transfer, call);
	answer_write(transfer, -EINTR);
	transfer_unref(transfer);
}

void on_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
              struct fuse_file_info *fi)
{
	(void)ino;
	struct transfer *transfer = transfer_begin(req, fi, size, cancel_write);
	if (transfer)
		vfs_write(transfer->fs->vfs, transfer->open->file, (uint64_t)offset, data, size,
		          fi->flags, write_done, transfer);
}

/* ---- the rest ---- */

void on_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	struct fusefs *fs = fusefs_of(req);
	struct call call = {.kind = CALL_CLOSE};
	call_enter(fs->interrupts, &call, req);
	int err = vfs_flush(fs->vfs, open_file_of(fi)->file);
	call_leave(&call);
	reply_status(req, err);
}

void on_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi)
{
	(void)ino;
	(void)datasync;
	struct fusefs *fs = fusefs_of(req);
	struct call call;
	sync_begin(&call, req);
	int err = vfs_fsync(fs->vfs, open_file_of(fi)->file);
	sync_end(&call);
	reply_status(req, err);
}

void on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	/* Nobody waits for it: no program's death may break it off. */
	open_file_close(fusefs_of(req), open_file_of(fi));
	reply_status(req, 0);
}

void on_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t offset_in,
                        struct fuse_file_info *fi_in, fuse_ino_t ino_out, off_t offset_out,
                        struct fuse_file_info *fi_out, size_t length, int flags)
{
	(void)ino_in;
	(void)ino_out;
	struct fusefs *fs = fusefs_of(req);
	uint64_t copied = 0;
	if (flags != 0) {
		reply_status(req, -EINVAL);
		return;
	}
	struct call call;
	sync_begin(&call, req);
	int err =
	    vfs_copy_range(fs->vfs, open_file_of(fi_in)->file, (uint64_t)offset_in,
	                   open_file_of(fi_out)->file, (uint64_t)offset_out, length, &copied);
	sync_end(&call);
	if (err)
		reply_status(req, err);
	else
		fuse_reply_write(req, copied);
}

void on_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
              struct fuse_file_info *fi)
{
	(void)ino;
	struct fusefs *fs = fusefs_of(req);
	int64_t result = 0;
	struct call call;
	sync_begin(&call, req);
	int err = vfs_lseek(fs->vfs, open_file_of(fi)->file, offset, whence, &result);
	sync_end(&call);
	if (err)
		reply_status(req, err);
	else
		fuse_reply_lseek(req, result);
}
