/*
 * Handles of files on this lane: opened by OP_OPEN, or on the way when another op of the file
 * comes to a lane that has none. Ops of a file that is being opened wait in handle->waiting.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "sftp/client.h"

/* remote_handle.state; stale when remote_handle.generation is not the session's. */
enum { HANDLE_CLOSED, HANDLE_OPENING, HANDLE_OPEN };

/* One opening under way; it lives until its last request is answered or the session ends. */
struct opening {
	struct list_node link;
	struct remote_file *file; /* a reference */
	struct remote_handle *handle;
	char *path;
	struct op *op;  /* the OP_OPEN that wants it; NULL: cancelled, or there is none */
	bool implicit;  /* for ops of a file opened before: must be the same file */
	unsigned flags; /* OPEN_* as wanted */
	bool try_excl;  /* EXCL is added first, to learn whether we create the file */
	bool asked_fstat, fixed_mode;
	struct remote_attr wanted; /* mode of a new file */
	struct remote_attr attr;   /* as found */
	int open_err, attr_err;
	unsigned outstanding;
};

static void opening_next(struct sftp *sftp, struct opening *opening);

/* ---- the handle ---- */

static bool handle_is_open(const struct sftp *sftp, const struct remote_handle *handle)
{
	return handle->state == HANDLE_OPEN &&
	       atomic_load(&handle->generation) == sftp->session.generation;
}

static bool handle_is_opening(const struct sftp *sftp, const struct remote_handle *handle)
{
	return handle->state == HANDLE_OPENING &&
	       atomic_load(&handle->generation) == sftp->session.generation;
}

static bool splits(const struct sftp *sftp, const struct remote_file *file)
{
	return sftp->known.pkg_sftp && file->access == (OPEN_READ | OPEN_WRITE);
}

/* The handle that serves the op, made on first use; NULL when memory is out. */
static struct remote_handle *handle_for(struct sftp *sftp, const struct op *op,
                                        struct remote_file *file)
{
	struct remote_handle *handle = remote_file_handle(file, sftp->session.index);
	if (!handle || op->kind != OP_READ || !splits(sftp, file))
		return handle;
	if (!handle->reader) {
		handle->reader = calloc(1, sizeof(*handle->reader));
		if (handle->reader)
			list_init(&handle->reader->waiting);
	}
	return handle->reader;
}

/* The lane's handle tells others that there is something to close, if only its reader. */
static void reader_ready(struct sftp *sftp, struct remote_handle *handle)
{
	if (atomic_load(&handle->generation) != sftp->session.generation)
		handle->state = HANDLE_CLOSED;
	atomic_store(&handle->generation, sftp->session.generation);
	atomic_store(&handle->open, true);
}

static void op_wait(struct remote_handle *handle, struct op *op)
{
	list_remove(&op->proto.link);
	list_push_back(&handle->waiting, &op->proto.link);
}

/* The handle can be used from here on: starts what waits. */
static void handle_ready(struct sftp *sftp, struct opening *opening)
{
	struct remote_handle *handle = opening->handle;
	handle->state = HANDLE_OPEN;
	atomic_store(&handle->open, true);
	struct remote_handle *first = remote_file_handle(opening->file, sftp->session.index);
	if (first != handle)
		reader_ready(sftp, first);
	struct list_node ops;
	list_init(&ops);
	list_splice_back(&ops, &handle->waiting);
	for (struct list_node *node; (node = list_pop_front(&ops));) {
		struct op *op = list_entry(node, struct op, proto.link);
		list_push_back(&sftp->running, node);
		sftp_start(sftp, op);
	}
}

static void handle_closed(struct remote_handle *handle)
{
	handle->state = HANDLE_CLOSED;
	atomic_store(&handle->open, false);
}

/* ---- openings ---- */

static void opening_free(struct opening *opening)
{
	list_remove(&opening->link);
	remote_file_unref(opening->file);
	free(opening->path);
	free(opening);
}

static void opening_finish(struct sftp *sftp, struct opening *opening, int err)
{
	struct remote_handle *handle = opening->handle;
	if (err < 0) {
		/* What was open is now another file, or none. */
		if (opening->implicit && err == -ENOENT)
			err = -ESTALE;
		handle_closed(handle);
		struct list_node ops;
		list_init(&ops);
		list_splice_back(&ops, &handle->waiting);
		for (struct list_node *node; (node = list_pop_front(&ops));)
			sftp_end(sftp, list_entry(node, struct op, proto.link), err);
	}
	struct op *op = opening->op;
	if (op) {
		if (err == 0)
			op->attr = opening->attr;
		op->proto.pointer = NULL;
		sftp_end(sftp, op, err);
	}
	opening_free(opening);
}

