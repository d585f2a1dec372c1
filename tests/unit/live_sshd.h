/* A private sshd on a free loopback port with throw-away keys, for tests that want a real one.
 */
#ifndef MOORFS_TESTS_LIVE_SSHD_H
#define MOORFS_TESTS_LIVE_SSHD_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct live_sshd {
	char folder[40]; /* holds everything */
	char user[64];
	unsigned port;
	pid_t pid;
};

/* Exit status by which a test says that it was skipped. */
enum { LIVE_SKIP = 77 };

/* True when sshd, ssh, ssh-keygen and ssh-agent are installed. */
bool live_sshd_possible(void);

/*
 * Makes the folder with the keys "host" (ed25519), "plain" (ed25519), "locked" (ed25519 with
 * the passphrase "open sesame"), "ecdsa", "rsa" and "stranger", all but the last authorized,
 * and starts sshd, whose SFTP subsystem is `subsystem`. `extra` lines come first in its
 * configuration.
 */
void live_sshd_start(struct live_sshd *sshd, const char *subsystem, const char *extra);
void live_sshd_stop(struct live_sshd *sshd);

/* "FOLDER/NAME" in a buffer of the caller; returns it. */
char *live_sshd_path(const struct live_sshd *sshd, const char *name, char *out, size_t size);

/* Runs a shell command; fails the test when it fails. */
__attribute__((format(printf, 1, 2))) void live_run(const char *format, ...);

/* Writes the file NAME in the folder. */
__attribute__((format(printf, 3, 4))) void
live_sshd_write(const struct live_sshd *sshd, const char *name, const char *format, ...);

/* The line "TYPE KEY" of the public key NAME.pub, without its comment; in a static buffer. */
const char *live_sshd_public(const struct live_sshd *sshd, const char *name);

#endif
