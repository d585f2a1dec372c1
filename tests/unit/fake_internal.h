/*
 * The inside of the fake server: fake_remote.c holds the queue, its thread and what tests call,
 * fake_execute.c what each kind of op does to the tree.
 */
#ifndef MOORFS_TESTS_FAKE_INTERNAL_H
#define MOORFS_TESTS_FAKE_INTERNAL_H

#include <pthread.h>

#include "fake_tree.h"
#include "remote/remote.h"

struct kind_state {
	uint64_t delay_ns;
	bool held;
	unsigned in_flight, peak, count;
	size_t largest;
};

struct fake_remote {
	struct remote remote;
	pthread_t thread;
	pthread_mutex_t lock; /* protects all below; never held while a completion runs */
	pthread_cond_t changed;
	struct tree tree;
	struct list_node arrivals, faults, open_files;
	struct kind_state kinds[OP_KINDS];
	struct remote_link link;
	uint64_t bytes_read;
	bool full, stopping;
};

/*
 * Runs the op as the server would and returns what the server tells. The caller holds the lock;
 * a listing lets it go while it hands out entries.
 */
int fake_execute(struct fake_remote *fake, struct op *op);

/* Forgets all open files. */
void fake_close_files(struct fake_remote *fake);

/* The memory, or the end: a test that runs out of memory has nothing better to do. */
void *fake_need(void *memory);

#endif
