#include "transport/tail.h"

#include <ctype.h>
#include <string.h>

/* Makes room by forgetting the older half, at a line's end where there is one. */
static void forget_older(struct tail *tail)
{
	size_t cut = TAIL_MAX / 2;
	const char *newline = memchr(tail->text + cut, '\n', tail->length - cut);
	if (newline && newline + 1 < tail->text + tail->length)
		cut = (size_t)(newline + 1 - tail->text);
	memmove(tail->text, tail->text + cut, tail->length - cut);
	tail->length -= cut;
}

static void add_char(struct tail *tail, char c)
{
	if (tail->length == TAIL_MAX)
		forget_older(tail);
	tail->text[tail->length++] = c;
}

void tail_add(struct tail *tail, const void *bytes, size_t length)
{
	const unsigned char *from = bytes;
	if (length && tail->trimmed && tail->length)
		add_char(tail, '\n');
	tail->trimmed = false;
	for (size_t i = 0; i < length; i++) {
		bool plain = from[i] == '\n' || from[i] == '\t' || !iscntrl(from[i]);
		if (from[i] != '\r')
			add_char(tail, plain ? (char)from[i] : '?');
	}
	tail->text[tail->length] = '\0';
}

const char *tail_text(struct tail *tail)
{
	while (tail->length && isspace((unsigned char)tail->text[tail->length - 1])) {
		tail->text[--tail->length] = '\0';
		tail->trimmed = true;
	}
	return tail->text;
}
