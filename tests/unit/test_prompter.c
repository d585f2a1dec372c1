/*
 * Who answers a question, and in which order: config/prompter.h, with a real terminal of our
 * own and this very program as ssh's askpass.
 */
#include <errno.h>
#include <pthread.h>
#include <pty.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/prompter.h"
#include "config/spawn.h"

static struct ssh_prompter *new_prompter(const char *password, bool batch)
{
	struct secret *secret = password ? secret_new(password, strlen(password)) : NULL;
	struct ssh_prompter *prompter = prompter_new(secret, batch);
	assert_non_null(prompter);
	return prompter;
}

static void assert_answer(struct ssh_prompter *prompter, const char *prompt, bool fresh,
                          const char *wanted)
{
	const struct secret *answer = prompter->ask(prompter, prompt, false, fresh);
	if (!wanted) {
		assert_null(answer);
		return;
	}
	assert_non_null(answer);
	assert_string_equal(secret_text(answer), wanted);
}

/* ---- an askpass program ---- */

static char program[64], log_path[80];

/* Answers "p-" and the prompt, and notes that it ran. */
static int make_program(void **state)
{
	(void)state;
	snprintf(program, sizeof(program), "/tmp/moorfs-askpass-XXXXXX");
	int fd = mkstemp(program);
	if (fd < 0)
		return -1;
	snprintf(log_path, sizeof(log_path), "%s.log", program);
	dprintf(
	    fd,
	    "#!/bin/sh\necho \"$1\" >> %s\ncase $1 in\n"
	    "*refuse*) exit 1;;\n*trust*) echo yes;;\n*doubt*) echo no;;\n*mumble*) echo x;;\n"
	    "*slow*) exec sleep 60;;\n"
	    "*) echo \"p-$1\";;\nesac\n",
	    log_path);
	int err = fchmod(fd, 0700) | close(fd);
	return err | setenv("SSH_ASKPASS", program, 1) |
	       setenv("SSH_ASKPASS_REQUIRE", "force", 1);
}

static int drop_program(void **state)
{
	(void)state;
	unlink(program);
	unlink(log_path);
	unsetenv("SSH_ASKPASS");
	unsetenv("SSH_ASKPASS_REQUIRE");
	return 0;
}

/* How often the program has run. */
static int runs(void)
{
	FILE *file = fopen(log_path, "re");
	int lines = 0;
	for (int c; file && (c = getc(file)) != EOF;)
		lines += c == '\n';
	if (file)
		fclose(file);
	return lines;
}

static void test_program(void **state)
{
	(void)state;
	struct ssh_prompter *prompter = new_prompter(NULL, false);
	assert_answer(prompter, "one", false, "p-one");
	assert_answer(prompter, "one", false, "p-one");
	assert_int_equal(runs(), 1);
	assert_answer(prompter, "one", true, "p-one");
	assert_int_equal(runs(), 2);
	assert_answer(prompter, "two", false, "p-two");
	assert_answer(prompter, "refuse", false, NULL);
	assert_int_equal(runs(), 4);

	assert_int_equal(prompter->confirm(prompter, "trust it"), 1);
	assert_int_equal(prompter->confirm(prompter, "doubt it"), 0);
	assert_int_equal(runs(), 6);
	assert_int_equal(prompter->confirm(prompter, "trust it"), 1); /* remembered */
	assert_int_equal(runs(), 6);
	assert_int_equal(prompter->confirm(prompter, "refuse"), -1);
	assert_int_equal(prompter->confirm(prompter, "mumble"), -1); /* after three tries */

	prompter_stop_asking(prompter);
	assert_answer(prompter, "one", false, "p-one");
	assert_answer(prompter, "one", true, NULL);
	assert_answer(prompter, "three", false, NULL);
	assert_int_equal(prompter->confirm(prompter, "trust me"), -1);
	prompter_free(prompter);
}

