#include "config/option_set.h"

#include <ctype.h>
#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/config.h"
#include "config/option_value.h"

static int out_of_memory(struct failure *failure)
{
	return failure_set(failure, FAILURE_INTERNAL, "out of memory");
}

static int bad_value(const struct option *option, const char *value, const char *allowed,
                     struct failure *failure)
{
	char shown[96];
	return failure_set(failure, FAILURE_USAGE, "option '%s': '%s' is not known: give %s",
	                   option->name, log_quote(shown, sizeof(shown), value, strlen(value)),
	                   allowed);
}

/* ---- marks beside a stored value ---- */

int option_set_keepalive(struct config *config, const struct option *option, const char *value,
                         struct failure *failure)
{
	(void)option, (void)value, (void)failure;
	config->keepalive_given = true;
	return 0;
}

int option_set_connect_timeout(struct config *config, const struct option *option,
                               const char *value, struct failure *failure)
{
	(void)option, (void)value, (void)failure;
	config->connect_timeout_given = true;
	return 0;
}

int option_set_write_queue(struct config *config, const struct option *option,
                           const char *value, struct failure *failure)
{
	(void)option, (void)value, (void)failure;
	config->dirty_limit_given = true;
	return 0;
}

int option_set_uid(struct config *config, const struct option *option, const char *value,
                   struct failure *failure)
{
	(void)option, (void)value, (void)failure;
	config->vfs.set_uid = true;
	return 0;
}

int option_set_gid(struct config *config, const struct option *option, const char *value,
                   struct failure *failure)
{
	(void)option, (void)value, (void)failure;
	config->vfs.set_gid = true;
	return 0;
}

int option_set_umask(struct config *config, const struct option *option, const char *value,
                     struct failure *failure)
{
	(void)option, (void)value, (void)failure;
	config->vfs.set_umask = true;
	return 0;
}

int option_set_uidfile(struct config *config, const struct option *option, const char *value,
                       struct failure *failure)
{
	(void)option, (void)value, (void)failure;
	config->vfs.uid_file = config->uid_file;
	return 0;
}

int option_set_gidfile(struct config *config, const struct option *option, const char *value,
                       struct failure *failure)
{
	(void)option, (void)value, (void)failure;
	config->vfs.gid_file = config->gid_file;
	return 0;
}

/* ---- values of their own kind ---- */

int option_set_debug(struct config *config, const struct option *option, const char *value,
                     struct failure *failure)
{
	(void)option, (void)value, (void)failure;
	config->debug = true;
	config->foreground = true;
	return 0;
}

static int parse_timeout(const struct option *option, const char *value, int64_t *ns,
                         struct failure *failure)
{
	uint64_t parsed = 0;
	if (!value_parse_seconds(value, &parsed))
		return bad_value(option, value, "seconds, or a number with ms, s, m or h",
		                 failure);
	*ns = (int64_t)parsed;
	return 0;
}

int option_set_dcache_stat(struct config *config, const struct option *option,
                           const char *value, struct failure *failure)
{
	int64_t ns = -1;
	if (parse_timeout(option, value, &ns, failure) < 0)
		return -1;
	config->vfs.attr_timeout_ns = config->vfs.entry_timeout_ns = ns;
	return 0;
}

int option_set_dcache_timeout(struct config *config, const struct option *option,
                              const char *value, struct failure *failure)
{
	if (option_set_dcache_stat(config, option, value, failure) < 0)
		return -1;
	config->vfs.dir_timeout_ns = (uint64_t)config->vfs.attr_timeout_ns;
	return 0;
}

int option_set_directport(struct config *config, const struct option *option, const char *value,
                          struct failure *failure)
{
	uint64_t port;
	if (!value_parse_number(value, &port) || port < 1 || port > 65535)
		return bad_value(option, value, "a port from 1 to 65535", failure);
	config->target.direct_port = (unsigned)port;
	return 0;
}

int option_set_ssh_protocol(struct config *config, const struct option *option,
                            const char *value, struct failure *failure)
{
	(void)config;
	if (strcmp(value, "1") == 0)
		return failure_set(
		    failure, FAILURE_USAGE,
		    "option 'ssh_protocol': SSH protocol 1 is gone: leave it out");
	return strcmp(value, "2") == 0 ? 0 : bad_value(option, value, "2", failure);
}

