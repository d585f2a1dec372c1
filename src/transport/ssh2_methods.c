#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "transport/knownhosts.h"
#include "transport/ssh2_internal.h"
#include "transport/sshkey.h"

/*
 * What costs the least CPU among what is safe. Names that the libssh2 at hand does not know are
 * left out, so the lists may name what only newer ones have: their AES-GCM and ChaCha20 are
 * slower than CTR with a MAC, and come after it.
 */
static const char default_ciphers[] =
    "aes128-ctr,aes256-ctr,aes192-ctr,aes128-gcm@openssh.com,aes256-gcm@openssh.com,"
    "chacha20-poly1305@openssh.com";
static const char default_macs[] =
    "hmac-sha2-256,hmac-sha2-256-etm@openssh.com,hmac-sha1,hmac-sha2-512,"
    "hmac-sha2-512-etm@openssh.com,hmac-sha1-etm@openssh.com";
static const char default_kex[] =
    "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384,"
    "ecdh-sha2-nistp521,diffie-hellman-group-exchange-sha256,diffie-hellman-group16-sha512,"
    "diffie-hellman-group18-sha512,diffie-hellman-group14-sha256";
static const char default_host_keys[] =
    "ssh-ed25519,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,rsa-sha2-512,"
    "rsa-sha2-256,ssh-rsa";

bool ssh2_has_rsa_sha2(void)
{
	return libssh2_version(0x010b00) != NULL;
}

/* One name of a comma list. */
struct name {
	const char *at;
	size_t length;
};

/* Moves *list behind its first name; false at the end. */
static bool next_name(const char **list, struct name *name)
{
	while (**list == ',')
		(*list)++;
	name->at = *list;
	name->length = strcspn(*list, ",");
	*list += name->length;
	return name->length > 0;
}

static bool name_is(struct name name, const char *text)
{
	return name.length == strlen(text) && !memcmp(name.at, text, name.length);
}

static bool in_list(const char *list, struct name wanted)
{
	struct name name;
	while (next_name(&list, &name))
		if (name.length == wanted.length && !memcmp(name.at, wanted.at, name.length))
			return true;
	return false;
}

static void add_name(struct bytes *list, struct name name)
{
	if (list->length && in_list(list->data, name))
		return;
	if (list->length)
		bytes_add_byte(list, ',');
	bytes_add(list, name.at, name.length);
}

/* Adds the names of `list` that `keep` accepts. */
static void add_list(struct bytes *out, const char *list,
                     bool (*keep)(struct name name, const void *arg), const void *arg)
{
	struct name name;
	while (next_name(&list, &name))
		if (!keep || keep(name, arg))
			add_name(out, name);
}

static bool not_in(struct name name, const void *list)
{
	return !in_list(list, name);
}

/* What the user wrote, with ssh_config's ^ (put first), + (add) and - (remove). */
static void expand(struct bytes *out, const char *given, const char *defaults)
{
	if (!given || !*given) {
		add_list(out, defaults, NULL, NULL);
	} else if (*given == '^') {
		add_list(out, given + 1, NULL, NULL);
		add_list(out, defaults, NULL, NULL);
	} else if (*given == '+') {
		add_list(out, defaults, NULL, NULL);
		add_list(out, given + 1, NULL, NULL);
	} else if (*given == '-') {
		add_list(out, defaults, not_in, given + 1);
	} else {
		add_list(out, given, NULL, NULL);
	}
}

struct supported {
	const char **names;
	int count;
};

static bool is_supported(struct name name, const void *arg)
{
	const struct supported *supported = arg;
	/* Certificates are the ssh program's: their keys would not be found in known_hosts. */
	if (memmem(name.at, name.length, "-cert-", 6))
		return false;
	for (int i = 0; i < supported->count; i++)
		if (name_is(name, supported->names[i]))
			return true;
	return false;
}

