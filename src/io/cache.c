/* The received bytes of a file: blocks of sorted extents. */
#include <stdlib.h>

#include "io/internal.h"

/* The extents of one aligned range of BLOCK_SIZE bytes; exists while it has some. */
struct block {
	uint64_t index;
	struct list_node extents; /* struct extent, by offset */
};

static bool match_block(const void *entry, const void *key)
{
	return ((const struct block *)entry)->index == *(const uint64_t *)key;
}

static struct block *find_block(struct io_file *file, uint64_t index)
{
	return map_find(&file->blocks, map_hash_int(index), match_block, &index);
}

static struct block *need_block(struct io_file *file, uint64_t index)
{
	struct block *block = find_block(file, index);
	if (block)
		return block;
	block = malloc(sizeof(*block));
	if (!block || !map_add(&file->blocks, map_hash_int(index), block)) {
		free(block);
		return NULL;
	}
	block->index = index;
	list_init(&block->extents);
	return block;
}

static void release_block_if_empty(struct io_file *file, struct block *block)
{
	if (!list_empty(&block->extents))
		return;
	map_remove(&file->blocks, map_hash_int(block->index), block);
	free(block);
}

static uint64_t extent_end(const struct extent *extent)
{
	return extent->offset + extent->length;
}

struct extent *cache_find(struct io_file *file, uint64_t offset, uint64_t *gap_end)
{
	uint64_t index = offset / BLOCK_SIZE;
	*gap_end = (index + 1) * BLOCK_SIZE;
	struct block *block = find_block(file, index);
	if (!block)
		return NULL;
	list_for_each (at, &block->extents) {
		struct extent *extent = list_entry(at, struct extent, in_block);
		if (extent->offset > offset) {
			*gap_end = extent->offset;
			return NULL;
		}
		if (extent_end(extent) > offset)
			return extent;
	}
	return NULL;
}

static struct extent *extent_alloc(struct io_file *file, uint64_t offset, uint32_t length)
{
	struct extent *extent = calloc(1, sizeof(*extent));
	if (!extent)
		return NULL;
	extent->file = file;
	extent->offset = offset;
	extent->length = length;
	list_init(&extent->in_block);
	list_init(&extent->in_file);
	list_init(&extent->lru);
	list_init(&extent->waiters);
	return extent;
}

static struct extent *extent_new(struct io_file *file, uint64_t offset, uint32_t length)
{
	struct extent *extent = extent_alloc(file, offset, length);
	if (!extent)
		return NULL;
	extent->data = buffers_get(&file->io->buffers, length);
	if (!extent->data) {
		free(extent);
		return NULL;
	}
	extent->capacity = (uint32_t)buffers_capacity(length);
	extent->pending = true;
	atomic_init(&extent->refs, 2);
	return extent;
}

static void insert_sorted(struct block *block, struct extent *extent)
{
	struct list_node *at = block->extents.next;
	while (at != &block->extents &&
	       list_entry(at, struct extent, in_block)->offset < extent->offset)
		at = at->next;
	list_insert_between(&extent->in_block, at->prev, at);
	extent->block = block;
}

struct extent *cache_add(struct io_file *file, uint64_t offset, uint32_t length, bool must)
{
	struct io *io = file->io;
	size_t capacity = buffers_capacity(length);
	if (!budget_take(io, file, capacity, must))
		return NULL;
	/* after the eviction, which releases blocks that it empties */
	struct block *block = need_block(file, offset / BLOCK_SIZE);
	struct extent *extent = block ? extent_new(file, offset, length) : NULL;
	if (extent) {
		insert_sorted(block, extent);
		list_push_back(&file->extents, &extent->in_file);
		return extent;
	}
	budget_give(io, capacity);
	if (block)
		release_block_if_empty(file, block);
	return NULL;
}

bool cache_put(struct io_file *file, uint64_t offset, char *data, uint32_t length,
               uint32_t capacity)
{
	struct block *block = need_block(file, offset / BLOCK_SIZE);
	struct extent *extent = block ? extent_alloc(file, offset, length) : NULL;
	if (!extent) {
		if (block)
			release_block_if_empty(file, block);
		return false;
	}
	extent->data = data;
	extent->capacity = capacity;
	atomic_init(&extent->refs, 1);
	insert_sorted(block, extent);
	list_push_back(&file->extents, &extent->in_file);
	cache_ready(extent);
	return true;
}

void cache_unlink(struct extent *extent)
{
	struct block *block = extent->block;
	list_remove(&extent->in_block);
	list_remove(&extent->in_file);
	extent->block = NULL;
	release_block_if_empty(extent->file, block);
	if (atomic_load(&extent->ahead))
		atomic_fetch_add(&extent->file->io->counters.ahead_wasted, extent->length);
}

void cache_remove(struct extent *extent)
{
	if (!extent->block)
		return;
	struct io *io = extent->file->io;
	pthread_mutex_lock(&io->lock);
	list_remove(&extent->lru);
	pthread_mutex_unlock(&io->lock);
	cache_unlink(extent);
	extent_unref(extent);
}

void cache_drop(struct io_file *file, uint64_t start, uint64_t end)
{
	if ((end - start) / BLOCK_SIZE > file->blocks.count) {
		list_for_each_safe (at, &file->extents) {
			struct extent *extent = list_entry(at, struct extent, in_file);
			if (extent->offset < end && extent_end(extent) > start)
				cache_remove(extent);
		}
		return;
	}
	while (start < end) {
		uint64_t next;
		struct extent *extent = cache_find(file, start, &next);
		if (extent) {
			next = extent_end(extent);
			cache_remove(extent);
		}
		start = next;
	}
}

void cache_ready(struct extent *extent)
{
	extent->pending = false;
	if (!extent->block)
		return;
	struct io *io = extent->file->io;
	LOCK_SCOPE(&io->lock);
	list_push_back(&io->lru, &extent->lru);
}

void cache_used(struct extent *extent, bool finished)
{
	struct io *io = extent->file->io;
	if (atomic_exchange(&extent->ahead, false))
		atomic_fetch_add(&io->counters.ahead_used, extent->length);
	LOCK_SCOPE(&io->lock);
	if (list_empty(&extent->lru))
		return;
	list_remove(&extent->lru);
	if (finished)
		list_push_front(&io->lru, &extent->lru);
	else
		list_push_back(&io->lru, &extent->lru);
}

void extent_unref(struct extent *extent)
{
	if (atomic_fetch_sub(&extent->refs, 1) != 1)
		return;
	struct io *io = extent->file->io;
	buffers_put(&io->buffers, extent->data, extent->capacity);
	budget_give(io, extent->capacity);
	free(extent);
}
