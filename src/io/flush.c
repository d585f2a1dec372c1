/* Waiting for writes. */
#include <errno.h>

#include "base/clock.h"
#include "io/internal.h"

#define POLL_NS (100 * NS_PER_MS)

bool io_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
	struct timespec until = clock_to_timespec(clock_now_ns() + POLL_NS);
	if (!pthread_cond_timedwait(condition, lock, &until))
		return true;
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
	while (has_older(file, seq))
		if (!io_wait(&file->settled, &file->lock))
			return -EINTR;
	return 0;
}

int io_file_drain(struct io_file *file)
{
	LOCK_SCOPE(&file->lock);
	return drain(file);
}

int io_flush(struct io_handle *handle)
{
	LOCK_SCOPE(&handle->file->lock);
	int err = drain(handle->file);
	return err ? err : handle_take_error(handle);
}

int io_fsync(struct io_handle *handle)
{
	int err = io_flush(handle);
	if (err || !handle->file->io->remote->caps.fsync)
		return err;
	err = remote_fsync(handle->remote);
	return err == -EOPNOTSUPP ? 0 : err;
}
