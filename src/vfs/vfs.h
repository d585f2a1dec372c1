/*
 * Names and attributes: the tree of nodes the kernel knows, what is cached about them, and one
 * function per file system operation. Knows nothing of FUSE's types; fuse/ turns its requests
 * into these calls.
 *
 * Threads: all functions may be called by any FUSE worker at once and may block on the server
 * (within the worker's remote_scope), save those marked "never blocks".
 * Results: 0 or -errno.
 * Nodes: a node returned through a vfs_entry has been counted as one lookup by the kernel and
 * lives until vfs_forget() has taken all its lookups back; the root always lives.
 */
#ifndef MOORFS_VFS_VFS_H
#define MOORFS_VFS_VFS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "io/io.h"
#include "remote/remote.h"

struct vfs;
struct node;
struct vfs_file; /* one open() */
struct vfs_dir;  /* one opendir() */

enum vfs_idmap { VFS_IDMAP_NONE, VFS_IDMAP_USER, VFS_IDMAP_FILE };
enum vfs_nomap { VFS_NOMAP_IGNORE, VFS_NOMAP_ERROR };

struct vfs_config {
	const char *root;       /* remote directory, as realpath gave it */
	const char *mountpoint; /* absolute local path, for symlink rewriting */

	/* Time-outs. A fixed one (>= 0, ns) replaces the adaptive range min..max. */
	int64_t attr_timeout_ns, entry_timeout_ns, negative_timeout_ns; /* -1: adaptive */
	uint64_t attr_min_ns, attr_max_ns;                              /* 3 s, 60 s */
	bool dir_cache;           /* dir_cache=no: listings are not kept */
	uint64_t dir_timeout_ns;  /* 0: as attributes */
	uint64_t dir_cache_bytes; /* memory for kept listings */
	bool prefetch;            /* small files and listings are fetched ahead */
	uint64_t prefetch_bytes;  /* memory for files fetched ahead, part of io's budget */

	enum vfs_idmap idmap;
	enum vfs_nomap nomap;
	const char *uid_file,
	    *gid_file;   /* idmap=file: lines "name:remote-id" as sshfs has them */
	uid_t local_uid; /* of the mounting user, for idmap=user */
	gid_t local_gid;
	bool set_uid, set_gid,
	    set_umask; /* uid=, gid=, umask=: shown instead of the server's */
	uid_t uid;
	gid_t gid;
	mode_t umask;

	bool contain_symlinks;   /* a target that leaves the mount is refused */
	bool transform_symlinks; /* absolute targets become relative */
	bool follow_symlinks;    /* the server resolves them: no symlinks are seen */
	bool disable_hardlink;
	bool async;                   /* names and contents may reach the server later */
	bool direct_io, kernel_cache; /* hints for vfs_open_info */
};

/* Tells the layer above that the kernel's copy is stale. Called from any thread, never with a
 * lock of vfs held; must not block (fuse/ queues it for the housekeeping thread). */
struct vfs_events {
	void (*data_changed)(void *context, struct node *node);
	void (*entry_changed)(void *context, struct node *parent, const char *name);
	void *context;
};

struct vfs_entry {
	struct node *node;       /* NULL: a negative entry */
	struct stat st;          /* st_ino is stable while mounted */
	uint64_t entry_valid_ns; /* how long the kernel may keep the name */
	uint64_t attr_valid_ns;  /* how long it may keep the attributes */
};

struct vfs_open_info {
	struct vfs_file *file;
	bool keep_cache;   /* the kernel's pages are of this version */
	bool attr_changed; /* size or mtime are not what the kernel was told last */
	bool direct_io;
};

/* Checks the configuration (id files are read here). NULL with the failure filled. */
struct vfs *vfs_new(struct remote *remote, struct io *io, const struct vfs_config *config,
                    struct failure *failure);
void vfs_set_events(struct vfs *vfs, const struct vfs_events *events);
/* The kernel has let go of everything (unmounted). */
void vfs_free(struct vfs *vfs);
void vfs_report(struct vfs *vfs, struct bytes *out);

struct node *vfs_root(struct vfs *vfs);

/* ---- names ---- */
/* -ENOENT with entry->node NULL and entry_valid_ns set may be cached by the kernel. */
int vfs_lookup(struct vfs *vfs, struct node *parent, const char *name, struct vfs_entry *entry);
/* Never blocks. */
void vfs_forget(struct vfs *vfs, struct node *node, uint64_t lookups);
int vfs_readlink(struct vfs *vfs, struct node *node, char **target); /* malloc'ed */
int vfs_symlink(struct vfs *vfs, const char *target, struct node *parent, const char *name,
                struct vfs_entry *entry);
