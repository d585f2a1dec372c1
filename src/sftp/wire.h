/*
 * Codec of SFTP version 3 (draft-ietf-secsh-filexfer-02) and of OpenSSH's extensions. Pure: it
 * reads bounded buffers and appends to struct bytes; nothing is trusted and nothing is kept.
 *
 * A packet is: uint32 length of what follows, byte type, uint32 id (a version in INIT and
 * VERSION), body.
 */
#ifndef MOORFS_SFTP_WIRE_H
#define MOORFS_SFTP_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "remote/op.h"

enum wire_type {
	WIRE_INIT = 1,
	WIRE_VERSION = 2,
	WIRE_OPEN = 3,
	WIRE_CLOSE = 4,
	WIRE_READ = 5,
	WIRE_WRITE = 6,
	WIRE_LSTAT = 7,
	WIRE_FSTAT = 8,
	WIRE_SETSTAT = 9,
	WIRE_FSETSTAT = 10,
	WIRE_OPENDIR = 11,
	WIRE_READDIR = 12,
	WIRE_REMOVE = 13,
	WIRE_MKDIR = 14,
	WIRE_RMDIR = 15,
	WIRE_REALPATH = 16,
	WIRE_STAT = 17,
	WIRE_RENAME = 18,
	WIRE_READLINK = 19,
	WIRE_SYMLINK = 20,
	WIRE_STATUS = 101,
	WIRE_HANDLE = 102,
	WIRE_DATA = 103,
	WIRE_NAME = 104,
	WIRE_ATTRS = 105,
	WIRE_EXTENDED = 200,
	WIRE_EXTENDED_REPLY = 201,
};

enum {
	WIRE_PROTOCOL_VERSION = 3,
	WIRE_STATUS_OK = 0,
	WIRE_STATUS_EOF = 1,
	WIRE_HEADER_SIZE = 9,       /* length, type, id */
	WIRE_DATA_HEADER_SIZE = 13, /* and the length of the data */
	WIRE_HANDLE_MAX = 256,      /* longest handle string the draft allows */
	WIRE_STATFS_READ_ONLY = 1,  /* bit of statvfs@openssh.com's mount flags */
	WIRE_PACKET_MIN = 5,        /* smallest legal value of the length field */
	WIRE_PACKET_MAX = 34 << 20, /* larger replies are no SFTP of this world */
	WIRE_DEFAULT_MAX = 32768,   /* data per request that every server must take */
};

/* Flags of the attributes that follow. */
enum {
	WIRE_ATTR_SIZE = 0x1,
	WIRE_ATTR_UIDGID = 0x2,
	WIRE_ATTR_PERMISSIONS = 0x4,
	WIRE_ATTR_ACMODTIME = 0x8,
};
#define WIRE_ATTR_EXTENDED UINT32_C(0x80000000)

/* "OPEN" and the like, for traces; "type?" for an unknown one. */
const char *wire_type_name(uint8_t type);

/* ---- encoding: each appends one whole packet (wire_write: all but the data) ---- */

/* Strings are NUL-terminated paths. Check bytes->failed once afterwards. */
void wire_init(struct bytes *out);
void wire_path(struct bytes *out, enum wire_type type, uint32_t id, const char *path);
void wire_two_paths(struct bytes *out, enum wire_type type, uint32_t id, const char *first,
                    const char *second);
void wire_path_attr(struct bytes *out, enum wire_type type, uint32_t id, const char *path,
                    const struct remote_attr *attr);
void wire_handle(struct bytes *out, enum wire_type type, uint32_t id, const char *handle,
                 size_t length);
void wire_handle_attr(struct bytes *out, enum wire_type type, uint32_t id, const char *handle,
                      size_t length, const struct remote_attr *attr);
/* `open_flags` are OPEN_* of op.h; only attr's mode is sent, and only if it is valid. */
void wire_open(struct bytes *out, uint32_t id, const char *path, unsigned open_flags,
               const struct remote_attr *attr);
void wire_read(struct bytes *out, uint32_t id, const char *handle, size_t handle_length,
               uint64_t offset, uint32_t length);
/* The packet's header for `length` bytes of data, which the caller sends right behind it. */
void wire_write(struct bytes *out, uint32_t id, const char *handle, size_t handle_length,
                uint64_t offset, uint32_t length);

/* Extensions: name@openssh.com and its arguments. */
void wire_ext(struct bytes *out, uint32_t id, const char *name);
void wire_ext_path(struct bytes *out, uint32_t id, const char *name, const char *path);
void wire_ext_two_paths(struct bytes *out, uint32_t id, const char *name, const char *first,
                        const char *second);
void wire_ext_path_attr(struct bytes *out, uint32_t id, const char *name, const char *path,
                        const struct remote_attr *attr);
void wire_ext_handle(struct bytes *out, uint32_t id, const char *name, const char *handle,
                     size_t length);
void wire_copy_data(struct bytes *out, uint32_t id, const char *from, size_t from_length,
                    uint64_t from_offset, uint64_t length, const char *to, size_t to_length,
                    uint64_t to_offset);
void wire_users_groups(struct bytes *out, uint32_t id, const uint32_t *ids, size_t count,
                       bool groups);

/* ---- decoding ---- */

/*
 * A bounded buffer being read. Reading beyond the end sets `failed`, gives zeros from then on
 * and never moves past the end: check `failed` once after a sequence of reads.
 */
struct wire_in {
	const uint8_t *at;
	size_t left;
	bool failed;
};

struct wire_text {
	const char *data; /* in the buffer; not NUL-terminated */
	size_t length;
};

struct wire_name {
	struct wire_text name, longname;
	struct remote_attr attr;
};

struct wire_limits {
	uint64_t max_packet, max_read, max_write, max_handles; /* 0: the server has no limit */
};

struct wire_in wire_in(const void *data, size_t length);
uint8_t wire_get_u8(struct wire_in *in);
uint32_t wire_get_u32(struct wire_in *in);
uint64_t wire_get_u64(struct wire_in *in);
struct wire_text wire_get_text(struct wire_in *in);

/* File attributes; extended pairs are read over. */
void wire_get_attr(struct wire_in *in, struct remote_attr *attr);

/* One element of a NAME reply, whose count the caller has read. */
void wire_get_name(struct wire_in *in, struct wire_name *name);

/* Body of a STATUS: code, and its message, which old servers leave out. */
uint32_t wire_get_status(struct wire_in *in, struct wire_text *message);

/* Body of a HANDLE: 1 to WIRE_HANDLE_MAX bytes, else `failed`. */
struct wire_text wire_get_handle(struct wire_in *in);

/* Bodies of the EXTENDED_REPLYs. */
void wire_get_statfs(struct wire_in *in, struct remote_statfs *statfs);
void wire_get_limits(struct wire_in *in, struct wire_limits *limits);
/*
 * users-groups-by-id: appends `count` names to `out`, each with a NUL behind it, empty where
 * the server knows none (or sends one that holds a NUL).
 */
void wire_get_users_groups(struct wire_in *in, bool groups, size_t count, struct bytes *out);

/*
 * The errno (negative) for a status; 0 for OK. What the server calls a failure without a reason
 * becomes -EREMOTEIO, unless its message is one of the texts of strerror(3), with which many
 * servers say what version 3 has no code for.
 */
int wire_status_error(uint32_t code, struct wire_text message);

/*
 * What the line of `ls -l` in a NAME reply tells beyond the attributes: the number of links,
 * and the type when the mode came without one. Lines of another form change nothing.
 */
void wire_longname(struct wire_text longname, struct remote_attr *attr);

#endif
