/* Names and nodes: lookups, forgets, renames, links, and what caches know of them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vfs_harness.h"

/* ---- lookup and forget ---- */

static void forgetting_all_lookups_leaves_the_root_alone(void **state)
{
	struct harness *h = *state;
	fake_put_dir(h->fake, ROOT "/d");
	fake_put_file(h->fake, ROOT "/d/f", "x", 1, 1000);
	struct node *d = look(h, h->root, "d"), *f = look(h, d, "f");
	assert_ptr_equal(look(h, d, "f"), f);
	look_fails(h, d, "missing", -ENOENT);
	assert_int_equal(nodes_known(h), 3);
	forget(h, d); /* lives on by its child */
	assert_int_equal(nodes_known(h), 3);
	forget(h, f);
	assert_int_equal(nodes_known(h), 3);
	forget(h, f);
	assert_int_equal(nodes_known(h), 1);
	assert_int_equal(h->vfs->nodes.negative_count, 0);
	assert_int_equal(h->vfs->nodes.dentries.count, 0);
}

static void fresh_names_are_answered_without_the_server(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "x", 1, 1000);
	struct vfs_entry entry;
	assert_int_equal(vfs_lookup(h->vfs, h->root, "f", &entry), 0);
	assert_true(entry.entry_valid_ns > 2 * NS_PER_SEC);
	assert_true(entry.attr_valid_ns > 2 * NS_PER_SEC);
	assert_int_equal(entry.st.st_size, 1);
	assert_int_equal(entry.st.st_mode, S_IFREG | 0644);
	look(h, h->root, "f");
	stat_of(h, entry.node);
	assert_int_equal(asked(h, OP_LSTAT), 1);
}

static void missing_names_are_remembered(void **state)
{
	struct harness *h = *state;
	struct vfs_entry entry;
	assert_int_equal(vfs_lookup(h->vfs, h->root, "no", &entry), -ENOENT);
	assert_true(entry.entry_valid_ns > 2 * NS_PER_SEC);
	look_fails(h, h->root, "no", -ENOENT);
	assert_int_equal(asked(h, OP_LSTAT), 1);
	/* until we make the name ourselves */
	struct node *node;
	close_file(h, create_file(h, h->root, "no", &node));
	assert_ptr_equal(look(h, h->root, "no"), node);
}

static void fixed_timeouts_replace_adaptive_ones(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.attr_timeout_ns = config.entry_timeout_ns = config.negative_timeout_ns = 0;
	harness_configure(h, &config);
	fake_put_file(h->fake, ROOT "/f", "x", 1, 1000);
	struct vfs_entry entry;
	assert_int_equal(vfs_lookup(h->vfs, h->root, "f", &entry), 0);
	assert_int_equal(entry.entry_valid_ns, 0);
	assert_int_equal(entry.attr_valid_ns, 0);
	look(h, h->root, "f");
	look_fails(h, h->root, "no", -ENOENT);
	look_fails(h, h->root, "no", -ENOENT);
	assert_int_equal(asked(h, OP_LSTAT), 4);
}

static void a_name_that_is_too_long_is_refused(void **state)
{
	struct harness *h = *state;
	char name[300];
	memset(name, 'x', sizeof(name));
	name[256] = '\0';
	struct vfs_entry entry;
	look_fails(h, h->root, name, -ENAMETOOLONG);
	assert_int_equal(vfs_mkdir(h->vfs, h->root, name, 0755, &entry), -ENAMETOOLONG);
	name[255] = '\0';
	look_fails(h, h->root, name, -ENOENT);
}

