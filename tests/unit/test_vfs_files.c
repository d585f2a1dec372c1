/* Attributes and open files: caches, our own changes, other people's changes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "vfs_harness.h"

static struct stat set(struct harness *h, struct node *node, struct vfs_file *file,
                       unsigned which, const struct stat *values)
{
	struct stat st;
	uint64_t valid_ns;
	assert_int_equal(vfs_setattr(h->vfs, node, file, which, values, &st, &valid_ns), 0);
	return st;
}

static void expire(struct harness *h, struct node *node)
{
	NODES_SCOPE(&h->vfs->nodes);
	node->attr_asked_ns = 0;
}

/* ---- attributes ---- */

static void the_root_has_attributes(void **state)
{
	struct harness *h = *state;
	struct stat st = stat_of(h, h->root);
	assert_int_equal(st.st_ino, INODE_ROOT);
	assert_int_equal(st.st_mode, S_IFDIR | 0755);
	assert_int_equal(st.st_nlink, 1);
	stat_of(h, h->root);
	assert_int_equal(asked(h, OP_LSTAT), 1);
}

struct call {
	struct harness *harness;
	struct node *node;
	int err;
	struct stat st;
	uint64_t valid_ns;
};

static void *run_getattr(void *argument)
{
	struct call *call = argument;
	call->err =
	    vfs_getattr(call->harness->vfs, call->node, NULL, &call->st, &call->valid_ns);
	return NULL;
}

static void a_reply_older_than_our_change_is_not_kept(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "x", 1, 1000);
	struct node *f = look(h, h->root, "f");
	expire(h, f);
	fake_reset_counts(h->fake);
	fake_hold(h->fake, OP_LSTAT, true);
	struct call call = {.harness = h, .node = f};
	pthread_t asker;
	assert_int_equal(pthread_create(&asker, NULL, run_getattr, &call), 0);
	fake_wait_count(h->fake, OP_LSTAT, 1);
	nodes_lock(&h->vfs->nodes);
	const struct remote_attr patch = {.valid = ATTR_MODE, .mode = 0600};
	attr_patch(h->vfs, f, &patch); /* as vfs_setattr does when its answer has come */
	nodes_unlock(&h->vfs->nodes);
	fake_fail_next(h->fake, OP_LSTAT, 0, -EACCES); /* the second question */
	fake_hold(h->fake, OP_LSTAT, false);
	pthread_join(asker, NULL);
	/* the first reply was refused, so it was asked again */
	assert_int_equal(call.err, -EACCES);
	assert_int_equal(asked(h, OP_LSTAT), 2);
	assert_int_equal(h->vfs->counters.stale_replies, 1);
	nodes_lock(&h->vfs->nodes);
	assert_int_equal(f->attr.mode & 0777, 0600);
	nodes_unlock(&h->vfs->nodes);
}

static void impossible_attributes_are_made_possible(void **state)
{
	struct harness *h = *state;
	struct answer answer;
	struct vfs_entry entry;
	answer_begin(h->vfs, &answer, NULL);
	answer.attr = (struct remote_attr){.valid = ATTR_MODE | ATTR_SIZE | ATTR_TIMES,
	                                   .mode = 0xffffffff,
	                                   .size = UINT64_MAX,
	                                   .mtime.tv_sec = INT64_MIN};
	assert_int_equal(entry_enter(h->vfs, h->root, "odd", 3, &answer, &entry), 0);
	assert_int_equal(entry.st.st_mode, S_IFREG | 07777);
	assert_int_equal(entry.st.st_size, INT64_MAX);
	assert_int_equal(entry.st.st_blocks, INT64_C(1) << 54);
}

static void chmod_is_known_without_asking(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "x", 1, 1000);
	struct node *f = look(h, h->root, "f");
	fake_reset_counts(h->fake);
	const struct stat mode = {.st_mode = 0600};
	assert_int_equal(set(h, f, NULL, VFS_SET_MODE, &mode).st_mode, S_IFREG | 0600);
	assert_int_equal(stat_of(h, f).st_mode, S_IFREG | 0600);
	assert_int_equal(asked(h, OP_SETATTR), 1);
	assert_int_equal(asked(h, OP_LSTAT), 0);
}

