/* An SFTP session against OpenSSH's sftp-server: every kind of op, and what it does when the
 * server is denied some of its requests. Skipped where there is no sftp-server. */
#include <errno.h>
#include <ftw.h>
#include <pwd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "tests/unit/sftp_harness.h"

/* A session with a server of its own in a fresh directory. */
struct live {
	struct harness h;
	char dir[64];
	char path[4][128]; /* for at() */
	unsigned next_path;
};

static const char *find_server(void)
{
	static const char *const places[] = {
	    "/usr/lib/openssh/sftp-server",
	    "/usr/libexec/openssh/sftp-server",
	    "/usr/libexec/sftp-server",
	    "/usr/lib/ssh/sftp-server",
	};
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

/* `denied`: requests for sftp-server -P, or NULL. */
static void live_open(struct live *live, const char *denied)
{
	const char *server = find_server();
	if (!server)
		skip();
	snprintf(live->dir, sizeof(live->dir), "/tmp/moorfs-sftp-XXXXXX");
	assert_non_null(mkdtemp(live->dir));
	live->next_path = 0;
	const char *argv[] = {server, "-e", "-d", live->dir, "-u", "022", denied ? "-P" : NULL,
	                      denied, NULL};
	harness_spawn(&live->h, argv);
	if (harness_connect(&live->h, 10) != 0)
		fail_msg("connect failed: %s", live->h.failure.text);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *place)
{
	(void)st;
	(void)type;
	(void)place;
	return remove(path);
}

static void live_close(struct live *live)
{
	harness_close(&live->h);
	assert_int_equal(nftw(live->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

/* The name in the live directory; good for four calls. */
static const char *at(struct live *live, const char *name)
{
	char *path = live->path[live->next_path++ % ARRAY_LEN(live->path)];
	snprintf(path, sizeof(live->path[0]), "%s/%s", live->dir, name);
	return path;
}

static void put_file(struct live *live, const char *name, const char *text)
{
	FILE *file = fopen(at(live, name), "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static int run_path(struct live *live, enum op_kind kind, const char *path)
{
	struct op op = {.kind = kind, .path = path};
	return harness_run(&live->h, &op);
}

static int run_two(struct live *live, enum op_kind kind, const char *path, const char *path2)
{
	struct op op = {.kind = kind, .path = path, .path2 = path2};
	return harness_run(&live->h, &op);
}

/* The text result of an op on a path, which must be `wanted`. */
static void expect_text(struct live *live, enum op_kind kind, const char *path,
                        const char *wanted)
{
	struct op op = {.kind = kind, .path = path};
	assert_int_equal(harness_run(&live->h, &op), 0);
	assert_string_equal(op.text, wanted);
	free(op.text);
}

static struct remote_file *open_file(struct live *live, const char *name, unsigned flags,
                                     uint32_t mode, struct remote_attr *attr)
{
	struct remote_file *file =
	    remote_file_new(&live->h.remote, at(live, name), flags & (OPEN_READ | OPEN_WRITE));
	assert_non_null(file);
	struct op op = {.kind = OP_OPEN,
	                .file = file,
	                .open_flags = flags,
	                .attr = {.valid = ATTR_MODE, .mode = mode}};
	assert_int_equal(harness_run(&live->h, &op), 0);
	file->version = op.attr;
	if (attr)
		*attr = op.attr;
	return file;
}

static void drop_file(struct live *live, struct remote_file *file)
{
	remote_file_unref(file);
	assert_int_equal(run_path(live, OP_PING, NULL), 0);
}

static int run_data(struct live *live, enum op_kind kind, struct remote_file *file,
                    uint64_t offset, void *data, size_t length, size_t *count)
{
	struct op op = {
	    .kind = kind, .file = file, .offset = offset, .data = data, .length = length};
	int err = harness_run(&live->h, &op);
	if (count)
		*count = op.count;
	return err;
}

static void test_names_are_made_moved_and_removed(void **state)
{
	(void)state;
	struct live live;
	struct stat st;
	live_open(&live, NULL);
	struct op mkdir_op = {.kind = OP_MKDIR,
	                      .path = at(&live, "d"),
	                      .attr = {.valid = ATTR_MODE, .mode = 0750}};
	assert_int_equal(harness_run(&live.h, &mkdir_op), 0);
	assert_int_equal(stat(at(&live, "d"), &st), 0);
	assert_int_equal(st.st_mode, S_IFDIR | 0750);
	assert_int_equal(harness_run(&live.h, &mkdir_op), -EREMOTEIO); /* it exists */

	put_file(&live, "a", "aaa");
	put_file(&live, "b", "bb");
	assert_int_equal(run_two(&live, OP_RENAME_NEW, at(&live, "a"), at(&live, "b")),
	                 -EREMOTEIO);
	assert_int_equal(run_two(&live, OP_RENAME, at(&live, "a"), at(&live, "b")), 0);
	assert_int_equal(stat(at(&live, "b"), &st), 0);
	assert_int_equal(st.st_size, 3);
	assert_int_equal(run_two(&live, OP_RENAME_NEW, at(&live, "b"), at(&live, "c")), 0);
	assert_int_equal(run_two(&live, OP_LINK, at(&live, "c"), at(&live, "d/hard")), 0);
	assert_int_equal(stat(at(&live, "c"), &st), 0);
	assert_int_equal(st.st_nlink, 2);

	assert_int_equal(run_two(&live, OP_SYMLINK, at(&live, "l"), "d/hard"), 0);
	expect_text(&live, OP_READLINK, at(&live, "l"), "d/hard");
	assert_int_equal(run_path(&live, OP_READLINK, at(&live, "c")), -EINVAL);
	struct op lstat_op = {.kind = OP_LSTAT, .path = at(&live, "l")};
	assert_int_equal(harness_run(&live.h, &lstat_op), 0);
	assert_true(S_ISLNK(lstat_op.attr.mode));
	struct op stat_op = {.kind = OP_STAT, .path = at(&live, "l")};
	assert_int_equal(harness_run(&live.h, &stat_op), 0);
	assert_true(S_ISREG(stat_op.attr.mode));
	assert_int_equal(stat_op.attr.size, 3);
	assert_int_equal(stat_op.attr.uid, getuid());

	assert_int_equal(run_path(&live, OP_RMDIR, at(&live, "d")), -EREMOTEIO);
	assert_int_equal(run_path(&live, OP_UNLINK, at(&live, "l")), 0);
	assert_int_equal(run_path(&live, OP_UNLINK, at(&live, "d/hard")), 0);
	assert_int_equal(run_path(&live, OP_RMDIR, at(&live, "d")), 0);
	assert_int_equal(run_path(&live, OP_LSTAT, at(&live, "d")), -ENOENT);
	live_close(&live);
}

static void test_attributes_are_set_and_read(void **state)
{
	(void)state;
	struct live live;
	struct stat st;
	live_open(&live, NULL);
	put_file(&live, "f", "0123456789");
	assert_int_equal(symlink("f", at(&live, "l")), 0);
	struct op op = {.kind = OP_SETATTR,
	                .path = at(&live, "l"),
	                .attr = {.valid = ATTR_SIZE | ATTR_MODE | ATTR_TIMES,
	                         .size = 4,
	                         .mode = 0604,
	                         .atime = {.tv_sec = 1000},
	                         .mtime = {.tv_sec = 2000}}};
	assert_int_equal(harness_run(&live.h, &op), 0);
	assert_int_equal(stat(at(&live, "f"), &st), 0);
	assert_int_equal(st.st_size, 4);
	assert_int_equal(st.st_mode & 07777, 0604);
	assert_int_equal(st.st_atim.tv_sec, 1000);
	assert_int_equal(st.st_mtim.tv_sec, 2000);

	struct op link_op = {.kind = OP_LSETATTR,
	                     .path = at(&live, "l"),
	                     .attr = {.valid = ATTR_TIMES, .mtime = {.tv_sec = 3000}}};
	assert_int_equal(harness_run(&live.h, &link_op), 0);
	assert_int_equal(lstat(at(&live, "l"), &st), 0);
	assert_int_equal(st.st_mtim.tv_sec, 3000);
	assert_int_equal(stat(at(&live, "f"), &st), 0);
	assert_int_equal(st.st_mtim.tv_sec, 2000);

	struct op fs = {.kind = OP_STATFS, .path = live.dir};
	assert_int_equal(harness_run(&live.h, &fs), 0);
	assert_true(fs.statfs.frsize > 0 && fs.statfs.blocks > 0);
	assert_true(fs.statfs.namemax >= 255);
	live_close(&live);
}

static void test_home_and_other_paths_are_resolved(void **state)
{
	(void)state;
	struct live live;
	char other[64];
	live_open(&live, NULL);
	const struct passwd *user = getpwuid(getuid());
	assert_non_null(user);
	expect_text(&live, OP_REALPATH, "", live.dir); /* where the server was started */
	expect_text(&live, OP_REALPATH, ".", live.dir);
	expect_text(&live, OP_REALPATH, at(&live, "./."), live.dir);
	expect_text(&live, OP_REALPATH, "~", live.dir);
	snprintf(other, sizeof(other), "~%s/sub", user->pw_name);
	struct op op = {.kind = OP_REALPATH, .path = other};
	assert_int_equal(harness_run(&live.h, &op), 0);
	assert_non_null(strstr(op.text, user->pw_dir));
	assert_string_equal(op.text + strlen(op.text) - 4, "/sub");
	free(op.text);
	assert_int_equal(run_path(&live, OP_REALPATH, at(&live, "no/such/dir")), -ENOENT);
	live_close(&live);

	/* home-directory serves where expand-path is denied. */
	live_open(&live, "expand-path");
	struct op by_home = {.kind = OP_REALPATH, .path = other};
	assert_int_equal(harness_run(&live.h, &by_home), 0);
	assert_int_equal(strncmp(by_home.text, user->pw_dir, strlen(user->pw_dir)), 0);
	assert_string_equal(by_home.text + strlen(by_home.text) - 4, "/sub");
	free(by_home.text);
	live_close(&live);
	live_open(&live, "expand-path,home-directory");
	assert_int_equal(run_path(&live, OP_REALPATH, other), -EOPNOTSUPP);
	live_close(&live);
}

static void test_names_of_users_and_groups_are_told(void **state)
{
	(void)state;
	struct live live;
	static const uint32_t ids[] = {0, 4123456789, 0};
	live_open(&live, NULL);
	if (!live.h.session->caps.names) {
		live_close(&live);
		skip();
	}
	for (int groups = 0; groups < 2; groups++) {
		struct op op = {
		    .kind = OP_NAMES, .ids = ids, .id_count = 3, .ids_are_groups = groups};
		assert_int_equal(harness_run(&live.h, &op), 0);
		assert_int_equal(op.count, 11);
		assert_memory_equal(op.text, "root\0\0root\0", 11);
		free(op.text);
	}
	live_close(&live);
}

static void test_a_file_is_written_read_synced_and_copied(void **state)
{
	(void)state;
	enum { SIZE = 3000000 };
	struct live live;
	struct remote_attr attr;
	size_t count;
	live_open(&live, NULL);
	assert_int_equal(live.h.session->caps.max_read, 261120);
	CLEANUP_FREE char *data = malloc(SIZE);
	CLEANUP_FREE char *back = calloc(1, SIZE);
	assert_true(data && back);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (char)(i * 31 + i / 977);

	/* 0666 in spite of the server's umask of 022. */
	struct remote_file *file =
	    open_file(&live, "f", OPEN_READ | OPEN_WRITE | OPEN_CREATE, 0666, &attr);
	assert_int_equal(attr.mode, S_IFREG | 0666);
	assert_int_equal(attr.size, 0);
	file->own_writes = true;
	assert_int_equal(run_data(&live, OP_WRITE, file, 100, data, SIZE, NULL), 0);
	struct op sync = {.kind = OP_FSYNC, .file = file};
	assert_int_equal(harness_run(&live.h, &sync), 0);
	assert_int_equal(run_data(&live, OP_READ, file, 100, back, SIZE, &count), 0);
	assert_int_equal(count, SIZE);
	assert_memory_equal(back, data, SIZE);
	assert_int_equal(run_data(&live, OP_READ, file, SIZE, back, SIZE, &count), 0);
	assert_int_equal(count, 100);
	struct op stat_op = {.kind = OP_FSTAT, .file = file};
	assert_int_equal(harness_run(&live.h, &stat_op), 0);
	assert_int_equal(stat_op.attr.size, SIZE + 100);

	struct remote_file *copy =
	    open_file(&live, "g", OPEN_READ | OPEN_WRITE | OPEN_CREATE | OPEN_EXCL, 0600, NULL);
	struct op copy_op = {.kind = OP_COPY,
	                     .file = file,
	                     .offset = 100,
	                     .file2 = copy,
	                     .offset2 = 5,
	                     .length = 1000000};
	assert_int_equal(harness_run(&live.h, &copy_op), 0);
	struct op same_op = copy_op;
	same_op.file2 = file;
	assert_int_equal(harness_run(&live.h, &same_op), -EOPNOTSUPP);
	copy->own_writes = true;
	memset(back, 0, SIZE);
	assert_int_equal(run_data(&live, OP_READ, copy, 5, back, SIZE, &count), 0);
	assert_int_equal(count, 1000000);
	assert_memory_equal(back, data, 1000000);

	struct op cut = {
	    .kind = OP_FSETATTR, .file = copy, .attr = {.valid = ATTR_SIZE, .size = 3}};
	assert_int_equal(harness_run(&live.h, &cut), 0);
	struct op cut_stat = {.kind = OP_FSTAT, .file = copy};
	assert_int_equal(harness_run(&live.h, &cut_stat), 0);
	assert_int_equal(cut_stat.attr.size, 3);

	struct op again = {.kind = OP_OPEN,
	                   .file = copy,
	                   .open_flags = OPEN_WRITE | OPEN_CREATE | OPEN_EXCL,
	                   .attr = {.valid = ATTR_MODE, .mode = 0600}};
	assert_int_equal(harness_run(&live.h, &again), -EREMOTEIO); /* it exists */
	drop_file(&live, file);
	drop_file(&live, copy);
	live_close(&live);
}

static void test_a_file_is_fetched_whole(void **state)
{
	(void)state;
	struct live live;
	char data[16];
	live_open(&live, NULL);
	put_file(&live, "f", "contents");
	struct op op = {
	    .kind = OP_FETCH, .path = at(&live, "f"), .data = data, .length = sizeof(data)};
	assert_int_equal(harness_run(&live.h, &op), 0);
	assert_int_equal(op.count, 8);
	assert_memory_equal(data, "contents", 8);
	assert_true(S_ISREG(op.attr.mode));
	op.length = 7;
	assert_int_equal(harness_run(&live.h, &op), -EFBIG);
	op.path = at(&live, "no");
	assert_int_equal(harness_run(&live.h, &op), -ENOENT);
	op.path = live.dir;
	assert_true(harness_run(&live.h, &op) < 0);
	live_close(&live);
}

static int count_names(struct op *op, const struct remote_entry *entries, size_t count)
{
	unsigned *seen = op->owner;
	for (size_t i = 0; i < count; i++) {
		assert_true(entries[i].attr.valid & ATTR_MODE);
		if (S_ISREG(entries[i].attr.mode))
			assert_true((entries[i].attr.valid & ATTR_NLINK) &&
			            entries[i].attr.nlink == 1);
	}
	*seen += (unsigned)count;
	return 0;
}

static void test_a_directory_of_thousands_is_listed(void **state)
{
	(void)state;
	struct live live;
	unsigned seen = 0;
	live_open(&live, NULL);
	struct op op = {
	    .kind = OP_LIST, .path = live.dir, .entries = count_names, .owner = &seen};
	assert_int_equal(harness_run(&live.h, &op), 0);
	assert_int_equal(seen, 0);
	for (int i = 0; i < 3000; i++) {
		char name[16];
		snprintf(name, sizeof(name), "n%d", i);
		put_file(&live, name, "");
	}
	assert_int_equal(harness_run(&live.h, &op), 0);
	assert_int_equal(seen, 3000);
	struct op missing = {
	    .kind = OP_LIST, .path = at(&live, "no"), .entries = count_names, .owner = &seen};
	assert_int_equal(harness_run(&live.h, &missing), -ENOENT);
	live_close(&live);
}

static void test_a_server_denied_its_extensions(void **state)
{
	(void)state;
	struct live live;
	live_open(&live,
	          "posix-rename,statvfs,hardlink,fsync,lsetstat,limits,expand-path,copy-data");
	const struct remote_caps *caps = &live.h.session->caps;
	assert_false(caps->posix_rename || caps->statfs || caps->hardlink || caps->fsync ||
	             caps->lsetattr || caps->copy);
	assert_int_equal(caps->max_read, 32768);
	put_file(&live, "a", "aaa");
	assert_int_equal(run_two(&live, OP_RENAME, at(&live, "a"), at(&live, "b")),
	                 -EOPNOTSUPP);
	assert_int_equal(run_two(&live, OP_RENAME_NEW, at(&live, "a"), at(&live, "b")), 0);
	assert_int_equal(run_two(&live, OP_LINK, at(&live, "b"), at(&live, "c")), -EOPNOTSUPP);
	assert_int_equal(run_path(&live, OP_STATFS, live.dir), -EOPNOTSUPP);
	expect_text(&live, OP_REALPATH, "~", live.dir);

	struct remote_file *file = open_file(&live, "b", OPEN_READ | OPEN_WRITE, 0, NULL);
	struct op sync = {.kind = OP_FSYNC, .file = file};
	assert_int_equal(harness_run(&live.h, &sync), -EOPNOTSUPP);
	drop_file(&live, file);
	live_close(&live);
}

static void test_a_server_denied_requests_by_handle_and_realpath(void **state)
{
	(void)state;
	struct live live;
	live_open(&live, "realpath,fsetstat,fstat");
	expect_text(&live, OP_REALPATH, "", ".");
	expect_text(&live, OP_REALPATH, live.dir, live.dir);
	assert_int_equal(run_path(&live, OP_REALPATH, at(&live, "no/such")), -ENOENT);
	assert_int_equal(run_path(&live, OP_PING, NULL), 0);

	struct remote_attr attr;
	struct remote_file *file =
	    open_file(&live, "f", OPEN_READ | OPEN_WRITE | OPEN_CREATE, 0666, &attr);
	assert_int_equal(attr.mode, S_IFREG | 0644); /* as far as it can be had */
	char text[] = "hello";
	assert_int_equal(run_data(&live, OP_WRITE, file, 0, text, 5, NULL), 0);
	struct op cut = {
	    .kind = OP_FSETATTR, .file = file, .attr = {.valid = ATTR_SIZE, .size = 2}};
	assert_int_equal(harness_run(&live.h, &cut), 0);
	for (int i = 0; i < 2; i++) {
		struct op stat_op = {.kind = OP_FSTAT, .file = file};
		assert_int_equal(harness_run(&live.h, &stat_op), 0);
		assert_int_equal(stat_op.attr.size, 2);
	}
	/* Without a name there is no other way. */
	remote_file_set_unlinked(file);
	struct op stat_op = {.kind = OP_FSTAT, .file = file};
	assert_int_equal(harness_run(&live.h, &stat_op), -ESTALE);
	drop_file(&live, file);
	live_close(&live);
}

static void test_a_read_only_server(void **state)
{
	(void)state;
	struct live live;
	live_open(&live, "write,mkdir,remove");
	put_file(&live, "f", "x");
	struct op op = {.kind = OP_MKDIR, .path = at(&live, "d")};
	assert_int_equal(harness_run(&live.h, &op), -EACCES);
	assert_int_equal(run_path(&live, OP_UNLINK, at(&live, "f")), -EACCES);
	live_close(&live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names_are_made_moved_and_removed),
	    cmocka_unit_test(test_attributes_are_set_and_read),
	    cmocka_unit_test(test_home_and_other_paths_are_resolved),
	    cmocka_unit_test(test_names_of_users_and_groups_are_told),
	    cmocka_unit_test(test_a_file_is_written_read_synced_and_copied),
	    cmocka_unit_test(test_a_file_is_fetched_whole),
	    cmocka_unit_test(test_a_directory_of_thousands_is_listed),
	    cmocka_unit_test(test_a_server_denied_its_extensions),
	    cmocka_unit_test(test_a_server_denied_requests_by_handle_and_realpath),
	    cmocka_unit_test(test_a_read_only_server),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
