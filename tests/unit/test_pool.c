/* The pool over scripted sessions: order, reconnects, limits, deadlines, cancel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "remote/pool.h"

/* What all sessions of a test obey. */
struct script {
	struct session_factory factory;
	pthread_mutex_t lock;
	unsigned max_sessions; /* connects beyond so many at once fail */
	bool silent;           /* ops get no answer */
	bool refuse;           /* connects fail */
	int stale_on;          /* index + 1 of the lane that cannot open files; 0: none */
	unsigned die_after;    /* the connection dies when so many more ops came; 0: never */
	unsigned up, connects, most_up, ops;
};

struct fake_session {
	struct session session;
	struct script *script;
	struct list_node ops;
	bool up, dying;
};

static struct fake_session *of(struct session *session)
{
	return (struct fake_session *)session;
}

static int fake_connect(struct session *session, uint64_t deadline, const _Atomic bool *cancel,
                        struct failure *failure)
{
	(void)deadline;
	(void)cancel;
	struct script *script = of(session)->script;
	LOCK_SCOPE(&script->lock);
	script->connects++;
	if (script->refuse || script->up >= script->max_sessions)
		return failure_set(failure, FAILURE_TOO_MANY, "too many connections");
	script->up++;
	if (script->up > script->most_up)
		script->most_up = script->up;
	of(session)->up = true;
	of(session)->dying = false;
	session->caps.max_read = session->caps.max_write = 32768;
	session->kind = "fake";
	return 0;
}

static void fake_submit(struct session *session, struct op *op)
{
	struct fake_session *fake = of(session);
	LOCK_SCOPE(&fake->script->lock);
	op->sent = true;
	list_push_back(&fake->ops, &op->proto.link);
	fake->script->ops++;
	if (fake->script->die_after && --fake->script->die_after == 0)
		fake->dying = true;
}

static int fake_poll_set(struct session *session, struct pollfd *fds, int max, bool *ready)
{
	(void)fds;
	(void)max;
	*ready = !list_empty(&of(session)->ops) && !of(session)->script->silent;
	return 0;
}

static int fake_progress(struct session *session, struct failure *failure)
{
	struct fake_session *fake = of(session);
	if (fake->dying) {
		failure_set(failure, FAILURE_UNREACHABLE, "connection reset");
		return -ECONNRESET;
	}
	pthread_mutex_lock(&fake->script->lock);
	bool silent = fake->script->silent;
	pthread_mutex_unlock(&fake->script->lock);
	struct list_node *node;
	while (!silent && (node = list_pop_front(&fake->ops))) {
		struct op *op = list_entry(node, struct op, proto.link);
		session->bytes_in += 100;
		op->err = session->index + 1 == fake->script->stale_on ? -ESTALE : 0;
		op->count = op->length;
		session->events->done(session->lane, op);
	}
	return 0;
}

static void fake_disconnect(struct session *session)
{
	struct fake_session *fake = of(session);
	pthread_mutex_lock(&fake->script->lock);
	if (fake->up)
		fake->script->up--;
	fake->up = false;
	pthread_mutex_unlock(&fake->script->lock);
	struct list_node *node;
	while ((node = list_pop_front(&fake->ops))) {
		struct op *op = list_entry(node, struct op, proto.link);
		op->err = -ENOLINK;
		session->events->done(session->lane, op);
	}
}

static bool fake_cancel(struct session *session, struct op *op, int err)
{
	list_remove(&op->proto.link);
	op->err = err;
	session->events->done(session->lane, op);
	return true;
}

static void fake_destroy(struct session *session)
{
	free(session);
}

static const struct session_ops fake_ops = {.protocol = "fake",
                                            .connect = fake_connect,
                                            .submit = fake_submit,
                                            .poll_set = fake_poll_set,
                                            .progress = fake_progress,
                                            .disconnect = fake_disconnect,
                                            .cancel = fake_cancel,
                                            .destroy = fake_destroy};

