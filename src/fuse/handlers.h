/*
 * The handlers of FUSE requests: each turns a request into one call of vfs.h and its result
 * into the reply. Internal to fuse/.
 */
#ifndef MOORFS_FUSE_HANDLERS_H
#define MOORFS_FUSE_HANDLERS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "config/config.h"
#include "fuse/interrupt.h"
#include "fuse/lowlevel.h"
#include "fuse/notify.h"
#include "vfs/vfs.h"

/*
 * What programs have open. The kernel drops the last releases of a mount that ends, so they
 * are kept in a list and closed by us then.
 */
struct open_table {
	pthread_mutex_t lock;   /* protects the lists */
	pthread_cond_t settled; /* a file's or the table's pending has become 0 */
	struct list_node files, dirs;
	/* Requests that a completion is going to answer. */
	atomic_uint unanswered;
};

struct open_file {
	struct list_node link;
	struct vfs_file *file;
	/* Reads and writes that the vfs has not completed, or that are being cancelled. */
	atomic_uint pending;
};

struct open_dir {
	struct list_node link;
	struct vfs_dir *dir;
};

struct fusefs {
	const struct config *config;
	struct vfs *vfs;
	const char *mountpoint;
	struct fuse_session *session;
	struct interrupts *interrupts;
	struct notifier *notifier;
	struct open_table opens;

	pthread_mutex_t lock; /* protects the fields below */
	pthread_cond_t changed;
	/* What the root was last known to be, for a server that does not answer. */
	bool root_stat_known, root_statvfs_known;
	struct stat root_stat;
	struct statvfs root_statvfs;
	bool greeted;  /* the kernel has sent FUSE_INIT */
	bool stopping; /* fusefs_stop() was called */
	bool mounted;
	bool loop_runs, loop_ended;
	int loop_result;
	pthread_t loop;

	/* The first request, on a thread of its own, for it may hang. */
	struct {
		bool runs, done;
		pthread_t thread;
		int err;
		dev_t device;
		bool asks; /* for root_statvfs, within the scope */
		struct remote_scope scope;
	} probe;
};

extern const struct fuse_lowlevel_ops fusefs_ops;

/* ---- nodes and numbers ---- */

static inline struct fusefs *fusefs_of(fuse_req_t req)
{
	return fuse_req_userdata(req);
}

static inline struct node *node_of(struct fusefs *fs, fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? vfs_root(fs->vfs) : (struct node *)(uintptr_t)ino;
}

static inline fuse_ino_t ino_of(struct fusefs *fs, struct node *node)
{
	return node == vfs_root(fs->vfs) ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)node;
}

/* ---- blocking calls: everything between begin and end can be broken off ---- */

static inline void sync_begin(struct call *call, fuse_req_t req)
{
	call->kind = CALL_SYNC;
	call_enter(fusefs_of(req)->interrupts, call, req);
}

static inline void sync_end(struct call *call)
{
	call_leave(call);
}

/*
 * ---- changes of file data that the vfs finds while this thread handles a request ----
 *
 * When the reply itself carries the new attributes the kernel sees the change by them, and
 * drops its pages. A notice as well would cross the reply, and make the kernel mistrust it.
 */
struct changes {
	fuse_ino_t inos[16];
	unsigned count;
};

void changes_begin(struct changes *changes);
/* The reply tells of this node. */
void changes_told(struct changes *changes, fuse_ino_t ino);
/* The others are queued for the notifier. */
void changes_end(struct fusefs *fs, struct changes *changes);

/* ---- replies; `err` is 0 or -errno ---- */

void reply_status(fuse_req_t req, int err);
void reply_attr(fuse_req_t req, int err, const struct stat *st, uint64_t valid_ns);
/* Takes the lookup back when the kernel does not want the answer any more. */
void reply_entry(fuse_req_t req, int err, const struct vfs_entry *entry);
void fill_entry_param(struct fusefs *fs, const struct vfs_entry *entry,
                      struct fuse_entry_param *param);

/* ---- operations, by file ---- */

void on_init(void *userdata, struct fuse_conn_info *conn); /* session.c */

void on_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void on_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups);
void on_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void on_readlink(fuse_req_t req, fuse_ino_t ino);
void on_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void on_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name);
void on_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void on_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void on_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void on_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void on_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
               const char *new_name, unsigned flags);

void on_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void on_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set,
                struct fuse_file_info *fi);
void on_access(fuse_req_t req, fuse_ino_t ino, int mask);
void on_statfs(fuse_req_t req, fuse_ino_t ino);

void on_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void on_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
               struct fuse_file_info *fi);
void on_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
             struct fuse_file_info *fi);
void on_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size, off_t offset,
              struct fuse_file_info *fi);
void on_flush(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void on_fsync(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);
void on_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void on_copy_file_range(fuse_req_t req, fuse_ino_t ino_in, off_t offset_in,
                        struct fuse_file_info *fi_in, fuse_ino_t ino_out, off_t offset_out,
                        struct fuse_file_info *fi_out, size_t length, int flags);
void on_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
              struct fuse_file_info *fi);

void on_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void on_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                struct fuse_file_info *fi);
void on_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *fi);
void on_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi);
void on_fsyncdir(fuse_req_t req, fuse_ino_t ino, int datasync, struct fuse_file_info *fi);

/* ---- open_table (handlers_data.c) ---- */

void open_table_init(struct open_table *table);
void open_table_release(struct open_table *table);
/* Waits until no completion is going to reply any more. */
void open_table_wait_answered(struct open_table *table);

static inline struct open_file *open_file_of(const struct fuse_file_info *fi)
{
	return (struct open_file *)(uintptr_t)fi->fh;
}

/* Waits for the file's pending reads and writes, then closes it. Blocks. */
void open_file_close(struct fusefs *fs, struct open_file *open);
/* NULL when memory is out. */
struct open_dir *open_dir_new(struct fusefs *fs, struct vfs_dir *dir);
void open_dir_close(struct fusefs *fs, struct open_dir *open);

#endif
