/* Small files: parcels, and which are sent for. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vfs/prefetch_internal.h"

enum parcel_state { PARCEL_UNDER_WAY, PARCEL_HERE, PARCEL_REFUSED };

struct parcel {
	unsigned refs; /* the map's, the fetch's, and of those who wait */
	struct prefetch *prefetch;
	struct list_node of_order;  /* while in the map */
	struct list_node of_batch;  /* until it is sent */
	struct list_node of_flight; /* while it is under way, also when it was dropped */
	bool in_map;
	enum parcel_state state;
	const struct node *dir; /* never followed */
	struct io_whole *whole; /* NULL: given away */
	uint64_t room;          /* bytes it takes */
	uint64_t number;        /* in the pace */
	uint64_t asked_ns, stamp, moves;
	uint64_t came_ns;
	size_t length;
	char name[];
};

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

static struct parcel *find(const struct prefetch *prefetch, const struct node *dir,
                           const char *name, size_t length)
{
	if (!prefetch->parcels.count)
		return NULL;
	const struct key key = {dir, name, length};
	return map_find(&prefetch->parcels, hash_of(dir, name, length), match, &key);
}

static void unref(struct parcel *parcel)
{
	if (--parcel->refs)
		return;
	if (parcel->whole)
		io_whole_free(parcel->whole);
	free(parcel);
}

/* Takes it out of the map; whoever waits for it gives up. */
static void take_out(struct parcel *parcel)
{
	struct prefetch *prefetch = parcel->prefetch;
	map_remove(&prefetch->parcels, hash_of(parcel->dir, parcel->name, parcel->length),
	           parcel);
	list_remove(&parcel->of_order);
	parcel->in_map = false;
	prefetch->bytes -= parcel->room;
	pthread_cond_broadcast(&prefetch->answered);
	unref(parcel);
}

static void drop_unused(struct parcel *parcel)
{
	pace_wasted(&parcel->prefetch->file_pace, 1);
	take_out(parcel);
}

static uint64_t valid_ns(const struct prefetch *prefetch)
{
	return MIN(PREFETCH_VALID_NS, attr_timeout_min(prefetch->vfs));
}

static bool is_too_old(const struct parcel *parcel, uint64_t now_ns)
{
	return parcel->state == PARCEL_HERE &&
	       !timeout_left(parcel->came_ns, valid_ns(parcel->prefetch), now_ns);
}

void parcels_purge(struct prefetch *prefetch, uint64_t now_ns)
{
	list_for_each_safe (at, &prefetch->order) {
		struct parcel *parcel = list_entry(at, struct parcel, of_order);
		if (is_too_old(parcel, now_ns))
			drop_unused(parcel);
	}
}

void parcels_drop_of(struct prefetch *prefetch, const struct node *dir)
{
	list_for_each_safe (at, &prefetch->order) {
		struct parcel *parcel = list_entry(at, struct parcel, of_order);
		if (parcel->dir == dir)
			drop_unused(parcel);
	}
}

void prefetch_drop(struct vfs *vfs, const struct node *dir, const char *name, size_t length)
{
	struct prefetch *prefetch = vfs->prefetch;
	LOCK_SCOPE(&prefetch->lock);
	struct parcel *parcel = find(prefetch, dir, name, length);
	if (parcel)
		take_out(parcel);
}

void parcels_stop(struct prefetch *prefetch)
{
	LOCK_SCOPE(&prefetch->lock);
	list_for_each_safe (at, &prefetch->order)
		take_out(list_entry(at, struct parcel, of_order));
	/* None ends meanwhile: that takes the lock. */
	list_for_each (at, &prefetch->flight)
		io_whole_cancel(list_entry(at, struct parcel, of_flight)->whole);
	while (!list_empty(&prefetch->flight))
		pthread_cond_wait(&prefetch->answered, &prefetch->lock);
}

/* ---- fetching ---- */

static void came(void *context, int err)
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
		drop_unused(parcel);
	}
	pthread_cond_broadcast(&prefetch->answered);
	unref(parcel);
}

static void send_batch(struct list_node *batch)
{
	struct list_node *link;
	while ((link = list_pop_front(batch))) {
		struct parcel *parcel = list_entry(link, struct parcel, of_batch);
		io_whole_fetch(parcel->whole, came, parcel);
	}
}

/* ---- choosing ---- */

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
	if (!map_add(&prefetch->parcels, hash_of(parcel->dir, parcel->name, parcel->length),
	             parcel)) {
		parcel->refs = 1;
		unref(parcel);
		return false;
	}
	parcel->refs = 2;
	parcel->in_map = true;
	list_push_back(&prefetch->order, &parcel->of_order);
	list_push_back(&prefetch->flight, &parcel->of_flight);
	list_push_back(&choice->batch, &parcel->of_batch);
	prefetch->under_way++;
	prefetch->under_way_bytes += room;
	prefetch->bytes += room;
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
		    find(choice->prefetch, choice->dir, item.name, item.length) ||
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

static struct dentry *name_of(const struct node *node)
{
	return list_empty(&node->names) ? NULL
	                                : list_entry(node->names.next, struct dentry, of_node);
}

