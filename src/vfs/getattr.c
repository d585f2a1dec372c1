/* The operations that tell attributes. */
#include <errno.h>
#include <string.h>

#include "vfs/internal.h"

int vfs_getattr(struct vfs *vfs, struct node *node, struct vfs_file *file, struct stat *st,
                uint64_t *valid_ns)
{
	count(&vfs->counters.getattrs);
	attr_learn_login(vfs);
	int err = attr_refresh(vfs, node, file, false);
	if (err)
		return err;
	NODES_SCOPE(&vfs->nodes);
	*valid_ns = attr_left(vfs, node, clock_now_ns());
	return attr_show(vfs, node, st);
}

int vfs_access(struct vfs *vfs, struct node *node, int mask)
{
	struct stat st;
	uint64_t valid_ns;
	int err = vfs_getattr(vfs, node, NULL, &st, &valid_ns);
	nodes_lock(&vfs->nodes);
	node->shown = false; /* the kernel gets only the verdict */
	nodes_unlock(&vfs->nodes);
	if (err || mask == F_OK)
		return err;
	if ((mask & X_OK) && !S_ISDIR(st.st_mode) && !(st.st_mode & 0111))
		return -EACCES;
	NODES_SCOPE(&vfs->nodes);
	/* Only the login's own files are decided by bits: of others' the server knows more. */
	if (!(node->attr.valid & ATTR_OWNER) || !(node->attr.valid & ATTR_MODE) ||
	    !ids_is_login(vfs->ids, node->attr.uid))
		return 0;
	unsigned granted = (node->attr.mode >> 6) & 7;
	return ((unsigned)mask & 7 & ~granted) ? -EACCES : 0;
}

/* What to show of a server that does not tell: plenty of everything. */
static const struct remote_statfs untold = {.bsize = 4096,
                                            .frsize = 4096,
                                            .blocks = UINT64_C(1) << 28,
                                            .bfree = UINT64_C(1) << 28,
                                            .bavail = UINT64_C(1) << 28,
                                            .files = 1000000000,
                                            .ffree = 1000000000,
                                            .favail = 1000000000,
                                            .namemax = NAME_LENGTH_MAX};

int vfs_statfs(struct vfs *vfs, struct node *node, struct statvfs *out)
{
	PATH_TRY at = {0};
	struct remote_statfs fs;
	int err;
	do {
		err = path_of(vfs, &at, node, NULL);
		if (err == -ENOENT) /* unlinked: the root's file system is the best guess */
			err = path_of(vfs, &at, vfs->nodes.root, NULL);
		if (!err)
			err = remote_statfs(vfs->remote, at.path, &fs);
	} while (path_again(vfs, &at, err));
	if (err == -EOPNOTSUPP)
		fs = untold;
	else if (err)
		return err;
	memset(out, 0, sizeof(*out));
	out->f_bsize = fs.bsize ? fs.bsize : untold.bsize;
	out->f_frsize = fs.frsize ? fs.frsize : out->f_bsize;
	out->f_blocks = fs.blocks;
	out->f_bfree = fs.bfree;
	out->f_bavail = fs.bavail;
	out->f_files = fs.files;
	out->f_ffree = fs.ffree;
	out->f_favail = fs.favail;
	out->f_namemax = MIN(fs.namemax ? fs.namemax : untold.namemax, untold.namemax);
	return 0;
}
