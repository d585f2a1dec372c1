/* Reading directories, and what kept listings answer. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vfs_harness.h"

enum { NAMES_MAX = 2000 };

/* What readdir gave, as a kernel would have it. */
struct seen {
	char names[NAMES_MAX][32];
	uint64_t offsets[NAMES_MAX]; /* behind the name */
	struct vfs_entry entries[NAMES_MAX];
	size_t count, room;
};

static int collect(void *context, const char *name, const struct vfs_entry *entry,
                   uint64_t next_offset)
{
	struct seen *seen = context;
	if (!seen->room)
		return 1;
	seen->room--;
	assert_true(seen->count < NAMES_MAX);
	snprintf(seen->names[seen->count], sizeof(seen->names[0]), "%s", name);
	seen->offsets[seen->count] = next_offset;
	seen->entries[seen->count++] = *entry;
	return 0;
}

/* One call with room for so many names; returns how many came. */
static size_t read_some(struct harness *h, struct vfs_dir *dir, struct seen *seen,
                        uint64_t offset, bool plus, size_t room)
{
	size_t before = seen->count;
	seen->room = room;
	assert_int_equal(vfs_readdir(h->vfs, dir, offset, plus, collect, seen), 0);
	return seen->count - before;
}

static void read_all(struct harness *h, struct vfs_dir *dir, struct seen *seen, bool plus,
                     size_t room)
{
	uint64_t offset = 0;
	seen->count = 0;
	while (read_some(h, dir, seen, offset, plus, room))
		offset = seen->offsets[seen->count - 1];
}

static const struct vfs_entry *entry_of(const struct seen *seen, const char *name)
{
	for (size_t i = 0; i < seen->count; i++)
		if (strcmp(seen->names[i], name) == 0)
			return &seen->entries[i];
	return NULL;
}

static struct vfs_dir *open_dir(struct harness *h, struct node *node, bool *keep_cache)
{
	struct vfs_dir *dir;
	bool keep;
	assert_int_equal(vfs_opendir(h->vfs, node, &dir, keep_cache ? keep_cache : &keep), 0);
	return dir;
}

static struct seen *list(struct harness *h, struct node *node, bool plus)
{
	struct seen *seen = calloc(1, sizeof(*seen));
	assert_non_null(seen);
	struct vfs_dir *dir = open_dir(h, node, NULL);
	read_all(h, dir, seen, plus, 7);
	vfs_releasedir(h->vfs, dir);
	return seen;
}

static void put_files(struct harness *h, int count)
{
	for (int i = 0; i < count; i++) {
		char path[64];
		snprintf(path, sizeof(path), ROOT "/f%03d", i);
		fake_put_file(h->fake, path, "abc", 3, 1000 + i);
	}
}

static void names_come_once_with_dots_first(void **state)
{
	struct harness *h = *state;
	put_files(h, 250);
	fake_put_dir(h->fake, ROOT "/d");
	struct seen *seen = list(h, h->root, false);
	assert_int_equal(seen->count, 253);
	assert_string_equal(seen->names[0], ".");
	assert_string_equal(seen->names[1], "..");
	assert_int_equal(seen->entries[0].st.st_ino, INODE_ROOT);
	const struct vfs_entry *f = entry_of(seen, "f249"), *d = entry_of(seen, "d");
	assert_null(f->node);
	assert_int_equal(f->st.st_mode, S_IFREG);
	assert_int_equal(d->st.st_mode, S_IFDIR);
	/* the number that the name has when it is looked up */
	assert_int_equal(f->st.st_ino, stat_of(h, look(h, h->root, "f249")).st_ino);
	assert_int_equal(nodes_known(h), 2);
	assert_int_equal(asked(h, OP_LIST), 1);
	free(seen);
}

