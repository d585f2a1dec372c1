#include "fake_remote.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "fake_internal.h"

enum { MAX_REQUEST = 256 * 1024 };

#define WAIT_LIMIT_NS (10 * NS_PER_SEC)

/* An op that has arrived and not ended. */
struct arrival {
	struct list_node link;
	struct op *op;
	uint64_t due_ns;
	int fault; /* it fails so instead of being executed; 0: none */
};

struct fault {
	struct list_node link;
	enum op_kind kind;
	unsigned skip;
	int err;
};

static struct fake_remote *from_remote(struct remote *remote)
{
	return CONTAINER_OF(remote, struct fake_remote, remote);
}

/* ---- the queue and its thread ---- */

static bool is_ready(struct fake_remote *fake, const struct arrival *arrival, uint64_t now_ns)
{
	if (fake->stopping || arrival->op->cancelled)
		return true;
	return !fake->kinds[arrival->op->kind].held && now_ns >= arrival->due_ns;
}

static struct arrival *find_ready(struct fake_remote *fake, uint64_t now_ns, uint64_t *next_ns)
{
	*next_ns = UINT64_MAX;
	list_for_each (at, &fake->arrivals) {
		struct arrival *arrival = list_entry(at, struct arrival, link);
		if (is_ready(fake, arrival, now_ns))
			return arrival;
		if (arrival->due_ns > now_ns && arrival->due_ns < *next_ns)
			*next_ns = arrival->due_ns;
	}
	return NULL;
}

static int outcome(struct fake_remote *fake, const struct arrival *arrival)
{
	if (arrival->op->cancelled)
		return -EINTR;
	if (fake->stopping && arrival->op->kind != OP_CLOSE)
		return -ENOTCONN;
	return arrival->fault ? arrival->fault : fake_execute(fake, arrival->op);
}

/* Called with the lock, which it lets go while it completes the op. */
static void finish(struct fake_remote *fake, struct arrival *arrival)
{
	struct op *op = arrival->op;
	int err = outcome(fake, arrival);
	list_remove(&arrival->link);
	free(arrival);
	fake->kinds[op->kind].in_flight--;
	op->err = err;
	pthread_mutex_unlock(&fake->lock);
	op->done(op);
	pthread_mutex_lock(&fake->lock);
}

static void *serve(void *argument)
{
	struct fake_remote *fake = argument;
	LOCK_SCOPE(&fake->lock);
	for (;;) {
		uint64_t next_ns;
		struct arrival *arrival = find_ready(fake, clock_now_ns(), &next_ns);
		if (arrival) {
			finish(fake, arrival);
		} else if (fake->stopping) {
			return NULL;
		} else if (next_ns == UINT64_MAX) {
			pthread_cond_wait(&fake->changed, &fake->lock);
		} else {
			struct timespec until = clock_to_timespec(next_ns);
			pthread_cond_timedwait(&fake->changed, &fake->lock, &until);
		}
	}
}

/* The error that a fault has in store for an op of the kind that arrives now. */
static int take_fault(struct fake_remote *fake, enum op_kind kind)
{
	int err = 0;
	list_for_each_safe (at, &fake->faults) {
		struct fault *fault = list_entry(at, struct fault, link);
		if (fault->kind != kind)
			continue;
		if (fault->skip) {
			fault->skip--;
		} else if (!err) {
			err = fault->err;
			list_remove(&fault->link);
			free(fault);
		}
	}
	return err;
}

static void submit(struct remote *remote, struct op *op)
{
	struct fake_remote *fake = from_remote(remote);
	LOCK_SCOPE(&fake->lock);
	struct kind_state *kind = &fake->kinds[op->kind];
	struct arrival *arrival = fake_need(calloc(1, sizeof(*arrival)));
	arrival->op = op;
	arrival->due_ns = clock_now_ns() + kind->delay_ns;
	arrival->fault = take_fault(fake, op->kind);
	list_push_back(&fake->arrivals, &arrival->link);
	kind->count++;
	kind->in_flight++;
	kind->peak = MAX(kind->peak, kind->in_flight);
	kind->largest = MAX(kind->largest, op->length);
	pthread_cond_broadcast(&fake->changed);
}

static void cancel(struct remote *remote, struct op *op)
{
	struct fake_remote *fake = from_remote(remote);
	LOCK_SCOPE(&fake->lock);
	list_for_each (at, &fake->arrivals) {
		if (list_entry(at, struct arrival, link)->op == op)
			op->cancelled = true;
	}
	pthread_cond_broadcast(&fake->changed);
}

static void tell_link(struct remote *remote, struct remote_link *link)
{
	struct fake_remote *fake = from_remote(remote);
	LOCK_SCOPE(&fake->lock);
	*link = fake->link;
}

struct fake_remote *fake_remote_new(void)
{
	static const struct remote_ops ops = {.submit = submit, .cancel = cancel};
	struct fake_remote *fake = fake_need(calloc(1, sizeof(*fake)));
	fake->remote = (struct remote){
	    .ops = &ops,
	    .caps = {.max_read = MAX_REQUEST,
	             .max_write = MAX_REQUEST,
	             .posix_rename = true,
	             .hardlink = true,
	             .statfs = true,
	             .fsync = true,
	             .lsetattr = true,
	             .copy = true,
	             .names = true,
	             .random_write = true},
	    .link = tell_link,
	};
	pthread_mutex_init(&fake->lock, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&fake->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	tree_init(&fake->tree);
	list_init(&fake->arrivals);
	list_init(&fake->faults);
	list_init(&fake->open_files);
	if (pthread_create(&fake->thread, NULL, serve, fake))
		abort();
	return fake;
}

void fake_remote_free(struct fake_remote *fake)
{
	pthread_mutex_lock(&fake->lock);
	fake->stopping = true;
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->lock);
	pthread_join(fake->thread, NULL);
	list_for_each_safe (at, &fake->faults)
		free(list_entry(at, struct fault, link));
	fake_close_files(fake);
	tree_release(&fake->tree);
	pthread_cond_destroy(&fake->changed);
	pthread_mutex_destroy(&fake->lock);
	free(fake);
}

