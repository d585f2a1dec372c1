/* Places, and the life and the counters of the prefetch. */
#include "vfs/prefetch_internal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/bytes.h"

/* ---- places ---- */

static void place_free(struct place *place)
{
	order_free(place->files);
	order_free(place->dirs);
	free(place->opened);
	free(place);
}

void place_reset(struct place *place)
{
	order_free(place->files);
	order_free(place->dirs);
	free(place->opened);
	place->files = place->dirs = NULL;
	place->opened = NULL;
	place->orders_tried = false;
	place->file_sequence = place->dir_sequence = (struct sequence){0};
}

struct place *place_add(struct prefetch *prefetch, struct node *dir)
{
	struct place *place = calloc(1, sizeof(*place));
	if (!place)
		return NULL;
	place->prefetch = prefetch;
	dir->place = place;
	return place;
}

void place_remove(struct node *dir)
{
	struct prefetch *prefetch = dir->place->prefetch;
	pthread_mutex_lock(&prefetch->lock);
	parcels_drop_of(prefetch, dir);
	pthread_mutex_unlock(&prefetch->lock);
	place_free(dir->place);
	dir->place = NULL;
}

void place_enlist(struct prefetch *prefetch, struct node *dir)
{
	unsigned count = atomic_fetch_add(&prefetch->visited_count, 1);
	if (count >= PREFETCH_PLACES_MAX && !list_empty(&prefetch->visited)) {
		struct node *oldest =
		    list_entry(prefetch->visited.next, struct node, of_places);
		list_remove(&oldest->of_places);
		atomic_fetch_sub(&prefetch->visited_count, 1);
		place_remove(oldest);
	}
	list_push_back(&prefetch->visited, &dir->of_places);
}

struct place *place_visit(struct prefetch *prefetch, struct node *dir)
{
	if (dir->place && dir->place->ahead)
		return dir->place;
	if (dir->place) {
		list_remove(&dir->of_places);
		atomic_fetch_sub(&prefetch->visited_count, 1);
	} else if (!place_add(prefetch, dir)) {
		return NULL;
	}
	place_enlist(prefetch, dir);
	return dir->place;
}

void prefetch_bury(struct node *node)
{
	if (!node->place)
		return;
	/* One ahead keeps its node, so this was among the visited, and left the list at its
	 * death. */
	atomic_fetch_sub(&node->place->prefetch->visited_count, 1);
	place_remove(node);
}

/* ---- orders ---- */

struct orders {
	struct order *files, *dirs;
	uint64_t version;
};

static bool add_record(struct orders *orders, const struct listing_record *record,
                       uint64_t inode)
{
	mode_t kind = record->attr_known ? attr_kind(&record->attr) : 0;
	if (!S_ISREG(kind) && !S_ISDIR(kind))
		return true;
	uint64_t size = record->attr.valid & ATTR_SIZE ? record->attr.size : UINT64_MAX;
	return order_add(S_ISREG(kind) ? orders->files : orders->dirs, record->name,
	                 record->length, size, inode_hash(inode, record->name, record->length));
}

static bool fill_orders(struct orders *orders, struct listing *listing, uint64_t inode)
{
	struct listing_reader reader = {0};
	struct listing_record record;
	uint64_t number = 0, found;
	bool good = orders->files && orders->dirs;
	while (good && listing_read(listing, &reader, number, &record, &found) == 1) {
		good = add_record(orders, &record, inode);
		number = found + 1;
	}
	listing_reader_release(&reader);
	return good && order_finish(orders->files) && order_finish(orders->dirs);
}

static void make_orders(struct orders *orders, struct listing *listing, uint64_t inode)
{
	*orders = (struct orders){
	    .files = order_new(), .dirs = order_new(), .version = listing_version(listing)};
	if (fill_orders(orders, listing, inode))
		return;
	order_free(orders->files);
	order_free(orders->dirs);
	orders->files = orders->dirs = NULL;
}

