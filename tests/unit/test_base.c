/* Byte strings, hash tables, lists, histograms, log helpers, wake-ups. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/failure.h"
#include "base/hist.h"
#include "base/list.h"
#include "base/log.h"
#include "base/map.h"
#include "base/secret.h"
#include "base/wake.h"

static void bytes_grow_and_stay_terminated(void **state)
{
	(void)state;
	struct bytes bytes = BYTES_INIT;
	for (int i = 0; i < 1000; i++)
		bytes_addf(&bytes, "%d,", i);
	assert_int_equal(strlen(bytes.data), bytes.length);
	assert_memory_equal(bytes.data, "0,1,2,", 6);
	bytes_clear(&bytes);
	bytes_add_be32(&bytes, 0x01020304);
	bytes_add_be64(&bytes, UINT64_C(0x05060708090a0b0c));
	assert_memory_equal(bytes.data, "\1\2\3\4\5\6\7\x8\x9\xa\xb\xc", 12);
	bytes_put_be32(&bytes, 0, 0xffffffff);
	assert_memory_equal(bytes.data, "\xff\xff\xff\xff\5", 5);
	char *text = bytes_steal(&bytes);
	assert_null(bytes.data);
	free(text);
	text = bytes_steal(&bytes);
	assert_string_equal(text, "");
	free(text);
}

struct item {
	uint64_t key;
};

static bool item_matches(const void *entry, const void *key)
{
	return ((const struct item *)entry)->key == *(const uint64_t *)key;
}

/* All entries share a few hash values, so that gaps in probe sequences are exercised. */
static void map_finds_what_was_added_and_not_what_was_removed(void **state)
{
	(void)state;
	enum { COUNT = 2000 };
	static struct item items[COUNT];
	struct map map;
	map_init(&map);
	for (uint64_t i = 0; i < COUNT; i++) {
		items[i].key = i;
		assert_true(map_add(&map, map_hash_int(i) & 0xff, &items[i]));
	}
	for (uint64_t i = 0; i < COUNT; i += 2)
		assert_true(map_remove(&map, map_hash_int(i) & 0xff, &items[i]));
	assert_false(map_remove(&map, map_hash_int(0) & 0xff, &items[0]));
	for (uint64_t i = 0; i < COUNT; i++) {
		void *found = map_find(&map, map_hash_int(i) & 0xff, item_matches, &i);
		assert_ptr_equal(found, i % 2 ? &items[i] : NULL);
	}
	size_t at = 0, seen = 0;
	while (map_next(&map, &at))
		seen++;
	assert_int_equal(seen, COUNT / 2);
	assert_int_equal(map.count, COUNT / 2);
	map_release(&map);
}

static void hashes_depend_on_every_byte(void **state)
{
	(void)state;
	char text[32] = "abcdefghijklmnopqrstuvwxyz";
	uint64_t before = map_hash(text, 26, 0);
	assert_int_equal(before, map_hash(text, 26, 0));
	assert_int_not_equal(before, map_hash(text, 26, 1));
	assert_int_not_equal(before, map_hash(text, 25, 0));
	text[25] ^= 1;
	assert_int_not_equal(before, map_hash(text, 26, 0));
}

static void list_keeps_order_and_survives_removal(void **state)
{
	(void)state;
	struct list_node head, other, nodes[4];
	list_init(&head);
	list_init(&other);
	list_push_back(&head, &nodes[1]);
	list_push_back(&other, &nodes[2]);
	list_push_back(&other, &nodes[3]);
	list_push_front(&head, &nodes[0]);
	list_splice_back(&head, &other);
	assert_true(list_empty(&other));
	int at = 0;
	list_for_each_safe (node, &head) {
		assert_ptr_equal(node, &nodes[at]);
		if (at++ == 1)
			list_remove(node);
	}
	assert_int_equal(at, 4);
	assert_ptr_equal(list_pop_front(&head), &nodes[0]);
	assert_ptr_equal(list_pop_front(&head), &nodes[2]);
	list_remove(&nodes[3]);
	list_remove(&nodes[3]);
	assert_null(list_pop_front(&head));
}

