/* Sends a pattern through a transport whose far end returns what it gets, and checks it. */
#ifndef MOORFS_TESTS_STREAM_CHECK_H
#define MOORFS_TESTS_STREAM_CHECK_H

#include <stddef.h>

#include "transport/transport.h"

/*
 * Sends `size` bytes in pieces of odd sizes while it reads them back in others. Fails the test
 * when a byte differs, when the stream ends, or when nothing moves for 10 s.
 */
void stream_check_echo(struct transport *transport, size_t size);

/* Reads until the end of the stream or `size` - 1 bytes; NUL-terminated. */
void stream_read_all(struct transport *transport, char *text, size_t size);

#endif
