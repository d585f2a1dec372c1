#include "base/bytes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bytes_init(struct bytes *bytes)
{
	memset(bytes, 0, sizeof(*bytes));
}

void bytes_release(struct bytes *bytes)
{
	free(bytes->data);
	bytes_init(bytes);
}

void bytes_clear(struct bytes *bytes)
{
	bytes->length = 0;
	bytes->failed = false;
	if (bytes->data)
		bytes->data[0] = '\0';
}

bool bytes_reserve(struct bytes *bytes, size_t extra)
{
	if (bytes->failed)
		return false;
	if (bytes->length + extra + 1 <= bytes->capacity)
		return true;
	size_t capacity = bytes->capacity ? bytes->capacity : 64;
	while (capacity < bytes->length + extra + 1)
		capacity *= 2;
	char *data = realloc(bytes->data, capacity);
	if (!data) {
		bytes->failed = true;
		return false;
	}
	bytes->data = data;
	bytes->capacity = capacity;
	return true;
}

void bytes_add(struct bytes *bytes, const void *data, size_t length)
{
	if (!bytes_reserve(bytes, length))
		return;
	if (length)
		memcpy(bytes->data + bytes->length, data, length);
	bytes->length += length;
	bytes->data[bytes->length] = '\0';
}

void bytes_add_str(struct bytes *bytes, const char *text)
{
	bytes_add(bytes, text, strlen(text));
}

void bytes_add_byte(struct bytes *bytes, uint8_t value)
{
	bytes_add(bytes, &value, 1);
}

static void store_be32(char *at, uint32_t value)
{
	at[0] = (char)(value >> 24);
	at[1] = (char)(value >> 16);
	at[2] = (char)(value >> 8);
	at[3] = (char)value;
}

void bytes_add_be32(struct bytes *bytes, uint32_t value)
{
	char raw[4];
	store_be32(raw, value);
	bytes_add(bytes, raw, sizeof(raw));
}

void bytes_add_be64(struct bytes *bytes, uint64_t value)
{
	bytes_add_be32(bytes, (uint32_t)(value >> 32));
	bytes_add_be32(bytes, (uint32_t)value);
}

void bytes_addf(struct bytes *bytes, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	int length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	if (length < 0 || !bytes_reserve(bytes, (size_t)length))
		return;
	va_start(args, format);
	vsnprintf(bytes->data + bytes->length, (size_t)length + 1, format, args);
	va_end(args);
	bytes->length += (size_t)length;
}

void bytes_put_be32(struct bytes *bytes, size_t at, uint32_t value)
{
	if (!bytes->failed)
		store_be32(bytes->data + at, value);
}

char *bytes_steal(struct bytes *bytes)
{
	if (!bytes->data && !bytes->failed)
		bytes_add(bytes, "", 0);
	char *data = bytes->failed ? NULL : bytes->data;
	if (!data)
		free(bytes->data);
	bytes_init(bytes);
	return data;
}
