#include "vfs_harness.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

struct vfs_config harness_config(void)
{
	return (struct vfs_config){.root = ROOT,
	                           .mountpoint = "/mnt/here",
	                           .attr_timeout_ns = -1,
	                           .entry_timeout_ns = -1,
	                           .negative_timeout_ns = -1,
	                           .attr_min_ns = 3 * NS_PER_SEC,
	                           .attr_max_ns = 60 * NS_PER_SEC,
	                           .dir_cache = true,
	                           .dir_cache_bytes = 64 << 20,
	                           .prefetch = true,
	                           .prefetch_bytes = 8 << 20,
	                           .idmap = VFS_IDMAP_NONE,
	                           .contain_symlinks = true};
}

static void count_data(void *context, struct node *node)
{
	struct harness *harness = context;
	assert_non_null(node);
	harness->data_events++;
}

static void count_entry(void *context, struct node *parent, const char *name)
{
	struct harness *harness = context;
	assert_non_null(parent);
	assert_non_null(name);
	harness->entry_events++;
}

static void mount_it(struct harness *harness, const struct vfs_config *config)
{
	struct failure failure = {.kind = FAILURE_NONE};
	harness->vfs = vfs_new(harness->remote, harness->io, config, &failure);
	if (!harness->vfs)
		fail_msg("vfs_new: %s", failure.text);
	const struct vfs_events events = {count_data, count_entry, harness};
	vfs_set_events(harness->vfs, &events);
	harness->root = vfs_root(harness->vfs);
}

int harness_setup(void **state)
{
	struct harness *harness = calloc(1, sizeof(*harness));
	if (!harness)
		return -1;
	harness->fake = fake_remote_new();
	harness->remote = fake_remote_remote(harness->fake);
	fake_put_dir(harness->fake, "/srv");
	fake_put_dir(harness->fake, ROOT);
	const struct io_config io_config = {
	    .cache_size = 64 << 20, .dirty_limit = 16 << 20, .read_ahead = true};
	harness->io = io_new(harness->remote, &io_config);
	const struct vfs_config config = harness_config();
	mount_it(harness, &config);
	*state = harness;
	return 0;
}

int harness_teardown(void **state)
{
	struct harness *harness = *state;
	for (int kind = 0; kind < OP_KINDS; kind++)
		fake_hold(harness->fake, (enum op_kind)kind, false);
	vfs_free(harness->vfs);
	io_free(harness->io);
	fake_remote_free(harness->fake);
	free(harness);
	return 0;
}

void harness_configure(struct harness *harness, const struct vfs_config *config)
{
	vfs_free(harness->vfs);
	mount_it(harness, config);
}

struct node *look(struct harness *harness, struct node *parent, const char *name)
{
	struct vfs_entry entry;
	assert_int_equal(vfs_lookup(harness->vfs, parent, name, &entry), 0);
	assert_non_null(entry.node);
	return entry.node;
}

void look_fails(struct harness *harness, struct node *parent, const char *name, int err)
{
	struct vfs_entry entry;
	assert_int_equal(vfs_lookup(harness->vfs, parent, name, &entry), err);
	assert_null(entry.node);
}

void forget(struct harness *harness, struct node *node)
{
	vfs_forget(harness->vfs, node, 1);
}

struct node *make_dir(struct harness *harness, struct node *parent, const char *name)
{
	struct vfs_entry entry;
	assert_int_equal(vfs_mkdir(harness->vfs, parent, name, 0755, &entry), 0);
	return entry.node;
}

struct stat stat_of(struct harness *harness, struct node *node)
{
	struct stat st;
	uint64_t valid_ns;
	assert_int_equal(vfs_getattr(harness->vfs, node, NULL, &st, &valid_ns), 0);
	return st;
}

unsigned asked(struct harness *harness, enum op_kind kind)
{
	return fake_count(harness->fake, kind);
}

size_t nodes_known(struct harness *harness)
{
	NODES_SCOPE(&harness->vfs->nodes);
	return harness->vfs->nodes.count;
}

struct vfs_file *open_file(struct harness *harness, struct node *node, int flags)
{
	struct vfs_open_info info;
	assert_int_equal(vfs_open(harness->vfs, node, flags, &info), 0);
	return info.file;
}

struct vfs_file *create_file(struct harness *harness, struct node *parent, const char *name,
                             struct node **node)
{
	struct vfs_entry entry;
	struct vfs_open_info info;
	assert_int_equal(vfs_create(harness->vfs, parent, name, 0644, O_RDWR | O_CREAT | O_EXCL,
	                            &entry, &info),
	                 0);
	*node = entry.node;
	return info.file;
}

void close_file(struct harness *harness, struct vfs_file *file)
{
	assert_int_equal(vfs_flush(harness->vfs, file), 0);
	vfs_release(harness->vfs, file);
}

/* ---- waiting for completions ---- */

struct transfer {
	pthread_mutex_t lock;
	pthread_cond_t ended;
	bool over;
	int err;
	char text[4096];
	size_t length;
};

#define TRANSFER_INIT                                                                \
	{                                                                            \
		.lock = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER \
	}

static void end_transfer(struct transfer *transfer, int err)
{
	LOCK_SCOPE(&transfer->lock);
	transfer->over = true;
	transfer->err = err;
	pthread_cond_signal(&transfer->ended);
}

static void wait_transfer(struct transfer *transfer)
{
	LOCK_SCOPE(&transfer->lock);
	while (!transfer->over)
		pthread_cond_wait(&transfer->ended, &transfer->lock);
}

static void written(void *context, int err)
{
	end_transfer(context, err);
}

static void received(void *context, int err, const struct iovec *iov, int count)
{
	struct transfer *transfer = context;
	for (int i = 0; i < count; i++) {
		memcpy(transfer->text + transfer->length, iov[i].iov_base, iov[i].iov_len);
		transfer->length += iov[i].iov_len;
	}
	end_transfer(transfer, err);
}

int write_text(struct harness *harness, struct vfs_file *file, uint64_t offset,
               const char *text, int flags)
{
	struct transfer transfer = TRANSFER_INIT;
	vfs_write(harness->vfs, file, offset, text, strlen(text), flags, written, &transfer);
	wait_transfer(&transfer);
	return transfer.err;
}

void assert_reads(struct harness *harness, struct vfs_file *file, const char *text)
{
	struct transfer transfer = TRANSFER_INIT;
	vfs_read(harness->vfs, file, 0, sizeof(transfer.text) - 1, received, &transfer);
	wait_transfer(&transfer);
	assert_int_equal(transfer.err, 0);
	transfer.text[transfer.length] = '\0';
	assert_string_equal(transfer.text, text);
}

void assert_server_has(struct harness *harness, const char *path, const char *text)
{
	size_t length;
	char *data = fake_get_file(harness->fake, path, &length);
	assert_non_null(data);
	assert_int_equal(length, strlen(text));
	assert_memory_equal(data, text, length);
	free(data);
}
