/*
 * The last words of a stream of messages (a child's stderr): the newest 8 KiB, made safe to
 * show on a terminal. Not thread-safe.
 */
#ifndef MOORFS_TRANSPORT_TAIL_H
#define MOORFS_TRANSPORT_TAIL_H

#include <stdbool.h>
#include <stddef.h>

enum { TAIL_MAX = 8192 };

/* Start with all zero. */
struct tail {
	size_t length;
	bool trimmed; /* tail_text took the newline at the end away */
	char text[TAIL_MAX + 1];
};

/* Adds bytes; control characters become '?', save newline and tab, and CR is dropped. */
void tail_add(struct tail *tail, const void *bytes, size_t length);

/* The text without blanks and newlines at its end; "" when there is none. Valid until tail_add.
 */
const char *tail_text(struct tail *tail);

#endif
