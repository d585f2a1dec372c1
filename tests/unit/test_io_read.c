/* Reads over the fake server: what is fetched, what is kept, what is answered. */
#include "io_harness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define KIB ((size_t)1024)
#define MIB (1024 * KIB)

/* One file of the pattern, opened for reading. */
struct opened {
	struct harness *harness;
	struct fake_remote *fake;
	struct io_file *file;
	struct io_handle *handle;
	char *buffer; /* of the file's size and some more */
};

static struct opened open_pattern(void **state, size_t length)
{
	struct harness *harness = *state;
	put_pattern(harness, "/f", length, 1000);
	struct opened opened = {.harness = harness, .fake = harness->fake};
	opened.file = harness_file(harness);
	opened.handle = harness_open(harness, opened.file, "/f", OPEN_READ);
	opened.buffer = malloc(length + MIB);
	assert_non_null(opened.buffer);
	return opened;
}

static void close_all(struct opened *opened)
{
	free(opened->buffer);
	harness_close(opened->harness, opened->handle);
	harness_file_free(opened->harness, opened->file);
}

static void assert_reads(struct opened *opened, uint64_t offset, size_t length, size_t expected)
{
	ssize_t count = read_now(opened->handle, offset, opened->buffer, length);
	assert_int_equal(count, expected);
	assert_pattern(opened->buffer, offset, expected);
}

static bool revalidate(struct opened *opened, uint64_t size, time_t mtime)
{
	struct io_version version = {.size = size, .mtime.tv_sec = mtime};
	return io_file_revalidate(opened->file, &version);
}

/* ---- what is fetched ---- */

static void a_second_read_comes_from_the_cache(void **state)
{
	struct opened f = open_pattern(state, MIB);
	assert_reads(&f, 700 * KIB, 8 * KIB, 8 * KIB);
	assert_reads(&f, 700 * KIB, 8 * KIB, 8 * KIB);
	assert_reads(&f, 704 * KIB, 4 * KIB, 4 * KIB);
	assert_int_equal(fake_count(f.fake, OP_READ), 1);
	close_all(&f);
}

static void random_reads_fetch_no_more_than_asked(void **state)
{
	struct opened f = open_pattern(state, 8 * MIB);
	srandom(7);
	uint64_t asked = 0;
	for (int i = 0; i < 300; i++) {
		uint64_t page = 1 + (uint64_t)random() % (2 * KIB - 1);
		size_t length = 4 * KIB * (1 + (size_t)random() % 2);
		if (page * 4 * KIB + length > 8 * MIB)
			continue;
		assert_reads(&f, page * 4 * KIB, length, length);
		asked += length;
	}
	assert_true(fake_bytes_read(f.fake) <= asked);
	close_all(&f);
}

static void holes_between_cached_pieces_are_filled_alone(void **state)
{
	struct opened f = open_pattern(state, MIB);
	assert_reads(&f, 512 * KIB, 4 * KIB, 4 * KIB);
	assert_reads(&f, 540 * KIB, 4 * KIB, 4 * KIB);
	fake_reset_counts(f.fake);
	assert_reads(&f, 508 * KIB, 64 * KIB, 64 * KIB);
	assert_int_equal(fake_bytes_read(f.fake), 56 * KIB);
	assert_int_equal(fake_count(f.fake, OP_READ), 3);
	close_all(&f);
}

static void a_request_never_exceeds_the_servers_limit(void **state)
{
	struct harness *harness = *state;
	harness->remote->caps.max_read = 32 * KIB;
	struct io_config config = harness_config();
	harness_configure(harness, &config);
	struct opened f = open_pattern(state, 2 * MIB);
	for (size_t at = 0; at < 2 * MIB; at += 128 * KIB)
		assert_reads(&f, at, 128 * KIB, 128 * KIB);
	assert_int_equal(fake_largest(f.fake, OP_READ), 32 * KIB);
	assert_int_equal(fake_bytes_read(f.fake), 2 * MIB);
	close_all(&f);
}

