#include "stream_check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"

enum { STEP_MAX = 300000, IDLE_MS = 10000 };

static unsigned char pattern(size_t at)
{
	return (unsigned char)((at * UINT64_C(2654435761)) >> 13);
}

/* The two directions of an echo. */
struct echo {
	struct transport *transport;
	size_t size, sent, received;
	bool blocked;
	unsigned char *out, *in;
	unsigned seed;
};

static size_t odd_size(struct echo *echo, size_t limit)
{
	echo->seed = echo->seed * 1103515245 + 12345;
	size_t size = echo->seed % 4 ? echo->seed % STEP_MAX : echo->seed % 50;
	return MIN(size + 1, limit);
}

/* A header and a body, as a protocol sends them. */
static void send_some(struct echo *echo)
{
	size_t size = odd_size(echo, echo->size - echo->sent);
	size_t head = MIN(size, 13);
	for (size_t i = 0; i < size; i++)
		echo->out[i] = pattern(echo->sent + i);
	struct iovec iov[] = {{echo->out, head}, {echo->out + head, size - head}};
	ssize_t n = echo->transport->ops->writev(echo->transport, iov, size > head ? 2 : 1);
	if (n < 0 && n != -EAGAIN)
		fail_msg("write at %zu: %zd", echo->sent, n);
	echo->blocked = n == -EAGAIN;
	if (n > 0)
		echo->sent += (size_t)n;
}

static void receive_some(struct echo *echo)
{
	size_t size = odd_size(echo, STEP_MAX), head = MIN(size, 17);
	struct iovec iov[] = {{echo->in, head}, {echo->in + head, size - head}};
	ssize_t n = echo->transport->ops->readv(echo->transport, iov, size > head ? 2 : 1);
	if (n == -EAGAIN)
		return;
	if (n <= 0)
		fail_msg("read at %zu: %zd, %s", echo->received, n,
		         echo->transport->ops->last_words(echo->transport));
	for (ssize_t i = 0; i < n; i++)
		if (echo->in[i] != pattern(echo->received + (size_t)i))
			fail_msg("byte %zu differs", echo->received + (size_t)i);
	echo->received += (size_t)n;
}

void stream_check_echo(struct transport *transport, size_t size)
{
	struct echo echo = {.transport = transport, .size = size, .seed = 1};
	echo.out = malloc(STEP_MAX + 1);
	echo.in = malloc(STEP_MAX + 1);
	assert_non_null(echo.out);
	assert_non_null(echo.in);
	while (echo.received < size) {
		struct pollfd fds[4];
		bool ready, want = echo.sent < size;
		int count =
		    transport->ops->poll_set(transport, want && echo.blocked, fds, &ready);
		bool idle = !ready && !(want && !echo.blocked);
		if (poll(fds, (nfds_t)count, idle ? IDLE_MS : 0) == 0 && idle)
			fail_msg("stuck: %zu sent, %zu received of %zu", echo.sent,
			         echo.received, size);
		receive_some(&echo);
		if (want)
			send_some(&echo);
	}
	assert_int_equal(echo.received, size);
	free(echo.out);
	free(echo.in);
}

void stream_read_all(struct transport *transport, char *text, size_t size)
{
	size_t used = 0;
	while (used < size - 1) {
		struct pollfd fds[4];
		bool ready;
		struct iovec iov = {text + used, size - 1 - used};
		ssize_t n = transport->ops->readv(transport, &iov, 1);
		if (n == 0)
			break;
		if (n > 0) {
			used += (size_t)n;
			continue;
		}
		if (n != -EAGAIN)
			fail_msg("read: %zd", n);
		int count = transport->ops->poll_set(transport, false, fds, &ready);
		if (!ready && poll(fds, (nfds_t)count, IDLE_MS) == 0)
			fail_msg("nothing comes");
	}
	text[used] = '\0';
}
