/* The ssh program against a real sshd, and which transport a connector takes for near and far.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "live_setup.h"
#include "stream_check.h"
#include "transport/tcp.h"

/* The round trip that tcp_connect() pretends to have measured; 0: what it did measure. */
static uint64_t pretended_ns;

int __real_tcp_connect(const char *host, unsigned port, unsigned family, uint64_t deadline_ns,
                       const _Atomic bool *cancel, int *fd, uint64_t *connect_ns,
                       struct failure *failure);
int __wrap_tcp_connect(const char *host, unsigned port, unsigned family, uint64_t deadline_ns,
                       const _Atomic bool *cancel, int *fd, uint64_t *connect_ns,
                       struct failure *failure);

int __wrap_tcp_connect(const char *host, unsigned port, unsigned family, uint64_t deadline_ns,
                       const _Atomic bool *cancel, int *fd, uint64_t *connect_ns,
                       struct failure *failure)
{
	int result = __real_tcp_connect(host, port, family, deadline_ns, cancel, fd, connect_ns,
	                                failure);
	if (!result && pretended_ns)
		*connect_ns = pretended_ns;
	return result;
}

static void setup_child(struct setup *setup, const char *key)
{
	static const char *const fixed[] = {"StrictHostKeyChecking=yes", "BatchMode=yes",
	                                    "IdentitiesOnly=yes"};
	static char none[] = "/dev/null";
	size_t count = 0;
	setup->target.config_file = none;
	for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
		snprintf(setup->options[count++], sizeof(setup->options[0]), "%s", fixed[i]);
	snprintf(setup->options[count++], sizeof(setup->options[0]), "UserKnownHostsFile=%s",
	         setup->known);
	snprintf(setup->options[count++], sizeof(setup->options[0]), "IdentityFile=%s/%s",
	         echo_server.folder, key);
	for (size_t i = 0; i < count; i++)
		setup->option_list[i] = setup->options[i];
	setup->target.ssh_options = setup->option_list;
}

static void child_ssh_carries_the_stream(void **state)
{
	(void)state;
	struct setup setup;
	setup_init(&setup, &echo_server, SSH_MODE_SSH);
	setup_child(&setup, "rsa");
	assert_int_equal(setup_open(&setup), 0);
	assert_string_equal(setup.transport->kind, "ssh");
	stream_check_echo(setup.transport, 64 << 20);
	setup_release(&setup);
}

static void explained_by_child(struct setup *setup, enum failure_kind kind, const char *part)
{
	char text[20];
	assert_int_equal(setup_open(setup), 0);
	stream_read_all(setup->transport, text, sizeof(text));
	assert_string_equal(text, "");
	transport_explain(setup->transport, &setup->failure);
	setup_close(setup);
	if (setup->failure.kind != kind || !strstr(setup->failure.text, part))
		fail_msg("kind %d: %s", (int)setup->failure.kind, setup->failure.text);
}

static void child_ssh_explains_its_failure(void **state)
{
	(void)state;
	struct setup setup;
	static char other[] = "nosuch";
	setup_init(&setup, &echo_server, SSH_MODE_SSH);
	setup_child(&setup, "stranger");
	explained_by_child(&setup, FAILURE_AUTH, "Permission denied (publickey)");
	setup_child(&setup, "plain");
	setup.target.sftp_server = other;
	explained_by_child(&setup, FAILURE_PROTOCOL, "subsystem request failed");
	setup.target.sftp_server = NULL;
	live_sshd_write(&echo_server, "known", "\n\n\n[127.0.0.1]:%u %s\n", echo_server.port,
	                live_sshd_public(&echo_server, "stranger"));
	explained_by_child(&setup, FAILURE_HOST_KEY, "/known:4");
	unlink(setup.known);
	explained_by_child(&setup, FAILURE_HOST_KEY, "accept-new");
	setup.target.port = 1;
	explained_by_child(&setup, FAILURE_UNREACHABLE, "Connection refused");
	setup_release(&setup);
}

static void near_server_gets_the_child(void **state)
{
	(void)state;
	struct setup setup;
	setup_init(&setup, &echo_server, SSH_MODE_AUTO);
	setup_child(&setup, "plain");
	assert_int_equal(setup_open(&setup), 0);
	assert_string_equal(setup.transport->kind, "ssh");
	assert_non_null(strstr(connector_reason(setup.connector), "ssh: round trip 0."));
	stream_check_echo(setup.transport, 100000);
	setup_release(&setup);
}

