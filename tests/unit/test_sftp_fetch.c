/* Fetching of whole files by an SFTP session, against a peer that the test plays. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "tests/unit/sftp_harness.h"

enum { ROOM = 64 };

/* A session, and a fetch whose first round trip is at the peer. */
struct fetch {
	struct harness h;
	struct op op;
	char data[ROOM];
	uint32_t open_id, stat_id;
};

static void begin(struct fetch *f, uint32_t max_read)
{
	harness_open(&f->h, max_read, 0);
	harness_connect_as(&f->h, 3, NULL, NULL);
	f->op = (struct op){.kind = OP_FETCH, .path = "/f", .data = f->data, .length = ROOM};
	harness_submit(&f->h, &f->op);
	f->open_id = peer_expect(&f->h, WIRE_OPEN);
	f->stat_id = peer_expect(&f->h, WIRE_STAT);
	assert_true(peer_is_quiet(&f->h));
}

static void end(struct fetch *f)
{
	assert_true(peer_is_quiet(&f->h));
	harness_close(&f->h);
}

static void answer_first(struct fetch *f, uint64_t size, uint32_t mode)
{
	peer_handle(&f->h, f->open_id, "h1");
	peer_attrs(&f->h, f->stat_id, size, mode, 99);
}

static void answer_close(struct fetch *f)
{
	peer_status(&f->h, peer_expect(&f->h, WIRE_CLOSE), WIRE_STATUS_OK);
	harness_pump(&f->h);
}

static void test_a_file_takes_two_round_trips(void **state)
{
	(void)state;
	struct fetch f;
	begin(&f, 0);
	peer_handle(&f.h, f.open_id, "h1");
	assert_true(peer_is_quiet(&f.h)); /* the first look comes before the first byte */
	peer_attrs(&f.h, f.stat_id, 4, S_IFREG | 0644, 99);
	uint32_t fstat_id = peer_expect(&f.h, WIRE_FSTAT);
	uint32_t read_id = peer_expect(&f.h, WIRE_READ);
	uint32_t close_id = peer_expect(&f.h, WIRE_CLOSE);
	peer_attrs(&f.h, fstat_id, 4, S_IFREG | 0644, 99);
	peer_data(&f.h, read_id, "abcd", 4);
	assert_int_equal(harness_wait(&f.h, &f.op), 0); /* the CLOSE is nobody's concern */
	assert_int_equal(f.op.count, 4);
	assert_memory_equal(f.data, "abcd", 4);
	assert_int_equal(f.op.attr.size, 4);
	assert_int_equal(f.op.attr.mtime.tv_sec, 99);
	peer_status(&f.h, close_id, WIRE_STATUS_OK);
	end(&f);
}

static void test_replies_may_come_in_any_order(void **state)
{
	(void)state;
	struct fetch f;
	begin(&f, 0);
	peer_attrs(&f.h, f.stat_id, 4, S_IFREG | 0644, 99);
	assert_true(peer_is_quiet(&f.h));
	peer_handle(&f.h, f.open_id, "h1");
	uint32_t fstat_id = peer_expect(&f.h, WIRE_FSTAT);
	uint32_t read_id = peer_expect(&f.h, WIRE_READ);
	answer_close(&f);
	peer_data(&f.h, read_id, "abcd", 4);
	harness_pump(&f.h);
	assert_false(harness_is_done(&f.h, &f.op));
	peer_attrs(&f.h, fstat_id, 4, S_IFREG | 0644, 99);
	assert_int_equal(harness_wait(&f.h, &f.op), 0);
	end(&f);
}

static void test_an_empty_file_is_not_read(void **state)
{
	(void)state;
	struct fetch f;
	begin(&f, 0);
	answer_first(&f, 0, S_IFREG | 0644);
	peer_attrs(&f.h, peer_expect(&f.h, WIRE_FSTAT), 0, S_IFREG | 0644, 99);
	answer_close(&f);
	assert_int_equal(harness_wait(&f.h, &f.op), 0);
	assert_int_equal(f.op.count, 0);
	end(&f);
}

