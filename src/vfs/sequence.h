/*
 * Whether a program visits the names of a directory in one of the orders of order.h. Pure; the
 * caller locks.
 *
 * Two visits in a row prove an order. A reader that skips a few names, or several that take
 * turns in one order (xargs -P), still prove it, a little later. What was proved in the
 * directory before holds for the first visit of the next one: that is the momentum.
 */
#ifndef MOORFS_VFS_SEQUENCE_H
#define MOORFS_VFS_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "vfs/order.h"

enum {
	SEQUENCE_PROOF = 2, /* points that prove an order; the very next name gives 2, */
	SEQUENCE_SKIP = 3,  /* one at most so many names further on gives 1 */
	SEQUENCE_TURNS = 8, /* one at most so many names back changes nothing */
	/*
	 * Of several orders that are proved the one with most points is taken: two names that
	 * happen to be neighbours in another order do not lead away from a long run.
	 */
	SEQUENCE_POINTS_MAX = 64,
};

/* The visits of one directory. All zeros is the beginning. */
struct sequence {
	bool begun;
	uint32_t furthest[ORDER_KINDS]; /* position of the latest visit in order */
	uint8_t points[ORDER_KINDS];    /* 0 to SEQUENCE_POINTS_MAX */
};

/* What the latest visits anywhere proved. All zeros: nothing. */
struct momentum {
	uint8_t points[ORDER_KINDS];
};

/* True when a visit of a new directory may be taken for the start of a sequence. */
bool momentum_is_proved(const struct momentum *momentum);

/*
 * A name at these positions is visited. The order that is proved, or -1; what comes next then
 * begins behind sequence->furthest[order].
 */
int sequence_note(struct sequence *sequence, struct momentum *momentum,
                  const uint32_t positions[ORDER_KINDS]);

#endif
