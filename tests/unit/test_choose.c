/* The pool's pure rules: which lane, what after a loss, when to give up, how fast the link is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "remote/choose.h"
#include "remote/estimate.h"

static const struct op stat_op = {.kind = OP_LSTAT};
static struct remote_file *const some_file = (struct remote_file *)0x1000;

static struct op read_op(size_t length)
{
	return (struct op){.kind = OP_READ, .file = some_file, .length = length};
}

static void metadata_takes_the_lane_without_bulk(void **state)
{
	(void)state;
	struct lane_view lanes[] = {{.up = true, .bulk_bytes = 1 << 20},
	                            {.up = true, .meta_ops = 3},
	                            {.up = true, .bulk_bytes = 4 << 20}};
	assert_int_equal(choose_lane(lanes, 3, &stat_op, false), 1);
	lanes[1].up = false;
	assert_int_equal(choose_lane(lanes, 3, &stat_op, false), 0);
}

static void no_lane_up_means_none(void **state)
{
	(void)state;
	struct lane_view lanes[2] = {{.up = false}, {.up = false}};
	assert_int_equal(choose_lane(lanes, 2, &stat_op, false), -1);
	assert_true(choose_wants_lane(lanes, 2));
}

static void a_small_file_is_read_where_it_was_opened(void **state)
{
	(void)state;
	struct lane_view lanes[] = {{.up = true, .has_handle = true}, {.up = true}};
	struct op op = read_op(4096);
	assert_int_equal(choose_lane(lanes, 2, &op, false), 0);
}

static void bulk_leaves_the_first_lane_to_metadata(void **state)
{
	(void)state;
	struct lane_view lanes[] = {
	    {.up = true, .has_handle = true, .bulk_bytes = CHOOSE_FIRST_LANE_BULK},
	    {.up = true}};
	struct op op = read_op(128 * 1024);
	assert_int_equal(choose_lane(lanes, 2, &op, false), 1);
	lanes[1].up = false;
	assert_int_equal(choose_lane(lanes, 2, &op, false), 0);
}

static void bulk_spreads_when_a_lane_is_full_enough(void **state)
{
	(void)state;
	struct lane_view lanes[] = {{.up = true, .has_handle = true},
	                            {.up = true, .has_handle = true, .bulk_bytes = 400 * 1024},
	                            {.up = true}};
	lanes[0].bulk_bytes = CHOOSE_FIRST_LANE_BULK;
	struct op op = read_op(128 * 1024);
	assert_int_equal(choose_lane(lanes, 3, &op, false), 1);
	lanes[1].bulk_bytes = 600 * 1024;
	assert_int_equal(choose_lane(lanes, 3, &op, false), 2);
}

static void a_file_without_a_name_stays_where_its_handle_is(void **state)
{
	(void)state;
	struct lane_view lanes[] = {{.up = true},
	                            {.up = true, .has_handle = true, .bulk_bytes = 1 << 24}};
	struct op op = read_op(4096);
	assert_int_equal(choose_lane(lanes, 2, &op, true), 1);
	lanes[1].up = false;
	assert_int_equal(choose_lane(lanes, 2, &op, true), -1);
}

static void one_more_lane_is_wanted_only_under_load(void **state)
{
	(void)state;
	struct lane_view lanes[] = {{.up = true}, {.up = false}, {.up = false}};
	assert_false(choose_wants_lane(lanes, 3));
	lanes[0].bulk_bytes = 1 << 20;
	assert_true(choose_wants_lane(lanes, 3));
	lanes[1].up = true;
	assert_false(choose_wants_lane(lanes, 3));
	lanes[1].bulk_bytes = 1 << 20;
	assert_true(choose_wants_lane(lanes, 3));
}

static void near_the_server_the_processors_bound_the_lanes(void **state)
{
	(void)state;
	assert_int_equal(choose_bulk_lanes(100 * NS_PER_US, 2), 1);
	assert_int_equal(choose_bulk_lanes(100 * NS_PER_US, 16), 8);
	assert_true(choose_bulk_lanes(50 * NS_PER_MS, 2) >= 16);
	assert_true(choose_bulk_lanes(0, 2) >= 16);
	struct lane_view lanes[] = {
	    {.up = true, .has_handle = true, .bulk_bytes = CHOOSE_FIRST_LANE_BULK},
	    {.up = true, .bulk_bytes = 16 << 20},
	    {.up = true, .spared = true}};
	struct op op = read_op(128 * 1024);
	assert_int_equal(choose_lane(lanes, 3, &op, false), 1);
	lanes[1].up = false;
	assert_int_equal(choose_lane(lanes, 3, &op, false), 2);
	assert_int_equal(choose_lane(lanes, 3, &stat_op, false), 2);
}

static void what_was_not_sent_or_does_no_harm_is_repeated(void **state)
{
	(void)state;
	struct op op = {.kind = OP_RENAME, .sent = false, .deadline_ns = 100};
	assert_int_equal(choose_after_loss(&op, 50, true), VERDICT_REPEAT);
	op.sent = true;
	assert_int_equal(choose_after_loss(&op, 50, true), VERDICT_UNKNOWN);
	op.kind = OP_WRITE;
	assert_int_equal(choose_after_loss(&op, 50, true), VERDICT_REPEAT);
	assert_int_equal(choose_after_loss(&op, 50, false), VERDICT_FAIL);
	assert_int_equal(choose_after_loss(&op, 100, true), VERDICT_FAIL);
	op.attempts = 100;
	assert_int_equal(choose_after_loss(&op, 50, true), VERDICT_FAIL);
	struct op create = {.kind = OP_OPEN,
	                    .open_flags = OPEN_CREATE | OPEN_EXCL,
	                    .sent = true,
	                    .deadline_ns = 100};
	assert_int_equal(choose_after_loss(&create, 50, true), VERDICT_UNKNOWN);
	create.open_flags = OPEN_CREATE;
	assert_int_equal(choose_after_loss(&create, 50, true), VERDICT_REPEAT);
}

static void retries_slow_down_and_passwords_are_not_guessed(void **state)
{
	(void)state;
	assert_int_equal(choose_backoff(0, false), 0);
	uint64_t last = 0;
	for (unsigned i = 1; i < 20; i++) {
		uint64_t pause = choose_backoff(i, false);
		assert_true(pause >= last && pause <= 10 * NS_PER_SEC);
		last = pause;
	}
	assert_int_equal(choose_backoff(1, true), 60 * NS_PER_SEC);
}

static void an_op_expires_when_its_lane_is_silent(void **state)
{
	(void)state;
	struct op op = {.kind = OP_LSTAT, .deadline_ns = 30 * NS_PER_SEC};
	uint64_t timeout = 30 * NS_PER_SEC;
	assert_false(choose_expired(&op, 29 * NS_PER_SEC, 0, timeout));
	assert_true(choose_expired(&op, 31 * NS_PER_SEC, 0, timeout));
	/* Replies to others still arrive: a long queue, not a dead server. */
	assert_false(choose_expired(&op, 31 * NS_PER_SEC, 30 * NS_PER_SEC, timeout));
	assert_true(choose_expired(&op, 301 * NS_PER_SEC, 300 * NS_PER_SEC, timeout));
}

