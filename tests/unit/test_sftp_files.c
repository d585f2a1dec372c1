/* Handles and listings of an SFTP session, against a peer that the test plays. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Takes the OPEN and gives its flags. */
static uint32_t take_open(struct harness *h, uint32_t *flags)
{
	struct packet packet;
	peer_take(h, &packet);
	assert_int_equal(packet.type, WIRE_OPEN);
	wire_get_text(&packet.body);
	*flags = wire_get_u32(&packet.body);
	packet_release(&packet);
	return packet.id;
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

static void drop_file(struct harness *h, struct remote_file *file, const char *handle)
{
	remote_file_unref(file);
	expect_close_of(h, handle);
}

/* ---- opening ---- */

static void test_open_looks_at_the_file_in_the_same_round_trip(void **state)
{
	(void)state;
	struct harness h;
	uint32_t flags;
	char data[4];
	open_plain(&h);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_READ);
	struct op op = {.kind = OP_OPEN, .file = file, .open_flags = OPEN_READ};
	struct op read = {.kind = OP_READ, .file = file, .data = data, .length = 4};
	harness_submit(&h, &op);
	harness_submit(&h, &read);
	uint32_t open_id = take_open(&h, &flags);
	uint32_t stat_id = peer_expect(&h, WIRE_STAT);
	assert_int_equal(flags, 1);
	assert_true(peer_is_quiet(&h)); /* the read waits for the handle */

	/* It starts as soon as the handle is there. */
	peer_handle(&h, open_id, "h1");
	uint32_t read_id = peer_expect(&h, WIRE_READ);
	assert_false(harness_is_done(&h, &op));
	peer_attrs(&h, stat_id, 4, S_IFREG | 0644, 99);
	assert_int_equal(harness_wait(&h, &op), 0);
	assert_int_equal(op.attr.size, 4);
	assert_int_equal(op.attr.mtime.tv_sec, 99);
	assert_true(atomic_load(&file->handles[0]->open));
	peer_data(&h, read_id, "abcd", 4);
	assert_int_equal(harness_wait(&h, &read), 0);
	drop_file(&h, file, "h1");
	harness_close(&h);
}

static void test_open_asks_the_handle_when_the_path_gave_nothing(void **state)
{
	(void)state;
	struct harness h;
	uint32_t flags;
	open_plain(&h);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_READ);
	struct op op = {.kind = OP_OPEN, .file = file, .open_flags = OPEN_READ};
	harness_submit(&h, &op);
	peer_handle(&h, take_open(&h, &flags), "h1");
	peer_status(&h, peer_expect(&h, WIRE_STAT), 2);
	peer_attrs(&h, peer_expect(&h, WIRE_FSTAT), 12, S_IFREG | 0600, 5);
	assert_int_equal(harness_wait(&h, &op), 0);
	assert_int_equal(op.attr.size, 12);
	drop_file(&h, file, "h1");

	/* A server that has neither opens files all the same. */
	file = remote_file_new(&h.remote, "/g", OPEN_READ);
	struct op bare = {.kind = OP_OPEN, .file = file, .open_flags = OPEN_READ};
	harness_submit(&h, &bare);
	peer_handle(&h, take_open(&h, &flags), "h2");
	peer_status(&h, peer_expect(&h, WIRE_STAT), 4);
	peer_status(&h, peer_expect(&h, WIRE_FSTAT), 8);
	assert_int_equal(harness_wait(&h, &bare), 0);
	assert_int_equal(bare.attr.valid, 0);
	drop_file(&h, file, "h2");
	harness_close(&h);
}

