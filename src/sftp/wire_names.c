/* Names of packet types and meanings of status codes; see wire.h. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/cleanup.h"
#include "sftp/wire.h"

const char *wire_type_name(uint8_t type)
{
	static const char *const names[256] = {
	    [WIRE_INIT] = "INIT",
	    [WIRE_VERSION] = "VERSION",
	    [WIRE_OPEN] = "OPEN",
	    [WIRE_CLOSE] = "CLOSE",
	    [WIRE_READ] = "READ",
	    [WIRE_WRITE] = "WRITE",
	    [WIRE_LSTAT] = "LSTAT",
	    [WIRE_FSTAT] = "FSTAT",
	    [WIRE_SETSTAT] = "SETSTAT",
	    [WIRE_FSETSTAT] = "FSETSTAT",
	    [WIRE_OPENDIR] = "OPENDIR",
	    [WIRE_READDIR] = "READDIR",
	    [WIRE_REMOVE] = "REMOVE",
	    [WIRE_MKDIR] = "MKDIR",
	    [WIRE_RMDIR] = "RMDIR",
	    [WIRE_REALPATH] = "REALPATH",
	    [WIRE_STAT] = "STAT",
	    [WIRE_RENAME] = "RENAME",
	    [WIRE_READLINK] = "READLINK",
	    [WIRE_SYMLINK] = "SYMLINK",
	    [WIRE_STATUS] = "STATUS",
	    [WIRE_HANDLE] = "HANDLE",
	    [WIRE_DATA] = "DATA",
	    [WIRE_NAME] = "NAME",
	    [WIRE_ATTRS] = "ATTRS",
	    [WIRE_EXTENDED] = "EXTENDED",
	    [WIRE_EXTENDED_REPLY] = "EXTENDED_REPLY",
	};
	return names[type] ? names[type] : "type?";
}

/* Codes 0 to 8 are version 3's; the others are sent by servers that think in later versions. */
static const int status_errors[] = {
    [0] = 0,           /* OK */
    [1] = -EIO,        /* EOF, where it is not expected */
    [2] = -ENOENT,     /* NO_SUCH_FILE */
    [3] = -EACCES,     /* PERMISSION_DENIED */
    [4] = -EREMOTEIO,  /* FAILURE */
    [5] = -EINVAL,     /* BAD_MESSAGE: OpenSSH's word for EINVAL and ENAMETOOLONG */
    [6] = -ENOLINK,    /* NO_CONNECTION */
    [7] = -ENOLINK,    /* CONNECTION_LOST */
    [8] = -EOPNOTSUPP, /* OP_UNSUPPORTED */
    [9] = -EBADF,      /* INVALID_HANDLE */
    [10] = -ENOENT,    /* NO_SUCH_PATH */
    [11] = -EEXIST,    /* FILE_ALREADY_EXISTS */
    [12] = -EROFS,     /* WRITE_PROTECT */
    [13] = -ENOMEDIUM, /* NO_MEDIA */
    [14] = -ENOSPC,    /* NO_SPACE_ON_FILESYSTEM */
    [15] = -EDQUOT,    /* QUOTA_EXCEEDED */
    [16] = -EINVAL,    /* UNKNOWN_PRINCIPAL */
    [17] = -EBUSY,     /* LOCK_CONFLICT */
    [18] = -ENOTEMPTY, /* DIR_NOT_EMPTY */
    [19] = -ENOTDIR,   /* NOT_A_DIRECTORY */
    [20] = -EINVAL,    /* INVALID_FILENAME */
    [21] = -ELOOP,     /* LINK_LOOP */
    [22] = -EPERM,     /* CANNOT_DELETE */
    [23] = -EINVAL,    /* INVALID_PARAMETER */
    [24] = -EISDIR,    /* FILE_IS_A_DIRECTORY */
    [25] = -EBUSY,     /* BYTE_RANGE_LOCK_CONFLICT */
    [26] = -EBUSY,     /* BYTE_RANGE_LOCK_REFUSED */
    [27] = -EBUSY,     /* DELETE_PENDING */
    [28] = -EIO,       /* FILE_CORRUPT */
    [29] = -EINVAL,    /* OWNER_INVALID */
    [30] = -EINVAL,    /* GROUP_INVALID */
    [31] = -ENOLCK,    /* NO_MATCHING_BYTE_RANGE_LOCK */
};

/* Ends of messages, as strerror(3) of the usual systems has them. */
static const struct {
	const char *text;
	int err;
} message_errors[] = {
    {"no such file or directory", -ENOENT},
    {"permission denied", -EACCES},
    {"operation not permitted", -EPERM},
    {"file exists", -EEXIST},
    {"file already exists", -EEXIST},
    {"directory not empty", -ENOTEMPTY},
    {"not a directory", -ENOTDIR},
    {"is a directory", -EISDIR},
    {"no space left on device", -ENOSPC},
    {"disk quota exceeded", -EDQUOT},
    {"read-only file system", -EROFS},
    {"invalid cross-device link", -EXDEV},
    {"cross-device link", -EXDEV},
    {"file name too long", -ENAMETOOLONG},
    {"too many levels of symbolic links", -ELOOP},
    {"too many links", -EMLINK},
    {"file too large", -EFBIG},
    {"device or resource busy", -EBUSY},
    {"text file busy", -ETXTBSY},
    {"invalid argument", -EINVAL},
};

static bool ends_with(struct wire_text message, const char *text)
{
	size_t length = strlen(text);
	return message.length >= length &&
	       strncasecmp(message.data + message.length - length, text, length) == 0;
}

int wire_status_error(uint32_t code, struct wire_text message)
{
	int err = code < ARRAY_LEN(status_errors) ? status_errors[code] : -EREMOTEIO;
	if (err != -EREMOTEIO)
		return err;
	if (message.length > 0 && message.data[message.length - 1] == '.')
		message.length--;
	for (size_t i = 0; i < ARRAY_LEN(message_errors); i++)
		if (ends_with(message, message_errors[i].text))
			return message_errors[i].err;
	return err;
}
