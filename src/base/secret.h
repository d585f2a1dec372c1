/*
 * A password or passphrase in memory that is locked (never swapped), kept out of core dumps
 * and wiped when released.
 */
#ifndef MOORFS_BASE_SECRET_H
#define MOORFS_BASE_SECRET_H

#include <stddef.h>

struct secret;

/* A copy of the bytes; NULL when memory is out. The caller wipes its own copy. */
struct secret *secret_new(const void *bytes, size_t length);

/* NULL is allowed. */
void secret_free(struct secret *secret);

/* The bytes with a NUL behind them that the length does not count. */
const char *secret_text(const struct secret *secret);
size_t secret_length(const struct secret *secret);

/* Overwrites memory in a way that the compiler keeps. */
void secret_wipe(void *bytes, size_t length);

#endif
