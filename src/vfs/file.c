/* Open files. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "vfs/internal.h"

/* One request must end before its deadline, however slow the server's disk is. */
#define COPY_PIECE (UINT64_C(64) << 20)

/* ---- all open files of a node ---- */

struct remote_file *file_any(struct node *node, unsigned access)
{
	list_for_each (link, &node->files) {
		struct vfs_file *file = list_entry(link, struct vfs_file, of_node);
		if ((file->access & access) == access)
			return remote_file_ref(io_handle_remote(file->handle));
	}
	return NULL;
}

void files_set_unlinked(struct node *node)
{
	list_for_each (link, &node->files)
		remote_file_set_unlinked(
		    io_handle_remote(list_entry(link, struct vfs_file, of_node)->handle));
}

void files_set_written(struct node *node)
{
	list_for_each (link, &node->files)
		remote_file_set_written(
		    io_handle_remote(list_entry(link, struct vfs_file, of_node)->handle));
}

void files_moved(struct vfs *vfs, struct node *node)
{
	list_for_each (link, &vfs->open_files) {
		struct vfs_file *file = list_entry(link, struct vfs_file, of_all);
		CLEANUP_FREE char *path = NULL;
		if (!node_is_below(file->node, node))
			continue;
		if (node_path(&vfs->nodes, file->node, NULL, &path) != 0 ||
		    remote_file_moved(io_handle_remote(file->handle), path) != 0)
			log_error("out of memory: an open file cannot be found again under its "
			          "new name when the connection is lost");
	}
}

/* The open files of a node, or at and below a directory. */
static bool file_moves(const struct vfs_file *file, const struct node *node)
{
	return file->node == node || (node_is_dir(node) && node_is_below(file->node, node));
}

static void add_moving(struct moving_files *moving, struct remote_file *file)
{
	struct remote_file **files =
	    realloc(moving->files, (moving->count + 1) * sizeof(struct remote_file *));
	if (!files)
		return;
	moving->files = files;
	files[moving->count++] = remote_file_ref(file);
	remote_file_moving(file, true);
}

void files_moving(struct vfs *vfs, struct node *node, struct moving_files *moving)
{
	list_for_each (link, &vfs->open_files) {
		const struct vfs_file *file = list_entry(link, struct vfs_file, of_all);
		if (file_moves(file, node))
			add_moving(moving, io_handle_remote(file->handle));
	}
}

void files_moved_on(struct moving_files *moving)
{
	for (size_t i = 0; i < moving->count; i++) {
		remote_file_moving(moving->files[i], false);
		remote_file_unref(moving->files[i]);
	}
	free(moving->files);
	*moving = (struct moving_files){0};
}

struct io_file *file_data(struct vfs *vfs, const struct node *node)
{
	NODES_SCOPE(&vfs->nodes);
	return node->io_file;
}

int files_drain(struct vfs *vfs, struct node *node)
{
	struct io_file *data = file_data(vfs, node);
	int err = data && io_file_dirty(data) ? io_file_drain(data) : 0;
	if (!err)
		files_settle(vfs, node);
	return err;
}

void files_settle(struct vfs *vfs, struct node *node)
{
	NODES_SCOPE(&vfs->nodes);
	if (!node->unsettled || attr_is_dirty(node))
		return;
	/* It is not as it was told to be, or has been written to since. */
	if (node->io_file && (io_file_attr_lost(node->io_file, true) ||
	                      (node->foreseen && !attr_is_foreseen(node))))
		attr_changed(vfs, node);
	node->unsettled = node->foreseen = false;
	node->settled = nodes_stamp(&vfs->nodes);
}

