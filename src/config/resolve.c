/* config_resolve(): what ssh and the machine add to the command line. */
#include <config.h>

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/config.h"
#include "config/prompter.h"
#include "config/spawn.h"
#include "config/ssh_config.h"
#include "config/ssh_identity.h"

#define SSH_G_TIMEOUT_NS (10 * NS_PER_SEC)

static int out_of_memory(struct failure *failure)
{
	return failure_set(failure, FAILURE_INTERNAL, "out of memory");
}

/* ---- the machine ---- */

struct surroundings {
	struct ssh_surroundings ssh;
	char host[256];
};

static const char *environment(const char *name)
{
	return getenv(name);
}

static bool has_kerberos_ticket(void)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/krb5cc_%u", (unsigned)getuid());
	return getenv("KRB5CCNAME") || access(path, F_OK) == 0;
}

/* mount(8) takes both away; ssh and what it starts need them. */
static int complete_environment(const char *home, struct failure *failure)
{
	static const char usual[] =
	    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	if (setenv("PATH", usual, 0) < 0 || (home && setenv("HOME", home, 0) < 0))
		return out_of_memory(failure);
	return 0;
}

static int look_around(struct config *config, struct surroundings *around,
                       struct failure *failure)
{
	const struct passwd *self = getpwuid(getuid());
	const char *home = self ? self->pw_dir : getenv("HOME");
	if (gethostname(around->host, sizeof(around->host)) < 0)
		around->host[0] = '\0';
	around->host[sizeof(around->host) - 1] = '\0';
	around->ssh = (struct ssh_surroundings){
	    .home = arena_strdup(&config->arena, home ? home : "/"),
	    .local_user = self ? arena_strdup(&config->arena, self->pw_name)
	                       : arena_printf(&config->arena, "%u", (unsigned)getuid()),
	    .local_host = around->host,
	    .local_uid = (unsigned)getuid(),
	    .agent_socket = getenv("SSH_AUTH_SOCK"),
	    .kerberos_ticket = has_kerberos_ticket(),
	    .environment = environment,
	};
	if (!around->ssh.home || !around->ssh.local_user)
		return out_of_memory(failure);
	if (complete_environment(home, failure) < 0)
		return -1;
	if (!config->target.user) {
		config->target.user = arena_strdup(&config->arena, around->ssh.local_user);
		if (!config->target.user)
			return out_of_memory(failure);
	}
	return 0;
}

/* ---- ssh -G ---- */

/* The last line that ssh said, without its end. */
static const char *last_line(struct bytes *text)
{
	while (text->length > 0 && strchr("\r\n", text->data[text->length - 1]))
		text->data[--text->length] = '\0';
	if (text->length == 0)
		return "it does not say why";
	const char *line = memrchr(text->data, '\n', text->length);
	return line ? line + 1 : text->data;
}

/*
 * Runs `ssh -G` and parses what it says. 1: done; 0: there is no ssh program; -1: the failure
 * is filled.
 */
static int run_ssh_g(struct config *config, char *const argv[], struct ssh_settings *settings,
                     struct failure *failure)
{
	struct bytes out = BYTES_INIT, err = BYTES_INIT;
	int status = 0, result = 1;
	int error = spawn_capture(argv, SSH_G_TIMEOUT_NS, NULL, &out, &err, &status);
	bytes_add_byte(&out, 0);
	bytes_add_byte(&err, 0);
	if (err.length > 0)
		err.length--;
	if (error == -ENOENT)
		result = 0;
	else if (error < 0)
		result = failure_set(failure, FAILURE_INTERNAL, "cannot run ssh -G: %s",
		                     strerror(-error));
	else if (out.failed || err.failed)
		result = out_of_memory(failure);
	else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		result = failure_set(failure, FAILURE_USAGE,
		                     "ssh refuses the configuration: %s", last_line(&err));
	else if (!ssh_settings_parse(settings, &config->arena, out.data))
		result = out_of_memory(failure);
	bytes_release(&out);
	bytes_release(&err);
	return result;
}

static bool add(struct config *config, char ***argv, const char *a, const char *b)
{
	return arena_list_add(&config->arena, argv, a) &&
	       (!b || arena_list_add(&config->arena, argv, b));
}