static struct session *fake_create(struct session_factory *factory, int index,
                                   const struct session_events *events, void *lane)
{
	struct fake_session *fake = calloc(1, sizeof(*fake));
	assert_non_null(fake);
	fake->session.ops = &fake_ops;
	fake->session.events = events;
	fake->session.lane = lane;
	fake->session.index = index;
	fake->script = (struct script *)factory;
	list_init(&fake->ops);
	return &fake->session;
}

static void script_init(struct script *script)
{
	memset(script, 0, sizeof(*script));
	script->factory.create = fake_create;
	script->factory.peer = "user@host";
	script->max_sessions = 100;
	pthread_mutex_init(&script->lock, NULL);
}

static struct pool *new_pool(struct script *script, unsigned lanes, uint64_t timeout_ns)
{
	struct pool_config config = {.max_lanes = lanes,
	                             .request_timeout_ns = timeout_ns,
	                             .connect_timeout_ns = NS_PER_SEC,
	                             .reconnect = true};
	struct pool *pool = pool_new(&script->factory, &config);
	assert_non_null(pool);
	return pool;
}

static void wait_until(struct script *script, const unsigned *value, unsigned wanted)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&script->lock);
		bool there = *value >= wanted;
		pthread_mutex_unlock(&script->lock);
		if (there)
			return;
		usleep(10000);
	}
	fail_msg("did not happen within 10 s");
}

static void set_flag(struct script *script, bool *flag, bool value)
{
	LOCK_SCOPE(&script->lock);
	*flag = value;
}

static void a_call_is_answered_and_counted(void **state)
{
	(void)state;
	struct script script;
	script_init(&script);
	struct pool *pool = new_pool(&script, 1, 5 * NS_PER_SEC);
	struct failure failure;
	assert_int_equal(pool_start(pool, &failure), 0);
	struct remote_attr attr;
	for (int i = 0; i < 100; i++)
		assert_int_equal(remote_lstat(pool_remote(pool), "/x", &attr), 0);
	assert_int_equal(pool_remote(pool)->caps.max_read, 32768);
	struct bytes text = BYTES_INIT;
	pool_report(pool, &text);
	assert_non_null(strstr(text.data, "op lstat: count 100, errors 0"));
	assert_non_null(strstr(text.data, "op total: count 100\n"));
	bytes_release(&text);
	pool_free(pool);
}

static void a_first_connection_that_fails_is_told(void **state)
{
	(void)state;
	struct script script;
	script_init(&script);
	script.refuse = true;
	struct pool *pool = new_pool(&script, 4, 5 * NS_PER_SEC);
	struct failure failure;
	assert_int_equal(pool_start(pool, &failure), -1);
	assert_int_equal(failure.kind, FAILURE_TOO_MANY);
	assert_string_equal(failure.text, "too many connections");
	pool_free(pool);
}

static void lanes_are_warmed_up_to_what_the_server_bears(void **state)
{
	(void)state;
	struct script script;
	script_init(&script);
	script.max_sessions = 2;
	struct pool *pool = new_pool(&script, 4, 5 * NS_PER_SEC);
	struct failure failure;
	assert_int_equal(pool_start(pool, &failure), 0);
	pool_warm(pool);
	wait_until(&script, &script.connects, 3);
	struct remote_link link = {0};
	for (int i = 0; i < 100 && link.lanes != 2; i++) {
		usleep(10000);
		pool_remote(pool)->link(pool_remote(pool), &link);
	}
	assert_int_equal(link.lanes, 2);
	struct remote_attr attr;
	assert_int_equal(remote_lstat(pool_remote(pool), "/x", &attr), 0);
	assert_int_equal(script.connects, 3);
	pool_free(pool);
}

