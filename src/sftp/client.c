/* Requests and their ids, and the stream in both directions; see client.h. */
#include "sftp/client.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"

enum {
	BLOCK_BITS = 6, /* slots of a block: 64 */
	BLOCK_SLOTS = 1 << BLOCK_BITS,
	INDEX_BITS = 20, /* of an id; the other bits count the uses of the slot */
	INDEX_MASK = (1 << INDEX_BITS) - 1,
	BUFFER_SIZE = 64 * 1024,
	BUFFER_KEEP = 256 * 1024, /* a larger buffer is given back once its packet is done */
	/*
	 * While file data is on its way only so much is read behind the end of a payload: it
	 * holds the next header, and the payload after it is then received in place.
	 */
	BULK_TAIL = 512,
	BULK_READ = 16 * 1024, /* replies from this size on are worth it */
	SEND_IOVECS = 64,
	RECEIVE_ROUNDS = 64, /* reads per progress(), so that sending gets its turn */
};

int sftp_malformed(struct sftp *sftp, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(sftp->fault, sizeof(sftp->fault), format, args);
	va_end(args);
	return -EPROTO;
}

/* ---- slots ---- */

int client_init(struct sftp *sftp)
{
	outq_init(&sftp->out);
	list_init(&sftp->openings);
	list_init(&sftp->listings);
	list_init(&sftp->fetchings);
	list_init(&sftp->running);
	list_init(&sftp->ended);
	sftp->in.buffer = malloc(BUFFER_SIZE);
	sftp->in.capacity = BUFFER_SIZE;
	return sftp->in.buffer ? 0 : -ENOMEM;
}

void client_release(struct sftp *sftp)
{
	for (size_t i = 0; i < sftp->block_count; i++)
		free(sftp->blocks[i]);
	free(sftp->blocks);
	free(sftp->in.buffer);
	outq_release(&sftp->out);
}

static bool add_block(struct sftp *sftp)
{
	if (sftp->block_count >= (size_t)1 << (INDEX_BITS - BLOCK_BITS))
		return false;
	struct sftp_request **blocks =
	    realloc(sftp->blocks, (sftp->block_count + 1) * sizeof(sftp->blocks[0]));
	if (!blocks)
		return false;
	sftp->blocks = blocks;
	struct sftp_request *block = calloc(BLOCK_SLOTS, sizeof(*block));
	if (!block)
		return false;
	uint32_t first = (uint32_t)sftp->block_count << BLOCK_BITS;
	for (uint32_t i = BLOCK_SLOTS; i-- > 0;) {
		block[i].id = first + i;
		block[i].next_free = sftp->free_slots;
		sftp->free_slots = &block[i];
	}
	blocks[sftp->block_count++] = block;
	return true;
}

struct sftp_request *request_begin(struct sftp *sftp, enum wire_type type, struct op *op,
                                   sftp_reply_fn *on_reply)
{
	if (!sftp->free_slots && !add_block(sftp))
		return NULL;
	struct sftp_request *request = sftp->free_slots;
	sftp->free_slots = request->next_free;
	*request = (struct sftp_request){
	    .id = request->id + (1u << INDEX_BITS),
	    .type = (uint8_t)type,
	    .used = true,
	    .op = op,
	    .on_reply = on_reply,
	};
	sftp->used_slots++;
	return request;
}

static bool is_bulk(const struct sftp_request *request)
{
	return request->type == WIRE_READ && request->length >= BULK_READ;
}

static void release_slot(struct sftp *sftp, struct sftp_request *request)
{
	if (is_bulk(request))
		sftp->bulk_reads--;
	request->used = false;
	request->op = NULL;
	request->next_free = sftp->free_slots;
	sftp->free_slots = request;
	sftp->used_slots--;
}

