/* What `ssh -G` says and what it means: config/ssh_config.h, config/ssh_identity.h. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "config/config.h"
#include "config/spawn.h"
#include "config/ssh_config.h"
#include "config/ssh_identity.h"

/* As OpenSSH 9.2 prints it, shortened. */
static const char sample[] = "host myhost\n"
                             "user joe\n"
                             "hostname server.example\n"
                             "port 2222\n"
                             "addressfamily inet6\n"
                             "batchmode no\n"
                             "compression no\n"
                             "controlmaster false\n"
                             "gssapiauthentication yes\n"
                             "hashknownhosts yes\n"
                             "identitiesonly yes\n"
                             "kbdinteractiveauthentication yes\n"
                             "passwordauthentication no\n"
                             "pubkeyauthentication unbound\n"
                             "stricthostkeychecking accept-new\n"
                             "verifyhostkeydns false\n"
                             "serveraliveinterval 0\n"
                             "connecttimeout none\n"
                             "ciphers aes256-gcm@openssh.com,aes128-ctr\n"
                             "macs hmac-sha2-256\n"
                             "kexalgorithms curve25519-sha256\n"
                             "hostkeyalgorithms ssh-ed25519\n"
                             "identityfile ~/.ssh/id_a\n"
                             "identityfile %d/keys/%h-%p-%r-%n-%u-%i-%l-%L-%%\n"
                             "identityfile ${KEYS}/k\n"
                             "globalknownhostsfile /etc/ssh/ssh_known_hosts /etc/k2\n"
                             "userknownhostsfile /home/me/my hosts ~/k2\n"
                             "hostkeyalias alias\n";

static const char usual[] = "ciphers chacha20-poly1305@openssh.com,aes128-ctr\n"
                            "macs hmac-sha2-256\n"
                            "kexalgorithms curve25519-sha256\n"
                            "hostkeyalgorithms rsa-sha2-512\n";

static const char *fake_environment(const char *name)
{
	if (strcmp(name, "KEYS") == 0)
		return "/keys";
	return strcmp(name, "AGENT") == 0 ? "/run/agent" : NULL;
}

struct merged {
	struct arena arena;
	struct ssh_target target;
	struct ssh_extras extras;
	struct ssh_surroundings around;
	struct failure failure;
};

static void merged_init(struct merged *merged)
{
	memset(merged, 0, sizeof(*merged));
	merged->target.port = 22;
	merged->target.user = merged->target.alias = merged->target.hostname =
	    arena_strdup(&merged->arena, "myhost");
	merged->around = (struct ssh_surroundings){.home = "/home/me",
	                                           .local_user = "me",
	                                           .local_host = "box.local",
	                                           .local_uid = 1000,
	                                           .agent_socket = "/run/ssh-agent",
	                                           .environment = fake_environment};
}

static int merge(struct merged *merged, const char *text)
{
	struct ssh_settings settings, builtin;
	assert_true(ssh_settings_parse(&settings, &merged->arena, text));
	assert_true(ssh_settings_parse(&builtin, &merged->arena, usual));
	return ssh_config_merge(&merged->target, &merged->extras, &merged->arena, &settings,
	                        &builtin, &merged->around, &merged->failure);
}

static void test_sample(void **state)
{
	(void)state;
	struct merged merged;
	merged_init(&merged);
	assert_int_equal(merge(&merged, sample), 0);
	const struct ssh_target *target = &merged.target;
	assert_string_equal(target->hostname, "server.example");
	assert_string_equal(target->alias, "myhost");
	assert_string_equal(target->user, "joe");
	assert_int_equal(target->port, 2222);
	assert_int_equal(target->address_family, AF_INET6);
	assert_string_equal(target->host_key_alias, "alias");
	assert_int_equal(target->host_key_policy, HOST_KEY_ACCEPT_NEW);
	assert_true(target->hash_known_hosts);
	assert_true(target->identities_only);
	assert_false(target->password_auth);
	assert_true(target->keyboard_auth && target->pubkey_auth);
	assert_false(target->compression);
	assert_string_equal(target->agent_socket, "/run/ssh-agent");
	assert_string_equal(target->needs_ssh, "");
	assert_true(target->ciphers_given);
	assert_string_equal(target->ciphers, "aes256-gcm@openssh.com,aes128-ctr");
	assert_null(target->macs);
	assert_null(target->kex);
	assert_string_equal(target->host_key_algorithms, "ssh-ed25519");

	char **files = target->user_known_hosts;
	assert_string_equal(files[0], "/home/me/my hosts");
	assert_string_equal(files[1], "/home/me/k2");
	assert_null(files[2]);
	assert_string_equal(target->global_known_hosts[1], "/etc/k2");

	char **keys = merged.extras.identities;
	assert_string_equal(keys[0], "/home/me/.ssh/id_a");
	assert_string_equal(keys[1], "/home/me/keys/server.example-2222-joe-myhost-me-1000-"
	                             "box.local-box-%");
	assert_string_equal(keys[2], "/keys/k");
	assert_null(keys[3]);
	assert_int_equal(merged.extras.connect_timeout_ns, 0);
	assert_int_equal(merged.extras.keepalive_ns, 0);
	arena_release(&merged.arena);
}