static void one_time_is_set_and_the_other_stays(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "x", 1, 1000);
	struct node *f = look(h, h->root, "f");
	struct stat values = {.st_atim.tv_sec = 50};
	/* the modification time of now, not the one that was cached */
	fake_put_file(h->fake, ROOT "/f", "x", 1, 2000);
	struct stat st = set(h, f, NULL, VFS_SET_ATIME, &values);
	assert_int_equal(st.st_atim.tv_sec, 50);
	assert_int_equal(st.st_mtim.tv_sec, 2000);
	time_t before = time(NULL);
	st = set(h, f, NULL, VFS_SET_MTIME | VFS_SET_MTIME_NOW, &values);
	assert_int_equal(st.st_atim.tv_sec, 50);
	assert_in_range(st.st_mtim.tv_sec, before, before + 5);
	expire(h, f);
	assert_int_equal(stat_of(h, f).st_atim.tv_sec, 50);
	fake_reset_counts(h->fake);
	values.st_mtim.tv_sec = 60;
	set(h, f, NULL, VFS_SET_ATIME | VFS_SET_MTIME, &values);
	assert_int_equal(stat_of(h, f).st_mtim.tv_sec, 60);
	assert_int_equal(asked(h, OP_LSTAT), 0);
}

static void chown_sends_the_half_that_is_not_given(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "x", 1, 1000);
	struct node *f = look(h, h->root, "f");
	gid_t gid = stat_of(h, f).st_gid;
	const struct stat values = {.st_uid = 4711};
	struct stat st = set(h, f, NULL, VFS_SET_UID, &values);
	assert_int_equal(st.st_uid, 4711);
	assert_int_equal(st.st_gid, gid);
}

static void symlinks_are_changed_themselves_or_not_at_all(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "x", 1, 1000);
	fake_put_symlink(h->fake, ROOT "/l", "f");
	struct node *l = look(h, h->root, "l");
	const struct stat times = {.st_mtim.tv_sec = 77, .st_atim.tv_sec = 78};
	set(h, l, NULL, VFS_SET_ATIME | VFS_SET_MTIME, &times);
	assert_int_equal(stat_of(h, look(h, h->root, "f")).st_mtim.tv_sec, 1000);
	expire(h, l);
	assert_int_equal(stat_of(h, l).st_mtim.tv_sec, 77);
	h->remote->caps.lsetattr = false;
	struct stat st;
	uint64_t valid_ns;
	assert_int_equal(
	    vfs_setattr(h->vfs, l, NULL, VFS_SET_ATIME | VFS_SET_MTIME, &times, &st, &valid_ns),
	    -EOPNOTSUPP);
}

static void ids_are_mapped_to_the_mounting_user(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "x", 1, 1000);
	struct vfs_config config = harness_config();
	config.idmap = VFS_IDMAP_USER;
	config.local_uid = 12345;
	config.local_gid = 12346;
	config.set_umask = true;
	config.umask = 027;
	harness_configure(h, &config);
	struct node *f = look(h, h->root, "f");
	struct stat st = stat_of(h, f);
	assert_int_equal(st.st_uid, 12345);
	assert_int_equal(st.st_gid, 12346);
	assert_int_equal(st.st_mode, S_IFREG | 0750);
	assert_int_equal(asked(h, OP_STAT), 1);
	look(h, h->root, "f");
	assert_int_equal(asked(h, OP_STAT), 1);
	const struct stat owner = {.st_uid = 12345, .st_gid = 12346};
	set(h, f, NULL, VFS_SET_UID | VFS_SET_GID, &owner);
	assert_int_equal(stat_of(h, f).st_uid, 12345);
	nodes_lock(&h->vfs->nodes);
	assert_int_equal(f->attr.uid, getuid());
	nodes_unlock(&h->vfs->nodes);
}

