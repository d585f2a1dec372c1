/* Ops on paths: which request each kind sends, and what its reply means. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sftp/client.h"

/* ---- ends ---- */

void sftp_end(struct sftp *sftp, struct op *op, int err)
{
	list_remove(&op->proto.link);
	op->err = err;
	sftp->session.events->done(sftp->session.lane, op);
}

void sftp_end_later(struct sftp *sftp, struct op *op, int err)
{
	list_remove(&op->proto.link);
	op->proto.err = err;
	list_push_back(&sftp->ended, &op->proto.link);
}

void sftp_end_kept(struct sftp *sftp)
{
	for (struct list_node *node; (node = list_pop_front(&sftp->ended));) {
		struct op *op = list_entry(node, struct op, proto.link);
		sftp_end(sftp, op, op->proto.err);
	}
}

void sftp_settle(struct sftp *sftp, struct op *op, int err)
{
	if (!op)
		return;
	if (err < 0 && op->proto.err == 0)
		op->proto.err = err;
	op->proto.outstanding--;
	if (op->proto.outstanding == 0)
		sftp_end(sftp, op, op->proto.err);
}

/* ---- sending ---- */

int send_path(struct sftp *sftp, enum wire_type type, struct op *op, const char *path,
              sftp_reply_fn *on_reply, void *context)
{
	struct sftp_request *request = request_begin(sftp, type, op, on_reply);
	if (!request)
		return -ENOMEM;
	request->context = context;
	size_t mark = request_packet(sftp)->length;
	wire_path(request_packet(sftp), type, request->id, path);
	return request_commit(sftp, request, mark, NULL, 0);
}

int send_handle(struct sftp *sftp, enum wire_type type, struct op *op, struct wire_text handle,
                sftp_reply_fn *on_reply, void *context)
{
	struct sftp_request *request = request_begin(sftp, type, op, on_reply);
	if (!request)
		return -ENOMEM;
	request->context = context;
	size_t mark = request_packet(sftp)->length;
	wire_handle(request_packet(sftp), type, request->id, handle.data, handle.length);
	return request_commit(sftp, request, mark, NULL, 0);
}

static int send_two_paths(struct sftp *sftp, enum wire_type type, struct op *op,
                          const char *first, const char *second)
{
	struct sftp_request *request = request_begin(sftp, type, op, on_status);
	if (!request)
		return -ENOMEM;
	size_t mark = request_packet(sftp)->length;
	wire_two_paths(request_packet(sftp), type, request->id, first, second);
	return request_commit(sftp, request, mark, NULL, 0);
}

static int send_path_attr(struct sftp *sftp, enum wire_type type, struct op *op)
{
	sftp_reply_fn *handler = type == WIRE_SETSTAT ? on_attributes_set : on_status;
	struct sftp_request *request = request_begin(sftp, type, op, handler);
	if (!request)
		return -ENOMEM;
	size_t mark = request_packet(sftp)->length;
	wire_path_attr(request_packet(sftp), type, request->id, op->path, &op->attr);
	return request_commit(sftp, request, mark, NULL, 0);
}

static int send_ext_two_paths(struct sftp *sftp, struct op *op, const char *name)
{
	struct sftp_request *request = request_begin(sftp, WIRE_EXTENDED, op, on_status);
	if (!request)
		return -ENOMEM;
	size_t mark = request_packet(sftp)->length;
	wire_ext_two_paths(request_packet(sftp), request->id, name, op->path, op->path2);
	return request_commit(sftp, request, mark, NULL, 0);
}

/* ---- replies ---- */

int on_status(struct sftp *sftp, const struct sftp_request *request, struct sftp_reply *reply)
{
	if (reply->type != WIRE_STATUS)
		return sftp_malformed(sftp, "%s came in reply to %s",
		                      wire_type_name(reply->type),
		                      wire_type_name(request->type));
	sftp_settle(sftp, request->op, reply->err);
	return 0;
}

int on_ignored(struct sftp *sftp, const struct sftp_request *request, struct sftp_reply *reply)
{
	(void)sftp;
	(void)request;
	(void)reply;
	return 0;
}

/* The size that was to be set is there, or the server only said so. */
static int on_size_seen(struct sftp *sftp, const struct sftp_request *request,
                        struct sftp_reply *reply)
{
	int result;
	struct remote_attr attr = {0};
	struct op *op = request->op;
	if (reply_is(sftp, request, reply, WIRE_ATTRS, &result))
		result = take_attr(sftp, reply, &attr);
	if (result < 0)
		return result;
	int err = reply->err;
	if (op && err == 0 && (attr.valid & ATTR_SIZE) && attr.size != op->attr.size)
		err = -EOPNOTSUPP;
	sftp_settle(sftp, op, err);
	return 0;
}

