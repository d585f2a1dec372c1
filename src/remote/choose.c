#include "remote/choose.h"

#include <limits.h>

#include "base/clock.h"

/* Of an op whose lane is lost each time: it may be what the server dies of. */
enum { MAX_ATTEMPTS = 20 };

bool choose_is_bulk(const struct op *op)
{
	return op->kind == OP_READ || op->kind == OP_WRITE || op->kind == OP_FETCH;
}

static uint64_t lane_cost(const struct lane_view *lane, bool first, bool alone,
                          const struct op *op)
{
	uint64_t cost = lane->bulk_bytes + (uint64_t)lane->meta_ops * CHOOSE_META_COST;
	if (op->file && !lane->has_handle)
		cost += CHOOSE_OPEN_COST;
	if (!choose_is_bulk(op))
		return cost;
	if (lane->spared)
		cost += UINT64_C(1) << 39;
	/* The first lane is kept clear for metadata, above all. */
	if (first && !alone && lane->bulk_bytes + op->length > CHOOSE_FIRST_LANE_BULK)
		cost += UINT64_C(1) << 40;
	return cost;
}

int choose_lane(const struct lane_view *lanes, size_t count, const struct op *op,
                bool must_have_handle)
{
	size_t up = 0;
	for (size_t i = 0; i < count; i++)
		up += lanes[i].up;
	int best = -1;
	uint64_t best_cost = 0;
	for (size_t i = 0; i < count; i++) {
		if (!lanes[i].up || (must_have_handle && !lanes[i].has_handle))
			continue;
		uint64_t cost = lane_cost(&lanes[i], i == 0, up == 1, op);
		if (best < 0 || cost < best_cost) {
			best = (int)i;
			best_cost = cost;
		}
	}
	return best;
}

unsigned choose_bulk_lanes(uint64_t rtt_ns, unsigned processors)
{
	if (rtt_ns == 0 || rtt_ns >= CHOOSE_NEAR_MS * NS_PER_MS)
		return UINT_MAX;
	return processors < 4 ? 1 : processors / 2;
}

bool choose_wants_lane(const struct lane_view *lanes, size_t count)
{
	size_t up = 0;
	uint64_t least = UINT64_MAX;
	uint64_t bulk = 0;
	for (size_t i = 0; i < count; i++) {
		if (!lanes[i].up)
			continue;
		up++;
		bulk += lanes[i].bulk_bytes;
		/* Beside others, lane 0 is no place for bulk: it says nothing about need. */
		if (i > 0 && lanes[i].bulk_bytes < least)
			least = lanes[i].bulk_bytes;
	}
	if (up == 0)
		return true;
	if (up == 1)
		return bulk > CHOOSE_FIRST_LANE_BULK;
	return least > CHOOSE_WARM_BULK && least != UINT64_MAX;
}

enum verdict choose_after_loss(const struct op *op, uint64_t now_ns, bool reconnect)
{
	if (op->sent && !op_is_idempotent(op))
		return VERDICT_UNKNOWN;
	if (!reconnect || op->attempts >= MAX_ATTEMPTS || now_ns >= op->deadline_ns)
		return VERDICT_FAIL;
	return VERDICT_REPEAT;
}

uint64_t choose_backoff(unsigned failures, bool stubborn)
{
	static const unsigned pauses_ms[] = {0, 100, 300, 1000, 2000, 5000, 10000};
	size_t last = sizeof(pauses_ms) / sizeof(pauses_ms[0]) - 1;
	uint64_t pause = pauses_ms[failures < last ? failures : last] * NS_PER_MS;
	/* Guessing passwords at a server leads to being locked out. */
	if (stubborn && failures > 0 && pause < 60 * NS_PER_SEC)
		pause = 60 * NS_PER_SEC;
	return pause;
}

bool choose_expired(const struct op *op, uint64_t now_ns, uint64_t last_reply_ns,
                    uint64_t timeout_ns)
{
	if (now_ns < op->deadline_ns)
		return false;
	uint64_t late = now_ns - op->deadline_ns;
	uint64_t silent = now_ns > last_reply_ns ? now_ns - last_reply_ns : 0;
	return silent >= timeout_ns || late >= 9 * timeout_ns;
}
