/* Growable byte string: builds messages, paths and packets. Not thread-safe. */
#ifndef MOORFS_BASE_BYTES_H
#define MOORFS_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `data` is always followed by a NUL that `length` does not count, once anything was added. */
struct bytes {
	char *data;
	size_t length;
	size_t capacity;
	bool failed; /* an allocation failed: contents are incomplete and further adds are void
	              */
};

#define BYTES_INIT                \
	{                         \
		NULL, 0, 0, false \
	}

void bytes_init(struct bytes *bytes);
void bytes_release(struct bytes *bytes);

/* Keeps the memory for the next use. */
void bytes_clear(struct bytes *bytes);

/* Room for `extra` more; false when memory is out (and `failed` is set). */
bool bytes_reserve(struct bytes *bytes, size_t extra);

void bytes_add(struct bytes *bytes, const void *data, size_t length);
void bytes_add_str(struct bytes *bytes, const char *text);
void bytes_add_byte(struct bytes *bytes, uint8_t value);
void bytes_add_be32(struct bytes *bytes, uint32_t value);
void bytes_add_be64(struct bytes *bytes, uint64_t value);
void bytes_addf(struct bytes *bytes, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Overwrites four bytes that were added before. */
void bytes_put_be32(struct bytes *bytes, size_t at, uint32_t value);

/* Takes the string away (malloc'ed; NULL when an allocation failed); `bytes` is empty then. */
char *bytes_steal(struct bytes *bytes);

#endif
