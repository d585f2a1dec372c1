#include "base/wake.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { AWAKE, SLEEPING, SIGNALLED };

int wake_init(struct wake *wake)
{
	wake->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	atomic_store(&wake->sleeping, AWAKE);
	return wake->fd < 0 ? -errno : 0;
}

void wake_release(struct wake *wake)
{
	if (wake->fd >= 0)
		close(wake->fd);
	wake->fd = -1;
}

void wake_signal(struct wake *wake)
{
	/* An exchange even while awake: it orders the queued work before the sleeper's look. */
	int was = SLEEPING;
	if (!atomic_compare_exchange_strong(&wake->sleeping, &was, SIGNALLED))
		return;
	uint64_t one = 1;
	ssize_t n;
	do {
		n = write(wake->fd, &one, sizeof(one));
	} while (n < 0 && errno == EINTR);
}

void wake_prepare(struct wake *wake)
{
	atomic_store(&wake->sleeping, SLEEPING);
}

void wake_finish(struct wake *wake)
{
	if (atomic_exchange(&wake->sleeping, AWAKE) != SIGNALLED)
		return;
	uint64_t value;
	ssize_t n;
	do {
		n = read(wake->fd, &value, sizeof(value));
	} while (n < 0 && errno == EINTR);
}

int wake_fd(const struct wake *wake)
{
	return wake->fd;
}