static void keep_to_one_lane(struct remote_file *file)
{
	LOCK_SCOPE(&file->lock);
	file->one_lane = true;
}

void file_note_mode(struct remote_file *file, uint32_t mode)
{
	if (((file->access & OPEN_READ) && !(mode & S_IRUSR)) ||
	    ((file->access & OPEN_WRITE) && !(mode & S_IWUSR)))
		keep_to_one_lane(file);
}

static int on_open(struct sftp *sftp, const struct sftp_request *request,
                   struct sftp_reply *reply)
{
	int result;
	struct opening *opening = request->context;
	struct remote_handle *handle = opening->handle;
	if (reply_is(sftp, request, reply, WIRE_HANDLE, &result)) {
		struct wire_text text = wire_get_handle(&reply->body);
		if (reply->body.failed)
			return sftp_malformed(sftp, "a HANDLE reply is cut short or too long");
		memcpy(handle->bytes, text.data, text.length);
		handle->length = (uint16_t)text.length;
		if (sftp->known.pkg_sftp && (opening->flags & OPEN_WRITE))
			keep_to_one_lane(opening->file);
		if (opening->wanted.valid)
			file_note_mode(opening->file, opening->wanted.mode);
		if (!opening->implicit)
			handle_ready(sftp, opening);
	} else if (result < 0) {
		return result;
	}
	opening->open_err = reply->err;
	opening->outstanding--;
	opening_next(sftp, opening);
	return 0;
}

static int on_open_attr(struct sftp *sftp, const struct sftp_request *request,
                        struct sftp_reply *reply)
{
	int result;
	struct opening *opening = request->context;
	struct remote_attr attr;
	if (reply_is(sftp, request, reply, WIRE_ATTRS, &result)) {
		result = take_attr(sftp, reply, &attr);
		if (result == 0)
			opening->attr = attr;
	}
	if (result < 0)
		return result;
	if (request->type == WIRE_FSTAT && reply->err == -EOPNOTSUPP)
		sftp->known.no_fstat = true;
	opening->attr_err = reply->err;
	opening->outstanding--;
	opening_next(sftp, opening);
	return 0;
}

static int on_open_mode(struct sftp *sftp, const struct sftp_request *request,
                        struct sftp_reply *reply)
{
	struct opening *opening = request->context;
	if (reply->type != WIRE_STATUS)
		return sftp_malformed(sftp, "%s came in reply to %s",
		                      wire_type_name(reply->type),
		                      wire_type_name(request->type));
	/* A server that keeps its own idea of the mode has opened the file all the same. */
	if (reply->err == 0)
		opening->attr.mode =
		    (opening->attr.mode & ~07777u) | (opening->wanted.mode & 07777);
	opening->outstanding--;
	opening_next(sftp, opening);
	return 0;
}

/* OPEN, and right behind it STAT, so that both take one round trip. 0 or -ENOMEM. */
static int send_open(struct sftp *sftp, struct opening *opening)
{
	unsigned flags = opening->flags;
	if (opening->try_excl)
		flags |= OPEN_EXCL;
	struct sftp_request *request = request_begin(sftp, WIRE_OPEN, opening->op, on_open);
	if (!request)
		return -ENOMEM;
	request->context = opening;
	size_t mark = request_packet(sftp)->length;
	wire_open(request_packet(sftp), request->id, opening->path, flags, &opening->wanted);
	if (request_commit(sftp, request, mark, NULL, 0) < 0)
		return -ENOMEM;
	opening->outstanding = 1;
	opening->attr_err =
	    send_path(sftp, WIRE_STAT, opening->op, opening->path, on_open_attr, opening);
	if (opening->attr_err == 0)
		opening->outstanding++;
	return 0;
}

