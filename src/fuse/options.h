/* The options that libfuse and the kernel are given for a mount. Pure. */
#ifndef MOORFS_FUSE_OPTIONS_H
#define MOORFS_FUSE_OPTIONS_H

#include "base/bytes.h"
#include "config/config.h"

/*
 * Adds the comma-separated list that follows -o. The source and the options handed through are
 * escaped where they hold commas or backslashes. allow_other and allow_root bring
 * default_permissions: without it every user could do what the mounting user may.
 */
void mount_options(const struct config *config, struct bytes *out);

#endif
