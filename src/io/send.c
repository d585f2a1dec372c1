/* The queue of chunks: what goes to the server when, and what its answer means. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/internal.h"

/* Chunks that wait for an overlapping one; with more of them the queue stands still. */
enum { MAX_HELD_BACK = 64 };

static bool overlaps(const struct chunk *chunk, uint64_t start, uint64_t end)
{
	return chunk->offset < end && start < chunk->offset + chunk->length;
}

/* Whether a chunk of the list, up to `stop`, overlaps the range. */
static bool any_overlaps(const struct list_node *list, const struct list_node *stop,
                         uint64_t start, uint64_t end)
{
	for (const struct list_node *at = list->next; at != stop; at = at->next)
		if (overlaps(list_entry(at, struct chunk, link), start, end))
			return true;
	return false;
}

bool writes_settled(const struct io_file *file)
{
	return list_empty(&file->queued) && list_empty(&file->in_flight);
}

bool writes_touch(struct io_file *file, uint64_t start, uint64_t end)
{
	if (writes_settled(file))
		return false;
	if (file->creating)
		return true;
	/* Beyond the server's end of the file all depends on what is still to be written. */
	return end > file->server_size ||
	       any_overlaps(&file->queued, &file->queued, start, end) ||
	       any_overlaps(&file->in_flight, &file->in_flight, start, end);
}

void writes_seal(struct io_file *file)
{
	if (!list_empty(&file->queued))
		list_entry(file->queued.prev, struct chunk, link)->sealed = true;
}

/* Whether a creation or a change of attributes is among the list's chunks up to `stop`. */
static bool any_changes(const struct list_node *list, const struct list_node *stop)
{
	for (const struct list_node *at = list->next; at != stop; at = at->next)
		if (list_entry(at, struct chunk, link)->kind <= CHUNK_ATTR)
			return true;
	return false;
}

/* Whether what the chunk depends on is still to be answered: an earlier write to the same
 * bytes, or a change of the times that this write changes again. */
static bool must_wait(struct io_file *file, struct chunk *chunk)
{
	uint64_t end = chunk->offset + chunk->length;
	if (chunk->kind != CHUNK_DATA) {
		if (chunk->link.prev != &file->queued)
			return true;
		chunk->behind = !list_empty(&file->in_flight);
		return chunk->behind && (chunk->again || !chunk_may_follow(file, chunk));
	}
	if (any_changes(&file->in_flight, &file->in_flight) ||
	    any_changes(&file->queued, &chunk->link))
		return true;
	return any_overlaps(&file->in_flight, &file->in_flight, chunk->offset, end) ||
	       any_overlaps(&file->queued, &chunk->link, chunk->offset, end);
}

/* The last chunk may still grow, which is worth waiting for while others are under way. */
static bool may_grow(struct io_file *file, struct chunk *chunk)
{
	return chunk->link.next == &file->queued && !chunk->sealed && file->chunks_in_flight;
}

/* The next chunk to send, now in flight; NULL when there is none. File's lock. */
static struct chunk *take_chunk(struct io_file *file)
{
	if (file->chunks_in_flight >= CHUNKS_IN_FLIGHT ||
	    file->bytes_in_flight >= BYTES_IN_FLIGHT)
		return NULL;
	int held_back = 0;
	list_for_each (at, &file->queued) {
		struct chunk *chunk = list_entry(at, struct chunk, link);
		if (may_grow(file, chunk) || held_back == MAX_HELD_BACK)
			return NULL;
		if (must_wait(file, chunk)) {
			held_back++;
			continue;
		}
		list_remove(&chunk->link);
		list_push_back(&file->in_flight, &chunk->link);
		chunk->sealed = true;
		chunk->again = false;
		chunk->at_home = chunk->kind != CHUNK_DATA ||
		                 file->bytes_in_flight + chunk->length <= SMALL_BYTES;
		file->chunks_in_flight++;
		file->bytes_in_flight += chunk->length;
		return chunk;
	}
	return NULL;
}

static void record_error(struct io_file *file, struct chunk *chunk, int err)
{
	atomic_fetch_add(&file->io->counters.write_errors, 1);
	/* of a file that could not be created all fails, which is told once */
	if (chunk->handle->closed && (!chunk->handle->broken || chunk->kind == CHUNK_CREATE))
		handle_log_loss(chunk->handle, err);
	list_for_each (at, &file->handles) {
		struct io_handle *handle = list_entry(at, struct io_handle, link);
		if (handle->wrote && !handle->error)
			handle->error = err;
	}
}

/* Acknowledges writes that waited for room. */
static void release_dirty(struct io *io, size_t bytes, struct batch *batch)
{
	LOCK_SCOPE(&io->lock);
	io->dirty -= bytes;
	if (io->dirty <= io->config.dirty_limit)
		list_splice_back(&batch->writes, &io->throttled);
}

/* What the server told of the file holds if nothing is under way that changes it. */
static void note_look(struct io_file *file, const struct chunk *chunk, int err)
{
	file->look.valid = !err && !chunk->again && writes_settled(file);
	file->look.attr = chunk->op.attr;
	file->look.mark = file->changes;
}

/* Takes the answered chunk out of the flight. False when it must go again. File's lock. */
static bool land(struct io_file *file, struct chunk *chunk)
{
	list_remove(&chunk->link);
	file->chunks_in_flight--;
	file->bytes_in_flight -= chunk->length;
	chunk_check_order(file, chunk);
	if (chunk->kind != CHUNK_ATTR || !chunk->again)
		return true;
	chunk_requeue(file, chunk);
	return false;
}

