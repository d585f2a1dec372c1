/* What the effective configuration of a host means for the target; see ssh_config.h. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "config/option_value.h"
#include "config/ssh_config.h"

struct merge {
	struct ssh_target *target;
	struct ssh_extras *extras;
	struct arena *arena;
	const struct ssh_settings *settings, *builtin;
	const struct ssh_surroundings *around;
	struct failure *failure;
};

static int out_of_memory(struct failure *failure)
{
	return failure_set(failure, FAILURE_INTERNAL, "out of memory");
}

static int merge_text(struct merge *merge, const char *keyword, char **field)
{
	const char *value = ssh_settings_get(merge->settings, keyword);
	if (!value)
		return 0;
	*field = arena_strdup(merge->arena, value);
	return *field ? 0 : out_of_memory(merge->failure);
}

/* ---- who and where ---- */

static int merge_place(struct merge *merge)
{
	struct ssh_target *target = merge->target;
	if (merge_text(merge, "hostname", &target->hostname) < 0 ||
	    merge_text(merge, "hostkeyalias", &target->host_key_alias) < 0)
		return -1;
	if (!target->user_given && merge_text(merge, "user", &target->user) < 0)
		return -1;
	const char *port = ssh_settings_get(merge->settings, "port");
	uint64_t number;
	if (port && !target->port_given) {
		if (!value_parse_number(port, &number) || number < 1 || number > 65535)
			return failure_set(
			    merge->failure, FAILURE_USAGE,
			    "ssh's configuration has the port '%s': it must be a "
			    "number from 1 to 65535",
			    port);
		target->port = (unsigned)number;
	}
	const char *family = ssh_settings_get(merge->settings, "addressfamily");
	if (family && strcasecmp(family, "inet") == 0)
		target->address_family = AF_INET;
	if (family && strcasecmp(family, "inet6") == 0)
		target->address_family = AF_INET6;
	return 0;
}

/* ---- host keys ---- */

static const struct {
	const char *word;
	enum host_key_policy policy;
} policies[] = {
    {"ask", HOST_KEY_ASK},     {"accept-new", HOST_KEY_ACCEPT_NEW},
    {"true", HOST_KEY_STRICT}, {"yes", HOST_KEY_STRICT},
    {"false", HOST_KEY_NO},    {"no", HOST_KEY_NO},
    {"off", HOST_KEY_NO},
};

/*
 * A list of files between spaces. ssh prints names with spaces as they are, but all are
 * absolute: a word that does not look like a start belongs to the one before it.
 */
static int merge_files(struct merge *merge, const char *keyword, char ***field)
{
	const char *value = ssh_settings_get(merge->settings, keyword);
	const char *at = value ? value : "";
	while (*at) {
		size_t length = 0;
		while (at[length] && !(at[length] == ' ' && strchr("/~\"", at[length + 1])))
			length++;
		CLEANUP_FREE char *word = strndup(at, length);
		if (!word)
			return out_of_memory(merge->failure);
		char *name = word;
		if (length >= 2 && word[0] == '"' && word[length - 1] == '"') {
			word[length - 1] = '\0';
			name++;
		}
		const char *unknown = NULL;
		char *path = *name == '~' ? ssh_config_expand(merge->arena, name, merge->target,
		                                              merge->around, &unknown)
		                          : name;
		if (!path || !arena_list_add(merge->arena, field, path))
			return out_of_memory(merge->failure);
		at += length;
		at += *at == ' ';
	}
	return 0;
}

static int merge_host_keys(struct merge *merge)
{
	struct ssh_target *target = merge->target;
	const char *value = ssh_settings_get(merge->settings, "stricthostkeychecking");
	for (size_t i = 0; value && i < ARRAY_LEN(policies); i++)
		if (strcasecmp(policies[i].word, value) == 0)
			target->host_key_policy = policies[i].policy;
	target->hash_known_hosts = ssh_settings_yes(merge->settings, "hashknownhosts");
	if (merge_files(merge, "userknownhostsfile", &target->user_known_hosts) < 0)
		return -1;
	return merge_files(merge, "globalknownhostsfile", &target->global_known_hosts);
}

/* ---- authentication ---- */

/* The words of a comma list; NULL is a list of everything. */
static bool list_has(const char *list, const char *word)
{
	size_t length = strlen(word);
	for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',')
		if (strncasecmp(at, word, length) == 0 && (!at[length] || at[length] == ','))
			return true;
	return !list;
}

static void merge_methods(struct merge *merge)
{
	struct ssh_target *target = merge->target;
	const struct ssh_settings *settings = merge->settings;
	const char *preferred = ssh_settings_get(settings, "preferredauthentications");
	target->password_auth = !ssh_settings_no(settings, "passwordauthentication") &&
	                        list_has(preferred, "password");
	target->keyboard_auth = !ssh_settings_no(settings, "kbdinteractiveauthentication") &&
	                        !ssh_settings_no(settings, "challengeresponseauthentication") &&
	                        list_has(preferred, "keyboard-interactive");
	target->pubkey_auth = !ssh_settings_no(settings, "pubkeyauthentication") &&
	                      list_has(preferred, "publickey");
	target->identities_only = ssh_settings_yes(settings, "identitiesonly");
}

static int merge_keys(struct merge *merge, const char *keyword, char ***list)
{
	for (const struct ssh_setting *at = merge->settings->first; at; at = at->next) {
		if (strcmp(at->keyword, keyword) != 0 || strcasecmp(at->value, "none") == 0)
			continue;
		CLEANUP_FREE char *name = strdup(at->value);
		if (!name)
			return out_of_memory(merge->failure);
		size_t length = strlen(name);
		bool quoted = length >= 2 && name[0] == '"' && name[length - 1] == '"';
		if (quoted)
			name[length - 1] = '\0';
		char *path = ssh_config_expand(merge->arena, name + quoted, merge->target,
		                               merge->around, &merge->extras->unknown_token);
		if (!path || !arena_list_add(merge->arena, list, path))
			return out_of_memory(merge->failure);
	}
	return 0;
}

