#include "remote/op.h"

static const struct {
	const char *name;
	bool idempotent;
} kinds[OP_KINDS] = {
    [OP_LSTAT] = {"lstat", true},
    [OP_STAT] = {"stat", true},
    [OP_SETATTR] = {"setattr", true},
    [OP_LSETATTR] = {"lsetattr", true},
    [OP_READLINK] = {"readlink", true},
    [OP_SYMLINK] = {"symlink", false},
    [OP_LINK] = {"link", false},
    [OP_MKDIR] = {"mkdir", false},
    [OP_RMDIR] = {"rmdir", false},
    [OP_UNLINK] = {"unlink", false},
    [OP_RENAME] = {"rename", false},
    [OP_RENAME_NEW] = {"rename_new", false},
    /* A listing's batches were handed on already: its owner starts again. */
    [OP_LIST] = {"list", false},
    [OP_STATFS] = {"statfs", true},
    [OP_REALPATH] = {"realpath", true},
    [OP_NAMES] = {"names", true},
    [OP_OPEN] = {"open", true},
    [OP_CLOSE] = {"close", false},
    [OP_READ] = {"read", true},
    [OP_WRITE] = {"write", true},
    [OP_FSTAT] = {"fstat", true},
    [OP_FSETATTR] = {"fsetattr", true},
    [OP_FSYNC] = {"fsync", true},
    [OP_COPY] = {"copy", true},
    [OP_FETCH] = {"fetch", true},
    [OP_PING] = {"ping", false},
};

bool op_is_idempotent(const struct op *op)
{
	if (op->kind == OP_OPEN && op->open_flags & OPEN_EXCL)
		return false;
	return kinds[op->kind].idempotent;
}

const char *op_kind_name(enum op_kind kind)
{
	return kinds[kind].name;
}
