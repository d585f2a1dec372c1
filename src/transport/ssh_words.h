/* Turns what the ssh program wrote on stderr into a failure. Pure. */
#ifndef MOORFS_TRANSPORT_SSH_WORDS_H
#define MOORFS_TRANSPORT_SSH_WORDS_H

#include "base/failure.h"

/*
 * `host` is the name for the message, `words` the text (may be empty), `exit_status` the
 * child's exit status, 256 + signal when one killed it, or -1 while it runs. Always fills the
 * failure.
 */
void ssh_words_explain(const char *host, const char *words, int exit_status,
                       struct failure *failure);

#endif
