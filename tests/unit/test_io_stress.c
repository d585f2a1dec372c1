/*
 * Threads that read and write files at random against a model in memory. Each file belongs to
 * one thread's model, but all share the budget, the queue and the server, and helper threads
 * read the same files, revalidate, cancel and close handles with writes queued.
 */
#include "io_harness.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { WORKERS = 4, STEPS = 1500, FILE_MAX = 2 << 20, PIECE_MAX = 200 << 10 };

struct worker {
	struct harness *harness;
	char path[16];
	unsigned seed;
	struct io_file *file;
	struct io_handle *handle;
	char *model, *buffer;
	size_t size;
	const char *failure; /* NULL: none */
	uint64_t at;
};

static size_t pick(struct worker *worker, size_t below)
{
	return (size_t)rand_r(&worker->seed) % below;
}

static void fail_at(struct worker *worker, const char *what, uint64_t at)
{
	if (!worker->failure) {
		worker->failure = what;
		worker->at = at;
	}
}

static void do_write(struct worker *worker, bool append)
{
	size_t length = 1 + pick(worker, pick(worker, 4) ? 8000 : PIECE_MAX);
	uint64_t offset = append ? worker->size : pick(worker, FILE_MAX - PIECE_MAX);
	if (offset + length > FILE_MAX)
		return;
	memset(worker->buffer, (int)pick(worker, 256), length);
	if (offset > worker->size)
		memset(worker->model + worker->size, 0, offset - worker->size);
	memcpy(worker->model + offset, worker->buffer, length);
	worker->size = MAX(worker->size, offset + length);
	if (end_call(start_write(worker->handle, append ? 12345 : offset, worker->buffer,
	                         length, append)))
		fail_at(worker, "a write failed", offset);
}

static void do_read(struct worker *worker, bool sequential)
{
	size_t length = sequential ? 128 << 10 : 1 + pick(worker, PIECE_MAX);
	uint64_t offset = sequential ? 0 : pick(worker, FILE_MAX);
	do {
		size_t expected =
		    offset < worker->size ? MIN(length, worker->size - offset) : 0;
		ssize_t count = read_now(worker->handle, offset, worker->buffer, length);
		if (count != (ssize_t)expected)
			fail_at(worker, "a read is short or long", offset);
		else if (memcmp(worker->buffer, worker->model + offset, expected) != 0)
			fail_at(worker, "a read has wrong bytes", offset);
		offset += length;
	} while (sequential && offset < worker->size);
}

static void do_truncate(struct worker *worker)
{
	size_t size = pick(worker, FILE_MAX);
	if (io_file_drain(worker->file))
		fail_at(worker, "drain failed", size);
	struct remote_attr attr = {.valid = ATTR_SIZE, .size = size};
	if (remote_fsetattr(io_handle_remote(worker->handle), &attr))
		fail_at(worker, "truncate failed", size);
	io_file_truncated(worker->file, size);
	if (size > worker->size)
		memset(worker->model + worker->size, 0, size - worker->size);
	worker->size = size;
}

/* What a stat() of the file does. */
static void do_revalidate(struct worker *worker)
{
	uint64_t mark = io_file_mark(worker->file);
	struct remote_attr attr;
	if (remote_lstat(worker->harness->remote, worker->path, &attr))
		fail_at(worker, "lstat failed", 0);
	struct io_version version = {.size = attr.size, .mtime = attr.mtime};
	io_file_revalidate_since(worker->file, &version, mark);
}

static struct io_handle *open_handle(struct worker *worker, unsigned flags)
{
	struct remote_file *remote_file = remote_file_new(worker->harness->remote, worker->path,
	                                                  flags & (OPEN_READ | OPEN_WRITE));
	struct remote_attr attr = {0};
	if (!remote_file || remote_open(remote_file, flags, &attr))
		abort();
	return io_handle_new(worker->file, remote_file);
}

/* A process that is killed after a write. */
static void do_reopen(struct worker *worker)
{
	do_write(worker, false);
	io_handle_free(worker->handle);
	worker->handle = open_handle(worker, OPEN_READ | OPEN_WRITE);
}

static void do_cancelled_read(struct worker *worker)
{
	struct call *call = start_read(worker->handle, pick(worker, FILE_MAX), 64 << 10);
	io_read_cancel(worker->handle, call_context(call));
	ssize_t count = end_read(call, worker->buffer);
	if (count < 0 && count != -EINTR)
		fail_at(worker, "a cancelled read failed otherwise", 0);
}

