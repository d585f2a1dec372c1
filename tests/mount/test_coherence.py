"""What others change on the server is seen, at open() at the latest."""

import os
import time

import pytest

from mount.expect import fails, make, pattern
from servers.process import wait_until

MIB = 1 << 20


def edit(path, content, mtime):
    """An edit by someone else, at a time the protocol can tell apart (whole seconds)."""
    path.write_bytes(content)
    os.utime(path, (mtime, mtime))


@pytest.fixture
def edited(remote):
    path = remote / "file"
    edit(path, b"first version", 1_000_000_000)
    return path


def test_a_longer_version_is_read_whole_at_the_next_open(mnt, edited):
    assert (mnt / "file").read_bytes() == b"first version"
    edit(edited, b"second version, longer", 1_000_000_000)
    assert (mnt / "file").read_bytes() == b"second version, longer"
    assert os.stat(mnt / "file").st_size == 22


def test_a_shorter_version_has_no_tail_of_the_old_one(mnt, edited):
    assert (mnt / "file").read_bytes() == b"first version"
    edit(edited, b"short", 1_000_000_010)
    assert (mnt / "file").read_bytes() == b"short"


def test_a_version_of_the_same_size_is_told_by_its_time(mnt, edited):
    assert (mnt / "file").read_bytes() == b"first version"
    edit(edited, b"FIRST VERSION", 1_000_000_010)
    assert (mnt / "file").read_bytes() == b"FIRST VERSION"


def test_a_replaced_large_file_is_not_mixed(mnt, remote):
    edit(remote / "file", pattern(3 * MIB, 1), 1_000_000_000)
    assert (mnt / "file").read_bytes() == pattern(3 * MIB, 1)
    edit(remote / "new", pattern(3 * MIB, 2), 1_000_000_010)
    os.rename(remote / "new", remote / "file")
    assert (mnt / "file").read_bytes() == pattern(3 * MIB, 2)


def test_ten_edits_are_each_seen(mnt, remote):
    for number in range(10):
        edit(remote / "file", b"version %d" % number, 1_000_000_000 + number)
        assert (mnt / "file").read_bytes() == b"version %d" % number


def test_a_removed_file_cannot_be_opened(mnt, edited):
    assert (mnt / "file").read_bytes() == b"first version"
    os.unlink(edited)
    with fails("ENOENT", "ESTALE"):
        os.open(mnt / "file", os.O_RDONLY)
    with fails("ENOENT"):
        os.open(mnt / "file", os.O_RDONLY)


def test_opening_for_writing_sees_the_new_version_too(mnt, edited):
    assert (mnt / "file").read_bytes() == b"first version"
    edit(edited, b"0123456789ABCDEF", 1_000_000_010)
    with open(mnt / "file", "r+b", buffering=0) as file:
        assert file.read() == b"0123456789ABCDEF"
        file.write(b"!")
    assert edited.read_bytes() == b"0123456789ABCDEF!"


def test_append_after_a_remote_append(mnt, edited):
    with open(mnt / "file", "ab") as file:
        file.write(b" one")
    with open(edited, "ab") as file:
        file.write(b" two")
    with open(mnt / "file", "ab") as file:
        file.write(b" three")
    assert edited.read_bytes() == b"first version one two three"


def test_new_and_removed_names_are_seen_after_the_timeout(mount, remote):
    mnt = mount("attr_timeout=1", "entry_timeout=1", "negative_timeout=1").point
    (remote / "old").touch()
    assert os.listdir(mnt) == ["old"]
    assert not (mnt / "new").exists()
    (remote / "new").touch()
    os.unlink(remote / "old")
    assert wait_until(lambda: os.listdir(mnt) == ["new"], 6, step=0.2)
    assert wait_until(lambda: (mnt / "new").exists() and not (mnt / "old").exists(), 6, 0.2)


def test_names_are_seen_within_the_default_timeout(mnt, remote):
    (remote / "old").touch()
    assert os.listdir(mnt) == ["old"]
    (remote / "new").touch()
    assert wait_until(lambda: "new" in os.listdir(mnt), 10, step=0.5)
    assert (mnt / "new").exists()


def test_attributes_are_seen_after_the_timeout(mount, remote):
    mnt = mount("attr_timeout=1").point
    make(remote / "file", b"12345")
    assert os.stat(mnt / "file").st_size == 5
    edit(remote / "file", b"1234567", 1_000_000_000)
    os.chmod(remote / "file", 0o640)
    assert wait_until(lambda: os.stat(mnt / "file").st_size == 7, 6, 0.2)
    assert os.stat(mnt / "file").st_mode & 0o777 == 0o640
    assert os.stat(mnt / "file").st_mtime == 1_000_000_000


def test_no_cache_times_show_everything_at_once(mount, remote):
    mnt = mount("attr_timeout=0", "entry_timeout=0", "negative_timeout=0", "dir_cache=no").point
    for number in range(5):
        assert not (mnt / "name").exists()
        make(remote / "name", b"x" * number)
        assert os.stat(mnt / "name").st_size == number
        assert os.listdir(mnt) == ["name"]
        os.unlink(remote / "name")
        assert os.listdir(mnt) == []


@pytest.mark.transports("ssh2", "ssh")
def test_an_unchanged_file_is_not_read_again(line, mount, remote):
    mnt = mount().point
    (remote / "file").write_bytes(pattern(4 * MIB))
    os.utime(remote / "file", (1_000_000_000, 1_000_000_000))
    assert (mnt / "file").read_bytes() == pattern(4 * MIB)
    before = line.wait_idle()
    assert (mnt / "file").read_bytes() == pattern(4 * MIB)
    assert line.wait_idle()["down"] - before["down"] < 100_000


def test_a_growing_file_is_followed(mnt, remote):
    make(remote / "log", b"start\n")
    with open(mnt / "log", "rb", buffering=0) as reader:
        assert reader.read(100) == b"start\n"
        with open(remote / "log", "ab", buffering=0) as writer:
            writer.write(b"next\n")
        got = bytearray()

        def more():
            os.fstat(reader.fileno())
            got.extend(reader.read(100))
            return got == b"next\n"
        assert wait_until(more, 10, step=0.2), bytes(got)


def test_a_growing_file_is_whole_at_each_open(mnt, remote):
    expected = b""
    for number in range(20):
        with open(remote / "log", "ab") as writer:
            writer.write(b"line %d\n" % number)
        expected += b"line %d\n" % number
        assert (mnt / "log").read_bytes() == expected


def test_own_changes_are_seen_at_once_after_a_remote_look(mnt, remote):
    """Names, sizes and times of our own work, through every cache."""
    os.listdir(mnt)
    for number in range(20):
        assert not (mnt / f"f{number}").exists()
        make(mnt / f"f{number}", b"x" * number)
        assert os.stat(mnt / f"f{number}").st_size == number
        os.rename(mnt / f"f{number}", mnt / f"g{number}")
        assert not (mnt / f"f{number}").exists()
        assert f"g{number}" in os.listdir(mnt)
        with open(mnt / f"g{number}", "ab") as file:
            file.write(b"more")
        assert os.stat(mnt / f"g{number}").st_size == number + 4
        assert (mnt / f"g{number}").read_bytes() == b"x" * number + b"more"


def test_a_second_mount_sees_what_the_first_has_closed(mount, mnt, base):
    second = base / "second"
    second.mkdir()
    mount(point=second)
    for number in range(10):
        start = time.time()
        make(mnt / "file", pattern(50_000 + number, number))
        assert (second / "file").read_bytes() == pattern(50_000 + number, number)
        assert time.time() - start < 5
