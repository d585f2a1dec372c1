/*
 * What the tests with a real sshd share: a server that returns what it is sent, a person who
 * answers by a script, and a target for one connection.
 */
#ifndef MOORFS_TESTS_LIVE_SETUP_H
#define MOORFS_TESTS_LIVE_SETUP_H

#include "live_sshd.h"
#include "transport/connector.h"

struct secret;

struct person {
	struct ssh_prompter base;
	const char *answers[4]; /* one after the other; then nobody */
	int consent;            /* to an unknown host key */
	unsigned asked, confirmed;
	char last[600]; /* question */
	struct secret *given[4];
};

/* Its SFTP subsystem is /bin/cat. Runs between live_start and live_stop (of a test group). */
extern struct live_sshd echo_server;
int live_start(void **state);
int live_stop(void **state);

/* A target and the strings it points to. */
struct setup {
	struct ssh_target target;
	struct person person;
	char host[20], user[64], known[120], key_room[3][120], options[6][200];
	char *keys[4], *known_list[2], *option_list[7];
	struct connector *connector;
	struct transport *transport;
	struct failure failure;
};

/* Everything right but without a key to log in: the host key is known, nobody answers. */
void setup_init(struct setup *setup, const struct live_sshd *sshd,
                enum ssh_transport_mode mode);
void setup_release(struct setup *setup);

/* Adds the server's key file NAME as an identity. */
void setup_key(struct setup *setup, const struct live_sshd *sshd, const char *name);

/* Opens one lane of a new connector within 20 s; 0 or -1. */
int setup_open(struct setup *setup);
void setup_close(struct setup *setup);

/* Opens, sends bytes to and fro, closes. */
void expect_open(struct setup *setup, size_t echo_bytes);

/* Opening fails with this kind and a text that has `part` in it. */
void expect_failure(struct setup *setup, enum failure_kind kind, const char *part);

#endif
