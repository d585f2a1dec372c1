#include "base/hist.h"

/* Eight buckets to every power of two. */
static unsigned bucket_of(uint64_t ns)
{
	if (ns < 8)
		return (unsigned)ns;
	unsigned log2 = 63u - (unsigned)__builtin_clzll(ns);
	unsigned bucket = log2 * 8 - 16 + (unsigned)((ns >> (log2 - 3)) & 7);
	return bucket < HIST_BUCKETS ? bucket : HIST_BUCKETS - 1;
}

static uint64_t bucket_end(unsigned bucket)
{
	if (bucket < 8)
		return bucket + 1;
	unsigned log2 = bucket / 8 + 2;
	return (UINT64_C(8) + bucket % 8 + 1) << (log2 - 3);
}

void hist_add(struct hist *hist, uint64_t ns)
{
	atomic_fetch_add_explicit(&hist->count, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&hist->buckets[bucket_of(ns)], 1, memory_order_relaxed);
}

uint64_t hist_percentile(const struct hist *hist, double percent)
{
	uint64_t total = atomic_load_explicit(&hist->count, memory_order_relaxed);
	if (total == 0)
		return 0;
	uint64_t wanted = (uint64_t)((double)total * percent / 100.0);
	uint64_t seen = 0;
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		seen += atomic_load_explicit(&hist->buckets[i], memory_order_relaxed);
		if (seen > wanted)
			return bucket_end(i);
	}
	return bucket_end(HIST_BUCKETS - 1);
}
