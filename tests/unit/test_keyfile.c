/* Private key files: what can be told of them without their passphrase; and libssh2's memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "transport/keyfile.h"
#include "transport/ssh2_memory.h"
#include "transport/sshkey.h"

#define PUBLIC \
	"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEB"

static void add_string(struct bytes *bytes, const void *text, size_t length)
{
	bytes_add_be32(bytes, (uint32_t)length);
	bytes_add(bytes, text, length);
}

/* An OpenSSH key file up to its private part, which nobody reads here. */
static char *openssh_file(const char *cipher, uint32_t count, const char *type)
{
	struct bytes raw = BYTES_INIT, public = BYTES_INIT, text = BYTES_INIT;
	add_string(&public, type, strlen(type));
	add_string(&public, "point", 5);
	bytes_add(&raw, "openssh-key-v1", 15);
	add_string(&raw, cipher, strlen(cipher));
	add_string(&raw, "bcrypt", 6);
	add_string(&raw, "", 0);
	bytes_add_be32(&raw, count);
	add_string(&raw, public.data, public.length);
	CLEANUP_FREE char *body = base64_encode(raw.data, raw.length);
	size_t half = strlen(body) / 2;
	bytes_addf(&text,
	           "-----BEGIN OPENSSH PRIVATE KEY-----\n%.*s\r\n%s\n"
	           "-----END OPENSSH PRIVATE KEY-----\n",
	           (int)half, body, body + half);
	bytes_release(&raw);
	bytes_release(&public);
	return bytes_steal(&text);
}

/* Examines the text, which is freed. */
static int examine(struct keyfile *key, char *text)
{
	*key = (struct keyfile){.text = text, .length = strlen(text)};
	return keyfile_examine(key);
}

static void openssh_keys_are_read(void **state)
{
	(void)state;
	struct keyfile key;
	assert_int_equal(examine(&key, openssh_file("none", 1, "ssh-rsa")), 0);
	assert_false(key.encrypted);
	assert_string_equal(key.type, "ssh-rsa");
	assert_true(sshkey_is(key.public_blob, key.public_length, "ssh-rsa"));
	keyfile_release(&key);
	assert_int_equal(examine(&key, openssh_file("aes256-ctr", 1, "ssh-ed25519")), 0);
	assert_true(key.encrypted);
	assert_string_equal(key.type, "ssh-ed25519");
	keyfile_release(&key);
	assert_int_equal(examine(&key, openssh_file("none", 2, "ssh-rsa")), -EINVAL);
	keyfile_release(&key);
}

static void damaged_openssh_keys_are_refused(void **state)
{
	(void)state;
	CLEANUP_FREE char *whole = openssh_file("none", 1, "ssh-ed25519");
	const char *end = strstr(whole, "-----END");
	const char *body = strchr(whole, '\n') + 1;
	for (const char *cut = body; cut < end; cut++) {
		struct keyfile key;
		char *text = NULL;
		assert_true(asprintf(&text, "%.*s\n%s", (int)(cut - whole), whole, end) > 0);
		assert_int_equal(examine(&key, text), cut + 1 < end ? -EINVAL : 0);
		keyfile_release(&key);
	}
}

