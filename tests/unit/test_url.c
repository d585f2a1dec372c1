/* The remote directory as people write it: config/url.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "config/url.h"

static void assert_text(const char *wanted, const char *found)
{
	if (!wanted)
		assert_null(found);
	else if (!found)
		fail_msg("wanted '%s', found nothing", wanted);
	else
		assert_string_equal(wanted, found);
}

static void test_good(void **state)
{
	(void)state;
	static const struct {
		const char *text, *user, *host, *dir;
		unsigned port;
	} cases[] = {
	    {"host:", NULL, "host", "", 0},
	    {"host:dir", NULL, "host", "dir", 0},
	    {"host:/dir", NULL, "host", "/dir", 0},
	    {"host:~", NULL, "host", "~", 0},
	    {"host:~/x", NULL, "host", "~/x", 0},
	    {"user@host:", "user", "host", "", 0},
	    {"user@host:/a b", "user", "host", "/a b", 0},
	    {"a@b.example@host:x", "a@b.example", "host", "x", 0},
	    {"host:a@b:c", NULL, "host", "a@b:c", 0},
	    {"user:x@host:dir", NULL, "user", "x@host:dir", 0},
	    {"host:dir@[x]:y", NULL, "host", "dir@[x]:y", 0},
	    {"[::1]:/x", NULL, "::1", "/x", 0},
	    {"user@[fe80::1%eth0]:", "user", "fe80::1%eth0", "", 0},
	    {"a@b@[::1]:d", "a@b", "::1", "d", 0},
	    {"[host]:d", NULL, "host", "d", 0},
	    {"127.0.0.1:/", NULL, "127.0.0.1", "/", 0},
	    {"under_score.example:", NULL, "under_score.example", "", 0},
	    {"host:sftp://x", NULL, "host", "sftp://x", 0},
	    {"h:\xff\n", NULL, "h", "\xff\n", 0},
	    {"user name@h:", "user name", "h", "", 0},
	    {"h:-x", NULL, "h", "-x", 0},
	    {"sftp://host", NULL, "host", "", 0},
	    {"sftp://host/", NULL, "host", "/", 0},
	    {"sftp://host/a/b", NULL, "host", "/a/b", 0},
	    {"SFTP://host/a", NULL, "host", "/a", 0},
	    {"sftp://host:22/a", NULL, "host", "/a", 22},
	    {"sftp://host:65535", NULL, "host", "", 65535},
	    {"sftp://u@host:1/", "u", "host", "/", 1},
	    {"sftp://u%40d@host/", "u@d", "host", "/", 0},
	    {"sftp://u@d@host/", "u@d", "host", "/", 0},
	    {"sftp://host/~", NULL, "host", "~", 0},
	    {"sftp://host/~/x", NULL, "host", "~/x", 0},
	    {"sftp://host/~x/y", NULL, "host", "/~x/y", 0},
	    {"sftp://host/a%20b%2Fc", NULL, "host", "/a b/c", 0},
	    {"sftp://host/a%25", NULL, "host", "/a%", 0},
	    {"sftp://host/%ff%0a", NULL, "host", "/\xff\n", 0},
	    {"sftp://host/a?b#c", NULL, "host", "/a?b#c", 0},
	    {"sftp://host/a:1@b", NULL, "host", "/a:1@b", 0},
	    {"sftp://[::1]/x", NULL, "::1", "/x", 0},
	    {"sftp://u@[fe80::1%25eth0]:2022/x", "u", "fe80::1%eth0", "/x", 2022},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct url url;
		struct failure failure = {.kind = FAILURE_NONE};
		if (url_parse(&url, cases[i].text, false, &failure) < 0)
			fail_msg("%s: %s", cases[i].text, failure.text);
		assert_text(cases[i].user, url.user);
		assert_text(cases[i].host, url.host);
		assert_text(cases[i].dir, url.dir);
		assert_int_equal(cases[i].port, url.port);
		url_release(&url);
	}
}

#define SUBJECT(text, rest) text, "remote directory '" text "': " rest

static void test_bad(void **state)
{
	(void)state;
	static const struct {
		const char *text, *message;
	} cases[] = {
	    {SUBJECT("", "there is no ':' after the host: write [user@]host:[dir] or "
	                 "sftp://[user@]host[:port]/dir")},
	    {SUBJECT("host", "there is no ':' after the host: write [user@]host:[dir] or "
	                     "sftp://[user@]host[:port]/dir")},
	    {SUBJECT(":dir", "the host name is empty: write [user@]host:[dir]")},
	    {SUBJECT("user@:dir", "the host name is empty: write [user@]host:[dir]")},
	    {SUBJECT("[]:dir", "the host name is empty: write [user@]host:[dir]")},
	    {SUBJECT("@host:dir", "the user name before '@' is empty")},
	    {SUBJECT("@[::1]:dir", "the user name before '@' is empty")},
	    {SUBJECT("-oProxyCommand=x:dir", "a host name cannot start with '-'")},
	    {SUBJECT("u@-h:", "a host name cannot start with '-'")},
	    {SUBJECT("[-h]:", "a host name cannot start with '-'")},
	    {SUBJECT("-u@h:", "a user name cannot start with '-'")},
	    {SUBJECT("a b:", "' ' cannot be part of a host name")},
	    {SUBJECT("/a:b", "'/' cannot be part of a host name")},
	    {SUBJECT("a;b:", "';' cannot be part of a host name")},
	    {SUBJECT("$(x):", "'$' cannot be part of a host name")},
	    {"a\nb:", "remote directory 'a\\x0ab:': '\\x0a' cannot be part of a host name"},
	    {"u\x01@h:",
	     "remote directory 'u\\x01@h:': the user name holds a control character"},
	    {SUBJECT("[::1", "the ']' after the address is missing")},
	    {SUBJECT("u@[::1:x", "the ']' after the address is missing")},
	    {SUBJECT("[::1]x", "there is no ':' after the host: write [user@]host:[dir] or "
	                       "sftp://[user@]host[:port]/dir")},
	    {SUBJECT("sftp://", "the host name is empty: write [user@]host:[dir]")},
	    {SUBJECT("sftp:///dir", "the host name is empty: write [user@]host:[dir]")},
	    {SUBJECT("sftp://u@/dir", "the host name is empty: write [user@]host:[dir]")},
	    {SUBJECT("sftp://-h/dir", "a host name cannot start with '-'")},
	    {SUBJECT("sftp://%2dh/dir", "a host name cannot start with '-'")},
	    {SUBJECT("sftp://a%2fb/", "'/' cannot be part of a host name")},
	    {SUBJECT("sftp://@h/", "the user name before '@' is empty")},
	    {SUBJECT("sftp://h:/", "the port after the host must be a number from 1 to 65535")},
	    {SUBJECT("sftp://h:0/",
	             "the port after the host must be a number from 1 to 65535")},
	    {SUBJECT("sftp://h:65536",
	             "the port after the host must be a number from 1 to 65535")},
	    {SUBJECT("sftp://h:4294967318/",
	             "the port after the host must be a number from 1 to 65535")},
	    {SUBJECT("sftp://h:22x/",
	             "the port after the host must be a number from 1 to 65535")},
	    {SUBJECT("sftp://h:-1/",
	             "the port after the host must be a number from 1 to 65535")},
	    {SUBJECT("sftp://[::1/", "the ']' after the address is missing")},
	    {SUBJECT("sftp://[::1]22/", "only ':port' or '/path' can follow the address")},
	    {SUBJECT("sftp://h/%", "after '%' two hexadecimal digits other than 00 are needed: "
	                           "write '%' itself as %25")},
	    {SUBJECT("sftp://h/%4", "after '%' two hexadecimal digits other than 00 are "
	                            "needed: write '%' itself as %25")},
	    {SUBJECT("sftp://h/%zz", "after '%' two hexadecimal digits other than 00 are "
	                             "needed: write '%' itself as %25")},
	    {SUBJECT("sftp://h/a%00b", "after '%' two hexadecimal digits other than 00 are "
	                               "needed: write '%' itself as %25")},
	    {"sftp://joe:hunter2@h/d",
	     "remote directory 'sftp://joe:...@h/d': a password in the URL would show in ps: "
	     "leave it out and answer the prompt, or use -o password_stdin"},
	    {"sftp://joe:@h/d",
	     "remote directory 'sftp://joe:...@h/d': a password in the URL would show in ps: "
	     "leave it out and answer the prompt, or use -o password_stdin"},
	    {SUBJECT("ftp://h/d", "ftp:// is not supported yet by this version")},
	    {SUBJECT("FTPS://h/d", "FTPS:// is not supported yet by this version")},
	    {SUBJECT("https://h/d", "https:// is not a scheme moorfs knows: write "
	                            "sftp://[user@]host[:port]/dir or [user@]host:[dir]")},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct url url;
		struct failure failure = {.kind = FAILURE_NONE};
		if (url_parse(&url, cases[i].text, false, &failure) == 0)
			fail_msg("'%s' was taken", cases[i].text);
		assert_string_equal(cases[i].message, failure.text);
		assert_int_equal(failure.kind, FAILURE_USAGE);
		url_release(&url);
	}
}

static void test_password_never_shown(void **state)
{
	(void)state;
	static const char *const texts[] = {
	    "sftp://joe:hunter2@h/d",     "sftp://joe:hunter2@h:99999/d",
	    "sftp://joe:hun/hunter2@h/d", "ftp://joe:hunter2@h/d",
	    "sftp://joe:a@hunter2@h/d",
	};
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct url url;
		struct failure failure = {.kind = FAILURE_NONE};
		assert_int_equal(url_parse(&url, texts[i], false, &failure), -1);
		assert_null(strstr(failure.text, "hunter2"));
		url_release(&url);
	}
}

static void test_no_host(void **state)
{
	(void)state;
	struct url url;
	struct failure failure = {.kind = FAILURE_NONE};
	assert_int_equal(url_parse(&url, ":/dir", true, &failure), 0);
	assert_string_equal(url.host, "");
	assert_string_equal(url.dir, "/dir");
	url_release(&url);
	assert_int_equal(url_parse(&url, "sftp:///dir", true, &failure), -1);
	url_release(&url);
}

static void test_long(void **state)
{
	(void)state;
	struct url url;
	struct failure failure = {.kind = FAILURE_NONE};
	struct bytes text = BYTES_INIT;
	for (int i = 0; i < 256; i++)
		bytes_add_byte(&text, 'h');
	bytes_add_str(&text, ":d");
	assert_int_equal(url_parse(&url, text.data, false, &failure), -1);
	assert_non_null(strstr(failure.text, "the host name is longer than 255 bytes"));
	url_release(&url);
	bytes_clear(&text);
	for (int i = 0; i < 256; i++)
		bytes_add_byte(&text, 'u');
	bytes_add_str(&text, "@h:d");
	assert_int_equal(url_parse(&url, text.data, false, &failure), -1);
	assert_non_null(strstr(failure.text, "the user name is longer than 255 bytes"));
	url_release(&url);
	bytes_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good),
	    cmocka_unit_test(test_bad),
	    cmocka_unit_test(test_password_never_shown),
	    cmocka_unit_test(test_no_host),
	    cmocka_unit_test(test_long),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
