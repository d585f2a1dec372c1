#include "signals.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum phase { PHASE_STARTING, PHASE_MOUNTED, PHASE_STOPPING };

struct signals {
	struct signal_actions actions;
	sigset_t set;
	atomic_int phase;
	atomic_bool quit;
	pthread_t thread;
};

/* Ends the program as the signal would have done by itself. */
static void end_by(int number)
{
	sigset_t only;
	sigemptyset(&only);
	sigaddset(&only, number);
	signal(number, SIG_DFL);
	raise(number);
	pthread_sigmask(SIG_UNBLOCK, &only, NULL);
}

static void handle(struct signals *signals, int number)
{
	const struct signal_actions *actions = &signals->actions;
	const enum phase phase = (enum phase)atomic_load(&signals->phase);
	if (number == SIGUSR1) {
		if (phase != PHASE_STARTING)
			actions->report(actions->context);
		return;
	}
	switch (phase) {
	case PHASE_STARTING:
		actions->leave(actions->context);
		end_by(number);
		break;
	case PHASE_MOUNTED:
		atomic_store(&signals->phase, PHASE_STOPPING);
		actions->stop(actions->context);
		break;
	case PHASE_STOPPING:
		actions->abandon(actions->context);
		end_by(number);
		break;
	}
}

static void *signals_main(void *argument)
{
	struct signals *signals = argument;
	int number;
	while (sigwait(&signals->set, &number) == 0 && !atomic_load(&signals->quit))
		handle(signals, number);
	return NULL;
}

struct signals *signals_new(const struct signal_actions *actions, struct failure *failure)
{
	static const int waited_for[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
	struct signals *signals = calloc(1, sizeof(*signals));
	if (!signals) {
		failure_set(failure, FAILURE_INTERNAL, "out of memory");
		return NULL;
	}
	signals->actions = *actions;
	sigemptyset(&signals->set);
	for (size_t i = 0; i < sizeof(waited_for) / sizeof(waited_for[0]); i++)
		sigaddset(&signals->set, waited_for[i]);
	signal(SIGPIPE, SIG_IGN);
	pthread_sigmask(SIG_BLOCK, &signals->set, NULL);
	int err = pthread_create(&signals->thread, NULL, signals_main, signals);
	if (err) {
		failure_set(failure, FAILURE_INTERNAL, "cannot start a thread: %s",
		            strerror(err));
		free(signals);
		return NULL;
	}
	return signals;
}

void signals_mounted(struct signals *signals)
{
	atomic_store(&signals->phase, PHASE_MOUNTED);
}

void signals_free(struct signals *signals)
{
	if (!signals)
		return;
	atomic_store(&signals->quit, true);
	pthread_kill(signals->thread, SIGUSR1);
	pthread_join(signals->thread, NULL);
	free(signals);
}
