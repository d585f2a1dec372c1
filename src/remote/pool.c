#include "remote/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "remote/choose.h"
#include "remote/pool_internal.h"

/* Kinds whose work at the server may take long without being stuck. */
static uint64_t timeout_of(const struct pool *pool, enum op_kind kind)
{
	uint64_t timeout = pool->config.request_timeout_ns;
	return kind == OP_COPY || kind == OP_FSYNC ? 10 * timeout : timeout;
}

unsigned pool_lanes_up(const struct pool *pool)
{
	unsigned up = 0;
	for (unsigned i = 0; i < pool->config.max_lanes; i++)
		up += pool->lanes[i].state == LANE_UP;
	return up;
}

static unsigned bulk_lanes_of(const struct pool *pool)
{
	return choose_bulk_lanes(estimate_rtt_ns(&pool->estimate), pool->processors);
}

unsigned pool_lane_goal(const struct pool *pool)
{
	unsigned bulk_lanes = bulk_lanes_of(pool);
	return bulk_lanes < pool->lane_limit ? bulk_lanes + 1 : pool->lane_limit;
}

/* True when the lane's present session has a handle of the file. */
static bool lane_has_handle(const struct lane *lane, struct remote_file *file)
{
	struct remote_handle *handle = file ? atomic_load(&file->handles[lane->index]) : NULL;
	return handle && atomic_load(&handle->open) &&
	       atomic_load(&handle->generation) == lane->generation;
}

static bool has_handles(const struct lane *lane, const struct op *op)
{
	return lane_has_handle(lane, op->file) &&
	       (!op->file2 || lane_has_handle(lane, op->file2));
}

/* How much an op depends on a lane that has its file open. */
enum need { NEED_NONE, NEED_IF_ANY, NEED_OPEN };

static enum need need_of_file(struct remote_file *file)
{
	if (!file)
		return NEED_NONE;
	LOCK_SCOPE(&file->lock);
	if (file->unlinked || file->one_lane)
		return NEED_OPEN;
	return file->moving ? NEED_IF_ANY : NEED_NONE;
}

static enum need need_of(const struct op *op)
{
	if (op->kind == OP_OPEN)
		return NEED_NONE;
	if (op->stays)
		return NEED_OPEN;
	enum need one = need_of_file(op->file), other = need_of_file(op->file2);
	return MAX(one, other);
}

static void queue_on_lane(struct lane *lane, struct op *op)
{
	op->lane = lane;
	list_push_back(&lane->inbox, &op->link);
	if (choose_is_bulk(op))
		lane->bulk_bytes += op->length;
	else
		lane->meta_ops++;
	lane->last_used_ns = op->submitted_ns;
}

/* An op that belongs to one lane: closing a handle. Without that lane it is done already. */
static struct lane *dispatch_pinned(struct pool *pool, struct op *op, int *err)
{
	struct lane *lane = &pool->lanes[op->pinned_lane - 1];
	if (lane->state != LANE_UP) {
		*err = -ENOLINK;
		return NULL;
	}
	queue_on_lane(lane, op);
	return lane;
}

/* The lane that the op would rather not leave, or NULL. */
static struct lane *home_of(struct pool *pool, const struct op *op)
{
	int home = op->at_home ? atomic_load(&op->file->home_lane) : -1;
	if (home < 0)
		return NULL;
	struct lane *lane = &pool->lanes[home];
	if (lane->state != LANE_UP || lane->retire || !has_handles(lane, op))
		return NULL;
	return !choose_is_bulk(op) || lane->bulk_bytes < CHOOSE_OPEN_COST ? lane : NULL;
}

struct lane *pool_dispatch(struct pool *pool, struct op *op, int *err)
{
	*err = 0;
	if (pool->closing) {
		*err = -ENOTCONN;
		return NULL;
	}
	if (op->pinned_lane)
		return dispatch_pinned(pool, op, err);
	struct lane *home = home_of(pool, op);
	if (home) {
		queue_on_lane(home, op);
		return home;
	}

