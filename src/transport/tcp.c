#include "transport/tcp.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"

enum { SLICE_MS = 100 };

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

/* One attempt to connect. */
struct dial {
	const char *host;
	unsigned port;
	CURLM *multi;
	CURL *easy;
	char detail[CURL_ERROR_SIZE];
};

static void dial_release(struct dial *dial)
{
	if (dial->multi && dial->easy)
		curl_multi_remove_handle(dial->multi, dial->easy);
	curl_easy_cleanup(dial->easy);
	curl_multi_cleanup(dial->multi);
}

/* The host as a URL part; NULL when it holds what no host name holds. malloc'ed. */
static char *url_of(const char *host, unsigned port)
{
	for (const unsigned char *c = (const unsigned char *)host; *c; c++)
		if (*c < 0x80 && !isalnum(*c) && !strchr(".:-_%", *c))
			return NULL;
	char *url = NULL;
	const char *zone = strchr(host, '%');
	int length;
	if (!*host || (zone && !strchr(host, ':')))
		return NULL;
	if (zone)
		length = asprintf(&url, "http://[%.*s%%25%s]:%u", (int)(zone - host), host,
		                  zone + 1, port);
	else
		length = asprintf(&url, strchr(host, ':') ? "http://[%s]:%u" : "http://%s:%u",
		                  host, port);
	return length < 0 ? NULL : url;
}

static long ip_resolve(unsigned family)
{
	switch (family) {
	case AF_INET:
		return CURL_IPRESOLVE_V4;
	case AF_INET6:
		return CURL_IPRESOLVE_V6;
	default:
		return CURL_IPRESOLVE_WHATEVER;
	}
}

static bool dial_start(struct dial *dial, const char *url, unsigned family, long timeout_ms)
{
	dial->multi = curl_multi_init();
	dial->easy = curl_easy_init();
	if (!dial->multi || !dial->easy)
		return false;
	CURL *easy = dial->easy;
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
	curl_easy_setopt(easy, CURLOPT_PROXY, "");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_TCP_NODELAY, 1L);
	curl_easy_setopt(easy, CURLOPT_IPRESOLVE, ip_resolve(family));
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, dial->detail);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* Giving up does not wait for a name server. */
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#endif
	return curl_multi_add_handle(dial->multi, easy) == CURLM_OK;
}

/* True when the transfer has ended, with its result. */
static bool dial_done(struct dial *dial, CURLcode *result)
{
	int left;
	CURLMsg *message;
	while ((message = curl_multi_info_read(dial->multi, &left))) {
		if (message->msg != CURLMSG_DONE)
			continue;
		*result = message->data.result;
		return true;
	}
	return false;
}

static int explain(const struct dial *dial, CURLcode result, struct failure *failure)
{
	long os_error = 0;
	switch (result) {
	case CURLE_COULDNT_RESOLVE_HOST:
		return failure_set(failure, FAILURE_UNREACHABLE,
		                   "%s: host name not found: check the name and the network",
		                   dial->host);
	case CURLE_OPERATION_TIMEDOUT:
		return failure_set(failure, FAILURE_UNREACHABLE,
		                   "%s port %u: no answer in time: is the host up, and does a "
		                   "firewall let the port through?",
		                   dial->host, dial->port);
	case CURLE_OUT_OF_MEMORY:
		return failure_set(failure, FAILURE_INTERNAL, "out of memory");
	default:
		break;
	}
	curl_easy_getinfo(dial->easy, CURLINFO_OS_ERRNO, &os_error);
	const char *detail = os_error        ? strerror((int)os_error)
	                     : *dial->detail ? dial->detail
	                                     : curl_easy_strerror(result);
	return failure_set(failure, FAILURE_UNREACHABLE, "%s port %u: %s", dial->host,
	                   dial->port, detail);
}

static int dial_run(struct dial *dial, uint64_t deadline_ns, const _Atomic bool *cancel,
                    struct failure *failure)
{
	for (;;) {
		int running;
		CURLcode result = CURLE_FAILED_INIT;
		CURLMcode code = curl_multi_perform(dial->multi, &running);
		if (code == CURLM_OK && dial_done(dial, &result))
			return result == CURLE_OK ? 0 : explain(dial, result, failure);
		if (code == CURLM_OK)
			code = curl_multi_poll(dial->multi, NULL, 0, SLICE_MS, NULL);
		if (code != CURLM_OK)
			return failure_set(failure, FAILURE_INTERNAL, "%s port %u: %s",
			                   dial->host, dial->port, curl_multi_strerror(code));
		if (cancel && *cancel)
			return failure_set(failure, FAILURE_UNREACHABLE, "%s port %u: given up",
			                   dial->host, dial->port);
		if (clock_now_ns() >= deadline_ns)
			return explain(dial, CURLE_OPERATION_TIMEDOUT, failure);
	}
}