static void older_formats_are_told_apart(void **state)
{
	(void)state;
	static const struct {
		const char *text, *type;
		bool encrypted;
		int result;
	} cases[] = {
	    {"-----BEGIN RSA PRIVATE KEY-----\nMII\n", "ssh-rsa", false, 0},
	    {"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n", "ssh-rsa", true, 0},
	    {"-----BEGIN DSA PRIVATE KEY-----\n", "ssh-dss", false, 0},
	    {"# note\n-----BEGIN EC PRIVATE KEY-----\n", "ecdsa-sha2-nistp256", false, 0},
	    {"-----BEGIN PRIVATE KEY-----\n", NULL, false, 0},
	    {"-----BEGIN ENCRYPTED PRIVATE KEY-----\n", NULL, true, 0},
	    {PUBLIC " comment\n", "ssh-ed25519", false, 0},
	    {"", NULL, false, -EINVAL},
	    {"PuTTY-User-Key-File-3: ssh-ed25519\n", NULL, false, -EINVAL},
	    {"ssh-rsa AAAA\n", NULL, false, -EINVAL},
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct keyfile key;
		int result = examine(&key, strdup(cases[i].text));
		const char *type = key.type ? key.type : "";
		if (result != cases[i].result || key.encrypted != cases[i].encrypted ||
		    strcmp(type, cases[i].type ? cases[i].type : "") != 0)
			fail_msg("case %zu: %d, %s, encrypted %d", i, result, type,
			         key.encrypted);
		keyfile_release(&key);
	}
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void files_are_loaded_with_their_public_half(void **state)
{
	(void)state;
	char folder[] = "/tmp/test-keyfile-XXXXXX", path[60], public_path[70];
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/key", folder);
	snprintf(public_path, sizeof(public_path), "%s.pub", path);
	struct keyfile key = {0};
	const char *problem = NULL;

	assert_int_equal(keyfile_load(&key, path, &problem), -ENOENT);
	write_file(public_path, PUBLIC "\n", 0644);
	assert_int_equal(keyfile_load(&key, path, &problem), 0);
	assert_null(key.text);
	assert_non_null(key.public_blob);
	keyfile_release(&key);

	write_file(path, "-----BEGIN PRIVATE KEY-----\n", 0600);
	assert_int_equal(keyfile_load(&key, path, &problem), 0);
	assert_string_equal(key.type, "ssh-ed25519");
	assert_non_null(key.text);
	keyfile_release(&key);

	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(keyfile_load(&key, path, &problem), -EACCES);
	assert_string_equal(problem, "others may read it: chmod 600 it");
	write_file(path, "nonsense\n", 0600);
	assert_int_equal(keyfile_load(&key, path, &problem), -EINVAL);
	assert_null(key.text);
	assert_null(key.public_blob);
	assert_int_equal(keyfile_load(&key, folder, &problem), -EINVAL);

	unlink(path);
	unlink(public_path);
	rmdir(folder);
}

static void freed_blocks_are_used_again(void **state)
{
	(void)state;
	struct ssh2_memory memory = {0};
	void *first = ssh2_memory_alloc(&memory, 30000);
	assert_non_null(first);
	assert_int_equal((uintptr_t)first % 16, 0);
	ssh2_memory_free(&memory, first);
	assert_true(memory.cached_bytes >= 30000);
	assert_ptr_equal(ssh2_memory_alloc(&memory, 33000), first);
	assert_int_equal(memory.cached_bytes, 0);
	ssh2_memory_free(&memory, NULL);
	/* What is never freed goes with the rest. */
	ssh2_memory_release(&memory);
	assert_null(memory.used);
}

static void blocks_grow_and_keep_their_bytes(void **state)
{
	(void)state;
	struct ssh2_memory memory = {.wipe = true};
	char *text = ssh2_memory_realloc(&memory, NULL, 5);
	memcpy(text, "text", 5);
	static const size_t sizes[] = {20, 100, 5000, 70000, 1 << 20, 10};
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		text = ssh2_memory_realloc(&memory, text, sizes[i]);
		assert_non_null(text);
		assert_string_equal(text, "text");
	}
	ssh2_memory_free(&memory, text);
	/* A block that held a secret is clean when it comes back. */
	char *secret = ssh2_memory_alloc(&memory, 64);
	memset(secret, 's', 64);
	ssh2_memory_free(&memory, secret);
	assert_ptr_equal(ssh2_memory_alloc(&memory, 64), secret);
	for (size_t i = 0; i < 64; i++)
		assert_int_equal(secret[i], 0);
	assert_null(ssh2_memory_alloc(&memory, SIZE_MAX - 8));
	ssh2_memory_release(&memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(openssh_keys_are_read),
	    cmocka_unit_test(damaged_openssh_keys_are_refused),
	    cmocka_unit_test(older_formats_are_told_apart),
	    cmocka_unit_test(files_are_loaded_with_their_public_half),
	    cmocka_unit_test(freed_blocks_are_used_again),
	    cmocka_unit_test(blocks_grow_and_keep_their_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
