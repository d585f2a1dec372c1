/* Any text as remote directory: no memory error, and what is accepted keeps its promises. */
#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(int truth)
{
	if (!truth)
		abort();
}

static void check(const struct url *url, int host_optional)
{
	require(url->host && url->dir);
	require(host_optional || *url->host);
	require(*url->host != '-' && url->port <= 65535);
	for (const char *at = url->host; *at; at++)
		require(!iscntrl((unsigned char)*at) && *at != ' ' && *at != '/');
	if (url->user)
		require(*url->user && *url->user != '-');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	for (int host_optional = 0; host_optional <= 1; host_optional++) {
		struct url url;
		struct failure failure = {.kind = FAILURE_NONE};
		if (url_parse(&url, text, host_optional, &failure) == 0)
			check(&url, host_optional);
		else
			require(failure.kind != FAILURE_NONE && *failure.text);
		url_release(&url);
	}
	free(text);
	return 0;
}
