/* Filling and patching of listings. */
#include "vfs/listing_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"

/* A hostile server could list for ever; this is some twenty million names. */
static const uint64_t spill_limit = UINT64_C(2) << 30;

static struct listing *listing_alloc(uint64_t stamp, size_t memory_limit)
{
	struct listing *listing = calloc(1, sizeof(*listing));
	if (!listing)
		return NULL;
	atomic_init(&listing->refs, 1);
	listing->users = 1;
	listing->stamp = stamp;
	listing->started_ns = clock_now_ns();
	listing->memory_limit = memory_limit;
	listing->spill_fd = -1;
	listing->version = stamp;
	pthread_mutex_init(&listing->lock, NULL);
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&listing->more, &attr);
	pthread_condattr_destroy(&attr);
	map_init(&listing->index);
	return listing;
}

static void listing_destroy(struct listing *listing)
{
	for (size_t i = 0; i < listing->count; i++)
		free(listing->segments[i].data);
	free(listing->segments);
	map_release(&listing->index);
	if (listing->spill_fd >= 0)
		close(listing->spill_fd);
	pthread_cond_destroy(&listing->more);
	pthread_mutex_destroy(&listing->lock);
	free(listing->path);
	free(listing);
}

struct listing *listing_ref(struct listing *listing)
{
	atomic_fetch_add_explicit(&listing->refs, 1, memory_order_relaxed);
	return listing;
}

void listing_unref(struct listing *listing)
{
	if (listing && atomic_fetch_sub(&listing->refs, 1) == 1)
		listing_destroy(listing);
}

void listing_join(struct listing *listing)
{
	LOCK_SCOPE(&listing->lock);
	listing->users++;
	listing->modest = false;
	listing->memory_limit = LISTING_MEMORY_LIMIT;
}

bool listing_leave(struct listing *listing)
{
	LOCK_SCOPE(&listing->lock);
	if (--listing->users > 0 || listing->ended)
		return false;
	/* The next batch ends it: the op itself must not be touched from here. */
	listing->abandoned = true;
	return true;
}

/* ---- the temporary file ---- */

static int open_spill_file(void)
{
	const char *dir = getenv("TMPDIR");
	if (!dir || !*dir)
		dir = "/var/tmp";
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	CLEANUP_FREE char *name = NULL;
	if (asprintf(&name, "%s/moorfs-listing-XXXXXX", dir) < 0) {
		name = NULL;
		return -1;
	}
	fd = mkostemp(name, O_CLOEXEC);
	if (fd >= 0)
		unlink(name);
	return fd;
}

static int spill_segment(struct listing *listing, struct segment *segment)
{
	size_t done = 0;
	while (done < segment->used) {
		ssize_t n = pwrite(listing->spill_fd, segment->data + done,
		                   segment->used - done, (off_t)(listing->spill_bytes + done));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			done += (size_t)n;
	}
	segment->spilled_at = (off_t)listing->spill_bytes;
	listing->spill_bytes += segment->used;
	free(segment->data);
	segment->data = NULL;
	listing->resident -= LISTING_SEGMENT;
	return 0;
}

/* Moves all full segments out. */
static int spill(struct listing *listing)
{
	if (listing->spill_fd < 0) {
		listing->spill_fd = open_spill_file();
		if (listing->spill_fd < 0)
			return -errno;
		map_release(&listing->index);
	}
	int err = listing->spill_bytes > spill_limit ? -EOVERFLOW : 0;
	for (; !err && listing->first_resident + 1 < listing->count; listing->first_resident++)
		err = spill_segment(listing, &listing->segments[listing->first_resident]);
	return err;
}

/* ---- filling ---- */

static struct segment *add_segment(struct listing *listing)
{
	if (listing->count == listing->capacity) {
		size_t capacity = listing->capacity ? listing->capacity * 2 : 4;
		struct segment *grown =
		    reallocarray(listing->segments, capacity, sizeof(*grown));
		if (!grown)
			return NULL;
		listing->segments = grown;
		listing->capacity = capacity;
	}
	char *data = malloc(LISTING_SEGMENT);
	if (!data)
		return NULL;
	struct segment *last = listing->count ? &listing->segments[listing->count - 1] : NULL;
	struct segment *segment = &listing->segments[listing->count++];
	*segment = (struct segment){.data = data,
	                            .first = last ? last->first + last->count : 0,
	                            .asked_ns = clock_now_ns()};
	listing->resident += LISTING_SEGMENT;
	return segment;
}

