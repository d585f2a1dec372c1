#include "config/terminal.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"

enum { LINE_MAX_BYTES = 4096, LOOK_AROUND_MS = 100 };

static int open_terminal(void)
{
	return open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY);
}

bool terminal_present(void)
{
	CLEANUP_CLOSE int fd = open_terminal();
	return fd >= 0;
}

/* ---- signals while the echo is off ---- */

/*
 * The last signal that came. A handler can reach nothing but a global; it is written while
 * terminal_ask() runs and by nobody else.
 */
static volatile sig_atomic_t caught_signal;

static void catch_signal(int number)
{
	caught_signal = number;
}

static const struct {
	int number;
	void (*handler)(int);
} guarded[] = {
    {SIGINT, catch_signal},  {SIGTERM, catch_signal}, {SIGHUP, catch_signal},
    {SIGQUIT, catch_signal}, {SIGTSTP, SIG_IGN}, /* a stop would leave the echo off */
};

/* Signals that the program handles or ignores itself are left alone. */
static void guard_signals(struct sigaction saved[ARRAY_LEN(guarded)])
{
	caught_signal = 0;
	for (size_t i = 0; i < ARRAY_LEN(guarded); i++) {
		struct sigaction action = {.sa_handler = guarded[i].handler};
		sigemptyset(&action.sa_mask);
		sigaction(guarded[i].number, NULL, &saved[i]);
		if (!(saved[i].sa_flags & SA_SIGINFO) && saved[i].sa_handler == SIG_DFL)
			sigaction(guarded[i].number, &action, NULL);
	}
}

static void release_signals(const struct sigaction saved[ARRAY_LEN(guarded)])
{
	for (size_t i = 0; i < ARRAY_LEN(guarded); i++)
		sigaction(guarded[i].number, &saved[i], NULL);
	if (caught_signal)
		kill(getpid(), caught_signal);
}

/* ---- text ---- */

static void write_all(int fd, const char *text, size_t length)
{
	while (length > 0) {
		ssize_t count = write(fd, text, length);
		if (count < 0 && errno == EINTR && !caught_signal)
			continue;
		if (count <= 0)
			return;
		text += count;
		length -= (size_t)count;
	}
}

/* Control characters, those of UTF-8's second block too, become '?'. */
static void write_harmless(int fd, const char *text)
{
	struct bytes out = BYTES_INIT;
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		bool second_block = at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0;
		bool harmful = iscntrl(*at) && *at != '\n' && *at != '\t';
		bytes_add_byte(&out, harmful || second_block ? '?' : *at);
		at += second_block;
	}
	if (!out.failed)
		write_all(fd, out.data ? out.data : "", out.length);
	bytes_release(&out);
}

void terminal_say(const char *text)
{
	CLEANUP_CLOSE int fd = open_terminal();
	if (fd < 0)
		return;
	write_harmless(fd, text);
	write_all(fd, "\n", 1);
}

/* ---- asking ---- */

/* A line without its end; 0 or -errno. */
static int read_line(int fd, const _Atomic bool *stop, char *line, size_t size, size_t *length)
{
	*length = 0;
	for (;;) {
		struct pollfd pollfd = {.fd = fd, .events = POLLIN};
		if (*stop || caught_signal)
			return -ECANCELED;
		int ready = poll(&pollfd, 1, LOOK_AROUND_MS);
		if (ready < 0 && errno != EINTR)
			return -errno;
		if (ready <= 0)
			continue;
		ssize_t count = read(fd, line + *length, size - *length);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			return -errno;
		if (count == 0)
			return -ECANCELED;
		*length += (size_t)count;
		if (line[*length - 1] == '\n') {
			(*length)--;
			return 0;
		}
		if (*length == size)
			return -EMSGSIZE;
	}
}

static int ask_on(int fd, const char *prompt, bool echo, const _Atomic bool *stop,
                  struct secret **answer)
{
	struct termios before, quiet;
	if (tcgetattr(fd, &before) < 0)
		return -errno;
	quiet = before;
	if (!echo)
		quiet.c_lflag &= ~(tcflag_t)(ECHO | ECHOE | ECHOK | ECHONL);
	if (tcsetattr(fd, TCSAFLUSH, &quiet) < 0)
		return -errno;

	char line[LINE_MAX_BYTES];
	size_t length;
	write_harmless(fd, prompt);
	int err = read_line(fd, stop, line, sizeof(line), &length);
	tcsetattr(fd, TCSAFLUSH, &before);
	if (!echo || err < 0)
		write_all(fd, "\n", 1);
	if (err == 0) {
		*answer = secret_new(line, length);
		err = *answer ? 0 : -ENOMEM;
	}
	secret_wipe(line, sizeof(line));
	return err;
}

int terminal_ask(const char *prompt, bool echo, const _Atomic bool *stop,
                 struct secret **answer)
{
	struct sigaction saved[ARRAY_LEN(guarded)];
	CLEANUP_CLOSE int fd = open_terminal();
	if (fd < 0)
		return -ENXIO;
	guard_signals(saved);
	int err = ask_on(fd, prompt, echo, stop, answer);
	release_signals(saved);
	return err;
}
