/*
 * The helper that mount(8) runs for the type moorfs: turns its words into those of moorfs, runs
 * it, and turns its exit code into those of mount(8).
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/failure.h"
#include "mount/mount_words.h"

/* Exit codes of mount(8). */
enum { MOUNT_OK = 0, MOUNT_USAGE = 1, MOUNT_SYSTEM = 2, MOUNT_FAILED = 32 };

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "mount.moorfs: %s: %s\n", what, why);
	return -1;
}

/* -N: a path, or a process whose mount namespace is meant. */
static int enter_namespace(const char *name)
{
	char path[64];
	if (!name)
		return 0;
	if (name[0] && name[strspn(name, "0123456789")] == '\0') {
		snprintf(path, sizeof(path), "/proc/%.20s/ns/mnt", name);
		name = path;
	}
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 ? errno : 0;
	if (!err && setns(fd, CLONE_NEWNS) < 0)
		err = errno;
	if (fd >= 0)
		close(fd);
	return err ? complain(name, strerror(err)) : 0;
}

/* setuid=: moorfs runs as this user, with its groups and its home. */
static int become(const char *user)
{
	if (!user)
		return 0;
	const struct passwd *entry = getpwnam(user);
	if (!entry)
		return complain(user, "there is no such user: correct setuid=");
	if (initgroups(entry->pw_name, entry->pw_gid) < 0 || setgid(entry->pw_gid) < 0 ||
	    setuid(entry->pw_uid) < 0)
		return complain("setuid", strerror(errno));
	if (setenv("HOME", entry->pw_dir, 1) < 0 || setenv("USER", entry->pw_name, 1) < 0 ||
	    setenv("LOGNAME", entry->pw_name, 1) < 0)
		return complain("setuid", strerror(errno));
	return 0;
}

/* The installed moorfs, else the one in PATH. Does not return. */
static void start(const struct mount_words *words)
{
	if (enter_namespace(words->name_space) < 0 || become(words->setuid) < 0)
		_exit(FAILURE_INTERNAL);
	execv(BINDIR "/moorfs", words->argv);
	if (errno == ENOENT)
		execvp("moorfs", words->argv);
	complain("cannot run moorfs", strerror(errno));
	_exit(FAILURE_INTERNAL);
}

static int run(const struct mount_words *words)
{
	pid_t pid = fork();
	if (pid < 0) {
		complain("cannot fork", strerror(errno));
		return MOUNT_SYSTEM;
	}
	if (pid == 0)
		start(words);
	int status;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno == EINTR)
			continue;
		complain("cannot wait for moorfs", strerror(errno));
		return MOUNT_SYSTEM;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return MOUNT_OK;
	return WIFEXITED(status) && WEXITSTATUS(status) == FAILURE_USAGE ? MOUNT_USAGE
	                                                                 : MOUNT_FAILED;
}

int main(int argc, char **argv)
{
	struct mount_words words;
	char error[256];
	int code;
	if (mount_words_parse(&words, argc, argv, error, sizeof(error)) < 0) {
		fprintf(
		    stderr,
		    "mount.moorfs: %s\n"
		    "usage: mount.moorfs [user@]host:[dir] mountpoint [-sfnv] [-N namespace] "
		    "[-o options] [-t type]\n",
		    error);
		mount_words_release(&words);
		return MOUNT_USAGE;
	}
	if (words.verbose) {
		printf("mount.moorfs:");
		for (char **word = words.argv; *word; word++)
			printf(" %s", *word);
		printf("\n");
		fflush(stdout);
	}
	code = words.fake ? MOUNT_OK : run(&words);
	mount_words_release(&words);
	return code;
}
