#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "transport/ssh2_internal.h"

enum { TRIES = 3 };

/* In the order in which they are tried. */
enum { PUBLICKEY, KEYBOARD, PASSWORD };

void ssh2_auth_note(struct ssh2_auth *auth, const char *format, ...)
{
	char note[300];
	va_list args;
	va_start(args, format);
	vsnprintf(note, sizeof(note), format, args);
	va_end(args);
	log_debug("%s: %s", auth->ssh2->peer, note);
	if (auth->tried.length)
		bytes_add_str(&auth->tried, ", ");
	bytes_add_str(&auth->tried, note);
}

const struct secret *ssh2_ask(struct ssh2 *ssh2, const char *prompt, bool echo, bool fresh)
{
	struct ssh_prompter *prompter = ssh2->request.prompter;
	uint64_t before = clock_now_ns();
	const struct secret *answer = prompter->ask(prompter, prompt, echo, fresh);
	ssh2->deadline_ns += clock_now_ns() - before;
	if (answer)
		ssh2->asked++;
	return answer;
}

static unsigned user_length(const struct ssh2 *ssh2)
{
	return (unsigned)strlen(ssh2->request.target->user);
}

/*
 * Tries the method "none", which succeeds on odd servers and else tells what the server wants.
 * OK, REFUSED with auth->offered filled, or FATAL.
 */
static enum ssh2_auth_result ask_server(struct ssh2_auth *auth)
{
	struct ssh2 *ssh2 = auth->ssh2;
	for (;;) {
		const char *list = libssh2_userauth_list(
		    ssh2->session, ssh2->request.target->user, user_length(ssh2));
		if (list) {
			snprintf(auth->offered, sizeof(auth->offered), "%s", list);
			return SSH2_AUTH_REFUSED;
		}
		if (libssh2_userauth_authenticated(ssh2->session))
			return SSH2_AUTH_OK;
		if (libssh2_session_last_errno(ssh2->session) != LIBSSH2_ERROR_EAGAIN)
			break;
		if (ssh2_wait(ssh2, auth->failure))
			return SSH2_AUTH_FATAL;
	}
	failure_set(auth->failure, ssh2_lost(ssh2) ? FAILURE_UNREACHABLE : FAILURE_PROTOCOL,
	            "%s: cannot ask how to authenticate: %s", ssh2->peer, ssh2_message(ssh2));
	return SSH2_AUTH_FATAL;
}

enum ssh2_auth_result ssh2_auth_refused(struct ssh2_auth *auth)
{
	char before[sizeof(auth->offered)];
	memcpy(before, auth->offered, sizeof(before));
	enum ssh2_auth_result result = ask_server(auth);
	if (result != SSH2_AUTH_REFUSED)
		return result;
	return strcmp(before, auth->offered) ? SSH2_AUTH_CHANGED : SSH2_AUTH_REFUSED;
}

/* A libssh2 error that is no refusal: the connection, or the server talks nonsense. */
static enum ssh2_auth_result fatal(struct ssh2_auth *auth, const char *method)
{
	failure_set(auth->failure, ssh2_lost(auth->ssh2) ? FAILURE_AUTH : FAILURE_PROTOCOL,
	            "%s: %s: %s", auth->ssh2->peer, method, ssh2_message(auth->ssh2));
	return SSH2_AUTH_FATAL;
}

/* --- password --- */

static enum ssh2_auth_result try_password(struct ssh2_auth *auth, const struct secret *secret)
{
	struct ssh2 *ssh2 = auth->ssh2;
	int rc = SSH2_CALL(ssh2, auth->failure,
	                   libssh2_userauth_password_ex(
	                       ssh2->session, ssh2->request.target->user, user_length(ssh2),
	                       secret_text(secret), (unsigned)secret_length(secret), NULL));
	switch (rc) {
	case 0:
		return SSH2_AUTH_OK;
	case LIBSSH2_ERROR_EAGAIN:
		return SSH2_AUTH_FATAL;
	case LIBSSH2_ERROR_PASSWORD_EXPIRED:
		failure_set(auth->failure, FAILURE_AUTH,
		            "%s: the password has expired: change it by an ssh login",
		            ssh2->peer);
		return SSH2_AUTH_FATAL;
	case LIBSSH2_ERROR_AUTHENTICATION_FAILED:
		return ssh2_auth_refused(auth);
	default:
		return fatal(auth, "password");
	}
}