static void test_password(void **state)
{
	(void)state;
	struct ssh_prompter *prompter = new_prompter("s3cret", false);
	assert_answer(prompter, "joe@h's password: ", false, "s3cret");
	assert_answer(prompter, "Enter passphrase for key 'x': ", false, "s3cret");
	assert_int_equal(runs(), 0);
	assert_answer(prompter, "Code: ", false, "p-Code: ");
	/* it was wrong: a person is asked, and that answer counts from then on */
	assert_answer(prompter, "joe@h's password: ", true, "p-joe@h's password: ");
	assert_answer(prompter, "joe@h's password: ", false, "p-joe@h's password: ");
	prompter_free(prompter);
}

static void test_batch(void **state)
{
	(void)state;
	struct ssh_prompter *prompter = new_prompter(NULL, true);
	assert_answer(prompter, "one", false, NULL);
	assert_int_equal(prompter->confirm(prompter, "trust it"), -1);
	assert_null(prompter->child_environment(prompter));
	assert_int_equal(runs(), 0);
	prompter_free(prompter);
}

static void test_never(void **state)
{
	(void)state;
	setenv("SSH_ASKPASS_REQUIRE", "never", 1);
	struct ssh_prompter *prompter = new_prompter(NULL, false);
	prompter_stop_asking(prompter); /* there may be a terminal */
	assert_answer(prompter, "one", false, NULL);
	assert_int_equal(runs(), 0);
	prompter_free(prompter);
}

/* Several lanes want the same answer at once: one question. */
static void *ask_same(void *context)
{
	struct ssh_prompter *prompter = context;
	const struct secret *answer = prompter->ask(prompter, "same", false, false);
	return answer && strcmp(secret_text(answer), "p-same") == 0 ? context : NULL;
}

static void test_together(void **state)
{
	(void)state;
	struct ssh_prompter *prompter = new_prompter(NULL, false);
	pthread_t threads[8];
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_same, prompter), 0);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		void *result;
		pthread_join(threads[i], &result);
		assert_ptr_equal(result, prompter);
	}
	assert_int_equal(runs(), 1);
	prompter_free(prompter);
}

static void *stop_soon(void *context)
{
	usleep(200 * 1000);
	prompter_stop_asking(context);
	return NULL;
}

static void test_stop_while_asking(void **state)
{
	(void)state;
	struct ssh_prompter *prompter = new_prompter(NULL, false);
	pthread_t thread;
	uint64_t start = clock_now_ns();
	assert_int_equal(pthread_create(&thread, NULL, stop_soon, prompter), 0);
	assert_answer(prompter, "slow", false, NULL);
	uint64_t took = clock_now_ns() - start;
	assert_true(took < 5 * NS_PER_SEC);
	uint64_t asked = prompter->asked_ns(prompter);
	assert_true(asked > 100 * NS_PER_MS && asked <= took);
	assert_int_equal(prompter->asked_ns(prompter), asked); /* it stands still again */
	pthread_join(thread, NULL);
	prompter_free(prompter);
}

/* ---- through a child, as ssh asks ---- */

/*
 * Plays ssh: asks the prompts one after the other through the environment that the prompter
 * gives, from one process. The output and the exit codes go to `out`.
 */
static void play_ssh(struct ssh_prompter *prompter, const char *script, struct bytes *out)
{
	struct bytes command = BYTES_INIT;
	char *const *environment = prompter->child_environment(prompter);
	assert_non_null(environment);
	for (; *environment; environment++) {
		const char *equals = strchr(*environment, '=');
		assert_non_null(equals);
		assert_null(strchr(equals, '\''));
		bytes_addf(&command, "export %.*s='%s'\n", (int)(equals - *environment),
		           *environment, equals + 1);
	}
	bytes_addf(&command, "ask() { \"$SSH_ASKPASS\" \"$1\" || echo \"<$?>\"; }\n%s", script);
	assert_false(command.failed);
	char *argv[] = {(char[]){"/bin/sh"}, (char[]){"-c"}, command.data, NULL};
	int status;
	bytes_clear(out);
	assert_int_equal(spawn_capture(argv, 20 * NS_PER_SEC, NULL, out, NULL, &status), 0);
	bytes_add_byte(out, 0);
	bytes_release(&command);
}