static void another_kind_of_file_is_another_node(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.attr_timeout_ns = config.entry_timeout_ns = 0;
	harness_configure(h, &config);
	fake_put_file(h->fake, ROOT "/x", "x", 1, 1000);
	struct node *file = look(h, h->root, "x");
	uint64_t ino = stat_of(h, file).st_ino;
	fake_remove(h->fake, ROOT "/x");
	fake_put_dir(h->fake, ROOT "/x");
	struct stat st;
	uint64_t valid_ns;
	assert_int_equal(vfs_getattr(h->vfs, file, NULL, &st, &valid_ns), -ESTALE);
	assert_int_equal(h->entry_events, 1);
	struct node *dir = look(h, h->root, "x");
	assert_ptr_not_equal(dir, file);
	st = stat_of(h, dir);
	assert_true(S_ISDIR(st.st_mode));
	assert_true(st.st_ino != ino);
}

static void answers_older_than_our_change_of_the_name_are_not_entered(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/old", "x", 1, 1000);
	struct answer present, absent;
	struct vfs_entry entry;
	struct node *node;
	answer_begin(h->vfs, &present, NULL);
	answer_begin(h->vfs, &absent, NULL);
	present.attr = (struct remote_attr){.valid = ATTR_MODE, .mode = S_IFREG | 0644};
	assert_int_equal(vfs_unlink(h->vfs, h->root, "old"), 0);
	close_file(h, create_file(h, h->root, "new", &node));
	/* "old" was there, and "new" was not, when the server was asked */
	assert_int_equal(entry_enter(h->vfs, h->root, "old", 3, &present, &entry), ENTRY_AGAIN);
	entry_enter_negative(h->vfs, h->root, "new", 3, &absent, &entry);
	assert_int_equal(entry.entry_valid_ns, 0);
	fake_reset_counts(h->fake);
	look_fails(h, h->root, "old", -ENOENT);
	assert_ptr_equal(look(h, h->root, "new"), node);
	assert_int_equal(asked(h, OP_LSTAT), 0);
	/* also when the table has forgotten the name since */
	vfs_forget(h->vfs, node, 2);
	entry_enter_negative(h->vfs, h->root, "new", 3, &absent, &entry);
	assert_ptr_not_equal(look(h, h->root, "new"), NULL);
	/* answers about other names are as good as before */
	assert_int_equal(vfs_lookup(h->vfs, h->root, "other", &entry), -ENOENT);
	assert_true(entry.entry_valid_ns > 0);
}

static void a_file_that_somebody_removed_is_looked_up_anew(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/f", "x", 1, 1000);
	struct node *f = look(h, h->root, "f");
	fake_remove(h->fake, ROOT "/f");
	struct vfs_open_info info;
	assert_int_equal(vfs_open(h->vfs, f, O_RDONLY, &info), -ENOENT);
	look_fails(h, h->root, "f", -ENOENT);
}

/* ---- inode numbers ---- */

static void numbers_are_the_same_after_a_forget(void **state)
{
	struct harness *h = *state;
	struct node *d = make_dir(h, h->root, "d"), *sub = make_dir(h, d, "sub"), *f;
	close_file(h, create_file(h, sub, "f", &f));
	uint64_t ino_d = stat_of(h, d).st_ino, ino_f = stat_of(h, f).st_ino;
	assert_true(ino_d != ino_f);
	/* a whole subtree keeps its numbers through a rename of its top */
	assert_int_equal(vfs_rename(h->vfs, h->root, "d", h->root, "e", 0), 0);
	forget(h, f);
	forget(h, sub);
	forget(h, d);
	assert_int_equal(nodes_known(h), 1);
	struct node *e = look(h, h->root, "e"), *sub2 = look(h, e, "sub");
	assert_int_equal(stat_of(h, e).st_ino, ino_d);
	assert_int_equal(stat_of(h, look(h, sub2, "f")).st_ino, ino_f);
	/* and a new directory under the old name has another one */
	assert_true(stat_of(h, make_dir(h, h->root, "d")).st_ino != ino_d);
}