int option_set_trace(struct config *config, const struct option *option, const char *value,
                     struct failure *failure)
{
	(void)config;
	CLEANUP_FREE char *parts = strdup(value);
	if (!parts)
		return out_of_memory(failure);
	for (char *at = parts; (at = strchr(at, ':'));)
		*at = ',';
	if (!*parts || log_set_trace(parts) < 0)
		return bad_value(
		    option, value,
		    "main, fuse, vfs, io, pool, sftp, ssh or all, joined by colons", failure);
	return 0;
}

/* ---- workaround ---- */

enum workaround {
	WORKAROUND_RENAME,
	WORKAROUND_RENAMEXDEV,
	WORKAROUND_TRUNCATE,
	WORKAROUND_FSTAT,
	WORKAROUND_CREATEMODE,
	WORKAROUND_BUFLIMIT,
	WORKAROUNDS
};

static const char *const workaround_names[WORKAROUNDS] = {"rename", "renamexdev", "truncate",
                                                          "fstat",  "createmode", "buflimit"};

static bool *workaround_field(struct config *config, enum workaround which)
{
	bool *const fields[WORKAROUNDS] = {
	    &config->workaround.rename,     &config->workaround.renamexdev,
	    &config->workaround.truncate,   &config->workaround.fstat,
	    &config->workaround.createmode, NULL};
	return fields[which];
}

static void workaround_set_all(struct config *config, bool on)
{
	for (unsigned i = 0; i < WORKAROUNDS; i++) {
		bool *field = workaround_field(config, i);
		if (field)
			*field = on;
	}
}

static bool workaround_set(struct config *config, const char *word, size_t length)
{
	if (length == 4 && memcmp(word, "none", 4) == 0) {
		workaround_set_all(config, false);
		return true;
	}
	if (length == 3 && memcmp(word, "all", 3) == 0) {
		workaround_set_all(config, true);
		return true;
	}
	bool on = length < 2 || memcmp(word, "no", 2) != 0;
	if (!on) {
		word += 2;
		length -= 2;
	}
	for (unsigned i = 0; i < WORKAROUNDS; i++) {
		if (strlen(workaround_names[i]) != length ||
		    memcmp(workaround_names[i], word, length) != 0)
			continue;
		bool *field = workaround_field(config, i);
		if (field)
			*field = on;
		return true;
	}
	return false;
}

int option_set_workaround(struct config *config, const struct option *option, const char *value,
                          struct failure *failure)
{
	for (const char *at = value;; at++) {
		size_t length = strcspn(at, ":");
		if (!workaround_set(config, at, length))
			return bad_value(
			    option, value,
			    "none, all, or rename, renamexdev, truncate, buflimit, "
			    "fstat, createmode, joined by colons, 'no' before any",
			    failure);
		at += length;
		if (!*at)
			return 0;
	}
}

/* ---- ssh_command ---- */

/* Appends one character of a word at **at to it, as sh(1) quotes. False: a quote is open. */
static bool take_quoted(const char **at, struct bytes *word)
{
	char c = *(*at)++;
	if (c == '\\') {
		if (!**at)
			return false;
		bytes_add_byte(word, (uint8_t) * (*at)++);
		return true;
	}
	if (c != '\'' && c != '"') {
		bytes_add_byte(word, (uint8_t)c);
		return true;
	}
	for (; **at && **at != c; (*at)++) {
		if (c == '"' && **at == '\\' && (*at)[1] && strchr("\"\\$`", (*at)[1]))
			(*at)++;
		bytes_add_byte(word, (uint8_t) * *at);
	}
	if (**at != c)
		return false;
	(*at)++;
	return true;
}

int option_set_ssh_command(struct config *config, const struct option *option,
                           const char *value, struct failure *failure)
{
	char **words = NULL;
	struct bytes word = BYTES_INIT;
	int err = 0;
	for (const char *at = value; err == 0;) {
		while (isspace((unsigned char)*at))
			at++;
		if (!*at)
			break;
		bytes_clear(&word);
		while (err == 0 && *at && !isspace((unsigned char)*at))
			if (!take_quoted(&at, &word))
				err = failure_set(failure, FAILURE_USAGE,
				                  "option '%s': a quote is not closed: %s",
				                  option->name, value);
		bytes_add_byte(&word, 0);
		if (err == 0 &&
		    (word.failed || !arena_list_add(&config->arena, &words, word.data)))
			err = out_of_memory(failure);
	}
	bytes_release(&word);
	if (err < 0)
		return err;
	if (!words)
		return failure_set(failure, FAILURE_USAGE,
		                   "option '%s': the command is empty: give %s=%s",
		                   option->name, option->name, option->argument);
	config->target.ssh_command = words;
	return 0;
}
