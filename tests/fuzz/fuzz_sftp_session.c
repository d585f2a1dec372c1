/*
 * A whole session against a server that sends any bytes behind a good VERSION. Ops of most
 * kinds are in flight, one of them is cancelled half way, and each must be handed back once.
 *
 * Ids are what a fuzzer cannot guess: the id of a packet in the input is a number n, and stands
 * for the n-th of the requests that are still unanswered; from 2^31 on it is sent as it is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "remote/remote.h"
#include "sftp/sftp.h"
#include "sftp/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_IDS = 64, HEADER = 9 };

/* The server's stream in memory. */
struct connector {
	struct transport base;
	const uint8_t *data; /* the input that is left */
	size_t left;
	size_t piece;           /* most bytes of one read */
	bool raw;               /* no packets to be given ids: VERSION */
	bool paused;            /* the session gets time to send before the next packet */
	uint8_t header[HEADER]; /* of the packet being sent */
	size_t header_at, header_size, body_left;
	uint32_t ids[MAX_IDS];
	size_t id_count;
};

static uint32_t get_u32(const uint8_t *at)
{
	struct wire_in in = wire_in(at, 4);
	return wire_get_u32(&in);
}

/* Begins the next packet of the input. */
static void next_packet(struct connector *stream)
{
	size_t size = MIN((size_t)HEADER, stream->left);
	memcpy(stream->header, stream->data, size);
	stream->data += size;
	stream->left -= size;
	stream->header_at = 0;
	stream->header_size = size;
	if (size < HEADER)
		return;
	uint32_t length = get_u32(stream->header);
	stream->body_left = MIN(stream->left, length > 5 ? (size_t)length - 5 : 0);
	uint32_t n = get_u32(stream->header + 5);
	if (n >= UINT32_C(0x80000000) || stream->id_count == 0)
		return;
	n %= (uint32_t)stream->id_count;
	uint32_t id = stream->ids[n];
	memmove(&stream->ids[n], &stream->ids[n + 1],
	        (--stream->id_count - n) * sizeof(stream->ids[0]));
	for (int i = 0; i < 4; i++)
		stream->header[5 + i] = (uint8_t)(id >> (24 - 8 * i));
}

/* The next bytes of the stream, none beyond the end of a packet. */
static size_t read_from(struct connector *stream, uint8_t *to, size_t length)
{
	size_t part;
	if (stream->header_at < stream->header_size) {
		part = MIN(MIN(length, stream->header_size - stream->header_at), stream->piece);
		memcpy(to, stream->header + stream->header_at, part);
		stream->header_at += part;
		return part;
	}
	part = MIN(MIN(length, stream->body_left), stream->piece);
	memcpy(to, stream->data, part);
	stream->data += part;
	stream->left -= part;
	stream->body_left -= part;
	return part;
}

static ssize_t stream_readv(struct transport *transport, const struct iovec *iov, int count)
{
	struct connector *stream = CONTAINER_OF(transport, struct connector, base);
	if (stream->header_at == stream->header_size && stream->body_left == 0) {
		if (stream->left == 0)
			return 0;
		stream->paused = !stream->paused;
		if (stream->paused)
			return -EAGAIN;
		if (stream->raw)
			stream->body_left = stream->left;
		else
			next_packet(stream);
	}
	size_t got = 0;
	for (int i = 0; i < count; i++) {
		size_t part = read_from(stream, iov[i].iov_base, iov[i].iov_len);
		got += part;
		if (part < iov[i].iov_len)
			break;
	}
	return (ssize_t)got;
}

/* Notes the ids of the requests; the session writes whole packets to a stream that takes all.
 */
static ssize_t stream_writev(struct transport *transport, const struct iovec *iov, int count)
{
	struct connector *stream = CONTAINER_OF(transport, struct connector, base);
	ssize_t taken = 0;
	for (int i = 0; i < count; i++) {
		const uint8_t *at = iov[i].iov_base;
		const uint8_t *end = at + iov[i].iov_len;
		taken += (ssize_t)iov[i].iov_len;
		for (; at < end; at += 4 + get_u32(at))
			if (at[4] != WIRE_INIT && stream->id_count < MAX_IDS)
				stream->ids[stream->id_count++] = get_u32(at + 5);
	}
	return taken;
}

static int stream_poll_set(struct transport *transport, bool want_write, struct pollfd *fds,
                           bool *ready)
{
	(void)transport;
	(void)want_write;
	(void)fds;
	*ready = true;
	return 0;
}

static const char *stream_last_words(struct transport *transport)
{
	(void)transport;
	return "";
}

static void stream_close(struct transport *transport)
{
	(void)transport;
}

static const struct transport_ops stream_ops = {
    .readv = stream_readv,
    .writev = stream_writev,
    .poll_set = stream_poll_set,
    .last_words = stream_last_words,
    .close = stream_close,
};

int connector_open(struct connector *connector, uint64_t deadline_ns,
                   const _Atomic bool *cancel, struct transport **out, struct failure *failure)
{
	(void)deadline_ns;
	(void)cancel;
	(void)failure;
	connector->base.ops = &stream_ops;
	connector->base.kind = "memory";
	*out = &connector->base;
	return 0;
}

void connector_note_round_trip(struct connector *connector, uint64_t round_trip_ns)
{
	(void)connector;
	(void)round_trip_ns;
}

