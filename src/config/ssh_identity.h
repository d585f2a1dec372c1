/* Key files: which kind they are, and whether libssh2 can use them. */
#ifndef MOORFS_CONFIG_SSH_IDENTITY_H
#define MOORFS_CONFIG_SSH_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "config/arena.h"

enum ssh_key_kind {
	SSH_KEY_UNKNOWN, /* no key, or one that does not tell without its passphrase */
	SSH_KEY_RSA,
	SSH_KEY_FIDO, /* sk-...: the private part sits in a token */
	SSH_KEY_CERTIFICATE,
	SSH_KEY_OTHER, /* Ed25519, ECDSA */
};

/* Pure: by the text of a public key file, or of a private one in OpenSSH's or PEM form. */
enum ssh_key_kind ssh_key_kind(const char *text, size_t length);

/*
 * Looks at the candidates on disk. *usable becomes the list of those that exist (as private or
 * as public key). *reason (size bytes) is filled when the ssh program is needed: a certificate
 * belongs to one of them, or no key of a kind that libssh2 can use is there and no agent
 * either. `rsa_sha2`: this libssh2 can sign with RSA as today's servers want it. False when
 * memory is out.
 */
bool ssh_identities_review(struct arena *arena, char *const *candidates, bool agent,
                           bool rsa_sha2, char ***usable, char *reason, size_t size);

#endif
