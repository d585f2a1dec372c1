/* Writes: from the caller's data to chunks in the queue, and from there to the answer. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "io/internal.h"

static struct chunk *chunk_new(struct io_handle *handle, uint64_t offset, const void *data,
                               uint32_t length)
{
	struct io *io = handle->file->io;
	struct chunk *chunk = calloc(1, sizeof(*chunk));
	if (!chunk)
		return NULL;
	chunk->data = buffers_get(&io->buffers, length);
	if (!chunk->data) {
		free(chunk);
		return NULL;
	}
	chunk->capacity = (uint32_t)buffers_capacity(length);
	chunk->kind = CHUNK_DATA;
	atomic_fetch_add(&io->chunks_queued, 1);
	budget_take(io, handle->file, chunk->capacity, true);
	memcpy(chunk->data, data, length);
	chunk->handle = handle_ref(handle);
	chunk->offset = offset;
	chunk->length = length;
	list_init(&chunk->link);
	return chunk;
}

void chunk_free(struct chunk *chunk)
{
	struct io_handle *handle = chunk->handle;
	struct io *io = handle->file->io;
	if (chunk->data) {
		buffers_put(&io->buffers, chunk->data, chunk->capacity);
		budget_give(io, chunk->capacity);
	}
	atomic_fetch_sub(&io->chunks_queued, 1);
	free(chunk->directory);
	free(chunk);
	handle_unref(handle);
}

/* Room for `length` bytes in the chunk. */
static bool chunk_reserve(struct chunk *chunk, uint32_t length)
{
	if (length <= chunk->capacity)
		return true;
	struct io_file *file = chunk->handle->file;
	char *data = buffers_get(&file->io->buffers, length);
	if (!data)
		return false;
	uint32_t capacity = (uint32_t)buffers_capacity(length);
	budget_take(file->io, file, capacity, true);
	memcpy(data, chunk->data, chunk->length);
	buffers_put(&file->io->buffers, chunk->data, chunk->capacity);
	budget_give(file->io, chunk->capacity);
	chunk->data = data;
	chunk->capacity = capacity;
	return true;
}

/* The last queued chunk, if data at `offset` continues or overwrites it. */
static struct chunk *mergeable(struct io_handle *handle, uint64_t offset)
{
	struct io_file *file = handle->file;
	if (list_empty(&file->queued))
		return NULL;
	struct chunk *chunk = list_entry(file->queued.prev, struct chunk, link);
	if (chunk->kind != CHUNK_DATA || chunk->sealed || chunk->handle != handle ||
	    offset < chunk->offset || offset > chunk->offset + chunk->length ||
	    offset >= chunk->offset + file->io->max_write)
		return NULL;
	return chunk;
}

/* New chunks for the data. 0, or -ENOMEM and none made. */
static int make_chunks(struct io_handle *handle, uint64_t offset, const char *data,
                       size_t length, struct list_node *chunks)
{
	while (length) {
		uint32_t piece = (uint32_t)MIN(length, handle->file->io->max_write);
		struct chunk *chunk = chunk_new(handle, offset, data, piece);
		if (!chunk)
			return -ENOMEM;
		list_push_back(chunks, &chunk->link);
		offset += piece;
		data += piece;
		length -= piece;
	}
	return 0;
}

static void account_dirty(struct io *io, size_t bytes)
{
	LOCK_SCOPE(&io->lock);
	io->dirty += bytes;
}

/* Puts the chunks into the queue; `wait` is told when each was answered (NULL: nobody is). */
static void queue_chunks(struct io_file *file, struct list_node *chunks,
                         struct write_wait *wait)
{
	list_for_each (at, chunks) {
		struct chunk *chunk = list_entry(at, struct chunk, link);
		chunk->seq = file->next_seq++;
		chunk->sealed = wait || chunk->length == file->io->max_write;
		chunk->wait = wait;
		if (wait)
			wait->chunks++;
		account_dirty(file->io, chunk->length);
	}
	list_splice_back(&file->queued, chunks);
}

