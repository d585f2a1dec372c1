#include "transport/ssh2.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "transport/knownhosts.h"
#include "transport/ssh2_internal.h"

enum {
	WINDOW_BYTES = 32 << 20, /* what the server may send ahead: rate x round trip */
	PACKET_BYTES = 32768,
	CHUNK_BYTES = 32700,          /* libssh2 sends no more in one packet */
	UNSENT_MAX_BYTES = 256 << 10, /* more is not encrypted before the socket took some */
	LAST_WORDS_MS = 200,
};

static struct ssh2 *ssh2_of(struct transport *transport)
{
	return CONTAINER_OF(transport, struct ssh2, base);
}

/* --- the open stream --- */

static void drain_stderr(struct ssh2 *ssh2)
{
	char text[1024];
	ssize_t n;
	while ((n = libssh2_channel_read_ex(ssh2->channel, SSH_EXTENDED_DATA_STDERR, text,
	                                    sizeof(text))) > 0) {
		char quoted[512];
		tail_add(&ssh2->words, text, (size_t)n);
		log_trace(LOG_SSH, "%s says: %s", ssh2->peer,
		          log_quote(quoted, sizeof(quoted), text, (size_t)n));
	}
}

/* Reads until the iovecs are full or libssh2 has no more: bytes, or libssh2's code. */
static ssize_t fill(struct ssh2 *ssh2, const struct iovec *iov, int count)
{
	ssize_t total = 0;
	for (int i = 0; i < count; i++) {
		for (size_t at = 0; at < iov[i].iov_len;) {
			ssize_t n = libssh2_channel_read(
			    ssh2->channel, (char *)iov[i].iov_base + at, iov[i].iov_len - at);
			if (n == 0 || n == LIBSSH2_ERROR_EAGAIN) {
				/* Everything that was received has been handed on. */
				ssh2->queued = false;
				return total ? total : LIBSSH2_ERROR_EAGAIN;
			}
			if (n < 0)
				return total ? total : n;
			at += (size_t)n;
			total += n;
		}
	}
	return total;
}

/* What a libssh2 error on the open stream means to the caller. */
static ssize_t broken(struct ssh2 *ssh2, ssize_t code)
{
	if (!ssh2->err)
		ssh2->err = code == LIBSSH2_ERROR_SOCKET_DISCONNECT ||
		                    code == LIBSSH2_ERROR_SOCKET_RECV ||
		                    code == LIBSSH2_ERROR_SOCKET_SEND
		                ? ECONNRESET
		            : code == LIBSSH2_ERROR_ALLOC ? ENOMEM
		                                          : EPROTO;
	log_trace(LOG_SSH, "%s: libssh2 error %zd: %s", ssh2->peer, code, ssh2_message(ssh2));
	return -ssh2->err;
}

static ssize_t ssh2_readv(struct transport *transport, const struct iovec *iov, int count)
{
	struct ssh2 *ssh2 = ssh2_of(transport);
	ssh2_flush(ssh2);
	/* What libssh2 holds goes first, so that its queue stays short. */
	bool held = ssh2->queued;
	ssh2->rx_calls = held ? 0 : 1;
	ssize_t n = fill(ssh2, iov, count);
	if (n == LIBSSH2_ERROR_EAGAIN && held) {
		ssh2->rx_calls = 1;
		n = fill(ssh2, iov, count);
	}
	ssh2->rx_calls = 0;
	if (n > 0) {
		if (ssh2_unsent(ssh2)) /* the window was opened */
			ssh2_flush(ssh2);
		return n;
	}
	if (n < 0 && n != LIBSSH2_ERROR_EAGAIN)
		return broken(ssh2, n);
	drain_stderr(ssh2);
	ssh2->queued = false;
	ssh2_flush(ssh2);
	if (libssh2_channel_eof(ssh2->channel))
		return 0;
	if (ssh2_lost(ssh2))
		return -ssh2->err;
	return -EAGAIN;
}

/* A place in a list of iovecs. */
struct place {
	const struct iovec *iov;
	int left;
	size_t at; /* in *iov */
};

static void place_skip(struct place *place, size_t length)
{
	place->at += length;
	while (place->left && place->at >= place->iov->iov_len) {
		place->at -= place->iov->iov_len;
		place->iov++;
		place->left--;
	}
}

