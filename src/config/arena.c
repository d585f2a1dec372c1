#include "config/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct arena_block {
	struct arena_block *next;
	_Alignas(max_align_t) char data[];
};

void *arena_alloc(struct arena *arena, size_t size)
{
	struct arena_block *block = calloc(1, sizeof(*block) + size);
	if (!block)
		return NULL;
	block->next = arena->blocks;
	arena->blocks = block;
	return block->data;
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
	char *copy = arena_alloc(arena, length + 1);
	if (copy)
		memcpy(copy, text, length);
	return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
	return arena_strndup(arena, text, strlen(text));
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	char *text = length < 0 ? NULL : arena_alloc(arena, (size_t)length + 1);
	if (!text)
		return NULL;
	va_start(args, format);
	vsnprintf(text, (size_t)length + 1, format, args);
	va_end(args);
	return text;
}

bool arena_list_add(struct arena *arena, char ***list, const char *text)
{
	size_t count = 0;
	while (*list && (*list)[count])
		count++;
	char **grown = arena_alloc(arena, (count + 2) * sizeof(*grown));
	char *copy = arena_strdup(arena, text);
	if (!grown || !copy)
		return false;
	if (count > 0)
		memcpy(grown, *list, count * sizeof(*grown));
	grown[count] = copy;
	*list = grown;
	return true;
}

void arena_release(struct arena *arena)
{
	while (arena->blocks) {
		struct arena_block *block = arena->blocks;
		arena->blocks = block->next;
		free(block);
	}
}
