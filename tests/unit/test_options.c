/* The command line: config_parse() over the table of options. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "config/config.h"
#include "config/options.h"
#include "config/ssh_keywords.h"

enum { WORDS_MAX = 12 };

struct parsed {
	struct config config;
	struct failure failure;
	int result;
};

/* `words` are separated by '|'. */
static void parse_line(struct parsed *parsed, const char *line)
{
	char *argv[WORDS_MAX + 1] = {(char[]){"moorfs"}};
	int argc = 1;
	CLEANUP_FREE char *copy = strdup(line);
	char *rest = copy;
	for (char *word; (word = strsep(&rest, "|")) && argc < WORDS_MAX;)
		if (*word || rest)
			argv[argc++] = word;
	memset(parsed, 0, sizeof(*parsed));
	parsed->result = config_parse(&parsed->config, argc, argv, &parsed->failure);
}

/* A mount with these -o options. */
static void parse_options(struct parsed *parsed, const char *options)
{
	CLEANUP_FREE char *line = NULL;
	assert_true(asprintf(&line, "host:dir|/mnt|-o|%s", options) > 0);
	parse_line(parsed, line);
}

static void parse_good(struct parsed *parsed, const char *options)
{
	parse_options(parsed, options);
	if (parsed->result < 0)
		fail_msg("-o %s: %s", options, parsed->failure.text);
}

/* ---- what people bring along ---- */

static void test_known_names(void **state)
{
	(void)state;
	static const char *const names[] = {
	    /* sshfs */
	    "reconnect",
	    "delay_connect",
	    "sshfs_sync",
	    "no_readahead",
	    "sync_readdir",
	    "sshfs_debug",
	    "debug",
	    "workaround=rename",
	    "workaround=norename",
	    "workaround=renamexdev",
	    "workaround=norenamexdev",
	    "workaround=truncate",
	    "workaround=notruncate",
	    "workaround=buflimit",
	    "workaround=nobuflimit",
	    "workaround=fstat",
	    "workaround=nofstat",
	    "workaround=createmode",
	    "workaround=nocreatemode",
	    "workaround=none",
	    "workaround=all",
	    "workaround=rename:nofstat:buflimit",
	    "idmap=none",
	    "idmap=user",
	    "idmap=file,uidfile=/u",
	    "idmap=file,gidfile=/g",
	    "nomap=ignore",
	    "nomap=error",
	    "ssh_command=ssh -v",
	    "ssh_protocol=2",
	    "sftp_server=/usr/lib/sftp-server",
	    "directport=2222",
	    "disable_hardlink",
	    "transform_symlinks",
	    "contain_symlinks",
	    "no_contain_symlinks",
	    "follow_symlinks",
	    "no_check_root",
	    "password_stdin",
	    "dir_cache=yes",
	    "dir_cache=no",
	    "dcache_timeout=20",
	    "dcache_stat_timeout=20",
	    "dcache_dir_timeout=20",
	    "dcache_link_timeout=20",
	    "dcache_max_size=10000",
	    "dcache_clean_interval=60",
	    "dcache_min_clean_interval=5",
	    "direct_io",
	    "max_conns=3",
	    "max_read=65536",
	    "max_write=65536",
	    "cache=yes",
	    "cache=no",
	    "cache_timeout=20",
	    "cache_stat_timeout=20",
	    "cache_dir_timeout=20",
	    "cache_link_timeout=20",
	    "cache_max_size=10000",
	    "cache_clean_interval=60",
	    "cache_min_clean_interval=5",
	    "writeback_cache=no",
	    "unreliable_append",
	    /* FUSE */
	    "allow_other",
	    "allow_root",
	    "default_permissions",
	    "fsname=x",
	    "subtype=x",
	    "auto_unmount",
	    "uid=1000",
	    "gid=1000",
	    "umask=022",
	    "kernel_cache",
	    "auto_cache",
	    "entry_timeout=1",
	    "attr_timeout=2.5",
	    "negative_timeout=0",
	    "noforget",
	    "clone_fd",
	    "max_threads=4",
	    "max_idle_threads=2",
	    "remember=10",
	    "ac_attr_timeout=1",
	    "use_ino",
	    "big_writes",
	    "hard_remove",
	    "intr",
	    "large_read",
	    "max_readahead=1048576",
	    /* mount(8) and fstab */
	    "defaults",
	    "noauto",
	    "auto",
	    "user",
	    "users",
	    "nouser",
	    "owner",
	    "group",
	    "_netdev",
	    "nofail",
	    "x-systemd.automount",
	    "X-mount.mkdir",
	    "x-systemd.idle-timeout=60",
	    "comment=systemd.automount",
	    "ro",
	    "rw",
	    "exec",
	    "noexec",
	    "suid",
	    "nosuid",
	    "dev",
	    "nodev",
	    "atime",
	    "noatime",
	    "relatime",
	    "norelatime",
	    "strictatime",
	    "nodiratime",
	    "diratime",
	    "sync",
	    "async",
	    "dirsync",
	    "lazytime",
	    /* ssh_config, in any case */
	    "Port=22",
	    "port=22",
	    "IdentityFile=/k",
	    "identityfile=~/.ssh/k",
	    "ProxyJump=gw",
	    "User=joe",
	    "user=joe",
	    "StrictHostKeyChecking=no",
	    "Compression=yes",
	    "compression=yes",
	    "Ciphers=aes128-ctr",
	    "ciphers=aes128-gcm@openssh.com",
	    "ServerAliveInterval=15",
	    "ProxyCommand=nc %h %p",
	    "HostName=10.0.0.1",
	    /* empty elements */
	    ",",
	    ",,ro,",
	    "ro,,rw",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct parsed parsed;
		parse_options(&parsed, names[i]);
		if (parsed.result < 0)
			fail_msg("-o %s: %s", names[i], parsed.failure.text);
		config_release(&parsed.config);
	}
}

