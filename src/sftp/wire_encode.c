/* SFTP packets as bytes; see wire.h. */
#include <string.h>
#include <time.h>

#include "sftp/wire.h"

/* Bits of OPEN. */
enum {
	PFLAG_READ = 0x01,
	PFLAG_WRITE = 0x02,
	PFLAG_CREAT = 0x08,
	PFLAG_TRUNC = 0x10,
	PFLAG_EXCL = 0x20,
};

/* Starts a packet; its length is filled in by packet_end(). */
static size_t packet_begin(struct bytes *out, enum wire_type type, uint32_t id)
{
	size_t start = out->length;
	bytes_add_be32(out, 0);
	bytes_add_byte(out, (uint8_t)type);
	bytes_add_be32(out, id);
	return start;
}

/* `extra` bytes of the packet are sent behind what is in `out`. */
static void packet_end(struct bytes *out, size_t start, uint32_t extra)
{
	if (!out->failed)
		bytes_put_be32(out, start, (uint32_t)(out->length - start - 4) + extra);
}

static void put_bytes(struct bytes *out, const char *data, size_t length)
{
	bytes_add_be32(out, (uint32_t)length);
	bytes_add(out, data, length);
}

static void put_text(struct bytes *out, const char *text)
{
	put_bytes(out, text, strlen(text));
}

/* Whole seconds of 32 bits are all there is: clamped to them as the kernel does for its own
 * file systems. */
static uint32_t clamp_time(const struct timespec *time)
{
	if (time->tv_sec < 0)
		return 0;
	if (time->tv_sec > (time_t)UINT32_MAX)
		return UINT32_MAX;
	return (uint32_t)time->tv_sec;
}

static void put_attr(struct bytes *out, const struct remote_attr *attr)
{
	uint32_t flags = 0;
	if (attr->valid & ATTR_SIZE)
		flags |= WIRE_ATTR_SIZE;
	if (attr->valid & ATTR_OWNER)
		flags |= WIRE_ATTR_UIDGID;
	if (attr->valid & ATTR_MODE)
		flags |= WIRE_ATTR_PERMISSIONS;
	if (attr->valid & ATTR_TIMES)
		flags |= WIRE_ATTR_ACMODTIME;
	bytes_add_be32(out, flags);
	if (flags & WIRE_ATTR_SIZE)
		bytes_add_be64(out, attr->size);
	if (flags & WIRE_ATTR_UIDGID) {
		bytes_add_be32(out, attr->uid);
		bytes_add_be32(out, attr->gid);
	}
	if (flags & WIRE_ATTR_PERMISSIONS)
		bytes_add_be32(out, attr->mode & 07777);
	if (flags & WIRE_ATTR_ACMODTIME) {
		bytes_add_be32(out, clamp_time(&attr->atime));
		bytes_add_be32(out, clamp_time(&attr->mtime));
	}
}

void wire_init(struct bytes *out)
{
	/* INIT has its version where others have the id. */
	size_t start = packet_begin(out, WIRE_INIT, WIRE_PROTOCOL_VERSION);
	packet_end(out, start, 0);
}

void wire_path(struct bytes *out, enum wire_type type, uint32_t id, const char *path)
{
	size_t start = packet_begin(out, type, id);
	put_text(out, path);
	packet_end(out, start, 0);
}

void wire_two_paths(struct bytes *out, enum wire_type type, uint32_t id, const char *first,
                    const char *second)
{
	size_t start = packet_begin(out, type, id);
	put_text(out, first);
	put_text(out, second);
	packet_end(out, start, 0);
}

void wire_path_attr(struct bytes *out, enum wire_type type, uint32_t id, const char *path,
                    const struct remote_attr *attr)
{
	size_t start = packet_begin(out, type, id);
	put_text(out, path);
	put_attr(out, attr);
	packet_end(out, start, 0);
}

void wire_handle(struct bytes *out, enum wire_type type, uint32_t id, const char *handle,
                 size_t length)
{
	size_t start = packet_begin(out, type, id);
	put_bytes(out, handle, length);
	packet_end(out, start, 0);
}

void wire_handle_attr(struct bytes *out, enum wire_type type, uint32_t id, const char *handle,
                      size_t length, const struct remote_attr *attr)
{
	size_t start = packet_begin(out, type, id);
	put_bytes(out, handle, length);
	put_attr(out, attr);
	packet_end(out, start, 0);
}

