/* The table of options; see options.h. Within a group the order is that of --help. */
#include <stddef.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "config/config.h"
#include "config/option_set.h"
#include "config/options.h"

#define FIELD(member) \
	.offset = offsetof(struct config, member), .size = sizeof(((struct config *)0)->member)

#define ENTRY(group_, name_, kind_, status_, argument_, help_)                 \
	.name = name_, .group = OPTION_GROUP_##group_, .kind = OPTION_##kind_, \
	.status = OPTION_##status_, .argument = argument_, .help = help_

/* A switch that is off unless given (ON), or on unless turned off (OFF names the turning off).
 */
#define ON(group, name, member, help)                                                  \
	{                                                                              \
		ENTRY(group, name, FLAG, WORKS, NULL, help), .on = true, FIELD(member) \
	}
#define OFF(group, name, member, help)                                                  \
	{                                                                               \
		ENTRY(group, name, FLAG, WORKS, NULL, help), .on = false, FIELD(member) \
	}
#define STRING(group, name, argument, member, help)                              \
	{                                                                        \
		ENTRY(group, name, STRING, WORKS, argument, help), FIELD(member) \
	}
#define PATH_(group, name, argument, member, set_, help)                                    \
	{                                                                                   \
		ENTRY(group, name, PATH, WORKS, argument, help), FIELD(member), .set = set_ \
	}
#define NUMBER(group, name, member, min_, max_, help)                                     \
	{                                                                                 \
		ENTRY(group, name, NUMBER, WORKS, "N", help), FIELD(member), .min = min_, \
		                                                             .max = max_  \
	}
#define ID(group, name, argument, member, set_, help)                                   \
	{                                                                               \
		ENTRY(group, name, NUMBER, WORKS, argument, help), FIELD(member),       \
		    .min = 0, .max = UINT32_MAX - 1, .quiet_default = true, .set = set_ \
	}
/* min and max in milliseconds and seconds */
#define SECONDS(group, name, member, min_ms, max_s, set_, quiet, help)                 \
	{                                                                              \
		ENTRY(group, name, SECONDS, WORKS, "SECONDS", help), FIELD(member),    \
		    .min = (min_ms)*NS_PER_MS, .max = (max_s)*NS_PER_SEC, .set = set_, \
		    .quiet_default = quiet                                             \
	}
#define SIZE(group, name, member, min_, max_, set_, quiet, help)                  \
	{                                                                         \
		ENTRY(group, name, SIZE, WORKS, "SIZE", help), FIELD(member),     \
		    .min = min_, .max = max_, .set = set_, .quiet_default = quiet \
	}
#define ENUM(group, name, argument, member, words_, help)                       \
	{                                                                       \
		ENTRY(group, name, ENUM, WORKS, argument, help), FIELD(member), \
		    .words = words_                                             \
	}
#define CUSTOM(group, name, argument, set_, help)                              \
	{                                                                      \
		ENTRY(group, name, CUSTOM, WORKS, argument, help), .set = set_ \
	}
#define MOUNT_FLAG(name, help)                               \
	{                                                    \
		ENTRY(MOUNT, name, MOUNT, WORKS, NULL, help) \
	}
#define MOOT(group, name, argument, why)                        \
	{                                                       \
		ENTRY(group, name, CUSTOM, MOOT, argument, why) \
	}
#define REFUSED(group, name, argument, way_out)                        \
	{                                                              \
		ENTRY(group, name, CUSTOM, REFUSED, argument, way_out) \
	}

#define KIB(n) ((uint64_t)(n) << 10)
#define MIB(n) ((uint64_t)(n) << 20)
#define TIB(n) ((uint64_t)(n) << 40)

static const struct option_word transports[] = {
    {"auto", SSH_MODE_AUTO}, {"ssh2", SSH_MODE_SSH2}, {"ssh", SSH_MODE_SSH}, {NULL, 0}};
static const struct option_word idmaps[] = {
    {"none", VFS_IDMAP_NONE}, {"user", VFS_IDMAP_USER}, {"file", VFS_IDMAP_FILE}, {NULL, 0}};