/* The mode of a file just made, without what the server's umask took away. 0 or -ENOMEM. */
static int send_mode(struct sftp *sftp, struct opening *opening)
{
	const struct remote_handle *handle = opening->handle;
	enum wire_type type = sftp->known.no_fsetstat ? WIRE_SETSTAT : WIRE_FSETSTAT;
	struct sftp_request *request = request_begin(sftp, type, opening->op, on_open_mode);
	if (!request)
		return -ENOMEM;
	request->context = opening;
	struct bytes *out = request_packet(sftp);
	size_t mark = out->length;
	if (type == WIRE_FSETSTAT)
		wire_handle_attr(out, type, request->id, handle->bytes, handle->length,
		                 &opening->wanted);
	else
		wire_path_attr(out, type, request->id, opening->path, &opening->wanted);
	return request_commit(sftp, request, mark, NULL, 0);
}

/* Size and mtime are those the file had, as far as both are known and we did not write. */
static bool is_same_file(struct opening *opening)
{
	struct remote_file *file = opening->file;
	const struct remote_attr *found = &opening->attr;
	LOCK_SCOPE(&file->lock);
	const struct remote_attr *known = &file->version;
	if (file->own_writes)
		return true;
	if (!(known->valid & (ATTR_SIZE | ATTR_TIMES))) {
		/* Its first handle decides which file it is. */
		file->version = *found;
		return true;
	}
	unsigned both = known->valid & found->valid;
	if ((known->valid & (ATTR_SIZE | ATTR_TIMES)) != (both & (ATTR_SIZE | ATTR_TIMES)))
		return false;
	return (!(both & ATTR_SIZE) || known->size == found->size) &&
	       (!(both & ATTR_TIMES) || known->mtime.tv_sec == found->mtime.tv_sec);
}

static bool wants_fstat(const struct sftp *sftp, const struct opening *opening)
{
	if (opening->asked_fstat || sftp->known.no_fstat)
		return false;
	/* Requests are not answered in order everywhere: what had contents was looked at too
	 * early. */
	bool not_truncated = (opening->flags & OPEN_TRUNC) && opening->attr.size > 0;
	return opening->attr_err < 0 || not_truncated;
}

static bool wants_mode(const struct opening *opening)
{
	bool created = (opening->flags & OPEN_CREATE) &&
	               ((opening->flags & OPEN_EXCL) || opening->try_excl);
	unsigned both = opening->wanted.valid & opening->attr.valid;
	return created && opening->op && !opening->fixed_mode && (both & ATTR_MODE) &&
	       (opening->wanted.mode & 07777) != (opening->attr.mode & 07777);
}

/* The file was opened and its attributes are known or cannot be had. */
static void opening_done(struct sftp *sftp, struct opening *opening)
{
	if (opening->flags & OPEN_TRUNC)
		opening->attr.size = 0;
	if (wants_mode(opening)) {
		opening->fixed_mode = true;
		if (send_mode(sftp, opening) == 0) {
			opening->outstanding = 1;
			return;
		}
	}
	if (!opening->implicit) {
		opening_finish(sftp, opening, 0);
		return;
	}
	if (is_same_file(opening)) {
		handle_ready(sftp, opening);
		opening_finish(sftp, opening, 0);
		return;
	}
	send_handle(sftp, WIRE_CLOSE, NULL, handle_text(opening->handle), on_ignored, NULL);
	opening_finish(sftp, opening, -ESTALE);
}

/* All requests sent so far are answered: what comes next? */
static void opening_next(struct sftp *sftp, struct opening *opening)
{
	if (opening->outstanding > 0)
		return;
	int err = opening->open_err;
	if (err < 0) {
		bool exists = err == -EEXIST || err == -EREMOTEIO;
		if (opening->try_excl && exists) {
			opening->try_excl = false;
			if (send_open(sftp, opening) == 0)
				return;
			err = -ENOMEM;
		}
		opening_finish(sftp, opening, err);
		return;
	}
	if (wants_fstat(sftp, opening)) {
		opening->asked_fstat = true;
		if (send_handle(sftp, WIRE_FSTAT, opening->op, handle_text(opening->handle),
		                on_open_attr, opening) == 0) {
			opening->outstanding = 1;
			return;
		}
	}
	opening_done(sftp, opening);
}

