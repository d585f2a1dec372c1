/*
 * Memory for file data: page-aligned buffers in sizes of powers of two, kept on free lists so
 * that a busy mount does not take and return pages of the system all the time. What lies idle
 * is bounded. Any thread.
 */
#ifndef MOORFS_IO_BUFFERS_H
#define MOORFS_IO_BUFFERS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum {
	BUFFER_MIN_SHIFT = 12,
	BUFFER_MAX_SHIFT = 20,
	BUFFER_CLASSES = BUFFER_MAX_SHIFT - BUFFER_MIN_SHIFT + 1,
	BUFFER_MIN = 1 << BUFFER_MIN_SHIFT,
	BUFFER_MAX = 1 << BUFFER_MAX_SHIFT,
};

struct buffer_link;

struct buffers {
	pthread_mutex_t lock; /* protects the fields below */
	struct buffer_link *idle[BUFFER_CLASSES];
	size_t idle_bytes, idle_limit;
};

void buffers_init(struct buffers *buffers, size_t idle_limit);
/* All buffers were put back. */
void buffers_release(struct buffers *buffers);

/* Size of the buffer that serves `length` bytes (1..BUFFER_MAX). */
size_t buffers_capacity(size_t length);

/* A buffer of buffers_capacity(length) bytes, contents undefined; NULL when memory is out. */
void *buffers_get(struct buffers *buffers, size_t length);
/* `capacity` is buffers_capacity() of the length it was got for. NULL is allowed. */
void buffers_put(struct buffers *buffers, void *data, size_t capacity);

#endif
