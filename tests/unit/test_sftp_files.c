/* Handles of an SFTP session, against a peer that the test plays. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

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

static void test_a_file_that_cannot_be_opened_again_stays_on_its_lane(void **state)
{
	(void)state;
	struct harness h;
	uint32_t flags;
	open_plain(&h);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_READ | OPEN_WRITE);
	struct op op = {.kind = OP_OPEN,
	                .file = file,
	                .open_flags = OPEN_READ | OPEN_WRITE | OPEN_CREATE | OPEN_EXCL,
	                .attr = {.valid = ATTR_MODE, .mode = 0444}};
	harness_submit(&h, &op);
	peer_handle(&h, take_open(&h, &flags), "h1");
	peer_attrs(&h, peer_expect(&h, WIRE_STAT), 0, S_IFREG | 0444, 5);
	assert_int_equal(harness_wait(&h, &op), 0);
	assert_true(file->one_lane);
	drop_file(&h, file, "h1");

	/* Or when it is made so later. */
	file = remote_file_new(&h.remote, "/f", OPEN_WRITE);
	op.file = file;
	op.open_flags = OPEN_WRITE;
	harness_submit(&h, &op);
	peer_handle(&h, take_open(&h, &flags), "h2");
	peer_attrs(&h, peer_expect(&h, WIRE_STAT), 0, S_IFREG | 0644, 5);
	harness_pump(&h);
	assert_false(file->one_lane);
	struct op chmod_op = {
	    .kind = OP_FSETATTR, .file = file, .attr = {.valid = ATTR_MODE, .mode = 0400}};
	harness_submit(&h, &chmod_op);
	peer_status(&h, peer_expect(&h, WIRE_FSETSTAT), 0);
	assert_int_equal(harness_wait(&h, &chmod_op), 0);
	assert_true(file->one_lane);
	drop_file(&h, file, "h2");
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
	file->version = (struct remote_attr){
	    .valid = ATTR_SIZE | ATTR_TIMES | ATTR_MODE, .size = 10, .mtime = {.tv_sec = 1000}};
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

static void test_the_first_handle_decides_which_file_it_is(void **state)
{
	(void)state;
	struct harness h;
	uint32_t flags;
	open_plain(&h);
	/* never opened: its contents were known otherwise */
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_READ);
	struct op stat = {.kind = OP_FSTAT, .file = file};
	assert_false(remote_file_has_handle(file));
	harness_submit(&h, &stat);
	peer_handle(&h, take_open(&h, &flags), "h1");
	peer_attrs(&h, peer_expect(&h, WIRE_STAT), 10, S_IFREG | 0644, 1000);
	peer_attrs(&h, peer_expect(&h, WIRE_FSTAT), 10, S_IFREG | 0644, 1000);
	assert_int_equal(harness_wait(&h, &stat), 0);
	assert_true(remote_file_has_handle(file));
	h.session->generation++; /* as a new connection has it: now it must be the same */
	h.done_count = 0;
	harness_submit(&h, &stat);
	peer_handle(&h, take_open(&h, &flags), "h2");
	peer_attrs(&h, peer_expect(&h, WIRE_STAT), 11, S_IFREG | 0644, 1000);
	assert_int_equal(harness_wait(&h, &stat), -ESTALE);
	expect_close_of(&h, "h2");
	remote_file_unref(file);
	harness_close(&h);
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

