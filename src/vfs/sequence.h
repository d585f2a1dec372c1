/*
 * Whether a program visits the names of a directory in one of the orders of order.h. Pure; the
 * caller locks.
 *
 * A directory's first two visits in a row prove an order; later it takes three, as among many
 * visits some are neighbours by chance. A reader that skips a few names, or several that take
 * turns in one order, still prove it, a little later. Several that read parts of a directory at
 * once (xargs -P, make -j) are told apart: each is a head, the place that one has come to. What
 * was proved in the directory before holds for the first visit of the next one: that is the
 * momentum.
 */
#ifndef MOORFS_VFS_SEQUENCE_H
#define MOORFS_VFS_SEQUENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "vfs/order.h"

enum {
	SEQUENCE_PROOF = 3, /* points that prove an order; the very next name gives 2, */
	SEQUENCE_SKIP = 3,  /* one at most so many names further on gives 1 */
	SEQUENCE_HEADS = 4,
	SEQUENCE_TURNS = 8, /* one at most so many names back changes nothing */
	/*
	 * Of several orders that are proved the one with most points is taken: two names that
	 * happen to be neighbours in another order do not lead away from a long run.
	 */
	SEQUENCE_POINTS_MAX = 64,
};

/* How far a reader has come in an order. */
struct sequence_head {
	uint32_t position; /* of the furthest visit */
	uint32_t used;     /* when, in visits; 0: free */
	uint8_t points;    /* 0 to SEQUENCE_POINTS_MAX */
};

/* The visits of one directory. All zeros is the beginning. */
struct sequence {
	uint32_t visits;
	struct sequence_head heads[ORDER_KINDS][SEQUENCE_HEADS];
};

/* What the latest visits anywhere proved. All zeros: nothing. */
struct momentum {
	uint8_t points[ORDER_KINDS];
};

/* True when a visit of a new directory may be taken for the start of a sequence. */
bool momentum_is_proved(const struct momentum *momentum);

/*
 * A name at these positions is visited. The order that is proved, and *furthest is the position
 * behind which it goes on; or -1.
 */
int sequence_note(struct sequence *sequence, struct momentum *momentum,
                  const uint32_t positions[ORDER_KINDS], uint32_t *furthest);

#endif
