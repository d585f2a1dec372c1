/* The SFTP codec against packets made by hand from the draft. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "sftp/outq.h"
#include "sftp/wire.h"

#define ASSERT_BYTES(bytes, literal)                                              \
	do {                                                                      \
		assert_int_equal((bytes)->length, sizeof(literal) - 1);           \
		assert_memory_equal((bytes)->data, literal, sizeof(literal) - 1); \
		bytes_clear(bytes);                                               \
	} while (0)

#define IN(literal) wire_in(literal, sizeof(literal) - 1)

static struct wire_text text(const char *string)
{
	return (struct wire_text){string, strlen(string)};
}

static void test_requests_are_encoded_as_the_draft_says(void **state)
{
	(void)state;
	struct bytes out = BYTES_INIT;
	struct remote_attr none = {0};
	struct remote_attr all = {
	    .valid = ATTR_SIZE | ATTR_OWNER | ATTR_MODE | ATTR_TIMES | ATTR_NLINK,
	    .size = 0x0102030405060708,
	    .uid = 1,
	    .gid = 2,
	    .mode = S_IFREG | 04755,
	    .atime = {.tv_sec = 16, .tv_nsec = 999999999},
	    .mtime = {.tv_sec = 17},
	};

	wire_init(&out);
	ASSERT_BYTES(&out, "\0\0\0\x05\x01\0\0\0\x03");
	wire_path(&out, WIRE_LSTAT, 0x01020304, "/a");
	ASSERT_BYTES(&out, "\0\0\0\x0b\x07\x01\x02\x03\x04\0\0\0\x02/a");
	wire_two_paths(&out, WIRE_RENAME, 1, "/a", "/bc");
	ASSERT_BYTES(&out, "\0\0\0\x12\x12\0\0\0\x01\0\0\0\x02/a\0\0\0\x03/bc");
	wire_path_attr(&out, WIRE_MKDIR, 1, "d", &none);
	ASSERT_BYTES(&out, "\0\0\0\x0e\x0e\0\0\0\x01\0\0\0\x01"
	                   "d\0\0\0\0");
	wire_path_attr(&out, WIRE_SETSTAT, 1, "d", &all);
	ASSERT_BYTES(&out, "\0\0\0\x2a\x09\0\0\0\x01\0\0\0\x01"
	                   "d\0\0\0\x0f"
	                   "\x01\x02\x03\x04\x05\x06\x07\x08"
	                   "\0\0\0\x01\0\0\0\x02"
	                   "\0\0\x09\xed"
	                   "\0\0\0\x10\0\0\0\x11");
	wire_handle(&out, WIRE_CLOSE, 2, "h\0i", 3);
	ASSERT_BYTES(&out, "\0\0\0\x0c\x04\0\0\0\x02\0\0\0\x03h\0i");
	wire_handle_attr(&out, WIRE_FSETSTAT, 2, "h", 1, &none);
	ASSERT_BYTES(&out, "\0\0\0\x0e\x0a\0\0\0\x02\0\0\0\x01h\0\0\0\0");
	wire_open(&out, 3, "f", OPEN_READ | OPEN_WRITE | OPEN_CREATE | OPEN_TRUNC | OPEN_EXCL,
	          &all);
	ASSERT_BYTES(&out, "\0\0\0\x16\x03\0\0\0\x03\0\0\0\x01"
	                   "f\0\0\0\x3b"
	                   "\0\0\0\x04\0\0\x09\xed");
	wire_open(&out, 3, "f", OPEN_READ, &none);
	ASSERT_BYTES(&out, "\0\0\0\x12\x03\0\0\0\x03\0\0\0\x01"
	                   "f\0\0\0\x01\0\0\0\0");
	wire_read(&out, 4, "h", 1, 0x0102030405060708, 0x8000);
	ASSERT_BYTES(&out, "\0\0\0\x16\x05\0\0\0\x04\0\0\0\x01h"
	                   "\x01\x02\x03\x04\x05\x06\x07\x08\0\0\x80\0");
	/* The data follows the header, and the packet's length counts it. */
	wire_write(&out, 4, "h", 1, 0, 3);
	ASSERT_BYTES(&out, "\0\0\0\x19\x06\0\0\0\x04\0\0\0\x01h\0\0\0\0\0\0\0\0\0\0\0\x03");
	bytes_release(&out);
}

