/*
 * The directory to mount on, and what must be there for mounting at all: checked by ourselves
 * before a connection is made, so that each mistake has its own message.
 */
#ifndef MOORFS_FUSE_MOUNTPOINT_H
#define MOORFS_FUSE_MOUNTPOINT_H

#include <stdbool.h>

#include "base/failure.h"

/*
 * Checks that `given` is a directory that can be mounted on. What a moorfs that died left there
 * ("Transport endpoint is not connected") is unmounted first; another program's dead mount is
 * refused by name. A directory with names in it, or with a live moorfs on it, is refused unless
 * `nonempty`.
 *
 * 0 with *absolute (malloc'ed, without symlinks), or -1 with the failure (FAILURE_MOUNT).
 */
int mountpoint_prepare(const char *given, bool nonempty, char **absolute,
                       struct failure *failure);

/*
 * Looks for /dev/fuse and, for an ordinary user, for fusermount3 and the right to `share` the
 * mount with other users (user_allow_other in /etc/fuse.conf). 0, or -1 with the failure.
 */
int mountpoint_check_fuse(bool share, struct failure *failure);

/* Unmounts lazily: by umount2(2), else by fusermount3. 0 or -errno. */
int mountpoint_detach(const char *absolute);

/* True when the text of a fuse.conf allows allow_other to ordinary users. Pure. */
bool mountpoint_conf_allows_other(const char *text);

#endif
