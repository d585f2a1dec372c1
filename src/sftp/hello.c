/* How a session begins: INIT, VERSION, the server's extensions and limits. */
#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "sftp/client.h"
#include "transport/transport.h"

enum {
	VERSION_MAX = 256 * 1024, /* a longer "VERSION" is text of somebody else */
	TEXT_SHOWN = 200,
	PACKET_OVERHEAD = 1024, /* of a packet beyond its data, with room to spare */
	REQUEST_MAX = 16 << 20, /* more data per request helps nobody */
};
#define CANCEL_CHECK_NS (250 * NS_PER_MS)
#define TEXT_WAIT_NS    (300 * NS_PER_MS)

static const struct {
	const char *name, *version;
	unsigned bit;
} known_extensions[] = {
    {"posix-rename@openssh.com", "1", EXT_POSIX_RENAME},
    {"statvfs@openssh.com", "2", EXT_STATVFS},
    {"hardlink@openssh.com", "1", EXT_HARDLINK},
    {"fsync@openssh.com", "1", EXT_FSYNC},
    {"lsetstat@openssh.com", "1", EXT_LSETSTAT},
    {"limits@openssh.com", "1", EXT_LIMITS},
    {"expand-path@openssh.com", "1", EXT_EXPAND_PATH},
    {"copy-data", "1", EXT_COPY_DATA},
    {"home-directory", "1", EXT_HOME_DIRECTORY},
    {"users-groups-by-id@openssh.com", "1", EXT_USERS_GROUPS},
};

static bool text_is(struct wire_text text, const char *wanted)
{
	return text.length == strlen(wanted) && memcmp(text.data, wanted, text.length) == 0;
}

/* Waits for the transport. 0, or -1 with the failure (if wanted): time is up, or cancelled. */
static int wait_for_peer(struct sftp *sftp, uint64_t deadline_ns, const _Atomic bool *cancel,
                         struct failure *failure)
{
	uint64_t now = clock_now_ns();
	if (cancel && *cancel)
		return failure_set(failure, FAILURE_UNREACHABLE,
		                   "connecting to %s was cancelled", sftp->factory->peer);
	/* The time that a person took to answer a question is not the server's. */
	uint64_t asked_ns =
	    connector_asked_ns(sftp->factory->connector) - sftp->asked_before_ns;
	deadline_ns = deadline_ns < UINT64_MAX - asked_ns ? deadline_ns + asked_ns : UINT64_MAX;
	if (now >= deadline_ns) {
		if (failure)
			transport_explain(sftp->transport, failure);
		return -1;
	}
	struct pollfd fds[4];
	bool ready = false;
	int count = sftp->transport->ops->poll_set(sftp->transport, sftp->blocked, fds, &ready);
	uint64_t wait_ns = MIN(deadline_ns - now, CANCEL_CHECK_NS);
	poll(fds, (nfds_t)count, ready ? 0 : (int)(wait_ns / NS_PER_MS) + 1);
	return 0;
}

/* True when the bytes cannot be the beginning of VERSION. */
static bool is_garbage(const struct sftp_input *in)
{
	struct wire_in bytes = wire_in(in->buffer + in->start, in->end - in->start);
	if (bytes.left < 4)
		return false;
	uint32_t length = wire_get_u32(&bytes);
	if (length < WIRE_PACKET_MIN || length > VERSION_MAX)
		return true;
	return bytes.left > 0 && *bytes.at != WIRE_VERSION;
}

/* Says what came instead of VERSION. Text gets a moment to be complete. */
static int explain_garbage(struct sftp *sftp, struct failure *failure)
{
	struct sftp_input *in = &sftp->in;
	uint64_t until = clock_now_ns() + TEXT_WAIT_NS;
	while (in->end - in->start < TEXT_SHOWN &&
	       !memchr(in->buffer + in->start, '\n', in->end - in->start)) {
		ssize_t got = client_read_some(sftp);
		if (got == -EAGAIN && wait_for_peer(sftp, until, NULL, NULL) < 0)
			break;
		if (got < 0 && got != -EAGAIN)
			break;
	}

	const char *text = in->buffer + in->start;
	size_t length = in->end - in->start;
	while (length > 0 && isspace((unsigned char)*text)) {
		text++;
		length--;
	}
	const char *line_end = memchr(text, '\n', length);
	if (line_end)
		length = (size_t)(line_end - text);
	while (length > 0 && isspace((unsigned char)text[length - 1]))
		length--;
	bool readable = length > 0;
	for (size_t i = 0; i < MIN(length, (size_t)16); i++)
		readable = readable && (isprint((unsigned char)text[i]) ||
		                        isspace((unsigned char)text[i]) || (text[i] & 0x80) ||
		                        text[i] == '\x1b');
	char quoted[TEXT_SHOWN + 8];
	log_quote(quoted, sizeof(quoted), text, length);
	if (readable)
		return failure_set(
		    failure, FAILURE_PROTOCOL,
		    "the shell of %s prints text at login, which breaks SFTP: '%s'; "
		    "make its start-up files silent for non-interactive logins",
		    sftp->factory->peer, quoted);
	return failure_set(failure, FAILURE_PROTOCOL,
	                   "%s does not speak SFTP: its answer begins with '%s'",
	                   sftp->factory->peer, quoted);
}

