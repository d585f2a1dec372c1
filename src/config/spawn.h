/* Runs a program without a shell and collects what it says. */
#ifndef MOORFS_CONFIG_SPAWN_H
#define MOORFS_CONFIG_SPAWN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { SPAWN_OUTPUT_MAX = 1 << 20 };

/*
 * Runs argv[0] (searched in PATH) with standard input from /dev/null and waits for its end, up
 * to `timeout_ns` or until *stop is true (NULL: never). `err` NULL: its standard error is ours.
 * 0 and *status as of waitpid(2); or -errno: -ENOENT no such program, -ETIMEDOUT, -ECANCELED,
 * -EMSGSIZE it said more than SPAWN_OUTPUT_MAX. The program is gone in every case. Blocks; any
 * thread.
 */
int spawn_capture(char *const argv[], uint64_t timeout_ns, const _Atomic bool *stop,
                  struct bytes *out, struct bytes *err, int *status);

#endif
