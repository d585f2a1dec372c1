/*
 * Users and groups: remote ids to what is shown here, and back for chown.
 *
 *   idmap=none  ids are shown as the server has them
 *   idmap=user  the login's own remote ids are shown as the mounting user's; they are those of
 *               the owner of the remote home directory, which ids_set_login() tells
 *   idmap=file  by the lines "name:remote-id" of uidfile and gidfile, where name is a local
 *               user or group (or a number); nomap=error makes ids without a line fail
 *
 * uid= and gid= replace what is shown, after the mapping; chown is mapped back without them.
 * Any thread may call once it is made.
 */
#ifndef MOORFS_VFS_IDS_H
#define MOORFS_VFS_IDS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "vfs/vfs.h"

struct ids;

/* Reads the files. NULL with the failure (FAILURE_USAGE) naming file and line. */
struct ids *ids_new(const struct vfs_config *config, struct failure *failure);
void ids_free(struct ids *ids);

/* True when idmap=user and ids_set_login() is still to be called. */
bool ids_need_login(const struct ids *ids);
/* `known` false: the server does not tell, ids are shown as they are from now on. */
void ids_set_login(struct ids *ids, bool known, uint32_t uid, uint32_t gid);
/* True when the remote user is known to be the login (and not root, who may do anything). */
bool ids_is_login(const struct ids *ids, uint32_t uid);

/* Shown ids. 0, or -EPERM when nomap=error and there is no line. */
int ids_show(const struct ids *ids, uint32_t remote_uid, uint32_t remote_gid, uid_t *uid,
             gid_t *gid);
/* For chown. 0, or -EPERM when nomap=error and there is no line. */
int ids_remote_uid(const struct ids *ids, uid_t uid, uint32_t *remote_uid);
int ids_remote_gid(const struct ids *ids, gid_t gid, uint32_t *remote_gid);

#endif