static void *work(void *argument)
{
	struct worker *worker = argument;
	for (int i = 0; i < STEPS && !worker->failure; i++) {
		size_t action = pick(worker, 100);
		if (action < 40)
			do_write(worker, action < 10);
		else if (action < 85)
			do_read(worker, action == 84);
		else if (action < 88)
			do_truncate(worker);
		else if (action < 92)
			do_revalidate(worker);
		else if (action < 95)
			do_reopen(worker);
		else if (action < 98)
			do_cancelled_read(worker);
		else if (io_fsync(worker->handle))
			fail_at(worker, "fsync failed", 0);
	}
	return NULL;
}

/* Reads a worker's file beside it; what it sees is between two states and is not judged. */
static void *disturb(void *argument)
{
	struct worker *worker = argument;
	unsigned seed = worker->seed + 99;
	struct io_handle *handle = open_handle(worker, OPEN_READ);
	char *buffer = malloc(PIECE_MAX);
	for (int i = 0; buffer && i < STEPS; i++) {
		uint64_t offset = (uint64_t)rand_r(&seed) % FILE_MAX;
		read_now(handle, offset, buffer, PIECE_MAX);
	}
	free(buffer);
	io_handle_free(handle);
	return NULL;
}

static void worker_init(struct worker *worker, struct harness *harness, unsigned number)
{
	*worker = (struct worker){.harness = harness, .seed = number + 1};
	snprintf(worker->path, sizeof(worker->path), "/file%u", number);
	fake_put_file(harness->fake, worker->path, "", 0, 1000);
	worker->model = calloc(1, FILE_MAX);
	worker->buffer = malloc(FILE_MAX);
	assert_non_null(worker->model);
	assert_non_null(worker->buffer);
	worker->file = io_file_new(harness->io);
	assert_non_null(worker->file);
	worker->handle = open_handle(worker, OPEN_READ | OPEN_WRITE);
}

static void worker_finish(struct worker *worker)
{
	if (io_flush(worker->handle))
		fail_at(worker, "flush failed", 0);
	if (io_file_size(worker->file) != worker->size)
		fail_at(worker, "the size is wrong", io_file_size(worker->file));
	io_handle_free(worker->handle);
	io_file_free(worker->file);
	size_t length;
	char *data = fake_get_file(worker->harness->fake, worker->path, &length);
	if (!data || length != worker->size || memcmp(data, worker->model, length) != 0)
		fail_at(worker, "the server has other contents", 0);
	free(data);
	free(worker->model);
	free(worker->buffer);
	if (worker->failure)
		print_error("%s: %s at %llu\n", worker->path, worker->failure,
		            (unsigned long long)worker->at);
}

static void run_workers(struct harness *harness)
{
	struct worker workers[WORKERS];
	pthread_t threads[2 * WORKERS];
	for (unsigned i = 0; i < WORKERS; i++)
		worker_init(&workers[i], harness, i);
	for (unsigned i = 0; i < WORKERS; i++) {
		assert_int_equal(pthread_create(&threads[2 * i], NULL, work, &workers[i]), 0);
		assert_int_equal(
		    pthread_create(&threads[2 * i + 1], NULL, disturb, &workers[i]), 0);
	}
	for (unsigned i = 0; i < 2 * WORKERS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < WORKERS; i++)
		worker_finish(&workers[i]);
	for (unsigned i = 0; i < WORKERS; i++)
		assert_null(workers[i].failure);
}

static void random_work_matches_the_model(void **state)
{
	struct harness *harness = *state;
	struct io_config config = harness_config();
	config.cache_size = 3 << 20; /* eviction across files all the time */
	config.dirty_limit = 1 << 20;
	harness_configure(harness, &config);
	run_workers(harness);
}

static void it_does_so_with_small_requests_and_a_slow_server(void **state)
{
	struct harness *harness = *state;
	harness->remote->caps.max_read = 20000;
	harness->remote->caps.max_write = 10000;
	fake_set_delay(harness->fake, OP_READ, 200 * NS_PER_US);
	fake_set_delay(harness->fake, OP_WRITE, 300 * NS_PER_US);
	struct io_config config = harness_config();
	harness_configure(harness, &config);
	run_workers(harness);
}

int main(void)
{
#define IO_TEST(name) cmocka_unit_test_setup_teardown(name, harness_setup, harness_teardown)
	const struct CMUnitTest tests[] = {
	    IO_TEST(random_work_matches_the_model),
	    IO_TEST(it_does_so_with_small_requests_and_a_slow_server),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
