#include "config/url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"

enum { HOST_MAX = 255, USER_MAX = 255 };

/* What is being parsed, as messages show it: printable, shortened, without a password. */
struct subject {
	char text[160];
	struct failure *failure;
};

#define REFUSE(subject, format, ...)                                                     \
	failure_set((subject)->failure, FAILURE_USAGE, "remote directory '%s': " format, \
	            (subject)->text, ##__VA_ARGS__)

static int out_of_memory(const struct subject *subject)
{
	return failure_set(subject->failure, FAILURE_INTERNAL, "out of memory");
}

/* What stands between a ':' and the last '@' of a URL may be a password. */
static void subject_init(struct subject *subject, const char *text, const char *authority,
                         struct failure *failure)
{
	subject->failure = failure;
	const char *at = authority ? strrchr(authority, '@') : NULL;
	const char *colon = at ? memchr(authority, ':', (size_t)(at - authority)) : NULL;
	if (!colon) {
		log_quote(subject->text, sizeof(subject->text), text, strlen(text));
		return;
	}
	char head[64], tail[64];
	snprintf(subject->text, sizeof(subject->text), "%s:...%s",
	         log_quote(head, sizeof(head), text, (size_t)(colon - text)),
	         log_quote(tail, sizeof(tail), at, strlen(at)));
}

static int check_host(const struct subject *subject, const char *host, bool optional)
{
	if (!*host && optional)
		return 0;
	if (!*host)
		return REFUSE(subject, "the host name is empty: write [user@]host:[dir]");
	if (*host == '-')
		return REFUSE(subject, "a host name cannot start with '-'");
	if (strlen(host) > HOST_MAX)
		return REFUSE(subject, "the host name is longer than %d bytes", (int)HOST_MAX);
	for (const char *at = host; *at; at++) {
		if (!iscntrl((unsigned char)*at) && !strchr(" /\\'\"`$;&|<>()[]{}*?!#", *at))
			continue;
		char shown[16];
		return REFUSE(subject, "'%s' cannot be part of a host name",
		              log_quote(shown, sizeof(shown), at, 1));
	}
	return 0;
}

static int check_user(const struct subject *subject, const char *user)
{
	if (!user)
		return 0;
	if (!*user)
		return REFUSE(subject, "the user name before '@' is empty");
	if (*user == '-')
		return REFUSE(subject, "a user name cannot start with '-'");
	if (strlen(user) > USER_MAX)
		return REFUSE(subject, "the user name is longer than %d bytes", (int)USER_MAX);
	for (const char *at = user; *at; at++)
		if (iscntrl((unsigned char)*at))
			return REFUSE(subject, "the user name holds a control character");
	return 0;
}

static int parse_port(const struct subject *subject, const char *text, size_t length,
                      unsigned *port)
{
	unsigned value = 0;
	bool good = length > 0 && length <= 5;
	for (size_t i = 0; i < length && good; i++) {
		good = isdigit((unsigned char)text[i]);
		value = value * 10 + (unsigned)(text[i] - '0');
	}
	if (!good || value < 1 || value > 65535)
		return REFUSE(subject,
		              "the port after the host must be a number from 1 to 65535");
	*port = value;
	return 0;
}

/* Takes a copy of the bytes into *result. */
static int take(const struct subject *subject, const char *text, size_t length, char **result)
{
	*result = strndup(text, length);
	return *result ? 0 : out_of_memory(subject);
}

/* ---- sftp:// ---- */

static int hex_value(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *found = c ? strchr(digits, tolower((unsigned char)c)) : NULL;
	return found ? (int)(found - digits) : -1;
}

static int take_decoded(const struct subject *subject, const char *text, size_t length,
                        char **result)
{
	if (take(subject, text, length, result) < 0)
		return -1;
	char *out = *result;
	for (size_t i = 0; i < length; i++) {
		if (text[i] != '%') {
			*out++ = text[i];
			continue;
		}
		int high = i + 1 < length ? hex_value(text[i + 1]) : -1;
		int low = i + 2 < length ? hex_value(text[i + 2]) : -1;
		if (high < 0 || low < 0 || high + low == 0)
			return REFUSE(subject,
			              "after '%%' two hexadecimal digits other than 00 "
			              "are needed: write '%%' itself as %%25");
		*out++ = (char)(high * 16 + low);
		i += 2;
	}
	*out = '\0';
	return 0;
}

static int parse_host_port(const struct subject *subject, const char *at, const char *end,
                           struct url *url)
{
	const char *host_end;
	bool bracketed = at < end && *at == '[';
	if (bracketed) {
		at++;
		host_end = memchr(at, ']', (size_t)(end - at));
		if (!host_end)
			return REFUSE(subject, "the ']' after the address is missing");
	} else {
		host_end = memchr(at, ':', (size_t)(end - at));
		if (!host_end)
			host_end = end;
	}
	if (take_decoded(subject, at, (size_t)(host_end - at), &url->host) < 0)
		return -1;
	const char *rest = bracketed ? host_end + 1 : host_end;
	if (rest == end)
		return 0;
	if (*rest != ':')
		return REFUSE(subject, "only ':port' or '/path' can follow the address");
	return parse_port(subject, rest + 1, (size_t)(end - rest - 1), &url->port);
}

static int parse_sftp(const struct subject *subject, const char *authority, struct url *url)
{
	const char *end = authority + strcspn(authority, "/");
	const char *host = authority;
	const char *at = memrchr(authority, '@', (size_t)(end - authority));
	if (at) {
		if (memchr(authority, ':', (size_t)(at - authority)))
			return REFUSE(subject,
			              "a password in the URL would show in ps: leave it "
			              "out and answer the prompt, or use -o password_stdin");
		if (take_decoded(subject, authority, (size_t)(at - authority), &url->user) < 0)
			return -1;
		host = at + 1;
	}
	if (parse_host_port(subject, host, end, url) < 0)
		return -1;
	/* "/~/x" is below the home; everything else is absolute. */
	if (strcmp(end, "/~") == 0 || strncmp(end, "/~/", 3) == 0)
		end++;
	return take_decoded(subject, end, strlen(end), &url->dir);
}

/* ---- [user@]host:[dir] ---- */

/* The start of "[address]" when the host is given that way, else NULL. */
static const char *find_bracket(const char *text)
{
	if (*text == '[')
		return text;
	const char *found = strstr(text, "@[");
	const char *colon = strchr(text, ':');
	return found && colon && found < colon ? found + 1 : NULL;
}

static int parse_plain(const struct subject *subject, const char *text, struct url *url)
{
	const char *host = find_bracket(text);
	const char *host_end, *colon, *user_end = NULL;
	if (host) {
		user_end = host > text ? host - 1 : NULL;
		host++;
		host_end = strchr(host, ']');
		if (!host_end)
			return REFUSE(subject, "the ']' after the address is missing");
		colon = host_end + 1;
	} else {
		colon = host_end = text + strcspn(text, ":");
		user_end = memrchr(text, '@', (size_t)(host_end - text));
		host = user_end ? user_end + 1 : text;
	}
	if (*colon != ':')
		return REFUSE(subject,
		              "there is no ':' after the host: write [user@]host:[dir] "
		              "or sftp://[user@]host[:port]/dir");
	if (user_end && take(subject, text, (size_t)(user_end - text), &url->user) < 0)
		return -1;
	if (take(subject, host, (size_t)(host_end - host), &url->host) < 0)
		return -1;
	return take(subject, colon + 1, strlen(colon + 1), &url->dir);
}

/* Where the text behind "scheme://" starts; NULL when there is no scheme. */
static const char *skip_scheme(const char *text)
{
	size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	                             "0123456789+.-");
	bool found = length > 0 && strncmp(text + length, "://", 3) == 0;
	return found ? text + length + 3 : NULL;
}