static enum ssh2_auth_result auth_password(struct ssh2_auth *auth)
{
	char prompt[400];
	/* As the ssh program asks; see ssh2_publickey.c. */
	snprintf(prompt, sizeof(prompt), "%s's password: ", auth->ssh2->peer);
	for (int i = 0; i < TRIES; i++) {
		const struct secret *secret = ssh2_ask(auth->ssh2, prompt, false, i > 0);
		if (!secret) {
			ssh2_auth_note(auth, "password: nobody to ask");
			return SSH2_AUTH_REFUSED;
		}
		enum ssh2_auth_result result = try_password(auth, secret);
		if (result != SSH2_AUTH_REFUSED)
			return result;
		ssh2_auth_note(auth, "password refused");
	}
	return SSH2_AUTH_REFUSED;
}

/* --- keyboard-interactive --- */

/* Printable text of the server, as it may go to a terminal. */
static void add_shown(struct bytes *out, const void *text, size_t length)
{
	const unsigned char *from = text;
	for (size_t i = 0; i < MIN(length, 2000); i++)
		if (from[i] == '\n' || (from[i] >= ' ' && from[i] != 0x7f))
			bytes_add_byte(out, from[i]);
}

/* One question of the server: its own words, with who asks in front. */
static const struct secret *ask_one(struct ssh2 *ssh2, const char *instruction,
                                    size_t instruction_length,
                                    const LIBSSH2_USERAUTH_KBDINT_PROMPT *prompt)
{
	struct bytes text = BYTES_INIT;
	add_shown(&text, instruction, instruction_length);
	if (text.length)
		bytes_add_byte(&text, '\n');
	bytes_addf(&text, "(%s) ", ssh2->peer);
	add_shown(&text, prompt->text, prompt->length);
	const struct secret *answer =
	    text.failed ? NULL
	                : ssh2_ask(ssh2, text.data, prompt->echo != 0, ssh2->keyboard.fresh);
	bytes_release(&text);
	return answer;
}

static LIBSSH2_USERAUTH_KBDINT_RESPONSE_FUNC(on_questions)
{
	struct ssh2 *ssh2 = *abstract;
	(void)name;
	(void)name_len;
	for (int i = 0; i < num_prompts; i++) {
		const struct secret *answer = ask_one(
		    ssh2, instruction, i || instruction_len < 0 ? 0 : (size_t)instruction_len,
		    &prompts[i]);
		size_t length = answer ? secret_length(answer) : 0;
		char *text = ssh2_memory_alloc(&ssh2->memory, length + 1);
		ssh2->keyboard.questions++;
		if (!answer || !text)
			ssh2->keyboard.unanswered = true;
		if (text && answer)
			memcpy(text, secret_text(answer), length);
		/* libssh2 sends an empty answer for what is missing; the server refuses it. */
		responses[i].text = text;
		responses[i].length = text ? (unsigned)length : 0;
	}
}

static enum ssh2_auth_result try_keyboard(struct ssh2_auth *auth)
{
	struct ssh2 *ssh2 = auth->ssh2;
	int rc = SSH2_CALL(
	    ssh2, auth->failure,
	    libssh2_userauth_keyboard_interactive_ex(ssh2->session, ssh2->request.target->user,
	                                             user_length(ssh2), on_questions));
	switch (rc) {
	case 0:
		return SSH2_AUTH_OK;
	case LIBSSH2_ERROR_EAGAIN:
		return SSH2_AUTH_FATAL;
	case LIBSSH2_ERROR_AUTHENTICATION_FAILED:
		return ssh2_auth_refused(auth);
	default:
		return fatal(auth, "keyboard-interactive");
	}
}