static void access_is_judged_where_the_owner_is_clear(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "x", 1, 1000);
	struct node *f = look(h, h->root, "f");
	assert_int_equal(vfs_access(h->vfs, f, F_OK), 0);
	assert_int_equal(vfs_access(h->vfs, f, R_OK | W_OK), 0);
	assert_int_equal(vfs_access(h->vfs, f, X_OK), -EACCES);
	assert_int_equal(vfs_access(h->vfs, h->root, X_OK), 0);
	const struct stat mode = {.st_mode = 0400};
	set(h, f, NULL, VFS_SET_MODE, &mode);
	/* whether the server lets us write is not for the bits to say ... */
	assert_int_equal(vfs_access(h->vfs, f, W_OK), 0);
	/* ... unless the file is known to be the login's own, and that is not root */
	struct vfs_config config = harness_config();
	config.idmap = VFS_IDMAP_USER;
	harness_configure(h, &config);
	f = look(h, h->root, "f");
	nodes_lock(&h->vfs->nodes);
	f->attr.uid = 31;
	nodes_unlock(&h->vfs->nodes);
	ids_set_login(h->vfs->ids, true, 31, 31);
	assert_int_equal(vfs_access(h->vfs, f, W_OK), -EACCES);
	assert_int_equal(vfs_access(h->vfs, f, R_OK), 0);
}

static void the_free_space_is_told_or_made_up(void **state)
{
	struct harness *h = *state;
	struct statvfs fs;
	assert_int_equal(vfs_statfs(h->vfs, h->root, &fs), 0);
	assert_int_equal(fs.f_blocks, 1000000);
	assert_int_equal(fs.f_bavail, 500000);
	h->remote->caps.statfs = false;
	assert_int_equal(vfs_statfs(h->vfs, h->root, &fs), 0);
	assert_int_equal(fs.f_bavail * fs.f_frsize, UINT64_C(1) << 40);
	assert_int_equal(fs.f_namemax, 255);
}

/* ---- open files ---- */

static void writes_are_seen_at_once(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_file(h, h->root, "f", &f);
	assert_int_equal(stat_of(h, f).st_size, 0);
	assert_int_equal(write_text(h, file, 0, "hello", 0), 0);
	assert_int_equal(stat_of(h, f).st_size, 5);
	fake_hold(h->fake, OP_WRITE, true);
	assert_int_equal(write_text(h, file, 5, " again", 0), 0);
	/* a lookup does not wait for the writes, and what it shows is not kept */
	struct vfs_entry entry;
	assert_int_equal(vfs_lookup(h->vfs, h->root, "f", &entry), 0);
	assert_int_equal(entry.st.st_size, 11);
	assert_int_equal(entry.attr_valid_ns, 0);
	fake_hold(h->fake, OP_WRITE, false);
	assert_int_equal(stat_of(h, f).st_size, 11);
	assert_int_equal(write_text(h, file, 0, "!", O_APPEND), 0);
	close_file(h, file);
	assert_int_equal(stat_of(h, f).st_size, 12);
	assert_server_has(h, ROOT "/f", "hello again!");
	assert_int_equal(h->data_events, 0);
}

/* Makes the next lookup of the name ask the server. */
static void expire_name(struct harness *h, const char *name)
{
	NODES_SCOPE(&h->vfs->nodes);
	dentry_find(&h->vfs->nodes, h->root, name, strlen(name))->seen_ns = 0;
}

static void wait_until_written(struct node *node)
{
	const struct timespec pause = {.tv_nsec = 1000 * 1000};
	while (io_file_dirty(node->io_file))
		nanosleep(&pause, NULL);
}

static void answers_that_crossed_our_writes_are_not_kept(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_file(h, h->root, "f", &f);
	fake_hold(h->fake, OP_WRITE, true);
	assert_int_equal(write_text(h, file, 0, "hello", 0), 0);
	expire_name(h, "f");
	struct vfs_entry entry;
	assert_int_equal(vfs_lookup(h->vfs, h->root, "f", &entry), 0);
	assert_int_equal(entry.st.st_size, 5);
	assert_int_equal(entry.attr_valid_ns, 0);
	/* an answer of which it is not known when it was asked, as from a listing */
	struct answer answer;
	answer_begin(h->vfs, &answer, NULL);
	answer.attr = (struct remote_attr){.valid = ATTR_MODE | ATTR_SIZE | ATTR_TIMES,
	                                   .mode = S_IFREG | 0644};
	fake_hold(h->fake, OP_WRITE, false);
	wait_until_written(f);
	assert_int_equal(entry_enter(h->vfs, h->root, "f", 1, &answer, &entry), 0);
	assert_int_equal(entry.attr_valid_ns, 0);
	assert_int_equal(stat_of(h, f).st_size, 5);
	close_file(h, file);
}

