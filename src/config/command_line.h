/* The words of the command line: flags, -o lists, the remote directory and the mountpoint. */
#ifndef MOORFS_CONFIG_COMMAND_LINE_H
#define MOORFS_CONFIG_COMMAND_LINE_H

#include "config/config.h"
#include "config/options.h"

/*
 * Fills the configuration from argv, without looking at the remote directory's form. Flags may
 * stand anywhere; "--" ends them. 0, or -1 with the failure. Stops at -h and -V.
 */
int command_line_parse(struct config *config, struct options_given *given, int argc,
                       char **argv, struct failure *failure);

#endif
