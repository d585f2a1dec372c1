/* Host keys of a real sshd under each policy, asked for by one lane and by many at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "live_setup.h"
#include "stream_check.h"

static void changed_host_key_is_loud(void **state)
{
	(void)state;
	struct setup setup;
	char where[200];
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup_key(&setup, &echo_server, "plain");
	live_sshd_write(&echo_server, "known", "# a\n# b\n[127.0.0.1]:%u %s\n",
	                echo_server.port, live_sshd_public(&echo_server, "stranger"));
	setup.target.host_key_policy = HOST_KEY_ACCEPT_NEW;
	snprintf(where, sizeof(where), "%s line 3", setup.known);
	expect_failure(&setup, FAILURE_HOST_KEY, "HAS CHANGED");
	assert_non_null(strstr(setup.failure.text, where));
	/* With "no" it goes on, by keys alone. */
	setup.target.host_key_policy = HOST_KEY_NO;
	expect_open(&setup, 1000);
	setup_release(&setup);
}

static void revoked_and_certified_hosts_are_refused(void **state)
{
	(void)state;
	struct setup setup;
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup_key(&setup, &echo_server, "plain");
	setup.target.host_key_policy = HOST_KEY_NO;
	live_sshd_write(&echo_server, "known", "@revoked * %s\n",
	                live_sshd_public(&echo_server, "host"));
	expect_failure(&setup, FAILURE_HOST_KEY, "IS REVOKED");
	live_sshd_write(&echo_server, "known", "@cert-authority * %s\n",
	                live_sshd_public(&echo_server, "stranger"));
	expect_failure(&setup, FAILURE_HOST_KEY, "transport=ssh");
	setup_release(&setup);
}

static void unknown_host_follows_the_policy(void **state)
{
	(void)state;
	struct setup setup;
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup_key(&setup, &echo_server, "plain");
	unlink(setup.known);

	expect_failure(&setup, FAILURE_HOST_KEY, "accept-new");
	setup.target.host_key_policy = HOST_KEY_ASK;
	expect_failure(&setup, FAILURE_HOST_KEY, "is not known"); /* nobody to ask */
	setup.person.consent = 0;
	expect_failure(&setup, FAILURE_HOST_KEY, "not accepted");
	assert_non_null(strstr(setup.person.last, "ED25519 fingerprint: SHA256:"));
	assert_int_equal(access(setup.known, F_OK), -1);

	/* A yes is kept: the next time nobody is asked. */
	setup.person.consent = 1;
	expect_open(&setup, 1000);
	assert_int_equal(setup.person.confirmed, 3);
	setup.target.host_key_policy = HOST_KEY_STRICT;
	expect_open(&setup, 1000);

	unlink(setup.known);
	setup.target.host_key_policy = HOST_KEY_ACCEPT_NEW;
	setup.target.hash_known_hosts = true;
	expect_open(&setup, 1000);
	live_run("grep -q '^|1|' %s && ! grep -q 127.0.0.1 %s", setup.known, setup.known);
	setup.target.host_key_policy = HOST_KEY_STRICT;
	expect_open(&setup, 1000);

	unlink(setup.known);
	setup.target.host_key_policy = HOST_KEY_NO;
	expect_open(&setup, 1000);
	setup_release(&setup);
}

static void yes_counts_for_all_lanes_without_a_file(void **state)
{
	(void)state;
	struct setup setup;
	static char nowhere[] = "/dev/null";
	struct transport *second = NULL;
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup_key(&setup, &echo_server, "plain");
	setup.known_list[0] = nowhere;
	setup.target.host_key_policy = HOST_KEY_ASK;
	setup.person.consent = 1;
	assert_int_equal(setup_open(&setup), 0);
	assert_int_equal(connector_open(setup.connector, clock_now_ns() + 20 * NS_PER_SEC, NULL,
	                                &second, &setup.failure),
	                 0);
	assert_int_equal(setup.person.confirmed, 1);
	stream_check_echo(second, 1000);
	second->ops->close(second);
	setup_release(&setup);
}

static void *open_lane(void *arg)
{
	struct connector *connector = arg;
	struct transport *transport = NULL;
	struct failure failure = {0};
	if (connector_open(connector, clock_now_ns() + 20 * NS_PER_SEC, NULL, &transport,
	                   &failure))
		fprintf(stderr, "%s\n", failure.text);
	return transport;
}

static void lanes_may_open_at_once(void **state)
{
	(void)state;
	struct setup setup;
	pthread_t threads[6];
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup_key(&setup, &echo_server, "plain");
	unlink(setup.known);
	setup.target.host_key_policy = HOST_KEY_ASK;
	setup.person.consent = 1;
	setup.connector = connector_new(&setup.target);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_lane, setup.connector),
		                 0);
	for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
		void *result;
		assert_int_equal(pthread_join(threads[i], &result), 0);
		struct transport *transport = result;
		assert_non_null(transport);
		stream_check_echo(transport, 100000);
		transport->ops->close(transport);
	}
	/* The first one asked, alone. */
	assert_int_equal(setup.person.confirmed, 1);
	setup_release(&setup);
}

static void known_type_is_preferred(void **state)
{
	(void)state;
	struct live_sshd sshd;
	struct setup setup;
	char extra[200];
	/* The server has two keys; only the one it would not choose itself is known. */
	live_sshd_start(&sshd, "sftp /bin/cat", "LoginGraceTime 60");
	snprintf(extra, sizeof(extra), "echo HostKey %s/ecdsa >> %s/sshd_config", sshd.folder,
	         sshd.folder);
	live_run("%s; kill -HUP %d; sleep 1", extra, (int)sshd.pid);
	setup_init(&setup, &sshd, SSH_MODE_SSH2);
	setup_key(&setup, &sshd, "plain");
	live_sshd_write(&sshd, "known", "[127.0.0.1]:%u %s\n", sshd.port,
	                live_sshd_public(&sshd, "ecdsa"));
	expect_open(&setup, 1000);
	setup_release(&setup);
	live_sshd_stop(&sshd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(changed_host_key_is_loud),
	    cmocka_unit_test(revoked_and_certified_hosts_are_refused),
	    cmocka_unit_test(unknown_host_follows_the_policy),
	    cmocka_unit_test(yes_counts_for_all_lanes_without_a_file),
	    cmocka_unit_test(lanes_may_open_at_once),
	    cmocka_unit_test(known_type_is_preferred),
	};
	if (!live_sshd_possible())
		return LIVE_SKIP;
	return cmocka_run_group_tests(tests, live_start, live_stop);
}
