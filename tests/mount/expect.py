"""Small words that make tests read as sentences."""

import contextlib
import ctypes
import errno
import hashlib
import os
import subprocess

import pytest

LIBC = ctypes.CDLL(None, use_errno=True)
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
AT_FDCWD = -100


@contextlib.contextmanager
def fails(*names):
    """The block must raise OSError with one of these errnos ("EEXIST", ...)."""
    with pytest.raises(OSError) as caught:
        yield
    name = errno.errorcode.get(caught.value.errno, caught.value.errno)
    assert name in names, f"failed with {name} instead of {' or '.join(names)}"


def renameat2(old, new, flags):
    result = LIBC.renameat2(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), flags)
    if result != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(new))


def make(path, content=b"", mode=0o644):
    """Makes a file by its full path (no temporary, no rename)."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with open(fd, "wb") as file:
        file.write(content)
    return path


def pattern(size, seed=0):
    """Bytes that differ at every offset of interest: any shift or mix-up shows."""
    block = hashlib.shake_128(b"moorfs %d" % seed).digest(min(size, 1 << 20))
    out = bytearray()
    count = 0
    while len(out) < size:
        out += count.to_bytes(8, "little") + block[8:]
        count += 1
    return bytes(out[:size])


def sha256(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def run(*words, cwd=None, check=True, **kwargs):
    """Runs a program; its output is in the report when it fails."""
    result = subprocess.run([str(word) for word in words], cwd=cwd, stdin=subprocess.DEVNULL,
                            capture_output=True, text=True, errors="surrogateescape", **kwargs)
    if check:
        assert result.returncode == 0, (f"{words} ended with {result.returncode}\n"
                                        f"{result.stdout[-4000:]}\n{result.stderr[-4000:]}")
    return result


def needs(*programs):
    import shutil
    for name in programs:
        if not shutil.which(name):
            pytest.skip(f"{name} is not installed")
