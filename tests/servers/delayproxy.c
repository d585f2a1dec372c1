/*
 * A TCP proxy that behaves like a long line: every byte is delivered a fixed time after it was
 * sent, at most so many bytes a second pass in each direction, and the line can be cut or fall
 * silent on demand. For tests and benchmarks on the loopback interface.
 *
 *   delayproxy --connect 127.0.0.1:22 --delay-ms 25 --rate 12500000
 *
 * One thread, one ppoll loop. Each connection has two directions; each direction is a queue of
 * chunks with the time at which they are due at the other end. The proxy always reads at once
 * (up to BUFFER_LIMIT), so the sender sees the line's delay, never a small window. With a rate,
 * the line is one serial link per direction for all connections together, with a bounded queue
 * before it; when the queue is full senders wait, as TCP's congestion control would make them.
 *
 * A client's connect() cannot be delayed from user space: instead the server is connected to
 * 1.5 round trips after the client arrived, and bytes leave the client one round trip after it.
 *
 * Signals: TERM ends; USR1 resets all connections; USR2 toggles silence (nothing moves,
 * nothing closes) and prints "silent" or "open"; HUP prints the counters as one line on
 * standard output.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	READ_SIZE = 256 * 1024,          /* bytes taken per turn of a direction */
	BUFFER_LIMIT = 64 * 1024 * 1024, /* bytes held per direction of a connection */
	MAX_CONNECTIONS = 1000,
};

static const uint64_t NS_PER_MS = 1000000;
static const uint64_t NS_PER_S = 1000000000;
static const uint64_t NEVER = UINT64_MAX;

/* A length of 0 is the end of the stream. */
struct chunk {
	struct chunk *next;
	uint64_t due_ns;
	size_t length, sent;
	unsigned char bytes[];
};

struct direction {
	struct chunk *first, *last;
	size_t held;      /* bytes in the queue */
	bool read_closed; /* the end of the stream was seen */
	bool done;        /* and handed on */
	bool blocked;     /* the receiver takes no more for now */
};

enum { UP, DOWN, DIRECTIONS }; /* client to server, server to client */

struct connection {
	struct connection *next;
	int fd[DIRECTIONS]; /* fd[UP]: where UP is read from (the client); fd[DOWN]: the server
	                     */
	uint64_t connect_at_ns; /* when the server is connected to; 0: done */
	uint64_t sends_from_ns; /* when the client's first byte may leave */
	bool connecting;
	bool dead;
	uint64_t passed; /* bytes, both directions */
	struct direction dir[DIRECTIONS];
};

struct proxy {
	struct sockaddr_in target;
	int listener;
	uint64_t delay_ns;
	uint64_t rate;       /* bytes a second and direction; 0: unlimited */
	uint64_t queue_ns;   /* how far ahead the link may be booked */
	uint64_t kill_after; /* bytes of a connection; 0: never */
	uint64_t link_free_ns[DIRECTIONS];
	uint64_t total[DIRECTIONS];
	uint64_t accepted;
	bool silent;
	struct connection *connections;
};

static volatile sig_atomic_t got_term, got_reset, got_silence, got_report;

static void on_signal(int number)
{
	switch (number) {
	case SIGUSR1:
		got_reset = 1;
		break;
	case SIGUSR2:
		got_silence = !got_silence;
		break;
	case SIGHUP:
		got_report = 1;
		break;
	default:
		got_term = 1;
	}
}