/* The kernel's measure of the handshake; curl's includes waiting for another address. */
static uint64_t handshake_ns(int fd, CURL *easy)
{
	struct tcp_info info;
	socklen_t size = sizeof(info);
	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && info.tcpi_rtt)
		return info.tcpi_rtt * NS_PER_US;
	curl_off_t connect_us = 0, lookup_us = 0;
	curl_easy_getinfo(easy, CURLINFO_CONNECT_TIME_T, &connect_us);
	curl_easy_getinfo(easy, CURLINFO_NAMELOOKUP_TIME_T, &lookup_us);
	return connect_us > lookup_us ? (uint64_t)(connect_us - lookup_us) * NS_PER_US : 0;
}

static int take_socket(struct dial *dial, int *fd, uint64_t *connect_ns,
                       struct failure *failure)
{
	curl_socket_t socket = CURL_SOCKET_BAD;
	curl_easy_getinfo(dial->easy, CURLINFO_ACTIVESOCKET, &socket);
	*fd = socket == CURL_SOCKET_BAD ? -1 : fcntl(socket, F_DUPFD_CLOEXEC, 3);
	if (*fd < 0)
		return failure_set(
		    failure, FAILURE_INTERNAL, "%s port %u: cannot take the socket: %s",
		    dial->host, dial->port,
		    socket == CURL_SOCKET_BAD ? "libcurl has none" : strerror(errno));
	/* curl sets both by itself today; the transports rely on them. */
	int one = 1, flags = fcntl(*fd, F_GETFL);
	setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (flags >= 0)
		fcntl(*fd, F_SETFL, flags | O_NONBLOCK);
	*connect_ns = handshake_ns(*fd, dial->easy);
	return 0;
}

int tcp_connect(const char *host, unsigned port, unsigned family, uint64_t deadline_ns,
                const _Atomic bool *cancel, int *fd, uint64_t *connect_ns,
                struct failure *failure)
{
	CLEANUP_FREE char *url = url_of(host, port);
	if (!url)
		return failure_set(failure, FAILURE_USAGE, "\"%s\" is not a host name", host);
	pthread_once(&curl_once, init_curl);
	uint64_t now = clock_now_ns();
	struct dial dial = {.host = host, .port = port};
	long timeout_ms =
	    deadline_ns > now ? (long)MIN((deadline_ns - now) / NS_PER_MS, 3600000) : 0;
	int result = -1;
	if (!dial_start(&dial, url, family, MAX(timeout_ms, 1)))
		failure_set(failure, FAILURE_INTERNAL, "out of memory");
	else if (dial_run(&dial, deadline_ns, cancel, failure) == 0)
		result = take_socket(&dial, fd, connect_ns, failure);
	dial_release(&dial);
	return result;
}

struct tcp {
	struct transport base;
	int fd;
	int err; /* errno value that broke the stream; 0 */
};

static struct tcp *tcp_of(struct transport *transport)
{
	return CONTAINER_OF(transport, struct tcp, base);
}

static ssize_t outcome(struct tcp *tcp, ssize_t n)
{
	if (n >= 0)
		return n;
	if (errno != EAGAIN)
		tcp->err = errno;
	return -errno;
}

static ssize_t tcp_readv(struct transport *transport, const struct iovec *iov, int count)
{
	struct tcp *tcp = tcp_of(transport);
	ssize_t n;
	do {
		n = readv(tcp->fd, iov, count);
	} while (n < 0 && errno == EINTR);
	return outcome(tcp, n);
}

static ssize_t tcp_writev(struct transport *transport, const struct iovec *iov, int count)
{
	struct tcp *tcp = tcp_of(transport);
	/* sendmsg takes the list as it is, and raises no SIGPIPE. */
	struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)iov,
	                         .msg_iovlen = (size_t)count};
	ssize_t n;
	do {
		n = sendmsg(tcp->fd, &message, MSG_NOSIGNAL);
	} while (n < 0 && errno == EINTR);
	return outcome(tcp, n);
}

static int tcp_poll_set(struct transport *transport, bool want_write, struct pollfd *fds,
                        bool *ready)
{
	*ready = false;
	fds[0] = (struct pollfd){.fd = tcp_of(transport)->fd,
	                         .events = (short)(want_write ? POLLIN | POLLOUT : POLLIN)};
	return 1;
}

static const char *tcp_last_words(struct transport *transport)
{
	struct tcp *tcp = tcp_of(transport);
	return tcp->err ? strerror(tcp->err) : "";
}

static void tcp_close(struct transport *transport)
{
	struct tcp *tcp = tcp_of(transport);
	close(tcp->fd);
	free(tcp);
}

static const struct transport_ops tcp_ops = {
    .readv = tcp_readv,
    .writev = tcp_writev,
    .poll_set = tcp_poll_set,
    .last_words = tcp_last_words,
    .close = tcp_close,
};

struct transport *tcp_transport_new(int fd)
{
	struct tcp *tcp = calloc(1, sizeof(*tcp));
	if (!tcp)
		return NULL;
	*tcp = (struct tcp){.base = {.ops = &tcp_ops, .kind = "tcp"}, .fd = fd};
	return &tcp->base;
}
