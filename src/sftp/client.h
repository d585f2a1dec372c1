/*
 * The inside of an SFTP session, shared by the files of this folder.
 *
 * Layers, lowest first: wire (codec) and outq (bytes to send) are pure; client.c owns requests,
 * their ids, and the stream in both directions; hello.c begins the conversation; files.c,
 * data.c, list.c and ops.c turn ops into requests and replies into results; session.c is the
 * vtable that the pool sees.
 *
 * Life of a request: request_begin() takes a slot, the caller encodes the packet into
 * sftp->out.headers with request->id, request_commit() queues it. Its reply calls on_reply
 * once, with the slot already free. When the op behind it ends early, the request is orphaned:
 * `op` becomes NULL, and on_reply still runs (to close a handle that came too late, say).
 *
 * Life of an op: sftp_submit() calls its starter from ops.c; it ends by sftp_end(), or by
 * sftp_end_later() where the caller of submit must not be called back. All on the lane's
 * thread.
 *
 * Use of op->proto: link: in `running`, `ended` or a handle's `waiting`; outstanding: requests
 * in flight; progress: end of the data known so far (READ); err: first error; pointer: the
 * struct opening, struct listing or struct fetching at work; step: what a REALPATH asks at
 * present.
 */
#ifndef MOORFS_SFTP_CLIENT_H
#define MOORFS_SFTP_CLIENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "remote/file.h"
#include "remote/op.h"
#include "remote/session.h"
#include "sftp/outq.h"
#include "sftp/wire.h"
#include "transport/connector.h"

struct sftp;
struct sftp_request;

/* Extensions that the server announced in a version we know. */
enum {
	EXT_POSIX_RENAME = 1 << 0,
	EXT_STATVFS = 1 << 1,
	EXT_HARDLINK = 1 << 2,
	EXT_FSYNC = 1 << 3,
	EXT_LSETSTAT = 1 << 4,
	EXT_LIMITS = 1 << 5,
	EXT_EXPAND_PATH = 1 << 6,
	EXT_COPY_DATA = 1 << 7,
	EXT_HOME_DIRECTORY = 1 << 8,
	EXT_USERS_GROUPS = 1 << 9,
};

/* A reply as handlers get it. */
struct sftp_reply {
	uint8_t type;
	int err;             /* STATUS: 0 or -errno; other types: 0 */
	bool eof;            /* STATUS: end of file */
	uint32_t count;      /* DATA: bytes now in request->data */
	struct wire_in body; /* HANDLE, NAME, ATTRS, EXTENDED_REPLY; valid during the call */
};

/* 0, or -EPROTO after sftp_malformed(): the session is dead. The slot is free again. */
typedef int sftp_reply_fn(struct sftp *sftp, const struct sftp_request *request,
                          struct sftp_reply *reply);

struct sftp_request {
	uint32_t id;  /* slot and its generation */
	uint8_t type; /* enum wire_type */
	bool used;
	bool sent;     /* its first bytes were given to the transport */
	struct op *op; /* NULL: nobody waits for the outcome */
	sftp_reply_fn *on_reply;
	void *context;   /* struct opening, struct listing or struct fetching */
	char *data;      /* READ and WRITE: memory of op->data */
	uint64_t offset; /* READ and WRITE: in the file */
	uint32_t length; /* READ and WRITE: asked */
	struct sftp_request *next_free;
};

struct sftp_input {
	char *buffer;
	size_t start, end, capacity;  /* buffer[start..end) is received and not yet parsed */
	size_t need;                  /* size of the packet that is incomplete; 0: unknown */
	struct sftp_request *payload; /* whose DATA is being received */
	char *dest;                   /* where its next byte goes; NULL: thrown away */
	size_t remaining;             /* bytes of it still to come */
	uint32_t payload_length;
};

struct sftp_factory {
	struct session_factory base;
	struct connector *connector;
	char *peer;
	uint32_t max_read, max_write;
	pthread_mutex_t lock; /* protects the fields below */
	bool limits_known;    /* by an earlier lane: later ones need not wait for the answer */
	struct wire_limits limits;
};

