/* Read-ahead windows: which streams are found, and how well they fill a link. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "io/window.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static const struct window_limits unknown_link = {.max_bytes = WINDOW_CEILING};

struct advice {
	uint64_t from, to;
};

static struct advice read_at(struct window_set *set, uint64_t offset, size_t length,
                             enum window_found found)
{
	struct advice advice;
	struct window_stream *stream = window_note(set, offset, length);
	window_advance(stream, found, &unknown_link, 10 * GIB, &advice.from, &advice.to);
	return advice;
}

static bool is_empty(struct advice advice)
{
	return advice.from >= advice.to;
}

static void a_read_of_the_start_is_taken_for_sequential(void **state)
{
	(void)state;
	struct window_set set = {0};
	struct advice advice = read_at(&set, 0, 128 * KIB, WINDOW_MISSING);
	assert_int_equal(advice.from, 128 * KIB);
	assert_int_equal(advice.to, 384 * KIB);
}

static void a_read_elsewhere_must_be_followed_by_two(void **state)
{
	(void)state;
	struct window_set set = {0};
	assert_true(is_empty(read_at(&set, 5 * MIB, 16 * KIB, WINDOW_MISSING)));
	assert_true(is_empty(read_at(&set, 5 * MIB + 16 * KIB, 16 * KIB, WINDOW_MISSING)));
	struct advice advice = read_at(&set, 5 * MIB + 32 * KIB, 16 * KIB, WINDOW_MISSING);
	assert_int_equal(advice.from, 5 * MIB + 48 * KIB);
	assert_int_equal(advice.to % WINDOW_BLOCK, 0);
	assert_true(advice.to >= advice.from + WINDOW_START);
}

static void random_reads_get_no_advice(void **state)
{
	(void)state;
	struct window_set set = {0};
	srandom(1);
	unsigned advised = 0;
	for (int i = 0; i < 10000; i++) {
		uint64_t page = 1 + (uint64_t)random() % 100000;
		advised += !is_empty(read_at(&set, page * 4 * KIB, 4 * KIB, WINDOW_MISSING));
	}
	assert_true(advised < 10);
	/* nor does the header that a data base looks at in between */
	assert_true(is_empty(read_at(&set, 0, 4 * KIB, WINDOW_MISSING)));
}

static void requests_out_of_order_are_one_stream(void **state)
{
	(void)state;
	static const unsigned order[] = {0, 2, 1, 4, 3, 5, 7, 8, 6, 9};
	struct window_set set = {0};
	uint64_t end = 0;
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		struct advice advice =
		    read_at(&set, order[i] * 128 * KIB, 128 * KIB, WINDOW_READY);
		if (is_empty(advice))
			continue;
		assert_true(advice.from >= end); /* nothing is advised twice */
		end = advice.to;
	}
	assert_int_equal(end, 1280 * KIB + WINDOW_START);
}

static void the_second_request_may_come_before_the_first(void **state)
{
	(void)state;
	struct window_set set = {0};
	assert_true(is_empty(read_at(&set, 128 * KIB, 128 * KIB, WINDOW_MISSING)));
	struct advice advice = read_at(&set, 0, 128 * KIB, WINDOW_MISSING);
	assert_int_equal(advice.from, 256 * KIB);
	assert_int_equal(advice.to, 512 * KIB);
}

static void interleaved_streams_have_windows_of_their_own(void **state)
{
	(void)state;
	struct window_set set = {0};
	for (uint64_t i = 0; i < 6; i++) {
		for (uint64_t stream = 0; stream < 6; stream++) {
			uint64_t at = (stream + 1) * GIB + i * 128 * KIB;
			struct advice advice = read_at(&set, at, 128 * KIB, WINDOW_READY);
			assert_int_equal(is_empty(advice), i < 2);
			if (i == 5)
				assert_int_equal(advice.to, at + 128 * KIB + WINDOW_START);
		}
	}
}

