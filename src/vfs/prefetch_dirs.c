/*
 * Trees: which directories to list ahead. A program that walks a tree visits a directory's
 * subdirectories in some order, and before the next one all that is below it. So the walk goes
 * on from the directory that is visited now: down through what is listed already, then to those
 * behind it in its parent, and so on upwards; what is not listed yet on this way is.
 */
#include <stdlib.h>
#include <string.h>

#include "vfs/prefetch_internal.h"

/* ---- places ahead; nodes.lock ---- */

/* It is ahead no more: lets the listing go, which stays in the cache if it is complete. */
static void leave_ahead(struct prefetch *prefetch, struct node *dir)
{
	struct place *place = dir->place;
	list_remove(&dir->of_places);
	prefetch->ahead_count--;
	place->ahead = false;
	struct listing *listing = place->listing;
	place->listing = NULL;
	if (!listing)
		return;
	bool over = listing_leave(listing) || listing_is_broken(listing);
	if (dir->listing == listing && over)
		dircache_drop(prefetch->vfs, dir);
	else if (dir->listing == listing)
		dircache_account(prefetch->vfs, dir);
	listing_unref(listing);
}

static void give_up(struct prefetch *prefetch, struct node *dir)
{
	leave_ahead(prefetch, dir);
	place_remove(dir);
	node_drop(&prefetch->vfs->nodes, dir);
}

static void count_wasted(struct prefetch *prefetch, unsigned count)
{
	LOCK_SCOPE(&prefetch->lock);
	pace_wasted(&prefetch->dir_pace, count);
}

/* True when nobody can be answered by what was listed ahead for it. */
static bool is_void(struct prefetch *prefetch, struct node *dir)
{
	const struct listing *listing = dir->place->listing;
	return listing && dircache_fresh(prefetch->vfs, dir, clock_now_ns(), NULL) != listing;
}

void places_ahead_purge(struct prefetch *prefetch)
{
	unsigned wasted = 0;
	list_for_each_safe (at, &prefetch->ahead) {
		struct node *dir = list_entry(at, struct node, of_places);
		if (!is_void(prefetch, dir))
			continue;
		give_up(prefetch, dir);
		wasted++;
	}
	if (wasted)
		count_wasted(prefetch, wasted);
}

void places_ahead_drop(struct prefetch *prefetch)
{
	list_for_each_safe (at, &prefetch->ahead)
		give_up(prefetch, list_entry(at, struct node, of_places));
}

static size_t bytes_ahead(const struct prefetch *prefetch)
{
	size_t bytes = 0;
	list_for_each (at, &prefetch->ahead) {
		const struct place *place = list_entry(at, struct node, of_places)->place;
		if (place->listing)
			bytes += listing_bytes(place->listing);
	}
	return bytes;
}

/* ---- the walk; nodes.lock ---- */

/* A directory to list. */
struct errand {
	struct node *dir; /* referenced */
	char *path;
	uint64_t stamp;
};

struct walk {
	struct prefetch *prefetch;
	enum order_kind kind;
	unsigned width; /* places ahead there may still be */
	unsigned steps; /* directories that may still be looked at */
	struct errand errands[PREFETCH_DIRS_MAX];
	unsigned count;
};

/* The node of the subdirectory, made if the kernel does not know it; with a reference. */
static struct node *child_of(struct vfs *vfs, struct node *parent,
                             const struct order_item *item)
{
	struct nodes *nodes = &vfs->nodes;
	struct dentry *dentry = dentry_find(nodes, parent, item->name, item->length);
	if (dentry) {
		if (dentry->node && node_is_dir(dentry->node)) {
			node_hold(dentry->node);
			return dentry->node;
		}
		return NULL; /* it is something else by now, or gone */
	}
	struct node *node = node_make(nodes, parent, item->name, item->length, S_IFDIR);
	if (!node)
		return NULL;
	/* Answers about it are as old or new as they were without an entry. */
	dentry = dentry_find(nodes, parent, item->name, item->length);
	dentry->changed = parent->names_forgotten;
	return node;
}

