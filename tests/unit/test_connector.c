/* Which transport the first lane uses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "transport/connector.h"

static void rule_of_auto(void **state)
{
	(void)state;
	static const struct {
		const char *needs_ssh;
		bool have_ssh;
		uint64_t connect_ns;
		enum ssh_transport_mode expected;
	} cases[] = {
	    {"", true, 0, SSH_MODE_SSH},
	    {"", true, 2999 * NS_PER_US, SSH_MODE_SSH},
	    {"", true, 3 * NS_PER_MS, SSH_MODE_SSH2},
	    {"", true, 200 * NS_PER_MS, SSH_MODE_SSH2},
	    {"", false, 0, SSH_MODE_SSH2},
	    {"", false, 200 * NS_PER_MS, SSH_MODE_SSH2},
	    {"ProxyJump is set", true, 0, SSH_MODE_SSH},
	    {"ProxyJump is set", true, 200 * NS_PER_MS, SSH_MODE_SSH},
	    {"ProxyJump is set", false, 200 * NS_PER_MS, SSH_MODE_SSH},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ssh_target target = {.mode = SSH_MODE_AUTO};
		snprintf(target.needs_ssh, sizeof(target.needs_ssh), "%s", cases[i].needs_ssh);
		enum ssh_transport_mode mode =
		    connector_choose(&target, cases[i].have_ssh, cases[i].connect_ns);
		if (mode != cases[i].expected)
			fail_msg("case %zu: mode %d", i, (int)mode);
	}
}

static void explicit_mode_is_kept(void **state)
{
	(void)state;
	static const enum ssh_transport_mode modes[] = {SSH_MODE_SSH2, SSH_MODE_SSH,
	                                                SSH_MODE_SERVER, SSH_MODE_TCP};
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct ssh_target target = {.mode = modes[i], .needs_ssh = "ProxyJump is set"};
		assert_int_equal(connector_choose(&target, true, 0), modes[i]);
		assert_int_equal(connector_choose(&target, false, NS_PER_SEC), modes[i]);
	}
}

/* A target without a server. */
static struct ssh_target nowhere(enum ssh_transport_mode mode)
{
	static char host[] = "127.0.0.1", user[] = "nobody";
	return (struct ssh_target){.mode = mode,
	                           .alias = host,
	                           .hostname = host,
	                           .user = user,
	                           .port = 1,
	                           .direct_port = 1};
}

static void refused_connection_is_unreachable(void **state)
{
	(void)state;
	static const enum ssh_transport_mode modes[] = {SSH_MODE_AUTO, SSH_MODE_SSH2,
	                                                SSH_MODE_TCP};
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		struct ssh_target target = nowhere(modes[i]);
		struct connector *connector = connector_new(&target);
		struct transport *transport = NULL;
		struct failure failure = {0};
		assert_int_equal(connector_open(connector, clock_now_ns() + 10 * NS_PER_SEC,
		                                NULL, &transport, &failure),
		                 -1);
		assert_int_equal(failure.kind, FAILURE_UNREACHABLE);
		assert_non_null(strstr(failure.text, "127.0.0.1 port 1: Connection refused"));
		connector_free(connector);
	}
}

static void jump_without_ssh_program_is_refused(void **state)
{
	(void)state;
	static char missing[] = "/nonexistent/ssh";
	char *command[] = {missing, NULL};
	struct ssh_target target = nowhere(SSH_MODE_AUTO);
	target.ssh_command = command;
	snprintf(target.needs_ssh, sizeof(target.needs_ssh), "ProxyJump is set");
	struct connector *connector = connector_new(&target);
	struct transport *transport = NULL;
	struct failure failure = {0};
	assert_int_equal(
	    connector_open(connector, clock_now_ns() + NS_PER_SEC, NULL, &transport, &failure),
	    -1);
	assert_int_equal(failure.kind, FAILURE_USAGE);
	assert_non_null(strstr(failure.text, "ProxyJump is set"));
	connector_free(connector);
}

static void cancel_ends_connecting(void **state)
{
	(void)state;
	/* A documentation address: nothing answers there. */
	static char host[] = "192.0.2.1";
	struct ssh_target target = nowhere(SSH_MODE_SSH2);
	target.hostname = host;
	struct connector *connector = connector_new(&target);
	struct transport *transport = NULL;
	struct failure failure = {0};
	_Atomic bool cancel = true;
	uint64_t start = clock_now_ns();
	assert_int_equal(
	    connector_open(connector, start + 60 * NS_PER_SEC, &cancel, &transport, &failure),
	    -1);
	assert_int_equal(failure.kind, FAILURE_UNREACHABLE);
	assert_true(clock_now_ns() - start < 2 * NS_PER_SEC);
	connector_free(connector);
}

static void odd_host_names_are_refused(void **state)
{
	(void)state;
	static const char *const names[] = {"", "a/b", "user@host", "a b", "a#", "a%b", "-\n"};
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char name[20];
		snprintf(name, sizeof(name), "%s", names[i]);
		struct ssh_target target = nowhere(SSH_MODE_SSH2);
		target.hostname = name;
		struct connector *connector = connector_new(&target);
		struct transport *transport = NULL;
		struct failure failure = {0};
		assert_int_equal(connector_open(connector, clock_now_ns() + NS_PER_SEC, NULL,
		                                &transport, &failure),
		                 -1);
		assert_int_equal(failure.kind, FAILURE_USAGE);
		connector_free(connector);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rule_of_auto),
	    cmocka_unit_test(explicit_mode_is_kept),
	    cmocka_unit_test(refused_connection_is_unreachable),
	    cmocka_unit_test(jump_without_ssh_program_is_refused),
	    cmocka_unit_test(cancel_ends_connecting),
	    cmocka_unit_test(odd_host_names_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
