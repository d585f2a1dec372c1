#include "config/prompter.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "config/askpass.h"
#include "config/spawn.h"
#include "config/terminal.h"

enum { ASKERS_KEPT = 16, TRIES = 3, STOP_PATIENCE_S = 1, PASSWORD_MAX = 4096, VARIABLES = 3 };

/* What was said to a prompt. A newer answer stands before an older one, which is kept as
 * somebody may still read its secret. */
struct answer {
	struct answer *next;
	char *prompt;
	struct secret *secret;
	bool borrowed;             /* the secret is that of password_stdin */
	pid_t askers[ASKERS_KEPT]; /* ssh processes that were given it, a ring */
	unsigned asker_count;
};

struct decision {
	struct decision *next;
	char *question;
	bool yes;
};

struct prompter {
	struct ssh_prompter base;
	struct secret *password;
	bool batch;
	atomic_bool stopped;
	atomic_uint_least64_t asked_ns;    /* by questions that are over */
	atomic_uint_least64_t asking_from; /* when the open question was put; 0: none is */
	char *askpass, *askpass_require, *self;

	pthread_mutex_t
	    people_lock; /* held while a person is asked; taken before memory_lock */
	pthread_mutex_t memory_lock; /* the members below */
	struct answer *answers;
	struct decision *decisions;
	struct askpass_server *server;
	char *environment[VARIABLES + 1];
};

static struct prompter *prompter_of(struct ssh_prompter *base)
{
	return CONTAINER_OF(base, struct prompter, base);
}

/* ---- memory (with memory_lock) ---- */

static struct answer *find_answer(const struct prompter *prompter, const char *prompt)
{
	for (struct answer *at = prompter->answers; at; at = at->next)
		if (strcmp(at->prompt, prompt) == 0)
			return at;
	return NULL;
}

/* Takes the secret over, also when memory is out (NULL then). */
static struct answer *remember(struct prompter *prompter, const char *prompt,
                               struct secret *secret, bool borrowed)
{
	struct answer *answer = calloc(1, sizeof(*answer));
	char *copy = strdup(prompt);
	if (!answer || !copy) {
		free(answer);
		free(copy);
		if (!borrowed)
			secret_free(secret);
		return NULL;
	}
	*answer = (struct answer){
	    .next = prompter->answers, .prompt = copy, .secret = secret, .borrowed = borrowed};
	prompter->answers = answer;
	return answer;
}

static struct decision *find_decision(const struct prompter *prompter, const char *question)
{
	for (struct decision *at = prompter->decisions; at; at = at->next)
		if (strcmp(at->question, question) == 0)
			return at;
	return NULL;
}

static void remember_decision(struct prompter *prompter, const char *question, bool yes)
{
	struct decision *decision = calloc(1, sizeof(*decision));
	char *copy = strdup(question);
	if (!decision || !copy) {
		free(decision); /* it will be asked again */
		free(copy);
		return;
	}
	*decision = (struct decision){prompter->decisions, copy, yes};
	prompter->decisions = decision;
}

/* ---- people ---- */

static bool prefers_askpass(const struct prompter *prompter)
{
	const char *require = prompter->askpass_require ? prompter->askpass_require : "";
	if (!prompter->askpass || strcmp(require, "never") == 0)
		return false;
	return strcmp(require, "force") == 0 || strcmp(require, "prefer") == 0 ||
	       !terminal_present();
}

static struct secret *ask_program(struct prompter *prompter, const char *prompt)
{
	char *argv[] = {prompter->askpass, (char *)(uintptr_t)prompt, NULL};
	struct bytes out = BYTES_INIT;
	struct secret *secret = NULL;
	int status = 0;
	int err = spawn_capture(argv, UINT64_MAX, &prompter->stopped, &out, NULL, &status);
	if (err < 0 && err != -ECANCELED)
		log_warn("cannot run %s (SSH_ASKPASS): %s", prompter->askpass, strerror(-err));
	if (err == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		const char *text = out.data ? out.data : "";
		secret = secret_new(text, strcspn(text, "\r\n"));
	}
	if (out.data)
		secret_wipe(out.data, out.capacity);
	bytes_release(&out);
	return secret;
}

