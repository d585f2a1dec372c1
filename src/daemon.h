/*
 * The way into the background, so that the command returns only when the mount is there.
 *
 * The child does all the work, with the terminal still its own for prompts. The parent waits
 * for its word and exits with its exit code.
 */
#ifndef MOORFS_DAEMON_H
#define MOORFS_DAEMON_H

#include "base/failure.h"

/*
 * Forks; before any thread. Returns in the child only, with *report for daemon_detach(); the
 * parent exits: 0 after the child's word, else with the child's exit code. A child whose parent
 * dies first gets SIGTERM. -1 with the failure when forking failed.
 */
int daemon_fork(int *report, struct failure *failure);

/*
 * The mount answers: leaves the terminal, the working directory and the session, sends messages
 * to the file (NULL: syslog), and lets the parent exit with 0. *report is closed. 0, or -1 with
 * the failure and the terminal kept.
 */
int daemon_detach(int *report, const char *log_file, struct failure *failure);

/* Tells systemd, where it asked for it ($NOTIFY_SOCKET): "READY=1". */
void daemon_notify_service(const char *state);

#endif