static void the_whole_server_can_be_mounted(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.root = "/";
	harness_configure(h, &config);
	struct node *share = look(h, look(h, h->root, "srv"), "share"), *f;
	close_file(h, create_file(h, share, "f", &f));
	assert_true(fake_exists(h->fake, ROOT "/f"));
	forget(h, make_dir(h, h->root, "top"));
	assert_true(fake_exists(h->fake, "/top"));
	struct vfs_dir *dir;
	bool keep;
	assert_int_equal(vfs_opendir(h->vfs, h->root, &dir, &keep), 0);
	vfs_releasedir(h->vfs, dir);
}

/* ---- rename ---- */

static void renaming_a_directory_moves_its_open_files(void **state)
{
	struct harness *h = *state;
	struct node *a = make_dir(h, h->root, "a"), *b = make_dir(h, a, "b"), *f;
	struct node *other = make_dir(h, h->root, "other");
	struct vfs_file *file = create_file(h, b, "f", &f);
	assert_int_equal(write_text(h, file, 0, "hello", 0), 0);
	assert_int_equal(vfs_rename(h->vfs, h->root, "a", other, "z", 0), 0);
	assert_server_has(h, ROOT "/other/z/b/f", "hello");
	char *path = remote_file_path(io_handle_remote(file->handle));
	assert_string_equal(path, ROOT "/other/z/b/f");
	free(path);
	assert_int_equal(stat_of(h, f).st_size, 5);
	assert_int_equal(write_text(h, file, 5, " you", 0), 0);
	close_file(h, file);
	assert_server_has(h, ROOT "/other/z/b/f", "hello you");
	assert_ptr_equal(look(h, look(h, look(h, other, "z"), "b"), "f"), f);
	look_fails(h, h->root, "a", -ENOENT);
}

static void a_replaced_open_file_goes_on_working(void **state)
{
	struct harness *h = *state;
	struct node *old, *new;
	struct vfs_file *file = create_file(h, h->root, "target", &old);
	assert_int_equal(write_text(h, file, 0, "old", 0), 0);
	struct vfs_file *source = create_file(h, h->root, "source", &new);
	assert_int_equal(write_text(h, source, 0, "newer", 0), 0);
	close_file(h, source);
	uint64_t ino = stat_of(h, new).st_ino;
	assert_int_equal(vfs_rename(h->vfs, h->root, "source", h->root, "target", 0), 0);
	assert_true(io_handle_remote(file->handle)->unlinked);
	assert_ptr_equal(look(h, h->root, "target"), new);
	assert_int_equal(stat_of(h, new).st_ino, ino);
	/* the replaced one is read, written and asked about through its descriptor */
	assert_int_equal(write_text(h, file, 3, "er", 0), 0);
	assert_int_equal(vfs_flush(h->vfs, file), 0);
	assert_reads(h, file, "older");
	struct stat st = stat_of(h, old);
	assert_int_equal(st.st_size, 5);
	assert_int_equal(st.st_nlink, 0);
	close_file(h, file);
	assert_server_has(h, ROOT "/target", "newer");
}

static void rename_flags_are_obeyed(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/a", "a", 1, 1000);
	fake_put_file(h->fake, ROOT "/b", "b", 1, 1000);
	look(h, h->root, "a");
	look(h, h->root, "b");
	assert_int_equal(vfs_rename(h->vfs, h->root, "a", h->root, "b", RENAME_NOREPLACE),
	                 -EEXIST);
	assert_int_equal(vfs_rename(h->vfs, h->root, "a", h->root, "b", RENAME_EXCHANGE),
	                 -EINVAL);
	assert_int_equal(vfs_rename(h->vfs, h->root, "a", h->root, "c", RENAME_NOREPLACE), 0);
	assert_server_has(h, ROOT "/b", "b");
	assert_server_has(h, ROOT "/c", "a");
}

