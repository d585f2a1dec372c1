/* Changes of attributes behind writes, over the fake server: order, merging, errors. */
#include "io_harness.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"

static const struct remote_attr mode_600 = {.valid = ATTR_MODE, .mode = 0600};
static const struct remote_attr mode_640 = {.valid = ATTR_MODE, .mode = 0640};
static const struct remote_attr year_2001 = {
    .valid = ATTR_TIMES, .atime = {.tv_sec = 978307201}, .mtime = {.tv_sec = 978307200}};

/* A new file, opened for writing, on a server that keeps the order (or does not). */
struct opened {
	struct harness *harness;
	struct fake_remote *fake;
	struct io_file *file;
	struct io_handle *handle;
};

static struct opened open_new(void **state, bool ordered)
{
	struct harness *harness = *state;
	harness->remote->caps.ordered = ordered;
	struct opened opened = {.harness = harness, .fake = harness->fake};
	opened.file = harness_file(harness);
	opened.handle = harness_open(harness, opened.file, "/f", OPEN_WRITE | OPEN_CREATE);
	return opened;
}

static void close_all(struct opened *opened)
{
	harness_close(opened->harness, opened->handle);
	harness_file_free(opened->harness, opened->file);
}

static void set(struct opened *f, const struct remote_attr *attr)
{
	uint64_t writes;
	assert_true(io_setattr(f->handle, attr, &writes));
	assert_int_equal(writes, io_file_writes(f->file));
	io_file_send(f->file);
}

static struct remote_attr server_attr(struct opened *f)
{
	struct remote_attr attr;
	assert_int_equal(remote_lstat(f->harness->remote, "/f", &attr), 0);
	return attr;
}

struct flush {
	struct io_handle *handle;
	int err;
};

static void *run_flush(void *argument)
{
	struct flush *flush = argument;
	flush->err = io_flush(flush->handle);
	return NULL;
}

static void a_change_goes_out_at_once_when_nothing_is_ahead(void **state)
{
	struct opened f = open_new(state, false);
	set(&f, &mode_600);
	fake_wait_count(f.fake, OP_FSETATTR, 1);
	assert_int_equal(io_flush(f.handle), 0);
	assert_int_equal(server_attr(&f).mode & 07777, 0600);
	close_all(&f);
}

static void changes_in_a_row_become_one_request(void **state)
{
	struct opened f = open_new(state, true);
	fake_hold(f.fake, OP_WRITE, true);
	assert_int_equal(write_now(f.handle, 0, "hello", 5), 0);
	set(&f, &year_2001);
	set(&f, &mode_600);
	set(&f, &mode_640);
	assert_int_equal(fake_count(f.fake, OP_FSETATTR), 0);
	fake_hold(f.fake, OP_WRITE, false);
	assert_int_equal(io_flush(f.handle), 0);
	assert_int_equal(fake_count(f.fake, OP_FSETATTR), 1);
	struct remote_attr attr = server_attr(&f);
	assert_int_equal(attr.mode & 07777, 0640);
	assert_int_equal(attr.mtime.tv_sec, year_2001.mtime.tv_sec);
	assert_int_equal(attr.atime.tv_sec, year_2001.atime.tv_sec);
	close_all(&f);
}

/* The flush of a write and a change of the times while the server's answers are held back. */
static void check_flight(void **state, bool ordered, unsigned expected)
{
	struct opened f = open_new(state, ordered);
	fake_set_delay(f.fake, OP_WRITE, 100 * NS_PER_MS);
	fake_set_delay(f.fake, OP_FSETATTR, 100 * NS_PER_MS);
	assert_int_equal(write_now(f.handle, 0, "hello", 5), 0);
	set(&f, &year_2001);
	struct flush flush = {.handle = f.handle};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, run_flush, &flush), 0);
	usleep((useconds_t)(50 * NS_PER_MS / 1000));
	assert_int_equal(fake_count(f.fake, OP_FSETATTR), expected);
	pthread_join(thread, NULL);
	assert_int_equal(flush.err, 0);
	assert_int_equal(server_attr(&f).mtime.tv_sec, year_2001.mtime.tv_sec);
	close_all(&f);
}