static struct secret *ask_somewhere(struct prompter *prompter, const char *prompt, bool echo)
{
	struct secret *secret = NULL;
	if (prefers_askpass(prompter))
		return ask_program(prompter, prompt);
	int err = terminal_ask(prompt, echo, &prompter->stopped, &secret);
	if (err < 0 && err != -ENXIO && err != -ECANCELED)
		log_warn("cannot ask on the terminal: %s", strerror(-err));
	return secret;
}

/* With people_lock. NULL: nobody answered. */
static struct secret *ask_person(struct prompter *prompter, const char *prompt, bool echo)
{
	if (prompter->batch || atomic_load(&prompter->stopped))
		return NULL;
	uint64_t from = clock_now_ns();
	atomic_store(&prompter->asking_from, from);
	struct secret *secret = ask_somewhere(prompter, prompt, echo);
	atomic_fetch_add(&prompter->asked_ns, clock_now_ns() - from);
	atomic_store(&prompter->asking_from, 0);
	return secret;
}

static uint64_t asked_ns(struct ssh_prompter *base)
{
	struct prompter *prompter = prompter_of(base);
	uint64_t from = atomic_load(&prompter->asking_from);
	uint64_t now = clock_now_ns();
	return atomic_load(&prompter->asked_ns) + (from && now > from ? now - from : 0);
}

static bool password_fits(const char *prompt)
{
	return strcasestr(prompt, "password") || strcasestr(prompt, "passphrase");
}

/*
 * The answer as remembered, or as password_stdin has it. `fresh` wants another than the one
 * remembered now, which *seen is set to.
 */
static struct answer *recall(struct prompter *prompter, const char *prompt, bool fresh,
                             const struct answer **seen)
{
	LOCK_SCOPE(&prompter->memory_lock);
	struct answer *answer = find_answer(prompter, prompt);
	*seen = answer;
	if (answer)
		return fresh ? NULL : answer;
	if (fresh || !prompter->password || !password_fits(prompt))
		return NULL;
	return remember(prompter, prompt, prompter->password, true);
}

static struct answer *find_or_ask(struct prompter *prompter, const char *prompt, bool echo,
                                  bool fresh)
{
	const struct answer *seen;
	struct answer *answer = recall(prompter, prompt, fresh, &seen);
	if (answer)
		return answer;

	LOCK_SCOPE(&prompter->people_lock);
	pthread_mutex_lock(&prompter->memory_lock);
	answer = find_answer(prompter, prompt);
	pthread_mutex_unlock(&prompter->memory_lock);
	if (answer != seen) /* while we waited, another lane has asked this very thing */
		return answer;
	struct secret *secret = ask_person(prompter, prompt, echo);
	if (!secret)
		return NULL;
	LOCK_SCOPE(&prompter->memory_lock);
	return remember(prompter, prompt, secret, false);
}

static const struct secret *ask(struct ssh_prompter *base, const char *prompt, bool echo,
                                bool fresh)
{
	const struct answer *answer = find_or_ask(prompter_of(base), prompt, echo, fresh);
	return answer ? answer->secret : NULL;
}

/* ---- yes or no ---- */

/* -1: try again. A fingerprint typed in full is a yes when it is the one in the question. */
static int parse_decision(const char *question, const char *text)
{
	if (strcasecmp(text, "yes") == 0)
		return 1;
	if (strcasecmp(text, "no") == 0)
		return 0;
	if (strncmp(text, "SHA256:", 7) == 0 && strlen(text) >= 50)
		return strstr(question, text) != NULL;
	return -1;
}

