/*
 * Operations on names. OpenSSH's server says only "Failure" to many things, others say
 * "Permission denied" where a name exists; and a lost connection leaves open whether an
 * operation happened. Both are settled here by looking.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "remote/call.h"

static int one_path(struct remote *remote, enum op_kind kind, const char *path)
{
	struct op op = {.kind = kind, .path = path};
	return remote_call(remote, &op);
}

static int two_paths(struct remote *remote, enum op_kind kind, const char *path,
                     const char *path2)
{
	struct op op = {.kind = kind, .path = path, .path2 = path2};
	return remote_call(remote, &op);
}

static bool exists(struct remote *remote, const char *path, struct remote_attr *attr)
{
	struct remote_attr unused;
	return remote_lstat(remote, path, attr ? attr : &unused) == 0;
}

/* The answer may hide a reason: "failure", or a refusal that some servers give to anything. */
static bool is_vague(int err)
{
	return err == -EREMOTEIO || err == -EACCES || err == -EPERM;
}

/* The directory part of a path, malloc'ed. */
static char *parent_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	if (!slash)
		return strdup(".");
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Why nothing can be made in the directory of `path`, as far as its file system tells. */
static int refusal_of(struct remote *remote, const char *path)
{
	CLEANUP_FREE char *dir = parent_of(path);
	struct remote_statfs fs;
	return !dir || remote_statfs(remote, dir, &fs) ? -EIO : remote_statfs_refusal(&fs);
}

/* Why a name that is there cannot be removed. */
static int remove_refusal(struct remote *remote, const char *path)
{
	return refusal_of(remote, path) == -EROFS ? -EROFS : -EBUSY;
}

/* Why `path` could not be made, when the server did not say. */
static int explain_create(struct remote *remote, const char *path, int err)
{
	if (!is_vague(err))
		return remote_plain_error(err);
	if (exists(remote, path, NULL))
		return -EEXIST;
	if (err != -EREMOTEIO)
		return err;
	return refusal_of(remote, path);
}

int remote_mkdir(struct remote *remote, const char *path, uint32_t mode)
{
	struct remote_attr attr;
	int err = -ENOLINK;
	for (int tries = 0; err == -ENOLINK && tries < SETTLE_TRIES; tries++) {
		struct op op = {.kind = OP_MKDIR, .path = path};
		op.attr.valid = ATTR_MODE;
		op.attr.mode = mode;
		err = remote_call(remote, &op);
		if (err == -ENOLINK && exists(remote, path, &attr) && S_ISDIR(attr.mode))
			return 0;
	}
	return err ? explain_create(remote, path, err) : 0;
}

int remote_symlink(struct remote *remote, const char *target, const char *path)
{
	int err = -ENOLINK;
	for (int tries = 0; err == -ENOLINK && tries < SETTLE_TRIES; tries++) {
		err = two_paths(remote, OP_SYMLINK, path, target);
		CLEANUP_FREE char *found = NULL;
		if (err == -ENOLINK && remote_readlink(remote, path, &found) == 0 &&
		    strcmp(found, target) == 0)
			return 0;
	}
	return err ? explain_create(remote, path, err) : 0;
}

static bool same_file_system(struct remote *remote, const char *a, const char *b)
{
	CLEANUP_FREE char *dir_a = parent_of(a);
	CLEANUP_FREE char *dir_b = parent_of(b);
	struct remote_statfs fs_a, fs_b;
	if (!dir_a || !dir_b || strcmp(dir_a, dir_b) == 0 ||
	    remote_statfs(remote, dir_a, &fs_a) || remote_statfs(remote, dir_b, &fs_b))
		return true;
	return fs_a.fsid == fs_b.fsid && fs_a.blocks == fs_b.blocks && fs_a.files == fs_b.files;
}

