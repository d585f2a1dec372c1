/*
 * How far to fetch ahead of a program: a width, in things (files, listings), that grows while
 * the program catches up with what is under way and shrinks when what was fetched is not used.
 * Pure arithmetic; the caller locks.
 *
 * The width starts at PACE_START. It doubles when the program has to wait for a thing that was
 * issued after the last change of the width, as then all of the present width was on its way
 * and was not enough: so it is never wider than the round trip asks for. Unused things beyond
 * one in PACE_WASTE_PART of the used ones halve it; below 2 it is off for PACE_REST visits in
 * order, twice as many each time, until hits pay again.
 */
#ifndef MOORFS_VFS_PACE_H
#define MOORFS_VFS_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "remote/remote.h"

enum {
	PACE_START = 4,
	PACE_WASTE_PART = 10,
	PACE_WASTE_FREE = 2, /* so much waste in a row says nothing yet */
	PACE_REST = 8,
	PACE_REST_MAX = 512,
};

struct pace {
	unsigned most;               /* the largest width */
	unsigned width;              /* 0: off */
	unsigned used, wasted;       /* lately */
	unsigned rest, next_rest;    /* while off: visits to wait; of the next time */
	uint64_t issued;             /* things in all */
	uint64_t changed_at;         /* `issued` when the width changed */
	uint64_t hits, waits, waste; /* in all: used, of them waited for, unused */
};

void pace_init(struct pace *pace, unsigned most);

/* A visit; `in_order`: of a proved sequence. The width to fetch ahead now, 0: nothing. */
unsigned pace_visit(struct pace *pace, bool in_order);

/* One more thing is under way; its number. */
uint64_t pace_issue(struct pace *pace);

/* The thing with this number was used; `waited`: it was still under way. */
void pace_used(struct pace *pace, uint64_t number, bool waited);

/* More could be used than the width allows, though none is waited for. */
void pace_hungry(struct pace *pace);

/* Things were fetched in vain. */
void pace_wasted(struct pace *pace, unsigned count);

/* ---- bounds in bytes ---- */

enum {
	PACE_FLIGHT_MIN = 1024 * 1024,     /* of prefetch in flight, on the slowest link */
	PACE_FLIGHT_MAX = 8 * 1024 * 1024, /* and on the fastest */
	PACE_AHEAD_MIN = 1024 * 1024,      /* that the program has still to read, likewise */
	PACE_AHEAD_MAX = 16 * 1024 * 1024,
	PACE_PER_LANE = 64, /* requests in flight for each connection */
};

/*
 * Bytes of prefetch that may be in flight: what a demand sent behind them may have to wait for.
 * Three times rate times round trip: a fetch takes two of these, and the rate must be able to
 * show that it can be higher.
 */
uint64_t pace_flight_bytes(const struct remote_link *link);

/*
 * Bytes the program has to read before it comes to the last thing fetched: about a second of
 * the link, as what is fetched holds for three.
 */
uint64_t pace_ahead_bytes(const struct remote_link *link);

#endif