static void a_lost_connection_is_made_again_and_the_call_repeated(void **state)
{
	(void)state;
	struct script script;
	script_init(&script);
	struct pool *pool = new_pool(&script, 1, 5 * NS_PER_SEC);
	struct failure failure;
	assert_int_equal(pool_start(pool, &failure), 0);
	script.die_after = 1;
	struct remote_attr attr;
	assert_int_equal(remote_lstat(pool_remote(pool), "/x", &attr), 0);
	assert_int_equal(script.connects, 2);
	pool_free(pool);
}

/* mkdir was sent when the connection died: the pool looks (lstat) before it sends it again. */
static void what_must_not_run_twice_is_settled_by_looking(void **state)
{
	(void)state;
	struct script script;
	script_init(&script);
	struct pool *pool = new_pool(&script, 1, 5 * NS_PER_SEC);
	struct failure failure;
	assert_int_equal(pool_start(pool, &failure), 0);
	script.die_after = 1;
	script.ops = 0;
	/* lstat answers "exists" without a type: not the directory that was wanted, so mkdir is
	 * sent once more */
	assert_int_equal(remote_mkdir(pool_remote(pool), "/x", 0755), 0);
	assert_int_equal(script.ops, 3);
	pool_free(pool);
}

/* A lane cannot open a file again, as its name is gone: one that has it open serves the op. */
static void what_a_lane_cannot_open_is_done_where_it_is_open(void **state)
{
	(void)state;
	struct script script;
	script_init(&script);
	struct pool *pool = new_pool(&script, 2, 5 * NS_PER_SEC);
	struct failure failure;
	assert_int_equal(pool_start(pool, &failure), 0);
	pool_warm(pool);
	wait_until(&script, &script.up, 2);
	struct remote_file *file = remote_file_new(pool_remote(pool), "/f", OPEN_READ);
	assert_non_null(file);
	struct remote_attr attr = {0};
	char byte;
	size_t count;
	script.stale_on = 1;
	/* open nowhere: that is the end of it */
	assert_int_equal(remote_read(file, 0, &byte, 1, &count), -ESTALE);
	struct remote_handle *handle = remote_file_handle(file, 1);
	assert_non_null(handle);
	atomic_store(&handle->open, true);
	atomic_store(&handle->generation, 1);
	script.ops = 0;
	assert_int_equal(remote_fstat(file, &attr), 0);
	assert_in_range(script.ops, 1, 2); /* the first lane was asked, or was not */
	remote_file_moving(file, true);
	script.ops = 0;
	assert_int_equal(remote_fstat(file, &attr), 0);
	assert_int_equal(script.ops, 1); /* while it moves only the second one is */
	remote_file_moving(file, false);
	atomic_store(&handle->open, false);
	remote_file_unref(file);
	pool_free(pool);
}

static void a_silent_server_ends_in_a_time_out_and_then_fails_fast(void **state)
{
	(void)state;
	struct script script;
	script_init(&script);
	struct pool *pool = new_pool(&script, 1, 400 * NS_PER_MS);
	struct failure failure;
	assert_int_equal(pool_start(pool, &failure), 0);
	set_flag(&script, &script.silent, true);
	set_flag(&script, &script.refuse, true);
	struct remote_attr attr;
	assert_int_equal(remote_lstat(pool_remote(pool), "/x", &attr), -ETIMEDOUT);
	usleep(600000);
	uint64_t start = clock_now_ns();
	assert_int_equal(remote_lstat(pool_remote(pool), "/x", &attr), -ETIMEDOUT);
	assert_true(clock_now_ns() - start < 300 * NS_PER_MS);

	/* It comes back: the mount heals by itself. */
	set_flag(&script, &script.silent, false);
	set_flag(&script, &script.refuse, false);
	int err = -1;
	for (int i = 0; i < 1500 && err; i++) {
		err = remote_lstat(pool_remote(pool), "/x", &attr);
		usleep(10000);
	}
	assert_int_equal(err, 0);
	pool_free(pool);
}

static void *interrupt_later(void *scope)
{
	usleep(100000);
	remote_scope_interrupt(scope);
	return NULL;
}