/* Copies up to `size` bytes from the place, which stays. */
static size_t place_copy(struct place place, char *out, size_t size)
{
	size_t used = 0;
	while (used < size && place.left) {
		size_t n = MIN(size - used, place.iov->iov_len - place.at);
		memcpy(out + used, (const char *)place.iov->iov_base + place.at, n);
		used += n;
		place_skip(&place, n);
	}
	return used;
}

/*
 * Hands libssh2 one packet's worth: in place when the iovec holds that much, else gathered, so
 * that a small header does not become a packet of its own. Bytes taken, or libssh2's code.
 */
static ssize_t write_chunk(struct ssh2 *ssh2, struct place place)
{
	const char *from = ssh2->chunk;
	size_t length = ssh2->chunk_length;
	if (!length) {
		length = CHUNK_BYTES;
		if (place.iov->iov_len - place.at >= CHUNK_BYTES)
			from = (const char *)place.iov->iov_base + place.at;
		else
			length = place_copy(place, ssh2->chunk, CHUNK_BYTES);
	}
	ssize_t n = libssh2_channel_write(ssh2->channel, from, length);
	if (n != LIBSSH2_ERROR_EAGAIN) {
		ssh2->chunk_length = 0;
		return n;
	}
	/* In the middle of a key exchange libssh2 has noted the length and wants it again. */
	if (from != ssh2->chunk)
		memcpy(ssh2->chunk, from, length);
	ssh2->chunk_length = length;
	return n;
}

static ssize_t ssh2_writev(struct transport *transport, const struct iovec *iov, int count)
{
	struct ssh2 *ssh2 = ssh2_of(transport);
	struct place place = {.iov = iov, .left = count};
	ssize_t total = 0, n = 1;
	place_skip(&place, 0);
	ssh2_flush(ssh2);
	if (ssh2->err)
		return -ssh2->err;
	/* libssh2 looks for window adjustments when it writes. */
	ssh2->rx_calls = ssh2->queued ? 0 : 1;
	while (place.left && n > 0) {
		if (ssh2_unsent(ssh2) > UNSENT_MAX_BYTES) {
			ssh2_flush(ssh2);
			if (ssh2_unsent(ssh2) > UNSENT_MAX_BYTES)
				break;
		}
		n = write_chunk(ssh2, place);
		if (n > 0) {
			place_skip(&place, (size_t)n);
			total += n;
		}
	}
	ssh2->rx_calls = 0;
	ssh2_flush(ssh2);
	if (n < 0 && n != LIBSSH2_ERROR_EAGAIN)
		return broken(ssh2, n);
	return total ? total : -EAGAIN;
}

static int ssh2_poll_set(struct transport *transport, bool want_write, struct pollfd *fds,
                         bool *ready)
{
	struct ssh2 *ssh2 = ssh2_of(transport);
	/* A writer that waits while nothing is unsent waits for the server's window: that is
	 * news to be read. */
	(void)want_write;
	*ready = ssh2->queued || ssh2->rx_at < ssh2->rx_end;
	fds[0] =
	    (struct pollfd){.fd = ssh2->request.fd,
	                    .events = (short)(ssh2_unsent(ssh2) ? POLLIN | POLLOUT : POLLIN)};
	return 1;
}

/* The exit status and the last of stderr may come a little after the end of the data. */
static void await_close(struct ssh2 *ssh2)
{
	uint64_t end = clock_now_ns() + LAST_WORDS_MS * NS_PER_MS;
	while (!ssh2_lost(ssh2) && clock_now_ns() < end) {
		struct pollfd fd = {.fd = ssh2->request.fd, .events = POLLIN};
		ssh2->rx_calls = 1;
		if (libssh2_channel_wait_closed(ssh2->channel) != LIBSSH2_ERROR_EAGAIN)
			break;
		poll(&fd, 1, LAST_WORDS_MS / 10);
	}
	ssh2->rx_calls = 0;
}

static const char *ssh2_last_words(struct transport *transport)
{
	struct ssh2 *ssh2 = ssh2_of(transport);
	if (libssh2_channel_eof(ssh2->channel))
		await_close(ssh2);
	drain_stderr(ssh2);
	const char *words = tail_text(&ssh2->words);
	if (*words)
		return words;
	if (ssh2->err && ssh2->err != EPROTO)
		return strerror(ssh2->err);
	return ssh2->err ? ssh2_message(ssh2) : "";
}

