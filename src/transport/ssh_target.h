/*
 * The SSH server to reach and how, after the command line, ssh_config (`ssh -G`) and the URL
 * have been merged. Filled by config/, read by the transports; constant while mounted.
 */
#ifndef MOORFS_TRANSPORT_SSH_TARGET_H
#define MOORFS_TRANSPORT_SSH_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct secret;

enum host_key_policy { HOST_KEY_ASK, HOST_KEY_STRICT, HOST_KEY_ACCEPT_NEW, HOST_KEY_NO };

/* How transports ask a person. The answers are remembered, so that later lanes do not ask. */
struct ssh_prompter {
	/*
	 * The answer to a prompt (a password, a passphrase, a one-time code): from memory, from
	 * password_stdin, from an askpass program or from the terminal. NULL: nobody to ask.
	 * `fresh`: do not answer from memory (the remembered answer was wrong or is one-time).
	 * The secret is the prompter's and lives as long as it.
	 */
	const struct secret *(*ask)(struct ssh_prompter *prompter, const char *prompt,
	                            bool echo, bool fresh);
	/* 1 yes, 0 no, -1 nobody to ask. */
	int (*confirm)(struct ssh_prompter *prompter, const char *question);
	/*
	 * Environment entries ("NAME=value", NULL-terminated, the prompter's) that make a child
	 * ssh ask through us by the SSH_ASKPASS protocol; NULL when the child's own ways serve.
	 */
	char *const *(*child_environment)(struct ssh_prompter *prompter);
	/*
	 * How long people have been asked so far, ns, the question now open included: what a
	 * person takes to answer does not count against a deadline. Any thread.
	 */
	uint64_t (*asked_ns)(struct ssh_prompter *prompter);
};

enum ssh_transport_mode {
	SSH_MODE_AUTO, /* ssh2 or ssh by the rule of connector.h */
	SSH_MODE_SSH2,
	SSH_MODE_SSH,
	SSH_MODE_SERVER, /* sftp_server=PATH of the local machine, no ssh */
	SSH_MODE_TCP,    /* directport=: an SFTP server that speaks in clear on a TCP port */
};

struct ssh_target {
	enum ssh_transport_mode mode;
	char *alias;     /* the host as the user wrote it: what the child ssh is given */
	char *hostname;  /* after ssh_config */
	char *user;      /* after ssh_config; never NULL */
	bool user_given; /* on the command line: the child ssh is given it */
	unsigned port;   /* after ssh_config */
	bool port_given;
	unsigned address_family; /* AF_UNSPEC, AF_INET, AF_INET6 */

	/* for ssh2 (effective configuration) */
	char **identities;       /* private key files, NULL-terminated, `~` expanded */
	char **user_known_hosts; /* files, NULL-terminated */
	char **global_known_hosts;
	char *host_key_alias; /* NULL: hostname */
	char *agent_socket;   /* NULL: none */
	bool identities_only;
	enum host_key_policy host_key_policy;
	bool hash_known_hosts;
	char *ciphers, *kex, *macs, *host_key_algorithms; /* comma lists or NULL: defaults */
	bool ciphers_given; /* by the user (option or ssh_config), not ssh's built-in list */
	bool password_auth, keyboard_auth, pubkey_auth;
	bool compression;
	/* Why this configuration needs the ssh program ("ProxyJump is set"); "" when it does
	 * not */
	char needs_ssh[128];

	/* for the child */
	char **ssh_command; /* argv prefix, NULL-terminated; default {"ssh"} */
	char *config_file;  /* -F, or NULL */
	char **ssh_options; /* "Keyword=value" for -o, NULL-terminated */
	char *sftp_server;  /* subsystem name or server path, NULL: subsystem "sftp" */
	unsigned direct_port;

	struct ssh_prompter *prompter;
};

#endif
