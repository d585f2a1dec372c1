/*
 * The effective configuration of one host as `ssh -G` prints it ("keyword value" lines, lower
 * case), and what it means for the transports. Pure: files and programs are looked at
 * elsewhere.
 */
#ifndef MOORFS_CONFIG_SSH_CONFIG_H
#define MOORFS_CONFIG_SSH_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "config/arena.h"
#include "transport/ssh_target.h"

struct ssh_setting {
	struct ssh_setting *next;
	const char *keyword; /* lower case */
	const char *value;
};

/* In the order of the text; the first of a keyword counts, as in ssh. */
struct ssh_settings {
	struct ssh_setting *first, **end;
};

/* Lines that are not "keyword value" are skipped. False when memory is out. */
bool ssh_settings_parse(struct ssh_settings *settings, struct arena *arena, const char *text);

/* Adds "Keyword=value" entries (of -o): the form the settings have where there is no ssh. */
bool ssh_settings_add_options(struct ssh_settings *settings, struct arena *arena,
                              char *const *options);

/* NULL when not set, or set to "none". */
const char *ssh_settings_get(const struct ssh_settings *settings, const char *keyword);
/* Said to be so; neither is true of a setting that is missing or says something else. */
bool ssh_settings_yes(const struct ssh_settings *settings, const char *keyword);
bool ssh_settings_no(const struct ssh_settings *settings, const char *keyword);

/* What the machine and the person bring to it. */
struct ssh_surroundings {
	const char *home; /* directory of the user in the password database */
	const char *local_user;
	const char *local_host; /* gethostname() */
	unsigned local_uid;
	const char *agent_socket;                     /* $SSH_AUTH_SOCK or NULL */
	bool kerberos_ticket;                         /* there is something GSSAPI could use */
	const char *(*environment)(const char *name); /* getenv */
};

/* What the target has no field for. */
struct ssh_extras {
	bool batch;                                /* BatchMode */
	uint64_t connect_timeout_ns, keepalive_ns; /* 0: not set */
	char **identities;                         /* key files, expanded, existing or not */
	char **certificates;
	const char *unknown_token; /* a %token that only ssh expands, or NULL */
};

/*
 * Merges the settings into the target; what the command line gave (user_given, port_given)
 * stays. `builtin` is the configuration of a bare ssh without any file: algorithms equal to it
 * count as not given. Fills needs_ssh. 0, or -1 and FAILURE_INTERNAL or FAILURE_USAGE.
 */
int ssh_config_merge(struct ssh_target *target, struct ssh_extras *extras, struct arena *arena,
                     const struct ssh_settings *settings, const struct ssh_settings *builtin,
                     const struct ssh_surroundings *around, struct failure *failure);

/*
 * `~`, ${NAME} and the %tokens of ssh_config(5) that can be known without asking the network.
 * NULL when memory is out; *unknown is set to the text when it has a token we cannot expand.
 */
char *ssh_config_expand(struct arena *arena, const char *text, const struct ssh_target *target,
                        const struct ssh_surroundings *around, const char **unknown);

#endif
