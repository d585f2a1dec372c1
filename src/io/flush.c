/* Waiting for writes. */
#include <errno.h>

#include "base/clock.h"
#include "io/internal.h"

#define LOOK_NS (100 * NS_PER_MS)

/*
 * Waits on the condition like pthread_cond_wait. When *look_ns has come it looks whether the
 * thread's remote_scope was interrupted, and returns false if so.
 */
static bool wait_or_look(pthread_cond_t *condition, pthread_mutex_t *lock, uint64_t *look_ns)
{
	struct timespec until = clock_to_timespec(*look_ns);
	pthread_cond_timedwait(condition, lock, &until);
	if (clock_now_ns() < *look_ns)
		return true;
	*look_ns = clock_now_ns() + LOOK_NS;
	/* an interrupter may hold locks of other floors, so ours is not held meanwhile */
	pthread_mutex_unlock(lock);
	bool interrupted = remote_scope_interrupted();
	pthread_mutex_lock(lock);
	return !interrupted;
}

/* Whether a chunk older than `seq` is still to be answered. File's lock. */
static bool has_older(struct io_file *file, uint64_t seq)
{
	if (!list_empty(&file->queued) &&
	    list_entry(file->queued.next, struct chunk, link)->seq < seq)
		return true;
	list_for_each (at, &file->in_flight) {
		if (list_entry(at, struct chunk, link)->seq < seq)
			return true;
	}
	return false;
}

/* 0 or -EINTR. File's lock held before and after. */
static int drain(struct io_file *file)
{
	if (writes_settled(file))
		return 0;
	writes_seal(file);
	uint64_t seq = file->next_seq;
	pthread_mutex_unlock(&file->lock);
	send_queued(file);
	pthread_mutex_lock(&file->lock);
	uint64_t look_ns = clock_now_ns() + LOOK_NS;
	while (has_older(file, seq))
		if (!wait_or_look(&file->settled, &file->lock, &look_ns))
			return -EINTR;
	return 0;
}

int io_file_drain(struct io_file *file)
{
	LOCK_SCOPE(&file->lock);
	return drain(file);
}

static int flush_and_wait(struct io_handle *handle)
{
	LOCK_SCOPE(&handle->file->lock);
	int err = drain(handle->file);
	return err ? err : handle_take_error(handle);
}

int io_flush(struct io_handle *handle)
{
	struct io_file *file = handle->file;
	if (file->io->config.writeback != IO_WRITEBACK_ASYNC ||
	    atomic_load(&file->io->chunks_queued) > CHUNKS_ASYNC)
		return flush_and_wait(handle);
	pthread_mutex_lock(&file->lock);
	writes_seal(file);
	int err = handle_take_error(handle);
	pthread_mutex_unlock(&file->lock);
	send_queued(file);
	return err;
}

int io_fsync(struct io_handle *handle)
{
	int err = flush_and_wait(handle);
	if (!err)
		err = io_take_lost(handle->file->io);
	if (err || !handle->file->io->remote->caps.fsync)
		return err;
	err = remote_fsync(handle->remote);
	return err == -EOPNOTSUPP ? 0 : err;
}
