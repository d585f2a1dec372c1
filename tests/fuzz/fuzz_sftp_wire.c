/* Every decoder of SFTP replies on any bytes: the first byte chooses, the rest is the body. */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "sftp/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void decode_names(struct wire_in *in)
{
	uint32_t count = wire_get_u32(in);
	for (uint32_t i = 0; i < count && !in->failed; i++) {
		struct wire_name name;
		wire_get_name(in, &name);
		wire_longname(name.longname, &name.attr);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	/* A copy of the exact size, so that reading past its end is seen. */
	uint8_t *body = malloc(size);
	if (!body)
		return 0;
	memcpy(body, data + 1, size - 1);
	struct wire_in in = wire_in(body, size - 1);
	struct wire_text message;
	struct remote_attr attr;
	struct remote_statfs statfs;
	struct wire_limits limits;
	struct bytes out = BYTES_INIT;
	uint32_t code;

	switch (data[0]) {
	case WIRE_STATUS:
		code = wire_get_status(&in, &message);
		if (wire_status_error(code, message) > 0)
			abort();
		break;
	case WIRE_HANDLE:
		message = wire_get_handle(&in);
		if (!in.failed && (message.length < 1 || message.length > WIRE_HANDLE_MAX))
			abort();
		break;
	case WIRE_NAME:
		decode_names(&in);
		break;
	case WIRE_ATTRS:
		wire_get_attr(&in, &attr);
		break;
	case WIRE_EXTENDED_REPLY:
		wire_get_statfs(&in, &statfs);
		break;
	case WIRE_EXTENDED_REPLY + 1:
		wire_get_limits(&in, &limits);
		break;
	case WIRE_EXTENDED_REPLY + 2:
	case WIRE_EXTENDED_REPLY + 3:
		wire_get_users_groups(&in, data[0] & 1, 5, &out);
		bytes_release(&out);
		break;
	case WIRE_VERSION:
		wire_get_u32(&in);
		while (in.left > 0 && !in.failed)
			wire_get_text(&in);
		break;
	default:
		message = (struct wire_text){(const char *)body, size - 1};
		memset(&attr, 0, sizeof(attr));
		wire_longname(message, &attr);
		break;
	}
	if (in.left > size - 1)
		abort();
	free(body);
	return 0;
}