/* A listing that can be copied; a reference. nodes.lock held. */
static struct listing *usable_listing(const struct node *dir)
{
	const struct place *place = dir->place;
	if (!place || place->orders_tried)
		return NULL;
	struct listing *listing = place->listing ? place->listing : dir->listing;
	if (!listing || !listing_is_complete(listing) || listing_is_broken(listing) ||
	    listing_is_spilled(listing))
		return NULL;
	return listing_ref(listing);
}

void place_make_orders(struct prefetch *prefetch, struct node *dir)
{
	struct nodes *nodes = &prefetch->vfs->nodes;
	nodes_lock(nodes);
	struct listing *listing = usable_listing(dir);
	nodes_unlock(nodes);
	if (!listing)
		return;
	struct orders orders;
	make_orders(&orders, listing, dir->ino);
	listing_unref(listing);
	nodes_lock(nodes);
	struct place *place = dir->place;
	if (place && !place->orders_tried) {
		place->files = orders.files;
		place->dirs = orders.dirs;
		place->version = orders.version;
		place->orders_tried = true;
		orders.files = orders.dirs = NULL;
	}
	nodes_unlock(nodes);
	order_free(orders.files);
	order_free(orders.dirs);
}

/* ---- life ---- */

int prefetch_init(struct vfs *vfs)
{
	const struct vfs_config *config = &vfs->config;
	struct prefetch *prefetch = calloc(1, sizeof(*prefetch));
	if (!prefetch)
		return -ENOMEM;
	vfs->prefetch = prefetch;
	prefetch->vfs = vfs;
	prefetch->files_on = config->prefetch && attr_timeout_min(vfs) > 0;
	/* What is listed ahead is kept for its visit as any listing is. */
	prefetch->dirs_on = config->prefetch && config->dir_cache &&
	                    (config->dir_timeout_ns || attr_timeout_min(vfs) > 0);
	list_init(&prefetch->visited);
	list_init(&prefetch->ahead);
	list_init(&prefetch->order);
	list_init(&prefetch->flight);
	map_init(&prefetch->parcels);
	pace_init(&prefetch->file_pace, PREFETCH_FILES_MAX);
	pace_init(&prefetch->dir_pace, PREFETCH_DIRS_MAX);
	pthread_mutex_init(&prefetch->lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&prefetch->answered, &attr);
	pthread_condattr_destroy(&attr);
	return 0;
}

void prefetch_stop(struct vfs *vfs)
{
	struct prefetch *prefetch = vfs->prefetch;
	nodes_lock(&vfs->nodes);
	prefetch->files_on = prefetch->dirs_on = false;
	places_ahead_drop(prefetch);
	nodes_unlock(&vfs->nodes);
	parcels_stop(prefetch);
}

void prefetch_free(struct vfs *vfs)
{
	struct prefetch *prefetch = vfs->prefetch;
	if (!prefetch)
		return;
	map_release(&prefetch->parcels);
	pthread_cond_destroy(&prefetch->answered);
	pthread_mutex_destroy(&prefetch->lock);
	free(prefetch);
	vfs->prefetch = NULL;
}

static void report_pace(struct bytes *out, const char *what, const struct pace *pace)
{
	bytes_addf(out,
	           "prefetch of %s: %" PRIu64 " asked for, %" PRIu64 " used (%" PRIu64
	           " waited for), %" PRIu64 " unused, width %u\n",
	           what, pace->issued, pace->hits, pace->waits, pace->waste, pace->width);
}

void prefetch_report(struct vfs *vfs, struct bytes *out)
{
	struct prefetch *prefetch = vfs->prefetch;
	nodes_lock(&vfs->nodes);
	unsigned ahead = prefetch->ahead_count;
	nodes_unlock(&vfs->nodes);
	LOCK_SCOPE(&prefetch->lock);
	report_pace(out, "files", &prefetch->file_pace);
	report_pace(out, "directories", &prefetch->dir_pace);
	bytes_addf(out,
	           "prefetch: %u files under way, %zu kept in %" PRIu64 " bytes, %" PRIu64
	           " refused, %" PRIu64 " too old or changed, %u directories ahead\n",
	           prefetch->under_way, prefetch->parcels.count, prefetch->bytes,
	           prefetch->refused, prefetch->late, ahead);
}