static void trace_request(const struct sftp_request *request)
{
	const struct op *op = request->op;
	const char *name = wire_type_name(request->type);
	char quoted[256];
	if (op && (request->type == WIRE_READ || request->type == WIRE_WRITE))
		log_trace(LOG_SFTP, "-> id=%u %s %llu+%u", request->id, name,
		          (unsigned long long)request->offset, request->length);
	else if (op && op->path)
		log_trace(LOG_SFTP, "-> id=%u %s for %s '%s'", request->id, name,
		          op_kind_name(op->kind),
		          log_quote(quoted, sizeof(quoted), op->path, strlen(op->path)));
	else
		log_trace(LOG_SFTP, "-> id=%u %s%s%s", request->id, name, op ? " for " : "",
		          op ? op_kind_name(op->kind) : "");
}

int request_commit(struct sftp *sftp, struct sftp_request *request, size_t mark,
                   const void *data, size_t length)
{
	if (is_bulk(request))
		sftp->bulk_reads++;
	if (outq_add(&sftp->out, mark, request->id, data, length) < 0) {
		release_slot(sftp, request);
		return -ENOMEM;
	}
	if (request->op)
		request->op->proto.outstanding++;
	if (log_tracing(LOG_SFTP))
		trace_request(request);
	return 0;
}

static struct sftp_request *slot_at(struct sftp *sftp, size_t index)
{
	return &sftp->blocks[index >> BLOCK_BITS][index & (BLOCK_SLOTS - 1)];
}

struct sftp_request *request_find(struct sftp *sftp, uint32_t id)
{
	size_t index = id & INDEX_MASK;
	if (index >> BLOCK_BITS >= sftp->block_count)
		return NULL;
	struct sftp_request *request = slot_at(sftp, index);
	return request->used && request->id == id ? request : NULL;
}

void request_ignore(struct sftp *sftp, uint32_t id)
{
	struct sftp_request *request = request_find(sftp, id);
	if (!request)
		return;
	request->op = NULL;
	request->context = NULL;
	request->on_reply = on_ignored;
}

static bool orphan(struct sftp *sftp, struct sftp_request *request)
{
	struct op *op = request->op;
	if (sftp->in.payload == request)
		sftp->in.dest = NULL;
	if (request->context) {
		op->sent = true;
		request->op = NULL;
		return true;
	}
	if (outq_abandon(&sftp->out, request->id) < 0)
		return false;
	request->op = NULL;
	request->data = NULL;
	request->on_reply = on_ignored;
	if (!request->sent)
		release_slot(sftp, request);
	return true;
}

bool requests_orphan(struct sftp *sftp, struct op *op)
{
	size_t slots = sftp->block_count << BLOCK_BITS;
	for (size_t i = 0; i < slots; i++) {
		struct sftp_request *request = slot_at(sftp, i);
		if (!request->used || request->op != op || orphan(sftp, request))
			continue;
		sftp_malformed(sftp, "out of memory");
		return false;
	}
	return true;
}

void client_reset(struct sftp *sftp)
{
	size_t slots = sftp->block_count << BLOCK_BITS;
	for (size_t i = 0; i < slots; i++) {
		struct sftp_request *request = slot_at(sftp, i);
		if (request->used)
			release_slot(sftp, request);
	}
	outq_clear(&sftp->out);
	sftp->blocked = false;
	sftp->in.start = sftp->in.end = sftp->in.need = 0;
	sftp->in.payload = NULL;
	sftp->in.dest = NULL;
	sftp->in.remaining = 0;
}

/* ---- sending ---- */

static void mark_sent(void *context, uint32_t id)
{
	struct sftp *sftp = context;
	struct sftp_request *request = request_find(sftp, id);
	if (!request)
		return;
	request->sent = true;
	if (request->op)
		request->op->sent = true;
}

int client_send(struct sftp *sftp)
{
	while (!outq_empty(&sftp->out)) {
		struct iovec iov[SEND_IOVECS];
		int count = outq_gather(&sftp->out, iov, SEND_IOVECS, mark_sent, sftp);
		ssize_t sent = 0;
		if (count > 0)
			sent = sftp->transport->ops->writev(sftp->transport, iov, count);
		sftp->blocked = sent == -EAGAIN;
		if (sftp->blocked)
			return 0;
		if (sent < 0)
			return (int)sent;
		sftp->session.bytes_out += (uint64_t)sent;
		outq_consume(&sftp->out, (size_t)sent);
	}
	return 0;
}

