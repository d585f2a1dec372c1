/* Small files fetched ahead of the program that opens them, over the fake server. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vfs/prefetch_internal.h"
#include "vfs_harness.h"

enum { FILES_MAX = 400 };

/* The files of a directory as readdir gave them. */
struct files {
	unsigned count;
	struct node *nodes[FILES_MAX];
	char names[FILES_MAX][32];
};

static int collect(void *context, const char *name, const struct vfs_entry *entry,
                   uint64_t next_offset)
{
	(void)next_offset;
	struct files *files = context;
	if (!entry->node || !S_ISREG(entry->st.st_mode))
		return 0;
	assert_true(files->count < FILES_MAX);
	snprintf(files->names[files->count], sizeof(files->names[0]), "%s", name);
	files->nodes[files->count++] = entry->node;
	return 0;
}

static struct files *list_files(struct harness *h, struct node *dir)
{
	struct files *files = calloc(1, sizeof(*files));
	assert_non_null(files);
	struct vfs_dir *open;
	bool keep;
	assert_int_equal(vfs_opendir(h->vfs, dir, &open, &keep), 0);
	assert_int_equal(vfs_readdir(h->vfs, open, 0, true, collect, files), 0);
	vfs_releasedir(h->vfs, open);
	return files;
}

static void put(struct harness *h, const char *dir, const char *name, const char *text)
{
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fake_put_file(h->fake, path, text, strlen(text), 1000);
}

/* `count` files, each with its own name as contents. */
static struct files *make_files(struct harness *h, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		char name[32];
		snprintf(name, sizeof(name), "f%03u", i);
		put(h, ROOT, name, name);
	}
	return list_files(h, h->root);
}

static void read_file(struct harness *h, const struct files *files, unsigned i,
                      const char *text)
{
	struct vfs_file *file = open_file(h, files->nodes[i], O_RDONLY);
	assert_reads(h, file, text);
	close_file(h, file);
}

/* Opens the first two, so that those behind them are fetched, and waits for these. */
static void start_reading(struct harness *h, const struct files *files)
{
	read_file(h, files, 0, files->names[0]);
	read_file(h, files, 1, files->names[1]);
	fake_wait_count(h->fake, OP_FETCH, PACE_START);
	for (;;) {
		LOCK_SCOPE(&h->vfs->prefetch->lock);
		if (!h->vfs->prefetch->under_way)
			return;
	}
}

static void configure(struct harness *h, struct vfs_config config)
{
	harness_configure(h, &config);
}

/* ---- what is fetched ---- */

static void files_in_order_are_fetched_before_they_are_opened(void **state)
{
	struct harness *h = *state;
	struct files *files = make_files(h, 300);
	fake_set_delay(h->fake, OP_OPEN, 5 * NS_PER_MS);
	fake_set_delay(h->fake, OP_FETCH, 10 * NS_PER_MS);
	fake_reset_counts(h->fake);
	for (unsigned i = 0; i < files->count; i++)
		read_file(h, files, i, files->names[i]);
	assert_int_equal(asked(h, OP_OPEN), 2);
	assert_int_equal(asked(h, OP_FETCH), 298);
	assert_int_equal(asked(h, OP_READ), 2);
	assert_int_equal(asked(h, OP_LSTAT), 0);
	assert_in_range(fake_peak(h->fake, OP_FETCH), 16, PACE_PER_LANE);
	assert_int_equal(h->vfs->prefetch->file_pace.hits, 298);
	assert_int_equal(h->vfs->prefetch->file_pace.waste, 0);
	free(files);
}

static void who_only_looks_fetches_nothing(void **state)
{
	struct harness *h = *state;
	struct files *files = make_files(h, 50);
	for (unsigned i = 0; i < files->count; i++) {
		look(h, h->root, files->names[i]);
		stat_of(h, files->nodes[i]);
	}
	assert_int_equal(asked(h, OP_FETCH), 0);
	free(files);
}

static void writers_fetch_nothing(void **state)
{
	struct harness *h = *state;
	struct files *files = make_files(h, 50);
	for (unsigned i = 0; i < files->count; i++)
		close_file(h, open_file(h, files->nodes[i], O_RDWR));
	assert_int_equal(asked(h, OP_FETCH), 0);
	free(files);
}

