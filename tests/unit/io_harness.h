/*
 * What the tests of io/ share: a fake server with a mount's io on it, files opened in one call,
 * and reads and writes that wait for their answer.
 */
#ifndef MOORFS_TESTS_IO_HARNESS_H
#define MOORFS_TESTS_IO_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fake_remote.h"
#include "io/io.h"

enum { HARNESS_MAX = 64 };

struct harness {
	struct fake_remote *fake;
	struct remote *remote;
	struct io *io;
	/* open, or NULL; what a failed test leaves behind is closed by the teardown */
	struct io_file *files[HARNESS_MAX];
	struct io_handle *handles[HARNESS_MAX];
};

/* Made by the functions for cmocka: *state is a struct harness. Tests that want a special
 * configuration call harness_configure() first thing. */
int harness_setup(void **state);
int harness_teardown(void **state);
void harness_configure(struct harness *harness, const struct io_config *config);
/* 64 MiB of cache, 16 MiB of it dirty, read-ahead. */
struct io_config harness_config(void);

struct io_file *harness_file(struct harness *harness);
void harness_file_free(struct harness *harness, struct io_file *file);

/* Opens the path (created when OPEN_CREATE is among the flags) as a handle of `file`, and
 * revalidates the file with what the server said. */
struct io_handle *harness_open(struct harness *harness, struct io_file *file, const char *path,
                               unsigned open_flags);
void harness_close(struct harness *harness, struct io_handle *handle);

/* A started read or write; wait for it with the functions below, once. */
struct call;
struct call *start_read(struct io_handle *handle, uint64_t offset, size_t length);
struct call *start_write(struct io_handle *handle, uint64_t offset, const void *data,
                         size_t length, bool append);
void *call_context(struct call *call);
bool call_ended(struct call *call);
/* The error of the call, which is freed. Fails the test after 20 s. */
int end_call(struct call *call);
/* Bytes read (into `data`, as large as the read) or -errno; frees the call. */
ssize_t end_read(struct call *call, void *data);

ssize_t read_now(struct io_handle *handle, uint64_t offset, void *data, size_t length);
int write_now(struct io_handle *handle, uint64_t offset, const void *data, size_t length);

/* A file of `length` bytes whose contents tell their place; the same in memory. */
void put_pattern(struct harness *harness, const char *path, size_t length, time_t mtime);
void fill_pattern(void *data, uint64_t offset, size_t length);
/* Fails unless the bytes are the pattern's. */
void assert_pattern(const void *data, uint64_t offset, size_t length);

#endif
