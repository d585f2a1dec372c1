/* The transports against a real sshd: keys, prompts, the stream, and servers that are no good.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "live_setup.h"
#include "stream_check.h"

/* --- keys --- */

static void key_file_and_64_mib_both_ways(void **state)
{
	(void)state;
	struct setup setup;
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup_key(&setup, &echo_server, "missing");
	setup_key(&setup, &echo_server, "stranger");
	setup_key(&setup, &echo_server, "plain");
	assert_int_equal(setup_open(&setup), 0);
	assert_string_equal(setup.transport->kind, "ssh2");
	stream_check_echo(setup.transport, 64 << 20);
	assert_string_equal(setup.transport->ops->last_words(setup.transport), "");
	setup_release(&setup);
}

static void ecdsa_key_works(void **state)
{
	(void)state;
	struct setup setup;
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup_key(&setup, &echo_server, "ecdsa");
	expect_open(&setup, 1 << 20);
	setup_release(&setup);
}

static void many_rekeyings_keep_the_stream(void **state)
{
	(void)state;
	struct live_sshd sshd;
	struct setup setup;
	live_sshd_start(&sshd, "sftp /bin/cat", "RekeyLimit 1M");
	setup_init(&setup, &sshd, SSH_MODE_SSH2);
	setup_key(&setup, &sshd, "plain");
	expect_open(&setup, 24 << 20);
	setup_release(&setup);
	live_sshd_stop(&sshd);
}

static void compression_works(void **state)
{
	(void)state;
	struct setup setup;
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup_key(&setup, &echo_server, "plain");
	setup.target.compression = true;
	expect_open(&setup, 4 << 20);
	setup_release(&setup);
}

static void locked_key_asks_for_its_passphrase(void **state)
{
	(void)state;
	struct setup setup;
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup_key(&setup, &echo_server, "locked");
	setup.person.answers[0] = "wrong";
	setup.person.answers[1] = "open sesame";
	expect_open(&setup, 1000);
	assert_int_equal(setup.person.asked, 2);
	assert_non_null(strstr(setup.person.last, "/locked"));
	setup_release(&setup);

	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup_key(&setup, &echo_server, "locked");
	expect_failure(&setup, FAILURE_AUTH, "nobody to ask for the passphrase");
	setup_release(&setup);
}

static void passphrase_is_not_asked_for_a_key_the_server_refuses(void **state)
{
	(void)state;
	struct setup setup;
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	live_run("cd %s && ssh-keygen -q -t ed25519 -N secret -f foreign", echo_server.folder);
	setup_key(&setup, &echo_server, "foreign");
	setup.person.answers[0] = "secret";
	expect_failure(&setup, FAILURE_AUTH, "foreign refused");
	assert_int_equal(setup.person.asked, 0);
	setup_release(&setup);
}

static void failure_lists_what_was_offered_and_tried(void **state)
{
	(void)state;
	struct setup setup;
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup_key(&setup, &echo_server, "stranger");
	expect_failure(&setup, FAILURE_AUTH, "it offers: publickey; tried: key ");
	live_run("chmod 644 %s/plain", echo_server.folder);
	setup.keys[0] = NULL;
	setup_key(&setup, &echo_server, "plain");
	expect_failure(&setup, FAILURE_AUTH, "others may read it");
	live_run("chmod 600 %s/plain", echo_server.folder);
	live_sshd_write(&echo_server, "nonsense", "no key at all\n");
	live_run("chmod 600 %s/nonsense", echo_server.folder);
	setup.keys[0] = NULL;
	setup_key(&setup, &echo_server, "nonsense");
	expect_failure(&setup, FAILURE_AUTH, "no private key");
	setup_release(&setup);
}

static void agent_keys_are_used(void **state)
{
	(void)state;
	struct setup setup;
	char socket_path[120], public_path[120];
	live_sshd_path(&echo_server, "agent", socket_path, sizeof(socket_path));
	live_run("ssh-agent -a %s > %s/agent.env", socket_path, echo_server.folder);
	live_run(
	    "cd %s && for k in rsa stranger plain; do SSH_AUTH_SOCK=%s ssh-add -q $k; done",
	    echo_server.folder, socket_path);

	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup.target.agent_socket = socket_path;
	expect_open(&setup, 1000);

	/* IdentitiesOnly: only what an IdentityFile names, be it by its public half alone. */
	setup.target.identities_only = true;
	expect_failure(&setup, FAILURE_AUTH, "tried: nothing");
	live_run("cd %s && cp plain.pub only.pub", echo_server.folder);
	live_sshd_path(&echo_server, "only", public_path, sizeof(public_path));
	setup.keys[0] = public_path;
	expect_open(&setup, 1000);
	setup_release(&setup);

	live_run(". %s/agent.env > /dev/null; kill $SSH_AGENT_PID", echo_server.folder);
}

static void silent_agent_does_not_hang(void **state)
{
	(void)state;
	struct setup setup;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/silent", echo_server.folder);
	CLEANUP_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 5), 0);

	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup.target.agent_socket = address.sun_path;
	setup.connector = connector_new(&setup.target);
	uint64_t start = clock_now_ns();
	assert_int_equal(connector_open(setup.connector, start + 2 * NS_PER_SEC, NULL,
	                                &setup.transport, &setup.failure),
	                 -1);
	assert_true(clock_now_ns() - start < 4 * NS_PER_SEC);
	setup_release(&setup);
}