static void write_and_change_share_a_flight_where_order_is_kept(void **state)
{
	check_flight(state, true, 1);
}

static void elsewhere_the_change_waits_for_the_write(void **state)
{
	check_flight(state, false, 0);
}

static void a_change_that_overtook_its_write_is_made_again(void **state)
{
	struct opened f = open_new(state, true);
	fake_hold(f.fake, OP_WRITE, true);
	assert_int_equal(write_now(f.handle, 0, "hello", 5), 0);
	set(&f, &year_2001);
	struct flush flush = {.handle = f.handle};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, run_flush, &flush), 0);
	fake_wait_count(f.fake, OP_FSETATTR, 1);
	/* as after the loss of a lane, the change is made before the write */
	while (server_attr(&f).mtime.tv_sec != year_2001.mtime.tv_sec)
		usleep((useconds_t)(NS_PER_MS / 1000));
	fake_hold(f.fake, OP_WRITE, false);
	pthread_join(thread, NULL);
	assert_int_equal(flush.err, 0);
	assert_int_equal(fake_count(f.fake, OP_FSETATTR), 2);
	assert_int_equal(server_attr(&f).mtime.tv_sec, year_2001.mtime.tv_sec);
	close_all(&f);
}

static void of_two_changes_that_overtook_the_later_one_stays(void **state)
{
	struct opened f = open_new(state, true);
	fake_hold(f.fake, OP_WRITE, true);
	fake_set_delay(f.fake, OP_FSETATTR, 20 * NS_PER_MS);
	assert_int_equal(write_now(f.handle, 0, "hello", 5), 0);
	struct flush flushes[2] = {{.handle = f.handle}, {.handle = f.handle}};
	pthread_t threads[2];
	set(&f, &mode_600);
	assert_int_equal(pthread_create(&threads[0], NULL, run_flush, &flushes[0]), 0);
	fake_wait_count(f.fake, OP_FSETATTR, 1);
	set(&f, &mode_640);
	assert_int_equal(pthread_create(&threads[1], NULL, run_flush, &flushes[1]), 0);
	usleep((useconds_t)(60 * NS_PER_MS / 1000));
	fake_hold(f.fake, OP_WRITE, false);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(flushes[i].err, 0);
	}
	assert_int_equal(server_attr(&f).mode & 07777, 0640);
	close_all(&f);
}

static void a_write_after_the_change_waits_for_it(void **state)
{
	struct opened f = open_new(state, true);
	fake_hold(f.fake, OP_FSETATTR, true);
	set(&f, &year_2001);
	fake_wait_count(f.fake, OP_FSETATTR, 1);
	assert_int_equal(write_now(f.handle, 0, "hello", 5), 0);
	usleep((useconds_t)(20 * NS_PER_MS / 1000));
	assert_int_equal(fake_count(f.fake, OP_WRITE), 0);
	fake_hold(f.fake, OP_FSETATTR, false);
	assert_int_equal(io_flush(f.handle), 0);
	assert_true(server_attr(&f).mtime.tv_sec > year_2001.mtime.tv_sec);
	close_all(&f);
}

static void a_refused_change_is_reported_by_the_flush(void **state)
{
	struct opened f = open_new(state, true);
	fake_fail_next(f.fake, OP_FSETATTR, 0, -EACCES);
	set(&f, &mode_600);
	assert_int_equal(io_flush(f.handle), -EPERM);
	assert_true(io_file_attr_lost(f.file, true));
	assert_false(io_file_attr_lost(f.file, true));
	assert_int_equal(io_flush(f.handle), 0);
	close_all(&f);
}

