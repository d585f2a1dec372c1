#include "transport/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "transport/exec_argv.h"
#include "transport/ssh_words.h"
#include "transport/tail.h"

enum { PIPE_BYTES = 1 << 20, LAST_WORDS_MS = 200, TERM_WAIT_MS = 300, KILL_WAIT_MS = 500 };

struct exec {
	struct transport base;
	const struct ssh_target *target;
	pid_t pid;
	int in, out, err; /* our ends; err is -1 once the child has closed it */
	bool own_session;
	int status; /* of waitpid; -1 while the child runs */
	struct tail words;
};

static struct exec *exec_of(struct transport *transport)
{
	return CONTAINER_OF(transport, struct exec, base);
}

/* Whether the CPU does AES in hardware, so that AES-GCM is the cheapest cipher. */
static bool cpu_has_aes(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_cpu_supports("aes");
#elif defined(__aarch64__)
	return (getauxval(AT_HWCAP) & (1UL << 3)) != 0;
#else
	return false;
#endif
}

/* Collects what the child has said by now. */
static void drain_words(struct exec *exec)
{
	char chunk[2048];
	while (exec->err >= 0) {
		ssize_t n = read(exec->err, chunk, sizeof(chunk));
		if (n > 0) {
			char quoted[512];
			tail_add(&exec->words, chunk, (size_t)n);
			log_trace(LOG_SSH, "%s says: %s", exec->base.kind,
			          log_quote(quoted, sizeof(quoted), chunk, (size_t)n));
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		close(exec->err);
		exec->err = -1;
	}
}

/* Reaps the child if it has ended; false while it runs. */
static bool reap(struct exec *exec)
{
	if (exec->status >= 0)
		return true;
	int status;
	pid_t pid = waitpid(exec->pid, &status, WNOHANG);
	if (pid == exec->pid)
		exec->status = status;
	else if (pid < 0 && errno == ECHILD)
		exec->status = 0; /* somebody ignores SIGCHLD: the kernel has reaped it */
	return exec->status >= 0;
}

static bool reap_within(struct exec *exec, unsigned ms)
{
	uint64_t end = clock_now_ns() + ms * NS_PER_MS;
	while (!reap(exec)) {
		if (clock_now_ns() >= end)
			return false;
		nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
	}
	return true;
}

static ssize_t exec_readv(struct transport *transport, const struct iovec *iov, int count)
{
	struct exec *exec = exec_of(transport);
	ssize_t n;
	do {
		n = readv(exec->out, iov, count);
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return n;
	int err = errno;
	if (err == EAGAIN)
		drain_words(exec);
	return -err;
}

static ssize_t exec_writev(struct transport *transport, const struct iovec *iov, int count)
{
	struct exec *exec = exec_of(transport);
	ssize_t n;
	do {
		n = writev(exec->in, iov, count);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

static int exec_poll_set(struct transport *transport, bool want_write, struct pollfd *fds,
                         bool *ready)
{
	struct exec *exec = exec_of(transport);
	int count = 0;
	*ready = false;
	fds[count++] = (struct pollfd){.fd = exec->out, .events = POLLIN};
	if (exec->err >= 0)
		fds[count++] = (struct pollfd){.fd = exec->err, .events = POLLIN};
	if (want_write)
		fds[count++] = (struct pollfd){.fd = exec->in, .events = POLLOUT};
	return count;
}

static const char *exec_last_words(struct transport *transport)
{
	struct exec *exec = exec_of(transport);
	uint64_t end = clock_now_ns() + LAST_WORDS_MS * NS_PER_MS;
	drain_words(exec);
	while (exec->err >= 0) {
		uint64_t now = clock_now_ns();
		struct pollfd fd = {.fd = exec->err, .events = POLLIN};
		if (now >= end || reap(exec))
			break;
		/* In slices: a grandchild may hold stderr open although the child has ended. */
		poll(&fd, 1, (int)MIN((end - now) / NS_PER_MS + 1, 20));
		drain_words(exec);
	}
	drain_words(exec);
	uint64_t now = clock_now_ns();
	if (now < end)
		reap_within(exec, (unsigned)((end - now) / NS_PER_MS));
	return tail_text(&exec->words);
}

/* As ssh_words_explain() wants it. */
static int exit_status(const struct exec *exec)
{
	if (exec->status < 0)
		return -1;
	return WIFSIGNALED(exec->status) ? 256 + WTERMSIG(exec->status)
	                                 : WEXITSTATUS(exec->status);
}

static void exec_explain(struct transport *transport, struct failure *failure)
{
	struct exec *exec = exec_of(transport);
	const char *words = exec_last_words(transport);
	if (exec->target->mode != SSH_MODE_SERVER) {
		ssh_words_explain(exec->target->alias, words, exit_status(exec), failure);
		return;
	}
	const char *sep = *words ? ": " : "";
	if (exec->status < 0)
		failure_set(failure, FAILURE_PROTOCOL, "%s does not speak SFTP%s%.400s",
		            exec->target->sftp_server, sep, words);
	else
		failure_set(failure, FAILURE_PROTOCOL, "%s ended at once (%s %d)%s%.400s",
		            exec->target->sftp_server,
		            WIFSIGNALED(exec->status) ? "signal" : "exit status",
		            exit_status(exec) % 256, sep, words);
}

static void send_signal(const struct exec *exec, int signal)
{
	/* In its own session it leads a group, with the ProxyCommand and its like in it. */
	kill(exec->own_session ? -exec->pid : exec->pid, signal);
}

static void *reap_slowly(void *pid)
{
	int status;
	while (waitpid((pid_t)(intptr_t)pid, &status, 0) < 0 && errno == EINTR)
		;
	return NULL;
}

/* The kernel holds the child (a dead disk): reap it whenever it lets go, without waiting here.
 */
static void leave_to_thread(const struct exec *exec)
{
	pthread_t thread;
	log_warn("the child %s (process %d) does not die: left behind", exec->base.kind,
	         exec->pid);
	if (pthread_create(&thread, NULL, reap_slowly, (void *)(intptr_t)exec->pid) == 0)
		pthread_detach(thread);
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void exec_close(struct transport *transport)
{
	struct exec *exec = exec_of(transport);
	close_end(&exec->in);
	close_end(&exec->out);
	close_end(&exec->err);
	if (!reap(exec)) {
		send_signal(exec, SIGTERM);
		if (!reap_within(exec, TERM_WAIT_MS)) {
			send_signal(exec, SIGKILL);
			if (!reap_within(exec, KILL_WAIT_MS))
				leave_to_thread(exec);
		}
	}
	free(exec);
}

static const struct transport_ops exec_ops = {
    .readv = exec_readv,
    .writev = exec_writev,
    .poll_set = exec_poll_set,
    .last_words = exec_last_words,
    .explain = exec_explain,
    .close = exec_close,
};

/* The child's ends of the pipes, above its standard descriptors so that dup2 cannot clash. */
struct child_ends {
	int in, out, err;
};

static int move_above_stdio(int *fd)
{
	if (*fd > STDERR_FILENO)
		return 0;
	int moved = fcntl(*fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	if (moved < 0)
		return -errno;
	close(*fd);
	*fd = moved;
	return 0;
}

/* A pipe of which `ours` does not block. 0 or -errno. */
static int make_pipe(int *read_end, int *write_end, int *ours, int size)
{
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	*read_end = ends[0];
	*write_end = ends[1];
	int err = move_above_stdio(read_end);
	if (!err)
		err = move_above_stdio(write_end);
	if (!err && fcntl(*ours, F_SETFL, O_NONBLOCK | (fcntl(*ours, F_GETFL) & O_ACCMODE)) < 0)
		err = -errno;
	if (err || !size)
		return err;
	/* An unprivileged user may have less (pipe-max-size, pipe-user-pages-soft): take half.
	 */
	while (size > 65536 && fcntl(*ours, F_SETPIPE_SZ, size) < 0)
		size /= 2;
	return 0;
}

static int make_pipes(struct exec *exec, struct child_ends *child)
{
	int err = make_pipe(&child->in, &exec->in, &exec->in, PIPE_BYTES);
	if (!err)
		err = make_pipe(&exec->out, &child->out, &exec->out, PIPE_BYTES);
	if (!err)
		err = make_pipe(&exec->err, &child->err, &exec->err, 0);
	return err;
}

/* What the child inherits besides its three descriptors. 0 or an errno value. */
static int set_signals(posix_spawnattr_t *attr, bool own_session)
{
	sigset_t set;
	sigemptyset(&set);
	if (!own_session) {
		sigaddset(&set, SIGINT);
		sigaddset(&set, SIGQUIT);
	}
	int err = posix_spawnattr_setsigmask(attr, &set);
	if (err)
		return err;
	/* What we ignore or handle is not the child's business. */
	sigfillset(&set);
	sigdelset(&set, SIGKILL);
	sigdelset(&set, SIGSTOP);
	err = posix_spawnattr_setsigdefault(attr, &set);
	if (err)
		return err;
	int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
	if (own_session)
		flags |= POSIX_SPAWN_SETSID;
	return posix_spawnattr_setflags(attr, (short)flags);
}

static int set_descriptors(posix_spawn_file_actions_t *actions, const struct child_ends *child)
{
	int err = posix_spawn_file_actions_adddup2(actions, child->in, STDIN_FILENO);
	if (!err)
		err = posix_spawn_file_actions_adddup2(actions, child->out, STDOUT_FILENO);
	if (!err)
		err = posix_spawn_file_actions_adddup2(actions, child->err, STDERR_FILENO);
#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
	/* Whatever a library left open without CLOEXEC stays here. */
	if (!err)
		err = posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
#endif
#endif
	return err;
}

/* Starts the program; 0 or an errno value. */
static int spawn(struct exec *exec, const struct child_ends *child, char **argv,
                 char **environment)
{
	posix_spawnattr_t attr;
	posix_spawn_file_actions_t actions;
	int err = posix_spawnattr_init(&attr);
	if (err)
		return err;
	err = posix_spawn_file_actions_init(&actions);
	if (!err) {
		err = set_signals(&attr, exec->own_session);
		if (!err)
			err = set_descriptors(&actions, child);
		if (!err)
			err = posix_spawnp(&exec->pid, argv[0], &actions, &attr, argv,
			                   environment);
		posix_spawn_file_actions_destroy(&actions);
	}
	posix_spawnattr_destroy(&attr);
	return err;
}

static void explain_start(const struct ssh_target *target, const char *program, int err,
                          struct failure *failure)
{
	bool absent = err == ENOENT || err == EACCES;
	const char *hint = !absent ? ""
	                   : target->mode == SSH_MODE_SERVER
	                       ? ": check sftp_server="
	                       : ": install ssh, or check ssh_command=";
	failure_set(failure, absent ? FAILURE_USAGE : FAILURE_INTERNAL, "cannot run %s: %s%s",
	            program, strerror(err), hint);
}

static int start(struct exec *exec, uint64_t deadline_ns, struct failure *failure)
{
	const struct ssh_target *target = exec->target;
	uint64_t now = clock_now_ns();
	uint64_t left_s = deadline_ns > now ? (deadline_ns - now) / NS_PER_SEC : 0;
	struct exec_wishes wishes = {
	    .connect_timeout_s = (unsigned)MAX(MIN(left_s, 3600), 1),
	    .prefer_gcm = cpu_has_aes(),
	};
	struct ssh_prompter *prompter = target->prompter;
	char *const *entries = NULL;
	if (target->mode != SSH_MODE_SERVER && prompter && prompter->child_environment)
		entries = prompter->child_environment(prompter);
	exec->own_session = target->mode == SSH_MODE_SERVER || entries;

	char **argv = exec_argv_build(target, &wishes, failure);
	if (!argv)
		return -1;
	char **environment = exec_environment(environ, entries);
	struct child_ends child = {-1, -1, -1};
	int err = environment ? -make_pipes(exec, &child) : ENOMEM;
	if (!err)
		err = spawn(exec, &child, argv, environment);
	if (err)
		explain_start(target, argv[0], err, failure);
	close_end(&child.in);
	close_end(&child.out);
	close_end(&child.err);
	exec_argv_free(environment);
	exec_argv_free(argv);
	return err ? -1 : 0;
}

int exec_open(const struct ssh_target *target, uint64_t deadline_ns, struct transport **out,
              struct failure *failure)
{
	struct exec *exec = calloc(1, sizeof(*exec));
	if (!exec)
		return failure_set(failure, FAILURE_INTERNAL, "out of memory");
	*exec = (struct exec){
	    .base = {.ops = &exec_ops,
	             .kind = target->mode == SSH_MODE_SERVER ? "sftp-server" : "ssh"},
	    .target = target,
	    .in = -1,
	    .out = -1,
	    .err = -1,
	    .status = -1,
	};
	sigset_t pipe_signal;
	sigemptyset(&pipe_signal);
	sigaddset(&pipe_signal, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &pipe_signal, NULL);
	if (start(exec, deadline_ns, failure)) {
		close_end(&exec->in);
		close_end(&exec->out);
		close_end(&exec->err);
		free(exec);
		return -1;
	}
	*out = &exec->base;
	return 0;
}

/* True when `directory`/`program` may be executed. */
static bool executable_in(const char *directory, size_t length, const char *program)
{
	CLEANUP_FREE char *path = NULL;
	if (asprintf(&path, "%.*s/%s", (int)length, length ? directory : ".", program) < 0) {
		path = NULL;
		return false;
	}
	return access(path, X_OK) == 0;
}

bool exec_have_ssh(const struct ssh_target *target)
{
	const char *program =
	    target->ssh_command && *target->ssh_command ? *target->ssh_command : "ssh";
	if (strchr(program, '/'))
		return access(program, X_OK) == 0;
	const char *at = getenv("PATH");
	for (at = at ? at : "/usr/bin:/bin"; at;) {
		size_t length = strcspn(at, ":");
		if (executable_in(at, length, program))
			return true;
		at = at[length] ? at + length + 1 : NULL;
	}
	return false;
}
