/* A lane's thread: connects, hands ops to its session, watches over deadlines. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "remote/choose.h"
#include "remote/pool_internal.h"

static const uint64_t check_interval_ns = 250 * NS_PER_MS;

/* Takes the op out of the lane's books. Lock held. */
static void leave_books(struct lane *lane, const struct op *op)
{
	if (choose_is_bulk(op))
		lane->bulk_bytes -= op->length;
	else
		lane->meta_ops--;
}

static void measure(struct lane *lane, const struct op *op, uint64_t now)
{
	struct estimate *estimate = &lane->pool->estimate;
	if (choose_is_bulk(op)) {
		if (op->err == 0)
			estimate_add_bytes(estimate, now,
			                   op->kind == OP_WRITE ? op->length : op->count);
	} else if (op->sent && lane->bulk_bytes == 0) {
		estimate_add_rtt(estimate, now, now - op->submitted_ns);
	}
}

/* An op whose lane is gone: repeat it elsewhere, or end it. */
static void after_loss(struct lane *lane, struct op *op)
{
	struct pool *pool = lane->pool;
	if (atomic_load(&op->cancelled)) {
		pool_finish(pool, op, -EINTR);
		return;
	}
	if (op->pinned_lane) {
		pool_finish(pool, op, -ENOLINK);
		return;
	}
	switch (choose_after_loss(op, clock_now_ns(), pool->config.reconnect)) {
	case VERDICT_REPEAT:
		pool_resubmit(pool, op);
		break;
	case VERDICT_UNKNOWN:
		pool_finish(pool, op, -ENOLINK);
		break;
	case VERDICT_FAIL:
		pool_finish(pool, op, -ETIMEDOUT);
		break;
	}
}

/* The lane could not open the file again, as its name is gone or another's now: a lane that has
 * it open still can. */
static bool is_for_another_lane(const struct op *op)
{
	return op->err == -ESTALE && op->file && !op->stays && !atomic_load(&op->cancelled);
}

/* The session's word that an op has ended; on the lane's thread. */
static void lane_done(void *context, struct op *op)
{
	struct lane *lane = context;
	list_remove(&op->link);
	op->ran_on = lane->index + 1;
	if (op->kind == OP_OPEN && !op->err)
		atomic_store(&op->file->home_lane, lane->index);
	pthread_mutex_lock(&lane->pool->lock);
	leave_books(lane, op);
	if (op != &lane->ping || op->err == 0)
		measure(lane, op, clock_now_ns());
	pthread_mutex_unlock(&lane->pool->lock);
	if (op == &lane->ping) {
		lane->ping_out = false;
	} else if (op->err == -ENOLINK && lane->dropping) {
		after_loss(lane, op);
	} else if (is_for_another_lane(op)) {
		op->stays = true;
		pool_resubmit(lane->pool, op);
	} else {
		pool_finish(lane->pool, op, op->err);
	}
}

const struct session_events lane_events = {.done = lane_done};

/* Moves the inbox into the session. False when the lane is to end. */
static bool take_inbox(struct lane *lane)
{
	struct list_node ops, *node;
	list_init(&ops);
	pthread_mutex_lock(&lane->pool->lock);
	list_splice_back(&ops, &lane->inbox);
	bool go_on = !lane->pool->closing &&
	             !(lane->retire && list_empty(&ops) && list_empty(&lane->in_flight));
	pthread_mutex_unlock(&lane->pool->lock);
	while ((node = list_pop_front(&ops))) {
		struct op *op = list_entry(node, struct op, link);
		list_push_back(&lane->in_flight, &op->link);
		lane->session->ops->submit(lane->session, op);
	}
	return go_on;
}

/* Ends cancelled ops and finds late ones. -ETIMEDOUT when the lane is to be given up. */
static int check_ops(struct lane *lane, uint64_t now, struct failure *failure)
{
	atomic_store(&lane->scan, false);
	const struct session_ops *ops = lane->session->ops;
	uint64_t timeout = lane->pool->config.request_timeout_ns;
	list_for_each_safe (node, &lane->in_flight) {
		struct op *op = list_entry(node, struct op, link);
		if (atomic_load(&op->cancelled)) {
			ops->cancel(lane->session, op, -EINTR);
		} else if (choose_expired(op, now, lane->last_reply_ns, timeout)) {
			failure_set(
			    failure, FAILURE_UNREACHABLE, "no answer to %s for %llu s",
			    op_kind_name(op->kind),
			    (unsigned long long)((now - op->submitted_ns) / NS_PER_SEC));
			return -ETIMEDOUT;
		}
	}
	return 0;
}

