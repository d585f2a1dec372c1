#include "vfs/pace.h"

#include "base/cleanup.h"

void pace_init(struct pace *pace, unsigned most)
{
	*pace = (struct pace){.most = most, .width = PACE_START, .next_rest = PACE_REST};
}

unsigned pace_visit(struct pace *pace, bool in_order)
{
	if (!in_order)
		return 0;
	if (!pace->width && --pace->rest == 0) {
		pace->width = PACE_START;
		pace->changed_at = pace->issued;
	}
	return pace->width;
}

uint64_t pace_issue(struct pace *pace)
{
	return ++pace->issued;
}

static void forget_old(struct pace *pace)
{
	if (pace->used < 1024)
		return;
	pace->used /= 2;
	pace->wasted /= 2;
}

static void widen(struct pace *pace)
{
	if (!pace->width)
		return;
	pace->width = MIN(pace->width * 2, pace->most);
	pace->changed_at = pace->issued;
}

void pace_hungry(struct pace *pace)
{
	if (pace->issued > pace->changed_at)
		widen(pace);
}

void pace_used(struct pace *pace, uint64_t number, bool waited)
{
	pace->hits++;
	pace->used++;
	forget_old(pace);
	if (pace->used > 4 * PACE_START)
		pace->next_rest = PACE_REST;
	if (!waited)
		return;
	pace->waits++;
	if (number > pace->changed_at)
		widen(pace);
}

void pace_wasted(struct pace *pace, unsigned count)
{
	pace->waste += count;
	pace->wasted += count;
	if (!pace->width || pace->wasted <= PACE_WASTE_FREE + pace->used / PACE_WASTE_PART)
		return;
	pace->width /= 2;
	pace->used = pace->wasted = 0;
	pace->changed_at = pace->issued;
	if (pace->width >= 2)
		return;
	pace->width = 0;
	pace->rest = pace->next_rest;
	pace->next_rest = MIN(pace->next_rest * 2, (unsigned)PACE_REST_MAX);
}

static uint64_t within(double value, uint64_t least, uint64_t most)
{
	if (value <= (double)least)
		return least;
	return value >= (double)most ? most : (uint64_t)value;
}

uint64_t pace_flight_bytes(const struct remote_link *link)
{
	double product = (double)link->bytes_per_sec * (double)link->rtt_ns / 1e9;
	return within(3 * product, PACE_FLIGHT_MIN, PACE_FLIGHT_MAX);
}

uint64_t pace_ahead_bytes(const struct remote_link *link)
{
	return within((double)link->bytes_per_sec, PACE_AHEAD_MIN, PACE_AHEAD_MAX);
}
