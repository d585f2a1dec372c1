/*
 * Histogram of durations with buckets of about 12 % width, for latency percentiles. Adding is
 * one relaxed atomic increment, from any thread.
 */
#ifndef MOORFS_BASE_HIST_H
#define MOORFS_BASE_HIST_H

#include <stdatomic.h>
#include <stdint.h>

enum { HIST_BUCKETS = 320 };

struct hist {
	atomic_uint_least64_t count;
	atomic_uint_least32_t buckets[HIST_BUCKETS];
};

void hist_add(struct hist *hist, uint64_t ns);

/* The duration below which `percent` (0 to 100) of the samples lie, ns; 0 when empty. */
uint64_t hist_percentile(const struct hist *hist, double percent);

#endif