struct remote *fake_remote_remote(struct fake_remote *fake)
{
	return &fake->remote;
}

/* ---- behind the mount's back ---- */

void fake_put_file(struct fake_remote *fake, const char *path, const void *data, size_t length,
                   time_t mtime)
{
	pthread_mutex_lock(&fake->lock);
	struct tree_node *node;
	int err =
	    tree_open(&fake->tree, path, OPEN_WRITE | OPEN_CREATE | OPEN_TRUNC, 0644, &node);
	if (!err) {
		tree_write(node, 0, data, length);
		node->mtime = mtime;
		tree_unref(node);
	}
	pthread_mutex_unlock(&fake->lock);
	assert_int_equal(err, 0);
}

void fake_put_dir(struct fake_remote *fake, const char *path)
{
	pthread_mutex_lock(&fake->lock);
	int err = tree_mkdir(&fake->tree, path, 0755);
	pthread_mutex_unlock(&fake->lock);
	assert_int_equal(err, 0);
}

void fake_put_symlink(struct fake_remote *fake, const char *path, const char *target)
{
	pthread_mutex_lock(&fake->lock);
	int err = tree_symlink(&fake->tree, target, path);
	pthread_mutex_unlock(&fake->lock);
	assert_int_equal(err, 0);
}

void fake_remove(struct fake_remote *fake, const char *path)
{
	pthread_mutex_lock(&fake->lock);
	int err = tree_unlink(&fake->tree, path);
	if (err)
		err = tree_rmdir(&fake->tree, path);
	pthread_mutex_unlock(&fake->lock);
	assert_int_equal(err, 0);
}

char *fake_get_file(struct fake_remote *fake, const char *path, size_t *length)
{
	LOCK_SCOPE(&fake->lock);
	struct tree_node *node;
	if (tree_find(&fake->tree, path, true, &node))
		return NULL;
	char *copy = fake_need(calloc(1, node->size + 1));
	ssize_t count = tree_read(node, 0, copy, node->size);
	*length = count < 0 ? 0 : (size_t)count;
	return copy;
}

bool fake_exists(struct fake_remote *fake, const char *path)
{
	LOCK_SCOPE(&fake->lock);
	struct tree_node *node;
	return tree_find(&fake->tree, path, false, &node) == 0;
}

/* ---- faults and counts ---- */

void fake_set_delay(struct fake_remote *fake, enum op_kind kind, uint64_t delay_ns)
{
	LOCK_SCOPE(&fake->lock);
	fake->kinds[kind].delay_ns = delay_ns;
}

void fake_fail_next(struct fake_remote *fake, enum op_kind kind, unsigned skip, int err)
{
	LOCK_SCOPE(&fake->lock);
	struct fault *fault = fake_need(calloc(1, sizeof(*fault)));
	*fault = (struct fault){.kind = kind, .skip = skip, .err = err};
	list_push_back(&fake->faults, &fault->link);
}

void fake_hold(struct fake_remote *fake, enum op_kind kind, bool held)
{
	LOCK_SCOPE(&fake->lock);
	fake->kinds[kind].held = held;
	pthread_cond_broadcast(&fake->changed);
}

unsigned fake_peak(struct fake_remote *fake, enum op_kind kind)
{
	LOCK_SCOPE(&fake->lock);
	return fake->kinds[kind].peak;
}

unsigned fake_count(struct fake_remote *fake, enum op_kind kind)
{
	LOCK_SCOPE(&fake->lock);
	return fake->kinds[kind].count;
}

static bool wait_count(struct fake_remote *fake, enum op_kind kind, unsigned count)
{
	struct timespec until = clock_to_timespec(clock_now_ns() + WAIT_LIMIT_NS);
	LOCK_SCOPE(&fake->lock);
	while (fake->kinds[kind].count < count)
		if (pthread_cond_timedwait(&fake->changed, &fake->lock, &until))
			return fake->kinds[kind].count >= count;
	return true;
}

void fake_wait_count(struct fake_remote *fake, enum op_kind kind, unsigned count)
{
	if (!wait_count(fake, kind, count))
		fail_msg("waited 10 s for %u ops %s, there were %u", count, op_kind_name(kind),
		         fake_count(fake, kind));
}

uint64_t fake_bytes_read(struct fake_remote *fake)
{
	LOCK_SCOPE(&fake->lock);
	return fake->bytes_read;
}

size_t fake_largest(struct fake_remote *fake, enum op_kind kind)
{
	LOCK_SCOPE(&fake->lock);
	return fake->kinds[kind].largest;
}

void fake_set_full(struct fake_remote *fake, bool full)
{
	LOCK_SCOPE(&fake->lock);
	fake->full = full;
}

void fake_set_link(struct fake_remote *fake, const struct remote_link *link)
{
	LOCK_SCOPE(&fake->lock);
	fake->link = *link;
}

void fake_reset_counts(struct fake_remote *fake)
{
	LOCK_SCOPE(&fake->lock);
	for (size_t i = 0; i < OP_KINDS; i++) {
		struct kind_state *kind = &fake->kinds[i];
		kind->count = 0;
		kind->largest = 0;
		kind->peak = kind->in_flight;
	}
	fake->bytes_read = 0;
}