/* What the command line says stays. */
static void test_given(void **state)
{
	(void)state;
	struct merged merged;
	merged_init(&merged);
	merged.target.user_given = merged.target.port_given = true;
	merged.target.port = 99;
	assert_int_equal(merge(&merged, sample), 0);
	assert_string_equal(merged.target.user, "myhost");
	assert_int_equal(merged.target.port, 99);
	arena_release(&merged.arena);
}

static void test_needs_ssh(void **state)
{
	(void)state;
	static const struct {
		const char *line, *reason;
		bool ticket;
	} cases[] = {
	    {"proxyjump gw", "ProxyJump is set", false},
	    {"proxycommand nc %h %p", "ProxyCommand is set", false},
	    {"proxyjump none", "", false},
	    {"proxycommand none", "", false},
	    {"certificatefile ~/c", "CertificateFile is set", false},
	    {"pkcs11provider /p.so", "PKCS11Provider is set", false},
	    {"pkcs11provider none", "", false},
	    {"bindaddress 10.0.0.1", "BindAddress is set", false},
	    {"bindinterface eth0", "BindInterface is set", false},
	    {"controlpath /tmp/x", "ControlPath is set", false},
	    {"controlmaster auto", "", false},
	    {"knownhostscommand /bin/x", "KnownHostsCommand is set", false},
	    {"revokedhostkeys /x", "RevokedHostKeys is set", false},
	    {"verifyhostkeydns true", "VerifyHostKeyDNS is on", false},
	    {"verifyhostkeydns false", "", false},
	    {"hostbasedauthentication yes", "HostbasedAuthentication is on", false},
	    {"permitlocalcommand yes", "PermitLocalCommand is on", false},
	    {"nohostauthenticationforlocalhost yes", "NoHostAuthenticationForLocalhost is on",
	     false},
	    {"gssapiauthentication yes", "", false},
	    {"gssapiauthentication yes",
	     "GSSAPIAuthentication is on and there is a Kerberos ticket", true},
	    {"gssapiauthentication no", "", true},
	    {"identityfile ~/%C", "a file name has a token that only ssh expands", false},
	    {"identityfile ${NOWHERE}/x", "a file name has a token that only ssh expands",
	     false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct merged merged;
		merged_init(&merged);
		merged.around.kerberos_ticket = cases[i].ticket;
		assert_int_equal(merge(&merged, cases[i].line), 0);
		assert_string_equal(merged.target.needs_ssh, cases[i].reason);
		arena_release(&merged.arena);
	}
}

static void test_words(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		enum host_key_policy policy;
	} policies[] = {
	    {"stricthostkeychecking ask", HOST_KEY_ASK},
	    {"stricthostkeychecking true", HOST_KEY_STRICT},
	    {"stricthostkeychecking yes", HOST_KEY_STRICT},
	    {"stricthostkeychecking false", HOST_KEY_NO},
	    {"stricthostkeychecking off", HOST_KEY_NO},
	    {"stricthostkeychecking accept-new", HOST_KEY_ACCEPT_NEW},
	    {"stricthostkeychecking newword", HOST_KEY_ASK},
	};
	static const struct {
		const char *line, *socket;
	} agents[] = {
	    {"identityagent none", NULL},
	    {"identityagent SSH_AUTH_SOCK", "/run/ssh-agent"},
	    {"identityagent $AGENT", "/run/agent"},
	    {"identityagent $NOWHERE", NULL},
	    {"identityagent ~/a", "/home/me/a"},
	    {"identityagent ${AGENT}.2", "/run/agent.2"},
	    {"port 22", "/run/ssh-agent"},
	};
	struct merged merged;
	for (size_t i = 0; i < ARRAY_LEN(policies); i++) {
		merged_init(&merged);
		assert_int_equal(merge(&merged, policies[i].line), 0);
		assert_int_equal(merged.target.host_key_policy, policies[i].policy);
		arena_release(&merged.arena);
	}
	for (size_t i = 0; i < ARRAY_LEN(agents); i++) {
		merged_init(&merged);
		assert_int_equal(merge(&merged, agents[i].line), 0);
		if (agents[i].socket)
			assert_string_equal(merged.target.agent_socket, agents[i].socket);
		else
			assert_null(merged.target.agent_socket);
		arena_release(&merged.arena);
	}
	merged_init(&merged);
	assert_int_equal(merge(&merged,
	                       "preferredauthentications publickey,keyboard-interactive\n"
	                       "kbdinteractiveauthentication no\nbatchmode yes\n"
	                       "connecttimeout 5\nserveraliveinterval 7\n"
	                       "userknownhostsfile none\nidentityfile none\n"),
	                 0);
	assert_true(merged.target.pubkey_auth);
	assert_false(merged.target.password_auth);
	assert_false(merged.target.keyboard_auth);
	assert_true(merged.extras.batch);
	assert_int_equal(merged.extras.connect_timeout_ns, 5 * NS_PER_SEC);
	assert_int_equal(merged.extras.keepalive_ns, 7 * NS_PER_SEC);
	assert_null(merged.target.user_known_hosts);
	assert_null(merged.extras.identities);
	arena_release(&merged.arena);
}

