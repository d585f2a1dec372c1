/*
 * Hash table of pointers, open addressing. The owner supplies hash values and tells by a
 * callback whether an entry is the one sought, so entries keep their own keys. Not
 * thread-safe.
 */
#ifndef MOORFS_BASE_MAP_H
#define MOORFS_BASE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct map_slot {
	uint64_t hash;
	void *entry; /* NULL: free */
};

struct map {
	struct map_slot *slots;
	size_t capacity; /* a power of two, or 0 */
	size_t count;
};

typedef bool map_match_fn(const void *entry, const void *key);

void map_init(struct map *map);

/* Frees the table, not the entries. */
void map_release(struct map *map);

/* The entry with this hash that `match` accepts for `key`, or NULL. */
void *map_find(const struct map *map, uint64_t hash, map_match_fn *match, const void *key);

/* Adds the entry; the caller knows it is not in yet. False when memory is out. */
bool map_add(struct map *map, uint64_t hash, void *entry);

/* Takes this very entry out; false when it was not in. */
bool map_remove(struct map *map, uint64_t hash, const void *entry);

/* Iterates: *at starts at 0; NULL at the end. The map must not change meanwhile. */
void *map_next(const struct map *map, size_t *at);

/*
 * SipHash-2-4 of the bytes with the process's random key: names that a server chooses cannot
 * make the table slow. Any thread.
 */
uint64_t map_hash(const void *bytes, size_t length, uint64_t seed);

/* A mixed integer as hash value. */
uint64_t map_hash_int(uint64_t value);

#endif
