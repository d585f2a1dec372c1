/* Rules over several options; see options_check() in options.h. */
#include <string.h>

#include "base/cleanup.h"
#include "config/config.h"
#include "config/options.h"

/* Files fetched ahead take an eighth of cache_size, and no more than this. */
enum { PREFETCH_MEMORY = 16 * 1024 * 1024 };

static const struct {
	const char *a, *b, *why;
} conflicts[] = {
    {"allow_other", "allow_root", "they exclude each other: give one"},
    {"direct_io", "kernel_cache",
     "without pages in the kernel there is nothing to keep: give one"},
    {"ssh_command", "directport", "directport uses no ssh: give one"},
    {"sftp_server", "directport", "directport starts no server: give one"},
    {"transport", "directport", "directport uses no SSH: give one"},
};

static int check_conflicts(const struct options_given *given, struct failure *failure)
{
	for (size_t i = 0; i < ARRAY_LEN(conflicts); i++)
		if (options_was_given(given, conflicts[i].a) &&
		    options_was_given(given, conflicts[i].b))
			return failure_set(failure, FAILURE_USAGE, "options '%s' and '%s': %s",
			                   conflicts[i].a, conflicts[i].b, conflicts[i].why);
	return 0;
}

static int check_idmap(const struct config *config, struct failure *failure)
{
	bool files = config->uid_file || config->gid_file;
	if (config->vfs.idmap == VFS_IDMAP_FILE && !files)
		return failure_set(
		    failure, FAILURE_USAGE,
		    "option 'idmap': file needs the files: give uidfile=, gidfile= "
		    "or both");
	if (config->vfs.idmap != VFS_IDMAP_FILE && files)
		return failure_set(failure, FAILURE_USAGE,
		                   "option '%s' has no effect without idmap=file: give both",
		                   config->uid_file ? "uidfile" : "gidfile");
	return 0;
}

static int check_sizes(struct config *config, struct failure *failure)
{
	if (config->vfs.attr_min_ns > config->vfs.attr_max_ns)
		return failure_set(
		    failure, FAILURE_USAGE,
		    "option 'attr_timeout_min' is above attr_timeout_max: make it "
		    "smaller");
	if (config->io.dirty_limit <= config->io.cache_size)
		return 0;
	if (config->dirty_limit_given)
		return failure_set(
		    failure, FAILURE_USAGE,
		    "option 'write_queue' is above cache_size, which it is part of: "
		    "make it smaller");
	config->io.dirty_limit = config->io.cache_size / 4;
	return 0;
}

static int check_writeback(const struct config *config, struct failure *failure)
{
	if (config->io.sync_writes && config->io.writeback == IO_WRITEBACK_ASYNC)
		return failure_set(failure, FAILURE_USAGE,
		                   "options 'sync' and 'writeback=async': they exclude each "
		                   "other: give one");
	return 0;
}

static int check_transport(struct config *config, struct failure *failure)
{
	if (config->target.ssh_command && config->target.mode == SSH_MODE_SSH2)
		return failure_set(
		    failure, FAILURE_USAGE,
		    "options 'ssh_command' and 'transport': ssh2 runs no ssh: give "
		    "one");
	if (config->target.direct_port)
		config->target.mode = SSH_MODE_TCP;
	return 0;
}

int options_check(struct config *config, const struct options_given *given,
                  struct failure *failure)
{
	if (check_conflicts(given, failure) < 0 || check_idmap(config, failure) < 0 ||
	    check_sizes(config, failure) < 0 || check_transport(config, failure) < 0 ||
	    check_writeback(config, failure) < 0)
		return -1;
	if (!config->io.read_ahead && !options_was_given(given, "prefetch"))
		config->vfs.prefetch = false;
	config->vfs.prefetch_bytes = MIN(config->io.cache_size / 8, (uint64_t)PREFETCH_MEMORY);
	config->vfs.async = config->io.writeback == IO_WRITEBACK_ASYNC;
	if (config->allow_other)
		config->default_permissions = true;
	return 0;
}