uint64_t connector_asked_ns(struct connector *connector)
{
	(void)connector;
	return 0;
}

void transport_explain(struct transport *transport, struct failure *failure)
{
	(void)transport;
	failure_set(failure, FAILURE_UNREACHABLE, "ended");
}

/* ---- the lane's part ---- */

struct lane {
	struct session *session;
	struct remote remote;
	unsigned done;
};

static void lane_done(void *context, struct op *op)
{
	struct lane *lane = context;
	lane->done++;
	if (op->attempts++ > 0)
		abort();
	free(op->text);
	op->text = NULL;
	if (op->done)
		op->done(op);
}

static const struct session_events events = {.done = lane_done};

static void lane_submit(struct remote *remote, struct op *op)
{
	struct lane *lane = CONTAINER_OF(remote, struct lane, remote);
	lane->session->ops->submit(lane->session, op);
}

static const struct remote_ops lane_ops = {.submit = lane_submit};

static int take_entries(struct op *op, const struct remote_entry *entries, size_t count)
{
	(void)op;
	for (size_t i = 0; i < count; i++)
		if (entries[i].name_length == 0 ||
		    memchr(entries[i].name, '/', entries[i].name_length) ||
		    memchr(entries[i].name, '\0', entries[i].name_length))
			abort();
	return 0;
}

static void play(struct lane *lane)
{
	enum { READ_SIZE = 100 };
	static const uint32_t ids[] = {0, 1};
	struct remote_file *file = remote_file_new(&lane->remote, "/f", OPEN_READ);
	char *read_data = malloc(READ_SIZE);
	char *cancelled_data = malloc(READ_SIZE);
	char *fetched_data = malloc(READ_SIZE);
	if (!file || !read_data || !cancelled_data || !fetched_data)
		abort();
	struct op ops[] = {
	    {.kind = OP_OPEN, .file = file, .open_flags = OPEN_READ},
	    {.kind = OP_LSTAT, .path = "/"},
	    {.kind = OP_READLINK, .path = "/"},
	    {.kind = OP_REALPATH, .path = "."},
	    {.kind = OP_LIST, .path = "/", .entries = take_entries},
	    {.kind = OP_READ, .file = file, .data = read_data, .length = READ_SIZE},
	    {.kind = OP_READ, .file = file, .data = cancelled_data, .length = READ_SIZE},
	    {.kind = OP_FSTAT, .file = file},
	    {.kind = OP_MKDIR, .path = "/d"},
	    {.kind = OP_STATFS, .path = "/"},
	    {.kind = OP_NAMES, .ids = ids, .id_count = 2},
	    {.kind = OP_FETCH, .path = "/g", .data = fetched_data, .length = READ_SIZE},
	};
	const struct session_ops *session = lane->session->ops;
	struct failure failure;
	for (size_t i = 0; i < ARRAY_LEN(ops); i++)
		session->submit(lane->session, &ops[i]);
	int err = 0;
	for (int i = 0; i < 6 && !err; i++)
		err = session->progress(lane->session, &failure);
	if (!err && ops[6].attempts == 0) {
		if (!session->cancel(lane->session, &ops[6], -EINTR))
			abort();
		free(cancelled_data); /* nothing may come into it any more */
		cancelled_data = NULL;
	}
	while (!err)
		err = session->progress(lane->session, &failure);
	session->disconnect(lane->session);
	if (lane->done != ARRAY_LEN(ops))
		abort();
	remote_file_unref(file);
	session->progress(lane->session, &failure);
	free(read_data);
	free(cancelled_data);
	free(fetched_data);
}

/* VERSION with the extensions whose replies are to be read. */
static void add_version(struct bytes *out)
{
	static const char *const texts[] = {"statvfs@openssh.com", "2",
	                                    "users-groups-by-id@openssh.com", "1"};
	size_t start = out->length;
	bytes_add_be32(out, 0);
	bytes_add_byte(out, WIRE_VERSION);
	bytes_add_be32(out, WIRE_PROTOCOL_VERSION);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		bytes_add_be32(out, (uint32_t)strlen(texts[i]));
		bytes_add_str(out, texts[i]);
	}
	bytes_put_be32(out, start, (uint32_t)(out->length - start - 4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	log_set_level(LOG_LEVEL_ERROR);
	struct bytes stream = BYTES_INIT;
	add_version(&stream);
	size_t version_length = stream.length;
	bytes_add(&stream, data + 1, size - 1);
	if (stream.failed)
		abort();
	struct connector connector = {.data = (const uint8_t *)stream.data,
	                              .left = version_length,
	                              .piece = 64,
	                              .raw = true};
	struct session_factory *factory = sftp_factory_new(&connector, "fuzz", 0, 0);
	if (!factory)
		abort();
	struct lane lane = {.remote.ops = &lane_ops};
	lane.session = factory->create(factory, 0, &events, &lane);
	if (!lane.session)
		abort();
	lane.session->generation = 1;
	struct failure failure;
	static const _Atomic bool never;
	if (lane.session->ops->connect(lane.session, UINT64_MAX, &never, &failure) < 0)
		abort();
	connector.raw = false;
	connector.left = size - 1;
	connector.piece = 1 + (size_t)data[0];
	play(&lane);
	lane.session->ops->destroy(lane.session);
	sftp_factory_free(factory);
	bytes_release(&stream);
	return 0;
}
