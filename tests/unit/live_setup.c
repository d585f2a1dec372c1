#include "live_setup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/secret.h"
#include "stream_check.h"

/*
 * libssh2 1.10 forgets the secret number of an ECDSA key it has read, inside OpenSSL's memory.
 * To tell that leak from ours the whole stack is needed.
 */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libssh2_userauth_publickey_frommemory\n";
}

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "fast_unwind_on_malloc=0";
}

/* --- a person who answers by a script --- */

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

/* --- one server and one connection --- */

struct live_sshd echo_server;

void setup_key(struct setup *setup, const struct live_sshd *sshd, const char *name)
{
	size_t i = 0;
	while (setup->keys[i])
		i++;
	setup->keys[i] =
	    live_sshd_path(sshd, name, setup->key_room[i], sizeof(setup->key_room[i]));
}

void setup_init(struct setup *setup, const struct live_sshd *sshd, enum ssh_transport_mode mode)
{
	memset(setup, 0, sizeof(*setup));
	setup->person.base =
	    (struct ssh_prompter){.ask = person_ask, .confirm = person_confirm};
	setup->person.consent = -1;
	snprintf(setup->host, sizeof(setup->host), "127.0.0.1");
	snprintf(setup->user, sizeof(setup->user), "%s", sshd->user);
	live_sshd_path(sshd, "known", setup->known, sizeof(setup->known));
	live_sshd_write(sshd, "known", "# first line\n[127.0.0.1]:%u %s\n", sshd->port,
	                live_sshd_public(sshd, "host"));
	setup->known_list[0] = setup->known;
	setup->target = (struct ssh_target){
	    .mode = mode,
	    .alias = setup->host,
	    .hostname = setup->host,
	    .user = setup->user,
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

int setup_open(struct setup *setup)
{
	setup->connector = connector_new(&setup->target);
	assert_non_null(setup->connector);
	return connector_open(setup->connector, clock_now_ns() + 20 * NS_PER_SEC, NULL,
	                      &setup->transport, &setup->failure);
}

void setup_close(struct setup *setup)
{
	if (setup->transport)
		setup->transport->ops->close(setup->transport);
	setup->transport = NULL;
	connector_free(setup->connector);
	setup->connector = NULL;
}

void setup_release(struct setup *setup)
{
	setup_close(setup);
	for (size_t i = 0; i < ARRAY_LEN(setup->person.given); i++)
		secret_free(setup->person.given[i]);
}

void expect_open(struct setup *setup, size_t echo_bytes)
{
	if (setup_open(setup))
		fail_msg("%s", setup->failure.text);
	stream_check_echo(setup->transport, echo_bytes);
	setup_close(setup);
}

void expect_failure(struct setup *setup, enum failure_kind kind, const char *part)
{
	setup->failure = (struct failure){0};
	if (!setup_open(setup))
		fail_msg("connected, where \"%s\" was expected", part);
	setup_close(setup);
	if (setup->failure.kind != kind || !strstr(setup->failure.text, part))
		fail_msg("kind %d: %s", (int)setup->failure.kind, setup->failure.text);
}

int live_start(void **state)
{
	(void)state;
	live_sshd_start(&echo_server, "sftp /bin/cat", "");
	return 0;
}

int live_stop(void **state)
{
	(void)state;
	live_sshd_stop(&echo_server);
	return 0;
}
