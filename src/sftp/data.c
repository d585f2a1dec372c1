/* Ops on open files: contents, attributes, flushing, copying inside the server. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sftp/client.h"

/* ---- READ ---- */

static int on_read(struct sftp *sftp, const struct sftp_request *request,
                   struct sftp_reply *reply);

/* Asks for `length` bytes at `at` of the op's range. 0 or -ENOMEM. */
static int send_read(struct sftp *sftp, struct op *op, const struct remote_handle *handle,
                     size_t at, uint32_t length)
{
	struct sftp_request *request = request_begin(sftp, WIRE_READ, op, on_read);
	if (!request)
		return -ENOMEM;
	request->data = (char *)op->data + at;
	request->offset = op->offset + at;
	request->length = length;
	size_t mark = request_packet(sftp)->length;
	wire_read(request_packet(sftp), request->id, handle->bytes, handle->length,
	          request->offset, length);
	return request_commit(sftp, request, mark, NULL, 0);
}

/* The file was last seen to end there: a short reply is its end, and need not be asked again.
 */
static bool ends_at(struct remote_file *file, uint64_t end)
{
	LOCK_SCOPE(&file->lock);
	return (file->version.valid & ATTR_SIZE) && !file->own_writes &&
	       file->version.size == end;
}

/* A reply shorter than asked: 0 when the end of the file is found or the rest is asked for. */
static int after_short_read(struct sftp *sftp, struct op *op, uint64_t end, uint32_t got,
                            uint32_t rest)
{
	size_t at = (size_t)(end - op->offset);
	if (got == 0 || ends_at(op->file, end)) {
		op->proto.progress = MIN(op->proto.progress, at);
		return 0;
	}
	const struct remote_handle *handle = file_open_handle(sftp, op);
	return handle ? send_read(sftp, op, handle, at, rest) : -ESTALE;
}

static int on_read(struct sftp *sftp, const struct sftp_request *request,
                   struct sftp_reply *reply)
{
	int result;
	if (!reply_is(sftp, request, reply, WIRE_DATA, &result) && result < 0)
		return result;
	int err = reply->eof ? 0 : reply->err;
	struct op *op = request->op;
	if (!op)
		return 0;
	if (err == 0 && reply->count < request->length)
		err = after_short_read(sftp, op, request->offset + reply->count, reply->count,
		                       request->length - reply->count);
	op->count = op->proto.progress;
	sftp_settle(sftp, op, err);
	return 0;
}

int start_read(struct sftp *sftp, struct op *op)
{
	int err;
	struct remote_handle *handle = file_handle(sftp, op, op->file, &err);
	if (!handle)
		return err;
	if (op->length == 0) {
		sftp_end_later(sftp, op, 0);
		return 0;
	}
	op->proto.progress = op->length;
	for (size_t at = 0; at < op->length;) {
		uint32_t part =
		    (uint32_t)MIN(op->length - at, (size_t)sftp->session.caps.max_read);
		err = send_read(sftp, op, handle, at, part);
		if (err < 0)
			break;
		at += part;
	}
	if (err < 0 && op->proto.outstanding > 0) {
		op->proto.err = err; /* ends when what was sent is answered */
		err = 0;
	}
	return err;
}

/* ---- WRITE ---- */

static int send_write(struct sftp *sftp, struct op *op, const struct remote_handle *handle,
                      size_t at, uint32_t length)
{
	struct sftp_request *request = request_begin(sftp, WIRE_WRITE, op, on_status);
	if (!request)
		return -ENOMEM;
	request->data = (char *)op->data + at;
	request->offset = op->offset + at;
	request->length = length;
	size_t mark = request_packet(sftp)->length;
	wire_write(request_packet(sftp), request->id, handle->bytes, handle->length,
	           request->offset, length);
	return request_commit(sftp, request, mark, request->data, length);
}

int start_write(struct sftp *sftp, struct op *op)
{
	int err;
	struct remote_handle *handle = file_handle(sftp, op, op->file, &err);
	if (!handle)
		return err;
	op->count = op->length;
	if (op->length == 0) {
		sftp_end_later(sftp, op, 0);
		return 0;
	}
	for (size_t at = 0; at < op->length;) {
		uint32_t part =
		    (uint32_t)MIN(op->length - at, (size_t)sftp->session.caps.max_write);
		err = send_write(sftp, op, handle, at, part);
		if (err < 0)
			break;
		at += part;
	}
	if (err < 0 && op->proto.outstanding > 0) {
		op->proto.err = err;
		err = 0;
	}
	return err;
}

/* ---- attributes ---- */

/*
 * The path of an open file, for servers that cannot do it by handle: only while it has one.
 * 0 or -errno; *path is malloc'ed.
 */
static int path_instead(struct remote_file *file, char **path)
{
	LOCK_SCOPE(&file->lock);
	if (file->unlinked)
		return -ESTALE;
	*path = strdup(file->path);
	return *path ? 0 : -ENOMEM;
}

static int stat_instead(struct sftp *sftp, struct op *op)
{
	CLEANUP_FREE char *path = NULL;
	int err = path_instead(op->file, &path);
	return err < 0 ? err : send_path(sftp, WIRE_STAT, op, path, on_attr, NULL);
}