static void a_directory_does_not_go_into_itself(void **state)
{
	struct harness *h = *state;
	struct node *a = make_dir(h, h->root, "a"), *b = make_dir(h, a, "b");
	assert_int_equal(vfs_rename(h->vfs, h->root, "a", b, "c", 0), -EINVAL);
	assert_int_equal(asked(h, OP_RENAME), 0);
	assert_int_equal(vfs_rename(h->vfs, a, "b", h->root, "b", 0), 0);
}

struct call {
	struct harness *harness;
	struct node *node;
	int err;
	struct stat st;
};

static void *run_getattr(void *argument)
{
	struct call *call = argument;
	uint64_t valid_ns;
	call->err = vfs_getattr(call->harness->vfs, call->node, NULL, &call->st, &valid_ns);
	return NULL;
}

static void *run_rename(void *argument)
{
	struct call *call = argument;
	call->err = vfs_rename(call->harness->vfs, call->harness->root, "d",
	                       call->harness->root, "e", 0);
	return NULL;
}

static void expire(struct harness *h, struct node *node)
{
	NODES_SCOPE(&h->vfs->nodes);
	node->attr_asked_ns = 0;
}

static void a_path_that_a_rename_made_wrong_is_built_anew(void **state)
{
	struct harness *h = *state;
	struct node *d = make_dir(h, h->root, "d"), *f;
	close_file(h, create_file(h, d, "f", &f));
	expire(h, f);
	fake_reset_counts(h->fake);
	fake_hold(h->fake, OP_LSTAT, true);
	struct call call = {.harness = h, .node = f}, move = {.harness = h};
	pthread_t asker, mover;
	assert_int_equal(pthread_create(&asker, NULL, run_getattr, &call), 0);
	fake_wait_count(h->fake, OP_LSTAT, 1);
	assert_int_equal(pthread_create(&mover, NULL, run_rename, &move), 0);
	pthread_join(mover, NULL);
	assert_int_equal(move.err, 0);
	fake_hold(h->fake, OP_LSTAT, false);
	pthread_join(asker, NULL);
	assert_int_equal(call.err, 0);
	assert_int_equal(asked(h, OP_LSTAT), 2);
	assert_int_equal(h->vfs->counters.path_retries, 1);
}

static void a_missing_path_waits_for_the_rename_under_way(void **state)
{
	struct harness *h = *state;
	struct node *d = make_dir(h, h->root, "d"), *f;
	close_file(h, create_file(h, d, "f", &f));
	expire(h, f);
	fake_reset_counts(h->fake);
	/* as if the server had renamed already, and its answer were on the way */
	fake_fail_next(h->fake, OP_LSTAT, 0, -ENOENT);
	fake_hold(h->fake, OP_RENAME, true);
	struct call call = {.harness = h, .node = f}, move = {.harness = h};
	pthread_t asker, mover;
	assert_int_equal(pthread_create(&mover, NULL, run_rename, &move), 0);
	fake_wait_count(h->fake, OP_RENAME, 1);
	assert_int_equal(pthread_create(&asker, NULL, run_getattr, &call), 0);
	fake_wait_count(h->fake, OP_LSTAT, 1);
	const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
	nanosleep(&pause, NULL); /* time to give up too early */
	fake_hold(h->fake, OP_RENAME, false);
	pthread_join(mover, NULL);
	pthread_join(asker, NULL);
	assert_int_equal(move.err, 0);
	assert_int_equal(call.err, 0);
}

static void a_failed_rename_leaves_the_names_as_they_were(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/a", "a", 1, 1000);
	struct node *a = look(h, h->root, "a");
	fake_fail_next(h->fake, OP_RENAME, 0, -EACCES);
	assert_int_equal(vfs_rename(h->vfs, h->root, "a", h->root, "b", 0), -EACCES);
	assert_int_equal(h->entry_events, 0);
	/* when it is not known whether it happened, the server is asked again */
	fake_fail_next(h->fake, OP_RENAME, 0, -ETIMEDOUT);
	fake_reset_counts(h->fake);
	assert_int_equal(vfs_rename(h->vfs, h->root, "a", h->root, "b", 0), -ETIMEDOUT);
	assert_int_equal(h->entry_events, 2);
	fake_reset_counts(h->fake);
	assert_ptr_equal(look(h, h->root, "a"), a);
	look_fails(h, h->root, "b", -ENOENT);
	assert_int_equal(asked(h, OP_LSTAT), 2);
}