static void test_a_servers_small_reads_are_put_together(void **state)
{
	(void)state;
	struct fetch f;
	begin(&f, 4);
	answer_first(&f, 10, S_IFREG | 0644);
	peer_attrs(&f.h, peer_expect(&f.h, WIRE_FSTAT), 10, S_IFREG | 0644, 99);
	uint32_t ids[3];
	for (int i = 0; i < 3; i++)
		ids[i] = peer_expect(&f.h, WIRE_READ);
	answer_close(&f);
	peer_data(&f.h, ids[1], "4567", 4);
	peer_data(&f.h, ids[0], "0123", 4);
	peer_data(&f.h, ids[2], "89", 2);
	assert_int_equal(harness_wait(&f.h, &f.op), 0);
	assert_memory_equal(f.data, "0123456789", 10);
	end(&f);
}

static void test_what_cannot_be_opened_is_refused(void **state)
{
	(void)state;
	struct fetch f;
	begin(&f, 0);
	peer_status(&f.h, f.open_id, 3);
	peer_attrs(&f.h, f.stat_id, 4, S_IFREG | 0600, 99);
	assert_int_equal(harness_wait(&f.h, &f.op), -EACCES);
	end(&f); /* and there is nothing to close */
}

/* What the first look tells, and what comes of it. The file is closed. */
static void expect_refusal(uint64_t size, uint32_t mode, int err)
{
	struct fetch f;
	begin(&f, 0);
	answer_first(&f, size, mode);
	answer_close(&f);
	assert_int_equal(harness_wait(&f.h, &f.op), err);
	end(&f);
}

static void test_other_files_are_closed_again(void **state)
{
	(void)state;
	expect_refusal(ROOM + 1, S_IFREG | 0644, -EFBIG);
	expect_refusal(4, S_IFDIR | 0755, -EINVAL);
	expect_refusal(4, S_IFIFO | 0755, -EINVAL);

	struct fetch f;
	begin(&f, 0);
	peer_handle(&f.h, f.open_id, "h1");
	peer_status(&f.h, f.stat_id, 2);
	answer_close(&f);
	assert_int_equal(harness_wait(&f.h, &f.op), -ENOENT);
	end(&f);
}

/* What the second look tells, and what is read. */
static int fetch_of_changed(uint64_t size, uint32_t mtime, const char *data)
{
	struct fetch f;
	begin(&f, 0);
	answer_first(&f, 4, S_IFREG | 0644);
	peer_attrs(&f.h, peer_expect(&f.h, WIRE_FSTAT), size, S_IFREG | 0644, mtime);
	uint32_t read_id = peer_expect(&f.h, WIRE_READ);
	answer_close(&f);
	if (*data)
		peer_data(&f.h, read_id, data, strlen(data));
	else
		peer_status(&f.h, read_id, WIRE_STATUS_EOF);
	int err = harness_wait(&f.h, &f.op);
	end(&f);
	return err;
}

static void test_a_file_that_changes_meanwhile_is_not_believed(void **state)
{
	(void)state;
	assert_int_equal(fetch_of_changed(4, 99, "abcd"), 0);
	assert_int_equal(fetch_of_changed(5, 99, "abcd"), -ESTALE);
	assert_int_equal(fetch_of_changed(4, 100, "abcd"), -ESTALE);
	assert_int_equal(fetch_of_changed(4, 99, "ab"), -ESTALE);
	assert_int_equal(fetch_of_changed(4, 99, ""), -ESTALE);
}

