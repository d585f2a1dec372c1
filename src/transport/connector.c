#include "transport/connector.h"

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "transport/exec.h"
#include "transport/ssh2.h"
#include "transport/tcp.h"

/* Under this round trip the child's 2 MiB window is no bound, and its ciphers are cheaper. */
#define NEAR_NS (3 * NS_PER_MS)

enum { LOCK_SLICE_MS = 200 };

/* The target's prompter with a lock around it: lanes on several threads ask one at a time. */
struct serial_prompter {
	struct ssh_prompter base;
	struct ssh_prompter *inner; /* NULL: nobody to ask */
	pthread_mutex_t ask_lock;
};

struct connector {
	const struct ssh_target *target;
	struct serial_prompter prompter;
	struct ssh2_shared shared;
	/*
	 * Held while a lane opens as long as nothing is decided, so that the first lane
	 * decides, and asks, alone. Taken before ask_lock and accepted_lock.
	 */
	pthread_mutex_t decision_lock;
	bool decided;
	bool by_distance; /* the mode was chosen for the round trip, so it may change */
	enum ssh_transport_mode mode; /* when decided */
	char reason[600];
};

/* What one connector_open() call was given. */
struct opening {
	struct connector *connector;
	uint64_t deadline_ns;
	const _Atomic bool *cancel;
	struct transport **out;
	struct failure *failure;
};

static struct serial_prompter *serial_of(struct ssh_prompter *prompter)
{
	return CONTAINER_OF(prompter, struct serial_prompter, base);
}

static const struct secret *serial_ask(struct ssh_prompter *prompter, const char *prompt,
                                       bool echo, bool fresh)
{
	struct serial_prompter *serial = serial_of(prompter);
	if (!serial->inner || !serial->inner->ask)
		return NULL;
	LOCK_SCOPE(&serial->ask_lock);
	return serial->inner->ask(serial->inner, prompt, echo, fresh);
}

static int serial_confirm(struct ssh_prompter *prompter, const char *question)
{
	struct serial_prompter *serial = serial_of(prompter);
	if (!serial->inner || !serial->inner->confirm)
		return -1;
	LOCK_SCOPE(&serial->ask_lock);
	return serial->inner->confirm(serial->inner, question);
}

struct connector *connector_new(const struct ssh_target *target)
{
	struct connector *connector = calloc(1, sizeof(*connector));
	if (!connector)
		return NULL;
	connector->target = target;
	connector->prompter.base =
	    (struct ssh_prompter){.ask = serial_ask, .confirm = serial_confirm};
	connector->prompter.inner = target->prompter;
	pthread_mutex_init(&connector->prompter.ask_lock, NULL);
	pthread_mutex_init(&connector->shared.accepted_lock, NULL);
	pthread_mutex_init(&connector->decision_lock, NULL);
	return connector;
}

void connector_free(struct connector *connector)
{
	if (!connector)
		return;
	pthread_mutex_destroy(&connector->prompter.ask_lock);
	pthread_mutex_destroy(&connector->shared.accepted_lock);
	pthread_mutex_destroy(&connector->decision_lock);
	bytes_release(&connector->shared.accepted_key);
	free(connector);
}

enum ssh_transport_mode connector_choose(const struct ssh_target *target, bool have_ssh,
                                         uint64_t connect_ns)
{
	if (target->mode != SSH_MODE_AUTO)
		return target->mode;
	if (*target->needs_ssh)
		return SSH_MODE_SSH;
	return have_ssh && connect_ns < NEAR_NS ? SSH_MODE_SSH : SSH_MODE_SSH2;
}

__attribute__((format(printf, 2, 3))) static void set_reason(struct connector *connector,
                                                             const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(connector->reason, sizeof(connector->reason), format, args);
	va_end(args);
	log_info("transport %s", connector->reason);
}