int remote_link(struct remote *remote, const char *from, const char *to)
{
	int err = -ENOLINK;
	for (int tries = 0; err == -ENOLINK && tries < SETTLE_TRIES; tries++) {
		err = two_paths(remote, OP_LINK, from, to);
		if (err == -ENOLINK && exists(remote, to, NULL))
			return 0;
	}
	if (!is_vague(err))
		return remote_plain_error(err);
	if (exists(remote, to, NULL))
		return -EEXIST;
	if (err == -EREMOTEIO && !same_file_system(remote, from, to))
		return -EXDEV;
	return explain_create(remote, to, err);
}

static int stop_at_first(struct op *op, const struct remote_entry *entries, size_t count)
{
	(void)entries;
	op->count += count;
	return count > 0;
}

/* 1: has entries, 0: empty, or -errno. */
static int dir_has_entries(struct remote *remote, const char *path)
{
	struct op op = {.kind = OP_LIST, .path = path, .entries = stop_at_first};
	int err = remote_call_plain(remote, &op);
	if (op.count > 0)
		return 1;
	return err;
}

/* OP_UNLINK or OP_RMDIR; what was lost on the way is looked after and sent again. */
static int remove_settled(struct remote *remote, enum op_kind kind, const char *path)
{
	int err = -ENOLINK;
	for (int tries = 0; err == -ENOLINK && tries < SETTLE_TRIES; tries++) {
		err = one_path(remote, kind, path);
		struct remote_attr attr;
		int look = err == -ENOLINK ? remote_lstat(remote, path, &attr) : 0;
		if (look)
			return look == -ENOENT ? 0 : look;
	}
	return err;
}

int remote_rmdir(struct remote *remote, const char *path)
{
	struct remote_attr attr;
	int err = remove_settled(remote, OP_RMDIR, path);
	/* OpenSSH has one word for ENOENT and ENOTDIR, too. */
	if (!is_vague(err) && err != -ENOENT)
		return remote_plain_error(err);
	int look = remote_lstat(remote, path, &attr);
	if (look)
		return look;
	if (!S_ISDIR(attr.mode))
		return -ENOTDIR;
	if (dir_has_entries(remote, path) == 1)
		return -ENOTEMPTY;
	return err == -EREMOTEIO ? remove_refusal(remote, path) : err;
}

int remote_unlink(struct remote *remote, const char *path)
{
	struct remote_attr attr;
	int err = remove_settled(remote, OP_UNLINK, path);
	if (err == -EREMOTEIO) {
		int look = remote_lstat(remote, path, &attr);
		if (look)
			return look;
		return S_ISDIR(attr.mode) ? -EISDIR : remove_refusal(remote, path);
	}
	return remote_plain_error(err);
}

/* Why a rename failed, when the server did not say. */
static int explain_rename(struct remote *remote, const char *from, const char *to, int err)
{
	if (!is_vague(err))
		return remote_plain_error(err);
	struct remote_attr source, target;
	int look = remote_lstat(remote, from, &source);
	if (look)
		return look;
	if (exists(remote, to, &target)) {
		if (S_ISDIR(target.mode) && !S_ISDIR(source.mode))
			return -EISDIR;
		if (!S_ISDIR(target.mode) && S_ISDIR(source.mode))
			return -ENOTDIR;
		if (S_ISDIR(target.mode) && dir_has_entries(remote, to) == 1)
			return -ENOTEMPTY;
	}
	size_t length = strlen(from);
	if (strncmp(from, to, length) == 0 && to[length] == '/')
		return -EINVAL;
	if (!same_file_system(remote, from, to))
		return -EXDEV;
	if (err != -EREMOTEIO)
		return err;
	return refusal_of(remote, to);
}

/* After a lost connection: 0 when the rename has happened, 1 when not, or -errno. */
static int rename_unfinished(struct remote *remote, const char *from, const char *to)
{
	struct remote_attr attr;
	int look = remote_lstat(remote, from, &attr);
	if (look == 0)
		return 1;
	if (look != -ENOENT)
		return look;
	return remote_lstat(remote, to, &attr);
}

