#include "io/window.h"

#include <string.h>

#include "base/cleanup.h"

/* Reads in order that make a stream sequential; one more than this came in all. */
enum { PROOF = 2 };
/* Reads elsewhere after which a read of the file's start is no sign of a sequential reader. */
enum { ASTRAY = 3 };
/* A stream that has not proved itself is forgotten after so many reads elsewhere. */
enum { PATIENCE = 8 };
/*
 * The kernel's large requests overtake each other by a few of their lengths; small ones come
 * from a program that waits for each, so they count only when they meet exactly.
 */
enum { DISORDER = 4, SMALL_READ = 64 * 1024 };

#define MAX_DISORDER UINT64_C(1048576)

static uint64_t round_up(uint64_t offset)
{
	return (offset + WINDOW_BLOCK - 1) / WINDOW_BLOCK * WINDOW_BLOCK;
}

void window_reset(struct window_set *set)
{
	memset(set, 0, sizeof(*set));
}

bool window_is_sequential(const struct window_stream *stream)
{
	return stream->in_order >= PROOF;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

static uint64_t tolerance(const struct window_stream *stream, size_t length)
{
	if (length < SMALL_READ && !window_is_sequential(stream))
		return 0;
	return MIN((uint64_t)length * DISORDER, MAX_DISORDER);
}

/* The stream whose end lies nearest to the read, if near enough. */
static struct window_stream *find_stream(struct window_set *set, uint64_t offset, size_t length)
{
	struct window_stream *best = NULL;
	uint64_t best_distance = UINT64_MAX;
	for (size_t i = 0; i < WINDOW_STREAMS; i++) {
		struct window_stream *stream = &set->streams[i];
		uint64_t away = distance(stream->next, offset);
		bool stale =
		    !window_is_sequential(stream) && set->reads - stream->used > PATIENCE;
		if (!stream->used || stale || away > tolerance(stream, length))
			continue;
		if (away < best_distance) {
			best = stream;
			best_distance = away;
		}
	}
	return best;
}

/* A slot for a new stream: unproved ones go before sequential ones, old before new. */
static struct window_stream *take_slot(struct window_set *set)
{
	struct window_stream *victim = &set->streams[0];
	for (size_t i = 1; i < WINDOW_STREAMS; i++) {
		struct window_stream *stream = &set->streams[i];
		bool proved = window_is_sequential(stream);
		bool victim_proved = window_is_sequential(victim);
		if (proved != victim_proved ? victim_proved : stream->used < victim->used)
			victim = stream;
	}
	return victim;
}

struct window_stream *window_note(struct window_set *set, uint64_t offset, size_t length)
{
	bool from_start = offset == 0 && set->astray < ASTRAY;
	set->reads++;
	struct window_stream *stream = find_stream(set, offset, length);
	if (stream) {
		stream->in_order = MIN(stream->in_order + 1, PROOF);
		stream->next = MAX(stream->next, offset + length);
		set->astray = 0;
	} else {
		stream = take_slot(set);
		*stream = (struct window_stream){.next = offset + length};
		set->astray++;
	}
	if (from_start)
		stream->in_order = PROOF;
	stream->used = set->reads;
	return stream;
}

uint64_t window_bound(const struct window_limits *limits)
{
	uint64_t bound = WINDOW_UNKNOWN;
	if (limits->rtt_ns && limits->bytes_per_sec) {
		double product = (double)limits->bytes_per_sec * (double)limits->rtt_ns / 1e9;
		bound = (uint64_t)MIN(2 * product, (double)WINDOW_CEILING);
		bound = MAX(bound, WINDOW_FLOOR);
	}
	return MIN(bound, limits->max_bytes);
}

static void adapt(struct window_stream *stream, enum window_found found, uint64_t bound)
{
	if (!stream->bytes)
		stream->bytes = WINDOW_START;
	else if (found == WINDOW_MISSING && stream->next <= stream->ahead)
		stream->bytes /= 2; /* it was fetched and then evicted */
	else if (found != WINDOW_READY)
		stream->bytes *= 2;
	stream->bytes = MIN(MAX(stream->bytes, WINDOW_BLOCK), bound);
}

void window_advance(struct window_stream *stream, enum window_found found,
                    const struct window_limits *limits, uint64_t file_size, uint64_t *from,
                    uint64_t *to)
{
	*from = *to = 0;
	if (!window_is_sequential(stream))
		return;
	adapt(stream, found, window_bound(limits));
	*from = MAX(stream->ahead, stream->next);
	*to = MIN(round_up(stream->next + stream->bytes), file_size);
	if (*from < *to)
		stream->ahead = *to;
}

void window_refused(struct window_stream *stream, uint64_t at)
{
	stream->ahead = at;
	stream->bytes = MAX(stream->bytes / 2, WINDOW_BLOCK);
}