int vfs_link(struct vfs *vfs, struct node *node, struct node *new_parent, const char *new_name,
             struct vfs_entry *entry);
int vfs_mkdir(struct vfs *vfs, struct node *parent, const char *name, mode_t mode,
              struct vfs_entry *entry);
int vfs_mknod(struct vfs *vfs, struct node *parent, const char *name, mode_t mode,
              struct vfs_entry *entry); /* regular files; others -EPERM */
int vfs_unlink(struct vfs *vfs, struct node *parent, const char *name);
int vfs_rmdir(struct vfs *vfs, struct node *parent, const char *name);
/* flags: RENAME_NOREPLACE; RENAME_EXCHANGE and others -EINVAL. */
int vfs_rename(struct vfs *vfs, struct node *parent, const char *name, struct node *new_parent,
               const char *new_name, unsigned flags);

/* ---- attributes ---- */
enum {
	VFS_SET_MODE = 1 << 0,
	VFS_SET_UID = 1 << 1,
	VFS_SET_GID = 1 << 2,
	VFS_SET_SIZE = 1 << 3,
	VFS_SET_ATIME = 1 << 4,
	VFS_SET_MTIME = 1 << 5,
	VFS_SET_ATIME_NOW = 1 << 6,
	VFS_SET_MTIME_NOW = 1 << 7,
};
/* `file` may be NULL. A file with queued writes is drained first. */
int vfs_getattr(struct vfs *vfs, struct node *node, struct vfs_file *file, struct stat *st,
                uint64_t *valid_ns);
/* SFTP sets atime and mtime together: the other one is sent unchanged (UTIME_OMIT). */
int vfs_setattr(struct vfs *vfs, struct node *node, struct vfs_file *file, unsigned which,
                const struct stat *values, struct stat *st, uint64_t *valid_ns);
int vfs_access(struct vfs *vfs, struct node *node, int mask);
int vfs_statfs(struct vfs *vfs, struct node *node, struct statvfs *out);

/* ---- open files ---- */
/* `flags` are open(2)'s. Revalidates the file (contract, close-to-open). */
int vfs_open(struct vfs *vfs, struct node *node, int flags, struct vfs_open_info *info);
int vfs_create(struct vfs *vfs, struct node *parent, const char *name, mode_t mode, int flags,
               struct vfs_entry *entry, struct vfs_open_info *info);
/* Never block; see io.h for the completions. */
void vfs_read(struct vfs *vfs, struct vfs_file *file, uint64_t offset, size_t length,
              io_read_fn *done, void *context);
void vfs_read_cancel(struct vfs *vfs, struct vfs_file *file, void *context);
/* `flags`: the descriptor's present open flags (O_APPEND may have been set later). */
void vfs_write(struct vfs *vfs, struct vfs_file *file, uint64_t offset, const void *data,
               size_t length, int flags, io_write_fn *done, void *context);
int vfs_flush(struct vfs *vfs, struct vfs_file *file);
int vfs_fsync(struct vfs *vfs, struct vfs_file *file);
/* Frees the vfs_file. */
void vfs_release(struct vfs *vfs, struct vfs_file *file);
int vfs_copy_range(struct vfs *vfs, struct vfs_file *from, uint64_t from_offset,
                   struct vfs_file *to, uint64_t to_offset, uint64_t length, uint64_t *copied);
int vfs_lseek(struct vfs *vfs, struct vfs_file *file, int64_t offset, int whence,
              int64_t *result); /* SEEK_DATA and SEEK_HOLE: the file is one extent of data */

/* ---- directories ---- */
/* *keep_cache: the kernel's cached listing is still right. */
int vfs_opendir(struct vfs *vfs, struct node *node, struct vfs_dir **dir, bool *keep_cache);
/*
 * One name. With `plus`, entry->node is set and, when emit returns 0, counts as looked up; it
 * is NULL for ".", ".." and names whose attributes must be asked for: then, as without `plus`,
 * only st_ino and the type in st_mode (0: not known) are filled. `next_offset` is what the
 * kernel gives to go on behind this name. Nonzero: the buffer is full, the name was not taken.
 */
typedef int vfs_emit_fn(void *context, const char *name, const struct vfs_entry *entry,
                        uint64_t next_offset);
/* Emits names from the offset (0: start) until the buffer is full or the end. */
int vfs_readdir(struct vfs *vfs, struct vfs_dir *dir, uint64_t offset, bool plus,
                vfs_emit_fn *emit, void *context);
void vfs_releasedir(struct vfs *vfs, struct vfs_dir *dir);

#endif