/* The directory whose orders should be made before the visit is noted; referenced, or NULL. */
static struct node *begin_visit(struct prefetch *prefetch, struct node *node)
{
	const struct dentry *dentry = name_of(node);
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
	const struct dentry *dentry = name_of(node);
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

/* ---- using ---- */

/* Waits until the parcel has come or is of no use; false when the call was interrupted. */
static bool wait_for(struct prefetch *prefetch, const struct parcel *parcel)
{
	while (parcel->in_map && parcel->state == PARCEL_UNDER_WAY) {
		struct timespec until = clock_to_timespec(clock_now_ns() + 100 * NS_PER_MS);
		if (!pthread_cond_timedwait(&prefetch->answered, &prefetch->lock, &until))
			continue;
		/* Who interrupts may hold locks of other floors. */
		pthread_mutex_unlock(&prefetch->lock);
		bool interrupted = remote_scope_interrupted();
		pthread_mutex_lock(&prefetch->lock);
		if (interrupted)
			return false;
	}
	return true;
}

/*
 * The parcel of the name once it has come, referenced; NULL when there is none. Whether it was
 * waited for is told by *waited.
 */
static struct parcel *await(struct prefetch *prefetch, const struct node *dir, const char *name,
                            size_t length, bool *waited)
{
	struct parcel *parcel = find(prefetch, dir, name, length);
	if (!parcel)
		return NULL;
	parcel->refs++;
	*waited = parcel->state == PARCEL_UNDER_WAY;
	if (wait_for(prefetch, parcel) && parcel->in_map && parcel->state == PARCEL_HERE)
		return parcel;
	unref(parcel);
	return NULL;
}

/* Whether the parcel tells of the file as it may be seen now; fills the answer. nodes.lock. */
static bool confirms(struct vfs *vfs, const struct node *node, const struct parcel *parcel,
                     struct answer *answer)
{
	*answer = (struct answer){.attr = *io_whole_attr(parcel->whole),
	                          .asked_ns = parcel->asked_ns,
	                          .stamp = parcel->stamp};
	return !is_too_old(parcel, clock_now_ns()) && !vfs->nodes.renames &&
	       vfs->nodes.moves == parcel->moves && attr_confirms(node, answer);
}

/* Copies the node's name and holds its directory; NULL when it has none. */
static struct node *copy_name(struct vfs *vfs, const struct node *node, char *name,
                              size_t *length)
{
	NODES_SCOPE(&vfs->nodes);
	const struct dentry *dentry = name_of(node);
	if (!dentry)
		return NULL;
	memcpy(name, dentry->name, dentry->length + 1);
	*length = dentry->length;
	node_hold(dentry->parent);
	return dentry->parent;
}

static void drop_dir(struct vfs *vfs, struct node *dir)
{
	NODES_SCOPE(&vfs->nodes);
	node_drop(&vfs->nodes, dir);
}

/* With prefetch.lock: the parcel's contents, once, for whoever comes first. */
static struct io_whole *open_parcel(struct parcel *parcel, bool good, bool waited)
{
	struct prefetch *prefetch = parcel->prefetch;
	struct io_whole *whole = NULL;
	if (parcel->in_map && good) {
		whole = parcel->whole;
		parcel->whole = NULL;
		pace_used(&prefetch->file_pace, parcel->number, waited);
		take_out(parcel);
	} else if (parcel->in_map) {
		prefetch->late++;
		drop_unused(parcel);
	}
	unref(parcel);
	return whole;
}

struct io_whole *prefetch_take(struct vfs *vfs, struct node *node, struct answer *answer)
{
	struct prefetch *prefetch = vfs->prefetch;
	char name[NAME_LENGTH_MAX + 1];
	size_t length;
	bool waited;
	struct node *dir = copy_name(vfs, node, name, &length);
	if (!dir)
		return NULL;
	pthread_mutex_lock(&prefetch->lock);
	struct parcel *parcel = await(prefetch, dir, name, length, &waited);
	pthread_mutex_unlock(&prefetch->lock);
	struct io_whole *whole = NULL;
	if (parcel) {
		nodes_lock(&vfs->nodes);
		pthread_mutex_lock(&prefetch->lock);
		bool good = parcel->in_map && confirms(vfs, node, parcel, answer);
		whole = open_parcel(parcel, good, waited);
		pthread_mutex_unlock(&prefetch->lock);
		nodes_unlock(&vfs->nodes);
	}
	drop_dir(vfs, dir);
	return whole;
}

bool prefetch_confirms(struct vfs *vfs, struct node *parent, const char *name,
                       struct answer *answer)
{
	struct prefetch *prefetch = vfs->prefetch;
	size_t length = strlen(name);
	bool waited;
	pthread_mutex_lock(&prefetch->lock);
	struct parcel *parcel = await(prefetch, parent, name, length, &waited);
	pthread_mutex_unlock(&prefetch->lock);
	if (!parcel)
		return false;
	NODES_SCOPE(&vfs->nodes);
	LOCK_SCOPE(&prefetch->lock);
	const struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, length);
	/* The fetch follows a symbolic link, which a lookup must not: only the file that is
	 * known is answered for. */
	bool good = dentry && dentry->node && node_is_regular(dentry->node) && parcel->in_map &&
	            confirms(vfs, dentry->node, parcel, answer) &&
	            attr_is_same_file(&dentry->node->attr, &answer->attr);
	unref(parcel);
	return good;
}
