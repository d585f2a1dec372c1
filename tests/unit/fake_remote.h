/*
 * A server in memory behind struct remote, for unit tests of vfs and io: files, directories and
 * symlinks, with delays and faults that the test sets, and a record of every op. Time is real
 * (clock_now_ns); delays are served by one thread, which runs the completions. It answers as
 * OpenSSH's sftp-server does: -EREMOTEIO for most failures, whole seconds, no link counts, "."
 * and ".." in listings. Programs link $(FAKE_REMOTE) of tests/unit/local.mk and libremote.a.
 *
 * All capabilities are on and requests are up to 256 KiB; tests may change remote->caps.
 */
#ifndef MOORFS_TESTS_FAKE_REMOTE_H
#define MOORFS_TESTS_FAKE_REMOTE_H

#include "remote/remote.h"

struct fake_remote;

struct fake_remote *fake_remote_new(void);
void fake_remote_free(struct fake_remote *fake);
struct remote *fake_remote_remote(struct fake_remote *fake);

/* Contents made or changed behind the mount's back; mtime is whole seconds. */
void fake_put_file(struct fake_remote *fake, const char *path, const void *data, size_t length,
                   time_t mtime);
void fake_put_dir(struct fake_remote *fake, const char *path);
void fake_put_symlink(struct fake_remote *fake, const char *path, const char *target);
void fake_remove(struct fake_remote *fake, const char *path);
/* A malloc'ed copy of the file's contents, NULL when it does not exist. */
char *fake_get_file(struct fake_remote *fake, const char *path, size_t *length);
bool fake_exists(struct fake_remote *fake, const char *path);

/* Every op of this kind takes at least so long from now on. */
void fake_set_delay(struct fake_remote *fake, enum op_kind kind, uint64_t delay_ns);
/* The op of this kind that comes after `skip` others fails with err, once. */
void fake_fail_next(struct fake_remote *fake, enum op_kind kind, unsigned skip, int err);
/* While held, ops of the kind are queued and not executed. */
void fake_hold(struct fake_remote *fake, enum op_kind kind, bool held);
/* Largest number of ops of the kind that were in flight at once; how many there were. */
unsigned fake_peak(struct fake_remote *fake, enum op_kind kind);
unsigned fake_count(struct fake_remote *fake, enum op_kind kind);
/* Blocks until `count` ops of the kind have arrived in all; fails the test after 10 s. */
void fake_wait_count(struct fake_remote *fake, enum op_kind kind, unsigned count);
uint64_t fake_bytes_read(struct fake_remote *fake);
/* Length of the largest op of the kind (reads and writes). */
size_t fake_largest(struct fake_remote *fake, enum op_kind kind);
/* The file system is full: writes fail as a server says it, statfs shows no free blocks. */
void fake_set_full(struct fake_remote *fake, bool full);
/* What remote->link() tells; all zero at first. */
void fake_set_link(struct fake_remote *fake, const struct remote_link *link);
void fake_reset_counts(struct fake_remote *fake);

#endif
