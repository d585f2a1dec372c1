/* The parts of vfs/ that do no I/O: symlink policy, ids, inode numbers, time-outs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/failure.h"
#include "vfs/ids.h"
#include "vfs/inodes.h"
#include "vfs/symlink.h"
#include "vfs/timeout.h"

/* ---- symlinks ---- */

struct symlink_case {
	const char *dir, *target;
	enum symlink_verdict verdict;
	const char *text; /* of REWRITE and ASK */
};

static void judge_all(const struct symlink_policy *policy, const struct symlink_case *cases,
                      size_t count)
{
	for (size_t i = 0; i < count; i++) {
		CLEANUP_FREE char *text = NULL;
		const char *rest;
		enum symlink_verdict verdict =
		    symlink_judge(policy, cases[i].dir, cases[i].target, &text, &rest);
		if (verdict != cases[i].verdict)
			fail_msg("'%s' in '%s': verdict %d, want %d", cases[i].target,
			         cases[i].dir, (int)verdict, (int)cases[i].verdict);
		if (cases[i].text)
			assert_string_equal(text, cases[i].text);
		else
			assert_null(text);
	}
}

static void targets_that_stay_inside_are_shown(void **state)
{
	(void)state;
	static const struct symlink_policy policy = {"/srv/share", "/mnt/here", true, false};
	static const struct symlink_case cases[] = {
	    {"", "file", SYMLINK_KEEP, NULL},
	    {"", "./a//b/.", SYMLINK_KEEP, NULL},
	    {"", "..file", SYMLINK_KEEP, NULL},
	    {"", ".", SYMLINK_KEEP, NULL},
	    {"a", "../b", SYMLINK_KEEP, NULL},
	    {"a/b", "../../c/d", SYMLINK_KEEP, NULL},
	    {"a/b", "..", SYMLINK_KEEP, NULL},
	    {"", "/srv/share/a/b", SYMLINK_REWRITE, "a/b"},
	    {"", "/srv/share", SYMLINK_REWRITE, "."},
	    {"", "//srv/./share//a/", SYMLINK_REWRITE, "a"},
	    {"a", "/srv/share/a/b", SYMLINK_REWRITE, "b"},
	    {"a/b", "/srv/share/a/c", SYMLINK_REWRITE, "../c"},
	    {"a/b", "/srv/share/x/y", SYMLINK_REWRITE, "../../x/y"},
	    {"a/b", "/srv/share", SYMLINK_REWRITE, "../.."},
	    {"a/b", "/srv/share/a/b", SYMLINK_REWRITE, "."},
	    {"ab", "/srv/share/a", SYMLINK_REWRITE, "../a"},
	    {"a", "/mnt/here/x", SYMLINK_REWRITE, "../x"},
	};
	judge_all(&policy, cases, ARRAY_LEN(cases));
}

static void doubtful_targets_are_put_to_the_server(void **state)
{
	(void)state;
	static const struct symlink_policy policy = {"/srv/share", "/mnt/here", true, false};
	static const struct symlink_case cases[] = {
	    {"", "..", SYMLINK_ASK, "/srv/share//.."},
	    {"", "../etc/passwd", SYMLINK_ASK, "/srv/share//../etc/passwd"},
	    {"a", "../../etc/passwd", SYMLINK_ASK, "/srv/share/a/../../etc/passwd"},
	    /* `s` may be a link to the root itself, and then this is above it */
	    {"", "s/../etc/passwd", SYMLINK_ASK, "/srv/share//s/.."},
	    {"a/b", "c/../../d", SYMLINK_ASK, "/srv/share/a/b/c/../.."},
	    {"", "/etc/passwd", SYMLINK_ASK, "/etc/passwd"},
	    {"", "/srv/sharex/f", SYMLINK_ASK, "/srv/sharex/f"},
	    {"", "/srv", SYMLINK_ASK, "/srv"},
	    {"", "/srv/share/s/../f", SYMLINK_ASK, "/srv/share/s/.."},
	    {"", "/mnt/here/../x", SYMLINK_ASK, "/mnt/here/../x"},
	    {"", "/mnt/herex", SYMLINK_ASK, "/mnt/herex"},
	    {"", "/", SYMLINK_ASK, "/"},
	};
	judge_all(&policy, cases, ARRAY_LEN(cases));
}

