/* Parcels: the table of files that were fetched ahead or are under way. */
#include <stdlib.h>
#include <string.h>

#include "vfs/prefetch_internal.h"

/* ---- the table, with prefetch.lock ---- */

struct key {
	const struct node *dir;
	const char *name;
	size_t length;
};

static uint64_t hash_of(const struct node *dir, const char *name, size_t length)
{
	return map_hash(name, length, (uint64_t)(uintptr_t)dir);
}

static bool match(const void *entry, const void *key)
{
	const struct parcel *parcel = entry;
	const struct key *want = key;
	return parcel->dir == want->dir && parcel->length == want->length &&
	       memcmp(parcel->name, want->name, want->length) == 0;
}

struct parcel *parcel_find(const struct prefetch *prefetch, const struct node *dir,
                           const char *name, size_t length)
{
	if (!prefetch->parcels.count)
		return NULL;
	const struct key key = {dir, name, length};
	return map_find(&prefetch->parcels, hash_of(dir, name, length), match, &key);
}

void parcel_unref(struct parcel *parcel)
{
	if (--parcel->refs)
		return;
	if (parcel->whole)
		io_whole_free(parcel->whole);
	free(parcel);
}

bool parcel_enter(struct parcel *parcel)
{
	struct prefetch *prefetch = parcel->prefetch;
	parcel->refs = 1;
	if (!map_add(&prefetch->parcels, hash_of(parcel->dir, parcel->name, parcel->length),
	             parcel)) {
		parcel_unref(parcel);
		return false;
	}
	parcel->refs++;
	parcel->in_map = true;
	list_push_back(&prefetch->order, &parcel->of_order);
	list_push_back(&prefetch->flight, &parcel->of_flight);
	prefetch->under_way++;
	prefetch->under_way_bytes += parcel->room;
	prefetch->bytes += parcel->room;
	return true;
}

/* Takes it out of the map; whoever waits for it gives up. */
void parcel_take_out(struct parcel *parcel)
{
	struct prefetch *prefetch = parcel->prefetch;
	map_remove(&prefetch->parcels, hash_of(parcel->dir, parcel->name, parcel->length),
	           parcel);
	list_remove(&parcel->of_order);
	parcel->in_map = false;
	prefetch->bytes -= parcel->room;
	pthread_cond_broadcast(&prefetch->answered);
	parcel_unref(parcel);
}

void parcel_drop_unused(struct parcel *parcel)
{
	pace_wasted(&parcel->prefetch->file_pace, 1);
	parcel_take_out(parcel);
}

static uint64_t valid_ns(const struct prefetch *prefetch)
{
	return MIN(PREFETCH_VALID_NS, attr_timeout_min(prefetch->vfs));
}

bool parcel_is_too_old(const struct parcel *parcel, uint64_t now_ns)
{
	return parcel->state == PARCEL_HERE &&
	       !timeout_left(parcel->came_ns, valid_ns(parcel->prefetch), now_ns);
}

void parcels_purge(struct prefetch *prefetch, uint64_t now_ns)
{
	list_for_each_safe (at, &prefetch->order) {
		struct parcel *parcel = list_entry(at, struct parcel, of_order);
		if (parcel_is_too_old(parcel, now_ns))
			parcel_drop_unused(parcel);
	}
}

void parcels_drop_of(struct prefetch *prefetch, const struct node *dir)
{
	list_for_each_safe (at, &prefetch->order) {
		struct parcel *parcel = list_entry(at, struct parcel, of_order);
		if (parcel->dir == dir)
			parcel_drop_unused(parcel);
	}
}

void prefetch_drop(struct vfs *vfs, const struct node *dir, const char *name, size_t length)
{
	struct prefetch *prefetch = vfs->prefetch;
	LOCK_SCOPE(&prefetch->lock);
	struct parcel *parcel = parcel_find(prefetch, dir, name, length);
	if (parcel)
		parcel_take_out(parcel);
}

void parcels_stop(struct prefetch *prefetch)
{
	LOCK_SCOPE(&prefetch->lock);
	list_for_each_safe (at, &prefetch->order)
		parcel_take_out(list_entry(at, struct parcel, of_order));
	/* None ends meanwhile: that takes the lock. */
	list_for_each (at, &prefetch->flight)
		io_whole_cancel(list_entry(at, struct parcel, of_flight)->whole);
	while (!list_empty(&prefetch->flight))
		pthread_cond_wait(&prefetch->answered, &prefetch->lock);
}

/* ---- fetching ---- */

void parcel_came(void *context, int err)
{
	struct parcel *parcel = context;
	struct prefetch *prefetch = parcel->prefetch;
	LOCK_SCOPE(&prefetch->lock);
	list_remove(&parcel->of_flight);
	prefetch->under_way--;
	prefetch->under_way_bytes -= parcel->room;
	parcel->came_ns = clock_now_ns();
	parcel->state = err ? PARCEL_REFUSED : PARCEL_HERE;
	if (err && parcel->in_map) {
		prefetch->refused++;
		parcel_drop_unused(parcel);
	}
	pthread_cond_broadcast(&prefetch->answered);
	parcel_unref(parcel);
}
