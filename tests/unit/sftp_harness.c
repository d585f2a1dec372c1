#include "tests/unit/sftp_harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"

/* ---- transport and connector over a descriptor ---- */

struct fd_transport {
	struct transport base;
	int fd;
	const char *last_words;
};

struct connector {
	int fd; /* given to the next stream; -1: taken */
	const char *last_words;
	uint64_t round_trip_ns; /* as the session noted it */
	_Atomic uint64_t asked_ns;
};

static int fd_of(struct transport *transport)
{
	return CONTAINER_OF(transport, struct fd_transport, base)->fd;
}

static ssize_t fd_readv(struct transport *transport, const struct iovec *iov, int count)
{
	ssize_t n = readv(fd_of(transport), iov, count);
	return n < 0 ? -errno : n;
}

static ssize_t fd_writev(struct transport *transport, const struct iovec *iov, int count)
{
	ssize_t n = writev(fd_of(transport), iov, count);
	return n < 0 ? -errno : n;
}

static int fd_poll_set(struct transport *transport, bool want_write, struct pollfd *fds,
                       bool *ready)
{
	*ready = false;
	fds[0] = (struct pollfd){.fd = fd_of(transport),
	                         .events = (short)(POLLIN | (want_write ? POLLOUT : 0))};
	return 1;
}

static const char *fd_last_words(struct transport *transport)
{
	return CONTAINER_OF(transport, struct fd_transport, base)->last_words;
}

static void fd_close(struct transport *transport)
{
	close(fd_of(transport));
	free(CONTAINER_OF(transport, struct fd_transport, base));
}

static const struct transport_ops fd_ops = {
    .readv = fd_readv,
    .writev = fd_writev,
    .poll_set = fd_poll_set,
    .last_words = fd_last_words,
    .close = fd_close,
};

int connector_open(struct connector *connector, uint64_t deadline_ns,
                   const _Atomic bool *cancel, struct transport **out, struct failure *failure)
{
	(void)deadline_ns;
	(void)cancel;
	if (connector->fd < 0)
		return failure_set(failure, FAILURE_UNREACHABLE, "no stream left");
	struct fd_transport *transport = calloc(1, sizeof(*transport));
	assert_non_null(transport);
	transport->base.ops = &fd_ops;
	transport->base.kind = "test";
	transport->fd = connector->fd;
	transport->last_words = connector->last_words;
	connector->fd = -1;
	*out = &transport->base;
	return 0;
}

void connector_note_round_trip(struct connector *connector, uint64_t round_trip_ns)
{
	connector->round_trip_ns = round_trip_ns;
}

uint64_t connector_asked_ns(struct connector *connector)
{
	return connector->asked_ns;
}

void transport_explain(struct transport *transport, struct failure *failure)
{
	failure_set(failure, FAILURE_UNREACHABLE, "explained: %s", fd_last_words(transport));
}

/* ---- the lane's part ---- */

static void lane_done(void *lane, struct op *op)
{
	struct harness *h = lane;
	assert_true(h->done_count < ARRAY_LEN(h->done));
	h->done[h->done_count++] = op;
	if (op->done)
		op->done(op);
}

static const struct session_events events = {.done = lane_done};

/* Only remote_file_unref() submits here: the closing of handles. */
static void close_submit(struct remote *remote, struct op *op)
{
	struct harness *h = CONTAINER_OF(remote, struct harness, remote);
	assert_int_equal(op->kind, OP_CLOSE);
	h->session->ops->submit(h->session, op);
}

static const struct remote_ops close_ops = {.submit = close_submit};

static void harness_setup(struct harness *h, int fd, uint32_t max_read, uint32_t max_write)
{
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	h->connector = calloc(1, sizeof(*h->connector));
	assert_non_null(h->connector);
	h->connector->fd = fd;
	h->connector->last_words = "";
	h->factory = sftp_factory_new(h->connector, "user@host", max_read, max_write);
	assert_non_null(h->factory);
	h->session = h->factory->create(h->factory, 0, &events, h);
	assert_non_null(h->session);
	h->remote.ops = &close_ops;
}

void harness_open(struct harness *h, uint32_t max_read, uint32_t max_write)
{
	int fds[2];
	memset(h, 0, sizeof(*h));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	h->peer = fds[1];
	harness_setup(h, fds[0], max_read, max_write);
}