static int append(struct listing *listing, const char *name, size_t length,
                  const struct remote_attr *attr)
{
	size_t size = record_size(length);
	struct segment *segment =
	    listing->count ? &listing->segments[listing->count - 1] : NULL;
	if (!segment || segment->used + size > LISTING_SEGMENT) {
		if (listing->resident >= listing->memory_limit && listing->modest)
			return -EFBIG;
		if (listing->resident >= listing->memory_limit) {
			int err = spill(listing);
			if (err) {
				log_error("listing '%s': cannot write the temporary file "
				          "for its names: %s",
				          listing->path ? listing->path : "", strerror(-err));
				return err;
			}
		}
		segment = add_segment(listing);
		if (!segment)
			return -ENOMEM;
	}
	struct record *record = (struct record *)(void *)(segment->data + segment->used);
	record->attr = attr ? *attr : (struct remote_attr){0};
	record->length = (uint16_t)length;
	record->flags = attr ? 0 : RECORD_ATTR_STALE;
	memcpy(record->name, name, length);
	segment->used += size;
	segment->count++;
	if (listing->spill_fd < 0 &&
	    !map_add(&listing->index, map_hash(name, length, 0), record))
		return -ENOMEM;
	return 0;
}

/* Names that a server may send but a directory cannot have; "." and ".." are ours to make. */
static bool is_proper_name(struct listing *listing, const char *name, size_t length)
{
	if ((length == 1 && name[0] == '.') || (length == 2 && memcmp(name, "..", 2) == 0))
		return false;
	if (length > 0 && length <= 255 && !memchr(name, '/', length) &&
	    !memchr(name, '\0', length))
		return true;
	if (!listing->told) {
		char quoted[128];
		log_warn(
		    "listing '%s': the server sent an impossible name, '%s': it is left out, "
		    "and further ones are not reported",
		    listing->path, log_quote(quoted, sizeof(quoted), name, length));
	}
	listing->told = true;
	return false;
}

static int take_entries(struct op *op, const struct remote_entry *entries, size_t count)
{
	struct listing *listing = op->owner;
	LOCK_SCOPE(&listing->lock);
	if (listing->abandoned)
		return 1;
	for (size_t i = 0; i < count && !listing->err; i++)
		if (is_proper_name(listing, entries[i].name, entries[i].name_length))
			listing->err = append(listing, entries[i].name, entries[i].name_length,
			                      &entries[i].attr);
	pthread_cond_broadcast(&listing->more);
	return listing->err != 0;
}

static void list_done(struct op *op)
{
	struct listing *listing = op->owner;
	pthread_mutex_lock(&listing->lock);
	listing->ended = true;
	listing->own = op->attr;
	if (!listing->err)
		listing->err = op->err == -EREMOTEIO || op->err == -ENOLINK ? -EIO : op->err;
	pthread_cond_broadcast(&listing->more);
	pthread_mutex_unlock(&listing->lock);
	listing_unref(listing);
}

static struct listing *start(struct remote *remote, const char *path, uint64_t stamp,
                             size_t memory_limit, bool modest)
{
	struct listing *listing = listing_alloc(stamp, memory_limit);
	if (!listing)
		return NULL;
	listing->modest = modest;
	listing->op.op_class = modest ? OP_CLASS_PREFETCH : OP_CLASS_META;
	listing->path = strdup(path);
	if (!listing->path) {
		listing_unref(listing);
		return NULL;
	}
	listing->op.kind = OP_LIST;
	listing->op.path = listing->path;
	listing->op.entries = take_entries;
	listing->op.done = list_done;
	listing->op.owner = listing;
	listing_ref(listing);
	remote_submit(remote, &listing->op);
	return listing;
}

struct listing *listing_start(struct remote *remote, const char *path, uint64_t stamp,
                              size_t memory_limit)
{
	return start(remote, path, stamp, memory_limit, false);
}

struct listing *listing_start_ahead(struct remote *remote, const char *path, uint64_t stamp,
                                    size_t memory_limit)
{
	return start(remote, path, stamp, memory_limit, true);
}

struct listing *listing_new_empty(uint64_t stamp)
{
	struct listing *listing = listing_alloc(stamp, LISTING_MEMORY_LIMIT);
	if (listing)
		listing->ended = true;
	return listing;
}

