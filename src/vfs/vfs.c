#include "vfs/vfs.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "vfs/internal.h"

/* Called by the table for a node that has died, without its lock. */
static void bury(struct node *node)
{
	prefetch_bury(node);
	if (node->io_file)
		io_file_free(node->io_file);
	listing_unref(node->listing);
}

static void free_parts(struct vfs *vfs)
{
	prefetch_free(vfs);
	ids_free(vfs->ids);
	free(vfs->root);
	free(vfs->mountpoint);
	free(vfs);
}

/* "/a/b//" as "/a/b". */
static void trim_slashes(char *path)
{
	size_t length = strlen(path);
	while (length > 1 && path[length - 1] == '/')
		path[--length] = '\0';
}

static int copy_config(struct vfs *vfs, const struct vfs_config *config)
{
	vfs->config = *config;
	vfs->config.root = vfs->config.mountpoint = NULL;
	vfs->config.uid_file = vfs->config.gid_file = NULL;
	vfs->root = strdup(config->root);
	if (config->mountpoint)
		vfs->mountpoint = strdup(config->mountpoint);
	if (!vfs->root || (config->mountpoint && !vfs->mountpoint))
		return -1;
	trim_slashes(vfs->root);
	vfs->symlinks = (struct symlink_policy){.root = vfs->root,
	                                        .mountpoint = vfs->mountpoint,
	                                        .contain = config->contain_symlinks,
	                                        .transform = config->transform_symlinks};
	vfs->attr_range = (struct timeout_range){config->attr_min_ns, config->attr_max_ns};
	return 0;
}

struct vfs *vfs_new(struct remote *remote, struct io *io, const struct vfs_config *config,
                    struct failure *failure)
{
	struct vfs *vfs = calloc(1, sizeof(*vfs));
	if (!vfs || copy_config(vfs, config) < 0) {
		failure_set(failure, FAILURE_INTERNAL, "out of memory");
		if (vfs)
			free_parts(vfs);
		return NULL;
	}
	vfs->remote = remote;
	vfs->io = io;
	list_init(&vfs->listings);
	list_init(&vfs->open_files);
	list_init(&vfs->open_dirs);
	vfs->ids = ids_new(config, failure);
	if (!vfs->ids) {
		free_parts(vfs);
		return NULL;
	}
	if (prefetch_init(vfs) < 0 || nodes_init(&vfs->nodes, vfs->root, bury) < 0) {
		failure_set(failure, FAILURE_INTERNAL, "out of memory");
		free_parts(vfs);
		return NULL;
	}
	return vfs;
}

void vfs_set_events(struct vfs *vfs, const struct vfs_events *events)
{
	vfs->events = *events;
}

void vfs_free(struct vfs *vfs)
{
	if (!vfs)
		return;
	prefetch_stop(vfs);
	/* After a forced unmount the kernel releases nothing itself. */
	while (!list_empty(&vfs->open_files))
		vfs_release(vfs, list_entry(vfs->open_files.next, struct vfs_file, of_all));
	dirs_release_all(vfs);
	io_wait_created(vfs->io, 1);
	nodes_release(&vfs->nodes);
	free_parts(vfs);
}

struct node *vfs_root(struct vfs *vfs)
{
	return vfs->nodes.root;
}

static uint64_t value(atomic_uint_least64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void vfs_report(struct vfs *vfs, struct bytes *out)
{
	struct vfs_counters *counters = &vfs->counters;
	nodes_lock(&vfs->nodes);
	size_t nodes = vfs->nodes.count, negatives = vfs->nodes.negative_count;
	size_t exceptions = vfs->nodes.inodes.by_key.count, listings = vfs->listings_bytes;
	nodes_unlock(&vfs->nodes);
	bytes_addf(out, "nodes: %zu known, %zu negative entries, %zu kept inode numbers\n",
	           nodes, negatives, exceptions);
	bytes_addf(out,
	           "lookups: %" PRIu64 ", %" PRIu64 " from cache, %" PRIu64
	           " from listings, %" PRIu64 " from prefetch, %" PRIu64 " negative\n",
	           value(&counters->lookups), value(&counters->lookups_cached),
	           value(&counters->lookups_listed), value(&counters->lookups_fetched),
	           value(&counters->lookups_negative));
	bytes_addf(out,
	           "attributes: %" PRIu64 " asked for, %" PRIu64 " from cache, %" PRIu64
	           " replies out of date\n",
	           value(&counters->getattrs), value(&counters->getattrs_cached),
	           value(&counters->stale_replies));
	bytes_addf(out, "attributes set: %" PRIu64 ", %" PRIu64 " of them behind writes\n",
	           value(&counters->setattrs), value(&counters->setattrs_deferred));
	bytes_addf(out,
	           "directories: %" PRIu64 " opened, %" PRIu64 " from cache, %" PRIu64
	           " names listed, %zu bytes kept\n",
	           value(&counters->opendirs), value(&counters->opendirs_cached),
	           value(&counters->listed_names), listings);
	bytes_addf(out,
	           "files: %" PRIu64 " opened, %" PRIu64 " from prefetch, %" PRIu64
	           " with pages kept, %" PRIu64 " changed by others, %" PRIu64
	           " paths retried\n",
	           value(&counters->opens), value(&counters->opens_fetched),
	           value(&counters->opens_kept), value(&counters->changed_files),
	           value(&counters->path_retries));
	prefetch_report(vfs, out);
}