/* ---- receiving ---- */

/* Makes room behind what is in the buffer, for at least the packet that is incomplete. */
static bool make_room(struct sftp_input *in)
{
	if (in->start == in->end) {
		in->start = in->end = 0;
		if (in->capacity > BUFFER_KEEP && in->need <= BUFFER_SIZE) {
			char *smaller = realloc(in->buffer, BUFFER_SIZE);
			if (smaller) {
				in->buffer = smaller;
				in->capacity = BUFFER_SIZE;
			}
		}
	}
	if (in->start > 0 && in->capacity - in->end < BUFFER_SIZE / 2) {
		memmove(in->buffer, in->buffer + in->start, in->end - in->start);
		in->end -= in->start;
		in->start = 0;
	}
	if (in->end < in->capacity)
		return true;
	/* Grown as bytes arrive, so that a length alone costs no memory. */
	size_t capacity = MIN(in->capacity * 2, MAX(in->need, in->capacity + BUFFER_SIZE));
	char *larger = realloc(in->buffer, capacity);
	if (!larger)
		return false;
	in->buffer = larger;
	in->capacity = capacity;
	return true;
}

ssize_t client_read_some(struct sftp *sftp)
{
	struct sftp_input *in = &sftp->in;
	if (!make_room(in))
		return -ENOMEM;
	size_t room = in->capacity - in->end;
	size_t have = in->end - in->start;
	struct iovec iov[2];
	int count = 0;
	size_t direct = in->dest ? in->remaining : 0;
	if (direct > 0)
		iov[count++] = (struct iovec){in->dest, direct};
	if (sftp->bulk_reads > 0 && (direct > 0 || in->remaining == 0))
		room = MIN(room, MAX((size_t)BULK_TAIL, in->need > have ? in->need - have : 0));
	iov[count++] = (struct iovec){in->buffer + in->end, room};

	ssize_t got = sftp->transport->ops->readv(sftp->transport, iov, count);
	if (got == 0)
		return -ENOTCONN;
	if (got < 0)
		return got;
	sftp->session.bytes_in += (uint64_t)got;
	size_t into_dest = MIN((size_t)got, direct);
	if (into_dest > 0) {
		in->dest += into_dest;
		in->remaining -= into_dest;
	}
	in->end += (size_t)got - into_dest;
	return got;
}

static void trace_reply(const struct sftp_request *request, const struct sftp_reply *reply,
                        uint32_t code, struct wire_text message)
{
	char quoted[128];
	const char *name = wire_type_name(reply->type);
	if (reply->type == WIRE_STATUS)
		log_trace(LOG_SFTP, "<- id=%u %s %u '%s'", request->id, name, code,
		          log_quote(quoted, sizeof(quoted), message.data, message.length));
	else if (reply->type == WIRE_DATA)
		log_trace(LOG_SFTP, "<- id=%u %s %u", request->id, name, reply->count);
	else
		log_trace(LOG_SFTP, "<- id=%u %s", request->id, name);
}

static int dispatch(struct sftp *sftp, struct sftp_request *request, struct sftp_reply *reply)
{
	uint32_t code = 0;
	struct wire_text message = {"", 0};
	if (reply->type == WIRE_STATUS) {
		code = wire_get_status(&reply->body, &message);
		if (reply->body.failed)
			return sftp_malformed(sftp, "a STATUS reply is cut short");
		reply->err = wire_status_error(code, message);
		reply->eof = code == WIRE_STATUS_EOF;
	}
	if (log_tracing(LOG_SFTP))
		trace_reply(request, reply, code, message);
	struct sftp_request answered = *request;
	release_slot(sftp, request);
	return answered.on_reply(sftp, &answered, reply);
}