static void histogram_percentiles_are_within_an_eighth(void **state)
{
	(void)state;
	static struct hist hist;
	assert_int_equal(hist_percentile(&hist, 50), 0);
	for (uint64_t i = 1; i <= 1000; i++)
		hist_add(&hist, i * NS_PER_MS);
	const double percents[] = {10, 50, 90, 99};
	for (size_t i = 0; i < 4; i++) {
		double exact = percents[i] * 10 * (double)NS_PER_MS;
		double got = (double)hist_percentile(&hist, percents[i]);
		assert_true(got >= exact * 0.875 && got <= exact * 1.15);
	}
	hist_add(&hist, UINT64_MAX);
	assert_true(hist_percentile(&hist, 100) > 1000 * NS_PER_MS);
}

static void quoting_shows_bytes_and_stays_in_its_room(void **state)
{
	(void)state;
	char out[64];
	assert_string_equal(log_quote(out, sizeof(out), "a\n\\\xff z", 6),
	                    "a\\x0a\\x5c\\xff z");
	char tiny[12];
	log_quote(tiny, sizeof(tiny), "abcdefghijklmnop", 16);
	assert_string_equal(tiny, "abcde...");
}

static void unknown_trace_parts_are_refused(void **state)
{
	(void)state;
	assert_int_equal(log_set_trace("pool,nonsense"), -EINVAL);
	assert_false(log_tracing(LOG_POOL));
	assert_int_equal(log_set_trace("pool"), 0);
	assert_true(log_tracing(LOG_POOL));
	assert_false(log_tracing(LOG_SFTP));
}

static void failures_carry_kind_and_text(void **state)
{
	(void)state;
	struct failure failure;
	assert_int_equal(failure_set(&failure, FAILURE_AUTH, "no key for %s", "host"), -1);
	assert_int_equal(failure.kind, FAILURE_AUTH);
	assert_string_equal(failure.text, "no key for host");
}

static void secrets_are_copied(void **state)
{
	(void)state;
	struct secret *secret = secret_new("pass\0word", 9);
	assert_int_equal(secret_length(secret), 9);
	assert_memory_equal(secret_text(secret), "pass\0word\0", 10);
	secret_free(secret);
	secret_free(NULL);
}

static void *signal_often(void *wake)
{
	for (int i = 0; i < 100000; i++)
		wake_signal(wake);
	return NULL;
}

static void a_signal_after_prepare_ends_the_poll(void **state)
{
	(void)state;
	struct wake wake;
	assert_int_equal(wake_init(&wake), 0);
	struct pollfd fd = {.fd = wake_fd(&wake), .events = POLLIN};
	wake_signal(&wake);
	assert_int_equal(poll(&fd, 1, 0), 0);
	wake_prepare(&wake);
	wake_signal(&wake);
	assert_int_equal(poll(&fd, 1, 0), 1);
	wake_finish(&wake);
	assert_int_equal(poll(&fd, 1, 0), 0);

	pthread_t thread;
	pthread_create(&thread, NULL, signal_often, &wake);
	for (int i = 0; i < 100; i++) {
		wake_prepare(&wake);
		poll(&fd, 1, 1);
		wake_finish(&wake);
	}
	pthread_join(thread, NULL);
	wake_release(&wake);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(bytes_grow_and_stay_terminated),
	    cmocka_unit_test(map_finds_what_was_added_and_not_what_was_removed),
	    cmocka_unit_test(hashes_depend_on_every_byte),
	    cmocka_unit_test(list_keeps_order_and_survives_removal),
	    cmocka_unit_test(histogram_percentiles_are_within_an_eighth),
	    cmocka_unit_test(quoting_shows_bytes_and_stays_in_its_room),
	    cmocka_unit_test(unknown_trace_parts_are_refused),
	    cmocka_unit_test(failures_carry_kind_and_text),
	    cmocka_unit_test(secrets_are_copied),
	    cmocka_unit_test(a_signal_after_prepare_ends_the_poll),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