static void die(const char *what)
{
	fprintf(stderr, "delayproxy: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* ---- the line ---- */

/* Books the link for `length` bytes; returns when they are due at the other end. */
static uint64_t line_due(struct proxy *proxy, int direction, size_t length, uint64_t start_ns)
{
	if (proxy->rate == 0)
		return start_ns + proxy->delay_ns;
	if (proxy->link_free_ns[direction] < start_ns)
		proxy->link_free_ns[direction] = start_ns;
	proxy->link_free_ns[direction] +=
	    (uint64_t)((double)length * (double)NS_PER_S / (double)proxy->rate);
	return proxy->link_free_ns[direction] + proxy->delay_ns;
}

/* When the link's queue has room again: at once (<= now) or later. */
static uint64_t line_open_at(const struct proxy *proxy, int direction)
{
	uint64_t booked = proxy->link_free_ns[direction];

	return booked > proxy->queue_ns ? booked - proxy->queue_ns : 0;
}

/* With a rate, small turns keep the link fair to all connections. */
static size_t turn_size(const struct proxy *proxy)
{
	uint64_t size = proxy->rate / 200;

	if (proxy->rate == 0 || size > READ_SIZE)
		return READ_SIZE;
	return size < 1448 ? 1448 : (size_t)size;
}

/* ---- connections ---- */

static void connection_kill(struct connection *connection)
{
	struct linger reset = {.l_onoff = 1, .l_linger = 0};

	if (connection->dead)
		return;
	connection->dead = true;
	for (int i = 0; i < DIRECTIONS; i++)
		if (connection->fd[i] >= 0)
			setsockopt(connection->fd[i], SOL_SOCKET, SO_LINGER, &reset,
			           sizeof(reset));
}

static void connection_free(struct connection *connection)
{
	for (int i = 0; i < DIRECTIONS; i++) {
		struct chunk *chunk = connection->dir[i].first;

		if (connection->fd[i] >= 0)
			close(connection->fd[i]);
		while (chunk) {
			struct chunk *next = chunk->next;

			free(chunk);
			chunk = next;
		}
	}
	free(connection);
}

static void set_nodelay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void accept_client(struct proxy *proxy)
{
	int fd = accept4(proxy->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct connection *connection;

	if (fd < 0)
		return;
	connection = calloc(1, sizeof(*connection));
	if (!connection) {
		close(fd);
		return;
	}
	set_nodelay(fd);
	connection->fd[UP] = fd;
	connection->fd[DOWN] = -1;
	connection->sends_from_ns = now_ns() + 2 * proxy->delay_ns;
	connection->connect_at_ns = connection->sends_from_ns + proxy->delay_ns;
	connection->next = proxy->connections;
	proxy->connections = connection;
	proxy->accepted++;
}

static void connect_server(struct proxy *proxy, struct connection *connection)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	connection->connect_at_ns = 0;
	if (fd < 0) {
		connection_kill(connection);
		return;
	}
	set_nodelay(fd);
	connection->fd[DOWN] = fd;
	connection->connecting = true;
	if (connect(fd, (struct sockaddr *)&proxy->target, sizeof(proxy->target)) < 0 &&
	    errno != EINPROGRESS)
		connection_kill(connection);
}

static void connect_finished(struct connection *connection)
{
	int error = 0;
	socklen_t length = sizeof(error);

	connection->connecting = false;
	getsockopt(connection->fd[DOWN], SOL_SOCKET, SO_ERROR, &error, &length);
	if (error)
		connection_kill(connection);
}

/* ---- the flow of bytes ---- */

static void enqueue(struct direction *dir, struct chunk *chunk)
{
	if (dir->last)
		dir->last->next = chunk;
	else
		dir->first = chunk;
	dir->last = chunk;
	dir->held += chunk->length;
}

static void take_from_sender(struct proxy *proxy, struct connection *connection, int which)
{
	static unsigned char buffer[READ_SIZE];
	struct direction *dir = &connection->dir[which];
	uint64_t start = now_ns();
	ssize_t got = recv(connection->fd[which], buffer, turn_size(proxy), 0);
	struct chunk *chunk;

	if (got < 0) {
		if (errno != EAGAIN && errno != EINTR)
			connection_kill(connection);
		return;
	}
	chunk = malloc(sizeof(*chunk) + (size_t)got);
	if (!chunk) {
		connection_kill(connection);
		return;
	}
	if (which == UP && start < connection->sends_from_ns)
		start = connection->sends_from_ns;
	chunk->next = NULL;
	chunk->length = (size_t)got;
	chunk->sent = 0;
	chunk->due_ns = line_due(proxy, which, chunk->length, start);
	memcpy(chunk->bytes, buffer, chunk->length);
	enqueue(dir, chunk);
	dir->read_closed = got == 0;
	proxy->total[which] += chunk->length;
	connection->passed += chunk->length;
	if (proxy->kill_after && connection->passed >= proxy->kill_after)
		connection_kill(connection);
}

static void give_to_receiver(struct connection *connection, int which, uint64_t now)
{
	struct direction *dir = &connection->dir[which];
	int fd = connection->fd[which == UP ? DOWN : UP];

	while (dir->first && dir->first->due_ns <= now && !connection->dead) {
		struct chunk *chunk = dir->first;
		size_t left = chunk->length - chunk->sent;

		if (left > 0) {
			ssize_t sent = send(fd, chunk->bytes + chunk->sent, left, MSG_NOSIGNAL);

			if (sent < 0 && errno == EAGAIN) {
				dir->blocked = true;
				return;
			}
			if (sent < 0) {
				connection_kill(connection);
				return;
			}
			chunk->sent += (size_t)sent;
			dir->held -= (size_t)sent;
			if (chunk->sent < chunk->length)
				continue;
		} else {
			shutdown(fd, SHUT_WR);
			dir->done = true;
		}
		dir->first = chunk->next;
		if (!dir->first)
			dir->last = NULL;
		free(chunk);
	}
}

/* ---- the loop ---- */

struct watch {
	struct connection *connection; /* NULL: the listener */
	int side;                      /* which fd of the connection */
};

struct poll_set {
	struct pollfd fds[1 + 2 * MAX_CONNECTIONS];
	struct watch watches[1 + 2 * MAX_CONNECTIONS];
	size_t count;
	uint64_t wake_ns;
};

static void wake_at(struct poll_set *set, uint64_t at_ns)
{
	if (at_ns < set->wake_ns)
		set->wake_ns = at_ns;
}

static void watch_connection(const struct proxy *proxy, struct connection *connection,
                             struct poll_set *set, uint64_t now)
{
	short events[DIRECTIONS] = {0, 0};

	if (connection->connect_at_ns)
		wake_at(set, connection->connect_at_ns);
	for (int which = 0; which < DIRECTIONS; which++) {
		struct direction *dir = &connection->dir[which];
		uint64_t open_at = line_open_at(proxy, which);

		if (!dir->read_closed && dir->held < BUFFER_LIMIT) {
			if (open_at <= now)
				events[which] |= POLLIN;
			else
				wake_at(set, open_at);
		}
		if (connection->fd[DOWN] < 0 || connection->connecting)
			continue;
		if (dir->blocked)
			events[which == UP ? DOWN : UP] |= POLLOUT;
		else if (dir->first)
			wake_at(set, dir->first->due_ns);
	}
	if (connection->connecting)
		events[DOWN] = POLLOUT;
	for (int side = 0; side < DIRECTIONS; side++) {
		if (connection->fd[side] < 0 || events[side] == 0)
			continue;
		set->fds[set->count] = (struct pollfd){connection->fd[side], events[side], 0};
		set->watches[set->count++] = (struct watch){connection, side};
	}
}

static void build_poll_set(const struct proxy *proxy, struct poll_set *set)
{
	uint64_t now = now_ns();
	size_t connections = 0;

	set->count = 0;
	set->wake_ns = NEVER;
	if (proxy->silent)
		return;
	for (struct connection *c = proxy->connections; c; c = c->next, connections++)
		watch_connection(proxy, c, set, now);
	if (connections < MAX_CONNECTIONS) {
		set->fds[set->count] = (struct pollfd){proxy->listener, POLLIN, 0};
		set->watches[set->count++] = (struct watch){NULL, 0};
	}
}

static void handle_event(struct proxy *proxy, const struct watch *watch, short revents)
{
	struct connection *connection = watch->connection;
	int side = watch->side;

	if (!connection) {
		accept_client(proxy);
		return;
	}
	if (connection->dead)
		return;
	if (connection->connecting && side == DOWN) {
		connect_finished(connection);
		return;
	}
	if (revents & POLLOUT)
		connection->dir[side == UP ? DOWN : UP].blocked = false;
	if (revents & POLLIN)
		take_from_sender(proxy, connection, side);
	else if (revents & (POLLERR | POLLHUP))
		connection_kill(connection);
}

static void deliver_due(struct proxy *proxy)
{
	struct connection **link = &proxy->connections;
	uint64_t now = now_ns();

	while (*link) {
		struct connection *connection = *link;

		if (!connection->dead && connection->connect_at_ns &&
		    connection->connect_at_ns <= now)
			connect_server(proxy, connection);
		for (int which = 0; which < DIRECTIONS; which++)
			if (!connection->dead && connection->fd[DOWN] >= 0 &&
			    !connection->connecting && !connection->dir[which].blocked)
				give_to_receiver(connection, which, now);
		if (connection->dead ||
		    (connection->dir[UP].done && connection->dir[DOWN].done)) {
			*link = connection->next;
			connection_free(connection);
		} else {
			link = &connection->next;
		}
	}
}

static void report(const struct proxy *proxy)
{
	printf("up=%" PRIu64 " down=%" PRIu64 " connections=%" PRIu64 "\n", proxy->total[UP],
	       proxy->total[DOWN], proxy->accepted);
	fflush(stdout);
}

static void take_signals(struct proxy *proxy)
{
	if (proxy->silent != (got_silence != 0)) {
		proxy->silent = got_silence != 0;
		puts(proxy->silent ? "silent" : "open");
		fflush(stdout);
	}
	if (got_reset) {
		got_reset = 0;
		for (struct connection *c = proxy->connections; c; c = c->next)
			connection_kill(c);
	}
	if (got_report) {
		got_report = 0;
		report(proxy);
	}
}

static void run(struct proxy *proxy)
{
	static struct poll_set set;
	sigset_t none;

	sigemptyset(&none);
	while (!got_term) {
		struct timespec timeout = {0, 0};
		uint64_t now;
		int ready;

		take_signals(proxy);
		if (!proxy->silent)
			deliver_due(proxy);
		build_poll_set(proxy, &set);
		now = now_ns();
		if (set.wake_ns != NEVER && set.wake_ns > now) {
			timeout.tv_sec = (time_t)((set.wake_ns - now) / NS_PER_S);
			timeout.tv_nsec = (long)((set.wake_ns - now) % NS_PER_S);
		}
		ready =
		    ppoll(set.fds, set.count, set.wake_ns == NEVER ? NULL : &timeout, &none);
		if (ready < 0 && errno != EINTR)
			die("ppoll");
		for (size_t i = 0; ready > 0 && i < set.count; i++)
			if (set.fds[i].revents)
				handle_event(proxy, &set.watches[i], set.fds[i].revents);
	}
}

/* ---- the command line ---- */

static const char usage[] =
    "usage: delayproxy --connect ADDRESS:PORT [--listen ADDRESS:PORT] [--delay-ms MS]\n"
    "                  [--rate BYTES_PER_SECOND] [--queue-ms MS] [--kill-after BYTES]\n"
    "  --delay-ms    delay of each direction: half a round trip (0)\n"
    "  --rate        of each direction, over all connections; 0 is unlimited (0)\n"
    "  --queue-ms    how much of the link may be booked ahead (a round trip, 20 at least)\n"
    "  --kill-after  resets a connection when so many bytes have passed (never)\n"
    "The port it listens on is printed on standard output.\n";

static double number(const char *text, const char *option)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0 && value < 1e15)) {
		fprintf(stderr, "delayproxy: --%s: '%s' is not a number\n%s", option, text,
		        usage);
		exit(2);
	}
	return value;
}