/* Begins to open the file on this lane. `op` is the OP_OPEN, or NULL. 0 or -errno. */
static int opening_begin(struct sftp *sftp, struct remote_file *file,
                         struct remote_handle *handle, struct op *op)
{
	struct opening *opening = calloc(1, sizeof(*opening));
	char *path = remote_file_path(file);
	if (!opening || !path) {
		free(opening);
		free(path);
		return -ENOMEM;
	}
	list_push_back(&sftp->openings, &opening->link);
	opening->file = remote_file_ref(file);
	opening->handle = handle;
	opening->path = path;
	opening->op = op;
	opening->implicit = !op;
	opening->flags = op ? op->open_flags : file->access;
	if (splits(sftp, file)) {
		bool reader = handle != remote_file_handle(file, sftp->session.index);
		opening->flags &= reader ? ~(unsigned)OPEN_WRITE : ~(unsigned)OPEN_READ;
	}
	if (op && (op->open_flags & OPEN_CREATE)) {
		opening->wanted.valid = op->attr.valid & ATTR_MODE;
		opening->wanted.mode = op->attr.mode;
		opening->try_excl = !(op->open_flags & OPEN_EXCL) && opening->wanted.valid;
	}
	int err = send_open(sftp, opening);
	if (err < 0) {
		opening_free(opening);
		return err;
	}
	handle->state = HANDLE_OPENING;
	atomic_store(&handle->generation, sftp->session.generation);
	atomic_store(&handle->open, false);
	if (op)
		op->proto.pointer = opening;
	return 0;
}

static bool may_open_again(struct sftp *sftp, struct remote_file *file,
                           const struct remote_handle *handle)
{
	bool reader = handle != remote_file_handle(file, sftp->session.index);
	LOCK_SCOPE(&file->lock);
	return !file->unlinked && (reader || !file->one_lane);
}

struct remote_handle *file_handle(struct sftp *sftp, struct op *op, struct remote_file *file,
                                  int *err)
{
	*err = 0;
	struct remote_handle *handle = handle_for(sftp, op, file);
	if (!handle) {
		*err = -ENOMEM;
		return NULL;
	}
	if (handle_is_open(sftp, handle))
		return handle;
	if (!handle_is_opening(sftp, handle)) {
		*err = -ESTALE;
		if (may_open_again(sftp, file, handle))
			*err = opening_begin(sftp, file, handle, NULL);
	}
	if (*err == 0)
		op_wait(handle, op);
	return NULL;
}

const struct remote_handle *file_open_handle(struct sftp *sftp, const struct op *op)
{
	const struct remote_handle *handle = handle_for(sftp, op, op->file);
	return handle && handle_is_open(sftp, handle) ? handle : NULL;
}

int start_open(struct sftp *sftp, struct op *op)
{
	struct remote_handle *handle = remote_file_handle(op->file, sftp->session.index);
	if (!handle)
		return -ENOMEM;
	if (handle_is_opening(sftp, handle)) {
		op_wait(handle, op);
		return 0;
	}
	if (handle_is_open(sftp, handle)) {
		/* Opened anew: the old handle has no use any more. */
		send_handle(sftp, WIRE_CLOSE, NULL, handle_text(handle), on_ignored, NULL);
		handle_closed(handle);
	}
	return opening_begin(sftp, op->file, handle, op);
}

int start_close(struct sftp *sftp, struct op *op)
{
	struct remote_handle *handle = atomic_load(&op->file->handles[sftp->session.index]);
	if (handle && handle_is_opening(sftp, handle)) {
		op_wait(handle, op);
		return 0;
	}
	if (handle && handle->reader && handle_is_open(sftp, handle->reader)) {
		send_handle(sftp, WIRE_CLOSE, NULL, handle_text(handle->reader), on_ignored,
		            NULL);
		handle_closed(handle->reader);
	}
	if (!handle || !handle_is_open(sftp, handle)) {
		/* It went with an earlier connection. */
		sftp_end_later(sftp, op, 0);
		return 0;
	}
	handle_closed(handle);
	return send_handle(sftp, WIRE_CLOSE, op, handle_text(handle), on_status, NULL);
}

void openings_lost(struct sftp *sftp)
{
	while (!list_empty(&sftp->openings)) {
		struct opening *opening = list_entry(sftp->openings.next, struct opening, link);
		if (opening->handle->state == HANDLE_OPENING)
			handle_closed(opening->handle);
		list_splice_back(&sftp->running, &opening->handle->waiting);
		if (opening->op)
			opening->op->proto.pointer = NULL;
		opening_free(opening);
	}
}

void opening_cancelled(struct op *op)
{
	struct opening *opening = op->proto.pointer;
	if (opening)
		opening->op = NULL;
	op->proto.pointer = NULL;
}