/* Makes a place ahead for the directory, whose reference it takes over. */
static void add_errand(struct walk *walk, struct node *dir)
{
	struct prefetch *prefetch = walk->prefetch;
	struct vfs *vfs = prefetch->vfs;
	char *path = NULL;
	if (node_path(&vfs->nodes, dir, NULL, &path) < 0 || !place_add(prefetch, dir)) {
		free(path);
		node_drop(&vfs->nodes, dir);
		return;
	}
	dir->place->ahead = true;
	list_push_back(&prefetch->ahead, &dir->of_places);
	prefetch->ahead_count++;
	LOCK_SCOPE(&prefetch->lock);
	dir->place->number = pace_issue(&prefetch->dir_pace);
	node_hold(dir);
	walk->errands[walk->count++] =
	    (struct errand){.dir = dir, .path = path, .stamp = nodes_stamp(&vfs->nodes)};
}

static bool goes_on(const struct walk *walk)
{
	return walk->width > 0 && walk->steps > 0;
}

static void walk_from(struct walk *walk, struct node *dir, size_t from, unsigned depth);

/* A subdirectory on the way, held by the caller. */
static void pass(struct walk *walk, struct node *dir, unsigned depth)
{
	struct vfs *vfs = walk->prefetch->vfs;
	walk->steps--;
	bool ahead = dir->place && dir->place->ahead;
	if (ahead)
		walk->width--;
	if (ahead || dircache_fresh(vfs, dir, clock_now_ns(), NULL)) {
		if (depth < PREFETCH_DEPTH_MAX)
			walk_from(walk, dir, 0, depth + 1);
		return;
	}
	if (dir->place) /* visited before, and not listed since */
		return;
	walk->width--;
	node_hold(dir);
	add_errand(walk, dir);
}

/* All subdirectories of the directory from this position on, and what is below them. */
static void walk_from(struct walk *walk, struct node *dir, size_t from, unsigned depth)
{
	struct vfs *vfs = walk->prefetch->vfs;
	if (!dir->place || !dir->place->dirs)
		return;
	const struct order *dirs = dir->place->dirs;
	for (size_t at = from; at < order_count(dirs) && goes_on(walk); at++) {
		struct order_item item = order_at(dirs, walk->kind, (uint32_t)at);
		struct node *child = child_of(vfs, dir, &item);
		if (!child)
			continue;
		pass(walk, child, depth);
		node_drop(&vfs->nodes, child);
	}
}

/* Down from the directory, then on behind it, upwards. */
static void walk_on(struct walk *walk, struct node *dir)
{
	walk_from(walk, dir, 0, 0);
	const struct dentry *dentry;
	for (; goes_on(walk) && (dentry = first_name(dir)); dir = dentry->parent) {
		const struct place *place = dentry->parent->place;
		uint32_t positions[ORDER_KINDS];
		if (!place || !place->dirs ||
		    !order_find(place->dirs, dentry->name, dentry->length, positions))
			return;
		walk_from(walk, dentry->parent, (size_t)positions[walk->kind] + 1, 0);
	}
}

/* ---- a visit ---- */

/* The place was ahead: it is visited now. */
static void use(struct prefetch *prefetch, struct node *dir, bool cached)
{
	struct place *place = dir->place;
	bool good = cached && place->listing && dir->listing == place->listing;
	bool waited = good && !listing_is_complete(place->listing);
	uint64_t number = place->number;
	leave_ahead(prefetch, dir);
	place_enlist(prefetch, dir);
	node_drop(&prefetch->vfs->nodes, dir);
	LOCK_SCOPE(&prefetch->lock);
	if (good)
		pace_used(&prefetch->dir_pace, number, waited);
	else
		pace_wasted(&prefetch->dir_pace, 1);
}

/* The way back up is kept however many directories are visited below. */
static void keep_ancestors(struct prefetch *prefetch, const struct node *dir)
{
	for (struct node *up = node_parent(dir); up; up = node_parent(up))
		if (up->place)
			place_visit(prefetch, up);
}

