#include "transport/exec_argv.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"

/* A growing list of strings, NULL-terminated. */
struct strings {
	char **list;
	size_t count;
	bool failed;
};

/* Takes the string over; NULL tells that its allocation failed. */
static void strings_take(struct strings *strings, char *text)
{
	char **list =
	    text ? realloc(strings->list, (strings->count + 2) * sizeof(*list)) : NULL;
	if (!list) {
		free(text);
		strings->failed = true;
		return;
	}
	strings->list = list;
	list[strings->count++] = text;
	list[strings->count] = NULL;
}

static void strings_add(struct strings *strings, const char *text)
{
	strings_take(strings, strdup(text));
}

static __attribute__((format(printf, 2, 3))) void strings_addf(struct strings *strings,
                                                               const char *format, ...)
{
	char *text;
	va_list args;
	va_start(args, format);
	if (vasprintf(&text, format, args) < 0)
		text = NULL;
	va_end(args);
	strings_take(strings, text);
}

/* The list, or NULL (released) when something failed. */
static char **strings_finish(struct strings *strings)
{
	if (!strings->failed)
		return strings->list;
	exec_argv_free(strings->list);
	return NULL;
}

void exec_argv_free(char **argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free(argv);
}

/* Host and user names may reach a shell through %h and %r of ssh_config: none of its syntax. */
static bool name_is_safe(const char *name)
{
	if (!*name || *name == '-')
		return false;
	for (const unsigned char *c = (const unsigned char *)name; *c; c++)
		if (iscntrl(*c) || isspace(*c) || strchr("'\"`$\\;&<>|(){}", *c))
			return false;
	return true;
}

static int check_name(const char *what, const char *name, struct failure *failure)
{
	if (name_is_safe(name))
		return 0;
	return failure_set(
	    failure, FAILURE_USAGE,
	    "%s \"%s\" is refused: it must not be empty, start with - or hold blanks "
	    "or shell characters",
	    what, name);
}

/* True when an "-o" entry sets the keyword ("Key=value" or "Key value"). */
static bool option_given(const struct ssh_target *target, const char *keyword)
{
	size_t length = strlen(keyword);
	for (char **option = target->ssh_options; option && *option; option++)
		if (!strncasecmp(*option, keyword, length) && strchr("= \t", (*option)[length]))
			return true;
	return false;
}

/* Another program than OpenSSH's need not know our wishes about ciphers. */
static bool is_openssh(const struct ssh_target *target)
{
	const char *program =
	    target->ssh_command && *target->ssh_command ? *target->ssh_command : "ssh";
	const char *slash = strrchr(program, '/');
	return !strcmp(slash ? slash + 1 : program, "ssh");
}

static void add_options(struct strings *argv, const struct ssh_target *target,
                        const struct exec_wishes *wishes)
{
	static const char *const fixed[] = {"-x", "-a", "-oClearAllForwardings=yes"};
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		strings_add(argv, fixed[i]);
	if (target->config_file)
		strings_addf(argv, "-F%s", target->config_file);
	if (target->port_given)
		strings_addf(argv, "-p%u", target->port);
	if (target->user_given)
		strings_addf(argv, "-l%s", target->user);
	if (target->address_family != AF_UNSPEC)
		strings_add(argv, target->address_family == AF_INET6 ? "-6" : "-4");
	for (char **option = target->ssh_options; option && *option; option++)
		strings_addf(argv, "-o%s", *option);
	/* ssh takes the first value it meets: what follows only fills gaps of the above. */
	if (!is_openssh(target))
		return;
	static const char *const quiet[] = {"-oPermitLocalCommand=no", "-oRemoteCommand=none",
	                                    "-oRequestTTY=no"};
	for (size_t i = 0; i < ARRAY_LEN(quiet); i++)
		strings_add(argv, quiet[i]);
	if (wishes->prefer_gcm && !target->ciphers_given && !option_given(target, "Ciphers"))
		strings_add(argv, "-oCiphers=^aes128-gcm@openssh.com,aes256-gcm@openssh.com");
	if (wishes->connect_timeout_s && !option_given(target, "ConnectTimeout"))
		strings_addf(argv, "-oConnectTimeout=%u", wishes->connect_timeout_s);
}

static char **build_ssh(const struct ssh_target *target, const struct exec_wishes *wishes,
                        struct failure *failure)
{
	if (check_name("host name", target->alias, failure) ||
	    (target->user_given && check_name("user name", target->user, failure)))
		return NULL;
	struct strings argv = {0};
	if (!target->ssh_command || !*target->ssh_command)
		strings_add(&argv, "ssh");
	for (char **word = target->ssh_command; word && *word; word++)
		strings_add(&argv, *word);
	add_options(&argv, target, wishes);
	const char *server = target->sftp_server ? target->sftp_server : "sftp";
	if (!strchr(server, '/'))
		strings_add(&argv, "-s");
	strings_add(&argv, target->alias);
	strings_add(&argv, server);
	char **result = strings_finish(&argv);
	if (!result)
		failure_set(failure, FAILURE_INTERNAL, "out of memory");
	return result;
}

static char **build_server(const struct ssh_target *target, struct failure *failure)
{
	const char *server = target->sftp_server ? target->sftp_server : "";
	struct strings argv = {0};
	if (*server && access(server, F_OK) == 0)
		strings_add(&argv, server);
	else
		for (const char *at = server + strspn(server, " \t"); *at;
		     at += strspn(at, " \t")) {
			size_t length = strcspn(at, " \t");
			strings_addf(&argv, "%.*s", (int)length, at);
			at += length;
		}
	if (!argv.list && !argv.failed) {
		failure_set(failure, FAILURE_USAGE,
		            "sftp_server= is empty: give the path of an sftp-server program");
		return NULL;
	}
	char **result = strings_finish(&argv);
	if (!result)
		failure_set(failure, FAILURE_INTERNAL, "out of memory");
	return result;
}

char **exec_argv_build(const struct ssh_target *target, const struct exec_wishes *wishes,
                       struct failure *failure)
{
	return target->mode == SSH_MODE_SERVER ? build_server(target, failure)
	                                       : build_ssh(target, wishes, failure);
}

/* True when some entry of the list sets the same variable as `entry`. */
static bool sets_same(char *const *list, const char *entry)
{
	size_t name = strcspn(entry, "=") + 1;
	for (; list && *list; list++)
		if (!strncmp(*list, entry, name))
			return true;
	return false;
}

char **exec_environment(char *const *base, char *const *entries)
{
	struct strings result = {.list = calloc(1, sizeof(char *))};
	if (!result.list)
		return NULL;
	for (; base && *base; base++)
		if (!sets_same(entries, *base))
			strings_add(&result, *base);
	for (; entries && *entries; entries++)
		strings_add(&result, *entries);
	return strings_finish(&result);
}