static void test_odd_text(void **state)
{
	(void)state;
	struct merged merged;
	merged_init(&merged);
	assert_int_equal(
	    merge(&merged, "\n\n \nport\nport \n leading space\nuser a b\r\nhostname x"), 0);
	assert_string_equal(merged.target.user, "a b");
	assert_string_equal(merged.target.hostname, "x");
	assert_int_equal(merged.target.port, 22);
	assert_int_equal(merge(&merged, "port 0"), -1);
	assert_string_equal(merged.failure.text,
	                    "ssh's configuration has the port '0': it must be "
	                    "a number from 1 to 65535");
	arena_release(&merged.arena);
}

/* ---- keys ---- */

static void make_file(const char *directory, const char *name, const char *text)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	FILE *file = fopen(path, "we");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void test_key_kind(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		enum ssh_key_kind kind;
	} cases[] = {
	    {"ssh-rsa AAAA me", SSH_KEY_RSA},
	    {"ssh-ed25519 AAAA", SSH_KEY_OTHER},
	    {"ecdsa-sha2-nistp256 AAAA", SSH_KEY_OTHER},
	    {"sk-ssh-ed25519@openssh.com AAAA", SSH_KEY_FIDO},
	    {"sk-ecdsa-sha2-nistp256@openssh.com AAAA", SSH_KEY_FIDO},
	    {"ssh-ed25519-cert-v01@openssh.com AAAA", SSH_KEY_CERTIFICATE},
	    {"-----BEGIN RSA PRIVATE KEY-----\nMII", SSH_KEY_RSA},
	    {"-----BEGIN EC PRIVATE KEY-----\nMII", SSH_KEY_OTHER},
	    {"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMII", SSH_KEY_UNKNOWN},
	    {"", SSH_KEY_UNKNOWN},
	    {"s", SSH_KEY_UNKNOWN},
	    {"hello world", SSH_KEY_UNKNOWN},
	    {"-----BEGIN OPENSSH PRIVATE KEY-----\n", SSH_KEY_UNKNOWN},
	    {"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", SSH_KEY_UNKNOWN},
	    /* "openssh-key-v1", then a length that reaches far beyond the end */
	    {"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA/////w==\n",
	     SSH_KEY_UNKNOWN},
	    /* no cipher, no kdf, one key whose blob says ssh-rsa */
	    {"-----BEGIN OPENSSH PRIVATE KEY-----\n"
	     "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAABFwAAAAdzc2gtcn\n"
	     "NhAAAAAwEAAQAA\n",
	     SSH_KEY_RSA},
	    /* aes256-ctr and bcrypt with salt, one key whose blob says ssh-ed25519 */
	    {"-----BEGIN OPENSSH PRIVATE KEY-----\n"
	     "b3BlbnNzaC1rZXktdjEAAAAACmFlczI1Ni1jdHIAAAAGYmNyeXB0AAAAGAAAABAAAAAAAA\n"
	     "AAAAAAAAAAAAAAAAAAEAAAAAEAAAAzAAAAC3NzaC1lZDI1NTE5AAAAIA==\n",
	     SSH_KEY_OTHER},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (ssh_key_kind(cases[i].text, strlen(cases[i].text)) != cases[i].kind)
			fail_msg("case %zu: %s", i, cases[i].text);
}