static void readdirplus_counts_what_was_taken(void **state)
{
	struct harness *h = *state;
	put_files(h, 100);
	struct seen *seen = list(h, h->root, true);
	assert_int_equal(seen->count, 102);
	assert_null(seen->entries[0].node);
	/* a full buffer at every seventh name has left no count behind */
	assert_int_equal(nodes_known(h), 101);
	for (size_t i = 2; i < seen->count; i++) {
		assert_non_null(seen->entries[i].node);
		assert_int_equal(seen->entries[i].st.st_size, 3);
		assert_true(seen->entries[i].attr_valid_ns > 0);
		assert_true(seen->entries[i].entry_valid_ns > 0);
	}
	/* names and attributes are known now */
	struct node *f = look(h, h->root, "f042");
	assert_int_equal(stat_of(h, f).st_mtim.tv_sec, 1042);
	assert_int_equal(asked(h, OP_LSTAT), 0);
	forget(h, f);
	for (size_t i = 2; i < seen->count; i++)
		forget(h, seen->entries[i].node);
	assert_int_equal(nodes_known(h), 1);
	free(seen);
}

static void a_kept_listing_answers_lookups(void **state)
{
	struct harness *h = *state;
	put_files(h, 20);
	free(list(h, h->root, false));
	struct node *f = look(h, h->root, "f007");
	assert_int_equal(stat_of(h, f).st_mtim.tv_sec, 1007);
	look_fails(h, h->root, "missing", -ENOENT);
	assert_int_equal(asked(h, OP_LSTAT), 0);
	free(list(h, h->root, false));
	assert_int_equal(asked(h, OP_LIST), 1);
}

static void without_dir_cache_nothing_is_kept(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.dir_cache = false;
	harness_configure(h, &config);
	put_files(h, 5);
	free(list(h, h->root, false));
	free(list(h, h->root, false));
	assert_int_equal(asked(h, OP_LIST), 2);
	look_fails(h, h->root, "missing", -ENOENT);
	assert_int_equal(asked(h, OP_LSTAT), 1);
}

static void an_old_listing_answers_no_more(void **state)
{
	struct harness *h = *state;
	struct vfs_config config = harness_config();
	config.dir_timeout_ns = 20 * NS_PER_MS;
	harness_configure(h, &config);
	put_files(h, 5);
	free(list(h, h->root, false));
	const struct timespec pause = {.tv_nsec = 30 * 1000 * 1000};
	nanosleep(&pause, NULL);
	fake_put_file(h->fake, ROOT "/new", "x", 1, 1);
	look(h, h->root, "new");
	struct seen *seen = list(h, h->root, false);
	assert_non_null(entry_of(seen, "new"));
	assert_int_equal(asked(h, OP_LIST), 2);
	free(seen);
}

static void our_own_changes_are_patched_into_the_listing(void **state)
{
	struct harness *h = *state;
	put_files(h, 5);
	free(list(h, h->root, false));
	struct node *node;
	struct vfs_file *file = create_file(h, h->root, "new", &node);
	assert_int_equal(write_text(h, file, 0, "12345", 0), 0);
	close_file(h, file);
	forget(h, node);
	assert_int_equal(vfs_unlink(h->vfs, h->root, "f001"), 0);
	assert_int_equal(vfs_rename(h->vfs, h->root, "f002", h->root, "moved", 0), 0);
	forget(h, make_dir(h, h->root, "dir"));
	const struct stat mode = {.st_mode = 0600};
	struct stat st;
	uint64_t valid_ns;
	struct node *f0 = look(h, h->root, "f000");
	file = open_file(h, f0, O_WRONLY);
	assert_int_equal(write_text(h, file, 0, "longer", 0), 0);
	close_file(h, file);
	forget(h, f0);
	struct node *f3 = look(h, h->root, "f003");
	assert_int_equal(vfs_setattr(h->vfs, f3, NULL, VFS_SET_MODE, &mode, &st, &valid_ns), 0);
	forget(h, f3);

	struct seen *seen = list(h, h->root, true);
	assert_int_equal(asked(h, OP_LIST), 1);
	assert_int_equal(seen->count, 2 + 6);
	assert_non_null(entry_of(seen, "new"));
	assert_non_null(entry_of(seen, "moved"));
	assert_non_null(entry_of(seen, "dir"));
	assert_null(entry_of(seen, "f001"));
	assert_null(entry_of(seen, "f002"));
	/* what the listing said of changed files is not believed any more */
	assert_null(entry_of(seen, "f003")->node);
	assert_non_null(entry_of(seen, "f004")->node);
	assert_int_equal(stat_of(h, look(h, h->root, "f003")).st_mode, S_IFREG | 0600);
	assert_int_equal(stat_of(h, look(h, h->root, "f000")).st_size, 6);
	assert_int_equal(stat_of(h, look(h, h->root, "new")).st_size, 5);
	look_fails(h, h->root, "f001", -ENOENT);
	look_fails(h, h->root, "f002", -ENOENT);
	free(seen);
}

