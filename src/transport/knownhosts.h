/*
 * The known_hosts files: which keys they hold for one host, whether a key that a server shows
 * is among them, and adding one. Our own reading of the format, because messages must name file
 * and line. Not thread-safe; the parts but load and add are pure.
 */
#ifndef MOORFS_TRANSPORT_KNOWNHOSTS_H
#define MOORFS_TRANSPORT_KNOWNHOSTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum known_marker {
	KNOWN_HOST,
	KNOWN_CA,      /* @cert-authority */
	KNOWN_REVOKED, /* @revoked */
};

/* A line whose host patterns match. */
struct known_key {
	enum known_marker marker;
	uint8_t *blob;
	size_t length;
	char *file;
	unsigned line; /* from 1 */
};

/* Start with all zero. */
struct knownhosts {
	struct known_key *keys;
	size_t count;
};

enum known_verdict {
	KNOWN_MATCH,
	KNOWN_ABSENT,     /* no line for the host at all */
	KNOWN_OTHER_TYPE, /* keys are known, but none of this type */
	KNOWN_CHANGED,    /* a different key of this type is known */
	KNOWN_IS_REVOKED,
	KNOWN_CA_ONLY, /* only a certificate authority is known */
};

/*
 * The name under which a host is looked up: the alias, else "host" for port 22, else
 * "[host]:port"; lower case. malloc'ed, NULL when memory is out.
 */
char *knownhosts_name(const char *host, unsigned port, const char *alias);

/*
 * Adds the lines of `text` that are about `name`; `file` is for messages. Lines that cannot be
 * understood are skipped. 0, or -ENOMEM.
 */
int knownhosts_parse(struct knownhosts *known, const char *name, const char *file,
                     const char *text, size_t length);

/* The same for a file's contents. A file that does not exist has no lines. 0 or -errno. */
int knownhosts_load(struct knownhosts *known, const char *name, const char *path);

void knownhosts_release(struct knownhosts *known);

/* What the lines say about a key; *where, if there is one, is the line that decided. */
enum known_verdict knownhosts_check(const struct knownhosts *known, const void *blob,
                                    size_t length, const struct known_key **where);

/*
 * Appends a line for the key, with the name hashed or not; creates the file and its directory.
 * 0 or -errno.
 */
int knownhosts_add(const char *path, const char *name, bool hashed, const void *blob,
                   size_t length);

#endif
