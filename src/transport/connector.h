/*
 * Opens the byte stream of one more lane in the way that the configuration needs and the link
 * rewards, and remembers what it learned for the next lane.
 *
 * The rule of transport=auto (written for users in moorfs(1)):
 *  1. what libssh2 cannot honour (ProxyJump, ProxyCommand, certificates, FIDO or GSSAPI,
 *     target->needs_ssh) goes to the child ssh;
 *  2. else the first lane measures the TCP connect: under 3 ms the child ssh serves (its
 *     ciphers cost less CPU), above it libssh2 does (its window is not bound to 2 MiB);
 *     what the first lane then measures of the session itself decides for the later lanes;
 *  3. when libssh2 cannot authenticate or agree on algorithms, the child ssh is tried, and kept
 *     if it succeeds; a host key that does not match is never tried again;
 *  4. without an ssh program libssh2 is what there is.
 */
#ifndef MOORFS_TRANSPORT_CONNECTOR_H
#define MOORFS_TRANSPORT_CONNECTOR_H

#include "transport/ssh_target.h"
#include "transport/transport.h"

struct connector;

/* The target outlives the connector. NULL when memory is out. */
struct connector *connector_new(const struct ssh_target *target);
void connector_free(struct connector *connector);

/*
 * Blocks until the stream to the SFTP server is open, `deadline_ns` (monotonic) passes or
 * *cancel becomes true (looked at at least every 500 ms). 0 and *out, or -1 and the failure.
 * Any thread; several lanes may open at once, except that what needs the terminal asks one at a
 * time.
 */
int connector_open(struct connector *connector, uint64_t deadline_ns,
                   const _Atomic bool *cancel, struct transport **out, struct failure *failure);

/*
 * A request and its reply over an open stream took so long. Where the kind was chosen by
 * distance this is the better measure (a TCP connect may have been answered half way, by a
 * proxy or a tunnel): the next lanes are opened as the rule says for it. Any thread.
 */
void connector_note_round_trip(struct connector *connector, uint64_t round_trip_ns);

/*
 * How long people have been asked so far, ns, an open question included; 0 when nobody counts.
 * What they take does not count against a deadline: connector_open() keeps to that itself, and
 * who then waits for the server (whose child ssh may be asking) adds what this has grown by.
 */
uint64_t connector_asked_ns(struct connector *connector);

/* What was chosen and why, for the log: "ssh2: round trip 48 ms". Valid until the next open. */
const char *connector_reason(struct connector *connector);

/* The pure rule: which kind the first lane uses. */
enum ssh_transport_mode connector_choose(const struct ssh_target *target, bool have_ssh,
                                         uint64_t connect_ns);

#endif
