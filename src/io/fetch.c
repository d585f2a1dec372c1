/* Requests for missing extents. */
#include <errno.h>
#include <stdlib.h>

#include "io/internal.h"

int io_plain_error(int err)
{
	return err == -EREMOTEIO || err == -ENOLINK ? -EIO : err;
}

/*
 * The bytes up to `end` exist; `eof` says that those behind do not, or, when nothing came at
 * all, that the file ends somewhere before. Our own writes meanwhile may have changed that.
 */
static void learn_size(struct io_file *file, const struct fetch *fetch, uint64_t end, bool eof)
{
	bool exists = fetch->op.count > 0;
	if (eof && file->changes == fetch->changes && writes_settled(file)) {
		if (exists || end < file->server_size)
			file->server_size = file->size = end;
	} else if (exists) {
		file->server_size = MAX(file->server_size, end);
		file->size = MAX(file->size, end);
	}
}

/* Fills the extent from the op's result. */
static void receive(struct io_file *file, struct fetch *fetch)
{
	struct extent *extent = fetch->extent;
	const struct op *op = &fetch->op;
	bool short_read = !op->err && op->count < extent->length;
	if (op->err) {
		extent->err = io_plain_error(op->err);
	} else {
		extent->length = (uint32_t)MIN(op->count, extent->length);
		if (extent->block)
			learn_size(file, fetch, extent->offset + extent->length, short_read);
	}
	if (extent->err || !extent->length)
		cache_remove(extent);
	cache_ready(extent);
}

static void wake_readers(struct extent *extent, struct batch *batch)
{
	struct list_node *node;
	while ((node = list_pop_front(&extent->waiters))) {
		struct read_request *request =
		    list_entry(node, struct read_part, link)->request;
		if (--request->pending == 0)
			read_complete(request, batch);
	}
}

static void fetch_done(struct op *op)
{
	struct fetch *fetch = op->owner;
	struct io_handle *handle = fetch->handle;
	struct io_file *file = handle->file;
	struct batch batch;
	batch_init(&batch);

	pthread_mutex_lock(&file->lock);
	receive(file, fetch);
	wake_readers(fetch->extent, &batch);
	pthread_mutex_unlock(&file->lock);

	extent_unref(fetch->extent);
	free(fetch);
	batch_run(&batch, file);
	handle_unref(handle);
}

struct extent *fetch_start(struct io_handle *handle, uint64_t offset, uint32_t length,
                           bool speculative, struct batch *batch)
{
	struct io_file *file = handle->file;
	struct fetch *fetch = calloc(1, sizeof(*fetch));
	struct extent *extent = fetch ? cache_add(file, offset, length, !speculative) : NULL;
	if (!extent) {
		free(fetch);
		return NULL;
	}
	extent->speculative = speculative;
	atomic_store(&extent->ahead, speculative);
	fetch->extent = extent;
	fetch->handle = handle_ref(handle);
	fetch->changes = file->changes;
	fetch->op = (struct op){
	    .kind = OP_READ,
	    .op_class = OP_CLASS_BULK,
	    .file = handle->remote,
	    .offset = offset,
	    .length = length,
	    .data = extent->data,
	    .done = fetch_done,
	    .owner = fetch,
	};
	list_push_back(&batch->fetches, &fetch->link);
	return extent;
}

void fetch_submit(struct fetch *fetch)
{
	remote_submit(fetch->handle->file->io->remote, &fetch->op);
}
