"""Attributes: mode, owner, times and size, set by path and by handle."""

import os
import stat
import time

import pytest

from mount.expect import LIBC, fails, make

UTIME_NOW, UTIME_OMIT = (1 << 30) - 1, (1 << 30) - 2


def utimensat(path, atime, mtime):
    """utimensat(2) with raw tv_nsec values, which os.utime cannot give."""
    import ctypes
    times = (ctypes.c_long * 4)(*atime, *mtime)
    if LIBC.utimensat(-100, os.fsencode(path), times, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))


@pytest.fixture
def file(mnt):
    return make(mnt / "file", b"0123456789")


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o444, 0o4755, 0o2755])
def test_chmod(file, remote, mode):
    os.chmod(file, mode)
    assert stat.S_IMODE(os.stat(remote / "file").st_mode) == mode
    assert stat.S_IMODE(os.stat(file).st_mode) == mode


def test_chmod_of_a_directory(mnt, remote):
    os.mkdir(mnt / "dir")
    os.chmod(mnt / "dir", 0o711)
    assert stat.S_IMODE(os.stat(remote / "dir").st_mode) == 0o711
    assert stat.S_IMODE(os.stat(mnt / "dir").st_mode) == 0o711


def test_fchmod(file, remote):
    with open(file, "rb") as handle:
        os.fchmod(handle.fileno(), 0o640)
        assert stat.S_IMODE(os.fstat(handle.fileno()).st_mode) == 0o640
    assert stat.S_IMODE(os.stat(remote / "file").st_mode) == 0o640


def test_chown_by_root(as_root, file, remote):
    os.chown(file, 12345, 54321)
    for path in (file, remote / "file"):
        assert (os.stat(path).st_uid, os.stat(path).st_gid) == (12345, 54321)
    os.chown(file, -1, 777)
    for path in (file, remote / "file"):
        assert (os.stat(path).st_uid, os.stat(path).st_gid) == (12345, 777)
    os.chown(file, 888, -1)
    for path in (file, remote / "file"):
        assert (os.stat(path).st_uid, os.stat(path).st_gid) == (888, 777)


def test_chown_of_a_symlink_spares_its_target(as_root, mnt, remote):
    make(mnt / "target")
    os.symlink("target", mnt / "link")
    before = os.stat(remote / "target")
    os.chown(mnt / "link", 12345, 54321, follow_symlinks=False)
    assert os.stat(remote / "target").st_uid == before.st_uid
    assert os.lstat(remote / "link").st_uid == 12345


def test_times_are_set_and_seen(file, remote):
    os.utime(file, (1_000_000_000, 1_100_000_000))
    for path in (file, remote / "file"):
        assert (os.stat(path).st_atime, os.stat(path).st_mtime) == (1_000_000_000, 1_100_000_000)


def test_touch_a_keeps_the_modification_time(file, remote):
    os.utime(file, (1_000_000_000, 1_100_000_000))
    utimensat(file, (1_200_000_000, 0), (0, UTIME_OMIT))
    for path in (file, remote / "file"):
        assert (os.stat(path).st_atime, os.stat(path).st_mtime) == (1_200_000_000, 1_100_000_000)


def test_touch_m_keeps_the_access_time(file, remote):
    os.utime(file, (1_000_000_000, 1_100_000_000))
    utimensat(file, (0, UTIME_OMIT), (1_200_000_000, 0))
    for path in (file, remote / "file"):
        assert (os.stat(path).st_atime, os.stat(path).st_mtime) == (1_000_000_000, 1_200_000_000)


def test_omitting_both_times_changes_nothing(file, remote):
    os.utime(file, (1_000_000_000, 1_100_000_000))
    utimensat(file, (0, UTIME_OMIT), (0, UTIME_OMIT))
    assert (os.stat(remote / "file").st_atime, os.stat(remote / "file").st_mtime) == (
        1_000_000_000, 1_100_000_000)


def test_the_time_can_be_now(file, remote):
    os.utime(file, (1_000_000_000, 1_100_000_000))
    utimensat(file, (0, UTIME_OMIT), (0, UTIME_NOW))
    assert abs(os.stat(remote / "file").st_mtime - time.time()) < 10
    assert os.stat(remote / "file").st_atime == 1_000_000_000
    os.utime(file)
    assert abs(os.stat(remote / "file").st_atime - time.time()) < 10