static void send_ping(struct lane *lane, uint64_t now)
{
	struct op *op = &lane->ping;
	memset(op, 0, sizeof(*op));
	op->kind = OP_PING;
	op->submitted_ns = now;
	op->deadline_ns = now + lane->pool->config.request_timeout_ns;
	op->lane = lane;
	pthread_mutex_lock(&lane->pool->lock);
	lane->meta_ops++;
	pthread_mutex_unlock(&lane->pool->lock);
	lane->ping_out = true;
	list_push_back(&lane->in_flight, &op->link);
	lane->session->ops->submit(lane->session, op);
}

/* Waits until the session or the inbox has something, or until the next check is due. */
static void lane_wait(struct lane *lane, uint64_t now)
{
	struct pollfd fds[6];
	bool ready = false;
	int count = lane->session->ops->poll_set(lane->session, fds, 4, &ready);
	fds[count] = (struct pollfd){.fd = wake_fd(&lane->wake), .events = POLLIN};

	int timeout_ms = -1;
	uint64_t keepalive = lane->pool->config.keepalive_ns;
	if (!list_empty(&lane->in_flight)) {
		timeout_ms = (int)(check_interval_ns / NS_PER_MS);
	} else if (keepalive) {
		uint64_t due = lane->last_reply_ns + keepalive;
		timeout_ms = due > now ? (int)((due - now) / NS_PER_MS) + 1 : 0;
	}
	wake_prepare(&lane->wake);
	pthread_mutex_lock(&lane->pool->lock);
	bool work = !list_empty(&lane->inbox) || lane->retire || lane->pool->closing;
	pthread_mutex_unlock(&lane->pool->lock);
	if (!work && !ready && !atomic_load(&lane->scan))
		poll(fds, (nfds_t)count + 1, timeout_ms);
	wake_finish(&lane->wake);
}

/* Serves the session until it dies (-errno) or the lane is to end (0). */
static int lane_serve(struct lane *lane, struct failure *failure)
{
	uint64_t checked = lane->last_reply_ns;
	while (take_inbox(lane)) {
		int err = lane->session->ops->progress(lane->session, failure);
		if (err)
			return err;
		uint64_t now = clock_now_ns();
		if (lane->session->bytes_in != lane->bytes_in_seen) {
			lane->bytes_in_seen = lane->session->bytes_in;
			lane->last_reply_ns = now;
		}
		if (atomic_load(&lane->scan) || now - checked >= check_interval_ns) {
			checked = now;
			err = check_ops(lane, now, failure);
			if (err)
				return err;
		}
		uint64_t keepalive = lane->pool->config.keepalive_ns;
		if (keepalive && !lane->ping_out && now - lane->last_reply_ns >= keepalive) {
			send_ping(lane, now);
			continue;
		}
		lane_wait(lane, now);
	}
	return 0;
}

/* Everything the lane held goes elsewhere or ends. */
static void hand_back(struct lane *lane)
{
	lane->dropping = true;
	lane->session->ops->disconnect(lane->session);
	lane->dropping = false;

	struct list_node ops, *node;
	list_init(&ops);
	pthread_mutex_lock(&lane->pool->lock);
	list_splice_back(&ops, &lane->inbox);
	list_for_each (at, &ops)
		leave_books(lane, list_entry(at, struct op, link));
	pthread_mutex_unlock(&lane->pool->lock);
	while ((node = list_pop_front(&ops)))
		after_loss(lane, list_entry(node, struct op, link));
}

static bool wait_until_wanted(struct lane *lane)
{
	struct pool *pool = lane->pool;
	LOCK_SCOPE(&pool->lock);
	while (!pool->closing && !lane->wanted)
		pthread_cond_wait(&pool->changed, &pool->lock);
	lane->wanted = false;
	if (pool->closing)
		return false;
	lane->state = LANE_CONNECTING;
	return true;
}

