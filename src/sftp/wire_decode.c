/* Bounded reading of SFTP replies; see wire.h. */
#include <string.h>
#include <sys/stat.h>

#include "sftp/wire.h"

struct wire_in wire_in(const void *data, size_t length)
{
	return (struct wire_in){.at = data, .left = length};
}

/* The next `length` bytes, or NULL (and `failed`) when there are fewer. */
static const uint8_t *take(struct wire_in *in, size_t length)
{
	if (in->failed || in->left < length) {
		in->failed = true;
		return NULL;
	}
	const uint8_t *at = in->at;
	in->at += length;
	in->left -= length;
	return at;
}

uint8_t wire_get_u8(struct wire_in *in)
{
	const uint8_t *at = take(in, 1);
	return at ? at[0] : 0;
}

uint32_t wire_get_u32(struct wire_in *in)
{
	const uint8_t *at = take(in, 4);
	if (!at)
		return 0;
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

uint64_t wire_get_u64(struct wire_in *in)
{
	uint64_t high = wire_get_u32(in);
	return high << 32 | wire_get_u32(in);
}

struct wire_text wire_get_text(struct wire_in *in)
{
	size_t length = wire_get_u32(in);
	const uint8_t *at = take(in, length);
	if (!at)
		return (struct wire_text){"", 0};
	return (struct wire_text){(const char *)at, length};
}

void wire_get_attr(struct wire_in *in, struct remote_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	uint32_t flags = wire_get_u32(in);
	if (flags & WIRE_ATTR_SIZE) {
		attr->valid |= ATTR_SIZE;
		attr->size = wire_get_u64(in);
	}
	if (flags & WIRE_ATTR_UIDGID) {
		attr->valid |= ATTR_OWNER;
		attr->uid = wire_get_u32(in);
		attr->gid = wire_get_u32(in);
	}
	if (flags & WIRE_ATTR_PERMISSIONS) {
		attr->valid |= ATTR_MODE;
		attr->mode = wire_get_u32(in);
	}
	if (flags & WIRE_ATTR_ACMODTIME) {
		attr->valid |= ATTR_TIMES;
		attr->atime.tv_sec = wire_get_u32(in);
		attr->mtime.tv_sec = wire_get_u32(in);
	}
	if (flags & WIRE_ATTR_EXTENDED) {
		uint32_t pairs = wire_get_u32(in);
		for (uint32_t i = 0; i < pairs && !in->failed; i++) {
			wire_get_text(in);
			wire_get_text(in);
		}
	}
	if (in->failed)
		attr->valid = 0;
}

void wire_get_name(struct wire_in *in, struct wire_name *name)
{
	name->name = wire_get_text(in);
	name->longname = wire_get_text(in);
	wire_get_attr(in, &name->attr);
}

uint32_t wire_get_status(struct wire_in *in, struct wire_text *message)
{
	uint32_t code = wire_get_u32(in);
	*message = (struct wire_text){"", 0};
	if (!in->failed && in->left > 0)
		*message = wire_get_text(in);
	return code;
}

struct wire_text wire_get_handle(struct wire_in *in)
{
	struct wire_text handle = wire_get_text(in);
	if (handle.length < 1 || handle.length > WIRE_HANDLE_MAX)
		in->failed = true;
	return handle;
}

void wire_get_statfs(struct wire_in *in, struct remote_statfs *statfs)
{
	statfs->bsize = wire_get_u64(in);
	statfs->frsize = wire_get_u64(in);
	statfs->blocks = wire_get_u64(in);
	statfs->bfree = wire_get_u64(in);
	statfs->bavail = wire_get_u64(in);
	statfs->files = wire_get_u64(in);
	statfs->ffree = wire_get_u64(in);
	statfs->favail = wire_get_u64(in);
	statfs->fsid = wire_get_u64(in);
	statfs->read_only = wire_get_u64(in) & WIRE_STATFS_READ_ONLY;
	statfs->namemax = wire_get_u64(in);
}

void wire_get_limits(struct wire_in *in, struct wire_limits *limits)
{
	limits->max_packet = wire_get_u64(in);
	limits->max_read = wire_get_u64(in);
	limits->max_write = wire_get_u64(in);
	limits->max_handles = wire_get_u64(in);
}

void wire_get_users_groups(struct wire_in *in, bool groups, size_t count, struct bytes *out)
{
	struct wire_text users_list = wire_get_text(in);
	struct wire_text groups_list = wire_get_text(in);
	struct wire_text list = groups ? groups_list : users_list;
	struct wire_in names = wire_in(list.data, list.length);
	for (size_t i = 0; i < count; i++) {
		struct wire_text name = {"", 0};
		if (names.left > 0)
			name = wire_get_text(&names);
		if (!memchr(name.data, '\0', name.length))
			bytes_add(out, name.data, name.length);
		bytes_add_byte(out, 0);
	}
	if (names.failed)
		in->failed = true;
}

/* The file type that a line of `ls -l` starts with; 0: none. */
static uint32_t longname_type(char letter)
{
	switch (letter) {
	case '-':
		return S_IFREG;
	case 'd':
		return S_IFDIR;
	case 'l':
		return S_IFLNK;
	case 'c':
		return S_IFCHR;
	case 'b':
		return S_IFBLK;
	case 'p':
		return S_IFIFO;
	case 's':
		return S_IFSOCK;
	default:
		return 0;
	}
}

void wire_longname(struct wire_text longname, struct remote_attr *attr)
{
	/* Type and nine permission letters, perhaps a mark of ACLs, blanks, links, a blank. */
	const char *at = longname.data;
	const char *end = at + longname.length;
	if (longname.length < 12)
		return;
	uint32_t type = longname_type(*at++);
	for (int i = 0; i < 9; i++, at++)
		if (*at == '\0' || !strchr("-rwxsStTlL", *at))
			return;
	if (!type)
		return;
	if ((attr->valid & ATTR_MODE) && !(attr->mode & S_IFMT))
		attr->mode |= type;
	if (*at == '+' || *at == '.' || *at == '@')
		at++;
	const char *blanks = at;
	while (at < end && *at == ' ')
		at++;
	const char *digits = at;
	uint32_t nlink = 0;
	while (at < end && *at >= '0' && *at <= '9' && at - digits < 9)
		nlink = nlink * 10 + (uint32_t)(*at++ - '0');
	if (blanks == digits || at == digits || at == end || *at != ' ' || nlink == 0)
		return;
	attr->nlink = nlink;
	attr->valid |= ATTR_NLINK;
}
