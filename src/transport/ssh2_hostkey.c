#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "transport/knownhosts.h"
#include "transport/ssh2_internal.h"
#include "transport/sshkey.h"

/* The key the server showed, and how to speak of it. */
struct shown {
	const void *blob;
	size_t length;
	const char *family; /* "ED25519" */
	char *fingerprint;  /* "SHA256:..." */
	char *name;         /* as in known_hosts */
};

static int load_files(struct knownhosts *known, const char *name, char *const *files)
{
	for (; files && *files; files++) {
		int err = knownhosts_load(known, name, *files);
		if (err == -ENOMEM)
			return err;
		if (err)
			log_warn("cannot read %s: %s", *files, strerror(-err));
	}
	return 0;
}

static int load_name(struct knownhosts *known, const struct ssh_target *target,
                     const char *name)
{
	int err = name ? load_files(known, name, target->user_known_hosts) : -ENOMEM;
	return err ? err : load_files(known, name, target->global_known_hosts);
}

int ssh2_load_known(struct ssh2 *ssh2, struct knownhosts *known, struct failure *failure)
{
	const struct ssh_target *target = ssh2->request.target;
	CLEANUP_FREE char *name =
	    knownhosts_name(target->hostname, target->port, target->host_key_alias);
	if (load_name(known, target, name))
		return failure_set(failure, FAILURE_INTERNAL, "out of memory");
	return 0;
}

/* True when the key is known for the host without regard to the port, as ssh accepts it. */
static bool known_without_port(struct ssh2 *ssh2, const struct shown *shown)
{
	const struct ssh_target *target = ssh2->request.target;
	if (target->port == 22 || target->host_key_alias)
		return false;
	struct knownhosts known = {0};
	const struct known_key *where;
	CLEANUP_FREE char *name = knownhosts_name(target->hostname, 22, NULL);
	bool match =
	    load_name(&known, target, name) == 0 &&
	    knownhosts_check(&known, shown->blob, shown->length, &where) == KNOWN_MATCH;
	knownhosts_release(&known);
	return match;
}

/* The key to which a person said yes for another lane, when no file could keep it. */
static bool accepted_before(struct ssh2 *ssh2, const struct shown *shown)
{
	struct ssh2_shared *shared = ssh2->request.shared;
	LOCK_SCOPE(&shared->accepted_lock);
	return shared->accepted_key.length == shown->length &&
	       !memcmp(shared->accepted_key.data, shown->blob, shown->length);
}

static void remember(struct ssh2 *ssh2, const struct shown *shown)
{
	const struct ssh_target *target = ssh2->request.target;
	struct ssh2_shared *shared = ssh2->request.shared;
	{
		LOCK_SCOPE(&shared->accepted_lock);
		bytes_clear(&shared->accepted_key);
		bytes_add(&shared->accepted_key, shown->blob, shown->length);
	}
	const char *path = target->user_known_hosts ? *target->user_known_hosts : NULL;
	if (!path || !strcmp(path, "none"))
		return;
	int err = knownhosts_add(path, shown->name, target->hash_known_hosts, shown->blob,
	                         shown->length);
	if (err)
		log_warn("cannot add the %s host key of %s to %s: %s", shown->family,
		         shown->name, path, strerror(-err));
	else
		log_info("added the %s host key of %s (%s) to %s", shown->family, shown->name,
		         shown->fingerprint, path);
}

static int refuse_unknown(struct ssh2 *ssh2, const struct shown *shown, struct failure *failure)
{
	return failure_set(
	    failure, FAILURE_HOST_KEY,
	    "%s: the server's %s host key (%s) is not known: check the fingerprint "
	    "with its owner, then connect once with ssh %s to accept it, or give -o "
	    "StrictHostKeyChecking=accept-new",
	    shown->name, shown->family, shown->fingerprint, ssh2->request.target->alias);
}

static int ask_person(struct ssh2 *ssh2, const struct shown *shown, bool others_known,
                      struct failure *failure)
{
	struct ssh_prompter *prompter = ssh2->request.prompter;
	CLEANUP_FREE char *question = NULL;
	if (asprintf(&question,
	             "%s has shown a host key that is not known yet%s.\n"
	             "%s fingerprint: %s\n"
	             "Do you trust this key and want to connect",
	             shown->name, others_known ? ", although other keys of this host are" : "",
	             shown->family, shown->fingerprint) < 0) {
		question = NULL;
		return failure_set(failure, FAILURE_INTERNAL, "out of memory");
	}
	uint64_t before = clock_now_ns();
	int answer = prompter->confirm(prompter, question);
	ssh2->deadline_ns += clock_now_ns() - before;
	ssh2->asked++;
	if (answer < 0)
		return refuse_unknown(ssh2, shown, failure);
	if (!answer)
		return failure_set(failure, FAILURE_HOST_KEY,
		                   "%s: the host key was not accepted", shown->name);
	remember(ssh2, shown);
	return 0;
}

