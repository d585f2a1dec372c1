#include "fuse/proc_status.h"

#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Positions in /proc/TID/stat as proc(5) counts them, and the kernel's flag for do_exit(). */
enum { STAT_STATE = 3, STAT_FLAGS = 9, STAT_EXIT_CODE = 52 };
enum { KERNEL_PF_EXITING = 0x4 };

static bool has_sigkill(const char *text, const char *field)
{
	const char *line = strstr(text, field);
	if (!line)
		return false;
	uint64_t mask = strtoull(line + strlen(field), NULL, 16);
	return mask & (UINT64_C(1) << (SIGKILL - 1));
}

bool proc_status_is_killed(const char *text)
{
	/* The leading newline keeps a thread's name from posing as a field. */
	return has_sigkill(text, "\nSigPnd:") || has_sigkill(text, "\nShdPnd:");
}

/* Field number `wanted` as a number; `at` points to the state, the first behind the name. */
static bool stat_field(const char *at, int wanted, uint64_t *value)
{
	for (int field = STAT_STATE; field < wanted; field++) {
		at = strchr(at, ' ');
		if (!at)
			return false;
		at++;
	}
	char *end;
	*value = strtoull(at, &end, 10);
	return end != at;
}

bool proc_stat_died_by_signal(const char *text)
{
	/* The name stands in parentheses and may hold any character, even ')'. */
	const char *behind_name = strrchr(text, ')');
	uint64_t flags, exit_code;
	if (!behind_name || behind_name[1] != ' ')
		return false;
	if (!stat_field(behind_name + 2, STAT_FLAGS, &flags) ||
	    !stat_field(behind_name + 2, STAT_EXIT_CODE, &exit_code))
		return false;
	return (flags & KERNEL_PF_EXITING) && (exit_code & 0x7f) != 0;
}
