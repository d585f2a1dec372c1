#include "config/ssh_identity.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/secret.h"

enum { KEY_HEAD_BYTES = 2048 };

/* ---- kinds ---- */

static enum ssh_key_kind kind_of_type(const char *type, size_t length)
{
	static const char certificate[] = "-cert-v01@openssh.com";
	if (length >= strlen(certificate) &&
	    memmem(type, length, certificate, strlen(certificate)))
		return SSH_KEY_CERTIFICATE;
	if (length > 3 && memcmp(type, "sk-", 3) == 0)
		return SSH_KEY_FIDO;
	if (length == 7 && memcmp(type, "ssh-rsa", 7) == 0)
		return SSH_KEY_RSA;
	if (length > 4 && (memcmp(type, "ssh-", 4) == 0 || memcmp(type, "ecds", 4) == 0))
		return SSH_KEY_OTHER;
	return SSH_KEY_UNKNOWN;
}

static int base64_value(char c)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	                               "0123456789+/";
	const char *found = c ? strchr(alphabet, c) : NULL;
	return found ? (int)(found - alphabet) : -1;
}

/* Decodes until the output is full or a character is neither base64 nor space. */
static size_t base64_decode(const char *text, size_t length, uint8_t *out, size_t size)
{
	uint32_t bits = 0;
	unsigned count = 0;
	size_t used = 0;
	for (size_t i = 0; i < length && used < size; i++) {
		if (isspace((unsigned char)text[i]))
			continue;
		int value = base64_value(text[i]);
		if (value < 0)
			break;
		bits = bits << 6 | (uint32_t)value;
		count += 6;
		if (count >= 8) {
			count -= 8;
			out[used++] = (uint8_t)(bits >> count);
			bits &= (1u << count) - 1;
		}
	}
	return used;
}

/* A length of four bytes and as many bytes; NULL when it reaches beyond the end. */
static const uint8_t *take_string(const uint8_t **at, const uint8_t *end, size_t *length)
{
	if (end - *at < 4)
		return NULL;
	const uint8_t *from = *at;
	*length =
	    (size_t)from[0] << 24 | (size_t)from[1] << 16 | (size_t)from[2] << 8 | from[3];
	if (*length > (size_t)(end - from - 4))
		return NULL;
	*at = from + 4 + *length;
	return from + 4;
}

/* OpenSSH's private keys carry the public one in clear: magic, cipher, kdf, options, count. */
static enum ssh_key_kind kind_of_openssh(const char *body, size_t length)
{
	static const char magic[] = "openssh-key-v1";
	uint8_t blob[512];
	size_t size = base64_decode(body, length, blob, sizeof(blob));
	if (size < sizeof(magic) || memcmp(blob, magic, sizeof(magic)) != 0)
		return SSH_KEY_UNKNOWN;
	const uint8_t *at = blob + sizeof(magic), *end = blob + size;
	size_t field;
	for (int i = 0; i < 3; i++)
		if (!take_string(&at, end, &field))
			return SSH_KEY_UNKNOWN;
	if (end - at < 8)
		return SSH_KEY_UNKNOWN;
	at += 8; /* the count of keys and the length of the first; its type follows */
	const uint8_t *type = take_string(&at, end, &field);
	return type ? kind_of_type((const char *)type, field) : SSH_KEY_UNKNOWN;
}

enum ssh_key_kind ssh_key_kind(const char *text, size_t length)
{
	static const char openssh[] = "-----BEGIN OPENSSH PRIVATE KEY-----";
	static const struct {
		const char *start;
		enum ssh_key_kind kind;
	} pem[] = {
	    {"-----BEGIN RSA PRIVATE KEY-----", SSH_KEY_RSA},
	    {"-----BEGIN EC PRIVATE KEY-----", SSH_KEY_OTHER},
	};
	size_t skip = strlen(openssh);
	if (length > skip && memcmp(text, openssh, skip) == 0)
		return kind_of_openssh(text + skip, length - skip);
	for (size_t i = 0; i < ARRAY_LEN(pem); i++)
		if (length > strlen(pem[i].start) &&
		    memcmp(text, pem[i].start, strlen(pem[i].start)) == 0)
			return pem[i].kind;
	size_t word = 0;
	while (word < length && !isspace((unsigned char)text[word]))
		word++;
	return kind_of_type(text, word);
}

/* ---- files ---- */

static enum ssh_key_kind kind_of_file(const char *path)
{
	char head[KEY_HEAD_BYTES];
	CLEANUP_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t length = fd < 0 ? -1 : read(fd, head, sizeof(head));
	if (length <= 0)
		return SSH_KEY_UNKNOWN;
	enum ssh_key_kind kind = ssh_key_kind(head, (size_t)length);
	secret_wipe(head, sizeof(head));
	return kind;
}

static char *with_suffix(struct arena *arena, const char *path, const char *suffix)
{
	return arena_printf(arena, "%s%s", path, suffix);
}

/* Whether libssh2 can use a key of this kind; what it does not know it may try. */
static bool can_use(enum ssh_key_kind kind, bool rsa_sha2)
{
	return kind == SSH_KEY_OTHER || kind == SSH_KEY_UNKNOWN ||
	       (kind == SSH_KEY_RSA && rsa_sha2);
}

bool ssh_identities_review(struct arena *arena, char *const *candidates, bool agent,
                           bool rsa_sha2, char ***usable, char *reason, size_t size)
{
	unsigned good = 0, rsa = 0, fido = 0;
	const char *certificate = NULL;
	*usable = NULL;
	for (; candidates && *candidates; candidates++) {
		char *public = with_suffix(arena, *candidates, ".pub");
		char *cert = with_suffix(arena, *candidates, "-cert.pub");
		if (!public || !cert)
			return false;
		bool there = access(*candidates, F_OK) == 0;
		if (!there && access(public, F_OK) < 0)
			continue;
		if (!arena_list_add(arena, usable, *candidates))
			return false;
		if (access(cert, F_OK) == 0)
			certificate = cert;
		enum ssh_key_kind kind = kind_of_file(public);
		if (kind == SSH_KEY_UNKNOWN)
			kind = kind_of_file(*candidates);
		good += there && can_use(kind, rsa_sha2);
		rsa += kind == SSH_KEY_RSA;
		fido += kind == SSH_KEY_FIDO;
	}
	*reason = '\0';
	if (certificate)
		snprintf(reason, size, "there is a certificate, %.80s", certificate);
	else if (!agent && good == 0 && rsa > 0)
		snprintf(reason, size,
		         "the only keys are RSA, and this libssh2 cannot sign them with SHA-2");
	else if (!agent && good == 0 && fido > 0)
		snprintf(reason, size, "the only keys are in a FIDO token");
	return true;
}
