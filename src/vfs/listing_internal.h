/* The inside of a listing, shared by what fills and patches it and what reads it. */
#ifndef MOORFS_VFS_LISTING_INTERNAL_H
#define MOORFS_VFS_LISTING_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/types.h>

#include "base/map.h"
#include "vfs/listing.h"

enum { RECORD_GONE = 1 << 0, RECORD_ATTR_STALE = 1 << 1 };

/* One name in a segment; the next begins at the next multiple of eight behind it. */
struct record {
	struct remote_attr attr;
	uint16_t length;
	uint16_t flags;
	char name[];
};

struct segment {
	char *data; /* NULL: spilled */
	size_t used;
	uint64_t first, count; /* numbers of its records */
	uint64_t asked_ns;
	off_t spilled_at;
};

struct listing {
	atomic_uint refs;
	uint64_t started_ns, stamp;
	size_t memory_limit;

	pthread_mutex_t lock; /* protects all below */
	pthread_cond_t more;
	struct segment *segments;
	size_t count, capacity;
	size_t resident; /* bytes of segments in memory */
	size_t first_resident;
	struct map index; /* records by name, as long as nothing was spilled */
	int spill_fd;
	uint64_t spill_bytes, version;
	unsigned users;
	bool ended, abandoned, out_of_date;
	bool modest; /* has not been asked for by more than the one who lists ahead */
	bool told;   /* of an impossible name */
	int err;
	struct remote_attr own; /* the directory's; valid once it has ended well */
	struct op op;
	char *path;
};

static inline size_t record_size(size_t name_length)
{
	return (sizeof(struct record) + name_length + 7) & ~(size_t)7;
}

/* The record at this place of the segment with this index. Lock held. */
static inline void listing_copy_record(const struct listing *listing, size_t segment,
                                       const struct record *from, struct listing_record *to)
{
	to->attr = from->attr;
	to->attr_known = !(from->flags & RECORD_ATTR_STALE);
	to->asked_ns = listing->segments[segment].asked_ns;
	to->length = from->length;
	memcpy(to->name, from->name, from->length);
	to->name[from->length] = '\0';
}

#endif
