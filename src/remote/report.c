/* The pool's counters as text. */
#include <inttypes.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "remote/pool_internal.h"

static double ms(uint64_t ns)
{
	return (double)ns / (double)NS_PER_MS;
}

static void report_lanes(struct pool *pool, struct bytes *out)
{
	LOCK_SCOPE(&pool->lock);
	bytes_addf(out, "pool: lanes up %u, limit %u of %u, waiting for a lane: %s\n",
	           pool_lanes_up(pool), pool->lane_limit, pool->config.max_lanes,
	           list_empty(&pool->waiting) ? "none" : "some");
	bytes_addf(out, "pool: rtt %.3f ms, rate %.1f MB/s, repeated %" PRIu64 "\n",
	           ms(estimate_rtt_ns(&pool->estimate)),
	           (double)estimate_rate(&pool->estimate) / 1e6,
	           (uint64_t)atomic_load(&pool->repeated));
	for (unsigned i = 0; i < pool->config.max_lanes; i++) {
		const struct lane *lane = &pool->lanes[i];
		if (lane->state != LANE_UP)
			continue;
		bytes_addf(out,
		           "pool: lane %u over %s, connects %u, lost %u, bulk queued %" PRIu64
		           ", metadata queued %u\n",
		           i, lane->session->kind ? lane->session->kind : "?", lane->generation,
		           lane->losses, lane->bulk_bytes, lane->meta_ops);
	}
}

void pool_report(struct pool *pool, struct bytes *out)
{
	report_lanes(pool, out);
	uint64_t total = 0;
	for (unsigned kind = 0; kind < OP_KINDS; kind++) {
		const struct op_counter *counter = &pool->counters[kind];
		uint64_t count = atomic_load(&counter->latency.count);
		if (!count)
			continue;
		total += count;
		bytes_addf(out,
		           "op %s: count %" PRIu64 ", errors %" PRIu64 ", bytes %" PRIu64
		           ", p50 %.3f ms, p90 %.3f ms, p99 %.3f ms\n",
		           op_kind_name(kind), count, (uint64_t)atomic_load(&counter->errors),
		           (uint64_t)atomic_load(&counter->bytes),
		           ms(hist_percentile(&counter->latency, 50)),
		           ms(hist_percentile(&counter->latency, 90)),
		           ms(hist_percentile(&counter->latency, 99)));
	}
	bytes_addf(out, "op total: count %" PRIu64 "\n", total);
}
