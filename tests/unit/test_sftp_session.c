/* An SFTP session against a peer that the test plays: requests, replies, and what goes wrong.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/unit/sftp_harness.h"

static const struct wire_limits no_limits;

/* A connected session of a server without extensions. */
static void open_plain(struct harness *h)
{
	harness_open(h, 0, 0);
	harness_connect_as(h, 3, NULL, NULL);
}

static void fill(char *data, size_t length)
{
	for (size_t i = 0; i < length; i++)
		data[i] = (char)(i * 31 + i / 251);
}

/* Opens the file with the handle "h". */
static void open_file(struct harness *h, struct remote_file *file, uint64_t size)
{
	struct op op = {.kind = OP_OPEN, .file = file, .open_flags = file->access};
	harness_submit(h, &op);
	uint32_t open_id = peer_expect(h, WIRE_OPEN);
	uint32_t stat_id = peer_expect(h, WIRE_STAT);
	peer_handle(h, open_id, "h");
	peer_attrs(h, stat_id, size, S_IFREG | 0644, 1000);
	assert_int_equal(harness_wait(h, &op), 0);
	file->version = op.attr;
	h->done_count = 0;
}

/* Drops the file; its handle is closed. */
static void drop_file(struct harness *h, struct remote_file *file)
{
	remote_file_unref(file);
	uint32_t id = peer_expect(h, WIRE_CLOSE);
	peer_status(h, id, WIRE_STATUS_OK);
	harness_pump(h);
}

/* ---- the beginning ---- */

static void expect_no_connect(const char *peer_says, size_t length, bool closes,
                              enum failure_kind kind, const char *words)
{
	struct harness h;
	harness_open(&h, 0, 0);
	harness_set_last_words(&h, "sh: sftp-server: not found");
	peer_send_raw(&h, peer_says, length);
	if (closes) {
		close(h.peer);
		h.peer = -1;
	}
	assert_int_equal(harness_connect(&h, 0.7), -1);
	assert_int_equal(h.failure.kind, kind);
	if (!strstr(h.failure.text, words))
		fail_msg("'%s' does not hold '%s'", h.failure.text, words);
	harness_close(&h);
}

static void test_login_text_is_shown_by_name(void **state)
{
	(void)state;
	static const char greeting[] = "\nWelcome to \033[1mhost\033[0m!\nMore of it\n";
	expect_no_connect(greeting, sizeof(greeting) - 1, false, FAILURE_PROTOCOL,
	                  "prints text at login, which breaks SFTP: 'Welcome to \\x1b[1mhost");
	expect_no_connect(greeting, sizeof(greeting) - 1, true, FAILURE_PROTOCOL, "Welcome");
	expect_no_connect("hi", 2, true, FAILURE_PROTOCOL, "'hi'");
	expect_no_connect("This account is", 15, false, FAILURE_PROTOCOL, "This account is");
	expect_no_connect("\x16\x03\x01\x02\x00", 5, false, FAILURE_PROTOCOL,
	                  "does not speak SFTP");
	expect_no_connect("\0\0\0\x05\x65\0\0\0\0", 9, false, FAILURE_PROTOCOL,
	                  "does not speak SFTP");
}

static void test_an_early_end_is_explained_by_the_transport(void **state)
{
	(void)state;
	expect_no_connect("", 0, true, FAILURE_UNREACHABLE,
	                  "explained: sh: sftp-server: not found");
	expect_no_connect("", 0, false, FAILURE_UNREACHABLE, "explained:");
}

static void test_old_and_malformed_versions_are_refused(void **state)
{
	(void)state;
	expect_no_connect("\0\0\0\x05\x02\0\0\0\x02", 9, false, FAILURE_PROTOCOL,
	                  "speaks SFTP version 2");
	expect_no_connect("\0\0\0\x0d\x02\0\0\0\x03\0\0\0\x09"
	                  "ab\0\0",
	                  17, false, FAILURE_PROTOCOL, "malformed");
}

static void *ask_and_answer(void *argument)
{
	struct harness *h = argument;
	usleep(50000);
	harness_set_asked(h, 5);
	usleep(400000);
	peer_send_raw(h, "\0\0\0\x05\x02\0\0\0\x03", 9);
	return NULL;
}

static void test_the_time_a_person_takes_does_not_count(void **state)
{
	(void)state;
	struct harness h;
	pthread_t thread;
	harness_open(&h, 0, 0);
	assert_int_equal(pthread_create(&thread, NULL, ask_and_answer, &h), 0);
	assert_int_equal(harness_connect(&h, 0.2), 0);
	pthread_join(thread, NULL);
	harness_close(&h);
}

