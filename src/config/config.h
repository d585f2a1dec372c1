/*
 * What the user asked for: the command line, the URL, ssh_config and the environment merged
 * into one structure, checked, with clear errors. Single-threaded use, before the mount.
 */
#ifndef MOORFS_CONFIG_CONFIG_H
#define MOORFS_CONFIG_CONFIG_H

#include <stdbool.h>

#include "base/failure.h"
#include "config/arena.h"
#include "io/io.h"
#include "remote/pool.h"
#include "transport/ssh_target.h"
#include "vfs/vfs.h"

enum config_action { CONFIG_MOUNT, CONFIG_HELP, CONFIG_VERSION };

struct config {
	enum config_action action;

	char *spec;       /* as given: "user@host:dir", shown as the source in /proc/mounts */
	char *mountpoint; /* as given */
	char *remote_dir; /* as given: "", "~/x", "/x" or relative to the remote home */

	bool foreground;      /* -f, or -d, or -o debug */
	bool debug;           /* -d, -o debug */
	bool single_threaded; /* -s */
	bool delay_connect;
	bool nonempty;
	bool no_check_root; /* the remote directory is not looked at before mounting */
	bool allow_other, allow_root, default_permissions, auto_unmount;
	bool read_only;
	bool clone_fd;
	unsigned max_threads, max_idle_threads; /* 0: the program's choice */
	char *log_file;                         /* NULL: syslog */
	char *fsname, *subtype;
	char **fuse_options; /* mount flags handed to libfuse ("noexec"), NULL-terminated or
	                        NULL */

	struct ssh_target target;
	struct pool_config pool;
	struct io_config io;
	struct vfs_config vfs;        /* root and mountpoint are filled in by main */
	uint32_t max_read, max_write; /* 0: the server's limits; upper bounds else */
	struct {
		bool rename; /* workaround=rename: replace by unlink + rename (no posix-rename)
		              */
		bool renamexdev;                  /* failure of rename is told as EXDEV */
		bool truncate, fstat, createmode; /* accepted, moot here */
	} workaround;

	/* ---- of config/ itself ---- */
	struct arena arena;  /* owns every string above */
	bool password_stdin; /* the first line of standard input is the password */
	bool sloppy;         /* unknown options are warned about, not refused (mount -s) */
	bool batch;          /* BatchMode: nobody is asked anything */
	bool keepalive_given, connect_timeout_given; /* beat what ssh_config says */
	bool dirty_limit_given;
	char *uid_file, *gid_file; /* what vfs.uid_file and vfs.gid_file point to */
};

/* What holds when nothing is given; allocates nothing. */
void config_set_defaults(struct config *config);

/*
 * Parses argv. 0, or -1 with the failure (FAILURE_USAGE) filled: the message names the option
 * or argument, what is wrong and the nearest known name. Frees nothing on failure:
 * call config_release() in either case. Reads no files and starts no program.
 */
int config_parse(struct config *config, int argc, char **argv, struct failure *failure);

/*
 * Second half: runs `ssh -G` where ssh exists and merges the host's effective configuration
 * into config->target; makes the prompter. Sets PATH and HOME where mount(8) has left them out:
 * call it while no other thread looks at the environment. 0 or -1.
 */
int config_resolve(struct config *config, struct failure *failure);
void config_release(struct config *config);

/*
 * From now on prompts are answered from memory only (the mount is up, the terminal is no longer
 * ours). A question that waits for a person ends unanswered; returns when the terminal's state
 * is restored, after a fraction of a second. Any thread; not from a signal handler.
 */
void config_stop_asking(struct config *config);

/* --help and --version texts, generated from the option table. */
void config_print_help(const char *program);
void config_print_version(void);

#endif