@pytest.mark.parametrize("seconds", [0, 1, (1 << 31) - 1, (1 << 31) + 5, (1 << 32) - 1])
def test_times_of_the_whole_range_of_the_protocol(file, remote, seconds):
    os.utime(file, (seconds, seconds))
    assert os.stat(remote / "file").st_mtime == seconds
    assert os.stat(file).st_mtime == seconds


def test_times_of_a_symlink_spare_its_target(mnt, remote):
    make(mnt / "target")
    os.utime(mnt / "target", (1_000_000_000, 1_000_000_000))
    os.symlink("target", mnt / "link")
    os.utime(mnt / "link", (1_200_000_000, 1_200_000_000), follow_symlinks=False)
    assert os.lstat(remote / "link").st_mtime == 1_200_000_000
    assert os.stat(remote / "target").st_mtime == 1_000_000_000


def test_futimens(file, remote):
    with open(file, "rb") as handle:
        os.utime(handle.fileno(), (1_000_000_000, 1_100_000_000))
    assert os.stat(remote / "file").st_mtime == 1_100_000_000


def test_times_set_before_close_survive_it(mnt, remote):
    """As tar and cp -p do: write, set the times, close."""
    with open(mnt / "file", "wb") as handle:
        handle.write(b"x" * 100_000)
        handle.flush()
        os.utime(handle.fileno(), (1_000_000_000, 1_000_000_000))
    assert os.stat(remote / "file").st_mtime == 1_000_000_000
    assert os.stat(mnt / "file").st_mtime == 1_000_000_000


@pytest.mark.parametrize("size", [0, 4, 10, 100_000])
def test_truncate_by_path(file, remote, size):
    os.truncate(file, size)
    expected = b"0123456789"[:size].ljust(size, b"\0")
    assert os.stat(file).st_size == size
    assert (remote / "file").read_bytes() == expected
    assert file.read_bytes() == expected


@pytest.mark.parametrize("size", [0, 4, 10, 100_000])
def test_truncate_by_handle(file, remote, size):
    with open(file, "r+b") as handle:
        os.ftruncate(handle.fileno(), size)
        assert os.fstat(handle.fileno()).st_size == size
    expected = b"0123456789"[:size].ljust(size, b"\0")
    assert (remote / "file").read_bytes() == expected
    assert file.read_bytes() == expected


def test_truncate_after_unflushed_writes(mnt, remote):
    with open(mnt / "file", "wb", buffering=0) as handle:
        handle.write(b"a" * 300_000)
        os.ftruncate(handle.fileno(), 5)
        handle.seek(0, os.SEEK_END)
        assert handle.tell() == 5
        handle.write(b"b")
    assert (remote / "file").read_bytes() == b"aaaaab"


def test_truncate_errors(mnt):
    os.mkdir(mnt / "dir")
    with fails("EISDIR"):
        os.truncate(mnt / "dir", 0)
    with fails("ENOENT"):
        os.truncate(mnt / "none", 0)
    make(mnt / "file")
    with open(mnt / "file", "rb") as handle, fails("EINVAL", "EBADF"):
        os.ftruncate(handle.fileno(), 0)


def test_the_size_and_time_of_a_written_file_are_right_at_once(mnt):
    with open(mnt / "file", "wb", buffering=0) as handle:
        handle.write(b"x" * 70_000)
        assert os.stat(mnt / "file").st_size == 70_000
        assert os.fstat(handle.fileno()).st_size == 70_000
    assert os.stat(mnt / "file").st_size == 70_000
    assert abs(os.stat(mnt / "file").st_mtime - time.time()) < 10


def test_the_inode_number_stays_while_mounted(mnt):
    os.mkdir(mnt / "dir")
    make(mnt / "dir" / "file")
    before = os.stat(mnt / "dir" / "file").st_ino
    for number in range(200):
        make(mnt / f"other{number}")
    os.listdir(mnt / "dir")
    assert os.stat(mnt / "dir" / "file").st_ino == before
    os.rename(mnt / "dir" / "file", mnt / "dir" / "renamed")
    assert os.stat(mnt / "dir" / "renamed").st_ino == before


def test_blocks_agree_with_the_size(mnt):
    make(mnt / "file", b"x" * 100_000)
    assert os.stat(mnt / "file").st_blocks * 512 >= 100_000
