/* Values of options in the fields of the configuration that the table names. */
#ifndef MOORFS_CONFIG_OPTION_STORE_H
#define MOORFS_CONFIG_OPTION_STORE_H

#include "config/options.h"

/*
 * Parses the value by the option's kind, checks its range and stores it. `value` is not NULL
 * where the kind needs one; `negated`: the switch was written with "no". 0, or -1 and the
 * failure.
 */
int option_store(struct config *config, const struct option *option, const char *value,
                 bool negated, struct failure *failure);

/* The path as seen from where moorfs was started, in the arena; NULL when memory is out. */
char *option_absolute_path(struct config *config, const char *path);

#endif
