#include "base/log.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

static const char *const part_names[LOG_PARTS] = {"main", "fuse", "vfs", "io",
                                                  "pool", "sftp", "ssh"};
static const char *const level_names[] = {"error", "warning", "info", "debug"};
static const int syslog_levels[] = {LOG_ERR, LOG_WARNING, LOG_INFO, LOG_DEBUG};

static atomic_int current_level = LOG_LEVEL_WARN;
static atomic_uint traced_parts;
static enum { SINK_STDERR, SINK_SYSLOG, SINK_FILE } sink;
static int sink_fd = STDERR_FILENO;
static pthread_mutex_t sink_lock = PTHREAD_MUTEX_INITIALIZER;

void log_set_level(enum log_level level)
{
	atomic_store(&current_level, (int)level);
}

int log_set_trace(const char *parts)
{
	unsigned mask = 0;
	const char *at = parts;
	while (*at) {
		size_t length = strcspn(at, ",");
		unsigned found = 0;
		if (length == 3 && memcmp(at, "all", 3) == 0)
			found = (1u << LOG_PARTS) - 1;
		for (unsigned i = 0; i < LOG_PARTS; i++)
			if (strlen(part_names[i]) == length &&
			    memcmp(at, part_names[i], length) == 0)
				found = 1u << i;
		if (!found)
			return -EINVAL;
		mask |= found;
		at += length;
		if (*at == ',')
			at++;
	}
	atomic_fetch_or(&traced_parts, mask);
	return 0;
}

bool log_tracing(enum log_part part)
{
	return atomic_load_explicit(&traced_parts, memory_order_relaxed) & (1u << part);
}

void log_to_syslog(void)
{
	LOCK_SCOPE(&sink_lock);
	openlog("moorfs", LOG_PID, LOG_DAEMON);
	sink = SINK_SYSLOG;
}

int log_to_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	LOCK_SCOPE(&sink_lock);
	if (sink == SINK_FILE)
		close(sink_fd);
	sink = SINK_FILE;
	sink_fd = fd;
	return 0;
}

static void write_line(int fd, const char *line, size_t length)
{
	while (length > 0) {
		ssize_t n = write(fd, line, length);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		line += n;
		length -= (size_t)n;
	}
}

__attribute__((format(printf, 3, 0))) static void emit(enum log_level level, const char *part,
                                                       const char *format, va_list args)
{
	int saved_errno = errno;
	char text[2048];
	vsnprintf(text, sizeof(text), format, args);

	char line[2304];
	int length = 0;
	LOCK_SCOPE(&sink_lock);
	switch (sink) {
	case SINK_SYSLOG:
		syslog(syslog_levels[level], "%s%s%s", part ? part : "", part ? ": " : "",
		       text);
		break;
	case SINK_STDERR:
		if (level == LOG_LEVEL_ERROR && !part)
			length = snprintf(line, sizeof(line), "moorfs: %s\n", text);
		else
			length = snprintf(line, sizeof(line), "moorfs: %s: %s\n",
			                  part ? part : level_names[level], text);
		write_line(STDERR_FILENO, line, (size_t)length);
		break;
	case SINK_FILE: {
		struct timespec now;
		struct tm tm;
		char stamp[40];
		clock_gettime(CLOCK_REALTIME, &now);
		localtime_r(&now.tv_sec, &tm);
		strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &tm);
		length = snprintf(line, sizeof(line), "%s.%03ld [%d] %s: %s\n", stamp,
		                  now.tv_nsec / 1000000, (int)getpid(),
		                  part ? part : level_names[level], text);
		write_line(sink_fd, line, (size_t)length);
		break;
	}
	}
	errno = saved_errno;
}

#define DEFINE_LOG(name, level)                                                                \
	void name(const char *format, ...)                                                     \
	{                                                                                      \
		if ((int)(level) > atomic_load_explicit(&current_level, memory_order_relaxed)) \
			return;                                                                \
		va_list args;                                                                  \
		va_start(args, format);                                                        \
		emit(level, NULL, format, args);                                               \
		va_end(args);                                                                  \
	}

DEFINE_LOG(log_error, LOG_LEVEL_ERROR)
DEFINE_LOG(log_warn, LOG_LEVEL_WARN)
DEFINE_LOG(log_info, LOG_LEVEL_INFO)
DEFINE_LOG(log_debug, LOG_LEVEL_DEBUG)

void log_trace(enum log_part part, const char *format, ...)
{
	if (!log_tracing(part))
		return;
	va_list args;
	va_start(args, format);
	emit(LOG_LEVEL_DEBUG, part_names[part], format, args);
	va_end(args);
}

char *log_quote(char *out, size_t size, const void *bytes, size_t length)
{
	const unsigned char *from = bytes;
	size_t used = 0;
	for (size_t i = 0; i < length; i++) {
		if (used + 8 > size) {
			snprintf(out + used, size - used, "...");
			return out;
		}
		if (isprint(from[i]) && from[i] != '\\')
			out[used++] = (char)from[i];
		else
			used += (size_t)snprintf(out + used, size - used, "\\x%02x", from[i]);
	}
	out[used] = '\0';
	return out;
}
