/*
 * moorfs: connect, mount, serve, clean up. What is built here, in this order, is torn down in
 * the reverse one.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "config/askpass.h"
#include "config/config.h"
#include "daemon.h"
#include "fuse/fusefs.h"
#include "fuse/mountpoint.h"
#include "io/io.h"
#include "remote/pool.h"
#include "root.h"
#include "sftp/sftp.h"
#include "signals.h"
#include "transport/connector.h"
#include "vfs/vfs.h"

/* Everything that this process has. */
struct mount {
	struct config config;
	char *mountpoint; /* absolute */
	char *peer;       /* "user@host", for messages */
	char *root;       /* remote directory */
	int report;       /* to the waiting parent; -1 in the foreground */

	struct signals *signals;
	struct connector *connector;
	struct session_factory *factory;
	struct pool *pool;
	struct io *io;
	struct vfs *vfs;
	struct fusefs *fs;
};

static int out_of_memory(struct failure *failure)
{
	return failure_set(failure, FAILURE_INTERNAL, "out of memory");
}

/* ---- signals ---- */

static void on_leave(void *context)
{
	struct mount *mount = context;
	config_stop_asking(&mount->config);
}

static void on_stop(void *context)
{
	struct mount *mount = context;
	config_stop_asking(&mount->config);
	fusefs_stop(mount->fs);
}

static void on_abandon(void *context)
{
	struct mount *mount = context;
	log_warn("stopped again while unmounting: writes that were queued are lost");
	fusefs_abandon(mount->fs);
}

/* The counters, line by line. */
static void on_report(void *context)
{
	struct mount *mount = context;
	struct bytes report = BYTES_INIT;
	pool_report(mount->pool, &report);
	io_report(mount->io, &report);
	vfs_report(mount->vfs, &report);
	char *rest = report.data;
	for (char *line; !report.failed && rest && (line = strsep(&rest, "\n"));)
		if (*line)
			log_info("%s", line);
	bytes_release(&report);
}

/* ---- the server ---- */

static char *peer_name(const struct ssh_target *target)
{
	struct bytes name = BYTES_INIT;
	if (!target->alias || !*target->alias)
		bytes_add_str(&name, "this machine");
	else
		bytes_addf(&name, "%s@%s", target->user, target->alias);
	return bytes_steal(&name);
}

static int connect_server(struct mount *mount, struct failure *failure)
{
	struct config *config = &mount->config;
	if (config_resolve(config, failure) < 0)
		return -1;
	mount->peer = peer_name(&config->target);
	mount->connector = connector_new(&config->target);
	if (!mount->peer || !mount->connector)
		return out_of_memory(failure);
	mount->factory = sftp_factory_new(mount->connector, mount->peer, config->max_read,
	                                  config->max_write);
	if (!mount->factory)
		return out_of_memory(failure);
	mount->pool = pool_new(mount->factory, &config->pool);
	if (!mount->pool)
		return out_of_memory(failure);
	return (config->delay_connect ? pool_start_later : pool_start)(mount->pool, failure);
}

/* ---- life ---- */

static int build(struct mount *mount, struct failure *failure)
{
	struct config *config = &mount->config;
	if (connect_server(mount, failure) < 0)
		return -1;
	struct remote *remote = pool_remote(mount->pool);
	int err = config->delay_connect
	              ? root_guess(config->remote_dir, &mount->root, failure)
	              : root_find(remote, mount->peer, config->remote_dir,
	                          !config->no_check_root, &mount->root, failure);
	if (err < 0)
		return -1;
	config->vfs.root = mount->root;
	config->vfs.mountpoint = mount->mountpoint;
	mount->io = io_new(remote, &config->io);
	if (!mount->io)
		return out_of_memory(failure);
	mount->vfs = vfs_new(remote, mount->io, &config->vfs, failure);
	if (!mount->vfs)
		return -1;
	mount->fs = fusefs_new(config, mount->vfs, mount->mountpoint, failure);
	if (!mount->fs)
		return -1;
	signals_mounted(mount->signals);
	return fusefs_mount(mount->fs, failure);
}