/* 1, 0, or -1: nobody answered. */
static int decide(struct prompter *prompter, const char *question)
{
	CLEANUP_FREE char *prompt = NULL;
	if (asprintf(&prompt, "%s%s", question,
	             strstr(question, "yes/no") ? "" : " (yes/no)? ") < 0) {
		prompt = NULL;
		return -1;
	}
	for (int i = 0; i < TRIES; i++) {
		struct secret *secret = ask_person(prompter, prompt, true);
		if (!secret)
			return -1;
		int decision = parse_decision(question, secret_text(secret));
		secret_free(secret);
		if (decision >= 0)
			return decision;
		terminal_say("Please type 'yes' or 'no'");
	}
	return -1;
}

static int confirm(struct ssh_prompter *base, const char *question)
{
	struct prompter *prompter = prompter_of(base);
	LOCK_SCOPE(&prompter->people_lock);
	pthread_mutex_lock(&prompter->memory_lock);
	const struct decision *known = find_decision(prompter, question);
	pthread_mutex_unlock(&prompter->memory_lock);
	if (known)
		return known->yes;
	int decision = decide(prompter, question);
	LOCK_SCOPE(&prompter->memory_lock);
	if (decision >= 0)
		remember_decision(prompter, question, decision == 1);
	return decision;
}

/* ---- the child's way ---- */

/* Notes that this ssh was given the answer; true when it had been given it before: it was
 * wrong then. */
static bool note_asker(struct answer *answer, pid_t asker)
{
	for (unsigned i = 0; i < MIN(answer->asker_count, (unsigned)ASKERS_KEPT); i++)
		if (answer->askers[i] == asker)
			return true;
	answer->askers[answer->asker_count++ % ASKERS_KEPT] = asker;
	return false;
}

/* note_asker() for the present answer to the prompt, if there is one. */
static bool asked_before(struct prompter *prompter, const char *prompt, pid_t asker)
{
	LOCK_SCOPE(&prompter->memory_lock);
	struct answer *answer = find_answer(prompter, prompt);
	return answer && note_asker(answer, asker);
}

static enum askpass_reply answer_child(void *context, pid_t asker, enum askpass_kind kind,
                                       const char *prompt, const char **answer)
{
	struct prompter *prompter = context;
	if (kind == ASKPASS_NOTICE) {
		if (!atomic_load(&prompter->stopped) && !prompter->batch)
			terminal_say(prompt);
		return ASKPASS_WAIT;
	}
	if (kind == ASKPASS_CONFIRM || strstr(prompt, "yes/no")) {
		int decision = confirm(&prompter->base, prompt);
		*answer = decision == 1 ? "yes" : "no";
		if (decision < 0 || (decision == 0 && kind == ASKPASS_CONFIRM))
			return ASKPASS_NO_ANSWER;
		return ASKPASS_ANSWER;
	}
	bool fresh = asked_before(prompter, prompt, asker);
	struct answer *found = find_or_ask(prompter, prompt, false, fresh);
	if (!found)
		return ASKPASS_NO_ANSWER;
	LOCK_SCOPE(&prompter->memory_lock);
	note_asker(found, asker);
	*answer = secret_text(found->secret);
	return ASKPASS_ANSWER;
}

/* With memory_lock. False when the child cannot ask through us. */
static bool start_server(struct prompter *prompter)
{
	int err = askpass_server_start(answer_child, prompter, &prompter->server);
	if (err < 0) {
		log_warn("ssh cannot ask through moorfs: %s", strerror(-err));
		return false;
	}
	char *entries[VARIABLES] = {NULL};
	bool good = asprintf(&entries[0], "SSH_ASKPASS=%s", prompter->self) >= 0 &&
	            asprintf(&entries[1], "SSH_ASKPASS_REQUIRE=force") >= 0 &&
	            asprintf(&entries[2], ASKPASS_SOCKET_VARIABLE "=%s",
	                     askpass_server_name(prompter->server)) >= 0;
	for (int i = 0; i < VARIABLES; i++)
		prompter->environment[i] = entries[i];
	return good;
}

