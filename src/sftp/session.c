/* The vtable that the pool sees, and the factory; see remote/session.h and sftp.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "sftp/client.h"
#include "sftp/sftp.h"
#include "transport/transport.h"

static struct sftp *sftp_of(struct session *session)
{
	return CONTAINER_OF(session, struct sftp, session);
}

static void session_disconnect(struct session *session);

static int session_connect(struct session *session, uint64_t deadline_ns,
                           const _Atomic bool *cancel, struct failure *failure)
{
	struct sftp *sftp = sftp_of(session);
	session->bytes_in = session->bytes_out = 0;
	sftp->fault[0] = '\0';
	memset(&sftp->known, 0, sizeof(sftp->known));
	if (connector_open(sftp->factory->connector, deadline_ns, cancel, &sftp->transport,
	                   failure) < 0) {
		sftp->transport = NULL;
		return -1;
	}
	session->kind = sftp->transport->kind;
	if (sftp_hello(sftp, deadline_ns, cancel, failure) == 0)
		return 0;
	session_disconnect(session);
	return -1;
}

static void session_submit(struct session *session, struct op *op)
{
	struct sftp *sftp = sftp_of(session);
	memset(&op->proto, 0, sizeof(op->proto));
	list_push_back(&sftp->running, &op->proto.link);
	if (sftp->transport)
		sftp_start(sftp, op);
	else
		sftp_end_later(sftp, op, -ENOLINK);
}

static int session_poll_set(struct session *session, struct pollfd *fds, int max, bool *ready)
{
	struct sftp *sftp = sftp_of(session);
	*ready = false;
	if (!sftp->transport || max < 4)
		return 0;
	int count = sftp->transport->ops->poll_set(sftp->transport, sftp->blocked, fds, ready);
	if (!list_empty(&sftp->ended) || sftp->fault[0] ||
	    (!sftp->blocked && !outq_empty(&sftp->out)))
		*ready = true;
	return count;
}

/* Fills the failure for a connection that just died of `err`. */
static int lost(struct sftp *sftp, int err, struct failure *failure)
{
	const char *peer = sftp->factory->peer;
	if (sftp->fault[0]) {
		failure_set(failure, FAILURE_PROTOCOL, "the SFTP connection to %s broke: %s",
		            peer, sftp->fault);
		return -EPROTO;
	}
	const char *words = sftp->transport->ops->last_words(sftp->transport);
	if (words[0])
		failure_set(failure, FAILURE_UNREACHABLE, "%s: the connection was lost: %s",
		            peer, words);
	else if (err == -ENOTCONN)
		failure_set(failure, FAILURE_UNREACHABLE, "%s closed the connection", peer);
	else
		failure_set(failure, FAILURE_UNREACHABLE, "%s: the connection was lost: %s",
		            peer, strerror(-err));
	return err;
}

static int session_progress(struct session *session, struct failure *failure)
{
	struct sftp *sftp = sftp_of(session);
	sftp_end_kept(sftp);
	if (!sftp->transport) {
		failure_set(failure, FAILURE_UNREACHABLE, "%s: not connected",
		            sftp->factory->peer);
		return -ENOTCONN;
	}
	int err = sftp->fault[0] ? -EPROTO : client_send(sftp);
	/* What the peer said before it closed still counts. */
	int received = sftp->fault[0] ? -EPROTO : client_receive(sftp);
	if (received < 0)
		err = received;
	if (err == 0)
		err = client_send(sftp);
	sftp_end_kept(sftp);
	return err < 0 ? lost(sftp, err, failure) : 0;
}

static void session_disconnect(struct session *session)
{
	struct sftp *sftp = sftp_of(session);
	if (sftp->transport)
		sftp->transport->ops->close(sftp->transport);
	sftp->transport = NULL;
	openings_lost(sftp);
	listings_lost(sftp);
	fetchings_lost(sftp);
	client_reset(sftp);
	sftp_end_kept(sftp);
	/* Ops that the callbacks submit meanwhile are not part of this loss. */
	struct list_node gone;
	list_init(&gone);
	list_splice_back(&gone, &sftp->running);
	for (struct list_node *node; (node = list_pop_front(&gone));) {
		struct op *op = list_entry(node, struct op, proto.link);
		sftp_end(sftp, op, -ENOLINK);
	}
}

static bool session_cancel(struct session *session, struct op *op, int err)
{
	struct sftp *sftp = sftp_of(session);
	if (op->kind == OP_LIST)
		listing_cancelled(sftp, op);
	else if (op->kind == OP_OPEN)
		opening_cancelled(op);
	else if (op->kind == OP_FETCH)
		fetching_cancelled(sftp, op);
	if (!requests_orphan(sftp, op))
		return false;
	sftp_end(sftp, op, err);
	return true;
}

static void session_destroy(struct session *session)
{
	struct sftp *sftp = sftp_of(session);
	session_disconnect(session);
	client_release(sftp);
	free(sftp);
}

static const struct session_ops sftp_session_ops = {
    .protocol = "sftp",
    .connect = session_connect,
    .submit = session_submit,
    .poll_set = session_poll_set,
    .progress = session_progress,
    .disconnect = session_disconnect,
    .cancel = session_cancel,
    .destroy = session_destroy,
};

static struct session *factory_create(struct session_factory *base, int lane_index,
                                      const struct session_events *events, void *lane)
{
	struct sftp *sftp = calloc(1, sizeof(*sftp));
	if (!sftp)
		return NULL;
	sftp->factory = CONTAINER_OF(base, struct sftp_factory, base);
	sftp->session.ops = &sftp_session_ops;
	sftp->session.events = events;
	sftp->session.lane = lane;
	sftp->session.index = lane_index;
	sftp->session.kind = "";
	if (client_init(sftp) < 0) {
		client_release(sftp);
		free(sftp);
		return NULL;
	}
	return &sftp->session;
}

struct session_factory *sftp_factory_new(struct connector *connector, const char *peer,
                                         uint32_t max_read, uint32_t max_write)
{
	struct sftp_factory *factory = calloc(1, sizeof(*factory));
	if (!factory)
		return NULL;
	factory->peer = strdup(peer);
	if (!factory->peer) {
		free(factory);
		return NULL;
	}
	factory->base.create = factory_create;
	factory->base.peer = factory->peer;
	factory->connector = connector;
	factory->max_read = max_read;
	factory->max_write = max_write;
	pthread_mutex_init(&factory->lock, NULL);
	return &factory->base;
}

void sftp_factory_free(struct session_factory *base)
{
	if (!base)
		return;
	struct sftp_factory *factory = CONTAINER_OF(base, struct sftp_factory, base);
	pthread_mutex_destroy(&factory->lock);
	free(factory->peer);
	free(factory);
}
