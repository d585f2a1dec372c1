/*
 * The name of a remote directory as a person writes it. Pure: no look-ups, no files.
 *
 *   [user@]host:[dir]                     the last '@' before the host counts
 *   [user@][v6::address]:[dir]
 *   sftp://[user@]host[:port][/path]      percent-decoded; /path is absolute, /~/x is below
 *                                         the remote home, no path is the home itself
 */
#ifndef MOORFS_CONFIG_URL_H
#define MOORFS_CONFIG_URL_H

#include <stdbool.h>

#include "base/failure.h"

struct url {
	char *user;    /* NULL: not given */
	char *host;    /* without brackets; "" only when host_optional allowed it */
	char *dir;     /* "", "~", "~/x", "/x" or relative to the remote home */
	unsigned port; /* 0: not given */
};

/*
 * 0, or -1 with FAILURE_USAGE saying what is wrong and how to write it. `host_optional` accepts
 * ":dir" (a server that runs on this machine). Call url_release() in either case.
 */
int url_parse(struct url *url, const char *text, bool host_optional, struct failure *failure);
void url_release(struct url *url);

#endif
