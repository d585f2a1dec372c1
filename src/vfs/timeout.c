#include "vfs/timeout.h"

#include "base/cleanup.h"

void timeout_adapt(struct timeout *timeout, const struct timeout_range *range, bool changed,
                   uint64_t now_ns)
{
	if (changed || !timeout->ns) {
		timeout->ns = range->min_ns;
		timeout->since_ns = now_ns;
		return;
	}
	/* Many looks in a row prove no more than one. */
	if (now_ns - timeout->since_ns < timeout->ns)
		return;
	timeout->ns = MIN(timeout->ns * 2, range->max_ns);
	timeout->since_ns = now_ns;
}

uint64_t timeout_left(uint64_t asked_ns, uint64_t timeout_ns, uint64_t now_ns)
{
	if (!asked_ns || now_ns < asked_ns)
		return 0;
	uint64_t age_ns = now_ns - asked_ns;
	return age_ns < timeout_ns ? timeout_ns - age_ns : 0;
}