static void the_whole_server_as_root_contains_all_absolute_targets(void **state)
{
	(void)state;
	static const struct symlink_policy policy = {"/", NULL, true, false};
	static const struct symlink_case cases[] = {
	    {"", "/etc/passwd", SYMLINK_REWRITE, "etc/passwd"},
	    {"home/u", "/etc", SYMLINK_REWRITE, "../../etc"},
	    {"", "../x", SYMLINK_ASK, "///../x"},
	};
	judge_all(&policy, cases, ARRAY_LEN(cases));
}

static void the_servers_answer_is_judged_again(void **state)
{
	(void)state;
	static const struct symlink_policy policy = {"/srv/share", NULL, true, false};
	static const struct {
		const char *dir, *resolved, *rest;
		enum symlink_verdict verdict;
		const char *text;
	} cases[] = {
	    {"", "/srv/share", "/f", SYMLINK_REWRITE, "f"},
	    {"a", "/srv/share/x", "/y/z", SYMLINK_REWRITE, "../x/y/z"},
	    {"", "/srv/share/x", "", SYMLINK_REWRITE, "x"},
	    {"", "/etc/passwd", "", SYMLINK_REFUSE, NULL},
	    {"", "/srv", "/share/f", SYMLINK_REFUSE, NULL},
	    {"", "relative", "", SYMLINK_REFUSE, NULL},
	    {"", "/srv/share/../../etc", "", SYMLINK_REFUSE, NULL},
	    {"", "/srv/share", "/../../etc", SYMLINK_REFUSE, NULL},
	    {"", "", "", SYMLINK_REFUSE, NULL},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP_FREE char *text = NULL;
		assert_int_equal(symlink_settle(&policy, cases[i].dir, cases[i].resolved,
		                                cases[i].rest, &text),
		                 cases[i].verdict);
		if (cases[i].text)
			assert_string_equal(text, cases[i].text);
	}
}

static void without_containment_targets_are_shown_as_they_are(void **state)
{
	(void)state;
	static const struct symlink_policy plain = {"/srv/share", NULL, false, false};
	static const struct symlink_case as_is[] = {
	    {"", "/etc/passwd", SYMLINK_KEEP, NULL},
	    {"", "../../x", SYMLINK_KEEP, NULL},
	    {"", "/srv/share/x", SYMLINK_KEEP, NULL},
	};
	judge_all(&plain, as_is, ARRAY_LEN(as_is));

	static const struct symlink_policy transform = {"/srv/share", NULL, false, true};
	static const struct symlink_case moved[] = {
	    {"", "/etc/passwd", SYMLINK_KEEP, NULL},
	    {"", "../../x", SYMLINK_KEEP, NULL},
	    {"d", "/srv/share/x", SYMLINK_REWRITE, "../x"},
	    {"d", "/srv/share/../x", SYMLINK_KEEP, NULL},
	};
	judge_all(&transform, moved, ARRAY_LEN(moved));
}

/* ---- ids ---- */

static char *write_lines(const char *lines)
{
	char *path = strdup("/tmp/moorfs-ids-XXXXXX");
	assert_non_null(path);
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, lines, strlen(lines)), strlen(lines));
	close(fd);
	return path;
}

static void remove_file(char *path)
{
	unlink(path);
	free(path);
}

static struct ids *ids_of(const struct vfs_config *config)
{
	struct failure failure = {.text = ""};
	struct ids *ids = ids_new(config, &failure);
	if (!ids)
		fail_msg("%s", failure.text);
	return ids;
}

