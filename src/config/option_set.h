/* What single options do beyond storing a value; used by the table only. */
#ifndef MOORFS_CONFIG_OPTION_SET_H
#define MOORFS_CONFIG_OPTION_SET_H

#include "config/options.h"

option_set_fn option_set_debug, option_set_dcache_timeout, option_set_dcache_stat,
    option_set_keepalive, option_set_connect_timeout, option_set_write_queue,
    option_set_ssh_command, option_set_ssh_protocol, option_set_trace, option_set_uid,
    option_set_gid, option_set_umask, option_set_workaround, option_set_directport,
    option_set_uidfile, option_set_gidfile;

#endif