/* The mount answers: say so to whom it concerns. */
static int announce(struct mount *mount, struct failure *failure)
{
	struct config *config = &mount->config;
	if (mount->report >= 0) {
		config_stop_asking(config);
		if (daemon_detach(&mount->report, config->log_file, failure) < 0)
			return -1;
	} else {
		int err = config->log_file ? log_to_file(config->log_file) : 0;
		if (err)
			return failure_set(failure, FAILURE_USAGE,
			                   "cannot open the log file '%s': %s",
			                   config->log_file, strerror(-err));
		daemon_notify_service("READY=1");
	}
	log_set_level(config->debug ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	log_info("mounted %s on %s", config->spec, mount->mountpoint);
	const char *reason = connector_reason(mount->connector);
	if (*reason)
		log_info("transport %s", reason);
	return 0;
}

static int run(struct mount *mount, struct failure *failure)
{
	const struct signal_actions actions = {on_leave, on_stop, on_abandon, on_report, mount};
	mount->signals = signals_new(&actions, failure);
	if (!mount->signals || build(mount, failure) < 0)
		return -1;

	int result = announce(mount, failure);
	if (result < 0)
		fusefs_stop(mount->fs);
	else
		pool_warm(mount->pool);
	int err = fusefs_wait(mount->fs);
	if (result == 0 && err)
		result = failure_set(failure, FAILURE_MOUNT, "serving the mount failed: %s",
		                     strerror(-err));
	if (result == 0)
		log_info("unmounted %s", mount->mountpoint);
	return result;
}

/* 0, or the error of what was written and is lost without anybody having been told. */
static int tear_down(struct mount *mount)
{
	int lost = 0;
	if (mount->fs)
		fusefs_drain(mount->fs);
	/* Reports look at what is freed next. */
	signals_free(mount->signals);
	if (mount->vfs)
		vfs_free(mount->vfs);
	if (mount->io)
		lost = io_free(mount->io);
	if (mount->pool)
		pool_free(mount->pool);
	fusefs_free(mount->fs);
	sftp_factory_free(mount->factory);
	if (mount->connector)
		connector_free(mount->connector);
	free(mount->root);
	free(mount->peer);
	free(mount->mountpoint);
	if (mount->report >= 0)
		close(mount->report);
	config_release(&mount->config);
	return lost;
}

/* What needs no server is checked first, and said before anyone is asked for a password. */
static int prepare(struct mount *mount, int argc, char **argv, struct failure *failure)
{
	struct config *config = &mount->config;
	if (config_parse(config, argc, argv, failure) < 0)
		return -1;
	if (config->action != CONFIG_MOUNT)
		return 0;
	if (config->debug)
		log_set_level(LOG_LEVEL_DEBUG);
	if (mountpoint_check_fuse(config->allow_other || config->allow_root, failure) < 0 ||
	    mountpoint_prepare(config->mountpoint, config->nonempty, &mount->mountpoint,
	                       failure) < 0)
		return -1;
	return config->foreground ? 0 : daemon_fork(&mount->report, failure);
}

int main(int argc, char **argv)
{
	if (askpass_requested())
		return askpass_main(argc, argv);

	struct mount mount = {.report = -1};
	struct failure failure = {.kind = FAILURE_NONE};
	int result = prepare(&mount, argc, argv, &failure);
	if (result == 0 && mount.config.action == CONFIG_HELP)
		config_print_help(program_invocation_short_name);
	else if (result == 0 && mount.config.action == CONFIG_VERSION)
		config_print_version();
	else if (result == 0)
		result = run(&mount, &failure);
	int lost = tear_down(&mount);
	if (result == 0 && lost)
		result = failure_set(&failure, FAILURE_MOUNT,
		                     "not all that was written has reached the server, see "
		                     "the log: %s",
		                     strerror(-lost));
	/* Last, for a signal that ends us may be what failed: it needs no words. */
	if (result < 0)
		log_error("%s", failure.text);
	return result < 0 ? (int)failure.kind : EXIT_SUCCESS;
}
