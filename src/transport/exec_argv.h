/* The command line of the child that carries a lane. Pure, but for a look at the local disk. */
#ifndef MOORFS_TRANSPORT_EXEC_ARGV_H
#define MOORFS_TRANSPORT_EXEC_ARGV_H

#include <stdbool.h>

#include "base/failure.h"
#include "transport/ssh_target.h"

struct exec_wishes {
	unsigned connect_timeout_s; /* ConnectTimeout unless the user gave one; 0: none */
	bool prefer_gcm;            /* put AES-GCM first unless the user chose ciphers */
};

/*
 * The child's argv: a NULL-terminated array for exec_argv_free(). NULL and the failure when the
 * host or user name could be taken for an option or for shell syntax (ssh_config may hand them
 * to a shell), or when memory is out.
 *
 * SSH_MODE_SERVER: sftp_server is the path of a program, or, when no such file exists, a
 * command split at blanks.
 */
char **exec_argv_build(const struct ssh_target *target, const struct exec_wishes *wishes,
                       struct failure *failure);
void exec_argv_free(char **argv);

/*
 * The environment of this process with the entries ("NAME=value", NULL-terminated, may be NULL)
 * put over it. NULL when memory is out; for exec_argv_free().
 */
char **exec_environment(char *const *base, char *const *entries);

#endif
