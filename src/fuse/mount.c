/* The mount: its beginning, the loop that serves it, and its end. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "fuse/fusefs.h"
#include "fuse/handlers.h"
#include "fuse/mountpoint.h"

/*
 * Metadata operations hold a worker while they wait for the server, and the kernel's news of
 * killed programs is read by workers too: there must be more of them than programs that
 * usually wait at once.
 */
enum { MAX_THREADS = 128, MAX_IDLE_THREADS = 16 };

#define PROBE_NS       (60 * NS_PER_SEC)
#define STOP_GRACE_NS  (1 * NS_PER_SEC)
#define STOP_REPEAT_NS (50 * NS_PER_MS)

/* Interrupts the loop's thread in its system call; has a handler that does nothing. */
enum { LOOP_SIGNAL = SIGUSR2 };

/* ---- the loop ---- */

static int serve(struct fusefs *fs)
{
	const struct config *config = fs->config;
	if (config->single_threaded)
		return fuse_session_loop(fs->session);

	const unsigned idle =
	    config->max_idle_threads ? config->max_idle_threads : MAX_IDLE_THREADS;
#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 12)
	struct fuse_loop_config *loop = fuse_loop_cfg_create();
	if (!loop)
		return -ENOMEM;
	const unsigned most = config->max_threads ? config->max_threads : MAX_THREADS;
	fuse_loop_cfg_set_clone_fd(loop, config->clone_fd);
	fuse_loop_cfg_set_max_threads(loop, most);
	fuse_loop_cfg_set_idle_threads(loop, MIN(idle, most));
	int result = fuse_session_loop_mt(fs->session, loop);
	fuse_loop_cfg_destroy(loop);
	return result;
#else
	struct fuse_loop_config loop = {.clone_fd = config->clone_fd, .max_idle_threads = idle};
	return fuse_session_loop_mt(fs->session, &loop);
#endif
}

static void *loop_main(void *argument)
{
	struct fusefs *fs = argument;
	sigset_t signals;
	sigemptyset(&signals);
	sigaddset(&signals, LOOP_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);

	/* Positive: ended by a signal, which is no failure. */
	int result = serve(fs);
	LOCK_SCOPE(&fs->lock);
	fs->loop_result = MIN(result, 0);
	fs->loop_ended = true;
	pthread_cond_broadcast(&fs->changed);
	return NULL;
}

static void do_nothing(int number)
{
	(void)number;
}

static int start_loop(struct fusefs *fs)
{
	struct sigaction action = {.sa_handler = do_nothing};
	sigemptyset(&action.sa_mask);
	if (sigaction(LOOP_SIGNAL, &action, NULL) < 0)
		return -errno;
	int err = pthread_create(&fs->loop, NULL, loop_main, fs);
	fs->loop_runs = err == 0;
	return -err;
}

void fusefs_stop(struct fusefs *fs)
{
	LOCK_SCOPE(&fs->lock);
	fs->stopping = true;
	pthread_cond_broadcast(&fs->changed);
}

/* Lock held. True when the time is up. */
static bool wait_until(struct fusefs *fs, uint64_t ns)
{
	struct timespec until = clock_to_timespec(ns);
	return pthread_cond_timedwait(&fs->changed, &fs->lock, &until) == ETIMEDOUT;
}

/*
 * Ends the loop of a live mount. Notifications end first: the kernel may hold their thread
 * until a request has been served. The signal is repeated because one that comes just before
 * the loop goes to sleep is lost.
 */
static void end_loop(struct fusefs *fs)
{
	notifier_stop(fs->notifier);
	interrupts_cancel_all(fs->interrupts, STOP_GRACE_NS);
	fuse_session_exit(fs->session);
	LOCK_SCOPE(&fs->lock);
	while (!fs->loop_ended) {
		pthread_kill(fs->loop, LOOP_SIGNAL);
		wait_until(fs, clock_now_ns() + STOP_REPEAT_NS);
	}
}

/* True for the caller that is to unmount: what lies beneath the mount is not ours. */
static bool take_mounted(struct fusefs *fs)
{
	LOCK_SCOPE(&fs->lock);
	const bool mounted = fs->mounted;
	fs->mounted = false;
	return mounted;
}

void fusefs_abandon(struct fusefs *fs)
{
	if (take_mounted(fs))
		mountpoint_detach(fs->mountpoint);
}

static void unmount(struct fusefs *fs)
{
	/* Replies go through a descriptor that is closed here. */
	notifier_stop(fs->notifier);
	interrupts_cancel_all(fs->interrupts, 0);
	open_table_wait_answered(&fs->opens);
	if (take_mounted(fs))
		fuse_session_unmount(fs->session);
}

/* Without the mount its system calls have ended. */
static void end_probe(struct fusefs *fs)
{
	if (!fs->probe.runs)
		return;
	pthread_mutex_lock(&fs->lock);
	if (fs->probe.asks)
		remote_scope_interrupt(&fs->probe.scope);
	pthread_mutex_unlock(&fs->lock);
	pthread_join(fs->probe.thread, NULL);
	fs->probe.runs = false;
}