/* As if it had been longer ago than a second that the root's attributes were fetched. */
static void age_root(struct harness *h)
{
	NODES_SCOPE(&h->vfs->nodes);
	h->root->attr.mtime.tv_sec = 1;
	h->root->attr_asked_ns = 0;
}

static void a_directory_that_others_changed_is_listed_anew(void **state)
{
	struct harness *h = *state;
	put_files(h, 5);
	stat_of(h, h->root);
	free(list(h, h->root, false));
	/* a new time that is due to our own change says nothing */
	struct node *node;
	close_file(h, create_file(h, h->root, "new", &node));
	age_root(h);
	stat_of(h, h->root);
	free(list(h, h->root, false));
	assert_int_equal(asked(h, OP_LIST), 1);
	age_root(h);
	stat_of(h, h->root);
	free(list(h, h->root, false));
	assert_int_equal(asked(h, OP_LIST), 2);
}

static void a_directory_we_made_is_known_to_be_empty(void **state)
{
	struct harness *h = *state;
	struct node *d = make_dir(h, h->root, "d");
	fake_reset_counts(h->fake);
	look_fails(h, d, "a", -ENOENT);
	struct node *a;
	close_file(h, create_file(h, d, "a", &a));
	assert_ptr_equal(look(h, d, "a"), a);
	struct seen *seen = list(h, d, false);
	assert_int_equal(seen->count, 3);
	assert_int_equal(asked(h, OP_LIST), 0);
	assert_int_equal(asked(h, OP_LSTAT), 0);
	free(seen);
}

static void names_removed_while_listing_is_under_way_do_not_come_back(void **state)
{
	struct harness *h = *state;
	put_files(h, 5);
	struct node *f = look(h, h->root, "f001");
	fake_set_delay(h->fake, OP_LIST, 50 * NS_PER_MS);
	struct vfs_dir *dir = open_dir(h, h->root, NULL);
	assert_int_equal(vfs_unlink(h->vfs, h->root, "f001"), 0);
	struct seen *seen = calloc(1, sizeof(*seen));
	assert_non_null(seen);
	read_all(h, dir, seen, true, 100);
	vfs_releasedir(h->vfs, dir);
	/* the listing was made before: it may show the name, but gives no node for it */
	if (entry_of(seen, "f001"))
		assert_null(entry_of(seen, "f001")->node);
	look_fails(h, h->root, "f001", -ENOENT);
	forget(h, f);
	free(seen);
	seen = list(h, h->root, false);
	assert_null(entry_of(seen, "f001"));
	free(seen);
}