static void truncation_comes_behind_earlier_writes(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_file(h, h->root, "f", &f);
	fake_set_delay(h->fake, OP_WRITE, 50 * NS_PER_MS);
	assert_int_equal(write_text(h, file, 0, "hello", 0), 0);
	close_file(h, open_file(h, f, O_WRONLY | O_TRUNC));
	close_file(h, file);
	assert_server_has(h, ROOT "/f", "");
}

static void an_open_keeps_the_pages_of_an_unchanged_file(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "one", 3, 1000);
	struct node *f = look(h, h->root, "f");
	struct vfs_file *file = open_file(h, f, O_RDONLY);
	assert_reads(h, file, "one");
	close_file(h, file);
	struct vfs_open_info info;
	assert_int_equal(vfs_open(h->vfs, f, O_RDONLY, &info), 0);
	assert_true(info.keep_cache);
	vfs_release(h->vfs, info.file);
	assert_false(info.attr_changed);
	fake_put_file(h->fake, ROOT "/f", "two", 3, 2000);
	assert_int_equal(vfs_open(h->vfs, f, O_RDONLY, &info), 0);
	assert_false(info.keep_cache);
	assert_true(info.attr_changed);
	assert_int_equal(h->data_events, 1);
	assert_reads(h, info.file, "two");
	vfs_release(h->vfs, info.file);
	assert_int_equal(vfs_open(h->vfs, f, O_RDONLY, &info), 0);
	assert_true(info.keep_cache);
	vfs_release(h->vfs, info.file);
}

static void the_first_open_tells_of_a_size_that_the_kernel_does_not_know(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "one", 3, 1000);
	struct node *f = look(h, h->root, "f");
	fake_put_file(h->fake, ROOT "/f", "longer", 6, 1000);
	struct vfs_open_info info;
	assert_int_equal(vfs_open(h->vfs, f, O_RDONLY, &info), 0);
	assert_true(info.attr_changed);
	assert_int_equal(stat_of(h, f).st_size, 6);
	vfs_release(h->vfs, info.file);
	assert_int_equal(vfs_open(h->vfs, f, O_RDONLY, &info), 0);
	assert_false(info.attr_changed);
	vfs_release(h->vfs, info.file);
}

static void pages_found_old_by_a_stat_are_not_kept_by_the_next_open(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "one", 3, 1000);
	struct node *f = look(h, h->root, "f");
	close_file(h, open_file(h, f, O_RDONLY));
	fake_put_file(h->fake, ROOT "/f", "longer", 6, 2000);
	expire(h, f);
	assert_int_equal(stat_of(h, f).st_size, 6);
	assert_int_equal(h->data_events, 1);
	struct vfs_open_info info;
	assert_int_equal(vfs_open(h->vfs, f, O_RDONLY, &info), 0);
	assert_false(info.keep_cache);
	assert_reads(h, info.file, "longer");
	vfs_release(h->vfs, info.file);
}

static void our_own_changes_keep_the_pages(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_file(h, h->root, "f", &f);
	assert_int_equal(write_text(h, file, 0, "text", 0), 0);
	assert_int_equal(stat_of(h, f).st_size, 4); /* the version is known as it is */
	const struct stat values = {.st_atim.tv_sec = 5, .st_mtim.tv_sec = 6};
	set(h, f, file, VFS_SET_ATIME | VFS_SET_MTIME, &values);
	close_file(h, file);
	struct vfs_open_info info;
	assert_int_equal(vfs_open(h->vfs, f, O_RDONLY, &info), 0);
	assert_true(info.keep_cache);
	assert_reads(h, info.file, "text");
	vfs_release(h->vfs, info.file);
	assert_int_equal(stat_of(h, f).st_mtim.tv_sec, 6);
	assert_int_equal(h->data_events, 0);
}

