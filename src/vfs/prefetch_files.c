/* Small files: which are sent for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vfs/prefetch_internal.h"

/* One look for what to fetch next. */
struct choice {
	struct prefetch *prefetch;
	struct node *dir;
	char *dir_path;
	unsigned width;         /* files that may still be chosen */
	uint64_t ahead_bytes;   /* that the program may have to read before it comes to them */
	unsigned under_way_max; /* fetches, and their bytes */
	uint64_t under_way_bytes_max;
	int kind; /* the order that is proved; -1: none */
	struct list_node batch;
};

static void set_limits(struct choice *choice)
{
	struct vfs *vfs = choice->prefetch->vfs;
	struct remote_link link = {0};
	vfs->remote->link(vfs->remote, &link);
	choice->ahead_bytes = MIN(pace_ahead_bytes(&link), vfs->config.prefetch_bytes);
	choice->under_way_max = MAX(link.lanes, 1u) * PACE_PER_LANE;
	choice->under_way_bytes_max = pace_flight_bytes(&link);
}

/* Whether the file may be different on the server from what a program must see. */
static bool is_ours(const struct vfs *vfs, const struct node *dir, const char *name,
                    size_t length)
{
	const struct dentry *dentry = dentry_find(&vfs->nodes, dir, name, length);
	if (!dentry)
		return false;
	const struct node *node = dentry->node;
	return !node || !node_is_regular(node) || node->unsettled || attr_is_dirty(node);
}

static bool was_opened(const struct place *place, uint32_t index)
{
	return place->opened && place->opened[index / 8] & 1 << index % 8;
}

/* A file that is opened again begins a new pass. */
static void set_opened(struct place *place, uint32_t index)
{
	size_t size = order_count(place->files) / 8 + 1;
	if (!place->opened)
		place->opened = calloc(1, size);
	else if (was_opened(place, index))
		memset(place->opened, 0, size);
	if (place->opened)
		place->opened[index / 8] |= (uint8_t)(1 << index % 8);
}

static struct parcel *parcel_new(struct choice *choice, const struct order_item *item)
{
	struct vfs *vfs = choice->prefetch->vfs;
	CLEANUP_FREE char *path = NULL;
	const char *slash = choice->dir_path[1] ? "/" : "";
	if (asprintf(&path, "%s%s%s", choice->dir_path, slash, item->name) < 0) {
		path = NULL;
		return NULL;
	}
	struct parcel *parcel = calloc(1, sizeof(*parcel) + item->length + 1);
	if (parcel)
		parcel->whole = io_whole_new(vfs->io, path, item->size);
	if (!parcel || !parcel->whole) {
		free(parcel);
		return NULL;
	}
	parcel->prefetch = choice->prefetch;
	parcel->dir = choice->dir;
	parcel->room = io_whole_room(item->size);
	parcel->asked_ns = clock_now_ns();
	parcel->stamp = vfs->nodes.stamp;
	parcel->moves = vfs->nodes.moves;
	parcel->length = item->length;
	memcpy(parcel->name, item->name, item->length);
	return parcel;
}

/* Makes the parcel and counts it. False: there is no room for more. */
static bool choose_one(struct choice *choice, const struct order_item *item)
{
	struct prefetch *prefetch = choice->prefetch;
	uint64_t room = io_whole_room(item->size);
	if (prefetch->parcels.count >= PREFETCH_FILES_MAX ||
	    prefetch->under_way >= choice->under_way_max ||
	    prefetch->under_way_bytes + room > choice->under_way_bytes_max ||
	    prefetch->bytes + room > prefetch->vfs->config.prefetch_bytes)
		return false;
	struct parcel *parcel = parcel_new(choice, item);
	if (!parcel)
		return false;
	if (!parcel_enter(parcel))
		return false;
	list_push_back(&choice->batch, &parcel->of_batch);
	parcel->number = pace_issue(&prefetch->file_pace);
	return true;
}

/* Chooses from this position of the order on. With both locks. */
static void choose(struct choice *choice, const struct order *order, enum order_kind kind,
                   size_t from)
{
	const struct vfs *vfs = choice->prefetch->vfs;
	size_t count = order_count(order);
	for (size_t at = from; at < count && choice->width; at++, choice->width--) {
		struct order_item item = order_at(order, kind, (uint32_t)at);
		if (item.size > choice->ahead_bytes)
			return;
		choice->ahead_bytes -= item.size;
		if (item.size > IO_WHOLE_MAX || was_opened(choice->dir->place, item.index) ||
		    parcel_find(choice->prefetch, choice->dir, item.name, item.length) ||
		    is_ours(vfs, choice->dir, item.name, item.length))
			continue;
		if (!choose_one(choice, &item))
			return;
	}
}