static void large_files_are_left_to_their_reader(void **state)
{
	struct harness *h = *state;
	char *large = calloc(1, IO_WHOLE_MAX + 1);
	assert_non_null(large);
	for (char name[] = "a"; name[0] <= 'z'; name[0]++) {
		char path[64];
		snprintf(path, sizeof(path), ROOT "/%s", name);
		fake_put_file(h->fake, path, large,
		              name[0] % 2 ? IO_WHOLE_MAX + 1 : IO_WHOLE_MAX, 1000);
	}
	struct files *files = list_files(h, h->root);
	for (unsigned i = 0; i < 4; i++)
		close_file(h, open_file(h, files->nodes[i], O_RDONLY));
	assert_true(asked(h, OP_FETCH) > 0);
	assert_true(fake_largest(h->fake, OP_FETCH) <= IO_WHOLE_MAX);
	/* and what lies behind a huge one is too far away */
	LOCK_SCOPE(&h->vfs->prefetch->lock);
	assert_int_equal(h->vfs->prefetch->refused, 0);
	free(files);
	free(large);
}

static void empty_files_are_fetched_too(void **state)
{
	struct harness *h = *state;
	for (unsigned i = 0; i < 30; i++) {
		char name[32];
		snprintf(name, sizeof(name), "e%02u", i);
		put(h, ROOT, name, "");
	}
	struct files *files = list_files(h, h->root);
	for (unsigned i = 0; i < files->count; i++)
		read_file(h, files, i, "");
	assert_int_equal(asked(h, OP_OPEN), 2);
	assert_int_equal(h->vfs->counters.opens_fetched, 28);
	free(files);
}

static void what_was_read_is_not_fetched_in_the_same_pass(void **state)
{
	struct harness *h = *state;
	struct files *files = make_files(h, 60);
	for (unsigned i = 30; i < 60; i++)
		read_file(h, files, i, files->names[i]);
	assert_int_equal(asked(h, OP_FETCH) + asked(h, OP_OPEN), 30);
	for (unsigned i = 0; i < 30; i++)
		read_file(h, files, i, files->names[i]);
	assert_int_equal(asked(h, OP_FETCH) + asked(h, OP_OPEN), 60);
	/* but in the next one */
	for (unsigned i = 0; i < 60; i++)
		read_file(h, files, i, files->names[i]);
	assert_int_equal(asked(h, OP_FETCH) + asked(h, OP_OPEN), 120);
	assert_true(asked(h, OP_OPEN) <= 8);
	free(files);
}

static void nothing_is_fetched_when_it_is_turned_off(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.prefetch = false;
	configure(h, config);
	struct files *files = make_files(h, 50);
	for (unsigned i = 0; i < files->count; i++)
		read_file(h, files, i, files->names[i]);
	assert_int_equal(asked(h, OP_FETCH), 0);
	assert_int_equal(asked(h, OP_OPEN), 50);
	free(files);
}

static void memory_is_bounded(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.prefetch_bytes = 8 * 4096;
	configure(h, config);
	struct files *files = make_files(h, 300);
	fake_set_delay(h->fake, OP_FETCH, 2 * NS_PER_MS);
	for (unsigned i = 0; i < files->count; i++) {
		read_file(h, files, i, files->names[i]);
		LOCK_SCOPE(&h->vfs->prefetch->lock);
		assert_true(h->vfs->prefetch->bytes <= config.prefetch_bytes);
	}
	assert_in_range(fake_peak(h->fake, OP_FETCH), 2, 8);
	assert_int_equal(asked(h, OP_OPEN), 2);
	free(files);
}

static void what_is_not_wanted_is_let_go(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.attr_timeout_ns = 200 * NS_PER_MS;
	configure(h, config);
	struct files *files = make_files(h, 50);
	start_reading(h, files);
	usleep(300 * 1000);
	/* Any opening sees to it. */
	read_file(h, files, 40, files->names[40]);
	LOCK_SCOPE(&h->vfs->prefetch->lock);
	assert_int_equal(h->vfs->prefetch->bytes, 0);
	assert_int_equal(h->vfs->prefetch->file_pace.waste, PACE_START);
	assert_true(h->vfs->prefetch->file_pace.width < PACE_START);
	free(files);
}

/* ---- what is seen ---- */