static void options_rule_the_kernels_pages(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.kernel_cache = config.direct_io = true;
	harness_configure(h, &config);
	fake_put_file(h->fake, ROOT "/f", "one", 3, 1000);
	struct node *f = look(h, h->root, "f");
	close_file(h, open_file(h, f, O_RDONLY));
	fake_put_file(h->fake, ROOT "/f", "longer", 6, 2000);
	struct vfs_open_info info;
	assert_int_equal(vfs_open(h->vfs, f, O_RDONLY, &info), 0);
	assert_true(info.keep_cache);
	assert_true(info.direct_io);
	vfs_release(h->vfs, info.file);
}

static void truncation_by_open_path_and_descriptor(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "0123456789", 10, 1000);
	struct node *f = look(h, h->root, "f");
	struct vfs_file *file = open_file(h, f, O_RDWR);
	assert_reads(h, file, "0123456789");
	struct stat values = {.st_size = 4};
	assert_int_equal(set(h, f, NULL, VFS_SET_SIZE, &values).st_size, 4);
	assert_reads(h, file, "0123");
	values.st_size = 2;
	fake_reset_counts(h->fake);
	assert_int_equal(set(h, f, file, VFS_SET_SIZE, &values).st_size, 2);
	assert_int_equal(asked(h, OP_FSETATTR), 1);
	assert_reads(h, file, "01");
	struct vfs_open_info info;
	assert_int_equal(vfs_open(h->vfs, f, O_WRONLY | O_TRUNC, &info), 0);
	assert_true(info.keep_cache);
	assert_int_equal(stat_of(h, f).st_size, 0);
	vfs_release(h->vfs, info.file);
	assert_reads(h, file, "");
	close_file(h, file);
	struct stat st;
	uint64_t valid_ns;
	assert_int_equal(
	    vfs_setattr(h->vfs, h->root, NULL, VFS_SET_SIZE, &values, &st, &valid_ns), -EISDIR);
	assert_int_equal(h->data_events, 0);
}

static void exclusive_creation_fails_on_what_exists(void **state)
{
	struct harness *h = *state;
	look_fails(h, h->root, "f", -ENOENT);
	fake_put_file(h->fake, ROOT "/f", "theirs", 6, 1000);
	struct vfs_entry entry;
	struct vfs_open_info info;
	assert_int_equal(
	    vfs_create(h->vfs, h->root, "f", 0644, O_RDWR | O_CREAT | O_EXCL, &entry, &info),
	    -EEXIST);
	/* the negative entry has gone with it */
	assert_int_equal(stat_of(h, look(h, h->root, "f")).st_size, 6);
	assert_int_equal(
	    vfs_create(h->vfs, h->root, "f", 0644, O_RDWR | O_CREAT, &entry, &info), 0);
	assert_reads(h, info.file, "theirs");
	vfs_release(h->vfs, info.file);
}

static void a_failed_write_is_told_by_flush(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_file(h, h->root, "f", &f);
	fake_set_full(h->fake, true);
	assert_int_equal(write_text(h, file, 0, "text", 0), 0);
	assert_int_equal(vfs_flush(h->vfs, file), -ENOSPC);
	vfs_release(h->vfs, file);
}

static void copies_are_made_by_the_server(void **state)
{
	struct harness *h = *state;
	struct node *a, *b;
	struct vfs_file *from = create_file(h, h->root, "a", &a);
	struct vfs_file *to = create_file(h, h->root, "b", &b);
	assert_int_equal(write_text(h, from, 0, "0123456789", 0), 0);
	assert_int_equal(write_text(h, to, 0, "ab", 0), 0);
	assert_reads(h, to, "ab");
	uint64_t copied;
	assert_int_equal(vfs_copy_range(h->vfs, from, 2, to, 1, 100, &copied), 0);
	assert_int_equal(copied, 8);
	assert_reads(h, to, "a23456789");
	assert_int_equal(stat_of(h, b).st_size, 9);
	assert_int_equal(vfs_copy_range(h->vfs, from, 10, to, 0, 100, &copied), 0);
	assert_int_equal(copied, 0);
	/* a refusal without a reason: the kernel reads and writes, and finds the reason */
	fake_fail_next(h->fake, OP_COPY, 0, -EREMOTEIO);
	assert_int_equal(vfs_copy_range(h->vfs, from, 0, to, 0, 1, &copied), -EOPNOTSUPP);
	h->remote->caps.copy = false;
	assert_int_equal(vfs_copy_range(h->vfs, from, 0, to, 0, 1, &copied), -EOPNOTSUPP);
	close_file(h, from);
	close_file(h, to);
	assert_int_equal(h->data_events, 0);
}