static struct sockaddr_in address(const char *text, const char *option)
{
	struct sockaddr_in result = {.sin_family = AF_INET};
	const char *colon = strrchr(text, ':');
	char host[INET_ADDRSTRLEN];
	size_t length = colon ? (size_t)(colon - text) : sizeof(host);

	if (length < sizeof(host)) {
		memcpy(host, text, length);
		host[length] = '\0';
		if (inet_pton(AF_INET, host, &result.sin_addr) == 1) {
			result.sin_port = htons((uint16_t)number(colon + 1, option));
			return result;
		}
	}
	fprintf(stderr, "delayproxy: --%s: '%s' is not ADDRESS:PORT\n%s", option, text, usage);
	exit(2);
}

static int listen_on(struct sockaddr_in *where)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	socklen_t length = sizeof(*where);
	int one = 1;

	if (fd < 0)
		die("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)where, sizeof(*where)) < 0)
		die("bind");
	if (listen(fd, 128) < 0)
		die("listen");
	if (getsockname(fd, (struct sockaddr *)where, &length) < 0)
		die("getsockname");
	return fd;
}

static void catch_signals(void)
{
	static const int caught[] = {SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP};
	struct sigaction action = {.sa_handler = on_signal};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigset_t blocked;

	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++) {
		sigaction(caught[i], &action, NULL);
		sigaddset(&blocked, caught[i]);
	}
	sigprocmask(SIG_BLOCK, &blocked, NULL); /* they arrive inside ppoll only */
	sigaction(SIGPIPE, &ignore, NULL);
}

