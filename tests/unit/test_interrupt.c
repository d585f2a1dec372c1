/* Who was killed, by the texts of /proc. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fuse/proc_status.h"

#define STATUS(pending, shared)                                                       \
	"Name:\tgit\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t42\nSigQ:\t1/31000\n" \
	"SigPnd:\t" pending "\nShdPnd:\t" shared                                      \
	"\nSigBlk:\t0000000000000100\nSigIgn:\t0000000000000100\nSigCgt:\t0000000000000100\n"

/* Fields 3 to 52 with the given flags and exit code. */
#define STAT(name, flags, exit_code)                                                           \
	"42 (" name ") S 1 42 42 0 -1 " flags " 100 0 0 0 1 2 0 0 20 0 1 0 5000 2000000 300 "  \
	"18446744073709551615 0 0 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 0 0 0 0 0 0 0 " exit_code \
	"\n"

static void a_timer_or_a_child_is_no_reason(void **state)
{
	(void)state;
	assert_false(proc_status_is_killed(STATUS("0000000000000000", "0000000000002000")));
	assert_false(proc_status_is_killed(STATUS("0000000000010000", "0000000000000000")));
	assert_false(proc_status_is_killed(STATUS("0000000000000000", "0000000000000000")));
}

static void a_pending_sigkill_is_seen_in_either_set(void **state)
{
	(void)state;
	assert_true(proc_status_is_killed(STATUS("0000000000000100", "0000000000000000")));
	assert_true(proc_status_is_killed(STATUS("0000000000000000", "0000000000000100")));
	assert_true(proc_status_is_killed(STATUS("0000000000002100", "0000000000000002")));
}

static void other_masks_with_the_same_bit_do_not_count(void **state)
{
	(void)state;
	assert_false(proc_status_is_killed("Name:\tx\nSigBlk:\t0000000000000100\n"));
	assert_false(proc_status_is_killed("Name:\tSigPnd:\t100\nSigPnd:\t0000000000000000\n"));
	assert_false(proc_status_is_killed(""));
}

static void a_thread_that_exits_by_a_signal_is_told_from_one_that_just_exits(void **state)
{
	(void)state;
	assert_true(proc_stat_died_by_signal(STAT("cp", "4194308", "9")));
	assert_true(proc_stat_died_by_signal(STAT("cp", "4194308", "139")));
	assert_false(proc_stat_died_by_signal(STAT("cp", "4194308", "0")));
	assert_false(proc_stat_died_by_signal(STAT("cp", "4194308", "256")));
	assert_false(proc_stat_died_by_signal(STAT("cp", "4194304", "9")));
}

static void a_name_with_parentheses_and_spaces_does_not_shift_the_fields(void **state)
{
	(void)state;
	assert_true(proc_stat_died_by_signal(STAT("a) S 1 (b", "4194308", "9")));
	assert_false(proc_stat_died_by_signal(STAT("a) S 1 (b", "4194304", "9")));
}

static void cut_off_texts_say_nothing(void **state)
{
	(void)state;
	static const char *const texts[] = {"", "42", "42 (cp)", "42 (cp) ",
	                                    "42 (cp) S 1 42 42 0 -1 4194308 100"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_false(proc_stat_died_by_signal(texts[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_timer_or_a_child_is_no_reason),
	    cmocka_unit_test(a_pending_sigkill_is_seen_in_either_set),
	    cmocka_unit_test(other_masks_with_the_same_bit_do_not_count),
	    cmocka_unit_test(a_thread_that_exits_by_a_signal_is_told_from_one_that_just_exits),
	    cmocka_unit_test(a_name_with_parentheses_and_spaces_does_not_shift_the_fields),
	    cmocka_unit_test(cut_off_texts_say_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