static int rename_settled(struct remote *remote, enum op_kind kind, const char *from,
                          const char *to)
{
	int err = -ENOLINK;
	for (int tries = 0; err == -ENOLINK && tries < SETTLE_TRIES; tries++) {
		err = two_paths(remote, kind, from, to);
		int look = err == -ENOLINK ? rename_unfinished(remote, from, to) : 1;
		if (look != 1)
			return look;
	}
	return err;
}

/*
 * Replacing on a server that cannot do it in one step: the old file steps aside under a
 * temporary name and comes back when the new one cannot take its place, so that at every moment
 * one of the two is there.
 */
static int rename_by_swap(struct remote *remote, const char *from, const char *to)
{
	static atomic_uint serial;
	CLEANUP_FREE char *aside = NULL;
	uint64_t tag = map_hash(to, strlen(to), clock_now_ns() + atomic_fetch_add(&serial, 1));
	CLEANUP_FREE char *dir = parent_of(to);
	if (!dir || asprintf(&aside, "%s%s.moorfs-%016llx", dir, strcmp(dir, "/") ? "/" : "",
	                     (unsigned long long)tag) < 0) {
		aside = NULL;
		return -ENOMEM;
	}
	int err = rename_settled(remote, OP_RENAME_NEW, to, aside);
	if (err)
		return explain_rename(remote, to, aside, err);
	err = rename_settled(remote, OP_RENAME_NEW, from, to);
	if (err) {
		int why = explain_rename(remote, from, to, err);
		int back = rename_settled(remote, OP_RENAME_NEW, aside, to);
		if (back)
			log_error("renaming '%s' failed and the old '%s' is now '%s': %s", from,
			          to, aside, strerror(-remote_plain_error(back)));
		return why;
	}
	err = remote_unlink(remote, aside);
	if (err)
		log_warn("the replaced file '%s' is left as '%s': %s", to, aside,
		         strerror(-err));
	return 0;
}

static int rename_without_replace(struct remote *remote, const char *from, const char *to)
{
	/* Some servers' plain rename replaces; so look first. */
	if (exists(remote, to, NULL))
		return -EEXIST;
	int err = rename_settled(remote, OP_RENAME_NEW, from, to);
	if (is_vague(err) && exists(remote, to, NULL))
		return -EEXIST;
	return err ? explain_rename(remote, from, to, err) : 0;
}

int remote_rename(struct remote *remote, const char *from, const char *to, bool replace)
{
	if (!replace)
		return rename_without_replace(remote, from, to);
	int err = remote->caps.posix_rename ? rename_settled(remote, OP_RENAME, from, to)
	                                    : -EOPNOTSUPP;
	if (err != -EOPNOTSUPP)
		return err ? explain_rename(remote, from, to, err) : 0;

	err = rename_settled(remote, OP_RENAME_NEW, from, to);
	struct remote_attr source, target;
	if (err == 0 || !(is_vague(err) || err == -EEXIST) || !exists(remote, to, &target) ||
	    !exists(remote, from, &source))
		return err ? explain_rename(remote, from, to, err) : 0;
	if (S_ISDIR(source.mode) != S_ISDIR(target.mode))
		return S_ISDIR(target.mode) ? -EISDIR : -ENOTDIR;
	if (S_ISDIR(target.mode)) {
		err = remote_rmdir(remote, to);
		if (err)
			return err;
		err = rename_settled(remote, OP_RENAME_NEW, from, to);
		return err ? explain_rename(remote, from, to, err) : 0;
	}
	return rename_by_swap(remote, from, to);
}

int remote_readlink(struct remote *remote, const char *path, char **target)
{
	struct op op = {.kind = OP_READLINK, .path = path};
	int err = remote_call(remote, &op);
	*target = op.text;
	if (err == -EREMOTEIO) {
		struct remote_attr attr;
		int look = remote_lstat(remote, path, &attr);
		if (look)
			return look;
		return S_ISLNK(attr.mode) ? -EIO : -EINVAL;
	}
	return remote_plain_error(err);
}
