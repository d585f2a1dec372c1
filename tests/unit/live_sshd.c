#include "live_sshd.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

#define SSHD "/usr/sbin/sshd"

/* The exit status of a shell command; -1 when it has none. */
static int shell(char *command)
{
	char *argv[] = {(char[]){"sh"}, (char[]){"-c"}, command, NULL};
	pid_t pid;
	int status;
	if (posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ) != 0 ||
	    waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool live_sshd_possible(void)
{
	static char look[] = "command -v ssh-keygen ssh-agent ssh-add ssh >/dev/null 2>&1";
	char login[300];
	const struct passwd *me = getpwuid(getuid());
	if (access(SSHD, X_OK) < 0 || shell(look) != 0 || !me)
		return false;
	/* What sshd starts, it starts through the login shell. */
	snprintf(login, sizeof(login), "'%s' -c true >/dev/null 2>&1", me->pw_shell);
	if (shell(login) != 0)
		return false;
	/* sshd run by root insists on its empty folder. */
	return getuid() != 0 || mkdir("/run/sshd", 0755) == 0 || errno == EEXIST;
}

void live_run(const char *format, ...)
{
	char command[1000];
	va_list args;
	va_start(args, format);
	vsnprintf(command, sizeof(command), format, args);
	va_end(args);
	if (shell(command) != 0)
		fail_msg("failed: %s", command);
}

char *live_sshd_path(const struct live_sshd *sshd, const char *name, char *out, size_t size)
{
	snprintf(out, size, "%s/%s", sshd->folder, name);
	return out;
}

void live_sshd_write(const struct live_sshd *sshd, const char *name, const char *format, ...)
{
	char path[120];
	FILE *file = fopen(live_sshd_path(sshd, name, path, sizeof(path)), "w");
	assert_non_null(file);
	va_list args;
	va_start(args, format);
	vfprintf(file, format, args);
	va_end(args);
	assert_int_equal(fclose(file), 0);
}

const char *live_sshd_public(const struct live_sshd *sshd, const char *name)
{
	static char line[2000];
	char path[120];
	snprintf(path, sizeof(path), "%s/%s.pub", sshd->folder, name);
	FILE *file = fopen(path, "r");
	assert_non_null(file);
	assert_non_null(fgets(line, sizeof(line), file));
	fclose(file);
	char *comment = strchr(strchr(line, ' ') + 1, ' ');
	if (comment)
		*comment = '\0';
	return line;
}

static struct sockaddr_in loopback(unsigned port)
{
	return (struct sockaddr_in){.sin_family = AF_INET,
	                            .sin_port = htons((uint16_t)port),
	                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

static unsigned free_port(void)
{
	CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = loopback(0);
	socklen_t size = sizeof(address);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	return ntohs(address.sin_port);
}

static bool answers(unsigned port)
{
	CLEANUP_CLOSE int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = loopback(port);
	return connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
}

static void make_keys(const struct live_sshd *sshd)
{
	static const struct {
		const char *name, *type, *passphrase;
	} keys[] = {
	    {"host", "ed25519", ""}, {"plain", "ed25519", ""},
	    {"ecdsa", "ecdsa", ""},  {"locked", "ed25519", "open sesame"},
	    {"rsa", "rsa", ""},      {"stranger", "ed25519", ""},
	};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		live_run("ssh-keygen -q -t %s -N '%s' -C %s -f %s/%s", keys[i].type,
		         keys[i].passphrase, keys[i].name, sshd->folder, keys[i].name);
	live_run("cd %s && cat plain.pub ecdsa.pub locked.pub rsa.pub > authorized",
	         sshd->folder);
}

static void spawn_sshd(struct live_sshd *sshd)
{
	char config[120], log[120];
	live_sshd_path(sshd, "sshd_config", config, sizeof(config));
	live_sshd_path(sshd, "log", log, sizeof(log));
	char *argv[] = {(char[]){SSHD}, (char[]){"-D"}, (char[]){"-e"},
	                (char[]){"-f"}, config,         NULL};
	posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log,
	                                 O_WRONLY | O_CREAT | O_APPEND, 0600);
	posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
	assert_int_equal(posix_spawn(&sshd->pid, SSHD, &actions, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
}

/* Those that run: a test that fails does not get to stop its own. */
static struct live_sshd running[4];

static void stop_running(void)
{
	for (size_t i = 0; i < ARRAY_LEN(running); i++)
		if (running[i].pid)
			live_sshd_stop(&running[i]);
}

static struct live_sshd *running_slot(pid_t pid)
{
	for (size_t i = 0; i < ARRAY_LEN(running); i++)
		if (running[i].pid == pid)
			return &running[i];
	fail_msg("too many servers");
	return NULL;
}

void live_sshd_start(struct live_sshd *sshd, const char *subsystem, const char *extra)
{
	const struct passwd *me = getpwuid(getuid());
	assert_non_null(me);
	snprintf(sshd->user, sizeof(sshd->user), "%s", me->pw_name);
	snprintf(sshd->folder, sizeof(sshd->folder), "/tmp/live-sshd-XXXXXX");
	assert_non_null(mkdtemp(sshd->folder));
	make_keys(sshd);
	sshd->port = free_port();
	/* SHLVL: a shell of a higher level does not read the user's own .bashrc */
	live_sshd_write(sshd, "sshd_config",
	                "%s\n"
	                "Port %u\nListenAddress 127.0.0.1\nHostKey %s/host\nPidFile none\n"
	                "UsePAM no\nStrictModes no\nAuthorizedKeysFile %s/authorized\n"
	                "PasswordAuthentication no\nKbdInteractiveAuthentication no\n"
	                "PermitRootLogin yes\nMaxStartups 100\nMaxAuthTries 20\n"
	                "SetEnv SHLVL=1\nLogLevel VERBOSE\nSubsystem %s\n",
	                extra, sshd->port, sshd->folder, sshd->folder, subsystem);
	spawn_sshd(sshd);
	if (!running[0].pid && atexit(stop_running) != 0)
		fail_msg("atexit");
	*running_slot(0) = *sshd;
	for (int i = 0; i < 500; i++) {
		if (answers(sshd->port))
			return;
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
	fail_msg("sshd does not start: see %s/log", sshd->folder);
}

void live_sshd_stop(struct live_sshd *sshd)
{
	pid_t pid = sshd->pid;
	kill(pid, SIGTERM);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	live_run("rm -rf %s", sshd->folder);
	running_slot(pid)->pid = 0;
}
