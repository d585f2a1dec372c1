/* Files that are created behind the caller's back, as the first request of their queue. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "io/internal.h"

#define LOOK_NS (100 * NS_PER_MS)

bool io_create(struct io_handle *handle, unsigned open_flags, const struct remote_attr *attr,
               io_created_fn *done, void *context)
{
	struct io_file *file = handle->file;
	LOCK_SCOPE(&file->lock);
	struct chunk *chunk = chunk_plain(handle, CHUNK_CREATE);
	if (!chunk)
		return false;
	chunk->attr = *attr;
	chunk->open_flags = open_flags;
	chunk->created = done;
	chunk->created_context = context;
	chunk->sealed = true;
	file->creating++;
	file->own_writes = true;
	file->changes++;
	handle->wrote = true; /* it is told of errors */
	return true;
}

void io_create_begin(struct io *io)
{
	LOCK_SCOPE(&io->lock);
	io->creating++;
}

void io_create_end(struct io *io)
{
	LOCK_SCOPE(&io->lock);
	io->creating--;
	pthread_cond_broadcast(&io->created);
}

int io_wait_created(struct io *io, unsigned limit)
{
	LOCK_SCOPE(&io->lock);
	while (io->creating >= limit) {
		struct timespec until = clock_to_timespec(clock_now_ns() + LOOK_NS);
		pthread_cond_timedwait(&io->created, &io->lock, &until);
		pthread_mutex_unlock(&io->lock);
		bool interrupted = remote_scope_interrupted();
		pthread_mutex_lock(&io->lock);
		if (interrupted)
			return -EINTR;
	}
	return 0;
}

/* Whether the error leaves open what has become of the file. */
static bool is_vague(const struct chunk *chunk)
{
	int err = chunk->op.err;
	return err == -ENOLINK || (err == -EREMOTEIO && chunk->open_flags & OPEN_EXCL);
}

/*
 * An exclusive creation was under way when its lane was lost: the server is asked for the file,
 * and then it is created once more. An empty file now there is the one that we made. A server
 * that refuses without a reason is asked, too: perhaps somebody else was faster.
 */
bool create_ask(struct chunk *chunk)
{
	struct op *op = &chunk->op;
	void (*done)(struct op *) = op->done;
	if (op->kind == OP_OPEN && is_vague(chunk)) {
		chunk->refused = op->err;
		free(chunk->directory);
		chunk->directory = remote_file_path(chunk->handle->remote);
		if (!chunk->directory)
			return false;
		*op = (struct op){
		    .kind = OP_LSTAT, .path = chunk->directory, .done = done, .owner = chunk};
		return true;
	}
	if (op->kind != OP_LSTAT || chunk->refused != -ENOLINK)
		return false;
	const bool ours = !op->err && S_ISREG(op->attr.mode) && op->attr.size == 0;
	if (!ours && op->err != -ENOENT)
		return false;
	if (ours)
		chunk->open_flags &= ~(unsigned)OPEN_EXCL;
	*op = (struct op){.kind = OP_OPEN,
	                  .file = chunk->handle->remote,
	                  .open_flags = chunk->open_flags,
	                  .attr = chunk->attr,
	                  .done = done,
	                  .owner = chunk};
	return true;
}

/* What we expected the file to be like, and told of it, is not so. */
static bool is_different(const struct remote_attr *expected, const struct remote_attr *found)
{
	unsigned both = expected->valid & found->valid;
	return ((both & ATTR_OWNER) &&
	        (expected->uid != found->uid || expected->gid != found->gid)) ||
	       ((both & ATTR_MODE) && (expected->mode & 07777) != (found->mode & 07777));
}

int create_outcome(struct io_file *file, struct chunk *chunk)
{
	const struct op *op = &chunk->op;
	int err = io_plain_error(op->err);
	if (op->kind == OP_LSTAT)
		err = op->err ? -EIO : -EEXIST; /* somebody else was faster */
	file->creating--;
	if (err) {
		chunk->handle->broken = err;
		/* never to be opened by its path, which leads to another's file or to none */
		remote_file_set_unlinked(chunk->handle->remote);
		file->attr_lost = true;
		return err;
	}
	remote_file_opened(chunk->handle->remote, chunk->open_flags, &op->attr);
	if (is_different(&chunk->attr, &op->attr))
		file->attr_lost = true;
	return 0;
}

void create_settled(struct io *io, struct chunk *chunk, int err)
{
	chunk->created(chunk->created_context, err);
	io_create_end(io);
}

int io_take_lost(struct io *io)
{
	LOCK_SCOPE(&io->lock);
	int err = io->lost;
	io->lost = 0;
	return err;
}