static int dial(const struct opening *opening, int *fd, uint64_t *connect_ns)
{
	const struct ssh_target *target = opening->connector->target;
	unsigned port = target->mode == SSH_MODE_TCP ? target->direct_port : target->port;
	return tcp_connect(target->hostname, port, target->address_family, opening->deadline_ns,
	                   opening->cancel, fd, connect_ns, opening->failure);
}

static int open_tcp(const struct opening *opening)
{
	int fd;
	uint64_t connect_ns;
	if (dial(opening, &fd, &connect_ns))
		return -1;
	*opening->out = tcp_transport_new(fd);
	if (*opening->out)
		return 0;
	close(fd);
	return failure_set(opening->failure, FAILURE_INTERNAL, "out of memory");
}

static int open_child(const struct opening *opening)
{
	return exec_open(opening->connector->target, opening->deadline_ns, opening->out,
	                 opening->failure);
}

/* Takes the socket over. */
static int open_ssh2_on(const struct opening *opening, int fd, bool may_fall_back,
                        bool *ssh_may_help)
{
	struct connector *connector = opening->connector;
	struct ssh2_request request = {
	    .target = connector->target,
	    .prompter = &connector->prompter.base,
	    .shared = &connector->shared,
	    .fd = fd,
	    .deadline_ns = opening->deadline_ns,
	    .cancel = opening->cancel,
	    .may_fall_back = may_fall_back,
	};
	return ssh2_open(&request, opening->out, ssh_may_help, opening->failure);
}

/* After libssh2 has failed where the ssh program may not. */
static int fall_back(const struct opening *opening)
{
	struct connector *connector = opening->connector;
	connector->mode = SSH_MODE_SSH;
	connector->by_distance = false;
	set_reason(connector, "ssh: libssh2 could not connect (%.500s)",
	           opening->failure->text);
	return open_child(opening);
}

/* By libssh2; `may_fall_back`: by the child ssh, also from then on, where libssh2 cannot. */
static int open_ssh2(const struct opening *opening, bool may_fall_back)
{
	int fd;
	uint64_t connect_ns;
	bool ssh_may_help;
	if (dial(opening, &fd, &connect_ns))
		return -1;
	if (open_ssh2_on(opening, fd, may_fall_back, &ssh_may_help) == 0)
		return 0;
	if (!may_fall_back || !ssh_may_help)
		return -1;
	LOCK_SCOPE(&opening->connector->decision_lock);
	return fall_back(opening);
}

static int open_as(const struct opening *opening, enum ssh_transport_mode mode,
                   bool may_fall_back)
{
	switch (mode) {
	case SSH_MODE_SSH2:
		return open_ssh2(opening, may_fall_back);
	case SSH_MODE_TCP:
		return open_tcp(opening);
	case SSH_MODE_SSH:
	case SSH_MODE_SERVER:
	case SSH_MODE_AUTO: /* never decided */
		break;
	}
	return open_child(opening);
}

/* The user has said how. */
static int decide_fixed(const struct opening *opening)
{
	static const char *const names[] = {
	    [SSH_MODE_AUTO] = "auto",          [SSH_MODE_SSH2] = "ssh2", [SSH_MODE_SSH] = "ssh",
	    [SSH_MODE_SERVER] = "sftp-server", [SSH_MODE_TCP] = "tcp",
	};
	struct connector *connector = opening->connector;
	const struct ssh_target *target = connector->target;
	connector->mode = target->mode;
	set_reason(connector, "%s: as configured", names[target->mode]);
	if (target->mode == SSH_MODE_SSH2 && *target->needs_ssh)
		log_warn("transport=ssh2 leaves out of account what only ssh can do: %s",
		         target->needs_ssh);
	return open_as(opening, target->mode, false);
}