static void ssh2_explain(struct transport *transport, struct failure *failure)
{
	struct ssh2 *ssh2 = ssh2_of(transport);
	const char *words = ssh2_last_words(transport);
	const char *sep = *words ? ": " : "";
	if (libssh2_channel_eof(ssh2->channel))
		failure_set(failure, FAILURE_PROTOCOL,
		            "%s: the SFTP server ended at once with exit status %d%s%.400s",
		            ssh2->peer, libssh2_channel_get_exit_status(ssh2->channel), sep,
		            words);
	else if (ssh2_lost(ssh2))
		failure_set(failure, FAILURE_UNREACHABLE, "%s: the connection was lost%s%.400s",
		            ssh2->peer, sep, words);
	else
		failure_set(failure, FAILURE_UNREACHABLE,
		            "%s: the SFTP server does not answer%s%.400s", ssh2->peer, sep,
		            words);
}

static void ssh2_free(struct ssh2 *ssh2)
{
	ssh2_stream_release(ssh2);
	free(ssh2->chunk);
	free(ssh2);
}

static void ssh2_close(struct transport *transport)
{
	struct ssh2 *ssh2 = ssh2_of(transport);
	if (!ssh2_lost(ssh2)) {
		/* A polite word, if the socket takes it at once. */
		(void)libssh2_session_disconnect(ssh2->session, "");
		ssh2_flush(ssh2);
	}
	ssh2_free(ssh2);
}

static const struct transport_ops ssh2_ops = {
    .readv = ssh2_readv,
    .writev = ssh2_writev,
    .poll_set = ssh2_poll_set,
    .last_words = ssh2_last_words,
    .explain = ssh2_explain,
    .close = ssh2_close,
};

/* --- opening --- */

/* True when the peer's first bytes show what it is, and the failure says so. */
static bool explain_greeting(struct ssh2 *ssh2, struct failure *failure)
{
	char shown[160];
	const char *at = ssh2->greeting;
	size_t length = ssh2->greeting_length;
	if (!length && ssh2_lost(ssh2)) {
		failure_set(failure, FAILURE_TOO_MANY,
		            "%s: the server hung up before it introduced itself: it limits "
		            "connections (MaxStartups) or refuses this address",
		            ssh2->peer);
		return true;
	}
	if (!length || memmem(at, length, "SSH-", 4))
		return false;
	const char *end = memchr(at, '\n', length);
	log_quote(shown, sizeof(shown), at, end ? (size_t)(end - at) : length);
	if (memmem(at, length, "MaxStartups", 11) || memmem(at, length, "Not allowed", 11))
		failure_set(failure, FAILURE_TOO_MANY, "%s: the server limits connections: %s",
		            ssh2->peer, shown);
	else
		failure_set(failure, FAILURE_PROTOCOL,
		            "%s: what answers there is no SSH server, it says \"%s\"",
		            ssh2->peer, shown);
	return true;
}

static int handshake(struct ssh2 *ssh2, struct failure *failure)
{
	int rc = SSH2_CALL(ssh2, failure,
	                   libssh2_session_handshake(ssh2->session, ssh2->request.fd));
	if (!rc)
		return 0;
	if (ssh2->request.cancel && *ssh2->request.cancel)
		return failure_set(failure, FAILURE_UNREACHABLE, "%s: given up", ssh2->peer);
	if (explain_greeting(ssh2, failure) || rc == LIBSSH2_ERROR_EAGAIN)
		return -1;
	if (ssh2_lost(ssh2))
		return failure_set(failure, FAILURE_UNREACHABLE,
		                   "%s: the server closed the connection during the handshake",
		                   ssh2->peer);
	ssh2->ssh_may_help = true;
	return failure_set(
	    failure, FAILURE_PROTOCOL,
	    "%s: libssh2 %s and the server do not agree on how to talk (%s): try "
	    "transport=ssh",
	    ssh2->peer, libssh2_version(0), ssh2_message(ssh2));
}

