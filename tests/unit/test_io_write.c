/* Writes over the fake server: order, merging, back-pressure, errors, close. */
#include "io_harness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

/* One new file, opened for both. */
struct opened {
	struct harness *harness;
	struct fake_remote *fake;
	struct io_file *file;
	struct io_handle *handle;
};

enum { BOTH = OPEN_READ | OPEN_WRITE };

static struct opened open_new(void **state)
{
	struct harness *harness = *state;
	struct opened opened = {.harness = harness, .fake = harness->fake};
	opened.file = harness_file(harness);
	opened.handle = harness_open(harness, opened.file, "/f", BOTH | OPEN_CREATE);
	return opened;
}

static void close_all(struct opened *opened)
{
	harness_close(opened->harness, opened->handle);
	harness_file_free(opened->harness, opened->file);
}

static void assert_contents(struct fake_remote *fake, const char *path, const void *expected,
                            size_t length)
{
	size_t found;
	char *data = fake_get_file(fake, path, &found);
	assert_non_null(data);
	assert_int_equal(found, length);
	assert_memory_equal(data, expected, length);
	free(data);
}

/* ---- what reaches the server ---- */

static void a_write_is_acknowledged_before_the_server_has_it(void **state)
{
	struct opened f = open_new(state);
	fake_hold(f.fake, OP_WRITE, true);
	assert_int_equal(write_now(f.handle, 0, "hello", 5), 0);
	assert_true(io_file_dirty(f.file));
	assert_int_equal(io_file_size(f.file), 5);
	fake_hold(f.fake, OP_WRITE, false);
	assert_int_equal(io_flush(f.handle), 0);
	assert_false(io_file_dirty(f.file));
	assert_contents(f.fake, "/f", "hello", 5);
	close_all(&f);
}

static void the_first_write_of_a_trickle_is_sent_at_once(void **state)
{
	struct opened f = open_new(state);
	assert_int_equal(write_now(f.handle, 0, "x", 1), 0);
	fake_wait_count(f.fake, OP_WRITE, 1);
	close_all(&f);
}

static void small_writes_in_a_row_are_merged(void **state)
{
	struct opened f = open_new(state);
	char *data = malloc(MIB);
	assert_non_null(data);
	fill_pattern(data, 0, MIB);
	fake_hold(f.fake, OP_WRITE, true);
	for (size_t at = 0; at < MIB; at += 4 * KIB)
		assert_int_equal(write_now(f.handle, at, data + at, 4 * KIB), 0);
	fake_hold(f.fake, OP_WRITE, false);
	assert_int_equal(io_flush(f.handle), 0);
	/* the first 4 KiB went alone, the rest in requests of 256 KiB */
	assert_int_equal(fake_count(f.fake, OP_WRITE), 5);
	assert_int_equal(fake_largest(f.fake, OP_WRITE), 256 * KIB);
	assert_contents(f.fake, "/f", data, MIB);
	free(data);
	close_all(&f);
}

static void a_large_write_is_cut_to_the_servers_limit(void **state)
{
	struct harness *harness = *state;
	harness->remote->caps.max_write = 32 * KIB;
	struct io_config config = harness_config();
	harness_configure(harness, &config);
	struct opened f = open_new(state);
	char *data = malloc(MIB);
	assert_non_null(data);
	fill_pattern(data, 0, MIB);
	fake_set_delay(f.fake, OP_WRITE, 20 * NS_PER_MS);
	assert_int_equal(write_now(f.handle, 0, data, MIB), 0);
	assert_int_equal(io_flush(f.handle), 0);
	assert_int_equal(fake_count(f.fake, OP_WRITE), 32);
	assert_int_equal(fake_peak(f.fake, OP_WRITE), 32);
	assert_contents(f.fake, "/f", data, MIB);
	free(data);
	close_all(&f);
}

static void overlapping_writes_keep_their_order(void **state)
{
	struct opened f = open_new(state);
	char data[8 * 1024];
	char expected[16 * 1024];
	fake_set_delay(f.fake, OP_WRITE, 3 * NS_PER_MS);
	srandom(11);
	memset(expected, 0, sizeof(expected));
	assert_int_equal(write_now(f.handle, 0, expected, sizeof(expected)), 0);
	for (int i = 0; i < 200; i++) {
		size_t length = 1 + (size_t)random() % sizeof(data);
		size_t at = (size_t)random() % (sizeof(expected) - length);
		memset(data, i, length);
		memset(expected + at, i, length);
		assert_int_equal(write_now(f.handle, at, data, length), 0);
		/* the later one would be faster */
		fake_set_delay(f.fake, OP_WRITE, (uint64_t)(random() % 3) * NS_PER_MS);
	}
	assert_int_equal(io_flush(f.handle), 0);
	assert_contents(f.fake, "/f", expected, sizeof(expected));
	close_all(&f);
}