static int merge_agent(struct merge *merge)
{
	const char *value = ssh_settings_get(merge->settings, "identityagent");
	const char *path = merge->around->agent_socket;
	bool none = false;
	for (const struct ssh_setting *at = merge->settings->first; at && !none; at = at->next)
		none = strcmp(at->keyword, "identityagent") == 0 &&
		       strcasecmp(at->value, "none") == 0;
	merge->target->agent_socket = NULL;
	if (none)
		return 0;
	if (value && value[0] == '$' && value[1] != '{')
		path = merge->around->environment(value + 1);
	else if (value && strcmp(value, "SSH_AUTH_SOCK") != 0)
		path = ssh_config_expand(merge->arena, value, merge->target, merge->around,
		                         &merge->extras->unknown_token);
	if (!path || !*path)
		return 0;
	merge->target->agent_socket = arena_strdup(merge->arena, path);
	return merge->target->agent_socket ? 0 : out_of_memory(merge->failure);
}

/* ---- algorithms ---- */

/* Only what differs from ssh's own list was asked for by somebody. */
static int merge_algorithms(struct merge *merge, const char *keyword, char **field)
{
	const char *value = ssh_settings_get(merge->settings, keyword);
	const char *usual = ssh_settings_get(merge->builtin, keyword);
	*field = NULL;
	if (!value || (usual && strcmp(value, usual) == 0))
		return 0;
	return merge_text(merge, keyword, field);
}

static int merge_all_algorithms(struct merge *merge)
{
	struct ssh_target *target = merge->target;
	if (merge_algorithms(merge, "ciphers", &target->ciphers) < 0 ||
	    merge_algorithms(merge, "kexalgorithms", &target->kex) < 0 ||
	    merge_algorithms(merge, "macs", &target->macs) < 0 ||
	    merge_algorithms(merge, "hostkeyalgorithms", &target->host_key_algorithms) < 0)
		return -1;
	target->ciphers_given = target->ciphers != NULL;
	target->compression = ssh_settings_yes(merge->settings, "compression");
	return 0;
}

/* ---- what only the ssh program can do ---- */

static const struct {
	const char *keyword;
	bool switched; /* counts when it is "yes", not when it is merely set */
	const char *reason;
} ssh_only[] = {
    {"proxyjump", false, "ProxyJump is set"},
    {"proxycommand", false, "ProxyCommand is set"},
    {"certificatefile", false, "CertificateFile is set"},
    {"pkcs11provider", false, "PKCS11Provider is set"},
    {"bindaddress", false, "BindAddress is set"},
    {"bindinterface", false, "BindInterface is set"},
    {"controlpath", false, "ControlPath is set"},
    {"knownhostscommand", false, "KnownHostsCommand is set"},
    {"revokedhostkeys", false, "RevokedHostKeys is set"},
    {"verifyhostkeydns", true, "VerifyHostKeyDNS is on"},
    {"hostbasedauthentication", true, "HostbasedAuthentication is on"},
    {"nohostauthenticationforlocalhost", true, "NoHostAuthenticationForLocalhost is on"},
    {"permitlocalcommand", true, "PermitLocalCommand is on"},
};

static void merge_needs(struct merge *merge)
{
	const char *reason = NULL;
	for (size_t i = 0; !reason && i < ARRAY_LEN(ssh_only); i++)
		if (ssh_only[i].switched
		        ? ssh_settings_yes(merge->settings, ssh_only[i].keyword)
		        : ssh_settings_get(merge->settings, ssh_only[i].keyword) != NULL)
			reason = ssh_only[i].reason;
	if (!reason && merge->around->kerberos_ticket &&
	    ssh_settings_yes(merge->settings, "gssapiauthentication"))
		reason = "GSSAPIAuthentication is on and there is a Kerberos ticket";
	if (!reason && merge->extras->unknown_token)
		reason = "a file name has a token that only ssh expands";
	snprintf(merge->target->needs_ssh, sizeof(merge->target->needs_ssh), "%s",
	         reason ? reason : "");
}

/* ---- times ---- */

static uint64_t seconds_of(const struct ssh_settings *settings, const char *keyword)
{
	const char *value = ssh_settings_get(settings, keyword);
	uint64_t ns = 0;
	return value && value_parse_seconds(value, &ns) ? ns : 0;
}

int ssh_config_merge(struct ssh_target *target, struct ssh_extras *extras, struct arena *arena,
                     const struct ssh_settings *settings, const struct ssh_settings *builtin,
                     const struct ssh_surroundings *around, struct failure *failure)
{
	struct merge merge = {target, extras, arena, settings, builtin, around, failure};
	*extras = (struct ssh_extras){.batch = ssh_settings_yes(settings, "batchmode")};
	extras->connect_timeout_ns = seconds_of(settings, "connecttimeout");
	extras->keepalive_ns = seconds_of(settings, "serveraliveinterval");

	/* the tokens of later ones stand for host, user and port */
	if (merge_place(&merge) < 0 || merge_host_keys(&merge) < 0)
		return -1;
	merge_methods(&merge);
	if (merge_keys(&merge, "identityfile", &extras->identities) < 0 ||
	    merge_keys(&merge, "certificatefile", &extras->certificates) < 0 ||
	    merge_agent(&merge) < 0 || merge_all_algorithms(&merge) < 0)
		return -1;
	merge_needs(&merge);
	return 0;
}