/* ---- unlink and links ---- */

static void an_unlinked_open_file_goes_on_working(void **state)
{
	struct harness *h = *state;
	struct node *node;
	struct vfs_file *file = create_file(h, h->root, "f", &node);
	assert_int_equal(write_text(h, file, 0, "text", 0), 0);
	assert_int_equal(vfs_unlink(h->vfs, h->root, "f"), 0);
	assert_true(io_handle_remote(file->handle)->unlinked);
	assert_false(fake_exists(h->fake, ROOT "/f"));
	look_fails(h, h->root, "f", -ENOENT);
	struct stat st = stat_of(h, node);
	assert_int_equal(st.st_size, 4);
	assert_int_equal(st.st_nlink, 0);
	const struct stat cut = {.st_size = 2};
	uint64_t valid_ns;
	assert_int_equal(vfs_setattr(h->vfs, node, NULL, VFS_SET_SIZE, &cut, &st, &valid_ns),
	                 0);
	assert_int_equal(st.st_size, 2);
	assert_reads(h, file, "te");
	/* a second descriptor, as by /proc/self/fd */
	struct vfs_file *again = open_file(h, node, O_RDONLY);
	assert_reads(h, again, "te");
	close_file(h, again);
	/* a new file of the name is another one */
	struct node *other;
	close_file(h, create_file(h, h->root, "f", &other));
	assert_ptr_not_equal(other, node);
	assert_true(stat_of(h, other).st_ino != st.st_ino);
	close_file(h, file);
	forget(h, node);
	forget(h, other);
	assert_int_equal(nodes_known(h), 1);
	struct vfs_open_info info;
	struct node *gone;
	close_file(h, create_file(h, h->root, "g", &gone));
	assert_int_equal(vfs_unlink(h->vfs, h->root, "g"), 0);
	assert_int_equal(vfs_open(h->vfs, gone, O_RDONLY, &info), -ENOENT);
}

static void hard_links_are_one_file(void **state)
{
	struct harness *h = *state;
	struct node *d = make_dir(h, h->root, "d"), *node;
	struct vfs_file *file = create_file(h, h->root, "a", &node);
	assert_int_equal(write_text(h, file, 0, "one", 0), 0);
	struct vfs_entry entry;
	assert_int_equal(vfs_link(h->vfs, node, d, "b", &entry), 0);
	assert_ptr_equal(entry.node, node);
	assert_int_equal(entry.st.st_nlink, 2);
	assert_ptr_equal(look(h, d, "b"), node);
	/* one name goes, the file stays linked */
	assert_int_equal(vfs_unlink(h->vfs, h->root, "a"), 0);
	assert_false(io_handle_remote(file->handle)->unlinked);
	char *path = NULL;
	assert_int_equal(node_path(&h->vfs->nodes, node, NULL, &path), 0);
	assert_string_equal(path, ROOT "/d/b");
	free(path);
	assert_int_equal(stat_of(h, node).st_nlink, 1);
	assert_int_equal(write_text(h, file, 3, " two", 0), 0);
	close_file(h, file);
	assert_server_has(h, ROOT "/d/b", "one two");
	assert_int_equal(vfs_unlink(h->vfs, d, "b"), 0);
	assert_int_equal(stat_of(h, d).st_nlink, 1);
}