/* Notes the visit, and where it goes by an order sets off to what follows. */
static void note_visit(struct walk *walk, struct node *dir, bool cached)
{
	struct prefetch *prefetch = walk->prefetch;
	if (dir->place && dir->place->ahead) {
		use(prefetch, dir, cached);
	} else {
		struct place *place = place_visit(prefetch, dir);
		if (place && !(cached && dir->listing &&
		               listing_version(dir->listing) == place->version))
			place_reset(place);
	}
	keep_ancestors(prefetch, dir);
	const struct dentry *dentry = first_name(dir);
	struct place *parent = dentry ? dentry->parent->place : NULL;
	uint32_t positions[ORDER_KINDS], furthest;
	if (!parent || !parent->dirs ||
	    !order_find(parent->dirs, dentry->name, dentry->length, positions))
		return;
	int kind =
	    sequence_note(&parent->dir_sequence, &prefetch->dir_momentum, positions, &furthest);
	places_ahead_purge(prefetch);
	pthread_mutex_lock(&prefetch->lock);
	walk->width = pace_visit(&prefetch->dir_pace, kind >= 0);
	pthread_mutex_unlock(&prefetch->lock);
	if (!walk->width || bytes_ahead(prefetch) >
	                        prefetch->vfs->config.dir_cache_bytes / PREFETCH_DIR_CACHE_PART)
		return;
	walk->kind = (enum order_kind)kind;
	walk->width = MIN(walk->width, PREFETCH_DIRS_MAX);
	walk->steps = PREFETCH_STEPS_MAX;
	if (prefetch->ahead_count < PREFETCH_DIRS_MAX)
		walk_on(walk, dir);
}

/* ---- without locks ---- */

/* The places whose orders can be made by now, and that of `dir`'s parent; each held. */
static unsigned collect_unordered(struct prefetch *prefetch, struct node *dir,
                                  struct node **found, unsigned room)
{
	unsigned count = 0;
	NODES_SCOPE(&prefetch->vfs->nodes);
	const struct dentry *dentry = dir ? first_name(dir) : NULL;
	if (dentry && dentry->parent->place && !dentry->parent->place->orders_tried)
		found[count++] = dentry->parent;
	list_for_each (at, &prefetch->ahead) {
		struct node *ahead = list_entry(at, struct node, of_places);
		const struct place *place = ahead->place;
		if (count < room && !place->orders_tried && place->listing &&
		    listing_is_complete(place->listing))
			found[count++] = ahead;
	}
	for (unsigned i = 0; i < count; i++)
		node_hold(found[i]);
	return count;
}

void places_make_orders(struct prefetch *prefetch, struct node *dir)
{
	struct node *found[PREFETCH_DIRS_MAX + 1];
	unsigned count = collect_unordered(prefetch, dir, found, ARRAY_LEN(found));
	for (unsigned i = 0; i < count; i++)
		place_make_orders(prefetch, found[i]);
	NODES_SCOPE(&prefetch->vfs->nodes);
	for (unsigned i = 0; i < count; i++)
		node_drop(&prefetch->vfs->nodes, found[i]);
}

/* Sends for the listing and gives it to the place, if that still waits for it. */
static void run_errand(struct prefetch *prefetch, struct errand *errand)
{
	struct vfs *vfs = prefetch->vfs;
	struct node *dir = errand->dir;
	struct listing *listing =
	    listing_start_ahead(vfs->remote, errand->path, errand->stamp, PREFETCH_LISTING_MAX);
	free(errand->path);
	nodes_lock(&vfs->nodes);
	struct place *place = dir->place;
	bool wanted = place && place->ahead && !place->listing;
	if (wanted && listing && !dir->listing && dir->names_changed < errand->stamp) {
		dircache_put(vfs, dir, listing);
		place->listing = listing;
		listing = NULL;
	} else if (wanted) {
		give_up(prefetch, dir);
	}
	if (listing)
		listing_leave(listing);
	node_drop(&vfs->nodes, dir);
	nodes_unlock(&vfs->nodes);
	listing_unref(listing);
}

void prefetch_dir_opened(struct vfs *vfs, struct node *node, bool cached)
{
	struct prefetch *prefetch = vfs->prefetch;
	if (!prefetch->dirs_on && !prefetch->files_on)
		return;
	struct walk walk = {.prefetch = prefetch};
	if (prefetch->dirs_on)
		places_make_orders(prefetch, node);
	nodes_lock(&vfs->nodes);
	note_visit(&walk, node, cached);
	nodes_unlock(&vfs->nodes);
	for (unsigned i = 0; i < walk.count; i++)
		run_errand(prefetch, &walk.errands[i]);
}