/* Everything in the table is reachable by its name, and every keyword too. */
static void test_table(void **state)
{
	(void)state;
	const struct option *option;
	for (size_t i = 0; (option = option_at(i)); i++) {
		assert_non_null(option->help);
		assert_true(option->group < OPTION_GROUPS);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(option->name, option_at(j)->name);
		if (option->status != OPTION_REFUSED)
			continue;
		struct parsed parsed;
		parse_options(&parsed, option->name);
		assert_int_equal(parsed.result, -1);
		assert_int_equal(parsed.failure.kind, FAILURE_USAGE);
		assert_non_null(strstr(parsed.failure.text, option->help));
		config_release(&parsed.config);
	}
	const struct ssh_keyword *keyword;
	for (size_t i = 0; (keyword = ssh_keyword_at(i)); i++)
		assert_ptr_equal(ssh_keyword_find(keyword->name, strlen(keyword->name)),
		                 keyword);
}

/* ---- values ---- */

static void test_defaults(void **state)
{
	(void)state;
	struct parsed parsed;
	parse_line(&parsed, "host:|/mnt");
	assert_int_equal(parsed.result, 0);
	const struct config *config = &parsed.config;
	assert_int_equal(config->target.mode, SSH_MODE_AUTO);
	assert_int_equal(config->pool.max_lanes, 4);
	assert_int_equal(config->pool.request_timeout_ns, 30 * NS_PER_SEC);
	assert_int_equal(config->pool.connect_timeout_ns, 15 * NS_PER_SEC);
	assert_int_equal(config->pool.keepalive_ns, 15 * NS_PER_SEC);
	assert_int_equal(config->pool.idle_timeout_ns, 60 * NS_PER_SEC);
	assert_true(config->pool.reconnect);
	assert_int_equal(config->io.cache_size, 256 << 20);
	assert_int_equal(config->io.dirty_limit, 64 << 20);
	assert_true(config->io.read_ahead);
	assert_false(config->io.sync_writes);
	assert_int_equal(config->vfs.attr_timeout_ns, -1);
	assert_true(config->vfs.contain_symlinks);
	assert_true(config->vfs.dir_cache);
	assert_true(config->vfs.prefetch);
	assert_int_equal(config->vfs.prefetch_bytes, 16 << 20);
	assert_true(config->clone_fd);
	assert_false(config->foreground);
	assert_string_equal(config->spec, "host:");
	assert_string_equal(config->mountpoint, "/mnt");
	assert_string_equal(config->remote_dir, "");
	config_release(&parsed.config);
}

