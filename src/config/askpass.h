/*
 * Lets a child ssh ask through us, by the SSH_ASKPASS protocol: ssh starts the moorfs binary as
 * its askpass program, that connects to a socket of the mounting moorfs, which answers. The
 * socket has a random abstract name and serves processes of the same user only.
 */
#ifndef MOORFS_CONFIG_ASKPASS_H
#define MOORFS_CONFIG_ASKPASS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/secret.h"

#define ASKPASS_SOCKET_VARIABLE "MOORFS_ASKPASS_SOCKET"

enum askpass_kind {
	ASKPASS_QUESTION, /* wants a line of text */
	ASKPASS_CONFIRM,  /* wants yes or no */
	ASKPASS_NOTICE,   /* tells something ("touch the key") while ssh waits */
};

enum askpass_reply {
	ASKPASS_NO_ANSWER,
	ASKPASS_ANSWER,
	ASKPASS_WAIT, /* the asking program stays until ssh ends it */
};

/*
 * Called on the server's thread; may wait for a person. `asker` tells the ssh processes apart.
 * With ASKPASS_ANSWER *answer is set to a text that lives as long as the server.
 */
typedef enum askpass_reply askpass_answer_fn(void *context, pid_t asker, enum askpass_kind kind,
                                             const char *prompt, const char **answer);

struct askpass_server;

/* Starts the thread. 0 or -errno. */
int askpass_server_start(askpass_answer_fn *answer, void *context,
                         struct askpass_server **server);
/* The socket's name, as the environment variable has it. */
const char *askpass_server_name(const struct askpass_server *server);
/* Ends the thread (once `answer` has returned) and frees. NULL is allowed. */
void askpass_server_stop(struct askpass_server *server);

/* True when this process was started by ssh to ask: main() calls askpass_main() then. */
bool askpass_requested(void);
/* Asks the mounting moorfs and prints the answer. Returns the exit code. */
int askpass_main(int argc, char **argv);

#endif
