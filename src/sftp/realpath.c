/*
 * OP_REALPATH: absolute paths, the home directory, and "~" forms. Servers that refuse REALPATH
 * are taken at their word for any path that STAT knows.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sftp/client.h"

/* Values of op->proto.step: what the request under way is. */
enum { ASKED_REALPATH, ASKED_HOME, ASKED_STAT };

static int on_realpath(struct sftp *sftp, const struct sftp_request *request,
                       struct sftp_reply *reply);

/* The path to send for a path relative to the home directory. */
static const char *plain_path(const char *path)
{
	if (path[0] == '~' && path[1] == '/')
		path += 2;
	else if (path[0] == '~' && path[1] == '\0')
		path++;
	return path[0] ? path : ".";
}

/* STAT stands in for REALPATH; the path is then what was asked for. */
static int on_stat_instead(struct sftp *sftp, const struct sftp_request *request,
                           struct sftp_reply *reply)
{
	int result;
	struct op *op = request->op;
	if (!reply_is(sftp, request, reply, WIRE_ATTRS, &result) && result < 0)
		return result;
	int err = reply->err;
	if (op && err == 0) {
		op->text = strdup(plain_path(op->path));
		err = op->text ? 0 : -ENOMEM;
	}
	sftp_settle(sftp, op, err);
	return 0;
}

static int ask_stat(struct sftp *sftp, struct op *op)
{
	op->proto.step = ASKED_STAT;
	return send_path(sftp, WIRE_STAT, op, plain_path(op->path), on_stat_instead, NULL);
}

/* The result of REALPATH, expand-path or home-directory as a new string. 0 or -errno. */
static int take_path(struct sftp *sftp, struct sftp_reply *reply, char **path)
{
	uint32_t count = wire_get_u32(&reply->body);
	struct wire_text text = wire_get_text(&reply->body);
	if (reply->body.failed && count > 0)
		return sftp_malformed(sftp, "a REALPATH reply is cut short");
	if (count == 0 || text.length == 0 || memchr(text.data, '\0', text.length))
		return -EIO;
	*path = strndup(text.data, text.length);
	return *path ? 0 : -ENOMEM;
}

/* Appends what follows "~user" to that user's home directory. */
static int add_rest(struct op *op)
{
	const char *rest = strchr(op->path, '/');
	if (!rest || !op->text)
		return 0;
	char *whole = NULL;
	int length = asprintf(&whole, "%s%s", op->text, rest);
	free(op->text);
	op->text = length < 0 ? NULL : whole;
	return op->text ? 0 : -ENOMEM;
}

static int on_realpath(struct sftp *sftp, const struct sftp_request *request,
                       struct sftp_reply *reply)
{
	int result;
	int err;
	struct op *op = request->op;
	if (reply_is(sftp, request, reply, WIRE_NAME, &result)) {
		char *path = NULL;
		err = take_path(sftp, reply, &path);
		if (err == -EPROTO)
			return err;
		if (op)
			op->text = path;
		else
			free(path);
		if (op && err == 0 && op->proto.step == ASKED_HOME)
			err = add_rest(op);
	} else if (result < 0) {
		return result;
	} else {
		err = reply->err;
	}
	bool by_stat = op && err < 0 && err != -ENOMEM && request->type == WIRE_REALPATH;
	if (by_stat && err == -EOPNOTSUPP)
		sftp->known.no_realpath = true;
	if (by_stat && ask_stat(sftp, op) == 0)
		err = 0;
	sftp_settle(sftp, op, err);
	return 0;
}

static int ask_ext(struct sftp *sftp, struct op *op, const char *name, const char *argument)
{
	struct sftp_request *request = request_begin(sftp, WIRE_EXTENDED, op, on_realpath);
	if (!request)
		return -ENOMEM;
	size_t mark = request_packet(sftp)->length;
	wire_ext_path(request_packet(sftp), request->id, name, argument);
	return request_commit(sftp, request, mark, NULL, 0);
}

int start_realpath(struct sftp *sftp, struct op *op)
{
	op->proto.step = ASKED_REALPATH;
	if (op->path[0] == '~' && (sftp->extensions & EXT_EXPAND_PATH))
		return ask_ext(sftp, op, "expand-path@openssh.com", op->path);
	bool users_home = op->path[0] == '~' && op->path[1] != '/' && op->path[1] != '\0';
	if (users_home) {
		if (!(sftp->extensions & EXT_HOME_DIRECTORY))
			return -EOPNOTSUPP;
		size_t length = strcspn(op->path + 1, "/");
		char *user = strndup(op->path + 1, length);
		if (!user)
			return -ENOMEM;
		op->proto.step = ASKED_HOME;
		int err = ask_ext(sftp, op, "home-directory", user);
		free(user);
		return err;
	}
	if (sftp->known.no_realpath)
		return ask_stat(sftp, op);
	return send_path(sftp, WIRE_REALPATH, op, plain_path(op->path), on_realpath, NULL);
}
