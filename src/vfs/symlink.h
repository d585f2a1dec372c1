/*
 * What may be shown of a symlink's target. Pure.
 *
 * The kernel resolves a target on this machine, so what a server answers could lead a program
 * out of the mount. Judged by the text alone, a target is surely inside when it is relative,
 * climbs (".." in front only) no higher than the mount's root, and has no ".." behind a name:
 * names may be symlinks, but those have been judged themselves, while ".." behind one leads to
 * the parent of wherever it points. Anything else is put to the server (realpath), and what it
 * answers is judged again.
 */
#ifndef MOORFS_VFS_SYMLINK_H
#define MOORFS_VFS_SYMLINK_H

#include <stdbool.h>

struct symlink_policy {
	const char *root;       /* remote directory that is mounted, absolute */
	const char *mountpoint; /* where it is mounted here; NULL when not known */
	bool contain;           /* only targets inside the mount are shown */
	bool transform;         /* absolute targets inside the root become relative */
};

enum symlink_verdict {
	SYMLINK_KEEP,    /* show the target as it is */
	SYMLINK_REWRITE, /* show *text instead */
	SYMLINK_ASK,     /* realpath of *text is needed: see symlink_settle() */
	SYMLINK_REFUSE,  /* leads out of the mount */
	SYMLINK_NOMEM,
};

/*
 * `dir` is the directory of the link relative to the root ("" for the root itself, "a/b").
 * *text is malloc'ed with REWRITE and ASK; with ASK *rest points into `target`, at what follows
 * the part that is to be resolved.
 */
enum symlink_verdict symlink_judge(const struct symlink_policy *policy, const char *dir,
                                   const char *target, char **text, const char **rest);

/* The second half: `resolved` is the server's realpath. REWRITE, REFUSE or NOMEM. */
enum symlink_verdict symlink_settle(const struct symlink_policy *policy, const char *dir,
                                    const char *resolved, const char *rest, char **text);

#endif