/* Reads 64 MiB in order over a server that takes `delay_ns`; the most requests in flight. */
static unsigned peak_of_reading(void **state, const char *expected, uint64_t delay_ns)
{
	struct opened f = open_pattern(state, 64 * MIB);
	fake_reset_counts(f.fake);
	fake_set_delay(f.fake, OP_READ, delay_ns);
	for (size_t at = 0; at < 64 * MIB; at += 128 * KIB) {
		assert_int_equal(read_now(f.handle, at, f.buffer, 128 * KIB), 128 * KIB);
		assert_memory_equal(f.buffer, expected + at, 128 * KIB);
	}
	/* each byte was asked for once */
	assert_int_equal(fake_bytes_read(f.fake), 64 * MIB);
	unsigned peak = fake_peak(f.fake, OP_READ);
	close_all(&f);
	return peak;
}

static void sequential_reading_keeps_many_requests_in_flight(void **state)
{
	struct harness *harness = *state;
	struct io_config config = harness_config();
	config.cache_size = 128 * MIB;
	harness_configure(harness, &config);
	char *expected = malloc(64 * MIB);
	assert_non_null(expected);
	fill_pattern(expected, 0, 64 * MIB);
	/* On a busy machine the reader may be slower than a near server: then a farther one. */
	static const uint64_t delays_ms[] = {20, 100, 500};
	unsigned peak = 0;
	for (size_t i = 0; i < ARRAY_LEN(delays_ms) && peak < 64; i++)
		peak = peak_of_reading(state, expected, delays_ms[i] * NS_PER_MS);
	free(expected);
	assert_true(peak >= 64);
}

static void without_read_ahead_only_what_is_asked_is_fetched(void **state)
{
	struct harness *harness = *state;
	struct io_config config = harness_config();
	config.read_ahead = false;
	harness_configure(harness, &config);
	struct opened f = open_pattern(state, MIB);
	for (size_t at = 0; at < 512 * KIB; at += 16 * KIB)
		assert_reads(&f, at, 16 * KIB, 16 * KIB);
	assert_int_equal(fake_bytes_read(f.fake), 512 * KIB);
	assert_int_equal(fake_peak(f.fake, OP_READ), 1);
	close_all(&f);
}

static void a_failed_read_ahead_is_asked_for_again(void **state)
{
	struct opened f = open_pattern(state, MIB);
	fake_fail_next(f.fake, OP_READ, 1, -ETIMEDOUT);
	fake_hold(f.fake, OP_READ, true);
	struct call *one = start_read(f.handle, 0, 128 * KIB);
	struct call *two = start_read(f.handle, 128 * KIB, 128 * KIB);
	fake_hold(f.fake, OP_READ, false);
	assert_int_equal(end_read(one, f.buffer), 128 * KIB);
	assert_int_equal(end_read(two, f.buffer), 128 * KIB);
	assert_pattern(f.buffer, 128 * KIB, 128 * KIB);
	close_all(&f);
}

static void a_failed_read_is_an_error_and_not_the_end_of_the_file(void **state)
{
	struct opened f = open_pattern(state, MIB);
	fake_fail_next(f.fake, OP_READ, 0, -EREMOTEIO);
	assert_int_equal(read_now(f.handle, 512 * KIB, f.buffer, 4 * KIB), -EIO);
	assert_reads(&f, 512 * KIB, 4 * KIB, 4 * KIB);
	fake_fail_next(f.fake, OP_READ, 1, -EACCES); /* the second half of a read */
	assert_int_equal(read_now(f.handle, 700 * KIB, f.buffer, 128 * KIB), -EACCES);
	close_all(&f);
}

/* ---- the end of the file ---- */