static void an_open_waits_for_the_fetch_under_way(void **state)
{
	struct harness *h = *state;
	struct files *files = make_files(h, 20);
	fake_set_delay(h->fake, OP_FETCH, 50 * NS_PER_MS);
	read_file(h, files, 0, files->names[0]);
	read_file(h, files, 1, files->names[1]);
	fake_reset_counts(h->fake);
	read_file(h, files, 2, files->names[2]);
	assert_int_equal(asked(h, OP_OPEN), 0);
	assert_int_equal(asked(h, OP_READ), 0);
	assert_int_equal(h->vfs->prefetch->file_pace.waits, 1);
	free(files);
}

static void a_refused_file_is_opened(void **state)
{
	struct harness *h = *state;
	struct files *files = make_files(h, 20);
	fake_fail_next(h->fake, OP_FETCH, 0, -EACCES);
	fake_fail_next(h->fake, OP_OPEN, 2, -EACCES);
	start_reading(h, files);
	struct vfs_open_info info;
	assert_int_equal(vfs_open(h->vfs, files->nodes[2], O_RDONLY, &info), -EACCES);
	read_file(h, files, 3, files->names[3]);
	assert_int_equal(asked(h, OP_OPEN), 3);
	free(files);
}

static void a_change_by_others_is_seen_once_the_time_is_over(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.attr_timeout_ns = 300 * NS_PER_MS;
	configure(h, config);
	struct files *files = make_files(h, 20);
	start_reading(h, files);
	fake_put_file(h->fake, ROOT "/f002", "changed", 7, 2000);
	fake_put_file(h->fake, ROOT "/f003", "later", 5, 2000);
	/* it counts as validated */
	struct vfs_file *file = open_file(h, files->nodes[2], O_RDONLY);
	assert_reads(h, file, "f002");
	close_file(h, file);
	usleep(350 * 1000);
	file = open_file(h, files->nodes[2], O_RDONLY);
	assert_reads(h, file, "changed");
	close_file(h, file);
	file = open_file(h, files->nodes[3], O_RDONLY);
	assert_reads(h, file, "later");
	close_file(h, file);
	free(files);
}

static void a_change_that_was_seen_voids_what_was_fetched(void **state)
{
	struct harness *h = *state;
	struct files *files = make_files(h, 20);
	start_reading(h, files);
	fake_put_file(h->fake, ROOT "/f002", "changed", 7, 2000);
	assert_int_equal(attr_refresh(h->vfs, files->nodes[2], NULL, true), 0);
	read_file(h, files, 2, "changed");
	assert_int_equal(h->vfs->prefetch->late, 1);
	free(files);
}

static void our_own_changes_are_seen_at_once(void **state)
{
	struct harness *h = *state;
	struct files *files = make_files(h, 20);
	start_reading(h, files);
	struct vfs_file *file = open_file(h, files->nodes[2], O_WRONLY);
	assert_int_equal(write_text(h, file, 0, "WRITTEN", O_WRONLY), 0);
	/* before it is on the server */
	read_file(h, files, 2, "WRITTEN");
	close_file(h, file);
	read_file(h, files, 2, "WRITTEN");

	const struct stat cut = {.st_size = 1};
	struct stat st;
	uint64_t valid_ns;
	assert_int_equal(
	    vfs_setattr(h->vfs, files->nodes[3], NULL, VFS_SET_SIZE, &cut, &st, &valid_ns), 0);
	read_file(h, files, 3, "f");
	close_file(h, open_file(h, files->nodes[4], O_WRONLY | O_TRUNC));
	read_file(h, files, 4, "");
	free(files);
}

static void a_write_behind_a_fetch_is_not_lost_sight_of(void **state)
{
	struct harness *h = *state;
	struct files *files = make_files(h, 20);
	/* the fetch has left, and is answered with what was there before the write */
	fake_hold(h->fake, OP_FETCH, true);
	read_file(h, files, 0, files->names[0]);
	read_file(h, files, 1, files->names[1]);
	struct vfs_file *file = open_file(h, files->nodes[2], O_WRONLY);
	fake_hold(h->fake, OP_WRITE, true);
	assert_int_equal(write_text(h, file, 0, "NEW!", O_WRONLY), 0);
	fake_hold(h->fake, OP_FETCH, false);
	usleep(20 * 1000);
	fake_hold(h->fake, OP_WRITE, false);
	read_file(h, files, 2, "NEW!");
	close_file(h, file);
	free(files);
}