/* Checks the header of a DATA reply and makes its request the one being received. */
static int begin_payload(struct sftp *sftp, struct sftp_request *request, uint32_t packet,
                         uint32_t length)
{
	struct sftp_input *in = &sftp->in;
	if (request->type != WIRE_READ)
		return sftp_malformed(sftp, "DATA came in reply to %s",
		                      wire_type_name(request->type));
	if (packet != length + WIRE_DATA_HEADER_SIZE - 4 || length > request->length)
		return sftp_malformed(
		    sftp, "a DATA reply of %u bytes holds %u where %u were asked for", packet,
		    length, request->length);
	in->start += WIRE_DATA_HEADER_SIZE;
	in->need = 0;
	in->payload = request;
	in->dest = request->op ? request->data : NULL;
	in->remaining = in->payload_length = length;
	return 0;
}

/* Moves what was read ahead of a payload, or past a discarded one; ends it when complete. */
static int continue_payload(struct sftp *sftp)
{
	struct sftp_input *in = &sftp->in;
	size_t part = MIN(in->remaining, in->end - in->start);
	if (in->dest && part > 0) {
		memcpy(in->dest, in->buffer + in->start, part);
		in->dest += part;
	}
	in->start += part;
	in->remaining -= part;
	if (in->remaining > 0)
		return 0;
	struct sftp_request *request = in->payload;
	struct sftp_reply reply = {.type = WIRE_DATA, .count = in->payload_length};
	in->payload = NULL;
	in->dest = NULL;
	return dispatch(sftp, request, &reply);
}

/* One packet whose start lies in the buffer. 1: handled; 0: more bytes are needed. */
static int parse_packet(struct sftp *sftp)
{
	struct sftp_input *in = &sftp->in;
	struct wire_in header = wire_in(in->buffer + in->start, in->end - in->start);
	size_t have = header.left;
	in->need = WIRE_HEADER_SIZE;
	if (have < WIRE_HEADER_SIZE)
		return 0;
	uint32_t length = wire_get_u32(&header);
	uint8_t type = wire_get_u8(&header);
	uint32_t id = wire_get_u32(&header);
	if (length < WIRE_PACKET_MIN || length > WIRE_PACKET_MAX)
		return sftp_malformed(sftp, "a reply claims to be %u bytes long", length);
	struct sftp_request *request = request_find(sftp, id);
	if (!request || !request->sent)
		return sftp_malformed(sftp,
		                      "a reply (%s) answers request %u, which was not sent",
		                      wire_type_name(type), id);
	if (type == WIRE_DATA) {
		in->need = WIRE_DATA_HEADER_SIZE;
		if (have < WIRE_DATA_HEADER_SIZE)
			return 0;
		int err = begin_payload(sftp, request, length, wire_get_u32(&header));
		return err < 0 ? err : 1;
	}
	in->need = 4 + (size_t)length;
	if (have < in->need)
		return 0;
	struct sftp_reply reply = {.type = type, .body = wire_in(header.at, length - 5)};
	in->start += in->need;
	in->need = 0;
	int err = dispatch(sftp, request, &reply);
	return err < 0 ? err : 1;
}

int client_parse(struct sftp *sftp)
{
	struct sftp_input *in = &sftp->in;
	for (;;) {
		int done;
		if (in->payload) {
			done = continue_payload(sftp);
			if (done == 0)
				done = !in->payload;
		} else {
			done = parse_packet(sftp);
		}
		if (done <= 0)
			return done;
	}
}

int client_receive(struct sftp *sftp)
{
	for (int round = 0; round < RECEIVE_ROUNDS; round++) {
		ssize_t got = client_read_some(sftp);
		if (got == -EAGAIN)
			return 0;
		if (got < 0)
			return (int)got;
		int err = client_parse(sftp);
		if (err < 0)
			return err;
	}
	return 0;
}

bool reply_is(struct sftp *sftp, const struct sftp_request *request, struct sftp_reply *reply,
              enum wire_type type, int *result)
{
	*result = 0;
	if (reply->type == type)
		return true;
	if (reply->type != WIRE_STATUS)
		*result =
		    sftp_malformed(sftp, "%s came in reply to %s", wire_type_name(reply->type),
		                   wire_type_name(request->type));
	else if (reply->err == 0)
		reply->err = -EIO;
	return false;
}
