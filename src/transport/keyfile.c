#include "transport/keyfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/secret.h"
#include "transport/sshkey.h"

enum { KEY_MAX_BYTES = 1 << 18 };

static const char openssh_begin[] = "-----BEGIN OPENSSH PRIVATE KEY-----";
static const char openssh_end[] = "-----END OPENSSH PRIVATE KEY-----";
static const char openssh_magic[] = "openssh-key-v1"; /* with its NUL */

/* The headers of the older formats. */
static const struct pem_kind {
	const char *begin;
	const char *type; /* NULL: inside the key */
	bool encrypted;   /* by the header itself */
} pem_kinds[] = {
    {"-----BEGIN RSA PRIVATE KEY-----", "ssh-rsa", false},
    {"-----BEGIN DSA PRIVATE KEY-----", "ssh-dss", false},
    {"-----BEGIN EC PRIVATE KEY-----", "ecdsa-sha2-nistp256", false},
    {"-----BEGIN PRIVATE KEY-----", NULL, false},
    {"-----BEGIN ENCRYPTED PRIVATE KEY-----", NULL, true},
};

static void wipe_free(void *bytes, size_t length)
{
	if (bytes)
		secret_wipe(bytes, length);
	free(bytes);
}

/* Takes the blob over as the public half. */
static void set_public(struct keyfile *key, uint8_t *blob, size_t length)
{
	size_t type_length = 0;
	const char *type = sshkey_type(blob, length, &type_length);
	if (!type || type_length >= sizeof(key->type_room)) {
		free(blob);
		return;
	}
	free(key->public_blob);
	key->public_blob = blob;
	key->public_length = length;
	memcpy(key->type_room, type, type_length);
	key->type_room[type_length] = '\0';
	key->type = key->type_room;
}

/* "ssh-ed25519 AAAA... comment" */
static bool take_public_line(struct keyfile *key, const char *line)
{
	size_t type_length = strcspn(line, " \t\r\n");
	const char *at = line + type_length;
	at += strspn(at, " \t");
	size_t length = 0;
	uint8_t *blob = base64_decode(at, strcspn(at, " \t\r\n"), &length);
	size_t found_length = 0;
	const char *found = blob ? sshkey_type(blob, length, &found_length) : NULL;
	if (!found || found_length != type_length || memcmp(found, line, type_length)) {
		free(blob);
		return false;
	}
	set_public(key, blob, length);
	return key->public_blob != NULL;
}

/* The base64 between the two header lines, without its line ends; malloc'ed or NULL. */
static char *openssh_body(const char *text, size_t *length)
{
	const char *from = strstr(text, openssh_begin);
	const char *to = from ? strstr(from, openssh_end) : NULL;
	if (!to)
		return NULL;
	from += strlen(openssh_begin);
	char *body = malloc((size_t)(to - from) + 1);
	if (!body)
		return NULL;
	size_t used = 0;
	for (; from < to; from++)
		if (!strchr(" \t\r\n", *from))
			body[used++] = *from;
	body[used] = '\0';
	*length = used;
	return body;
}

/* The head of the decoded file: magic, cipher, kdf, its options, number of keys, public key. */
static int read_openssh_head(struct keyfile *key, const uint8_t *raw, size_t raw_length)
{
	if (raw_length < sizeof(openssh_magic) ||
	    memcmp(raw, openssh_magic, sizeof(openssh_magic)))
		return -EINVAL;
	struct ssh_cursor cursor = {.at = raw + sizeof(openssh_magic),
	                            .left = raw_length - sizeof(openssh_magic)};
	size_t cipher_length, skipped, length;
	const uint8_t *cipher = ssh_cursor_string(&cursor, &cipher_length);
	ssh_cursor_string(&cursor, &skipped);
	ssh_cursor_string(&cursor, &skipped);
	uint32_t count = ssh_cursor_u32(&cursor);
	const uint8_t *public = ssh_cursor_string(&cursor, &length);
	if (!cipher || !public || count != 1)
		return -EINVAL;
	key->encrypted = cipher_length != 4 || memcmp(cipher, "none", 4) != 0;
	uint8_t *blob = malloc(length ? length : 1);
	if (!blob)
		return -ENOMEM;
	memcpy(blob, public, length);
	set_public(key, blob, length);
	return key->public_blob ? 0 : -EINVAL;
}

static int examine_openssh(struct keyfile *key)
{
	size_t body_length = 0, raw_length = 0;
	char *body = openssh_body(key->text, &body_length);
	uint8_t *raw = body ? base64_decode(body, body_length, &raw_length) : NULL;
	int err = raw ? read_openssh_head(key, raw, raw_length) : -EINVAL;
	wipe_free(raw, raw_length);
	wipe_free(body, body_length);
	return err;
}

int keyfile_examine(struct keyfile *key)
{
	if (strstr(key->text, openssh_begin))
		return examine_openssh(key);
	for (size_t i = 0; i < ARRAY_LEN(pem_kinds); i++) {
		const char *begin = strstr(key->text, pem_kinds[i].begin);
		if (!begin)
			continue;
		key->encrypted =
		    pem_kinds[i].encrypted || strstr(begin, "Proc-Type: 4,ENCRYPTED");
		if (!key->type)
			key->type = pem_kinds[i].type;
		return 0;
	}
	if (!take_public_line(key, key->text))
		return -EINVAL;
	wipe_free(key->text, key->length);
	key->text = NULL;
	key->length = 0;
	return 0;
}

/* A small file as text; 0 or -errno. */
static int read_text(const char *path, bool private, char **text, size_t *length)
{
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > KEY_MAX_BYTES)
		return -EINVAL;
	if (private && st.st_uid == getuid() && (st.st_mode & 077))
		return -EPERM;
	char *room = malloc((size_t)st.st_size + 1);
	if (!room)
		return -ENOMEM;
	ssize_t n = pread(fd, room, (size_t)st.st_size, 0);
	if (n < 0) {
		int err = -errno;
		free(room);
		return err;
	}
	room[n] = '\0';
	*text = room;
	*length = (size_t)n;
	return 0;
}

static void load_public(struct keyfile *key)
{
	CLEANUP_FREE char *path = NULL;
	CLEANUP_FREE char *text = NULL;
	size_t length;
	if (asprintf(&path, "%s.pub", key->path) < 0)
		path = NULL;
	else if (read_text(path, false, &text, &length) == 0)
		(void)take_public_line(key, text);
}

/* A public key may be readable by all: only what holds a private one is refused for that. */
static int load_text(struct keyfile *key)
{
	int err = read_text(key->path, true, &key->text, &key->length);
	if (err != -EPERM)
		return err;
	err = read_text(key->path, false, &key->text, &key->length);
	if (err || !strstr(key->text, "PRIVATE KEY-----"))
		return err;
	wipe_free(key->text, key->length);
	key->text = NULL;
	return -EPERM;
}

int keyfile_load(struct keyfile *key, const char *path, const char **problem)
{
	key->path = path;
	load_public(key);
	int err = load_text(key);
	if (err == -ENOENT && key->public_blob)
		return 0; /* the private half may be in the agent */
	if (!err)
		err = keyfile_examine(key);
	if (err == -EPERM) {
		*problem = "others may read it: chmod 600 it";
		err = -EACCES;
	} else if (err == -EINVAL) {
		*problem = "it holds no private key in a format that is known here";
	} else if (err) {
		*problem = strerror(-err);
	}
	if (err)
		keyfile_release(key);
	return err;
}

void keyfile_release(struct keyfile *key)
{
	wipe_free(key->text, key->length);
	free(key->public_blob);
	*key = (struct keyfile){0};
}
