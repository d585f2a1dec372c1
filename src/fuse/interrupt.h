/*
 * Lets a killed program go: watches the requests under way whose program got a signal.
 *
 * The kernel tells of any signal (FUSE_INTERRUPT), also of a timer's or a child's, which must
 * not break a system call with EINTR. So a thread looks at the program at once and then every
 * 500 ms, and breaks the request off only when the program has gone or a fatal signal is
 * pending for it. A program that cannot be seen (another pid namespace, hidepid) is given 1 s.
 *
 * A blocking call is looked at without being told, too, once it has lasted 1 s: every worker
 * may be waiting, and none left to read the kernel's news; and a program that dies closes its
 * files when no signal is pending any more.
 *
 * Locks: libfuse's request lock, then this one, then those of remote/.
 */
#ifndef MOORFS_FUSE_INTERRUPT_H
#define MOORFS_FUSE_INTERRUPT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "fuse/lowlevel.h"
#include "remote/remote.h"

struct interrupts;

enum call_kind {
	CALL_SYNC,  /* a handler that blocks within a remote_scope */
	CALL_CLOSE, /* the same, of close(2) */
	CALL_ASYNC, /* answered by a completion */
};

/* A request under way. */
struct call {
	struct list_node link;
	struct interrupts *interrupts;
	fuse_req_t req;
	pid_t tid; /* who asked; 0: not known here */
	enum call_kind kind;
	bool entered; /* in the list, not answered yet */
	bool cancelled;
	bool late;               /* broken off because its patience was over */
	uint64_t interrupted_ns; /* when the signal came; 0: none yet */
	uint64_t check_ns;       /* when to look at the program; 0: not yet */
	uint64_t limit_ns;       /* when its patience is over; 0: never */

	struct remote_scope scope; /* CALL_SYNC, CALL_CLOSE */
	/* CALL_ASYNC. hold: the lock is held; keeps the call in memory. cancel: without the
	 * lock; answers the request soon, and lets go of what hold took. */
	void (*hold)(struct call *call);
	void (*cancel)(struct call *call);
};

/* Starts the thread. NULL when memory or threads are out. */
struct interrupts *interrupts_new(void);
/* No calls any more. NULL is allowed. */
void interrupts_free(struct interrupts *interrupts);

/*
 * A call begins: kind, hold and cancel are set. For blocking kinds this thread's remote_scope
 * begins too.
 */
void call_enter(struct interrupts *interrupts, struct call *call, fuse_req_t req);

/* The (blocking) call is broken off, as `late`, when it lasts longer than this. */
void call_limit(struct call *call, uint64_t patience_ns);

/*
 * It ends: to be called before the reply. True for the first caller, who alone replies.
 */
bool call_leave(struct call *call);

/* Breaks off every call that is still under way `delay_ns` from now, save closes. */
void interrupts_cancel_all(struct interrupts *interrupts, uint64_t delay_ns);

#endif
