#include "base/failure.h"

#include <stdio.h>

int failure_set(struct failure *failure, enum failure_kind kind, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	failure->kind = kind;
	vsnprintf(failure->text, sizeof(failure->text), format, args);
	va_end(args);
	return -1;
}
