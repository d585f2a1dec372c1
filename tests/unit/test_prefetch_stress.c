/*
 * Threads walk and read the same trees in order while others write, replace, rename and remove
 * in them, so that fetches, listings and what drops them meet. Each file holds one letter many
 * times: a reader must see one letter only, and a writer what it has just written. The rest is
 * for the sanitizers.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vfs/prefetch_internal.h"
#include "vfs_harness.h"

enum {
	READERS = 3,
	WRITERS = 3,
	DIRS = 8,
	FILES = 12,
	LENGTH = 600,
	WALKS = 12,
	CHANGES = 400
};

struct worker {
	struct harness *harness;
	unsigned number, seed;
	pthread_t thread;
};

struct names {
	unsigned count;
	char names[64][32];
};

/* A test cannot fail from another thread than its own. */
static void demand(bool good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "failed: %s\n", what);
	abort();
}

static unsigned dice(struct worker *worker, unsigned sides)
{
	return (unsigned)rand_r(&worker->seed) % sides;
}

/* ---- reading ---- */

struct reading {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool over;
	int err;
	size_t length;
	char text[LENGTH + 1];
};

static void read_ended(void *context, int err, const struct iovec *iov, int count)
{
	struct reading *reading = context;
	LOCK_SCOPE(&reading->lock);
	reading->err = err;
	for (int i = 0; i < count; i++) {
		memcpy(reading->text + reading->length, iov[i].iov_base, iov[i].iov_len);
		reading->length += iov[i].iov_len;
	}
	reading->over = true;
	pthread_cond_signal(&reading->ended);
}

static void read_whole(struct harness *h, struct vfs_file *file, struct reading *reading)
{
	*reading = (struct reading){.lock = PTHREAD_MUTEX_INITIALIZER,
	                            .ended = PTHREAD_COND_INITIALIZER};
	vfs_read(h->vfs, file, 0, LENGTH, read_ended, reading);
	LOCK_SCOPE(&reading->lock);
	while (!reading->over)
		pthread_cond_wait(&reading->ended, &reading->lock);
}

static bool is_one_letter(const struct reading *reading)
{
	for (size_t i = 1; i < reading->length; i++)
		if (reading->text[i] != reading->text[0])
			return false;
	return true;
}

static void read_file(struct harness *h, struct node *dir, const char *name)
{
	struct vfs_entry entry;
	struct vfs_open_info info;
	if (vfs_lookup(h->vfs, dir, name, &entry))
		return;
	if (S_ISREG(entry.st.st_mode) && vfs_open(h->vfs, entry.node, O_RDONLY, &info) == 0) {
		struct reading reading;
		read_whole(h, info.file, &reading);
		if (reading.err != -ESTALE)
			demand(reading.err == 0 && is_one_letter(&reading),
			       "one version of it");
		vfs_release(h->vfs, info.file);
	}
	forget(h, entry.node);
}

static int collect(void *context, const char *name, const struct vfs_entry *entry,
                   uint64_t next_offset)
{
	(void)entry;
	(void)next_offset;
	struct names *names = context;
	if (name[0] != '.' && names->count < ARRAY_LEN(names->names))
		snprintf(names->names[names->count++], sizeof(names->names[0]), "%s", name);
	return 0;
}

static bool list(struct harness *h, struct node *dir, struct names *names)
{
	struct vfs_dir *open;
	bool keep;
	names->count = 0;
	if (vfs_opendir(h->vfs, dir, &open, &keep))
		return false;
	int err = vfs_readdir(h->vfs, open, 0, false, collect, names);
	vfs_releasedir(h->vfs, open);
	return !err;
}

static void *walk(void *argument)
{
	struct worker *worker = argument;
	struct harness *h = worker->harness;
	for (int i = 0; i < WALKS; i++) {
		struct names dirs, files;
		demand(list(h, h->root, &dirs), "listing of the root");
		for (unsigned d = 0; d < dirs.count; d++) {
			struct vfs_entry dir;
			if (vfs_lookup(h->vfs, h->root, dirs.names[d], &dir))
				continue;
			if (list(h, dir.node, &files))
				for (unsigned f = 0; f < files.count; f++)
					read_file(h, dir.node, files.names[f]);
			forget(h, dir.node);
		}
	}
	return NULL;
}

/* ---- changing ---- */

/* Each writer has files of its own in every directory. */
static void own_name(struct worker *worker, char *name, size_t size)
{
	snprintf(name, size, "f%u-%u", dice(worker, FILES / WRITERS), worker->number);
}

