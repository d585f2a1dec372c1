#include "base/map.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

void map_init(struct map *map)
{
	memset(map, 0, sizeof(*map));
}

void map_release(struct map *map)
{
	free(map->slots);
	map_init(map);
}

void *map_find(const struct map *map, uint64_t hash, map_match_fn *match, const void *key)
{
	if (!map->capacity)
		return NULL;
	size_t mask = map->capacity - 1;
	for (size_t i = hash & mask; map->slots[i].entry; i = (i + 1) & mask)
		if (map->slots[i].hash == hash && match(map->slots[i].entry, key))
			return map->slots[i].entry;
	return NULL;
}

static void place(struct map_slot *slots, size_t mask, uint64_t hash, void *entry)
{
	size_t i = hash & mask;
	while (slots[i].entry)
		i = (i + 1) & mask;
	slots[i] = (struct map_slot){hash, entry};
}

static bool resize(struct map *map, size_t capacity)
{
	struct map_slot *slots = calloc(capacity, sizeof(*slots));
	if (!slots)
		return false;
	for (size_t i = 0; i < map->capacity; i++)
		if (map->slots[i].entry)
			place(slots, capacity - 1, map->slots[i].hash, map->slots[i].entry);
	free(map->slots);
	map->slots = slots;
	map->capacity = capacity;
	return true;
}

bool map_add(struct map *map, uint64_t hash, void *entry)
{
	if ((map->count + 1) * 4 > map->capacity * 3 &&
	    !resize(map, map->capacity ? map->capacity * 2 : 16))
		return false;
	place(map->slots, map->capacity - 1, hash, entry);
	map->count++;
	return true;
}

/* Closes the gap at `hole` by moving back entries whose probe sequence crosses it. */
static void close_gap(struct map *map, size_t hole)
{
	size_t mask = map->capacity - 1;
	for (size_t i = (hole + 1) & mask; map->slots[i].entry; i = (i + 1) & mask) {
		size_t home = map->slots[i].hash & mask;
		if (((i - home) & mask) >= ((i - hole) & mask)) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole].entry = NULL;
}

bool map_remove(struct map *map, uint64_t hash, const void *entry)
{
	if (!map->capacity)
		return false;
	size_t mask = map->capacity - 1;
	for (size_t i = hash & mask; map->slots[i].entry; i = (i + 1) & mask) {
		if (map->slots[i].entry != entry)
			continue;
		close_gap(map, i);
		map->count--;
		/* A failed shrink only costs memory. */
		if (map->capacity > 64 && map->count * 8 < map->capacity)
			resize(map, map->capacity / 2);
		return true;
	}
	return false;
}

void *map_next(const struct map *map, size_t *at)
{
	while (*at < map->capacity) {
		void *entry = map->slots[(*at)++].entry;
		if (entry)
			return entry;
	}
	return NULL;
}

static uint64_t hash_key[2];
static pthread_once_t hash_key_once = PTHREAD_ONCE_INIT;

static void make_hash_key(void)
{
	if (getrandom(hash_key, sizeof(hash_key), 0) != (ssize_t)sizeof(hash_key))
		hash_key[0] = clock_now_ns();
}

static uint64_t rotl(uint64_t x, int b)
{
	return x << b | x >> (64 - b);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[0] = rotl(v[0], 32);
	v[2] += v[3];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[2] = rotl(v[2], 32);
}

uint64_t map_hash(const void *bytes, size_t length, uint64_t seed)
{
	pthread_once(&hash_key_once, make_hash_key);
	uint64_t k0 = hash_key[0] ^ seed, k1 = hash_key[1];
	uint64_t v[4] = {k0 ^ UINT64_C(0x736f6d6570736575), k1 ^ UINT64_C(0x646f72616e646f6d),
	                 k0 ^ UINT64_C(0x6c7967656e657261), k1 ^ UINT64_C(0x7465646279746573)};
	const unsigned char *in = bytes;
	size_t left = length;
	for (; left >= 8; left -= 8, in += 8) {
		uint64_t m;
		memcpy(&m, in, 8);
		v[3] ^= m;
		sip_round(v);
		sip_round(v);
		v[0] ^= m;
	}
	uint64_t last = (uint64_t)length << 56;
	for (size_t i = 0; i < left; i++)
		last |= (uint64_t)in[i] << (8 * i);
	v[3] ^= last;
	sip_round(v);
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

uint64_t map_hash_int(uint64_t value)
{
	return map_hash(&value, sizeof(value), 0);
}