void wire_open(struct bytes *out, uint32_t id, const char *path, unsigned open_flags,
               const struct remote_attr *attr)
{
	static const struct {
		unsigned open_flag;
		uint32_t pflag;
	} pflags[] = {
	    {OPEN_READ, PFLAG_READ},   {OPEN_WRITE, PFLAG_WRITE}, {OPEN_CREATE, PFLAG_CREAT},
	    {OPEN_TRUNC, PFLAG_TRUNC}, {OPEN_EXCL, PFLAG_EXCL},
	};
	uint32_t bits = 0;
	for (size_t i = 0; i < ARRAY_LEN(pflags); i++)
		if (open_flags & pflags[i].open_flag)
			bits |= pflags[i].pflag;

	struct remote_attr sent = {.valid = attr->valid & ATTR_MODE, .mode = attr->mode};
	size_t start = packet_begin(out, WIRE_OPEN, id);
	put_text(out, path);
	bytes_add_be32(out, bits);
	put_attr(out, &sent);
	packet_end(out, start, 0);
}

void wire_read(struct bytes *out, uint32_t id, const char *handle, size_t handle_length,
               uint64_t offset, uint32_t length)
{
	size_t start = packet_begin(out, WIRE_READ, id);
	put_bytes(out, handle, handle_length);
	bytes_add_be64(out, offset);
	bytes_add_be32(out, length);
	packet_end(out, start, 0);
}

void wire_write(struct bytes *out, uint32_t id, const char *handle, size_t handle_length,
                uint64_t offset, uint32_t length)
{
	size_t start = packet_begin(out, WIRE_WRITE, id);
	put_bytes(out, handle, handle_length);
	bytes_add_be64(out, offset);
	bytes_add_be32(out, length);
	packet_end(out, start, length);
}

static size_t ext_begin(struct bytes *out, uint32_t id, const char *name)
{
	size_t start = packet_begin(out, WIRE_EXTENDED, id);
	put_text(out, name);
	return start;
}

void wire_ext(struct bytes *out, uint32_t id, const char *name)
{
	packet_end(out, ext_begin(out, id, name), 0);
}

void wire_ext_path(struct bytes *out, uint32_t id, const char *name, const char *path)
{
	size_t start = ext_begin(out, id, name);
	put_text(out, path);
	packet_end(out, start, 0);
}

void wire_ext_two_paths(struct bytes *out, uint32_t id, const char *name, const char *first,
                        const char *second)
{
	size_t start = ext_begin(out, id, name);
	put_text(out, first);
	put_text(out, second);
	packet_end(out, start, 0);
}

void wire_ext_path_attr(struct bytes *out, uint32_t id, const char *name, const char *path,
                        const struct remote_attr *attr)
{
	size_t start = ext_begin(out, id, name);
	put_text(out, path);
	put_attr(out, attr);
	packet_end(out, start, 0);
}

void wire_ext_handle(struct bytes *out, uint32_t id, const char *name, const char *handle,
                     size_t length)
{
	size_t start = ext_begin(out, id, name);
	put_bytes(out, handle, length);
	packet_end(out, start, 0);
}

void wire_copy_data(struct bytes *out, uint32_t id, const char *from, size_t from_length,
                    uint64_t from_offset, uint64_t length, const char *to, size_t to_length,
                    uint64_t to_offset)
{
	size_t start = ext_begin(out, id, "copy-data");
	put_bytes(out, from, from_length);
	bytes_add_be64(out, from_offset);
	bytes_add_be64(out, length);
	put_bytes(out, to, to_length);
	bytes_add_be64(out, to_offset);
	packet_end(out, start, 0);
}

static void put_ids(struct bytes *out, const uint32_t *ids, size_t count)
{
	bytes_add_be32(out, (uint32_t)(count * sizeof(uint32_t)));
	for (size_t i = 0; i < count; i++)
		bytes_add_be32(out, ids[i]);
}

void wire_users_groups(struct bytes *out, uint32_t id, const uint32_t *ids, size_t count,
                       bool groups)
{
	size_t start = ext_begin(out, id, "users-groups-by-id@openssh.com");
	put_ids(out, ids, groups ? 0 : count);
	put_ids(out, ids, groups ? count : 0);
	packet_end(out, start, 0);
}