static void an_open_file_follows_the_name_that_is_left(void **state)
{
	struct harness *h = *state;
	struct node *node;
	struct vfs_file *file = create_file(h, h->root, "a", &node);
	struct vfs_entry entry;
	assert_int_equal(vfs_link(h->vfs, node, h->root, "b", &entry), 0);
	assert_int_equal(vfs_unlink(h->vfs, h->root, "a"), 0);
	char *path = remote_file_path(io_handle_remote(file->handle));
	assert_string_equal(path, ROOT "/b");
	free(path);
	close_file(h, file);
}

static void hard_links_share_the_number_after_a_forget(void **state)
{
	struct harness *h = *state;
	struct node *node;
	close_file(h, create_file(h, h->root, "a", &node));
	uint64_t ino = stat_of(h, node).st_ino;
	struct vfs_entry entry;
	assert_int_equal(vfs_link(h->vfs, node, h->root, "b", &entry), 0);
	vfs_forget(h->vfs, node, 2);
	assert_int_equal(nodes_known(h), 1);
	struct node *b = look(h, h->root, "b"), *a = look(h, h->root, "a");
	assert_ptr_equal(a, b);
	struct stat st = stat_of(h, a);
	assert_int_equal(st.st_ino, ino);
	assert_int_equal(st.st_nlink, 2);
}

static void links_are_counted_also_where_no_name_is_known(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.attr_timeout_ns = config.entry_timeout_ns = config.negative_timeout_ns = 0;
	harness_configure(h, &config);
	struct node *node;
	close_file(h, create_file(h, h->root, "a", &node));
	struct vfs_entry entry;
	assert_int_equal(vfs_link(h->vfs, node, h->root, "b", &entry), 0);
	vfs_forget(h->vfs, node, 2);
	assert_int_equal(nodes_known(h), 1);
	struct node *a = look(h, h->root, "a");
	assert_int_equal(stat_of(h, a).st_nlink, 2);
	/* gone behind our back: seen at the next look */
	fake_remove(h->fake, ROOT "/b");
	look_fails(h, h->root, "b", -ENOENT);
	assert_int_equal(stat_of(h, a).st_nlink, 1);
}

static void a_removed_directory_is_shown_to_who_is_in_it(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.attr_timeout_ns = 0;
	harness_configure(h, &config);
	struct node *d = make_dir(h, h->root, "d");
	assert_int_equal(vfs_rmdir(h->vfs, h->root, "d"), 0);
	struct stat st = stat_of(h, d);
	assert_true(S_ISDIR(st.st_mode));
	assert_int_equal(st.st_nlink, 0);
	struct vfs_entry entry;
	assert_int_equal(vfs_mkdir(h->vfs, d, "in it", 0755, &entry), -ENOENT);
}

static void unlink_waits_for_the_writes_of_who_has_the_file_open(void **state)
{
	struct harness *h = *state;
	struct node *node;
	struct vfs_file *file = create_file(h, h->root, "f", &node);
	fake_set_delay(h->fake, OP_WRITE, 100 * NS_PER_MS);
	assert_int_equal(write_text(h, file, 0, "temporary", 0), 0);
	assert_int_equal(vfs_unlink(h->vfs, h->root, "f"), 0);
	assert_false(io_file_dirty(node->io_file));
	assert_reads(h, file, "temporary");
	struct remote_file *remote_file = io_handle_remote(file->handle);
	assert_int_equal(remote_file->moving, 0);
	close_file(h, file);
}

static void a_link_that_somebody_replaced_is_parted(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.attr_timeout_ns = config.entry_timeout_ns = 0;
	harness_configure(h, &config);
	fake_put_file(h->fake, ROOT "/a", "same", 4, 1000);
	struct node *node = look(h, h->root, "a");
	struct vfs_entry entry;
	assert_int_equal(vfs_link(h->vfs, node, h->root, "b", &entry), 0);
	/* a change of the shared file is no reason */
	fake_put_file(h->fake, ROOT "/a", "changed", 7, 2000);
	assert_ptr_equal(look(h, h->root, "b"), node);
	fake_remove(h->fake, ROOT "/b");
	fake_put_file(h->fake, ROOT "/b", "another", 7, 3000);
	struct node *b = look(h, h->root, "b");
	assert_ptr_not_equal(b, node);
	assert_true(stat_of(h, b).st_ino != stat_of(h, node).st_ino);
	assert_int_equal(stat_of(h, node).st_mtim.tv_sec, 2000);
}

