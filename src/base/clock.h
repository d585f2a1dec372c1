/* Time of the monotonic clock. Pure code takes its time as an argument instead. */
#ifndef MOORFS_BASE_CLOCK_H
#define MOORFS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_SEC UINT64_C(1000000000)
#define NS_PER_MS  UINT64_C(1000000)
#define NS_PER_US  UINT64_C(1000)

/* Nanoseconds of CLOCK_MONOTONIC; any thread. */
static inline uint64_t clock_now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* The point of CLOCK_MONOTONIC as a timespec, for pthread_cond_clockwait and its like. */
static inline struct timespec clock_to_timespec(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_SEC),
	                         .tv_nsec = (long)(ns % NS_PER_SEC)};
}

#endif
