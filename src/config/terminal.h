/* The terminal that the process was started from (/dev/tty): asks a person there. */
#ifndef MOORFS_CONFIG_TERMINAL_H
#define MOORFS_CONFIG_TERMINAL_H

#include <stdbool.h>

#include "base/secret.h"

/* True when there is one (never after setsid(2)). */
bool terminal_present(void);

/*
 * Shows the prompt and reads a line, unseen unless `echo`. 0 and *answer (the caller's), or
 * -errno: -ENXIO there is no terminal, -ECANCELED *stop became true, the input ended or a
 * signal came. The terminal's state is restored in every case; a signal that would have ended
 * the process is raised again afterwards. Control characters in the prompt, which a server may
 * have chosen, are not sent to the terminal. Blocks; one thread at a time.
 */
int terminal_ask(const char *prompt, bool echo, const _Atomic bool *stop,
                 struct secret **answer);

/* Shows a line of text. */
void terminal_say(const char *text);

#endif
