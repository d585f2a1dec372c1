#include "transport/ssh2_memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/secret.h"

/* Idle blocks beyond this go back to malloc: the peak of a burst is not kept for ever. */
enum { CACHED_MAX_BYTES = 8 << 20 };

/* A packet of 32 KiB of data with its overhead fits the class of 36 KiB. */
static const size_t class_bytes[SSH2_MEMORY_CLASSES] = {
    32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 36864, 65536,
};

/* In front of each block. */
struct ssh2_block {
	struct ssh2_block *next;  /* in a free list, or in the list of used ones */
	struct ssh2_block **link; /* what points to this one in the list of used ones */
	size_t size;              /* usable bytes behind this header */
	_Alignas(max_align_t) unsigned char bytes[];
};

static struct ssh2_block *block_of(void *pointer)
{
	return (struct ssh2_block *)(void *)((char *)pointer -
	                                     offsetof(struct ssh2_block, bytes));
}

/* The smallest class that holds `size`, or SSH2_MEMORY_CLASSES. */
static size_t class_for(size_t size)
{
	size_t i = 0;
	while (i < SSH2_MEMORY_CLASSES && class_bytes[i] < size)
		i++;
	return i;
}

static void *hand_out(struct ssh2_memory *memory, struct ssh2_block *block)
{
	block->next = memory->used;
	block->link = &memory->used;
	if (block->next)
		block->next->link = &block->next;
	memory->used = block;
	return block->bytes;
}

void *ssh2_memory_alloc(struct ssh2_memory *memory, size_t size)
{
	size_t class = class_for(size);
	struct ssh2_block *block = NULL;
	if (class < SSH2_MEMORY_CLASSES) {
		size = class_bytes[class];
		block = memory->free[class];
	}
	if (block) {
		memory->free[class] = block->next;
		memory->cached_bytes -= size;
		return hand_out(memory, block);
	}
	if (size > SIZE_MAX - sizeof(*block))
		return NULL;
	block = malloc(sizeof(*block) + size);
	if (!block)
		return NULL;
	block->size = size;
	return hand_out(memory, block);
}

void ssh2_memory_free(struct ssh2_memory *memory, void *pointer)
{
	if (!pointer)
		return;
	struct ssh2_block *block = block_of(pointer);
	if (memory->wipe)
		secret_wipe(pointer, block->size);
	*block->link = block->next;
	if (block->next)
		block->next->link = block->link;
	size_t class = class_for(block->size);
	if (class == SSH2_MEMORY_CLASSES ||
	    memory->cached_bytes + block->size > CACHED_MAX_BYTES) {
		free(block);
		return;
	}
	block->next = memory->free[class];
	memory->free[class] = block;
	memory->cached_bytes += block->size;
}

void *ssh2_memory_realloc(struct ssh2_memory *memory, void *pointer, size_t size)
{
	if (!pointer)
		return ssh2_memory_alloc(memory, size);
	size_t old = block_of(pointer)->size;
	if (size <= old)
		return pointer;
	void *moved = ssh2_memory_alloc(memory, size);
	if (!moved)
		return NULL;
	memcpy(moved, pointer, old);
	ssh2_memory_free(memory, pointer);
	return moved;
}

static void free_list(struct ssh2_block **list)
{
	while (*list) {
		struct ssh2_block *block = *list;
		*list = block->next;
		free(block);
	}
}

void ssh2_memory_release(struct ssh2_memory *memory)
{
	for (size_t i = 0; i < ARRAY_LEN(memory->free); i++)
		free_list(&memory->free[i]);
	free_list(&memory->used);
	memory->cached_bytes = 0;
}
