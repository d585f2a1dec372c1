/* writeback=async: files are created, written and closed without waiting; what is seen of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "io/internal.h"
#include "vfs_harness.h"

enum { TIMES = VFS_SET_ATIME | VFS_SET_MTIME, OLD_TIME = 978307200 };

static const struct stat wanted = {
    .st_mode = 0640, .st_atim = {.tv_sec = OLD_TIME + 1}, .st_mtim = {.tv_sec = OLD_TIME}};

static int async_setup(void **state)
{
	if (harness_setup(state) != 0)
		return -1;
	struct harness *h = *state;
	h->io->config.writeback = IO_WRITEBACK_ASYNC;
	h->remote->caps.ordered = true;
	struct vfs_config config = harness_config();
	config.async = true;
	harness_configure(h, &config);
	stat_of(h, h->root); /* the group of new files depends on it */
	return 0;
}

static int try_create(struct harness *h, struct node *dir, const char *name, struct node **node,
                      struct vfs_file **file)
{
	struct vfs_entry entry;
	struct vfs_open_info info;
	int err = vfs_create(h->vfs, dir, name, 0644, O_RDWR | O_CREAT | O_EXCL, &entry, &info);
	*node = entry.node;
	*file = info.file;
	return err;
}

static struct vfs_file *create(struct harness *h, struct node *dir, const char *name,
                               struct node **node)
{
	struct vfs_file *file;
	assert_int_equal(try_create(h, dir, name, node, &file), 0);
	return file;
}

/* Closes as the kernel does; the result of the flush. */
static int shut(struct harness *h, struct vfs_file *file)
{
	int err = vfs_flush(h->vfs, file);
	close_file(h, file);
	return err;
}

static struct remote_attr server_attr(struct harness *h, const char *path)
{
	struct remote_attr attr;
	assert_int_equal(remote_lstat(h->remote, path, &attr), 0);
	return attr;
}

static void a_file_in_a_new_directory_is_not_waited_for(void **state)
{
	struct harness *h = *state;
	struct node *dir = make_dir(h, h->root, "d"), *f;
	fake_hold(h->fake, OP_OPEN, true);
	struct vfs_file *file = create(h, dir, "f", &f);
	assert_int_equal(write_text(h, file, 0, "hello", 0), 0);
	assert_int_equal(vfs_flush(h->vfs, file), 0);
	assert_false(fake_exists(h->fake, ROOT "/d/f"));
	fake_hold(h->fake, OP_OPEN, false);
	assert_int_equal(vfs_fsync(h->vfs, file), 0);
	assert_server_has(h, ROOT "/d/f", "hello");
	assert_int_equal(shut(h, file), 0);
	forget(h, f);
	forget(h, dir);
}

static void nothing_goes_ahead_where_the_name_may_be_taken(void **state)
{
	struct harness *h = *state;
	struct node *f, *dir = make_dir(h, h->root, "d");
	struct vfs_file *file;
	/* the root was never listed */
	fake_put_file(h->fake, ROOT "/f", "x", 1, 1000);
	assert_int_equal(try_create(h, h->root, "f", &f, &file), -EEXIST);
	forget(h, dir);
}

static void what_was_set_is_shown_and_arrives(void **state)
{
	struct harness *h = *state;
	struct node *f, *dir = make_dir(h, h->root, "d");
	struct stat st;
	uint64_t valid_ns;
	fake_hold(h->fake, OP_OPEN, true);
	struct vfs_file *file = create(h, dir, "f", &f);
	assert_int_equal(write_text(h, file, 0, "hello", 0), 0);
	assert_int_equal(
	    vfs_setattr(h->vfs, f, NULL, TIMES | VFS_SET_MODE, &wanted, &st, &valid_ns), 0);
	assert_int_equal(shut(h, file), 0);
	st = stat_of(h, f);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(st.st_mtim.tv_sec, OLD_TIME);
	assert_int_equal(st.st_mode & 07777, 0640);
	struct node *again = look(h, dir, "f");
	assert_ptr_equal(again, f);
	fake_hold(h->fake, OP_OPEN, false);
	assert_int_equal(files_drain(h->vfs, f), 0);
	assert_server_has(h, ROOT "/d/f", "hello");
	assert_int_equal(server_attr(h, ROOT "/d/f").mtime.tv_sec, OLD_TIME);
	assert_int_equal(server_attr(h, ROOT "/d/f").mode & 07777, 0640);
	vfs_forget(h->vfs, f, 2);
	forget(h, dir);
}