static void without_hard_links_the_errno_is_that_of_link(void **state)
{
	struct harness *h = *state;
	fake_put_file(h->fake, ROOT "/a", "a", 1, 1000);
	struct vfs_entry entry;
	h->remote->caps.hardlink = false;
	assert_int_equal(vfs_link(h->vfs, look(h, h->root, "a"), h->root, "b", &entry), -EPERM);
	h->remote->caps.hardlink = true;
	struct vfs_config config = harness_config();
	config.disable_hardlink = true;
	harness_configure(h, &config);
	assert_int_equal(vfs_link(h->vfs, look(h, h->root, "a"), h->root, "b", &entry), -EPERM);
	assert_int_equal(asked(h, OP_LINK), 0);
}

static void names_are_made_and_removed(void **state)
{
	struct harness *h = *state;
	struct vfs_entry entry;
	assert_int_equal(vfs_mknod(h->vfs, h->root, "f", S_IFREG | 0640, &entry), 0);
	assert_int_equal(entry.st.st_mode, S_IFREG | 0640);
	assert_int_equal(vfs_mknod(h->vfs, h->root, "f", S_IFREG | 0640, &entry), -EEXIST);
	assert_int_equal(vfs_mknod(h->vfs, h->root, "p", S_IFIFO | 0640, &entry), -EPERM);
	assert_int_equal(vfs_mkdir(h->vfs, h->root, "f", 0755, &entry), -EEXIST);
	struct node *d = make_dir(h, h->root, "d");
	assert_int_equal(vfs_symlink(h->vfs, "../f", d, "l", &entry), 0);
	assert_true(S_ISLNK(entry.st.st_mode));
	assert_int_equal(vfs_rmdir(h->vfs, h->root, "d"), -ENOTEMPTY);
	assert_int_equal(vfs_unlink(h->vfs, h->root, "d"), -EISDIR);
	assert_int_equal(vfs_rmdir(h->vfs, h->root, "f"), -ENOTDIR);
	assert_int_equal(vfs_unlink(h->vfs, d, "l"), 0);
	assert_int_equal(vfs_rmdir(h->vfs, h->root, "d"), 0);
	assert_int_equal(vfs_unlink(h->vfs, h->root, "d"), -ENOENT);
	assert_true(fake_exists(h->fake, ROOT "/f"));
}

/* ---- symlinks ---- */

static void assert_target(struct harness *h, struct node *parent, const char *name, int err,
                          const char *target)
{
	char *text = NULL;
	assert_int_equal(vfs_readlink(h->vfs, look(h, parent, name), &text), err);
	if (target)
		assert_string_equal(text, target);
	free(text);
}

static void links_that_lead_out_of_the_mount_are_refused(void **state)
{
	struct harness *h = *state;
	fake_put_dir(h->fake, "/etc");
	fake_put_dir(h->fake, ROOT "/d");
	fake_put_dir(h->fake, ROOT "/d/e");
	fake_put_symlink(h->fake, "/alias", ROOT "/d");
	fake_put_symlink(h->fake, ROOT "/self", ".");
	fake_put_symlink(h->fake, ROOT "/out", "/etc/passwd");
	fake_put_symlink(h->fake, ROOT "/up", "../../etc");
	fake_put_symlink(h->fake, ROOT "/trick", "self/../etc");
	fake_put_symlink(h->fake, ROOT "/fine", "d/../d/e");
	fake_put_symlink(h->fake, ROOT "/d/in", ROOT "/d/e/f");
	fake_put_symlink(h->fake, ROOT "/d/other", "/alias/e");
	struct node *d = look(h, h->root, "d");
	assert_target(h, h->root, "self", 0, ".");
	assert_target(h, h->root, "out", -EPERM, NULL);
	assert_target(h, h->root, "up", -EPERM, NULL);
	assert_target(h, h->root, "trick", -EPERM, NULL);
	assert_target(h, h->root, "fine", 0, "d/e");
	assert_target(h, d, "in", 0, "e/f");
	assert_target(h, d, "other", 0, "e");
	assert_int_equal(stat_of(h, look(h, h->root, "out")).st_mode & S_IFMT, S_IFLNK);
}