static void test_times_and_sizes(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t ns;
	} times[] = {
	    {"10", 10 * NS_PER_SEC},
	    {"10s", 10 * NS_PER_SEC},
	    {"2m", 120 * NS_PER_SEC},
	    {"1500ms", 1500 * NS_PER_MS},
	    {"1.5", 1500 * NS_PER_MS},
	    {"0.5h", 1800 * NS_PER_SEC},
	    {"2.000000001", 2 * NS_PER_SEC + 1},
	    {"1.5min", 90 * NS_PER_SEC},
	};
	static const struct {
		const char *text;
		uint64_t bytes;
	} sizes[] = {
	    {"1048576", 1 << 20}, {"1024K", 1 << 20}, {"4m", 4 << 20},
	    {"8MiB", 8 << 20},    {"1G", 1 << 30},    {"2gb", UINT64_C(2) << 30},
	};
	struct parsed parsed;
	char text[64];
	for (size_t i = 0; i < ARRAY_LEN(times); i++) {
		snprintf(text, sizeof(text), "timeout=%s", times[i].text);
		parse_good(&parsed, text);
		assert_int_equal(parsed.config.pool.request_timeout_ns, times[i].ns);
		config_release(&parsed.config);
	}
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		snprintf(text, sizeof(text), "cache_size=%s", sizes[i].text);
		parse_good(&parsed, text);
		assert_int_equal(parsed.config.io.cache_size, sizes[i].bytes);
		config_release(&parsed.config);
	}
}

static void test_switches(void **state)
{
	(void)state;
	struct parsed parsed;
	parse_good(&parsed, "noreconnect,no_readahead,sync,no_contain_symlinks,dir_cache=no,"
	                    "kernel_cache=off,noclone_fd");
	assert_false(parsed.config.pool.reconnect);
	assert_false(parsed.config.io.read_ahead);
	assert_true(parsed.config.io.sync_writes);
	assert_false(parsed.config.vfs.contain_symlinks);
	assert_false(parsed.config.vfs.dir_cache);
	assert_false(parsed.config.vfs.kernel_cache);
	assert_false(parsed.config.clone_fd);
	assert_false(parsed.config.vfs.prefetch); /* no_readahead */
	config_release(&parsed.config);

	parse_good(&parsed, "no_readahead,prefetch,cache_size=8M");
	assert_true(parsed.config.vfs.prefetch);
	assert_int_equal(parsed.config.vfs.prefetch_bytes, 1 << 20);
	config_release(&parsed.config);
	parse_good(&parsed, "prefetch=no");
	assert_false(parsed.config.vfs.prefetch);
	assert_true(parsed.config.io.read_ahead);
	config_release(&parsed.config);

	parse_good(&parsed, "writeback=async");
	assert_int_equal(parsed.config.io.writeback, IO_WRITEBACK_ASYNC);
	assert_true(parsed.config.vfs.async);
	config_release(&parsed.config);

	parse_good(&parsed, "no_reconnect,reconnect,sync,async,ro,rw,no_readahead=no");
	assert_true(parsed.config.pool.reconnect);
	assert_false(parsed.config.io.sync_writes);
	assert_false(parsed.config.read_only);
	assert_true(parsed.config.io.read_ahead);
	config_release(&parsed.config);
}

static void test_consequences(void **state)
{
	(void)state;
	struct parsed parsed;
	parse_good(&parsed, "allow_other,uid=0,gid=7,umask=027,dcache_timeout=5");
	assert_true(parsed.config.default_permissions);
	assert_true(parsed.config.vfs.set_uid && parsed.config.vfs.set_gid);
	assert_int_equal(parsed.config.vfs.uid, 0);
	assert_int_equal(parsed.config.vfs.gid, 7);
	assert_true(parsed.config.vfs.set_umask);
	assert_int_equal(parsed.config.vfs.umask, 027);
	assert_int_equal(parsed.config.vfs.attr_timeout_ns, 5 * NS_PER_SEC);
	assert_int_equal(parsed.config.vfs.entry_timeout_ns, 5 * NS_PER_SEC);
	assert_int_equal(parsed.config.vfs.dir_timeout_ns, 5 * NS_PER_SEC);
	config_release(&parsed.config);

	parse_good(&parsed, "cache_size=8M"); /* the default queue would not fit */
	assert_int_equal(parsed.config.io.dirty_limit, 2 << 20);
	config_release(&parsed.config);

	parse_good(&parsed, "noexec,nosuid,nodev,noatime,relatime");
	char **flags = parsed.config.fuse_options;
	assert_string_equal(flags[0], "noexec");
	assert_string_equal(flags[3], "noatime");
	assert_null(flags[4]);
	config_release(&parsed.config);

	parse_good(&parsed, "debug");
	assert_true(parsed.config.debug && parsed.config.foreground);
	config_release(&parsed.config);
	parse_good(&parsed, "workaround=all:norename:none:renamexdev");
	assert_false(parsed.config.workaround.rename);
	assert_true(parsed.config.workaround.renamexdev);
	config_release(&parsed.config);
}

