#include "config/options.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "config/config.h"
#include "config/option_value.h"
#include "config/ssh_keywords.h"

static int out_of_memory(struct failure *failure)
{
	return failure_set(failure, FAILURE_INTERNAL, "out of memory");
}

/* ---- looking up ---- */

static const struct option *find_exact(const char *name, size_t length)
{
	const struct option *option;
	for (size_t i = 0; (option = option_at(i)); i++)
		if (strlen(option->name) == length && memcmp(option->name, name, length) == 0)
			return option;
	return NULL;
}

/* "noX" and "no_X" of a switch; *negated tells. */
static const struct option *find_negated(const char *name, size_t length)
{
	static const char *const prefixes[] = {"no_", "no"};
	for (size_t i = 0; i < ARRAY_LEN(prefixes); i++) {
		size_t skip = strlen(prefixes[i]);
		if (length <= skip || memcmp(name, prefixes[i], skip) != 0)
			continue;
		const struct option *option = find_exact(name + skip, length - skip);
		if (option && option->kind == OPTION_FLAG && option->on)
			return option;
	}
	return NULL;
}

static const struct option *find_option(const char *name, size_t length, bool *negated)
{
	const struct option *option = find_exact(name, length);
	*negated = false;
	if (!option && length > 2 && (name[0] == 'x' || name[0] == 'X') && name[1] == '-')
		option = find_exact("x-*", 3);
	if (!option && (option = find_negated(name, length)))
		*negated = true;
	return option;
}

const char *option_nearest(const char *name)
{
	const char *nearest = NULL;
	unsigned best = 1 + (unsigned)MIN(strlen(name) / 3, 3);
	const struct option *option;
	for (size_t i = 0; (option = option_at(i)); i++) {
		unsigned distance = value_edit_distance(name, option->name);
		if (distance < best && option->status != OPTION_REFUSED) {
			best = distance;
			nearest = option->name;
		}
	}
	const struct ssh_keyword *keyword;
	for (size_t i = 0; (keyword = ssh_keyword_at(i)); i++) {
		unsigned distance = value_edit_distance(name, keyword->name);
		if (distance < best) {
			best = distance;
			nearest = keyword->name;
		}
	}
	return nearest;
}

bool options_was_given(const struct options_given *given, const char *name)
{
	const struct option *option;
	for (size_t i = 0; (option = option_at(i)); i++)
		if (strcmp(option->name, name) == 0)
			return given->given[i];
	return false;
}

static void mark_given(struct options_given *given, const struct option *option)
{
	given->given[option - option_at(0)] = true;
}

/* ---- storing ---- */

static void *field(struct config *config, const struct option *option)
{
	return (char *)config + option->offset;
}

static void store_integer(struct config *config, const struct option *option, uint64_t value)
{
	uint32_t narrow = (uint32_t)value;
	if (option->size == sizeof(value))
		memcpy(field(config, option), &value, sizeof(value));
	else
		memcpy(field(config, option), &narrow, sizeof(narrow));
}

static uint64_t load_integer(const struct config *config, const struct option *option)
{
	uint64_t value = 0;
	uint32_t narrow = 0;
	const char *from = (const char *)config + option->offset;
	if (option->size == sizeof(value)) {
		memcpy(&value, from, sizeof(value));
		return value;
	}
	memcpy(&narrow, from, sizeof(narrow));
	return narrow;
}

/* Names the value and what is allowed. */
static int bad_value(const struct option *option, const char *value, const char *fault,
                     const char *allowed, struct failure *failure)
{
	char shown[96];
	return failure_set(failure, FAILURE_USAGE, "option '%s': '%s' %s: give %s",
	                   option->name, log_quote(shown, sizeof(shown), value, strlen(value)),
	                   fault, allowed);
}

static int store_flag(struct config *config, const struct option *option, const char *value,
                      bool negated, struct failure *failure)
{
	bool on = true;
	if (value && !value_parse_flag(value, &on))
		return bad_value(option, value, "is neither yes nor no", "yes or no", failure);
	if (negated)
		on = !on;
	*(bool *)field(config, option) = on ? option->on : !option->on;
	return 0;
}

static int store_enum(struct config *config, const struct option *option, const char *value,
                      struct failure *failure)
{
	char allowed[128] = "";
	for (const struct option_word *word = option->words; word->word; word++) {
		if (strcmp(word->word, value) == 0) {
			store_integer(config, option, word->value);
			return 0;
		}
		size_t used = strlen(allowed);
		snprintf(allowed + used, sizeof(allowed) - used, "%s%s",
		         !used ? "" : (word[1].word ? ", " : " or "), word->word);
	}
	return bad_value(option, value, "is not known", allowed, failure);
}

