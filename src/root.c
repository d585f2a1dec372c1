#include "root.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/log.h"

static int refuse(const char *peer, const char *path, int err, struct failure *failure)
{
	char quoted[512];
	log_quote(quoted, sizeof(quoted), path, strlen(path));
	if (err == -ENOTDIR)
		return failure_set(failure, FAILURE_REMOTE_PATH,
		                   "'%s' on %s is not a directory: give the directory it is in",
		                   quoted, peer);
	return failure_set(failure, FAILURE_REMOTE_PATH,
	                   "cannot use the directory '%s' on %s: %s", quoted, peer,
	                   strerror(-err));
}

int root_find(struct remote *remote, const char *peer, const char *given, bool check,
              char **root, struct failure *failure)
{
	int err = remote_realpath(remote, given, root);
	if (err)
		return refuse(peer, *given ? given : "~", err, failure);
	if (!check)
		return 0;

	struct remote_attr attr = {0};
	err = remote_stat(remote, *root, &attr);
	const bool type_known = (attr.valid & ATTR_MODE) && (attr.mode & S_IFMT);
	if (!err && type_known && !S_ISDIR(attr.mode))
		err = -ENOTDIR;
	if (!err)
		return 0;
	int result = refuse(peer, *root, err, failure);
	free(*root);
	*root = NULL;
	return result;
}

int root_guess(const char *given, char **root, struct failure *failure)
{
	const char *path = given;
	if (path[0] == '~' && path[1] != '\0' && path[1] != '/')
		return failure_set(
		    failure, FAILURE_USAGE,
		    "'%s' cannot be looked up with delay_connect: give an absolute "
		    "path, or one relative to your home",
		    given);
	if (path[0] == '~') {
		path++;
		path += strspn(path, "/");
	}
	*root = strdup(*path ? path : ".");
	if (!*root)
		return failure_set(failure, FAILURE_INTERNAL, "out of memory");
	return 0;
}
