/*
 * OP_FETCH: a small file whole in two round trips. The first opens it and looks at its path,
 * the second looks at the handle, reads and closes. What both looks tell alike was true before
 * the first byte was read, in whatever order the server answers; so a change after it shows in
 * the next look.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "sftp/client.h"

/* The first round trip of a fetch; lives until both its requests are answered. */
struct fetching {
	struct list_node link;
	struct op *op;       /* NULL: nobody wants the file any more */
	bool opened, looked; /* answered */
	int open_err, look_err;
	struct wire_text handle; /* length 0: none */
	char handle_bytes[WIRE_HANDLE_MAX];
};

static void fetching_free(struct fetching *fetching)
{
	list_remove(&fetching->link);
	free(fetching);
}

/* Closes without waiting for the reply. */
static void close_handle(struct sftp *sftp, const struct fetching *fetching)
{
	if (fetching->handle.length > 0 &&
	    send_handle(sftp, WIRE_CLOSE, NULL, fetching->handle, on_ignored, NULL) < 0)
		log_warn("out of memory: a file stays open on the server");
}

/* ---- the second round trip ---- */

static int on_fetched_attr(struct sftp *sftp, const struct sftp_request *request,
                           struct sftp_reply *reply)
{
	int result;
	struct op *op = request->op;
	struct remote_attr attr = {0};
	if (reply_is(sftp, request, reply, WIRE_ATTRS, &result))
		result = take_attr(sftp, reply, &attr);
	if (result < 0)
		return result;
	int err = reply->err;
	if (err == -EOPNOTSUPP) {
		/* The look at the path has to do. */
		sftp->known.no_fstat = true;
		err = 0;
	} else if (op && err == 0 &&
	           (attr.size != op->attr.size || attr.mtime.tv_sec != op->attr.mtime.tv_sec)) {
		err = -ESTALE;
	}
	sftp_settle(sftp, op, err);
	return 0;
}

static int on_fetched_data(struct sftp *sftp, const struct sftp_request *request,
                           struct sftp_reply *reply)
{
	int result;
	if (!reply_is(sftp, request, reply, WIRE_DATA, &result) && result < 0)
		return result;
	int err = reply->eof ? 0 : reply->err;
	/* The handle is closed: what is missing cannot be asked for. */
	if (err == 0 && reply->count < request->length)
		err = -ESTALE;
	sftp_settle(sftp, request->op, err);
	return 0;
}

static int read_part(struct sftp *sftp, struct op *op, const struct fetching *fetching,
                     size_t at, uint32_t length)
{
	struct sftp_request *request = request_begin(sftp, WIRE_READ, op, on_fetched_data);
	if (!request)
		return -ENOMEM;
	request->data = (char *)op->data + at;
	request->offset = at;
	request->length = length;
	size_t mark = request_packet(sftp)->length;
	wire_read(request_packet(sftp), request->id, fetching->handle.data,
	          fetching->handle.length, at, length);
	return request_commit(sftp, request, mark, NULL, 0);
}

/* Why the file cannot be fetched, by what the look at its path told. */
static int refuse(const struct op *op)
{
	const unsigned need = ATTR_SIZE | ATTR_TIMES;
	if ((op->attr.valid & need) != need)
		return -EOPNOTSUPP;
	if ((op->attr.valid & ATTR_MODE) && (op->attr.mode & S_IFMT) && !S_ISREG(op->attr.mode))
		return -EINVAL;
	return op->attr.size > op->length ? -EFBIG : 0;
}

/* Asks for the contents. What was sent before an error is waited for by the op. */
static int read_all(struct sftp *sftp, struct op *op, const struct fetching *fetching)
{
	int err = refuse(op);
	if (err == 0 && !sftp->known.no_fstat)
		err =
		    send_handle(sftp, WIRE_FSTAT, op, fetching->handle, on_fetched_attr, NULL);
	size_t size = (size_t)op->attr.size;
	for (size_t at = 0; err == 0 && at < size;) {
		uint32_t part = (uint32_t)MIN(size - at, (size_t)sftp->session.caps.max_read);
		err = read_part(sftp, op, fetching, at, part);
		at += part;
	}
	op->count = err ? 0 : size;
	return err;
}

