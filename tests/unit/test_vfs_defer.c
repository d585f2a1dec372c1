/* Changes of attributes of open files that are not waited for: when, and what is seen of them.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "vfs_harness.h"

enum {
	TIMES = VFS_SET_ATIME | VFS_SET_MTIME,
	OLD_TIME = 978307200,
};

static const struct stat wanted = {
    .st_mode = 0640, .st_atim = {.tv_sec = OLD_TIME + 1}, .st_mtim = {.tv_sec = OLD_TIME}};

static int set(struct harness *h, struct node *node, unsigned which, const struct stat *values)
{
	struct stat st;
	uint64_t valid_ns;
	return vfs_setattr(h->vfs, node, NULL, which, values, &st, &valid_ns);
}

static struct vfs_file *create_new(struct harness *h, const char *name, struct node **node)
{
	struct vfs_entry entry;
	struct vfs_open_info info;
	h->remote->caps.ordered = true;
	assert_int_equal(
	    vfs_create(h->vfs, h->root, name, 0644, O_WRONLY | O_CREAT | O_EXCL, &entry, &info),
	    0);
	*node = entry.node;
	return info.file;
}

static struct remote_attr server_attr(struct harness *h, const char *path)
{
	struct remote_attr attr;
	assert_int_equal(remote_lstat(h->remote, path, &attr), 0);
	return attr;
}

static void end(struct harness *h, struct vfs_file *file, struct node *node)
{
	close_file(h, file);
	forget(h, node);
}

static void a_new_file_gets_its_attributes_in_one_request(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_new(h, "f", &f);
	fake_reset_counts(h->fake);
	fake_hold(h->fake, OP_WRITE, true);
	assert_int_equal(write_text(h, file, 0, "hello", 0), 0);
	assert_int_equal(set(h, f, TIMES, &wanted), 0);
	assert_int_equal(set(h, f, VFS_SET_MODE, &wanted), 0);
	/* as shown now, so it is on the server later */
	struct stat st = stat_of(h, f);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(st.st_mtim.tv_sec, OLD_TIME);
	fake_hold(h->fake, OP_WRITE, false);
	assert_int_equal(vfs_flush(h->vfs, file), 0);
	st = stat_of(h, f);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(st.st_mtim.tv_sec, OLD_TIME);
	assert_int_equal(asked(h, OP_FSETATTR), 1);
	assert_int_equal(asked(h, OP_SETATTR) + asked(h, OP_LSTAT) + asked(h, OP_FSTAT), 0);
	struct remote_attr attr = server_attr(h, ROOT "/f");
	assert_int_equal(attr.mode & 07777, 0640);
	assert_int_equal(attr.mtime.tv_sec, OLD_TIME);
	assert_int_equal(attr.atime.tv_sec, OLD_TIME + 1);
	end(h, file, f);
}

static void the_time_that_is_not_set_stays(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_new(h, "f", &f);
	struct remote_attr before = server_attr(h, ROOT "/f");
	assert_int_equal(set(h, f, VFS_SET_MTIME, &wanted), 0);
	assert_int_equal(vfs_flush(h->vfs, file), 0);
	struct remote_attr attr = server_attr(h, ROOT "/f");
	assert_int_equal(attr.mtime.tv_sec, OLD_TIME);
	assert_int_equal(attr.atime.tv_sec, before.atime.tv_sec);
	end(h, file, f);
}

static void an_owner_that_stays_is_no_request(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_new(h, "f", &f);
	struct remote_attr attr = server_attr(h, ROOT "/f");
	const struct stat same = {.st_uid = attr.uid, .st_gid = attr.gid};
	fake_reset_counts(h->fake);
	assert_int_equal(set(h, f, VFS_SET_UID | VFS_SET_GID, &same), 0);
	assert_int_equal(vfs_flush(h->vfs, file), 0);
	assert_int_equal(asked(h, OP_SETATTR) + asked(h, OP_FSETATTR), 0);
	end(h, file, f);
}

/* As an ordinary user, who owns the file or not. */
static void log_in_as(struct harness *h, struct node *owned, uint32_t uid)
{
	NODES_SCOPE(&h->vfs->nodes);
	h->vfs->login_known = true;
	h->vfs->login_uid = uid;
	if (owned)
		owned->attr.uid = uid;
}

static void what_may_be_refused_is_asked_at_once(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_new(h, "f", &f);
	const struct stat other = {.st_uid = 4321, .st_gid = 4321};
	log_in_as(h, f, 1234);
	fake_fail_next(h->fake, OP_SETATTR, 0, -EACCES);
	assert_int_equal(set(h, f, VFS_SET_UID | VFS_SET_GID, &other), -EPERM);
	assert_int_equal(vfs_flush(h->vfs, file), 0);
	end(h, file, f);
}

static void anothers_file_is_changed_at_once(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "x", 1, 1000);
	struct node *f = look(h, h->root, "f");
	struct vfs_file *file = open_file(h, f, O_WRONLY);
	log_in_as(h, NULL, 1234);
	fake_fail_next(h->fake, OP_SETATTR, 0, -EACCES);
	assert_int_equal(set(h, f, VFS_SET_MODE, &wanted), -EPERM);
	assert_int_equal(asked(h, OP_FSETATTR), 0);
	end(h, file, f);
}

static void without_an_open_file_nothing_is_put_off(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_new(h, "f", &f);
	close_file(h, file);
	fake_reset_counts(h->fake);
	assert_int_equal(set(h, f, VFS_SET_MODE, &wanted), 0);
	assert_int_equal(asked(h, OP_SETATTR), 1);
	forget(h, f);
}

