/* Listings of an SFTP session, against a peer that the test plays. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "tests/unit/sftp_harness.h"

static void open_plain(struct harness *h)
{
	harness_open(h, 0, 0);
	harness_connect_as(h, 3, NULL, NULL);
}

static void expect_close_of(struct harness *h, const char *handle)
{
	struct packet packet;
	peer_take(h, &packet);
	assert_int_equal(packet.type, WIRE_CLOSE);
	struct wire_text text = wire_get_text(&packet.body);
	assert_int_equal(text.length, strlen(handle));
	assert_memory_equal(text.data, handle, text.length);
	peer_status(h, packet.id, WIRE_STATUS_OK);
	packet_release(&packet);
	harness_pump(h);
}

struct names {
	char text[4096]; /* each name and a blank */
	unsigned count;
	unsigned stop_after;
};

static int collect(struct op *op, const struct remote_entry *entries, size_t count)
{
	struct names *names = op->owner;
	for (size_t i = 0; i < count; i++) {
		names->count++;
		size_t used = strlen(names->text);
		if (used + entries[i].name_length + 2 < sizeof(names->text))
			snprintf(names->text + used, sizeof(names->text) - used, "%.*s ",
			         (int)entries[i].name_length, entries[i].name);
	}
	return names->stop_after && names->count >= names->stop_after;
}

static void add_name(struct bytes *reply, const char *name, size_t length)
{
	static const char line[] = "-rw-r--r--    3 u        g               5 Jan  1 00:00 x";
	reply_text(reply, name, length);
	reply_text(reply, line, sizeof(line) - 1);
	reply_attr(reply, 5, S_IFREG | 0644, 77);
}

/* A NAME reply with these names, blank-separated. */
static void send_names(struct harness *h, uint32_t id, uint32_t count, const char *names)
{
	struct bytes reply;
	reply_begin(&reply, WIRE_NAME, id);
	bytes_add_be32(&reply, count);
	while (*names) {
		size_t length = strcspn(names, " ");
		add_name(&reply, names, length);
		names += length + (names[length] == ' ');
	}
	peer_send(h, &reply);
}

/* Starts to list and answers OPENDIR with the handle "d". */
static void start_list(struct harness *h, struct op *op, struct names *names)
{
	*op = (struct op){.kind = OP_LIST, .path = "/d", .entries = collect, .owner = names};
	harness_submit(h, op);
	peer_handle(h, peer_expect(h, WIRE_OPENDIR), "d");
}

static void test_a_small_directory_takes_two_round_trips(void **state)
{
	(void)state;
	struct harness h;
	struct names names = {.count = 0};
	struct op op;
	open_plain(&h);
	start_list(&h, &op, &names);
	uint32_t first = peer_expect(&h, WIRE_READDIR);
	uint32_t second = peer_expect(&h, WIRE_READDIR);
	send_names(&h, first, 4, "a . .. b");
	assert_true(peer_is_quiet(&h));
	peer_status(&h, second, WIRE_STATUS_EOF);
	assert_int_equal(harness_wait(&h, &op), 0); /* before CLOSE is answered */
	assert_string_equal(names.text, "a b ");
	expect_close_of(&h, "d");
	harness_close(&h);
}

/* Some servers end a listing with a reply without names, again and again. */
static void test_a_reply_without_names_is_the_end(void **state)
{
	(void)state;
	struct harness h;
	struct names names = {.count = 0};
	struct op op;
	open_plain(&h);
	start_list(&h, &op, &names);
	uint32_t first = peer_expect(&h, WIRE_READDIR);
	peer_expect(&h, WIRE_READDIR);
	send_names(&h, first, 0, "");
	assert_int_equal(harness_wait(&h, &op), 0);
	assert_int_equal(names.count, 0);
	expect_close_of(&h, "d");
	harness_close(&h);
}

static void test_names_come_in_the_order_of_asking(void **state)
{
	(void)state;
	struct harness h;
	struct names names = {.count = 0};
	struct op op;
	open_plain(&h);
	start_list(&h, &op, &names);
	uint32_t first = peer_expect(&h, WIRE_READDIR);
	uint32_t second = peer_expect(&h, WIRE_READDIR);
	send_names(&h, second, 2, "c d");
	harness_pump(&h);
	assert_int_equal(names.count, 0);
	send_names(&h, first, 2, "a b");
	uint32_t ids[4];
	for (int i = 0; i < 4; i++)
		ids[i] = peer_expect(&h, WIRE_READDIR);
	assert_string_equal(names.text, "a b c d ");
	/* Where replies change places, the end does not say that all is there. */
	peer_status(&h, ids[0], WIRE_STATUS_EOF);
	harness_pump(&h);
	assert_int_equal(h.done_count, 0);
	send_names(&h, ids[1], 1, "e");
	peer_status(&h, ids[3], WIRE_STATUS_EOF);
	peer_status(&h, ids[2], 4);
	assert_int_equal(harness_wait(&h, &op), 0);
	assert_string_equal(names.text, "a b c d e ");
	expect_close_of(&h, "d");
	harness_close(&h);
}

static void test_a_large_directory_is_asked_for_ahead(void **state)
{
	(void)state;
	struct harness h;
	struct names names = {.count = 0};
	struct op op;
	open_plain(&h);
	start_list(&h, &op, &names);
	uint32_t ids[64];
	unsigned asked = 2, answered = 0;
	ids[0] = peer_expect(&h, WIRE_READDIR);
	ids[1] = peer_expect(&h, WIRE_READDIR);
	static const unsigned then_in_flight[] = {4, 8, 8, 8};
	for (unsigned round = 0; round < 4; round++) {
		struct bytes reply;
		reply_begin(&reply, WIRE_NAME, ids[answered++]);
		bytes_add_be32(&reply, 100);
		for (int i = 0; i < 100; i++)
			add_name(&reply, "n", 1);
		peer_send(&h, &reply);
		while (asked - answered < then_in_flight[round])
			ids[asked++] = peer_expect(&h, WIRE_READDIR);
		assert_true(peer_is_quiet(&h));
	}
	while (answered < asked)
		peer_status(&h, ids[answered++], WIRE_STATUS_EOF);
	assert_int_equal(harness_wait(&h, &op), 0);
	assert_int_equal(names.count, 400);
	expect_close_of(&h, "d");
	assert_int_equal(h.progress_err, 0);
	harness_close(&h);
}