static void test_lists(void **state)
{
	(void)state;
	struct parsed parsed;
	parse_good(&parsed,
	           "Ciphers=aes128-ctr\\,aes256-ctr,fsname=a\\054b\\\\c,subtype=\"x,y\"");
	assert_string_equal(parsed.config.target.ssh_options[0],
	                    "Ciphers=aes128-ctr,aes256-ctr");
	assert_null(parsed.config.target.ssh_options[1]);
	assert_string_equal(parsed.config.fsname, "a,b\\c");
	assert_string_equal(parsed.config.subtype, "x,y");
	config_release(&parsed.config);

	parse_good(&parsed, "Ciphers=\"a,b\",ro,fsname=a\"b");
	assert_string_equal(parsed.config.target.ssh_options[0], "Ciphers=\"a,b\"");
	assert_true(parsed.config.read_only);
	assert_string_equal(parsed.config.fsname, "a\"b");
	config_release(&parsed.config);
}

static void test_ssh_command(void **state)
{
	(void)state;
	struct parsed parsed;
	parse_good(&parsed, "ssh_command=sudo  -u 'a b' \"x\\\\\"y\" z\\\\ w '' $HOME;ls");
	static const char *const words[] = {"sudo", "-u", "a b", "x\"y", "z w", "", "$HOME;ls"};
	char **found = parsed.config.target.ssh_command;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		assert_string_equal(found[i], words[i]);
	assert_null(found[ARRAY_LEN(words)]);
	config_release(&parsed.config);
}

static void test_keywords(void **state)
{
	(void)state;
	struct parsed parsed;
	char cwd[4096], wanted[4200];
	assert_non_null(getcwd(cwd, sizeof(cwd)));
	parse_good(&parsed, "port=2022,USER=joe,identityfile=key,proxyjump=gw,"
	                    "UserKnownHostsFile=~/kh,IdentityFile=%d/k,IdentityFile=none");
	const struct ssh_target *target = &parsed.config.target;
	assert_true(target->port_given && target->port == 2022);
	assert_true(target->user_given);
	assert_string_equal(target->user, "joe");
	snprintf(wanted, sizeof(wanted), "IdentityFile=%s/key", cwd);
	assert_string_equal(target->ssh_options[0], wanted);
	assert_string_equal(target->ssh_options[1], "ProxyJump=gw");
	assert_string_equal(target->ssh_options[2], "UserKnownHostsFile=~/kh");
	assert_string_equal(target->ssh_options[3], "IdentityFile=%d/k");
	assert_string_equal(target->ssh_options[4], "IdentityFile=none");
	assert_null(target->ssh_options[5]);
	config_release(&parsed.config);
}

