/* What becomes of a file that was fetched ahead when a program comes to it. */
#include <errno.h>
#include <string.h>

#include "vfs/prefetch_internal.h"

/* Waits until the parcel has come or is of no use; false when the call was interrupted. */
static bool wait_for(struct prefetch *prefetch, const struct parcel *parcel)
{
	while (parcel->in_map && parcel->state == PARCEL_UNDER_WAY) {
		struct timespec until = clock_to_timespec(clock_now_ns() + 100 * NS_PER_MS);
		if (!pthread_cond_timedwait(&prefetch->answered, &prefetch->lock, &until))
			continue;
		/* Who interrupts may hold locks of other floors. */
		pthread_mutex_unlock(&prefetch->lock);
		bool interrupted = remote_scope_interrupted();
		pthread_mutex_lock(&prefetch->lock);
		if (interrupted)
			return false;
	}
	return true;
}

/*
 * The parcel of the name once it has come, referenced; NULL when there is none. Whether it was
 * waited for is told by *waited.
 */
static struct parcel *await(struct prefetch *prefetch, const struct node *dir, const char *name,
                            size_t length, bool *waited)
{
	struct parcel *parcel = parcel_find(prefetch, dir, name, length);
	if (!parcel)
		return NULL;
	parcel->refs++;
	*waited = parcel->state == PARCEL_UNDER_WAY;
	if (wait_for(prefetch, parcel) && parcel->in_map && parcel->state == PARCEL_HERE)
		return parcel;
	parcel_unref(parcel);
	return NULL;
}

/* Whether the parcel tells of the file as it may be seen now; fills the answer. nodes.lock. */
static bool confirms(struct vfs *vfs, const struct node *node, const struct parcel *parcel,
                     struct answer *answer)
{
	*answer = (struct answer){.attr = *io_whole_attr(parcel->whole),
	                          .asked_ns = parcel->asked_ns,
	                          .stamp = parcel->stamp};
	return !parcel_is_too_old(parcel, clock_now_ns()) && !vfs->nodes.renames &&
	       vfs->nodes.moves == parcel->moves && attr_confirms(node, answer);
}

/* Copies the node's name and holds its directory; NULL when it has none. */
static struct node *copy_name(struct vfs *vfs, const struct node *node, char *name,
                              size_t *length)
{
	NODES_SCOPE(&vfs->nodes);
	const struct dentry *dentry = first_name(node);
	if (!dentry)
		return NULL;
	memcpy(name, dentry->name, dentry->length + 1);
	*length = dentry->length;
	node_hold(dentry->parent);
	return dentry->parent;
}

static void drop_dir(struct vfs *vfs, struct node *dir)
{
	NODES_SCOPE(&vfs->nodes);
	node_drop(&vfs->nodes, dir);
}

/* With prefetch.lock: the parcel's contents, once, for whoever comes first. */
static struct io_whole *open_parcel(struct parcel *parcel, bool good, bool waited)
{
	struct prefetch *prefetch = parcel->prefetch;
	struct io_whole *whole = NULL;
	if (parcel->in_map && good) {
		whole = parcel->whole;
		parcel->whole = NULL;
		pace_used(&prefetch->file_pace, parcel->number, waited);
		parcel_take_out(parcel);
	} else if (parcel->in_map) {
		prefetch->late++;
		parcel_drop_unused(parcel);
	}
	parcel_unref(parcel);
	return whole;
}

struct io_whole *prefetch_take(struct vfs *vfs, struct node *node, struct answer *answer)
{
	struct prefetch *prefetch = vfs->prefetch;
	char name[NAME_LENGTH_MAX + 1];
	size_t length;
	bool waited;
	struct node *dir = copy_name(vfs, node, name, &length);
	if (!dir)
		return NULL;
	pthread_mutex_lock(&prefetch->lock);
	struct parcel *parcel = await(prefetch, dir, name, length, &waited);
	pthread_mutex_unlock(&prefetch->lock);
	struct io_whole *whole = NULL;
	if (parcel) {
		nodes_lock(&vfs->nodes);
		pthread_mutex_lock(&prefetch->lock);
		bool good = parcel->in_map && confirms(vfs, node, parcel, answer);
		whole = open_parcel(parcel, good, waited);
		pthread_mutex_unlock(&prefetch->lock);
		nodes_unlock(&vfs->nodes);
	}
	drop_dir(vfs, dir);
	return whole;
}

bool prefetch_confirms(struct vfs *vfs, struct node *parent, const char *name,
                       struct answer *answer)
{
	struct prefetch *prefetch = vfs->prefetch;
	size_t length = strlen(name);
	bool waited;
	pthread_mutex_lock(&prefetch->lock);
	struct parcel *parcel = await(prefetch, parent, name, length, &waited);
	pthread_mutex_unlock(&prefetch->lock);
	if (!parcel)
		return false;
	NODES_SCOPE(&vfs->nodes);
	LOCK_SCOPE(&prefetch->lock);
	const struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, length);
	/* The fetch follows a symbolic link, which a lookup must not: only the file that is
	 * known is answered for. */
	bool good = dentry && dentry->node && node_is_regular(dentry->node) && parcel->in_map &&
	            confirms(vfs, dentry->node, parcel, answer) &&
	            attr_is_same_file(&dentry->node->attr, &answer->attr);
	parcel_unref(parcel);
	return good;
}