/* By the rule of connector.h. */
static int decide_auto(const struct opening *opening)
{
	struct connector *connector = opening->connector;
	const struct ssh_target *target = connector->target;
	bool have_ssh = exec_have_ssh(target);
	if (*target->needs_ssh) {
		if (!have_ssh)
			return failure_set(
			    opening->failure, FAILURE_USAGE,
			    "%s, which needs the ssh program, and there is none: "
			    "install openssh-client",
			    target->needs_ssh);
		connector->mode = SSH_MODE_SSH;
		set_reason(connector, "ssh: %s", target->needs_ssh);
		return open_child(opening);
	}
	int fd;
	uint64_t connect_ns;
	if (dial(opening, &fd, &connect_ns))
		return -1;
	double ms = (double)connect_ns / (double)NS_PER_MS;
	connector->mode = connector_choose(target, have_ssh, connect_ns);
	connector->by_distance = have_ssh;
	if (connector->mode == SSH_MODE_SSH) {
		close(fd);
		set_reason(connector, "ssh: round trip %.1f ms", ms);
		return open_child(opening);
	}
	bool ssh_may_help;
	if (open_ssh2_on(opening, fd, have_ssh, &ssh_may_help) == 0) {
		set_reason(connector,
		           have_ssh ? "ssh2: round trip %.1f ms"
		                    : "ssh2: round trip %.1f ms, no ssh program",
		           ms);
		return 0;
	}
	return have_ssh && ssh_may_help ? fall_back(opening) : -1;
}

/* Waits for the lock, but not beyond the deadline. 0, or -1 and the failure. */
static int lock_decision(const struct opening *opening)
{
	pthread_mutex_t *lock = &opening->connector->decision_lock;
	for (;;) {
		/* The lock's time-out is wall time: a jump of the clock costs one slice. */
		struct timespec slice;
		clock_gettime(CLOCK_REALTIME, &slice);
		uint64_t until = (uint64_t)slice.tv_nsec + LOCK_SLICE_MS * NS_PER_MS;
		slice.tv_sec += (time_t)(until / NS_PER_SEC);
		slice.tv_nsec = (long)(until % NS_PER_SEC);
		if (pthread_mutex_timedlock(lock, &slice) == 0)
			return 0;
		if ((opening->cancel && *opening->cancel) ||
		    clock_now_ns() >= opening->deadline_ns)
			return failure_set(opening->failure, FAILURE_UNREACHABLE,
			                   "%s: another connection is still being opened",
			                   opening->connector->target->alias);
	}
}

int connector_open(struct connector *connector, uint64_t deadline_ns,
                   const _Atomic bool *cancel, struct transport **out, struct failure *failure)
{
	struct opening opening = {connector, deadline_ns, cancel, out, failure};
	if (lock_decision(&opening))
		return -1;
	if (!connector->decided) {
		int result = connector->target->mode == SSH_MODE_AUTO ? decide_auto(&opening)
		                                                      : decide_fixed(&opening);
		connector->decided = result == 0;
		pthread_mutex_unlock(&connector->decision_lock);
		return result;
	}
	enum ssh_transport_mode mode = connector->mode;
	bool may_fall_back = connector->by_distance;
	pthread_mutex_unlock(&connector->decision_lock);
	return open_as(&opening, mode, may_fall_back);
}

void connector_note_round_trip(struct connector *connector, uint64_t round_trip_ns)
{
	LOCK_SCOPE(&connector->decision_lock);
	if (!connector->by_distance)
		return;
	enum ssh_transport_mode mode = connector_choose(connector->target, true, round_trip_ns);
	if (mode == connector->mode)
		return;
	connector->mode = mode;
	set_reason(connector, "%s for further connections: round trip %.1f ms",
	           mode == SSH_MODE_SSH2 ? "ssh2" : "ssh",
	           (double)round_trip_ns / (double)NS_PER_MS);
}

uint64_t connector_asked_ns(struct connector *connector)
{
	struct ssh_prompter *inner = connector->prompter.inner;
	return inner && inner->asked_ns ? inner->asked_ns(inner) : 0;
}

const char *connector_reason(struct connector *connector)
{
	LOCK_SCOPE(&connector->decision_lock);
	return connector->reason;
}
