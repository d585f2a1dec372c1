#include "fuse/mountpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fuse/mountinfo.h"

static const char own_type[] = "fuse.moorfs";
static const char device[] = "/dev/fuse";
static const char conf_path[] = "/etc/fuse.conf";

/* Several moorfs may have died on top of one another. */
enum { MAX_STALE = 16 };

/* ---- unmounting ---- */

static int run_fusermount(const char *mountpoint)
{
	char *argv[] = {(char[]){"fusermount3"},
	                (char[]){"-u"},
	                (char[]){"-q"},
	                (char[]){"-z"},
	                (char[]){"--"},
	                (char *)mountpoint,
	                NULL};
	sigset_t none;
	posix_spawnattr_t attributes;
	pid_t pid;
	int status;

	sigemptyset(&none);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	int err = posix_spawnp(&pid, argv[0], NULL, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	if (err)
		return -err;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EPERM;
}

int mountpoint_detach(const char *absolute)
{
	if (umount2(absolute, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		return 0;
	return errno == EPERM ? run_fusermount(absolute) : -errno;
}

/* ---- the directory ---- */

/* realpath(3) of a path whose last part is the root of a dead mount. */
static char *resolve_stale(const char *given)
{
	char *whole = realpath(given, NULL);
	if (whole)
		return whole;

	CLEANUP_FREE char *copy = strdup(given);
	if (!copy)
		return NULL;
	size_t length = strlen(copy);
	while (length > 1 && copy[length - 1] == '/')
		copy[--length] = '\0';
	char *slash = strrchr(copy, '/');
	const char *name = slash ? slash + 1 : copy;
	CLEANUP_FREE char *last = strdup(name);
	if (slash)
		slash[slash == copy] = '\0';
	CLEANUP_FREE char *parent = realpath(slash ? copy : ".", NULL);
	if (!parent || !last)
		return NULL;

	struct bytes path = BYTES_INIT;
	bytes_addf(&path, "%s/%s", strcmp(parent, "/") == 0 ? "" : parent, last);
	return bytes_steal(&path);
}

static int replace_stale(const char *given, int stat_errno, struct failure *failure)
{
	CLEANUP_FREE char *path = resolve_stale(given);
	struct mountinfo info;
	if (!path || !mountinfo_find(path, &info))
		return failure_set(failure, FAILURE_MOUNT, "cannot use mountpoint '%s': %s",
		                   given, strerror(stat_errno));

	int result = 0;
	if (strcmp(info.fstype, own_type) != 0) {
		result = failure_set(failure, FAILURE_MOUNT,
		                     "mountpoint '%s' holds a dead mount of '%s' (type %s): "
		                     "unmount it first with 'fusermount3 -u %s'",
		                     given, info.source, info.fstype, given);
	} else {
		int err = mountpoint_detach(path);
		if (err)
			result = failure_set(
			    failure, FAILURE_MOUNT,
			    "mountpoint '%s' holds a dead moorfs mount of '%s' that cannot be "
			    "unmounted: %s (was it mounted by another user?)",
			    given, info.source, strerror(-err));
		else
			log_info("removed the dead mount of '%s' from '%s'", info.source, path);
	}
	mountinfo_release(&info);
	return result;
}

static int refuse(const char *given, int err, struct failure *failure)
{
	if (err == ENOENT)
		return failure_set(failure, FAILURE_MOUNT,
		                   "mountpoint '%s' does not exist: create it with 'mkdir -p'",
		                   given);
	return failure_set(failure, FAILURE_MOUNT, "cannot use mountpoint '%s': %s", given,
	                   strerror(err));
}

static int check_no_moorfs(const char *absolute, struct failure *failure)
{
	struct mountinfo info;
	if (!mountinfo_find(absolute, &info))
		return 0;
	int result = 0;
	if (strcmp(info.fstype, own_type) == 0)
		result = failure_set(failure, FAILURE_MOUNT,
		                     "'%s' is mounted on '%s' already: unmount it first with "
		                     "'fusermount3 -u %s', or mount over it with -o nonempty",
		                     info.source, absolute, absolute);
	mountinfo_release(&info);
	return result;
}

static int check_empty(const char *absolute, struct failure *failure)
{
	DIR *dir = opendir(absolute);
	if (!dir)
		return refuse(absolute, errno, failure);

	int result = 0;
	const struct dirent *entry;
	while (result == 0 && (entry = readdir(dir)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			result = failure_set(failure, FAILURE_MOUNT,
			                     "mountpoint '%s' is not empty: choose an empty "
			                     "directory, or mount over it with -o nonempty",
			                     absolute);
	closedir(dir);
	return result;
}

/* As stat(2), but a dead mount is seen although the kernel still has its attributes. 0 or
 * errno. */
static int look(const char *path, struct stat *st)
{
	struct statvfs unused;
	if (stat(path, st) < 0)
		return errno;
	return statvfs(path, &unused) < 0 && errno == ENOTCONN ? ENOTCONN : 0;
}

int mountpoint_prepare(const char *given, bool nonempty, char **absolute,
                       struct failure *failure)
{
	struct stat st;
	int err = 0;
	for (int i = 0; i < MAX_STALE; i++) {
		err = look(given, &st);
		if (err != ENOTCONN)
			break;
		if (replace_stale(given, err, failure) < 0)
			return -1;
	}
	if (err)
		return refuse(given, err, failure);
	if (!S_ISDIR(st.st_mode))
		return failure_set(failure, FAILURE_MOUNT, "mountpoint '%s' is not a directory",
		                   given);

	CLEANUP_FREE char *path = realpath(given, NULL);
	if (!path)
		return refuse(given, errno, failure);
	if (!nonempty && (check_no_moorfs(path, failure) < 0 || check_empty(path, failure) < 0))
		return -1;
	if (geteuid() != 0 && access(path, W_OK) < 0)
		return failure_set(
		    failure, FAILURE_MOUNT,
		    "mountpoint '%s' is not writable for you, as FUSE demands of "
		    "ordinary users: choose a directory of yours",
		    given);
	*absolute = path;
	path = NULL;
	return 0;
}

/* ---- what FUSE needs ---- */

bool mountpoint_conf_allows_other(const char *text)
{
	static const char keyword[] = "user_allow_other";
	while (*text) {
		size_t length = strcspn(text, "\n");
		size_t blanks = strspn(text, " \t");
		const char *word = text + blanks;
		if (strncmp(word, keyword, sizeof(keyword) - 1) == 0) {
			const char *behind = word + sizeof(keyword) - 1;
			behind += strspn(behind, " \t\r");
			if (*behind == '\0' || *behind == '\n' || *behind == '#')
				return true;
		}
		text += length;
		if (*text)
			text++;
	}
	return false;
}

static bool users_may_share(void)
{
	CLEANUP_CLOSE int fd = open(conf_path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	char text[16384];
	ssize_t length = read(fd, text, sizeof(text) - 1);
	if (length < 0)
		return false;
	text[length] = '\0';
	return mountpoint_conf_allows_other(text);
}

/* As execvp(3) looks for it; libfuse itself also tries the folder it was built for. */
static bool have_fusermount(void)
{
	static const char usual[] = "/usr/local/bin:/usr/bin:/bin";
	const char *path = getenv("PATH");
	struct bytes places = BYTES_INIT;
	bytes_addf(&places, "%s:%s", path ? path : "", usual);

	bool found = false;
	for (const char *at = places.data; at && *at && !found;) {
		size_t length = strcspn(at, ":");
		struct bytes program = BYTES_INIT;
		bytes_add(&program, at, length);
		bytes_add_str(&program, "/fusermount3");
		found = length > 0 && !program.failed && access(program.data, X_OK) == 0;
		bytes_release(&program);
		at += length + (at[length] == ':');
	}
	bytes_release(&places);
	return found;
}

int mountpoint_check_fuse(bool share, struct failure *failure)
{
	if (access(device, F_OK) < 0)
		return failure_set(
		    failure, FAILURE_MOUNT,
		    "%s: %s: load the kernel module with 'modprobe fuse', or give "
		    "the container the device (--device /dev/fuse)",
		    device, strerror(errno));
	if (geteuid() == 0)
		return 0;
	if (access(device, R_OK | W_OK) < 0)
		return failure_set(
		    failure, FAILURE_MOUNT,
		    "%s: %s: it is usually open to everyone (chmod 666), or to a group "
		    "that you are to join",
		    device, strerror(errno));
	if (!have_fusermount())
		return failure_set(
		    failure, FAILURE_MOUNT,
		    "fusermount3 was not found, and only root can mount without it: "
		    "install the package fuse3");
	if (share && !users_may_share())
		return failure_set(
		    failure, FAILURE_MOUNT,
		    "allow_other and allow_root are for root alone until '%s' has "
		    "the line 'user_allow_other'",
		    conf_path);
	return 0;
}