static void the_lowest_round_trip_counts_and_ages_out(void **state)
{
	(void)state;
	struct estimate estimate = {0};
	uint64_t now = NS_PER_SEC;
	estimate_add_rtt(&estimate, now, 50 * NS_PER_MS);
	estimate_add_rtt(&estimate, now, 60 * NS_PER_MS);
	assert_int_equal(estimate_rtt_ns(&estimate), 50 * NS_PER_MS);
	for (int i = 0; i < 20; i++) {
		now += 10 * NS_PER_SEC;
		estimate_add_rtt(&estimate, now, 200 * NS_PER_MS);
	}
	assert_int_equal(estimate_rtt_ns(&estimate), 200 * NS_PER_MS);
}

static void the_rate_is_that_of_busy_times(void **state)
{
	(void)state;
	struct estimate estimate = {0};
	uint64_t now = NS_PER_SEC;
	estimate_add_rtt(&estimate, now, 50 * NS_PER_MS);
	for (int i = 0; i < 100; i++) { /* 1 MB every 10 ms: 100 MB/s */
		now += 10 * NS_PER_MS;
		estimate_add_bytes(&estimate, now, 1000000);
	}
	uint64_t rate = estimate_rate(&estimate);
	assert_in_range(rate, 90000000, 110000000);
	now += 2 * NS_PER_SEC; /* a pause does not lower it */
	estimate_add_bytes(&estimate, now, 4096);
	now += NS_PER_MS;
	estimate_add_bytes(&estimate, now, 4096);
	assert_in_range(estimate_rate(&estimate), rate, rate);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(metadata_takes_the_lane_without_bulk),
	    cmocka_unit_test(no_lane_up_means_none),
	    cmocka_unit_test(a_small_file_is_read_where_it_was_opened),
	    cmocka_unit_test(bulk_leaves_the_first_lane_to_metadata),
	    cmocka_unit_test(bulk_spreads_when_a_lane_is_full_enough),
	    cmocka_unit_test(a_file_without_a_name_stays_where_its_handle_is),
	    cmocka_unit_test(one_more_lane_is_wanted_only_under_load),
	    cmocka_unit_test(near_the_server_the_processors_bound_the_lanes),
	    cmocka_unit_test(what_was_not_sent_or_does_no_harm_is_repeated),
	    cmocka_unit_test(retries_slow_down_and_passwords_are_not_guessed),
	    cmocka_unit_test(an_op_expires_when_its_lane_is_silent),
	    cmocka_unit_test(the_lowest_round_trip_counts_and_ages_out),
	    cmocka_unit_test(the_rate_is_that_of_busy_times),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
