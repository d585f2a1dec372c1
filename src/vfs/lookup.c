#include <errno.h>
#include <string.h>

#include "vfs/internal.h"

/* How a lookup was answered without the server. */
enum known {
	KNOWN_NOT,    /* ask the server */
	KNOWN_DONE,   /* the entry is filled and *err set */
	KNOWN_LISTED, /* the answer is filled from a listing or a prefetch, to be entered */
};

static enum known known_missing(struct vfs *vfs, uint64_t left_ns, struct vfs_entry *entry,
                                int *err)
{
	memset(entry, 0, sizeof(*entry));
	entry->entry_valid_ns = MIN(left_ns, negative_timeout(vfs));
	count(&vfs->counters.lookups_negative);
	*err = -ENOENT;
	return KNOWN_DONE;
}

/* By the table; nodes.lock held. */
static enum known known_by_name(struct vfs *vfs, struct dentry *dentry, uint64_t now_ns,
                                struct vfs_entry *entry, int *err)
{
	if (!dentry->node) {
		uint64_t left_ns = timeout_left(dentry->seen_ns, dentry->valid_ns, now_ns);
		return left_ns ? known_missing(vfs, left_ns, entry, err) : KNOWN_NOT;
	}
	/* What is being written by us exists; its attributes are asked for when they are
	 * wanted, as that waits for the writes. */
	if (!entry_left(vfs, dentry->node, dentry->seen_ns, now_ns) ||
	    (!attr_left(vfs, dentry->node, now_ns) && !attr_is_dirty(dentry->node)))
		return KNOWN_NOT;
	*err = entry_enter_known(vfs, dentry, entry);
	count(&vfs->counters.lookups_cached);
	return KNOWN_DONE;
}

/* By the directory's listing; nodes.lock held. */
static enum known known_by_listing(struct vfs *vfs, struct node *parent, const char *name,
                                   uint64_t now_ns, struct answer *answer,
                                   struct vfs_entry *entry, int *err)
{
	uint64_t left_ns;
	struct listing *listing = dircache_fresh(vfs, parent, now_ns, &left_ns);
	struct listing_record record;
	if (!listing)
		return KNOWN_NOT;
	switch (listing_find(listing, name, strlen(name), &record)) {
	case LISTING_ABSENT:
		return known_missing(vfs, left_ns, entry, err);
	case LISTING_PRESENT:
		if (!attr_is_usable(vfs, &record) ||
		    !timeout_left(record.asked_ns, attr_timeout_min(vfs), now_ns))
			return KNOWN_NOT;
		/* Our changes are patched in, so the listing is of now. */
		*answer = (struct answer){.attr = record.attr,
		                          .asked_ns = record.asked_ns,
		                          .stamp = vfs->nodes.stamp};
		count(&vfs->counters.lookups_listed);
		return KNOWN_LISTED;
	case LISTING_UNKNOWN:
		break;
	}
	return KNOWN_NOT;
}

/* By what its own listing told of a directory that was listed since; nodes.lock held. */
static enum known known_by_itself(struct vfs *vfs, const struct dentry *dentry, uint64_t now_ns,
                                  struct answer *answer)
{
	struct node *node = dentry->node;
	if (!node || !node_is_dir(node))
		return KNOWN_NOT;
	struct listing *listing = dircache_fresh(vfs, node, now_ns, NULL);
	if (!listing || node->changed > listing_stamp(listing) ||
	    !timeout_left(listing_started_ns(listing), attr_timeout_min(vfs), now_ns))
		return KNOWN_NOT;
	*answer = (struct answer){.asked_ns = listing_started_ns(listing),
	                          .stamp = listing_stamp(listing)};
	if (!listing_own_attr(listing, &answer->attr) || !S_ISDIR(attr_kind(&answer->attr)))
		return KNOWN_NOT;
	count(&vfs->counters.lookups_listed);
	return KNOWN_LISTED;
}

static enum known look_at_home(struct vfs *vfs, struct node *parent, const char *name,
                               struct answer *answer, struct vfs_entry *entry, int *err)
{
	NODES_SCOPE(&vfs->nodes);
	uint64_t now_ns = clock_now_ns();
	struct dentry *dentry = dentry_find(&vfs->nodes, parent, name, strlen(name));
	enum known known = KNOWN_NOT;
	if (dentry)
		known = known_by_name(vfs, dentry, now_ns, entry, err);
	if (known == KNOWN_NOT)
		known = known_by_listing(vfs, parent, name, now_ns, answer, entry, err);
	if (known == KNOWN_NOT && dentry)
		known = known_by_itself(vfs, dentry, now_ns, answer);
	return known;
}

int vfs_lookup(struct vfs *vfs, struct node *parent, const char *name, struct vfs_entry *entry)
{
	count(&vfs->counters.lookups);
	memset(entry, 0, sizeof(*entry));
	int err = check_name(name);
	if (err)
		return err;
	attr_learn_login(vfs);
	for (int tries = 0;; tries++) {
		struct answer answer;
		enum known known = look_at_home(vfs, parent, name, &answer, entry, &err);
		if (known == KNOWN_DONE)
			return err;
		if (known == KNOWN_NOT && prefetch_confirms(vfs, parent, name, &answer)) {
			count(&vfs->counters.lookups_fetched);
			known = KNOWN_LISTED;
		}
		if (known == KNOWN_NOT) {
			err = entry_ask(vfs, parent, name, &answer);
			if (err == -ENOENT)
				entry_enter_negative(vfs, parent, name, strlen(name), &answer,
				                     entry);
			if (err)
				return err;
		}
		if (tries >= 3) /* the directory changes all the time: do not cache */
			answer_expire(&answer);
		links_check(vfs, parent, name, &answer);
		err = entry_enter(vfs, parent, name, strlen(name), &answer, entry);
		if (err != ENTRY_AGAIN)
			return err;
	}
}

void vfs_forget(struct vfs *vfs, struct node *node, uint64_t lookups)
{
	NODES_SCOPE(&vfs->nodes);
	node_forget(&vfs->nodes, node, lookups);
}

bool attr_is_usable(const struct vfs *vfs, const struct listing_record *record)
{
	mode_t kind = record->attr_known ? attr_kind(&record->attr) : 0;
	return kind && !(vfs->config.follow_symlinks && S_ISLNK(kind));
}