struct sftp {
	struct session session;
	struct sftp_factory *factory;
	struct transport *transport; /* NULL: not connected */
	unsigned extensions;         /* EXT_* */
	bool limits_pending;
	uint64_t asked_before_ns; /* connector_asked_ns() when the conversation began */
	struct {                  /* of this server, by what it answered */
		bool no_fstat, no_fsetstat, no_realpath;
		bool fstat_works, fsetstat_works;
		/*
		 * Go's pkg/sftp, of which rclone's server is the known case. It takes a READ
		 * by a handle for reading and writing as a WRITE of zeros: such files get one
		 * handle for each. rclone 1.60 empties every file that is opened for writing:
		 * that is done once. It says OK to links and new sizes without making them: no
		 * links, and sizes are looked at afterwards.
		 */
		bool pkg_sftp;
	} known;
	bool told_bad_name;

	struct outq out;
	bool blocked; /* the transport said -EAGAIN to a write */
	struct sftp_input in;
	char fault[512]; /* why the session is dead, "" when it lives */

	struct sftp_request **blocks; /* slots, in blocks that never move */
	size_t block_count;
	struct sftp_request *free_slots;
	size_t used_slots;
	size_t bulk_reads; /* large READs in flight */

	struct list_node openings;  /* struct opening, files.c */
	struct list_node listings;  /* struct listing, list.c */
	struct list_node fetchings; /* struct fetching, fetch.c */
	struct list_node running;   /* ops with requests in flight */
	struct list_node ended;     /* ops to be handed back at the next progress() */
};

/* ---- client.c ---- */

/* 0 or -ENOMEM. */
int client_init(struct sftp *sftp);
void client_release(struct sftp *sftp);

/* Takes a slot; NULL when memory is out. */
struct sftp_request *request_begin(struct sftp *sftp, enum wire_type type, struct op *op,
                                   sftp_reply_fn *on_reply);

/* Where the packet of the request is encoded. */
static inline struct bytes *request_packet(struct sftp *sftp)
{
	return &sftp->out.headers;
}

/*
 * Queues the packet encoded since `mark` (request_packet()->length before encoding), with the
 * data of a write behind it, and counts it in op->proto.outstanding. 0, or -ENOMEM with the
 * slot released.
 */
int request_commit(struct sftp *sftp, struct sftp_request *request, size_t mark,
                   const void *data, size_t length);

/* The slot with this id if the request is still in flight, else NULL. */
struct sftp_request *request_find(struct sftp *sftp, uint32_t id);

/*
 * All requests of the op lose it, so that nothing touches its memory any more: what was not
 * sent is not sent (save requests with a context), replies are thrown away. False when memory
 * is out and data of a half-sent write could not be saved: then the session is marked dead, and
 * the op stays with it until disconnect.
 */
bool requests_orphan(struct sftp *sftp, struct op *op);

/* The handler of a request in flight changes to one that needs no context. */
void request_ignore(struct sftp *sftp, uint32_t id);

/* Sends what the transport takes. 0 or -errno. */
int client_send(struct sftp *sftp);

/*
 * Receives and handles replies until nothing is left or a fair share is done. 0, -ENOTCONN when
 * the peer closed, other -errno.
 */
int client_receive(struct sftp *sftp);

/*
 * One read from the transport into the free room of the input buffer or the waiting payload.
 * > 0, -EAGAIN, -ENOTCONN, other -errno.
 */
ssize_t client_read_some(struct sftp *sftp);

/* Handles what lies in the input buffer. 0 or -errno. */
int client_parse(struct sftp *sftp);

/* Forgets input, output and slots; op pointers in them are not followed. */
void client_reset(struct sftp *sftp);

/* Records why the session must die; returns -EPROTO. */
__attribute__((format(printf, 2, 3))) int sftp_malformed(struct sftp *sftp, const char *format,
                                                         ...);

/*
 * For handlers that want one type of reply: true when it is that. False when it is a STATUS
 * (then *result is 0, and reply->err is set: "OK" instead of an answer is -EIO, which rclone
 * sends for reads of a file that is open for writing too); another reply is malformed (*result
 * -EPROTO).
 */
bool reply_is(struct sftp *sftp, const struct sftp_request *request, struct sftp_reply *reply,
              enum wire_type type, int *result);

/* ---- hello.c ---- */

/* INIT, VERSION, limits; see session_ops.connect. The transport is open. */
int sftp_hello(struct sftp *sftp, uint64_t deadline_ns, const _Atomic bool *cancel,
               struct failure *failure);