/* NULL when memory is out. */
static char **effective_argv(struct config *config)
{
	const struct ssh_target *target = &config->target;
	char **argv = NULL, port[16];
	snprintf(port, sizeof(port), "%u", target->port);
	bool good = add(config, &argv, "ssh", "-G") && add(config, &argv, "-T", NULL);
	if (target->config_file)
		good = good && add(config, &argv, "-F", target->config_file);
	if (target->port_given)
		good = good && add(config, &argv, "-p", port);
	if (target->user_given)
		good = good && add(config, &argv, "-l", target->user);
	for (char **option = target->ssh_options; option && *option; option++)
		good = good && add(config, &argv, "-o", *option);
	good = good && add(config, &argv, "--", target->alias);
	return good ? argv : NULL;
}

/* What ssh assumes when nothing is configured. */
static char **builtin_argv(struct config *config)
{
	char **argv = NULL;
	bool good = add(config, &argv, "ssh", "-G") && add(config, &argv, "-T", NULL) &&
	            add(config, &argv, "-F", "/dev/null") &&
	            add(config, &argv, "--", "localhost");
	return good ? argv : NULL;
}

/* ---- without ssh ---- */

/* Where OpenSSH looks when nothing is configured. */
static const char usual_settings[] = "identityfile ~/.ssh/id_rsa\n"
                                     "identityfile ~/.ssh/id_ecdsa\n"
                                     "identityfile ~/.ssh/id_ed25519\n";
static const char usual_files[] =
    "userknownhostsfile ~/.ssh/known_hosts ~/.ssh/known_hosts2\n"
    "globalknownhostsfile /etc/ssh/ssh_known_hosts /etc/ssh/ssh_known_hosts2\n";

static bool has_option(const struct ssh_target *target, const char *keyword)
{
	size_t length = strlen(keyword);
	for (char **option = target->ssh_options; option && *option; option++)
		if (strncmp(*option, keyword, length) == 0 && (*option)[length] == '=')
			return true;
	return false;
}

static bool add_usual(struct config *config, struct ssh_settings *settings, const char *text)
{
	struct ssh_settings usual;
	if (!ssh_settings_parse(&usual, &config->arena, text))
		return false;
	*settings->end = usual.first;
	if (usual.first)
		settings->end = usual.end;
	return true;
}

/* The options of the command line alone, over what ssh would assume. */
static int settings_without_ssh(struct config *config, const struct surroundings *around,
                                struct ssh_settings *settings, struct failure *failure)
{
	struct ssh_target *target = &config->target;
	if (target->config_file)
		return failure_set(failure, FAILURE_USAGE,
		                   "flag '-F': reading %s needs the ssh program: install "
		                   "openssh-client",
		                   target->config_file);
	CLEANUP_FREE char *file = NULL;
	if (asprintf(&file, "%s/.ssh/config", around->ssh.home) < 0) {
		file = NULL;
		return out_of_memory(failure);
	}
	if (access(file, F_OK) == 0)
		log_warn("%s is not read: that needs the ssh program, install openssh-client",
		         file);
	if (!ssh_settings_add_options(settings, &config->arena, target->ssh_options) ||
	    (!has_option(target, "IdentityFile") &&
	     !add_usual(config, settings, usual_settings)) ||
	    !add_usual(config, settings, usual_files))
		return out_of_memory(failure);
	return 0;
}

/* ---- keys ---- */

/* A key file that the user typed must be there, as private or as public key. */
static int check_typed_keys(struct config *config, const struct surroundings *around,
                            struct failure *failure)
{
	static const char keyword[] = "IdentityFile=";
	for (char **option = config->target.ssh_options; option && *option; option++) {
		const char *value = *option + strlen(keyword), *unknown = NULL;
		if (strncmp(*option, keyword, strlen(keyword)) != 0 || strchr(value, '"') ||
		    strcasecmp(value, "none") == 0)
			continue;
		char *path = ssh_config_expand(&config->arena, value, &config->target,
		                               &around->ssh, &unknown);
		char *public = path ? arena_printf(&config->arena, "%s.pub", path) : NULL;
		if (!public)
			return out_of_memory(failure);
		if (!unknown && access(path, R_OK) < 0 && access(public, R_OK) < 0)
			return failure_set(failure, FAILURE_USAGE,
			                   "option 'IdentityFile': cannot read %s: %s", path,
			                   strerror(errno));
	}
	return 0;
}

