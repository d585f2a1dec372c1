/* Files and handles: their lives, their size and their version. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "io/internal.h"

void init_condition(pthread_cond_t *condition)
{
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

struct io_file *io_file_new(struct io *io)
{
	struct io_file *file = calloc(1, sizeof(*file));
	if (!file)
		return NULL;
	file->io = io;
	atomic_init(&file->refs, 1);
	pthread_mutex_init(&file->lock, NULL);
	init_condition(&file->settled);
	map_init(&file->blocks);
	list_init(&file->extents);
	list_init(&file->handles);
	list_init(&file->reads);
	list_init(&file->blocked);
	list_init(&file->queued);
	list_init(&file->in_flight);
	LOCK_SCOPE(&io->lock);
	io->files++;
	return file;
}

static void drop_all(struct io_file *file)
{
	cache_drop(file, 0, UINT64_MAX);
}

/* io->lock must be taken before the memory goes: an evictor may still be letting go of it. */
static void file_destroy(struct io_file *file)
{
	struct io *io = file->io;
	pthread_mutex_lock(&file->lock);
	drop_all(file);
	pthread_mutex_unlock(&file->lock);

	pthread_mutex_lock(&io->lock);
	map_release(&file->blocks);
	pthread_cond_destroy(&file->settled);
	pthread_mutex_destroy(&file->lock);
	free(file);
	if (--io->files == 0)
		pthread_cond_broadcast(&io->idle);
	pthread_mutex_unlock(&io->lock);
}

void file_ref(struct io_file *file)
{
	atomic_fetch_add(&file->refs, 1);
}

void file_unref(struct io_file *file)
{
	if (atomic_fetch_sub(&file->refs, 1) == 1)
		file_destroy(file);
}

void io_file_free(struct io_file *file)
{
	pthread_mutex_lock(&file->lock);
	drop_all(file);
	pthread_mutex_unlock(&file->lock);
	file_unref(file);
}

/* ---- handles ---- */

struct io_handle *io_handle_new(struct io_file *file, struct remote_file *remote_file)
{
	struct io_handle *handle = calloc(1, sizeof(*handle));
	if (!handle)
		return NULL;
	file_ref(file);
	handle->file = file;
	handle->remote = remote_file;
	atomic_init(&handle->refs, 1);
	LOCK_SCOPE(&file->lock);
	list_push_back(&file->handles, &handle->link);
	file->handles_to_mark = true;
	if (file->own_writes || !writes_settled(file))
		remote_file_set_written(remote_file);
	return handle;
}

struct io_handle *handle_ref(struct io_handle *handle)
{
	atomic_fetch_add(&handle->refs, 1);
	return handle;
}

void handle_unref(struct io_handle *handle)
{
	if (atomic_fetch_sub(&handle->refs, 1) != 1)
		return;
	struct io_file *file = handle->file;
	remote_file_unref(handle->remote);
	free(handle);
	file_unref(file);
}

void handle_log_loss(struct io_handle *handle, int err)
{
	char name[256] = "?";
	CLEANUP_FREE char *path = remote_file_path(handle->remote);
	if (path)
		log_quote(name, sizeof(name), path, strlen(path));
	if (handle->broken)
		log_warn("'%s' could not be created, and what was written to it is lost: %s",
		         name, strerror(-err));
	else
		log_warn("a write to '%s' or a change of its attributes is lost, as it failed "
		         "after its program was gone: %s",
		         name, strerror(-err));
	struct io *io = handle->file->io;
	LOCK_SCOPE(&io->lock);
	if (io->config.writeback == IO_WRITEBACK_ASYNC && !io->lost)
		io->lost = err;
}

void io_handle_free(struct io_handle *handle)
{
	struct io_file *file = handle->file;
	pthread_mutex_lock(&file->lock);
	list_remove(&handle->link);
	handle->closed = true;
	int err = handle_take_error(handle);
	writes_seal(file);
	pthread_mutex_unlock(&file->lock);
	if (err)
		handle_log_loss(handle, err);
	send_queued(file);
	handle_unref(handle);
}

struct remote_file *io_handle_remote(struct io_handle *handle)
{
	return handle->remote;
}

/* ---- version and size ---- */

bool same_version(const struct io_version *a, const struct io_version *b)
{
	return a->size == b->size && a->mtime.tv_sec == b->mtime.tv_sec &&
	       a->mtime.tv_nsec == b->mtime.tv_nsec;
}

/* Whether the new version is the one we have, or what our own writes made of it. */
static bool version_is_ours(const struct io_file *file, const struct io_version *version)
{
	if (!file->known || same_version(&file->version, version))
		return true;
	return file->own_writes && version->size == file->server_size;
}

/* File's lock. */
static bool revalidate(struct io_file *file, const struct io_version *version,
                       struct batch *batch)
{
	if (!writes_settled(file))
		return true; /* neither size nor time is final */
	bool ours = version_is_ours(file, version);
	file->known = true;
	file->own_writes = false;
	file->version = *version;
	file->size = file->server_size = version->size;
	if (!ours) {
		drop_all(file);
		window_reset(&file->windows);
		reads_restart(file, batch);
	}
	return ours;
}

static bool revalidate_if(struct io_file *file, const struct io_version *version,
                          const uint64_t *mark)
{
	struct batch batch;
	batch_init(&batch);
	pthread_mutex_lock(&file->lock);
	bool ours = (mark && *mark != file->changes) || revalidate(file, version, &batch);
	pthread_mutex_unlock(&file->lock);
	batch_run(&batch, file);
	return ours;
}

bool io_file_revalidate(struct io_file *file, const struct io_version *version)
{
	return revalidate_if(file, version, NULL);
}

bool io_file_revalidate_since(struct io_file *file, const struct io_version *version,
                              uint64_t mark)
{
	return revalidate_if(file, version, &mark);
}

uint64_t io_file_mark(struct io_file *file)
{
	LOCK_SCOPE(&file->lock);
	return file->changes;
}

uint64_t io_file_size(struct io_file *file)
{
	LOCK_SCOPE(&file->lock);
	return file->size;
}

bool io_file_dirty(struct io_file *file)
{
	LOCK_SCOPE(&file->lock);
	return !writes_settled(file);
}

void io_file_truncated(struct io_file *file, uint64_t size)
{
	LOCK_SCOPE(&file->lock);
	cache_drop(file, MIN(size, file->size), UINT64_MAX);
	file->size = file->server_size = size;
	file->own_writes = true;
	file->changes++;
}

void io_file_forget_range(struct io_file *file, uint64_t offset, uint64_t length)
{
	LOCK_SCOPE(&file->lock);
	uint64_t end = offset + length;
	cache_drop(file, MIN(offset, file->size), end);
	file->server_size = MAX(file->server_size, end);
	file->size = MAX(file->size, end);
	file->own_writes = true;
	file->changes++;
}
