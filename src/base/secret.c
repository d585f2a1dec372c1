#include "base/secret.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct secret {
	size_t mapped;
	size_t length;
	char text[];
};

struct secret *secret_new(const void *bytes, size_t length)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t mapped = (sizeof(struct secret) + length + 1 + page - 1) / page * page;
	struct secret *secret =
	    mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (secret == MAP_FAILED)
		return NULL;
	/* Both are best effort: RLIMIT_MEMLOCK may forbid the first. */
	(void)mlock(secret, mapped);
	(void)madvise(secret, mapped, MADV_DONTDUMP);
	secret->mapped = mapped;
	secret->length = length;
	memcpy(secret->text, bytes, length);
	secret->text[length] = '\0';
	return secret;
}

void secret_free(struct secret *secret)
{
	if (!secret)
		return;
	size_t mapped = secret->mapped;
	secret_wipe(secret, mapped);
	munmap(secret, mapped);
}

const char *secret_text(const struct secret *secret)
{
	return secret->text;
}

size_t secret_length(const struct secret *secret)
{
	return secret->length;
}

void secret_wipe(void *bytes, size_t length)
{
	explicit_bzero(bytes, length);
}