/* Chooses in the directory. With both locks. */
static void choose_in(struct choice *choice, struct node *dir, size_t from)
{
	struct vfs *vfs = choice->prefetch->vfs;
	CLEANUP_FREE char *path = NULL;
	/* While a directory is being renamed paths are not certain. */
	if (vfs->nodes.renames || node_path(&vfs->nodes, dir, NULL, &path) < 0) {
		choice->width = 0;
		return;
	}
	choice->dir = dir;
	choice->dir_path = path;
	choose(choice, dir->place->files, (enum order_kind)choice->kind, from);
}

/* The visit is noted; what should follow in the directory is chosen. With nodes.lock. */
static void note_open(struct choice *choice, const struct dentry *dentry)
{
	struct prefetch *prefetch = choice->prefetch;
	struct place *place = dentry->parent->place;
	uint32_t positions[ORDER_KINDS];
	if (!place || !place->files ||
	    !order_find(place->files, dentry->name, dentry->length, positions))
		return;
	set_opened(place, positions[ORDER_LISTED]);
	uint32_t furthest = 0;
	choice->kind = sequence_note(&place->file_sequence, &prefetch->file_momentum, positions,
	                             &furthest);
	log_trace(LOG_VFS, "opened '%s', %u/%u/%u of its directory: order %d", dentry->name,
	          positions[ORDER_LISTED], positions[ORDER_BY_NAME], positions[ORDER_BY_INODE],
	          choice->kind);
	LOCK_SCOPE(&prefetch->lock);
	parcels_purge(prefetch, clock_now_ns());
	choice->width = pace_visit(&prefetch->file_pace, choice->kind >= 0);
	if (choice->width)
		choose_in(choice, dentry->parent, (size_t)furthest + 1);
}

/* Goes on in the directories that will be visited next. With nodes.lock. */
static void choose_ahead(struct choice *choice)
{
	struct prefetch *prefetch = choice->prefetch;
	bool all_listed = true;
	LOCK_SCOPE(&prefetch->lock);
	list_for_each (at, &prefetch->ahead) {
		struct node *dir = list_entry(at, struct node, of_places);
		if (!choice->width)
			return;
		if (dir->place->files)
			choose_in(choice, dir, 0);
		all_listed &= dir->place->orders_tried;
	}
	/* Nothing that is listed or being listed is left, and there would be room for more. */
	if (choice->width && all_listed)
		pace_hungry(&prefetch->dir_pace);
}

static void send_batch(struct list_node *batch)
{
	struct list_node *link;
	while ((link = list_pop_front(batch))) {
		struct parcel *parcel = list_entry(link, struct parcel, of_batch);
		io_whole_fetch(parcel->whole, parcel_came, parcel);
	}
}

/* The directory whose orders should be made before the visit is noted; referenced, or NULL. */
static struct node *begin_visit(struct prefetch *prefetch, struct node *node)
{
	const struct dentry *dentry = first_name(node);
	struct place *place = dentry ? place_visit(prefetch, dentry->parent) : NULL;
	if (!place || place->orders_tried || !dentry->parent->listing)
		return NULL;
	struct node *dir = dentry->parent;
	bool now = place->opened_file || momentum_is_proved(&prefetch->file_momentum) ||
	           listing_bytes(dir->listing) <= PREFETCH_EAGER_BYTES;
	place->opened_file = true;
	if (now)
		node_hold(dir);
	return now ? dir : NULL;
}

void prefetch_file_opened(struct vfs *vfs, struct node *node)
{
	struct prefetch *prefetch = vfs->prefetch;
	if (!prefetch->files_on)
		return;
	struct choice choice = {.prefetch = prefetch, .kind = -1};
	list_init(&choice.batch);
	set_limits(&choice);
	nodes_lock(&vfs->nodes);
	struct node *dir = begin_visit(prefetch, node);
	nodes_unlock(&vfs->nodes);
	if (dir)
		place_make_orders(prefetch, dir);
	nodes_lock(&vfs->nodes);
	const struct dentry *dentry = first_name(node);
	if (dentry)
		note_open(&choice, dentry);
	if (dir)
		node_drop(&vfs->nodes, dir);
	bool go_on = choice.width && prefetch->ahead_count;
	nodes_unlock(&vfs->nodes);
	if (go_on) {
		places_make_orders(prefetch, NULL);
		nodes_lock(&vfs->nodes);
		choose_ahead(&choice);
		nodes_unlock(&vfs->nodes);
	}
	send_batch(&choice.batch);
}