int on_attributes_set(struct sftp *sftp, const struct sftp_request *request,
                      struct sftp_reply *reply)
{
	struct op *op = request->op;
	bool look = sftp->known.pkg_sftp && op && (op->attr.valid & ATTR_SIZE) &&
	            reply->type == WIRE_STATUS && reply->err == 0;
	if (!look)
		return on_status(sftp, request, reply);
	const struct remote_handle *handle = op->file ? file_open_handle(sftp, op) : NULL;
	int err = 0;
	if (handle)
		err =
		    send_handle(sftp, WIRE_FSTAT, op, handle_text(handle), on_size_seen, NULL);
	else if (op->path)
		err = send_path(sftp, WIRE_STAT, op, op->path, on_size_seen, NULL);
	sftp_settle(sftp, op, err);
	return 0;
}

int take_attr(struct sftp *sftp, struct sftp_reply *reply, struct remote_attr *attr)
{
	wire_get_attr(&reply->body, attr);
	if (reply->body.failed)
		return sftp_malformed(sftp, "an ATTRS reply is cut short");
	return 0;
}

int on_attr(struct sftp *sftp, const struct sftp_request *request, struct sftp_reply *reply)
{
	int result;
	struct remote_attr attr = {0};
	if (reply_is(sftp, request, reply, WIRE_ATTRS, &result))
		result = take_attr(sftp, reply, &attr);
	if (result < 0)
		return result;
	if (request->op && reply->err == 0)
		request->op->attr = attr;
	sftp_settle(sftp, request->op, reply->err);
	return 0;
}

static int on_readlink(struct sftp *sftp, const struct sftp_request *request,
                       struct sftp_reply *reply)
{
	int result;
	int err = 0;
	if (reply_is(sftp, request, reply, WIRE_NAME, &result)) {
		uint32_t count = wire_get_u32(&reply->body);
		struct wire_text text = wire_get_text(&reply->body);
		if (reply->body.failed && count > 0)
			return sftp_malformed(sftp, "a READLINK reply is cut short");
		/* No target, an empty one, or one that holds a NUL is no target. */
		if (count == 0 || text.length == 0 || memchr(text.data, '\0', text.length)) {
			err = -EIO;
		} else if (request->op) {
			request->op->text = strndup(text.data, text.length);
			err = request->op->text ? 0 : -ENOMEM;
		}
	} else if (result < 0) {
		return result;
	} else {
		err = reply->err;
	}
	sftp_settle(sftp, request->op, err);
	return 0;
}

static int on_statfs(struct sftp *sftp, const struct sftp_request *request,
                     struct sftp_reply *reply)
{
	int result;
	struct remote_statfs statfs = {0};
	if (reply_is(sftp, request, reply, WIRE_EXTENDED_REPLY, &result)) {
		wire_get_statfs(&reply->body, &statfs);
		if (reply->body.failed)
			return sftp_malformed(sftp, "a statvfs reply is cut short");
	} else if (result < 0) {
		return result;
	}
	if (request->op && reply->err == 0)
		request->op->statfs = statfs;
	sftp_settle(sftp, request->op, reply->err);
	return 0;
}

static int on_names(struct sftp *sftp, const struct sftp_request *request,
                    struct sftp_reply *reply)
{
	int result;
	int err;
	struct op *op = request->op;
	if (reply_is(sftp, request, reply, WIRE_EXTENDED_REPLY, &result)) {
		if (!op)
			return 0;
		struct bytes names = BYTES_INIT;
		wire_get_users_groups(&reply->body, op->ids_are_groups, op->id_count, &names);
		if (reply->body.failed) {
			bytes_release(&names);
			return sftp_malformed(sftp, "a users-groups-by-id reply is cut short");
		}
		op->count = names.length;
		op->text = bytes_steal(&names);
		err = op->text ? 0 : -ENOMEM;
	} else if (result < 0) {
		return result;
	} else {
		err = reply->err;
	}
	sftp_settle(sftp, op, err);
	return 0;
}

/* Any answer shows that the server lives. */
static int on_ping(struct sftp *sftp, const struct sftp_request *request,
                   struct sftp_reply *reply)
{
	(void)reply;
	sftp_settle(sftp, request->op, 0);
	return 0;
}

/* ---- starters: 0 when a request was queued, else -errno ---- */

static int start_lstat(struct sftp *sftp, struct op *op)
{
	return send_path(sftp, WIRE_LSTAT, op, op->path, on_attr, NULL);
}

static int start_stat(struct sftp *sftp, struct op *op)
{
	return send_path(sftp, WIRE_STAT, op, op->path, on_attr, NULL);
}

static int start_setattr(struct sftp *sftp, struct op *op)
{
	return send_path_attr(sftp, WIRE_SETSTAT, op);
}

