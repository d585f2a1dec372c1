/* Operations on attributes, open files and the server as a whole. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "remote/call.h"

static int look(struct remote *remote, enum op_kind kind, const char *path,
                struct remote_attr *attr)
{
	struct op op = {.kind = kind, .path = path};
	int err = remote_call_plain(remote, &op);
	*attr = op.attr;
	return err;
}

int remote_lstat(struct remote *remote, const char *path, struct remote_attr *attr)
{
	return look(remote, OP_LSTAT, path, attr);
}

int remote_stat(struct remote *remote, const char *path, struct remote_attr *attr)
{
	return look(remote, OP_STAT, path, attr);
}

/*
 * SFTP has one word for EPERM and EACCES. Changing attributes of another's file is EPERM
 * locally, and cp, tar and rsync go on after that one.
 */
static int setattr_error(struct remote *remote, const char *path,
                         const struct remote_attr *attr, int err)
{
	if (err == -EACCES && !(attr->valid & ATTR_SIZE))
		return -EPERM;
	if (err == -EREMOTEIO && attr->valid & ATTR_SIZE) {
		struct remote_attr found;
		if (remote_stat(remote, path, &found) == 0 && S_ISDIR(found.mode))
			return -EISDIR;
		return remote_explain_write(remote, path, err);
	}
	return remote_plain_error(err);
}

int remote_setattr(struct remote *remote, const char *path, const struct remote_attr *attr,
                   bool is_symlink)
{
	if (is_symlink && !remote->caps.lsetattr)
		return -EOPNOTSUPP;
	struct op op = {
	    .kind = is_symlink ? OP_LSETATTR : OP_SETATTR, .path = path, .attr = *attr};
	int err = remote_call(remote, &op);
	return err ? setattr_error(remote, path, attr, err) : 0;
}

int remote_fsetattr(struct remote_file *file, const struct remote_attr *attr)
{
	struct op op = {.kind = OP_FSETATTR, .file = file, .attr = *attr};
	int err = remote_call(file->remote, &op);
	if (!err)
		return 0;
	CLEANUP_FREE char *path = remote_file_path(file);
	return path ? setattr_error(file->remote, path, attr, err) : -ENOMEM;
}

/* Why `path` could not be opened, when the server did not say. */
static int explain_open(struct remote *remote, const char *path, unsigned flags, int err)
{
	if (err != -EREMOTEIO && !(err == -EACCES && flags & (OPEN_EXCL | OPEN_WRITE)))
		return remote_plain_error(err);
	struct remote_attr attr;
	int found = remote_stat(remote, path, &attr);
	if (found == 0 && flags & OPEN_EXCL)
		return -EEXIST;
	if (found == 0 && S_ISDIR(attr.mode) && flags & OPEN_WRITE)
		return -EISDIR;
	if (err == -EACCES)
		return err;
	if (found && flags & OPEN_CREATE)
		return remote_explain_write(remote, path, err);
	return -EIO;
}

int remote_open(struct remote_file *file, unsigned open_flags, struct remote_attr *attr)
{
	CLEANUP_FREE char *path = NULL;
	struct remote_attr opened = *attr;
	int err = -ENOLINK;
	for (int tries = 0; err == -ENOLINK && tries < SETTLE_TRIES; tries++) {
		struct op op = {
		    .kind = OP_OPEN, .file = file, .open_flags = open_flags, .attr = *attr};
		err = remote_call(file->remote, &op);
		opened = op.attr;
		if (err && !path && !(path = remote_file_path(file)))
			return -ENOMEM;
		/* An exclusive create was under way: an empty file now there is the one it
		 * made. */
		struct remote_attr found;
		if (err == -ENOLINK && remote_lstat(file->remote, path, &found) == 0 &&
		    S_ISREG(found.mode) && found.size == 0)
			open_flags &= ~(unsigned)OPEN_EXCL;
	}
	if (err)
		return explain_open(file->remote, path, open_flags, err);
	*attr = opened;
	remote_file_opened(file, open_flags, attr);
	return 0;
}

int remote_fstat(struct remote_file *file, struct remote_attr *attr)
{
	struct op op = {.kind = OP_FSTAT, .file = file};
	int err = remote_call_plain(file->remote, &op);
	*attr = op.attr;
	return err;
}

int remote_fsync(struct remote_file *file)
{
	if (!file->remote->caps.fsync)
		return -EOPNOTSUPP;
	struct op op = {.kind = OP_FSYNC, .file = file};
	int err = remote_call(file->remote, &op);
	if (err != -EREMOTEIO)
		return remote_plain_error(err);
	CLEANUP_FREE char *path = remote_file_path(file);
	return path ? remote_explain_write(file->remote, path, err) : -ENOMEM;
}

int remote_read(struct remote_file *file, uint64_t offset, void *data, size_t length,
                size_t *count)
{
	struct op op = {.kind = OP_READ,
	                .op_class = OP_CLASS_BULK,
	                .file = file,
	                .offset = offset,
	                .data = data,
	                .length = length};
	int err = remote_call_plain(file->remote, &op);
	*count = op.count;
	return err;
}

int remote_copy(struct remote_file *from, uint64_t from_offset, struct remote_file *to,
                uint64_t to_offset, uint64_t length)
{
	if (!to->remote->caps.copy)
		return -EOPNOTSUPP;
	struct op op = {.kind = OP_COPY,
	                .file = from,
	                .offset = from_offset,
	                .file2 = to,
	                .offset2 = to_offset,
	                .length = length};
	int err = remote_call(to->remote, &op);
	/* Refused without a reason, as within one file, or open on different lanes only:
	 * reading and writing does it, or finds the reason. */
	return err == -EREMOTEIO || err == -ESTALE ? -EOPNOTSUPP : remote_plain_error(err);
}

int remote_statfs(struct remote *remote, const char *path, struct remote_statfs *statfs)
{
	if (!remote->caps.statfs)
		return -EOPNOTSUPP;
	struct op op = {.kind = OP_STATFS, .path = path};
	int err = remote_call_plain(remote, &op);
	*statfs = op.statfs;
	return err;
}

int remote_realpath(struct remote *remote, const char *path, char **result)
{
	struct op op = {.kind = OP_REALPATH, .path = path};
	int err = remote_call_plain(remote, &op);
	*result = op.text;
	return err;
}

int remote_names(struct remote *remote, const uint32_t *ids, size_t count, bool groups,
                 char **names)
{
	if (!remote->caps.names)
		return -EOPNOTSUPP;
	struct op op = {
	    .kind = OP_NAMES, .ids = ids, .id_count = count, .ids_are_groups = groups};
	int err = remote_call_plain(remote, &op);
	*names = op.text;
	return err;
}

int remote_ping(struct remote *remote)
{
	struct op op = {.kind = OP_PING};
	return remote_call_plain(remote, &op);
}

int remote_explain_write(struct remote *remote, const char *path, int err)
{
	if (err != -EREMOTEIO)
		return remote_plain_error(err);
	struct remote_statfs fs;
	/* The file may be gone by name; its directory is on the same file system. */
	int looked = remote_statfs(remote, path, &fs);
	if (looked) {
		const char *slash = strrchr(path, '/');
		CLEANUP_FREE char *dir =
		    slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path))
		          : strdup(".");
		looked = dir ? remote_statfs(remote, dir, &fs) : -ENOMEM;
	}
	return looked ? -EIO : remote_statfs_refusal(&fs);
}