static void test_without_fstat_the_first_look_has_to_do(void **state)
{
	(void)state;
	struct fetch f;
	begin(&f, 0);
	answer_first(&f, 4, S_IFREG | 0644);
	peer_status(&f.h, peer_expect(&f.h, WIRE_FSTAT), 8);
	peer_data(&f.h, peer_expect(&f.h, WIRE_READ), "abcd", 4);
	answer_close(&f);
	assert_int_equal(harness_wait(&f.h, &f.op), 0);
	/* It is not tried again. */
	f.h.done_count = 0;
	harness_submit(&f.h, &f.op);
	f.open_id = peer_expect(&f.h, WIRE_OPEN);
	f.stat_id = peer_expect(&f.h, WIRE_STAT);
	answer_first(&f, 4, S_IFREG | 0644);
	peer_data(&f.h, peer_expect(&f.h, WIRE_READ), "abcd", 4);
	answer_close(&f);
	assert_int_equal(harness_wait(&f.h, &f.op), 0);
	end(&f);
}

static void test_a_cancelled_fetch_is_closed(void **state)
{
	(void)state;
	/* before it is open, */
	struct fetch f;
	begin(&f, 0);
	assert_true(f.h.session->ops->cancel(f.h.session, &f.op, -EINTR));
	assert_int_equal(f.op.err, -EINTR);
	memset(&f.op, 0xee, sizeof(f.op)); /* it is gone */
	peer_attrs(&f.h, f.stat_id, 4, S_IFREG | 0644, 99);
	assert_true(peer_is_quiet(&f.h));
	peer_handle(&f.h, f.open_id, "late");
	answer_close(&f);
	end(&f);

	/* when it is open and not looked at, */
	begin(&f, 0);
	peer_handle(&f.h, f.open_id, "h1");
	harness_pump(&f.h);
	assert_true(f.h.session->ops->cancel(f.h.session, &f.op, -EINTR));
	memset(&f.op, 0xee, sizeof(f.op));
	answer_close(&f);
	peer_attrs(&f.h, f.stat_id, 4, S_IFREG | 0644, 99);
	end(&f);

	/* when it is being read, */
	begin(&f, 0);
	answer_first(&f, 4, S_IFREG | 0644);
	uint32_t fstat_id = peer_expect(&f.h, WIRE_FSTAT);
	uint32_t read_id = peer_expect(&f.h, WIRE_READ);
	assert_true(f.h.session->ops->cancel(f.h.session, &f.op, -EINTR));
	memset(&f.op, 0xee, sizeof(f.op));
	memset(f.data, '.', sizeof(f.data));
	answer_close(&f);
	peer_attrs(&f.h, fstat_id, 5, S_IFREG | 0644, 99);
	peer_data(&f.h, read_id, "abcd", 4);
	harness_pump(&f.h);
	assert_memory_equal(f.data, "....", 4);
	end(&f);
}

/* The connection is lost after so many replies. */
static void lose_after(int replies)
{
	struct fetch f;
	begin(&f, 0);
	if (replies > 0)
		peer_handle(&f.h, f.open_id, "h1");
	if (replies > 1)
		peer_attrs(&f.h, f.stat_id, 4, S_IFREG | 0644, 99);
	harness_pump(&f.h);
	f.h.session->ops->disconnect(f.h.session);
	assert_int_equal(f.h.done_count, 1);
	assert_int_equal(f.op.err, -ENOLINK);
	assert_true(f.op.sent);
	harness_close(&f.h);
}

static void test_a_lost_connection_hands_it_back(void **state)
{
	(void)state;
	for (int replies = 0; replies < 3; replies++)
		lose_after(replies);
	const struct op op = {.kind = OP_FETCH};
	assert_true(op_is_idempotent(&op));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_file_takes_two_round_trips),
	    cmocka_unit_test(test_replies_may_come_in_any_order),
	    cmocka_unit_test(test_an_empty_file_is_not_read),
	    cmocka_unit_test(test_a_servers_small_reads_are_put_together),
	    cmocka_unit_test(test_what_cannot_be_opened_is_refused),
	    cmocka_unit_test(test_other_files_are_closed_again),
	    cmocka_unit_test(test_a_file_that_changes_meanwhile_is_not_believed),
	    cmocka_unit_test(test_without_fstat_the_first_look_has_to_do),
	    cmocka_unit_test(test_a_cancelled_fetch_is_closed),
	    cmocka_unit_test(test_a_lost_connection_hands_it_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