/* The stream ended or broke while connecting. */
static int explain_end(struct sftp *sftp, int err, struct failure *failure)
{
	if (sftp->fault[0])
		return failure_set(failure, FAILURE_PROTOCOL,
		                   "%s sent a reply that is not SFTP: %s", sftp->factory->peer,
		                   sftp->fault);
	if (err == -ENOMEM)
		return failure_set(failure, FAILURE_INTERNAL, "out of memory");
	transport_explain(sftp->transport, failure);
	return -1;
}

/* Go's pkg/sftp announces these three and no more; see client.h for what follows. */
static bool looks_like_pkg_sftp(unsigned extensions, unsigned announced)
{
	return announced == 3 && extensions == (EXT_HARDLINK | EXT_POSIX_RENAME | EXT_STATVFS);
}

/* The body of VERSION, which lies whole in `body`. 0, or -1 with the failure. */
static int read_version(struct sftp *sftp, struct wire_in *body, struct failure *failure)
{
	uint32_t version = wire_get_u32(body);
	unsigned announced = 0;
	sftp->extensions = 0;
	while (body->left > 0 && !body->failed) {
		struct wire_text name = wire_get_text(body);
		struct wire_text data = wire_get_text(body);
		announced++;
		for (size_t i = 0; i < ARRAY_LEN(known_extensions); i++)
			if (text_is(name, known_extensions[i].name) &&
			    text_is(data, known_extensions[i].version))
				sftp->extensions |= known_extensions[i].bit;
		if (log_tracing(LOG_SFTP)) {
			char quoted[128];
			log_trace(LOG_SFTP, "the server announces '%s'",
			          log_quote(quoted, sizeof(quoted), name.data, name.length));
		}
	}
	if (body->failed)
		return failure_set(failure, FAILURE_PROTOCOL,
		                   "the SFTP version reply of %s is malformed",
		                   sftp->factory->peer);
	if (version < WIRE_PROTOCOL_VERSION)
		return failure_set(failure, FAILURE_PROTOCOL,
		                   "%s speaks SFTP version %u; version 3 is needed",
		                   sftp->factory->peer, version);
	log_trace(LOG_SFTP, "<- VERSION %u", version);
	sftp->known.pkg_sftp = looks_like_pkg_sftp(sftp->extensions, announced);
	if (sftp->known.pkg_sftp)
		sftp->extensions &= ~(unsigned)EXT_HARDLINK;
	return 0;
}

/* Sends INIT, reads VERSION. 0, or -1 with the failure. */
static int exchange_versions(struct sftp *sftp, uint64_t deadline_ns,
                             const _Atomic bool *cancel, struct failure *failure)
{
	struct sftp_input *in = &sftp->in;
	wire_init(request_packet(sftp));
	if (outq_add(&sftp->out, 0, 0, NULL, 0) < 0)
		return failure_set(failure, FAILURE_INTERNAL, "out of memory");
	log_trace(LOG_SFTP, "-> INIT %d", WIRE_PROTOCOL_VERSION);
	for (;;) {
		/* Even when sending fails: the peer may have said why. */
		int err = client_send(sftp);
		ssize_t got = client_read_some(sftp);
		if (got == -EAGAIN && err < 0)
			got = err;
		if (is_garbage(in))
			return explain_garbage(sftp, failure);
		if (got < 0 && got != -EAGAIN)
			return in->end > in->start && got == -ENOTCONN
			           ? explain_garbage(sftp, failure)
			           : explain_end(sftp, (int)got, failure);
		struct wire_in packet = wire_in(in->buffer + in->start, in->end - in->start);
		uint32_t length = wire_get_u32(&packet);
		if (!packet.failed && packet.left >= length) {
			in->start += 4 + (size_t)length;
			struct wire_in body = wire_in(packet.at + 1, length - 1);
			return read_version(sftp, &body, failure);
		}
		if (!packet.failed)
			in->need = 4 + (size_t)length;
		if (got < 0 && wait_for_peer(sftp, deadline_ns, cancel, failure) < 0)
			return -1;
	}
}