static void test_connecting_can_be_cancelled(void **state)
{
	(void)state;
	struct harness h;
	static const _Atomic bool now = true;
	harness_open(&h, 0, 0);
	assert_int_equal(h.session->ops->connect(h.session, UINT64_MAX, &now, &h.failure), -1);
	assert_non_null(strstr(h.failure.text, "cancelled"));
	harness_close(&h);
}

static void expect_limits(uint32_t bound, struct wire_limits limits, uint32_t read,
                          uint32_t write)
{
	static const char *const extensions[] = {"limits@openssh.com", "1", NULL};
	struct harness h;
	harness_open(&h, bound, bound);
	harness_connect_as(&h, 3, extensions, &limits);
	assert_int_equal(h.session->caps.max_read, read);
	assert_int_equal(h.session->caps.max_write, write);
	assert_true(harness_round_trip(&h) > 0);
	harness_close(&h);
}

static void test_limits_are_asked_for_and_kept(void **state)
{
	(void)state;
	expect_limits(0, (struct wire_limits){262144, 261120, 261120, 1019}, 261120, 261120);
	expect_limits(65536, (struct wire_limits){262144, 261120, 40000, 0}, 65536, 40000);
	/* A packet that has no room for its header around such data. */
	expect_limits(0, (struct wire_limits){262144, 262144, 262144, 0}, 261120, 261120);
	expect_limits(0, (struct wire_limits){262144, 0, 0, 0}, 261120, 261120);
	expect_limits(0, no_limits, 32768, 32768);
}

static void test_extensions_become_capabilities(void **state)
{
	(void)state;
	static const char *const extensions[] = {
	    "posix-rename@openssh.com", "1", "statvfs@openssh.com", "1", /* not as we know it */
	    "fsync@openssh.com",        "1", "vendor@example.com",  "x", NULL};
	struct harness h;
	harness_open(&h, 0, 0);
	harness_connect_as(&h, 6, extensions, NULL);
	const struct remote_caps *caps = &h.session->caps;
	assert_true(caps->posix_rename);
	assert_true(caps->fsync);
	assert_true(caps->random_write);
	assert_false(caps->statfs || caps->hardlink || caps->copy || caps->names ||
	             caps->lsetattr);
	assert_int_equal(caps->max_read, 32768);

	struct op op = {.kind = OP_LINK, .path = "a", .path2 = "b"};
	assert_int_equal(harness_run(&h, &op), -EOPNOTSUPP);
	assert_false(op.sent);
	harness_close(&h);
}

/* ---- replies ---- */

static void test_replies_find_their_ops_in_any_order(void **state)
{
	(void)state;
	struct harness h;
	struct op ops[100];
	uint32_t ids[100];
	open_plain(&h);
	for (int round = 0; round < 3; round++) {
		memset(ops, 0, sizeof(ops));
		for (int i = 0; i < 60; i++) {
			ops[i].kind = OP_LSTAT;
			ops[i].path = "/x";
			harness_submit(&h, &ops[i]);
		}
		for (int i = 0; i < 60; i++)
			ids[i] = peer_expect(&h, WIRE_LSTAT);
		for (int i = 60; i-- > 0;)
			peer_attrs(&h, ids[i], (uint64_t)i, S_IFREG | 0600, 7);
		for (int i = 0; i < 60; i++) {
			assert_int_equal(harness_wait(&h, &ops[i]), 0);
			assert_int_equal(ops[i].attr.size, i);
			assert_true(ops[i].sent);
		}
		assert_ptr_equal(h.done[0], &ops[59]);
		h.done_count = 0;
	}
	harness_close(&h);
}

/* Sends the bytes in pieces of odd sizes, with the session reading in between. */
static void trickle(struct harness *h, const struct bytes *all)
{
	static const size_t sizes[] = {1, 3, 4, 5, 13, 100, 4000, 70000};
	size_t step = 0;
	for (size_t at = 0; at < all->length; step++) {
		size_t part = MIN(sizes[step % ARRAY_LEN(sizes)], all->length - at);
		peer_send_raw(h, all->data + at, part);
		harness_pump(h);
		assert_int_equal(h->progress_err, 0);
		at += part;
	}
}

