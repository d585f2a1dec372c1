/* known_hosts: which lines are about a host, what they say about a key, adding one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "transport/knownhosts.h"
#include "transport/sshkey.h"

#define KEY_A "AAAAC3NzaC1lZDI1NTE5AAAAIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define KEY_B "AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB"
#define KEY_E "AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAAAEAAAAAA=="
#define ED    " ssh-ed25519 "

/* What the text says about the base64 key for the name; *line is the deciding line or 0. */
static enum known_verdict ask(const char *text, const char *name, const char *key,
                              unsigned *line)
{
	struct knownhosts known = {0};
	const struct known_key *where;
	size_t length = 0;
	/* A copy of the exact size: a read behind the end is seen by the sanitizer. */
	CLEANUP_FREE char *copy = malloc(strlen(text) + !*text);
	CLEANUP_FREE uint8_t *blob = base64_decode(key, strlen(key), &length);
	assert_non_null(copy);
	assert_non_null(blob);
	memcpy(copy, text, strlen(text));
	assert_int_equal(knownhosts_parse(&known, name, "file", copy, strlen(text)), 0);
	enum known_verdict verdict = knownhosts_check(&known, blob, length, &where);
	*line = where ? where->line : 0;
	knownhosts_release(&known);
	return verdict;
}

static void lines_are_matched(void **state)
{
	(void)state;
	static const struct {
		const char *text, *name, *key;
		enum known_verdict verdict;
		unsigned line;
	} cases[] = {
	    {"", "h", KEY_A, KNOWN_ABSENT, 0},
	    {"h" ED KEY_A "\n", "h", KEY_A, KNOWN_MATCH, 1},
	    {"h" ED KEY_A, "h", KEY_A, KNOWN_MATCH, 1},
	    {"h" ED KEY_A " a comment\r\n", "h", KEY_A, KNOWN_MATCH, 1},
	    {"# h" ED KEY_A "\n\n\th" ED KEY_A "\n", "h", KEY_A, KNOWN_MATCH, 3},
	    {"g,h,i" ED KEY_A "\n", "h", KEY_A, KNOWN_MATCH, 1},
	    {"H" ED KEY_A "\n", "h", KEY_A, KNOWN_MATCH, 1},
	    {"*.example" ED KEY_A "\n", "a.b.example", KEY_A, KNOWN_MATCH, 1},
	    {"a?c*" ED KEY_A "\n", "abc", KEY_A, KNOWN_MATCH, 1},
	    {"a*b*c" ED KEY_A "\n", "axxbyyb", KEY_A, KNOWN_ABSENT, 0},
	    {"*,!h" ED KEY_A "\n", "h", KEY_A, KNOWN_ABSENT, 0},
	    {"!h,*" ED KEY_A "\n", "g", KEY_A, KNOWN_MATCH, 1},
	    {"hh" ED KEY_A "\n", "h", KEY_A, KNOWN_ABSENT, 0},
	    {"[h]:2222" ED KEY_A "\n", "[h]:2222", KEY_A, KNOWN_MATCH, 1},
	    {"h" ED KEY_A "\n", "[h]:2222", KEY_A, KNOWN_ABSENT, 0},
	    /* a key that differs */
	    {"g" ED KEY_A "\nh" ED KEY_B "\n", "h", KEY_A, KNOWN_CHANGED, 2},
	    {"h" ED KEY_B "\nh" ED KEY_A "\n", "h", KEY_A, KNOWN_MATCH, 2},
	    {"h ecdsa-sha2-nistp256 " KEY_E "\n", "h", KEY_A, KNOWN_OTHER_TYPE, 1},
	    {"h ecdsa-sha2-nistp256 " KEY_E "\nh" ED KEY_B "\n", "h", KEY_A, KNOWN_CHANGED, 2},
	    /* markers */
	    {"@revoked h" ED KEY_A "\n", "h", KEY_A, KNOWN_IS_REVOKED, 1},
	    {"h" ED KEY_A "\n@revoked *" ED KEY_A "\n", "h", KEY_A, KNOWN_IS_REVOKED, 2},
	    {"@revoked h" ED KEY_B "\n", "h", KEY_A, KNOWN_ABSENT, 0},
	    {"@cert-authority *" ED KEY_A "\n", "h", KEY_A, KNOWN_CA_ONLY, 1},
	    {"@cert-authority *" ED KEY_B "\nh" ED KEY_A "\n", "h", KEY_A, KNOWN_MATCH, 2},
	    {"@unheard-of h" ED KEY_A "\n", "h", KEY_A, KNOWN_ABSENT, 0},
	    /* nonsense is skipped */
	    {"h\nh ssh-ed25519\nh ssh-ed25519 ???\nh ssh-rsa " KEY_A "\n", "h", KEY_A,
	     KNOWN_ABSENT, 0},
	    {"h" ED "AAAA\nh" ED KEY_A "\n", "h", KEY_A, KNOWN_MATCH, 2},
	    {"|1|\n|1|x|y" ED KEY_A "\n|1||" ED KEY_A "\n", "h", KEY_A, KNOWN_ABSENT, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		unsigned line;
		enum known_verdict verdict =
		    ask(cases[i].text, cases[i].name, cases[i].key, &line);
		if (verdict != cases[i].verdict || line != cases[i].line)
			fail_msg("case %zu: verdict %d at line %u for %s", i, verdict, line,
			         cases[i].text);
	}
}

static void hashed_name_of_openssh_matches(void **state)
{
	(void)state;
	/* Made by ssh-keygen -H for "server.example". */
	static const char line[] =
	    "|1|zN8484PUMDH5i/3yUB3fLJEM6fA=|bg8zPuFY8dOOHmjNXteossP3uus=" ED KEY_B "\n";
	unsigned at;
	assert_int_equal(ask(line, "server.example", KEY_B, &at), KNOWN_MATCH);
	assert_int_equal(ask(line, "server.exampl", KEY_B, &at), KNOWN_ABSENT);
}

static void names_follow_port_and_alias(void **state)
{
	(void)state;
	static const struct {
		const char *host;
		unsigned port;
		const char *alias, *name;
	} cases[] = {
	    {"Host", 22, NULL, "host"},
	    {"host", 2222, NULL, "[host]:2222"},
	    {"::1", 2222, NULL, "[::1]:2222"},
	    {"host", 2222, "Alias", "alias"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CLEANUP_FREE char *name =
		    knownhosts_name(cases[i].host, cases[i].port, cases[i].alias);
		assert_string_equal(name, cases[i].name);
	}
}

/* What the file at `path` says about the key. */
static enum known_verdict ask_file(const char *path, const char *name, const char *key)
{
	struct knownhosts known = {0};
	const struct known_key *where;
	size_t length = 0;
	CLEANUP_FREE uint8_t *blob = base64_decode(key, strlen(key), &length);
	assert_int_equal(knownhosts_load(&known, name, path), 0);
	enum known_verdict verdict = knownhosts_check(&known, blob, length, &where);
	knownhosts_release(&known);
	return verdict;
}

static void added_keys_are_found(void **state)
{
	(void)state;
	char directory[] = "/tmp/test-knownhosts-XXXXXX";
	assert_non_null(mkdtemp(directory));
	char path[100], folder[80];
	snprintf(folder, sizeof(folder), "%s/.ssh", directory);
	snprintf(path, sizeof(path), "%s/known_hosts", folder);
	size_t length = 0;
	CLEANUP_FREE uint8_t *blob = base64_decode(KEY_A, strlen(KEY_A), &length);

	assert_int_equal(ask_file(path, "plain", KEY_A), KNOWN_ABSENT);
	assert_int_equal(knownhosts_add(path, "plain", false, blob, length), 0);
	struct stat st;
	assert_int_equal(stat(folder, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);

	/* A last line without its newline is not glued to the new one. */
	FILE *file = fopen(path, "a");
	assert_non_null(file);
	fputs("open" ED KEY_B, file);
	fclose(file);
	assert_int_equal(knownhosts_add(path, "[hashed]:22022", true, blob, length), 0);

	assert_int_equal(ask_file(path, "plain", KEY_A), KNOWN_MATCH);
	assert_int_equal(ask_file(path, "open", KEY_B), KNOWN_MATCH);
	assert_int_equal(ask_file(path, "[hashed]:22022", KEY_A), KNOWN_MATCH);
	assert_int_equal(ask_file(path, "[hashed]:22022", KEY_B), KNOWN_CHANGED);
	char text[2000] = "";
	file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof(text) - 1, file) > 0);
	fclose(file);
	assert_null(strstr(text, "hashed"));

	unlink(path);
	rmdir(folder);
	rmdir(directory);
}

static void unwritable_file_is_an_error(void **state)
{
	(void)state;
	size_t length = 0;
	CLEANUP_FREE uint8_t *blob = base64_decode(KEY_A, strlen(KEY_A), &length);
	assert_int_equal(knownhosts_add("/nonexistent/a/b", "h", false, blob, length), -ENOENT);
	assert_int_equal(knownhosts_add("/tmp/unused", "h", false, "x", 1), -EINVAL);
}

static void fingerprint_is_as_ssh_keygen_prints_it(void **state)
{
	(void)state;
	size_t length = 0;
	CLEANUP_FREE uint8_t *blob = base64_decode(KEY_B, strlen(KEY_B), &length);
	CLEANUP_FREE char *text = sshkey_fingerprint(blob, length);
	assert_string_equal(text, "SHA256:RXm/ruZ0eTzRXKwi1AQEDynB0VgHQ2ac9KPSFdf/YnA");
	assert_string_equal(sshkey_family(blob, length), "ED25519");
}

static void base64_refuses_what_is_none(void **state)
{
	(void)state;
	static const char *const bad[] = {"",     "A",    "AAA",    "AA A",
	                                  "A=AA", "====", "AAAA\n", "\xc3\xa4=="};
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		size_t length = 0;
		CLEANUP_FREE uint8_t *blob = base64_decode(bad[i], strlen(bad[i]), &length);
		if (blob)
			fail_msg("\"%s\" gave %zu bytes", bad[i], length);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(lines_are_matched),
	    cmocka_unit_test(hashed_name_of_openssh_matches),
	    cmocka_unit_test(names_follow_port_and_alias),
	    cmocka_unit_test(added_keys_are_found),
	    cmocka_unit_test(unwritable_file_is_an_error),
	    cmocka_unit_test(fingerprint_is_as_ssh_keygen_prints_it),
	    cmocka_unit_test(base64_refuses_what_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
