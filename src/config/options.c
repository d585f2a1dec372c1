#include "config/options.h"

#include <string.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "config/config.h"
#include "config/option_store.h"
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

static int apply_option(struct config *config, const struct option *option, const char *value,
                        bool negated, struct failure *failure)
{
	if (option->status == OPTION_REFUSED)
		return failure_set(failure, FAILURE_USAGE, "option '%s': %s", option->name,
		                   option->help);
	if (option->status == OPTION_MOOT && !option->set)
		return 0;
	if (option->argument && !value)
		return failure_set(failure, FAILURE_USAGE,
		                   "option '%s' needs a value: give %s=%s", option->name,
		                   option->name, option->argument);
	if (!option->argument && value && option->kind != OPTION_FLAG)
		return failure_set(failure, FAILURE_USAGE, "option '%s' takes no value: '%s'",
		                   option->name, value);
	if (option_store(config, option, value, negated, failure) < 0)
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
	const char *path = relative ? option_absolute_path(config, value) : value;
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