static enum ssh2_auth_result auth_keyboard(struct ssh2_auth *auth)
{
	struct ssh2 *ssh2 = auth->ssh2;
	for (int i = 0; i < TRIES; i++) {
		ssh2->keyboard = (struct ssh2_keyboard){.fresh = i > 0};
		enum ssh2_auth_result result = try_keyboard(auth);
		if (result != SSH2_AUTH_REFUSED)
			return result;
		ssh2_auth_note(auth, "keyboard-interactive %s",
		               ssh2->keyboard.unanswered ? "without an answer" : "refused");
		/* Without a question another try brings the same. */
		if (!ssh2->keyboard.questions || ssh2->keyboard.unanswered)
			return SSH2_AUTH_REFUSED;
	}
	/* Who was asked three times is not asked three times more for the same password. */
	auth->done |= 1U << PASSWORD;
	return SSH2_AUTH_REFUSED;
}

/* --- the order of methods --- */

struct method {
	const char *name;
	enum ssh2_auth_result (*run)(struct ssh2_auth *auth);
	bool secret; /* sends something that could be replayed */
};

static const struct method methods[] = {
    [PUBLICKEY] = {"publickey", ssh2_auth_publickey, false},
    [KEYBOARD] = {"keyboard-interactive", auth_keyboard, true},
    [PASSWORD] = {"password", auth_password, true},
};

static bool allowed(const struct ssh2 *ssh2, size_t method)
{
	const struct ssh_target *target = ssh2->request.target;
	const bool by_user[] = {[PUBLICKEY] = target->pubkey_auth,
	                        [KEYBOARD] = target->keyboard_auth,
	                        [PASSWORD] = target->password_auth};
	return by_user[method] && !(methods[method].secret && ssh2->no_passwords);
}

static bool offers(const struct ssh2_auth *auth, const char *method)
{
	size_t length = strlen(method);
	for (const char *at = auth->offered; *at;) {
		size_t name = strcspn(at, ",");
		if (name == length && !memcmp(at, method, length))
			return true;
		at += name + (at[name] == ',');
	}
	return false;
}

/* The next method that the server offers and that is not exhausted; -1 when there is none. */
static int next_method(const struct ssh2_auth *auth)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (!(auth->done & 1U << i) && allowed(auth->ssh2, i) &&
		    offers(auth, methods[i].name))
			return (int)i;
	return -1;
}

static int give_up(struct ssh2_auth *auth)
{
	struct ssh2 *ssh2 = auth->ssh2;
	/* A person who was asked is not asked all over again by the ssh program. */
	if (!ssh2->asked)
		ssh2->ssh_may_help = true;
	return failure_set(
	    auth->failure, FAILURE_AUTH,
	    "%s: the server accepts none of our credentials; it offers: %s; tried: "
	    "%.500s",
	    ssh2->peer, *auth->offered ? auth->offered : "nothing",
	    auth->tried.length ? auth->tried.data : "nothing that it offers");
}

static int run_methods(struct ssh2_auth *auth)
{
	struct ssh2 *ssh2 = auth->ssh2;
	enum ssh2_auth_result result = ask_server(auth);
	while (result != SSH2_AUTH_OK && result != SSH2_AUTH_FATAL) {
		int next = next_method(auth);
		if (next < 0)
			return give_up(auth);
		/* What libssh2 had to skip the ssh program can offer, without asking anybody.
		 */
		if (methods[next].secret && ssh2->request.may_fall_back && ssh2->ssh_may_help)
			return give_up(auth);
		result = methods[next].run(auth);
		auth->done |= 1U << next;
		if (result == SSH2_AUTH_OK)
			log_debug("%s: authenticated by %s", ssh2->peer, methods[next].name);
	}
	if (result == SSH2_AUTH_OK)
		return 0;
	if (ssh2_lost(ssh2)) {
		const char *words = tail_text(&ssh2->words);
		/* Before anything was tried it was the line, not us. */
		failure_set(
		    auth->failure, auth->tried.length ? FAILURE_AUTH : FAILURE_UNREACHABLE,
		    "%s: the server hung up during authentication (%.200s); tried: %.500s",
		    ssh2->peer, *words ? words : "too many tries, or it refuses this user",
		    auth->tried.length ? auth->tried.data : "nothing");
	}
	return -1;
}

int ssh2_authenticate(struct ssh2 *ssh2, struct failure *failure)
{
	struct ssh2_auth auth = {.ssh2 = ssh2, .failure = failure, .tried = BYTES_INIT};
	int result = run_methods(&auth);
	bytes_release(&auth.tried);
	return result;
}
