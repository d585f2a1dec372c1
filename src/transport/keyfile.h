/*
 * A private key file (IdentityFile): its contents, and as much about the key as can be told
 * without its passphrase. Not thread-safe; keyfile_examine is pure.
 */
#ifndef MOORFS_TRANSPORT_KEYFILE_H
#define MOORFS_TRANSPORT_KEYFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Start with all zero. */
struct keyfile {
	const char *path; /* the caller's */
	char *text;       /* the file, NUL-terminated; NULL when only a public key is there */
	size_t length;
	bool encrypted;
	uint8_t *public_blob; /* NULL when unknown before decryption */
	size_t public_length;
	const char *type; /* "ssh-rsa" and the like as far as known, else NULL */
	char type_room[64];
};

/*
 * Reads the file and the public key beside it (PATH.pub). 0; -ENOENT when neither is there;
 * -EACCES when others than the owner may read it (*problem says so); other -errno. *problem is
 * a text for the log on any error but -ENOENT. `path` outlives the keyfile.
 */
int keyfile_load(struct keyfile *key, const char *path, const char **problem);

/*
 * Finds out encryption, type and public key from key->text. 0, or -EINVAL when it is no private
 * key; a lone public key is taken as public_blob (and the text forgotten). -ENOMEM.
 */
int keyfile_examine(struct keyfile *key);

/* Wipes and frees the contents. */
void keyfile_release(struct keyfile *key);

#endif
