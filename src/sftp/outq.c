#include "sftp/outq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

enum {
	HEADERS_COMPACT = 64 * 1024, /* sent headers kept before the rest is moved down */
	SEGMENTS_FIRST = 256,
};

void outq_init(struct outq *queue)
{
	memset(queue, 0, sizeof(*queue));
}

void outq_clear(struct outq *queue)
{
	for (size_t i = 0; i < queue->count; i++)
		free(queue->segments[queue->head + i].owned);
	queue->head = queue->count = queue->queued_bytes = 0;
	bytes_clear(&queue->headers);
	queue->headers_base = 0;
}

void outq_release(struct outq *queue)
{
	outq_clear(queue);
	free(queue->segments);
	bytes_release(&queue->headers);
	outq_init(queue);
}

bool outq_empty(const struct outq *queue)
{
	return queue->count == 0;
}

/* Room for two more segments behind the last. */
static bool reserve_segments(struct outq *queue)
{
	if (queue->head + queue->count + 2 <= queue->capacity)
		return true;
	if (queue->head >= queue->count + 2) {
		memcpy(queue->segments, queue->segments + queue->head,
		       queue->count * sizeof(queue->segments[0]));
		queue->head = 0;
		return true;
	}
	size_t capacity = queue->capacity ? queue->capacity * 2 : SEGMENTS_FIRST;
	struct outq_segment *segments =
	    realloc(queue->segments, capacity * sizeof(queue->segments[0]));
	if (!segments)
		return false;
	queue->segments = segments;
	queue->capacity = capacity;
	return true;
}

static void push_segment(struct outq *queue, const struct outq_segment *segment)
{
	queue->segments[queue->head + queue->count++] = *segment;
	queue->queued_bytes += segment->length;
}

int outq_add(struct outq *queue, size_t mark, uint32_t id, const void *data, size_t length)
{
	if (queue->headers.failed || !reserve_segments(queue)) {
		queue->headers.length = mark;
		queue->headers.failed = false;
		return -ENOMEM;
	}
	push_segment(queue, &(struct outq_segment){.at = queue->headers_base + mark,
	                                           .length = queue->headers.length - mark,
	                                           .id = id});
	if (length > 0)
		push_segment(queue,
		             &(struct outq_segment){.data = data, .length = length, .id = id});
	return 0;
}

int outq_gather(struct outq *queue, struct iovec *iov, int max, outq_tried_fn *tried,
                void *context)
{
	int used = 0;
	for (size_t i = 0; i < queue->count; i++) {
		struct outq_segment *segment = &queue->segments[queue->head + i];
		if (segment->length == 0)
			continue;
		const char *from = segment->data;
		if (!from)
			from = queue->headers.data + (segment->at - queue->headers_base);
		struct iovec *last = used ? &iov[used - 1] : NULL;
		bool joins = last && (char *)last->iov_base + last->iov_len == from;
		if (!joins && used == max)
			break;
		if (joins)
			last->iov_len += segment->length;
		else
			iov[used++] = (struct iovec){(void *)(uintptr_t)from, segment->length};
		if (!segment->tried)
			tried(context, segment->id);
		segment->tried = true;
	}
	return used;
}

/* Moves the unsent headers down when much before them has been sent. */
static void compact_headers(struct outq *queue)
{
	if (queue->count == 0) {
		queue->head = 0;
		queue->headers_base += queue->headers.length;
		bytes_clear(&queue->headers);
		return;
	}
	size_t sent = queue->headers.length;
	for (size_t i = 0; i < queue->count; i++) {
		const struct outq_segment *segment = &queue->segments[queue->head + i];
		if (!segment->data) {
			sent = (size_t)(segment->at - queue->headers_base);
			break;
		}
	}
	if (sent < HEADERS_COMPACT || sent < queue->headers.length / 2)
		return;
	queue->headers.length -= sent;
	memmove(queue->headers.data, queue->headers.data + sent, queue->headers.length);
	queue->headers_base += sent;
}

void outq_consume(struct outq *queue, size_t length)
{
	queue->queued_bytes -= length;
	while (queue->count > 0) {
		struct outq_segment *segment = &queue->segments[queue->head];
		size_t part = MIN(length, segment->length);
		segment->length -= part;
		if (segment->data)
			segment->data += part;
		else
			segment->at += part;
		length -= part;
		if (segment->length > 0)
			break;
		free(segment->owned);
		queue->head++;
		queue->count--;
	}
	compact_headers(queue);
}

int outq_abandon(struct outq *queue, uint32_t id)
{
	bool tried = false;
	size_t first = queue->count;
	for (size_t i = 0; i < queue->count; i++) {
		const struct outq_segment *segment = &queue->segments[queue->head + i];
		if (segment->id != id)
			continue;
		if (first == queue->count)
			first = i;
		/* Its header may be gone already, with only data left. */
		tried = tried || segment->tried || (segment->data && i == first);
	}
	for (size_t i = first; i < queue->count; i++) {
		struct outq_segment *segment = &queue->segments[queue->head + i];
		if (segment->id != id)
			continue;
		if (!tried) {
			queue->queued_bytes -= segment->length;
			segment->length = 0;
		} else if (segment->data && !segment->owned && segment->length > 0) {
			char *copy = malloc(segment->length);
			if (!copy)
				return -ENOMEM;
			memcpy(copy, segment->data, segment->length);
			segment->data = segment->owned = copy;
		}
	}
	return tried ? 0 : 1;
}