static void writes_of_a_closed_handle_still_arrive(void **state)
{
	struct opened f = open_new(state);
	fake_hold(f.fake, OP_WRITE, true);
	assert_int_equal(write_now(f.handle, 0, "abc", 3), 0);
	assert_int_equal(write_now(f.handle, 100, "def", 3), 0);
	struct fake_remote *fake = f.fake;
	close_all(&f); /* as for a process that was killed */
	assert_int_equal(fake_count(fake, OP_CLOSE), 0);
	fake_hold(fake, OP_WRITE, false);
	fake_wait_count(fake, OP_CLOSE, 1);
	size_t length;
	char *data = fake_get_file(fake, "/f", &length);
	assert_int_equal(length, 103);
	assert_memory_equal(data, "abc", 3);
	assert_memory_equal(data + 100, "def", 3);
	free(data);
}

/* ---- reading what was written ---- */

static void a_read_sees_the_writes_before_it(void **state)
{
	struct opened f = open_new(state);
	char buffer[64];
	fake_hold(f.fake, OP_WRITE, true);
	assert_int_equal(write_now(f.handle, 0, "hello world", 11), 0);
	struct call *call = start_read(f.handle, 6, 10);
	assert_false(call_ended(call));
	assert_int_equal(fake_count(f.fake, OP_READ), 0);
	fake_hold(f.fake, OP_WRITE, false);
	assert_int_equal(end_read(call, buffer), 5);
	assert_memory_equal(buffer, "world", 5);
	close_all(&f);
}

static void a_write_outdates_what_is_cached(void **state)
{
	struct opened f = open_new(state);
	char buffer[64];
	assert_int_equal(write_now(f.handle, 0, "aaaaaa", 6), 0);
	assert_int_equal(read_now(f.handle, 0, buffer, 6), 6);
	assert_int_equal(write_now(f.handle, 2, "bb", 2), 0);
	assert_int_equal(read_now(f.handle, 0, buffer, 6), 6);
	assert_memory_equal(buffer, "aabbaa", 6);
	close_all(&f);
}

static void a_read_in_flight_does_not_bring_back_the_old(void **state)
{
	struct opened f = open_new(state);
	char buffer[64];
	assert_int_equal(write_now(f.handle, 0, "aaaaaa", 6), 0);
	assert_int_equal(io_flush(f.handle), 0);
	fake_set_delay(f.fake, OP_WRITE, 30 * NS_PER_MS); /* the read overtakes the write */
	struct call *call = start_read(f.handle, 0, 6);
	assert_int_equal(write_now(f.handle, 0, "bbbbbb", 6), 0);
	assert_int_equal(end_read(call, buffer), 6); /* old or new: it ran beside the write */
	assert_int_equal(read_now(f.handle, 0, buffer, 6), 6);
	assert_memory_equal(buffer, "bbbbbb", 6);
	close_all(&f);
}

static void a_hole_reads_as_zeros_while_its_end_is_queued(void **state)
{
	struct opened f = open_new(state);
	char buffer[64];
	char zeros[64] = {0};
	struct call *early = start_read(f.handle, 0, 64);
	assert_int_equal(end_call(early), 0);
	fake_set_delay(f.fake, OP_WRITE, 20 * NS_PER_MS);
	assert_int_equal(write_now(f.handle, MIB, "x", 1), 0);
	assert_int_equal(read_now(f.handle, 512 * KIB, buffer, 64), 64);
	assert_memory_equal(buffer, zeros, 64);
	close_all(&f);
}

static void a_read_beyond_the_old_end_is_asked_anew_after_a_write(void **state)
{
	struct opened f = open_new(state);
	char buffer[64];
	char zeros[64] = {0};
	fake_hold(f.fake, OP_READ, true);
	struct call *early = start_read(f.handle, 4096, 64); /* of an empty file */
	assert_int_equal(write_now(f.handle, MIB, "x", 1), 0);
	assert_int_equal(io_flush(f.handle), 0);
	struct call *late = start_read(f.handle, 4096, 64);
	fake_wait_count(f.fake, OP_READ, 2); /* the late one does not join the early one */
	fake_hold(f.fake, OP_READ, false);
	assert_true(end_read(early, buffer) >= 0); /* before or after the write */
	assert_int_equal(end_read(late, buffer), 64);
	assert_memory_equal(buffer, zeros, 64);
	close_all(&f);
}

