#include "transport/knownhosts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "transport/sshkey.h"

enum { SALT_BYTES = 20, FILE_MAX_BYTES = 64 << 20 };

/* A piece of a line. */
struct word {
	const char *at;
	size_t length;
};

/* The next blank-separated word of [*at, end); empty at the end. */
static struct word next_word(const char **at, const char *end)
{
	while (*at < end && (**at == ' ' || **at == '\t'))
		(*at)++;
	struct word word = {*at, 0};
	while (*at < end && **at != ' ' && **at != '\t')
		(*at)++;
	word.length = (size_t)(*at - word.at);
	return word;
}

static bool word_is(struct word word, const char *text)
{
	return word.length == strlen(text) && !memcmp(word.at, text, word.length);
}

/* Shell pattern with * and ?, without regard to case. */
static bool pattern_matches(struct word pattern, const char *name)
{
	const char *p = pattern.at, *end = p + pattern.length;
	const char *star = NULL, *retry = NULL;
	while (*name) {
		if (p < end && *p == '*') {
			star = p++;
			retry = name;
		} else if (p < end && (*p == '?' || tolower((unsigned char)*p) ==
		                                        tolower((unsigned char)*name))) {
			p++;
			name++;
		} else if (star) {
			p = star + 1;
			name = ++retry;
		} else {
			return false;
		}
	}
	while (p < end && *p == '*')
		p++;
	return p == end;
}

static bool hash_name(const char *name, const void *salt, size_t salt_length,
                      unsigned char digest[EVP_MAX_MD_SIZE], unsigned *length)
{
	return HMAC(EVP_sha1(), salt, (int)salt_length, (const unsigned char *)name,
	            strlen(name), digest, length) != NULL;
}

/* "|1|salt|hash" */
static bool hashed_matches(struct word hosts, const char *name)
{
	const char *end = hosts.at + hosts.length;
	const char *bar = hosts.length > 3 && !memcmp(hosts.at, "|1|", 3)
	                      ? memchr(hosts.at + 3, '|', hosts.length - 3)
	                      : NULL;
	if (!bar)
		return false;
	size_t salt_length = 0, hash_length = 0;
	CLEANUP_FREE uint8_t *salt =
	    base64_decode(hosts.at + 3, (size_t)(bar - hosts.at - 3), &salt_length);
	CLEANUP_FREE uint8_t *hash =
	    base64_decode(bar + 1, (size_t)(end - bar - 1), &hash_length);
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned digest_length = 0;
	return salt && hash && hash_name(name, salt, salt_length, digest, &digest_length) &&
	       digest_length == hash_length && !CRYPTO_memcmp(digest, hash, hash_length);
}

/* A comma list of patterns; one that starts with ! and matches excludes the host. */
static bool hosts_match(struct word hosts, const char *name)
{
	if (hosts.length && *hosts.at == '|')
		return hashed_matches(hosts, name);
	bool found = false;
	const char *end = hosts.at + hosts.length;
	for (const char *at = hosts.at; at < end;) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		struct word pattern = {at, (size_t)((comma ? comma : end) - at)};
		at += pattern.length + 1;
		bool negated = pattern.length && *pattern.at == '!';
		if (negated)
			pattern = (struct word){pattern.at + 1, pattern.length - 1};
		if (!pattern_matches(pattern, name))
			continue;
		if (negated)
			return false;
		found = true;
	}
	return found;
}

/* Takes the blob over. */
static int add_key(struct knownhosts *known, enum known_marker marker, uint8_t *blob,
                   size_t length, const char *file, unsigned line)
{
	struct known_key *keys = realloc(known->keys, (known->count + 1) * sizeof(*keys));
	char *name = strdup(file);
	if (keys)
		known->keys = keys;
	if (!keys || !name) {
		free(blob);
		free(name);
		return -ENOMEM;
	}
	keys[known->count++] = (struct known_key){marker, blob, length, name, line};
	return 0;
}

static bool marker_of(struct word word, enum known_marker *marker)
{
	if (word_is(word, "@cert-authority"))
		*marker = KNOWN_CA;
	else if (word_is(word, "@revoked"))
		*marker = KNOWN_REVOKED;
	else
		return false;
	return true;
}

static int parse_line(struct knownhosts *known, const char *name, const char *file,
                      unsigned line, const char *at, const char *end)
{
	enum known_marker marker = KNOWN_HOST;
	struct word hosts = next_word(&at, end);
	if (!hosts.length || *hosts.at == '#')
		return 0;
	if (*hosts.at == '@') {
		if (!marker_of(hosts, &marker))
			return 0;
		hosts = next_word(&at, end);
	}
	struct word type = next_word(&at, end);
	struct word key = next_word(&at, end);
	if (!key.length || !hosts_match(hosts, name))
		return 0;
	size_t length = 0, type_length = 0;
	uint8_t *blob = base64_decode(key.at, key.length, &length);
	const char *blob_type = blob ? sshkey_type(blob, length, &type_length) : NULL;
	if (!blob_type || type_length != type.length ||
	    memcmp(blob_type, type.at, type.length)) {
		free(blob);
		return 0;
	}
	return add_key(known, marker, blob, length, file, line);
}

char *knownhosts_name(const char *host, unsigned port, const char *alias)
{
	char *name;
	if (alias)
		name = strdup(alias);
	else if (port == 22)
		name = strdup(host);
	else if (asprintf(&name, "[%s]:%u", host, port) < 0)
		name = NULL;
	for (char *c = name; c && *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return name;
}

int knownhosts_parse(struct knownhosts *known, const char *name, const char *file,
                     const char *text, size_t length)
{
	unsigned line = 0;
	const char *end = text + length;
	for (const char *at = text; at < end;) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;
		const char *last = stop > at && stop[-1] == '\r' ? stop - 1 : stop;
		int err = parse_line(known, name, file, ++line, at, last);
		if (err)
			return err;
		at = stop + 1;
	}
	return 0;
}

