#include "io/buffers.h"

#include <stdlib.h>

#include "base/cleanup.h"

/* Idle buffers are poisoned, so that AddressSanitizer sees their use. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BUFFERS_POISON 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define BUFFERS_POISON 1
#endif
#if defined(BUFFERS_POISON)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

/* Lies at the start of an idle buffer. */
struct buffer_link {
	struct buffer_link *next;
};

static unsigned class_of(size_t length)
{
	unsigned shift = BUFFER_MIN_SHIFT;
	while ((size_t)1 << shift < length)
		shift++;
	return shift - BUFFER_MIN_SHIFT;
}

size_t buffers_capacity(size_t length)
{
	return (size_t)BUFFER_MIN << class_of(length);
}

void buffers_init(struct buffers *buffers, size_t idle_limit)
{
	*buffers = (struct buffers){.idle_limit = idle_limit};
	pthread_mutex_init(&buffers->lock, NULL);
}

static void *pop_idle(struct buffers *buffers, unsigned class)
{
	struct buffer_link *link = buffers->idle[class];
	if (!link)
		return NULL;
	size_t capacity = (size_t)BUFFER_MIN << class;
	ASAN_UNPOISON_MEMORY_REGION(link, capacity);
	buffers->idle[class] = link->next;
	buffers->idle_bytes -= capacity;
	return link;
}

void buffers_release(struct buffers *buffers)
{
	for (unsigned class = 0; class < BUFFER_CLASSES; class ++)
		for (void *data; (data = pop_idle(buffers, class));)
			free(data);
	pthread_mutex_destroy(&buffers->lock);
}

void *buffers_get(struct buffers *buffers, size_t length)
{
	unsigned class = class_of(length);
	if (class >= BUFFER_CLASSES)
		return NULL;
	pthread_mutex_lock(&buffers->lock);
	void *data = pop_idle(buffers, class);
	pthread_mutex_unlock(&buffers->lock);
	return data ? data : aligned_alloc(BUFFER_MIN, (size_t)BUFFER_MIN << class);
}

void buffers_put(struct buffers *buffers, void *data, size_t capacity)
{
	if (!data)
		return;
	pthread_mutex_lock(&buffers->lock);
	if (buffers->idle_bytes + capacity <= buffers->idle_limit) {
		struct buffer_link *link = data;
		unsigned class = class_of(capacity);
		link->next = buffers->idle[class];
		buffers->idle[class] = link;
		buffers->idle_bytes += capacity;
		ASAN_POISON_MEMORY_REGION(data, capacity);
		data = NULL;
	}
	pthread_mutex_unlock(&buffers->lock);
	free(data);
}