static void the_window_doubles_only_when_the_reader_waits(void **state)
{
	(void)state;
	struct window_set set = {0};
	struct window_stream *stream = NULL;
	uint64_t from, to;
	for (uint64_t i = 0; i < 10; i++) {
		stream = window_note(&set, i * 128 * KIB, 128 * KIB);
		window_advance(stream, WINDOW_READY, &unknown_link, GIB, &from, &to);
	}
	assert_int_equal(stream->bytes, WINDOW_START);
	window_advance(stream, WINDOW_PENDING, &unknown_link, GIB, &from, &to);
	assert_int_equal(stream->bytes, 2 * WINDOW_START);
	for (int i = 0; i < 20; i++)
		window_advance(stream, WINDOW_PENDING, &unknown_link, GIB, &from, &to);
	assert_int_equal(stream->bytes, WINDOW_UNKNOWN);
}

static void lost_blocks_and_refusals_halve_the_window(void **state)
{
	(void)state;
	struct window_set set = {0};
	uint64_t from, to;
	struct window_stream *stream = window_note(&set, 0, 128 * KIB);
	for (int i = 0; i < 4; i++)
		window_advance(stream, WINDOW_PENDING, &unknown_link, GIB, &from, &to);
	uint64_t before = stream->bytes;
	window_refused(stream, 256 * KIB);
	assert_int_equal(stream->bytes, before / 2);
	assert_int_equal(stream->ahead, 256 * KIB);
	window_note(&set, 128 * KIB, 128 * KIB);
	window_advance(stream, WINDOW_MISSING, &unknown_link, GIB, &from, &to);
	assert_int_equal(stream->bytes, before / 4);
}

static void advice_ends_with_the_file(void **state)
{
	(void)state;
	struct window_set set = {0};
	uint64_t from, to;
	struct window_stream *stream = window_note(&set, 0, 128 * KIB);
	window_advance(stream, WINDOW_MISSING, &unknown_link, 200 * KIB, &from, &to);
	assert_int_equal(from, 128 * KIB);
	assert_int_equal(to, 200 * KIB);
	window_note(&set, 128 * KIB, 72 * KIB);
	window_advance(stream, WINDOW_PENDING, &unknown_link, 200 * KIB, &from, &to);
	assert_true(from >= to);
}

static void the_bound_follows_the_link(void **state)
{
	(void)state;
	struct window_limits limits = {
	    .rtt_ns = 50000000, .bytes_per_sec = 100000000, .max_bytes = WINDOW_CEILING};
	assert_int_equal(window_bound(&limits), 10000000);
	limits.rtt_ns = 100000;
	assert_int_equal(window_bound(&limits), WINDOW_FLOOR);
	limits.rtt_ns = 300000000;
	limits.bytes_per_sec = 1000000000;
	assert_int_equal(window_bound(&limits), WINDOW_CEILING);
	limits.max_bytes = 4 * MIB;
	assert_int_equal(window_bound(&limits), 4 * MIB);
	limits.bytes_per_sec = 0;
	assert_int_equal(window_bound(&limits), 4 * MIB);
}

/*
 * A link and a reader in simulated time. Blocks travel one after the other at the link's rate
 * and arrive a round trip after they were asked for at the earliest. The reader is the kernel:
 * it keeps one request of 128 KiB beyond the one that the program waits for.
 */
struct link_model {
	double rtt, rate;  /* seconds, bytes per second */
	double busy_until; /* when the link has carried all that was asked for */
	double *arrival;   /* of each block; 0: not asked for */
	double best_rate;  /* as a meter on the link would have seen it */
	uint64_t asked;
};

static void ask(struct link_model *link, uint64_t block, double now)
{
	if (link->arrival[block] > 0)
		return;
	double start = MAX(now + link->rtt, link->busy_until);
	link->busy_until = start + (double)WINDOW_BLOCK / link->rate;
	link->arrival[block] = link->busy_until;
	link->asked++;
}

