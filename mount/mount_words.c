#include "mount/mount_words.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 3, 4))) static int refuse(char *error, size_t size,
                                                        const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(error, size, format, args);
	va_end(args);
	return -1;
}

/* Up to the comma that ends the element; commas in quotes and behind '\' do not. */
static size_t element_length(const char *text)
{
	bool quoted = false;
	size_t length = 0;
	for (; text[length] && (quoted || text[length] != ','); length++) {
		if (text[length] == '"')
			quoted = quoted ? false : strchr(text + length + 1, '"') != NULL;
		if (text[length] == '\\' && text[length + 1])
			length++;
	}
	return length;
}

static bool append(char **list, const char *text, size_t length)
{
	char *joined = NULL;
	if (asprintf(&joined, "%s%s%.*s", *list ? *list : "", *list ? "," : "", (int)length,
	             text) < 0)
		return false;
	free(*list);
	*list = joined;
	return true;
}

/* Sorts the options: setuid= is ours, the rest is for moorfs, which knows mount(8)'s own. */
static bool take_options(struct mount_words *words, const char *list)
{
	static const char setuid[] = "setuid=";
	while (*list) {
		size_t length = element_length(list);
		if (length > strlen(setuid) && strncmp(list, setuid, strlen(setuid)) == 0) {
			free(words->setuid);
			words->setuid = strndup(list + strlen(setuid), length - strlen(setuid));
			if (!words->setuid)
				return false;
		} else if (length > 0 && !append(&words->options, list, length)) {
			return false;
		}
		list += length;
		list += *list == ',';
	}
	return true;
}

static int take_flags(struct mount_words *words, const char *letters, char *error, size_t size)
{
	for (; *letters; letters++) {
		switch (*letters) {
		case 's':
			words->sloppy = true;
			break;
		case 'f':
			words->fake = true;
			break;
		case 'v':
			words->verbose = true;
			break;
		case 'n': /* there is no mtab to leave alone */
			break;
		default:
			return refuse(error, size, "unknown flag in '-%s'", letters);
		}
	}
	return 0;
}

static int take_place(struct mount_words *words, char *text, char *error, size_t size)
{
	if (!words->spec)
		words->spec = text;
	else if (!words->dir)
		words->dir = text;
	else
		return refuse(error, size, "unexpected argument '%s'", text);
	return 0;
}

static int take_value(struct mount_words *words, char flag, const char *value, char *error,
                      size_t size)
{
	if (flag == 'N')
		words->name_space = value;
	if (flag == 'o' && !take_options(words, value))
		return refuse(error, size, "out of memory");
	return 0; /* -t: the type is ours, or mount(8) would not have started us */
}

/* It must be known before the options that it is about. */
static bool put_sloppy_first(struct mount_words *words)
{
	char *joined = NULL;
	if (asprintf(&joined, "sloppy%s%s", words->options ? "," : "",
	             words->options ? words->options : "") < 0)
		return false;
	free(words->options);
	words->options = joined;
	return true;
}

static void make_argv(struct mount_words *words)
{
	static char program[] = "moorfs", flag[] = "-o";
	size_t count = 0;
	words->argv[count++] = program;
	words->argv[count++] = words->spec;
	words->argv[count++] = words->dir;
	if (words->options) {
		words->argv[count++] = flag;
		words->argv[count++] = words->options;
	}
	words->argv[count] = NULL;
}

int mount_words_parse(struct mount_words *words, int argc, char **argv, char *error,
                      size_t size)
{
	*words = (struct mount_words){0};
	for (int i = 1; i < argc; i++) {
		char *word = argv[i];
		int err = 0;
		if (word[0] != '-' || !word[1]) {
			err = take_place(words, word, error, size);
		} else if (strchr("oNt", word[1])) {
			const char *value =
			    word[2] ? word + 2 : (i + 1 < argc ? argv[++i] : NULL);
			err = value ? take_value(words, word[1], value, error, size)
			            : refuse(error, size, "flag '%s' needs a value", word);
		} else {
			err = take_flags(words, word + 1, error, size);
		}
		if (err < 0)
			return err;
	}
	if (!words->spec || !words->dir)
		return refuse(error, size, "missing %s", words->spec ? "mountpoint" : "source");
	if (words->spec[0] == '-' || words->dir[0] == '-')
		return refuse(error, size, "'%s' starts with '-'",
		              words->spec[0] == '-' ? words->spec : words->dir);
	if (words->sloppy && !put_sloppy_first(words))
		return refuse(error, size, "out of memory");
	make_argv(words);
	return 0;
}

void mount_words_release(struct mount_words *words)
{
	free(words->options);
	free(words->setuid);
	*words = (struct mount_words){0};
}