/* ---- names ---- */

struct name {
	const char *text;
	size_t length;
};

static bool match_record(const void *entry, const void *key)
{
	const struct record *record = entry;
	const struct name *name = key;
	return record->length == name->length && !(record->flags & RECORD_GONE) &&
	       memcmp(record->name, name->text, name->length) == 0;
}

static struct record *find_record(const struct listing *listing, const char *text,
                                  size_t length)
{
	const struct name name = {text, length};
	return map_find(&listing->index, map_hash(text, length, 0), match_record, &name);
}

static bool is_usable(const struct listing *listing)
{
	return listing->ended && !listing->err && !listing->abandoned &&
	       !listing->out_of_date && listing->spill_fd < 0;
}

static size_t segment_of(const struct listing *listing, const struct record *record)
{
	const char *at = (const char *)record;
	for (size_t i = 0; i < listing->count; i++)
		if (at >= listing->segments[i].data &&
		    at < listing->segments[i].data + LISTING_SEGMENT)
			return i;
	return 0;
}

enum listing_answer listing_find(struct listing *listing, const char *name, size_t length,
                                 struct listing_record *record)
{
	LOCK_SCOPE(&listing->lock);
	if (!is_usable(listing))
		return LISTING_UNKNOWN;
	const struct record *found = find_record(listing, name, length);
	if (!found)
		return LISTING_ABSENT;
	listing_copy_record(listing, segment_of(listing, found), found, record);
	return LISTING_PRESENT;
}

/* True when the listing can be patched, else it is out of date from now on. Lock held. */
static bool begin_patch(struct listing *listing, uint64_t stamp)
{
	if (!is_usable(listing)) {
		listing->out_of_date = true;
		return false;
	}
	listing->version = stamp;
	return true;
}

bool listing_patch_add(struct listing *listing, const char *name, size_t length, uint64_t stamp)
{
	LOCK_SCOPE(&listing->lock);
	if (!begin_patch(listing, stamp))
		return false;
	struct record *record = find_record(listing, name, length);
	if (record) {
		record->flags |= RECORD_ATTR_STALE;
		return true;
	}
	if (append(listing, name, length, NULL) == 0 && listing->spill_fd < 0)
		return true;
	listing->out_of_date = true;
	return false;
}

bool listing_patch_remove(struct listing *listing, const char *name, size_t length,
                          uint64_t stamp)
{
	LOCK_SCOPE(&listing->lock);
	if (!begin_patch(listing, stamp))
		return false;
	struct record *record;
	while ((record = find_record(listing, name, length))) {
		record->flags |= RECORD_GONE;
		map_remove(&listing->index, map_hash(name, length, 0), record);
	}
	return true;
}

bool listing_patch_attr(struct listing *listing, const char *name, size_t length)
{
	LOCK_SCOPE(&listing->lock);
	if (!is_usable(listing)) {
		listing->out_of_date = true;
		return false;
	}
	struct record *record = find_record(listing, name, length);
	if (record)
		record->flags |= RECORD_ATTR_STALE;
	return true;
}

/* ---- state ---- */

bool listing_own_attr(struct listing *listing, struct remote_attr *attr)
{
	LOCK_SCOPE(&listing->lock);
	if (!is_usable(listing) || !listing->own.valid)
		return false;
	*attr = listing->own;
	return true;
}

bool listing_is_complete(struct listing *listing)
{
	LOCK_SCOPE(&listing->lock);
	return listing->ended && !listing->err && !listing->abandoned;
}

bool listing_is_broken(struct listing *listing)
{
	LOCK_SCOPE(&listing->lock);
	return listing->err || listing->abandoned || listing->out_of_date;
}

bool listing_is_spilled(struct listing *listing)
{
	LOCK_SCOPE(&listing->lock);
	return listing->spill_fd >= 0;
}

uint64_t listing_started_ns(const struct listing *listing)
{
	return listing->started_ns;
}

uint64_t listing_stamp(const struct listing *listing)
{
	return listing->stamp;
}

uint64_t listing_version(struct listing *listing)
{
	LOCK_SCOPE(&listing->lock);
	return listing->version;
}

size_t listing_bytes(struct listing *listing)
{
	LOCK_SCOPE(&listing->lock);
	return sizeof(*listing) + listing->resident +
	       listing->capacity * sizeof(*listing->segments) +
	       listing->index.capacity * sizeof(*listing->index.slots);
}
