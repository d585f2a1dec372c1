/*
 * Messages for people. Before daemonizing they go to stderr, afterwards to syslog or to a file.
 * A message names the thing, the cause and, where there is one, the way out; it starts with a
 * small letter and has no full stop. Secrets never go here.
 *
 * Any thread may log. The sink and the level are the only global state of moorfs.
 */
#ifndef MOORFS_BASE_LOG_H
#define MOORFS_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARN, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };

/* A part of the program whose tracing can be turned on alone (-o trace=sftp,pool). */
enum log_part { LOG_MAIN, LOG_FUSE, LOG_VFS, LOG_IO, LOG_POOL, LOG_SFTP, LOG_SSH, LOG_PARTS };

/* Messages above the level are dropped. The start is LOG_LEVEL_WARN to stderr. */
void log_set_level(enum log_level level);

/*
 * Turns tracing of the comma-separated parts on ("all" for every one). Returns 0, or -EINVAL
 * when a part is unknown, and then has changed nothing.
 */
int log_set_trace(const char *parts);

/* True when log_trace() of this part prints: guards arguments that are costly to make. */
bool log_tracing(enum log_part part);

/* Sends messages to syslog(3) from now on. */
void log_to_syslog(void);

/* Appends messages to the file from now on, each with date and time. 0 or -errno. */
int log_to_file(const char *path);

void log_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_debug(const char *format, ...) __attribute__((format(printf, 1, 2)));
void log_trace(enum log_part part, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * The bytes as printable text for a message: others become \xNN, and what is longer than
 * `size` ends in "...". Returns `out`.
 */
char *log_quote(char *out, size_t size, const void *bytes, size_t length);

#endif
