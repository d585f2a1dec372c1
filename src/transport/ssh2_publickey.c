#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/secret.h"
#include "transport/agent.h"
#include "transport/keyfile.h"
#include "transport/ssh2_internal.h"
#include "transport/sshkey.h"

enum { PASSPHRASE_TRIES = 3 };

/* An agent that does not even list its keys in this time is left aside. */
#define AGENT_LIST_NS (5 * NS_PER_SEC)

/* All keys there are to offer. */
struct keyring {
	struct agent agent;
	bool *agent_done; /* per agent key: offered already */
	struct keyfile *files;
	size_t file_count;
};

static struct agent_limit limit_of(const struct ssh2 *ssh2)
{
	return (struct agent_limit){ssh2->deadline_ns, ssh2->request.cancel};
}

/* Whether this libssh2 can use a key of the type; NULL (unknown) is worth a try. */
static bool usable(const char *type)
{
	static const char *const always[] = {"ssh-ed25519", "ecdsa-sha2-nistp256",
	                                     "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"};
	for (size_t i = 0; type && i < ARRAY_LEN(always); i++)
		if (!strcmp(type, always[i]))
			return true;
	return !type || (!strcmp(type, "ssh-rsa") && ssh2_has_rsa_sha2());
}

/* Notes a key that only the ssh program can use; DSA is nobody's any more. */
static void note_skipped(struct ssh2_auth *auth, const char *name, const char *type)
{
	if (!strcmp(type, "ssh-dss"))
		return;
	auth->ssh2->ssh_may_help = true;
	ssh2_auth_note(auth, "%s skipped (libssh2 %s cannot use %s, transport=ssh can)", name,
	               libssh2_version(0), type);
}

/*
 * What became of an offered key. -18 is a refusal before, -19 one after the signature, which
 * may have been a partial success.
 */
static enum ssh2_auth_result judge(struct ssh2_auth *auth, int rc, const char *name)
{
	if (!rc)
		return SSH2_AUTH_OK;
	if (rc == LIBSSH2_ERROR_EAGAIN)
		return SSH2_AUTH_FATAL;
	if (ssh2_lost(auth->ssh2)) {
		failure_set(auth->failure, FAILURE_AUTH, "%s: %s: %s", auth->ssh2->peer, name,
		            ssh2_message(auth->ssh2));
		return SSH2_AUTH_FATAL;
	}
	enum ssh2_auth_result result = rc == LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED
	                                   ? ssh2_auth_refused(auth)
	                                   : SSH2_AUTH_REFUSED;
	if (result == SSH2_AUTH_REFUSED)
		ssh2_auth_note(auth, "%s refused", name);
	return result;
}

/* --- the agent --- */

/* For the signature callback. */
struct signer {
	struct ssh2 *ssh2;
	struct agent *agent;
	const struct agent_key *key; /* NULL: sign nothing, only see whether the server would */
	bool reached;                /* the server accepts the key */
};

/* The algorithm in the data to be signed says which hash RSA wants. */
static uint32_t sign_flags(const unsigned char *data, size_t length)
{
	struct ssh_cursor cursor = {.at = data, .left = length};
	size_t size;
	ssh_cursor_string(&cursor, &size); /* session id */
	ssh_cursor_byte(&cursor);          /* message type */
	for (int i = 0; i < 3; i++)        /* user, service, "publickey" */
		ssh_cursor_string(&cursor, &size);
	ssh_cursor_byte(&cursor);
	const uint8_t *algorithm = ssh_cursor_string(&cursor, &size);
	if (!algorithm || size != 12)
		return 0;
	return !memcmp(algorithm, "rsa-sha2-512", 12)   ? AGENT_RSA_SHA2_512
	       : !memcmp(algorithm, "rsa-sha2-256", 12) ? AGENT_RSA_SHA2_256
	                                                : 0;
}

static LIBSSH2_USERAUTH_PUBLICKEY_SIGN_FUNC(on_sign)
{
	struct signer *signer = *abstract;
	uint8_t *signature = NULL;
	(void)session;
	signer->reached = true;
	if (!signer->key)
		return -1;
	int err =
	    agent_sign(signer->agent, signer->key, data, data_len, sign_flags(data, data_len),
	               limit_of(signer->ssh2), &signature, sig_len);
	if (err) {
		log_debug("the agent does not sign with %s: %s", signer->key->comment,
		          strerror(-err));
		return -1;
	}
	/* libssh2 frees it with the session's allocator. */
	*sig = ssh2_memory_alloc(&signer->ssh2->memory, *sig_len);
	if (*sig)
		memcpy(*sig, signature, *sig_len);
	free(signature);
	return *sig ? 0 : -1;
}

