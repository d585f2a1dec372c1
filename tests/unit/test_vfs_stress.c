/*
 * Many threads look up, list, make, rename, write, remove and forget in the same few
 * directories. What is checked: no call fails in a way that a local file system would not,
 * every count comes back to zero; and by the sanitizers, that nobody touches what is gone or
 * races.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vfs_harness.h"

enum { THREADS = 6, ROUNDS = 400, DIRS = 3, NAMES = 5, KEPT = 16 };

struct worker {
	struct harness *harness;
	struct node **dirs;
	unsigned seed;
	pthread_t thread;
	struct node *kept[KEPT]; /* counted lookups of ours */
};

static unsigned dice(struct worker *worker, unsigned sides)
{
	return (unsigned)rand_r(&worker->seed) % sides;
}

/* As a kernel: what it keeps is forgotten some time later. */
static void keep(struct worker *worker, struct node *node)
{
	unsigned slot = dice(worker, KEPT);
	if (worker->kept[slot])
		forget(worker->harness, worker->kept[slot]);
	worker->kept[slot] = node;
}

static const char *any_name(struct worker *worker)
{
	static const char *const names[NAMES] = {"a", "b", "c", "d", "e"};
	return names[dice(worker, NAMES)];
}

static struct node *any_dir(struct worker *worker)
{
	return worker->dirs[dice(worker, DIRS)];
}

/*
 * Anything else is wrong. EIO is what remains of a server's unexplained failure, and EACCES of
 * its EPERM (a directory cannot be linked), when another thread has removed the reason before
 * it was looked for.
 */
static void assert_local_error(int err)
{
	static const int usual[] = {0,      ENOENT, EEXIST, EISDIR, ENOTDIR, ENOTEMPTY,
	                            ESTALE, EBUSY,  EPERM,  EIO,    EACCES};
	for (size_t i = 0; i < ARRAY_LEN(usual); i++)
		if (err == -usual[i])
			return;
	/* a test cannot fail from another thread than its own */
	fprintf(stderr, "unexpected error: %s\n", strerror(-err));
	abort();
}

static void do_lookup(struct worker *worker)
{
	struct vfs_entry entry;
	int err = vfs_lookup(worker->harness->vfs, any_dir(worker), any_name(worker), &entry);
	assert_local_error(err);
	if (!err)
		keep(worker, entry.node);
}

static void do_stat(struct worker *worker)
{
	struct node *node = worker->kept[dice(worker, KEPT)];
	struct stat st;
	uint64_t valid_ns;
	if (node)
		assert_local_error(
		    vfs_getattr(worker->harness->vfs, node, NULL, &st, &valid_ns));
}

static void do_chmod(struct worker *worker)
{
	struct node *node = worker->kept[dice(worker, KEPT)];
	struct stat st, values = {.st_mode = 0600 + dice(worker, 64)};
	uint64_t valid_ns;
	if (node)
		assert_local_error(vfs_setattr(worker->harness->vfs, node, NULL, VFS_SET_MODE,
		                               &values, &st, &valid_ns));
}

static void do_create(struct worker *worker)
{
	struct harness *h = worker->harness;
	struct vfs_entry entry;
	struct vfs_open_info info;
	int err = vfs_create(h->vfs, any_dir(worker), any_name(worker), 0644,
	                     O_RDWR | O_CREAT | (dice(worker, 2) ? O_EXCL : 0), &entry, &info);
	assert_local_error(err);
	if (err)
		return;
	write_text(h, info.file, 0, "some text", 0);
	do_lookup(worker);
	assert_local_error(vfs_flush(h->vfs, info.file));
	vfs_release(h->vfs, info.file);
	keep(worker, entry.node);
}

static void do_open(struct worker *worker)
{
	struct node *node = worker->kept[dice(worker, KEPT)];
	struct vfs_open_info info;
	if (!node || !node_is_regular(node))
		return;
	int err = vfs_open(worker->harness->vfs, node, O_RDONLY, &info);
	assert_local_error(err);
	if (!err)
		vfs_release(worker->harness->vfs, info.file);
}

