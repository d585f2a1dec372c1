/* Reading of listings: following, seeking, and segments in the temporary file. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "vfs/listing_internal.h"

/* Waits a little for more; -EINTR when the caller's request was given up. Lock held. */
static int wait_more(struct listing *listing)
{
	struct timespec until = clock_to_timespec(clock_now_ns() + 100 * NS_PER_MS);
	if (!pthread_cond_timedwait(&listing->more, &listing->lock, &until))
		return 0;
	/* Who interrupts may hold locks of other floors, so ours is not held meanwhile. */
	pthread_mutex_unlock(&listing->lock);
	bool interrupted = remote_scope_interrupted();
	pthread_mutex_lock(&listing->lock);
	return interrupted ? -EINTR : 0;
}

int listing_wait(struct listing *listing)
{
	LOCK_SCOPE(&listing->lock);
	int err = 0;
	while (!err && !listing->ended && listing->count == 0)
		err = wait_more(listing);
	if (!err && listing->count == 0)
		err = listing->err;
	return err;
}

void listing_reader_release(struct listing_reader *reader)
{
	free(reader->spilled);
	*reader = (struct listing_reader){0};
}

static int load_spilled(struct listing *listing, struct listing_reader *reader)
{
	if (reader->spilled && reader->spilled_segment == reader->segment)
		return 0;
	if (!reader->spilled)
		reader->spilled = malloc(LISTING_SEGMENT);
	if (!reader->spilled)
		return -ENOMEM;
	const struct segment *segment = &listing->segments[reader->segment];
	reader->spilled_segment = SIZE_MAX;
	size_t done = 0;
	while (done < segment->used) {
		ssize_t n = pread(listing->spill_fd, reader->spilled + done,
		                  segment->used - done, segment->spilled_at + (off_t)done);
		if (n == 0 || (n < 0 && errno != EINTR)) {
			log_error(
			    "listing '%s': cannot read the temporary file of its names: %s",
			    listing->path, n ? strerror(errno) : "it is too short");
			return -EIO;
		}
		if (n > 0)
			done += (size_t)n;
	}
	reader->spilled_segment = reader->segment;
	return 0;
}

/* The index of the segment that holds the number; the count when none does yet. */
static size_t find_segment(const struct listing *listing, uint64_t number)
{
	size_t low = 0, high = listing->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct segment *segment = &listing->segments[middle];
		if (segment->first + segment->count <= number)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/*
 * The record at the reader's place, or NULL when there is none yet; the reader is moved to the
 * next segment when it stands at the end of one that is full.
 */
static int record_at(struct listing *listing, struct listing_reader *reader,
                     const struct record **record)
{
	*record = NULL;
	while (reader->segment < listing->count) {
		const struct segment *segment = &listing->segments[reader->segment];
		if (reader->offset < segment->used) {
			const char *data = segment->data;
			int err = data ? 0 : load_spilled(listing, reader);
			if (err)
				return err;
			if (!data)
				data = reader->spilled;
			*record = (const struct record *)(const void *)(data + reader->offset);
			return 0;
		}
		if (reader->segment + 1 == listing->count)
			return 0;
		reader->segment++;
		reader->offset = 0;
	}
	return 0;
}

/* Places the reader at the number, or at the end of what is there. */
static int seek_to(struct listing *listing, struct listing_reader *reader, uint64_t number)
{
	if (reader->number == number || !listing->count)
		return 0;
	reader->segment = MIN(find_segment(listing, number), listing->count - 1);
	reader->offset = 0;
	reader->number = listing->segments[reader->segment].first;
	while (reader->number < number) {
		const struct record *record;
		int err = record_at(listing, reader, &record);
		if (err || !record)
			return err;
		reader->offset += record_size(record->length);
		reader->number++;
	}
	return 0;
}

int listing_read(struct listing *listing, struct listing_reader *reader, uint64_t number,
                 struct listing_record *record, uint64_t *found)
{
	LOCK_SCOPE(&listing->lock);
	int err = seek_to(listing, reader, number);
	while (!err) {
		const struct record *here;
		err = record_at(listing, reader, &here);
		if (err)
			break;
		if (here) {
			size_t segment = reader->segment;
			*found = reader->number++;
			reader->offset += record_size(here->length);
			if (here->flags & RECORD_GONE || *found < number)
				continue;
			listing_copy_record(listing, segment, here, record);
			return 1;
		}
		if (listing->ended)
			return listing->err;
		err = wait_more(listing);
	}
	return err;
}
