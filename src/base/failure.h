/*
 * Why something could not be started, in a form that can be shown to a person and turned into
 * an exit code. The text follows the rules of log.h.
 */
#ifndef MOORFS_BASE_FAILURE_H
#define MOORFS_BASE_FAILURE_H

#include <stdarg.h>

/* The kinds are the exit codes of moorfs(1). */
enum failure_kind {
	FAILURE_NONE = 0,
	FAILURE_USAGE = 1,       /* options, arguments, configuration */
	FAILURE_MOUNT = 2,       /* mountpoint or FUSE */
	FAILURE_UNREACHABLE = 3, /* name not found, refused, no route, time-out, lost */
	FAILURE_HOST_KEY = 4,    /* unknown, changed or revoked host key */
	FAILURE_AUTH = 5,        /* the server accepted none of our credentials */
	FAILURE_REMOTE_PATH = 6, /* remote directory missing, not a directory, not permitted */
	FAILURE_PROTOCOL = 7,    /* the server speaks something else, or no SFTP subsystem */
	FAILURE_TOO_MANY = 8,    /* the server refuses one more connection */
	FAILURE_INTERNAL = 9,    /* out of memory, cannot fork and the like */
};

struct failure {
	enum failure_kind kind;
	char text[1024];
};

/* Fills the failure; returns -1 so that callers can `return failure_set(...)`. */
__attribute__((format(printf, 3, 4))) int
failure_set(struct failure *failure, enum failure_kind kind, const char *format, ...);

#endif
