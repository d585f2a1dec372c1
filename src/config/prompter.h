/*
 * Answers the transports' questions (struct ssh_prompter): from memory, from password_stdin,
 * from an askpass program, from the terminal, in this order. Answers are remembered, so that
 * later lanes do not ask. Any thread may ask; people are asked one question at a time.
 *
 * An askpass program is run when SSH_ASKPASS names one and there is no terminal, or when
 * SSH_ASKPASS_REQUIRE is "force" or "prefer"; never when it is "never".
 */
#ifndef MOORFS_CONFIG_PROMPTER_H
#define MOORFS_CONFIG_PROMPTER_H

#include <stdbool.h>

#include "base/failure.h"
#include "base/secret.h"
#include "config/askpass.h" /* askpass_requested() and askpass_main(), for main() */
#include "transport/ssh_target.h"

/*
 * `password` (or NULL) becomes the prompter's: it answers prompts for a password or passphrase.
 * `batch`: people are never asked. Starts no thread. NULL when memory is out.
 */
struct ssh_prompter *prompter_new(struct secret *password, bool batch);

/* Nobody is asking any more. NULL is allowed. */
void prompter_free(struct ssh_prompter *prompter);

/* See config_stop_asking(). NULL is allowed. */
void prompter_stop_asking(struct ssh_prompter *prompter);

/*
 * The first line of the descriptor, reading not a byte beyond it. 0 and *line, or -1 with the
 * failure.
 */
int prompter_read_line(int fd, struct secret **line, struct failure *failure);

#endif