	struct lane_view views[REMOTE_MAX_LANES];
	unsigned bulk_lanes = bulk_lanes_of(pool), ups = 0;
	for (unsigned i = 0; i < pool->config.max_lanes; i++) {
		const struct lane *lane = &pool->lanes[i];
		views[i] = (struct lane_view){.up = lane->state == LANE_UP && !lane->retire,
		                              .bulk_bytes = lane->bulk_bytes,
		                              .meta_ops = lane->meta_ops,
		                              .has_handle = has_handles(lane, op),
		                              .spared = ups > bulk_lanes};
		ups += views[i].up;
	}
	enum need need = need_of(op);
	int index = choose_lane(views, pool->config.max_lanes, op, need != NEED_NONE);
	if (index < 0 && need == NEED_IF_ANY)
		index = choose_lane(views, pool->config.max_lanes, op, false);
	if (index >= 0) {
		queue_on_lane(&pool->lanes[index], op);
		if (pool->warm && !pool->wants_lane && ups < pool_lane_goal(pool) &&
		    choose_wants_lane(views, pool->config.max_lanes)) {
			pool->wants_lane = true;
			pthread_cond_broadcast(&pool->changed);
		}
		return &pool->lanes[index];
	}
	if (need == NEED_OPEN && pool_lanes_up(pool) > 0) {
		*err = -ESTALE;
		return NULL;
	}
	/* While the server is known to be gone calls fail at once instead of waiting again. */
	if (pool->down_since_ns &&
	    clock_now_ns() - pool->down_since_ns > pool->config.request_timeout_ns) {
		pool->asked = true;
		pthread_cond_broadcast(&pool->changed);
		*err = -ETIMEDOUT;
		return NULL;
	}
	if (pool->ever_up && !pool->config.reconnect) {
		*err = -ENOTCONN;
		return NULL;
	}
	list_push_back(&pool->waiting, &op->link);
	pthread_cond_broadcast(&pool->changed);
	return NULL;
}

static void route(struct pool *pool, struct op *op)
{
	int err;
	pthread_mutex_lock(&pool->lock);
	struct lane *lane = pool_dispatch(pool, op, &err);
	pthread_mutex_unlock(&pool->lock);
	if (lane)
		wake_signal(&lane->wake);
	else if (err)
		pool_finish(pool, op, err);
}

static void pool_submit(struct remote *remote, struct op *op)
{
	struct pool *pool = CONTAINER_OF(remote, struct pool, remote);
	op->submitted_ns = clock_now_ns();
	if (!op->deadline_ns)
		op->deadline_ns = op->submitted_ns + timeout_of(pool, op->kind);
	route(pool, op);
}

void pool_resubmit(struct pool *pool, struct op *op)
{
	op->attempts++;
	op->sent = false;
	op->count = 0;
	op->err = 0;
	op->lane = NULL;
	atomic_fetch_add_explicit(&pool->repeated, 1, memory_order_relaxed);
	route(pool, op);
}

/* Rare, so it is simple: everyone looks through what they hold. */
static void pool_cancel(struct remote *remote, struct op *op)
{
	struct pool *pool = CONTAINER_OF(remote, struct pool, remote);
	atomic_store(&op->cancelled, true);
	LOCK_SCOPE(&pool->lock);
	for (unsigned i = 0; i < pool->config.max_lanes; i++) {
		atomic_store(&pool->lanes[i].scan, true);
		if (pool->lanes[i].state == LANE_UP)
			wake_signal(&pool->lanes[i].wake);
	}
	pthread_cond_broadcast(&pool->changed);
}

static void pool_link(struct remote *remote, struct remote_link *link)
{
	struct pool *pool = CONTAINER_OF(remote, struct pool, remote);
	LOCK_SCOPE(&pool->lock);
	link->rtt_ns = estimate_rtt_ns(&pool->estimate);
	link->bytes_per_sec = estimate_rate(&pool->estimate);
	link->lanes = pool_lanes_up(pool);
}

void pool_finish(struct pool *pool, struct op *op, int err)
{
	struct op_counter *counter = &pool->counters[op->kind];
	op->err = err;
	op->lane = NULL;
	hist_add(&counter->latency, clock_now_ns() - op->submitted_ns);
	if (err)
		atomic_fetch_add_explicit(&counter->errors, 1, memory_order_relaxed);
	else if (choose_is_bulk(op))
		atomic_fetch_add_explicit(&counter->bytes,
		                          op->kind == OP_WRITE ? op->length : op->count,
		                          memory_order_relaxed);
	op->done(op);
}

static const struct remote_ops pool_ops = {.submit = pool_submit, .cancel = pool_cancel};

