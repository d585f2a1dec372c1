/* Directories listed ahead of the program that walks through them, over the fake server. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vfs/prefetch_internal.h"
#include "vfs_harness.h"

/* What a walk found. */
struct found {
	unsigned dirs, files;
	bool reads;          /* the files, too */
	unsigned stop_after; /* directories; 0: never */
};

struct names {
	char (*names)[32];
	bool *is_dir;
	unsigned count, capacity;
};

static int collect(void *context, const char *name, const struct vfs_entry *entry,
                   uint64_t next_offset)
{
	(void)next_offset;
	struct names *names = context;
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (names->count == names->capacity) {
		names->capacity = names->capacity ? names->capacity * 2 : 64;
		names->names = realloc(names->names, names->capacity * sizeof(names->names[0]));
		names->is_dir = realloc(names->is_dir, names->capacity * sizeof(bool));
		assert_true(names->names && names->is_dir);
	}
	snprintf(names->names[names->count], sizeof(names->names[0]), "%s", name);
	names->is_dir[names->count++] = S_ISDIR(entry->st.st_mode);
	return 0;
}

static void names_release(struct names *names)
{
	free(names->names);
	free(names->is_dir);
}

static struct names list_names(struct harness *h, struct node *dir)
{
	struct names names = {0};
	struct vfs_dir *open;
	bool keep;
	assert_int_equal(vfs_opendir(h->vfs, dir, &open, &keep), 0);
	assert_int_equal(vfs_readdir(h->vfs, open, 0, false, collect, &names), 0);
	vfs_releasedir(h->vfs, open);
	return names;
}

static void visit(struct harness *h, struct node *dir)
{
	struct names names = list_names(h, dir);
	names_release(&names);
}

/* As find does: a directory, then what is below it, by its listing. */
static void walk(struct harness *h, struct node *dir, struct found *found)
{
	if (found->stop_after && found->dirs == found->stop_after)
		return;
	struct names names = list_names(h, dir);
	found->dirs++;
	for (unsigned i = 0; i < names.count; i++) {
		if (!names.is_dir[i])
			found->files++;
		if (!names.is_dir[i] && !found->reads)
			continue;
		struct node *node = look(h, dir, names.names[i]);
		if (names.is_dir[i]) {
			walk(h, node, found);
		} else {
			struct vfs_file *file = open_file(h, node, O_RDONLY);
			assert_reads(h, file, names.names[i]);
			close_file(h, file);
		}
		forget(h, node);
	}
	names_release(&names);
}

/* So many directories with so many files each, whose contents are their names. */
static void make_tree(struct harness *h, const char *at, unsigned dirs, unsigned files)
{
	for (unsigned i = 0; i < dirs; i++) {
		char path[128];
		snprintf(path, sizeof(path), "%s/d%03u", at, i);
		fake_put_dir(h->fake, path);
		for (unsigned j = 0; j < files; j++) {
			char file[160], name[32];
			snprintf(name, sizeof(name), "f%02u", j);
			snprintf(file, sizeof(file), "%s/%s", path, name);
			fake_put_file(h->fake, file, name, strlen(name), 1000);
		}
	}
}

static unsigned ahead_count(struct harness *h)
{
	NODES_SCOPE(&h->vfs->nodes);
	return h->vfs->prefetch->ahead_count;
}

static uint64_t waste(struct harness *h)
{
	LOCK_SCOPE(&h->vfs->prefetch->lock);
	return h->vfs->prefetch->dir_pace.waste;
}

/* ---- walks ---- */

static void a_flat_tree_is_listed_ahead(void **state)
{
	struct harness *h = *state;
	make_tree(h, ROOT, 100, 5);
	fake_set_delay(h->fake, OP_LIST, 5 * NS_PER_MS);
	struct found found = {0};
	walk(h, h->root, &found);
	assert_int_equal(found.dirs, 101);
	assert_int_equal(found.files, 500);
	assert_int_equal(asked(h, OP_LIST), 101);
	assert_int_equal(asked(h, OP_LSTAT), 0);
	/* those ahead, and the one that the program waits for */
	assert_in_range(fake_peak(h->fake, OP_LIST), 8, PREFETCH_DIRS_MAX + 1);
	assert_int_equal(h->vfs->prefetch->dir_pace.hits, 98);
	assert_int_equal(ahead_count(h), 0);
}