int knownhosts_load(struct knownhosts *known, const char *name, const char *path)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	struct bytes text = BYTES_INIT;
	int err = 0;
	for (;;) {
		if (text.length > FILE_MAX_BYTES)
			err = -EFBIG;
		else if (!bytes_reserve(&text, 65536))
			err = -ENOMEM;
		if (err)
			break;
		ssize_t n = read(fd, text.data + text.length, 65536);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = -errno;
		if (n <= 0)
			break;
		text.length += (size_t)n;
	}
	if (!err)
		err = knownhosts_parse(known, name, path, text.data, text.length);
	bytes_release(&text);
	return err;
}

void knownhosts_release(struct knownhosts *known)
{
	for (size_t i = 0; i < known->count; i++) {
		free(known->keys[i].blob);
		free(known->keys[i].file);
	}
	free(known->keys);
	*known = (struct knownhosts){0};
}

static bool same_type(const struct known_key *key, const void *blob, size_t length)
{
	size_t type_length = 0;
	const char *type = sshkey_type(blob, length, &type_length);
	size_t known_length = 0;
	const char *known = sshkey_type(key->blob, key->length, &known_length);
	return type && known && type_length == known_length &&
	       !memcmp(type, known, type_length);
}

/* What one line alone says. */
static enum known_verdict line_verdict(const struct known_key *key, const void *blob,
                                       size_t length)
{
	bool same = key->length == length && !memcmp(key->blob, blob, length);
	switch (key->marker) {
	case KNOWN_REVOKED:
		return same ? KNOWN_IS_REVOKED : KNOWN_ABSENT;
	case KNOWN_CA:
		return KNOWN_CA_ONLY;
	case KNOWN_HOST:
		break;
	}
	if (same)
		return KNOWN_MATCH;
	return same_type(key, blob, length) ? KNOWN_CHANGED : KNOWN_OTHER_TYPE;
}

enum known_verdict knownhosts_check(const struct knownhosts *known, const void *blob,
                                    size_t length, const struct known_key **where)
{
	/* Which of several lines counts. */
	static const int weight[] = {
	    [KNOWN_ABSENT] = 0,  [KNOWN_CA_ONLY] = 1, [KNOWN_OTHER_TYPE] = 2,
	    [KNOWN_CHANGED] = 3, [KNOWN_MATCH] = 4,   [KNOWN_IS_REVOKED] = 5,
	};
	enum known_verdict verdict = KNOWN_ABSENT;
	*where = NULL;
	for (size_t i = 0; i < known->count; i++) {
		enum known_verdict said = line_verdict(&known->keys[i], blob, length);
		if (weight[said] <= weight[verdict])
			continue;
		verdict = said;
		*where = &known->keys[i];
	}
	return verdict;
}

/* "|1|salt|hash" of the name. */
static int add_hashed(struct bytes *line, const char *name)
{
	unsigned char salt[SALT_BYTES], digest[EVP_MAX_MD_SIZE];
	unsigned length = 0;
	if (RAND_bytes(salt, sizeof(salt)) != 1 ||
	    !hash_name(name, salt, sizeof(salt), digest, &length))
		return -EIO;
	CLEANUP_FREE char *salt_text = base64_encode(salt, sizeof(salt));
	CLEANUP_FREE char *hash_text = base64_encode(digest, length);
	if (!salt_text || !hash_text)
		return -ENOMEM;
	bytes_addf(line, "|1|%s|%s", salt_text, hash_text);
	return 0;
}

/* The directory of the file, as ~/.ssh is made: one level, for its owner only. */
static void make_directory(const char *path)
{
	CLEANUP_FREE char *directory = strdup(path);
	char *slash = directory ? strrchr(directory, '/') : NULL;
	if (!slash || slash == directory)
		return;
	*slash = '\0';
	/* If this fails, opening the file tells why. */
	(void)mkdir(directory, 0700);
}

/* True when the file ends in the middle of a line. */
static bool ends_open(int fd)
{
	char last;
	off_t size = lseek(fd, 0, SEEK_END);
	return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

static int append_line(const char *path, const struct bytes *line)
{
	CLEANUP_CLOSE int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	/* `line` starts with a newline that is only needed after an unfinished line. */
	size_t skip = ends_open(fd) ? 0 : 1;
	ssize_t n = write(fd, line->data + skip, line->length - skip);
	if (n < 0)
		return -errno;
	return (size_t)n == line->length - skip ? 0 : -ENOSPC;
}

int knownhosts_add(const char *path, const char *name, bool hashed, const void *blob,
                   size_t length)
{
	size_t type_length = 0;
	const char *type = sshkey_type(blob, length, &type_length);
	CLEANUP_FREE char *encoded = base64_encode(blob, length);
	struct bytes line = BYTES_INIT;
	int err = !type ? -EINVAL : !encoded ? -ENOMEM : 0;
	bytes_add_byte(&line, '\n');
	if (!err && hashed)
		err = add_hashed(&line, name);
	else if (!err)
		bytes_add_str(&line, name);
	if (!err) {
		bytes_addf(&line, " %.*s %s\n", (int)type_length, type, encoded);
		err = line.failed ? -ENOMEM : 0;
	}
	if (!err) {
		make_directory(path);
		err = append_line(path, &line);
	}
	bytes_release(&line);
	return err;
}
