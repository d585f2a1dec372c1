/* --help, made from the table of options. */
#include <string.h>

#include "config/config.h"
#include "config/options.h"

enum { HELP_INDENT = 32, HELP_WIDTH = 80 };

static const char *const titles[OPTION_GROUPS] = {
    [OPTION_GROUP_CONNECTION] = "Connection",
    [OPTION_GROUP_AUTHENTICATION] = "Authentication",
    [OPTION_GROUP_CACHE] = "Names and attributes",
    [OPTION_GROUP_IO] = "Contents of files",
    [OPTION_GROUP_LINKS] = "Links and servers' ways",
    [OPTION_GROUP_IDS] = "Owners and permissions",
    [OPTION_GROUP_MOUNT] = "Mounting",
    [OPTION_GROUP_FUSE] = "FUSE",
    [OPTION_GROUP_LOG] = "Messages",
};

/* Prints the words behind what fills `column` columns, broken between `indent` and HELP_WIDTH.
 */
static void print_wrapped(FILE *out, size_t column, size_t indent, const char *text)
{
	if (column >= indent) {
		fputc('\n', out);
		column = 0;
	}
	fprintf(out, "%*s", (int)(indent - column), "");
	column = indent;
	while (*text) {
		size_t length = strcspn(text, " ");
		if (column > indent && column + 1 + length > HELP_WIDTH) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		}
		if (column > indent)
			column += (size_t)fprintf(out, " ");
		column += (size_t)fprintf(out, "%.*s", (int)length, text);
		text += length;
		text += strspn(text, " ");
	}
	fputc('\n', out);
}

static void print_option(FILE *out, const struct option *option, const struct config *defaults)
{
	char name[64], value[64], text[512];
	snprintf(name, sizeof(name), "  -o %s%s%s", option->name, option->argument ? "=" : "",
	         option->argument ? option->argument : "");
	fputs(name, out);
	option_format_default(option, defaults, value, sizeof(value));
	snprintf(text, sizeof(text), "%s%s%s%s", option->help, *value ? " (default: " : "",
	         value, *value ? ")" : "");
	print_wrapped(out, strlen(name), HELP_INDENT, text);
}

/* Names only: why they have no effect stands in the manual. */
static void print_names(FILE *out, enum option_status status)
{
	char names[4096] = "";
	const struct option *option;
	for (size_t i = 0; (option = option_at(i)); i++) {
		if (option->status != status)
			continue;
		size_t used = strlen(names);
		snprintf(names + used, sizeof(names) - used, "%s%s", used ? ", " : "",
		         option->name);
	}
	print_wrapped(out, 0, 2, names);
}

void options_print_help(FILE *out, const struct config *defaults)
{
	const struct option *option;
	for (unsigned group = 0; group < OPTION_GROUPS; group++) {
		fprintf(out, "\n%s:\n", titles[group]);
		for (size_t i = 0; (option = option_at(i)); i++)
			if (option->group == group && option->status == OPTION_WORKS)
				print_option(out, option, defaults);
	}
	fputs("\nAccepted without effect:\n", out);
	print_names(out, OPTION_MOOT);
	fputs("\nKnown but refused, with the way out:\n", out);
	print_names(out, OPTION_REFUSED);
}