static char *format_integer(const struct option *option, uint64_t value, char *out, size_t size)
{
	switch (option->kind) {
	case OPTION_SECONDS:
		return value_format_seconds(out, size, value);
	case OPTION_SIZE:
		return value_format_size(out, size, value);
	case OPTION_OCTAL:
		snprintf(out, size, "0%" PRIo64, value);
		return out;
	default:
		snprintf(out, size, "%" PRIu64, value);
		return out;
	}
}

typedef bool parse_fn(const char *text, uint64_t *value);

static int store_parsed(struct config *config, const struct option *option, const char *value,
                        parse_fn *parse, const char *form, struct failure *failure)
{
	uint64_t parsed;
	if (!parse(value, &parsed))
		return bad_value(option, value, "is no such value", form, failure);
	if (parsed < option->min || parsed > option->max) {
		char least[32], most[32], allowed[80];
		snprintf(allowed, sizeof(allowed), "%s to %s",
		         format_integer(option, option->min, least, sizeof(least)),
		         format_integer(option, option->max, most, sizeof(most)));
		return bad_value(option, value, "is out of range", allowed, failure);
	}
	store_integer(config, option, parsed);
	return 0;
}

/* A relative path is meant from where moorfs was started; the daemon lives elsewhere. */
static char *absolute_path(struct config *config, const char *path)
{
	char cwd[PATH_MAX];
	if (*path == '/' || !getcwd(cwd, sizeof(cwd)))
		return arena_strdup(&config->arena, path);
	return arena_printf(&config->arena, "%s/%s", strcmp(cwd, "/") == 0 ? "" : cwd, path);
}

static int store_text(struct config *config, const struct option *option, const char *value,
                      struct failure *failure)
{
	if (!*value)
		return failure_set(failure, FAILURE_USAGE, "option '%s' is empty: give %s=%s",
		                   option->name, option->name, option->argument);
	char *copy = option->kind == OPTION_PATH ? absolute_path(config, value)
	                                         : arena_strdup(&config->arena, value);
	if (!copy)
		return out_of_memory(failure);
	*(char **)field(config, option) = copy;
	return 0;
}

static int store(struct config *config, const struct option *option, const char *value,
                 bool negated, struct failure *failure)
{
	switch (option->kind) {
	case OPTION_FLAG:
		return store_flag(config, option, value, negated, failure);
	case OPTION_STRING:
	case OPTION_PATH:
		return store_text(config, option, value, failure);
	case OPTION_NUMBER:
		return store_parsed(config, option, value, value_parse_number, "a number",
		                    failure);
	case OPTION_OCTAL:
		return store_parsed(config, option, value, value_parse_octal,
		                    "octal digits such as 022", failure);
	case OPTION_SECONDS:
		return store_parsed(config, option, value, value_parse_seconds,
		                    "seconds, or a number with ms, s, m or h", failure);
	case OPTION_SIZE:
		return store_parsed(config, option, value, value_parse_size,
		                    "bytes, or a number with K, M, G or T", failure);
	case OPTION_ENUM:
		return store_enum(config, option, value, failure);
	case OPTION_MOUNT:
		if (!arena_list_add(&config->arena, &config->fuse_options, option->name))
			return out_of_memory(failure);
		return 0;
	case OPTION_CUSTOM:
		return 0;
	}
	return 0;
}

static int apply_option(struct config *config, const struct option *option, const char *value,
                        bool negated, struct failure *failure)
{
	if (option->status == OPTION_REFUSED)
		return failure_set(failure, FAILURE_USAGE, "option '%s': %s", option->name,
		                   option->help);
	if (option->status == OPTION_MOOT)
		return 0;
	if (option->argument && !value)
		return failure_set(failure, FAILURE_USAGE,
		                   "option '%s' needs a value: give %s=%s", option->name,
		                   option->name, option->argument);
	if (!option->argument && value && option->kind != OPTION_FLAG)
		return failure_set(failure, FAILURE_USAGE, "option '%s' takes no value: '%s'",
		                   option->name, value);
	if (store(config, option, value, negated, failure) < 0)
		return -1;
	return option->set ? option->set(config, option, value, failure) : 0;
}

/* ---- ssh_config keywords ---- */

static int set_port(struct config *config, const char *value, struct failure *failure)
{
	uint64_t port;
	if (!value_parse_number(value, &port) || port < 1 || port > 65535)
		return failure_set(failure, FAILURE_USAGE,
		                   "port '%s' is not a number from 1 to 65535", value);
	if (config->target.port_given && config->target.port != port)
		return failure_set(failure, FAILURE_USAGE,
		                   "two different ports are given, %u and %u: give one",
		                   config->target.port, (unsigned)port);
	config->target.port = (unsigned)port;
	config->target.port_given = true;
	return 0;
}