static void names_lead_to_what_is_there(void **state)
{
	struct harness *h = *state;
	struct files *files = make_files(h, 20);
	start_reading(h, files);
	/* removed, and made anew */
	assert_int_equal(vfs_unlink(h->vfs, h->root, "f002"), 0);
	look_fails(h, h->root, "f002", -ENOENT);
	struct node *node;
	struct vfs_file *file = create_file(h, h->root, "f002", &node);
	close_file(h, file);
	file = open_file(h, node, O_RDONLY);
	assert_reads(h, file, "");
	close_file(h, file);
	/* replaced */
	assert_int_equal(vfs_rename(h->vfs, h->root, "f004", h->root, "f003", 0), 0);
	file = open_file(h, look(h, h->root, "f003"), O_RDONLY);
	assert_reads(h, file, "f004");
	close_file(h, file);
	free(files);
}

static void a_renamed_directory_takes_nothing_along(void **state)
{
	struct harness *h = *state;
	fake_put_dir(h->fake, ROOT "/d");
	for (unsigned i = 0; i < 20; i++) {
		char name[32];
		snprintf(name, sizeof(name), "f%03u", i);
		put(h, ROOT "/d", name, name);
	}
	struct node *dir = look(h, h->root, "d");
	struct files *files = list_files(h, dir);
	start_reading(h, files);
	assert_int_equal(vfs_rename(h->vfs, h->root, "d", h->root, "e", 0), 0);
	fake_put_dir(h->fake, ROOT "/d");
	put(h, ROOT "/e", "f002", "after");
	read_file(h, files, 2, "after");
	free(files);
}

/* ---- files that the server has not opened ---- */

static void more_is_had_of_a_file_by_opening_it_late(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.attr_timeout_ns = 200 * NS_PER_MS;
	configure(h, config);
	struct files *files = make_files(h, 20);
	start_reading(h, files);
	struct vfs_file *file = open_file(h, files->nodes[2], O_RDONLY);
	assert_reads(h, file, "f002");
	assert_false(remote_file_has_handle(io_handle_remote(file->handle)));
	/* as a log grows */
	fake_put_file(h->fake, ROOT "/f002", "f002 and more", 13, 2000);
	usleep(250 * 1000);
	struct stat st;
	uint64_t valid_ns;
	assert_int_equal(vfs_getattr(h->vfs, files->nodes[2], file, &st, &valid_ns), 0);
	assert_int_equal(st.st_size, 13);
	assert_reads(h, file, "f002 and more");
	assert_true(remote_file_has_handle(io_handle_remote(file->handle)));
	close_file(h, file);
	free(files);
}

static void an_open_file_survives_its_name(void **state)
{
	struct harness *h = *state;
	struct files *files = make_files(h, 20);
	start_reading(h, files);
	struct vfs_file *removed = open_file(h, files->nodes[2], O_RDONLY);
	struct vfs_file *replaced = open_file(h, files->nodes[3], O_RDONLY);
	assert_false(remote_file_has_handle(io_handle_remote(removed->handle)));
	assert_int_equal(vfs_unlink(h->vfs, h->root, "f002"), 0);
	assert_int_equal(vfs_rename(h->vfs, h->root, "f010", h->root, "f003", 0), 0);
	/* with nothing kept of them here */
	const struct io_version other = {.size = 4};
	io_file_revalidate(file_data(h->vfs, files->nodes[2]), &other);
	io_file_revalidate(file_data(h->vfs, files->nodes[3]), &other);
	assert_reads(h, removed, "f002");
	assert_reads(h, replaced, "f003");
	close_file(h, removed);
	close_file(h, replaced);
	free(files);
}

static void a_renamed_file_is_opened_late_by_its_new_name(void **state)
{
	struct harness *h = *state;
	struct files *files = make_files(h, 20);
	start_reading(h, files);
	struct vfs_file *file = open_file(h, files->nodes[2], O_RDONLY);
	assert_int_equal(vfs_rename(h->vfs, h->root, "f002", h->root, "moved", 0), 0);
	const struct io_version other = {.size = 4};
	io_file_revalidate(file_data(h->vfs, files->nodes[2]), &other);
	assert_reads(h, file, "f002");
	close_file(h, file);
	free(files);
}

