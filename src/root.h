/* The remote directory that becomes the root of the mount. */
#ifndef MOORFS_ROOT_H
#define MOORFS_ROOT_H

#include <stdbool.h>

#include "base/failure.h"
#include "remote/remote.h"

/*
 * Asks the server for the absolute path of `given` ("", "~", "~user/x", "x" or "/x"), and with
 * `check` whether it is a directory. `peer` is the server's name for messages. 0 and *root
 * (malloc'ed), or -1 with the failure (FAILURE_REMOTE_PATH). Blocks.
 */
int root_find(struct remote *remote, const char *peer, const char *given, bool check,
              char **root, struct failure *failure);

/*
 * The same without a connection (delay_connect), when the home directory is not known: SFTP
 * takes a path that does not start with a slash as relative to it, so such a root serves as it
 * is. "~user" cannot be had this way. 0, or -1 with the failure.
 */
int root_guess(const char *given, char **root, struct failure *failure);

#endif