static int offer_blob(struct ssh2_auth *auth, struct signer *signer, const uint8_t *blob,
                      size_t length)
{
	struct ssh2 *ssh2 = auth->ssh2;
	void *abstract = signer;
	return SSH2_CALL(ssh2, auth->failure,
	                 libssh2_userauth_publickey(ssh2->session, ssh2->request.target->user,
	                                            blob, length, on_sign, &abstract));
}

static enum ssh2_auth_result try_agent_key(struct ssh2_auth *auth, struct keyring *ring,
                                           size_t i)
{
	const struct agent_key *key = &ring->agent.keys[i];
	char name[160], type[64];
	size_t type_length = 0;
	const char *at = sshkey_type(key->blob, key->length, &type_length);
	char comment[100];
	log_quote(comment, sizeof(comment), key->comment, strlen(key->comment));
	snprintf(name, sizeof(name), "agent key %s", comment);
	snprintf(type, sizeof(type), "%.*s", (int)type_length, at ? at : "");
	ring->agent_done[i] = true;
	if (!usable(type)) {
		note_skipped(auth, name, type);
		return SSH2_AUTH_REFUSED;
	}
	struct signer signer = {.ssh2 = auth->ssh2, .agent = &ring->agent, .key = key};
	return judge(auth, offer_blob(auth, &signer, key->blob, key->length), name);
}

static bool is_key_of(const struct keyfile *file, const struct agent_key *key)
{
	return file->public_blob && file->public_length == key->length &&
	       !memcmp(file->public_blob, key->blob, key->length);
}

/* Whether some identity file is this agent key. */
static bool is_configured(const struct keyring *ring, const struct agent_key *key)
{
	for (size_t i = 0; i < ring->file_count; i++)
		if (is_key_of(&ring->files[i], key))
			return true;
	return false;
}

/* First the keys that the configuration names, then, unless IdentitiesOnly, the others. */
static enum ssh2_auth_result try_agent(struct ssh2_auth *auth, struct keyring *ring)
{
	bool only = auth->ssh2->request.target->identities_only;
	for (int configured = 1; configured >= (only ? 1 : 0); configured--) {
		for (size_t i = 0; i < ring->agent.count; i++) {
			if (is_configured(ring, &ring->agent.keys[i]) != (configured == 1))
				continue;
			enum ssh2_auth_result result = try_agent_key(auth, ring, i);
			if (result != SSH2_AUTH_REFUSED)
				return result;
		}
	}
	return SSH2_AUTH_REFUSED;
}

/* --- key files --- */

static int offer_file(struct ssh2_auth *auth, const struct keyfile *file,
                      const char *passphrase)
{
	struct ssh2 *ssh2 = auth->ssh2;
	const char *user = ssh2->request.target->user;
	return SSH2_CALL(
	    ssh2, auth->failure,
	    libssh2_userauth_publickey_frommemory(ssh2->session, user, strlen(user), NULL, 0,
	                                          file->text, file->length, passphrase));
}

/* True for a result of offer_file that is about the file and not about the server. */
static bool unreadable(int rc)
{
	return rc && rc != LIBSSH2_ERROR_EAGAIN && rc != LIBSSH2_ERROR_AUTHENTICATION_FAILED &&
	       rc != LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED;
}

static enum ssh2_auth_result try_plain(struct ssh2_auth *auth, const struct keyfile *file)
{
	int rc = offer_file(auth, file, NULL);
	if (unreadable(rc) && !ssh2_lost(auth->ssh2)) {
		auth->ssh2->ssh_may_help = true;
		ssh2_auth_note(auth, "key %s cannot be used (%s)", file->path,
		               ssh2_message(auth->ssh2));
		return SSH2_AUTH_REFUSED;
	}
	char name[300];
	snprintf(name, sizeof(name), "key %s", file->path);
	return judge(auth, rc, name);
}

/*
 * Whether the server would take the key: nobody is asked for the passphrase of one it would
 * not. A key whose public half is unknown must be tried. OK: ask; REFUSED; FATAL.
 */
static enum ssh2_auth_result worth_asking(struct ssh2_auth *auth, const struct keyfile *file)
{
	if (!file->public_blob)
		return SSH2_AUTH_OK;
	struct signer signer = {.ssh2 = auth->ssh2};
	int rc = offer_blob(auth, &signer, file->public_blob, file->public_length);
	if (rc == LIBSSH2_ERROR_EAGAIN)
		return SSH2_AUTH_FATAL;
	if (signer.reached)
		return SSH2_AUTH_OK;
	char name[300];
	snprintf(name, sizeof(name), "key %s", file->path);
	return judge(auth, rc, name);
}