static void rewinding_shows_the_directory_of_now(void **state)
{
	struct harness *h = *state;
	put_files(h, 5);
	struct vfs_dir *dir = open_dir(h, h->root, NULL);
	struct seen *seen = calloc(1, sizeof(*seen));
	assert_non_null(seen);
	read_all(h, dir, seen, false, 3);
	assert_int_equal(seen->count, 7);
	fake_put_file(h->fake, ROOT "/new", "x", 1, 1);
	read_all(h, dir, seen, false, 3);
	assert_int_equal(seen->count, 8);
	assert_non_null(entry_of(seen, "new"));
	assert_int_equal(asked(h, OP_LIST), 2);
	/* telldir and seekdir, and a seek to nowhere */
	uint64_t offset = seen->offsets[3];
	char want[32];
	memcpy(want, seen->names[4], sizeof(want));
	seen->count = 0;
	assert_int_equal(read_some(h, dir, seen, offset, false, 1), 1);
	assert_string_equal(seen->names[0], want);
	assert_int_equal(read_some(h, dir, seen, UINT64_MAX / 2, false, 5), 0);
	assert_int_equal(read_some(h, dir, seen, offset, false, 1), 1);
	assert_string_equal(seen->names[1], want);
	vfs_releasedir(h->vfs, dir);
	free(seen);
}

/* As with *at() functions: opened, changed, and only then read. */
static void the_first_read_shows_our_own_changes_since_the_opening(void **state)
{
	struct harness *h = *state;
	struct node *d = make_dir(h, h->root, "d");
	fake_put_file(h->fake, ROOT "/d/old", "x", 1, 1);
	struct vfs_dir *early = open_dir(h, d, NULL);
	struct vfs_entry entry;
	assert_int_equal(vfs_mkdir(h->vfs, d, "new", 0755, &entry), 0);
	/* who lists it meanwhile replaces the listing that is kept */
	free(list(h, d, false));
	assert_int_equal(vfs_mkdir(h->vfs, d, "newer", 0755, &entry), 0);
	struct seen *seen = calloc(1, sizeof(*seen));
	assert_non_null(seen);
	read_all(h, early, seen, false, 3);
	assert_non_null(entry_of(seen, "new"));
	assert_non_null(entry_of(seen, "newer"));
	vfs_releasedir(h->vfs, early);
	free(seen);
}

static void concurrent_readers_share_one_listing(void **state)
{
	struct harness *h = *state;
	put_files(h, 300);
	struct vfs_dir *a = open_dir(h, h->root, NULL), *b = open_dir(h, h->root, NULL);
	struct seen *seen = calloc(1, sizeof(*seen));
	assert_non_null(seen);
	read_all(h, a, seen, false, 50);
	assert_int_equal(seen->count, 302);
	vfs_releasedir(h->vfs, a);
	read_all(h, b, seen, false, 50);
	assert_int_equal(seen->count, 302);
	vfs_releasedir(h->vfs, b);
	assert_int_equal(asked(h, OP_LIST), 1);
	free(seen);
}

static void the_kernels_listing_is_kept_until_something_changes(void **state)
{
	struct harness *h = *state;
	put_files(h, 5);
	bool keep;
	struct vfs_dir *dir = open_dir(h, h->root, &keep);
	assert_false(keep);
	struct seen *seen = calloc(1, sizeof(*seen));
	assert_non_null(seen);
	read_all(h, dir, seen, false, 3);
	vfs_releasedir(h->vfs, dir);
	dir = open_dir(h, h->root, &keep);
	assert_true(keep);
	vfs_releasedir(h->vfs, dir);
	assert_int_equal(vfs_unlink(h->vfs, h->root, "f001"), 0);
	dir = open_dir(h, h->root, &keep);
	assert_false(keep);
	vfs_releasedir(h->vfs, dir);
	free(seen);
}

static void opendir_tells_what_the_server_refuses(void **state)
{
	struct harness *h = *state;
	struct vfs_dir *dir;
	bool keep;
	fake_fail_next(h->fake, OP_LIST, 0, -EACCES);
	assert_int_equal(vfs_opendir(h->vfs, h->root, &dir, &keep), -EACCES);
	/* and does not remember it as a listing */
	put_files(h, 1);
	look(h, h->root, "f000");
	struct seen *seen = list(h, h->root, false);
	assert_int_equal(seen->count, 3);
	free(seen);
}

