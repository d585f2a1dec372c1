#include "fuse/notify.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/list.h"
#include "base/log.h"

enum { MAX_QUEUED = 16384 };

struct notice {
	struct list_node link;
	fuse_ino_t ino;
	size_t
	    name_length; /* 0: the data of `ino` changed, else the entry of that name in it */
	char name[];
};

struct notifier {
	struct fuse_session *session;
	pthread_mutex_t lock; /* protects all below */
	pthread_cond_t changed;
	struct list_node queue;
	unsigned queued;
	bool stop;
	bool joined;
	pthread_t thread;
};

static void send_notice(struct notifier *notifier, const struct notice *notice)
{
	int result;
	if (notice->name_length == 0)
		result = fuse_lowlevel_notify_inval_inode(notifier->session, notice->ino, 0, 0);
	else
		result = fuse_lowlevel_notify_inval_entry(notifier->session, notice->ino,
		                                          notice->name, notice->name_length);
	if (log_tracing(LOG_FUSE))
		log_trace(LOG_FUSE, "invalidated %s of node %#llx: %s",
		          notice->name_length ? "an entry" : "the data",
		          (unsigned long long)notice->ino, result ? strerror(-result) : "done");
}

static void *notifier_main(void *argument)
{
	struct notifier *notifier = argument;
	LOCK_SCOPE(&notifier->lock);
	while (!notifier->stop) {
		struct list_node *node = list_pop_front(&notifier->queue);
		if (!node) {
			pthread_cond_wait(&notifier->changed, &notifier->lock);
			continue;
		}
		notifier->queued--;
		struct notice *notice = list_entry(node, struct notice, link);
		pthread_mutex_unlock(&notifier->lock);
		send_notice(notifier, notice);
		free(notice);
		pthread_mutex_lock(&notifier->lock);
	}
	return NULL;
}

struct notifier *notifier_new(struct fuse_session *session)
{
	struct notifier *notifier = calloc(1, sizeof(*notifier));
	if (!notifier)
		return NULL;
	notifier->session = session;
	list_init(&notifier->queue);
	pthread_mutex_init(&notifier->lock, NULL);
	pthread_cond_init(&notifier->changed, NULL);
	if (pthread_create(&notifier->thread, NULL, notifier_main, notifier) != 0) {
		pthread_cond_destroy(&notifier->changed);
		pthread_mutex_destroy(&notifier->lock);
		free(notifier);
		return NULL;
	}
	return notifier;
}

/* The same change is often told several times in a row. */
static bool repeats_last(const struct notifier *notifier, fuse_ino_t ino, const char *name,
                         size_t name_length)
{
	if (list_empty(&notifier->queue))
		return false;
	const struct notice *last = list_entry(notifier->queue.prev, struct notice, link);
	return last->ino == ino && last->name_length == name_length &&
	       memcmp(last->name, name, name_length) == 0;
}

static void add(struct notifier *notifier, fuse_ino_t ino, const char *name)
{
	const size_t name_length = strlen(name);
	LOCK_SCOPE(&notifier->lock);
	if (notifier->stop || repeats_last(notifier, ino, name, name_length))
		return;

	struct notice *notice = NULL;
	if (notifier->queued < MAX_QUEUED)
		notice = malloc(sizeof(*notice) + name_length + 1);
	if (!notice) {
		log_debug(
		    "a notice for the kernel did not fit the queue: its copy of node %#llx "
		    "stays until the time-out",
		    (unsigned long long)ino);
		return;
	}
	notice->ino = ino;
	notice->name_length = name_length;
	memcpy(notice->name, name, name_length + 1);
	list_push_back(&notifier->queue, &notice->link);
	notifier->queued++;
	pthread_cond_signal(&notifier->changed);
}

void notifier_data_changed(struct notifier *notifier, fuse_ino_t ino)
{
	add(notifier, ino, "");
}

void notifier_entry_changed(struct notifier *notifier, fuse_ino_t parent, const char *name)
{
	if (*name)
		add(notifier, parent, name);
}

static void drop_data_notices(struct notifier *notifier, fuse_ino_t ino)
{
	list_for_each_safe (node, &notifier->queue) {
		struct notice *notice = list_entry(node, struct notice, link);
		if (notice->ino != ino || notice->name_length > 0)
			continue;
		list_remove(node);
		notifier->queued--;
		free(notice);
	}
}

void notifier_attr_changed(struct notifier *notifier, fuse_ino_t ino, bool pages_dropped)
{
	LOCK_SCOPE(&notifier->lock);
	if (notifier->stop)
		return;
	if (pages_dropped)
		drop_data_notices(notifier, ino);
	/* A negative offset: attributes only. */
	fuse_lowlevel_notify_inval_inode(notifier->session, ino, -1, 0);
}

void notifier_stop(struct notifier *notifier)
{
	pthread_mutex_lock(&notifier->lock);
	const bool join = !notifier->joined;
	notifier->stop = true;
	notifier->joined = true;
	pthread_cond_signal(&notifier->changed);
	pthread_mutex_unlock(&notifier->lock);
	if (join)
		pthread_join(notifier->thread, NULL);
}

void notifier_free(struct notifier *notifier)
{
	if (!notifier)
		return;
	notifier_stop(notifier);
	struct list_node *node;
	while ((node = list_pop_front(&notifier->queue)))
		free(list_entry(node, struct notice, link));
	pthread_cond_destroy(&notifier->changed);
	pthread_mutex_destroy(&notifier->lock);
	free(notifier);
}
