/* What mount(8) says and what moorfs is told: mount/mount_words.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "mount/mount_words.h"

enum { WORDS_MAX = 16 };

struct parsed {
	struct mount_words words;
	char error[128];
	int result;
	char *line;
};

/* `line` is split at '|'. */
static void parse(struct parsed *parsed, const char *line)
{
	char *argv[WORDS_MAX] = {(char[]){"mount.moorfs"}};
	int argc = 1;
	parsed->line = strdup(line);
	char *rest = parsed->line;
	for (char *word; (word = strsep(&rest, "|")) && argc < WORDS_MAX;)
		if (*word)
			argv[argc++] = word;
	parsed->result =
	    mount_words_parse(&parsed->words, argc, argv, parsed->error, sizeof(parsed->error));
}

static void release(struct parsed *parsed)
{
	mount_words_release(&parsed->words);
	free(parsed->line);
}

static void test_good(void **state)
{
	(void)state;
	static const struct {
		const char *line, *options, *setuid;
		bool fake, verbose, sloppy;
	} cases[] = {
	    {"h:|/m", NULL, NULL, false, false, false},
	    {"h:|/m|-o|rw", "rw", NULL, false, false, false},
	    {"h:|/m|-orw,noexec|-o|user", "rw,noexec,user", NULL, false, false, false},
	    {"h:|/m|-sfnv|-o|rw", "sloppy,rw", NULL, true, true, true},
	    {"h:|/m|-v|-s", "sloppy", NULL, false, true, true},
	    {"-o|ro|h:|/m", "ro", NULL, false, false, false},
	    {"h:|/m|-t|fuse.moorfs|-o|dev,suid", "dev,suid", NULL, false, false, false},
	    {"h:|/m|-o|setuid=joe,rw", "rw", "joe", false, false, false},
	    {"h:|/m|-o|rw,setuid=joe", "rw", "joe", false, false, false},
	    {"h:|/m|-o|setuid=joe", NULL, "joe", false, false, false},
	    {"h:|/m|-o|Ciphers=\"a,setuid=x\",ro", "Ciphers=\"a,setuid=x\",ro", NULL, false,
	     false, false},
	    {"h:|/m|-o|fsname=a\\,setuid=x", "fsname=a\\,setuid=x", NULL, false, false, false},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct parsed parsed;
		parse(&parsed, cases[i].line);
		if (parsed.result < 0)
			fail_msg("%s: %s", cases[i].line, parsed.error);
		const struct mount_words *words = &parsed.words;
		assert_string_equal(words->argv[0], "moorfs");
		assert_string_equal(words->argv[1], "h:");
		assert_string_equal(words->argv[2], "/m");
		if (cases[i].options) {
			assert_string_equal(words->argv[3], "-o");
			assert_string_equal(words->argv[4], cases[i].options);
			assert_null(words->argv[5]);
		} else {
			assert_null(words->argv[3]);
		}
		if (cases[i].setuid)
			assert_string_equal(words->setuid, cases[i].setuid);
		else
			assert_null(words->setuid);
		assert_int_equal(words->fake, cases[i].fake);
		assert_int_equal(words->verbose, cases[i].verbose);
		assert_int_equal(words->sloppy, cases[i].sloppy);
		release(&parsed);
	}
	struct parsed parsed;
	parse(&parsed, "h:|/m|-N|/proc/1/ns/mnt");
	assert_string_equal(parsed.words.name_space, "/proc/1/ns/mnt");
	release(&parsed);
}

static void test_bad(void **state)
{
	(void)state;
	static const struct {
		const char *line, *message;
	} cases[] = {
	    {"", "missing source"},
	    {"h:", "missing mountpoint"},
	    {"h:|/m|/n", "unexpected argument '/n'"},
	    {"h:|/m|-o", "flag '-o' needs a value"},
	    {"h:|/m|-N", "flag '-N' needs a value"},
	    {"h:|/m|-x", "unknown flag in '-x'"},
	    {"h:|/m|-fx", "unknown flag in '-x'"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct parsed parsed;
		parse(&parsed, cases[i].line);
		assert_int_equal(parsed.result, -1);
		assert_string_equal(parsed.error, cases[i].message);
		release(&parsed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good),
	    cmocka_unit_test(test_bad),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
