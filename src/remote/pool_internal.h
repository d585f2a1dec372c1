/*
 * The pool's own structures. Private to pool.c, lane.c, keeper.c and report.c.
 *
 * One lock, pool->lock, guards everything that is not marked as the lane's thread's. It is
 * never held while an op's done() or a session's function runs.
 */
#ifndef MOORFS_REMOTE_POOL_INTERNAL_H
#define MOORFS_REMOTE_POOL_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/hist.h"
#include "base/wake.h"
#include "remote/estimate.h"
#include "remote/pool.h"

enum lane_state {
	LANE_OFF,
	LANE_CONNECTING,
	LANE_UP,
};

struct lane {
	struct pool *pool;
	int index;
	pthread_t thread;
	bool started;
	struct wake wake;

	enum lane_state state;
	bool wanted;            /* the thread is to connect */
	bool retire;            /* the thread is to disconnect, being idle */
	struct list_node inbox; /* ops on their way to the thread */
	uint64_t bulk_bytes;    /* of ops in the inbox and in flight */
	unsigned meta_ops;
	uint64_t last_used_ns;
	uint64_t connected_ns;
	uint32_t generation;
	unsigned losses;

	_Atomic bool stop_connect;
	_Atomic bool scan; /* some op was cancelled: look for it */

	/* the thread's */
	struct session *session;
	struct list_node in_flight;
	uint64_t last_reply_ns, bytes_in_seen;
	struct op ping;
	bool ping_out;
	bool dropping; /* the session hands its ops back */
};

struct op_counter {
	atomic_uint_least64_t errors, bytes;
	struct hist latency;
};

struct pool {
	struct remote remote;
	struct session_factory *factory;
	struct pool_config config;
	unsigned processors;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* a lane's state, the waiting list, `closing` */
	struct lane lanes[REMOTE_MAX_LANES];
	struct list_node waiting; /* ops for which no lane is up */
	bool closing;
	bool warm;       /* lanes beyond the first may be connected */
	bool wants_lane; /* the load asks for one more */
	bool asked;      /* a call has failed fast since the last attempt to connect */
	bool ever_up;
	bool caps_fixed;
	unsigned lane_limit; /* what the server bears, as learned */
	uint64_t lane_limit_until_ns;
	unsigned failures; /* connects that failed since one succeeded */
	uint64_t next_attempt_ns;
	uint64_t down_since_ns; /* 0: a lane is up, or none was ever tried */
	struct failure last_failure;
	struct estimate estimate;

	pthread_t keeper;
	bool keeper_started;
	struct op_counter counters[OP_KINDS];
	atomic_uint_least64_t repeated;
};

/* lane.c */
void *lane_main(void *lane);
extern const struct session_events lane_events;

/* pool.c: all with the lock held */
unsigned pool_lanes_up(const struct pool *pool);
/* How many lanes the load may ask for. */
unsigned pool_lane_goal(const struct pool *pool);
/*
 * Gives the op to a lane or to the waiting list. Returns the lane to wake, or NULL. When the op
 * must end at once, *err is set and the caller ends it after unlocking.
 */
struct lane *pool_dispatch(struct pool *pool, struct op *op, int *err);

/* Ends an op: counts it, then calls done(). Lock not held. */
void pool_finish(struct pool *pool, struct op *op, int err);
/* Submits an op again after its lane was lost, or could not do it. Lock not held. */
void pool_resubmit(struct pool *pool, struct op *op);

/* keeper.c */
void *keeper_main(void *pool);

#endif
