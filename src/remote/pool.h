/*
 * The warm session pool: a struct remote over up to `max_lanes` connections, each with a thread
 * of its own. Chooses a lane for every op, keeps deadlines, reconnects, repeats what may be
 * repeated.
 */
#ifndef MOORFS_REMOTE_POOL_H
#define MOORFS_REMOTE_POOL_H

#include "base/bytes.h"
#include "remote/remote.h"

struct pool;

struct pool_config {
	unsigned max_lanes;          /* 1..REMOTE_MAX_LANES */
	uint64_t request_timeout_ns; /* deadline of an op */
	uint64_t connect_timeout_ns;
	uint64_t keepalive_ns;    /* silence after which a lane is asked; 0: never */
	uint64_t idle_timeout_ns; /* unused lanes beyond the first are closed; 0: never */
	bool reconnect;           /* false: the first loss ends the mount's usefulness */
};

/* Starts no connection. NULL when memory is out. The factory outlives the pool. */
struct pool *pool_new(struct session_factory *factory, const struct pool_config *config);

/* Connects the first lane; blocks. 0, or -1 with the failure. Fills remote->caps. */
int pool_start(struct pool *pool, struct failure *failure);

struct remote *pool_remote(struct pool *pool);

/* Lanes beyond the first are connected from now on (called once secrets are known). */
void pool_warm(struct pool *pool);

/* Without a first connection (delay_connect): ops connect on demand. 0, or -1. */
int pool_start_later(struct pool *pool, struct failure *failure);

/* Fails what is queued, closes all lanes, ends the threads, frees. */
void pool_free(struct pool *pool);

/* The counters as text for SIGUSR1: lanes, RTT, rate, per-operation count and latency. */
void pool_report(struct pool *pool, struct bytes *out);

#endif
