/* What is known of files: keeping, showing and asking for attributes. */
#include <errno.h>
#include <string.h>

#include "vfs/internal.h"

enum { BLOCK_SIZE = 128 * 1024 }; /* what a program had best read at once */

void answer_begin(struct vfs *vfs, struct answer *answer, const struct node *node)
{
	memset(answer, 0, sizeof(*answer));
	NODES_SCOPE(&vfs->nodes);
	answer->asked_ns = clock_now_ns();
	answer->stamp = vfs->nodes.stamp;
	answer->has_mark = node && node->io_file;
	if (answer->has_mark)
		answer->mark = io_file_mark(node->io_file);
}

/* ---- what is known ---- */

mode_t attr_kind(const struct remote_attr *attr)
{
	static const mode_t kinds[] = {S_IFREG,  S_IFDIR, S_IFLNK, S_IFIFO,
	                               S_IFSOCK, S_IFCHR, S_IFBLK};
	for (size_t i = 0; attr->valid & ATTR_MODE && i < ARRAY_LEN(kinds); i++)
		if ((attr->mode & S_IFMT) == kinds[i])
			return kinds[i];
	return 0;
}

static bool times_equal(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool attr_differs(const struct remote_attr *a, const struct remote_attr *b)
{
	unsigned both = a->valid & b->valid;
	return ((both & ATTR_SIZE) && a->size != b->size) ||
	       ((both & ATTR_MODE) && (a->mode & 07777) != (b->mode & 07777)) ||
	       ((both & ATTR_OWNER) && (a->uid != b->uid || a->gid != b->gid)) ||
	       ((both & ATTR_TIMES) && !times_equal(&a->mtime, &b->mtime));
}

/* Takes over the fields that `from` has. */
static void attr_merge(struct remote_attr *to, const struct remote_attr *from)
{
	if (from->valid & ATTR_SIZE)
		to->size = from->size;
	if (from->valid & ATTR_MODE)
		to->mode = from->mode & 07777;
	if (from->valid & ATTR_OWNER) {
		to->uid = from->uid;
		to->gid = from->gid;
	}
	if (from->valid & ATTR_TIMES) {
		to->atime = from->atime;
		to->mtime = from->mtime;
	}
	if (from->valid & ATTR_NLINK)
		to->nlink = from->nlink;
	to->valid |= from->valid;
}

/* The kept listings that show this file have old attributes now, and so has its prefetch. */
static void outdate_listings(struct vfs *vfs, struct node *node)
{
	list_for_each (link, &node->names) {
		const struct dentry *dentry = list_entry(link, struct dentry, of_node);
		struct node *dir = dentry->parent;
		prefetch_drop(vfs, dir, dentry->name, dentry->length);
		if (dir->listing &&
		    !listing_patch_attr(dir->listing, dentry->name, dentry->length))
			dircache_drop(vfs, dir);
	}
}

/* True when our own writes crossed the question: the answer may be older than they are. */
static bool is_crossed(const struct node *node, const struct answer *answer)
{
	if (!node->io_file)
		return false;
	if (attr_is_dirty(node))
		return true;
	if (answer->has_mark)
		return io_file_mark(node->io_file) != answer->mark;
	return node->unsettled || node->settled > answer->stamp;
}

bool attr_is_outdated(const struct node *node, const struct answer *answer)
{
	return node->changed > answer->stamp || is_crossed(node, answer);
}

bool attr_is_same_file(const struct remote_attr *a, const struct remote_attr *b)
{
	const unsigned need = ATTR_SIZE | ATTR_MODE | ATTR_TIMES;
	return (a->valid & b->valid & need) == need && a->size == b->size &&
	       (a->mode & 07777) == (b->mode & 07777) && times_equal(&a->mtime, &b->mtime);
}

bool attr_confirms(const struct node *node, struct answer *answer)
{
	if (attr_is_outdated(node, answer))
		return false;
	if (!node->attr.valid || answer->asked_ns >= node->attr_asked_ns)
		return true;
	if (!attr_is_same_file(&node->attr, &answer->attr))
		return false;
	answer->attr = node->attr;
	answer->asked_ns = node->attr_asked_ns;
	return true;
}

bool attr_store(struct vfs *vfs, struct node *node, const struct answer *answer)
{
	bool known = node->attr.valid != 0;
	if (attr_is_outdated(node, answer) ||
	    (known && answer->asked_ns < node->attr_asked_ns)) {
		count(&vfs->counters.stale_replies);
		if (!known)
			attr_merge(&node->attr, &answer->attr);
		return false;
	}
	bool changed = known && !node->own_change && attr_differs(&node->attr, &answer->attr);
	timeout_adapt(&node->timeout, &vfs->attr_range, changed, answer->asked_ns);
	if (changed && node_is_dir(node) &&
	    !times_equal(&node->attr.mtime, &answer->attr.mtime))
		dircache_drop(vfs, node);
	attr_merge(&node->attr, &answer->attr);
	node->attr_asked_ns = answer->asked_ns;
	node->own_change = false;
	return true;
}

void attr_changed(struct vfs *vfs, struct node *node)
{
	node->changed = nodes_stamp(&vfs->nodes);
	node->attr_asked_ns = 0;
	node->own_change = true;
	node->foreseen = false;
	outdate_listings(vfs, node);
}

void attr_patch(struct vfs *vfs, struct node *node, const struct remote_attr *attr)
{
	node->changed = nodes_stamp(&vfs->nodes);
	attr_merge(&node->attr, attr);
	outdate_listings(vfs, node);
}

bool attr_is_dirty(const struct node *node)
{
	return node->writers || (node->io_file && io_file_dirty(node->io_file));
}

bool attr_is_foreseen(const struct node *node)
{
	return node->foreseen && io_file_writes(node->io_file) == node->foreseen_writes;
}

static uint64_t attr_timeout(const struct vfs *vfs, const struct node *node)
{
	int64_t fixed_ns = vfs->config.attr_timeout_ns;
	return fixed_ns >= 0 ? (uint64_t)fixed_ns : node->timeout.ns;
}

uint64_t attr_left(struct vfs *vfs, const struct node *node, uint64_t now_ns)
{
	if (attr_is_dirty(node) && !attr_is_foreseen(node))
		return 0;
	if (node->unsettled && node->io_file && io_file_attr_lost(node->io_file, false))
		return 0;
	return timeout_left(node->attr_asked_ns, attr_timeout(vfs, node), now_ns);
}

uint64_t entry_left(struct vfs *vfs, const struct node *node, uint64_t seen_ns, uint64_t now_ns)
{
	int64_t fixed_ns = vfs->config.entry_timeout_ns;
	return timeout_left(seen_ns, fixed_ns >= 0 ? (uint64_t)fixed_ns : node->timeout.ns,
	                    now_ns);
}

uint64_t attr_timeout_min(const struct vfs *vfs)
{
	int64_t fixed_ns = vfs->config.attr_timeout_ns;
	return fixed_ns >= 0 ? (uint64_t)fixed_ns : vfs->attr_range.min_ns;
}

uint64_t negative_timeout(const struct vfs *vfs)
{
	int64_t fixed_ns = vfs->config.negative_timeout_ns;
	return fixed_ns >= 0 ? (uint64_t)fixed_ns : vfs->attr_range.min_ns;
}

/* ---- what is shown ---- */

/* Directories say 1: programs then do not count subdirectories by it. */
static nlink_t shown_nlink(const struct vfs *vfs, const struct node *node)
{
	const unsigned links = inodes_link_count(&vfs->nodes.inodes, node->ino);
	if (node_is_unlinked(&vfs->nodes, node))
		return links;
	if (node_is_dir(node))
		return 1;
	uint32_t told = node->attr.valid & ATTR_NLINK ? node->attr.nlink : 1;
	return MAX(MAX(told, links), node_name_count(node));
}

static mode_t shown_bits(const struct vfs *vfs, const struct node *node)
{
	if (vfs->config.set_umask)
		return 0777 & ~vfs->config.umask;
	if (node->attr.valid & ATTR_MODE)
		return node->attr.mode & 07777;
	/* The server does not tell: it will refuse what it does not grant. */
	return node_is_dir(node) ? 0755 : 0644;
}

static uint64_t size_to_show(const struct node *node)
{
	if (node->io_file && (node->unsettled || attr_is_dirty(node)))
		return MAX(node->attr.size, io_file_size(node->io_file));
	return node->attr.size;
}

bool attr_differs_from_shown(const struct node *node)
{
	return !node->shown || node->shown_size != size_to_show(node) ||
	       !times_equal(&node->shown_mtime, &node->attr.mtime);
}

int attr_show(struct vfs *vfs, struct node *node, struct stat *st)
{
	const struct remote_attr *attr = &node->attr;
	memset(st, 0, sizeof(*st));
	st->st_ino = node->ino;
	st->st_mode = node->kind | shown_bits(vfs, node);
	st->st_nlink = shown_nlink(vfs, node);
	st->st_blksize = BLOCK_SIZE;
	uint64_t size = size_to_show(node);
	node->shown = true;
	node->shown_size = size;
	node->shown_mtime = attr->mtime;
	st->st_size = (off_t)MIN(size, (uint64_t)INT64_MAX);
	st->st_blocks = st->st_size / 512 + (st->st_size % 512 != 0);
	st->st_atim = attr->atime;
	st->st_mtim = attr->mtime;
	st->st_ctim = attr->mtime;
	if (!(attr->valid & ATTR_OWNER)) {
		st->st_uid = vfs->config.set_uid ? vfs->config.uid : vfs->config.local_uid;
		st->st_gid = vfs->config.set_gid ? vfs->config.gid : vfs->config.local_gid;
		return 0;
	}
	return ids_show(vfs->ids, attr->uid, attr->gid, &st->st_uid, &st->st_gid);
}

/* ---- asking ---- */

void attr_learn_login(struct vfs *vfs)
{
	if (!ids_need_login(vfs->ids))
		return;
	/* Where a login begins is its home. Two threads may ask at once: no harm. */
	struct remote_attr home;
	int err = remote_stat(vfs->remote, ".", &home);
	static const int passing[] = {-EINTR, -ETIMEDOUT, -ENOTCONN, -EHOSTUNREACH, -ENOMEM};
	for (size_t i = 0; i < ARRAY_LEN(passing); i++)
		if (err == passing[i])
			return;
	bool known = !err && (home.valid & ATTR_OWNER);
	if (!known)
		log_warn(
		    "idmap=user: the server does not tell who owns the remote home directory, "
		    "remote ids are shown as they are");
	ids_set_login(vfs->ids, known, known ? home.uid : 0, known ? home.gid : 0);
}

int attr_ask(struct vfs *vfs, const char *path, struct remote_attr *attr)
{
	if (vfs->config.follow_symlinks) {
		int err = remote_stat(vfs->remote, path, attr);
		if (err != -ENOENT && err != -ELOOP)
			return err;
		/* perhaps a dangling link, which must be seen to be removed */
	}
	return remote_lstat(vfs->remote, path, attr);
}

static int fetch_by_file(struct remote_file *file, struct answer *answer)
{
	int err = remote_fstat(file, &answer->attr);
	remote_file_unref(file);
	return err;
}

/* The open file to ask by: `file`'s, or any when the node has no name. */
static struct remote_file *file_to_ask(struct vfs *vfs, struct node *node,
                                       struct vfs_file *file)
{
	NODES_SCOPE(&vfs->nodes);
	if (file)
		return remote_file_ref(io_handle_remote(file->handle));
	return node_is_unlinked(&vfs->nodes, node) ? file_any(node, 0) : NULL;
}

int attr_fetch(struct vfs *vfs, struct node *node, struct vfs_file *file, struct answer *answer)
{
	struct remote_file *open = file_to_ask(vfs, node, file);
	if (open) {
		answer_begin(vfs, answer, node);
		return fetch_by_file(open, answer);
	}
	PATH_TRY at = {0};
	int err;
	do {
		answer_begin(vfs, answer, node);
		err = path_of(vfs, &at, node, NULL);
		if (!err)
			err = attr_ask(vfs, at.path, &answer->attr);
	} while (path_again(vfs, &at, err));
	if (err != -ENOENT)
		return err;
	/* Removed by someone else, or by us meanwhile, but perhaps open. */
	nodes_lock(&vfs->nodes);
	open = file_any(node, 0);
	nodes_unlock(&vfs->nodes);
	return open ? fetch_by_file(open, answer) : err;
}

bool attr_data_check(struct vfs *vfs, struct node *node, const struct answer *answer)
{
	const struct remote_attr *attr = &answer->attr;
	const unsigned need = ATTR_SIZE | ATTR_TIMES;
	struct io_file *data = file_data(vfs, node);
	if (!data || (attr->valid & need) != need)
		return true;
	const struct io_version version = {attr->size, attr->mtime};
	if (answer->has_mark ? io_file_revalidate_since(data, &version, answer->mark)
	                     : io_file_revalidate(data, &version))
		return true;
	nodes_lock(&vfs->nodes);
	node->pages_stale = true;
	nodes_unlock(&vfs->nodes);
	count(&vfs->counters.changed_files);
	if (vfs->events.data_changed)
		vfs->events.data_changed(vfs->events.context, node);
	return false;
}

/* The name leads to a file of another kind now: the kernel must look it up anew. */
static int kind_changed(struct vfs *vfs, struct node *node)
{
	char name[NAME_LENGTH_MAX + 1];
	struct node *parent = NULL;
	nodes_lock(&vfs->nodes);
	if (!list_empty(&node->names)) {
		struct dentry *dentry = list_entry(node->names.next, struct dentry, of_node);
		memcpy(name, dentry->name, dentry->length + 1);
		parent = dentry->parent;
		node_hold(parent);
		dentry_detach(&vfs->nodes, dentry);
	}
	nodes_unlock(&vfs->nodes);
	if (!parent)
		return -ESTALE;
	if (vfs->events.entry_changed)
		vfs->events.entry_changed(vfs->events.context, parent, name);
	nodes_lock(&vfs->nodes);
	node_drop(&vfs->nodes, parent);
	nodes_unlock(&vfs->nodes);
	return -ESTALE;
}

void attr_vanished(struct vfs *vfs, struct node *node)
{
	NODES_SCOPE(&vfs->nodes);
	node->attr_asked_ns = 0;
	list_for_each (link, &node->names) {
		struct dentry *dentry = list_entry(link, struct dentry, of_node);
		dentry->seen_ns = 0;
		dircache_drop(vfs, dentry->parent);
	}
}

/* We have removed it, and nobody has it open by a handle: the server cannot be asked. Who works
 * in a removed directory is shown what was last known. */
static bool is_beyond_reach(struct vfs *vfs, const struct node *node)
{
	NODES_SCOPE(&vfs->nodes);
	return node_is_unlinked(&vfs->nodes, node) && list_empty(&node->files) &&
	       node->attr.valid;
}

static bool is_fresh(struct vfs *vfs, const struct node *node)
{
	NODES_SCOPE(&vfs->nodes);
	return attr_left(vfs, node, clock_now_ns()) > 0;
}

/*
 * Our writes crossed every answer. The last one was asked for behind the writes that came
 * before the question, so it is shown, but not kept: what is known may be older than they are.
 */
static void show_crossed(struct vfs *vfs, struct node *node, const struct answer *answer)
{
	NODES_SCOPE(&vfs->nodes);
	if (node->changed <= answer->stamp && answer->asked_ns >= node->attr_asked_ns &&
	    !node->foreseen)
		attr_merge(&node->attr, &answer->attr);
}

int attr_refresh(struct vfs *vfs, struct node *node, struct vfs_file *file, bool force)
{
	struct answer answer;
	for (int tries = 0; tries < 3; tries++) {
		if (!force && is_fresh(vfs, node)) {
			count(&vfs->counters.getattrs_cached);
			return 0;
		}
		int err = files_drain(vfs, node);
		if (!err)
			err = attr_fetch(vfs, node, file, &answer);
		if (err == -ENOENT && is_beyond_reach(vfs, node))
			return 0;
		if (err == -ENOENT)
			attr_vanished(vfs, node);
		if (err)
			return err;
		mode_t kind = attr_kind(&answer.attr);
		if (kind && kind != node->kind)
			return kind_changed(vfs, node);
		nodes_lock(&vfs->nodes);
		bool stored = attr_store(vfs, node, &answer);
		nodes_unlock(&vfs->nodes);
		if (stored) {
			attr_data_check(vfs, node, &answer);
			return 0;
		}
	}
	show_crossed(vfs, node, &answer);
	return 0;
}