struct opener {
	struct harness *harness;
	struct remote_scope scope;
	pthread_barrier_t ready;
	int err;
};

static void *run_opendir(void *argument)
{
	struct opener *opener = argument;
	struct vfs_dir *dir;
	bool keep;
	remote_scope_begin(&opener->scope);
	pthread_barrier_wait(&opener->ready);
	opener->err = vfs_opendir(opener->harness->vfs, opener->harness->root, &dir, &keep);
	pthread_barrier_wait(&opener->ready);
	remote_scope_end(&opener->scope);
	return NULL;
}

static void waiting_for_names_can_be_interrupted(void **state)
{
	struct opener opener = {.harness = *state};
	fake_hold(opener.harness->fake, OP_LIST, true);
	pthread_t thread;
	pthread_barrier_init(&opener.ready, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, run_opendir, &opener), 0);
	pthread_barrier_wait(&opener.ready);
	fake_wait_count(opener.harness->fake, OP_LIST, 1);
	remote_scope_interrupt(&opener.scope);
	pthread_barrier_wait(&opener.ready);
	pthread_join(thread, NULL);
	pthread_barrier_destroy(&opener.ready);
	assert_int_equal(opener.err, -EINTR);
	/* the listing that was given up serves nobody */
	fake_hold(opener.harness->fake, OP_LIST, false);
	free(list(opener.harness, opener.harness->root, false));
	assert_int_equal(asked(opener.harness, OP_LIST), 2);
}

static void what_the_kernel_left_open_ends_with_the_mount(void **state)
{
	struct harness *h = *state;
	struct node *node;
	struct vfs_file *file = create_file(h, h->root, "f", &node);
	assert_int_equal(write_text(h, file, 0, "text", 0), 0);
	open_dir(h, h->root, NULL);
	const struct vfs_config config = harness_config();
	harness_configure(h, &config);
	assert_int_equal(stat_of(h, look(h, h->root, "f")).st_nlink, 1);
}

/* ---- a server that lists what no directory has, in any number ---- */

struct lister {
	struct remote remote;
	size_t count;    /* names to list */
	int err;         /* how the listing ends */
	bool odd;        /* with impossible names among them */
	size_t pause_at; /* waits for `go` before this name; 0: never */
	sem_t go;
	pthread_t thread;
	struct op *op;
	atomic_bool stopped; /* entries() asked for the end */
};

static int give_one(struct lister *lister, const char *name, size_t length)
{
	const struct remote_entry entry = {.name = name,
	                                   .name_length = length,
	                                   .attr = {.valid = ATTR_MODE | ATTR_SIZE | ATTR_TIMES,
	                                            .mode = S_IFREG | 0644,
	                                            .size = length}};
	return lister->op->entries(lister->op, &entry, 1);
}

static void *serve_listing(void *argument)
{
	struct lister *lister = argument;
	char name[300];
	memset(name, 'x', sizeof(name));
	lister->op->err = lister->err;
	if (lister->odd) {
		give_one(lister, ".", 1);
		give_one(lister, "..", 2);
		give_one(lister, "", 0);
		give_one(lister, "a/b", 3);
		give_one(lister, "a\0b", 3);
		give_one(lister, name, 256);
		give_one(lister, name, 255);
		give_one(lister, "..a", 3);
	}
	for (size_t i = 0; i < lister->count; i++) {
		if (i && i == lister->pause_at)
			sem_wait(&lister->go);
		snprintf(name, sizeof(name), "file-%06zu-with-a-long-name", i);
		if (give_one(lister, name, strlen(name))) {
			lister->stopped = true;
			lister->op->err = -ECANCELED;
			break;
		}
	}
	lister->op->done(lister->op);
	return NULL;
}

