/*
 * What the tests of vfs/ share: a fake server with a mount on it whose root is /srv/share,
 * calls that assert their success, reads and writes that wait, and a count of the events. Tests
 * look into struct vfs where the outside does not show what they check.
 */
#ifndef MOORFS_TESTS_VFS_HARNESS_H
#define MOORFS_TESTS_VFS_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fake_remote.h"
#include "vfs/internal.h"

#define ROOT "/srv/share"

struct harness {
	struct fake_remote *fake;
	struct remote *remote;
	struct io *io;
	struct vfs *vfs;
	struct node *root;
	atomic_uint data_events, entry_events;
};

int harness_setup(void **state);
int harness_teardown(void **state);
/* As the mount has it by default, ids unmapped. */
struct vfs_config harness_config(void);
/* Mounts anew with this configuration. */
void harness_configure(struct harness *harness, const struct vfs_config *config);

/* Looks the name up and asserts the result; `look` returns the node, counted once. */
struct node *look(struct harness *harness, struct node *parent, const char *name);
void look_fails(struct harness *harness, struct node *parent, const char *name, int err);
void forget(struct harness *harness, struct node *node);
struct node *make_dir(struct harness *harness, struct node *parent, const char *name);
struct stat stat_of(struct harness *harness, struct node *node);
/* The number of requests of the kind since the last fake_reset_counts(). */
unsigned asked(struct harness *harness, enum op_kind kind);
size_t nodes_known(struct harness *harness);

struct vfs_file *open_file(struct harness *harness, struct node *node, int flags);
/* Creates the file; *node is counted once. */
struct vfs_file *create_file(struct harness *harness, struct node *parent, const char *name,
                             struct node **node);
void close_file(struct harness *harness, struct vfs_file *file);
int write_text(struct harness *harness, struct vfs_file *file, uint64_t offset,
               const char *text, int flags);
/* Asserts that the file holds the text, as read through this descriptor. */
void assert_reads(struct harness *harness, struct vfs_file *file, const char *text);
/* Asserts what the server has. */
void assert_server_has(struct harness *harness, const char *path, const char *text);

#endif
