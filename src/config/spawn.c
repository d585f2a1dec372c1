#include "config/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/secret.h"

enum { LOOK_AROUND_MS = 100 };

struct run {
	pid_t pid;
	uint64_t deadline_ns;
	const _Atomic bool *stop;
};

/* 0 to go on, or why not. */
static int run_over(const struct run *run)
{
	if (run->stop && *run->stop)
		return -ECANCELED;
	return clock_now_ns() >= run->deadline_ns ? -ETIMEDOUT : 0;
}

static int start(char *const argv[], int out_fd, int err_fd, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;
	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	int err = posix_spawn_file_actions_init(&actions);
	if (err)
		return -err;
	err = posix_spawnattr_init(&attributes);
	if (err) {
		posix_spawn_file_actions_destroy(&actions);
		return -err;
	}
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	err =
	    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!err)
		err = posix_spawn_file_actions_adddup2(&actions, out_fd, STDOUT_FILENO);
	if (!err && err_fd >= 0)
		err = posix_spawn_file_actions_adddup2(&actions, err_fd, STDERR_FILENO);
	if (!err)
		err = posix_spawnp(pid, argv[0], &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	return -err;
}

/* Reads once; closes the descriptor at the end of the stream. 0 or -errno. */
static int drain(struct pollfd *from, struct bytes *into)
{
	char buffer[4096];
	ssize_t count = read(from->fd, buffer, sizeof(buffer));
	if (count < 0)
		return errno == EINTR ? 0 : -errno;
	if (count == 0) {
		close(from->fd);
		from->fd = -1;
		return 0;
	}
	bytes_add(into, buffer, (size_t)count);
	secret_wipe(buffer, (size_t)count);
	if (into->failed)
		return -ENOMEM;
	return into->length > SPAWN_OUTPUT_MAX ? -EMSGSIZE : 0;
}

static int collect(const struct run *run, struct pollfd fds[2], struct bytes *into[2])
{
	while (fds[0].fd >= 0 || fds[1].fd >= 0) {
		int err = run_over(run);
		if (err)
			return err;
		if (poll(fds, 2, LOOK_AROUND_MS) < 0 && errno != EINTR)
			return -errno;
		for (int i = 0; i < 2; i++) {
			if (fds[i].fd < 0 || !fds[i].revents)
				continue;
			err = drain(&fds[i], into[i]);
			if (err)
				return err;
		}
	}
	return 0;
}

static int reap(const struct run *run, int *status)
{
	static const struct timespec pause = {.tv_sec = 0, .tv_nsec = 5 * (long)NS_PER_MS};
	for (;;) {
		pid_t pid = waitpid(run->pid, status, WNOHANG);
		if (pid == run->pid)
			return 0;
		if (pid < 0 && errno != EINTR)
			return -errno;
		int err = run_over(run);
		if (err)
			return err;
		nanosleep(&pause, NULL);
	}
}

int spawn_capture(char *const argv[], uint64_t timeout_ns, const _Atomic bool *stop,
                  struct bytes *out, struct bytes *err, int *status)
{
	int out_pipe[2] = {-1, -1}, err_pipe[2] = {-1, -1};
	struct run run = {.pid = -1, .deadline_ns = UINT64_MAX, .stop = stop};
	if (timeout_ns != UINT64_MAX)
		run.deadline_ns = clock_now_ns() + timeout_ns;

	int result = 0;
	if (pipe2(out_pipe, O_CLOEXEC) < 0 || (err && pipe2(err_pipe, O_CLOEXEC) < 0))
		result = -errno;
	if (result == 0)
		result = start(argv, out_pipe[1], err_pipe[1], &run.pid);
	for (int i = 0; i < 2; i++)
		if ((i ? err_pipe : out_pipe)[1] >= 0)
			close((i ? err_pipe : out_pipe)[1]);

	struct pollfd fds[2] = {{.fd = out_pipe[0], .events = POLLIN},
	                        {.fd = err_pipe[0], .events = POLLIN}};
	struct bytes *into[2] = {out, err};
	if (result == 0) {
		result = collect(&run, fds, into);
		if (result == 0)
			result = reap(&run, status);
		if (result < 0 && result != -ECHILD) {
			kill(run.pid, SIGKILL);
			while (waitpid(run.pid, status, 0) < 0 && errno == EINTR)
				;
		}
	}
	for (int i = 0; i < 2; i++)
		if (fds[i].fd >= 0)
			close(fds[i].fd);
	return result;
}
