/* One account for all file data of the mount, and the eviction that keeps it. */
#include "io/internal.h"

/* Victims that are looked at before giving up: others hold their locks or their contents. */
enum { MAX_LOOKS = 64 };

/*
 * Takes the extent out of the cache if nobody uses it. What was read ahead and is still to come
 * for a reader goes only for a reader that waits. io->lock held, and `held`'s lock.
 */
static bool evict(struct extent *extent, struct io_file *held, bool must)
{
	struct io_file *file = extent->file;
	if (file != held && pthread_mutex_trylock(&file->lock))
		return false;
	bool wanted = atomic_load(&extent->ahead) && !list_empty(&file->handles);
	bool unused = atomic_load(&extent->refs) == 1 && (must || !wanted);
	if (unused) {
		list_remove(&extent->lru);
		cache_unlink(extent);
		atomic_fetch_add(&file->io->counters.evictions, 1);
	}
	if (file != held)
		pthread_mutex_unlock(&file->lock);
	if (unused)
		extent_unref(extent);
	return unused;
}

static void make_room(struct io *io, struct io_file *held, bool must)
{
	LOCK_SCOPE(&io->lock);
	int looks = 0;
	list_for_each_safe (at, &io->lru) {
		if (atomic_load(&io->used) <= io->config.cache_size || looks == MAX_LOOKS)
			return;
		if (!evict(list_entry(at, struct extent, lru), held, must))
			looks++;
	}
}

bool budget_take(struct io *io, struct io_file *file, size_t bytes, bool must)
{
	if (atomic_fetch_add(&io->used, bytes) + bytes <= io->config.cache_size)
		return true;
	make_room(io, file, must);
	if (must || atomic_load(&io->used) <= io->config.cache_size)
		return true;
	atomic_fetch_sub(&io->used, bytes);
	return false;
}

void budget_give(struct io *io, size_t bytes)
{
	atomic_fetch_sub(&io->used, bytes);
}
