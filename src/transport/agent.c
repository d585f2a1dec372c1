#include "transport/agent.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "transport/sshkey.h"

enum {
	REQUEST_IDENTITIES = 11,
	IDENTITIES_ANSWER = 12,
	SIGN_REQUEST = 13,
	SIGN_RESPONSE = 14,
	MESSAGE_MAX = 1 << 20,
	KEYS_MAX = 1000,
	SLICE_MS = 200,
};

static int wait_for(int fd, short events, struct agent_limit limit)
{
	for (;;) {
		uint64_t now = clock_now_ns();
		if (limit.cancel && *limit.cancel)
			return -ECANCELED;
		if (now >= limit.deadline_ns)
			return -ETIMEDOUT;
		struct pollfd pollfd = {.fd = fd, .events = events};
		uint64_t left_ms = (limit.deadline_ns - now) / NS_PER_MS + 1;
		int n = poll(&pollfd, 1, (int)MIN(left_ms, SLICE_MS));
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
}

static int send_all(int fd, const char *at, size_t left, struct agent_limit limit)
{
	while (left) {
		ssize_t n = send(fd, at, left, MSG_NOSIGNAL);
		if (n >= 0) {
			at += n;
			left -= (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		int err = wait_for(fd, POLLOUT, limit);
		if (err)
			return err;
	}
	return 0;
}

static int receive_all(int fd, char *at, size_t left, struct agent_limit limit)
{
	while (left) {
		ssize_t n = recv(fd, at, left, 0);
		if (n == 0)
			return -ECONNRESET;
		if (n > 0) {
			at += n;
			left -= (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		int err = wait_for(fd, POLLIN, limit);
		if (err)
			return err;
	}
	return 0;
}

/* Sends the request (its length still to be put in front) and receives the reply's body. */
static int exchange(struct agent *agent, struct bytes *request, struct bytes *reply,
                    struct agent_limit limit)
{
	if (request->failed)
		return -ENOMEM;
	bytes_put_be32(request, 0, (uint32_t)(request->length - 4));
	int err = send_all(agent->fd, request->data, request->length, limit);
	char head[4];
	if (!err)
		err = receive_all(agent->fd, head, sizeof(head), limit);
	if (err)
		return err;
	struct ssh_cursor cursor = {.at = (const uint8_t *)head, .left = sizeof(head)};
	size_t length = ssh_cursor_u32(&cursor);
	if (!length || length > MESSAGE_MAX)
		return -EPROTO;
	if (!bytes_reserve(reply, length))
		return -ENOMEM;
	err = receive_all(agent->fd, reply->data, length, limit);
	reply->length = err ? 0 : length;
	return err;
}

static int add_key(struct agent *agent, const uint8_t *blob, size_t length,
                   const uint8_t *comment, size_t comment_length)
{
	struct agent_key *keys = realloc(agent->keys, (agent->count + 1) * sizeof(*keys));
	if (!keys)
		return -ENOMEM;
	agent->keys = keys;
	struct agent_key *key = &keys[agent->count];
	key->blob = malloc(length ? length : 1);
	key->comment = strndup((const char *)comment, comment_length);
	if (!key->blob || !key->comment) {
		free(key->blob);
		free(key->comment);
		return -ENOMEM;
	}
	memcpy(key->blob, blob, length);
	key->length = length;
	agent->count++;
	return 0;
}

static int read_keys(struct agent *agent, const struct bytes *reply)
{
	struct ssh_cursor cursor = {.at = (const uint8_t *)reply->data, .left = reply->length};
	if (ssh_cursor_byte(&cursor) != IDENTITIES_ANSWER)
		return -EPROTO;
	uint32_t count = ssh_cursor_u32(&cursor);
	for (uint32_t i = 0; i < MIN(count, KEYS_MAX); i++) {
		size_t length, comment_length;
		const uint8_t *blob = ssh_cursor_string(&cursor, &length);
		const uint8_t *comment = ssh_cursor_string(&cursor, &comment_length);
		if (!blob || !comment)
			return -EPROTO;
		int err = add_key(agent, blob, length, comment, comment_length);
		if (err)
			return err;
	}
	return cursor.failed ? -EPROTO : 0;
}

static int request_keys(struct agent *agent, struct agent_limit limit)
{
	struct bytes request = BYTES_INIT, reply = BYTES_INIT;
	bytes_add_be32(&request, 0);
	bytes_add_byte(&request, REQUEST_IDENTITIES);
	int err = exchange(agent, &request, &reply, limit);
	if (!err)
		err = read_keys(agent, &reply);
	bytes_release(&request);
	bytes_release(&reply);
	return err;
}

static int dial(struct agent *agent, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(path);
	if (length >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, length);
	agent->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (agent->fd < 0)
		return -errno;
	/* A local socket connects at once, or says EAGAIN when its queue is full. */
	if (connect(agent->fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	return 0;
}

int agent_open(struct agent *agent, const char *socket_path, struct agent_limit limit)
{
	int err = dial(agent, socket_path);
	if (!err)
		err = request_keys(agent, limit);
	if (err)
		agent_close(agent);
	return err;
}

void agent_close(struct agent *agent)
{
	if (agent->fd >= 0)
		close(agent->fd);
	for (size_t i = 0; i < agent->count; i++) {
		free(agent->keys[i].blob);
		free(agent->keys[i].comment);
	}
	free(agent->keys);
	*agent = (struct agent){.fd = -1};
}

/* The reply holds a string, which holds the algorithm's name and the signature. */
static int read_signature(const struct bytes *reply, uint8_t **signature,
                          size_t *signature_length)
{
	struct ssh_cursor outer = {.at = (const uint8_t *)reply->data, .left = reply->length};
	if (ssh_cursor_byte(&outer) != SIGN_RESPONSE)
		return -EACCES;
	struct ssh_cursor inner = {0};
	inner.at = ssh_cursor_string(&outer, &inner.left);
	size_t name_length, length;
	if (!inner.at || !ssh_cursor_string(&inner, &name_length))
		return -EPROTO;
	const uint8_t *bare = ssh_cursor_string(&inner, &length);
	if (!bare || !length)
		return -EPROTO;
	*signature = malloc(length);
	if (!*signature)
		return -ENOMEM;
	memcpy(*signature, bare, length);
	*signature_length = length;
	return 0;
}

int agent_sign(struct agent *agent, const struct agent_key *key, const void *data,
               size_t length, uint32_t flags, struct agent_limit limit, uint8_t **signature,
               size_t *signature_length)
{
	struct bytes request = BYTES_INIT, reply = BYTES_INIT;
	bytes_add_be32(&request, 0);
	bytes_add_byte(&request, SIGN_REQUEST);
	bytes_add_be32(&request, (uint32_t)key->length);
	bytes_add(&request, key->blob, key->length);
	bytes_add_be32(&request, (uint32_t)length);
	bytes_add(&request, data, length);
	bytes_add_be32(&request, flags);
	int err = exchange(agent, &request, &reply, limit);
	if (!err)
		err = read_signature(&reply, signature, signature_length);
	bytes_release(&request);
	bytes_release(&reply);
	return err;
}