/* --- servers that are no good --- */

static void missing_subsystem_is_told(void **state)
{
	(void)state;
	struct setup setup;
	static char other[] = "nosuch", cat[] = "/bin/cat",
	            broken[] = "/bin/ls /nonexistent-file";
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup_key(&setup, &echo_server, "plain");
	setup.target.sftp_server = other;
	expect_failure(&setup, FAILURE_PROTOCOL, "refuses the subsystem \"nosuch\"");
	setup.target.sftp_server = cat;
	expect_open(&setup, 100000);

	/* A server program that ends at once: its words are what counts. */
	setup.target.sftp_server = broken;
	assert_int_equal(setup_open(&setup), 0);
	char text[20];
	stream_read_all(setup.transport, text, sizeof(text));
	assert_string_equal(text, "");
	transport_explain(setup.transport, &setup.failure);
	assert_int_equal(setup.failure.kind, FAILURE_PROTOCOL);
	assert_non_null(strstr(setup.failure.text, "nonexistent-file"));
	assert_non_null(strstr(setup.failure.text, "exit status 2"));
	setup_release(&setup);
}

/* A listener that says something, or nothing, to one client. */
static int listener(unsigned *port)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
	                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
	assert_int_equal(listen(fd, 5), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
	*port = ntohs(address.sin_port);
	return fd;
}

static void *greet(void *arg)
{
	const char *words = arg;
	int fd = accept4((int)words[0], NULL, NULL, SOCK_CLOEXEC);
	if (write(fd, words + 1, strlen(words + 1)) < 0)
		perror("write");
	shutdown(fd, SHUT_WR);
	char byte[256];
	while (read(fd, byte, sizeof(byte)) > 0)
		;
	close(fd);
	return NULL;
}

static void other_services_are_named(void **state)
{
	(void)state;
	static const struct {
		const char *words;
		enum failure_kind kind;
		const char *part;
	} cases[] = {
	    {"220 mail.example ESMTP\r\n", FAILURE_PROTOCOL,
	     "it says \"220 mail.example ESMTP"},
	    {"Exceeded MaxStartups\r\n", FAILURE_TOO_MANY, "MaxStartups"},
	    {"", FAILURE_TOO_MANY, "hung up before it introduced itself"},
	    {"SSH-2.0-short\r\n", FAILURE_UNREACHABLE, "closed the connection"},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct setup setup;
		unsigned port;
		char words[100];
		pthread_t thread;
		setup_init(&setup, &echo_server, SSH_MODE_SSH2);
		int fd = listener(&port);
		setup.target.port = port;
		snprintf(words, sizeof(words), "%c%s", fd, cases[i].words);
		assert_int_equal(pthread_create(&thread, NULL, greet, words), 0);
		expect_failure(&setup, cases[i].kind, cases[i].part);
		pthread_join(thread, NULL);
		close(fd);
		setup_release(&setup);
	}
}

static void silent_server_meets_deadline_and_cancel(void **state)
{
	(void)state;
	struct setup setup;
	unsigned port;
	_Atomic bool cancel = true;
	CLEANUP_CLOSE __attribute__((unused)) int fd = listener(&port);
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup.target.port = port;
	setup.connector = connector_new(&setup.target);
	uint64_t start = clock_now_ns();
	assert_int_equal(connector_open(setup.connector, start + NS_PER_SEC, NULL,
	                                &setup.transport, &setup.failure),
	                 -1);
	assert_int_equal(setup.failure.kind, FAILURE_UNREACHABLE);
	assert_true(clock_now_ns() - start < 3 * NS_PER_SEC);
	start = clock_now_ns();
	assert_int_equal(connector_open(setup.connector, start + 60 * NS_PER_SEC, &cancel,
	                                &setup.transport, &setup.failure),
	                 -1);
	assert_true(clock_now_ns() - start < 2 * NS_PER_SEC);
	setup_release(&setup);
}

static void ciphers_of_the_user_are_kept(void **state)
{
	(void)state;
	struct setup setup;
	static char given[] = "chacha20-unheard-of,aes256-ctr", none[] = "unheard-of";
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup_key(&setup, &echo_server, "plain");
	setup.target.ciphers_given = true;
	setup.target.ciphers = given;
	expect_open(&setup, 100000);
	setup.target.ciphers = none;
	expect_failure(&setup, FAILURE_PROTOCOL, "knows none of Ciphers unheard-of");
	setup_release(&setup);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(key_file_and_64_mib_both_ways),
	    cmocka_unit_test(ecdsa_key_works),
	    cmocka_unit_test(many_rekeyings_keep_the_stream),
	    cmocka_unit_test(compression_works),
	    cmocka_unit_test(locked_key_asks_for_its_passphrase),
	    cmocka_unit_test(passphrase_is_not_asked_for_a_key_the_server_refuses),
	    cmocka_unit_test(failure_lists_what_was_offered_and_tried),
	    cmocka_unit_test(agent_keys_are_used),
	    cmocka_unit_test(silent_agent_does_not_hang),
	    cmocka_unit_test(missing_subsystem_is_told),
	    cmocka_unit_test(other_services_are_named),
	    cmocka_unit_test(silent_server_meets_deadline_and_cancel),
	    cmocka_unit_test(ciphers_of_the_user_are_kept),
	};
	if (!live_sshd_possible())
		return LIVE_SKIP;
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
