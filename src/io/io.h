/*
 * The bytes of files: block cache under one memory budget, read-ahead, write-behind. Knows
 * remote files, not names or nodes.
 *
 * Objects: struct io (one per mount) > struct io_file (one per inode that has or had open
 * handles; owns cached blocks and queued writes) > struct io_handle (one per open(); owns a
 * remote_file).
 *
 * Threads: every function may be called from any thread unless it says otherwise. Completions
 * (io_read_fn, io_write_fn) run on lanes' threads or on the calling thread and must not block.
 * Locks: io_file's lock before the cache's lock; never held while calling remote_submit's
 * completion or user callbacks.
 */
#ifndef MOORFS_IO_IO_H
#define MOORFS_IO_IO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/bytes.h"
#include "remote/remote.h"

struct io;
struct io_file;
struct io_handle;

enum io_writeback {
	IO_WRITEBACK_CLOSE, /* io_flush() waits for the server */
	IO_WRITEBACK_ASYNC, /* it does not; see there */
};

struct io_config {
	uint64_t cache_size;  /* budget of clean and dirty blocks, bytes */
	uint64_t dirty_limit; /* of queued writes, bytes; part of the budget */
	uint64_t max_window;  /* read-ahead bound of one stream, bytes; 0: from the link */
	bool read_ahead;      /* false: only what is asked (no_readahead) */
	bool sync_writes;     /* acknowledge a write when the server has it */
	enum io_writeback writeback;
};

/* NULL when memory is out. */
struct io *io_new(struct remote *remote, const struct io_config *config);
/*
 * All handles are closed and all files freed before. Waits until what is still queued or in
 * flight for them has been answered. 0, or with IO_WRITEBACK_ASYNC the first error that nobody
 * was told.
 */
int io_free(struct io *io);
/* Counters for SIGUSR1: cache bytes, hits, window, waste, queue. */
void io_report(struct io *io, struct bytes *out);

/* ---- files ---- */

/* What tells two versions of a file apart. */
struct io_version {
	uint64_t size;
	struct timespec mtime;
};

struct io_file *io_file_new(struct io *io);
/* No handles any more; cached blocks are dropped. Writes that are still queued go on. */
void io_file_free(struct io_file *file);

/*
 * The server says the file is this version now (called at open, and whenever attributes are
 * fetched). Returns true when it is what the cache holds, or the difference is due to our own
 * writes; false when someone else changed it: all clean blocks are dropped and read-ahead in
 * flight is disowned first.
 */
bool io_file_revalidate(struct io_file *file, const struct io_version *version);

/*
 * As io_file_revalidate for attributes that were asked for after `mark` was taken by
 * io_file_mark(): when our own writes crossed the question the answer may be older than they
 * are, and it is ignored (true). An io_file made after the question has the mark 0.
 */
bool io_file_revalidate_since(struct io_file *file, const struct io_version *version,
                              uint64_t mark);
uint64_t io_file_mark(struct io_file *file);

/* Size as this mount knows it: the server's, or beyond it where our writes reach. */
uint64_t io_file_size(struct io_file *file);

/* True while writes or changes of attributes are queued or in flight: what the server tells is
 * not final. */
bool io_file_dirty(struct io_file *file);

/*
 * Waits until all writes queued so far have been answered. Blocks like remote calls (obeys the
 * remote_scope). 0, or -EINTR; the errors of the writes stay for flush and fsync.
 */
int io_file_drain(struct io_file *file);

/* We changed the size on the server: blocks beyond it are dropped. Call after io_file_drain. */
void io_file_truncated(struct io_file *file, uint64_t size);

/* Drops clean blocks of [offset, offset + length): the server changed them for us (copy). */
void io_file_forget_range(struct io_file *file, uint64_t offset, uint64_t length);

/* ---- small files fetched whole ---- */

/*
 * The contents of a file that nobody has opened yet: fetched by path, and given to the io_file
 * when it is opened. Its memory counts against the budget.
 */
struct io_whole;

/* The largest file that is fetched whole: one block of the cache, so one extent holds it. */
enum { IO_WHOLE_MAX = 128 * 1024 };

/* For a file of `length` bytes, at most IO_WHOLE_MAX. NULL: out of memory, or of budget. */
struct io_whole *io_whole_new(struct io *io, const char *path, uint64_t length);

/* `err` 0: io_whole_attr() and the contents are there. Must not block; may free the whole. */
typedef void io_whole_fn(void *context, int err);

/* Sends the request. `done` is called once, perhaps before it returns. Never blocks. */
void io_whole_fetch(struct io_whole *whole, io_whole_fn *done, void *context);

/* Between io_whole_fetch() and `done`: ends it soon. */
void io_whole_cancel(struct io_whole *whole);