static void test_a_failed_open_fails_what_waits(void **state)
{
	(void)state;
	struct harness h;
	uint32_t flags;
	open_plain(&h);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_READ | OPEN_WRITE);
	struct op op = {.kind = OP_OPEN, .file = file, .open_flags = OPEN_READ | OPEN_WRITE};
	struct op stat = {.kind = OP_FSTAT, .file = file};
	harness_submit(&h, &op);
	harness_submit(&h, &stat);
	peer_status(&h, take_open(&h, &flags), 3);
	assert_int_equal(flags, 3);
	peer_attrs(&h, peer_expect(&h, WIRE_STAT), 4, S_IFREG | 0644, 99);
	assert_int_equal(harness_wait(&h, &op), -EACCES);
	assert_int_equal(harness_wait(&h, &stat), -EACCES);
	assert_false(atomic_load(&file->handles[0]->open));
	remote_file_unref(file);
	harness_close(&h);
}

static void test_a_new_file_gets_its_mode_whatever_the_servers_umask(void **state)
{
	(void)state;
	struct harness h;
	uint32_t flags;
	open_plain(&h);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_WRITE);
	struct op op = {.kind = OP_OPEN,
	                .file = file,
	                .open_flags = OPEN_WRITE | OPEN_CREATE,
	                .attr = {.valid = ATTR_MODE, .mode = 0666}};
	harness_submit(&h, &op);
	uint32_t id = take_open(&h, &flags);
	assert_int_equal(flags, 0x2 | 0x8 | 0x20); /* EXCL tells whether we made it */
	peer_handle(&h, id, "h1");
	peer_attrs(&h, peer_expect(&h, WIRE_STAT), 0, S_IFREG | 0644, 5);
	struct packet packet;
	peer_take(&h, &packet);
	assert_int_equal(packet.type, WIRE_FSETSTAT);
	wire_get_text(&packet.body);
	assert_int_equal(wire_get_u32(&packet.body), WIRE_ATTR_PERMISSIONS);
	assert_int_equal(wire_get_u32(&packet.body), 0666);
	packet_release(&packet);
	assert_int_equal(h.done_count, 0);
	peer_status(&h, packet.id, 0);
	assert_int_equal(harness_wait(&h, &op), 0);
	assert_int_equal(op.attr.mode, S_IFREG | 0666);
	drop_file(&h, file, "h1");
	harness_close(&h);
}

static void test_a_file_that_was_there_keeps_its_mode(void **state)
{
	(void)state;
	struct harness h;
	uint32_t flags;
	open_plain(&h);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_WRITE);
	struct op op = {.kind = OP_OPEN,
	                .file = file,
	                .open_flags = OPEN_WRITE | OPEN_CREATE | OPEN_TRUNC,
	                .attr = {.valid = ATTR_MODE, .mode = 0666}};
	harness_submit(&h, &op);
	peer_status(&h, take_open(&h, &flags), 4);
	peer_attrs(&h, peer_expect(&h, WIRE_STAT), 17, S_IFREG | 0600, 5);
	uint32_t id = take_open(&h, &flags);
	assert_int_equal(flags, 0x2 | 0x8 | 0x10);
	peer_handle(&h, id, "h1");
	/* Looked at before it was truncated: the handle is asked. */
	peer_attrs(&h, peer_expect(&h, WIRE_STAT), 17, S_IFREG | 0600, 5);
	peer_attrs(&h, peer_expect(&h, WIRE_FSTAT), 0, S_IFREG | 0600, 6);
	assert_int_equal(harness_wait(&h, &op), 0);
	assert_int_equal(op.attr.mode, S_IFREG | 0600);
	assert_int_equal(op.attr.size, 0);
	assert_int_equal(op.attr.mtime.tv_sec, 6);
	drop_file(&h, file, "h1");

	/* With EXCL from above there is one try. */
	file = remote_file_new(&h.remote, "/f", OPEN_WRITE);
	struct op excl = {.kind = OP_OPEN,
	                  .file = file,
	                  .open_flags = OPEN_WRITE | OPEN_CREATE | OPEN_EXCL,
	                  .attr = {.valid = ATTR_MODE, .mode = 0666}};
	harness_submit(&h, &excl);
	peer_status(&h, take_open(&h, &flags), 4);
	peer_attrs(&h, peer_expect(&h, WIRE_STAT), 17, S_IFREG | 0600, 5);
	assert_int_equal(harness_wait(&h, &excl), -EREMOTEIO);
	remote_file_unref(file);
	harness_close(&h);
}

