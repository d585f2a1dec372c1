/*
 * How far to read ahead: finds the sequential streams among the reads of a file and gives each
 * a window. Pure arithmetic, no I/O and no clock; the caller locks.
 *
 * For each read: window_note(), look what the cache has, then window_advance() and fetch what
 * it advises; window_refused() when that could not be done.
 */
#ifndef MOORFS_IO_WINDOW_H
#define MOORFS_IO_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	WINDOW_STREAMS = 8,
	WINDOW_BLOCK = 128 * 1024, /* advice ends at multiples of it, or at the file's end */
	WINDOW_START = 2 * WINDOW_BLOCK,
	WINDOW_FLOOR = 1024 * 1024,        /* bound of slow or near links */
	WINDOW_UNKNOWN = 32 * 1024 * 1024, /* bound while the link is not measured */
	WINDOW_CEILING = 64 * 1024 * 1024, /* bound of all */
};

struct window_stream {
	uint64_t next;     /* end of what was read so far */
	uint64_t ahead;    /* end of what was advised so far */
	uint64_t bytes;    /* the window; 0 before the first advice */
	unsigned in_order; /* reads that followed one another */
	uint64_t used;     /* when, in reads of the set; 0: free */
};

struct window_set {
	struct window_stream streams[WINDOW_STREAMS];
	uint64_t reads;
	unsigned astray; /* reads since the last one in order */
};

/* The link's estimates (0: unknown) and the most that one window may take. */
struct window_limits {
	uint64_t rtt_ns, bytes_per_sec;
	uint64_t max_bytes;
};

/* What the reader found in the cache, the worst of its parts. */
enum window_found { WINDOW_READY, WINDOW_PENDING, WINDOW_MISSING };

/* A set of all zeros is ready for use. Forgets all streams. */
void window_reset(struct window_set *set);

/* A read came: the stream it belongs to, perhaps a new one. Never NULL. */
struct window_stream *window_note(struct window_set *set, uint64_t offset, size_t length);

/* Whether the stream has proved itself, so that whole blocks should be fetched. */
bool window_is_sequential(const struct window_stream *stream);

/*
 * Adapts the window to what the latest read of the stream found: it doubles when the reader had
 * to wait, halves when blocks read ahead were lost before their use. Fills the range to fetch
 * now, empty when from >= to.
 */
void window_advance(struct window_stream *stream, enum window_found found,
                    const struct window_limits *limits, uint64_t file_size, uint64_t *from,
                    uint64_t *to);

/* The advice could only be followed up to `at`: there is no room. Halves the window. */
void window_refused(struct window_stream *stream, uint64_t at);

/* Bytes that a window may have on this link. */
uint64_t window_bound(const struct window_limits *limits);

#endif