static void set_id_bits_are_left_to_the_server(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_new(h, "f", &f);
	const struct stat special = {.st_mode = 04755};
	fake_reset_counts(h->fake);
	assert_int_equal(set(h, f, VFS_SET_MODE, &special), 0);
	assert_int_equal(asked(h, OP_SETATTR), 1);
	end(h, file, f);
}

static void a_late_refusal_comes_with_the_close_and_is_not_believed_on(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_new(h, "f", &f);
	fake_fail_next(h->fake, OP_FSETATTR, 0, -EACCES);
	assert_int_equal(set(h, f, TIMES, &wanted), 0);
	assert_int_equal(vfs_flush(h->vfs, file), -EPERM);
	assert_true(stat_of(h, f).st_mtim.tv_sec > OLD_TIME);
	end(h, file, f);
}

static void a_write_after_the_times_moves_them(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_new(h, "f", &f);
	assert_int_equal(set(h, f, TIMES, &wanted), 0);
	assert_int_equal(write_text(h, file, 0, "hello", 0), 0);
	assert_true(stat_of(h, f).st_mtim.tv_sec > OLD_TIME);
	assert_int_equal(vfs_flush(h->vfs, file), 0);
	assert_true(stat_of(h, f).st_mtim.tv_sec > OLD_TIME);
	assert_true(server_attr(h, ROOT "/f").mtime.tv_sec > OLD_TIME);
	end(h, file, f);
}

static void after_a_close_the_attributes_are_known(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_new(h, "f", &f);
	fake_set_delay(h->fake, OP_WRITE, 20 * NS_PER_MS);
	fake_set_delay(h->fake, OP_FSTAT, 20 * NS_PER_MS);
	assert_int_equal(write_text(h, file, 0, "hello", 0), 0);
	assert_int_equal(vfs_flush(h->vfs, file), 0);
	close_file(h, file);
	fake_reset_counts(h->fake);
	struct stat st = stat_of(h, f);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(asked(h, OP_LSTAT) + asked(h, OP_FSTAT), 0);
	assert_int_equal(st.st_mtim.tv_sec, server_attr(h, ROOT "/f").mtime.tv_sec);
	forget(h, f);
}

/* ---- what comes after the change on other paths ---- */

static void a_rename_comes_after_the_change(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_new(h, "f", &f);
	fake_set_delay(h->fake, OP_FSETATTR, 20 * NS_PER_MS);
	assert_int_equal(set(h, f, TIMES, &wanted), 0);
	assert_int_equal(vfs_rename(h->vfs, h->root, "f", h->root, "g", 0), 0);
	assert_int_equal(server_attr(h, ROOT "/g").mtime.tv_sec, OLD_TIME);
	assert_int_equal(stat_of(h, f).st_mtim.tv_sec, OLD_TIME);
	end(h, file, f);
}

static void a_truncation_comes_after_the_change(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_new(h, "f", &f);
	const struct stat longer = {.st_size = 100};
	fake_set_delay(h->fake, OP_FSETATTR, 20 * NS_PER_MS);
	assert_int_equal(set(h, f, TIMES, &wanted), 0);
	assert_int_equal(set(h, f, VFS_SET_SIZE, &longer), 0);
	struct stat st = stat_of(h, f);
	assert_int_equal(st.st_size, 100);
	assert_true(st.st_mtim.tv_sec > OLD_TIME);
	end(h, file, f);
}

static void an_unlinked_file_takes_its_change(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_new(h, "f", &f);
	assert_int_equal(set(h, f, TIMES, &wanted), 0);
	assert_int_equal(vfs_unlink(h->vfs, h->root, "f"), 0);
	assert_int_equal(set(h, f, VFS_SET_MODE, &wanted), 0);
	assert_int_equal(vfs_flush(h->vfs, file), 0);
	assert_int_equal(stat_of(h, f).st_mode & 07777, 0640);
	end(h, file, f);
}

static void a_lookup_that_crossed_the_change_is_not_believed(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_new(h, "f", &f);
	fake_set_delay(h->fake, OP_FSETATTR, 20 * NS_PER_MS);
	assert_int_equal(set(h, f, TIMES, &wanted), 0);
	struct answer answer;
	answer_begin(h->vfs, &answer, f);
	answer.attr = server_attr(h, ROOT "/f");
	assert_int_equal(vfs_flush(h->vfs, file), 0);
	nodes_lock(&h->vfs->nodes);
	assert_false(attr_store(h->vfs, f, &answer));
	nodes_unlock(&h->vfs->nodes);
	assert_int_equal(stat_of(h, f).st_mtim.tv_sec, OLD_TIME);
	end(h, file, f);
}

int main(void)
{
#define VFS_TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)
	const struct CMUnitTest tests[] = {
	    VFS_TEST(a_new_file_gets_its_attributes_in_one_request),
	    VFS_TEST(the_time_that_is_not_set_stays),
	    VFS_TEST(an_owner_that_stays_is_no_request),
	    VFS_TEST(what_may_be_refused_is_asked_at_once),
	    VFS_TEST(anothers_file_is_changed_at_once),
	    VFS_TEST(without_an_open_file_nothing_is_put_off),
	    VFS_TEST(set_id_bits_are_left_to_the_server),
	    VFS_TEST(a_late_refusal_comes_with_the_close_and_is_not_believed_on),
	    VFS_TEST(a_write_after_the_times_moves_them),
	    VFS_TEST(after_a_close_the_attributes_are_known),
	    VFS_TEST(a_rename_comes_after_the_change),
	    VFS_TEST(a_truncation_comes_after_the_change),
	    VFS_TEST(an_unlinked_file_takes_its_change),
	    VFS_TEST(a_lookup_that_crossed_the_change_is_not_believed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
