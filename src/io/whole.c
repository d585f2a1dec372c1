/* Small files fetched whole before they are opened. */
#include <stdlib.h>
#include <string.h>

#include "io/internal.h"

struct io_whole {
	struct io *io;
	struct op op;
	io_whole_fn *done;
	void *context;
	char *data;
	uint32_t capacity;
	bool received;
	char path[];
};

uint64_t io_whole_room(uint64_t length)
{
	return buffers_capacity((size_t)MIN(length, (uint64_t)IO_WHOLE_MAX));
}

struct io_whole *io_whole_new(struct io *io, const char *path, uint64_t length)
{
	size_t path_size = strlen(path) + 1;
	size_t capacity = (size_t)io_whole_room(length);
	if (length > IO_WHOLE_MAX || !budget_take(io, NULL, capacity, false))
		return NULL;
	struct io_whole *whole = calloc(1, sizeof(*whole) + path_size);
	if (whole)
		whole->data = buffers_get(&io->buffers, capacity);
	if (!whole || !whole->data) {
		free(whole);
		budget_give(io, capacity);
		return NULL;
	}
	whole->io = io;
	whole->capacity = (uint32_t)capacity;
	memcpy(whole->path, path, path_size);
	return whole;
}

static void fetched(struct op *op)
{
	struct io_whole *whole = op->owner;
	int err = io_plain_error(op->err);
	whole->received = !err;
	if (!err)
		atomic_fetch_add(&whole->io->counters.whole_bytes, op->count);
	whole->done(whole->context, err);
}

void io_whole_fetch(struct io_whole *whole, io_whole_fn *done, void *context)
{
	whole->done = done;
	whole->context = context;
	whole->op = (struct op){.kind = OP_FETCH,
	                        .op_class = OP_CLASS_PREFETCH,
	                        .path = whole->path,
	                        .data = whole->data,
	                        .length = MIN(whole->capacity, (uint32_t)IO_WHOLE_MAX),
	                        .done = fetched,
	                        .owner = whole};
	atomic_fetch_add(&whole->io->counters.wholes, 1);
	remote_submit(whole->io->remote, &whole->op);
}

void io_whole_cancel(struct io_whole *whole)
{
	remote_cancel(whole->io->remote, &whole->op);
}

static void release(struct io_whole *whole)
{
	if (whole->data) {
		buffers_put(&whole->io->buffers, whole->data, whole->capacity);
		budget_give(whole->io, whole->capacity);
	}
	free(whole);
}

void io_whole_free(struct io_whole *whole)
{
	if (whole->received)
		atomic_fetch_add(&whole->io->counters.whole_wasted, whole->op.count);
	release(whole);
}

const struct remote_attr *io_whole_attr(const struct io_whole *whole)
{
	return &whole->op.attr;
}

/* True when the contents are those of the file as it was last seen. File's lock. */
static bool fits(const struct io_file *file, const struct io_whole *whole)
{
	const struct remote_attr *attr = io_whole_attr(whole);
	const struct io_version version = {attr->size, attr->mtime};
	return file->known && !file->own_writes && writes_settled(file) &&
	       same_version(&file->version, &version);
}

void io_file_adopt(struct io_file *file, struct io_whole *whole)
{
	atomic_fetch_add(&file->io->counters.whole_used, whole->op.count);
	pthread_mutex_lock(&file->lock);
	if (fits(file, whole) && list_empty(&file->extents) && whole->op.count &&
	    cache_put(file, 0, whole->data, (uint32_t)whole->op.count, whole->capacity))
		whole->data = NULL;
	pthread_mutex_unlock(&file->lock);
	release(whole);
}
