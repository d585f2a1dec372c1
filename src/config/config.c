#include "config/config.h"

#include <config.h>

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "config/command_line.h"
#include "config/options.h"
#include "config/prompter.h"
#include "config/url.h"

void config_set_defaults(struct config *config)
{
	*config = (struct config){
	    .clone_fd = true,
	    .target = {.mode = SSH_MODE_AUTO,
	               .port = 22,
	               .address_family = AF_UNSPEC,
	               .host_key_policy = HOST_KEY_ASK,
	               .password_auth = true,
	               .keyboard_auth = true,
	               .pubkey_auth = true},
	    .pool = {.max_lanes = 4,
	             .request_timeout_ns = 30 * NS_PER_SEC,
	             .connect_timeout_ns = 15 * NS_PER_SEC,
	             .keepalive_ns = 15 * NS_PER_SEC,
	             .idle_timeout_ns = 60 * NS_PER_SEC,
	             .reconnect = true},
	    .io = {.cache_size = UINT64_C(256) << 20,
	           .dirty_limit = UINT64_C(64) << 20,
	           .read_ahead = true},
	    .vfs = {.attr_timeout_ns = -1,
	            .entry_timeout_ns = -1,
	            .negative_timeout_ns = -1,
	            .attr_min_ns = 3 * NS_PER_SEC,
	            .attr_max_ns = 60 * NS_PER_SEC,
	            .dir_cache = true,
	            .dir_cache_bytes = UINT64_C(64) << 20,
	            .prefetch = true,
	            .idmap = VFS_IDMAP_NONE,
	            .nomap = VFS_NOMAP_ERROR,
	            .local_uid = getuid(),
	            .local_gid = getgid(),
	            .contain_symlinks = true},
	};
}

static int out_of_memory(struct failure *failure)
{
	return failure_set(failure, FAILURE_INTERNAL, "out of memory");
}

/* The remote directory with the port and the user it names, beside those of the options. */
static int merge_url(struct config *config, const struct url *url, struct failure *failure)
{
	struct ssh_target *target = &config->target;
	char port[16];
	snprintf(port, sizeof(port), "%u", url->port);
	if (url->port && options_apply_keyword(config, "Port", port, failure) < 0)
		return -1;
	if (url->user && options_apply_keyword(config, "User", url->user, failure) < 0)
		return -1;
	target->alias = arena_strdup(&config->arena, url->host);
	target->hostname = target->alias;
	config->remote_dir = arena_strdup(&config->arena, url->dir);
	return target->alias && config->remote_dir ? 0 : out_of_memory(failure);
}

static int take_spec(struct config *config, struct failure *failure)
{
	struct url url;
	bool local = config->target.sftp_server != NULL && !config->target.direct_port;
	int err = url_parse(&url, config->spec, local, failure);
	if (err == 0)
		err = merge_url(config, &url, failure);
	url_release(&url);
	if (err < 0 || *config->target.alias)
		return err;
	if (config->target.user_given || config->target.port_given)
		return failure_set(
		    failure, FAILURE_USAGE,
		    "a server on this machine (sftp_server with an empty host) has "
		    "no user and no port: leave them out");
	config->target.mode = SSH_MODE_SERVER;
	return 0;
}

static int check_arguments(const struct config *config, struct failure *failure)
{
	if (!config->spec)
		return failure_set(
		    failure, FAILURE_USAGE,
		    "missing remote directory: moorfs [user@]host:[dir] mountpoint "
		    "(moorfs --help lists the options)");
	if (!config->mountpoint)
		return failure_set(failure, FAILURE_USAGE,
		                   "missing mountpoint: moorfs [user@]host:[dir] mountpoint");
	if (!*config->mountpoint)
		return failure_set(
		    failure, FAILURE_USAGE,
		    "the mountpoint is empty: moorfs [user@]host:[dir] mountpoint");
	return 0;
}

int config_parse(struct config *config, int argc, char **argv, struct failure *failure)
{
	struct options_given given = {{false}};
	config_set_defaults(config);
	if (command_line_parse(config, &given, argc, argv, failure) < 0)
		return -1;
	if (config->action != CONFIG_MOUNT)
		return 0;
	if (check_arguments(config, failure) < 0 || options_check(config, &given, failure) < 0)
		return -1;
	return take_spec(config, failure);
}

void config_release(struct config *config)
{
	prompter_free(config->target.prompter);
	config->target.prompter = NULL;
	arena_release(&config->arena);
}

void config_stop_asking(struct config *config)
{
	prompter_stop_asking(config->target.prompter);
}

void config_print_help(const char *program)
{
	struct config defaults;
	config_set_defaults(&defaults);
	printf(
	    "usage: %s [user@]host:[dir] mountpoint [flags] [-o option,...]\n"
	    "       %s sftp://[user@]host[:port]/dir mountpoint [flags] [-o option,...]\n"
	    "\n"
	    "Mounts a directory of an SFTP server. Unmount with: umount mountpoint\n"
	    "\n"
	    "  -p PORT    port of the server        -C    compress\n"
	    "  -F FILE    ssh_config file           -o    options, comma-separated\n"
	    "  -f         stay in the foreground    -d    say what is done, implies -f\n"
	    "  -s         one thread                -V    version\n"
	    "  -h         this help\n"
	    "\n"
	    "Keywords of ssh_config(5) are options too: -o IdentityFile=FILE, -o "
	    "ProxyJump=HOST\n"
	    "Times are in seconds, or with ms, s, m, h; sizes in bytes, or with K, M, G, T.\n",
	    program, program);
	options_print_help(stdout, &defaults);
}

void config_print_version(void)
{
	printf("moorfs %s\n", PACKAGE_VERSION);
}
