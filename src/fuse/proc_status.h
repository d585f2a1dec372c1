/*
 * Was the program that waits for an answer killed? Pure parsers of what /proc says about a
 * thread.
 *
 * The kernel puts SIGKILL into the pending set of every thread of a process that gets a fatal
 * signal, whatever the signal was; a signal with a handler, or an ignored one, does not do so.
 */
#ifndef MOORFS_FUSE_PROC_STATUS_H
#define MOORFS_FUSE_PROC_STATUS_H

#include <stdbool.h>

/* `text`: /proc/TID/status. True when a fatal signal is pending for the thread. */
bool proc_status_is_killed(const char *text);

/*
 * `text`: /proc/TID/stat. True when the thread is on its way out because of a signal: the close
 * of its files then happens where no signal is pending any more.
 */
bool proc_stat_died_by_signal(const char *text);

#endif
