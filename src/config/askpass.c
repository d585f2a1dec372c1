#include "config/askpass.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/log.h"

/*
 * One packet each way. Request: the asker's process id in decimal, NUL, a digit for the kind,
 * NUL, the prompt, NUL. Reply: a digit (enum askpass_reply) and the answer.
 */
enum { PACKET_MAX = 16384, NAME_BYTES = 16, PATIENCE_S = 5 };

struct askpass_server {
	int listen_fd, stop_fd;
	pthread_t thread;
	atomic_bool stopping;
	askpass_answer_fn *answer;
	void *context;
	char name[2 * NAME_BYTES + 16];
};

static socklen_t make_address(struct sockaddr_un *address, const char *name)
{
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	size_t length = MIN(strlen(name), sizeof(address->sun_path) - 1);
	memcpy(address->sun_path + 1, name, length); /* the first byte stays NUL: abstract */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

/* The process at the other end is ours. */
static bool peer_is_us(int fd)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);
	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       peer.uid == geteuid();
}

static void set_patience(int fd)
{
	struct timeval patience = {.tv_sec = PATIENCE_S};
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

/* ---- the server ---- */

/* False when the packet is none of ours. */
static bool parse_request(char *packet, size_t length, pid_t *asker, enum askpass_kind *kind,
                          const char **prompt)
{
	if (length == 0 || packet[length - 1] != '\0')
		return false;
	char *end;
	long pid = strtol(packet, &end, 10);
	size_t used = strlen(packet) + 1;
	if (*end || pid <= 0 || pid > INT32_MAX || length < used + 3)
		return false;
	if (packet[used] < '0' || packet[used] > '2' || packet[used + 1])
		return false;
	*asker = (pid_t)pid;
	*kind = (enum askpass_kind)(packet[used] - '0');
	*prompt = packet + used + 2;
	return true;
}

static void serve(struct askpass_server *server, int fd)
{
	char packet[PACKET_MAX];
	if (!peer_is_us(fd)) {
		log_warn("another user's process asked for a password: refused");
		return;
	}
	set_patience(fd);
	ssize_t length = recv(fd, packet, sizeof(packet), 0);
	pid_t asker;
	enum askpass_kind kind;
	const char *prompt, *answer = "";
	if (length <= 0 || !parse_request(packet, (size_t)length, &asker, &kind, &prompt))
		return;
	enum askpass_reply reply =
	    server->answer(server->context, asker, kind, prompt, &answer);
	char digit = (char)('0' + (int)reply);
	struct iovec iov[2] = {{&digit, 1}, {(void *)(uintptr_t)answer, strlen(answer)}};
	struct msghdr message = {.msg_iov = iov, .msg_iovlen = reply == ASKPASS_ANSWER ? 2 : 1};
	if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
		log_debug("an askpass process left before its answer: %s", strerror(errno));
}

static void *serve_all(void *context)
{
	struct askpass_server *server = context;
	while (!atomic_load(&server->stopping)) {
		struct pollfd fds[2] = {{.fd = server->listen_fd, .events = POLLIN},
		                        {.fd = server->stop_fd, .events = POLLIN}};
		if (poll(fds, 2, -1) <= 0 || !fds[0].revents)
			continue;
		CLEANUP_CLOSE int fd = accept4(server->listen_fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0)
			serve(server, fd);
	}
	return NULL;
}

static int listen_somewhere(struct askpass_server *server)
{
	uint8_t random[NAME_BYTES];
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return -EIO;
	size_t used = (size_t)snprintf(server->name, sizeof(server->name), "moorfs-askpass-");
	for (size_t i = 0; i < sizeof(random) && used + 2 < sizeof(server->name); i++)
		used += (size_t)snprintf(server->name + used, sizeof(server->name) - used,
		                         "%02x", random[i]);
	server->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	server->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (server->listen_fd < 0 || server->stop_fd < 0)
		return -errno;
	struct sockaddr_un address;
	socklen_t size = make_address(&address, server->name);
	if (bind(server->listen_fd, (struct sockaddr *)&address, size) < 0 ||
	    listen(server->listen_fd, 16) < 0)
		return -errno;
	return 0;
}

/* Signals are for other threads. */
static int start_thread(struct askpass_server *server)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int err = pthread_create(&server->thread, NULL, serve_all, server);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

static void server_free(struct askpass_server *server)
{
	if (server->listen_fd >= 0)
		close(server->listen_fd);
	if (server->stop_fd >= 0)
		close(server->stop_fd);
	free(server);
}

int askpass_server_start(askpass_answer_fn *answer, void *context,
                         struct askpass_server **result)
{
	struct askpass_server *server = calloc(1, sizeof(*server));
	if (!server)
		return -ENOMEM;
	server->listen_fd = server->stop_fd = -1;
	server->answer = answer;
	server->context = context;
	int err = listen_somewhere(server);
	if (err == 0)
		err = start_thread(server);
	if (err < 0) {
		server_free(server);
		return err;
	}
	*result = server;
	return 0;
}

const char *askpass_server_name(const struct askpass_server *server)
{
	return server->name;
}

void askpass_server_stop(struct askpass_server *server)
{
	if (!server)
		return;
	atomic_store(&server->stopping, true);
	eventfd_write(server->stop_fd, 1);
	pthread_join(server->thread, NULL);
	server_free(server);
}

/* ---- the asking program ---- */

bool askpass_requested(void)
{
	return getenv(ASKPASS_SOCKET_VARIABLE) != NULL;
}

static enum askpass_kind kind_wanted(void)
{
	const char *hint = getenv("SSH_ASKPASS_PROMPT");
	if (hint && strcmp(hint, "confirm") == 0)
		return ASKPASS_CONFIRM;
	if (hint && strcmp(hint, "none") == 0)
		return ASKPASS_NOTICE;
	return ASKPASS_QUESTION;
}

static int send_request(int fd, pid_t asker, const char *prompt)
{
	struct bytes packet = BYTES_INIT;
	bytes_addf(&packet, "%ld", (long)asker);
	bytes_add_byte(&packet, 0);
	bytes_addf(&packet, "%d", (int)kind_wanted());
	bytes_add_byte(&packet, 0);
	bytes_add(&packet, prompt, MIN(strlen(prompt), (size_t)PACKET_MAX - 64));
	bytes_add_byte(&packet, 0);
	ssize_t sent = packet.failed ? -1 : send(fd, packet.data, packet.length, MSG_NOSIGNAL);
	bytes_release(&packet);
	return sent < 0 ? -1 : 0;
}

/* ssh ends us when the notice has had its time, or ends itself. */
static void wait_for_end(pid_t asker)
{
	while (getppid() == asker)
		sleep(1);
}

int askpass_main(int argc, char **argv)
{
	pid_t asker = getppid();
	struct sockaddr_un address;
	socklen_t size = make_address(&address, getenv(ASKPASS_SOCKET_VARIABLE));
	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, size) < 0 || !peer_is_us(fd) ||
	    send_request(fd, asker, argc > 1 ? argv[1] : "") < 0)
		return 1;
	char reply[PACKET_MAX];
	ssize_t length = recv(fd, reply, sizeof(reply), 0);
	if (length < 1)
		return 1;
	int code = 1;
	if (reply[0] == '0' + ASKPASS_ANSWER) {
		struct iovec iov[2] = {{reply + 1, (size_t)length - 1},
		                       {(void *)(uintptr_t) "\n", 1}};
		code = writev(STDOUT_FILENO, iov, 2) == length ? 0 : 1;
	} else if (reply[0] == '0' + ASKPASS_WAIT) {
		wait_for_end(asker);
		code = 0;
	}
	secret_wipe(reply, sizeof(reply));
	return code;
}