static void test_a_large_read_is_split_and_put_together(void **state)
{
	(void)state;
	enum { SIZE = 300000 };
	struct harness h;
	open_plain(&h);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_READ);
	open_file(&h, file, 1 << 20);
	CLEANUP_FREE char *data = calloc(1, SIZE);
	CLEANUP_FREE char *source = malloc(SIZE);
	assert_true(data && source);
	fill(source, SIZE);

	struct op op = {
	    .kind = OP_READ, .file = file, .offset = 5000, .data = data, .length = SIZE};
	harness_submit(&h, &op);
	struct bytes replies[10] = {BYTES_INIT};
	for (int i = 0; i < 10; i++) {
		struct packet packet;
		peer_take(&h, &packet);
		assert_int_equal(packet.type, WIRE_READ);
		assert_int_equal(wire_get_text(&packet.body).length, 1);
		uint64_t offset = wire_get_u64(&packet.body);
		uint32_t length = wire_get_u32(&packet.body);
		assert_int_equal(offset, 5000 + i * 32768);
		assert_int_equal(length, MIN(32768, SIZE - i * 32768));
		reply_begin(&replies[i], WIRE_DATA, packet.id);
		reply_text(&replies[i], source + i * 32768, length);
		bytes_put_be32(&replies[i], 0, (uint32_t)replies[i].length - 4);
		packet_release(&packet);
	}
	struct bytes all = BYTES_INIT;
	for (int i = 10; i-- > 0;) {
		bytes_add(&all, replies[i].data, replies[i].length);
		bytes_release(&replies[i]);
	}
	trickle(&h, &all);
	bytes_release(&all);
	assert_int_equal(harness_wait(&h, &op), 0);
	assert_int_equal(op.count, SIZE);
	assert_memory_equal(data, source, SIZE);
	drop_file(&h, file);
	harness_close(&h);
}

static void test_a_short_reply_is_completed_unless_the_file_ends(void **state)
{
	(void)state;
	struct harness h;
	char data[100];
	open_plain(&h);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_READ);
	open_file(&h, file, 50);
	struct op op = {.kind = OP_READ, .file = file, .data = data, .length = sizeof(data)};
	harness_submit(&h, &op);
	peer_data(&h, peer_expect(&h, WIRE_READ), "0123456789", 10);
	struct packet packet;
	peer_take(&h, &packet);
	wire_get_text(&packet.body);
	assert_int_equal(wire_get_u64(&packet.body), 10);
	assert_int_equal(wire_get_u32(&packet.body), 90);
	peer_data(&h, packet.id, "abc", 3);
	packet_release(&packet);
	peer_status(&h, peer_expect(&h, WIRE_READ), WIRE_STATUS_EOF);
	assert_int_equal(harness_wait(&h, &op), 0);
	assert_int_equal(op.count, 13);
	assert_memory_equal(data, "0123456789abc", 13);

	/* A reply that ends where the file was seen to end costs no second question. */
	struct op tail = {
	    .kind = OP_READ, .file = file, .offset = 45, .data = data, .length = 64};
	harness_submit(&h, &tail);
	peer_data(&h, peer_expect(&h, WIRE_READ), "fghij", 5);
	assert_int_equal(harness_wait(&h, &tail), 0);
	assert_int_equal(tail.count, 5);

	/* Empty data would be asked for again for ever. */
	struct op empty = {
	    .kind = OP_READ, .file = file, .offset = 99, .data = data, .length = 9};
	harness_submit(&h, &empty);
	peer_data(&h, peer_expect(&h, WIRE_READ), "", 0);
	assert_int_equal(harness_wait(&h, &empty), 0);
	assert_int_equal(empty.count, 0);
	drop_file(&h, file);
	harness_close(&h);
}

static void test_the_earliest_end_of_file_counts(void **state)
{
	(void)state;
	struct harness h;
	open_plain(&h);
	CLEANUP_FREE char *data = malloc(3 * 32768);
	assert_non_null(data);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_READ);
	open_file(&h, file, 40000);
	struct op op = {.kind = OP_READ, .file = file, .data = data, .length = 3 * 32768};
	harness_submit(&h, &op);
	uint32_t ids[3];
	for (int i = 0; i < 3; i++)
		ids[i] = peer_expect(&h, WIRE_READ);
	CLEANUP_FREE char *part = calloc(1, 32768);
	peer_status(&h, ids[2], WIRE_STATUS_EOF);
	peer_data(&h, ids[1], part, 40000 - 32768);
	peer_data(&h, ids[0], part, 32768);
	assert_int_equal(harness_wait(&h, &op), 0);
	assert_int_equal(op.count, 40000);

	struct op bad = {.kind = OP_READ, .file = file, .data = data, .length = 2 * 32768};
	harness_submit(&h, &bad);
	uint32_t first = peer_expect(&h, WIRE_READ);
	peer_status(&h, peer_expect(&h, WIRE_READ), WIRE_STATUS_EOF);
	harness_pump(&h);
	assert_false(harness_is_done(&h, &bad));
	peer_status(&h, first, 3);
	assert_int_equal(harness_wait(&h, &bad), -EACCES);
	drop_file(&h, file);
	harness_close(&h);
}