static void own_writes_do_not_make_another_version(void **state)
{
	struct opened f = open_new(state);
	fake_hold(f.fake, OP_WRITE, true);
	assert_int_equal(write_now(f.handle, 0, "0123456789", 10), 0);
	struct io_version version = {.size = 3, .mtime.tv_sec = 7};
	assert_true(io_file_revalidate(f.file, &version)); /* not final: ignored */
	fake_hold(f.fake, OP_WRITE, false);
	assert_int_equal(io_flush(f.handle), 0);
	assert_int_equal(io_file_size(f.file), 10);
	version = (struct io_version){.size = 10, .mtime.tv_sec = 8};
	assert_true(io_file_revalidate(f.file, &version));
	version.mtime.tv_sec = 9; /* that was not us */
	assert_false(io_file_revalidate(f.file, &version));
	/* ours, and somebody else's on top of it */
	assert_int_equal(write_now(f.handle, 0, "x", 1), 0);
	assert_int_equal(io_flush(f.handle), 0);
	version = (struct io_version){.size = 11, .mtime.tv_sec = 10};
	assert_false(io_file_revalidate(f.file, &version));
	close_all(&f);
}

static void attributes_that_crossed_a_write_are_ignored(void **state)
{
	struct opened f = open_new(state);
	struct io_version version = {.size = 0, .mtime.tv_sec = 7};
	uint64_t mark = io_file_mark(f.file);
	assert_int_equal(write_now(f.handle, 0, "0123456789", 10), 0);
	assert_int_equal(io_flush(f.handle), 0);
	assert_true(io_file_revalidate_since(f.file, &version, mark));
	assert_int_equal(io_file_size(f.file), 10);
	mark = io_file_mark(f.file);
	assert_false(io_file_revalidate_since(f.file, &version, mark));
	assert_int_equal(io_file_size(f.file), 0);
	close_all(&f);
}

static void truncation_drops_what_lies_beyond(void **state)
{
	struct opened f = open_new(state);
	char buffer[64];
	assert_int_equal(write_now(f.handle, 0, "0123456789", 10), 0);
	assert_int_equal(read_now(f.handle, 0, buffer, 10), 10);
	assert_int_equal(io_file_drain(f.file), 0);
	struct remote_attr attr = {.valid = ATTR_SIZE, .size = 4};
	assert_int_equal(remote_fsetattr(io_handle_remote(f.handle), &attr), 0);
	io_file_truncated(f.file, 4);
	assert_int_equal(io_file_size(f.file), 4);
	attr.size = 8;
	assert_int_equal(remote_fsetattr(io_handle_remote(f.handle), &attr), 0);
	io_file_truncated(f.file, 8);
	assert_int_equal(read_now(f.handle, 0, buffer, 64), 8);
	assert_memory_equal(buffer, "0123\0\0\0\0", 8);
	close_all(&f);
}

static void a_forgotten_range_is_fetched_again(void **state)
{
	struct opened f = open_new(state);
	char buffer[64];
	assert_int_equal(write_now(f.handle, 0, "0123456789", 10), 0);
	assert_int_equal(read_now(f.handle, 0, buffer, 10), 10);
	fake_put_file(f.fake, "/f", "0123ABCDEFGH", 12,
	              5); /* stands for a copy by the server */
	io_file_forget_range(f.file, 4, 8);
	assert_int_equal(read_now(f.handle, 0, buffer, 64), 12);
	assert_memory_equal(buffer, "0123ABCDEFGH", 12);
	close_all(&f);
}

/* ---- append ---- */

static void append_goes_to_the_end_of_two_handles(void **state)
{
	struct opened f = open_new(state);
	struct io_handle *other = harness_open(f.harness, f.file, "/f", OPEN_WRITE);
	assert_int_equal(end_call(start_write(f.handle, 99, "one", 3, true)), 0);
	assert_int_equal(end_call(start_write(other, 0, "two", 3, true)), 0);
	assert_int_equal(end_call(start_write(f.handle, 0, "three", 5, true)), 0);
	assert_int_equal(io_flush(other), 0);
	assert_contents(f.fake, "/f", "onetwothree", 11);
	harness_close(f.harness, other);
	close_all(&f);
}

enum { APPENDERS = 4, RECORDS = 300, RECORD = 97 };

