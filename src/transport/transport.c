#include "transport/transport.h"

#include <stddef.h>

void transport_explain(struct transport *transport, struct failure *failure)
{
	if (transport->ops->explain) {
		transport->ops->explain(transport, failure);
		return;
	}
	const char *words =
	    transport->ops->last_words ? transport->ops->last_words(transport) : "";
	failure_set(failure, FAILURE_UNREACHABLE,
	            "the connection ended before the server answered%s%s", *words ? ": " : "",
	            words);
}