static int decide_unknown(struct ssh2 *ssh2, const struct shown *shown,
                          const struct known_key *other, struct failure *failure)
{
	if (other && ssh2->request.may_fall_back) {
		/* libssh2 may lack the algorithm of the key that is known. */
		ssh2->ssh_may_help = true;
		return failure_set(failure, FAILURE_HOST_KEY,
		                   "%s: another type of host key than %s is known (%s line %u)",
		                   shown->name, shown->family, other->file, other->line);
	}
	switch (ssh2->request.target->host_key_policy) {
	case HOST_KEY_ASK:
		return ask_person(ssh2, shown, other != NULL, failure);
	case HOST_KEY_STRICT:
		return refuse_unknown(ssh2, shown, failure);
	case HOST_KEY_ACCEPT_NEW:
	case HOST_KEY_NO:
		remember(ssh2, shown);
		return 0;
	}
	return refuse_unknown(ssh2, shown, failure);
}

static int decide_changed(struct ssh2 *ssh2, const struct shown *shown,
                          const struct known_key *where, struct failure *failure)
{
	if (ssh2->request.target->host_key_policy == HOST_KEY_NO) {
		log_warn(
		    "THE HOST KEY OF %s HAS CHANGED since %s line %u was written; going on "
		    "without passwords, because StrictHostKeyChecking=no",
		    shown->name, where->file, where->line);
		ssh2->no_passwords = true;
		return 0;
	}
	return failure_set(
	    failure, FAILURE_HOST_KEY,
	    "THE HOST KEY OF %s HAS CHANGED: the server shows the %s key %s, and %s line %u "
	    "holds "
	    "another one. Somebody may be intercepting the connection, or the server was "
	    "reinstalled. Nothing was sent. Check the fingerprint with the server's owner; if "
	    "it is "
	    "right, remove the old key with: ssh-keygen -f \"%s\" -R \"%s\"",
	    shown->name, shown->family, shown->fingerprint, where->file, where->line,
	    where->file, shown->name);
}

static int decide(struct ssh2 *ssh2, const struct knownhosts *known, const struct shown *shown,
                  struct failure *failure)
{
	const struct known_key *where;
	enum known_verdict verdict =
	    knownhosts_check(known, shown->blob, shown->length, &where);
	if (verdict == KNOWN_MATCH) {
		log_debug("%s: %s host key %s is in %s line %u", shown->name, shown->family,
		          shown->fingerprint, where->file, where->line);
		return 0;
	}
	if (verdict != KNOWN_IS_REVOKED && verdict != KNOWN_CHANGED &&
	    (accepted_before(ssh2, shown) || known_without_port(ssh2, shown)))
		return 0;
	switch (verdict) {
	case KNOWN_MATCH:
		break;
	case KNOWN_IS_REVOKED:
		return failure_set(
		    failure, FAILURE_HOST_KEY,
		    "THE HOST KEY OF %s IS REVOKED: %s line %u forbids the %s key %s. "
		    "Nothing was sent. Do not connect before the server's owner has "
		    "explained it",
		    shown->name, where->file, where->line, shown->family, shown->fingerprint);
	case KNOWN_CHANGED:
		return decide_changed(ssh2, shown, where, failure);
	case KNOWN_CA_ONLY:
		ssh2->ssh_may_help = true;
		return failure_set(
		    failure, FAILURE_HOST_KEY,
		    "%s: only a certificate authority is known for this host (%s line "
		    "%u), which needs transport=ssh",
		    shown->name, where->file, where->line);
	case KNOWN_OTHER_TYPE:
	case KNOWN_ABSENT:
		return decide_unknown(ssh2, shown, where, failure);
	}
	return 0;
}

int ssh2_check_host_key(struct ssh2 *ssh2, const struct knownhosts *known,
                        struct failure *failure)
{
	const struct ssh_target *target = ssh2->request.target;
	int type;
	struct shown shown = {0};
	shown.blob = libssh2_session_hostkey(ssh2->session, &shown.length, &type);
	if (!shown.blob)
		return failure_set(failure, FAILURE_PROTOCOL,
		                   "%s: the server shows no host key", ssh2->peer);
	shown.family = sshkey_family(shown.blob, shown.length);
	shown.fingerprint = sshkey_fingerprint(shown.blob, shown.length);
	shown.name = knownhosts_name(target->hostname, target->port, target->host_key_alias);
	int result = shown.fingerprint && shown.name
	                 ? decide(ssh2, known, &shown, failure)
	                 : failure_set(failure, FAILURE_INTERNAL, "out of memory");
	free(shown.fingerprint);
	free(shown.name);
	return result;
}