static void a_deep_tree_is_listed_ahead(void **state)
{
	struct harness *h = *state;
	for (unsigned i = 0; i < 5; i++) {
		char path[64];
		snprintf(path, sizeof(path), ROOT "/top%u", i);
		fake_put_dir(h->fake, path);
		make_tree(h, path, 6, 1);
		snprintf(path, sizeof(path), ROOT "/top%u/d003", i);
		make_tree(h, path, 4, 1);
	}
	struct found found = {0};
	walk(h, h->root, &found);
	assert_int_equal(found.dirs, 1 + 5 + 5 * 6 + 5 * 4);
	assert_int_equal(asked(h, OP_LIST), found.dirs);
	assert_true(h->vfs->prefetch->dir_pace.hits > found.dirs / 2);
	assert_int_equal(waste(h), 0);
}

static void files_are_fetched_in_directories_ahead(void **state)
{
	struct harness *h = *state;
	make_tree(h, ROOT, 40, 5);
	fake_set_delay(h->fake, OP_FETCH, 2 * NS_PER_MS);
	struct found found = {.reads = true};
	walk(h, h->root, &found);
	assert_int_equal(found.files, 200);
	/* the first directories' first files show how it goes */
	assert_true(asked(h, OP_OPEN) <= 6);
	assert_int_equal(asked(h, OP_OPEN) + asked(h, OP_FETCH), 200);
	assert_int_equal(h->vfs->prefetch->file_pace.waste, 0);
}

static void one_directory_after_another_at_random_lists_little(void **state)
{
	struct harness *h = *state;
	make_tree(h, ROOT, 100, 1);
	struct names names = list_names(h, h->root);
	for (unsigned i = 0; i < 100; i++) {
		struct node *node = look(h, h->root, names.names[i * 37 % 100]);
		visit(h, node);
		forget(h, node);
	}
	names_release(&names);
	assert_int_equal(asked(h, OP_LIST), 101);
	assert_int_equal(waste(h) + ahead_count(h), 0);
}

static void a_walk_that_stops_leaves_little(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.dir_timeout_ns = 200 * NS_PER_MS;
	harness_configure(h, &config);
	make_tree(h, ROOT, 100, 1);
	struct found found = {.stop_after = 3};
	walk(h, h->root, &found);
	assert_true(ahead_count(h) <= PACE_START);
	assert_true(ahead_count(h) > 0);
	usleep(250 * 1000);
	/* The next walk finds them too old. */
	fake_reset_counts(h->fake);
	found = (struct found){.stop_after = 2};
	walk(h, h->root, &found);
	assert_true(waste(h) > 0);
	assert_int_equal(nodes_known(h) - 1, ahead_count(h));
}

static void nothing_is_listed_when_it_is_turned_off(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.prefetch = false;
	harness_configure(h, &config);
	make_tree(h, ROOT, 30, 1);
	struct found found = {0};
	walk(h, h->root, &found);
	assert_int_equal(fake_peak(h->fake, OP_LIST), 1);
	assert_int_equal(ahead_count(h), 0);
}

/* ---- what is seen ---- */

static bool has_name(const struct names *names, const char *name)
{
	for (unsigned i = 0; i < names->count; i++)
		if (strcmp(names->names[i], name) == 0)
			return true;
	return false;
}