int fusefs_wait(struct fusefs *fs)
{
	pthread_mutex_lock(&fs->lock);
	while (!fs->loop_ended && !fs->stopping)
		pthread_cond_wait(&fs->changed, &fs->lock);
	const bool stop = !fs->loop_ended;
	pthread_mutex_unlock(&fs->lock);

	if (stop)
		end_loop(fs);
	pthread_join(fs->loop, NULL);
	fs->loop_runs = false;
	unmount(fs);
	end_probe(fs);
	return fs->loop_result;
}

/* ---- mounting ---- */

/*
 * So that there is something to show of a server that hangs later. Not by statvfs(2), which
 * would keep the mount busy.
 */
static void ask_for_space(struct fusefs *fs)
{
	struct statvfs space;
	pthread_mutex_lock(&fs->lock);
	const bool ask = !fs->stopping && !fs->loop_ended;
	if (ask)
		remote_scope_begin(&fs->probe.scope);
	fs->probe.asks = ask;
	pthread_mutex_unlock(&fs->lock);
	if (!ask)
		return;
	int err = vfs_statfs(fs->vfs, vfs_root(fs->vfs), &space);
	LOCK_SCOPE(&fs->lock);
	fs->probe.asks = false;
	remote_scope_end(&fs->probe.scope);
	if (!err && !fs->root_statvfs_known) {
		fs->root_statvfs = space;
		fs->root_statvfs_known = true;
	}
}

static void *probe_main(void *argument)
{
	struct fusefs *fs = argument;
	struct stat st;
	int err = lstat(fs->mountpoint, &st) < 0 ? errno : 0;
	pthread_mutex_lock(&fs->lock);
	fs->probe.err = err;
	fs->probe.device = err ? 0 : st.st_dev;
	fs->probe.done = true;
	pthread_cond_broadcast(&fs->changed);
	pthread_mutex_unlock(&fs->lock);

	if (!err)
		ask_for_space(fs);
	return NULL;
}

static int fail_mount(struct fusefs *fs, const char *why, struct failure *failure)
{
	return failure_set(failure, FAILURE_MOUNT, "the mount on '%s' does not answer: %s",
	                   fs->mountpoint, why);
}

/* Waits for the answer, the end of the mount or of patience. 0 when answered. */
static int wait_for_answer(struct fusefs *fs, const bool *answered, struct failure *failure)
{
	const uint64_t deadline_ns = clock_now_ns() + PROBE_NS;
	LOCK_SCOPE(&fs->lock);
	bool late = false;
	while (!*answered && !fs->loop_ended && !fs->stopping && !late)
		late = wait_until(fs, deadline_ns);
	if (*answered)
		return 0;
	if (fs->stopping)
		return failure_set(failure, FAILURE_MOUNT,
		                   "stopped by a signal while mounting");
	return fail_mount(fs, late ? "timed out" : "it was unmounted", failure);
}

/* `below`: the device of the mountpoint before it was mounted on. */
static int probe(struct fusefs *fs, dev_t below, struct failure *failure)
{
	if (fs->config->delay_connect)
		return wait_for_answer(fs, &fs->greeted, failure);

	if (pthread_create(&fs->probe.thread, NULL, probe_main, fs) != 0)
		return failure_set(failure, FAILURE_INTERNAL, "cannot start a thread");
	fs->probe.runs = true;
	if (wait_for_answer(fs, &fs->probe.done, failure) < 0)
		return -1;
	if (fs->probe.err)
		return fail_mount(fs, strerror(fs->probe.err), failure);
	if (fs->probe.device == below)
		return fail_mount(fs, "it was unmounted at once", failure);
	return 0;
}

int fusefs_mount(struct fusefs *fs, struct failure *failure)
{
	struct stat below;
	if (stat(fs->mountpoint, &below) < 0)
		return failure_set(failure, FAILURE_MOUNT, "cannot use mountpoint '%s': %s",
		                   fs->mountpoint, strerror(errno));
	errno = 0;
	if (fuse_session_mount(fs->session, fs->mountpoint) != 0)
		return failure_set(failure, FAILURE_MOUNT, "cannot mount on '%s': %s",
		                   fs->mountpoint,
		                   errno ? strerror(errno) : "fusermount3 refused it");
	pthread_mutex_lock(&fs->lock);
	fs->mounted = true;
	pthread_mutex_unlock(&fs->lock);

	int result = start_loop(fs);
	if (result < 0)
		result = failure_set(failure, FAILURE_INTERNAL, "cannot serve the mount: %s",
		                     strerror(-result));
	else
		result = probe(fs, below.st_dev, failure);
	if (result == 0)
		return 0;
	if (fs->loop_runs) {
		fusefs_stop(fs);
		fusefs_wait(fs);
	}
	unmount(fs);
	return -1;
}

/* ---- the end ---- */

void fusefs_drain(struct fusefs *fs)
{
	/* No worker runs any more: the lists are ours. */
	while (!list_empty(&fs->opens.files)) {
		struct open_file *open =
		    list_entry(fs->opens.files.next, struct open_file, link);
		int err = vfs_flush(fs->vfs, open->file);
		if (err)
			log_error(
			    "the last writes to a file that was open at the end failed: %s",
			    strerror(-err));
		open_file_close(fs, open);
	}
	while (!list_empty(&fs->opens.dirs))
		open_dir_close(fs, list_entry(fs->opens.dirs.next, struct open_dir, link));
	interrupts_free(fs->interrupts);
	fs->interrupts = NULL;
}