static void moved_links_are_read_anew(void **state)
{
	struct harness *h = *state;
	struct node *a = make_dir(h, h->root, "a"), *b = make_dir(h, a, "b");
	struct vfs_entry entry;
	assert_int_equal(vfs_symlink(h->vfs, ROOT "/x", b, "l", &entry), 0);
	assert_target(h, b, "l", 0, "../../x");
	assert_int_equal(vfs_rename(h->vfs, a, "b", h->root, "b", 0), 0);
	assert_int_equal(h->data_events, 1);
	assert_target(h, b, "l", 0, "../x");
}

static void the_server_resolves_links_when_asked_to(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.follow_symlinks = true;
	harness_configure(h, &config);
	fake_put_file(h->fake, "/srv/data", "12345", 5, 1000);
	fake_put_symlink(h->fake, ROOT "/l", "../data");
	fake_put_symlink(h->fake, ROOT "/dangling", "nowhere");
	struct stat st = stat_of(h, look(h, h->root, "l"));
	assert_int_equal(st.st_mode & S_IFMT, S_IFREG);
	assert_int_equal(st.st_size, 5);
	assert_true(S_ISLNK(stat_of(h, look(h, h->root, "dangling")).st_mode));
	assert_int_equal(vfs_unlink(h->vfs, h->root, "l"), 0);
	assert_true(fake_exists(h->fake, "/srv/data"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(forgetting_all_lookups_leaves_the_root_alone),
	    TEST(fresh_names_are_answered_without_the_server),
	    TEST(missing_names_are_remembered),
	    TEST(fixed_timeouts_replace_adaptive_ones),
	    TEST(a_name_that_is_too_long_is_refused),
	    TEST(another_kind_of_file_is_another_node),
	    TEST(answers_older_than_our_change_of_the_name_are_not_entered),
	    TEST(a_file_that_somebody_removed_is_looked_up_anew),
	    TEST(numbers_are_the_same_after_a_forget),
	    TEST(the_whole_server_can_be_mounted),
	    TEST(renaming_a_directory_moves_its_open_files),
	    TEST(a_replaced_open_file_goes_on_working),
	    TEST(rename_flags_are_obeyed),
	    TEST(a_directory_does_not_go_into_itself),
	    TEST(a_path_that_a_rename_made_wrong_is_built_anew),
	    TEST(a_missing_path_waits_for_the_rename_under_way),
	    TEST(a_failed_rename_leaves_the_names_as_they_were),
	    TEST(an_unlinked_open_file_goes_on_working),
	    TEST(hard_links_are_one_file),
	    TEST(an_open_file_follows_the_name_that_is_left),
	    TEST(hard_links_share_the_number_after_a_forget),
	    TEST(links_are_counted_also_where_no_name_is_known),
	    TEST(a_removed_directory_is_shown_to_who_is_in_it),
	    TEST(unlink_waits_for_the_writes_of_who_has_the_file_open),
	    TEST(a_link_that_somebody_replaced_is_parted),
	    TEST(without_hard_links_the_errno_is_that_of_link),
	    TEST(names_are_made_and_removed),
	    TEST(links_that_lead_out_of_the_mount_are_refused),
	    TEST(moved_links_are_read_anew),
	    TEST(the_server_resolves_links_when_asked_to),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