static void a_reader_gets_what_was_written(void **state)
{
	struct harness *h = *state;
	struct node *f, *dir = make_dir(h, h->root, "d");
	fake_set_delay(h->fake, OP_OPEN, 30 * NS_PER_MS);
	struct vfs_file *file = create(h, dir, "f", &f);
	assert_int_equal(write_text(h, file, 0, "hello", 0), 0);
	assert_reads(h, file, "hello");
	assert_int_equal(shut(h, file), 0);
	file = open_file(h, f, O_RDONLY);
	assert_reads(h, file, "hello");
	close_file(h, file);
	forget(h, f);
	forget(h, dir);
}

static void names_are_moved_and_removed_after_they_were_made(void **state)
{
	struct harness *h = *state;
	struct node *f, *g, *dir = make_dir(h, h->root, "d");
	fake_set_delay(h->fake, OP_OPEN, 30 * NS_PER_MS);
	assert_int_equal(shut(h, create(h, dir, "f", &f)), 0);
	assert_int_equal(vfs_rename(h->vfs, dir, "f", dir, "renamed", 0), 0);
	assert_true(fake_exists(h->fake, ROOT "/d/renamed"));
	assert_int_equal(shut(h, create(h, dir, "g", &g)), 0);
	assert_int_equal(vfs_rename(h->vfs, h->root, "d", h->root, "e", 0), 0);
	assert_true(fake_exists(h->fake, ROOT "/e/g"));
	assert_int_equal(vfs_unlink(h->vfs, dir, "g"), 0);
	assert_false(fake_exists(h->fake, ROOT "/e/g"));
	forget(h, f);
	assert_int_equal(shut(h, create(h, dir, "f", &f)), 0);
	assert_int_equal(vfs_rmdir(h->vfs, h->root, "e"), -ENOTEMPTY);
	forget(h, f);
	forget(h, g);
	forget(h, dir);
}

static void a_refused_creation_is_told_by_the_next_fsync(void **state)
{
	struct harness *h = *state;
	struct node *f, *g, *dir = make_dir(h, h->root, "d");
	fake_set_delay(h->fake, OP_OPEN, 30 * NS_PER_MS);
	fake_fail_next(h->fake, OP_OPEN, 0, -EACCES);
	struct vfs_file *file = create(h, dir, "f", &f);
	assert_int_equal(write_text(h, file, 0, "hello", 0), 0);
	assert_int_equal(shut(h, file), 0);
	assert_int_equal(files_drain(h->vfs, f), 0);
	assert_int_equal(asked(h, OP_WRITE), 0);
	look_fails(h, dir, "f", -ENOENT);
	file = create(h, dir, "g", &g);
	assert_int_equal(vfs_fsync(h->vfs, file), -EACCES);
	assert_int_equal(vfs_fsync(h->vfs, file), 0);
	assert_int_equal(shut(h, file), 0);
	forget(h, f);
	forget(h, g);
	forget(h, dir);
}

static void a_refused_creation_is_told_by_a_descriptor_that_is_open(void **state)
{
	struct harness *h = *state;
	struct node *f, *dir = make_dir(h, h->root, "d");
	fake_fail_next(h->fake, OP_OPEN, 0, -ENOSPC);
	struct vfs_file *file = create(h, dir, "f", &f);
	assert_int_equal(io_file_drain(f->io_file), 0);
	assert_int_equal(write_text(h, file, 0, "hello", 0), -ENOSPC);
	close_file(h, file);
	forget(h, f);
	forget(h, dir);
}

