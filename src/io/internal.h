/*
 * The inside of io/.
 *
 * Order of locks: io_file.lock, then io.lock, then the buffers' own. No lock is held while ops
 * are submitted or callers' completions run: what a function finds to do it puts into a struct
 * batch, and batch_run() does it after unlocking. Eviction takes a second file's lock with
 * trylock only, as it goes against the order.
 *
 * References: the owner, every handle and nothing else keep an io_file; the owner, every read
 * request, fetch and chunk keep an io_handle (and by it the file and the remote file); the
 * cache, a fetch in flight and every read that uses it keep an extent.
 */
#ifndef MOORFS_IO_INTERNAL_H
#define MOORFS_IO_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "io/buffers.h"
#include "io/io.h"
#include "io/window.h"

enum {
	BLOCK_SIZE = WINDOW_BLOCK,
	PAGE = 4096,
	MAX_CHUNK = BUFFER_MAX,
	CHUNKS_IN_FLIGHT = 256,             /* of one file */
	BYTES_IN_FLIGHT = 64 * 1024 * 1024, /* of one file, written */
	CHUNKS_ASYNC = 1024, /* with more of them under way even an asynchronous flush waits */
	SMALL_BYTES = 256 * 1024, /* of one file, sent by one lane in order */
};

struct io_counters {
	atomic_uint_least64_t read_bytes;
	atomic_uint_least64_t
	    found[WINDOW_MISSING + 1]; /* parts of reads, by enum window_found */
	atomic_uint_least64_t ahead_bytes, ahead_used, ahead_wasted, evictions;
	atomic_uint_least64_t wholes, whole_bytes, whole_used, whole_wasted;
	atomic_uint_least64_t write_bytes, chunks, throttled, write_errors;
	atomic_uint_least64_t creates, changes, changes_merged, changes_repeated, looks;
};

struct io {
	struct remote *remote;
	struct io_config config;
	uint32_t max_read, max_write;
	struct buffers buffers;
	struct io_counters counters;
	atomic_uint_least64_t used; /* bytes of all buffers in use, clean, pending and dirty */

	pthread_mutex_t lock;       /* protects the fields below, and the extents' lru links */
	pthread_cond_t idle;        /* the last file has gone */
	struct list_node lru;       /* evictable extents, the first goes first */
	struct list_node throttled; /* write_wait: acknowledged when `dirty` allows */
	uint64_t dirty;             /* bytes of queued writes */
	unsigned files;
	unsigned creating;      /* files still to be created */
	pthread_cond_t created; /* there is one less */
	int lost;               /* IO_WRITEBACK_ASYNC: an error that nobody was told; 0: none */
	atomic_uint chunks_queued; /* and in flight, of all files */
};

/* ---- files and handles (file.c) ---- */

struct io_file {
	struct io *io;
	atomic_uint refs;

	pthread_mutex_t lock;   /* protects the fields below */
	pthread_cond_t settled; /* a chunk has been answered */
	struct list_node handles;

	/* what the server said last, and what we did since */
	struct io_version version;
	bool known;           /* `version` is filled */
	bool own_writes;      /* the server's version differs from it by our doing */
	uint64_t server_size; /* as far as answered operations tell */
	uint64_t size;        /* with the queued writes */
	uint64_t writes;      /* queued, ever */
	uint64_t changes;     /* made by us: counts what was queued and what was answered */
	bool handles_to_mark; /* some handle's remote file does not know yet that we write */

	struct map blocks;        /* struct block by index */
	struct list_node extents; /* all in the cache */
	struct window_set windows;
	struct list_node reads;   /* read_request: wait for extents */
	struct list_node blocked; /* read_request: wait for writes */

	struct list_node queued;    /* chunk, in the order of the writes */
	struct list_node in_flight; /* chunk */
	unsigned chunks_in_flight;
	uint64_t bytes_in_flight;
	uint64_t next_seq; /* of the next chunk */
	struct {
		bool valid;
		struct remote_attr attr;
		uint64_t mark; /* of the file when it was so */
	} look;                /* what the last CHUNK_LOOK found */
	unsigned creating;     /* CHUNK_CREATE queued or in flight */
	bool attr_lost;        /* a CHUNK_ATTR has failed, and vfs has not been told yet */
	bool sending;          /* a thread is in send_queued() and looks again */
};

struct io_handle {
	struct io_file *file;
	struct remote_file *remote;
	atomic_uint refs;
	struct list_node link; /* file->handles; the file's lock protects the next ones too */
	bool wrote;
	bool closed;
	int error;  /* of a write, not yet reported here */
	int broken; /* the file could not be created: nothing can be done by this handle */
};

