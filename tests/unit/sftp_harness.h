/*
 * Drives one SFTP session in unit tests: takes the place of the lane, the connector and the
 * transport. The peer is the test itself on the other end of a socket pair, or a real
 * sftp-server.
 */
#ifndef MOORFS_TESTS_SFTP_HARNESS_H
#define MOORFS_TESTS_SFTP_HARNESS_H

#include "base/bytes.h"
#include "remote/remote.h"
#include "sftp/sftp.h"
#include "sftp/wire.h"

struct connector; /* the harness's own */

struct harness {
	struct session_factory *factory;
	struct connector *connector;
	struct session *session;
	struct remote remote; /* for remote_file_new() */
	struct failure failure;
	int peer; /* the test's end of the stream; -1: closed or a child's */
	pid_t child;
	unsigned done_count;
	struct op *done[64]; /* in the order in which they ended */
	int progress_err;    /* of the last harness_pump() */
};

/* A session not yet connected and its peer. */
void harness_open(struct harness *h, uint32_t max_read, uint32_t max_write);
/* The same with a child as peer. */
void harness_spawn(struct harness *h, const char *const *argv);
void harness_close(struct harness *h);

/* What the transport says about the end of the stream. */
void harness_set_last_words(struct harness *h, const char *words);
/* From now on a person seems to have been asked for so long. */
void harness_set_asked(struct harness *h, double seconds);
/* The round trip that the session measured while connecting, ns. */
uint64_t harness_round_trip(const struct harness *h);
/* Send and receive buffers of the stream as small as the system has them. */
void harness_small_buffers(struct harness *h);

/* Connects with `seconds` to do so; 0 or -1 with h->failure. */
int harness_connect(struct harness *h, double seconds);

/* Plays a server's beginning from a thread while the session connects. Names of extensions in
 * pairs with their versions, NULL at the end; `limits` (if any) is the answer to limits@. */
void harness_connect_as(struct harness *h, uint32_t version, const char *const *extensions,
                        const struct wire_limits *limits);

void harness_submit(struct harness *h, struct op *op);
/* One progress(). */
void harness_pump(struct harness *h);
bool harness_is_done(const struct harness *h, const struct op *op);
/* Until the op has ended (10 s at most); returns its err. */
int harness_wait(struct harness *h, struct op *op);
int harness_run(struct harness *h, struct op *op);

/* ---- the peer's side ---- */

struct packet {
	uint8_t type;
	uint32_t id;
	struct wire_in body; /* in `raw` */
	struct bytes raw;
};

/* The next request, after pumping the session; fails the test when none comes. */
void peer_take(struct harness *h, struct packet *packet);
/* Takes a request that must be of this type. */
uint32_t peer_expect(struct harness *h, uint8_t type);
/* True when the session has sent nothing (more). */
bool peer_is_quiet(struct harness *h);
void packet_release(struct packet *packet);

/* Builds a reply: begin, bytes_add*, then peer_send (sends and releases). */
void reply_begin(struct bytes *reply, uint8_t type, uint32_t id);
void reply_text(struct bytes *reply, const void *text, size_t length);
void reply_attr(struct bytes *reply, uint64_t size, uint32_t mode, uint32_t mtime);
void peer_send(struct harness *h, struct bytes *reply);
void peer_send_raw(struct harness *h, const void *data, size_t length);
void peer_status(struct harness *h, uint32_t id, uint32_t code);
void peer_handle(struct harness *h, uint32_t id, const char *handle);
void peer_data(struct harness *h, uint32_t id, const void *data, size_t length);
void peer_attrs(struct harness *h, uint32_t id, uint64_t size, uint32_t mode, uint32_t mtime);

#endif
