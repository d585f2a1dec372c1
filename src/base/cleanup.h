/*
 * Scope-bound release of memory, descriptors and locks, by the compiler's cleanup attribute:
 * every return path of a function releases what it took.
 */
#ifndef MOORFS_BASE_CLEANUP_H
#define MOORFS_BASE_CLEANUP_H

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static inline void cleanup_free_fn(void *pointer_to_pointer)
{
	free(*(void **)pointer_to_pointer);
}

static inline void cleanup_close_fn(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void cleanup_unlock_fn(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}

/* The variable's pointer is freed when its scope ends. */
#define CLEANUP_FREE __attribute__((cleanup(cleanup_free_fn)))
/* The variable's descriptor (unless negative) is closed when its scope ends. */
#define CLEANUP_CLOSE __attribute__((cleanup(cleanup_close_fn)))

#define CLEANUP_JOIN_(a, b) a##b
#define CLEANUP_JOIN(a, b)  CLEANUP_JOIN_(a, b)

/* Holds the mutex until the enclosing scope ends. */
#define LOCK_SCOPE(mutex)                                                  \
	pthread_mutex_t *CLEANUP_JOIN(lock_scope_, __LINE__)               \
	    __attribute__((cleanup(cleanup_unlock_fn), unused)) = (mutex); \
	pthread_mutex_lock(CLEANUP_JOIN(lock_scope_, __LINE__))

#define CONTAINER_OF(pointer, type, member) \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))
#define MIN(a, b)        ((a) < (b) ? (a) : (b))
#define MAX(a, b)        ((a) > (b) ? (a) : (b))

#endif