/* An open file that the server is still to open, referenced; it is told so only once. */
static struct remote_file *take_unopened(struct vfs *vfs, struct node *node)
{
	NODES_SCOPE(&vfs->nodes);
	list_for_each (link, &node->files) {
		struct vfs_file *file = list_entry(link, struct vfs_file, of_node);
		struct remote_file *remote_file = io_handle_remote(file->handle);
		bool take = file->unopened && !remote_file_has_handle(remote_file);
		file->unopened = false;
		if (take)
			return remote_file_ref(remote_file);
	}
	return NULL;
}

void files_hold(struct vfs *vfs, struct node *node)
{
	struct remote_file *file;
	while ((file = take_unopened(vfs, node))) {
		/* Any question opens it; what it answers is of no interest, and if it cannot be
		 * opened the contents at hand have to do. */
		struct remote_attr attr;
		remote_fstat(file, &attr);
		remote_file_unref(file);
	}
}

/* ---- opening ---- */

/* The node's io_file, made now if it has none; NULL when memory is out. */
static struct io_file *need_data(struct vfs *vfs, struct node *node)
{
	struct io_file *data = file_data(vfs, node);
	if (data)
		return data;
	struct io_file *made = io_file_new(vfs->io);
	if (!made)
		return NULL;
	nodes_lock(&vfs->nodes);
	if (!node->io_file) {
		node->io_file = made;
		made = NULL;
	}
	data = node->io_file;
	nodes_unlock(&vfs->nodes);
	if (made)
		io_file_free(made);
	return data;
}

static unsigned access_of(int flags)
{
	switch (flags & O_ACCMODE) {
	case O_WRONLY:
		return OPEN_WRITE;
	case O_RDWR:
		return OPEN_READ | OPEN_WRITE;
	default:
		return OPEN_READ;
	}
}

static unsigned open_flags_of(int flags)
{
	unsigned open_flags = access_of(flags);
	if (flags & O_CREAT)
		open_flags |= OPEN_CREATE;
	if (flags & O_EXCL && flags & O_CREAT)
		open_flags |= OPEN_EXCL;
	if (flags & O_TRUNC && open_flags & OPEN_WRITE)
		open_flags |= OPEN_TRUNC;
	return open_flags;
}

/* A rename, unlink or write while the file was being opened has not reached it. */
static void catch_up(struct vfs *vfs, struct node *node, struct remote_file *file,
                     const struct answer *answer)
{
	if (attr_is_outdated(node, answer))
		remote_file_set_written(file);
	CLEANUP_FREE char *path = NULL;
	CLEANUP_FREE char *opened = remote_file_path(file);
	int err = node_path(&vfs->nodes, node, NULL, &path);
	if (err == -ENOENT)
		remote_file_set_unlinked(file);
	else if (err || !opened || (strcmp(path, opened) != 0 && remote_file_moved(file, path)))
		log_warn(
		    "out of memory: an open file may not be found again under its new name "
		    "when the connection is lost");
}

struct vfs_file *file_new(struct vfs *vfs, struct node *node, struct remote_file *remote_file,
                          unsigned access, const struct answer *answer)
{
	struct io_file *data = need_data(vfs, node);
	struct vfs_file *file = data ? calloc(1, sizeof(*file)) : NULL;
	if (file)
		file->handle = io_handle_new(data, remote_file);
	if (!file || !file->handle) {
		free(file);
		remote_file_unref(remote_file);
		return NULL;
	}
	file->node = node;
	file->access = access;
	NODES_SCOPE(&vfs->nodes);
	node_hold(node);
	list_push_back(&node->files, &file->of_node);
	list_push_back(&vfs->open_files, &file->of_all);
	catch_up(vfs, node, remote_file, answer);
	return file;
}

/*
 * The file is open and the server has told its attributes: brings node, io and the kernel's
 * pages up to date.
 */
