#include "vfs/ids.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/failure.h"
#include "base/map.h"

/* One line of a file, in both directions. */
struct pair {
	uint32_t local, remote;
};

struct table {
	struct pair *pairs;
	size_t count;
	struct map by_local, by_remote;
};

enum login { LOGIN_UNKNOWN, LOGIN_KNOWN, LOGIN_UNTOLD };

struct ids {
	enum vfs_idmap idmap;
	enum vfs_nomap nomap;
	bool set_uid, set_gid;
	uid_t uid, local_uid;
	gid_t gid, local_gid;
	struct table users, groups;
	_Atomic(enum login) login; /* the two below are valid when LOGIN_KNOWN */
	atomic_uint_least32_t login_uid, login_gid;
};

/* What the two files differ in. */
struct kind {
	const char *option, *what;
	bool (*lookup)(const char *name, uint32_t *id);
};

static bool find_user(const char *name, uint32_t *id)
{
	struct passwd entry, *found = NULL;
	char buffer[16384];
	if (getpwnam_r(name, &entry, buffer, sizeof(buffer), &found) != 0 || !found)
		return false;
	*id = found->pw_uid;
	return true;
}

static bool find_group(const char *name, uint32_t *id)
{
	struct group entry, *found = NULL;
	char buffer[65536];
	if (getgrnam_r(name, &entry, buffer, sizeof(buffer), &found) != 0 || !found)
		return false;
	*id = found->gr_gid;
	return true;
}

static const struct kind users_kind = {"uidfile", "user", find_user};
static const struct kind groups_kind = {"gidfile", "group", find_group};

static bool parse_number(const char *text, uint32_t *value)
{
	if (!*text || strspn(text, "0123456789") != strlen(text))
		return false;
	errno = 0;
	unsigned long number = strtoul(text, NULL, 10);
	if (errno || number >= UINT32_MAX) /* the last value means "no id" to the system */
		return false;
	*value = (uint32_t)number;
	return true;
}

static bool match_local(const void *entry, const void *key)
{
	return ((const struct pair *)entry)->local == *(const uint32_t *)key;
}

static bool match_remote(const void *entry, const void *key)
{
	return ((const struct pair *)entry)->remote == *(const uint32_t *)key;
}

static const struct pair *by_local(const struct table *table, uint32_t id)
{
	return map_find(&table->by_local, map_hash_int(id), match_local, &id);
}

static const struct pair *by_remote(const struct table *table, uint32_t id)
{
	return map_find(&table->by_remote, map_hash_int(id), match_remote, &id);
}

static char *trim(char *text)
{
	static const char blank[] = " \t\r\n";
	text += strspn(text, blank);
	size_t length = strlen(text);
	while (length && strchr(blank, text[length - 1]))
		text[--length] = '\0';
	return text;
}

static bool append(struct table *table, struct pair pair)
{
	struct pair *grown = reallocarray(table->pairs, table->count + 1, sizeof(*grown));
	if (!grown)
		return false;
	table->pairs = grown;
	table->pairs[table->count++] = pair;
	return true;
}

static int parse_line(struct table *table, const struct kind *kind, const char *path,
                      unsigned line_number, char *line, struct failure *failure)
{
	line = trim(line);
	if (!*line || *line == '#')
		return 0;
	char *colon = strchr(line, ':');
	struct pair pair;
	if (!colon)
		return failure_set(failure, FAILURE_USAGE,
		                   "%s %s, line %u: no colon in '%s', want name:remote-id",
		                   kind->option, path, line_number, line);
	*colon = '\0';
	const char *name = trim(line), *number = trim(colon + 1);
	if (!parse_number(number, &pair.remote))
		return failure_set(failure, FAILURE_USAGE,
		                   "%s %s, line %u: '%s' is not a remote id, want a number",
		                   kind->option, path, line_number, number);
	if (!*name || (!kind->lookup(name, &pair.local) && !parse_number(name, &pair.local)))
		return failure_set(failure, FAILURE_USAGE,
		                   "%s %s, line %u: there is no local %s '%s'", kind->option,
		                   path, line_number, kind->what, name);
	if (!append(table, pair))
		return failure_set(failure, FAILURE_INTERNAL, "out of memory");
	return 0;
}

/* The first line of an id wins, as in sshfs. */
static int index_table(struct table *table, struct failure *failure)
{
	for (size_t i = 0; i < table->count; i++) {
		struct pair *pair = &table->pairs[i];
		if (!by_local(table, pair->local) &&
		    !map_add(&table->by_local, map_hash_int(pair->local), pair))
			return failure_set(failure, FAILURE_INTERNAL, "out of memory");
		if (!by_remote(table, pair->remote) &&
		    !map_add(&table->by_remote, map_hash_int(pair->remote), pair))
			return failure_set(failure, FAILURE_INTERNAL, "out of memory");
	}
	return 0;
}