static void submit_listing(struct remote *remote, struct op *op)
{
	struct lister *lister = CONTAINER_OF(remote, struct lister, remote);
	assert_int_equal(op->kind, OP_LIST);
	lister->op = op;
	assert_int_equal(pthread_create(&lister->thread, NULL, serve_listing, lister), 0);
}

static const struct remote_ops lister_ops = {.submit = submit_listing};

static int read_record(struct listing *listing, struct listing_reader *reader, uint64_t number,
                       struct listing_record *record)
{
	uint64_t found = 0;
	int got = listing_read(listing, reader, number, record, &found);
	if (got == 1)
		assert_int_equal(found, number);
	return got;
}

static void assert_is_name(const struct listing_record *record, uint64_t number)
{
	char name[64];
	snprintf(name, sizeof(name), "file-%06" PRIu64 "-with-a-long-name", number);
	assert_string_equal(record->name, name);
	assert_int_equal(record->attr.size, strlen(name));
}

static void a_long_listing_stays_in_bounded_memory(void **state)
{
	(void)state;
	enum { COUNT = 100000, LIMIT = 512 * 1024 };
	struct lister lister = {.remote.ops = &lister_ops, .count = COUNT};
	struct listing *listing = listing_start(&lister.remote, "/d", 1, LIMIT);
	assert_non_null(listing);
	struct listing_reader reader = {0}, other = {0};
	struct listing_record record;
	for (uint64_t i = 0; i < COUNT; i++) {
		assert_int_equal(read_record(listing, &reader, i, &record), 1);
		assert_is_name(&record, i);
	}
	assert_int_equal(read_record(listing, &reader, COUNT, &record), 0);
	assert_true(listing_is_spilled(listing));
	assert_true(listing_bytes(listing) < LIMIT + 4 * LISTING_SEGMENT);
	/* back and forth, from two places at once */
	static const uint64_t places[] = {99999, 0, 50000, 1, 99998, 12345, 12346, 7};
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		assert_int_equal(read_record(listing, &reader, places[i], &record), 1);
		assert_is_name(&record, places[i]);
		assert_int_equal(read_record(listing, &other, COUNT - 1 - places[i], &record),
		                 1);
		assert_is_name(&record, COUNT - 1 - places[i]);
	}
	uint64_t found;
	assert_int_equal(listing_read(listing, &reader, UINT64_MAX, &record, &found), 0);
	/* it can be read, but knows nothing of single names */
	assert_int_equal(listing_find(listing, "file", 4, &record), LISTING_UNKNOWN);
	assert_false(listing_patch_remove(listing, "file", 4, 2));
	assert_true(listing_is_broken(listing));
	listing_reader_release(&reader);
	listing_reader_release(&other);
	pthread_join(lister.thread, NULL);
	listing_leave(listing);
	listing_unref(listing);
}

static void an_error_in_the_middle_is_not_the_end(void **state)
{
	(void)state;
	struct lister lister = {.remote.ops = &lister_ops, .count = 10, .err = -ENOLINK};
	struct listing *listing = listing_start(&lister.remote, "/d", 1, LISTING_MEMORY_LIMIT);
	assert_non_null(listing);
	assert_int_equal(listing_wait(listing), 0);
	struct listing_reader reader = {0};
	struct listing_record record;
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(read_record(listing, &reader, i, &record), 1);
	assert_int_equal(read_record(listing, &reader, 10, &record), -EIO);
	assert_int_equal(read_record(listing, &reader, 10, &record), -EIO);
	assert_true(listing_is_broken(listing));
	assert_int_equal(listing_find(listing, "nothing", 7, &record), LISTING_UNKNOWN);
	pthread_join(lister.thread, NULL);
	listing_leave(listing);
	listing_unref(listing);
}