#ifdef SSH2_HAS_RSA_SHA2
static const bool rsa_sha2 = true;
#else
static const bool rsa_sha2 = false;
#endif

static int choose_keys(struct config *config, const struct surroundings *around,
                       const struct ssh_extras *extras, struct failure *failure)
{
	struct ssh_target *target = &config->target;
	char reason[sizeof(target->needs_ssh)];
	if (check_typed_keys(config, around, failure) < 0)
		return -1;
	if (!ssh_identities_review(&config->arena, extras->identities,
	                           target->agent_socket != NULL, rsa_sha2, &target->identities,
	                           reason, sizeof(reason)))
		return out_of_memory(failure);
	if (*target->needs_ssh && target->mode == SSH_MODE_SSH2)
		return failure_set(failure, FAILURE_USAGE,
		                   "option 'transport': ssh2 cannot do this: %s: use "
		                   "transport=auto",
		                   target->needs_ssh);
	/* Keys only make ssh the better choice: transport=ssh2 may still do with a password. */
	if (!*target->needs_ssh && target->pubkey_auth && target->mode == SSH_MODE_AUTO)
		snprintf(target->needs_ssh, sizeof(target->needs_ssh), "%s", reason);
	return 0;
}

/* ---- all of it ---- */

static int resolve_ssh(struct config *config, const struct surroundings *around,
                       struct failure *failure)
{
	struct ssh_settings settings = {NULL, NULL}, builtin = {NULL, NULL};
	struct ssh_extras extras;
	char **argv = effective_argv(config), **bare_argv = builtin_argv(config);
	if (!argv || !bare_argv)
		return out_of_memory(failure);
	int ran = run_ssh_g(config, argv, &settings, failure);
	if (ran > 0)
		ran = run_ssh_g(config, bare_argv, &builtin, failure);
	if (ran < 0 ||
	    (ran == 0 && settings_without_ssh(config, around, &settings, failure) < 0))
		return -1;
	if (ssh_config_merge(&config->target, &extras, &config->arena, &settings, &builtin,
	                     &around->ssh, failure) < 0)
		return -1;
	config->batch = extras.batch;
	if (extras.keepalive_ns && !config->keepalive_given)
		config->pool.keepalive_ns = extras.keepalive_ns;
	if (extras.connect_timeout_ns && !config->connect_timeout_given)
		config->pool.connect_timeout_ns = extras.connect_timeout_ns;
	return choose_keys(config, around, &extras, failure);
}

/* A program of the user's own decides all by itself; there is nothing to ask `ssh -G`. */
static int resolve_command(struct config *config)
{
	struct ssh_target *target = &config->target;
	snprintf(target->needs_ssh, sizeof(target->needs_ssh), "ssh_command is set");
	return 0;
}

static int make_prompter(struct config *config, struct failure *failure)
{
	struct secret *password = NULL;
	if (config->password_stdin && prompter_read_line(STDIN_FILENO, &password, failure) < 0)
		return -1;
	config->target.prompter = prompter_new(password, config->batch);
	return config->target.prompter ? 0 : out_of_memory(failure);
}

int config_resolve(struct config *config, struct failure *failure)
{
	struct ssh_target *target = &config->target;
	struct surroundings around;
	if (look_around(config, &around, failure) < 0)
		return -1;
	bool ssh = target->mode != SSH_MODE_SERVER && target->mode != SSH_MODE_TCP;
	int err = 0;
	if (ssh && target->ssh_command)
		err = resolve_command(config);
	else if (ssh)
		err = resolve_ssh(config, &around, failure);
	if (err < 0)
		return err;
	if (!target->ssh_command &&
	    !arena_list_add(&config->arena, &target->ssh_command, "ssh"))
		return out_of_memory(failure);
	return make_prompter(config, failure);
}
