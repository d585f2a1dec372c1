/*
 * The one table of -o options. Parsing, --help and the test that the manual names every option
 * are all made from it.
 */
#ifndef MOORFS_CONFIG_OPTIONS_H
#define MOORFS_CONFIG_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/failure.h"

struct config;
struct option;

enum option_kind {
	OPTION_FLAG, /* bool; alone or =yes|no; "no" or "no_" before the name turns it round */
	OPTION_STRING,  /* char * */
	OPTION_PATH,    /* char *; made absolute */
	OPTION_NUMBER,  /* unsigned or uid_t */
	OPTION_OCTAL,   /* mode_t */
	OPTION_SECONDS, /* ns in 64 bits */
	OPTION_SIZE,    /* bytes in 32 or 64 bits */
	OPTION_ENUM,    /* an enum, by `words` */
	OPTION_MOUNT,   /* a flag of mount(8) that libfuse knows: passed on */
	OPTION_CUSTOM,  /* `set` does everything */
};

enum option_status {
	OPTION_WORKS,
	OPTION_MOOT, /* accepted without effect; `help` says why; `set` may check the value */
	OPTION_REFUSED, /* known, and an error; `help` says what to do instead */
};

enum option_group {
	OPTION_GROUP_CONNECTION,
	OPTION_GROUP_AUTHENTICATION,
	OPTION_GROUP_CACHE,
	OPTION_GROUP_IO,
	OPTION_GROUP_LINKS,
	OPTION_GROUP_IDS,
	OPTION_GROUP_MOUNT,
	OPTION_GROUP_FUSE,
	OPTION_GROUP_LOG,
	OPTION_GROUPS
};

struct option_word {
	const char *word; /* NULL ends the list */
	unsigned value;
};

/* Returns 0, or -1 with the failure filled. `value` is NULL when there was no '='. */
typedef int option_set_fn(struct config *config, const struct option *option, const char *value,
                          struct failure *failure);

struct option {
	const char *name;
	enum option_group group;
	enum option_kind kind;
	enum option_status status;
	bool on; /* OPTION_FLAG: what the bare name sets */
	bool
	    quiet_default; /* --help does not print the default: it is no value of the option */
	const char *argument; /* what --help calls the value; NULL: takes none */
	const char *help;
	size_t offset, size; /* of the field in struct config; size 0: none */
	uint64_t min, max;
	const struct option_word *words;
	option_set_fn *set; /* called after the field is stored, or alone */
};

/* The table; NULL at the end. */
const struct option *option_at(size_t index);
enum { OPTIONS_MAX = 256 }; /* the table is never longer */

/* Which options a command line has given, by index in the table. */
struct options_given {
	bool given[OPTIONS_MAX];
};
bool options_was_given(const struct options_given *given, const char *name);

/*
 * Takes a "name", "name=value" or ssh_config "Keyword=value". 0, or -1 and the failure, which
 * names the option, the value and what is allowed.
 */
int options_apply(struct config *config, struct options_given *given, const char *text,
                  struct failure *failure);

/*
 * Takes a comma-separated list as -o has it. A comma inside a value is written "\,"; text in
 * double quotes is not split either.
 */
int options_apply_list(struct config *config, struct options_given *given, const char *list,
                       struct failure *failure);

/* A keyword of ssh_config with its value, by flag (-p) or -o. */
int options_apply_keyword(struct config *config, const char *name, const char *value,
                          struct failure *failure);

/* Rules over several options; fills what follows from others. Called once, at the end. */
int options_check(struct config *config, const struct options_given *given,
                  struct failure *failure);

/* The default as --help and the manual write it; "" when there is none to show. `defaults` is a
 * configuration as config_set_defaults() makes it. Returns `out`. */
char *option_format_default(const struct option *option, const struct config *defaults,
                            char *out, size_t size);

/* The option or keyword whose name is nearest, or NULL when none is near. */
const char *option_nearest(const char *name);

/* The options part of --help. */
void options_print_help(FILE *out, const struct config *defaults);

#endif
