/* The transports against a real sshd: keys, host keys, prompts, and the stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "live_sshd.h"
#include "stream_check.h"
#include "transport/connector.h"

/* --- a person who answers by a script ---------------------------------------------------------- */

struct person {
	struct ssh_prompter base;
	const char *answers[4]; /* one after the other; then nobody */
	int consent;            /* to an unknown host key */
	unsigned asked, confirmed;
	char last[600]; /* question */
	struct secret *given[4];
};

static const struct secret *person_ask(struct ssh_prompter *prompter, const char *prompt,
                                       bool echo, bool fresh)
{
	struct person *person = CONTAINER_OF(prompter, struct person, base);
	unsigned i = person->asked;
	assert_false(echo);
	assert_int_equal(fresh, i > 0);
	snprintf(person->last, sizeof(person->last), "%s", prompt);
	if (i == ARRAY_LEN(person->answers) || !person->answers[i])
		return NULL;
	person->asked++;
	person->given[i] = secret_new(person->answers[i], strlen(person->answers[i]));
	return person->given[i];
}

static int person_confirm(struct ssh_prompter *prompter, const char *question)
{
	struct person *person = CONTAINER_OF(prompter, struct person, base);
	snprintf(person->last, sizeof(person->last), "%s", question);
	person->confirmed++;
	return person->consent;
}

/* --- one server and one connection --------------------------------------------------------------- */

static struct live_sshd echo_server;

/* A target and the strings it points to. */
struct setup {
	struct ssh_target target;
	struct person person;
	char host[20], known[120], key_room[3][120], options[6][200];
	char *keys[4], *known_list[2], *option_list[7];
	struct connector *connector;
	struct transport *transport;
	struct failure failure;
};

static void setup_key(struct setup *setup, const struct live_sshd *sshd, const char *name)
{
	size_t i = 0;
	while (setup->keys[i])
		i++;
	setup->keys[i] =
	    live_sshd_path(sshd, name, setup->key_room[i], sizeof(setup->key_room[i]));
}

/* Everything right but without a key: the host key is known. */
static void setup_init(struct setup *setup, const struct live_sshd *sshd,
                       enum ssh_transport_mode mode)
{
	memset(setup, 0, sizeof(*setup));
	setup->person.base = (struct ssh_prompter){.ask = person_ask, .confirm = person_confirm};
	setup->person.consent = -1;
	snprintf(setup->host, sizeof(setup->host), "127.0.0.1");
	live_sshd_path(sshd, "known", setup->known, sizeof(setup->known));
	live_sshd_write(sshd, "known", "# first line\n[127.0.0.1]:%u %s\n", sshd->port,
	                live_sshd_public(sshd, "host"));
	setup->known_list[0] = setup->known;
	setup->target = (struct ssh_target){
	    .mode = mode,
	    .alias = setup->host,
	    .hostname = setup->host,
	    .user = echo_server.user,
	    .port = sshd->port,
	    .port_given = true,
	    .identities = setup->keys,
	    .user_known_hosts = setup->known_list,
	    .host_key_policy = HOST_KEY_STRICT,
	    .password_auth = true,
	    .keyboard_auth = true,
	    .pubkey_auth = true,
	    .prompter = &setup->person.base,
	};
}

static int setup_open(struct setup *setup)
{
	setup->connector = connector_new(&setup->target);
	assert_non_null(setup->connector);
	return connector_open(setup->connector, clock_now_ns() + 20 * NS_PER_SEC, NULL,
	                      &setup->transport, &setup->failure);
}

static void setup_close(struct setup *setup)
{
	if (setup->transport)
		setup->transport->ops->close(setup->transport);
	setup->transport = NULL;
	connector_free(setup->connector);
	setup->connector = NULL;
}

static void setup_release(struct setup *setup)
{
	setup_close(setup);
	for (size_t i = 0; i < ARRAY_LEN(setup->person.given); i++)
		secret_free(setup->person.given[i]);
}

static void expect_open(struct setup *setup, size_t echo_bytes)
{
	if (setup_open(setup))
		fail_msg("%s", setup->failure.text);
	stream_check_echo(setup->transport, echo_bytes);
	setup_close(setup);
}

static void expect_failure(struct setup *setup, enum failure_kind kind, const char *part)
{
	setup->failure = (struct failure){0};
	if (!setup_open(setup))
		fail_msg("connected, where \"%s\" was expected", part);
	setup_close(setup);
	if (setup->failure.kind != kind || !strstr(setup->failure.text, part))
		fail_msg("kind %d: %s", (int)setup->failure.kind, setup->failure.text);
}

/* --- keys ------------------------------------------------------------------------------------------ */

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
	live_run("cd %s && for k in rsa stranger plain; do SSH_AUTH_SOCK=%s ssh-add -q $k; done",
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

/* --- host keys --------------------------------------------------------------------------------------- */

static void changed_host_key_is_loud(void **state)
{
	(void)state;
	struct setup setup;
	char where[200];
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup_key(&setup, &echo_server, "plain");
	live_sshd_write(&echo_server, "known", "# a\n# b\n[127.0.0.1]:%u %s\n", echo_server.port,
	                live_sshd_public(&echo_server, "stranger"));
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

/* --- servers that are no good -------------------------------------------------------------------------- */

static void missing_subsystem_is_told(void **state)
{
	(void)state;
	struct setup setup;
	static char other[] = "nosuch", cat[] = "/bin/cat", broken[] = "/bin/ls /nonexistent-file";
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
	    {"220 mail.example ESMTP\r\n", FAILURE_PROTOCOL, "it says \"220 mail.example ESMTP"},
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
	CLEANUP_CLOSE int fd = listener(&port);
	setup_init(&setup, &echo_server, SSH_MODE_SSH2);
	setup.target.port = port;
	setup.connector = connector_new(&setup.target);
	uint64_t start = clock_now_ns();
	assert_int_equal(connector_open(setup.connector, start + NS_PER_SEC, NULL, &setup.transport,
	                                &setup.failure),
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

/* --- the ssh program, and the choice ------------------------------------------------------------------- */

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

static int start_echo_server(void **state)
{
	(void)state;
	live_sshd_start(&echo_server, "sftp /bin/cat", "");
	return 0;
}

static int stop_echo_server(void **state)
{
	(void)state;
	live_sshd_stop(&echo_server);
	return 0;
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
	    cmocka_unit_test(changed_host_key_is_loud),
	    cmocka_unit_test(revoked_and_certified_hosts_are_refused),
	    cmocka_unit_test(unknown_host_follows_the_policy),
	    cmocka_unit_test(yes_counts_for_all_lanes_without_a_file),
	    cmocka_unit_test(known_type_is_preferred),
	    cmocka_unit_test(missing_subsystem_is_told),
	    cmocka_unit_test(other_services_are_named),
	    cmocka_unit_test(silent_server_meets_deadline_and_cancel),
	    cmocka_unit_test(child_ssh_carries_the_stream),
	    cmocka_unit_test(child_ssh_explains_its_failure),
	    cmocka_unit_test(near_server_gets_the_child),
	    cmocka_unit_test(without_ssh_program_it_is_libssh2),
	    cmocka_unit_test(ciphers_of_the_user_are_kept),
	};
	if (!live_sshd_possible())
		return LIVE_SKIP;
	return cmocka_run_group_tests(tests, start_echo_server, stop_echo_server);
}
