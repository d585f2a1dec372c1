/* The straight-line calls over the fake server: the right errno, found by looking. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fake_remote.h"
#include "remote/remote.h"

static struct fake_remote *fake;
static struct remote *remote;

static int set_up(void **state)
{
	(void)state;
	fake = fake_remote_new();
	remote = fake_remote_remote(fake);
	fake_put_dir(fake, "/d");
	fake_put_dir(fake, "/d/sub");
	fake_put_file(fake, "/d/f", "old", 3, 1000);
	fake_put_file(fake, "/new", "new!", 4, 2000);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fake_remote_free(fake);
	return 0;
}

static void assert_contents(const char *path, const char *wanted)
{
	size_t length;
	char *data = fake_get_file(fake, path, &length);
	assert_non_null(data);
	assert_int_equal(length, strlen(wanted));
	assert_memory_equal(data, wanted, length);
	free(data);
}

static void making_what_exists_is_eexist(void **state)
{
	(void)state;
	assert_int_equal(remote_mkdir(remote, "/d", 0755), -EEXIST);
	assert_int_equal(remote_mkdir(remote, "/d/f", 0755), -EEXIST);
	assert_int_equal(remote_symlink(remote, "x", "/d/f"), -EEXIST);
	assert_int_equal(remote_link(remote, "/new", "/d/f"), -EEXIST);
	assert_int_equal(remote_mkdir(remote, "/none/x", 0755), -ENOENT);
}

/* PAIN: servers that say "permission denied" to mkdir of a directory that exists. */
static void a_refusal_of_an_existing_name_is_eexist_too(void **state)
{
	(void)state;
	fake_fail_next(fake, OP_MKDIR, 0, -EACCES);
	assert_int_equal(remote_mkdir(remote, "/d", 0755), -EEXIST);
	fake_fail_next(fake, OP_MKDIR, 0, -EACCES);
	assert_int_equal(remote_mkdir(remote, "/e", 0755), -EACCES);
}

static void removing_says_why_not(void **state)
{
	(void)state;
	assert_int_equal(remote_rmdir(remote, "/d"), -ENOTEMPTY);
	assert_int_equal(remote_rmdir(remote, "/d/f"), -ENOTDIR);
	assert_int_equal(remote_rmdir(remote, "/none"), -ENOENT);
	assert_int_equal(remote_rmdir(remote, "/d/sub"), 0);
	fake_fail_next(fake, OP_UNLINK, 0, -EREMOTEIO);
	assert_int_equal(remote_unlink(remote, "/d"), -EISDIR);
	assert_int_equal(remote_unlink(remote, "/none"), -ENOENT);
}

static void a_full_server_is_enospc(void **state)
{
	(void)state;
	fake_set_full(fake, true);
	fake_fail_next(fake, OP_MKDIR, 0, -EREMOTEIO);
	assert_int_equal(remote_mkdir(remote, "/e", 0755), -ENOSPC);
	assert_int_equal(remote_explain_write(remote, "/d/f", -EREMOTEIO), -ENOSPC);
	assert_int_equal(remote_explain_write(remote, "/d/gone", -EREMOTEIO), -ENOSPC);
	fake_set_full(fake, false);
	assert_int_equal(remote_explain_write(remote, "/d/f", -EREMOTEIO), -EIO);
}

static void rename_replaces_with_and_without_the_extension(void **state)
{
	(void)state;
	assert_int_equal(remote_rename(remote, "/new", "/d/f", true), 0);
	assert_contents("/d/f", "new!");
	fake_put_file(fake, "/newer", "newer", 5, 3000);
	remote->caps.posix_rename = false;
	assert_int_equal(remote_rename(remote, "/newer", "/d/f", true), 0);
	assert_contents("/d/f", "newer");
	assert_false(fake_exists(fake, "/newer"));
}

/* Without posix-rename the old file must come back when the new one cannot take its place. */
static void a_replacement_that_fails_leaves_the_old_file(void **state)
{
	(void)state;
	remote->caps.posix_rename = false;
	/* The first attempt finds the target, the second moves it aside, the third fails. */
	fake_fail_next(fake, OP_RENAME_NEW, 2, -EACCES);
	assert_int_not_equal(remote_rename(remote, "/new", "/d/f", true), 0);
	assert_contents("/d/f", "old");
	assert_contents("/new", "new!");
}

static void rename_without_replacing_leaves_the_target(void **state)
{
	(void)state;
	assert_int_equal(remote_rename(remote, "/new", "/d/f", false), -EEXIST);
	assert_contents("/d/f", "old");
	assert_int_equal(remote_rename(remote, "/new", "/d/g", false), 0);
	assert_contents("/d/g", "new!");
}