/* One whose waits are timed by clock_now_ns(). */
void init_condition(pthread_cond_t *condition);
void file_ref(struct io_file *file);
void file_unref(struct io_file *file);
struct io_handle *handle_ref(struct io_handle *handle);
/* No lock held: may submit. */
void handle_unref(struct io_handle *handle);

/* ---- cached extents (cache.c); all with the file's lock ---- */

/*
 * Bytes of a file, received or on their way. Never crosses the end of its block. Geometry,
 * state and error are fixed once it is not pending.
 */
struct extent {
	struct io_file *file;
	atomic_uint refs;
	struct block *block; /* NULL: not in the cache (any more) */
	struct list_node in_block, in_file;
	struct list_node lru;     /* io->lock; points to itself when not evictable */
	struct list_node waiters; /* read_part, while pending */
	uint64_t offset;
	uint32_t length; /* as asked, later as received */
	uint32_t capacity;
	char *data;
	int err;
	bool pending;
	atomic_bool ahead; /* read ahead, not yet used */
	bool speculative;  /* was issued by read-ahead */
};

/* The extent that covers `offset`, or NULL; then *gap_end is where the gap there ends (at most
 * the end of the block). */
struct extent *cache_find(struct io_file *file, uint64_t offset, uint64_t *gap_end);

/* A new pending extent in the cache, a reference for the caller besides. `must`: is made even
 * beyond the budget. NULL: out of memory, or of budget. */
struct extent *cache_add(struct io_file *file, uint64_t offset, uint32_t length, bool must);

/* An extent that has been received into this buffer, which it takes over, accounted for. False
 * when memory is out: the buffer is still the caller's. */
bool cache_put(struct io_file *file, uint64_t offset, char *data, uint32_t length,
               uint32_t capacity);

/* Takes the extent out of the cache; no effect when it is out. */
void cache_remove(struct extent *extent);
/* As cache_remove for the evictor, who sees to the lru list and the cache's reference. */
void cache_unlink(struct extent *extent);

/* Takes all extents out that touch [start, end). */
void cache_drop(struct io_file *file, uint64_t start, uint64_t end);

/* The extent was received: it may be evicted from now on. */
void cache_ready(struct extent *extent);

/* A read has used the extent. `finished`: nobody is likely to want it again. Any lock or none
 * of the file's. */
void cache_used(struct extent *extent, bool finished);

/* Any lock but the buffers'. */
void extent_unref(struct extent *extent);

/* ---- memory budget (budget.c) ---- */

/* Accounts for `bytes`, evicting clean extents; `file` is the one whose lock is held. False
 * (never with `must`): no room, nothing accounted. */
bool budget_take(struct io *io, struct io_file *file, size_t bytes, bool must);
void budget_give(struct io *io, size_t bytes);

/* ---- things to do without locks (batch.c) ---- */

struct batch {
	struct list_node fetches; /* to submit */
	struct list_node reads;   /* to answer */
	struct list_node writes;  /* write_wait, to answer */
	bool send;                /* look for chunks to send */
};

void batch_init(struct batch *batch);
void batch_run(struct batch *batch, struct io_file *file);

/* ---- fetching (fetch.c) ---- */

struct fetch {
	struct list_node link; /* batch */
	struct op op;
	struct io_handle *handle;
	struct extent *extent;
	uint64_t changes; /* of the file when it was made */
};

/* Makes the missing extent and its fetch; NULL: out of memory, or (speculative) of budget.
 * File's lock. */
struct extent *fetch_start(struct io_handle *handle, uint64_t offset, uint32_t length,
                           bool speculative, struct batch *batch);
void fetch_submit(struct fetch *fetch);

/* What tells the versions apart is the same. */
bool same_version(const struct io_version *a, const struct io_version *b);

/* ---- reads (read.c, plan.c) ---- */

/* A place in a read's reply. */
struct read_part {
	struct list_node link; /* extent->waiters, while it is pending */
	struct read_request *request;
	struct extent *extent; /* referenced */
};

struct read_request {
	struct list_node link; /* file->reads, file->blocked or a batch */
	struct io_handle *handle;
	uint64_t offset;
	size_t length;
	io_read_fn *done;
	void *context;
	bool sequential;  /* of a proved stream */
	bool blocked;     /* waits for writes: in file->blocked */
	bool retried;     /* a failed read-ahead was asked for again */
	unsigned pending; /* parts whose extent is */
	int err;
	struct read_part *parts;
	size_t part_count, part_capacity;
	struct iovec *iov; /* room for part_count */
};

/*
 * Finds or fetches what the request needs: leaves it waiting (in file->reads or file->blocked)
 * or puts it into the batch. Returns the worst of what it found. File's lock.
 */