/* ---- writes ---- */

static void test_a_large_write_arrives_whole_and_tells_its_first_error(void **state)
{
	(void)state;
	enum { SIZE = 200000 };
	struct harness h;
	harness_open(&h, 0, 0);
	harness_small_buffers(&h);
	harness_connect_as(&h, 3, NULL, NULL);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_WRITE);
	open_file(&h, file, 0);
	CLEANUP_FREE char *data = malloc(SIZE);
	CLEANUP_FREE char *got = calloc(1, SIZE);
	assert_true(data && got);
	fill(data, SIZE);
	struct op op = {
	    .kind = OP_WRITE, .file = file, .offset = 7, .data = data, .length = SIZE};
	harness_submit(&h, &op);
	uint32_t ids[16];
	unsigned count = 0;
	for (size_t at = 0; at < SIZE;) {
		struct packet packet;
		peer_take(&h, &packet);
		assert_int_equal(packet.type, WIRE_WRITE);
		wire_get_text(&packet.body);
		assert_int_equal(wire_get_u64(&packet.body), 7 + at);
		struct wire_text part = wire_get_text(&packet.body);
		assert_false(packet.body.failed);
		assert_int_equal(packet.body.left, 0);
		memcpy(got + at, part.data, part.length);
		at += part.length;
		ids[count++] = packet.id;
		packet_release(&packet);
	}
	assert_memory_equal(got, data, SIZE);
	peer_status(&h, ids[1], 14);
	for (unsigned i = 0; i < count; i++)
		if (i != 1)
			peer_status(&h, ids[i], i == 3 ? 3 : 0);
	assert_int_equal(harness_wait(&h, &op), -ENOSPC);
	drop_file(&h, file);
	harness_close(&h);
}

static void test_a_cancelled_write_leaves_the_stream_whole(void **state)
{
	(void)state;
	enum { SIZE = 30000 };
	struct harness h;
	harness_open(&h, 0, 0);
	harness_small_buffers(&h);
	harness_connect_as(&h, 3, NULL, NULL);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_WRITE);
	open_file(&h, file, 0);
	CLEANUP_FREE char *data = malloc(SIZE);
	CLEANUP_FREE char *kept = malloc(SIZE);
	assert_true(data && kept);
	fill(data, SIZE);
	memcpy(kept, data, SIZE);
	struct op half = {.kind = OP_WRITE, .file = file, .data = data, .length = SIZE};
	harness_submit(&h, &half);
	harness_pump(&h); /* as much as fits */
	struct op unsent = {.kind = OP_WRITE, .file = file, .data = data, .length = SIZE};
	harness_submit(&h, &unsent);
	assert_true(h.session->ops->cancel(h.session, &unsent, -EINTR));
	assert_true(h.session->ops->cancel(h.session, &half, -EINTR));
	assert_int_equal(h.done_count, 2);
	assert_true(half.sent);
	assert_false(unsent.sent);
	memset(data, 'X', SIZE);

	struct packet packet;
	peer_take(&h, &packet);
	assert_int_equal(packet.type, WIRE_WRITE);
	wire_get_text(&packet.body);
	wire_get_u64(&packet.body);
	struct wire_text part = wire_get_text(&packet.body);
	assert_int_equal(part.length, SIZE);
	assert_memory_equal(part.data, kept, SIZE);
	assert_true(peer_is_quiet(&h));
	peer_status(&h, packet.id, 0);
	packet_release(&packet);
	harness_pump(&h);
	assert_int_equal(h.progress_err, 0);
	assert_int_equal(h.done_count, 2);
	drop_file(&h, file);
	harness_close(&h);
}

/* ---- cancelled reads ---- */

