/*
 * SSH public keys as they travel: the "blob" whose first string is the key's type. Base64,
 * fingerprints, and a cursor over SSH strings. Pure.
 */
#ifndef MOORFS_TRANSPORT_SSHKEY_H
#define MOORFS_TRANSPORT_SSHKEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A read position in received bytes; all zero once something did not fit. */
struct ssh_cursor {
	const uint8_t *at;
	size_t left;
	bool failed;
};

uint8_t ssh_cursor_byte(struct ssh_cursor *cursor);
uint32_t ssh_cursor_u32(struct ssh_cursor *cursor);
/* A length-prefixed string, in place. */
const uint8_t *ssh_cursor_string(struct ssh_cursor *cursor, size_t *length);

/* The type in a public key blob ("ssh-ed25519"), in place. NULL when the blob is malformed. */
const char *sshkey_type(const void *blob, size_t blob_length, size_t *length);

/* True when the blob's type is `type`. */
bool sshkey_is(const void *blob, size_t blob_length, const char *type);

/* The type as people call it: "ED25519", "RSA", "ECDSA", or "SSH". */
const char *sshkey_family(const void *blob, size_t blob_length);

/* malloc'ed; NULL when the text is not base64 or memory is out. */
uint8_t *base64_decode(const char *text, size_t length, size_t *decoded_length);
/* malloc'ed text, NULL when memory is out. */
char *base64_encode(const void *bytes, size_t length);

/* "SHA256:..." as ssh-keygen -l prints it; malloc'ed, NULL when memory is out. */
char *sshkey_fingerprint(const void *blob, size_t blob_length);

#endif