static void test_review(void **state)
{
	(void)state;
	char directory[] = "/tmp/moorfs-keys-XXXXXX";
	assert_non_null(mkdtemp(directory));
	make_file(directory, "rsa", "-----BEGIN RSA PRIVATE KEY-----\nMII\n");
	make_file(directory, "ed", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n");
	make_file(directory, "ed.pub", "ssh-ed25519 AAAA\n");
	make_file(directory, "sk", "x\n");
	make_file(directory, "sk.pub", "sk-ssh-ed25519@openssh.com AAAA\n");
	make_file(directory, "only.pub", "ssh-rsa AAAA\n");
	make_file(directory, "ca", "-----BEGIN EC PRIVATE KEY-----\nMII\n");
	make_file(directory, "ca-cert.pub", "ssh-ed25519-cert-v01@openssh.com AAAA\n");

	static const struct {
		const char *names; /* one letter each: r e s o c, x does not exist */
		bool agent, rsa_sha2;
		unsigned usable;
		const char *reason;
	} cases[] = {
	    {"x", false, false, 0, ""},
	    {"e", false, false, 1, ""},
	    {"rx", false, false, 1,
	     "the only keys are RSA, and this libssh2 cannot sign them with SHA-2"},
	    {"r", false, true, 1, ""},
	    {"r", true, false, 1, ""},
	    {"re", false, false, 2, ""},
	    {"s", false, true, 1, "the only keys are in a FIDO token"},
	    {"s", true, true, 1, ""},
	    {"o", true, false, 1, ""},
	    {"ec", false, false, 2, "there is a certificate, "},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct arena arena = {NULL};
		char **candidates = NULL, **usable, reason[128];
		for (const char *at = cases[i].names; *at; at++) {
			const char *name = *at == 'r'   ? "rsa"
			                   : *at == 'e' ? "ed"
			                   : *at == 's' ? "sk"
			                   : *at == 'o' ? "only"
			                   : *at == 'c' ? "ca"
			                                : "absent";
			char path[4096];
			snprintf(path, sizeof(path), "%s/%s", directory, name);
			assert_true(arena_list_add(&arena, &candidates, path));
		}
		assert_true(ssh_identities_review(&arena, candidates, cases[i].agent,
		                                  cases[i].rsa_sha2, &usable, reason,
		                                  sizeof(reason)));
		unsigned count = 0;
		while (usable && usable[count])
			count++;
		assert_int_equal(count, cases[i].usable);
		if (*cases[i].reason)
			assert_non_null(strstr(reason, cases[i].reason));
		else
			assert_string_equal(reason, "");
		arena_release(&arena);
	}
	static const char *const names[] = {"rsa",    "ed",       "ed.pub", "sk",
	                                    "sk.pub", "only.pub", "ca",     "ca-cert.pub"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[4096];
		snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
		unlink(path);
	}
	rmdir(directory);
}

/* ---- running programs ---- */

static void test_spawn(void **state)
{
	(void)state;
	struct bytes out = BYTES_INIT, err = BYTES_INIT;
	int status = -1;
	char sh[] = "/bin/sh", c[] = "-c";
	char *talk[] = {sh, c, (char[]){"echo out; echo err >&2; cat; exit 3"}, NULL};
	assert_int_equal(spawn_capture(talk, 5 * NS_PER_SEC, NULL, &out, &err, &status), 0);
	assert_int_equal(status >> 8, 3);
	assert_memory_equal(out.data, "out\n", 4);
	assert_int_equal(out.length, 4);
	assert_memory_equal(err.data, "err\n", 4);

	char *absent[] = {(char[]){"moorfs-no-such-program"}, NULL};
	assert_int_equal(spawn_capture(absent, NS_PER_SEC, NULL, &out, &err, &status), -ENOENT);
	char *slow[] = {(char[]){"sleep"}, (char[]){"60"}, NULL};
	uint64_t start = clock_now_ns();
	assert_int_equal(spawn_capture(slow, 200 * NS_PER_MS, NULL, &out, &err, &status),
	                 -ETIMEDOUT);
	_Atomic bool stop = true;
	assert_int_equal(spawn_capture(slow, UINT64_MAX, &stop, &out, NULL, &status),
	                 -ECANCELED);
	char *deaf[] = {sh, c, (char[]){"exec >&- 2>&-; exec sleep 60"}, NULL};
	assert_int_equal(spawn_capture(deaf, 200 * NS_PER_MS, NULL, &out, &err, &status),
	                 -ETIMEDOUT);
	char *flood[] = {(char[]){"yes"}, NULL};
	assert_int_equal(spawn_capture(flood, 20 * NS_PER_SEC, NULL, &out, &err, &status),
	                 -EMSGSIZE);
	assert_true(clock_now_ns() - start < 15 * NS_PER_SEC);
	bytes_release(&out);
	bytes_release(&err);
}

/* ---- the whole of it, with an ssh of our own making ---- */

static char fake_bin[64];
static char *real_path;

static int make_fake_ssh(void **state)
{
	(void)state;
	char path[4096];
	snprintf(fake_bin, sizeof(fake_bin), "/tmp/moorfs-ssh-XXXXXX");
	if (!mkdtemp(fake_bin))
		return -1;
	real_path = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
	snprintf(path, sizeof(path), "%s/ssh", fake_bin);
	FILE *file = fopen(path, "we");
	if (!file || !real_path)
		return -1;
	fputs("#!/bin/sh\n"
	      "for word; do case $word in\n"
	      "BatchMode=huh) echo 'a line' >&2; echo 'bad batchmode' >&2; exit 255;;\n"
	      "ProxyJump=*) echo proxyjump gw;;\n"
	      "esac; done\n"
	      "case \" $* \" in *' -- localhost '*) exit 0;; esac\n"
	      "echo user remote; echo hostname 10.1.2.3; echo port 2200\n"
	      "echo serveraliveinterval 3; echo connecttimeout 4\n",
	      file);
	fclose(file);
	return chmod(path, 0755) | setenv("PATH", fake_bin, 1);
}

static int drop_fake_ssh(void **state)
{
	(void)state;
	char path[4096];
	snprintf(path, sizeof(path), "%s/ssh", fake_bin);
	unlink(path);
	rmdir(fake_bin);
	setenv("PATH", real_path, 1);
	free(real_path);
	return 0;
}

static int resolve(struct config *config, const char *spec, const char *options,
                   struct failure *failure)
{
	char *argv[] = {(char[]){"moorfs"}, (char *)(uintptr_t)spec,    (char[]){"/mnt"},
	                (char[]){"-o"},     (char *)(uintptr_t)options, NULL};
	memset(config, 0, sizeof(*config));
	memset(failure, 0, sizeof(*failure));
	if (config_parse(config, 5, argv, failure) < 0)
		return -1;
	return config_resolve(config, failure);
}

static void test_resolve(void **state)
{
	(void)state;
	struct config config;
	struct failure failure;
	assert_int_equal(resolve(&config, "h:", "ro", &failure), 0);
	assert_string_equal(config.target.hostname, "10.1.2.3");
	assert_string_equal(config.target.alias, "h");
	assert_string_equal(config.target.user, "remote");
	assert_int_equal(config.target.port, 2200);
	assert_int_equal(config.pool.keepalive_ns, 3 * NS_PER_SEC);
	assert_int_equal(config.pool.connect_timeout_ns, 4 * NS_PER_SEC);
	assert_string_equal(config.target.ssh_command[0], "ssh");
	assert_non_null(config.target.prompter);
	config_release(&config);

	assert_int_equal(resolve(&config, "me@h:", "keepalive=9,connect_timeout=8", &failure),
	                 0);
	assert_string_equal(config.target.user, "me");
	assert_int_equal(config.pool.keepalive_ns, 9 * NS_PER_SEC);
	assert_int_equal(config.pool.connect_timeout_ns, 8 * NS_PER_SEC);
	config_release(&config);

	assert_int_equal(resolve(&config, "h:", "BatchMode=huh", &failure), -1);
	assert_int_equal(failure.kind, FAILURE_USAGE);
	assert_string_equal(failure.text, "ssh refuses the configuration: bad batchmode");
	config_release(&config);

	assert_int_equal(resolve(&config, "h:", "ProxyJump=gw", &failure), 0);
	assert_string_equal(config.target.needs_ssh, "ProxyJump is set");
	config_release(&config);
	assert_int_equal(resolve(&config, "h:", "ProxyJump=gw,transport=ssh2", &failure), -1);
	assert_string_equal(failure.text,
	                    "option 'transport': ssh2 cannot do this: ProxyJump is "
	                    "set: use transport=auto");
	config_release(&config);

	assert_int_equal(resolve(&config, "h:", "IdentityFile=/nowhere/key", &failure), -1);
	assert_int_equal(failure.kind, FAILURE_USAGE);
	assert_string_equal(failure.text, "option 'IdentityFile': cannot read /nowhere/key: No "
	                                  "such file or directory");
	config_release(&config);

	assert_int_equal(resolve(&config, "h:", "ssh_command=my ssh", &failure), 0);
	assert_string_equal(config.target.needs_ssh, "ssh_command is set");
	config_release(&config);
	assert_int_equal(resolve(&config, ":/d", "sftp_server=/x", &failure), 0);
	assert_int_equal(config.target.mode, SSH_MODE_SERVER);
	assert_non_null(config.target.user);
	config_release(&config);
}

/* As mount(8) starts its helpers: without PATH and HOME. */
static void test_bare_environment(void **state)
{
	(void)state;
	struct config config;
	struct failure failure;
	CLEANUP_FREE char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
	unsetenv("PATH");
	unsetenv("HOME");
	assert_int_equal(resolve(&config, ":/d", "sftp_server=/x", &failure), 0);
	assert_non_null(strstr(getenv("PATH"), "/usr/bin"));
	assert_non_null(getenv("HOME"));
	config_release(&config);
	setenv("PATH", fake_bin, 1);
	if (home)
		setenv("HOME", home, 1);
}

static void test_resolve_without_ssh(void **state)
{
	(void)state;
	struct config config;
	struct failure failure;
	setenv("PATH", "/nonexistent", 1);
	assert_int_equal(resolve(&config, "h:",
	                         "HostName=10.9.9.9,StrictHostKeyChecking=no,IdentityFile=none,"
	                         "Ciphers=aes128-ctr,proxyjump=gw",
	                         &failure),
	                 0);
	assert_string_equal(config.target.hostname, "10.9.9.9");
	assert_int_equal(config.target.host_key_policy, HOST_KEY_NO);
	assert_string_equal(config.target.ciphers, "aes128-ctr");
	assert_null(config.target.identities);
	assert_non_null(strstr(config.target.user_known_hosts[0], "/.ssh/known_hosts"));
	assert_string_equal(config.target.needs_ssh, "ProxyJump is set");
	config_release(&config);

	char *argv[] = {(char[]){"moorfs"}, (char[]){"h:"},    (char[]){"/m"},
	                (char[]){"-F"},     (char[]){"/conf"}, NULL};
	memset(&config, 0, sizeof(config));
	assert_int_equal(config_parse(&config, 5, argv, &failure), 0);
	assert_int_equal(config_resolve(&config, &failure), -1);
	assert_string_equal(failure.text,
	                    "flag '-F': reading /conf needs the ssh program: install "
	                    "openssh-client");
	config_release(&config);
	setenv("PATH", fake_bin, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sample),
	    cmocka_unit_test(test_given),
	    cmocka_unit_test(test_needs_ssh),
	    cmocka_unit_test(test_words),
	    cmocka_unit_test(test_odd_text),
	    cmocka_unit_test(test_key_kind),
	    cmocka_unit_test(test_review),
	    cmocka_unit_test(test_spawn),
	    cmocka_unit_test_setup_teardown(test_resolve, make_fake_ssh, drop_fake_ssh),
	    cmocka_unit_test_setup_teardown(test_bare_environment, make_fake_ssh,
	                                    drop_fake_ssh),
	    cmocka_unit_test_setup_teardown(test_resolve_without_ssh, make_fake_ssh,
	                                    drop_fake_ssh),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