static void test_a_cancelled_read_does_not_touch_its_buffer(void **state)
{
	(void)state;
	enum { SIZE = 30000 };
	struct harness h;
	open_plain(&h);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_READ);
	open_file(&h, file, SIZE);
	char *data = malloc(SIZE);
	CLEANUP_FREE char *source = malloc(SIZE);
	assert_true(data && source);
	fill(source, SIZE);
	struct op op = {.kind = OP_READ, .file = file, .data = data, .length = SIZE};
	struct op later = {.kind = OP_READ, .file = file, .data = data, .length = SIZE};
	harness_submit(&h, &op);
	harness_submit(&h, &later);
	struct bytes reply;
	reply_begin(&reply, WIRE_DATA, peer_expect(&h, WIRE_READ));
	uint32_t later_id = peer_expect(&h, WIRE_READ);
	reply_text(&reply, source, SIZE);
	bytes_put_be32(&reply, 0, (uint32_t)reply.length - 4);
	peer_send_raw(&h, reply.data, 10000);
	harness_pump(&h);
	assert_memory_equal(data, source, 9000);
	assert_true(h.session->ops->cancel(h.session, &op, -EINTR));
	assert_true(h.session->ops->cancel(h.session, &later, -ETIMEDOUT));
	assert_int_equal(op.err, -EINTR);
	free(data); /* a write into it would be seen by the sanitizers */

	peer_send_raw(&h, reply.data + 10000, reply.length - 10000);
	peer_data(&h, later_id, source, SIZE);
	bytes_release(&reply);
	struct op next = {.kind = OP_LSTAT, .path = "/"};
	harness_submit(&h, &next);
	peer_attrs(&h, peer_expect(&h, WIRE_LSTAT), 0, S_IFDIR | 0755, 1);
	assert_int_equal(harness_wait(&h, &next), 0);
	drop_file(&h, file);
	harness_close(&h);
}

static void test_what_was_not_sent_is_not_sent_after_cancel(void **state)
{
	(void)state;
	struct harness h;
	open_plain(&h);
	struct op op = {.kind = OP_UNLINK, .path = "/precious"};
	harness_submit(&h, &op);
	assert_true(h.session->ops->cancel(h.session, &op, -EINTR));
	assert_int_equal(op.err, -EINTR);
	assert_false(op.sent);
	assert_true(peer_is_quiet(&h));
	harness_close(&h);
}

/* ---- the connection dies ---- */

static void expect_death(const char *what, const void *reply, size_t length, const char *words)
{
	struct harness h;
	char data[100];
	open_plain(&h);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_READ);
	open_file(&h, file, 100);
	struct op stat = {.kind = OP_LSTAT, .path = "/"};
	struct op read = {.kind = OP_READ, .file = file, .data = data, .length = sizeof(data)};
	harness_submit(&h, &stat);
	harness_submit(&h, &read);
	uint32_t ids[2] = {peer_expect(&h, WIRE_LSTAT), peer_expect(&h, WIRE_READ)};
	/* In the vectors, the id is 'S' for the LSTAT's and 'R' for the READ's. */
	char copy[64];
	memcpy(copy, reply, length);
	if (length >= 9 && (copy[8] == 'S' || copy[8] == 'R')) {
		uint32_t id = ids[copy[8] == 'R'];
		for (int i = 0; i < 4; i++)
			copy[5 + i] = (char)(id >> (24 - 8 * i));
	}
	peer_send_raw(&h, copy, length);
	harness_pump(&h);
	if (h.progress_err != -EPROTO || !strstr(h.failure.text, words))
		fail_msg("%s: %d '%s'", what, h.progress_err, h.failure.text);
	h.session->ops->disconnect(h.session);
	assert_int_equal(h.done_count, 2);
	assert_int_equal(stat.err, -ENOLINK);
	assert_int_equal(read.err, -ENOLINK);
	assert_true(stat.sent);
	remote_file_unref(file);
	harness_pump(&h);
	harness_close(&h);
}

#define DEATH(what, reply, words) expect_death(what, reply, sizeof(reply) - 1, words)

