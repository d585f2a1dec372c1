/* What the ssh2_*.c files share; nobody else includes it. */
#ifndef MOORFS_TRANSPORT_SSH2_INTERNAL_H
#define MOORFS_TRANSPORT_SSH2_INTERNAL_H

#include <libssh2.h>

#include "base/bytes.h"
#include "transport/ssh2.h"
#include "transport/ssh2_memory.h"
#include "transport/tail.h"

enum { SSH2_RX_BYTES = 256 << 10, SSH2_GREETING_MAX = 200 };

/* What one try of keyboard-interactive saw. */
struct ssh2_keyboard {
	bool fresh;         /* remembered answers were wrong */
	bool unanswered;    /* nobody to ask */
	unsigned questions; /* asked by the server */
};

struct ssh2 {
	struct transport base;
	struct ssh2_request request; /* after opening only `target` is used */
	LIBSSH2_SESSION *session;
	LIBSSH2_CHANNEL *channel;
	struct ssh2_memory memory;
	char peer[300]; /* "user@host" for messages */

	/* Received and not yet taken by libssh2: rx[rx_at..rx_end). */
	unsigned char *rx;
	size_t rx_at, rx_end;
	unsigned rx_calls; /* how often libssh2 may ask the socket before it is told EAGAIN */
	bool rx_eof;       /* the peer has closed */
	bool disconnected; /* the peer has said goodbye; why is in `words` */
	int err;           /* errno value of the socket, 0: fine */
	bool queued;       /* libssh2 may hold channel data that no poll would announce */
	bool closing;      /* being freed: libssh2 is told that the peer is gone */

	/* Encrypted and not yet sent: tx.data[tx_at..]. */
	struct bytes tx;
	size_t tx_at;

	/* Given to libssh2 by a write that said EAGAIN: it wants the same again. */
	char *chunk;
	size_t chunk_length;

	/* The first bytes the peer sent, to say what it is when it is no SSH server. */
	char greeting[SSH2_GREETING_MAX];
	size_t greeting_length;
	struct tail
	    words; /* stderr of the server program, the words of a disconnecting server */

	/* Only while opening. */
	uint64_t deadline_ns;
	bool ssh_may_help;
	bool no_passwords; /* the host key is not trusted: nothing that can be replayed */
	unsigned asked;    /* how often a person was asked */
	struct ssh2_keyboard keyboard;
};

/* --- ssh2_stream.c: bytes between libssh2 and the socket --- */

/* Makes libssh2 use our memory and buffers. 0, or -1 when memory is out. */
int ssh2_stream_init(struct ssh2 *ssh2);
void ssh2_stream_release(struct ssh2 *ssh2);

/* Sends what is gathered, as far as the socket takes it. */
void ssh2_flush(struct ssh2 *ssh2);
size_t ssh2_unsent(const struct ssh2 *ssh2);

/*
 * While opening, after libssh2 said EAGAIN: waits until going on makes sense. 0, or -1 and the
 * failure when the connection ended, the time is over or it was cancelled.
 */
int ssh2_wait(struct ssh2 *ssh2, struct failure *failure);

/*
 * Repeats a libssh2 call while it says EAGAIN; the value is its result, or LIBSSH2_ERROR_EAGAIN
 * when waiting failed (and the failure is filled).
 */
#define SSH2_CALL(ssh2, failure, call)                                                   \
	__extension__({                                                                  \
		int ssh2_rc_;                                                            \
		do {                                                                     \
			ssh2_rc_ = (call);                                               \
		} while (ssh2_rc_ == LIBSSH2_ERROR_EAGAIN && !ssh2_wait(ssh2, failure)); \
		ssh2_rc_;                                                                \
	})

/* True when the connection is over, whatever libssh2 calls it. */
bool ssh2_lost(const struct ssh2 *ssh2);

/* libssh2's text of the last error; "" when there is none. */
const char *ssh2_message(struct ssh2 *ssh2);

/* --- ssh2_methods.c: algorithms --- */

struct knownhosts;

/* Tells libssh2 which algorithms to offer; types of known keys first. 0 or -1. */
int ssh2_set_methods(struct ssh2 *ssh2, const struct knownhosts *known,
                     struct failure *failure);

/* True when the libssh2 at hand signs with RSA and SHA-2. */
bool ssh2_has_rsa_sha2(void);

/* --- ssh2_hostkey.c --- */

/* Reads the known_hosts files for the target. 0 or -1. */
int ssh2_load_known(struct ssh2 *ssh2, struct knownhosts *known, struct failure *failure);
/* Decides on the key that the server showed. 0: go on; -1. */
int ssh2_check_host_key(struct ssh2 *ssh2, const struct knownhosts *known,
                        struct failure *failure);

/* --- ssh2_auth.c, ssh2_publickey.c --- */

/* 0 when the server accepted us. */
int ssh2_authenticate(struct ssh2 *ssh2, struct failure *failure);

enum ssh2_auth_result {
	SSH2_AUTH_OK,
	SSH2_AUTH_REFUSED, /* this method has nothing more to offer */
	SSH2_AUTH_CHANGED, /* the server took it, and wants another method besides */
	SSH2_AUTH_FATAL,   /* the failure is filled */
};

/* One try to authenticate. */
struct ssh2_auth {
	struct ssh2 *ssh2;
	struct failure *failure;
	char offered[256];  /* methods of the server, comma list */
	struct bytes tried; /* for the message: what we offered and what came of it */
	unsigned done;      /* bits of methods that are exhausted */
};

enum ssh2_auth_result ssh2_auth_publickey(struct ssh2_auth *auth);

/* After a refusal that may have been a partial success: asks the server what it wants now. */
enum ssh2_auth_result ssh2_auth_refused(struct ssh2_auth *auth);

/* Notes in auth->tried: "key ~/.ssh/id_x refused". */
__attribute__((format(printf, 2, 3))) void ssh2_auth_note(struct ssh2_auth *auth,
                                                          const char *format, ...);

/* Asks a person; the time that takes is added to the deadline. NULL: nobody answered. */
const struct secret *ssh2_ask(struct ssh2 *ssh2, const char *prompt, bool echo, bool fresh);

#endif
