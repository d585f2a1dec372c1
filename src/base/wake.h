/*
 * Wakes a thread that sleeps in poll(). While the thread is awake a wake-up costs one atomic
 * operation and no system call.
 *
 * The sleeper:  wake_prepare(); if there is no work: poll(with wake_fd()); wake_finish();
 * The others:   queue the work; wake_signal().
 */
#ifndef MOORFS_BASE_WAKE_H
#define MOORFS_BASE_WAKE_H

#include <stdatomic.h>

struct wake {
	int fd;
	atomic_int sleeping;
};

/* 0 or -errno. */
int wake_init(struct wake *wake);
void wake_release(struct wake *wake);

/* Any thread, after it has made its work visible. */
void wake_signal(struct wake *wake);

/* The sleeper: from here on signals reach the descriptor. Look for work after it. */
void wake_prepare(struct wake *wake);

/* The sleeper, after poll (or instead of it). */
void wake_finish(struct wake *wake);

/* Readable when a signal came. */
int wake_fd(const struct wake *wake);

#endif