/* Lock held. */
static void note_failure(struct lane *lane, const struct failure *failure)
{
	struct pool *pool = lane->pool;
	uint64_t now = clock_now_ns();
	lane->state = LANE_OFF;
	if (pool_lanes_up(pool) > 0) {
		/* The server bears no more than it has: stay within, ask again much later. */
		pool->lane_limit = pool_lanes_up(pool);
		pool->lane_limit_until_ns = now + 300 * NS_PER_SEC;
		log_info("going on with %u connection(s): one more was refused: %s",
		         pool->lane_limit, failure->text);
	} else {
		pool->last_failure = *failure;
		bool stubborn =
		    failure->kind == FAILURE_AUTH || failure->kind == FAILURE_HOST_KEY;
		pool->failures++;
		pool->next_attempt_ns = now + choose_backoff(pool->failures, stubborn);
		if (!pool->down_since_ns)
			pool->down_since_ns = now;
		/* pool_start() tells the first failure itself; of an outage the log hears once.
		 */
		if (pool->caps_fixed && pool->failures == 1)
			log_warn("cannot reach %s: %s", pool->factory->peer, failure->text);
		else
			log_debug("cannot reach %s: %s", pool->factory->peer, failure->text);
	}
	pthread_cond_broadcast(&pool->changed);
}

/* Lock held. Gives the lane to what waits. */
static void note_success(struct lane *lane)
{
	struct pool *pool = lane->pool;
	if (!pool->caps_fixed) {
		pool->remote.caps = lane->session->caps;
		pool->caps_fixed = true;
	}
	lane->state = LANE_UP;
	lane->retire = false;
	lane->connected_ns = lane->last_used_ns = clock_now_ns();
	if (pool->down_since_ns)
		log_info("%s is back", pool->factory->peer);
	pool->down_since_ns = 0;
	pool->failures = 0;
	pool->ever_up = true;
	list_for_each_safe (node, &pool->waiting) {
		struct op *op = list_entry(node, struct op, link);
		list_remove(node);
		int err;
		pool_dispatch(pool, op, &err);
		if (err) {
			/* done() may not run under the lock: the keeper ends it. */
			list_push_front(&pool->waiting, &op->link);
			op->err = err;
		}
	}
	pthread_cond_broadcast(&pool->changed);
}

static bool lane_connect(struct lane *lane)
{
	struct pool *pool = lane->pool;
	struct failure failure = {.kind = FAILURE_NONE};
	uint64_t deadline = clock_now_ns() + pool->config.connect_timeout_ns;
	pthread_mutex_lock(&pool->lock);
	lane->session->generation = ++lane->generation;
	pthread_mutex_unlock(&pool->lock);
	int err =
	    lane->session->ops->connect(lane->session, deadline, &lane->stop_connect, &failure);
	pthread_mutex_lock(&pool->lock);
	if (err)
		note_failure(lane, &failure);
	else
		note_success(lane);
	pthread_mutex_unlock(&pool->lock);
	log_trace(LOG_POOL, "lane %d: %s", lane->index, err ? failure.text : "connected");
	return err == 0;
}

void *lane_main(void *argument)
{
	struct lane *lane = argument;
	struct pool *pool = lane->pool;
	while (wait_until_wanted(lane)) {
		if (!lane_connect(lane))
			continue;
		struct failure failure = {.kind = FAILURE_NONE};
		lane->bytes_in_seen = lane->session->bytes_in;
		lane->last_reply_ns = clock_now_ns();
		int err = lane_serve(lane, &failure);

		pthread_mutex_lock(&pool->lock);
		lane->state = LANE_OFF;
		lane->retire = false;
		if (err) {
			lane->losses++;
			if (pool_lanes_up(pool) == 0) {
				pool->down_since_ns = clock_now_ns();
				pool->next_attempt_ns = 0;
				log_warn("connection to %s lost: %s", pool->factory->peer,
				         failure.text[0] ? failure.text : strerror(-err));
			}
		}
		pthread_cond_broadcast(&pool->changed);
		pthread_mutex_unlock(&pool->lock);
		log_trace(LOG_POOL, "lane %d: closed: %s", lane->index,
		          err ? failure.text : "not needed");
		hand_back(lane);
	}
	return NULL;
}
