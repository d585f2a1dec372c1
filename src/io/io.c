/* The whole: configuration, limits and counters. */
#include "io/io.h"

#include <inttypes.h>
#include <stdlib.h>

#include "io/internal.h"

/* Of the budget, what may lie idle on free lists: 1/8, at most 16 MiB. */
#define IDLE_LIMIT UINT64_C(16777216)

struct io *io_new(struct remote *remote, const struct io_config *config)
{
	struct io *io = calloc(1, sizeof(*io));
	if (!io)
		return NULL;
	io->remote = remote;
	io->config = *config;
	io->max_read = MIN(remote->caps.max_read, (uint32_t)BLOCK_SIZE);
	io->max_write = MIN(remote->caps.max_write, (uint32_t)MAX_CHUNK);
	buffers_init(&io->buffers, MIN(config->cache_size / 8, IDLE_LIMIT));
	pthread_mutex_init(&io->lock, NULL);
	pthread_cond_init(&io->idle, NULL);
	init_condition(&io->created);
	list_init(&io->lru);
	list_init(&io->throttled);
	return io;
}

int io_free(struct io *io)
{
	/* Files are kept by writes and fetches that are still to be answered; each has a
	 * deadline. */
	pthread_mutex_lock(&io->lock);
	while (io->files)
		pthread_cond_wait(&io->idle, &io->lock);
	pthread_mutex_unlock(&io->lock);
	int lost = io->lost;
	pthread_cond_destroy(&io->idle);
	pthread_cond_destroy(&io->created);
	pthread_mutex_destroy(&io->lock);
	buffers_release(&io->buffers);
	free(io);
	return lost;
}

void io_report(struct io *io, struct bytes *out)
{
	struct io_counters *counters = &io->counters;
	pthread_mutex_lock(&io->lock);
	uint64_t dirty = io->dirty;
	unsigned files = io->files;
	pthread_mutex_unlock(&io->lock);
	const struct {
		const char *name;
		uint64_t value;
	} lines[] = {
	    {"io files", files},
	    {"io memory bytes", atomic_load(&io->used)},
	    {"io memory limit", io->config.cache_size},
	    {"io evictions", atomic_load(&counters->evictions)},
	    {"io read bytes", atomic_load(&counters->read_bytes)},
	    {"io read hits", atomic_load(&counters->found[WINDOW_READY])},
	    {"io read waits for read-ahead", atomic_load(&counters->found[WINDOW_PENDING])},
	    {"io read misses", atomic_load(&counters->found[WINDOW_MISSING])},
	    {"io read-ahead bytes", atomic_load(&counters->ahead_bytes)},
	    {"io read-ahead bytes used", atomic_load(&counters->ahead_used)},
	    {"io read-ahead bytes wasted", atomic_load(&counters->ahead_wasted)},
	    {"io whole files fetched", atomic_load(&counters->wholes)},
	    {"io whole-file bytes", atomic_load(&counters->whole_bytes)},
	    {"io whole-file bytes used", atomic_load(&counters->whole_used)},
	    {"io whole-file bytes wasted", atomic_load(&counters->whole_wasted)},
	    {"io write bytes", atomic_load(&counters->write_bytes)},
	    {"io write bytes queued", dirty},
	    {"io write requests", atomic_load(&counters->chunks)},
	    {"io writes held back", atomic_load(&counters->throttled)},
	    {"io write errors", atomic_load(&counters->write_errors)},
	    {"io files created behind", atomic_load(&counters->creates)},
	    {"io attribute changes sent", atomic_load(&counters->changes)},
	    {"io attribute changes merged", atomic_load(&counters->changes_merged)},
	    {"io attribute changes repeated", atomic_load(&counters->changes_repeated)},
	    {"io attributes asked behind writes", atomic_load(&counters->looks)},
	};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		bytes_addf(out, "%s: %" PRIu64 "\n", lines[i].name, lines[i].value);
}
