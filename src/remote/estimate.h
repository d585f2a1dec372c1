/*
 * What the link is like: lowest round trip and highest rate seen lately. Pure: time is an
 * argument. Not thread-safe; the pool's lock guards it.
 */
#ifndef MOORFS_REMOTE_ESTIMATE_H
#define MOORFS_REMOTE_ESTIMATE_H

#include <stdint.h>

/* Extremes of the present and the previous period: old news ages out within two periods. */
struct estimate {
	uint64_t rtt_ns[2];
	uint64_t rate[2];
	uint64_t rtt_period_start_ns, rate_period_start_ns;
	uint64_t sample_start_ns, sample_bytes, last_bytes_ns;
};

/* An operation that found its lane quiet took so long. */
void estimate_add_rtt(struct estimate *estimate, uint64_t now_ns, uint64_t rtt_ns);

/* So many bytes of file data have arrived or been taken. */
void estimate_add_bytes(struct estimate *estimate, uint64_t now_ns, uint64_t bytes);

/* 0: not known. */
uint64_t estimate_rtt_ns(const struct estimate *estimate);
uint64_t estimate_rate(const struct estimate *estimate);

#endif