static void draining_waits_for_the_change(void **state)
{
	struct opened f = open_new(state, true);
	fake_set_delay(f.fake, OP_FSETATTR, 30 * NS_PER_MS);
	set(&f, &mode_600);
	assert_true(io_file_dirty(f.file));
	assert_int_equal(io_file_drain(f.file), 0);
	assert_false(io_file_dirty(f.file));
	assert_int_equal(server_attr(&f).mode & 07777, 0600);
	close_all(&f);
}

static void a_change_outlives_its_handle(void **state)
{
	struct opened f = open_new(state, false);
	fake_hold(f.fake, OP_WRITE, true);
	assert_int_equal(write_now(f.handle, 0, "hello", 5), 0);
	set(&f, &mode_600);
	harness_close(f.harness, f.handle);
	fake_hold(f.fake, OP_WRITE, false);
	assert_int_equal(io_file_drain(f.file), 0);
	assert_int_equal(server_attr(&f).mode & 07777, 0600);
	harness_file_free(f.harness, f.file);
}

static void a_look_rides_behind_the_last_write(void **state)
{
	struct opened f = open_new(state, true);
	struct remote_attr attr;
	uint64_t mark;
	fake_set_delay(f.fake, OP_WRITE, 20 * NS_PER_MS);
	fake_set_delay(f.fake, OP_FSTAT, 20 * NS_PER_MS);
	assert_int_equal(write_now(f.handle, 0, "hello", 5), 0);
	io_look(f.handle);
	assert_int_equal(io_flush(f.handle), 0);
	assert_true(io_file_looked(f.file, &attr, &mark));
	assert_int_equal(attr.size, 5);
	assert_int_equal(mark, io_file_mark(f.file));
	/* another write makes it worthless */
	assert_int_equal(write_now(f.handle, 5, "!", 1), 0);
	assert_false(io_file_looked(f.file, &attr, &mark));
	assert_int_equal(io_flush(f.handle), 0);
	close_all(&f);
}

static void nothing_is_looked_at_where_it_would_cost_a_round_trip(void **state)
{
	struct opened f = open_new(state, false);
	struct remote_attr attr;
	uint64_t mark;
	assert_int_equal(write_now(f.handle, 0, "hello", 5), 0);
	io_look(f.handle);
	assert_int_equal(io_flush(f.handle), 0);
	assert_int_equal(fake_count(f.fake, OP_FSTAT), 0);
	assert_false(io_file_looked(f.file, &attr, &mark));
	close_all(&f);
}

static void with_synchronous_writes_nothing_is_put_off(void **state)
{
	struct harness *harness = *state;
	struct io_config config = harness_config();
	config.sync_writes = true;
	harness_configure(harness, &config);
	struct opened f = open_new(state, true);
	uint64_t writes;
	assert_false(io_setattr(f.handle, &mode_600, &writes));
	close_all(&f);
}

int main(void)
{
#define IO_TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)
	const struct CMUnitTest tests[] = {
	    IO_TEST(a_change_goes_out_at_once_when_nothing_is_ahead),
	    IO_TEST(changes_in_a_row_become_one_request),
	    IO_TEST(write_and_change_share_a_flight_where_order_is_kept),
	    IO_TEST(elsewhere_the_change_waits_for_the_write),
	    IO_TEST(a_change_that_overtook_its_write_is_made_again),
	    IO_TEST(of_two_changes_that_overtook_the_later_one_stays),
	    IO_TEST(a_write_after_the_change_waits_for_it),
	    IO_TEST(a_refused_change_is_reported_by_the_flush),
	    IO_TEST(draining_waits_for_the_change),
	    IO_TEST(a_change_outlives_its_handle),
	    IO_TEST(a_look_rides_behind_the_last_write),
	    IO_TEST(nothing_is_looked_at_where_it_would_cost_a_round_trip),
	    IO_TEST(with_synchronous_writes_nothing_is_put_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