/* A refusal that may mean that the server does not know the request. */
static bool may_be_unsupported(int err, bool worked_before)
{
	return err == -EOPNOTSUPP || (err == -EACCES && !worked_before);
}

static int on_fstat(struct sftp *sftp, const struct sftp_request *request,
                    struct sftp_reply *reply)
{
	if (reply->type == WIRE_ATTRS)
		sftp->known.fstat_works = true;
	if (!may_be_unsupported(reply->err, sftp->known.fstat_works))
		return on_attr(sftp, request, reply);
	sftp->known.no_fstat = true;
	if (request->op)
		sftp_settle(sftp, request->op, stat_instead(sftp, request->op));
	return 0;
}

int start_fstat(struct sftp *sftp, struct op *op)
{
	if (sftp->known.no_fstat)
		return stat_instead(sftp, op);
	int err;
	struct remote_handle *handle = file_handle(sftp, op, op->file, &err);
	if (!handle)
		return err;
	return send_handle(sftp, WIRE_FSTAT, op, handle_text(handle), on_fstat, NULL);
}

static int setattr_instead(struct sftp *sftp, struct op *op)
{
	CLEANUP_FREE char *path = NULL;
	int err = path_instead(op->file, &path);
	if (err < 0)
		return err;
	struct sftp_request *request = request_begin(sftp, WIRE_SETSTAT, op, on_attributes_set);
	if (!request)
		return -ENOMEM;
	size_t mark = request_packet(sftp)->length;
	wire_path_attr(request_packet(sftp), WIRE_SETSTAT, request->id, path, &op->attr);
	return request_commit(sftp, request, mark, NULL, 0);
}

static int on_fsetstat(struct sftp *sftp, const struct sftp_request *request,
                       struct sftp_reply *reply)
{
	if (reply->type == WIRE_STATUS && reply->err == 0)
		sftp->known.fsetstat_works = true;
	if (!may_be_unsupported(reply->err, sftp->known.fsetstat_works))
		return on_attributes_set(sftp, request, reply);
	if (reply->err == -EOPNOTSUPP)
		sftp->known.no_fsetstat = true;
	if (request->op)
		sftp_settle(sftp, request->op, setattr_instead(sftp, request->op));
	return 0;
}

int start_fsetattr(struct sftp *sftp, struct op *op)
{
	if (op->attr.valid & ATTR_MODE)
		file_note_mode(op->file, op->attr.mode);
	if (sftp->known.no_fsetstat)
		return setattr_instead(sftp, op);
	int err;
	struct remote_handle *handle = file_handle(sftp, op, op->file, &err);
	if (!handle)
		return err;
	struct sftp_request *request = request_begin(sftp, WIRE_FSETSTAT, op, on_fsetstat);
	if (!request)
		return -ENOMEM;
	size_t mark = request_packet(sftp)->length;
	wire_handle_attr(request_packet(sftp), WIRE_FSETSTAT, request->id, handle->bytes,
	                 handle->length, &op->attr);
	return request_commit(sftp, request, mark, NULL, 0);
}

/* ---- FSYNC and COPY ---- */

int start_fsync(struct sftp *sftp, struct op *op)
{
	if (!(sftp->extensions & EXT_FSYNC))
		return -EOPNOTSUPP;
	int err;
	struct remote_handle *handle = file_handle(sftp, op, op->file, &err);
	if (!handle)
		return err;
	struct sftp_request *request = request_begin(sftp, WIRE_EXTENDED, op, on_status);
	if (!request)
		return -ENOMEM;
	size_t mark = request_packet(sftp)->length;
	wire_ext_handle(request_packet(sftp), request->id, "fsync@openssh.com", handle->bytes,
	                handle->length);
	return request_commit(sftp, request, mark, NULL, 0);
}

/* OpenSSH refuses to copy within one file, vaguely. */
static bool is_one_file(struct remote_file *from, struct remote_file *to)
{
	if (from == to)
		return true;
	CLEANUP_FREE char *from_path = remote_file_path(from);
	CLEANUP_FREE char *to_path = remote_file_path(to);
	return from_path && to_path && strcmp(from_path, to_path) == 0;
}

int start_copy(struct sftp *sftp, struct op *op)
{
	if (!(sftp->extensions & EXT_COPY_DATA) || is_one_file(op->file, op->file2))
		return -EOPNOTSUPP;
	if (op->length == 0) {
		/* To the server it would mean "up to the end". */
		sftp_end_later(sftp, op, 0);
		return 0;
	}
	int err;
	struct remote_handle *from = file_handle(sftp, op, op->file, &err);
	struct remote_handle *to = from ? file_handle(sftp, op, op->file2, &err) : NULL;
	if (!to)
		return err;
	struct sftp_request *request = request_begin(sftp, WIRE_EXTENDED, op, on_status);
	if (!request)
		return -ENOMEM;
	size_t mark = request_packet(sftp)->length;
	wire_copy_data(request_packet(sftp), request->id, from->bytes, from->length, op->offset,
	               op->length, to->bytes, to->length, op->offset2);
	return request_commit(sftp, request, mark, NULL, 0);
}