static void write_and_read(struct worker *worker, struct node *dir, const char *name)
{
	struct harness *h = worker->harness;
	struct vfs_entry entry;
	struct vfs_open_info info;
	char text[LENGTH + 1];
	memset(text, 'a' + (int)dice(worker, 26), LENGTH);
	text[LENGTH] = '\0';
	/* by another name first, as others read it meanwhile */
	if (vfs_create(h->vfs, dir, "new", 0644, O_WRONLY | O_CREAT | O_EXCL, &entry, &info))
		return;
	demand(write_text(h, info.file, 0, text, 0) == 0, "writing");
	demand(vfs_flush(h->vfs, info.file) == 0, "closing");
	vfs_release(h->vfs, info.file);
	forget(h, entry.node);
	if (vfs_rename(h->vfs, dir, "new", dir, name, 0))
		return;
	if (vfs_lookup(h->vfs, dir, name, &entry))
		return;
	if (vfs_open(h->vfs, entry.node, O_RDONLY, &info) == 0) {
		struct reading reading;
		read_whole(h, info.file, &reading);
		demand(reading.err == 0 && reading.length == LENGTH &&
		           reading.text[0] == text[0] && is_one_letter(&reading),
		       "what was written");
		vfs_release(h->vfs, info.file);
	}
	forget(h, entry.node);
}

static void *change(void *argument)
{
	struct worker *worker = argument;
	struct harness *h = worker->harness;
	for (int i = 0; i < CHANGES; i++) {
		/* each has directories of its own, which one of them moves about */
		char dir_name[32], name[32], moved[40];
		unsigned which = dice(worker, DIRS);
		which -= which % WRITERS;
		which = MIN(which + worker->number, (unsigned)DIRS - 1);
		if (which % WRITERS != worker->number)
			continue;
		snprintf(dir_name, sizeof(dir_name), "d%u", which);
		struct vfs_entry dir;
		if (vfs_lookup(h->vfs, h->root, dir_name, &dir))
			continue;
		own_name(worker, name, sizeof(name));
		if (dice(worker, 8) == 0) {
			snprintf(moved, sizeof(moved), "%s-moved", dir_name);
			demand(vfs_rename(h->vfs, h->root, dir_name, h->root, moved, 0) == 0,
			       "moving a directory");
			demand(vfs_rename(h->vfs, h->root, moved, h->root, dir_name, 0) == 0,
			       "moving it back");
		} else if (dice(worker, 8) == 0) {
			vfs_unlink(h->vfs, dir.node, name);
		} else {
			write_and_read(worker, dir.node, name);
		}
		forget(h, dir.node);
	}
	return NULL;
}

/* ---- all together ---- */

static void make_tree(struct harness *h)
{
	char text[LENGTH];
	memset(text, 'A', sizeof(text));
	for (unsigned d = 0; d < DIRS; d++) {
		char path[128];
		snprintf(path, sizeof(path), ROOT "/d%u", d);
		fake_put_dir(h->fake, path);
		for (unsigned f = 0; f < FILES; f++) {
			snprintf(path, sizeof(path), ROOT "/d%u/f%u-%u", d, f / WRITERS,
			         f % WRITERS);
			fake_put_file(h->fake, path, text, sizeof(text), 1000);
		}
	}
}

enum { MORE_ROUNDS = 20 };

static void run_workers(struct harness *h)
{
	struct worker workers[READERS + WRITERS] = {{.number = 0}};
	for (unsigned i = 0; i < READERS + WRITERS; i++) {
		bool writes = i < WRITERS;
		workers[i] = (struct worker){.harness = h, .number = i, .seed = i + 1};
		assert_int_equal(pthread_create(&workers[i].thread, NULL,
		                                writes ? change : walk, &workers[i]),
		                 0);
	}
	for (unsigned i = 0; i < READERS + WRITERS; i++)
		pthread_join(workers[i].thread, NULL);
}

static void readers_see_whole_files_whatever_is_fetched(void **state)
{
	struct harness *h = *state;
	/* Long enough to matter, short enough to run out. */
	struct vfs_config config = harness_config();
	config.attr_timeout_ns = config.entry_timeout_ns = 20 * NS_PER_MS;
	harness_configure(h, &config);
	make_tree(h);
	fake_set_delay(h->fake, OP_FETCH, NS_PER_MS);
	fake_set_delay(h->fake, OP_LIST, NS_PER_MS / 2);
	run_workers(h);
	/* On a busy machine all contents may have run out before their use: once more, then. */
	for (int i = 0; i < MORE_ROUNDS && !h->vfs->counters.opens_fetched; i++)
		run_workers(h);
	assert_true(h->vfs->counters.opens_fetched > 0);
	assert_true(h->vfs->prefetch->dir_pace.hits > 0);
	prefetch_stop(h->vfs);
	assert_int_equal(nodes_known(h), 1);
	LOCK_SCOPE(&h->vfs->prefetch->lock);
	assert_int_equal(h->vfs->prefetch->bytes, 0);
	assert_int_equal(h->vfs->prefetch->under_way, 0);
	assert_int_equal(h->vfs->prefetch->under_way_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(readers_see_whole_files_whatever_is_fetched,
	                                    harness_setup, harness_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