static void test_extensions_are_encoded_as_openssh_says(void **state)
{
	(void)state;
	struct bytes out = BYTES_INIT;
	static const uint32_t ids[] = {5, 0x01020304};
	wire_ext(&out, 1, "limits@openssh.com");
	ASSERT_BYTES(&out, "\0\0\0\x1b\xc8\0\0\0\x01\0\0\0\x12limits@openssh.com");
	wire_ext_path(&out, 1, "statvfs@openssh.com", "/");
	ASSERT_BYTES(&out, "\0\0\0\x21\xc8\0\0\0\x01\0\0\0\x13statvfs@openssh.com\0\0\0\x01/");
	wire_ext_two_paths(&out, 1, "hardlink@openssh.com", "a", "b");
	ASSERT_BYTES(&out, "\0\0\0\x27\xc8\0\0\0\x01\0\0\0\x14hardlink@openssh.com"
	                   "\0\0\0\x01"
	                   "a\0\0\0\x01"
	                   "b");
	wire_ext_handle(&out, 1, "fsync@openssh.com", "h", 1);
	ASSERT_BYTES(&out, "\0\0\0\x1f\xc8\0\0\0\x01\0\0\0\x11"
	                   "fsync@openssh.com\0\0\0\x01h");
	wire_copy_data(&out, 1, "a", 1, 2, 3, "b", 1, 4);
	ASSERT_BYTES(&out, "\0\0\0\x34\xc8\0\0\0\x01\0\0\0\x09"
	                   "copy-data\0\0\0\x01"
	                   "a\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\0\0\0\x01"
	                   "b\0\0\0\0\0\0\0\x04");
	wire_users_groups(&out, 1, ids, 2, false);
	ASSERT_BYTES(&out, "\0\0\0\x37\xc8\0\0\0\x01\0\0\0\x1eusers-groups-by-id@openssh.com"
	                   "\0\0\0\x08\0\0\0\x05\x01\x02\x03\x04\0\0\0\0");
	bytes_release(&out);
}

static void test_times_beyond_32_bits_are_clamped(void **state)
{
	(void)state;
	struct bytes out = BYTES_INIT;
	struct remote_attr attr = {.valid = ATTR_TIMES,
	                           .atime = {.tv_sec = -5},
	                           .mtime = {.tv_sec = INT64_C(0x100000001)}};
	wire_handle_attr(&out, WIRE_FSETSTAT, 0, "h", 1, &attr);
	ASSERT_BYTES(&out,
	             "\0\0\0\x16\x0a\0\0\0\0\0\0\0\x01h\0\0\0\x08\0\0\0\0\xff\xff\xff\xff");
	bytes_release(&out);
}

static void test_attributes_are_decoded_with_extended_pairs(void **state)
{
	(void)state;
	struct remote_attr attr;
	struct wire_in in = IN("\x80\0\0\x0f"
	                       "\0\0\0\0\0\0\0\x09"
	                       "\0\0\0\x01\0\0\0\x02"
	                       "\0\0\x81\xa4"
	                       "\0\0\0\x10\xff\xff\xff\xff"
	                       "\0\0\0\x02\0\0\0\x01x\0\0\0\x01y\0\0\0\0\0\0\0\0"
	                       "Z");
	wire_get_attr(&in, &attr);
	assert_false(in.failed);
	assert_int_equal(in.left, 1);
	assert_int_equal(attr.valid, ATTR_SIZE | ATTR_OWNER | ATTR_MODE | ATTR_TIMES);
	assert_int_equal(attr.size, 9);
	assert_int_equal(attr.uid, 1);
	assert_int_equal(attr.gid, 2);
	assert_int_equal(attr.mode, S_IFREG | 0644);
	assert_int_equal(attr.atime.tv_sec, 16);
	assert_int_equal(attr.mtime.tv_sec, UINT32_MAX);

	in = IN("\x80\0\0\0\xff\xff\xff\xff\0\0\0\x01");
	wire_get_attr(&in, &attr);
	assert_true(in.failed);
	assert_int_equal(attr.valid, 0);
}

static void test_every_truncation_of_a_name_is_noticed(void **state)
{
	(void)state;
	static const char whole[] = "\0\0\0\x01"
	                            "f\0\0\0\x02ll\0\0\0\x05\0\0\0\0\0\0\0\x09\0\0\x81\xa4";
	size_t size = sizeof(whole) - 1;
	for (size_t length = 0; length <= size; length++) {
		CLEANUP_FREE char *copy = malloc(length + 1);
		assert_non_null(copy);
		memcpy(copy, whole, length);
		struct wire_in in = wire_in(copy, length);
		struct wire_name name;
		wire_get_name(&in, &name);
		assert_int_equal(in.failed, length < size);
	}
}

static void test_status_needs_no_message(void **state)
{
	(void)state;
	struct wire_text message;
	struct wire_in in = IN("\0\0\0\x04");
	assert_int_equal(wire_get_status(&in, &message), 4);
	assert_false(in.failed);
	assert_int_equal(message.length, 0);

	in = IN("\0\0\0\x02\0\0\0\x03yes\0\0\0\0");
	assert_int_equal(wire_get_status(&in, &message), 2);
	assert_false(in.failed);
	assert_memory_equal(message.data, "yes", 3);

	in = IN("\0\0\0\x02\0\0\0\x30yes");
	wire_get_status(&in, &message);
	assert_true(in.failed);
}