static void without_ssh_program_it_is_libssh2(void **state)
{
	(void)state;
	struct setup setup;
	static char missing[] = "/nonexistent/ssh";
	char *command[] = {missing, NULL};
	setup_init(&setup, &echo_server, SSH_MODE_AUTO);
	setup.target.ssh_command = command;
	setup_key(&setup, &echo_server, "plain");
	assert_int_equal(setup_open(&setup), 0);
	assert_string_equal(setup.transport->kind, "ssh2");
	assert_non_null(strstr(connector_reason(setup.connector), "no ssh program"));
	stream_check_echo(setup.transport, 100000);
	setup_release(&setup);
}

static void far_server_gets_libssh2(void **state)
{
	(void)state;
	struct setup setup;
	pretended_ns = 48 * NS_PER_MS;
	setup_init(&setup, &echo_server, SSH_MODE_AUTO);
	setup_child(&setup, "plain");
	setup_key(&setup, &echo_server, "plain");
	assert_int_equal(setup_open(&setup), 0);
	assert_string_equal(setup.transport->kind, "ssh2");
	assert_string_equal(connector_reason(setup.connector), "ssh2: round trip 48.0 ms");
	stream_check_echo(setup.transport, 100000);
	setup_release(&setup);
}

/* Opens a second lane: what the first one learned is kept. */
static void expect_second_lane(struct setup *setup, const char *kind)
{
	struct transport *second = NULL;
	assert_int_equal(connector_open(setup->connector, clock_now_ns() + 20 * NS_PER_SEC,
	                                NULL, &second, &setup->failure),
	                 0);
	assert_string_equal(second->kind, kind);
	stream_check_echo(second, 1000);
	second->ops->close(second);
}

static void what_libssh2_cannot_do_falls_back_to_the_child(void **state)
{
	(void)state;
	struct setup setup;
	static char ciphers[] = "unheard-of";
	pretended_ns = 48 * NS_PER_MS;
	/* Algorithms. */
	setup_init(&setup, &echo_server, SSH_MODE_AUTO);
	setup_child(&setup, "plain");
	setup_key(&setup, &echo_server, "plain");
	setup.target.ciphers_given = true;
	setup.target.ciphers = ciphers;
	assert_int_equal(setup_open(&setup), 0);
	assert_string_equal(setup.transport->kind, "ssh");
	assert_non_null(
	    strstr(connector_reason(setup.connector), "ssh: libssh2 could not connect"));
	stream_check_echo(setup.transport, 100000);
	expect_second_lane(&setup, "ssh");
	setup_release(&setup);
	/* Keys: the child has one that libssh2 is not told of. Nobody is asked for a password.
	 */
	setup_init(&setup, &echo_server, SSH_MODE_AUTO);
	setup_child(&setup, "plain");
	setup_key(&setup, &echo_server, "stranger");
	assert_int_equal(setup_open(&setup), 0);
	assert_string_equal(setup.transport->kind, "ssh");
	assert_int_equal(setup.person.asked, 0);
	stream_check_echo(setup.transport, 1000);
	setup_release(&setup);
}

static void changed_host_key_is_not_tried_again(void **state)
{
	(void)state;
	struct setup setup;
	pretended_ns = 48 * NS_PER_MS;
	setup_init(&setup, &echo_server, SSH_MODE_AUTO);
	setup_child(&setup, "plain");
	setup_key(&setup, &echo_server, "plain");
	live_sshd_write(&echo_server, "known", "[127.0.0.1]:%u %s\n", echo_server.port,
	                live_sshd_public(&echo_server, "stranger"));
	expect_failure(&setup, FAILURE_HOST_KEY, "HAS CHANGED");
	setup_release(&setup);
}

static void wrong_passphrase_is_not_asked_again_by_the_child(void **state)
{
	(void)state;
	struct setup setup;
	pretended_ns = 48 * NS_PER_MS;
	setup_init(&setup, &echo_server, SSH_MODE_AUTO);
	setup_child(&setup, "locked");
	setup_key(&setup, &echo_server, "locked");
	for (int i = 0; i < 3; i++)
		setup.person.answers[i] = "wrong";
	expect_failure(&setup, FAILURE_AUTH, "wrong passphrase");
	assert_int_equal(setup.person.asked, 3);
	setup_release(&setup);
}

static int forget_pretence(void **state)
{
	(void)state;
	pretended_ns = 0;
	return 0;
}

#define CASE(name) cmocka_unit_test_setup(name, forget_pretence)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    CASE(child_ssh_carries_the_stream),
	    CASE(child_ssh_explains_its_failure),
	    CASE(near_server_gets_the_child),
	    CASE(without_ssh_program_it_is_libssh2),
	    CASE(far_server_gets_libssh2),
	    CASE(what_libssh2_cannot_do_falls_back_to_the_child),
	    CASE(changed_host_key_is_not_tried_again),
	    CASE(wrong_passphrase_is_not_asked_again_by_the_child),
	};
	if (!live_sshd_possible())
		return LIVE_SKIP;
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
