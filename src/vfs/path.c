#include <errno.h>
#include <string.h>

#include "vfs/internal.h"

int check_name(const char *name)
{
	return strlen(name) > NAME_LENGTH_MAX ? -ENAMETOOLONG : 0;
}

void path_try_release(struct path_try *at)
{
	free(at->path);
	at->path = NULL;
}

int path_of(struct vfs *vfs, struct path_try *at, const struct node *node, const char *name)
{
	NODES_SCOPE(&vfs->nodes);
	at->node = node;
	at->moves = vfs->nodes.moves;
	at->node_moves = node->moves;
	return node_path(&vfs->nodes, node, name, &at->path);
}

/* True when a rename that could make the path wrong is not over. */
static bool rename_under_way(const struct vfs *vfs, const struct path_try *at)
{
	return vfs->nodes.renames || at->node->renames;
}

static bool path_is_outdated(const struct vfs *vfs, const struct path_try *at)
{
	return vfs->nodes.moves != at->moves || at->node->moves != at->node_moves;
}

bool path_again(struct vfs *vfs, struct path_try *at, int err)
{
	bool had_path = at->path != NULL;
	path_try_release(at);
	if (!had_path || (err != -ENOENT && err != -ENOTDIR) || at->tries++ >= 8)
		return false;
	bool interrupted = false;
	nodes_lock(&vfs->nodes);
	while (!at->no_wait && !interrupted && rename_under_way(vfs, at) &&
	       !path_is_outdated(vfs, at)) {
		struct timespec until = clock_to_timespec(clock_now_ns() + 100 * NS_PER_MS);
		pthread_cond_timedwait(&vfs->nodes.renamed, &vfs->nodes.lock, &until);
		nodes_unlock(&vfs->nodes);
		interrupted = remote_scope_interrupted();
		nodes_lock(&vfs->nodes);
	}
	bool again = !interrupted && path_is_outdated(vfs, at);
	nodes_unlock(&vfs->nodes);
	if (again)
		count(&vfs->counters.path_retries);
	return again;
}