/* Not while it is under way. */
void io_whole_free(struct io_whole *whole);

/* Bytes that a fetch of this size moves at most. */
uint64_t io_whole_room(uint64_t length);

/* What the server told with the contents; the contents are no older. */
const struct remote_attr *io_whole_attr(const struct io_whole *whole);

/*
 * Puts the contents into the file's cache, if the file was last revalidated as this very
 * version and nothing of it is cached or written; in any case the whole is gone.
 */
void io_file_adopt(struct io_file *file, struct io_whole *whole);

/* ---- handles ---- */

/* Takes over the reference to `remote_file`. NULL when memory is out (reference kept). */
struct io_handle *io_handle_new(struct io_file *file, struct remote_file *remote_file);
/* Sends what is left, lets the remote file go. Does not block: io_flush came before. */
void io_handle_free(struct io_handle *handle);
struct remote_file *io_handle_remote(struct io_handle *handle);

/*
 * A finished read: `err` 0 or -errno; the iovec points into cached blocks and is valid until
 * the function returns; fewer bytes than asked only at the end of the file. Bytes may be 0.
 */
typedef void io_read_fn(void *context, int err, const struct iovec *iov, int count);

/* Never blocks. `done` is called once, perhaps before io_read returns. */
void io_read(struct io_handle *handle, uint64_t offset, size_t length, io_read_fn *done,
             void *context);
/* The request of this context is of no interest any more: ends it with -EINTR if it waits. */
void io_read_cancel(struct io_handle *handle, void *context);

/* err 0: queued (or on the server, with sync_writes), or an earlier write's error. */
typedef void io_write_fn(void *context, int err);

/*
 * Queues a write. Copies the data before it returns, so never blocks; when the queue is over
 * dirty_limit `done` is called later, when there is room again. `append`: the offset is ignored
 * and the data goes to the file's end as this mount knows it, one after the other.
 */
void io_write(struct io_handle *handle, uint64_t offset, const void *data, size_t length,
              bool append, io_write_fn *done, void *context);

/*
 * Queues a change of mode, owner or times (not size) behind the file's writes, to be made by
 * this handle; changes in a row become one request, and later writes go after it. What the
 * server then says to it is reported as a write's error is. False: nothing was queued, as
 * memory is out or sync_writes is set. Sends nothing, so it may be called with locks held;
 * io_file_send() follows. *writes is io_file_writes() of that moment: as long as it stays so,
 * the times are those that were set.
 */
bool io_setattr(struct io_handle *handle, const struct remote_attr *attr, uint64_t *writes);
/* Counts the writes that were queued. */
uint64_t io_file_writes(struct io_file *file);
/* Sends what is queued and may be sent. Does not block. */
void io_file_send(struct io_file *file);
/* True, once (with `take`), after a queued change of attributes or creation has failed, or has
 * led to something else. */
bool io_file_attr_lost(struct io_file *file, bool take);

/*
 * Before io_flush(): lets a question for the attributes ride behind the last writes, if that
 * costs no round trip. io_file_looked() then tells what was found, if nothing has changed
 * since: the attributes and the io_file_mark() of that moment.
 */
void io_look(struct io_handle *handle);
bool io_file_looked(struct io_file *file, struct remote_attr *attr, uint64_t *mark);

/*
 * The handle's remote file is new and still to be created: that is done by the first request in
 * its queue, all else waits for it, and nobody waits for the answer. When the server refuses,
 * all that is queued for the handle fails. `attr` is what the file will be like; what it is
 * instead is told by io_file_attr_lost(). `done` is called in the end, once, on a lane's thread
 * or this one, and must not block. False: memory is out, nothing was queued. Sends nothing, as
 * io_setattr().
 */
typedef void io_created_fn(void *context, int err);
bool io_create(struct io_handle *handle, unsigned open_flags, const struct remote_attr *attr,
               io_created_fn *done, void *context);
/* From when on io_wait_created() waits for it; io_create() takes that over, else it is ended.
 */
void io_create_begin(struct io *io);
void io_create_end(struct io *io);
/* Blocks until fewer than `limit` files are still to be created; 0, or -EINTR. */
int io_wait_created(struct io *io, unsigned limit);

/*
 * Waits for the handle's and the file's writes and reports the first error since the last
 * report to this handle. Blocks like remote calls; 0 or -errno. With IO_WRITEBACK_ASYNC it
 * waits only when much is under way already, and reports what is known; an error that comes
 * when the handle is gone is logged, and reported by the next io_fsync() of any file, or by
 * io_free().
 */
int io_flush(struct io_handle *handle);
/* As io_flush, then fsync on the server where it can. */
int io_fsync(struct io_handle *handle);

#endif