static const struct option_word nomaps[] = {
    {"ignore", VFS_NOMAP_IGNORE}, {"error", VFS_NOMAP_ERROR}, {NULL, 0}};

static const struct option_word writebacks[] = {
    {"close", IO_WRITEBACK_CLOSE}, {"async", IO_WRITEBACK_ASYNC}, {NULL, 0}};

static const char own_cache[] = "moorfs bounds its caches by memory instead";
static const char kernel_decides[] = "moorfs agrees on this with the kernel itself";
static const char for_mount[] = "it is for mount(8) and fstab alone";

static const struct option table[] = {
    ENUM(CONNECTION, "transport", "KIND", target.mode, transports,
         "who speaks SSH: ssh2 (libssh2, in process), ssh (the ssh program), auto (by "
         "measurement "
         "and by what the configuration needs)"),
    NUMBER(CONNECTION, "max_conns", pool.max_lanes, 1, REMOTE_MAX_LANES,
           "connections held at most"),
    SECONDS(CONNECTION, "timeout", pool.request_timeout_ns, 1000, 3600, NULL, false,
            "a request unanswered for so long fails"),
    SECONDS(CONNECTION, "connect_timeout", pool.connect_timeout_ns, 1000, 3600,
            option_set_connect_timeout, false, "time to connect and log in"),
    SECONDS(CONNECTION, "keepalive", pool.keepalive_ns, 0, 3600, option_set_keepalive, false,
            "a connection silent for so long is tested; 0: never"),
    SECONDS(CONNECTION, "idle_timeout", pool.idle_timeout_ns, 0, 86400, NULL, false,
            "connections beyond the first close when unused for so long; 0: never"),
    ON(CONNECTION, "reconnect", pool.reconnect, "connect again after a loss (the default)"),
    ON(CONNECTION, "delay_connect", delay_connect, "connect at the first access, not before"),
    STRING(CONNECTION, "sftp_server", "SERVER", target.sftp_server,
           "subsystem, or path of the server program on the remote host; with an empty host "
           "(:dir) the program to run on this one"),
    CUSTOM(CONNECTION, "ssh_command", "COMMAND", option_set_ssh_command,
           "run this in place of ssh; words are split as a shell does, without a shell"),
    CUSTOM(CONNECTION, "directport", "PORT", option_set_directport,
           "an SFTP server listens there in clear, without SSH"),
    CUSTOM(CONNECTION, "ssh_protocol", "N", option_set_ssh_protocol, "2 is the only one left"),
    REFUSED(CONNECTION, "vsock", "CID:PORT",
            "moorfs has no vsock transport: give a program that connects by ssh_command="),
    REFUSED(CONNECTION, "passive", NULL,
            "moorfs does not speak over standard input: run a local server by "
            "sftp_server=PATH with an empty host, or give ssh_command="),
    REFUSED(CONNECTION, "slave", NULL,
            "moorfs does not speak over standard input: run a local server by "
            "sftp_server=PATH with an empty host, or give ssh_command="),

    ON(AUTHENTICATION, "password_stdin", password_stdin,
       "the first line of standard input is the password"),

    SECONDS(CACHE, "attr_timeout", vfs.attr_timeout_ns, 0, 86400, NULL, true,
            "how long attributes are believed; unset: by how often they change"),
    SECONDS(CACHE, "entry_timeout", vfs.entry_timeout_ns, 0, 86400, NULL, true,
            "how long names are believed; unset: as attributes"),
    SECONDS(CACHE, "negative_timeout", vfs.negative_timeout_ns, 0, 86400, NULL, true,
            "how long the absence of a name is believed; unset: as attributes"),
    SECONDS(CACHE, "attr_timeout_min", vfs.attr_min_ns, 0, 86400, NULL, false,
            "shortest time the automatic attr_timeout takes"),
    SECONDS(CACHE, "attr_timeout_max", vfs.attr_max_ns, 0, 86400, NULL, false,
            "longest time the automatic attr_timeout takes"),
    ON(CACHE, "dir_cache", vfs.dir_cache, "keep directory listings (the default)"),
    SIZE(CACHE, "dir_cache_size", vfs.dir_cache_bytes, MIB(1), TIB(1), NULL, false,
         "memory for kept listings"),
    ON(CACHE, "prefetch", vfs.prefetch,
       "fetch small files and list directories ahead of programs (the default)"),
    CUSTOM(CACHE, "dcache_timeout", "SECONDS", option_set_dcache_timeout,
           "as attr_timeout, entry_timeout and dcache_dir_timeout in one"),
    CUSTOM(CACHE, "dcache_stat_timeout", "SECONDS", option_set_dcache_stat,
           "as attr_timeout and entry_timeout in one"),
    SECONDS(CACHE, "dcache_dir_timeout", vfs.dir_timeout_ns, 0, 86400, NULL, true,
            "how long a listing is believed; unset: as attributes"),
    MOOT(CACHE, "dcache_link_timeout", "SECONDS",
         "symlinks are believed as long as their attributes"),
    MOOT(CACHE, "dcache_max_size", "N", own_cache),
    MOOT(CACHE, "dcache_clean_interval", "SECONDS", own_cache),
    MOOT(CACHE, "dcache_min_clean_interval", "SECONDS", own_cache),
    ON(CACHE, "cache", vfs.dir_cache, "old name of dir_cache"),
    CUSTOM(CACHE, "cache_timeout", "SECONDS", option_set_dcache_timeout,
           "old name of dcache_timeout"),
    CUSTOM(CACHE, "cache_stat_timeout", "SECONDS", option_set_dcache_stat,
           "old name of dcache_stat_timeout"),
    SECONDS(CACHE, "cache_dir_timeout", vfs.dir_timeout_ns, 0, 86400, NULL, true,
            "old name of dcache_dir_timeout"),
    MOOT(CACHE, "cache_link_timeout", "SECONDS",
         "symlinks are believed as long as their attributes"),
    MOOT(CACHE, "cache_max_size", "N", own_cache),
    MOOT(CACHE, "cache_clean_interval", "SECONDS", own_cache),
    MOOT(CACHE, "cache_min_clean_interval", "SECONDS", own_cache),

    SIZE(IO, "cache_size", io.cache_size, MIB(1), TIB(1), NULL, false,
         "memory for the contents of files"),
    SIZE(IO, "write_queue", io.dirty_limit, KIB(256), TIB(1), option_set_write_queue, false,
         "written data that may wait for the server, part of cache_size"),
    SIZE(IO, "readahead_max", io.max_window, 0, TIB(1), NULL, true,
         "how far one reader is read ahead of; 0 or unset: by rate and distance"),
    OFF(IO, "no_readahead", io.read_ahead, "read only what programs ask for"),
    ON(IO, "sync", io.sync_writes, "a write returns when the server has it"),
    ON(IO, "sshfs_sync", io.sync_writes, "the same as sync"),
    OFF(IO, "async", io.sync_writes, "the contrary of sync (the default)"),
    ENUM(IO, "writeback", "WHEN", io.writeback, writebacks,
         "close: a file's data is on the server when close() returns; async: close() and the "
         "creation of files do not wait, errors are logged and told by the next fsync()"),
    SIZE(IO, "max_read", max_read, KIB(4), MIB(64), NULL, true,
         "largest read request; unset: what the server allows"),
    SIZE(IO, "max_write", max_write, KIB(4), MIB(64), NULL, true,
         "largest write request; unset: what the server allows"),
    ON(IO, "direct_io", vfs.direct_io, "the kernel keeps no pages of the files"),
    ON(IO, "kernel_cache", vfs.kernel_cache,
       "the kernel keeps pages over open() without looking for changes on the server"),
    MOOT(IO, "auto_cache", NULL, "moorfs always drops pages when the file changed"),
    MOOT(IO, "sync_readdir", NULL, "a listing is always read in order here"),
    MOOT(IO, "writeback_cache", "no", "moorfs queues writes itself"),
    MOOT(IO, "unreliable_append", NULL, "appending is always reliable here"),
    MOOT(IO, "dirsync", NULL, "changes of names are on the server when the call returns"),

    ON(LINKS, "contain_symlinks", vfs.contain_symlinks,
       "refuse symlinks that lead out of the mount (the default)"),
    OFF(LINKS, "no_contain_symlinks", vfs.contain_symlinks,
        "let symlinks lead anywhere: for servers you trust"),
    ON(LINKS, "transform_symlinks", vfs.transform_symlinks,
       "make absolute targets relative, so that they stay in the mount"),
    ON(LINKS, "follow_symlinks", vfs.follow_symlinks,
       "the server follows symlinks: they look like what they point to"),
    ON(LINKS, "disable_hardlink", vfs.disable_hardlink, "link(2) fails"),
    {ENTRY(LINKS, "workaround", CUSTOM, MOOT, "LIST",
           "what these ask for is done where it is needed"),
     .set = option_set_workaround},

    ENUM(
        IDS, "idmap", "TYPE", vfs.idmap, idmaps,
        "owners: as the server says (none), the remote user is the mounting one (user), by the "
        "files (file)"),
    PATH_(IDS, "uidfile", "FILE", uid_file, option_set_uidfile,
          "lines user:remote-uid, for idmap=file"),
    PATH_(IDS, "gidfile", "FILE", gid_file, option_set_gidfile,
          "lines group:remote-gid, for idmap=file"),
    ENUM(IDS, "nomap", "TYPE", vfs.nomap, nomaps,
         "with idmap=file, ids in no file: left as they are (ignore) or errors (error)"),
    ID(IDS, "uid", "N", vfs.uid, option_set_uid, "show this owner for every file"),
    ID(IDS, "gid", "N", vfs.gid, option_set_gid, "show this group for every file"),
    {ENTRY(IDS, "umask", OCTAL, WORKS, "MODE",
           "show permissions without these bits, in octal, in place of the server's"),
     FIELD(vfs.umask), .max = 0777, .quiet_default = true, .set = option_set_umask},

    ON(MOUNT, "nonempty", nonempty, "mount over a directory that has files"),
    ON(MOUNT, "no_check_root", no_check_root, "do not look at the remote directory first"),
    ON(MOUNT, "ro", read_only, "read only"),
    OFF(MOUNT, "rw", read_only, "read and write (the default)"),
    MOUNT_FLAG("exec", "programs may be run"),
    MOUNT_FLAG("noexec", "programs may not be run"),
    MOUNT_FLAG("suid", "set-user-ID bits count (needs root)"),
    MOUNT_FLAG("nosuid", "set-user-ID bits do not count"),
    MOUNT_FLAG("dev", "device files count (needs root)"),
    MOUNT_FLAG("nodev", "device files do not count"),
    MOUNT_FLAG("atime", "as mount(8) has it"),
    MOUNT_FLAG("noatime", "as mount(8) has it"),
    MOUNT_FLAG("nodiratime", "as mount(8) has it"),
    MOOT(MOUNT, "diratime", NULL, "the server keeps access times"),
    MOOT(MOUNT, "relatime", NULL, "the server keeps access times"),
    MOOT(MOUNT, "norelatime", NULL, "the server keeps access times"),
    MOOT(MOUNT, "strictatime", NULL, "the server keeps access times"),
    MOOT(MOUNT, "nostrictatime", NULL, "the server keeps access times"),
    MOOT(MOUNT, "lazytime", NULL, "the server keeps access times"),
    MOOT(MOUNT, "nolazytime", NULL, "the server keeps access times"),
    MOOT(MOUNT, "iversion", NULL, "the server has no file versions"),
    MOOT(MOUNT, "noiversion", NULL, "the server has no file versions"),
    MOOT(MOUNT, "mand", NULL, "locks are local to the mount"),
    MOOT(MOUNT, "nomand", NULL, "locks are local to the mount"),
    MOOT(MOUNT, "silent", NULL, for_mount),
    MOOT(MOUNT, "loud", NULL, for_mount),
    MOOT(MOUNT, "defaults", NULL, for_mount),
    MOOT(MOUNT, "auto", NULL, for_mount),
    MOOT(MOUNT, "noauto", NULL, for_mount),
    MOOT(MOUNT, "user", NULL, for_mount),
    MOOT(MOUNT, "nouser", NULL, for_mount),
    MOOT(MOUNT, "users", NULL, for_mount),
    MOOT(MOUNT, "nousers", NULL, for_mount),
    MOOT(MOUNT, "owner", NULL, for_mount),
    MOOT(MOUNT, "noowner", NULL, for_mount),
    MOOT(MOUNT, "group", NULL, for_mount),
    MOOT(MOUNT, "nogroup", NULL, for_mount),
    MOOT(MOUNT, "_netdev", NULL, for_mount),
    MOOT(MOUNT, "nofail", NULL, for_mount),
    MOOT(MOUNT, "comment", "TEXT", for_mount),
    MOOT(MOUNT, "x-*", "TEXT", "names that begin with x- or X- are for other programs"),
    ON(MOUNT, "sloppy", sloppy, "unknown options are warned about, not refused (mount -s)"),
    REFUSED(MOUNT, "remount", NULL,
            "the options of a moorfs mount cannot be changed: unmount and mount again"),
    REFUSED(
        MOUNT, "setuid", "USER",
        "only mount(8) can start moorfs as another user: use mount -t moorfs, or run moorfs "
        "as that user"),

    ON(FUSE, "allow_other", allow_other,
       "other users may use the mount; implies default_permissions"),
    ON(FUSE, "allow_root", allow_root, "root may use the mount"),
    ON(FUSE, "default_permissions", default_permissions,
       "the kernel checks permissions by mode and owner"),
    STRING(FUSE, "fsname", "NAME", fsname, "source shown in /proc/mounts; unset: as given"),
    STRING(FUSE, "subtype", "NAME", subtype, "type shown behind \"fuse.\"; unset: moorfs"),
    ON(FUSE, "auto_unmount", auto_unmount, "unmount even when moorfs is killed"),
    ON(FUSE, "clone_fd", clone_fd, "one kernel channel per thread (the default)"),
    NUMBER(FUSE, "max_threads", max_threads, 1, 1024,
           "threads that serve programs at most; unset: by the machine"),
    NUMBER(FUSE, "max_idle_threads", max_idle_threads, 1, 1024,
           "threads kept waiting at most; unset: by the machine"),
    MOOT(FUSE, "noforget", NULL, "inode numbers are stable while mounted"),
    MOOT(FUSE, "remember", "SECONDS", "inode numbers are stable while mounted"),
    MOOT(FUSE, "ac_attr_timeout", "SECONDS", "every open() looks for changes"),
    MOOT(FUSE, "use_ino", NULL, "inode numbers are stable while mounted"),
    MOOT(FUSE, "readdir_ino", NULL, "inode numbers are stable while mounted"),
    MOOT(FUSE, "hard_remove", NULL, "files unlinked while open go on working"),
    MOOT(FUSE, "intr", NULL, "requests can always be interrupted"),
    MOOT(FUSE, "big_writes", NULL, kernel_decides),
    MOOT(FUSE, "large_read", NULL, kernel_decides),
    MOOT(FUSE, "async_read", NULL, kernel_decides),
    MOOT(FUSE, "sync_read", NULL, kernel_decides),
    MOOT(FUSE, "max_readahead", "SIZE", kernel_decides),
    MOOT(FUSE, "max_background", "N", kernel_decides),
    MOOT(FUSE, "congestion_threshold", "N", kernel_decides),

    CUSTOM(LOG, "debug", NULL, option_set_debug, "say what is done; stay in the foreground"),
    ON(LOG, "sshfs_debug", debug, "say what is done, in the log"),
    PATH_(LOG, "log_file", "FILE", log_file, NULL,
          "messages go there once mounted; unset: to syslog"),
    CUSTOM(LOG, "trace", "PARTS", option_set_trace,
           "trace parts, joined by colons: main fuse vfs io pool sftp ssh, or all"),
};

_Static_assert(ARRAY_LEN(table) <= OPTIONS_MAX, "raise OPTIONS_MAX");

const struct option *option_at(size_t index)
{
	return index < ARRAY_LEN(table) ? &table[index] : NULL;
}