static void impossible_names_are_left_out(void **state)
{
	(void)state;
	struct lister lister = {.remote.ops = &lister_ops, .odd = true};
	log_set_level(LOG_LEVEL_ERROR);
	struct listing *listing = listing_start(&lister.remote, "/d", 1, LISTING_MEMORY_LIMIT);
	assert_non_null(listing);
	struct listing_reader reader = {0};
	struct listing_record record;
	assert_int_equal(read_record(listing, &reader, 0, &record), 1);
	assert_int_equal(record.length, 255);
	assert_int_equal(read_record(listing, &reader, 1, &record), 1);
	assert_string_equal(record.name, "..a");
	assert_int_equal(read_record(listing, &reader, 2, &record), 0);
	log_set_level(LOG_LEVEL_WARN);
	pthread_join(lister.thread, NULL);
	listing_leave(listing);
	listing_unref(listing);
}

static void a_listing_ends_with_its_last_reader(void **state)
{
	(void)state;
	struct lister lister = {.remote.ops = &lister_ops, .count = 1000, .pause_at = 10};
	sem_init(&lister.go, 0, 0);
	struct listing *listing = listing_start(&lister.remote, "/d", 1, LISTING_MEMORY_LIMIT);
	assert_non_null(listing);
	listing_join(listing);
	assert_int_equal(listing_wait(listing), 0);
	assert_false(listing_leave(listing));
	assert_true(listing_leave(listing));
	assert_true(listing_is_broken(listing));
	sem_post(&lister.go);
	pthread_join(lister.thread, NULL);
	assert_true(lister.stopped);
	listing_unref(listing);
	sem_destroy(&lister.go);
}

static void *post_later(void *argument)
{
	const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
	nanosleep(&pause, NULL);
	sem_post(argument);
	return NULL;
}

static void seeking_ahead_of_the_listing_waits_for_it(void **state)
{
	(void)state;
	struct lister lister = {.remote.ops = &lister_ops, .count = 30, .pause_at = 10};
	sem_init(&lister.go, 0, 0);
	struct listing *listing = listing_start(&lister.remote, "/d", 1, LISTING_MEMORY_LIMIT);
	assert_non_null(listing);
	struct listing_reader reader = {0};
	struct listing_record record;
	assert_int_equal(read_record(listing, &reader, 9, &record), 1);
	pthread_t poster;
	assert_int_equal(pthread_create(&poster, NULL, post_later, &lister.go), 0);
	assert_int_equal(read_record(listing, &reader, 20, &record), 1);
	assert_is_name(&record, 20);
	pthread_join(poster, NULL);
	pthread_join(lister.thread, NULL);
	listing_leave(listing);
	listing_unref(listing);
	sem_destroy(&lister.go);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(names_come_once_with_dots_first),
	    TEST(readdirplus_counts_what_was_taken),
	    TEST(a_kept_listing_answers_lookups),
	    TEST(without_dir_cache_nothing_is_kept),
	    TEST(an_old_listing_answers_no_more),
	    TEST(our_own_changes_are_patched_into_the_listing),
	    TEST(a_directory_that_others_changed_is_listed_anew),
	    TEST(a_directory_we_made_is_known_to_be_empty),
	    TEST(names_removed_while_listing_is_under_way_do_not_come_back),
	    TEST(rewinding_shows_the_directory_of_now),
	    TEST(the_first_read_shows_our_own_changes_since_the_opening),
	    TEST(concurrent_readers_share_one_listing),
	    TEST(the_kernels_listing_is_kept_until_something_changes),
	    TEST(opendir_tells_what_the_server_refuses),
	    TEST(waiting_for_names_can_be_interrupted),
	    TEST(what_the_kernel_left_open_ends_with_the_mount),
	    cmocka_unit_test(a_long_listing_stays_in_bounded_memory),
	    cmocka_unit_test(an_error_in_the_middle_is_not_the_end),
	    cmocka_unit_test(impossible_names_are_left_out),
	    cmocka_unit_test(a_listing_ends_with_its_last_reader),
	    cmocka_unit_test(seeking_ahead_of_the_listing_waits_for_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
