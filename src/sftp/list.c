/*
 * OP_LIST: a directory read with several READDIRs in flight. The names are passed up in the
 * order in which they were asked for.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "sftp/client.h"

enum {
	WINDOW_FIRST = 2, /* one for the names, one for the end of a small directory */
	WINDOW_MAX = 8,
	/* A reply as large as this has more behind it: servers stop at 100 names or so. */
	FULL_NAMES = 64,
	FULL_BYTES = 8 * 1024,
	BATCH = 64, /* names passed up at once */
};

/* One READDIR in flight, or answered before its turn. */
struct ask {
	uint32_t id;
	bool answered;
	bool eof;
	int err;
	char *kept; /* body of a NAME reply that came too early */
	size_t kept_length;
};

struct listing {
	struct list_node link;
	struct op *op; /* NULL: nobody wants the names any more */
	bool open;
	struct wire_text handle;
	char handle_bytes[WIRE_HANDLE_MAX];
	struct ask asks[WINDOW_MAX];
	unsigned first, count; /* of asks in use, a ring */
	unsigned window;
	unsigned batches; /* NAME replies so far: the second shows that there are many */
	bool unordered;   /* replies came out of order: the end says nothing of later ones */
	bool ended;       /* the end was seen */
};

/* Lets go of everything but the op. */
static void listing_free(struct listing *listing)
{
	for (unsigned i = 0; i < WINDOW_MAX; i++)
		free(listing->asks[i].kept);
	list_remove(&listing->link);
	free(listing);
}

/* Closes the directory without waiting for the reply, and ends the op. */
static void listing_finish(struct sftp *sftp, struct listing *listing, int err)
{
	for (unsigned i = 0; i < listing->count; i++) {
		const struct ask *ask = &listing->asks[(listing->first + i) % WINDOW_MAX];
		if (!ask->answered)
			request_ignore(sftp, ask->id);
	}
	if (listing->open &&
	    send_handle(sftp, WIRE_CLOSE, NULL, listing->handle, on_ignored, NULL) < 0)
		log_warn("out of memory: a directory stays open on the server");
	struct op *op = listing->op;
	listing_free(listing);
	if (!op)
		return;
	op->proto.pointer = NULL;
	sftp_end(sftp, op, err);
}

static bool is_bad_name(struct wire_text name)
{
	return name.length == 0 || memchr(name.data, '/', name.length) ||
	       memchr(name.data, '\0', name.length);
}

static bool is_dot_name(struct wire_text name)
{
	return (name.length == 1 || name.length == 2) && name.data[0] == '.' &&
	       name.data[name.length - 1] == '.';
}

static void tell_bad_name(struct sftp *sftp, struct wire_text name)
{
	char quoted[128];
	if (sftp->told_bad_name)
		return;
	sftp->told_bad_name = true;
	log_warn("%s lists a name that no file can have, '%s': such names are left out",
	         sftp->factory->peer,
	         log_quote(quoted, sizeof(quoted), name.data, name.length));
}

/*
 * Passes the names of one NAME reply up. 1 when the reply was full, 0 when not; -ENODATA when
 * it had none, as some servers end; -ECANCELED when the receiver has enough; -EPROTO.
 */
static int deliver(struct sftp *sftp, struct listing *listing, struct wire_in body)
{
	struct remote_entry batch[BATCH];
	size_t filled = 0;
	size_t bytes = body.left;
	uint32_t count = wire_get_u32(&body);
	for (uint32_t i = 0; i < count; i++) {
		struct wire_name name;
		wire_get_name(&body, &name);
		if (body.failed)
			return sftp_malformed(sftp, "a NAME reply is cut short");
		if (is_bad_name(name.name)) {
			tell_bad_name(sftp, name.name);
			continue;
		}
		if (is_dot_name(name.name)) {
			if (name.name.length == 1)
				listing->op->attr = name.attr;
			continue;
		}
		wire_longname(name.longname, &name.attr);
		batch[filled++] =
		    (struct remote_entry){name.name.data, name.name.length, name.attr};
		if (filled < BATCH)
			continue;
		if (listing->op->entries(listing->op, batch, filled) != 0)
			return -ECANCELED;
		filled = 0;
	}
	if (body.failed)
		return sftp_malformed(sftp, "a NAME reply is cut short");
	if (filled > 0 && listing->op->entries(listing->op, batch, filled) != 0)
		return -ECANCELED;
	if (count == 0)
		return -ENODATA;
	return count >= FULL_NAMES || bytes >= FULL_BYTES;
}

static int on_readdir(struct sftp *sftp, const struct sftp_request *request,
                      struct sftp_reply *reply);

/* Fills the window up. 0 or -ENOMEM. */
static int ask_more(struct sftp *sftp, struct listing *listing)
{
	while (listing->count < listing->window) {
		struct sftp_request *request =
		    request_begin(sftp, WIRE_READDIR, listing->op, on_readdir);
		if (!request)
			return -ENOMEM;
		request->context = listing;
		uint32_t id = request->id;
		size_t mark = request_packet(sftp)->length;
		wire_handle(request_packet(sftp), WIRE_READDIR, id, listing->handle.data,
		            listing->handle.length);
		int err = request_commit(sftp, request, mark, NULL, 0);
		if (err < 0)
			return err;
		unsigned last = (listing->first + listing->count++) % WINDOW_MAX;
		listing->asks[last] = (struct ask){.id = id};
	}
	return 0;
}