static void the_known_end_is_not_asked_about(void **state)
{
	struct opened f = open_pattern(state, 5000);
	assert_reads(&f, 0, 128 * KIB, 5000);
	assert_reads(&f, 4096, 4096, 904);
	assert_int_equal(fake_count(f.fake, OP_READ), 1);
	assert_int_equal(fake_largest(f.fake, OP_READ), 5000);
	close_all(&f);
}

static void a_file_that_grew_is_read_to_its_new_end(void **state)
{
	struct opened f = open_pattern(state, 5000);
	assert_reads(&f, 0, 128 * KIB, 5000);
	assert_reads(&f, 5000, 4096, 0);
	assert_reads(&f, 600 * KIB, 4096, 0);
	assert_int_equal(io_file_size(f.file), 5000);
	put_pattern(f.harness, "/f", 7000, 1000);
	assert_reads(&f, 5000, 4096, 2000);
	assert_int_equal(io_file_size(f.file), 7000);
	assert_reads(&f, 0, 128 * KIB, 7000);
	close_all(&f);
}

static void a_file_that_shrank_ends_where_it_ends(void **state)
{
	struct opened f = open_pattern(state, MIB);
	put_pattern(f.harness, "/f", 300 * KIB, 1000);
	assert_reads(&f, 256 * KIB, 128 * KIB, 44 * KIB);
	assert_int_equal(io_file_size(f.file), 300 * KIB);
	close_all(&f);
}

static void an_empty_file_has_nothing(void **state)
{
	struct opened f = open_pattern(state, 0);
	assert_reads(&f, 0, 4096, 0);
	assert_reads(&f, 10, 0, 0);
	close_all(&f);
}

/* ---- versions ---- */

static void the_same_version_keeps_the_cache(void **state)
{
	struct opened f = open_pattern(state, 64 * KIB);
	assert_reads(&f, 0, 64 * KIB, 64 * KIB);
	assert_true(revalidate(&f, 64 * KIB, 1000));
	assert_reads(&f, 0, 64 * KIB, 64 * KIB);
	assert_int_equal(fake_count(f.fake, OP_READ), 1);
	close_all(&f);
}

static void another_version_drops_the_cache(void **state)
{
	struct opened f = open_pattern(state, 64 * KIB);
	assert_reads(&f, 0, 64 * KIB, 64 * KIB);
	fake_put_file(f.fake, "/f", "new", 3, 1001);
	assert_false(revalidate(&f, 3, 1001));
	assert_int_equal(read_now(f.handle, 0, f.buffer, 64 * KIB), 3);
	assert_memory_equal(f.buffer, "new", 3);
	close_all(&f);
}

static void reads_in_flight_of_an_old_version_are_made_again(void **state)
{
	struct opened f = open_pattern(state, MIB);
	fake_set_delay(f.fake, OP_READ, 5 * NS_PER_MS);
	fake_hold(f.fake, OP_READ, true);
	struct call *call = start_read(f.handle, 512 * KIB, 4 * KIB);
	fake_wait_count(f.fake, OP_READ, 1);
	assert_false(revalidate(&f, MIB, 1001));
	fake_wait_count(f.fake, OP_READ, 2);
	fake_hold(f.fake, OP_READ, false);
	assert_int_equal(end_read(call, f.buffer), 4 * KIB);
	assert_pattern(f.buffer, 512 * KIB, 4 * KIB);
	assert_reads(&f, 512 * KIB, 4 * KIB, 4 * KIB);
	assert_int_equal(fake_count(f.fake, OP_READ), 2);
	close_all(&f);
}

static void results_of_an_old_version_never_enter_the_cache(void **state)
{
	struct opened f = open_pattern(state, MIB);
	fake_hold(f.fake, OP_READ, true);
	struct call *call = start_read(f.handle, 0, 4 * KIB); /* with read-ahead */
	fake_wait_count(f.fake, OP_READ, 3);
	io_read_cancel(f.handle, call_context(call));
	assert_int_equal(end_call(call), -EINTR);
	assert_false(revalidate(&f, MIB, 1001));
	fake_hold(f.fake, OP_READ, false);
	fake_reset_counts(f.fake);
	assert_reads(&f, 128 * KIB, 4 * KIB, 4 * KIB);
	assert_true(fake_count(f.fake, OP_READ) >= 1);
	close_all(&f);
}