static void do_unlink(struct worker *worker)
{
	assert_local_error(vfs_unlink(worker->harness->vfs, any_dir(worker), any_name(worker)));
}

static void do_mkdir(struct worker *worker)
{
	struct vfs_entry entry;
	int err =
	    vfs_mkdir(worker->harness->vfs, any_dir(worker), any_name(worker), 0755, &entry);
	assert_local_error(err);
	if (!err)
		keep(worker, entry.node);
}

static void do_rmdir(struct worker *worker)
{
	assert_local_error(vfs_rmdir(worker->harness->vfs, any_dir(worker), any_name(worker)));
}

static void do_rename(struct worker *worker)
{
	assert_local_error(vfs_rename(worker->harness->vfs, any_dir(worker), any_name(worker),
	                              any_dir(worker), any_name(worker), 0));
}

static void do_link(struct worker *worker)
{
	struct node *node = worker->kept[dice(worker, KEPT)];
	struct vfs_entry entry;
	if (!node || !node_is_regular(node))
		return;
	int err =
	    vfs_link(worker->harness->vfs, node, any_dir(worker), any_name(worker), &entry);
	assert_local_error(err);
	if (!err)
		keep(worker, entry.node);
}

static int take(void *context, const char *name, const struct vfs_entry *entry,
                uint64_t next_offset)
{
	struct worker *worker = context;
	(void)name;
	(void)next_offset;
	if (dice(worker, 4) == 0)
		return 1;
	if (entry->node)
		keep(worker, entry->node);
	return 0;
}

static void do_list(struct worker *worker)
{
	struct vfs *vfs = worker->harness->vfs;
	struct vfs_dir *dir;
	bool keep_cache;
	int err = vfs_opendir(vfs, any_dir(worker), &dir, &keep_cache);
	assert_local_error(err);
	if (err)
		return;
	for (uint64_t offset = 0; offset < 8; offset += dice(worker, 4))
		assert_local_error(
		    vfs_readdir(vfs, dir, offset, dice(worker, 2), take, worker));
	vfs_releasedir(vfs, dir);
}

static void *work(void *argument)
{
	static void (*const actions[])(struct worker *) = {
	    do_lookup, do_lookup, do_stat,   do_chmod,  do_create, do_open, do_unlink,
	    do_mkdir,  do_rmdir,  do_rename, do_rename, do_link,   do_list};
	struct worker *worker = argument;
	for (int i = 0; i < ROUNDS; i++)
		actions[dice(worker, ARRAY_LEN(actions))](worker);
	for (size_t i = 0; i < KEPT; i++)
		if (worker->kept[i])
			forget(worker->harness, worker->kept[i]);
	return NULL;
}

static void threads_do_not_get_in_each_others_way(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.attr_min_ns = config.attr_max_ns = NS_PER_MS;
	harness_configure(h, &config);
	static const char *const names[DIRS] = {"x", "y", "z"};
	struct node *dirs[DIRS];
	for (size_t i = 0; i < DIRS; i++)
		dirs[i] = make_dir(h, h->root, names[i]);
	struct worker workers[THREADS] = {{.seed = 0}};
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){.harness = h, .dirs = dirs, .seed = i + 1};
		assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]),
		                 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(workers[i].thread, NULL);
	for (size_t i = 0; i < DIRS; i++)
		forget(h, dirs[i]);
	assert_int_equal(nodes_known(h), 1);
	assert_true(list_empty(&h->vfs->open_files));
	/* only the root's own negative entries may be left */
	assert_int_equal(h->vfs->nodes.dentries.count, h->vfs->nodes.negative_count);
	assert_int_equal(h->vfs->nodes.inodes.live.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(threads_do_not_get_in_each_others_way,
	                                    harness_setup, harness_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
