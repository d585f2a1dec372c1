/*
 * A lane's byte stream through a child process: the ssh program, or a local sftp-server with no
 * ssh at all. The child is started without a shell; two pipes of 1 MiB carry the stream, a
 * third one collects what it says on stderr.
 *
 * The terminal: a child that can ask through the prompter (SSH_ASKPASS protocol), and every
 * sftp-server, gets a session of its own. Otherwise it stays with us, so that it can prompt on
 * the terminal, with SIGINT and SIGQUIT blocked: a Ctrl-C ends moorfs, which then ends the
 * child when its work is done.
 */
#ifndef MOORFS_TRANSPORT_EXEC_H
#define MOORFS_TRANSPORT_EXEC_H

#include "transport/ssh_target.h"
#include "transport/transport.h"

/*
 * Starts the child for target->mode SSH_MODE_SERVER, or ssh for every other mode. 0 and *out,
 * or -1 and the failure. Does not wait for it to connect: whether it could shows when the
 * server answers, see transport_explain(). `deadline_ns` (monotonic) becomes ssh's
 * ConnectTimeout.
 *
 * SIGPIPE is blocked on the calling thread from then on, which must be the lane's: writing to a
 * dead child gives -EPIPE.
 */
int exec_open(const struct ssh_target *target, uint64_t deadline_ns, struct transport **out,
              struct failure *failure);

/* True when the program of target->ssh_command can be found. */
bool exec_have_ssh(const struct ssh_target *target);

#endif
