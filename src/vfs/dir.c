/* Reading directories. Offsets: 1 is behind ".", 2 behind "..", then 3 + the record's number.
 */
#include <errno.h>
#include <string.h>

#include "vfs/internal.h"

struct vfs_dir {
	struct node *node;       /* one reference */
	struct list_node of_all; /* in vfs->open_dirs */
	pthread_mutex_t lock;    /* protects the fields below, over a whole readdir */
	struct listing *listing; /* one reference, one user */
	struct listing_reader reader;
	uint64_t version; /* of the listing, when reading began */
	bool started;
};

/* ---- which listing to read ---- */

/* A listing of the cache, complete or running, with a reference and as a user; or NULL. */
static struct listing *share_listing(struct vfs *vfs, struct node *node)
{
	NODES_SCOPE(&vfs->nodes);
	struct listing *listing = dircache_fresh(vfs, node, clock_now_ns(), NULL);
	if (!listing)
		return NULL;
	listing_join(listing);
	return listing_ref(listing);
}

/* The user goes; a listing that ends with it, or failed, answers nobody any more. */
static void leave_listing(struct vfs *vfs, struct node *node, struct listing *listing)
{
	nodes_lock(&vfs->nodes);
	bool over = listing_leave(listing) || listing_is_broken(listing);
	if (node->listing == listing && over)
		dircache_drop(vfs, node);
	else if (node->listing == listing)
		dircache_account(vfs, node);
	nodes_unlock(&vfs->nodes);
	listing_unref(listing);
}

/* Starts a listing on the server and waits for the first names, or for its failure. */
static int start_listing(struct vfs *vfs, struct node *node, struct listing **result)
{
	PATH_TRY at = {0};
	struct listing *listing = NULL;
	int err = creations_wait(vfs);
	if (err)
		return err;
	do {
		listing = NULL;
		err = path_of(vfs, &at, node, NULL);
		if (err)
			break;
		nodes_lock(&vfs->nodes);
		uint64_t stamp = nodes_stamp(&vfs->nodes);
		nodes_unlock(&vfs->nodes);
		listing = listing_start(vfs->remote, at.path, stamp, LISTING_MEMORY_LIMIT);
		if (!listing)
			return -ENOMEM;
		nodes_lock(&vfs->nodes);
		if (node->names_changed < stamp)
			dircache_put(vfs, node, listing);
		nodes_unlock(&vfs->nodes);
		err = listing_wait(listing);
		if (err)
			leave_listing(vfs, node, listing);
	} while (path_again(vfs, &at, err));
	*result = listing;
	return err;
}

static int find_listing(struct vfs *vfs, struct node *node, struct listing **result)
{
	*result = share_listing(vfs, node);
	prefetch_dir_opened(vfs, node, *result != NULL);
	if (!*result)
		return start_listing(vfs, node, result);
	int err = listing_wait(*result);
	if (!err) {
		count(&vfs->counters.opendirs_cached);
		return 0;
	}
	leave_listing(vfs, node, *result);
	/* What went wrong was asked by somebody else: this call deserves an answer of its own.
	 */
	return err == -EINTR ? err : start_listing(vfs, node, result);
}

int vfs_opendir(struct vfs *vfs, struct node *node, struct vfs_dir **result, bool *keep_cache)
{
	*result = NULL;
	*keep_cache = false;
	count(&vfs->counters.opendirs);
	attr_learn_login(vfs);
	struct vfs_dir *dir = calloc(1, sizeof(*dir));
	if (!dir)
		return -ENOMEM;
	int err = find_listing(vfs, node, &dir->listing);
	if (err) {
		free(dir);
		return err;
	}
	dir->node = node;
	pthread_mutex_init(&dir->lock, NULL);
	nodes_lock(&vfs->nodes);
	node_hold(node);
	list_push_back(&vfs->open_dirs, &dir->of_all);
	*keep_cache = listing_is_complete(dir->listing) &&
	              node->kernel_listing == listing_version(dir->listing);
	nodes_unlock(&vfs->nodes);
	*result = dir;
	return 0;
}

void vfs_releasedir(struct vfs *vfs, struct vfs_dir *dir)
{
	leave_listing(vfs, dir->node, dir->listing);
	listing_reader_release(&dir->reader);
	nodes_lock(&vfs->nodes);
	list_remove(&dir->of_all);
	node_drop(&vfs->nodes, dir->node);
	nodes_unlock(&vfs->nodes);
	pthread_mutex_destroy(&dir->lock);
	free(dir);
}

void dirs_release_all(struct vfs *vfs)
{
	while (!list_empty(&vfs->open_dirs))
		vfs_releasedir(vfs, list_entry(vfs->open_dirs.next, struct vfs_dir, of_all));
}

/* The first read, or the first behind rewinddir: the directory is read as it is now. */
static int rewind_dir(struct vfs *vfs, struct vfs_dir *dir)
{
	struct listing *listing;
	int err = start_listing(vfs, dir->node, &listing);
	if (err)
		return err;
	leave_listing(vfs, dir->node, dir->listing);
	listing_reader_release(&dir->reader);
	dir->listing = listing;
	return 0;
}

/* ---- emitting ---- */

