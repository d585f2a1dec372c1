/* The pool's housekeeping: connects lanes when wanted, closes idle ones, ends late waiters. */
#include <errno.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "remote/pool_internal.h"

/* How often the server is tried while nobody waits for it. */
static const uint64_t idle_retry_ns = 10 * NS_PER_SEC;

static void sooner(uint64_t *next, uint64_t when)
{
	if (when < *next)
		*next = when;
}

static struct lane *lane_off(struct pool *pool)
{
	for (unsigned i = 0; i < pool->config.max_lanes; i++)
		if (pool->lanes[i].state == LANE_OFF && !pool->lanes[i].wanted)
			return &pool->lanes[i];
	return NULL;
}

static bool any_connecting(const struct pool *pool)
{
	for (unsigned i = 0; i < pool->config.max_lanes; i++)
		if (pool->lanes[i].state == LANE_CONNECTING || pool->lanes[i].wanted)
			return true;
	return false;
}

static void want_lane(struct pool *pool)
{
	struct lane *lane = lane_off(pool);
	if (!lane)
		return;
	lane->wanted = true;
	pthread_cond_broadcast(&pool->changed);
}

/* One connect at a time: servers drop bursts of unauthenticated connections. */
static void keep_connected(struct pool *pool, uint64_t now, uint64_t *next)
{
	if (any_connecting(pool))
		return;
	unsigned up = pool_lanes_up(pool);
	if (up == 0) {
		bool waiting = !list_empty(&pool->waiting) || pool->asked;
		if (pool->ever_up ? !pool->config.reconnect : !waiting)
			return;
		uint64_t when = pool->next_attempt_ns;
		if (!waiting && pool->failures > 0 && when < now + NS_PER_SEC)
			when += idle_retry_ns;
		if (when <= now) {
			pool->asked = false;
			want_lane(pool);
		} else {
			sooner(next, when);
		}
		return;
	}
	if (pool->lane_limit < pool->config.max_lanes && now >= pool->lane_limit_until_ns)
		pool->lane_limit = pool->config.max_lanes;
	unsigned goal = pool_lane_goal(pool);
	if (pool->warm && pool->wants_lane && up < goal)
		want_lane(pool);
	if (up >= goal)
		pool->wants_lane = false;
}

/* Lanes beyond the first that nobody used for a while go; those with open handles stay. */
static void retire_idle(struct pool *pool, uint64_t now, uint64_t *next)
{
	uint64_t idle = pool->config.idle_timeout_ns;
	if (!idle || pool_lanes_up(pool) < 2)
		return;
	bool kept_one = false;
	for (unsigned i = 0; i < pool->config.max_lanes; i++) {
		struct lane *lane = &pool->lanes[i];
		if (lane->state != LANE_UP)
			continue;
		bool busy = lane->bulk_bytes || lane->meta_ops ||
		            atomic_load(&lane->session->open_handles);
		if (!kept_one || busy) {
			kept_one = true;
			if (busy)
				sooner(next, now + idle);
			continue;
		}
		if (now - lane->last_used_ns >= idle) {
			lane->retire = true;
			pool->wants_lane = false;
			wake_signal(&lane->wake);
		} else {
			sooner(next, lane->last_used_ns + idle);
		}
	}
}

/* Takes out of `waiting` what is cancelled, late or known to fail (err is set). */
static void collect_ended(struct pool *pool, struct list_node *ended, uint64_t now,
                          uint64_t *next)
{
	list_for_each_safe (node, &pool->waiting) {
		struct op *op = list_entry(node, struct op, link);
		bool cancelled = atomic_load(&op->cancelled);
		bool late = now >= op->deadline_ns ||
		            (pool->down_since_ns &&
		             now - pool->down_since_ns > pool->config.request_timeout_ns);
		if (!op->err && !cancelled && !late) {
			sooner(next, op->deadline_ns);
			if (pool->down_since_ns)
				sooner(next, pool->down_since_ns +
				                 pool->config.request_timeout_ns + 1);
			continue;
		}
		if (!op->err)
			op->err = cancelled ? -EINTR : -ETIMEDOUT;
		list_remove(node);
		list_push_back(ended, node);
	}
}

void *keeper_main(void *argument)
{
	struct pool *pool = argument;
	pthread_mutex_lock(&pool->lock);
	while (!pool->closing) {
		uint64_t now = clock_now_ns();
		uint64_t next = now + 3600 * NS_PER_SEC;
		struct list_node ended, *node;
		list_init(&ended);
		collect_ended(pool, &ended, now, &next);
		keep_connected(pool, now, &next);
		retire_idle(pool, now, &next);
		if (list_empty(&ended)) {
			struct timespec until = clock_to_timespec(next);
			pthread_cond_clockwait(&pool->changed, &pool->lock, CLOCK_MONOTONIC,
			                       &until);
			continue;
		}
		pthread_mutex_unlock(&pool->lock);
		while ((node = list_pop_front(&ended))) {
			struct op *op = list_entry(node, struct op, link);
			pool_finish(pool, op, op->err);
		}
		pthread_mutex_lock(&pool->lock);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}