static void anothers_file_of_that_name_is_left_alone(void **state)
{
	struct harness *h = *state;
	struct node *f, *dir = make_dir(h, h->root, "d");
	fake_put_file(h->fake, ROOT "/d/f", "theirs", 6, 1000);
	struct vfs_file *file = create(h, dir, "f", &f);
	assert_int_equal(io_file_drain(f->io_file), 0);
	assert_int_not_equal(write_text(h, file, 0, "ours", 0), 0);
	write_text(h, file, 0, "ours", 0);
	vfs_flush(h->vfs, file);
	close_file(h, file);
	assert_server_has(h, ROOT "/d/f", "theirs");
	forget(h, f);
	forget(h, dir);
}

static void a_creation_whose_lane_was_lost_is_settled(void **state)
{
	struct harness *h = *state;
	struct node *f, *g, *dir = make_dir(h, h->root, "d");
	/* it had not happened */
	fake_fail_next(h->fake, OP_OPEN, 0, -ENOLINK);
	struct vfs_file *file = create(h, dir, "f", &f);
	assert_int_equal(write_text(h, file, 0, "hello", 0), 0);
	assert_int_equal(vfs_fsync(h->vfs, file), 0);
	assert_server_has(h, ROOT "/d/f", "hello");
	assert_int_equal(shut(h, file), 0);
	/* it had */
	fake_fail_next(h->fake, OP_OPEN, 0, -ENOLINK);
	fake_put_file(h->fake, ROOT "/d/g", "", 0, 1000);
	file = create(h, dir, "g", &g);
	assert_int_equal(write_text(h, file, 0, "hello", 0), 0);
	assert_int_equal(vfs_fsync(h->vfs, file), 0);
	assert_server_has(h, ROOT "/d/g", "hello");
	assert_int_equal(shut(h, file), 0);
	forget(h, f);
	forget(h, g);
	forget(h, dir);
}

static void unmounting_waits_for_all_of_it(void **state)
{
	struct harness *h = *state;
	struct node *f[20], *dir = make_dir(h, h->root, "d");
	char name[64];
	fake_set_delay(h->fake, OP_OPEN, 10 * NS_PER_MS);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		struct vfs_file *file = create(h, dir, name, &f[i]);
		assert_int_equal(write_text(h, file, 0, "hello", 0), 0);
		assert_int_equal(shut(h, file), 0);
		forget(h, f[i]);
	}
	forget(h, dir);
	vfs_free(h->vfs);
	assert_int_equal(io_free(h->io), 0);
	for (int i = 0; i < 20; i++) {
		snprintf(name, sizeof(name), "%s/d/f%d", ROOT, i);
		assert_server_has(h, name, "hello");
	}
	h->vfs = NULL;
	h->io = io_new(h->remote, &(struct io_config){.cache_size = 1 << 20});
}

int main(void)
{
#define VFS_TEST(name) cmocka_unit_test_setup_teardown(name, async_setup, harness_teardown)
	const struct CMUnitTest tests[] = {
	    VFS_TEST(a_file_in_a_new_directory_is_not_waited_for),
	    VFS_TEST(nothing_goes_ahead_where_the_name_may_be_taken),
	    VFS_TEST(what_was_set_is_shown_and_arrives),
	    VFS_TEST(a_reader_gets_what_was_written),
	    VFS_TEST(names_are_moved_and_removed_after_they_were_made),
	    VFS_TEST(a_refused_creation_is_told_by_the_next_fsync),
	    VFS_TEST(a_refused_creation_is_told_by_a_descriptor_that_is_open),
	    VFS_TEST(anothers_file_of_that_name_is_left_alone),
	    VFS_TEST(a_creation_whose_lane_was_lost_is_settled),
	    VFS_TEST(unmounting_waits_for_all_of_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
