/*
 * The words that mount(8) hands to a helper, and those that moorfs is started with. Pure.
 *
 *   mount.moorfs SPEC DIR [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]
 */
#ifndef MOORFS_MOUNT_MOUNT_WORDS_H
#define MOORFS_MOUNT_MOUNT_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum { MOUNT_WORDS_MAX = 6 };

struct mount_words {
	char *spec, *dir;
	const char *name_space; /* -N, or NULL */
	bool fake, verbose, sloppy;
	char *options; /* for moorfs, comma-separated, without setuid=; malloc'ed */
	char *setuid;  /* user to run moorfs as, or NULL; malloc'ed */
	char *argv[MOUNT_WORDS_MAX]; /* moorfs, spec, dir and -o options; the strings above */
};

/* 0, or -1 with the message in `error`. Call mount_words_release() in either case. */
int mount_words_parse(struct mount_words *words, int argc, char **argv, char *error,
                      size_t size);
void mount_words_release(struct mount_words *words);

#endif