static int open_channel(struct ssh2 *ssh2, struct failure *failure)
{
	do {
		ssh2->channel = libssh2_channel_open_ex(ssh2->session, "session", 7,
		                                        WINDOW_BYTES, PACKET_BYTES, NULL, 0);
		if (ssh2->channel)
			return 0;
		if (libssh2_session_last_errno(ssh2->session) != LIBSSH2_ERROR_EAGAIN) {
			enum failure_kind kind =
			    ssh2_lost(ssh2) ? FAILURE_UNREACHABLE : FAILURE_TOO_MANY;
			return failure_set(failure, kind, "%s: the server opens no session: %s",
			                   ssh2->peer, ssh2_message(ssh2));
		}
	} while (!ssh2_wait(ssh2, failure));
	return -1;
}

static int start_server(struct ssh2 *ssh2, struct failure *failure)
{
	const char *server = ssh2->request.target->sftp_server;
	server = server ? server : "sftp";
	const char *how = strchr(server, '/') ? "exec" : "subsystem";
	int rc =
	    SSH2_CALL(ssh2, failure,
	              libssh2_channel_process_startup(ssh2->channel, how, (unsigned)strlen(how),
	                                              server, (unsigned)strlen(server)));
	if (!rc || rc == LIBSSH2_ERROR_EAGAIN)
		return rc ? -1 : 0;
	if (rc == LIBSSH2_ERROR_CHANNEL_REQUEST_DENIED)
		return failure_set(
		    failure, FAILURE_PROTOCOL,
		    "%s: the server refuses the %s \"%s\": enable SFTP there (dropbear "
		    "needs OpenSSH's sftp-server), or name the server program with -o "
		    "sftp_server=/path/of/sftp-server",
		    ssh2->peer, how, server);
	return failure_set(failure, FAILURE_UNREACHABLE, "%s: cannot start SFTP: %s",
	                   ssh2->peer, ssh2_message(ssh2));
}

static int run_steps(struct ssh2 *ssh2, const struct knownhosts *known, struct failure *failure)
{
	if (ssh2_set_methods(ssh2, known, failure) || handshake(ssh2, failure))
		return -1;
	log_debug("%s: %s, key exchange %s, host key %s, cipher %s, mac %s", ssh2->peer,
	          libssh2_session_banner_get(ssh2->session),
	          libssh2_session_methods(ssh2->session, LIBSSH2_METHOD_KEX),
	          libssh2_session_methods(ssh2->session, LIBSSH2_METHOD_HOSTKEY),
	          libssh2_session_methods(ssh2->session, LIBSSH2_METHOD_CRYPT_SC),
	          libssh2_session_methods(ssh2->session, LIBSSH2_METHOD_MAC_SC));
	if (ssh2_check_host_key(ssh2, known, failure))
		return -1;
	ssh2->memory.wipe = true;
	int result = ssh2_authenticate(ssh2, failure);
	ssh2->memory.wipe = false;
	if (result || open_channel(ssh2, failure) || start_server(ssh2, failure))
		return -1;
	ssh2_flush(ssh2);
	return 0;
}

static pthread_once_t library_once = PTHREAD_ONCE_INIT;

static void init_library(void)
{
	(void)libssh2_init(0);
}

int ssh2_open(const struct ssh2_request *request, struct transport **out, bool *ssh_may_help,
              struct failure *failure)
{
	*ssh_may_help = false;
	pthread_once(&library_once, init_library);
	struct ssh2 *ssh2 = calloc(1, sizeof(*ssh2));
	if (!ssh2) {
		close(request->fd);
		return failure_set(failure, FAILURE_INTERNAL, "out of memory");
	}
	ssh2->base = (struct transport){.ops = &ssh2_ops, .kind = "ssh2"};
	ssh2->request = *request;
	ssh2->deadline_ns = request->deadline_ns;
	ssh2->chunk = malloc(CHUNK_BYTES);
	snprintf(ssh2->peer, sizeof(ssh2->peer), "%s@%s", request->target->user,
	         request->target->hostname);
	struct knownhosts known = {0};
	int result;
	if (!ssh2->chunk || ssh2_stream_init(ssh2))
		result = failure_set(failure, FAILURE_INTERNAL, "out of memory");
	else
		result =
		    ssh2_load_known(ssh2, &known, failure) || run_steps(ssh2, &known, failure);
	knownhosts_release(&known);
	*ssh_may_help = ssh2->ssh_may_help;
	if (result) {
		ssh2_free(ssh2);
		return -1;
	}
	*out = &ssh2->base;
	return 0;
}