static int read_file(struct table *table, const struct kind *kind, const char *path,
                     struct failure *failure)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return failure_set(failure, FAILURE_USAGE, "cannot read %s %s: %s",
		                   kind->option, path, strerror(errno));
	char *line = NULL;
	size_t size = 0;
	int result = 0;
	errno = 0;
	for (unsigned number = 1; result == 0 && getline(&line, &size, file) >= 0; number++)
		result = parse_line(table, kind, path, number, line, failure);
	if (result == 0 && ferror(file))
		result = failure_set(failure, FAILURE_USAGE, "cannot read %s %s: %s",
		                     kind->option, path, strerror(errno));
	free(line);
	fclose(file);
	return result == 0 ? index_table(table, failure) : result;
}

static int read_files(struct ids *ids, const struct vfs_config *config, struct failure *failure)
{
	if (!config->uid_file && !config->gid_file)
		return failure_set(failure, FAILURE_USAGE,
		                   "idmap=file needs uidfile= or gidfile=");
	if (config->uid_file &&
	    read_file(&ids->users, &users_kind, config->uid_file, failure) < 0)
		return -1;
	if (config->gid_file &&
	    read_file(&ids->groups, &groups_kind, config->gid_file, failure) < 0)
		return -1;
	return 0;
}

struct ids *ids_new(const struct vfs_config *config, struct failure *failure)
{
	struct ids *ids = calloc(1, sizeof(*ids));
	if (!ids) {
		failure_set(failure, FAILURE_INTERNAL, "out of memory");
		return NULL;
	}
	ids->idmap = config->idmap;
	ids->nomap = config->nomap;
	ids->set_uid = config->set_uid;
	ids->set_gid = config->set_gid;
	ids->uid = config->uid;
	ids->gid = config->gid;
	ids->local_uid = config->local_uid;
	ids->local_gid = config->local_gid;
	if (ids->idmap == VFS_IDMAP_FILE && read_files(ids, config, failure) < 0) {
		ids_free(ids);
		return NULL;
	}
	return ids;
}

static void table_release(struct table *table)
{
	map_release(&table->by_local);
	map_release(&table->by_remote);
	free(table->pairs);
}

void ids_free(struct ids *ids)
{
	if (!ids)
		return;
	table_release(&ids->users);
	table_release(&ids->groups);
	free(ids);
}

bool ids_need_login(const struct ids *ids)
{
	return ids->idmap == VFS_IDMAP_USER && atomic_load(&ids->login) == LOGIN_UNKNOWN;
}

void ids_set_login(struct ids *ids, bool known, uint32_t uid, uint32_t gid)
{
	atomic_store(&ids->login_uid, uid);
	atomic_store(&ids->login_gid, gid);
	atomic_store(&ids->login, known ? LOGIN_KNOWN : LOGIN_UNTOLD);
}

bool ids_is_login(const struct ids *ids, uint32_t uid)
{
	return atomic_load(&ids->login) == LOGIN_KNOWN && uid != 0 &&
	       uid == atomic_load(&ids->login_uid);
}

/* A remote id as it is here. `login_id` and `local_id` are the pair of idmap=user. */
static int to_local(const struct ids *ids, const struct table *table, uint32_t login_id,
                    uint32_t local_id, uint32_t remote, uint32_t *local)
{
	*local = remote;
	if (ids->idmap == VFS_IDMAP_USER && atomic_load(&ids->login) == LOGIN_KNOWN) {
		if (remote == login_id)
			*local = local_id;
	} else if (ids->idmap == VFS_IDMAP_FILE) {
		const struct pair *pair = by_remote(table, remote);
		if (pair)
			*local = pair->local;
		else if (ids->nomap == VFS_NOMAP_ERROR)
			return -EPERM;
	}
	return 0;
}

static int to_remote(const struct ids *ids, const struct table *table, uint32_t login_id,
                     uint32_t local_id, uint32_t local, uint32_t *remote)
{
	*remote = local;
	if (ids->idmap == VFS_IDMAP_USER && atomic_load(&ids->login) == LOGIN_KNOWN) {
		if (local == local_id)
			*remote = login_id;
	} else if (ids->idmap == VFS_IDMAP_FILE) {
		const struct pair *pair = by_local(table, local);
		if (pair)
			*remote = pair->remote;
		else if (ids->nomap == VFS_NOMAP_ERROR)
			return -EPERM;
	}
	return 0;
}

int ids_show(const struct ids *ids, uint32_t remote_uid, uint32_t remote_gid, uid_t *uid,
             gid_t *gid)
{
	*uid = ids->uid;
	*gid = ids->gid;
	int err = 0;
	if (!ids->set_uid)
		err = to_local(ids, &ids->users, atomic_load(&ids->login_uid), ids->local_uid,
		               remote_uid, uid);
	if (!err && !ids->set_gid)
		err = to_local(ids, &ids->groups, atomic_load(&ids->login_gid), ids->local_gid,
		               remote_gid, gid);
	return err;
}

int ids_remote_uid(const struct ids *ids, uid_t uid, uint32_t *remote_uid)
{
	return to_remote(ids, &ids->users, atomic_load(&ids->login_uid), ids->local_uid, uid,
	                 remote_uid);
}

int ids_remote_gid(const struct ids *ids, gid_t gid, uint32_t *remote_gid)
{
	return to_remote(ids, &ids->groups, atomic_load(&ids->login_gid), ids->local_gid, gid,
	                 remote_gid);
}
