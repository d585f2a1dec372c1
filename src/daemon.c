#include "daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"

/* The parent's whole remaining life. */
__attribute__((noreturn)) static void wait_for_child(pid_t child, int report)
{
	uint8_t word;
	ssize_t n;
	do
		n = read(report, &word, 1);
	while (n < 0 && errno == EINTR);
	if (n == 1)
		exit(word);

	/* It has ended without a word, and has said why if it could. */
	int status = 0;
	pid_t pid;
	do
		pid = waitpid(child, &status, 0);
	while (pid < 0 && errno == EINTR);
	if (pid == child && WIFEXITED(status) && WEXITSTATUS(status) != 0)
		exit(WEXITSTATUS(status));
	if (pid == child && WIFSIGNALED(status))
		log_error("ended by signal %d (%s) before the mount was ready",
		          WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		log_error("ended before the mount was ready");
	exit(FAILURE_INTERNAL);
}

int daemon_fork(int *report, struct failure *failure)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return failure_set(failure, FAILURE_INTERNAL, "cannot make a pipe: %s",
		                   strerror(errno));
	const pid_t parent = getpid();
	const pid_t child = fork();
	if (child < 0) {
		int err = errno;
		close(ends[0]);
		close(ends[1]);
		return failure_set(failure, FAILURE_INTERNAL, "cannot fork: %s", strerror(err));
	}
	if (child > 0) {
		close(ends[1]);
		wait_for_child(child, ends[0]);
	}
	close(ends[0]);
	*report = ends[1];
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(FAILURE_INTERNAL);
	return 0;
}

static int open_log(const char *log_file, struct failure *failure)
{
	if (!log_file) {
		log_to_syslog();
		return 0;
	}
	int err = log_to_file(log_file);
	if (err)
		return failure_set(failure, FAILURE_USAGE, "cannot open the log file '%s': %s",
		                   log_file, strerror(-err));
	return 0;
}

int daemon_detach(int *report, const char *log_file, struct failure *failure)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return failure_set(failure, FAILURE_INTERNAL, "cannot open /dev/null: %s",
		                   strerror(errno));
	if (open_log(log_file, failure) < 0) {
		close(null);
		return -1;
	}
	prctl(PR_SET_PDEATHSIG, 0);
	setsid(); /* fails only for the leader of a group, which a forked child is not */
	if (chdir("/") < 0)
		log_warn("cannot leave the working directory: %s", strerror(errno));
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	if (null > STDERR_FILENO)
		close(null);

	const uint8_t word = FAILURE_NONE;
	while (write(*report, &word, 1) < 0 && errno == EINTR)
		;
	close(*report);
	*report = -1;
	return 0;
}

void daemon_notify_service(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (!path || (path[0] != '/' && path[0] != '@') ||
	    strlen(path) >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, strlen(path));
	const socklen_t length =
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (path[0] == '@')
		address.sun_path[0] = '\0';

	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || sendto(fd, state, strlen(state), MSG_NOSIGNAL,
	                     (const struct sockaddr *)&address, length) < 0)
		log_warn("cannot tell the service manager '%s': %s", state, strerror(errno));
}
