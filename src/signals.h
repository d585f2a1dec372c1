/*
 * Signals, taken by a thread of their own with sigwait: no code runs in a signal handler.
 * SIGTERM, SIGINT and SIGHUP stop the mount, SIGUSR1 asks for the counters, SIGPIPE is ignored.
 */
#ifndef MOORFS_SIGNALS_H
#define MOORFS_SIGNALS_H

#include "base/failure.h"

/* Called on the signals' thread. */
struct signal_actions {
	/* The program is about to end by the signal: there is no mount yet. */
	void (*leave)(void *context);
	/* The first signal while mounted: begin to unmount; must not block. */
	void (*stop)(void *context);
	/* One more while unmounting: the program is about to end by it. */
	void (*abandon)(void *context);
	void (*report)(void *context);
	void *context;
};

struct signals;

/*
 * Blocks the signals for this thread and all that it starts, and begins to wait for them.
 * Before any other thread. NULL with the failure filled.
 */
struct signals *signals_new(const struct signal_actions *actions, struct failure *failure);

/* From now on there is a mount: signals call `stop` and `report`. */
void signals_mounted(struct signals *signals);

/* Ends the thread; signals stay blocked. NULL is allowed. */
void signals_free(struct signals *signals);

#endif