static int set_user(struct config *config, const char *value, struct failure *failure)
{
	if (config->target.user_given && strcmp(config->target.user, value) != 0)
		return failure_set(failure, FAILURE_USAGE,
		                   "two different users are given, '%s' and '%s': give one",
		                   config->target.user, value);
	config->target.user = arena_strdup(&config->arena, value);
	config->target.user_given = true;
	return config->target.user ? 0 : out_of_memory(failure);
}

int options_apply_keyword(struct config *config, const char *name, const char *value,
                          struct failure *failure)
{
	const struct ssh_keyword *keyword = ssh_keyword_find(name, strlen(name));
	if (!keyword)
		return failure_set(failure, FAILURE_INTERNAL, "'%s' is no ssh_config keyword",
		                   name);
	if (!value || !*value)
		return failure_set(failure, FAILURE_USAGE,
		                   "option '%s' needs a value: give %s=VALUE", keyword->name,
		                   keyword->name);
	if (strpbrk(value, "\n\r"))
		return failure_set(failure, FAILURE_USAGE,
		                   "option '%s': the value holds a line end", keyword->name);
	if (strcmp(keyword->name, "Port") == 0)
		return set_port(config, value, failure);
	if (strcmp(keyword->name, "User") == 0)
		return set_user(config, value, failure);

	/* ssh expands "~", "%d" and "${HOME}", and splits at spaces: leave those to it. */
	bool relative =
	    keyword->path && !strchr("/~%$\"", *value) && strcmp(value, "none") != 0;
	const char *path = relative ? absolute_path(config, value) : value;
	char *entry = path ? arena_printf(&config->arena, "%s=%s", keyword->name, path) : NULL;
	if (!entry || !arena_list_add(&config->arena, &config->target.ssh_options, entry))
		return out_of_memory(failure);
	return 0;
}

/* ---- one option, a list of them ---- */

static int unknown_option(struct config *config, const char *name, struct failure *failure)
{
	char shown[96];
	log_quote(shown, sizeof(shown), name, strlen(name));
	const char *nearest = option_nearest(name);
	if (config->sloppy) {
		log_warn("unknown option '%s' is ignored", shown);
		return 0;
	}
	if (nearest)
		return failure_set(failure, FAILURE_USAGE,
		                   "unknown option '%s': did you mean '%s'?", shown, nearest);
	return failure_set(
	    failure, FAILURE_USAGE,
	    "unknown option '%s': moorfs --help lists the options (a comma inside "
	    "a value is written \\,)",
	    shown);
}

/* mount(8) hands on `name="value"`, quoted when the value has commas. */
static void strip_quotes(char *value)
{
	size_t length = strlen(value);
	if (length >= 2 && value[0] == '"' && strchr(value + 1, '"') == value + length - 1) {
		memmove(value, value + 1, length - 2);
		value[length - 2] = '\0';
	}
}

int options_apply(struct config *config, struct options_given *given, const char *text,
                  struct failure *failure)
{
	CLEANUP_FREE char *name = strdup(text);
	if (!name)
		return out_of_memory(failure);
	char *value = strchr(name, '=');
	if (value)
		*value++ = '\0';