static void test_handles_are_1_to_256_bytes(void **state)
{
	(void)state;
	char raw[4 + 300] = {0};
	static const struct {
		size_t length;
		bool good;
	} cases[] = {{0, false}, {1, true}, {256, true}, {257, false}};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		raw[2] = (char)(cases[i].length >> 8);
		raw[3] = (char)cases[i].length;
		struct wire_in in = wire_in(raw, sizeof(raw));
		wire_get_handle(&in);
		assert_int_equal(!in.failed, cases[i].good);
	}
}

static void test_status_codes_become_errnos(void **state)
{
	(void)state;
	static const struct {
		uint32_t code;
		const char *message;
		int err;
	} cases[] = {
	    {0, "Success", 0},
	    {2, "No such file", -ENOENT},
	    {3, "Permission denied", -EACCES},
	    {4, "Failure", -EREMOTEIO},
	    {5, "Bad message", -EINVAL},
	    {8, "", -EOPNOTSUPP},
	    {11, "", -EEXIST},
	    {14, "", -ENOSPC},
	    {15, "", -EDQUOT},
	    {18, "", -ENOTEMPTY},
	    {19, "", -ENOTDIR},
	    {21, "", -ELOOP},
	    {4, "File exists", -EEXIST},
	    {4, "mkdir /x: file exists", -EEXIST},
	    {4, "Directory not empty.", -ENOTEMPTY},
	    {4, "No space left on device", -ENOSPC},
	    {4, "Invalid cross-device link", -EXDEV},
	    {999, "", -EREMOTEIO},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		assert_int_equal(wire_status_error(cases[i].code, text(cases[i].message)),
		                 cases[i].err);
}

static void test_the_long_name_tells_links_and_type(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		uint32_t nlink, type;
	} cases[] = {
	    {"-rw-r--r--    1 user     group          12 Jan  1 00:00 f", 1, S_IFREG},
	    {"drwxr-xr-x+  17 user     group        4096 Jan  1 00:00 d", 17, S_IFDIR},
	    {"lrwxrwxrwx    1 0        0               3 Jan  1  1970 l -> f", 1, S_IFLNK},
	    {"-rwsr-sr-t. 2 a b 0 Jan 1 00:00 s", 2, S_IFREG},
	    {"-rw-r--r--    ? 0        0              12 Jan  1 00:00 f", 0, S_IFREG},
	    {"-rw-r--r--    0 0        0              12 Jan  1 00:00 f", 0, S_IFREG},
	    {"-rw-r--r-- 99999999999 0 0 12 Jan 1 00:00 f", 0, S_IFREG},
	    {"-rw-r--r--  12", 0, S_IFREG},
	    {"drwxr-xr-x1 u", 0, S_IFDIR},
	    {"README.txt is the name", 0, 0},
	    {"Dec 12 2020 f", 0, 0},
	    {"-rw-r--r--", 0, 0},
	    {"", 0, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct remote_attr attr = {.valid = ATTR_MODE, .mode = 0600};
		wire_longname(text(cases[i].line), &attr);
		assert_int_equal(attr.mode, cases[i].type | 0600);
		assert_int_equal(!!(attr.valid & ATTR_NLINK), cases[i].nlink != 0);
		assert_int_equal(attr.nlink, cases[i].nlink);
	}
	struct remote_attr known = {.valid = ATTR_MODE, .mode = S_IFLNK | 0777};
	wire_longname(text("-rw-r--r--    1 user     group          12 Jan  1 00:00 f"),
	              &known);
	assert_int_equal(known.mode, S_IFLNK | 0777);
}

static void test_names_of_ids_are_separated_and_checked(void **state)
{
	(void)state;
	struct bytes out = BYTES_INIT;
	struct wire_in in = IN("\0\0\0\x0c\0\0\0\x04root\0\0\0\0\0\0\0\0");
	wire_get_users_groups(&in, false, 3, &out);
	assert_false(in.failed);
	ASSERT_BYTES(&out, "root\0\0\0");

	in = IN("\0\0\0\0\0\0\0\x0d\0\0\0\x09whe\0el\0\0\0");
	wire_get_users_groups(&in, true, 1, &out);
	assert_false(in.failed);
	ASSERT_BYTES(&out, "\0");

	in = IN("\0\0\0\x05\0\0\0\x04r\0\0\0\0");
	wire_get_users_groups(&in, false, 1, &out);
	assert_true(in.failed);
	bytes_release(&out);
}

/* ---- outq ---- */

struct seen {
	uint32_t ids[16];
	unsigned count;
};

static void on_tried(void *context, uint32_t id)
{
	struct seen *seen = context;
	if (seen->count < ARRAY_LEN(seen->ids))
		seen->ids[seen->count++] = id;
}

static void add(struct outq *queue, uint32_t id, const char *header, const char *data)
{
	size_t mark = queue->headers.length;
	bytes_add_str(&queue->headers, header);
	assert_int_equal(outq_add(queue, mark, id, data, data ? strlen(data) : 0), 0);
}

/* What would be sent next, as one string. */
static void assert_next(struct outq *queue, struct seen *seen, int iovecs, const char *wanted)
{
	struct iovec iov[8];
	struct bytes got = BYTES_INIT;
	assert_int_equal(outq_gather(queue, iov, 8, on_tried, seen), iovecs);
	for (int i = 0; i < iovecs; i++)
		bytes_add(&got, iov[i].iov_base, iov[i].iov_len);
	bytes_add(&got, "", 0);
	assert_string_equal(got.data, wanted);
	bytes_release(&got);
}

static void test_queue_joins_headers_and_borrows_data(void **state)
{
	(void)state;
	struct outq queue;
	struct seen seen = {0};
	outq_init(&queue);
	add(&queue, 1, "aaa", NULL);
	add(&queue, 2, "bb", NULL);
	add(&queue, 3, "ccc", "DATA");
	add(&queue, 4, "d", NULL);
	assert_next(&queue, &seen, 3, "aaabbcccDATAd");
	assert_int_equal(seen.count, 5); /* both segments of request 3 */
	assert_int_equal(seen.ids[4], 4);
	outq_consume(&queue, 4);
	assert_next(&queue, &seen, 3, "bcccDATAd");
	outq_consume(&queue, 6);
	assert_next(&queue, &seen, 2, "TAd");
	assert_int_equal(seen.count, 5);
	outq_consume(&queue, 3);
	assert_true(outq_empty(&queue));
	assert_int_equal(queue.queued_bytes, 0);
	outq_release(&queue);
}

static void test_queue_drops_what_was_not_tried_and_copies_the_rest(void **state)
{
	(void)state;
	struct outq queue;
	struct seen seen = {0};
	char data[] = "DATA";
	outq_init(&queue);
	add(&queue, 1, "aaa", data);
	add(&queue, 2, "bb", NULL);
	assert_int_equal(outq_abandon(&queue, 2), 1);
	assert_next(&queue, &seen, 2, "aaaDATA");
	add(&queue, 3, "ccc", data);
	outq_consume(&queue, 5);
	assert_int_equal(outq_abandon(&queue, 3), 1);
	assert_int_equal(outq_abandon(&queue, 1), 0);
	memset(data, 'x', 4);
	assert_next(&queue, &seen, 1, "TA");
	outq_consume(&queue, 2);
	assert_int_equal(outq_abandon(&queue, 1), 1);
	assert_true(outq_empty(&queue));
	outq_release(&queue);
}

static void test_queue_keeps_its_memory_small(void **state)
{
	(void)state;
	struct outq queue;
	struct seen seen = {0};
	struct iovec iov[4];
	outq_init(&queue);
	for (uint32_t i = 0; i < 100000; i++) {
		add(&queue, i, "0123456789abcdef", NULL);
		if (i < 100)
			continue; /* never empty */
		outq_gather(&queue, iov, 4, on_tried, &seen);
		assert_memory_equal(iov[0].iov_base, "0123456789abcdef", 16);
		outq_consume(&queue, 16);
	}
	assert_true(queue.headers.capacity < 512 * 1024);
	assert_true(queue.capacity < 4096);
	outq_release(&queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_requests_are_encoded_as_the_draft_says),
	    cmocka_unit_test(test_extensions_are_encoded_as_openssh_says),
	    cmocka_unit_test(test_times_beyond_32_bits_are_clamped),
	    cmocka_unit_test(test_attributes_are_decoded_with_extended_pairs),
	    cmocka_unit_test(test_every_truncation_of_a_name_is_noticed),
	    cmocka_unit_test(test_status_needs_no_message),
	    cmocka_unit_test(test_handles_are_1_to_256_bytes),
	    cmocka_unit_test(test_status_codes_become_errnos),
	    cmocka_unit_test(test_the_long_name_tells_links_and_type),
	    cmocka_unit_test(test_names_of_ids_are_separated_and_checked),
	    cmocka_unit_test(test_queue_joins_headers_and_borrows_data),
	    cmocka_unit_test(test_queue_drops_what_was_not_tried_and_copies_the_rest),
	    cmocka_unit_test(test_queue_keeps_its_memory_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
