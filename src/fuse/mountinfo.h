/* Lines of /proc/PID/mountinfo. */
#ifndef MOORFS_FUSE_MOUNTINFO_H
#define MOORFS_FUSE_MOUNTINFO_H

#include <stdbool.h>

struct mountinfo {
	char *mount_point; /* octal escapes undone */
	char *fstype;      /* "fuse.moorfs" */
	char *source;
};

/*
 * Parses one line (a newline at its end is allowed), in place: the fields point into it. False
 * when it is not such a line.
 */
bool mountinfo_parse(char *line, struct mountinfo *out);

/*
 * The topmost mount whose mount point is `path` (absolute, without symlinks). True when there
 * is one; then the strings of *out are malloc'ed, release them with mountinfo_release().
 */
bool mountinfo_find(const char *path, struct mountinfo *out);
void mountinfo_release(struct mountinfo *info);

#endif