void harness_spawn(struct harness *h, const char *const *argv)
{
	int fds[2];
	memset(h, 0, sizeof(*h));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	h->child = fork();
	assert_true(h->child >= 0);
	if (h->child == 0) {
		dup2(fds[1], STDIN_FILENO);
		dup2(fds[1], STDOUT_FILENO);
		execv(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	close(fds[1]);
	h->peer = -1;
	harness_setup(h, fds[0], 0, 0);
}

void harness_close(struct harness *h)
{
	h->session->ops->destroy(h->session);
	sftp_factory_free(h->factory);
	if (h->connector->fd >= 0)
		close(h->connector->fd);
	free(h->connector);
	if (h->peer >= 0)
		close(h->peer);
	if (h->child > 0)
		waitpid(h->child, NULL, 0);
}

void harness_set_last_words(struct harness *h, const char *words)
{
	h->connector->last_words = words;
}

void harness_set_asked(struct harness *h, double seconds)
{
	h->connector->asked_ns = (uint64_t)(seconds * 1e9);
}

uint64_t harness_round_trip(const struct harness *h)
{
	return h->connector->round_trip_ns;
}

void harness_small_buffers(struct harness *h)
{
	int small = 1;
	setsockopt(h->peer, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	setsockopt(h->connector->fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
}

int harness_connect(struct harness *h, double seconds)
{
	static const _Atomic bool never;
	uint64_t deadline = clock_now_ns() + (uint64_t)(seconds * 1e9);
	h->session->generation++;
	return h->session->ops->connect(h->session, deadline, &never, &h->failure);
}

struct hello {
	struct harness *h;
	uint32_t version;
	const char *const *extensions;
	const struct wire_limits *limits;
};

static bool read_fully(int fd, void *data, size_t length)
{
	for (size_t got = 0; got < length;) {
		ssize_t n = read(fd, (char *)data + got, length - got);
		if (n <= 0)
			return false;
		got += (size_t)n;
	}
	return true;
}

static void *play_hello(void *argument)
{
	struct hello *hello = argument;
	struct harness *h = hello->h;
	uint8_t init[9];
	if (!read_fully(h->peer, init, sizeof(init)))
		return NULL;
	struct bytes reply = BYTES_INIT;
	reply_begin(&reply, WIRE_VERSION, hello->version);
	for (const char *const *at = hello->extensions; at && *at; at++)
		reply_text(&reply, *at, strlen(*at));
	peer_send(h, &reply);
	if (!hello->limits)
		return NULL;
	uint8_t request[9 + 4 + 18];
	if (!read_fully(h->peer, request, sizeof(request)))
		return NULL;
	struct wire_in in = wire_in(request + 5, 4);
	reply_begin(&reply, WIRE_EXTENDED_REPLY, wire_get_u32(&in));
	bytes_add_be64(&reply, hello->limits->max_packet);
	bytes_add_be64(&reply, hello->limits->max_read);
	bytes_add_be64(&reply, hello->limits->max_write);
	bytes_add_be64(&reply, hello->limits->max_handles);
	peer_send(h, &reply);
	return NULL;
}

void harness_connect_as(struct harness *h, uint32_t version, const char *const *extensions,
                        const struct wire_limits *limits)
{
	struct hello hello = {h, version, extensions, limits};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, play_hello, &hello), 0);
	int result = harness_connect(h, 5);
	pthread_join(thread, NULL);
	if (result != 0)
		fail_msg("connect failed: %s", h->failure.text);
}

void harness_submit(struct harness *h, struct op *op)
{
	h->session->ops->submit(h->session, op);
}

void harness_pump(struct harness *h)
{
	h->progress_err = h->session->ops->progress(h->session, &h->failure);
}

bool harness_is_done(const struct harness *h, const struct op *op)
{
	for (unsigned i = 0; i < h->done_count; i++)
		if (h->done[i] == op)
			return true;
	return false;
}

int harness_wait(struct harness *h, struct op *op)
{
	uint64_t until = clock_now_ns() + 10 * NS_PER_SEC;
	while (!harness_is_done(h, op)) {
		harness_pump(h);
		if (h->progress_err)
			fail_msg("the session died: %s", h->failure.text);
		if (harness_is_done(h, op))
			break;
		struct pollfd fds[4];
		bool ready;
		int count = h->session->ops->poll_set(h->session, fds, 4, &ready);
		poll(fds, (nfds_t)count, ready ? 0 : 100);
		if (clock_now_ns() > until)
			fail_msg("the op did not end within 10 s");
	}
	return op->err;
}

int harness_run(struct harness *h, struct op *op)
{
	h->done_count = 0;
	harness_submit(h, op);
	return harness_wait(h, op);
}

/* ---- the peer's side ---- */

static bool peer_readable(struct harness *h, int timeout_ms)
{
	struct pollfd fd = {.fd = h->peer, .events = POLLIN};
	return poll(&fd, 1, timeout_ms) == 1;
}

/* Reads while the session goes on sending: the stream may hold less than a packet. */
static void peer_read(struct harness *h, void *data, size_t length)
{
	for (size_t got = 0; got < length;) {
		if (!peer_readable(h, 0))
			harness_pump(h);
		if (!peer_readable(h, 1000))
			fail_msg("the session did not send what was expected");
		ssize_t n = read(h->peer, (char *)data + got, length - got);
		assert_true(n > 0);
		got += (size_t)n;
	}
}

void peer_take(struct harness *h, struct packet *packet)
{
	uint8_t header[9];
	peer_read(h, header, sizeof(header));
	struct wire_in in = wire_in(header, sizeof(header));
	size_t length = wire_get_u32(&in) - 5;
	packet->type = wire_get_u8(&in);
	packet->id = wire_get_u32(&in);
	bytes_init(&packet->raw);
	assert_true(bytes_reserve(&packet->raw, length));
	peer_read(h, packet->raw.data, length);
	packet->raw.length = length;
	packet->body = wire_in(packet->raw.data, length);
}

void packet_release(struct packet *packet)
{
	bytes_release(&packet->raw);
}

uint32_t peer_expect(struct harness *h, uint8_t type)
{
	struct packet packet;
	peer_take(h, &packet);
	packet_release(&packet);
	assert_string_equal(wire_type_name(packet.type), wire_type_name(type));
	return packet.id;
}

bool peer_is_quiet(struct harness *h)
{
	harness_pump(h);
	return !peer_readable(h, 0);
}

void reply_begin(struct bytes *reply, uint8_t type, uint32_t id)
{
	bytes_init(reply);
	bytes_add_be32(reply, 0);
	bytes_add_byte(reply, type);
	bytes_add_be32(reply, id);
}

void reply_text(struct bytes *reply, const void *text, size_t length)
{
	bytes_add_be32(reply, (uint32_t)length);
	bytes_add(reply, text, length);
}

void reply_attr(struct bytes *reply, uint64_t size, uint32_t mode, uint32_t mtime)
{
	bytes_add_be32(reply, WIRE_ATTR_SIZE | WIRE_ATTR_PERMISSIONS | WIRE_ATTR_ACMODTIME);
	bytes_add_be64(reply, size);
	bytes_add_be32(reply, mode);
	bytes_add_be32(reply, mtime);
	bytes_add_be32(reply, mtime);
}

void peer_send_raw(struct harness *h, const void *data, size_t length)
{
	for (size_t sent = 0; sent < length;) {
		ssize_t n =
		    send(h->peer, (const char *)data + sent, length - sent, MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN) {
			harness_pump(h);
			continue;
		}
		assert_true(n > 0);
		sent += (size_t)n;
	}
}

void peer_send(struct harness *h, struct bytes *reply)
{
	bytes_put_be32(reply, 0, (uint32_t)reply->length - 4);
	assert_false(reply->failed);
	peer_send_raw(h, reply->data, reply->length);
	bytes_release(reply);
}

void peer_status(struct harness *h, uint32_t id, uint32_t code)
{
	struct bytes reply;
	reply_begin(&reply, WIRE_STATUS, id);
	bytes_add_be32(&reply, code);
	reply_text(&reply, "", 0);
	reply_text(&reply, "en", 2);
	peer_send(h, &reply);
}

void peer_handle(struct harness *h, uint32_t id, const char *handle)
{
	struct bytes reply;
	reply_begin(&reply, WIRE_HANDLE, id);
	reply_text(&reply, handle, strlen(handle));
	peer_send(h, &reply);
}

void peer_data(struct harness *h, uint32_t id, const void *data, size_t length)
{
	struct bytes reply;
	reply_begin(&reply, WIRE_DATA, id);
	reply_text(&reply, data, length);
	peer_send(h, &reply);
}

void peer_attrs(struct harness *h, uint32_t id, uint64_t size, uint32_t mode, uint32_t mtime)
{
	struct bytes reply;
	reply_begin(&reply, WIRE_ATTRS, id);
	reply_attr(&reply, size, mode, mtime);
	peer_send(h, &reply);
}
