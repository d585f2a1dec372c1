/* Reads: from the caller's request to its answer. */
#include <errno.h>
#include <stdlib.h>

#include "io/internal.h"

/* The most that one window may take: a part of the budget, so that several streams fit. */
static uint64_t window_share(const struct io *io)
{
	uint64_t most = io->config.max_window ? io->config.max_window : WINDOW_CEILING;
	return MIN(most, io->config.cache_size / 2);
}

static struct window_limits window_limits(struct io *io)
{
	struct remote_link link = {0};
	io->remote->link(io->remote, &link);
	return (struct window_limits){.rtt_ns = link.rtt_ns,
	                              .bytes_per_sec = link.bytes_per_sec,
	                              .max_bytes = window_share(io)};
}

/* Plans the request and what comes after it. File's lock. */
static void plan_with_window(struct read_request *request, const struct window_limits *limits,
                             struct batch *batch)
{
	struct io_file *file = request->handle->file;
	struct window_stream *stream =
	    window_note(&file->windows, request->offset, request->length);
	request->sequential = window_is_sequential(stream);
	/* The request may be answered and gone as soon as the lock is released, not before. */
	enum window_found found = plan_read(request, batch);
	if (request->blocked)
		return;
	uint64_t from, to;
	window_advance(stream, found, limits, file->size, &from, &to);
	if (from >= to)
		return;
	uint64_t reached = fetch_ahead(request->handle, from, to, batch);
	if (reached < to)
		window_refused(stream, reached);
}

void io_read(struct io_handle *handle, uint64_t offset, size_t length, io_read_fn *done,
             void *context)
{
	struct io_file *file = handle->file;
	struct read_request *request = NULL;
	int err = length > INT64_MAX - MIN(offset, (uint64_t)INT64_MAX) ? -EINVAL : 0;
	if (!err) {
		request = calloc(1, sizeof(*request));
		err = request ? 0 : -ENOMEM;
	}
	if (err) {
		done(context, err, NULL, 0);
		return;
	}
	request->handle = handle_ref(handle);
	request->offset = offset;
	request->length = length;
	request->done = done;
	request->context = context;

	struct batch batch;
	batch_init(&batch);
	bool read_ahead = file->io->config.read_ahead;
	struct window_limits limits = {0};
	if (read_ahead)
		limits = window_limits(file->io);
	pthread_mutex_lock(&file->lock);
	if (read_ahead)
		plan_with_window(request, &limits, &batch);
	else
		plan_read(request, &batch);
	pthread_mutex_unlock(&file->lock);
	batch_run(&batch, file);
}

/* Fills the iovec up to the first error or the end of the file. Count of entries or -errno. */
static int gather(struct read_request *request, size_t *bytes)
{
	uint64_t at = request->offset, end = at + request->length;
	int count = 0;
	for (size_t i = 0; i < request->part_count && at < end; i++) {
		const struct extent *extent = request->parts[i].extent;
		if (extent->err)
			return extent->err;
		uint64_t extent_end = extent->offset + extent->length;
		if (at < extent->offset || at >= extent_end)
			break;
		size_t length = (size_t)(MIN(extent_end, end) - at);
		request->iov[count++] = (struct iovec){
		    .iov_base = extent->data + (at - extent->offset), .iov_len = length};
		at += length;
	}
	*bytes = (size_t)(at - request->offset);
	return count;
}

/* The reply is over: the extents go back to the cache. */
static void release_parts(struct read_request *request, size_t bytes)
{
	uint64_t end = request->offset + bytes;
	for (size_t i = 0; i < request->part_count; i++) {
		struct extent *extent = request->parts[i].extent;
		bool passed = end >= extent->offset + extent->length;
		cache_used(extent, request->sequential && passed);
		extent_unref(extent);
	}
	free(request->parts);
	free(request->iov);
}

void read_answer(struct read_request *request)
{
	struct io_handle *handle = request->handle;
	size_t bytes = 0;
	int count = request->err ? request->err : gather(request, &bytes);
	if (count < 0)
		request->done(request->context, count, NULL, 0);
	else
		request->done(request->context, 0, request->iov, count);
	atomic_fetch_add(&handle->file->io->counters.read_bytes, bytes);
	release_parts(request, bytes);
	free(request);
	handle_unref(handle);
}

static struct read_request *find_request(struct list_node *list, const void *context)
{
	list_for_each (at, list) {
		struct read_request *request = list_entry(at, struct read_request, link);
		if (request->context == context)
			return request;
	}
	return NULL;
}

void io_read_cancel(struct io_handle *handle, void *context)
{
	struct io_file *file = handle->file;
	struct batch batch;
	batch_init(&batch);
	pthread_mutex_lock(&file->lock);
	struct read_request *request = find_request(&file->reads, context);
	if (!request)
		request = find_request(&file->blocked, context);
	if (request) {
		list_remove(&request->link);
		unplan_read(request);
		request->err = -EINTR;
		list_push_back(&batch.reads, &request->link);
	}
	pthread_mutex_unlock(&file->lock);
	batch_run(&batch, file);
}