/* ---- the first round trip ---- */

/* One of its requests was answered: goes on when both were. */
static void advance(struct sftp *sftp, struct fetching *fetching)
{
	struct op *op = fetching->op;
	if (!fetching->opened || (op && !fetching->looked))
		return;
	int err = fetching->open_err ? fetching->open_err : fetching->look_err;
	if (op) {
		op->proto.pointer = NULL;
		if (err == 0)
			err = read_all(sftp, op, fetching);
	}
	close_handle(sftp, fetching);
	fetching_free(fetching);
	/* It counts as one of the op's requests, so that the op did not end by the others. */
	sftp_settle(sftp, op, err);
}

static int on_fetch_open(struct sftp *sftp, const struct sftp_request *request,
                         struct sftp_reply *reply)
{
	int result;
	struct fetching *fetching = request->context;
	if (reply_is(sftp, request, reply, WIRE_HANDLE, &result)) {
		struct wire_text handle = wire_get_handle(&reply->body);
		if (reply->body.failed)
			return sftp_malformed(sftp, "a HANDLE reply is cut short or too long");
		memcpy(fetching->handle_bytes, handle.data, handle.length);
		fetching->handle = (struct wire_text){fetching->handle_bytes, handle.length};
	} else if (result < 0) {
		return result;
	}
	fetching->opened = true;
	fetching->open_err = reply->err;
	if (fetching->op && !fetching->looked)
		fetching->op->proto.outstanding--;
	advance(sftp, fetching);
	return 0;
}

static int on_fetch_look(struct sftp *sftp, const struct sftp_request *request,
                         struct sftp_reply *reply)
{
	int result;
	struct op *op = request->op;
	struct remote_attr attr = {0};
	if (reply_is(sftp, request, reply, WIRE_ATTRS, &result))
		result = take_attr(sftp, reply, &attr);
	if (result < 0)
		return result;
	if (!op)
		return 0;
	struct fetching *fetching = op->proto.pointer;
	op->attr = attr;
	fetching->looked = true;
	fetching->look_err = reply->err;
	if (!fetching->opened)
		op->proto.outstanding--;
	advance(sftp, fetching);
	return 0;
}

static int send_open(struct sftp *sftp, struct op *op, struct fetching *fetching)
{
	static const struct remote_attr no_mode = {0};
	struct sftp_request *request = request_begin(sftp, WIRE_OPEN, op, on_fetch_open);
	if (!request)
		return -ENOMEM;
	request->context = fetching;
	size_t mark = request_packet(sftp)->length;
	wire_open(request_packet(sftp), request->id, op->path, OPEN_READ, &no_mode);
	return request_commit(sftp, request, mark, NULL, 0);
}

int start_fetch(struct sftp *sftp, struct op *op)
{
	struct fetching *fetching = calloc(1, sizeof(*fetching));
	if (!fetching)
		return -ENOMEM;
	fetching->op = op;
	list_push_back(&sftp->fetchings, &fetching->link);
	op->proto.pointer = fetching;
	int err = send_open(sftp, op, fetching);
	if (err < 0) {
		op->proto.pointer = NULL;
		fetching_free(fetching);
		return err;
	}
	err = send_path(sftp, WIRE_STAT, op, op->path, on_fetch_look, NULL);
	if (err < 0) { /* ends when the file is open, and is closed */
		fetching->looked = true;
		fetching->look_err = err;
	}
	return 0;
}

void fetchings_lost(struct sftp *sftp)
{
	while (!list_empty(&sftp->fetchings)) {
		struct fetching *fetching =
		    list_entry(sftp->fetchings.next, struct fetching, link);
		if (fetching->op)
			fetching->op->proto.pointer = NULL;
		fetching_free(fetching);
	}
}

void fetching_cancelled(struct sftp *sftp, struct op *op)
{
	struct fetching *fetching = op->proto.pointer;
	op->proto.pointer = NULL;
	if (!fetching)
		return;
	fetching->op = NULL;
	if (fetching->opened)
		advance(sftp, fetching);
}
