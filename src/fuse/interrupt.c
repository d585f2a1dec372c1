#include "fuse/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fuse/proc_status.h"

#define RECHECK_NS (500 * NS_PER_MS)
#define UNSEEN_NS  (1 * NS_PER_SEC)
#define SLOW_NS    (1 * NS_PER_SEC)
#define NEVER      UINT64_MAX

struct interrupts {
	pthread_mutex_t lock; /* protects all below, and the calls in the list */
	pthread_cond_t changed;
	struct list_node calls;
	uint64_t wake_ns;       /* when the thread looks next */
	uint64_t cancel_all_ns; /* 0: never */
	bool stop;
	pthread_t thread;
};

/* ---- the program ---- */

enum fate { FATE_ALIVE, FATE_KILLED, FATE_UNSEEN };

/* The text of /proc/TID/name, NUL-terminated. 0 or -errno. */
static int read_proc(pid_t tid, const char *name, char *text, size_t size)
{
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)tid, name);
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ssize_t length = read(fd, text, size - 1);
	if (length < 0)
		return -errno;
	text[length] = '\0';
	return 0;
}

static enum fate look_at(const struct call *call)
{
	char text[4096];
	if (call->tid == 0)
		return FATE_UNSEEN;
	if (read_proc(call->tid, "status", text, sizeof(text)) < 0)
		return kill(call->tid, 0) < 0 && errno == ESRCH ? FATE_KILLED : FATE_UNSEEN;
	if (proc_status_is_killed(text))
		return FATE_KILLED;
	if (call->kind == CALL_CLOSE && read_proc(call->tid, "stat", text, sizeof(text)) == 0 &&
	    proc_stat_died_by_signal(text))
		return FATE_KILLED;
	return FATE_ALIVE;
}

/* ---- the thread ---- */

/* Lock held. True when the call is to be broken off; else sets the next look. */
static bool is_due(const struct interrupts *interrupts, struct call *call, uint64_t now)
{
	if (call->cancelled)
		return false;
	if (interrupts->cancel_all_ns && now >= interrupts->cancel_all_ns &&
	    call->kind != CALL_CLOSE)
		return true;
	if (call->limit_ns && now >= call->limit_ns) {
		call->late = true;
		return true;
	}
	if (call->check_ns == 0 || now < call->check_ns)
		return false;
	call->check_ns = now + RECHECK_NS;
	switch (look_at(call)) {
	case FATE_KILLED:
		return true;
	case FATE_UNSEEN:
		return call->interrupted_ns && now >= call->interrupted_ns + UNSEEN_NS;
	case FATE_ALIVE:
		break;
	}
	return false;
}

/* Lock held; given up while an asynchronous call is broken off. */
static void cancel(struct interrupts *interrupts, struct call *call)
{
	call->cancelled = true;
	if (call->kind != CALL_ASYNC) {
		remote_scope_interrupt(&call->scope);
		return;
	}
	call->hold(call);
	pthread_mutex_unlock(&interrupts->lock);
	call->cancel(call);
	pthread_mutex_lock(&interrupts->lock);
}

/* Lock held. One pass over the calls; true when the list may have changed and it must begin
 * anew. */
static bool scan(struct interrupts *interrupts, uint64_t now)
{
	uint64_t next = NEVER;
	if (interrupts->cancel_all_ns > now)
		next = interrupts->cancel_all_ns;
	list_for_each (node, &interrupts->calls) {
		struct call *call = list_entry(node, struct call, link);
		if (is_due(interrupts, call, now)) {
			cancel(interrupts, call);
			return true;
		}
		if (call->cancelled)
			continue;
		if (call->check_ns)
			next = MIN(next, call->check_ns);
		if (call->limit_ns)
			next = MIN(next, call->limit_ns);
	}
	interrupts->wake_ns = next;
	return false;
}

static void *interrupts_main(void *argument)
{
	struct interrupts *interrupts = argument;
	LOCK_SCOPE(&interrupts->lock);
	while (!interrupts->stop) {
		if (scan(interrupts, clock_now_ns()))
			continue;
		if (interrupts->wake_ns == NEVER) {
			pthread_cond_wait(&interrupts->changed, &interrupts->lock);
		} else {
			struct timespec until = clock_to_timespec(interrupts->wake_ns);
			pthread_cond_timedwait(&interrupts->changed, &interrupts->lock, &until);
		}
	}
	return NULL;
}

