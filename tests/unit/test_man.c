/* moorfs(1) names every option, with its default, or why it has no effect. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "config/config.h"
#include "config/options.h"

static struct bytes manual = BYTES_INIT;

static int read_manual(void **state)
{
	(void)state;
	char path[4096], buffer[4096];
	const char *source = getenv("srcdir");
	snprintf(path, sizeof(path), "%s/man/moorfs.1", source ? source : ".");
	FILE *file = fopen(path, "re");
	if (!file) {
		fprintf(stderr, "cannot read %s: set srcdir\n", path);
		return -1;
	}
	for (size_t count; (count = fread(buffer, 1, sizeof(buffer), file)) > 0;)
		bytes_add(&manual, buffer, count);
	fclose(file);
	return manual.failed ? -1 : 0;
}

static int free_manual(void **state)
{
	(void)state;
	bytes_release(&manual);
	return 0;
}

/*
 * The text below the option's head, up to the next head; heads that follow each other share
 * theirs. NULL: the option is not in. malloc'ed.
 */
static char *find_entry(const char *name)
{
	char head[96];
	int length = snprintf(head, sizeof(head), "\n.It Cm %s", name);
	const char *at = manual.data;
	while ((at = strstr(at, head)) && at[length] != '\n' && at[length] != ' ')
		at += length;
	if (!at)
		return NULL;
	at = strchr(at + 1, '\n');
	while (at && strncmp(at, "\n.It Cm ", 8) == 0)
		at = strchr(at + 1, '\n');
	if (!at)
		return NULL;
	const char *end = strstr(at, "\n.It "), *list_end = strstr(at, "\n.El");
	if (!end || (list_end && list_end < end))
		end = list_end;
	return end ? strndup(at, (size_t)(end - at)) : strdup(at);
}

static void test_every_option(void **state)
{
	(void)state;
	unsigned missing = 0;
	const struct option *option;
	for (size_t i = 0; (option = option_at(i)); i++) {
		CLEANUP_FREE char *entry = find_entry(option->name);
		const char *wanted = option->status == OPTION_MOOT      ? "Without effect"
		                     : option->status == OPTION_REFUSED ? "Refused"
		                                                        : "";
		if (entry && strstr(entry, wanted))
			continue;
		print_error("option %s: %s\n", option->name,
		            entry ? "its status is not told" : "not in the manual");
		missing++;
	}
	assert_int_equal(missing, 0);
}

/* "The default is X", or with ".Cm X" on the next line. */
static bool tells_default(const char *entry, const char *value)
{
	char plain[96], macro[96];
	int length = snprintf(plain, sizeof(plain), "The default is %s", value);
	snprintf(macro, sizeof(macro), "The default is\n.Cm %s .", value);
	const char *at = strstr(entry, plain);
	return (at && strchr(".,", at[length])) || strstr(entry, macro);
}

static void test_defaults(void **state)
{
	(void)state;
	unsigned wrong = 0, told = 0;
	struct config defaults;
	config_set_defaults(&defaults);
	const struct option *option;
	for (size_t i = 0; (option = option_at(i)); i++) {
		char value[64];
		if (!*option_format_default(option, &defaults, value, sizeof(value)))
			continue;
		CLEANUP_FREE char *entry = find_entry(option->name);
		told++;
		if (entry && tells_default(entry, value))
			continue;
		print_error("option %s: the manual does not tell its default %s\n",
		            option->name, value);
		wrong++;
	}
	assert_int_equal(wrong, 0);
	assert_true(told >= 10);
}

/* Nothing is documented that does not exist. */
static void test_nothing_else(void **state)
{
	(void)state;
	static const char start[] = "\n.Sh OPTIONS", end[] = "\n.Sh TRANSPORT";
	const char *at = strstr(manual.data, start), *stop = strstr(manual.data, end);
	assert_true(at && stop && at < stop);
	while ((at = strstr(at, "\n.It Cm ")) && at < stop) {
		at += strlen("\n.It Cm ");
		size_t length = strcspn(at, " \n");
		bool found = false;
		const struct option *option;
		for (size_t i = 0; !found && (option = option_at(i)); i++)
			found = strlen(option->name) == length &&
			        memcmp(option->name, at, length) == 0;
		if (!found)
			fail_msg("the manual has an option %.*s that does not exist",
			         (int)length, at);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_every_option),
	    cmocka_unit_test(test_defaults),
	    cmocka_unit_test(test_nothing_else),
	};
	return cmocka_run_group_tests(tests, read_manual, free_manual);
}
