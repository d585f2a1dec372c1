/*
 * How long attributes are trusted, as NFS does it: `min` for a file seen to change, doubling up
 * to `max` each time it is found unchanged after the time-out had run out. Pure.
 */
#ifndef MOORFS_VFS_TIMEOUT_H
#define MOORFS_VFS_TIMEOUT_H

#include <stdbool.h>
#include <stdint.h>

struct timeout {
	uint64_t ns;       /* present value; 0: none yet */
	uint64_t since_ns; /* start of the interval in which it is not doubled again */
};

struct timeout_range {
	uint64_t min_ns, max_ns;
};

/* The server was asked at `now_ns` and the file was changed or not. */
void timeout_adapt(struct timeout *timeout, const struct timeout_range *range, bool changed,
                   uint64_t now_ns);

/* What is left at `now_ns` of `timeout_ns` that began at `asked_ns` (0: never asked). */
uint64_t timeout_left(uint64_t asked_ns, uint64_t timeout_ns, uint64_t now_ns);

#endif
