#include "remote/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "remote/remote.h"

struct remote_file *remote_file_new(struct remote *remote, const char *path, unsigned access)
{
	struct remote_file *file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->path = strdup(path);
	if (!file->path) {
		free(file);
		return NULL;
	}
	file->remote = remote;
	file->access = access;
	atomic_init(&file->home_lane, -1);
	atomic_init(&file->refs, 1);
	pthread_mutex_init(&file->lock, NULL);
	return file;
}

struct remote_file *remote_file_ref(struct remote_file *file)
{
	atomic_fetch_add_explicit(&file->refs, 1, memory_order_relaxed);
	return file;
}

static void file_destroy(struct remote_file *file)
{
	for (int i = 0; i < REMOTE_MAX_LANES; i++) {
		struct remote_handle *handle = atomic_load(&file->handles[i]);
		if (handle)
			free(handle->reader);
		free(handle);
	}
	pthread_mutex_destroy(&file->lock);
	free(file->path);
	free(file);
}

/* The closing of the handles of a file that nobody uses any more. */
struct closing {
	struct remote_file *file;
	atomic_uint left;
	struct op ops[];
};

static void closing_release(struct closing *closing)
{
	if (atomic_fetch_sub(&closing->left, 1) != 1)
		return;
	file_destroy(closing->file);
	free(closing);
}

static void handle_closed(struct op *op)
{
	struct closing *closing = op->owner;
	/*
	 * The writes were answered before; what fails here has no caller to be told. A handle
	 * whose connection is gone is closed.
	 */
	if (op->err && op->err != -ENOLINK && op->err != -ENOTCONN)
		log_warn("closing '%s' on the server failed: %s", closing->file->path,
		         strerror(-op->err));
	closing_release(closing);
}

static bool handle_is_open(struct remote_file *file, int lane)
{
	struct remote_handle *handle = atomic_load(&file->handles[lane]);
	return handle && atomic_load(&handle->open);
}

bool remote_file_has_handle(struct remote_file *file)
{
	for (int i = 0; i < REMOTE_MAX_LANES; i++)
		if (handle_is_open(file, i))
			return true;
	return false;
}

void remote_file_unref(struct remote_file *file)
{
	if (atomic_fetch_sub(&file->refs, 1) != 1)
		return;

	unsigned open = 0;
	for (int i = 0; i < REMOTE_MAX_LANES; i++)
		open += handle_is_open(file, i);
	if (!open) {
		file_destroy(file);
		return;
	}
	struct closing *closing = calloc(1, sizeof(*closing) + open * sizeof(closing->ops[0]));
	if (!closing) {
		log_error("out of memory: the handles of '%s' stay open on the server",
		          file->path);
		file_destroy(file);
		return;
	}
	closing->file = file;
	atomic_init(&closing->left, open + 1);
	struct op *op = closing->ops;
	for (int i = 0; i < REMOTE_MAX_LANES; i++) {
		if (!handle_is_open(file, i))
			continue;
		op->kind = OP_CLOSE;
		op->op_class = OP_CLASS_META;
		op->file = file;
		op->pinned_lane = i + 1;
		op->done = handle_closed;
		op->owner = closing;
		remote_submit(file->remote, op++);
	}
	closing_release(closing);
}

void remote_file_opened(struct remote_file *file, unsigned open_flags,
                        const struct remote_attr *attr)
{
	LOCK_SCOPE(&file->lock);
	file->version = *attr;
	if (open_flags & (OPEN_CREATE | OPEN_TRUNC))
		file->own_writes = true;
}

int remote_file_moved(struct remote_file *file, const char *path)
{
	char *copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	LOCK_SCOPE(&file->lock);
	free(file->path);
	file->path = copy;
	return 0;
}

void remote_file_moving(struct remote_file *file, bool begins)
{
	LOCK_SCOPE(&file->lock);
	file->moving += begins ? 1 : -1u;
}

void remote_file_set_unlinked(struct remote_file *file)
{
	LOCK_SCOPE(&file->lock);
	file->unlinked = true;
}

void remote_file_set_written(struct remote_file *file)
{
	LOCK_SCOPE(&file->lock);
	file->own_writes = true;
}

char *remote_file_path(struct remote_file *file)
{
	LOCK_SCOPE(&file->lock);
	return strdup(file->path);
}

struct remote_handle *remote_file_handle(struct remote_file *file, int lane)
{
	struct remote_handle *handle = atomic_load(&file->handles[lane]);
	if (handle)
		return handle;
	handle = calloc(1, sizeof(*handle));
	if (!handle)
		return NULL;
	list_init(&handle->waiting);
	atomic_store(&file->handles[lane], handle);
	return handle;
}
