/*
 * Memory with one lifetime: the strings and lists of a configuration, released together. Not
 * thread-safe.
 */
#ifndef MOORFS_CONFIG_ARENA_H
#define MOORFS_CONFIG_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_block;

struct arena {
	struct arena_block *blocks;
};

/* Zeroed memory; NULL when memory is out. */
void *arena_alloc(struct arena *arena, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/*
 * Appends a copy of the text to a NULL-terminated list (NULL is an empty one). False when
 * memory is out; the list is as before then.
 */
bool arena_list_add(struct arena *arena, char ***list, const char *text);

/* Frees everything that was handed out. */
void arena_release(struct arena *arena);

#endif
