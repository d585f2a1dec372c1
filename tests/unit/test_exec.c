/* The child of a lane: its command line, its stream, its end, and what ssh's words mean. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "stream_check.h"
#include "transport/exec.h"
#include "transport/exec_argv.h"
#include "transport/ssh_words.h"
#include "transport/tail.h"

/* --- the command line --- */

/* "a|b|c" of the argv for the target, or "refused". The caller frees. */
static char *joined(const struct ssh_target *target, const struct exec_wishes *wishes)
{
	struct failure failure = {0};
	struct bytes text = BYTES_INIT;
	char **argv = exec_argv_build(target, wishes, &failure);
	if (!argv) {
		assert_int_equal(failure.kind, FAILURE_USAGE);
		bytes_add_str(&text, "refused");
		return bytes_steal(&text);
	}
	for (size_t i = 0; argv[i]; i++)
		bytes_addf(&text, "%s%s", i ? "|" : "", argv[i]);
	exec_argv_free(argv);
	return bytes_steal(&text);
}

#define FIXED "-x|-a|-oClearAllForwardings=yes"
#define QUIET "|-oPermitLocalCommand=no|-oRemoteCommand=none|-oRequestTTY=no"

static void argv_of_plain_target(void **state)
{
	(void)state;
	static char host[] = "box", user[] = "me";
	struct ssh_target target = {.alias = host, .user = user, .port = 22};
	CLEANUP_FREE char *text = joined(&target, &(struct exec_wishes){0});
	assert_string_equal(text, "ssh|" FIXED QUIET "|-s|box|sftp");
}

static void argv_of_full_target(void **state)
{
	(void)state;
	static char host[] = "fe80::1%eth0", user[] = "me", config[] = "/etc/my config";
	static char server[] = "/usr/lib/sftp-server", program[] = "/opt/bin/ssh",
	            flag[] = "-v";
	static char jump[] = "ProxyJump=a,b", timeout[] = "connecttimeout 7";
	char *command[] = {program, flag, NULL};
	char *options[] = {jump, timeout, NULL};
	struct ssh_target target = {
	    .alias = host,
	    .user = user,
	    .user_given = true,
	    .port = 2222,
	    .port_given = true,
	    .address_family = AF_INET6,
	    .config_file = config,
	    .sftp_server = server,
	    .ssh_command = command,
	    .ssh_options = options,
	};
	CLEANUP_FREE char *text = joined(&target, &(struct exec_wishes){30, true});
	assert_string_equal(text, "/opt/bin/ssh|-v|" FIXED "|-F/etc/my config|-p2222|-lme|-6|"
	                          "-oProxyJump=a,b|-oconnecttimeout 7" QUIET
	                          "|-oCiphers=^aes128-gcm@openssh.com,aes256-gcm@openssh.com"
	                          "|fe80::1%eth0|/usr/lib/sftp-server");
}

static void wishes_yield_to_the_user(void **state)
{
	(void)state;
	static char host[] = "box", user[] = "me", ciphers[] = "Ciphers=aes256-ctr";
	static char timeout[] = "ConnectTimeout=5";
	char *options[] = {ciphers, timeout, NULL};
	const struct exec_wishes wishes = {30, true};
	struct ssh_target target = {.alias = host, .user = user};
	CLEANUP_FREE char *ours = joined(&target, &wishes);
	assert_non_null(strstr(ours, "|-oCiphers=^aes128-gcm@openssh.com"));
	assert_non_null(strstr(ours, "|-oConnectTimeout=30|"));

	target.ssh_options = options;
	CLEANUP_FREE char *by_option = joined(&target, &wishes);
	assert_null(strstr(by_option, "gcm"));
	assert_null(strstr(by_option, "ConnectTimeout=30"));

	target.ssh_options = NULL;
	target.ciphers_given = true;
	CLEANUP_FREE char *by_config = joined(&target, &wishes);
	assert_null(strstr(by_config, "Ciphers"));

	static char other[] = "plink";
	char *command[] = {other, NULL};
	target.ssh_command = command;
	CLEANUP_FREE char *foreign = joined(&target, &wishes);
	assert_string_equal(foreign, "plink|" FIXED "|-s|box|sftp");
}