static void an_interrupted_call_ends_soon(void **state)
{
	(void)state;
	struct script script;
	script_init(&script);
	struct pool *pool = new_pool(&script, 1, 60 * NS_PER_SEC);
	struct failure failure;
	assert_int_equal(pool_start(pool, &failure), 0);
	set_flag(&script, &script.silent, true);
	struct remote_scope scope;
	remote_scope_begin(&scope);
	pthread_t thread;
	pthread_create(&thread, NULL, interrupt_later, &scope);
	struct remote_attr attr;
	uint64_t start = clock_now_ns();
	assert_int_equal(remote_lstat(pool_remote(pool), "/x", &attr), -EINTR);
	assert_true(clock_now_ns() - start < 2 * NS_PER_SEC);
	assert_true(remote_scope_interrupted());
	assert_int_equal(remote_lstat(pool_remote(pool), "/x", &attr), -EINTR);
	pthread_join(thread, NULL);
	remote_scope_end(&scope);
	assert_false(remote_scope_interrupted());
	pool_free(pool);
}

static void without_a_first_connection_the_first_call_connects(void **state)
{
	(void)state;
	struct script script;
	script_init(&script);
	struct pool *pool = new_pool(&script, 2, 5 * NS_PER_SEC);
	struct failure failure;
	assert_int_equal(pool_start_later(pool, &failure), 0);
	assert_int_equal(script.connects, 0);
	struct remote_attr attr;
	assert_int_equal(remote_lstat(pool_remote(pool), "/x", &attr), 0);
	assert_int_equal(script.connects, 1);
	pool_free(pool);
}

struct burst {
	struct op op;
	atomic_uint *left;
};

static void burst_done(struct op *op)
{
	assert_int_equal(op->err, 0);
	atomic_fetch_sub(((struct burst *)op->owner)->left, 1);
}

static void many_reads_survive_connections_that_keep_dying(void **state)
{
	(void)state;
	enum { COUNT = 3000 };
	struct script script;
	script_init(&script);
	struct pool *pool = new_pool(&script, 4, 20 * NS_PER_SEC);
	struct failure failure;
	assert_int_equal(pool_start(pool, &failure), 0);
	pool_warm(pool);
	struct remote_file *file = remote_file_new(pool_remote(pool), "/f", OPEN_READ);
	struct burst *bursts = calloc(COUNT, sizeof(*bursts));
	atomic_uint left = COUNT;
	for (int i = 0; i < COUNT; i++) {
		struct op *op = &bursts[i].op;
		bursts[i].left = &left;
		op->kind = OP_READ;
		op->op_class = OP_CLASS_BULK;
		op->file = file;
		op->length = 32768;
		op->done = burst_done;
		op->owner = &bursts[i];
		remote_submit(pool_remote(pool), op);
		if (i % 700 == 699) {
			LOCK_SCOPE(&script.lock);
			script.die_after = 5;
		}
	}
	for (int i = 0; i < 2000 && atomic_load(&left); i++)
		usleep(10000);
	assert_int_equal(atomic_load(&left), 0);
	remote_file_unref(file);
	pool_free(pool);
	free(bursts);
}

int main(void)
{
	log_set_level(LOG_LEVEL_ERROR);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_call_is_answered_and_counted),
	    cmocka_unit_test(a_first_connection_that_fails_is_told),
	    cmocka_unit_test(lanes_are_warmed_up_to_what_the_server_bears),
	    cmocka_unit_test(a_lost_connection_is_made_again_and_the_call_repeated),
	    cmocka_unit_test(what_must_not_run_twice_is_settled_by_looking),
	    cmocka_unit_test(what_a_lane_cannot_open_is_done_where_it_is_open),
	    cmocka_unit_test(a_silent_server_ends_in_a_time_out_and_then_fails_fast),
	    cmocka_unit_test(an_interrupted_call_ends_soon),
	    cmocka_unit_test(without_a_first_connection_the_first_call_connects),
	    cmocka_unit_test(many_reads_survive_connections_that_keep_dying),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
