/* What is mounted where, and who may share a mount. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fuse/mountinfo.h"
#include "fuse/mountpoint.h"

static struct mountinfo parsed;
static char line[512];

static bool parse(const char *text)
{
	memset(&parsed, 0, sizeof(parsed));
	snprintf(line, sizeof(line), "%s", text);
	return mountinfo_parse(line, &parsed);
}

static void a_fuse_mount_gives_its_point_type_and_source(void **state)
{
	(void)state;
	assert_true(
	    parse("91 28 0:48 / /mnt/x rw,nosuid,nodev,relatime shared:49 - fuse.moorfs "
	          "me@host:/srv rw,user_id=0,group_id=0\n"));
	assert_string_equal(parsed.mount_point, "/mnt/x");
	assert_string_equal(parsed.fstype, "fuse.moorfs");
	assert_string_equal(parsed.source, "me@host:/srv");
}

static void any_number_of_optional_fields_is_skipped(void **state)
{
	(void)state;
	assert_true(parse("1 2 8:1 / / rw - ext4 /dev/sda1 rw\n"));
	assert_string_equal(parsed.fstype, "ext4");
	assert_true(
	    parse("1 2 8:1 / / rw shared:1 master:2 propagate_from:3 - ext4 /dev/sda1 rw"));
	assert_string_equal(parsed.source, "/dev/sda1");
}

static void octal_escapes_are_undone(void **state)
{
	(void)state;
	assert_true(parse("91 28 0:48 / /mnt/a\\040b\\011c\\012d\\134e rw - fuse.moorfs "
	                  "h:/x\\040y\\043z rw\n"));
	assert_string_equal(parsed.mount_point, "/mnt/a b\tc\nd\\e");
	assert_string_equal(parsed.source, "h:/x y#z");
}

static void an_incomplete_escape_stays_as_it_is(void **state)
{
	(void)state;
	assert_true(parse("91 28 0:48 / /mnt/\\04 rw - fuse.moorfs h:\\9 rw\n"));
	assert_string_equal(parsed.mount_point, "/mnt/\\04");
	assert_string_equal(parsed.source, "h:\\9");
}

static void a_hyphen_before_the_optional_fields_is_no_separator(void **state)
{
	(void)state;
	assert_true(parse("91 28 0:48 - - rw - fuse.moorfs - rw\n"));
	assert_string_equal(parsed.mount_point, "-");
	assert_string_equal(parsed.source, "-");
}

static void other_lines_are_refused(void **state)
{
	(void)state;
	static const char *const lines[] = {"",
	                                    "\n",
	                                    "91 28 0:48 / /mnt rw",
	                                    "91 28 0:48 / /mnt rw shared:1",
	                                    "91 28 0:48 / /mnt rw -",
	                                    "91 28 0:48 / /mnt rw - fuse.moorfs"};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		assert_false(parse(lines[i]));
}

static void the_root_is_found_and_a_plain_path_is_not(void **state)
{
	(void)state;
	struct mountinfo found;
	assert_true(mountinfo_find("/", &found));
	assert_string_equal(found.mount_point, "/");
	mountinfo_release(&found);
	assert_false(mountinfo_find("/no such mount point", &found));
}

static void user_allow_other_counts_on_a_line_of_its_own(void **state)
{
	(void)state;
	assert_true(mountpoint_conf_allows_other("user_allow_other"));
	assert_true(
	    mountpoint_conf_allows_other("# text\n\n  user_allow_other  \nmount_max=5\n"));
	assert_true(mountpoint_conf_allows_other("user_allow_other # yes\n"));
	assert_false(mountpoint_conf_allows_other("#user_allow_other\n"));
	assert_false(mountpoint_conf_allows_other("user_allow_others\n"));
	assert_false(mountpoint_conf_allows_other("no user_allow_other\n"));
	assert_false(mountpoint_conf_allows_other(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_fuse_mount_gives_its_point_type_and_source),
	    cmocka_unit_test(any_number_of_optional_fields_is_skipped),
	    cmocka_unit_test(octal_escapes_are_undone),
	    cmocka_unit_test(an_incomplete_escape_stays_as_it_is),
	    cmocka_unit_test(a_hyphen_before_the_optional_fields_is_no_separator),
	    cmocka_unit_test(other_lines_are_refused),
	    cmocka_unit_test(the_root_is_found_and_a_plain_path_is_not),
	    cmocka_unit_test(user_allow_other_counts_on_a_line_of_its_own),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