static void opened(struct vfs *vfs, struct vfs_file *file, const struct answer *answer,
                   bool truncated, struct vfs_open_info *info)
{
	struct node *node = file->node;
	if (truncated)
		io_file_truncated(file_data(vfs, node), 0);
	nodes_lock(&vfs->nodes);
	if (truncated) {
		files_set_written(node);
		attr_changed(vfs, node);
	} else {
		attr_store(vfs, node, answer);
	}
	nodes_unlock(&vfs->nodes);
	bool same = truncated || attr_data_check(vfs, node, answer);

	nodes_lock(&vfs->nodes);
	info->file = file;
	info->direct_io = vfs->config.direct_io;
	info->keep_cache = vfs->config.kernel_cache || (same && !node->pages_stale);
	info->attr_changed = attr_differs_from_shown(node);
	/* Without keep_cache the kernel drops its pages now. */
	node->pages_stale = false;
	nodes_unlock(&vfs->nodes);
	count(&vfs->counters.opens);
	if (info->keep_cache)
		count(&vfs->counters.opens_kept);
}

/* Opens the node by its path, or `name` in it. *file has one reference for the caller. */
static int open_path(struct vfs *vfs, struct node *node, const char *name, unsigned open_flags,
                     mode_t mode, struct answer *answer, struct remote_file **file)
{
	PATH_TRY at = {0};
	int err;
	do {
		*file = NULL;
		answer_begin(vfs, answer, name ? NULL : node);
		answer->attr = (struct remote_attr){.valid = ATTR_MODE, .mode = mode & 07777};
		err = path_of(vfs, &at, node, name);
		if (!err) {
			*file = remote_file_new(vfs->remote, at.path,
			                        open_flags & (OPEN_READ | OPEN_WRITE));
			err = *file ? remote_open(*file, open_flags, &answer->attr) : -ENOMEM;
		}
		if (err && *file)
			remote_file_unref(*file);
	} while (path_again(vfs, &at, err));
	return err;
}

/* A file without a name can only be had through one that is open. */
static struct remote_file *share_unlinked(struct vfs *vfs, struct node *node, unsigned access)
{
	NODES_SCOPE(&vfs->nodes);
	return node_is_unlinked(&vfs->nodes, node) ? file_any(node, access) : NULL;
}

/*
 * Opens the file by the contents that were fetched ahead, without asking the server, which
 * opens it when more is wanted of it. 1 when that was done, 0 when it cannot be, -errno.
 */
static int open_fetched(struct vfs *vfs, struct node *node, struct vfs_open_info *info)
{
	struct answer answer;
	prefetch_file_opened(vfs, node);
	struct io_whole *whole = prefetch_take(vfs, node, &answer);
	if (!whole)
		return 0;
	CLEANUP_FREE char *path = NULL;
	nodes_lock(&vfs->nodes);
	int err = node_path(&vfs->nodes, node, NULL, &path);
	nodes_unlock(&vfs->nodes);
	struct remote_file *remote_file =
	    err ? NULL : remote_file_new(vfs->remote, path, OPEN_READ);
	struct vfs_file *file =
	    remote_file ? file_new(vfs, node, remote_file, OPEN_READ, &answer) : NULL;
	if (!file) {
		io_whole_free(whole);
		return err == -ENOENT ? 0 : -ENOMEM;
	}
	nodes_lock(&vfs->nodes);
	file->unopened = true;
	nodes_unlock(&vfs->nodes);
	opened(vfs, file, &answer, false, info);
	io_file_adopt(file_data(vfs, node), whole);
	count(&vfs->counters.opens_fetched);
	return 1;
}