enum window_found plan_read(struct read_request *request, struct batch *batch);
/* Forgets what plan_read() found. File's lock. */
void unplan_read(struct read_request *request);
/* All parts are there: into the batch, or planned again. File's lock. */
void read_complete(struct read_request *request, struct batch *batch);
/* The request was in a batch. No lock held. */
void read_answer(struct read_request *request);
/* Plans all reads that wait for extents anew (their version is outdated). File's lock. */
void reads_restart(struct io_file *file, struct batch *batch);
/* Plans reads that no queued write is in the way of any more. File's lock. */
void reads_unblock(struct io_file *file, struct batch *batch);

/* Fetches [from, to) where it is missing; returns up to where that was possible. File's lock.
 */
uint64_t fetch_ahead(struct io_handle *handle, uint64_t from, uint64_t to, struct batch *batch);

/* ---- writes (write.c, setattr.c, send.c) ---- */

enum chunk_kind {
	CHUNK_CREATE, /* makes the file; all chunks after it wait */
	CHUNK_ATTR,   /* mode, owner, times to set, behind all chunks before it; those after it
	               * wait, save for one that may follow */
	CHUNK_DATA,   /* a run of bytes to write */
	CHUNK_LOOK,   /* asks for the attributes, behind all chunks before it */
};

/* What is to be done to the file, one request to the server. */
struct chunk {
	struct list_node link; /* file->queued or file->in_flight */
	struct io_handle *handle;
	struct op op;
	enum chunk_kind kind;
	struct remote_attr attr; /* CHUNK_CREATE, CHUNK_ATTR */
	unsigned open_flags;     /* CHUNK_CREATE */
	int refused;             /* CHUNK_CREATE: the error that the file is looked at for */
	io_created_fn *created;  /* CHUNK_CREATE */
	void *created_context;
	bool at_home; /* sent by the lane where the file was opened */
	bool behind;  /* was sent before those ahead of it were answered */
	bool again;   /* it may have overtaken one of them: to be repeated */
	uint64_t seq;
	uint64_t offset;
	uint32_t length, capacity;
	char *data;
	bool sealed;             /* takes no more data */
	struct write_wait *wait; /* who wants this very chunk answered (sync_writes) */
	char *directory;         /* asked for the reason of a vague failure */
};

/* An io_write() whose `done` is still to be called. */
struct write_wait {
	struct list_node link; /* io->throttled or a batch */
	struct io_handle *handle;
	io_write_fn *done;
	void *context;
	unsigned chunks; /* still to be answered (sync_writes) */
	int err;
};

/* Whether [start, end) depends on writes not yet answered. File's lock. */
bool writes_touch(struct io_file *file, uint64_t start, uint64_t end);
/* True when nothing is queued or in flight. File's lock. */
bool writes_settled(const struct io_file *file);
/* The last chunk takes no more data and may be sent. File's lock. */
void writes_seal(struct io_file *file);
/* A new chunk without data, at the end of the queue; NULL when memory is out. File's lock. */
struct chunk *chunk_plain(struct io_handle *handle, enum chunk_kind kind);
/* Whether something like this chunk could follow at once all that is under way. File's lock. */
bool chunk_may_follow(struct io_file *file, const struct chunk *chunk);
/*
 * The chunk has been answered, and is out of file->in_flight: finds out which chunks that were
 * sent behind others may have overtaken them. File's lock.
 */
void chunk_check_order(struct io_file *file, struct chunk *chunk);
/* Puts an answered chunk back into the queue, where it was. File's lock. */
void chunk_requeue(struct io_file *file, struct chunk *chunk);
/* Submits chunks as far as their order and the bounds allow. No lock held. */
void send_queued(struct io_file *file);
/* No lock held. */
void write_answer(struct write_wait *wait);
/* Releases a chunk that was not queued or has been answered. No lock held. */
void chunk_free(struct chunk *chunk);
/* The handle's unreported error, which is reported by that. File's lock. */
int handle_take_error(struct io_handle *handle);
/* Logs that a chunk of the handle failed and nobody is left to be told; with
 * IO_WRITEBACK_ASYNC the next who asks is. */
void handle_log_loss(struct io_handle *handle, int err);

/* ---- creation (create.c) ---- */

/*
 * The creation was answered, perhaps by the loss of its lane. True when there is one more
 * question to ask first: then the op is that. File's lock.
 */
bool create_ask(struct chunk *chunk);
/* What the last answer means; takes note of it. File's lock. */
int create_outcome(struct io_file *file, struct chunk *chunk);
/* Tells who wants to know. No lock held. */
void create_settled(struct io *io, struct chunk *chunk, int err);
/* The error that nobody was told, which is reported by that. */
int io_take_lost(struct io *io);

/* An op's error as a local program may see it: the vague ones become -EIO. */
int io_plain_error(int err);

#endif