/* The kernel's call: where its entries go. */
struct sink {
	bool plus;
	vfs_emit_fn *emit;
	void *context;
	unsigned emitted;
};

static int give(struct sink *sink, const char *name, const struct vfs_entry *entry,
                uint64_t next_offset)
{
	int full = sink->emit(sink->context, name, entry, next_offset);
	if (!full)
		sink->emitted++;
	return full;
}

static int give_dot(struct vfs *vfs, struct vfs_dir *dir, struct sink *sink, uint64_t offset)
{
	struct vfs_entry entry = {.node = NULL};
	nodes_lock(&vfs->nodes);
	const struct node *node = dir->node, *parent = node_parent(node);
	if (offset == 1 && parent)
		node = parent;
	entry.st.st_ino = node->ino;
	nodes_unlock(&vfs->nodes);
	entry.st.st_mode = S_IFDIR;
	return give(sink, offset == 0 ? "." : "..", &entry, offset + 1);
}

/* What readdir shows of a name: its number and, where it is clear, its type. */
static void name_only(struct vfs *vfs, struct node *parent, const struct listing_record *record,
                      struct vfs_entry *entry)
{
	memset(entry, 0, sizeof(*entry));
	NODES_SCOPE(&vfs->nodes);
	const struct dentry *dentry =
	    dentry_find(&vfs->nodes, parent, record->name, record->length);
	if (dentry && dentry->node) {
		entry->st.st_ino = dentry->node->ino;
		entry->st.st_mode = dentry->node->kind;
		return;
	}
	entry->st.st_ino =
	    inodes_peek(&vfs->nodes.inodes, parent->ino, record->name, record->length);
	mode_t kind = attr_kind(&record->attr);
	if (!vfs->config.follow_symlinks || !S_ISLNK(kind))
		entry->st.st_mode = kind;
}

static int give_record(struct vfs *vfs, struct vfs_dir *dir, struct sink *sink,
                       const struct listing_record *record, uint64_t stamp,
                       uint64_t next_offset)
{
	struct vfs_entry entry;
	const struct answer answer = {
	    .attr = record->attr, .asked_ns = record->asked_ns, .stamp = stamp};
	count(&vfs->counters.listed_names);
	bool full_entry =
	    sink->plus && attr_is_usable(vfs, record) &&
	    links_agree(vfs, dir->node, record->name, &answer) &&
	    entry_enter(vfs, dir->node, record->name, record->length, &answer, &entry) == 0;
	if (!full_entry)
		name_only(vfs, dir->node, record, &entry);
	int full = give(sink, record->name, &entry, next_offset);
	if (full && full_entry)
		vfs_forget(vfs, entry.node, 1);
	return full;
}

/* The stamp that attributes read from the listing now deserve. */
static uint64_t reading_stamp(struct vfs *vfs, struct vfs_dir *dir)
{
	NODES_SCOPE(&vfs->nodes);
	/* What the cache keeps is patched with our changes, so it is of now. */
	if (dir->node->listing == dir->listing && listing_is_complete(dir->listing))
		return vfs->nodes.stamp;
	return listing_stamp(dir->listing);
}

/* The kernel has read to the end: its own copy is of this version. */
static void note_end(struct vfs *vfs, struct vfs_dir *dir)
{
	NODES_SCOPE(&vfs->nodes);
	if (listing_version(dir->listing) == dir->version)
		dir->node->kernel_listing = dir->version;
}

static int give_records(struct vfs *vfs, struct vfs_dir *dir, uint64_t number,
                        struct sink *sink)
{
	for (;;) {
		struct listing_record record;
		uint64_t found, stamp = reading_stamp(vfs, dir);
		int got = listing_read(dir->listing, &dir->reader, number, &record, &found);
		if (got == 0)
			note_end(vfs, dir);
		if (got <= 0)
			return got;
		if (give_record(vfs, dir, sink, &record, stamp, found + 3))
			return 0;
		number = found + 1;
	}
}

/* We have changed names since the directory was opened, and the listing does not show it. */
static bool is_outdated(struct vfs *vfs, struct vfs_dir *dir)
{
	NODES_SCOPE(&vfs->nodes);
	return dir->node->names_changed > listing_version(dir->listing);
}

static int read_from(struct vfs *vfs, struct vfs_dir *dir, uint64_t offset, struct sink *sink)
{
	if (offset == 0 && (dir->started || is_outdated(vfs, dir))) {
		int err = rewind_dir(vfs, dir);
		if (err)
			return err;
	}
	if (offset == 0) {
		dir->started = true;
		dir->version = listing_version(dir->listing);
	}
	for (; offset < 2; offset++)
		if (give_dot(vfs, dir, sink, offset))
			return 0;
	return give_records(vfs, dir, offset - 2, sink);
}

int vfs_readdir(struct vfs *vfs, struct vfs_dir *dir, uint64_t offset, bool plus,
                vfs_emit_fn *emit, void *context)
{
	struct sink sink = {.plus = plus, .emit = emit, .context = context};
	LOCK_SCOPE(&dir->lock);
	int err = read_from(vfs, dir, offset, &sink);
	/* What was emitted goes out first; the error comes with the next call. */
	return sink.emitted ? 0 : err;
}
