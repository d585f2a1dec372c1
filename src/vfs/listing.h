/*
 * The contents of a directory: a packed log of records in the server's order, filled by one
 * OP_LIST on a lane's thread while readers follow. A record's number never changes, so it
 * serves as the offset of readdir. Beyond a memory limit full segments move to an unlinked
 * temporary file; such a listing can be read, but not be asked for a name.
 *
 * Our own changes are patched into a complete listing: names are appended or marked as gone.
 *
 * Threads: any; each listing has a lock of its own, taken behind the nodes' lock. A listing
 * lives while it has references; one that is being filled has one of its own.
 */
#ifndef MOORFS_VFS_LISTING_H
#define MOORFS_VFS_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "remote/remote.h"

struct listing;

enum { LISTING_SEGMENT = 64 * 1024 };
#define LISTING_MEMORY_LIMIT ((size_t)16 << 20)

struct listing_record {
	struct remote_attr attr;
	bool attr_known;   /* false: changed by us since, ask the server */
	uint64_t asked_ns; /* when the attributes came */
	size_t length;
	char name[256];
};

/* Where a reader is; zero it to begin. One thread at a time. */
struct listing_reader {
	uint64_t
	    number; /* of the record at `offset`; valid when `segment` is below the count */
	size_t segment, offset;
	char *spilled; /* a copy of the spilled segment `spilled_segment` */
	size_t spilled_segment;
};
void listing_reader_release(struct listing_reader *reader);

/*
 * Starts to list the directory. `stamp` is a new one of the nodes. NULL when memory is out. The
 * caller's reference counts as one user.
 */
struct listing *listing_start(struct remote *remote, const char *path, uint64_t stamp,
                              size_t memory_limit);
/*
 * The same for a directory that nobody has asked for yet: while the caller is its only user it
 * breaks with -EFBIG instead of growing beyond the limit.
 */
struct listing *listing_start_ahead(struct remote *remote, const char *path, uint64_t stamp,
                                    size_t memory_limit);
/* A complete listing without names, for a directory that we have just made. */
struct listing *listing_new_empty(uint64_t stamp);

struct listing *listing_ref(struct listing *listing);
void listing_unref(struct listing *listing);

/* Readers are counted: when the last leaves before the end, the listing is broken off. */
void listing_join(struct listing *listing);
/* True when it was broken off by this. */
bool listing_leave(struct listing *listing);

/* Blocks until a record or the end is there; 0, the listing's error, or -EINTR. */
int listing_wait(struct listing *listing);

/*
 * The first record that is present with number >= `number`; blocks until it is there. 1 with
 * *record and its *found number filled, 0 at the end, the listing's error when it broke in the
 * middle, -EINTR, -ENOMEM or -EIO (temporary file).
 */
int listing_read(struct listing *listing, struct listing_reader *reader, uint64_t number,
                 struct listing_record *record, uint64_t *found);

enum listing_answer {
	LISTING_UNKNOWN, /* not complete, broken or spilled: ask the server */
	LISTING_ABSENT,
	LISTING_PRESENT, /* record->attr_known tells whether its attributes are of use */
};
enum listing_answer listing_find(struct listing *listing, const char *name, size_t length,
                                 struct listing_record *record);

/*
 * Our own change of a name, with a new stamp of the nodes. False when it cannot be patched in
 * (not complete, spilled, memory): the listing is out of date and is not to be used by others
 * any more.
 */
bool listing_patch_add(struct listing *listing, const char *name, size_t length,
                       uint64_t stamp);
bool listing_patch_remove(struct listing *listing, const char *name, size_t length,
                          uint64_t stamp);
/* The attributes of the name have changed. */
bool listing_patch_attr(struct listing *listing, const char *name, size_t length);

/* What the server told of the directory itself while it was listed; false when it did not. */
bool listing_own_attr(struct listing *listing, struct remote_attr *attr);

bool listing_is_complete(struct listing *listing);
bool listing_is_broken(struct listing *listing); /* ended with an error or broken off */
bool listing_is_spilled(struct listing *listing);
uint64_t listing_started_ns(const struct listing *listing);
uint64_t listing_stamp(const struct listing *listing);
/* Stamp of the start or of the last patch of names: tells two states apart. */
uint64_t listing_version(struct listing *listing);
/* Memory in use now. */
size_t listing_bytes(struct listing *listing);

#endif
