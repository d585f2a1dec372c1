/* Which listings are kept for which directories. All with nodes.lock held. */
#include "vfs/internal.h"

static void uncount(struct vfs *vfs, struct node *dir)
{
	vfs->listings_bytes -= dir->listing_bytes;
	dir->listing_bytes = 0;
}

void dircache_drop(struct vfs *vfs, struct node *dir)
{
	if (!dir->listing)
		return;
	uncount(vfs, dir);
	list_remove(&dir->of_listings);
	listing_unref(dir->listing);
	dir->listing = NULL;
}

static uint64_t dir_timeout(const struct vfs *vfs, const struct node *dir)
{
	if (vfs->config.dir_timeout_ns)
		return vfs->config.dir_timeout_ns;
	if (vfs->config.attr_timeout_ns >= 0 || !dir->timeout.ns)
		return attr_timeout_min(vfs);
	return dir->timeout.ns;
}

struct listing *dircache_fresh(struct vfs *vfs, struct node *dir, uint64_t now_ns,
                               uint64_t *left_ns)
{
	struct listing *listing = dir->listing;
	if (!listing)
		return NULL;
	uint64_t left =
	    timeout_left(listing_started_ns(listing), dir_timeout(vfs, dir), now_ns);
	if (left_ns)
		*left_ns = left;
	if (!left || listing_is_broken(listing)) {
		dircache_drop(vfs, dir);
		return NULL;
	}
	list_remove(&dir->of_listings);
	list_push_back(&vfs->listings, &dir->of_listings);
	return listing;
}

void dircache_account(struct vfs *vfs, struct node *dir)
{
	if (!dir->listing)
		return;
	uncount(vfs, dir);
	dir->listing_bytes = listing_bytes(dir->listing);
	vfs->listings_bytes += dir->listing_bytes;
	while (vfs->listings_bytes > vfs->config.dir_cache_bytes && !list_empty(&vfs->listings))
		dircache_drop(vfs, list_entry(vfs->listings.next, struct node, of_listings));
}

void dircache_put(struct vfs *vfs, struct node *dir, struct listing *listing)
{
	if (!vfs->config.dir_cache)
		return;
	dircache_drop(vfs, dir);
	dir->listing = listing_ref(listing);
	list_push_back(&vfs->listings, &dir->of_listings);
	dircache_account(vfs, dir);
}
