/* The values of options as people write them. Pure. */
#ifndef MOORFS_CONFIG_OPTION_VALUE_H
#define MOORFS_CONFIG_OPTION_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All return false when the text is no such value; *value is left alone then. */
bool value_parse_number(const char *text, uint64_t *value);
bool value_parse_octal(const char *text, uint64_t *value);
/* "10", "1.5", "10s", "500ms", "2m", "1h": nanoseconds. */
bool value_parse_seconds(const char *text, uint64_t *ns);
/* Bytes: "4096", "64K", "1M", "2G", "1T" (powers of 1024; "KB" and "KiB" are the same). */
bool value_parse_size(const char *text, uint64_t *bytes);
/* yes, no, true, false, on, off, 1, 0. */
bool value_parse_flag(const char *text, bool *value);

/* The shortest way to write it, as the parsers read it. Returns `out`. */
char *value_format_seconds(char *out, size_t size, uint64_t ns);
char *value_format_size(char *out, size_t size, uint64_t bytes);

/* How many letters must be changed, added, dropped or swapped; case does not count. */
unsigned value_edit_distance(const char *a, const char *b);

#endif