static int refuse_scheme(const struct subject *subject, const char *text)
{
	int length = (int)strcspn(text, ":");
	if (strncasecmp(text, "ftp:", 4) == 0 || strncasecmp(text, "ftps:", 5) == 0)
		return REFUSE(subject, "%.*s:// is not supported yet by this version", length,
		              text);
	return REFUSE(subject,
	              "%.*s:// is not a scheme moorfs knows: write "
	              "sftp://[user@]host[:port]/dir or [user@]host:[dir]",
	              length, text);
}

int url_parse(struct url *url, const char *text, bool host_optional, struct failure *failure)
{
	*url = (struct url){NULL, NULL, NULL, 0};
	const char *authority = skip_scheme(text);
	struct subject subject;
	subject_init(&subject, text, authority, failure);

	int err;
	if (authority && strncasecmp(text, "sftp:", 5) != 0)
		err = refuse_scheme(&subject, text);
	else if (authority)
		err = parse_sftp(&subject, authority, url);
	else
		err = parse_plain(&subject, text, url);
	if (err < 0)
		return err;
	if (check_user(&subject, url->user) < 0)
		return -1;
	return check_host(&subject, url->host, host_optional && !authority);
}

void url_release(struct url *url)
{
	free(url->user);
	free(url->host);
	free(url->dir);
	*url = (struct url){NULL, NULL, NULL, 0};
}