static void our_own_changes_in_a_directory_ahead_are_seen(void **state)
{
	struct harness *h = *state;
	make_tree(h, ROOT, 20, 2);
	struct found found = {.stop_after = 3};
	walk(h, h->root, &found);
	/* d002 is listed, and nobody has seen it */
	struct node *dir = look(h, h->root, "d002"), *node;
	struct vfs_file *file = create_file(h, dir, "new", &node);
	close_file(h, file);
	assert_int_equal(vfs_unlink(h->vfs, dir, "f01"), 0);
	struct names names = list_names(h, dir);
	assert_int_equal(names.count, 2);
	assert_true(has_name(&names, "new"));
	assert_false(has_name(&names, "f01"));
	names_release(&names);
	/* one is removed, one renamed */
	assert_int_equal(vfs_unlink(h->vfs, look(h, h->root, "d003"), "f00"), 0);
	assert_int_equal(vfs_unlink(h->vfs, look(h, h->root, "d003"), "f01"), 0);
	assert_int_equal(vfs_rmdir(h->vfs, h->root, "d003"), 0);
	look_fails(h, h->root, "d003", -ENOENT);
	assert_int_equal(vfs_rename(h->vfs, h->root, "d004", h->root, "moved", 0), 0);
	names = list_names(h, look(h, h->root, "moved"));
	assert_int_equal(names.count, 2);
	names_release(&names);
}

static void a_listing_that_failed_ahead_is_asked_for_anew(void **state)
{
	struct harness *h = *state;
	make_tree(h, ROOT, 20, 2);
	fake_fail_next(h->fake, OP_LIST, 3, -EACCES);
	struct found found = {0};
	walk(h, h->root, &found);
	assert_int_equal(found.dirs, 21);
	assert_int_equal(found.files, 40);
	assert_int_equal(asked(h, OP_LIST), 22);
}

static void a_huge_directory_is_not_listed_ahead_to_its_end(void **state)
{
	struct harness *h = *state;
	make_tree(h, ROOT, 4, 1);
	for (unsigned i = 0; i < 20000; i++) {
		char path[64];
		snprintf(path, sizeof(path), ROOT "/d002/%06u", i);
		fake_put_file(h->fake, path, "", 0, 1);
	}
	struct found found = {0};
	walk(h, h->root, &found);
	assert_int_equal(found.files, 20004);
	assert_true(h->vfs->listings_bytes <= harness_config().dir_cache_bytes);
}

static void a_listing_renews_its_directory(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.attr_timeout_ns = config.entry_timeout_ns = NS_PER_SEC;
	harness_configure(h, &config);
	make_tree(h, ROOT, 20, 1);
	struct node *late = look(h, h->root, "d003");
	assert_non_null(late);
	visit(h, h->root);
	usleep(600 * 1000);
	for (unsigned i = 0; i < 2; i++) {
		char name[32];
		snprintf(name, sizeof(name), "d%03u", i);
		visit(h, look(h, h->root, name));
	}
	usleep(600 * 1000);
	assert_true(ahead_count(h) > 0);
	fake_reset_counts(h->fake);
	assert_ptr_equal(look(h, h->root, "d003"), late);
	assert_int_equal(asked(h, OP_LSTAT), 0);
	visit(h, late);
	/* its own listing was there, others were asked for behind it */
	assert_int_equal(h->vfs->prefetch->dir_pace.hits, 1);
}

static void unmounting_ends_what_is_under_way(void **state)
{
	struct harness *h = *state;
	make_tree(h, ROOT, 30, 1);
	struct found found = {.stop_after = 2};
	walk(h, h->root, &found);
	fake_hold(h->fake, OP_LIST, true);
	uint64_t start_ns = clock_now_ns();
	const struct vfs_config config = harness_config();
	harness_configure(h, &config);
	assert_true(clock_now_ns() - start_ns < 2 * NS_PER_SEC);
	fake_hold(h->fake, OP_LIST, false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_flat_tree_is_listed_ahead),
	    TEST(a_deep_tree_is_listed_ahead),
	    TEST(files_are_fetched_in_directories_ahead),
	    TEST(one_directory_after_another_at_random_lists_little),
	    TEST(a_walk_that_stops_leaves_little),
	    TEST(nothing_is_listed_when_it_is_turned_off),
	    TEST(our_own_changes_in_a_directory_ahead_are_seen),
	    TEST(a_listing_that_failed_ahead_is_asked_for_anew),
	    TEST(a_huge_directory_is_not_listed_ahead_to_its_end),
	    TEST(a_listing_renews_its_directory),
	    TEST(unmounting_ends_what_is_under_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
