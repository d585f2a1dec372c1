#include "transport/sshkey.h"

#include <ctype.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

static const uint8_t *take(struct ssh_cursor *cursor, size_t length)
{
	if (cursor->failed || length > cursor->left) {
		*cursor = (struct ssh_cursor){.failed = true};
		return NULL;
	}
	const uint8_t *at = cursor->at;
	cursor->at += length;
	cursor->left -= length;
	return at;
}

uint8_t ssh_cursor_byte(struct ssh_cursor *cursor)
{
	const uint8_t *at = take(cursor, 1);
	return at ? *at : 0;
}

uint32_t ssh_cursor_u32(struct ssh_cursor *cursor)
{
	const uint8_t *at = take(cursor, 4);
	return at ? (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3]
	          : 0;
}

const uint8_t *ssh_cursor_string(struct ssh_cursor *cursor, size_t *length)
{
	size_t size = ssh_cursor_u32(cursor);
	const uint8_t *at = take(cursor, size);
	*length = at ? size : 0;
	return at;
}

const char *sshkey_type(const void *blob, size_t blob_length, size_t *length)
{
	struct ssh_cursor cursor = {.at = blob, .left = blob_length};
	const uint8_t *type = ssh_cursor_string(&cursor, length);
	return type && *length ? (const char *)type : NULL;
}

bool sshkey_is(const void *blob, size_t blob_length, const char *type)
{
	size_t length;
	const char *found = sshkey_type(blob, blob_length, &length);
	return found && length == strlen(type) && !memcmp(found, type, length);
}

const char *sshkey_family(const void *blob, size_t blob_length)
{
	static const struct {
		const char *prefix, *family;
	} families[] = {
	    {"ssh-ed25519", "ED25519"}, {"ecdsa-", "ECDSA"},       {"ssh-rsa", "RSA"},
	    {"ssh-dss", "DSA"},         {"sk-ssh-", "ED25519-SK"}, {"sk-ecdsa-", "ECDSA-SK"},
	};
	size_t length;
	const char *type = sshkey_type(blob, blob_length, &length);
	for (size_t i = 0; type && i < ARRAY_LEN(families); i++) {
		size_t prefix = strlen(families[i].prefix);
		if (length >= prefix && !memcmp(type, families[i].prefix, prefix))
			return families[i].family;
	}
	return "SSH";
}

/* Groups of four characters, the last with up to two '=' at its end. */
static bool is_base64(const char *text, size_t length)
{
	if (!length || length % 4)
		return false;
	size_t body = length;
	while (body > length - 2 && text[body - 1] == '=')
		body--;
	for (size_t i = 0; i < body; i++)
		if (!isalnum((unsigned char)text[i]) && text[i] != '+' && text[i] != '/')
			return false;
	return true;
}

uint8_t *base64_decode(const char *text, size_t length, size_t *decoded_length)
{
	/* OpenSSL is more lenient, and counts the padding as bytes. */
	if (length > 1 << 20 || !is_base64(text, length))
		return NULL;
	uint8_t *out = malloc(length / 4 * 3 + 1);
	if (!out)
		return NULL;
	int n = EVP_DecodeBlock(out, (const unsigned char *)text, (int)length);
	if (n < 0) {
		free(out);
		return NULL;
	}
	size_t padding = text[length - 1] != '=' ? 0 : text[length - 2] == '=' ? 2 : 1;
	*decoded_length = (size_t)n - padding;
	return out;
}

char *base64_encode(const void *bytes, size_t length)
{
	char *out = length < 1 << 20 ? malloc((length + 2) / 3 * 4 + 1) : NULL;
	if (out)
		EVP_EncodeBlock((unsigned char *)out, bytes, (int)length);
	return out;
}

char *sshkey_fingerprint(const void *blob, size_t blob_length)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int size = 0;
	if (!EVP_Digest(blob, blob_length, digest, &size, EVP_sha256(), NULL))
		return NULL;
	CLEANUP_FREE char *encoded = base64_encode(digest, size);
	char *text = NULL;
	if (!encoded)
		return NULL;
	encoded[strcspn(encoded, "=")] = '\0';
	return asprintf(&text, "SHA256:%s", encoded) < 0 ? NULL : text;
}