static void dangerous_names_are_refused(void **state)
{
	(void)state;
	static const char *const bad[] = {
	    "", "-oProxyCommand=x", "-", "a b", "a;b", "$(x)", "`x`", "a'b", "a\nb", "a|b"};
	static char good[] = "box";
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char name[40];
		snprintf(name, sizeof(name), "%s", bad[i]);
		struct ssh_target host = {.alias = name, .user = good};
		CLEANUP_FREE char *by_host = joined(&host, &(struct exec_wishes){0});
		assert_string_equal(by_host, "refused");
		struct ssh_target user = {.alias = good, .user = name, .user_given = true};
		CLEANUP_FREE char *by_user = joined(&user, &(struct exec_wishes){0});
		assert_string_equal(by_user, "refused");
	}
}

static void server_command_is_split_unless_it_is_a_file(void **state)
{
	(void)state;
	static char command[] = "  /bin/cat  -u\t- ", file[] = "/bin/cat", blank[] = "  ";
	struct ssh_target target = {.mode = SSH_MODE_SERVER, .sftp_server = command};
	CLEANUP_FREE char *split = joined(&target, &(struct exec_wishes){0});
	assert_string_equal(split, "/bin/cat|-u|-");
	target.sftp_server = file;
	CLEANUP_FREE char *whole = joined(&target, &(struct exec_wishes){0});
	assert_string_equal(whole, "/bin/cat");
	target.sftp_server = blank;
	CLEANUP_FREE char *empty = joined(&target, &(struct exec_wishes){0});
	assert_string_equal(empty, "refused");
}

static void environment_is_overlaid(void **state)
{
	(void)state;
	static char a[] = "A=1", ab[] = "AB=2", a2[] = "A=3", c[] = "C=";
	char *base[] = {a, ab, NULL}, *entries[] = {a2, c, NULL};
	char **merged = exec_environment(base, entries);
	assert_non_null(merged);
	assert_string_equal(merged[0], "AB=2");
	assert_string_equal(merged[1], "A=3");
	assert_string_equal(merged[2], "C=");
	assert_null(merged[3]);
	exec_argv_free(merged);
	merged = exec_environment(NULL, NULL);
	assert_non_null(merged);
	assert_null(merged[0]);
	exec_argv_free(merged);
}

/* --- the child --- */

/* A program made for one test, and the folder it is in. */
struct script {
	char folder[40];
	char path[60];
};