static void test_child(void **state)
{
	(void)state;
	struct bytes out = BYTES_INIT;
	struct ssh_prompter *prompter = new_prompter("s3cret", false);

	play_ssh(prompter, "env; ask \"j's password: \"", &out);
	assert_non_null(strstr(out.data, "SSH_ASKPASS_REQUIRE=force\n"));
	const char *answer = strstr(out.data, "s3cret");
	assert_non_null(answer);
	assert_string_equal(answer, "s3cret\n"); /* the answer, not the environment */

	/* Asked again by the same ssh, the answer was wrong; another ssh gets the newer one. */
	play_ssh(prompter, "ask 'a password: '; ask 'a password: '", &out);
	assert_string_equal(out.data, "s3cret\np-a password: \n");
	play_ssh(prompter, "ask 'a password: '", &out);
	assert_string_equal(out.data, "p-a password: \n");

	play_ssh(prompter, "ask 'trust it (yes/no)? '; ask 'doubt it (yes/no)? '", &out);
	assert_string_equal(out.data, "yes\nno\n");
	play_ssh(prompter, "export SSH_ASKPASS_PROMPT=confirm\nask trust; ask doubt", &out);
	assert_string_equal(out.data, "yes\n<1>\n");
	play_ssh(prompter,
	         "export SSH_ASKPASS_PROMPT=none\n"
	         "\"$SSH_ASKPASS\" touch & sleep 0.5; kill $! && echo waited",
	         &out);
	assert_string_equal(out.data, "waited\n");

	prompter_stop_asking(prompter);
	play_ssh(prompter, "ask 'a password: '; ask new; ask \"j's password: \"", &out);
	assert_string_equal(out.data, "p-a password: \n<1>\ns3cret\n");

	/* a socket that is not there */
	play_ssh(prompter, "MOORFS_ASKPASS_SOCKET=gone; ask x", &out);
	assert_string_equal(out.data, "<1>\n");
	prompter_free(prompter);
	bytes_release(&out);
}

static const char *socket_name(struct ssh_prompter *prompter)
{
	char *const *entry = prompter->child_environment(prompter);
	while (*entry && strncmp(*entry, ASKPASS_SOCKET_VARIABLE "=", 22) != 0)
		entry++;
	assert_non_null(*entry);
	return *entry + strlen(ASKPASS_SOCKET_VARIABLE) + 1;
}

/* What comes back for a packet: its length, 0 when the server hangs up. */
static ssize_t send_packet(const char *name, const char *packet, size_t length, char *reply,
                           size_t size)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	memcpy(address.sun_path + 1, name, strlen(name));
	socklen_t used = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, used), 0);
	if (length > 0 && send(fd, packet, length, MSG_NOSIGNAL) < 0)
		return -1;
	shutdown(fd, SHUT_WR);
	return recv(fd, reply, size, 0);
}

static void test_bad_packets(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		size_t length;
	} packets[] = {
	    {"", 0},
	    {"x", 1},
	    {"\0", 1},
	    {"1\0", 2},
	    {"1\0009\0p\0", 6},
	    {"-1\0000\0p\0", 7},
	    {"1x\0000\0p\0", 7},
	    {"1\0000\0p", 5},
	    {"1\00000\0p\0", 7},
	    {"1\0000\0", 4},
	};
	struct ssh_prompter *prompter = new_prompter("s3cret", false);
	const char *name = socket_name(prompter);
	char reply[64];
	for (size_t i = 0; i < ARRAY_LEN(packets); i++)
		assert_true(send_packet(name, packets[i].bytes, packets[i].length, reply,
		                        sizeof(reply)) <=
		            (ssize_t)(i == ARRAY_LEN(packets) - 1));
	ssize_t length = send_packet(name, "1\0000\0password\0", 13, reply, sizeof(reply));
	assert_int_equal(length, 7);
	assert_memory_equal(reply, "1s3cret", 7);
	prompter_free(prompter);
}