static enum ssh2_auth_result try_encrypted(struct ssh2_auth *auth, const struct keyfile *file)
{
	char name[300], prompt[400];
	enum ssh2_auth_result result = worth_asking(auth, file);
	if (result != SSH2_AUTH_OK)
		return result;
	if (libssh2_userauth_authenticated(auth->ssh2->session))
		return SSH2_AUTH_OK;
	snprintf(name, sizeof(name), "key %s", file->path);
	/* As the ssh program asks: an answer given here then serves it too, and the reverse. */
	snprintf(prompt, sizeof(prompt), "Enter passphrase for key '%s': ", file->path);
	for (int i = 0; i < PASSPHRASE_TRIES; i++) {
		const struct secret *secret = ssh2_ask(auth->ssh2, prompt, false, i > 0);
		if (!secret) {
			ssh2_auth_note(auth, "%s: nobody to ask for the passphrase", name);
			return SSH2_AUTH_REFUSED;
		}
		int rc = offer_file(auth, file, secret_text(secret));
		if (!unreadable(rc) || ssh2_lost(auth->ssh2))
			return judge(auth, rc, name);
		ssh2_auth_note(auth, "%s: wrong passphrase", name);
	}
	return SSH2_AUTH_REFUSED;
}

/* Whether the agent has offered the same key. */
static bool offered_by_agent(const struct keyring *ring, const struct keyfile *file)
{
	for (size_t i = 0; i < ring->agent.count; i++)
		if (ring->agent_done[i] && is_key_of(file, &ring->agent.keys[i]))
			return true;
	return false;
}

static enum ssh2_auth_result try_files(struct ssh2_auth *auth, struct keyring *ring,
                                       bool encrypted)
{
	for (size_t i = 0; i < ring->file_count; i++) {
		const struct keyfile *file = &ring->files[i];
		if (!file->text || file->encrypted != encrypted || offered_by_agent(ring, file))
			continue;
		enum ssh2_auth_result result = SSH2_AUTH_REFUSED;
		if (!usable(file->type))
			note_skipped(auth, file->path, file->type);
		else
			result = encrypted ? try_encrypted(auth, file) : try_plain(auth, file);
		if (result != SSH2_AUTH_REFUSED)
			return result;
	}
	return SSH2_AUTH_REFUSED;
}

/* --- all of them --- */

static int load_files(struct ssh2_auth *auth, struct keyring *ring)
{
	char *const *paths = auth->ssh2->request.target->identities;
	size_t count = 0;
	while (paths && paths[count])
		count++;
	ring->files = calloc(count + 1, sizeof(*ring->files));
	if (!ring->files)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const char *problem = NULL;
		int err = keyfile_load(&ring->files[ring->file_count], paths[i], &problem);
		if (!err)
			ring->file_count++;
		else if (err != -ENOENT && err != -ENOTDIR)
			ssh2_auth_note(auth, "key %s not used: %s", paths[i], problem);
	}
	return 0;
}

static int load_agent(struct ssh2_auth *auth, struct keyring *ring)
{
	const char *path = auth->ssh2->request.target->agent_socket;
	if (!path || !*path)
		return 0;
	struct agent_limit limit = limit_of(auth->ssh2);
	limit.deadline_ns = MIN(limit.deadline_ns, clock_now_ns() + AGENT_LIST_NS);
	int err = agent_open(&ring->agent, path, limit);
	if (err && err != -ENOENT)
		ssh2_auth_note(auth, "agent %s: %s", path, strerror(-err));
	ring->agent_done = calloc(ring->agent.count + 1, sizeof(*ring->agent_done));
	return ring->agent_done ? 0 : -ENOMEM;
}

static enum ssh2_auth_result try_all(struct ssh2_auth *auth, struct keyring *ring)
{
	struct ssh2 *ssh2 = auth->ssh2;
	enum ssh2_auth_result result = try_agent(auth, ring);
	if (result == SSH2_AUTH_REFUSED)
		result = try_files(auth, ring, false);
	/* Before a person is asked, the ssh program tries what libssh2 had to skip. */
	if (result == SSH2_AUTH_REFUSED && !(ssh2->request.may_fall_back && ssh2->ssh_may_help))
		result = try_files(auth, ring, true);
	return result;
}

enum ssh2_auth_result ssh2_auth_publickey(struct ssh2_auth *auth)
{
	struct keyring ring = {.agent = {.fd = -1}};
	enum ssh2_auth_result result = SSH2_AUTH_FATAL;
	if (load_files(auth, &ring) || load_agent(auth, &ring))
		failure_set(auth->failure, FAILURE_INTERNAL, "out of memory");
	else
		result = try_all(auth, &ring);
	for (size_t i = 0; i < ring.file_count; i++)
		keyfile_release(&ring.files[i]);
	free(ring.files);
	free(ring.agent_done);
	agent_close(&ring.agent);
	return result;
}