static void script_make(struct script *script, const char *body)
{
	snprintf(script->folder, sizeof(script->folder), "/tmp/test-exec-XXXXXX");
	assert_non_null(mkdtemp(script->folder));
	snprintf(script->path, sizeof(script->path), "%s/ssh", script->folder);
	int fd = open(script->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	dprintf(fd, "#!/bin/sh\n%s\n", body);
	close(fd);
}

static void script_remove(struct script *script)
{
	unlink(script->path);
	rmdir(script->folder);
}

/* Starts it as the ssh of a target (or as a local server). */
static struct transport *script_start(struct script *script, struct ssh_target *target,
                                      char **command)
{
	static char host[] = "box", user[] = "me";
	struct transport *transport = NULL;
	struct failure failure = {0};
	target->alias = host;
	target->user = user;
	command[0] = script->path;
	command[1] = NULL;
	target->ssh_command = command;
	if (target->mode == SSH_MODE_SERVER)
		target->sftp_server = script->path;
	if (exec_open(target, clock_now_ns() + 30 * NS_PER_SEC, &transport, &failure))
		fail_msg("%s", failure.text);
	return transport;
}

static void stream_goes_both_ways(void **state)
{
	(void)state;
	static char cat[] = "/bin/cat";
	struct ssh_target target = {.mode = SSH_MODE_SERVER, .sftp_server = cat};
	struct transport *transport = NULL;
	struct failure failure = {0};
	assert_int_equal(exec_open(&target, clock_now_ns() + NS_PER_SEC, &transport, &failure),
	                 0);
	assert_string_equal(transport->kind, "sftp-server");
	stream_check_echo(transport, 64 << 20);
	transport->ops->close(transport);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void missing_program_is_told_at_once(void **state)
{
	(void)state;
	static char path[] = "/nonexistent/sftp-server";
	struct ssh_target target = {.mode = SSH_MODE_SERVER, .sftp_server = path};
	struct transport *transport = NULL;
	struct failure failure = {0};
	assert_int_equal(exec_open(&target, clock_now_ns() + NS_PER_SEC, &transport, &failure),
	                 -1);
	assert_int_equal(failure.kind, FAILURE_USAGE);
	assert_string_equal(failure.text,
	                    "cannot run /nonexistent/sftp-server: No such file or directory: "
	                    "check sftp_server=");
}

static void last_words_become_the_failure(void **state)
{
	(void)state;
	struct script script;
	script_make(&script,
	            "echo 'me@box: Permission denied (publickey,password).' >&2; exit 255");
	struct ssh_target target = {.mode = SSH_MODE_SSH};
	char *command[2];
	struct transport *transport = script_start(&script, &target, command);
	char text[100];
	stream_read_all(transport, text, sizeof(text));
	assert_string_equal(text, "");
	assert_string_equal(transport->ops->last_words(transport),
	                    "me@box: Permission denied (publickey,password).");
	struct failure failure = {0};
	transport_explain(transport, &failure);
	assert_int_equal(failure.kind, FAILURE_AUTH);
	assert_non_null(strstr(failure.text, "Permission denied (publickey,password)"));
	transport->ops->close(transport);
	script_remove(&script);
}

static void failing_server_tells_status_and_words(void **state)
{
	(void)state;
	struct script script;
	script_make(&script, "echo broken >&2; exit 7");
	struct ssh_target target = {.mode = SSH_MODE_SERVER};
	char *command[2];
	struct transport *transport = script_start(&script, &target, command);
	struct failure failure = {0};
	transport_explain(transport, &failure);
	assert_int_equal(failure.kind, FAILURE_PROTOCOL);
	assert_non_null(strstr(failure.text, "ended at once (exit status 7): broken"));
	/* Writing to it is an error and no SIGPIPE. */
	char byte = 'x';
	struct iovec iov = {&byte, 1};
	assert_int_equal(transport->ops->writev(transport, &iov, 1), -EPIPE);
	transport->ops->close(transport);
	script_remove(&script);
}

static void much_on_stderr_does_not_stop_the_stream(void **state)
{
	(void)state;
	struct script script;
	script_make(
	    &script,
	    "i=0; while [ $i -lt 3000 ]; do\n"
	    "echo 'line of words that nobody reads, about eighty bytes of them, number' $i "
	    ">&2\ni=$((i + 1)); done; echo done");
	struct ssh_target target = {.mode = SSH_MODE_SSH};
	char *command[2];
	struct transport *transport = script_start(&script, &target, command);
	char text[100];
	stream_read_all(transport, text, sizeof(text));
	assert_string_equal(text, "done\n");
	const char *words = transport->ops->last_words(transport);
	assert_true(strlen(words) <= TAIL_MAX);
	assert_string_equal(strrchr(words, ' '), " 2999");
	transport->ops->close(transport);
	script_remove(&script);
}

static void stubborn_child_is_killed_in_time(void **state)
{
	(void)state;
	struct script script;
	script_make(&script, "trap '' TERM HUP INT; echo $$; while :; do sleep 60; done");
	for (int server = 0; server < 2; server++) {
		struct ssh_target target = {.mode = server ? SSH_MODE_SERVER : SSH_MODE_SSH};
		char *command[2], text[20];
		struct transport *transport = script_start(&script, &target, command);
		struct pollfd fds[4];
		bool ready;
		int count = transport->ops->poll_set(transport, false, fds, &ready);
		assert_true(poll(fds, (nfds_t)count, 5000) > 0);
		struct iovec iov = {text, sizeof(text) - 1};
		ssize_t n = transport->ops->readv(transport, &iov, 1);
		assert_true(n > 0);
		text[n] = '\0';
		pid_t pid = (pid_t)strtol(text, NULL, 10);
		uint64_t start = clock_now_ns();
		transport->ops->close(transport);
		assert_true(clock_now_ns() - start < NS_PER_SEC);
		assert_int_equal(kill(pid, 0), -1);
		assert_int_equal(errno, ESRCH);
	}
	script_remove(&script);
}

static char *const *fixed_environment(struct ssh_prompter *prompter)
{
	static char entry[] = "MOORFS_TEST_ENTRY=here";
	static char *entries[] = {entry, NULL};
	(void)prompter;
	return entries;
}

/* The test program itself as the child: what it has inherited. */
static int report(void)
{
	sigset_t blocked;
	struct sigaction action;
	const char *entry = getenv("MOORFS_TEST_ENTRY");
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	sigaction(SIGUSR1, NULL, &action);
	int open_files = 0;
	for (int fd = 0; fd < 1000; fd++)
		open_files += fcntl(fd, F_GETFD) >= 0;
	printf("int=%d quit=%d term=%d usr1=%s session=%d entry=%s files=%d",
	       sigismember(&blocked, SIGINT), sigismember(&blocked, SIGQUIT),
	       sigismember(&blocked, SIGTERM),
	       action.sa_handler == SIG_DFL ? "default" : "kept",
	       (int)getsid(0) == (int)getpid(), entry ? entry : "none", open_files);
	return 0;
}

static void get_report(struct ssh_prompter *prompter, char *text, size_t size)
{
	static char host[] = "box", user[] = "me", self[] = "/proc/self/exe",
	            flag[] = "--report";
	char *command[] = {self, flag, NULL};
	struct ssh_target target = {.mode = SSH_MODE_SSH,
	                            .alias = host,
	                            .user = user,
	                            .ssh_command = command,
	                            .prompter = prompter};
	struct transport *transport = NULL;
	struct failure failure = {0};
	/* What a library might leave open, and what a program might ignore or block. */
	int leaked = fcntl(STDOUT_FILENO, F_DUPFD, 50);
	signal(SIGUSR1, SIG_IGN);
	sigset_t term, before;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &term, &before);
	assert_int_equal(exec_open(&target, clock_now_ns() + NS_PER_SEC, &transport, &failure),
	                 0);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	signal(SIGUSR1, SIG_DFL);
	close(leaked);
	stream_read_all(transport, text, size);
	transport->ops->close(transport);
}

static void child_that_may_prompt_stays_but_ignores_ctrl_c(void **state)
{
	(void)state;
	char text[300];
	get_report(NULL, text, sizeof(text));
	assert_string_equal(text,
	                    "int=1 quit=1 term=0 usr1=default session=0 entry=none files=3");
}

static void child_with_askpass_gets_its_own_session(void **state)
{
	(void)state;
	char text[300];
	struct ssh_prompter prompter = {.child_environment = fixed_environment};
	get_report(&prompter, text, sizeof(text));
	assert_string_equal(text,
	                    "int=0 quit=0 term=0 usr1=default session=1 entry=here files=3");
}

/* --- words --- */

static void words_of_ssh_are_understood(void **state)
{
	(void)state;
	static const struct {
		const char *words;
		int status;
		enum failure_kind kind;
		const char *part;
	} cases[] = {
	    {"@@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n@@@@@\nwords\n"
	     "Offending ED25519 key in /home/u/.ssh/known_hosts:17\n"
	     "Host key verification failed.",
	     255, FAILURE_HOST_KEY, "/home/u/.ssh/known_hosts:17"},
	    {"No ED25519 host key is known for box and you have requested strict checking.\n"
	     "Host key verification failed.",
	     255, FAILURE_HOST_KEY, "accept-new"},
	    {"u@box: Permission denied (publickey).", 255, FAILURE_AUTH, "(publickey)"},
	    {"Warning: Identity file /x not accessible: No such file or directory.\n"
	     "u@box: Permission denied (password).",
	     255, FAILURE_AUTH, "(password)"},
	    {"ssh: Could not resolve hostname box: Name or service not known", 255,
	     FAILURE_UNREACHABLE, "resolve"},
	    {"ssh: connect to host box port 22: Connection refused", 255, FAILURE_UNREACHABLE,
	     "refused"},
	    {"ssh: connect to host box port 22: Connection timed out", 255, FAILURE_UNREACHABLE,
	     "firewall"},
	    {"ssh: connect to host box port 22: No route to host", 255, FAILURE_UNREACHABLE,
	     "route"},
	    {"subsystem request failed on channel 0", 255, FAILURE_PROTOCOL, "sftp-server"},
	    {"kex_exchange_identification: read: Connection reset by peer", 255,
	     FAILURE_TOO_MANY, "MaxStartups"},
	    {"Unable to negotiate with 1.2.3.4 port 22: no matching host key type found. Their "
	     "offer: ssh-rsa",
	     255, FAILURE_PROTOCOL, "HostKeyAlgorithms=+"},
	    {"command-line: line 0: Bad configuration option: foo", 255, FAILURE_USAGE, "foo"},
	    {"sh: 1: /x/sftp-server: not found", 127, FAILURE_PROTOCOL, "/x/sftp-server"},
	    {"something new", 255, FAILURE_UNREACHABLE, "box: something new"},
	    {"", 255, FAILURE_UNREACHABLE, "by hand"},
	    {"", 1, FAILURE_PROTOCOL, "exit status 1"},
	    {"", 256 + 9, FAILURE_UNREACHABLE, "signal 9"},
	    {"", -1, FAILURE_UNREACHABLE, "no answer"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct failure failure = {0};
		ssh_words_explain("box", cases[i].words, cases[i].status, &failure);
		if (failure.kind != cases[i].kind || !strstr(failure.text, cases[i].part) ||
		    strncmp(failure.text, "box: ", 5) != 0)
			fail_msg("case %zu: kind %d: %s", i, (int)failure.kind, failure.text);
	}
}

static void tail_keeps_the_newest_and_is_harmless(void **state)
{
	(void)state;
	static struct tail tail;
	assert_string_equal(tail_text(&tail), "");
	tail_add(&tail, "\033[31mred\r\n\n", 11);
	assert_string_equal(tail_text(&tail), "?[31mred");
	tail_add(&tail, "next", 4);
	assert_string_equal(tail_text(&tail), "?[31mred\nnext");
	for (int i = 0; i < 5000; i++) {
		char line[20];
		int length = snprintf(line, sizeof(line), "line %d\n", i);
		tail_add(&tail, line, (size_t)length);
	}
	const char *text = tail_text(&tail);
	assert_true(strlen(text) <= TAIL_MAX);
	assert_int_equal(strncmp(text, "line ", 5), 0);
	assert_string_equal(strrchr(text, '\n'), "\nline 4999");
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--report"))
		return report();
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(argv_of_plain_target),
	    cmocka_unit_test(argv_of_full_target),
	    cmocka_unit_test(wishes_yield_to_the_user),
	    cmocka_unit_test(dangerous_names_are_refused),
	    cmocka_unit_test(server_command_is_split_unless_it_is_a_file),
	    cmocka_unit_test(environment_is_overlaid),
	    cmocka_unit_test(stream_goes_both_ways),
	    cmocka_unit_test(missing_program_is_told_at_once),
	    cmocka_unit_test(last_words_become_the_failure),
	    cmocka_unit_test(failing_server_tells_status_and_words),
	    cmocka_unit_test(much_on_stderr_does_not_stop_the_stream),
	    cmocka_unit_test(stubborn_child_is_killed_in_time),
	    cmocka_unit_test(child_that_may_prompt_stays_but_ignores_ctrl_c),
	    cmocka_unit_test(child_with_askpass_gets_its_own_session),
	    cmocka_unit_test(words_of_ssh_are_understood),
	    cmocka_unit_test(tail_keeps_the_newest_and_is_harmless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