static void test_some_servers_get_a_second_handle_to_read_by(void **state)
{
	(void)state;
	static const char *const pkg_sftp[] = {"hardlink@openssh.com",
	                                       "1",
	                                       "posix-rename@openssh.com",
	                                       "1",
	                                       "statvfs@openssh.com",
	                                       "2",
	                                       NULL};
	struct harness h;
	uint32_t flags;
	char data[4] = "abcd";
	harness_open(&h, 0, 0);
	harness_connect_as(&h, 3, pkg_sftp, NULL);
	struct remote_file *file = remote_file_new(&h.remote, "/f", OPEN_READ | OPEN_WRITE);
	struct op op = {.kind = OP_OPEN, .file = file, .open_flags = OPEN_READ | OPEN_WRITE};
	struct op read = {.kind = OP_READ, .file = file, .data = data, .length = 4};
	struct op write = {.kind = OP_WRITE, .file = file, .data = data, .length = 4};
	harness_submit(&h, &op);
	peer_handle(&h, take_open(&h, &flags), "writer");
	assert_int_equal(flags, 2);
	peer_attrs(&h, peer_expect(&h, WIRE_STAT), 4, S_IFREG | 0644, 99);
	assert_int_equal(harness_wait(&h, &op), 0);
	harness_submit(&h, &read);
	harness_submit(&h, &write);
	uint32_t reader_id = take_open(&h, &flags);
	assert_int_equal(flags, 1);
	uint32_t stat_id = peer_expect(&h, WIRE_STAT);
	peer_status(&h, peer_expect(&h, WIRE_WRITE), 0);
	peer_handle(&h, reader_id, "reader");
	peer_attrs(&h, stat_id, 4, S_IFREG | 0644, 99);
	struct packet packet;
	peer_take(&h, &packet);
	assert_int_equal(packet.type, WIRE_READ);
	assert_int_equal(wire_get_text(&packet.body).length, 6);
	peer_data(&h, packet.id, "wxyz", 4);
	packet_release(&packet);
	assert_int_equal(harness_wait(&h, &read), 0);
	assert_int_equal(harness_wait(&h, &write), 0);

	/* A new size that the server only says to have set. */
	struct op cut = {
	    .kind = OP_FSETATTR, .file = file, .attr = {.valid = ATTR_SIZE, .size = 1}};
	harness_submit(&h, &cut);
	peer_status(&h, peer_expect(&h, WIRE_FSETSTAT), 0);
	peer_attrs(&h, peer_expect(&h, WIRE_FSTAT), 4, S_IFREG | 0644, 99);
	assert_int_equal(harness_wait(&h, &cut), -EOPNOTSUPP);
	/* Opening the file again for writing would empty it. */
	assert_true(file->one_lane);
	h.session->generation++;
	assert_int_equal(harness_run(&h, &write), -ESTALE);
	h.session->generation--;
	remote_file_unref(file);
	expect_close_of(&h, "reader");
	expect_close_of(&h, "writer");

	/* A lane that only ever read closes what it opened, too. */
	file = remote_file_new(&h.remote, "/f", OPEN_READ | OPEN_WRITE);
	h.done_count = 0;
	read.file = file;
	harness_submit(&h, &read);
	peer_handle(&h, take_open(&h, &flags), "reader");
	peer_attrs(&h, peer_expect(&h, WIRE_STAT), 4, S_IFREG | 0644, 99);
	peer_data(&h, peer_expect(&h, WIRE_READ), "wxyz", 4);
	assert_int_equal(harness_wait(&h, &read), 0);
	remote_file_unref(file);
	expect_close_of(&h, "reader");
	assert_true(peer_is_quiet(&h));
	harness_close(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_open_looks_at_the_file_in_the_same_round_trip),
	    cmocka_unit_test(test_open_asks_the_handle_when_the_path_gave_nothing),
	    cmocka_unit_test(test_a_failed_open_fails_what_waits),
	    cmocka_unit_test(test_a_new_file_gets_its_mode_whatever_the_servers_umask),
	    cmocka_unit_test(test_a_file_that_cannot_be_opened_again_stays_on_its_lane),
	    cmocka_unit_test(test_a_file_that_was_there_keeps_its_mode),
	    cmocka_unit_test(test_a_cancelled_open_is_closed_again),
	    cmocka_unit_test(test_a_lane_without_handle_opens_the_same_file),
	    cmocka_unit_test(test_another_file_of_that_name_is_stale),
	    cmocka_unit_test(test_the_first_handle_decides_which_file_it_is),
	    cmocka_unit_test(test_a_file_without_name_is_stale),
	    cmocka_unit_test(test_a_handle_dies_with_its_connection),
	    cmocka_unit_test(test_some_servers_get_a_second_handle_to_read_by),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
