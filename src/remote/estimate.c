#include "remote/estimate.h"

#include "base/clock.h"

enum { RTT_PERIOD_S = 30, RATE_PERIOD_S = 5 };
static const uint64_t min_sample_ns = 20 * NS_PER_MS;

void estimate_add_rtt(struct estimate *estimate, uint64_t now_ns, uint64_t rtt_ns)
{
	if (now_ns - estimate->rtt_period_start_ns > RTT_PERIOD_S * NS_PER_SEC) {
		estimate->rtt_period_start_ns = now_ns;
		estimate->rtt_ns[1] = estimate->rtt_ns[0];
		estimate->rtt_ns[0] = 0;
	}
	if (estimate->rtt_ns[0] == 0 || rtt_ns < estimate->rtt_ns[0])
		estimate->rtt_ns[0] = rtt_ns;
}

static void finish_sample(struct estimate *estimate, uint64_t now_ns)
{
	uint64_t span = now_ns - estimate->sample_start_ns;
	uint64_t rate = (uint64_t)((double)estimate->sample_bytes * 1e9 / (double)span);
	if (now_ns - estimate->rate_period_start_ns > RATE_PERIOD_S * NS_PER_SEC) {
		estimate->rate_period_start_ns = now_ns;
		estimate->rate[1] = estimate->rate[0];
		estimate->rate[0] = 0;
	}
	if (rate > estimate->rate[0])
		estimate->rate[0] = rate;
	estimate->sample_start_ns = now_ns;
	estimate->sample_bytes = 0;
}

void estimate_add_bytes(struct estimate *estimate, uint64_t now_ns, uint64_t bytes)
{
	uint64_t rtt = estimate_rtt_ns(estimate);
	uint64_t span = rtt > min_sample_ns ? rtt : min_sample_ns;
	/* A pause is not a slow link: begin anew behind it. */
	if (now_ns - estimate->last_bytes_ns > 4 * span) {
		estimate->sample_start_ns = now_ns;
		estimate->sample_bytes = 0;
		estimate->last_bytes_ns = now_ns;
		return;
	}
	estimate->last_bytes_ns = now_ns;
	estimate->sample_bytes += bytes;
	if (now_ns - estimate->sample_start_ns >= span)
		finish_sample(estimate, now_ns);
}

uint64_t estimate_rtt_ns(const struct estimate *estimate)
{
	uint64_t a = estimate->rtt_ns[0], b = estimate->rtt_ns[1];
	return a == 0 || (b != 0 && b < a) ? b : a;
}

uint64_t estimate_rate(const struct estimate *estimate)
{
	return estimate->rate[0] > estimate->rate[1] ? estimate->rate[0] : estimate->rate[1];
}
