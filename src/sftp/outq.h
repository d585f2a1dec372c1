/*
 * The bytes waiting to be sent: headers that were encoded here, and data of writes that stays
 * where it is until it has been sent. Pure: it hands out iovecs and is told how much went.
 * Used by one thread.
 */
#ifndef MOORFS_SFTP_OUTQ_H
#define MOORFS_SFTP_OUTQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/bytes.h"

struct outq_segment {
	const char *data; /* caller's bytes; NULL: the segment lies in `headers` */
	char *owned;      /* a copy of ours that holds `data`, freed with the segment */
	uint64_t at;      /* without data: position in the stream of all headers */
	size_t length;
	uint32_t id; /* the request it belongs to */
	bool tried;  /* was given to the transport: has to be sent whole */
};

struct outq {
	struct bytes headers;
	uint64_t headers_base; /* position of headers.data[0] in the stream of all headers */
	struct outq_segment *segments;
	size_t head, count, capacity; /* segments[head] is the first of `count` */
	size_t queued_bytes;
};

/* Told once for every request whose first bytes are about to be given to the transport. */
typedef void outq_tried_fn(void *context, uint32_t id);

void outq_init(struct outq *queue);
void outq_release(struct outq *queue);

/* Forgets everything, keeps the memory. */
void outq_clear(struct outq *queue);

/*
 * Adds a packet: the caller takes mark = queue->headers.length, encodes into queue->headers and
 * calls this. `data` (may be NULL) is sent behind it. 0, or -ENOMEM with the encoded bytes
 * taken back.
 */
int outq_add(struct outq *queue, size_t mark, uint32_t id, const void *data, size_t length);

bool outq_empty(const struct outq *queue);

/* Fills up to `max` iovecs with what comes first; returns how many. */
int outq_gather(struct outq *queue, struct iovec *iov, int max, outq_tried_fn *tried,
                void *context);

/* The transport took the first `length` bytes. */
void outq_consume(struct outq *queue, size_t length);

/*
 * The request is of no interest any more and its data is about to go away. Takes it out if
 * nothing of it was given to the transport; else copies what is still to be sent. 1: taken out
 * (or it was not queued at all); 0: will be sent; -ENOMEM: nothing changed.
 */
int outq_abandon(struct outq *queue, uint32_t id);

#endif
