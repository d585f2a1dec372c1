/* Which extents a read is made of, and what must be fetched for it or ahead of it. */
#include <errno.h>
#include <stdlib.h>

#include "io/internal.h"

/* Where the request ends as far as we know the file; one that begins at the end or beyond asks
 * the server, whose file may have grown. */
static uint64_t request_end(const struct io_file *file, const struct read_request *request)
{
	uint64_t end = request->offset + request->length;
	return request->offset < file->size ? MIN(end, file->size) : end;
}

/*
 * How much of a gap at `offset` to fetch for a read up to `end`: whole pages, or all of it for
 * a sequential reader. Only what was asked for was looked at for writes in its way, so with
 * some about there is nothing more.
 */
static uint32_t demand_length(const struct read_request *request, uint64_t offset, uint64_t end,
                              uint64_t gap_end)
{
	const struct io_file *file = request->handle->file;
	uint64_t to = (end + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	if (request->sequential)
		to = gap_end;
	if (!writes_settled(file))
		to = end;
	if (offset < file->size)
		to = MIN(to, file->size);
	to = MIN(to, gap_end);
	return (uint32_t)MIN(to - offset, file->io->max_read);
}

static bool add_part(struct read_request *request, struct extent *extent)
{
	if (request->part_count == request->part_capacity) {
		size_t capacity = request->part_capacity ? request->part_capacity * 2 : 8;
		struct read_part *parts = realloc(request->parts, capacity * sizeof(*parts));
		if (!parts)
			return false;
		request->parts = parts;
		request->part_capacity = capacity;
	}
	atomic_fetch_add(&extent->refs, 1);
	request->parts[request->part_count++] =
	    (struct read_part){.request = request, .extent = extent};
	return true;
}

/* Collects the extents of the request. 0 or -ENOMEM. */
static int find_parts(struct read_request *request, uint64_t end, struct batch *batch,
                      enum window_found *worst)
{
	struct io_handle *handle = request->handle;
	for (uint64_t at = request->offset; at < end;) {
		uint64_t gap_end;
		enum window_found found = WINDOW_MISSING;
		struct extent *extent = cache_find(handle->file, at, &gap_end);
		if (extent)
			found = extent->pending ? WINDOW_PENDING : WINDOW_READY;
		else
			extent = fetch_start(
			    handle, at, demand_length(request, at, end, gap_end), false, batch);
		if (!extent || !add_part(request, extent))
			return -ENOMEM;
		atomic_fetch_add(&handle->file->io->counters.found[found], 1);
		*worst = MAX(*worst, found);
		at = extent->offset + extent->length;
	}
	return 0;
}

/* From here on the parts do not move, so that extents may point at them. */
static void wait_for_parts(struct read_request *request)
{
	for (size_t i = 0; i < request->part_count; i++) {
		struct read_part *part = &request->parts[i];
		list_init(&part->link);
		if (!part->extent->pending)
			continue;
		list_push_back(&part->extent->waiters, &part->link);
		request->pending++;
	}
}

enum window_found plan_read(struct read_request *request, struct batch *batch)
{
	struct io_file *file = request->handle->file;
	uint64_t end = request_end(file, request);
	request->blocked = writes_touch(file, request->offset, end);
	if (request->blocked) {
		writes_seal(file);
		batch->send = true;
		list_push_back(&file->blocked, &request->link);
		return WINDOW_PENDING;
	}

	enum window_found worst = WINDOW_READY;
	request->err = find_parts(request, end, batch, &worst);
	if (!request->err && request->part_count) {
		request->iov = calloc(request->part_count, sizeof(*request->iov));
		request->err = request->iov ? 0 : -ENOMEM;
	}
	if (request->err)
		unplan_read(request);
	else
		wait_for_parts(request);
	list_push_back(request->pending ? &file->reads : &batch->reads, &request->link);
	return worst;
}

void unplan_read(struct read_request *request)
{
	for (size_t i = 0; i < request->part_count; i++) {
		struct read_part *part = &request->parts[i];
		if (part->link.next)
			list_remove(&part->link);
		extent_unref(part->extent);
	}
	free(request->iov);
	request->iov = NULL;
	request->part_count = 0;
	request->pending = 0;
}

/* Whether a part failed that was only fetched in advance: perhaps its time had run out. */
static bool deserves_retry(const struct read_request *request)
{
	for (size_t i = 0; !request->retried && i < request->part_count; i++) {
		const struct extent *extent = request->parts[i].extent;
		if (extent->err && extent->speculative)
			return true;
	}
	return false;
}

void read_complete(struct read_request *request, struct batch *batch)
{
	list_remove(&request->link);
	if (!deserves_retry(request)) {
		list_push_back(&batch->reads, &request->link);
		return;
	}
	request->retried = true;
	unplan_read(request);
	plan_read(request, batch);
}

void reads_restart(struct io_file *file, struct batch *batch)
{
	struct list_node outdated, *node;
	list_init(&outdated);
	list_splice_back(&outdated, &file->reads);
	while ((node = list_pop_front(&outdated))) {
		struct read_request *request = list_entry(node, struct read_request, link);
		unplan_read(request);
		plan_read(request, batch);
	}
}

void reads_unblock(struct io_file *file, struct batch *batch)
{
	list_for_each_safe (at, &file->blocked) {
		struct read_request *request = list_entry(at, struct read_request, link);
		if (writes_touch(file, request->offset, request_end(file, request)))
			continue;
		list_remove(&request->link);
		plan_read(request, batch);
	}
}

uint64_t fetch_ahead(struct io_handle *handle, uint64_t from, uint64_t to, struct batch *batch)
{
	struct io_file *file = handle->file;
	if (writes_touch(file, from, to))
		return from;
	while (from < to) {
		uint64_t gap_end;
		struct extent *extent = cache_find(file, from, &gap_end);
		if (!extent) {
			uint64_t end = MIN(gap_end, to);
			uint32_t length = (uint32_t)MIN(end - from, file->io->max_read);
			extent = fetch_start(handle, from, length, true, batch);
			if (!extent)
				return from;
			atomic_fetch_add(&file->io->counters.ahead_bytes, length);
		}
		from = extent->offset + extent->length;
	}
	return to;
}