/* ---- memory ---- */

static uint64_t memory_used(struct io *io)
{
	struct bytes report = BYTES_INIT;
	io_report(io, &report);
	const char *line = strstr(report.data, "io memory bytes: ");
	assert_non_null(line);
	uint64_t used = strtoull(line + strlen("io memory bytes: "), NULL, 10);
	bytes_release(&report);
	return used;
}

/* The thread that completed the last fetch may still be on its way out of it. */
static void assert_memory_is_given_back(struct io *io)
{
	for (int i = 0; i < 1000 && memory_used(io); i++)
		usleep(1000);
	assert_int_equal(memory_used(io), 0);
}

static void the_cache_stays_within_its_budget(void **state)
{
	struct harness *harness = *state;
	struct io_config config = harness_config();
	config.cache_size = 4 * MIB;
	harness_configure(harness, &config);
	struct opened f = open_pattern(state, 32 * MIB);
	fake_set_delay(f.fake, OP_READ, NS_PER_MS);
	for (size_t at = 0; at < 32 * MIB; at += 128 * KIB) {
		assert_reads(&f, at, 128 * KIB, 128 * KIB);
		assert_true(memory_used(harness->io) <= 4 * MIB + 256 * KIB);
	}
	/* nothing that was read ahead was thrown away and fetched again */
	assert_int_equal(fake_bytes_read(f.fake), 32 * MIB);
	srandom(3);
	for (int i = 0; i < 3000; i++) {
		size_t page = 1 + (size_t)random() % (8 * KIB - 1);
		assert_reads(&f, page * 4 * KIB, 4 * KIB, 4 * KIB);
	}
	assert_true(memory_used(harness->io) <= 4 * MIB);
	close_all(&f);
}

static void what_a_sequential_reader_has_passed_goes_first(void **state)
{
	struct harness *harness = *state;
	struct io_config config = harness_config();
	config.cache_size = 2 * MIB;
	harness_configure(harness, &config);
	struct opened hot = open_pattern(state, MIB);
	for (size_t at = 4 * KIB; at < MIB; at += 12 * KIB) /* not in a row */
		assert_reads(&hot, at, 4 * KIB, 4 * KIB);
	struct opened f = open_pattern(state, 16 * MIB);
	for (size_t at = 0; at < 16 * MIB; at += 128 * KIB)
		assert_reads(&f, at, 128 * KIB, 128 * KIB);
	fake_reset_counts(f.fake);
	for (size_t at = 4 * KIB; at < MIB; at += 12 * KIB)
		assert_reads(&hot, at, 4 * KIB, 4 * KIB);
	assert_int_equal(fake_count(f.fake, OP_READ), 0);
	close_all(&f);
	close_all(&hot);
}

static void eviction_takes_from_other_files(void **state)
{
	struct harness *harness = *state;
	struct io_config config = harness_config();
	config.cache_size = MIB;
	harness_configure(harness, &config);
	struct opened f = open_pattern(state, MIB);
	for (size_t at = 0; at < MIB; at += 128 * KIB)
		assert_reads(&f, at, 128 * KIB, 128 * KIB);
	struct opened g = open_pattern(state, MIB);
	for (size_t at = 0; at < MIB; at += 128 * KIB)
		assert_reads(&g, at, 128 * KIB, 128 * KIB);
	assert_true(memory_used(harness->io) <= MIB + 256 * KIB);
	/* both can be read again, whoever lost */
	assert_reads(&f, 640 * KIB, 64 * KIB, 64 * KIB);
	assert_reads(&g, 640 * KIB, 64 * KIB, 64 * KIB);
	close_all(&g);
	close_all(&f);
	assert_memory_is_given_back(harness->io);
}