struct appender {
	struct io_handle *handle;
	char letter;
	int err;
};

static void append_done(void *context, int err)
{
	struct appender *appender = context;
	if (err)
		appender->err = err;
}

static void *append_records(void *argument)
{
	struct appender *appender = argument;
	char record[RECORD];
	memset(record, appender->letter, sizeof(record));
	for (int i = 0; i < RECORDS; i++)
		io_write(appender->handle, 0, record, sizeof(record), true, append_done,
		         appender);
	return NULL;
}

static void records_appended_by_threads_stay_whole(void **state)
{
	struct opened f = open_new(state);
	struct appender appenders[APPENDERS];
	pthread_t threads[APPENDERS];
	for (int i = 0; i < APPENDERS; i++) {
		appenders[i] = (struct appender){
		    .handle = harness_open(f.harness, f.file, "/f", OPEN_WRITE),
		    .letter = (char)('a' + i)};
		assert_int_equal(
		    pthread_create(&threads[i], NULL, append_records, &appenders[i]), 0);
	}
	for (int i = 0; i < APPENDERS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(io_flush(appenders[i].handle), 0);
		assert_int_equal(appenders[i].err, 0);
		harness_close(f.harness, appenders[i].handle);
	}
	size_t length;
	char *data = fake_get_file(f.fake, "/f", &length);
	assert_int_equal(length, APPENDERS * RECORDS * RECORD);
	int counts[APPENDERS] = {0};
	for (size_t at = 0; at < length; at += RECORD) {
		for (size_t i = 1; i < RECORD; i++)
			assert_int_equal(data[at + i], data[at]);
		counts[data[at] - 'a']++;
	}
	for (int i = 0; i < APPENDERS; i++)
		assert_int_equal(counts[i], RECORDS);
	free(data);
	close_all(&f);
}

/* ---- errors ---- */

static void an_error_is_reported_once_to_each_handle_that_wrote(void **state)
{
	struct opened f = open_new(state);
	struct io_handle *writer = harness_open(f.harness, f.file, "/f", BOTH);
	struct io_handle *reader = harness_open(f.harness, f.file, "/f", OPEN_READ);
	assert_int_equal(write_now(writer, 0, "b", 1), 0);
	assert_int_equal(io_flush(writer), 0);
	fake_fail_next(f.fake, OP_WRITE, 0, -EDQUOT);
	assert_int_equal(write_now(f.handle, 0, "a", 1), 0);
	assert_int_equal(io_flush(f.handle), -EDQUOT);
	assert_int_equal(io_flush(f.handle), 0);
	assert_int_equal(io_flush(reader), 0);
	/* a write reports it and then is not made */
	assert_int_equal(write_now(writer, 50, "c", 1), -EDQUOT);
	assert_int_equal(io_fsync(writer), 0);
	assert_int_equal(io_file_size(f.file), 1);
	assert_contents(f.fake, "/f", "b", 1);
	harness_close(f.harness, reader);
	harness_close(f.harness, writer);
	close_all(&f);
}

static void a_full_disk_is_told_as_such(void **state)
{
	struct opened f = open_new(state);
	fake_set_full(f.fake, true);
	assert_int_equal(write_now(f.handle, 0, "a", 1), 0);
	assert_int_equal(io_fsync(f.handle), -ENOSPC);
	assert_int_equal(io_file_size(f.file), 0);
	fake_set_full(f.fake, false);
	assert_int_equal(write_now(f.handle, 0, "a", 1), 0);
	assert_int_equal(io_fsync(f.handle), 0);
	close_all(&f);
}

static void a_vague_failure_with_room_left_is_an_io_error(void **state)
{
	struct opened f = open_new(state);
	fake_fail_next(f.fake, OP_WRITE, 0, -EREMOTEIO);
	assert_int_equal(write_now(f.handle, 0, "a", 1), 0);
	assert_int_equal(io_flush(f.handle), -EIO);
	f.harness->remote->caps.statfs = false;
	fake_set_full(f.fake, true);
	assert_int_equal(write_now(f.handle, 0, "a", 1), 0);
	assert_int_equal(io_flush(f.handle), -EIO);
	close_all(&f);
}

