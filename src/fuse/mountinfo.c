#include "fuse/mountinfo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Cuts the next field off *at; NULL at the end of the line. */
static char *next_field(char **at)
{
	char *field = *at;
	if (!*field)
		return NULL;
	char *end = field + strcspn(field, " \n");
	*at = *end ? end + 1 : end;
	*end = '\0';
	return field;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* The kernel writes space, tab, newline, '#' and backslash as \ooo. */
static void unescape(char *text)
{
	char *to = text;
	for (const char *from = text; *from; to++) {
		if (from[0] == '\\' && is_octal(from[1]) && is_octal(from[2]) &&
		    is_octal(from[3])) {
			*to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 +
			             (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = '\0';
}

bool mountinfo_parse(char *line, struct mountinfo *out)
{
	enum { MOUNT_POINT = 4, OPTIONAL = 6 };
	char *at = line;
	char *field;
	int index = 0;

	out->mount_point = NULL;
	/* Fields 6 and up are optional ones, ended by a single hyphen. */
	while ((field = next_field(&at)) && !(index >= OPTIONAL && strcmp(field, "-") == 0)) {
		if (index == MOUNT_POINT)
			out->mount_point = field;
		index++;
	}
	if (!field)
		return false;
	out->fstype = next_field(&at);
	out->source = next_field(&at);
	if (!out->fstype || !out->source)
		return false;
	unescape(out->mount_point);
	unescape(out->fstype);
	unescape(out->source);
	return true;
}

static bool copy(const struct mountinfo *from, struct mountinfo *to)
{
	to->mount_point = strdup(from->mount_point);
	to->fstype = strdup(from->fstype);
	to->source = strdup(from->source);
	if (to->mount_point && to->fstype && to->source)
		return true;
	mountinfo_release(to);
	return false;
}

bool mountinfo_find(const char *path, struct mountinfo *out)
{
	FILE *file = fopen("/proc/self/mountinfo", "re");
	if (!file)
		return false;

	CLEANUP_FREE char *line = NULL;
	size_t capacity = 0;
	bool found = false;
	struct mountinfo info;
	while (getline(&line, &capacity, file) > 0) {
		if (!mountinfo_parse(line, &info) || strcmp(info.mount_point, path) != 0)
			continue;
		/* Later lines were mounted later: the last one lies on top. */
		if (found)
			mountinfo_release(out);
		found = copy(&info, out);
	}
	fclose(file);
	return found;
}

void mountinfo_release(struct mountinfo *info)
{
	free(info->mount_point);
	free(info->fstype);
	free(info->source);
	memset(info, 0, sizeof(*info));
}