/* ---- waiting and leaving ---- */

static void two_readers_share_one_fetch(void **state)
{
	struct opened f = open_pattern(state, MIB);
	fake_hold(f.fake, OP_READ, true);
	struct call *one = start_read(f.handle, 512 * KIB, 16 * KIB);
	struct call *two = start_read(f.handle, 516 * KIB, 4 * KIB);
	fake_wait_count(f.fake, OP_READ, 1);
	assert_false(call_ended(one));
	fake_hold(f.fake, OP_READ, false);
	assert_int_equal(end_read(one, f.buffer), 16 * KIB);
	assert_int_equal(end_read(two, f.buffer), 4 * KIB);
	assert_pattern(f.buffer, 516 * KIB, 4 * KIB);
	assert_int_equal(fake_count(f.fake, OP_READ), 1);
	close_all(&f);
}

static void a_cancelled_read_ends_at_once(void **state)
{
	struct opened f = open_pattern(state, MIB);
	fake_hold(f.fake, OP_READ, true);
	struct call *one = start_read(f.handle, 512 * KIB, 4 * KIB);
	struct call *two = start_read(f.handle, 512 * KIB, 4 * KIB);
	io_read_cancel(f.handle, call_context(one));
	assert_int_equal(end_call(one), -EINTR);
	assert_false(call_ended(two));
	fake_hold(f.fake, OP_READ, false);
	assert_int_equal(end_read(two, f.buffer), 4 * KIB);
	io_read_cancel(f.handle, &f); /* nobody's */
	close_all(&f);
}

static void a_file_may_be_closed_with_read_ahead_in_flight(void **state)
{
	struct opened f = open_pattern(state, 4 * MIB);
	fake_set_delay(f.fake, OP_READ, 5 * NS_PER_MS);
	assert_reads(&f, 0, 128 * KIB, 128 * KIB);
	assert_reads(&f, 128 * KIB, 128 * KIB, 128 * KIB);
	close_all(&f);
	fake_wait_count(((struct harness *)*state)->fake, OP_CLOSE, 1);
}

int main(void)
{
#define IO_TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)
	const struct CMUnitTest tests[] = {
	    IO_TEST(a_second_read_comes_from_the_cache),
	    IO_TEST(random_reads_fetch_no_more_than_asked),
	    IO_TEST(holes_between_cached_pieces_are_filled_alone),
	    IO_TEST(a_request_never_exceeds_the_servers_limit),
	    IO_TEST(sequential_reading_keeps_many_requests_in_flight),
	    IO_TEST(without_read_ahead_only_what_is_asked_is_fetched),
	    IO_TEST(a_failed_read_ahead_is_asked_for_again),
	    IO_TEST(a_failed_read_is_an_error_and_not_the_end_of_the_file),
	    IO_TEST(the_known_end_is_not_asked_about),
	    IO_TEST(a_file_that_grew_is_read_to_its_new_end),
	    IO_TEST(a_file_that_shrank_ends_where_it_ends),
	    IO_TEST(an_empty_file_has_nothing),
	    IO_TEST(the_same_version_keeps_the_cache),
	    IO_TEST(another_version_drops_the_cache),
	    IO_TEST(reads_in_flight_of_an_old_version_are_made_again),
	    IO_TEST(results_of_an_old_version_never_enter_the_cache),
	    IO_TEST(the_cache_stays_within_its_budget),
	    IO_TEST(what_a_sequential_reader_has_passed_goes_first),
	    IO_TEST(eviction_takes_from_other_files),
	    IO_TEST(two_readers_share_one_fetch),
	    IO_TEST(a_cancelled_read_ends_at_once),
	    IO_TEST(a_file_may_be_closed_with_read_ahead_in_flight),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