static void test_a_huge_reply_is_taken_and_bad_names_are_left_out(void **state)
{
	(void)state;
	enum { COUNT = 20000 };
	struct harness h;
	struct names names = {.count = 0};
	struct op op;
	open_plain(&h);
	log_set_level(LOG_LEVEL_ERROR);
	start_list(&h, &op, &names);
	struct bytes reply;
	reply_begin(&reply, WIRE_NAME, peer_expect(&h, WIRE_READDIR));
	bytes_add_be32(&reply, COUNT + 3);
	add_name(&reply, "../../etc/passwd", 16);
	add_name(&reply, "nul\0inside", 10);
	add_name(&reply, "", 0);
	for (int i = 0; i < COUNT; i++) {
		char name[32];
		add_name(&reply, name, (size_t)snprintf(name, sizeof(name), "file%d", i));
	}
	assert_true(reply.length > 1500000);
	peer_send(&h, &reply);
	uint32_t second = peer_expect(&h, WIRE_READDIR);
	peer_status(&h, second, WIRE_STATUS_EOF);
	assert_int_equal(harness_wait(&h, &op), 0);
	assert_int_equal(names.count, COUNT);
	assert_memory_equal(names.text, "file0 file1 ", 12);
	log_set_level(LOG_LEVEL_WARN);
	harness_close(&h);
}

static void test_the_receiver_can_stop_a_listing(void **state)
{
	(void)state;
	struct harness h;
	struct names names = {.stop_after = 2};
	struct op op;
	open_plain(&h);
	start_list(&h, &op, &names);
	uint32_t first = peer_expect(&h, WIRE_READDIR);
	uint32_t second = peer_expect(&h, WIRE_READDIR);
	send_names(&h, first, 2, "a b");
	assert_int_equal(harness_wait(&h, &op), -ECANCELED);
	expect_close_of(&h, "d");
	send_names(&h, second, 1, "c");
	harness_pump(&h);
	assert_int_equal(h.progress_err, 0);
	assert_int_equal(names.count, 2);
	harness_close(&h);
}

static void test_a_cancelled_listing_closes_its_handle(void **state)
{
	(void)state;
	struct harness h;
	struct names names = {.count = 0};
	struct op op;
	open_plain(&h);
	/* While READDIRs are in flight. */
	start_list(&h, &op, &names);
	uint32_t first = peer_expect(&h, WIRE_READDIR);
	uint32_t second = peer_expect(&h, WIRE_READDIR);
	assert_true(h.session->ops->cancel(h.session, &op, -EINTR));
	assert_int_equal(op.err, -EINTR);
	expect_close_of(&h, "d");
	send_names(&h, first, 1, "a");
	peer_status(&h, second, WIRE_STATUS_EOF);
	harness_pump(&h);
	assert_int_equal(h.progress_err, 0);
	/* Before the handle is there. */
	h.done_count = 0;
	harness_submit(&h, &op);
	uint32_t id = peer_expect(&h, WIRE_OPENDIR);
	assert_true(h.session->ops->cancel(h.session, &op, -EINTR));
	peer_handle(&h, id, "late");
	expect_close_of(&h, "late");
	assert_int_equal(h.done_count, 1);
	assert_int_equal(names.count, 0);
	harness_close(&h);
}

static void test_errors_of_a_listing_are_told(void **state)
{
	(void)state;
	struct harness h;
	struct names names = {.count = 0};
	open_plain(&h);
	struct op op = {.kind = OP_LIST, .path = "/d", .entries = collect, .owner = &names};
	harness_submit(&h, &op);
	peer_status(&h, peer_expect(&h, WIRE_OPENDIR), 3);
	assert_int_equal(harness_wait(&h, &op), -EACCES);

	h.done_count = 0;
	start_list(&h, &op, &names);
	uint32_t first = peer_expect(&h, WIRE_READDIR);
	peer_expect(&h, WIRE_READDIR);
	peer_status(&h, first, 4);
	assert_int_equal(harness_wait(&h, &op), -EREMOTEIO);
	expect_close_of(&h, "d");

	/* More names announced than sent. */
	h.done_count = 0;
	start_list(&h, &op, &names);
	send_names(&h, peer_expect(&h, WIRE_READDIR), 3, "a b");
	harness_pump(&h);
	assert_int_equal(h.progress_err, -EPROTO);
	assert_non_null(strstr(h.failure.text, "NAME"));
	h.session->ops->disconnect(h.session);
	assert_int_equal(op.err, -ENOLINK);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_small_directory_takes_two_round_trips),
	    cmocka_unit_test(test_a_reply_without_names_is_the_end),
	    cmocka_unit_test(test_names_come_in_the_order_of_asking),
	    cmocka_unit_test(test_a_large_directory_is_asked_for_ahead),
	    cmocka_unit_test(test_a_huge_reply_is_taken_and_bad_names_are_left_out),
	    cmocka_unit_test(test_the_receiver_can_stop_a_listing),
	    cmocka_unit_test(test_a_cancelled_listing_closes_its_handle),
	    cmocka_unit_test(test_errors_of_a_listing_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