struct pool *pool_new(struct session_factory *factory, const struct pool_config *config)
{
	struct pool *pool = calloc(1, sizeof(*pool));
	if (!pool)
		return NULL;
	pool->remote.ops = &pool_ops;
	pool->remote.link = pool_link;
	pool->factory = factory;
	pool->config = *config;
	pool->lane_limit = config->max_lanes;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	pool->processors = processors > 0 ? (unsigned)processors : 1;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->changed, NULL);
	list_init(&pool->waiting);
	for (int i = 0; i < REMOTE_MAX_LANES; i++) {
		struct lane *lane = &pool->lanes[i];
		lane->pool = pool;
		lane->index = i;
		lane->wake.fd = -1;
		list_init(&lane->inbox);
		list_init(&lane->in_flight);
	}
	return pool;
}

/* The capabilities that a mount without a first connection assumes; an op that the server then
 * cannot do says so itself, and sessions split what is too large for it. */
static const struct remote_caps hopeful_caps = {.max_read = 255 * 1024,
                                                .max_write = 255 * 1024,
                                                .posix_rename = true,
                                                .hardlink = true,
                                                .statfs = true,
                                                .fsync = true,
                                                .lsetattr = true,
                                                .copy = true,
                                                .names = true,
                                                .random_write = true};

static int start_threads(struct pool *pool, struct failure *failure)
{
	for (unsigned i = 0; i < pool->config.max_lanes; i++) {
		struct lane *lane = &pool->lanes[i];
		lane->session =
		    pool->factory->create(pool->factory, (int)i, &lane_events, lane);
		if (!lane->session || wake_init(&lane->wake) < 0 ||
		    pthread_create(&lane->thread, NULL, lane_main, lane))
			return failure_set(failure, FAILURE_INTERNAL,
			                   "cannot start a connection thread: %s",
			                   strerror(errno));
		lane->started = true;
	}
	if (pthread_create(&pool->keeper, NULL, keeper_main, pool))
		return failure_set(failure, FAILURE_INTERNAL,
		                   "cannot start the pool's thread: %s", strerror(errno));
	pool->keeper_started = true;
	return 0;
}

int pool_start(struct pool *pool, struct failure *failure)
{
	if (start_threads(pool, failure))
		return -1;
	LOCK_SCOPE(&pool->lock);
	struct lane *first = &pool->lanes[0];
	first->wanted = true;
	pthread_cond_broadcast(&pool->changed);
	while (first->state != LANE_UP && pool->failures == 0)
		pthread_cond_wait(&pool->changed, &pool->lock);
	if (first->state == LANE_UP)
		return 0;
	*failure = pool->last_failure;
	return -1;
}

int pool_start_later(struct pool *pool, struct failure *failure)
{
	pool->remote.caps = hopeful_caps;
	pool->caps_fixed = true;
	return start_threads(pool, failure);
}

struct remote *pool_remote(struct pool *pool)
{
	return &pool->remote;
}

void pool_warm(struct pool *pool)
{
	LOCK_SCOPE(&pool->lock);
	pool->warm = true;
	pool->wants_lane = true;
	pthread_cond_broadcast(&pool->changed);
}

static void fail_waiting(struct pool *pool)
{
	struct list_node ops, *node;
	list_init(&ops);
	pthread_mutex_lock(&pool->lock);
	list_splice_back(&ops, &pool->waiting);
	pthread_mutex_unlock(&pool->lock);
	while ((node = list_pop_front(&ops)))
		pool_finish(pool, list_entry(node, struct op, link), -ENOTCONN);
}

void pool_free(struct pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->closing = true;
	for (unsigned i = 0; i < pool->config.max_lanes; i++) {
		atomic_store(&pool->lanes[i].stop_connect, true);
		if (pool->lanes[i].started)
			wake_signal(&pool->lanes[i].wake);
	}
	pthread_cond_broadcast(&pool->changed);
	pthread_mutex_unlock(&pool->lock);

	for (unsigned i = 0; i < pool->config.max_lanes; i++)
		if (pool->lanes[i].started)
			pthread_join(pool->lanes[i].thread, NULL);
	if (pool->keeper_started)
		pthread_join(pool->keeper, NULL);
	fail_waiting(pool);
	for (unsigned i = 0; i < pool->config.max_lanes; i++) {
		if (pool->lanes[i].session)
			pool->lanes[i].session->ops->destroy(pool->lanes[i].session);
		wake_release(&pool->lanes[i].wake);
	}
	pthread_cond_destroy(&pool->changed);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}