static void test_a_cancelled_open_is_closed_again(void **state)
{
	(void)state;
	struct harness h;
	uint32_t flags;
	open_plain(&h);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_READ);
	struct op op = {.kind = OP_OPEN, .file = file, .open_flags = OPEN_READ};
	harness_submit(&h, &op);
	uint32_t open_id = take_open(&h, &flags);
	uint32_t stat_id = peer_expect(&h, WIRE_STAT);
	assert_true(h.session->ops->cancel(h.session, &op, -EINTR));
	remote_file_unref(file); /* the caller's reference: it has no use for the file now */
	peer_handle(&h, open_id, "late");
	peer_attrs(&h, stat_id, 1, S_IFREG | 0600, 5);
	expect_close_of(&h, "late");
	harness_close(&h);
}

/* ---- handles made on the way ---- */

/* A file opened elsewhere, last seen with size 10 and mtime 1000. */
static struct remote_file *known_file(struct harness *h)
{
	struct remote_file *file = remote_file_new(&h->remote, "/f", OPEN_READ);
	file->version = (struct remote_attr){.valid = ATTR_SIZE | ATTR_TIMES | ATTR_MODE,
	                                     .size = 10,
	                                     .mtime = {.tv_sec = 1000}};
	return file;
}

static void test_a_lane_without_handle_opens_the_same_file(void **state)
{
	(void)state;
	struct harness h;
	uint32_t flags;
	char data[10];
	open_plain(&h);
	struct remote_file *file = known_file(&h);
	struct op read = {.kind = OP_READ, .file = file, .data = data, .length = 10};
	struct op stat = {.kind = OP_FSTAT, .file = file};
	harness_submit(&h, &read);
	harness_submit(&h, &stat);
	uint32_t open_id = take_open(&h, &flags);
	assert_int_equal(flags, 1);
	uint32_t stat_id = peer_expect(&h, WIRE_STAT);
	peer_handle(&h, open_id, "h1");
	assert_true(peer_is_quiet(&h)); /* not before it is known to be the same */
	peer_attrs(&h, stat_id, 10, S_IFREG | 0644, 1000);
	peer_data(&h, peer_expect(&h, WIRE_READ), "0123456789", 10);
	peer_attrs(&h, peer_expect(&h, WIRE_FSTAT), 10, S_IFREG | 0644, 1000);
	assert_int_equal(harness_wait(&h, &read), 0);
	assert_int_equal(harness_wait(&h, &stat), 0);
	drop_file(&h, file, "h1");
	harness_close(&h);
}

/* What a read of the known file gives when the server now has this size and mtime. */
static int read_of_changed(uint64_t size, uint32_t mtime, bool own_writes)
{
	struct harness h;
	uint32_t flags;
	char data[10];
	open_plain(&h);
	struct remote_file *file = known_file(&h);
	file->own_writes = own_writes;
	struct op read = {.kind = OP_READ, .file = file, .data = data, .length = 10};
	harness_submit(&h, &read);
	peer_handle(&h, take_open(&h, &flags), "h1");
	peer_attrs(&h, peer_expect(&h, WIRE_STAT), size, S_IFREG | 0644, mtime);
	harness_pump(&h);
	if (harness_is_done(&h, &read)) {
		expect_close_of(&h, "h1");
		remote_file_unref(file);
	} else {
		peer_data(&h, peer_expect(&h, WIRE_READ), "0123456789", 10);
		harness_wait(&h, &read);
		drop_file(&h, file, "h1");
	}
	harness_close(&h);
	return read.err;
}

static void test_another_file_of_that_name_is_stale(void **state)
{
	(void)state;
	assert_int_equal(read_of_changed(11, 1000, false), -ESTALE);
	assert_int_equal(read_of_changed(10, 1001, false), -ESTALE);
	assert_int_equal(read_of_changed(11, 1001, true), 0);
	assert_int_equal(read_of_changed(10, 1000, false), 0);
}

