/*
 * Which requests the watcher breaks off. libfuse's part is played here: a request is a
 * program's number and the function to call when the kernel tells of a signal.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "fuse/interrupt.h"

struct fuse_req {
	struct fuse_ctx context;
	fuse_interrupt_func_t told;
	void *data;
};

const struct fuse_ctx *fuse_req_ctx(fuse_req_t req)
{
	return &req->context;
}

void fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t told, void *data)
{
	req->told = told;
	req->data = data;
}

static void tell_of_signal(struct fuse_req *req)
{
	req->told(req, req->data);
}

static void sleep_ms(unsigned ms)
{
	struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
	nanosleep(&time, NULL);
}

/* Within a blocking call of this thread. */
static bool broken_off_within(unsigned ms)
{
	const uint64_t end_ns = clock_now_ns() + ms * NS_PER_MS;
	while (!remote_scope_interrupted() && clock_now_ns() < end_ns)
		sleep_ms(5);
	return remote_scope_interrupted();
}

/* The number of a program that has ended. */
static pid_t gone_program(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static int set_up(void **state)
{
	*state = interrupts_new();
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	interrupts_free(*state);
	return 0;
}

static void a_living_program_with_a_signal_is_left_alone(void **state)
{
	struct fuse_req req = {.context = {.pid = getpid()}};
	struct call call = {.kind = CALL_SYNC};
	call_enter(*state, &call, &req);
	tell_of_signal(&req);
	assert_false(broken_off_within(1300));
	assert_true(call_leave(&call));
}

static void a_program_that_is_gone_is_let_go_at_once(void **state)
{
	struct fuse_req req = {.context = {.pid = gone_program()}};
	struct call call = {.kind = CALL_SYNC};
	call_enter(*state, &call, &req);
	assert_false(broken_off_within(200));
	tell_of_signal(&req);
	assert_true(broken_off_within(300));
	assert_true(call_leave(&call));
}

static void a_gone_program_is_noticed_without_being_told(void **state)
{
	struct fuse_req req = {.context = {.pid = gone_program()}};
	struct call call = {.kind = CALL_CLOSE};
	call_enter(*state, &call, &req);
	assert_true(broken_off_within(1800));
	assert_true(call_leave(&call));
}

static void a_program_that_cannot_be_seen_is_given_a_second(void **state)
{
	struct fuse_req req = {.context = {.pid = 0}};
	struct call call = {.kind = CALL_SYNC};
	call_enter(*state, &call, &req);
	tell_of_signal(&req);
	assert_false(broken_off_within(800));
	assert_true(broken_off_within(1000));
	assert_true(call_leave(&call));
}

static void the_next_call_of_the_thread_starts_afresh(void **state)
{
	struct fuse_req req = {.context = {.pid = gone_program()}};
	struct call call = {.kind = CALL_SYNC};
	call_enter(*state, &call, &req);
	tell_of_signal(&req);
	assert_true(broken_off_within(300));
	assert_true(call_leave(&call));
	assert_null(req.told);

	struct fuse_req next = {.context = {.pid = getpid()}};
	call_enter(*state, &call, &next);
	assert_false(broken_off_within(50));
	assert_true(call_leave(&call));
}

static void a_call_with_a_limit_is_broken_off_as_late(void **state)
{
	struct fuse_req req = {.context = {.pid = getpid()}};
	struct call call = {.kind = CALL_SYNC};
	call_enter(*state, &call, &req);
	call_limit(&call, 300 * NS_PER_MS);
	assert_false(broken_off_within(200));
	assert_true(broken_off_within(500));
	assert_true(call_leave(&call));
	assert_true(call.late);
}

/* ---- requests that a completion answers ---- */

struct transfer {
	struct call call;
	atomic_uint holds, cancels, answers;
};

static void hold(struct call *call)
{
	atomic_fetch_add(&CONTAINER_OF(call, struct transfer, call)->holds, 1);
}

static void cancel(struct call *call)
{
	struct transfer *transfer = CONTAINER_OF(call, struct transfer, call);
	if (call_leave(call))
		atomic_fetch_add(&transfer->answers, 1);
	atomic_fetch_add(&transfer->cancels, 1);
}

static bool cancelled_within(struct transfer *transfer, unsigned ms)
{
	const uint64_t end_ns = clock_now_ns() + ms * NS_PER_MS;
	while (!atomic_load(&transfer->cancels) && clock_now_ns() < end_ns)
		sleep_ms(5);
	return atomic_load(&transfer->cancels) > 0;
}

static void a_transfer_is_answered_once(void **state)
{
	struct fuse_req req = {.context = {.pid = gone_program()}};
	struct transfer transfer = {
	    .call = {.kind = CALL_ASYNC, .hold = hold, .cancel = cancel}};
	call_enter(*state, &transfer.call, &req);
	tell_of_signal(&req);
	assert_true(cancelled_within(&transfer, 300));
	assert_int_equal(transfer.holds, 1);
	assert_int_equal(transfer.answers, 1);
	/* Its completion comes late. */
	assert_false(call_leave(&transfer.call));
}

/* Read-ahead goes on although the reader has ended: others may wait for it. */
static void a_transfer_goes_on_unless_told_of_a_signal(void **state)
{
	struct fuse_req req = {.context = {.pid = gone_program()}};
	struct transfer transfer = {
	    .call = {.kind = CALL_ASYNC, .hold = hold, .cancel = cancel}};
	call_enter(*state, &transfer.call, &req);
	assert_false(cancelled_within(&transfer, 1600));
	assert_true(call_leave(&transfer.call));
}

static void at_the_end_all_but_closes_are_broken_off(void **state)
{
	struct fuse_req req = {.context = {.pid = getpid()}};
	struct fuse_req reader = {.context = {.pid = getpid()}};
	struct transfer transfer = {
	    .call = {.kind = CALL_ASYNC, .hold = hold, .cancel = cancel}};
	struct call call = {.kind = CALL_CLOSE};
	call_enter(*state, &transfer.call, &reader);
	call_enter(*state, &call, &req);
	interrupts_cancel_all(*state, 100 * NS_PER_MS);
	assert_true(cancelled_within(&transfer, 500));
	assert_false(remote_scope_interrupted());
	assert_true(call_leave(&call));

	call.kind = CALL_SYNC;
	call_enter(*state, &call, &req);
	assert_true(broken_off_within(1500));
	assert_true(call_leave(&call));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_living_program_with_a_signal_is_left_alone),
	    TEST(a_program_that_is_gone_is_let_go_at_once),
	    TEST(a_gone_program_is_noticed_without_being_told),
	    TEST(a_program_that_cannot_be_seen_is_given_a_second),
	    TEST(the_next_call_of_the_thread_starts_afresh),
	    TEST(a_call_with_a_limit_is_broken_off_as_late),
	    TEST(a_transfer_is_answered_once),
	    TEST(a_transfer_goes_on_unless_told_of_a_signal),
	    TEST(at_the_end_all_but_closes_are_broken_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
