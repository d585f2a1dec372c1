/* The libfuse session: what the kernel is asked for, what is told to it, its making. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "fuse/fusefs.h"
#include "fuse/handlers.h"
#include "fuse/options.h"

/* The kernel's default of 12 throttles read-ahead and write-back of a distant server. */
enum { MAX_BACKGROUND = 128, CONGESTION_THRESHOLD = 96 };
enum { MAX_WRITE_BYTES = 1 << 20 };
enum { SFTP_TIME_GRAN_NS = 1000000000 };

/* ---- what the kernel is asked for ---- */

static void want_if_capable(struct fuse_conn_info *conn, unsigned capability)
{
	conn->want |= conn->capable & capability;
}

void on_init(void *userdata, struct fuse_conn_info *conn)
{
	struct fusefs *fs = userdata;
	static const unsigned wanted[] = {
	    FUSE_CAP_ASYNC_READ,           FUSE_CAP_ASYNC_DIO,        FUSE_CAP_ATOMIC_O_TRUNC,
	    FUSE_CAP_READDIRPLUS,          FUSE_CAP_READDIRPLUS_AUTO, FUSE_CAP_PARALLEL_DIROPS,
	    FUSE_CAP_HANDLE_KILLPRIV,      FUSE_CAP_CACHE_SYMLINKS,   FUSE_CAP_AUTO_INVAL_DATA,
#ifdef FUSE_CAP_DIRECT_IO_ALLOW_MMAP
	    FUSE_CAP_DIRECT_IO_ALLOW_MMAP,
#endif
	};
	/*
	 * Locks are the kernel's; the write-back cache would let it own size and times; splice
	 * gains nothing when requests are read into, and replies sent from, memory of ours.
	 */
	static const unsigned unwanted = FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS |
	                                 FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_SPLICE_READ |
	                                 FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE;

	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		want_if_capable(conn, wanted[i]);
	conn->want &= ~unwanted;
	if (fs->config->vfs.kernel_cache)
		conn->want &= ~(unsigned)FUSE_CAP_AUTO_INVAL_DATA;
	conn->max_write = MAX_WRITE_BYTES;
	conn->max_background = MAX_BACKGROUND;
	conn->congestion_threshold = CONGESTION_THRESHOLD;
	/* SFTP has whole seconds: the kernel then cuts times as the server does. */
	conn->time_gran = SFTP_TIME_GRAN_NS;

	LOCK_SCOPE(&fs->lock);
	fs->greeted = true;
	pthread_cond_broadcast(&fs->changed);
}

/* ---- changes that the vfs found ---- */

/* Of the handler that this thread runs; NULL: changes go to the notifier at once. */
static _Thread_local struct changes *current_changes;

void changes_begin(struct changes *changes)
{
	changes->count = 0;
	current_changes = changes;
}

void changes_told(struct changes *changes, fuse_ino_t ino)
{
	for (unsigned i = 0; i < changes->count; i++)
		if (changes->inos[i] == ino)
			changes->inos[i--] = changes->inos[--changes->count];
}

void changes_end(struct fusefs *fs, struct changes *changes)
{
	current_changes = NULL;
	for (unsigned i = 0; i < changes->count; i++)
		notifier_data_changed(fs->notifier, changes->inos[i]);
}

static void on_data_changed(void *context, struct node *node)
{
	struct fusefs *fs = context;
	struct changes *changes = current_changes;
	/* With kernel_cache the kernel does not compare attributes. */
	if (changes && changes->count < ARRAY_LEN(changes->inos) &&
	    !fs->config->vfs.kernel_cache)
		changes->inos[changes->count++] = ino_of(fs, node);
	else
		notifier_data_changed(fs->notifier, ino_of(fs, node));
}

static void on_entry_changed(void *context, struct node *parent, const char *name)
{
	struct fusefs *fs = context;
	notifier_entry_changed(fs->notifier, ino_of(fs, parent), name);
}

/* ---- making and freeing ---- */

/* libfuse's own messages: what matters among them is said in ours. */
__attribute__((format(printf, 2, 0))) static void forward_log(enum fuse_log_level level,
                                                              const char *format, va_list args)
{
	int saved_errno = errno;
	char text[1024];
	(void)level;
	vsnprintf(text, sizeof(text), format, args);
	text[strcspn(text, "\n")] = '\0';
	if (log_tracing(LOG_FUSE))
		log_trace(LOG_FUSE, "%s", text);
	else
		log_debug("libfuse: %s", text);
	errno = saved_errno;
}

static struct fuse_session *new_session(struct fusefs *fs, struct failure *failure)
{
	struct bytes options = BYTES_INIT;
	mount_options(fs->config, &options);
	if (log_tracing(LOG_FUSE))
		bytes_add_str(&options, ",debug");
	CLEANUP_FREE char *list = bytes_steal(&options);
	if (!list) {
		failure_set(failure, FAILURE_INTERNAL, "out of memory");
		return NULL;
	}
	char *argv[] = {(char[]){"moorfs"}, (char[]){"-o"}, list, NULL};
	struct fuse_args args = FUSE_ARGS_INIT(3, argv);
	struct fuse_session *session =
	    fuse_session_new(&args, &fusefs_ops, sizeof(fusefs_ops), fs);
	fuse_opt_free_args(&args);
	if (!session)
		failure_set(failure, FAILURE_USAGE, "libfuse does not take the options '%s'",
		            list);
	return session;
}

struct fusefs *fusefs_new(const struct config *config, struct vfs *vfs, const char *mountpoint,
                          struct failure *failure)
{
	struct fusefs *fs = calloc(1, sizeof(*fs));
	if (!fs) {
		failure_set(failure, FAILURE_INTERNAL, "out of memory");
		return NULL;
	}
	fs->config = config;
	fs->vfs = vfs;
	fs->mountpoint = mountpoint;
	open_table_init(&fs->opens);
	pthread_mutex_init(&fs->lock, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&fs->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);

	fuse_set_log_func(forward_log);
	fs->session = new_session(fs, failure);
	if (!fs->session) {
		fusefs_free(fs);
		return NULL;
	}
	fs->interrupts = interrupts_new();
	fs->notifier = notifier_new(fs->session);
	if (!fs->interrupts || !fs->notifier) {
		failure_set(failure, FAILURE_INTERNAL, "cannot start threads: out of memory");
		fusefs_free(fs);
		return NULL;
	}
	struct vfs_events events = {on_data_changed, on_entry_changed, fs};
	vfs_set_events(vfs, &events);
	return fs;
}

void fusefs_free(struct fusefs *fs)
{
	if (!fs)
		return;
	notifier_free(fs->notifier);
	interrupts_free(fs->interrupts);
	if (fs->session)
		fuse_session_destroy(fs->session);
	open_table_release(&fs->opens);
	pthread_cond_destroy(&fs->changed);
	pthread_mutex_destroy(&fs->lock);
	free(fs);
}