static int start_lsetattr(struct sftp *sftp, struct op *op)
{
	if (!(sftp->extensions & EXT_LSETSTAT))
		return -EOPNOTSUPP;
	struct sftp_request *request = request_begin(sftp, WIRE_EXTENDED, op, on_status);
	if (!request)
		return -ENOMEM;
	size_t mark = request_packet(sftp)->length;
	wire_ext_path_attr(request_packet(sftp), request->id, "lsetstat@openssh.com", op->path,
	                   &op->attr);
	return request_commit(sftp, request, mark, NULL, 0);
}

static int start_readlink(struct sftp *sftp, struct op *op)
{
	return send_path(sftp, WIRE_READLINK, op, op->path, on_readlink, NULL);
}

/*
 * The draft puts the link before its target. OpenSSH has them the other way round, and the
 * other servers in use (ProFTPD, pkg/sftp and with it rclone, paramiko, Apache MINA) follow it.
 */
static int start_symlink(struct sftp *sftp, struct op *op)
{
	return send_two_paths(sftp, WIRE_SYMLINK, op, op->path2, op->path);
}

static int start_link(struct sftp *sftp, struct op *op)
{
	if (!(sftp->extensions & EXT_HARDLINK))
		return -EOPNOTSUPP;
	return send_ext_two_paths(sftp, op, "hardlink@openssh.com");
}

static int start_mkdir(struct sftp *sftp, struct op *op)
{
	return send_path_attr(sftp, WIRE_MKDIR, op);
}

static int start_rmdir(struct sftp *sftp, struct op *op)
{
	return send_path(sftp, WIRE_RMDIR, op, op->path, on_status, NULL);
}

static int start_unlink(struct sftp *sftp, struct op *op)
{
	return send_path(sftp, WIRE_REMOVE, op, op->path, on_status, NULL);
}

static int start_rename(struct sftp *sftp, struct op *op)
{
	if (!(sftp->extensions & EXT_POSIX_RENAME))
		return -EOPNOTSUPP;
	return send_ext_two_paths(sftp, op, "posix-rename@openssh.com");
}

static int start_rename_new(struct sftp *sftp, struct op *op)
{
	return send_two_paths(sftp, WIRE_RENAME, op, op->path, op->path2);
}

static int start_statfs(struct sftp *sftp, struct op *op)
{
	if (!(sftp->extensions & EXT_STATVFS))
		return -EOPNOTSUPP;
	struct sftp_request *request = request_begin(sftp, WIRE_EXTENDED, op, on_statfs);
	if (!request)
		return -ENOMEM;
	size_t mark = request_packet(sftp)->length;
	wire_ext_path(request_packet(sftp), request->id, "statvfs@openssh.com", op->path);
	return request_commit(sftp, request, mark, NULL, 0);
}

static int start_names(struct sftp *sftp, struct op *op)
{
	if (!(sftp->extensions & EXT_USERS_GROUPS))
		return -EOPNOTSUPP;
	struct sftp_request *request = request_begin(sftp, WIRE_EXTENDED, op, on_names);
	if (!request)
		return -ENOMEM;
	size_t mark = request_packet(sftp)->length;
	wire_users_groups(request_packet(sftp), request->id, op->ids, op->id_count,
	                  op->ids_are_groups);
	return request_commit(sftp, request, mark, NULL, 0);
}

static int start_ping(struct sftp *sftp, struct op *op)
{
	return send_path(sftp, WIRE_REALPATH, op, ".", on_ping, NULL);
}

void sftp_start(struct sftp *sftp, struct op *op)
{
	static int (*const starters[OP_KINDS])(struct sftp *, struct op *) = {
	    [OP_LSTAT] = start_lstat,       [OP_STAT] = start_stat,
	    [OP_SETATTR] = start_setattr,   [OP_LSETATTR] = start_lsetattr,
	    [OP_READLINK] = start_readlink, [OP_SYMLINK] = start_symlink,
	    [OP_LINK] = start_link,         [OP_MKDIR] = start_mkdir,
	    [OP_RMDIR] = start_rmdir,       [OP_UNLINK] = start_unlink,
	    [OP_RENAME] = start_rename,     [OP_RENAME_NEW] = start_rename_new,
	    [OP_LIST] = start_list,         [OP_STATFS] = start_statfs,
	    [OP_REALPATH] = start_realpath, [OP_NAMES] = start_names,
	    [OP_OPEN] = start_open,         [OP_CLOSE] = start_close,
	    [OP_READ] = start_read,         [OP_WRITE] = start_write,
	    [OP_FSTAT] = start_fstat,       [OP_FSETATTR] = start_fsetattr,
	    [OP_FSYNC] = start_fsync,       [OP_COPY] = start_copy,
	    [OP_FETCH] = start_fetch,       [OP_PING] = start_ping,
	};
	int err = starters[op->kind](sftp, op);
	if (err < 0)
		sftp_end_later(sftp, op, err);
}
