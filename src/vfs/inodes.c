#include "vfs/inodes.h"

#include <stdlib.h>

struct exception {
	uint64_t key, number;
	bool linked;
	struct list_node order;
};

/* Owners in `live` are found by their number alone, so the slot holds both. */
struct live {
	uint64_t number;
	void *owner;
};

void inodes_init(struct inodes *inodes)
{
	map_init(&inodes->live);
	map_init(&inodes->by_key);
	map_init(&inodes->by_number);
	list_init(&inodes->order);
}

void inodes_release(struct inodes *inodes)
{
	struct list_node *link;
	while ((link = list_pop_front(&inodes->order)))
		free(list_entry(link, struct exception, order));
	void *live;
	for (size_t at = 0; (live = map_next(&inodes->live, &at));)
		free(live);
	map_release(&inodes->live);
	map_release(&inodes->by_key);
	map_release(&inodes->by_number);
}

/* Spreads the bits; a bijection. */
static uint64_t mix(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	return x ^ x >> 33;
}

uint64_t inode_hash(uint64_t parent, const char *name, size_t length)
{
	/* FNV-1a: fixed, as the numbers must not change from mount to mount. */
	uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ mix(parent);
	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)name[i]) * UINT64_C(0x100000001b3);
	hash = mix(hash);
	return hash > INODE_ROOT ? hash : hash + 2;
}

static bool match_live(const void *entry, const void *key)
{
	return ((const struct live *)entry)->number == *(const uint64_t *)key;
}

static bool match_key(const void *entry, const void *key)
{
	return ((const struct exception *)entry)->key == *(const uint64_t *)key;
}

static bool match_number(const void *entry, const void *key)
{
	return ((const struct exception *)entry)->number == *(const uint64_t *)key;
}

static struct exception *find_exception(const struct inodes *inodes, uint64_t key)
{
	return map_find(&inodes->by_key, map_hash_int(key), match_key, &key);
}

static void *find_live(const struct inodes *inodes, uint64_t number)
{
	struct live *live = map_find(&inodes->live, map_hash_int(number), match_live, &number);
	return live ? live->owner : NULL;
}

static bool is_taken(const struct inodes *inodes, uint64_t number)
{
	return number <= INODE_ROOT || find_live(inodes, number) ||
	       map_find(&inodes->by_number, map_hash_int(number), match_number, &number);
}

static void drop(struct inodes *inodes, struct exception *exception)
{
	map_remove(&inodes->by_key, map_hash_int(exception->key), exception);
	map_remove(&inodes->by_number, map_hash_int(exception->number), exception);
	list_remove(&exception->order);
	free(exception);
}

static void set(struct inodes *inodes, uint64_t key, uint64_t number, bool linked)
{
	inodes_removed(inodes, key);
	if (inodes->by_key.count >= INODE_EXCEPTIONS_MAX)
		drop(inodes, list_entry(inodes->order.next, struct exception, order));
	struct exception *exception = malloc(sizeof(*exception));
	if (!exception)
		return;
	*exception = (struct exception){.key = key, .number = number, .linked = linked};
	if (!map_add(&inodes->by_key, map_hash_int(key), exception)) {
		free(exception);
		return;
	}
	if (!map_add(&inodes->by_number, map_hash_int(number), exception)) {
		map_remove(&inodes->by_key, map_hash_int(key), exception);
		free(exception);
		return;
	}
	list_push_back(&inodes->order, &exception->order);
}

uint64_t inodes_peek(const struct inodes *inodes, uint64_t parent, const char *name,
                     size_t length)
{
	uint64_t key = inode_hash(parent, name, length);
	const struct exception *exception = find_exception(inodes, key);
	return exception ? exception->number : key;
}

uint64_t inodes_assign(struct inodes *inodes, uint64_t parent, const char *name, size_t length,
                       void **shared)
{
	*shared = NULL;
	uint64_t key = inode_hash(parent, name, length);
	const struct exception *exception = find_exception(inodes, key);
	if (exception) {
		void *owner = find_live(inodes, exception->number);
		if (owner && exception->linked)
			*shared = owner;
		if (!owner || exception->linked)
			return exception->number;
		/* Its owner has lost this name but lives: the name is another file now. */
	}
	uint64_t number = key;
	/* Names can be chosen to collide in the fixed hash, but not in the secret one. */
	for (unsigned tries = 0; is_taken(inodes, number); tries++)
		number = tries < 4 ? mix(number + UINT64_C(0x9e3779b97f4a7c15))
		                   : map_hash(name, length, parent ^ mix(number + tries));
	if (exception || number != key)
		set(inodes, key, number, false);
	return number;
}

void *inodes_shared(const struct inodes *inodes, uint64_t parent, const char *name,
                    size_t length)
{
	const struct exception *exception =
	    find_exception(inodes, inode_hash(parent, name, length));
	return exception && exception->linked ? find_live(inodes, exception->number) : NULL;
}

bool inodes_live_add(struct inodes *inodes, uint64_t number, void *owner)
{
	struct live *live = malloc(sizeof(*live));
	if (!live)
		return false;
	*live = (struct live){number, owner};
	if (map_add(&inodes->live, map_hash_int(number), live))
		return true;
	free(live);
	return false;
}

void inodes_live_remove(struct inodes *inodes, uint64_t number, const void *owner)
{
	struct live *live = map_find(&inodes->live, map_hash_int(number), match_live, &number);
	if (!live || live->owner != owner)
		return;
	map_remove(&inodes->live, map_hash_int(number), live);
	free(live);
}

void *inodes_next_live(const struct inodes *inodes, size_t *at)
{
	const struct live *live = map_next(&inodes->live, at);
	return live ? live->owner : NULL;
}

void inodes_moved(struct inodes *inodes, uint64_t old_key, uint64_t new_key, uint64_t number)
{
	const struct exception *old = find_exception(inodes, old_key);
	bool linked = old && old->linked;
	inodes_removed(inodes, old_key);
	inodes_removed(inodes, new_key);
	if (linked || new_key != number)
		set(inodes, new_key, number, linked);
}

void inodes_linked(struct inodes *inodes, uint64_t key, uint64_t other_key, uint64_t number)
{
	set(inodes, key, number, true);
	set(inodes, other_key, number, true);
}

struct tally {
	uint64_t number;
	unsigned links;
};

/* Counts the links of the number and never matches, so that all are visited. */
static bool count_link(const void *entry, const void *key)
{
	const struct exception *exception = entry;
	struct tally *tally = *(struct tally *const *)key;
	tally->links += exception->number == tally->number && exception->linked;
	return false;
}

unsigned inodes_link_count(const struct inodes *inodes, uint64_t number)
{
	struct tally tally = {.number = number}, *counted = &tally;
	map_find(&inodes->by_number, map_hash_int(number), count_link, &counted);
	return tally.links;
}

void inodes_removed(struct inodes *inodes, uint64_t key)
{
	struct exception *exception = find_exception(inodes, key);
	if (exception)
		drop(inodes, exception);
}