int main(int argc, char **argv)
{
	enum { LISTEN, CONNECT, DELAY, RATE, QUEUE, KILL };
	static const struct option options[] = {
	    {"listen", required_argument, NULL, LISTEN},
	    {"connect", required_argument, NULL, CONNECT},
	    {"delay-ms", required_argument, NULL, DELAY},
	    {"rate", required_argument, NULL, RATE},
	    {"queue-ms", required_argument, NULL, QUEUE},
	    {"kill-after", required_argument, NULL, KILL},
	    {NULL, 0, NULL, 0},
	};
	struct sockaddr_in where = {.sin_family = AF_INET};
	static struct proxy proxy;
	double queue_ms = -1;
	int choice, index;

	where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while ((choice = getopt_long(argc, argv, "", options, &index)) != -1) {
		switch (choice) {
		case LISTEN:
			where = address(optarg, "listen");
			break;
		case CONNECT:
			proxy.target = address(optarg, "connect");
			break;
		case DELAY:
			proxy.delay_ns =
			    (uint64_t)(number(optarg, "delay-ms") * (double)NS_PER_MS);
			break;
		case RATE:
			proxy.rate = (uint64_t)number(optarg, "rate");
			break;
		case QUEUE:
			queue_ms = number(optarg, "queue-ms");
			break;
		case KILL:
			proxy.kill_after = (uint64_t)number(optarg, "kill-after");
			break;
		default:
			fputs(usage, stderr);
			return 2;
		}
	}
	if (optind != argc || proxy.target.sin_family != AF_INET) {
		fputs(usage, stderr);
		return 2;
	}
	proxy.queue_ns =
	    2 * proxy.delay_ns < 20 * NS_PER_MS ? 20 * NS_PER_MS : 2 * proxy.delay_ns;
	if (queue_ms >= 0)
		proxy.queue_ns = (uint64_t)(queue_ms * (double)NS_PER_MS);
	/* Keep freed chunks mapped: page faults would cost more than the copies. */
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	mallopt(M_TRIM_THRESHOLD, 1 << 30);
	catch_signals();
	proxy.listener = listen_on(&where);
	printf("%u\n", ntohs(where.sin_port));
	fflush(stdout);
	run(&proxy);
	report(&proxy);
	return 0;
}