static void a_file_is_one_extent_of_data(void **state)
{
	struct harness *h = *state;
	struct node *f;
	struct vfs_file *file = create_file(h, h->root, "f", &f);
	assert_int_equal(write_text(h, file, 0, "0123456789", 0), 0);
	int64_t at;
	assert_int_equal(vfs_lseek(h->vfs, file, 3, SEEK_DATA, &at), 0);
	assert_int_equal(at, 3);
	assert_int_equal(vfs_lseek(h->vfs, file, 3, SEEK_HOLE, &at), 0);
	assert_int_equal(at, 10);
	assert_int_equal(vfs_lseek(h->vfs, file, 10, SEEK_DATA, &at), -ENXIO);
	assert_int_equal(vfs_lseek(h->vfs, file, 10, SEEK_HOLE, &at), -ENXIO);
	assert_int_equal(vfs_lseek(h->vfs, file, -4, SEEK_END, &at), 0);
	assert_int_equal(at, 6);
	close_file(h, file);
}

static void attribute_timeouts_grow_while_nothing_changes(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.attr_min_ns = 20 * NS_PER_MS;
	config.attr_max_ns = 40 * NS_PER_MS;
	harness_configure(h, &config);
	fake_put_file(h->fake, ROOT "/f", "x", 1, 1000);
	struct node *f = look(h, h->root, "f");
	const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
	nanosleep(&pause, NULL);
	stat_of(h, f);
	nodes_lock(&h->vfs->nodes);
	assert_int_equal(f->timeout.ns, 40 * NS_PER_MS);
	nodes_unlock(&h->vfs->nodes);
	nanosleep(&pause, NULL);
	fake_put_file(h->fake, ROOT "/f", "x", 1, 2000);
	stat_of(h, f);
	nodes_lock(&h->vfs->nodes);
	assert_int_equal(f->timeout.ns, 20 * NS_PER_MS);
	nodes_unlock(&h->vfs->nodes);
	assert_int_equal(asked(h, OP_LSTAT), 3);
}

static void the_report_counts(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "x", 1, 1000);
	look(h, h->root, "f");
	struct bytes out = BYTES_INIT;
	vfs_report(h->vfs, &out);
	assert_non_null(strstr(out.data, "nodes: 2 known"));
	assert_non_null(strstr(out.data, "lookups: 1, 0 from cache"));
	bytes_release(&out);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(the_root_has_attributes),
	    TEST(a_reply_older_than_our_change_is_not_kept),
	    TEST(impossible_attributes_are_made_possible),
	    TEST(chmod_is_known_without_asking),
	    TEST(one_time_is_set_and_the_other_stays),
	    TEST(chown_sends_the_half_that_is_not_given),
	    TEST(symlinks_are_changed_themselves_or_not_at_all),
	    TEST(ids_are_mapped_to_the_mounting_user),
	    TEST(access_is_judged_where_the_owner_is_clear),
	    TEST(the_free_space_is_told_or_made_up),
	    TEST(writes_are_seen_at_once),
	    TEST(answers_that_crossed_our_writes_are_not_kept),
	    TEST(truncation_comes_behind_earlier_writes),
	    TEST(an_open_keeps_the_pages_of_an_unchanged_file),
	    TEST(the_first_open_tells_of_a_size_that_the_kernel_does_not_know),
	    TEST(pages_found_old_by_a_stat_are_not_kept_by_the_next_open),
	    TEST(our_own_changes_keep_the_pages),
	    TEST(options_rule_the_kernels_pages),
	    TEST(truncation_by_open_path_and_descriptor),
	    TEST(exclusive_creation_fails_on_what_exists),
	    TEST(a_failed_write_is_told_by_flush),
	    TEST(copies_are_made_by_the_server),
	    TEST(a_file_is_one_extent_of_data),
	    TEST(attribute_timeouts_grow_while_nothing_changes),
	    TEST(the_report_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