int vfs_open(struct vfs *vfs, struct node *node, int flags, struct vfs_open_info *info)
{
	memset(info, 0, sizeof(*info));
	unsigned open_flags = open_flags_of(flags & ~(O_CREAT | O_EXCL));
	bool truncate = open_flags & OPEN_TRUNC;
	/* What others have written is in order before the file is cut, or looked at. */
	int err = files_drain(vfs, node);
	if (!err && open_flags == OPEN_READ)
		err = open_fetched(vfs, node, info);
	if (err)
		return MIN(err, 0);
	struct answer answer;
	struct remote_file *remote_file = share_unlinked(vfs, node, access_of(flags));
	if (remote_file) {
		answer_begin(vfs, &answer, node);
		const struct remote_attr empty = {.valid = ATTR_SIZE};
		err = truncate ? remote_fsetattr(remote_file, &empty)
		               : remote_fstat(remote_file, &answer.attr);
		if (err)
			remote_file_unref(remote_file);
	} else {
		err = open_path(vfs, node, NULL, open_flags, 0, &answer, &remote_file);
	}
	if (err == -ENOENT)
		attr_vanished(vfs, node);
	if (err)
		return err;
	struct vfs_file *file = file_new(vfs, node, remote_file, access_of(flags), &answer);
	if (!file)
		return -ENOMEM;
	opened(vfs, file, &answer, truncate, info);
	return 0;
}

int vfs_create(struct vfs *vfs, struct node *parent, const char *name, mode_t mode, int flags,
               struct vfs_entry *entry, struct vfs_open_info *info)
{
	memset(info, 0, sizeof(*info));
	memset(entry, 0, sizeof(*entry));
	int err = check_name(name);
	if (err)
		return err;
	attr_learn_login(vfs);
	if (create_ahead(vfs, parent, name, mode, open_flags_of(flags | O_CREAT), entry, info))
		return 0;
	struct answer answer;
	struct remote_file *remote_file;
	err = open_path(vfs, parent, name, open_flags_of(flags | O_CREAT), mode, &answer,
	                &remote_file);
	if (err) {
		name_uncertain(vfs, parent, name, err);
		return err;
	}
	nodes_lock(&vfs->nodes);
	names_added(vfs, parent, name, strlen(name));
	answer.stamp = vfs->nodes.stamp;
	if (flags & O_EXCL)
		login_learn(vfs, parent, &answer.attr);
	nodes_unlock(&vfs->nodes);
	err = entry_enter(vfs, parent, name, strlen(name), &answer, entry);
	if (err == ENTRY_AGAIN) /* somebody has removed it already */
		err = entry_enter_new(vfs, parent, name, entry);
	if (err) {
		remote_file_unref(remote_file);
		return err;
	}
	struct vfs_file *file =
	    file_new(vfs, entry->node, remote_file, access_of(flags), &answer);
	if (!file) {
		vfs_forget(vfs, entry->node, 1);
		memset(entry, 0, sizeof(*entry));
		return -ENOMEM;
	}
	opened(vfs, file, &answer, false, info);
	return 0;
}

void vfs_release(struct vfs *vfs, struct vfs_file *file)
{
	nodes_lock(&vfs->nodes);
	list_remove(&file->of_node);
	list_remove(&file->of_all);
	nodes_unlock(&vfs->nodes);
	io_handle_free(file->handle);
	files_settle(vfs, file->node);
	nodes_lock(&vfs->nodes);
	node_drop(&vfs->nodes, file->node);
	nodes_unlock(&vfs->nodes);
	free(file);
}

/* ---- bytes ---- */

void vfs_read(struct vfs *vfs, struct vfs_file *file, uint64_t offset, size_t length,
              io_read_fn *done, void *context)
{
	(void)vfs;
	io_read(file->handle, offset, length, done, context);
}

void vfs_read_cancel(struct vfs *vfs, struct vfs_file *file, void *context)
{
	(void)vfs;
	io_read_cancel(file->handle, context);
}

void vfs_write(struct vfs *vfs, struct vfs_file *file, uint64_t offset, const void *data,
               size_t length, int flags, io_write_fn *done, void *context)
{
	/* Once `done` was called the file may be released, and a stat must see the write:
	 * while `writers` counts us no attributes are taken for fresh. */
	struct node *node = file->node;
	nodes_lock(&vfs->nodes);
	node_hold(node);
	node->writers++;
	node->unsettled = true;
	attr_changed(vfs, node);
	nodes_unlock(&vfs->nodes);
	io_write(file->handle, offset, data, length, flags & O_APPEND, done, context);
	NODES_SCOPE(&vfs->nodes);
	node->writers--;
	node_drop(&vfs->nodes, node);
}