/* ---- names, and the end ---- */

static void a_fetch_renews_the_name(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.attr_timeout_ns = config.entry_timeout_ns = NS_PER_SEC;
	configure(h, config);
	struct files *files = make_files(h, 20);
	usleep(600 * 1000);
	start_reading(h, files);
	usleep(600 * 1000);
	fake_reset_counts(h->fake);
	look(h, h->root, files->names[2]);
	assert_int_equal(asked(h, OP_LSTAT), 0);
	read_file(h, files, 2, files->names[2]);
	assert_int_equal(asked(h, OP_OPEN), 0);
	/* one that was not fetched is asked for */
	look(h, h->root, files->names[15]);
	assert_int_equal(asked(h, OP_LSTAT), 1);
	free(files);
}

static void a_fetch_does_not_hide_that_the_name_is_a_link_now(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.attr_timeout_ns = config.entry_timeout_ns = NS_PER_SEC;
	configure(h, config);
	struct files *files = make_files(h, 20);
	usleep(600 * 1000);
	put(h, "/srv", "elsewhere", "quite another text");
	fake_remove(h->fake, ROOT "/f002");
	fake_put_symlink(h->fake, ROOT "/f002", "/srv/elsewhere");
	read_file(h, files, 0, files->names[0]);
	read_file(h, files, 1, files->names[1]);
	usleep(600 * 1000);
	struct vfs_entry entry;
	assert_int_equal(vfs_lookup(h->vfs, h->root, "f002", &entry), 0);
	assert_true(S_ISLNK(entry.st.st_mode));
	free(files);
}

static void unmounting_does_not_wait_for_the_server(void **state)
{
	struct harness *h = *state;
	struct files *files = make_files(h, 50);
	fake_hold(h->fake, OP_FETCH, true);
	read_file(h, files, 0, files->names[0]);
	read_file(h, files, 1, files->names[1]);
	/* one that was dropped is under way still */
	assert_int_equal(vfs_unlink(h->vfs, h->root, files->names[2]), 0);
	assert_int_equal(asked(h, OP_FETCH), PACE_START);
	uint64_t start_ns = clock_now_ns();
	configure(h, harness_config());
	assert_true(clock_now_ns() - start_ns < 2 * NS_PER_SEC);
	free(files);
}

static void the_report_tells_of_it(void **state)
{
	struct harness *h = *state;
	struct files *files = make_files(h, 10);
	for (unsigned i = 0; i < 3; i++)
		read_file(h, files, i, files->names[i]);
	struct bytes report = BYTES_INIT;
	vfs_report(h->vfs, &report);
	assert_non_null(strstr(report.data, "prefetch of files: "));
	assert_non_null(strstr(report.data, " 1 used"));
	assert_non_null(strstr(report.data, "3 opened, 1 from prefetch"));
	bytes_release(&report);
	free(files);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(files_in_order_are_fetched_before_they_are_opened),
	    TEST(who_only_looks_fetches_nothing),
	    TEST(writers_fetch_nothing),
	    TEST(large_files_are_left_to_their_reader),
	    TEST(empty_files_are_fetched_too),
	    TEST(what_was_read_is_not_fetched_in_the_same_pass),
	    TEST(nothing_is_fetched_when_it_is_turned_off),
	    TEST(memory_is_bounded),
	    TEST(what_is_not_wanted_is_let_go),
	    TEST(an_open_waits_for_the_fetch_under_way),
	    TEST(a_refused_file_is_opened),
	    TEST(a_change_by_others_is_seen_once_the_time_is_over),
	    TEST(a_change_that_was_seen_voids_what_was_fetched),
	    TEST(our_own_changes_are_seen_at_once),
	    TEST(a_write_behind_a_fetch_is_not_lost_sight_of),
	    TEST(names_lead_to_what_is_there),
	    TEST(a_renamed_directory_takes_nothing_along),
	    TEST(more_is_had_of_a_file_by_opening_it_late),
	    TEST(an_open_file_survives_its_name),
	    TEST(a_renamed_file_is_opened_late_by_its_new_name),
	    TEST(a_fetch_renews_the_name),
	    TEST(a_fetch_does_not_hide_that_the_name_is_a_link_now),
	    TEST(unmounting_does_not_wait_for_the_server),
	    TEST(the_report_tells_of_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