static void other_writes_go_on_after_one_failed(void **state)
{
	struct opened f = open_new(state);
	fake_hold(f.fake, OP_WRITE, true);
	fake_fail_next(f.fake, OP_WRITE, 1, -EACCES);
	assert_int_equal(write_now(f.handle, 0, "a", 1), 0);
	assert_int_equal(write_now(f.handle, 10, "b", 1), 0);
	assert_int_equal(write_now(f.handle, 20, "c", 1), 0);
	fake_hold(f.fake, OP_WRITE, false);
	assert_int_equal(io_flush(f.handle), -EACCES);
	char expected[21] = {[0] = 'a', [20] = 'c'};
	assert_contents(f.fake, "/f", expected, 21);
	close_all(&f);
}

static void fsync_reports_what_the_server_says_of_it(void **state)
{
	struct opened f = open_new(state);
	fake_fail_next(f.fake, OP_FSYNC, 0, -EACCES);
	assert_int_equal(io_fsync(f.handle), -EACCES);
	fake_fail_next(f.fake, OP_FSYNC, 0, -EOPNOTSUPP);
	assert_int_equal(io_fsync(f.handle), 0);
	f.harness->remote->caps.fsync = false;
	assert_int_equal(io_fsync(f.handle), 0);
	assert_int_equal(fake_count(f.fake, OP_FSYNC), 2);
	close_all(&f);
}

/* ---- limits and waiting ---- */

static void a_full_queue_defers_the_acknowledgement(void **state)
{
	struct harness *harness = *state;
	struct io_config config = harness_config();
	config.dirty_limit = MIB;
	harness_configure(harness, &config);
	struct opened f = open_new(state);
	char *data = calloc(1, 256 * KIB);
	assert_non_null(data);
	fake_hold(f.fake, OP_WRITE, true);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(write_now(f.handle, i * 256 * KIB, data, 256 * KIB), 0);
	struct call *late = start_write(f.handle, MIB, data, 256 * KIB, false);
	struct call *later = start_write(f.handle, 2 * MIB, data, 256 * KIB, false);
	assert_false(call_ended(late));
	assert_false(call_ended(later));
	fake_hold(f.fake, OP_WRITE, false);
	assert_int_equal(end_call(late), 0);
	assert_int_equal(end_call(later), 0);
	assert_int_equal(io_flush(f.handle), 0);
	free(data);
	close_all(&f);
}

static void a_deferred_acknowledgement_brings_the_error(void **state)
{
	struct harness *harness = *state;
	struct io_config config = harness_config();
	config.dirty_limit = 0;
	harness_configure(harness, &config);
	struct opened f = open_new(state);
	fake_set_full(f.fake, true);
	assert_int_equal(write_now(f.handle, 0, "a", 1), -ENOSPC);
	assert_int_equal(io_flush(f.handle), 0);
	close_all(&f);
}

static void synchronous_writes_wait_for_the_server(void **state)
{
	struct harness *harness = *state;
	struct io_config config = harness_config();
	config.sync_writes = true;
	harness_configure(harness, &config);
	struct opened f = open_new(state);
	char *data = calloc(1, MIB);
	assert_non_null(data);
	fake_hold(f.fake, OP_WRITE, true);
	struct call *call = start_write(f.handle, 0, data, MIB, false);
	fake_wait_count(f.fake, OP_WRITE, 4);
	assert_false(call_ended(call));
	fake_hold(f.fake, OP_WRITE, false);
	assert_int_equal(end_call(call), 0);
	assert_contents(f.fake, "/f", data, MIB);
	fake_set_full(f.fake, true);
	assert_int_equal(write_now(f.handle, 0, data, MIB), -ENOSPC);
	assert_int_equal(io_flush(f.handle), 0);
	free(data);
	close_all(&f);
}

static void *interrupt_soon(void *scope)
{
	usleep(50000);
	remote_scope_interrupt(scope);
	return NULL;
}

static void a_flush_can_be_interrupted_and_done_again(void **state)
{
	struct opened f = open_new(state);
	fake_hold(f.fake, OP_WRITE, true);
	assert_int_equal(write_now(f.handle, 0, "a", 1), 0);
	struct remote_scope scope;
	pthread_t thread;
	remote_scope_begin(&scope);
	assert_int_equal(pthread_create(&thread, NULL, interrupt_soon, &scope), 0);
	assert_int_equal(io_flush(f.handle), -EINTR);
	pthread_join(thread, NULL);
	remote_scope_end(&scope);
	fake_hold(f.fake, OP_WRITE, false);
	assert_int_equal(io_flush(f.handle), 0);
	assert_contents(f.fake, "/f", "a", 1);
	close_all(&f);
}