	bool negated;
	const struct option *option = find_option(name, strlen(name), &negated);
	bool keyword = ssh_keyword_find(name, strlen(name)) != NULL;
	/* "user" is for mount(8), "user=name" is ssh's */
	if (keyword && (!option || (value && option->status == OPTION_MOOT)))
		return options_apply_keyword(config, name, value, failure);
	if (!option)
		return unknown_option(config, name, failure);
	if (value)
		strip_quotes(value);
	if (apply_option(config, option, value, negated, failure) < 0)
		return -1;
	mark_given(given, option);
	return 0;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* One element of the list at *at into `out`, escapes undone; advances behind its comma. */
static void take_element(const char **at, struct bytes *out)
{
	bool quoted = false;
	const char *from = *at;
	for (; *from && (quoted || *from != ','); from++) {
		if (*from == '"')
			quoted = quoted ? false : strchr(from + 1, '"') != NULL;
		if (*from != '\\' || !from[1]) {
			bytes_add_byte(out, (uint8_t)*from);
		} else if (is_octal(from[1]) && from[1] <= '3' && is_octal(from[2]) &&
		           is_octal(from[3])) {
			bytes_add_byte(out, (uint8_t)((from[1] - '0') * 64 +
			                              (from[2] - '0') * 8 + (from[3] - '0')));
			from += 3;
		} else {
			bytes_add_byte(out, (uint8_t) * ++from);
		}
	}
	bytes_add_byte(out, 0);
	*at = *from ? from + 1 : from;
}

int options_apply_list(struct config *config, struct options_given *given, const char *list,
                       struct failure *failure)
{
	struct bytes element = BYTES_INIT;
	int err = 0;
	while (*list && err == 0) {
		bytes_clear(&element);
		take_element(&list, &element);
		if (element.failed)
			err = out_of_memory(failure);
		else if (*element.data)
			err = options_apply(config, given, element.data, failure);
	}
	bytes_release(&element);
	return err;
}

/* ---- rules over several options ---- */

static const struct {
	const char *a, *b, *why;
} conflicts[] = {
    {"allow_other", "allow_root", "they exclude each other: give one"},
    {"direct_io", "kernel_cache",
     "without pages in the kernel there is nothing to keep: give one"},
    {"ssh_command", "directport", "directport uses no ssh: give one"},
    {"sftp_server", "directport", "directport starts no server: give one"},
    {"transport", "directport", "directport uses no SSH: give one"},
};

static int check_conflicts(const struct options_given *given, struct failure *failure)
{
	for (size_t i = 0; i < ARRAY_LEN(conflicts); i++)
		if (options_was_given(given, conflicts[i].a) &&
		    options_was_given(given, conflicts[i].b))
			return failure_set(failure, FAILURE_USAGE, "options '%s' and '%s': %s",
			                   conflicts[i].a, conflicts[i].b, conflicts[i].why);
	return 0;
}

static int check_idmap(const struct config *config, struct failure *failure)
{
	bool files = config->uid_file || config->gid_file;
	if (config->vfs.idmap == VFS_IDMAP_FILE && !files)
		return failure_set(
		    failure, FAILURE_USAGE,
		    "option 'idmap': file needs the files: give uidfile=, gidfile= "
		    "or both");
	if (config->vfs.idmap != VFS_IDMAP_FILE && files)
		return failure_set(failure, FAILURE_USAGE,
		                   "option '%s' has no effect without idmap=file: give both",
		                   config->uid_file ? "uidfile" : "gidfile");
	return 0;
}

static int check_sizes(struct config *config, struct failure *failure)
{
	if (config->vfs.attr_min_ns > config->vfs.attr_max_ns)
		return failure_set(
		    failure, FAILURE_USAGE,
		    "option 'attr_timeout_min' is above attr_timeout_max: make it "
		    "smaller");
	if (config->io.dirty_limit <= config->io.cache_size)
		return 0;
	if (config->dirty_limit_given)
		return failure_set(
		    failure, FAILURE_USAGE,
		    "option 'write_queue' is above cache_size, which it is part of: "
		    "make it smaller");
	config->io.dirty_limit = config->io.cache_size / 4;
	return 0;
}

static int check_transport(struct config *config, struct failure *failure)
{
	if (config->target.ssh_command && config->target.mode == SSH_MODE_SSH2)
		return failure_set(
		    failure, FAILURE_USAGE,
		    "options 'ssh_command' and 'transport': ssh2 runs no ssh: give "
		    "one");
	if (config->target.direct_port)
		config->target.mode = SSH_MODE_TCP;
	return 0;
}

int options_check(struct config *config, const struct options_given *given,
                  struct failure *failure)
{
	if (check_conflicts(given, failure) < 0 || check_idmap(config, failure) < 0 ||
	    check_sizes(config, failure) < 0 || check_transport(config, failure) < 0)
		return -1;
	if (config->allow_other)
		config->default_permissions = true;
	return 0;
}

/* ---- help ---- */

char *option_format_default(const struct option *option, const struct config *defaults,
                            char *out, size_t size)
{
	*out = '\0';
	if (option->quiet_default || option->status != OPTION_WORKS || option->size == 0)
		return out;
	uint64_t value;
	switch (option->kind) {
	case OPTION_NUMBER:
	case OPTION_OCTAL:
	case OPTION_SECONDS:
	case OPTION_SIZE:
		value = load_integer(defaults, option);
		/* outside the range stands for "not set" */
		return value < option->min ? out : format_integer(option, value, out, size);
	case OPTION_ENUM:
		value = load_integer(defaults, option);
		for (const struct option_word *word = option->words; word->word; word++)
			if (word->value == value)
				snprintf(out, size, "%s", word->word);
		return out;
	default:
		return out;
	}
}