static void test_a_file_without_name_is_stale(void **state)
{
	(void)state;
	struct harness h;
	uint32_t flags;
	char data[10];
	open_plain(&h);
	struct remote_file *file = known_file(&h);
	struct op read = {.kind = OP_READ, .file = file, .data = data, .length = 10};
	harness_submit(&h, &read);
	peer_status(&h, take_open(&h, &flags), 2);
	peer_status(&h, peer_expect(&h, WIRE_STAT), 2);
	assert_int_equal(harness_wait(&h, &read), -ESTALE);

	remote_file_set_unlinked(file);
	assert_int_equal(harness_run(&h, &read), -ESTALE);
	assert_true(peer_is_quiet(&h));
	remote_file_unref(file);
	harness_close(&h);
}

static void test_a_handle_dies_with_its_connection(void **state)
{
	(void)state;
	struct harness h;
	uint32_t flags;
	open_plain(&h);
	struct remote_file *file = known_file(&h);
	struct op stat = {.kind = OP_FSTAT, .file = file};
	harness_submit(&h, &stat);
	peer_handle(&h, take_open(&h, &flags), "old");
	peer_attrs(&h, peer_expect(&h, WIRE_STAT), 10, S_IFREG | 0644, 1000);
	peer_attrs(&h, peer_expect(&h, WIRE_FSTAT), 10, S_IFREG | 0644, 1000);
	assert_int_equal(harness_wait(&h, &stat), 0);
	h.session->generation++; /* as a new connection has it */
	h.done_count = 0;
	harness_submit(&h, &stat);
	peer_handle(&h, take_open(&h, &flags), "new");
	peer_attrs(&h, peer_expect(&h, WIRE_STAT), 10, S_IFREG | 0644, 1000);
	peer_attrs(&h, peer_expect(&h, WIRE_FSTAT), 10, S_IFREG | 0644, 1000);
	assert_int_equal(harness_wait(&h, &stat), 0);
	drop_file(&h, file, "new");
	harness_close(&h);
}

/* ---- listings ---- */

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
	first = peer_expect(&h, WIRE_READDIR);
	second = peer_expect(&h, WIRE_READDIR);
	assert_string_equal(names.text, "a b c d ");
	/* Where replies change places, the end does not say that all is there. */
	peer_status(&h, first, WIRE_STATUS_EOF);
	harness_pump(&h);
	assert_int_equal(h.done_count, 0);
	send_names(&h, second, 1, "e");
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
	    cmocka_unit_test(test_open_looks_at_the_file_in_the_same_round_trip),
	    cmocka_unit_test(test_open_asks_the_handle_when_the_path_gave_nothing),
	    cmocka_unit_test(test_a_failed_open_fails_what_waits),
	    cmocka_unit_test(test_a_new_file_gets_its_mode_whatever_the_servers_umask),
	    cmocka_unit_test(test_a_file_that_was_there_keeps_its_mode),
	    cmocka_unit_test(test_a_cancelled_open_is_closed_again),
	    cmocka_unit_test(test_a_lane_without_handle_opens_the_same_file),
	    cmocka_unit_test(test_another_file_of_that_name_is_stale),
	    cmocka_unit_test(test_a_file_without_name_is_stale),
	    cmocka_unit_test(test_a_handle_dies_with_its_connection),
	    cmocka_unit_test(test_a_small_directory_takes_two_round_trips),
	    cmocka_unit_test(test_names_come_in_the_order_of_asking),
	    cmocka_unit_test(test_a_large_directory_is_asked_for_ahead),
	    cmocka_unit_test(test_a_huge_reply_is_taken_and_bad_names_are_left_out),
	    cmocka_unit_test(test_the_receiver_can_stop_a_listing),
	    cmocka_unit_test(test_a_cancelled_listing_closes_its_handle),
	    cmocka_unit_test(test_errors_of_a_listing_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