/* Bytes of blocks that arrived in the round trip before `now`, as a rate. */
static void measure(struct link_model *link, uint64_t blocks, double now)
{
	double span = MAX(link->rtt, 0.001), bytes = 0;
	for (uint64_t i = 0; i < blocks; i++)
		if (link->arrival[i] > now - span && link->arrival[i] <= now)
			bytes += WINDOW_BLOCK;
	link->best_rate = MAX(link->best_rate, bytes / span);
}

/* Reads all blocks; the mean rate in bytes per second. */
static double simulate(struct link_model *link, uint64_t blocks)
{
	struct window_set set = {0};
	double now = 0;
	for (uint64_t block = 0; block < blocks; block++) {
		enum window_found found = link->arrival[block] == 0    ? WINDOW_MISSING
		                          : link->arrival[block] > now ? WINDOW_PENDING
		                                                       : WINDOW_READY;
		struct window_limits limits = {.rtt_ns = (uint64_t)(link->rtt * 1e9),
		                               .bytes_per_sec = (uint64_t)link->best_rate,
		                               .max_bytes = WINDOW_CEILING};
		ask(link, block, now);
		uint64_t from, to;
		struct window_stream *stream =
		    window_note(&set, block * WINDOW_BLOCK, WINDOW_BLOCK);
		window_advance(stream, found, &limits, blocks * WINDOW_BLOCK, &from, &to);
		for (uint64_t at = from; at < to; at += WINDOW_BLOCK)
			ask(link, at / WINDOW_BLOCK, now);
		now = MAX(now, link->arrival[block]);
		if (block % 16 == 0)
			measure(link, MIN(blocks, block + 600), now);
	}
	return (double)(blocks * WINDOW_BLOCK) / now;
}

static void links_of_all_kinds_are_filled(void **state)
{
	(void)state;
	static const double rtts_ms[] = {1, 10, 50, 100, 300};
	static const double rates_mb[] = {1, 10, 100, 1000};
	for (size_t i = 0; i < ARRAY_LEN(rtts_ms); i++) {
		for (size_t j = 0; j < ARRAY_LEN(rates_mb); j++) {
			struct link_model link = {.rtt = rtts_ms[i] / 1e3,
			                          .rate = rates_mb[j] * 1e6};
			/* long enough for the start not to matter: 40 round trips, 64 MiB */
			double possible =
			    MIN(link.rate, (double)WINDOW_CEILING / (link.rtt + 1e-9));
			uint64_t blocks =
			    (uint64_t)(40 * link.rtt * possible / WINDOW_BLOCK) + 512;
			link.arrival = calloc(blocks + 1, sizeof(double));
			assert_non_null(link.arrival);
			double rate = simulate(&link, blocks);
			free(link.arrival);
			if (rate < 0.8 * possible)
				fail_msg("%g ms, %g MB/s: only %.1f MB/s of %.1f", rtts_ms[i],
				         rates_mb[j], rate / 1e6, possible / 1e6);
			assert_int_equal(link.asked, blocks);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_read_of_the_start_is_taken_for_sequential),
	    cmocka_unit_test(a_read_elsewhere_must_be_followed_by_two),
	    cmocka_unit_test(random_reads_get_no_advice),
	    cmocka_unit_test(requests_out_of_order_are_one_stream),
	    cmocka_unit_test(the_second_request_may_come_before_the_first),
	    cmocka_unit_test(interleaved_streams_have_windows_of_their_own),
	    cmocka_unit_test(the_window_doubles_only_when_the_reader_waits),
	    cmocka_unit_test(lost_blocks_and_refusals_halve_the_window),
	    cmocka_unit_test(advice_ends_with_the_file),
	    cmocka_unit_test(the_bound_follows_the_link),
	    cmocka_unit_test(links_of_all_kinds_are_filled),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
