/*
 * Changes of attributes and questions for them, queued behind a file's writes.
 *
 * Where the server does one connection's requests in order, what follows a small file's writes
 * is sent right behind them, by the same lane (chunk_may_follow). A lane may be lost, though,
 * and then its requests are made again in any order: what came behind is looked at when it is
 * answered (chunk_overtook), and made once more if it may have come too early.
 */
#include <stdlib.h>

#include "io/internal.h"

static uint64_t queued_bytes(const struct io_file *file, const struct chunk *stop)
{
	uint64_t bytes = 0;
	for (struct list_node *at = file->queued.next; at != &file->queued; at = at->next) {
		const struct chunk *chunk = list_entry(at, struct chunk, link);
		if (chunk == stop)
			break;
		bytes += chunk->length;
	}
	return bytes;
}

bool chunk_may_follow(struct io_file *file, const struct chunk *chunk)
{
	if (!file->io->remote->caps.ordered || file->creating ||
	    file->bytes_in_flight + queued_bytes(file, chunk) > SMALL_BYTES)
		return false;
	list_for_each (at, &file->in_flight) {
		const struct chunk *ahead = list_entry(at, struct chunk, link);
		if (!ahead->at_home || ahead->handle != chunk->handle)
			return false;
	}
	for (struct list_node *at = file->queued.next; at != &file->queued; at = at->next) {
		const struct chunk *ahead = list_entry(at, struct chunk, link);
		if (ahead == chunk)
			break;
		if (ahead->handle != chunk->handle)
			return false;
	}
	return true;
}

/* Whether the chunk was sent as the ones around it were: once, and by the file's own lane. */
static bool kept_order(const struct chunk *chunk)
{
	return chunk->op.attempts == 0 &&
	       chunk->op.ran_on == atomic_load(&chunk->handle->remote->home_lane) + 1;
}

void chunk_check_order(struct io_file *file, struct chunk *chunk)
{
	bool kept = kept_order(chunk) && !chunk->again;
	list_for_each (at, &file->in_flight) {
		/* answered before what was ahead of it */
		if (chunk->behind && list_entry(at, struct chunk, link)->seq < chunk->seq)
			kept = false;
	}
	chunk->again = chunk->behind && !kept;
	list_for_each (at, &file->in_flight) {
		struct chunk *other = list_entry(at, struct chunk, link);
		if (other->seq > chunk->seq && other->behind && !kept)
			other->again = true;
	}
}

void chunk_requeue(struct io_file *file, struct chunk *chunk)
{
	struct list_node *at = file->queued.next;
	while (at != &file->queued && list_entry(at, struct chunk, link)->seq < chunk->seq)
		at = at->next;
	list_insert_between(&chunk->link, at->prev, at);
	atomic_fetch_add(&file->io->counters.changes_repeated, 1);
}

struct chunk *chunk_plain(struct io_handle *handle, enum chunk_kind kind)
{
	struct chunk *chunk = calloc(1, sizeof(*chunk));
	if (!chunk)
		return NULL;
	atomic_fetch_add(&handle->file->io->chunks_queued, 1);
	chunk->kind = kind;
	chunk->handle = handle_ref(handle);
	chunk->seq = handle->file->next_seq++;
	list_push_back(&handle->file->queued, &chunk->link);
	return chunk;
}

/* The last queued chunk, if it is a change of attributes that can still take more. */
static struct chunk *open_change(struct io_handle *handle)
{
	struct io_file *file = handle->file;
	if (list_empty(&file->queued))
		return NULL;
	struct chunk *chunk = list_entry(file->queued.prev, struct chunk, link);
	bool open = chunk->kind == CHUNK_ATTR && chunk->handle == handle && !chunk->sealed;
	return open ? chunk : NULL;
}

static void merge(struct remote_attr *to, const struct remote_attr *from)
{
	to->valid |= from->valid;
	if (from->valid & ATTR_MODE)
		to->mode = from->mode;
	if (from->valid & ATTR_OWNER) {
		to->uid = from->uid;
		to->gid = from->gid;
	}
	if (from->valid & ATTR_TIMES) {
		to->atime = from->atime;
		to->mtime = from->mtime;
	}
}

bool io_setattr(struct io_handle *handle, const struct remote_attr *attr, uint64_t *writes)
{
	struct io_file *file = handle->file;
	if (file->io->config.sync_writes)
		return false;
	LOCK_SCOPE(&file->lock);
	struct chunk *chunk = open_change(handle);
	if (chunk)
		atomic_fetch_add(&file->io->counters.changes_merged, 1);
	else
		chunk = chunk_plain(handle, CHUNK_ATTR);
	if (!chunk)
		return false;
	merge(&chunk->attr, attr);
	file->own_writes = true;
	file->changes++;
	handle->wrote = true; /* it is told of errors */
	*writes = file->writes;
	return true;
}

uint64_t io_file_writes(struct io_file *file)
{
	LOCK_SCOPE(&file->lock);
	return file->writes;
}

void io_file_send(struct io_file *file)
{
	send_queued(file);
}

bool io_file_attr_lost(struct io_file *file, bool take)
{
	LOCK_SCOPE(&file->lock);
	bool lost = file->attr_lost;
	file->attr_lost = lost && !take;
	return lost;
}

void io_look(struct io_handle *handle)
{
	struct io_file *file = handle->file;
	LOCK_SCOPE(&file->lock);
	file->look.valid = false;
	if (writes_settled(file))
		return;
	writes_seal(file);
	const struct chunk last = {.kind = CHUNK_LOOK, .handle = handle};
	if (!chunk_may_follow(file, &last))
		return;
	struct chunk *chunk = chunk_plain(handle, CHUNK_LOOK);
	if (chunk)
		chunk->sealed = true;
}

bool io_file_looked(struct io_file *file, struct remote_attr *attr, uint64_t *mark)
{
	LOCK_SCOPE(&file->lock);
	*attr = file->look.attr;
	*mark = file->look.mark;
	return file->look.valid && file->look.mark == file->changes;
}
