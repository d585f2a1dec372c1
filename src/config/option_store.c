#include "config/option_store.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "config/config.h"
#include "config/option_value.h"

static int out_of_memory(struct failure *failure)
{
	return failure_set(failure, FAILURE_INTERNAL, "out of memory");
}

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
char *option_absolute_path(struct config *config, const char *path)
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
	char *copy = option->kind == OPTION_PATH ? option_absolute_path(config, value)
	                                         : arena_strdup(&config->arena, value);
	if (!copy)
		return out_of_memory(failure);
	*(char **)field(config, option) = copy;
	return 0;
}

int option_store(struct config *config, const struct option *option, const char *value,
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