static void assert_shown(struct ids *ids, uint32_t remote_uid, uint32_t remote_gid, int err,
                         uid_t uid, gid_t gid)
{
	uid_t shown_uid = 77;
	gid_t shown_gid = 77;
	assert_int_equal(ids_show(ids, remote_uid, remote_gid, &shown_uid, &shown_gid), err);
	if (err)
		return;
	assert_int_equal(shown_uid, uid);
	assert_int_equal(shown_gid, gid);
}

static void ids_are_shown_as_they_are_by_default(void **state)
{
	(void)state;
	const struct vfs_config config = {.idmap = VFS_IDMAP_NONE, .local_uid = 5};
	struct ids *ids = ids_of(&config);
	uint32_t remote;
	assert_false(ids_need_login(ids));
	assert_shown(ids, 1000, 1001, 0, 1000, 1001);
	assert_int_equal(ids_remote_uid(ids, 1234, &remote), 0);
	assert_int_equal(remote, 1234);
	ids_free(ids);
}

static void the_login_is_shown_as_the_mounting_user(void **state)
{
	(void)state;
	const struct vfs_config config = {
	    .idmap = VFS_IDMAP_USER, .local_uid = 500, .local_gid = 501};
	struct ids *ids = ids_of(&config);
	uint32_t remote;
	assert_true(ids_need_login(ids));
	assert_shown(ids, 2000, 2001, 0, 2000, 2001);
	ids_set_login(ids, true, 2000, 2001);
	assert_false(ids_need_login(ids));
	assert_shown(ids, 2000, 2001, 0, 500, 501);
	assert_shown(ids, 3000, 2001, 0, 3000, 501);
	assert_int_equal(ids_remote_uid(ids, 500, &remote), 0);
	assert_int_equal(remote, 2000);
	assert_int_equal(ids_remote_gid(ids, 501, &remote), 0);
	assert_int_equal(remote, 2001);
	assert_int_equal(ids_remote_uid(ids, 3000, &remote), 0);
	assert_int_equal(remote, 3000);
	assert_true(ids_is_login(ids, 2000));
	assert_false(ids_is_login(ids, 3000));
	ids_free(ids);
}

static void fixed_ids_replace_what_is_shown(void **state)
{
	(void)state;
	const struct vfs_config config = {
	    .idmap = VFS_IDMAP_NONE, .set_uid = true, .uid = 42, .local_uid = 5};
	struct ids *ids = ids_of(&config);
	assert_shown(ids, 1000, 1001, 0, 42, 1001);
	ids_free(ids);
}

static void files_map_ids_in_both_directions(void **state)
{
	(void)state;
	char *users = write_lines("# local name: remote id\n\nroot:1000\n 4242 : 1001 \n");
	char *groups = write_lines("root:100");
	struct vfs_config config = {.idmap = VFS_IDMAP_FILE,
	                            .nomap = VFS_NOMAP_ERROR,
	                            .uid_file = users,
	                            .gid_file = groups};
	struct ids *ids = ids_of(&config);
	uint32_t remote;
	assert_shown(ids, 1000, 100, 0, 0, 0);
	assert_shown(ids, 1001, 100, 0, 4242, 0);
	assert_shown(ids, 1002, 100, -EPERM, 0, 0);
	assert_shown(ids, 1000, 101, -EPERM, 0, 0);
	assert_int_equal(ids_remote_uid(ids, 4242, &remote), 0);
	assert_int_equal(remote, 1001);
	assert_int_equal(ids_remote_gid(ids, 0, &remote), 0);
	assert_int_equal(remote, 100);
	assert_int_equal(ids_remote_uid(ids, 4243, &remote), -EPERM);
	ids_free(ids);

	config.nomap = VFS_NOMAP_IGNORE;
	ids = ids_of(&config);
	assert_shown(ids, 1002, 101, 0, 1002, 101);
	assert_int_equal(ids_remote_uid(ids, 4243, &remote), 0);
	assert_int_equal(remote, 4243);
	ids_free(ids);
	remove_file(users);
	remove_file(groups);
}