/* ---- ops.c ---- */

/* Starts an op that has just come or whose handle has become ready. */
void sftp_start(struct sftp *sftp, struct op *op);

/* Hands the op back. */
void sftp_end(struct sftp *sftp, struct op *op, int err);

/* The same from within submit(): at the next progress(). */
void sftp_end_later(struct sftp *sftp, struct op *op, int err);

/* Hands back what sftp_end_later() kept. */
void sftp_end_kept(struct sftp *sftp);

/* One request answered: op->err becomes the first error; ends the op after the last. */
void sftp_settle(struct sftp *sftp, struct op *op, int err);

/* Sends a request of `type` with the path, answered as `on_reply` wants. 0 or -ENOMEM. */
int send_path(struct sftp *sftp, enum wire_type type, struct op *op, const char *path,
              sftp_reply_fn *on_reply, void *context);
/* The same with a handle. */
int send_handle(struct sftp *sftp, enum wire_type type, struct op *op, struct wire_text handle,
                sftp_reply_fn *on_reply, void *context);

/* Handler of requests whose STATUS is all; ends the op when it was the last. */
int on_status(struct sftp *sftp, const struct sftp_request *request, struct sftp_reply *reply);
/* Handler that fills op->attr. */
int on_attr(struct sftp *sftp, const struct sftp_request *request, struct sftp_reply *reply);
/* Handler of requests whose outcome interests nobody. */
int on_ignored(struct sftp *sftp, const struct sftp_request *request, struct sftp_reply *reply);
/*
 * Handler of SETSTAT and FSETSTAT, whose STATUS is all, save that a new size is looked for on
 * servers that may not have set it.
 */
int on_attributes_set(struct sftp *sftp, const struct sftp_request *request,
                      struct sftp_reply *reply);
/* The body of an ATTRS reply. 0, or -EPROTO when it is cut short. */
int take_attr(struct sftp *sftp, struct sftp_reply *reply, struct remote_attr *attr);

/* ---- realpath.c ---- */

int start_realpath(struct sftp *sftp, struct op *op);

/* ---- files.c ---- */

int start_open(struct sftp *sftp, struct op *op);
int start_close(struct sftp *sftp, struct op *op);

/*
 * The open handle of the file on this lane, or NULL: then the op waits for one that is being
 * opened and is started again (0 in *err), or cannot have one (*err says why).
 */
struct remote_handle *file_handle(struct sftp *sftp, struct op *op, struct remote_file *file,
                                  int *err);
/*
 * The file has, or gets, this mode: if nobody could open it again with the access it has, its
 * ops keep to the lanes where it is open.
 */
void file_note_mode(struct remote_file *file, uint32_t mode);
/* The handle for this op if it is open now, else NULL; nothing waits. */
const struct remote_handle *file_open_handle(struct sftp *sftp, const struct op *op);
static inline struct wire_text handle_text(const struct remote_handle *handle)
{
	return (struct wire_text){handle->bytes, handle->length};
}

/* The connection is gone: ops that wait for a handle go to `running`, to be ended with it. */
void openings_lost(struct sftp *sftp);
/* The OP_OPEN ends early; the opening goes on without it. */
void opening_cancelled(struct op *op);

/* ---- data.c ---- */

int start_read(struct sftp *sftp, struct op *op);
int start_write(struct sftp *sftp, struct op *op);
int start_fstat(struct sftp *sftp, struct op *op);
int start_fsetattr(struct sftp *sftp, struct op *op);
int start_fsync(struct sftp *sftp, struct op *op);
int start_copy(struct sftp *sftp, struct op *op);

/* ---- fetch.c ---- */

int start_fetch(struct sftp *sftp, struct op *op);
/* The connection is gone. */
void fetchings_lost(struct sftp *sftp);
/* The OP_FETCH ends early; a handle that is open or comes later is closed. */
void fetching_cancelled(struct sftp *sftp, struct op *op);

/* ---- list.c ---- */

int start_list(struct sftp *sftp, struct op *op);
/* The connection is gone. */
void listings_lost(struct sftp *sftp);
/* The OP_LIST ends early; its directory handle is closed behind it. */
void listing_cancelled(struct sftp *sftp, struct op *op);

#endif