/* What a limit allows: the server's, or of its packet, or what every server takes. */
static uint32_t request_size(uint64_t limit, uint64_t max_packet, uint32_t bound)
{
	uint64_t size = limit;
	if (size == 0)
		size = max_packet ? max_packet : WIRE_DEFAULT_MAX;
	if (max_packet > PACKET_OVERHEAD)
		size = MIN(size, max_packet - PACKET_OVERHEAD);
	size = MIN(size, (uint64_t)REQUEST_MAX);
	if (bound > 0)
		size = MIN(size, (uint64_t)bound);
	return (uint32_t)size;
}

static void apply_limits(struct sftp *sftp, const struct wire_limits *limits)
{
	struct remote_caps *caps = &sftp->session.caps;
	caps->max_read =
	    request_size(limits->max_read, limits->max_packet, sftp->factory->max_read);
	caps->max_write =
	    request_size(limits->max_write, limits->max_packet, sftp->factory->max_write);
}

static int on_limits(struct sftp *sftp, const struct sftp_request *request,
                     struct sftp_reply *reply)
{
	int result;
	sftp->limits_pending = false;
	if (!reply_is(sftp, request, reply, WIRE_EXTENDED_REPLY, &result))
		return result;
	struct wire_limits limits;
	wire_get_limits(&reply->body, &limits);
	if (reply->body.failed)
		return sftp_malformed(sftp, "a reply with the server's limits is cut short");
	apply_limits(sftp, &limits);
	LOCK_SCOPE(&sftp->factory->lock);
	sftp->factory->limits_known = true;
	sftp->factory->limits = limits;
	return 0;
}

/*
 * Asks for the limits where the server has them to tell. Only the first lane waits for the
 * answer; later ones begin with what it learned and correct that when their own answer comes.
 */
static int learn_limits(struct sftp *sftp, uint64_t deadline_ns, const _Atomic bool *cancel,
                        struct failure *failure)
{
	static const struct wire_limits unknown = {0};
	apply_limits(sftp, &unknown);
	sftp->limits_pending = false;
	if (!(sftp->extensions & EXT_LIMITS))
		return 0;

	struct sftp_request *request = request_begin(sftp, WIRE_EXTENDED, NULL, on_limits);
	size_t mark = request_packet(sftp)->length;
	if (request)
		wire_ext(request_packet(sftp), request->id, "limits@openssh.com");
	if (!request || request_commit(sftp, request, mark, NULL, 0) < 0)
		return failure_set(failure, FAILURE_INTERNAL, "out of memory");
	sftp->limits_pending = true;
	{
		LOCK_SCOPE(&sftp->factory->lock);
		if (sftp->factory->limits_known) {
			apply_limits(sftp, &sftp->factory->limits);
			return 0;
		}
	}
	uint64_t asked_ns = clock_now_ns();
	while (sftp->limits_pending) {
		int err = client_send(sftp);
		if (err == 0)
			err = client_receive(sftp);
		if (err < 0)
			return explain_end(sftp, err, failure);
		if (sftp->limits_pending &&
		    wait_for_peer(sftp, deadline_ns, cancel, failure) < 0)
			return -1;
	}
	connector_note_round_trip(sftp->factory->connector, clock_now_ns() - asked_ns);
	return 0;
}

static void fill_caps(struct sftp *sftp)
{
	struct remote_caps *caps = &sftp->session.caps;
	caps->posix_rename = sftp->extensions & EXT_POSIX_RENAME;
	caps->hardlink = sftp->extensions & EXT_HARDLINK;
	caps->statfs = sftp->extensions & EXT_STATVFS;
	caps->fsync = sftp->extensions & EXT_FSYNC;
	caps->lsetattr = sftp->extensions & EXT_LSETSTAT;
	caps->copy = sftp->extensions & EXT_COPY_DATA;
	caps->names = sftp->extensions & EXT_USERS_GROUPS;
	caps->random_write = true;
	/* Servers with these extensions serve one request after the other, save the one that is
	 * known for its workers. */
	caps->ordered = !sftp->known.pkg_sftp && caps->posix_rename && caps->fsync;
}

int sftp_hello(struct sftp *sftp, uint64_t deadline_ns, const _Atomic bool *cancel,
               struct failure *failure)
{
	sftp->asked_before_ns = connector_asked_ns(sftp->factory->connector);
	if (exchange_versions(sftp, deadline_ns, cancel, failure) < 0)
		return -1;
	/* A reply may lie behind VERSION only when it was not asked for. */
	int err = client_parse(sftp);
	if (err < 0)
		return explain_end(sftp, err, failure);
	fill_caps(sftp);
	return learn_limits(sftp, deadline_ns, cancel, failure);
}
