#include "remote/call.h"

#include <errno.h>

#include "base/cleanup.h"
#include "remote/op.h"

static _Thread_local struct remote_scope *current_scope;

void remote_submit(struct remote *remote, struct op *op)
{
	remote->ops->submit(remote, op);
}

void remote_cancel(struct remote *remote, struct op *op)
{
	remote->ops->cancel(remote, op);
}

void remote_scope_begin(struct remote_scope *scope)
{
	pthread_mutex_init(&scope->lock, NULL);
	scope->interrupted = false;
	scope->remote = NULL;
	scope->waiting = NULL;
	current_scope = scope;
}

void remote_scope_end(struct remote_scope *scope)
{
	current_scope = NULL;
	/* An interrupter that came in time is let out first. */
	pthread_mutex_lock(&scope->lock);
	pthread_mutex_unlock(&scope->lock);
	pthread_mutex_destroy(&scope->lock);
}

void remote_scope_interrupt(struct remote_scope *scope)
{
	LOCK_SCOPE(&scope->lock);
	scope->interrupted = true;
	if (scope->waiting)
		remote_cancel(scope->remote, scope->waiting);
}

bool remote_scope_interrupted(void)
{
	struct remote_scope *scope = current_scope;
	if (!scope)
		return false;
	LOCK_SCOPE(&scope->lock);
	return scope->interrupted;
}

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool over;
};

static void call_done(struct op *op)
{
	struct waiter *waiter = op->owner;
	LOCK_SCOPE(&waiter->lock);
	waiter->over = true;
	pthread_cond_signal(&waiter->ended);
}

/* Registers the op with the thread's scope; false when the scope was interrupted before. */
static bool scope_enter(struct remote_scope *scope, struct remote *remote, struct op *op)
{
	if (!scope)
		return true;
	LOCK_SCOPE(&scope->lock);
	if (scope->interrupted)
		return false;
	scope->remote = remote;
	scope->waiting = op;
	return true;
}

static void scope_leave(struct remote_scope *scope)
{
	if (!scope)
		return;
	LOCK_SCOPE(&scope->lock);
	scope->waiting = NULL;
}

int remote_call(struct remote *remote, struct op *op)
{
	struct waiter waiter = {.over = false};
	pthread_mutex_init(&waiter.lock, NULL);
	pthread_cond_init(&waiter.ended, NULL);
	op->done = call_done;
	op->owner = &waiter;

	struct remote_scope *scope = current_scope;
	if (scope_enter(scope, remote, op)) {
		remote_submit(remote, op);
		pthread_mutex_lock(&waiter.lock);
		while (!waiter.over)
			pthread_cond_wait(&waiter.ended, &waiter.lock);
		pthread_mutex_unlock(&waiter.lock);
		scope_leave(scope);
	} else {
		op->err = -EINTR;
	}
	pthread_cond_destroy(&waiter.ended);
	pthread_mutex_destroy(&waiter.lock);
	return op->err;
}

int remote_statfs_refusal(const struct remote_statfs *fs)
{
	if (fs->read_only)
		return -EROFS;
	bool full = fs->bavail == 0 || (fs->files > 0 && fs->favail == 0);
	return full ? -ENOSPC : -EIO;
}

int remote_plain_error(int err)
{
	return err == -EREMOTEIO || err == -ENOLINK ? -EIO : err;
}

int remote_call_plain(struct remote *remote, struct op *op)
{
	return remote_plain_error(remote_call(remote, op));
}