static void a_flush_is_interrupted_though_answers_keep_coming(void **state)
{
	struct opened f = open_new(state);
	fake_set_delay(f.fake, OP_WRITE, 30 * NS_PER_MS);
	/* each overlaps the one before and has to wait for it: 3 s in all */
	for (uint64_t at = 100; at > 0; at--)
		assert_int_equal(write_now(f.handle, at, "ab", 2), 0);
	struct remote_scope scope;
	remote_scope_begin(&scope);
	remote_scope_interrupt(&scope);
	assert_int_equal(io_flush(f.handle), -EINTR);
	remote_scope_end(&scope);
	assert_true(io_file_dirty(f.file));
	fake_set_delay(f.fake, OP_WRITE, 0);
	close_all(&f);
}

static void *flush_handle(void *handle)
{
	return io_flush(handle) ? handle : NULL;
}

static void a_flush_and_a_close_send_what_might_have_grown(void **state)
{
	struct opened f = open_new(state);
	struct io_handle *other = harness_open(f.harness, f.file, "/f", BOTH);
	fake_hold(f.fake, OP_WRITE, true);
	assert_int_equal(write_now(f.handle, 0, "a", 1), 0);
	assert_int_equal(write_now(f.handle, 10, "b", 1), 0);
	assert_int_equal(fake_count(f.fake, OP_WRITE), 1);
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, flush_handle, f.handle), 0);
	fake_wait_count(f.fake, OP_WRITE, 2);
	assert_int_equal(write_now(other, 20, "c", 1), 0);
	assert_int_equal(fake_count(f.fake, OP_WRITE), 2);
	harness_close(f.harness, other);
	fake_wait_count(f.fake, OP_WRITE, 3);
	fake_hold(f.fake, OP_WRITE, false);
	void *failed;
	pthread_join(thread, &failed);
	assert_null(failed);
	close_all(&f);
}

static void a_read_that_waits_for_writes_can_be_cancelled(void **state)
{
	struct opened f = open_new(state);
	fake_hold(f.fake, OP_WRITE, true);
	assert_int_equal(write_now(f.handle, 0, "a", 1), 0);
	struct call *call = start_read(f.handle, 0, 1);
	io_read_cancel(f.handle, call_context(call));
	assert_int_equal(end_call(call), -EINTR);
	fake_hold(f.fake, OP_WRITE, false);
	close_all(&f);
}

int main(void)
{
#define IO_TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)
	const struct CMUnitTest tests[] = {
	    IO_TEST(a_write_is_acknowledged_before_the_server_has_it),
	    IO_TEST(the_first_write_of_a_trickle_is_sent_at_once),
	    IO_TEST(small_writes_in_a_row_are_merged),
	    IO_TEST(a_large_write_is_cut_to_the_servers_limit),
	    IO_TEST(overlapping_writes_keep_their_order),
	    IO_TEST(writes_of_a_closed_handle_still_arrive),
	    IO_TEST(a_read_sees_the_writes_before_it),
	    IO_TEST(a_write_outdates_what_is_cached),
	    IO_TEST(a_read_in_flight_does_not_bring_back_the_old),
	    IO_TEST(a_hole_reads_as_zeros_while_its_end_is_queued),
	    IO_TEST(a_read_beyond_the_old_end_is_asked_anew_after_a_write),
	    IO_TEST(own_writes_do_not_make_another_version),
	    IO_TEST(attributes_that_crossed_a_write_are_ignored),
	    IO_TEST(truncation_drops_what_lies_beyond),
	    IO_TEST(a_forgotten_range_is_fetched_again),
	    IO_TEST(append_goes_to_the_end_of_two_handles),
	    IO_TEST(records_appended_by_threads_stay_whole),
	    IO_TEST(an_error_is_reported_once_to_each_handle_that_wrote),
	    IO_TEST(a_full_disk_is_told_as_such),
	    IO_TEST(a_vague_failure_with_room_left_is_an_io_error),
	    IO_TEST(other_writes_go_on_after_one_failed),
	    IO_TEST(fsync_reports_what_the_server_says_of_it),
	    IO_TEST(a_full_queue_defers_the_acknowledgement),
	    IO_TEST(a_deferred_acknowledgement_brings_the_error),
	    IO_TEST(synchronous_writes_wait_for_the_server),
	    IO_TEST(a_flush_can_be_interrupted_and_done_again),
	    IO_TEST(a_flush_is_interrupted_though_answers_keep_coming),
	    IO_TEST(a_flush_and_a_close_send_what_might_have_grown),
	    IO_TEST(a_read_that_waits_for_writes_can_be_cancelled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
