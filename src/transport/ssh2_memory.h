/*
 * The allocator of one libssh2 session: blocks of a few sizes go to free lists instead of back
 * to malloc, because libssh2 allocates and frees a block for every packet. Not thread-safe: a
 * session belongs to one thread.
 */
#ifndef MOORFS_TRANSPORT_SSH2_MEMORY_H
#define MOORFS_TRANSPORT_SSH2_MEMORY_H

#include <stdbool.h>
#include <stddef.h>

enum { SSH2_MEMORY_CLASSES = 12 };

struct ssh2_block;

/* Start with all zero. */
struct ssh2_memory {
	struct ssh2_block *free[SSH2_MEMORY_CLASSES];
	struct ssh2_block *used; /* all blocks that are handed out */
	size_t cached_bytes;     /* in the free lists */
	bool wipe;               /* overwrite what is freed: secrets pass through */
};

void *ssh2_memory_alloc(struct ssh2_memory *memory, size_t size);
void *ssh2_memory_realloc(struct ssh2_memory *memory, void *pointer, size_t size);
void ssh2_memory_free(struct ssh2_memory *memory, void *pointer);

/* Gives everything back, also what is still in use: libssh2 1.10 forgets a block at each
 * rekeying. */
void ssh2_memory_release(struct ssh2_memory *memory);

#endif