static char *const *child_environment(struct ssh_prompter *base)
{
	struct prompter *prompter = prompter_of(base);
	if (prompter->batch || !prompter->self)
		return NULL;
	LOCK_SCOPE(&prompter->memory_lock);
	if (!prompter->server && !start_server(prompter))
		return NULL;
	return prompter->environment[VARIABLES - 1] ? prompter->environment : NULL;
}

/* ---- life ---- */

static char *own_path(void)
{
	char path[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
	return length > 0 && (size_t)length < sizeof(path) ? strndup(path, (size_t)length)
	                                                   : NULL;
}

static char *copy_variable(const char *name)
{
	const char *value = getenv(name);
	return value && *value ? strdup(value) : NULL;
}

struct ssh_prompter *prompter_new(struct secret *password, bool batch)
{
	struct prompter *prompter = calloc(1, sizeof(*prompter));
	if (!prompter) {
		secret_free(password);
		return NULL;
	}
	prompter->base = (struct ssh_prompter){.ask = ask,
	                                       .confirm = confirm,
	                                       .child_environment = child_environment,
	                                       .asked_ns = asked_ns};
	prompter->password = password;
	prompter->batch = batch;
	prompter->askpass = copy_variable("SSH_ASKPASS");
	prompter->askpass_require = copy_variable("SSH_ASKPASS_REQUIRE");
	prompter->self = own_path();
	pthread_mutex_init(&prompter->people_lock, NULL);
	pthread_mutex_init(&prompter->memory_lock, NULL);
	return &prompter->base;
}

static void free_memory(struct prompter *prompter)
{
	while (prompter->answers) {
		struct answer *answer = prompter->answers;
		prompter->answers = answer->next;
		if (!answer->borrowed)
			secret_free(answer->secret);
		free(answer->prompt);
		free(answer);
	}
	while (prompter->decisions) {
		struct decision *decision = prompter->decisions;
		prompter->decisions = decision->next;
		free(decision->question);
		free(decision);
	}
	secret_free(prompter->password);
}

void prompter_stop_asking(struct ssh_prompter *base)
{
	if (!base)
		return;
	struct prompter *prompter = prompter_of(base);
	atomic_store(&prompter->stopped, true);
	/* The one who asks now lets go of the terminal first. */
	LOCK_SCOPE(&prompter->people_lock);
}

void prompter_free(struct ssh_prompter *base)
{
	if (!base)
		return;
	struct prompter *prompter = prompter_of(base);
	prompter_stop_asking(base);
	askpass_server_stop(prompter->server);
	free_memory(prompter);
	for (int i = 0; i < VARIABLES; i++)
		free(prompter->environment[i]);
	pthread_mutex_destroy(&prompter->people_lock);
	pthread_mutex_destroy(&prompter->memory_lock);
	free(prompter->askpass);
	free(prompter->askpass_require);
	free(prompter->self);
	free(prompter);
}

int prompter_read_line(int fd, struct secret **line, struct failure *failure)
{
	char text[PASSWORD_MAX];
	size_t length = 0;
	int err = 0;
	while (err == 0 && length < sizeof(text)) {
		ssize_t count = read(fd, text + length, 1);
		if (count < 0 && errno == EINTR)
			continue;
		if (count < 0)
			err = failure_set(
			    failure, FAILURE_USAGE,
			    "option 'password_stdin': cannot read standard input: %s",
			    strerror(errno));
		if (count <= 0 || text[length] == '\n')
			break;
		length++;
	}
	if (err == 0 && length == 0)
		err = failure_set(failure, FAILURE_USAGE,
		                  "option 'password_stdin': standard input has no first line: "
		                  "write the password to it");
	if (err == 0 && length == sizeof(text))
		err = failure_set(
		    failure, FAILURE_USAGE,
		    "option 'password_stdin': the first line is longer than %d bytes",
		    (int)sizeof(text) - 1);
	if (err == 0) {
		*line = secret_new(text, length);
		if (!*line)
			err = failure_set(failure, FAILURE_INTERNAL, "out of memory");
	}
	secret_wipe(text, sizeof(text));
	return err;
}