static void faults_of_id_files_name_file_and_line(void **state)
{
	(void)state;
	static const struct {
		const char *lines, *complaint;
	} cases[] = {
	    {"root:0\nroot 1000\n", "line 2: no colon"},
	    {"root:abc\n", "line 1: 'abc' is not a remote id"},
	    {"root:-1\n", "is not a remote id"},
	    {"root:4294967295\n", "is not a remote id"},
	    {"root:99999999999\n", "is not a remote id"},
	    {"root:\n", "is not a remote id"},
	    {"\n\nno-such-user-here:5\n", "line 3: there is no local user 'no-such-user-here'"},
	    {":5\n", "there is no local user ''"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *users = write_lines(cases[i].lines);
		const struct vfs_config config = {.idmap = VFS_IDMAP_FILE, .uid_file = users};
		struct failure failure = {.text = ""};
		assert_null(ids_new(&config, &failure));
		assert_int_equal(failure.kind, FAILURE_USAGE);
		assert_non_null(strstr(failure.text, users));
		if (!strstr(failure.text, cases[i].complaint))
			fail_msg("got: %s", failure.text);
		remove_file(users);
	}
	struct failure failure = {.text = ""};
	const struct vfs_config missing = {.idmap = VFS_IDMAP_FILE, .gid_file = "/nonexistent"};
	assert_null(ids_new(&missing, &failure));
	assert_string_equal(failure.text,
	                    "cannot read gidfile /nonexistent: No such file or directory");
	const struct vfs_config none = {.idmap = VFS_IDMAP_FILE};
	assert_null(ids_new(&none, &failure));
}

/* ---- inode numbers ---- */

static uint64_t assign(struct inodes *inodes, uint64_t parent, const char *name, void *owner,
                       void **shared)
{
	uint64_t number = inodes_assign(inodes, parent, name, strlen(name), shared);
	if (!*shared && owner)
		assert_true(inodes_live_add(inodes, number, owner));
	return number;
}

static uint64_t key_of(uint64_t parent, const char *name)
{
	return inode_hash(parent, name, strlen(name));
}

static void a_number_depends_on_the_path_alone(void **state)
{
	(void)state;
	/* Written down, so that a change of the rule, which mounts would see, is noticed. */
	assert_true(key_of(INODE_ROOT, "a") == key_of(INODE_ROOT, "a"));
	assert_true(key_of(INODE_ROOT, "a") != key_of(INODE_ROOT, "b"));
	assert_true(key_of(2, "a") != key_of(3, "a"));
	assert_int_equal(key_of(INODE_ROOT, "etc"), UINT64_C(0xbbb7465668bae3c0));
}

static void a_moved_name_keeps_its_number_and_leaves_none_behind(void **state)
{
	(void)state;
	struct inodes inodes;
	inodes_init(&inodes);
	int file, other;
	void *shared;
	uint64_t number = assign(&inodes, 1, "old", &file, &shared);
	inodes_moved(&inodes, key_of(1, "old"), key_of(1, "new"), number);
	/* A new file under the old name is another file, while the first lives and after. */
	uint64_t second = assign(&inodes, 1, "old", &other, &shared);
	assert_true(second != number);
	inodes_live_remove(&inodes, number, &file);
	inodes_live_remove(&inodes, second, &other);
	assert_int_equal(inodes_peek(&inodes, 1, "new", 3), number);
	assert_int_equal(assign(&inodes, 1, "new", &file, &shared), number);
	assert_int_equal(assign(&inodes, 1, "old", &other, &shared), second);
	/* Moving back needs no exception any more. */
	inodes_live_remove(&inodes, second, &other);
	inodes_moved(&inodes, key_of(1, "new"), key_of(1, "old"), number);
	assert_int_equal(inodes.by_key.count, 0);
	inodes_release(&inodes);
}

static void linked_names_share_their_owner(void **state)
{
	(void)state;
	struct inodes inodes;
	inodes_init(&inodes);
	int file;
	void *shared;
	uint64_t number = assign(&inodes, 1, "a", &file, &shared);
	assert_null(shared);
	inodes_linked(&inodes, key_of(1, "a"), key_of(7, "b"), number);
	assert_int_equal(assign(&inodes, 7, "b", NULL, &shared), number);
	assert_ptr_equal(shared, &file);
	inodes_live_remove(&inodes, number, &file);
	/* Whichever is looked up first after a forget has the number. */
	assert_int_equal(assign(&inodes, 7, "b", &file, &shared), number);
	assert_null(shared);
	assert_int_equal(assign(&inodes, 1, "a", NULL, &shared), number);
	assert_ptr_equal(shared, &file);
	inodes_removed(&inodes, key_of(1, "a"));
	assert_true(assign(&inodes, 1, "a", NULL, &shared) != number);
	assert_null(shared);
	inodes_release(&inodes);
}

static void exceptions_are_bounded(void **state)
{
	(void)state;
	struct inodes inodes;
	inodes_init(&inodes);
	for (uint64_t i = 0; i < INODE_EXCEPTIONS_MAX + 100; i++)
		inodes_moved(&inodes, i, i + 1000000, i + 5000000);
	assert_int_equal(inodes.by_key.count, INODE_EXCEPTIONS_MAX);
	assert_int_equal(inodes.by_number.count, INODE_EXCEPTIONS_MAX);
	inodes_release(&inodes);
}

/* ---- time-outs ---- */

static void a_timeout_doubles_when_revalidation_finds_no_change(void **state)
{
	(void)state;
	const struct timeout_range range = {3, 60};
	struct timeout timeout = {0};
	timeout_adapt(&timeout, &range, false, 100);
	assert_int_equal(timeout.ns, 3);
	timeout_adapt(&timeout, &range, false, 102);
	assert_int_equal(timeout.ns, 3); /* many looks in a row prove no more than one */
	static const struct {
		uint64_t at, want;
	} steps[] = {{103, 6}, {109, 12}, {121, 24}, {145, 48}, {193, 60}, {253, 60}};
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		timeout_adapt(&timeout, &range, false, steps[i].at);
		assert_int_equal(timeout.ns, steps[i].want);
	}
	timeout_adapt(&timeout, &range, true, 254);
	assert_int_equal(timeout.ns, 3);
}