/* Lock held. */
static void wake_by(struct interrupts *interrupts, uint64_t when_ns)
{
	if (when_ns >= interrupts->wake_ns)
		return;
	interrupts->wake_ns = when_ns;
	pthread_cond_signal(&interrupts->changed);
}

struct interrupts *interrupts_new(void)
{
	struct interrupts *interrupts = calloc(1, sizeof(*interrupts));
	if (!interrupts)
		return NULL;

	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&interrupts->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_init(&interrupts->lock, NULL);
	list_init(&interrupts->calls);
	interrupts->wake_ns = NEVER;
	if (pthread_create(&interrupts->thread, NULL, interrupts_main, interrupts) != 0) {
		pthread_cond_destroy(&interrupts->changed);
		pthread_mutex_destroy(&interrupts->lock);
		free(interrupts);
		return NULL;
	}
	return interrupts;
}

void interrupts_free(struct interrupts *interrupts)
{
	if (!interrupts)
		return;
	pthread_mutex_lock(&interrupts->lock);
	interrupts->stop = true;
	pthread_cond_signal(&interrupts->changed);
	pthread_mutex_unlock(&interrupts->lock);
	pthread_join(interrupts->thread, NULL);
	pthread_cond_destroy(&interrupts->changed);
	pthread_mutex_destroy(&interrupts->lock);
	free(interrupts);
}

void interrupts_cancel_all(struct interrupts *interrupts, uint64_t delay_ns)
{
	LOCK_SCOPE(&interrupts->lock);
	interrupts->cancel_all_ns = clock_now_ns() + delay_ns;
	wake_by(interrupts, interrupts->cancel_all_ns);
}

/* ---- calls ---- */

/* libfuse's, with the request's lock held, on a worker that may be the handler's own. */
static void on_interrupt(fuse_req_t req, void *data)
{
	(void)req;
	struct call *call = data;
	struct interrupts *interrupts = call->interrupts;
	LOCK_SCOPE(&interrupts->lock);
	if (!call->entered || call->cancelled)
		return;
	const uint64_t now = clock_now_ns();
	if (call->interrupted_ns == 0)
		call->interrupted_ns = now;
	call->check_ns = now;
	wake_by(interrupts, now);
}

void call_enter(struct interrupts *interrupts, struct call *call, fuse_req_t req)
{
	call->interrupts = interrupts;
	call->req = req;
	call->tid = fuse_req_ctx(req)->pid;
	call->entered = true;
	call->cancelled = call->late = false;
	call->interrupted_ns = call->limit_ns = 0;
	call->check_ns = call->kind == CALL_ASYNC ? 0 : clock_now_ns() + SLOW_NS;
	if (call->kind != CALL_ASYNC)
		remote_scope_begin(&call->scope);

	pthread_mutex_lock(&interrupts->lock);
	list_push_back(&interrupts->calls, &call->link);
	if (call->check_ns)
		wake_by(interrupts, call->check_ns);
	pthread_mutex_unlock(&interrupts->lock);
	fuse_req_interrupt_func(req, on_interrupt, call);
}

void call_limit(struct call *call, uint64_t patience_ns)
{
	struct interrupts *interrupts = call->interrupts;
	LOCK_SCOPE(&interrupts->lock);
	call->limit_ns = clock_now_ns() + patience_ns;
	wake_by(interrupts, call->limit_ns);
}

bool call_leave(struct call *call)
{
	struct interrupts *interrupts = call->interrupts;
	pthread_mutex_lock(&interrupts->lock);
	const bool first = call->entered;
	call->entered = false;
	if (first)
		list_remove(&call->link);
	pthread_mutex_unlock(&interrupts->lock);
	if (!first)
		return false;

	/* After this libfuse does not call on_interrupt() for it any more. */
	fuse_req_interrupt_func(call->req, NULL, NULL);
	if (call->kind != CALL_ASYNC)
		remote_scope_end(&call->scope);
	return true;
}