static void a_vague_refusal_of_rename_is_explained(void **state)
{
	(void)state;
	assert_int_equal(remote_rename(remote, "/none", "/x", true), -ENOENT);
	fake_put_dir(fake, "/e");
	fake_fail_next(fake, OP_RENAME, 0, -EREMOTEIO);
	assert_int_equal(remote_rename(remote, "/e", "/d", true), -ENOTEMPTY);
	fake_fail_next(fake, OP_RENAME, 0, -EREMOTEIO);
	assert_int_equal(remote_rename(remote, "/new", "/d", true), -EISDIR);
	fake_fail_next(fake, OP_RENAME, 0, -EREMOTEIO);
	assert_int_equal(remote_rename(remote, "/e", "/new", true), -ENOTDIR);
	fake_fail_next(fake, OP_RENAME, 0, -EREMOTEIO);
	assert_int_equal(remote_rename(remote, "/d", "/d/sub/x", true), -EINVAL);
}

/* The connection was lost while the operation was under way: ask whether it happened. */
static void a_lost_answer_is_settled_by_looking(void **state)
{
	(void)state;
	fake_fail_next(fake, OP_MKDIR, 0, -ENOLINK);
	assert_int_equal(remote_mkdir(remote, "/d", 0755), 0);
	fake_fail_next(fake, OP_UNLINK, 0, -ENOLINK);
	assert_int_equal(remote_unlink(remote, "/gone"), 0);
	fake_fail_next(fake, OP_UNLINK, 0, -ENOLINK);
	assert_int_equal(remote_unlink(remote, "/d/f"), 0);
	assert_false(fake_exists(fake, "/d/f"));
	fake_fail_next(fake, OP_RENAME, 0, -ENOLINK);
	assert_int_equal(remote_rename(remote, "/new", "/d/f", true), 0);
	assert_contents("/d/f", "new!");
	fake_fail_next(fake, OP_RENAME, 0, -ENOLINK);
	assert_int_equal(remote_rename(remote, "/gone", "/d/f", true), 0);
	fake_fail_next(fake, OP_SYMLINK, 0, -ENOLINK);
	fake_put_symlink(fake, "/l", "target");
	assert_int_equal(remote_symlink(remote, "target", "/l"), 0);
	fake_fail_next(fake, OP_RMDIR, 0, -ENOLINK);
	assert_int_equal(remote_rmdir(remote, "/d/sub"), 0);
	assert_false(fake_exists(fake, "/d/sub"));
}

static int open_path(const char *path, unsigned flags)
{
	struct remote_file *file = remote_file_new(remote, path, OPEN_READ | OPEN_WRITE);
	struct remote_attr attr = {.valid = ATTR_MODE, .mode = 0644};
	int err = remote_open(file, flags, &attr);
	remote_file_unref(file);
	return err;
}

static void opening_says_why_not(void **state)
{
	(void)state;
	const unsigned create = OPEN_WRITE | OPEN_CREATE | OPEN_EXCL;
	assert_int_equal(open_path("/none", OPEN_READ), -ENOENT);
	assert_int_equal(open_path("/d/f", create), -EEXIST);
	fake_fail_next(fake, OP_OPEN, 0, -EREMOTEIO);
	assert_int_equal(open_path("/d", OPEN_WRITE), -EISDIR);
	/* An exclusive create whose answer was lost: the empty file is ours. */
	fake_put_file(fake, "/ours", "", 0, 1000);
	fake_fail_next(fake, OP_OPEN, 0, -ENOLINK);
	assert_int_equal(open_path("/ours", create), 0);
	fake_fail_next(fake, OP_OPEN, 0, -ENOLINK);
	assert_int_equal(open_path("/d/f", create), -EEXIST);
}

static void changing_anothers_attributes_is_eperm(void **state)
{
	(void)state;
	struct remote_attr attr = {.valid = ATTR_OWNER, .uid = 1, .gid = 1};
	fake_fail_next(fake, OP_SETATTR, 0, -EACCES);
	assert_int_equal(remote_setattr(remote, "/d/f", &attr, false), -EPERM);
	attr.valid = ATTR_SIZE;
	fake_fail_next(fake, OP_SETATTR, 0, -EACCES);
	assert_int_equal(remote_setattr(remote, "/d/f", &attr, false), -EACCES);
	remote->caps.lsetattr = false;
	assert_int_equal(remote_setattr(remote, "/d/f", &attr, true), -EOPNOTSUPP);
}

static void reading_the_target_of_no_symlink_is_einval(void **state)
{
	(void)state;
	char *target = NULL;
	fake_fail_next(fake, OP_READLINK, 0, -EREMOTEIO);
	assert_int_equal(remote_readlink(remote, "/d/f", &target), -EINVAL);
	free(target);
	fake_put_symlink(fake, "/l", "d/f");
	assert_int_equal(remote_readlink(remote, "/l", &target), 0);
	assert_string_equal(target, "d/f");
	free(target);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(making_what_exists_is_eexist),
	    TEST(a_refusal_of_an_existing_name_is_eexist_too),
	    TEST(removing_says_why_not),
	    TEST(a_full_server_is_enospc),
	    TEST(rename_replaces_with_and_without_the_extension),
	    TEST(a_replacement_that_fails_leaves_the_old_file),
	    TEST(rename_without_replacing_leaves_the_target),
	    TEST(a_vague_refusal_of_rename_is_explained),
	    TEST(a_lost_answer_is_settled_by_looking),
	    TEST(opening_says_why_not),
	    TEST(changing_anothers_attributes_is_eperm),
	    TEST(reading_the_target_of_no_symlink_is_einval),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