/*
 * The first READDIR in flight has been answered: passes its names up. 0: go on; 1: the listing
 * is over and freed; -EPROTO.
 */
static int take_first(struct sftp *sftp, struct listing *listing, struct wire_in body)
{
	struct ask ask = listing->asks[listing->first];
	listing->asks[listing->first].kept = NULL;
	listing->first = (listing->first + 1) % WINDOW_MAX;
	listing->count--;

	/* Behind the end even an error says nothing new. */
	int result = listing->ended ? 0 : ask.err;
	if (!ask.eof && ask.err == 0) {
		listing->batches++;
		result = deliver(sftp, listing, body);
	}
	free(ask.kept);
	if (result == -ENODATA && !ask.err) {
		ask.eof = true;
		result = 0;
	}
	if (result == -EPROTO && sftp->fault[0])
		return result;
	if (ask.eof)
		listing->ended = true;
	bool over = listing->ended && (!listing->unordered || listing->count == 0);
	if (!ask.eof && result < 0) {
		listing_finish(sftp, listing, result);
		return 1;
	}
	if (over) {
		listing_finish(sftp, listing, 0);
		return 1;
	}
	if (listing->ended)
		return 0;
	bool more = result == 1 || listing->batches > 1;
	if (more)
		listing->window = MIN(listing->window * 2, (unsigned)WINDOW_MAX);
	/* Behind a small reply comes the end as a rule, and one READDIR is there to see it. */
	if ((more || listing->count == 0) && ask_more(sftp, listing) < 0 &&
	    listing->count == 0) {
		listing_finish(sftp, listing, -ENOMEM);
		return 1;
	}
	return 0;
}

/* Notes the reply of a READDIR whose turn has not come. 0 or -ENOMEM. */
static int keep(struct ask *ask, const struct sftp_reply *reply)
{
	if (reply->type != WIRE_NAME)
		return 0;
	ask->kept = malloc(reply->body.left + 1);
	if (!ask->kept)
		return -ENOMEM;
	memcpy(ask->kept, reply->body.at, reply->body.left);
	ask->kept_length = reply->body.left;
	return 0;
}

static int on_readdir(struct sftp *sftp, const struct sftp_request *request,
                      struct sftp_reply *reply)
{
	int result;
	struct listing *listing = request->context;
	if (!reply_is(sftp, request, reply, WIRE_NAME, &result) && result < 0)
		return result;
	unsigned position = 0;
	while (listing->asks[(listing->first + position) % WINDOW_MAX].id != request->id)
		position++;
	struct ask *ask = &listing->asks[(listing->first + position) % WINDOW_MAX];
	ask->answered = true;
	ask->eof = reply->eof;
	ask->err = reply->eof ? 0 : reply->err;
	if (position > 0) {
		listing->unordered = true;
		if (keep(ask, reply) < 0)
			ask->err = -ENOMEM;
		return 0;
	}
	result = take_first(sftp, listing, reply->body);
	while (result == 0 && listing->count > 0 && listing->asks[listing->first].answered) {
		const struct ask *next = &listing->asks[listing->first];
		result = take_first(sftp, listing, wire_in(next->kept, next->kept_length));
	}
	return result < 0 ? result : 0;
}

static int on_opendir(struct sftp *sftp, const struct sftp_request *request,
                      struct sftp_reply *reply)
{
	int result;
	struct listing *listing = request->context;
	if (reply_is(sftp, request, reply, WIRE_HANDLE, &result)) {
		struct wire_text handle = wire_get_handle(&reply->body);
		if (reply->body.failed)
			return sftp_malformed(sftp, "a HANDLE reply is cut short or too long");
		memcpy(listing->handle_bytes, handle.data, handle.length);
		listing->handle = (struct wire_text){listing->handle_bytes, handle.length};
		listing->open = true;
	} else if (result < 0) {
		return result;
	}
	int err = reply->err;
	if (err == 0 && listing->op)
		err = ask_more(sftp, listing);
	/* With one READDIR on its way the listing works. */
	if (!listing->op || (err < 0 && listing->count == 0))
		listing_finish(sftp, listing, err);
	return 0;
}

int start_list(struct sftp *sftp, struct op *op)
{
	struct listing *listing = calloc(1, sizeof(*listing));
	if (!listing)
		return -ENOMEM;
	listing->op = op;
	listing->window = WINDOW_FIRST;
	list_push_back(&sftp->listings, &listing->link);
	op->proto.pointer = listing;
	int err = send_path(sftp, WIRE_OPENDIR, op, op->path, on_opendir, listing);
	if (err < 0) {
		op->proto.pointer = NULL;
		listing_free(listing);
	}
	return err;
}

void listings_lost(struct sftp *sftp)
{
	while (!list_empty(&sftp->listings)) {
		struct listing *listing = list_entry(sftp->listings.next, struct listing, link);
		if (listing->op)
			listing->op->proto.pointer = NULL;
		listing_free(listing);
	}
}

void listing_cancelled(struct sftp *sftp, struct op *op)
{
	struct listing *listing = op->proto.pointer;
	op->proto.pointer = NULL;
	if (!listing)
		return;
	listing->op = NULL;
	if (listing->open)
		listing_finish(sftp, listing, 0);
}