/* Offers the names of the list that libssh2 knows; `keyword` is ssh_config's word for them. */
static int offer(struct ssh2 *ssh2, int method, const char *keyword, const char *list,
                 struct failure *failure)
{
	struct supported supported = {0};
	supported.count =
	    libssh2_session_supported_algs(ssh2->session, method, &supported.names);
	struct bytes known = BYTES_INIT;
	if (supported.count > 0)
		add_list(&known, list, is_supported, &supported);
	int result = 0;
	if (supported.count < 0 || known.failed)
		result = failure_set(failure, FAILURE_INTERNAL, "out of memory");
	else if (!known.length) {
		ssh2->ssh_may_help = true;
		result = failure_set(failure, FAILURE_PROTOCOL,
		                     "%s: libssh2 %s knows none of %s %s: use transport=ssh",
		                     ssh2->peer, libssh2_version(0), keyword, list);
	} else if (libssh2_session_method_pref(ssh2->session, method, known.data))
		result = failure_set(failure, FAILURE_INTERNAL, "%s: %s: %s", ssh2->peer,
		                     keyword, ssh2_message(ssh2));
	if (supported.names)
		libssh2_free(ssh2->session, supported.names);
	bytes_release(&known);
	return result;
}

/* True when a host key algorithm yields keys of this type. */
static bool yields_type(struct name algorithm, const void *blob, size_t length)
{
	size_t type_length = 0;
	const char *type = sshkey_type(blob, length, &type_length);
	if (!type)
		return false;
	if (algorithm.length == type_length && !memcmp(algorithm.at, type, type_length))
		return true;
	return sshkey_is(blob, length, "ssh-rsa") &&
	       (name_is(algorithm, "rsa-sha2-256") || name_is(algorithm, "rsa-sha2-512"));
}

static bool yields_known(struct name algorithm, const void *arg)
{
	const struct knownhosts *known = arg;
	for (size_t i = 0; i < known->count; i++)
		if (known->keys[i].marker == KNOWN_HOST &&
		    yields_type(algorithm, known->keys[i].blob, known->keys[i].length))
			return true;
	return false;
}

/* Known types first: a server with several keys must not look unknown. */
static int offer_host_keys(struct ssh2 *ssh2, const struct knownhosts *known,
                           struct failure *failure)
{
	struct bytes all = BYTES_INIT, ordered = BYTES_INIT;
	expand(&all, ssh2->request.target->host_key_algorithms, default_host_keys);
	if (all.length) {
		add_list(&ordered, all.data, yields_known, known);
		add_list(&ordered, all.data, NULL, NULL);
	}
	int result = all.failed || ordered.failed
	                 ? failure_set(failure, FAILURE_INTERNAL, "out of memory")
	                 : offer(ssh2, LIBSSH2_METHOD_HOSTKEY, "HostKeyAlgorithms",
	                         ordered.length ? ordered.data : "", failure);
	bytes_release(&all);
	bytes_release(&ordered);
	return result;
}

int ssh2_set_methods(struct ssh2 *ssh2, const struct knownhosts *known, struct failure *failure)
{
	const struct ssh_target *target = ssh2->request.target;
	const struct {
		int method;
		const char *keyword, *given, *defaults;
	} lists[] = {
	    {LIBSSH2_METHOD_KEX, "KexAlgorithms", target->kex, default_kex},
	    {LIBSSH2_METHOD_CRYPT_CS, "Ciphers", target->ciphers_given ? target->ciphers : NULL,
	     default_ciphers},
	    {LIBSSH2_METHOD_CRYPT_SC, "Ciphers", target->ciphers_given ? target->ciphers : NULL,
	     default_ciphers},
	    {LIBSSH2_METHOD_MAC_CS, "MACs", target->macs, default_macs},
	    {LIBSSH2_METHOD_MAC_SC, "MACs", target->macs, default_macs},
	};
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct bytes list = BYTES_INIT;
		expand(&list, lists[i].given, lists[i].defaults);
		int result = list.failed
		                 ? failure_set(failure, FAILURE_INTERNAL, "out of memory")
		                 : offer(ssh2, lists[i].method, lists[i].keyword,
		                         list.length ? list.data : "", failure);
		bytes_release(&list);
		if (result)
			return result;
	}
	if (target->compression)
		libssh2_session_flag(ssh2->session, LIBSSH2_FLAG_COMPRESS, 1);
	return offer_host_keys(ssh2, known, failure);
}