static void test_malformed_replies_end_the_session(void **state)
{
	(void)state;
	DEATH("unknown id", "\0\0\0\x09\x65\x77\x77\x77\x77\0\0\0\0", "not sent");
	DEATH("too short", "\0\0\0\x04\x65\0\0\0\0", "4 bytes long");
	DEATH("too long", "\x7f\0\0\0\x65\0\0\0\0", "bytes long");
	DEATH("type", "\0\0\0\x0b\x66\0\0\0S\0\0\0\x02hh", "HANDLE came in reply to LSTAT");
	DEATH("truncated", "\0\0\0\x0a\x69\0\0\0S\0\0\0\x01\0", "cut short");
	DEATH("status", "\0\0\0\x07\x65\0\0\0S\0\0", "cut short");
	DEATH("data for LSTAT", "\0\0\0\x0a\x67\0\0\0S\0\0\0\x01x",
	      "DATA came in reply to LSTAT");
	DEATH("data beyond", "\0\0\0\x6f\x67\0\0\0R\0\0\0\x65xxxxx", "where 100 were asked");
	DEATH("data lengths", "\0\0\0\x0e\x67\0\0\0R\0\0\0\x03xxxxx", "holds 3");
	DEATH("NAME for READ", "\0\0\0\x09\x68\0\0\0R\0\0\0\0", "NAME came in reply to READ");
}

static void test_ok_without_an_answer_is_an_error_of_the_op_alone(void **state)
{
	(void)state;
	static const enum op_kind kinds[] = {OP_LSTAT, OP_READLINK, OP_LIST};
	static const uint8_t requests[] = {WIRE_LSTAT, WIRE_READLINK, WIRE_OPENDIR};
	struct harness h;
	open_plain(&h);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct op op = {.kind = kinds[i], .path = "/"};
		h.done_count = 0;
		harness_submit(&h, &op);
		peer_status(&h, peer_expect(&h, requests[i]), WIRE_STATUS_OK);
		assert_int_equal(harness_wait(&h, &op), -EIO);
	}
	harness_close(&h);
}

static void test_a_lost_connection_hands_all_ops_back(void **state)
{
	(void)state;
	struct harness h;
	open_plain(&h);
	harness_set_last_words(&h, "");
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_READ);
	char data[10];
	struct op ops[] = {
	    {.kind = OP_MKDIR, .path = "/d"},
	    {.kind = OP_OPEN, .file = file, .open_flags = OPEN_READ},
	    {.kind = OP_READ, .file = file, .data = data, .length = sizeof(data)},
	    {.kind = OP_LIST, .path = "/"},
	    {.kind = OP_RMDIR, .path = "/e"},
	};
	for (size_t i = 0; i < 4; i++)
		harness_submit(&h, &ops[i]);
	harness_pump(&h);
	harness_submit(&h, &ops[4]);
	close(h.peer);
	h.peer = -1;
	harness_pump(&h);
	assert_int_not_equal(h.progress_err, 0);
	assert_int_equal(h.failure.kind, FAILURE_UNREACHABLE);
	h.session->ops->disconnect(h.session);
	h.session->ops->disconnect(h.session);
	assert_int_equal(h.done_count, 5);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(ops[i].err, -ENOLINK);
	assert_true(ops[0].sent && ops[1].sent && ops[3].sent);
	assert_false(ops[2].sent); /* it waited for the handle */
	remote_file_unref(file);
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_login_text_is_shown_by_name),
	    cmocka_unit_test(test_an_early_end_is_explained_by_the_transport),
	    cmocka_unit_test(test_old_and_malformed_versions_are_refused),
	    cmocka_unit_test(test_the_time_a_person_takes_does_not_count),
	    cmocka_unit_test(test_connecting_can_be_cancelled),
	    cmocka_unit_test(test_limits_are_asked_for_and_kept),
	    cmocka_unit_test(test_extensions_become_capabilities),
	    cmocka_unit_test(test_replies_find_their_ops_in_any_order),
	    cmocka_unit_test(test_a_large_read_is_split_and_put_together),
	    cmocka_unit_test(test_a_short_reply_is_completed_unless_the_file_ends),
	    cmocka_unit_test(test_the_earliest_end_of_file_counts),
	    cmocka_unit_test(test_a_large_write_arrives_whole_and_tells_its_first_error),
	    cmocka_unit_test(test_a_cancelled_write_leaves_the_stream_whole),
	    cmocka_unit_test(test_a_cancelled_read_does_not_touch_its_buffer),
	    cmocka_unit_test(test_what_was_not_sent_is_not_sent_after_cancel),
	    cmocka_unit_test(test_malformed_replies_end_the_session),
	    cmocka_unit_test(test_ok_without_an_answer_is_an_error_of_the_op_alone),
	    cmocka_unit_test(test_a_lost_connection_hands_all_ops_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
