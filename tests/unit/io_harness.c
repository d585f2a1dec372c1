#include "io_harness.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define WAIT_LIMIT_NS (20 * NS_PER_SEC)

struct call {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ended;
	int err;
	char *data; /* of a read */
	size_t length, count;
};

struct io_config harness_config(void)
{
	return (struct io_config){
	    .cache_size = 64 << 20, .dirty_limit = 16 << 20, .read_ahead = true};
}

int harness_setup(void **state)
{
	struct harness *harness = calloc(1, sizeof(*harness));
	if (!harness)
		return -1;
	harness->fake = fake_remote_new();
	harness->remote = fake_remote_remote(harness->fake);
	struct io_config config = harness_config();
	harness->io = io_new(harness->remote, &config);
	*state = harness;
	return harness->io ? 0 : -1;
}

int harness_teardown(void **state)
{
	struct harness *harness = *state;
	for (int kind = 0; kind < OP_KINDS; kind++)
		fake_hold(harness->fake, (enum op_kind)kind, false);
	for (size_t i = 0; i < HARNESS_MAX; i++)
		if (harness->handles[i])
			io_handle_free(harness->handles[i]);
	for (size_t i = 0; i < HARNESS_MAX; i++)
		if (harness->files[i])
			io_file_free(harness->files[i]);
	io_free(harness->io);
	fake_remote_free(harness->fake);
	free(harness);
	return 0;
}

void harness_configure(struct harness *harness, const struct io_config *config)
{
	io_free(harness->io);
	harness->io = io_new(harness->remote, config);
	assert_non_null(harness->io);
}

struct io_file *harness_file(struct harness *harness)
{
	size_t i = 0;
	while (harness->files[i])
		assert_true(++i < HARNESS_MAX);
	harness->files[i] = io_file_new(harness->io);
	assert_non_null(harness->files[i]);
	return harness->files[i];
}

void harness_file_free(struct harness *harness, struct io_file *file)
{
	for (size_t i = 0; i < HARNESS_MAX; i++)
		if (harness->files[i] == file)
			harness->files[i] = NULL;
	io_file_free(file);
}

void harness_close(struct harness *harness, struct io_handle *handle)
{
	for (size_t i = 0; i < HARNESS_MAX; i++)
		if (harness->handles[i] == handle)
			harness->handles[i] = NULL;
	io_handle_free(handle);
}

struct io_handle *harness_open(struct harness *harness, struct io_file *file, const char *path,
                               unsigned open_flags)
{
	unsigned access = open_flags & (OPEN_READ | OPEN_WRITE);
	struct remote_file *remote_file = remote_file_new(harness->remote, path, access);
	assert_non_null(remote_file);
	uint64_t mark = io_file_mark(file);
	struct remote_attr attr = {.valid = ATTR_MODE, .mode = 0644};
	assert_int_equal(remote_open(remote_file, open_flags, &attr), 0);
	struct io_version version = {.size = attr.size, .mtime = attr.mtime};
	io_file_revalidate_since(file, &version, mark);
	size_t i = 0;
	while (harness->handles[i])
		assert_true(++i < HARNESS_MAX);
	harness->handles[i] = io_handle_new(file, remote_file);
	assert_non_null(harness->handles[i]);
	return harness->handles[i];
}

/* ---- calls ---- */

static struct call *call_new(size_t length)
{
	struct call *call = calloc(1, sizeof(*call));
	assert_non_null(call);
	call->data = malloc(length + 1);
	assert_non_null(call->data);
	call->length = length;
	pthread_mutex_init(&call->lock, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&call->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return call;
}

static void call_end(struct call *call, int err)
{
	LOCK_SCOPE(&call->lock);
	if (call->ended)
		abort(); /* answered twice */
	call->err = err;
	call->ended = true;
	pthread_cond_broadcast(&call->changed);
}

static void read_done(void *context, int err, const struct iovec *iov, int count)
{
	struct call *call = context;
	for (int i = 0; i < count; i++) {
		if (call->count + iov[i].iov_len > call->length)
			abort(); /* more than was asked for */
		memcpy(call->data + call->count, iov[i].iov_base, iov[i].iov_len);
		call->count += iov[i].iov_len;
	}
	call_end(call, err);
}

static void write_done(void *context, int err)
{
	call_end(context, err);
}

struct call *start_read(struct io_handle *handle, uint64_t offset, size_t length)
{
	struct call *call = call_new(length);
	io_read(handle, offset, length, read_done, call);
	return call;
}

struct call *start_write(struct io_handle *handle, uint64_t offset, const void *data,
                         size_t length, bool append)
{
	struct call *call = call_new(0);
	io_write(handle, offset, data, length, append, write_done, call);
	return call;
}

void *call_context(struct call *call)
{
	return call;
}

bool call_ended(struct call *call)
{
	LOCK_SCOPE(&call->lock);
	return call->ended;
}

static bool wait_ended(struct call *call)
{
	struct timespec until = clock_to_timespec(clock_now_ns() + WAIT_LIMIT_NS);
	LOCK_SCOPE(&call->lock);
	while (!call->ended)
		if (pthread_cond_timedwait(&call->changed, &call->lock, &until))
			return call->ended;
	return true;
}

ssize_t end_read(struct call *call, void *data)
{
	if (!wait_ended(call))
		fail_msg("waited 20 s for an answer");
	ssize_t result = call->err ? call->err : (ssize_t)call->count;
	if (call->count)
		memcpy(data, call->data, call->count);
	pthread_cond_destroy(&call->changed);
	pthread_mutex_destroy(&call->lock);
	free(call->data);
	free(call);
	return result;
}

int end_call(struct call *call)
{
	return (int)end_read(call, NULL);
}

ssize_t read_now(struct io_handle *handle, uint64_t offset, void *data, size_t length)
{
	return end_read(start_read(handle, offset, length), data);
}

int write_now(struct io_handle *handle, uint64_t offset, const void *data, size_t length)
{
	return end_call(start_write(handle, offset, data, length, false));
}

/* ---- contents ---- */

static unsigned char pattern_at(uint64_t offset)
{
	return (unsigned char)(offset ^ (offset >> 8) * 7 ^ (offset >> 16) * 13);
}

void fill_pattern(void *data, uint64_t offset, size_t length)
{
	unsigned char *bytes = data;
	for (size_t i = 0; i < length; i++)
		bytes[i] = pattern_at(offset + i);
}

void assert_pattern(const void *data, uint64_t offset, size_t length)
{
	const unsigned char *bytes = data;
	for (size_t i = 0; i < length; i++)
		if (bytes[i] != pattern_at(offset + i))
			fail_msg("byte %zu of the file is wrong", (size_t)offset + i);
}

void put_pattern(struct harness *harness, const char *path, size_t length, time_t mtime)
{
	char *data = malloc(length + 1);
	assert_non_null(data);
	fill_pattern(data, 0, length);
	fake_put_file(harness->fake, path, data, length, mtime);
	free(data);
}
