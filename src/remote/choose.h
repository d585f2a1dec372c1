/*
 * Which lane runs an operation, and what happens to one whose lane was lost. Pure.
 *
 * Metadata never queues behind bulk data: with two lanes or more the first one carries bulk
 * only in small amounts (a small file read where it was opened), and metadata takes the lane
 * with the least bulk in flight. Bulk fills a lane that already has a handle of the file first
 * and spreads to others when that one has enough in flight to pay for one more open.
 */
#ifndef MOORFS_REMOTE_CHOOSE_H
#define MOORFS_REMOTE_CHOOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "remote/op.h"

enum {
	CHOOSE_FIRST_LANE_BULK = 256 * 1024, /* bulk bytes lane 0 carries beside others */
	CHOOSE_OPEN_COST = 512 * 1024,       /* bytes in flight that one more open is worth */
	CHOOSE_META_COST = 4096,             /* bytes in flight that a metadata op counts as */
	CHOOSE_NEAR_MS = 3,                  /* a round trip under it means: near */
	CHOOSE_WARM_BULK = 512 * 1024, /* in flight on every lane: one more lane is wanted */
};

struct lane_view {
	bool up;
	uint64_t bulk_bytes; /* queued and in flight */
	unsigned meta_ops;
	bool has_handle; /* of op->file */
	bool spared;     /* carries no bulk unless it must: see choose_bulk_lanes() */
};

/*
 * Index of the lane, or -1 when none is up (or, for a file that cannot be opened again, none
 * that is up has its handle: then `must_have_handle`).
 */
int choose_lane(const struct lane_view *lanes, size_t count, const struct op *op,
                bool must_have_handle);

/*
 * How many lanes beside the first are worth filling with bulk data. At a distance every lane
 * adds rate, as each has a window of its own. Near the server it is the processors that bound
 * the rate: a lane takes two of them here (ours and the cipher's) and more on the server, and
 * lanes beyond that only compete.
 */
unsigned choose_bulk_lanes(uint64_t rtt_ns, unsigned processors);

/* Whether one more lane would help after the choice. */
bool choose_wants_lane(const struct lane_view *lanes, size_t count);

/* Bulk kinds by their size, others as metadata. */
bool choose_is_bulk(const struct op *op);

enum verdict {
	VERDICT_REPEAT,  /* submit it again */
	VERDICT_UNKNOWN, /* it may have happened: end it with -ENOLINK */
	VERDICT_FAIL,    /* end it with -ETIMEDOUT */
};

/* What becomes of an op whose lane was lost. */
enum verdict choose_after_loss(const struct op *op, uint64_t now_ns, bool reconnect);

/* Pause before connect attempt number `failures` + 1, ns. `stubborn`: password or host key. */
uint64_t choose_backoff(unsigned failures, bool stubborn);

/*
 * Whether an op in flight is given up: it is over its deadline, and its lane has been silent
 * for the whole time-out (or the op alone is late by ten of them).
 */
bool choose_expired(const struct op *op, uint64_t now_ns, uint64_t last_reply_ns,
                    uint64_t timeout_ns);

#endif
