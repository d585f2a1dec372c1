#include "config/command_line.h"

#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "config/option_store.h"

struct command_line {
	struct config *config;
	struct options_given *given;
	struct failure *failure;
	char **argv;
	int argc, at; /* `at`: the next word */
};

struct flag {
	char letter;
	const char *word;     /* the long form, or NULL */
	const char *argument; /* what is missing, or NULL: takes none */
	int (*apply)(struct command_line *line, const char *value);
};

static int apply_help(struct command_line *line, const char *value)
{
	(void)value;
	line->config->action = CONFIG_HELP;
	return 0;
}

static int apply_version(struct command_line *line, const char *value)
{
	(void)value;
	line->config->action = CONFIG_VERSION;
	return 0;
}

static int apply_debug(struct command_line *line, const char *value)
{
	(void)value;
	return options_apply(line->config, line->given, "debug", line->failure);
}

static int apply_foreground(struct command_line *line, const char *value)
{
	(void)value;
	line->config->foreground = true;
	return 0;
}

static int apply_single(struct command_line *line, const char *value)
{
	(void)value;
	line->config->single_threaded = true;
	return 0;
}

static int apply_compression(struct command_line *line, const char *value)
{
	(void)value;
	return options_apply_keyword(line->config, "Compression", "yes", line->failure);
}

static int apply_port(struct command_line *line, const char *value)
{
	return options_apply_keyword(line->config, "Port", value, line->failure);
}

static int apply_config_file(struct command_line *line, const char *value)
{
	struct config *config = line->config;
	if (!*value)
		return failure_set(line->failure, FAILURE_USAGE,
		                   "flag '-F': the file name is empty");
	config->target.config_file = strcmp(value, "none") == 0
	                                 ? arena_strdup(&config->arena, value)
	                                 : option_absolute_path(config, value);
	if (!config->target.config_file)
		return failure_set(line->failure, FAILURE_INTERNAL, "out of memory");
	return 0;
}

static int apply_options(struct command_line *line, const char *value)
{
	return options_apply_list(line->config, line->given, value, line->failure);
}

static int refuse_protocol_1(struct command_line *line, const char *value)
{
	(void)value;
	return failure_set(line->failure, FAILURE_USAGE,
	                   "flag '-1': SSH protocol 1 is gone: leave it out");
}

static const struct flag flags[] = {
    {'h', "--help", NULL, apply_help},
    {'V', "--version", NULL, apply_version},
    {'d', "--debug", NULL, apply_debug},
    {'f', NULL, NULL, apply_foreground},
    {'s', NULL, NULL, apply_single},
    {'C', NULL, NULL, apply_compression},
    {'p', NULL, "PORT", apply_port},
    {'F', NULL, "FILE", apply_config_file},
    {'o', NULL, "OPTION[,OPTION...]", apply_options},
    {'1', NULL, NULL, refuse_protocol_1},
};

static const struct flag *find_letter(char letter)
{
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (flags[i].letter == letter)
			return &flags[i];
	return NULL;
}

static int unknown_flag(struct command_line *line, const char *text, size_t length)
{
	char shown[64];
	return failure_set(
	    line->failure, FAILURE_USAGE, "unknown flag '%s%s': moorfs --help lists the flags",
	    length == 1 ? "-" : "", log_quote(shown, sizeof(shown), text, length));
}

/* "-fs", "-p22", "-p 22" */
static int take_letters(struct command_line *line, const char *letters)
{
	for (; *letters; letters++) {
		const struct flag *flag = find_letter(*letters);
		if (!flag)
			return unknown_flag(line, letters, 1);
		if (!flag->argument) {
			if (flag->apply(line, NULL) < 0)
				return -1;
			continue;
		}
		const char *value = letters + 1;
		if (!*value) {
			if (line->at >= line->argc)
				return failure_set(line->failure, FAILURE_USAGE,
				                   "flag '-%c' needs a value: give -%c %s",
				                   flag->letter, flag->letter, flag->argument);
			value = line->argv[line->at++];
		}
		return flag->apply(line, value);
	}
	return 0;
}

static int take_word(struct command_line *line, const char *word)
{
	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (flags[i].word && strcmp(flags[i].word, word) == 0)
			return flags[i].apply(line, NULL);
	return unknown_flag(line, word, strlen(word));
}

static int take_argument(struct command_line *line, const char *text)
{
	struct config *config = line->config;
	char **place = !config->spec ? &config->spec : &config->mountpoint;
	if (*place) {
		char shown[128];
		return failure_set(
		    line->failure, FAILURE_USAGE,
		    "unexpected argument '%s': give one remote directory and one "
		    "mountpoint",
		    log_quote(shown, sizeof(shown), text, strlen(text)));
	}
	*place = arena_strdup(&config->arena, text);
	if (!*place)
		return failure_set(line->failure, FAILURE_INTERNAL, "out of memory");
	return 0;
}

int command_line_parse(struct config *config, struct options_given *given, int argc,
                       char **argv, struct failure *failure)
{
	struct command_line line = {config, given, failure, argv, argc, 1};
	bool flags_over = false;
	while (line.at < argc && config->action == CONFIG_MOUNT) {
		const char *word = argv[line.at++];
		int err;
		if (flags_over || word[0] != '-' || !word[1])
			err = take_argument(&line, word);
		else if (strcmp(word, "--") == 0)
			err = 0, flags_over = true;
		else if (word[1] == '-')
			err = take_word(&line, word);
		else
			err = take_letters(&line, word + 1);
		if (err < 0)
			return err;
	}
	return 0;
}