static void what_is_left_of_a_timeout(void **state)
{
	(void)state;
	assert_int_equal(timeout_left(0, 100, 50), 0); /* never asked */
	assert_int_equal(timeout_left(10, 100, 50), 60);
	assert_int_equal(timeout_left(10, 100, 110), 0);
	assert_int_equal(timeout_left(10, 100, 5000), 0);
	assert_int_equal(timeout_left(10, 100, 5), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(targets_that_stay_inside_are_shown),
	    cmocka_unit_test(doubtful_targets_are_put_to_the_server),
	    cmocka_unit_test(the_whole_server_as_root_contains_all_absolute_targets),
	    cmocka_unit_test(the_servers_answer_is_judged_again),
	    cmocka_unit_test(without_containment_targets_are_shown_as_they_are),
	    cmocka_unit_test(ids_are_shown_as_they_are_by_default),
	    cmocka_unit_test(the_login_is_shown_as_the_mounting_user),
	    cmocka_unit_test(fixed_ids_replace_what_is_shown),
	    cmocka_unit_test(files_map_ids_in_both_directions),
	    cmocka_unit_test(faults_of_id_files_name_file_and_line),
	    cmocka_unit_test(a_number_depends_on_the_path_alone),
	    cmocka_unit_test(a_moved_name_keeps_its_number_and_leaves_none_behind),
	    cmocka_unit_test(linked_names_share_their_owner),
	    cmocka_unit_test(exceptions_are_bounded),
	    cmocka_unit_test(a_timeout_doubles_when_revalidation_finds_no_change),
	    cmocka_unit_test(what_is_left_of_a_timeout),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