/* Whether the attributes would have to be asked for after the writes. */
static bool wants_look(struct vfs *vfs, const struct node *node)
{
	NODES_SCOPE(&vfs->nodes);
	return node->unsettled && !attr_is_foreseen(node) &&
	       !attr_left(vfs, node, clock_now_ns());
}

/* Takes over what the server told behind the last write. */
static void take_look(struct vfs *vfs, struct node *node, struct answer *answer)
{
	answer->has_mark = io_file_looked(node->io_file, &answer->attr, &answer->mark);
	if (!answer->has_mark || attr_kind(&answer->attr) != node->kind)
		return;
	nodes_lock(&vfs->nodes);
	bool stored = attr_store(vfs, node, answer);
	nodes_unlock(&vfs->nodes);
	if (stored)
		attr_data_check(vfs, node, answer);
}

int vfs_flush(struct vfs *vfs, struct vfs_file *file)
{
	struct node *node = file->node;
	const bool look = !vfs->config.async && wants_look(vfs, node);
	struct answer answer;
	answer_begin(vfs, &answer, node);
	if (look)
		io_look(file->handle);
	int err = io_flush(file->handle);
	files_settle(vfs, node);
	if (look && !err)
		take_look(vfs, node, &answer);
	return err;
}

int vfs_fsync(struct vfs *vfs, struct vfs_file *file)
{
	int err = io_fsync(file->handle);
	files_settle(vfs, file->node);
	return err;
}

/* How much there is to copy of the source. */
static int copy_length(struct vfs *vfs, struct vfs_file *from, uint64_t offset,
                       uint64_t *length)
{
	int err = attr_refresh(vfs, from->node, from, false);
	if (err)
		return err;
	uint64_t size = io_file_size(file_data(vfs, from->node));
	*length = offset < size ? MIN(MIN(*length, size - offset), COPY_PIECE) : 0;
	return 0;
}

int vfs_copy_range(struct vfs *vfs, struct vfs_file *from, uint64_t from_offset,
                   struct vfs_file *to, uint64_t to_offset, uint64_t length, uint64_t *copied)
{
	*copied = 0;
	if (!vfs->remote->caps.copy)
		return -EOPNOTSUPP;
	int err = files_drain(vfs, from->node);
	if (!err)
		err = files_drain(vfs, to->node);
	if (!err)
		err = copy_length(vfs, from, from_offset, &length);
	if (err || !length)
		return err;
	err = remote_copy(io_handle_remote(from->handle), from_offset,
	                  io_handle_remote(to->handle), to_offset, length);
	/* Even a failed one may have written a part. */
	nodes_lock(&vfs->nodes);
	files_set_written(to->node);
	attr_changed(vfs, to->node);
	struct io_file *data = to->node->io_file;
	nodes_unlock(&vfs->nodes);
	if (!err) {
		io_file_forget_range(data, to_offset, length);
		*copied = length;
	}
	return err;
}

int vfs_lseek(struct vfs *vfs, struct vfs_file *file, int64_t offset, int whence,
              int64_t *result)
{
	struct stat st;
	uint64_t valid_ns;
	int err = vfs_getattr(vfs, file->node, file, &st, &valid_ns);
	if (err)
		return err;
	switch (whence) {
	case SEEK_DATA:
	case SEEK_HOLE:
		if (offset < 0 || offset >= st.st_size)
			return -ENXIO;
		*result = whence == SEEK_DATA ? offset : st.st_size;
		return 0;
	case SEEK_END:
		if (offset > INT64_MAX - st.st_size || offset + st.st_size < 0)
			return -EINVAL;
		*result = st.st_size + offset;
		return 0;
	default:
		return -EINVAL;
	}
}