/* Another user who finds the socket is turned away. */
static void test_other_user(void **state)
{
	(void)state;
	if (geteuid() != 0)
		skip();
	struct ssh_prompter *prompter = new_prompter("s3cret", false);
	const char *name = socket_name(prompter);
	log_set_level(LOG_LEVEL_ERROR);
	pid_t pid = fork();
	if (pid == 0) {
		char reply[64];
		if (setuid(65534) < 0)
			_exit(2);
		_exit(send_packet(name, "1\0000\0password\0", 13, reply, sizeof(reply)) > 0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	log_set_level(LOG_LEVEL_WARN);
	prompter_free(prompter);
}

/* ---- the terminal ---- */

/* Reads from the terminal's other side until the text comes. */
static void expect(int fd, const char *wanted, struct bytes *seen)
{
	while (!seen->data || !strstr(seen->data, wanted)) {
		char buffer[256];
		ssize_t count = read(fd, buffer, sizeof(buffer) - 1);
		if (count <= 0)
			fail_msg("the terminal shows no '%s' but '%s'", wanted,
			         seen->data ? seen->data : "");
		bytes_add(seen, buffer, (size_t)count);
	}
}

static bool echoes(int fd)
{
	struct termios termios;
	assert_int_equal(tcgetattr(fd, &termios), 0);
	return termios.c_lflag & ECHO;
}

/* Starts `body` on a terminal of its own; the other side's descriptor. */
static pid_t on_terminal(int (*body)(struct ssh_prompter *), int *fd)
{
	pid_t pid = forkpty(fd, NULL, NULL, NULL);
	assert_true(pid >= 0);
	if (pid == 0) {
		unsetenv("SSH_ASKPASS_REQUIRE"); /* the terminal comes first then */
		struct ssh_prompter *prompter = prompter_new(NULL, false);
		_exit(prompter ? body(prompter) : 99);
	}
	return pid;
}

static int wait_for(pid_t pid)
{
	int status = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int ask_two(struct ssh_prompter *prompter)
{
	const struct secret *hidden = prompter->ask(prompter, "Hidden\033[1m: ", false, false);
	if (!hidden || strcmp(secret_text(hidden), "hush") != 0)
		return 1;
	const struct secret *shown = prompter->ask(prompter, "Shown: ", true, false);
	if (!shown || strcmp(secret_text(shown), "") != 0)
		return 2;
	return prompter->confirm(prompter, "Sure (yes/no)? ") == 1 ? 0 : 3;
}

static void test_terminal(void **state)
{
	(void)state;
	int fd;
	struct bytes seen = BYTES_INIT;
	pid_t pid = on_terminal(ask_two, &fd);
	expect(fd, "Hidden?[1m: ", &seen); /* no escape sequence reached the terminal */
	assert_false(echoes(fd));
	assert_int_equal(write(fd, "hush\n", 5), 5);
	expect(fd, "Shown: ", &seen);
	assert_true(echoes(fd));
	assert_int_equal(write(fd, "\n", 1), 1);
	expect(fd, "Sure (yes/no)? ", &seen);
	assert_int_equal(write(fd, "maybe\n", 6), 6);
	expect(fd, "Please type 'yes' or 'no'", &seen);
	expect(fd, "no'\r\nSure (yes/no)? ", &seen); /* what is typed before it is dropped */
	assert_int_equal(write(fd, "YES\n", 4), 4);
	assert_int_equal(wait_for(pid), 0);
	assert_null(strstr(seen.data, "hush"));
	close(fd);
	bytes_release(&seen);
}

static int ask_once(struct ssh_prompter *prompter)
{
	return prompter->ask(prompter, "Password: ", false, false) ? 1 : 2;
}

/* Ctrl-C ends the program, as it would have without the prompt, and the echo is on again. */
static void test_interrupted(void **state)
{
	(void)state;
	static const int signals[] = {0, SIGTERM, SIGHUP};
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		int fd;
		struct bytes seen = BYTES_INIT;
		pid_t pid = on_terminal(ask_once, &fd);
		expect(fd, "Password: ", &seen);
		assert_false(echoes(fd));
		if (signals[i])
			kill(pid, signals[i]);
		else
			assert_int_equal(write(fd, "half\003", 5), 5);
		expect(fd, "\r\n", &seen);
		int status = wait_for(pid);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signals[i] ? signals[i] : SIGINT);
		assert_true(echoes(fd));
		close(fd);
		bytes_release(&seen);
	}
}

static int ask_after_setsid(struct ssh_prompter *prompter)
{
	if (fork() != 0) {
		int status;
		wait(&status);
		return WEXITSTATUS(status);
	}
	unsetenv("SSH_ASKPASS");
	setsid();
	/* no terminal and no program: nobody to ask */
	_exit(prompter->ask(prompter, "Password: ", false, false) ? 1 : 0);
}

static void test_no_terminal(void **state)
{
	(void)state;
	int fd;
	unsetenv("SSH_ASKPASS");
	pid_t pid = on_terminal(ask_after_setsid, &fd);
	assert_int_equal(wait_for(pid), 0);
	close(fd);
}

/* ---- password_stdin ---- */

static void test_read_line(void **state)
{
	(void)state;
	static const struct {
		const char *input, *line, *rest, *message;
	} cases[] = {
	    {"pass word\nrest\n", "pass word", "rest\n", NULL},
	    {"no end", "no end", "", NULL},
	    {" #\\\r\n", " #\\\r", "", NULL},
	    {"", NULL, "",
	     "option 'password_stdin': standard input has no first line: write the "
	     "password to it"},
	    {"\nx", NULL, "x",
	     "option 'password_stdin': standard input has no first line: write "
	     "the password to it"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int fds[2];
		char rest[64];
		struct secret *line = NULL;
		struct failure failure = {.kind = FAILURE_NONE};
		assert_int_equal(pipe(fds), 0);
		assert_true(write(fds[1], cases[i].input, strlen(cases[i].input)) >= 0);
		close(fds[1]);
		int result = prompter_read_line(fds[0], &line, &failure);
		assert_int_equal(result, cases[i].line ? 0 : -1);
		if (cases[i].line)
			assert_string_equal(secret_text(line), cases[i].line);
		else
			assert_string_equal(failure.text, cases[i].message);
		ssize_t left = read(fds[0], rest, sizeof(rest));
		assert_int_equal(left, strlen(cases[i].rest));
		assert_memory_equal(rest, cases[i].rest, (size_t)left);
		secret_free(line);
		close(fds[0]);
	}
	struct failure failure = {.kind = FAILURE_NONE};
	struct secret *line = NULL;
	assert_int_equal(prompter_read_line(-1, &line, &failure), -1);
	assert_string_equal(failure.text,
	                    "option 'password_stdin': cannot read standard input: "
	                    "Bad file descriptor");
}

#define WITH_PROGRAM(test) cmocka_unit_test_setup_teardown(test, make_program, drop_program)

int main(int argc, char **argv)
{
	if (askpass_requested())
		return askpass_main(argc, argv);
	const struct CMUnitTest tests[] = {
	    WITH_PROGRAM(test_program),        WITH_PROGRAM(test_password),
	    WITH_PROGRAM(test_batch),          WITH_PROGRAM(test_never),
	    WITH_PROGRAM(test_together),       WITH_PROGRAM(test_stop_while_asking),
	    WITH_PROGRAM(test_child),          WITH_PROGRAM(test_bad_packets),
	    cmocka_unit_test(test_other_user), WITH_PROGRAM(test_terminal),
	    WITH_PROGRAM(test_interrupted),    WITH_PROGRAM(test_no_terminal),
	    cmocka_unit_test(test_read_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