/* The chunk has been written or has failed for good. File's lock. */
static void settle(struct io_file *file, struct chunk *chunk, int err, struct batch *batch)
{
	file->changes += chunk->kind != CHUNK_LOOK;
	if (chunk->kind == CHUNK_ATTR && err)
		file->attr_lost = true;
	if (chunk->kind == CHUNK_LOOK) {
		note_look(file, chunk, err);
		err = 0;
	} else if (!err) {
		file->server_size = MAX(file->server_size, chunk->offset + chunk->length);
	}
	if (chunk->wait) {
		if (!chunk->wait->err)
			chunk->wait->err = err;
		if (--chunk->wait->chunks == 0)
			list_push_back(&batch->writes, &chunk->wait->link);
	} else if (err) {
		record_error(file, chunk, err);
	}
	/* What failed did not make the file longer after all. */
	if (writes_settled(file))
		file->size = file->server_size;
	release_dirty(file->io, chunk->length, batch);
	reads_unblock(file, batch);
	pthread_cond_broadcast(&file->settled);
	batch->send = true;
}

static void chunk_done(struct op *op);

/*
 * The server refused the write without a reason, perhaps its disk is full: turns the op into a
 * question for that. False when it cannot be asked. File's lock.
 */
static bool ask_reason(struct io_file *file, struct chunk *chunk)
{
	if (chunk->op.err != -EREMOTEIO || chunk->op.kind != OP_WRITE ||
	    !file->io->remote->caps.statfs)
		return false;
	chunk->directory = remote_file_path(chunk->handle->remote);
	if (!chunk->directory)
		return false;
	/* the directory, as the file may have no name any more */
	char *slash = strrchr(chunk->directory, '/');
	if (slash)
		slash[slash == chunk->directory] = 0;
	chunk->op = (struct op){.kind = OP_STATFS,
	                        .path = slash ? chunk->directory : ".",
	                        .done = chunk_done,
	                        .owner = chunk};
	return true;
}

/* What the server's answer means for the write. */
static int outcome(struct io_file *file, struct chunk *chunk)
{
	/* The protocol has one word for both; of attributes it is this one. */
	if (chunk->kind == CHUNK_CREATE)
		return create_outcome(file, chunk);
	if (chunk->kind == CHUNK_ATTR && chunk->op.err == -EACCES)
		return -EPERM;
	if (chunk->op.kind != OP_STATFS)
		return io_plain_error(chunk->op.err);
	return !chunk->op.err && chunk->op.statfs.bavail == 0 ? -ENOSPC : -EIO;
}

static void chunk_done(struct op *op)
{
	struct chunk *chunk = op->owner;
	/* what goes on is soon somebody else's to free */
	struct io_handle *handle = handle_ref(chunk->handle);
	struct io_file *file = handle->file;
	struct batch batch;
	batch_init(&batch);
	pthread_mutex_lock(&file->lock);
	bool asking = chunk->kind == CHUNK_CREATE ? create_ask(chunk) : ask_reason(file, chunk);
	bool landed = !asking && land(file, chunk);
	int err = landed ? outcome(file, chunk) : 0;
	if (landed)
		settle(file, chunk, err, &batch);
	else
		batch.send = !asking;
	pthread_mutex_unlock(&file->lock);
	if (asking)
		remote_submit(file->io->remote, op);
	if (landed && chunk->kind == CHUNK_CREATE)
		create_settled(file->io, chunk, err);
	batch_run(&batch, file);
	if (landed)
		chunk_free(chunk);
	handle_unref(handle);
}

static void submit_chunk(struct io *io, struct chunk *chunk)
{
	static const struct {
		enum op_kind op;
		enum op_class op_class;
	} kinds[] = {
	    [CHUNK_CREATE] = {OP_OPEN, OP_CLASS_META},
	    [CHUNK_DATA] = {OP_WRITE, OP_CLASS_BULK},
	    [CHUNK_ATTR] = {OP_FSETATTR, OP_CLASS_META},
	    [CHUNK_LOOK] = {OP_FSTAT, OP_CLASS_META},
	};
	atomic_uint_least64_t *const counters[] = {
	    [CHUNK_CREATE] = &io->counters.creates,
	    [CHUNK_ATTR] = &io->counters.changes,
	    [CHUNK_DATA] = &io->counters.chunks,
	    [CHUNK_LOOK] = &io->counters.looks,
	};
	atomic_fetch_add(counters[chunk->kind], 1);
	chunk->op = (struct op){.kind = kinds[chunk->kind].op,
	                        .op_class = kinds[chunk->kind].op_class,
	                        .file = chunk->handle->remote,
	                        .at_home = chunk->at_home,
	                        .attr = chunk->attr,
	                        .open_flags = chunk->open_flags,
	                        .offset = chunk->offset,
	                        .length = chunk->length,
	                        .data = chunk->data,
	                        .done = chunk_done,
	                        .owner = chunk};
	if (!chunk->handle->broken) {
		remote_submit(io->remote, &chunk->op);
		return;
	}
	chunk->op.err = chunk->handle->broken;
	chunk_done(&chunk->op);
}

void send_queued(struct io_file *file)
{
	LOCK_SCOPE(&file->lock);
	/* Whoever sends already looks again: this also keeps ops that end at once from nesting.
	 */
	if (file->sending)
		return;
	file->sending = true;
	for (struct chunk *chunk; (chunk = take_chunk(file));) {
		pthread_mutex_unlock(&file->lock);
		submit_chunk(file->io, chunk);
		pthread_mutex_lock(&file->lock);
	}
	file->sending = false;
}