static void test_flags(void **state)
{
	(void)state;
	struct parsed parsed;
	parse_line(&parsed, "-fsC|joe@host:x|-p22|-F|/conf|/mnt|-oro,nonempty|-o|max_conns=2");
	assert_int_equal(parsed.result, 0);
	const struct config *config = &parsed.config;
	assert_true(config->foreground && config->single_threaded && config->read_only);
	assert_true(config->nonempty);
	assert_int_equal(config->pool.max_lanes, 2);
	assert_int_equal(config->target.port, 22);
	assert_string_equal(config->target.config_file, "/conf");
	assert_string_equal(config->target.ssh_options[0], "Compression=yes");
	assert_string_equal(config->target.user, "joe");
	assert_string_equal(config->target.alias, "host");
	assert_string_equal(config->remote_dir, "x");
	config_release(&parsed.config);

	static const struct {
		const char *line;
		enum config_action action;
	} actions[] = {
	    {"-h", CONFIG_HELP},    {"--help", CONFIG_HELP},       {"h:|/m|-h", CONFIG_HELP},
	    {"-V", CONFIG_VERSION}, {"--version", CONFIG_VERSION},
	};
	for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
		parse_line(&parsed, actions[i].line);
		assert_int_equal(parsed.result, 0);
		assert_int_equal(parsed.config.action, actions[i].action);
		config_release(&parsed.config);
	}
	parse_line(&parsed, "--debug|h:|--|-m");
	assert_int_equal(parsed.result, 0);
	assert_true(parsed.config.debug);
	assert_string_equal(parsed.config.mountpoint, "-m");
	config_release(&parsed.config);
	parse_line(&parsed, "sftp://u@h:77/a%20b|/m");
	assert_int_equal(parsed.result, 0);
	assert_int_equal(parsed.config.target.port, 77);
	assert_string_equal(parsed.config.remote_dir, "/a b");
	config_release(&parsed.config);
	parse_line(&parsed, ":/dir|/m|-o|sftp_server=/usr/lib/sftp-server");
	assert_int_equal(parsed.result, 0);
	assert_int_equal(parsed.config.target.mode, SSH_MODE_SERVER);
	config_release(&parsed.config);
	parse_line(&parsed, "h:/dir|/m|-o|sftp_server=/usr/lib/sftp-server");
	assert_int_equal(parsed.config.target.mode, SSH_MODE_AUTO);
	config_release(&parsed.config);
	parse_line(&parsed, "h:/dir|/m|-o|directport=99");
	assert_int_equal(parsed.config.target.mode, SSH_MODE_TCP);
	config_release(&parsed.config);
	parse_line(&parsed, "h:/dir|/m|-o|sloppy,bogus,ro");
	assert_int_equal(parsed.result, 0);
	assert_true(parsed.config.read_only);
	config_release(&parsed.config);
}

/* ---- what is wrong, and what is said about it ---- */

#define O(options) "h:|/m|-o|" options