/* Copies the data into the queue. 0, or -ENOMEM and nothing is changed. */
static int queue_data(struct io_handle *handle, uint64_t offset, const char *data,
                      size_t length, struct write_wait *sync, struct list_node *unused)
{
	struct io_file *file = handle->file;
	struct chunk *last = sync ? NULL : mergeable(handle, offset);
	size_t merged = 0;
	uint32_t filled = 0;
	if (last) {
		uint32_t at = (uint32_t)(offset - last->offset);
		merged = MIN(length, file->io->max_write - at);
		filled = MAX(last->length, at + (uint32_t)merged);
		if (!chunk_reserve(last, filled))
			merged = 0;
	}
	struct list_node chunks;
	list_init(&chunks);
	if (make_chunks(handle, offset + merged, data + merged, length - merged, &chunks)) {
		list_splice_back(unused, &chunks);
		return -ENOMEM;
	}
	if (merged) {
		memcpy(last->data + (offset - last->offset), data, merged);
		account_dirty(file->io, filled - last->length);
		last->length = filled;
		last->sealed = filled == file->io->max_write;
	}
	queue_chunks(file, &chunks, sync);
	return 0;
}

/* The file is different now: what the cache holds of the range is outdated. File's lock. */
static void note_change(struct io_handle *handle, uint64_t offset, uint64_t end)
{
	struct io_file *file = handle->file;
	/* a reader beyond the old end must see zeros, not the end */
	cache_drop(file, MIN(offset, file->size), end);
	file->size = MAX(file->size, end);
	file->own_writes = true;
	file->changes++;
	file->writes++;
	if (file->handles_to_mark) {
		/* what any of them saw at its open() is no proof of the file's identity now */
		list_for_each (link, &file->handles)
			remote_file_set_written(
			    list_entry(link, struct io_handle, link)->remote);
		file->handles_to_mark = false;
	}
	handle->wrote = true;
}

/* Whether the write must wait for room in the queue; then it does. */
static bool throttle(struct io *io, struct write_wait *wait)
{
	LOCK_SCOPE(&io->lock);
	if (io->dirty <= io->config.dirty_limit)
		return false;
	list_push_back(&io->throttled, &wait->link);
	atomic_fetch_add(&io->counters.throttled, 1);
	return true;
}

int handle_take_error(struct io_handle *handle)
{
	int err = handle->error;
	handle->error = 0;
	return err;
}

/* Queues the data. True when `wait` will be answered by somebody else. File's lock. */
static bool enter_write(struct write_wait *wait, uint64_t offset, const void *data,
                        size_t length, bool append, struct list_node *unused)
{
	struct io_handle *handle = wait->handle;
	struct io_file *file = handle->file;
	bool sync = file->io->config.sync_writes;
	if (append)
		offset = file->size;
	if (length > INT64_MAX - MIN(offset, (uint64_t)INT64_MAX))
		wait->err = -EFBIG;
	if (!wait->err)
		wait->err = handle_take_error(handle);
	if (!wait->err && length)
		wait->err =
		    queue_data(handle, offset, data, length, sync ? wait : NULL, unused);
	if (wait->err || !length)
		return false;
	note_change(handle, offset, offset + length);
	atomic_fetch_add(&file->io->counters.write_bytes, length);
	return sync || throttle(file->io, wait);
}

void io_write(struct io_handle *handle, uint64_t offset, const void *data, size_t length,
              bool append, io_write_fn *done, void *context)
{
	struct io_file *file = handle->file;
	struct write_wait *wait = calloc(1, sizeof(*wait));
	if (!wait) {
		done(context, -ENOMEM);
		return;
	}
	*wait =
	    (struct write_wait){.handle = handle_ref(handle), .done = done, .context = context};
	list_init(&wait->link);
	/* The answer may lead to io_handle_free() on another thread. */
	handle_ref(handle);

	struct list_node unused;
	list_init(&unused);
	pthread_mutex_lock(&file->lock);
	bool waits = enter_write(wait, offset, data, length, append, &unused);
	pthread_mutex_unlock(&file->lock);

	struct list_node *node;
	while ((node = list_pop_front(&unused)))
		chunk_free(list_entry(node, struct chunk, link));
	if (!waits)
		write_answer(wait);
	send_queued(file);
	handle_unref(handle);
}

void write_answer(struct write_wait *wait)
{
	struct io_handle *handle = wait->handle;
	if (!wait->err) {
		pthread_mutex_lock(&handle->file->lock);
		wait->err = handle_take_error(handle);
		pthread_mutex_unlock(&handle->file->lock);
	}
	wait->done(wait->context, wait->err);
	free(wait);
	handle_unref(handle);
}
