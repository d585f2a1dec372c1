/* libfuse's low-level interface, in the version that this folder is written for (3.10 and
 * later). */
#ifndef MOORFS_FUSE_LOWLEVEL_H
#define MOORFS_FUSE_LOWLEVEL_H

#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>

#endif
