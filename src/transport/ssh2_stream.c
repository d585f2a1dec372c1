#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "transport/ssh2_internal.h"

enum { WAIT_SLICE_MS = 200 };

static LIBSSH2_ALLOC_FUNC(on_alloc)
{
	struct ssh2 *ssh2 = *abstract;
	return ssh2_memory_alloc(&ssh2->memory, count);
}

static LIBSSH2_REALLOC_FUNC(on_realloc)
{
	struct ssh2 *ssh2 = *abstract;
	return ssh2_memory_realloc(&ssh2->memory, ptr, count);
}

static LIBSSH2_FREE_FUNC(on_free)
{
	struct ssh2 *ssh2 = *abstract;
	ssh2_memory_free(&ssh2->memory, ptr);
}

/* Refills the receive buffer by one system call. */
static void receive(struct ssh2 *ssh2)
{
	ssize_t n;
	do {
		n = recv(ssh2->request.fd, ssh2->rx, SSH2_RX_BYTES, 0);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		ssh2->rx_eof = true;
	else if (n < 0 && errno != EAGAIN)
		ssh2->err = errno;
	ssh2->rx_at = 0;
	ssh2->rx_end = n > 0 ? (size_t)n : 0;
	if (n > 0 && !ssh2->greeting_length) {
		ssh2->greeting_length = MIN((size_t)n, sizeof(ssh2->greeting));
		memcpy(ssh2->greeting, ssh2->rx, ssh2->greeting_length);
	}
}

/*
 * libssh2 asks until it is told EAGAIN, and queues the packets. One refill for each of our
 * calls keeps that queue short, as the socket keeps the rest. That the peer has closed is also
 * told as EAGAIN: told the truth, libssh2 would throw the queued data away. We see it in
 * rx_eof.
 */
static LIBSSH2_RECV_FUNC(on_recv)
{
	struct ssh2 *ssh2 = *abstract;
	(void)socket;
	(void)flags;
	if (ssh2->closing)
		return 0;
	if (ssh2->rx_at == ssh2->rx_end && ssh2->rx_calls && !ssh2->rx_eof && !ssh2->err) {
		ssh2->rx_calls--;
		receive(ssh2);
	}
	size_t n = MIN(length, ssh2->rx_end - ssh2->rx_at);
	if (!n)
		return -EAGAIN;
	memcpy(buffer, ssh2->rx + ssh2->rx_at, n);
	ssh2->rx_at += n;
	ssh2->queued = true;
	return (ssize_t)n;
}

/*
 * Takes everything: a send that is cut short would make libssh2 insist on finishing that packet
 * before any other, and fail when a window adjustment comes first. What may pile up is bounded
 * by the writer, who stops while much is unsent.
 */
static LIBSSH2_SEND_FUNC(on_send)
{
	struct ssh2 *ssh2 = *abstract;
	(void)socket;
	(void)flags;
	if (ssh2->closing)
		return (ssize_t)length;
	if (ssh2->err)
		return -ssh2->err;
	bytes_add(&ssh2->tx, buffer, length);
	if (ssh2->tx.failed)
		return -ENOMEM;
	return (ssize_t)length;
}

static LIBSSH2_DISCONNECT_FUNC(on_disconnect)
{
	struct ssh2 *ssh2 = *abstract;
	(void)session;
	(void)language;
	(void)language_len;
	ssh2->disconnected = true;
	if (message_len > 0)
		tail_add(&ssh2->words, message, (size_t)message_len);
	log_trace(LOG_SSH, "%s disconnects: reason %d", ssh2->peer, reason);
}

#if LIBSSH2_VERSION_NUM >= 0x010b01
#define SET_CALLBACK(session, kind, function) \
	libssh2_session_callback_set2(session, kind, (libssh2_cb_generic *)(function))
#else
#define SET_CALLBACK(session, kind, function) \
	libssh2_session_callback_set(session, kind, (void *)(function))
#endif

int ssh2_stream_init(struct ssh2 *ssh2)
{
	ssh2->rx = malloc(SSH2_RX_BYTES);
	ssh2->session =
	    ssh2->rx ? libssh2_session_init_ex(on_alloc, on_free, on_realloc, ssh2) : NULL;
	if (!ssh2->session)
		return -1;
	SET_CALLBACK(ssh2->session, LIBSSH2_CALLBACK_RECV, on_recv);
	SET_CALLBACK(ssh2->session, LIBSSH2_CALLBACK_SEND, on_send);
	SET_CALLBACK(ssh2->session, LIBSSH2_CALLBACK_DISCONNECT, on_disconnect);
	libssh2_session_set_blocking(ssh2->session, 0);
	return 0;
}

void ssh2_stream_release(struct ssh2 *ssh2)
{
	ssh2->closing = true;
	/* With the peer gone every step ends at once; the bound is for a libssh2 that differs.
	 */
	for (int i = 0; ssh2->session && i < 100; i++)
		if (libssh2_session_free(ssh2->session) != LIBSSH2_ERROR_EAGAIN)
			break;
	ssh2->session = NULL;
	ssh2_memory_release(&ssh2->memory);
	bytes_release(&ssh2->tx);
	free(ssh2->rx);
	ssh2->rx = NULL;
	close(ssh2->request.fd);
}

size_t ssh2_unsent(const struct ssh2 *ssh2)
{
	return ssh2->tx.length - ssh2->tx_at;
}

void ssh2_flush(struct ssh2 *ssh2)
{
	while (ssh2_unsent(ssh2) && !ssh2->err) {
		ssize_t n = send(ssh2->request.fd, ssh2->tx.data + ssh2->tx_at,
		                 ssh2_unsent(ssh2), MSG_NOSIGNAL);
		if (n >= 0)
			ssh2->tx_at += (size_t)n;
		else if (errno == EAGAIN)
			break;
		else if (errno != EINTR)
			ssh2->err = errno;
	}
	if (!ssh2_unsent(ssh2)) {
		bytes_clear(&ssh2->tx);
		ssh2->tx_at = 0;
	} else if (ssh2->tx_at > ssh2_unsent(ssh2)) {
		memcpy(ssh2->tx.data, ssh2->tx.data + ssh2->tx_at, ssh2_unsent(ssh2));
		ssh2->tx.length = ssh2_unsent(ssh2);
		ssh2->tx_at = 0;
	}
}

bool ssh2_lost(const struct ssh2 *ssh2)
{
	return ssh2->err || ssh2->disconnected || (ssh2->rx_eof && ssh2->rx_at == ssh2->rx_end);
}

int ssh2_wait(struct ssh2 *ssh2, struct failure *failure)
{
	ssh2_flush(ssh2);
	if (ssh2_lost(ssh2)) {
		const char *words = tail_text(&ssh2->words);
		return failure_set(failure, FAILURE_UNREACHABLE, "%s: %s%s%.300s", ssh2->peer,
		                   ssh2->err ? strerror(ssh2->err)
		                             : "the server closed the connection",
		                   *words ? ": " : "", words);
	}
	if (ssh2->request.cancel && *ssh2->request.cancel)
		return failure_set(failure, FAILURE_UNREACHABLE, "%s: given up", ssh2->peer);
	uint64_t now = clock_now_ns();
	if (now >= ssh2->deadline_ns)
		return failure_set(failure, FAILURE_UNREACHABLE,
		                   "%s: the server does not go on: "
		                   "no answer in time",
		                   ssh2->peer);
	struct pollfd fd = {.fd = ssh2->request.fd,
	                    .events = (short)(ssh2_unsent(ssh2) ? POLLIN | POLLOUT : POLLIN)};
	uint64_t left_ms = (ssh2->deadline_ns - now) / NS_PER_MS + 1;
	if (ssh2->rx_at == ssh2->rx_end)
		poll(&fd, 1, (int)MIN(left_ms, WAIT_SLICE_MS));
	ssh2->rx_calls = 1;
	return 0;
}

const char *ssh2_message(struct ssh2 *ssh2)
{
	char *text = NULL;
	libssh2_session_last_error(ssh2->session, &text, NULL, 0);
	return text ? text : "";
}