static void test_bad(void **state)
{
	(void)state;
	static const struct {
		const char *line, *message;
	} cases[] = {
	    {"", "missing remote directory: moorfs [user@]host:[dir] mountpoint (moorfs --help "
	         "lists the options)"},
	    {"h:", "missing mountpoint: moorfs [user@]host:[dir] mountpoint"},
	    {"h:||-f", "the mountpoint is empty: moorfs [user@]host:[dir] mountpoint"},
	    {"h:|/m|x",
	     "unexpected argument 'x': give one remote directory and one mountpoint"},
	    {"h:|/m|-x", "unknown flag '-x': moorfs --help lists the flags"},
	    {"h:|/m|--bogus", "unknown flag '--bogus': moorfs --help lists the flags"},
	    {"h:|/m|-fq", "unknown flag '-q': moorfs --help lists the flags"},
	    {"h:|/m|-1", "flag '-1': SSH protocol 1 is gone: leave it out"},
	    {"h:|/m|-p", "flag '-p' needs a value: give -p PORT"},
	    {"h:|/m|-o", "flag '-o' needs a value: give -o OPTION[,OPTION...]"},
	    {"h:|/m|-F", "flag '-F' needs a value: give -F FILE"},
	    {"h:|/m|-p|x", "port 'x' is not a number from 1 to 65535"},
	    {"h:|/m|-p|0", "port '0' is not a number from 1 to 65535"},
	    {"h:|/m|-p|65536", "port '65536' is not a number from 1 to 65535"},
	    {"h:|/m|-p|22 ", "port '22 ' is not a number from 1 to 65535"},
	    {"h:|/m|-p|1|-p|2", "two different ports are given, 1 and 2: give one"},
	    {"sftp://h:3/|/m|-p|2", "two different ports are given, 2 and 3: give one"},
	    {"a@h:|/m|-o|User=b", "two different users are given, 'b' and 'a': give one"},
	    {"host|/m", "remote directory 'host': there is no ':' after the host: write "
	                "[user@]host:[dir] or sftp://[user@]host[:port]/dir"},
	    {":x|/m", "remote directory ':x': the host name is empty: write [user@]host:[dir]"},
	    {"ftp://h/|/m", "remote directory 'ftp://h/': ftp:// is not supported yet by this "
	                    "version"},
	    {"u@:x|/m|-o|sftp_server=/x", "a server on this machine (sftp_server with an empty "
	                                  "host) has no user and no port: "
	                                  "leave them out"},
	    {O("recconect"), "unknown option 'recconect': did you mean 'reconnect'?"},
	    {O("allow_othre"), "unknown option 'allow_othre': did you mean 'allow_other'?"},
	    {O("max_con=3"), "unknown option 'max_con': did you mean 'max_conns'?"},
	    {O("IdentiyFile=/x"), "unknown option 'IdentiyFile': did you mean 'IdentityFile'?"},
	    {O("Reconnect"), "unknown option 'Reconnect': did you mean 'reconnect'?"},
	    {O("qwertzuiop"), "unknown option 'qwertzuiop': moorfs --help lists the options (a "
	                      "comma inside a value is written \\,)"},
	    {O("Ciphers=a,hmac-sha2-256"), "unknown option 'hmac-sha2-256': moorfs --help "
	                                   "lists the options (a comma inside a "
	                                   "value is written \\,)"},
	    {O("a\x1b[1m"),
	     "unknown option 'a\\x1b[1m': moorfs --help lists the options (a comma "
	     "inside a value is written \\,)"},
	    {O("max_conns"), "option 'max_conns' needs a value: give max_conns=N"},
	    {O("max_conns=0"), "option 'max_conns': '0' is out of range: give 1 to 16"},
	    {O("max_conns=17"), "option 'max_conns': '17' is out of range: give 1 to 16"},
	    {O("max_conns=x"), "option 'max_conns': 'x' is no such value: give a number"},
	    {O("max_conns="), "option 'max_conns': '' is no such value: give a number"},
	    {O("max_conns=-1"), "option 'max_conns': '-1' is no such value: give a number"},
	    {O("max_conns=99999999999999999999"),
	     "option 'max_conns': '99999999999999999999' is no such value: give a number"},
	    {O("timeout=0"), "option 'timeout': '0' is out of range: give 1 to 3600"},
	    {O("timeout=2h"), "option 'timeout': '2h' is out of range: give 1 to 3600"},
	    {O("timeout=abc"), "option 'timeout': 'abc' is no such value: give seconds, or a "
	                       "number with ms, s, m or h"},
	    {O("timeout=-1"), "option 'timeout': '-1' is no such value: give seconds, or a "
	                      "number with ms, s, m or h"},
	    {O("timeout=1."), "option 'timeout': '1.' is no such value: give seconds, or a "
	                      "number with ms, s, m or h"},
	    {O("timeout=10 s"), "option 'timeout': '10 s' is no such value: give seconds, or a "
	                        "number with ms, s, m or h"},
	    {O("timeout=9999999999999999999h"),
	     "option 'timeout': '9999999999999999999h' is no such value: give seconds, or a "
	     "number with ms, s, m or h"},
	    {O("attr_timeout=nan"),
	     "option 'attr_timeout': 'nan' is no such value: give seconds, "
	     "or a number with ms, s, m or h"},
	    {O("dcache_timeout=x"),
	     "option 'dcache_timeout': 'x' is not known: give seconds, or "
	     "a number with ms, s, m or h"},
	    {O("cache_size=1"), "option 'cache_size': '1' is out of range: give 1M to 1T"},
	    {O("cache_size=12Q"),
	     "option 'cache_size': '12Q' is no such value: give bytes, or a "
	     "number with K, M, G or T"},
	    {O("max_read=4294967296K"),
	     "option 'max_read': '4294967296K' is out of range: give 4K to 64M"},
	    {O("cache_size=4M,write_queue=8M"),
	     "option 'write_queue' is above cache_size, which it is part of: make it smaller"},
	    {O("attr_timeout_min=61"),
	     "option 'attr_timeout_min' is above attr_timeout_max: make it smaller"},
	    {O("umask=9"),
	     "option 'umask': '9' is no such value: give octal digits such as 022"},
	    {O("umask=7777"), "option 'umask': '7777' is out of range: give 00 to 0777"},
	    {O("uid=joe"), "option 'uid': 'joe' is no such value: give a number"},
	    {O("gid=4294967295"),
	     "option 'gid': '4294967295' is out of range: give 0 to 4294967294"},
	    {O("idmap=both"), "option 'idmap': 'both' is not known: give none, user or file"},
	    {O("idmap=file"),
	     "option 'idmap': file needs the files: give uidfile=, gidfile= or "
	     "both"},
	    {O("uidfile=/x"), "option 'uidfile' has no effect without idmap=file: give both"},
	    {O("gidfile=/x"), "option 'gidfile' has no effect without idmap=file: give both"},
	    {O("nomap=x"), "option 'nomap': 'x' is not known: give ignore or error"},
	    {O("transport=tcp"),
	     "option 'transport': 'tcp' is not known: give auto, ssh2 or ssh"},
	    {O("workaround=foo"),
	     "option 'workaround': 'foo' is not known: give none, all, or rename, renamexdev, "
	     "truncate, buflimit, fstat, createmode, joined by colons, 'no' before any"},
	    {O("workaround="),
	     "option 'workaround': '' is not known: give none, all, or rename, renamexdev, "
	     "truncate, buflimit, fstat, createmode, joined by colons, 'no' before any"},
	    {O("trace=sftp:bogus"),
	     "option 'trace': 'sftp:bogus' is not known: give main, fuse, "
	     "vfs, io, pool, sftp, ssh or all, joined by colons"},
	    {O("reconnect=maybe"),
	     "option 'reconnect': 'maybe' is neither yes nor no: give yes or no"},
	    {O("fsname="), "option 'fsname' is empty: give fsname=NAME"},
	    {O("fsname"), "option 'fsname' needs a value: give fsname=NAME"},
	    {O("debug=3"), "option 'debug' takes no value: '3'"},
	    {O("noexec=1"), "option 'noexec' takes no value: '1'"},
	    {O("ProxyJump"), "option 'ProxyJump' needs a value: give ProxyJump=VALUE"},
	    {O("proxyjump="), "option 'ProxyJump' needs a value: give ProxyJump=VALUE"},
	    {O("ProxyJump=a\nLocalCommand=x"),
	     "option 'ProxyJump': the value holds a line end"},
	    {O("ssh_protocol=1"),
	     "option 'ssh_protocol': SSH protocol 1 is gone: leave it out"},
	    {O("ssh_protocol=3"), "option 'ssh_protocol': '3' is not known: give 2"},
	    {O("ssh_command="), "option 'ssh_command': the command is empty: give "
	                        "ssh_command=COMMAND"},
	    {O("ssh_command=ssh 'x"), "option 'ssh_command': a quote is not closed: ssh 'x"},
	    {O("ssh_command=x,transport=ssh2"),
	     "options 'ssh_command' and 'transport': ssh2 runs no ssh: give one"},
	    {O("directport=0"), "option 'directport': '0' is not known: give a port from 1 to "
	                        "65535"},
	    {O("directport=1,ssh_command=x"),
	     "options 'ssh_command' and 'directport': directport uses no ssh: give one"},
	    {O("directport=1,sftp_server=x"),
	     "options 'sftp_server' and 'directport': directport starts no server: give one"},
	    {O("directport=1,transport=ssh"),
	     "options 'transport' and 'directport': directport uses no SSH: give one"},
	    {O("allow_other,allow_root"),
	     "options 'allow_other' and 'allow_root': they exclude each other: give one"},
	    {O("direct_io,kernel_cache"),
	     "options 'direct_io' and 'kernel_cache': without pages in the kernel there is "
	     "nothing to keep: give one"},
	    {O("remount"), "option 'remount': the options of a moorfs mount cannot be changed: "
	                   "unmount and mount again"},
	    {O("remount,ro"),
	     "option 'remount': the options of a moorfs mount cannot be changed: "
	     "unmount and mount again"},
	    {O("setuid=joe"),
	     "option 'setuid': only mount(8) can start moorfs as another user: use mount -t "
	     "moorfs, or run moorfs as that user"},
	    {O("vsock=1:2"),
	     "option 'vsock': moorfs has no vsock transport: give a program that "
	     "connects by ssh_command="},
	    {O("passive"), "option 'passive': moorfs does not speak over standard input: run a "
	                   "local server by sftp_server=PATH with an empty host, or give "
	                   "ssh_command="},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct parsed parsed;
		parse_line(&parsed, cases[i].line);
		if (parsed.result == 0)
			fail_msg("'%s' was taken", cases[i].line);
		assert_string_equal(cases[i].message, parsed.failure.text);
		assert_int_equal(parsed.failure.kind, FAILURE_USAGE);
		config_release(&parsed.config);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_known_names), cmocka_unit_test(test_table),
	    cmocka_unit_test(test_defaults),    cmocka_unit_test(test_times_and_sizes),
	    cmocka_unit_test(test_switches),    cmocka_unit_test(test_consequences),
	    cmocka_unit_test(test_lists),       cmocka_unit_test(test_ssh_command),
	    cmocka_unit_test(test_keywords),    cmocka_unit_test(test_flags),
	    cmocka_unit_test(test_bad),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
