/* Which names come next and how many of them: simulated programs against the pure policies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "vfs/order.h"
#include "vfs/pace.h"
#include "vfs/sequence.h"

/* Numbers that repeat from run to run. */
static uint64_t random_number(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* A directory of so many names, listed in no order, with unrelated inode numbers. */
static struct order *make_order(unsigned count)
{
	uint64_t seed = 88172645463325252u;
	struct order *order = order_new();
	assert_non_null(order);
	for (unsigned i = 0; i < count; i++) {
		char name[32];
		/* 7919 has no divisor in common with the counts used here */
		int length =
		    snprintf(name, sizeof(name), "name%05u", (unsigned)(i * 7919u % count));
		assert_true(order_add(order, name, (size_t)length, i, random_number(&seed)));
	}
	assert_true(order_finish(order));
	return order;
}

static void positions_of(const struct order *order, enum order_kind kind, uint32_t position,
                         uint32_t positions[ORDER_KINDS])
{
	struct order_item item = order_at(order, kind, position);
	assert_true(order_find(order, item.name, item.length, positions));
	assert_int_equal(positions[kind], position);
}

/* ---- orders ---- */

static void orders_hold_the_same_names(void **state)
{
	(void)state;
	enum { COUNT = 1000 };
	struct order *order = make_order(COUNT);
	assert_int_equal(order_count(order), COUNT);
	uint32_t positions[ORDER_KINDS];
	for (uint32_t i = 0; i < COUNT; i++) {
		for (int kind = 0; kind < ORDER_KINDS; kind++)
			positions_of(order, (enum order_kind)kind, i, positions);
		char name[32];
		snprintf(name, sizeof(name), "name%05u", i);
		assert_string_equal(order_at(order, ORDER_BY_NAME, i).name, name);
		assert_int_equal(order_at(order, ORDER_LISTED, i).size, i);
	}
	assert_false(order_find(order, "name", 4, positions));
	assert_false(order_find(order, "name010000", 10, positions));
	order_free(order);
}

static void names_sort_by_bytes(void **state)
{
	(void)state;
	static const char *const sorted[] = {"B", "a", "a-b", "ab", "\xc3\xa4"};
	static const size_t listed[] = {3, 0, 4, 2, 1};
	struct order *order = order_new();
	for (size_t i = 0; i < ARRAY_LEN(listed); i++)
		assert_true(
		    order_add(order, sorted[listed[i]], strlen(sorted[listed[i]]), 0, 100 - i));
	assert_true(order_finish(order));
	for (uint32_t i = 0; i < ARRAY_LEN(sorted); i++)
		assert_string_equal(order_at(order, ORDER_BY_NAME, i).name, sorted[i]);
	for (uint32_t i = 0; i < ARRAY_LEN(sorted); i++)
		assert_string_equal(order_at(order, ORDER_BY_INODE, i).name,
		                    order_at(order, ORDER_LISTED, 4 - i).name);
	order_free(order);
}

static void an_empty_directory_has_no_names(void **state)
{
	(void)state;
	uint32_t positions[ORDER_KINDS];
	struct order *order = order_new();
	assert_true(order_finish(order));
	assert_int_equal(order_count(order), 0);
	assert_false(order_find(order, "a", 1, positions));
	order_free(order);
}

static void a_huge_directory_is_refused(void **state)
{
	(void)state;
	struct order *order = order_new();
	for (unsigned i = 0; i < ORDER_NAMES_MAX; i++)
		assert_true(order_add(order, "x", 1, 0, 0));
	assert_false(order_add(order, "x", 1, 0, 0));
	order_free(order);
}

/* ---- sequences ---- */

static void each_order_is_recognised_at_the_second_visit(void **state)
{
	(void)state;
	struct order *order = make_order(1000);
	for (int kind = 0; kind < ORDER_KINDS; kind++) {
		struct sequence sequence = {0};
		struct momentum momentum = {0};
		uint32_t positions[ORDER_KINDS], furthest = 0;
		positions_of(order, (enum order_kind)kind, 0, positions);
		assert_int_equal(sequence_note(&sequence, &momentum, positions, &furthest), -1);
		for (uint32_t i = 1; i < 1000; i++) {
			positions_of(order, (enum order_kind)kind, i, positions);
			assert_int_equal(
			    sequence_note(&sequence, &momentum, positions, &furthest), kind);
			assert_int_equal(furthest, i);
		}
		assert_true(momentum_is_proved(&momentum));
	}
	order_free(order);
}

static void momentum_proves_the_first_visit_of_the_next_directory(void **state)
{
	(void)state;
	struct order *order = make_order(100);
	struct sequence first = {0}, second = {0}, third = {0};
	struct momentum momentum = {0};
	uint32_t positions[ORDER_KINDS], furthest = 0;
	for (uint32_t i = 0; i < 10; i++) {
		positions_of(order, ORDER_BY_INODE, i, positions);
		sequence_note(&first, &momentum, positions, &furthest);
	}
	positions_of(order, ORDER_BY_INODE, 0, positions);
	assert_int_equal(sequence_note(&second, &momentum, positions, &furthest),
	                 ORDER_BY_INODE);
	/* but not when it begins in the middle */
	positions_of(order, ORDER_BY_INODE, 50, positions);
	assert_int_equal(sequence_note(&third, &momentum, positions, &furthest), -1);
	assert_false(momentum_is_proved(&momentum));
	order_free(order);
}

static void skipped_names_and_turns_are_borne(void **state)
{
	(void)state;
	struct order *order = make_order(1000);
	struct sequence sequence = {0};
	struct momentum momentum = {0};
	uint32_t positions[ORDER_KINDS], furthest = 0;
	/* every third name, as with one of three kinds of files */
	for (uint32_t i = 0; i < 300; i += 3) {
		positions_of(order, ORDER_BY_NAME, i, positions);
		int kind = sequence_note(&sequence, &momentum, positions, &furthest);
		assert_int_equal(kind, i < 9 ? -1 : ORDER_BY_NAME);
	}
	/* four readers that overtake each other */
	static const uint32_t turns[] = {1, 0, 3, 2};
	for (uint32_t i = 300; i < 500; i += 4)
		for (size_t j = 0; j < ARRAY_LEN(turns); j++) {
			positions_of(order, ORDER_BY_NAME, i + turns[j], positions);
			assert_int_equal(
			    sequence_note(&sequence, &momentum, positions, &furthest),
			    ORDER_BY_NAME);
		}
	order_free(order);
}

static void readers_of_several_parts_are_told_apart(void **state)
{
	(void)state;
	struct order *order = make_order(1000);
	struct sequence sequence = {0};
	struct momentum momentum = {0};
	uint32_t positions[ORDER_KINDS], furthest = 0;
	for (uint32_t i = 0; i < 100; i++)
		for (uint32_t reader = 0; reader < SEQUENCE_HEADS; reader++) {
			positions_of(order, ORDER_BY_NAME, reader * 200 + i, positions);
			int kind = sequence_note(&sequence, &momentum, positions, &furthest);
			assert_int_equal(kind, i < 2 ? -1 : ORDER_BY_NAME);
			if (i > 1)
				assert_int_equal(furthest, reader * 200 + i);
		}
	order_free(order);
}

static void neighbours_by_chance_do_not_lead_away(void **state)
{
	(void)state;
	struct sequence sequence = {0};
	struct momentum momentum = {0};
	uint32_t furthest = 0;
	for (uint32_t i = 0; i < 20; i++)
		sequence_note(&sequence, &momentum,
		              (const uint32_t[]){500 - 20 * i, i, 900 - 20 * i}, &furthest);
	/* the next two are neighbours as listed, too */
	assert_int_equal(
	    sequence_note(&sequence, &momentum, (const uint32_t[]){121, 20, 0}, &furthest),
	    ORDER_BY_NAME);
	assert_int_equal(
	    sequence_note(&sequence, &momentum, (const uint32_t[]){122, 21, 100}, &furthest),
	    ORDER_BY_NAME);
}

/* ---- programs ---- */

enum { LINK_FILES = 16 }; /* that arrive while a program waits for one of them */

/*
 * A program opens these positions of the order; what the policies advise is fetched, and is
 * there after a while. Counts what was fetched and never opened.
 */
struct outcome {
	unsigned opens, hits, misses, fetched, unused, widest;
};

static struct outcome simulate(const struct order *order, enum order_kind kind,
                               const uint32_t *opens, unsigned count)
{
	struct outcome outcome = {.opens = count};
	struct sequence sequence = {0};
	struct momentum momentum = {0};
	struct pace pace;
	pace_init(&pace, 128);
	size_t names = order_count(order);
	/* per listed position: the number of the fetch and the open at which it was sent */
	uint64_t *numbers = calloc(names, sizeof(*numbers));
	unsigned *sent_at = calloc(names, sizeof(*sent_at));
	assert_true(numbers && sent_at);
	for (unsigned i = 0; i < count; i++) {
		uint32_t positions[ORDER_KINDS], furthest = 0;
		positions_of(order, kind, opens[i], positions);
		uint32_t self = positions[ORDER_LISTED];
		int found = sequence_note(&sequence, &momentum, positions, &furthest);
		unsigned width = pace_visit(&pace, found >= 0);
		outcome.widest = MAX(outcome.widest, width);
		for (unsigned j = 1; j <= width && furthest + j < names; j++) {
			struct order_item item =
			    order_at(order, (enum order_kind)found, furthest + j);
			order_find(order, item.name, item.length, positions);
			if (numbers[positions[ORDER_LISTED]])
				continue;
			numbers[positions[ORDER_LISTED]] = pace_issue(&pace);
			sent_at[positions[ORDER_LISTED]] = i;
			outcome.fetched++;
		}
		if (numbers[self]) {
			pace_used(&pace, numbers[self], i - sent_at[self] < LINK_FILES);
			outcome.hits++;
			numbers[self] = 0;
		} else {
			outcome.misses++;
		}
		/* what is not wanted in time goes */
		for (size_t name = 0; name < names; name++)
			if (numbers[name] && i - sent_at[name] > 200) {
				numbers[name] = 0;
				outcome.unused++;
				pace_wasted(&pace, 1);
			}
	}
	for (size_t name = 0; name < names; name++)
		outcome.unused += numbers[name] != 0;
	free(numbers);
	free(sent_at);
	return outcome;
}

static void a_program_that_goes_by_an_order_misses_two(void **state)
{
	(void)state;
	enum { COUNT = 1000 };
	struct order *order = make_order(COUNT);
	uint32_t opens[COUNT];
	for (uint32_t i = 0; i < COUNT; i++)
		opens[i] = i;
	for (int kind = 0; kind < ORDER_KINDS; kind++) {
		struct outcome outcome = simulate(order, (enum order_kind)kind, opens, COUNT);
		assert_int_equal(outcome.misses, 2);
		assert_true(outcome.unused * 10 <= outcome.fetched);
		/* as wide as the link asks for and not much more */
		assert_in_range(outcome.widest, LINK_FILES, 4 * LINK_FILES);
	}
	order_free(order);
}

static void random_opens_fetch_next_to_nothing(void **state)
{
	(void)state;
	enum { COUNT = 5000 };
	struct order *order = make_order(1000);
	uint32_t opens[COUNT];
	uint64_t seed = 2463534242u;
	for (uint32_t i = 0; i < COUNT; i++)
		opens[i] = (uint32_t)(random_number(&seed) % 1000);
	struct outcome outcome = simulate(order, ORDER_LISTED, opens, COUNT);
	assert_true(outcome.fetched <= COUNT / 50);
	order_free(order);
}

static void a_program_that_stops_leaves_little(void **state)
{
	(void)state;
	struct order *order = make_order(1000);
	uint32_t opens[] = {10, 11};
	struct outcome outcome = simulate(order, ORDER_BY_NAME, opens, ARRAY_LEN(opens));
	assert_int_equal(outcome.fetched, PACE_START);
	order_free(order);
}

/* ---- pace ---- */

static void the_width_doubles_once_for_what_is_under_way(void **state)
{
	(void)state;
	struct pace pace;
	pace_init(&pace, 32);
	for (int i = 0; i < 4; i++)
		pace_issue(&pace);
	assert_int_equal(pace_visit(&pace, true), PACE_START);
	pace_used(&pace, 1, true);
	assert_int_equal(pace_visit(&pace, true), 2 * PACE_START);
	/* they were all sent at the old width */
	pace_used(&pace, 2, true);
	pace_used(&pace, 4, true);
	assert_int_equal(pace_visit(&pace, true), 2 * PACE_START);
	pace_used(&pace, pace_issue(&pace), false);
	assert_int_equal(pace_visit(&pace, true), 2 * PACE_START);
	for (int i = 0; i < 10; i++)
		pace_used(&pace, pace_issue(&pace), true);
	assert_int_equal(pace_visit(&pace, true), 32);
	assert_int_equal(pace_visit(&pace, false), 0);
}

static void waste_narrows_and_then_stops(void **state)
{
	(void)state;
	struct pace pace;
	pace_init(&pace, 64);
	unsigned wasted = 0;
	while (pace_visit(&pace, true)) {
		pace_issue(&pace);
		pace_wasted(&pace, 1);
		wasted++;
	}
	assert_true(wasted <= 8);
	/* a rest, and a new trial, which fails: the next rest is longer */
	unsigned visits = 1;
	while (!pace_visit(&pace, true))
		visits++;
	assert_true(visits >= PACE_REST - 1);
	while (pace_visit(&pace, true))
		pace_wasted(&pace, 1);
	unsigned more = 1;
	while (!pace_visit(&pace, true))
		more++;
	assert_true(more > visits);
}

static void a_tenth_of_waste_is_borne(void **state)
{
	(void)state;
	struct pace pace;
	pace_init(&pace, 64);
	for (int i = 0; i < 5000; i++) {
		uint64_t number = pace_issue(&pace);
		if (i % 12 == 11)
			pace_wasted(&pace, 1);
		else
			pace_used(&pace, number, i < 100);
	}
	assert_int_equal(pace_visit(&pace, true), 64);
	/* a fifth is not */
	for (int i = 0; i < 500; i++) {
		uint64_t number = pace_issue(&pace);
		if (i % 5 == 4)
			pace_wasted(&pace, 1);
		else
			pace_used(&pace, number, false);
	}
	assert_true(pace_visit(&pace, true) < 64);
}

static void bytes_go_by_the_link(void **state)
{
	(void)state;
	struct remote_link link = {0};
	assert_int_equal(pace_flight_bytes(&link), PACE_FLIGHT_MIN);
	assert_int_equal(pace_ahead_bytes(&link), PACE_AHEAD_MIN);
	link = (struct remote_link){.rtt_ns = 50000000, .bytes_per_sec = 12500000};
	assert_int_equal(pace_flight_bytes(&link), 1875000);
	assert_int_equal(pace_ahead_bytes(&link), 12500000);
	link = (struct remote_link){.rtt_ns = 300000000, .bytes_per_sec = 1000000000};
	assert_int_equal(pace_flight_bytes(&link), PACE_FLIGHT_MAX);
	assert_int_equal(pace_ahead_bytes(&link), PACE_AHEAD_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(orders_hold_the_same_names),
	    cmocka_unit_test(names_sort_by_bytes),
	    cmocka_unit_test(an_empty_directory_has_no_names),
	    cmocka_unit_test(a_huge_directory_is_refused),
	    cmocka_unit_test(each_order_is_recognised_at_the_second_visit),
	    cmocka_unit_test(momentum_proves_the_first_visit_of_the_next_directory),
	    cmocka_unit_test(skipped_names_and_turns_are_borne),
	    cmocka_unit_test(readers_of_several_parts_are_told_apart),
	    cmocka_unit_test(neighbours_by_chance_do_not_lead_away),
	    cmocka_unit_test(a_program_that_goes_by_an_order_misses_two),
	    cmocka_unit_test(random_opens_fetch_next_to_nothing),
	    cmocka_unit_test(a_program_that_stops_leaves_little),
	    cmocka_unit_test(the_width_doubles_once_for_what_is_under_way),
	    cmocka_unit_test(waste_narrows_and_then_stops),
	    cmocka_unit_test(a_tenth_of_waste_is_borne),
	    cmocka_unit_test(bytes_go_by_the_link),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
