"""Listings: large ones, changing ones, odd names, positions within them."""

import ctypes
import os

import pytest

from mount.expect import LIBC, fails, make, run

ODD_NAMES = [
    b"with space", b" leading and trailing ", b"-rf", b"--", b"new\nline", b"tab\there",
    b"back\\slash", b"quote'\"", b"star*?[a]", b"$HOME`id`;|&", b"caf\xc3\xa9",
    b"latin1-\xe9\xff\xfe", b"\xf0\x9f\x90\xa7", b"...", b"..a", b"~", b"#hash#", b"%41%00",
    b"CON:", b"\x01\x7f", b"n" * 255, b"\xc3\xa9" * 127, b"a\rb",
]


@pytest.mark.parametrize("name", ODD_NAMES, ids=lambda name: ascii(name[:12]))
def test_odd_names_made_here(mnt, remote, name):
    ours, theirs = os.fsencode(mnt), os.fsencode(remote)
    make(ours + b"/" + name, b"content")
    assert os.listdir(theirs) == [name]
    assert os.listdir(ours) == [name]
    with open(ours + b"/" + name, "rb") as file:
        assert file.read() == b"content"
    os.rename(ours + b"/" + name, ours + b"/plain")
    os.rename(ours + b"/plain", ours + b"/" + name)
    os.unlink(ours + b"/" + name)
    os.mkdir(ours + b"/" + name)
    os.symlink(name, ours + b"/link")
    assert os.readlink(theirs + b"/link") == name
    make(ours + b"/" + name + b"/" + name)
    assert os.listdir(theirs + b"/" + name) == [name]


def test_odd_names_made_on_the_server(mnt, remote):
    for number, name in enumerate(ODD_NAMES):
        make(os.fsencode(remote) + b"/" + name, b"%d" % number)
    assert sorted(os.listdir(os.fsencode(mnt))) == sorted(ODD_NAMES)
    for number, name in enumerate(ODD_NAMES):
        with open(os.fsencode(mnt) + b"/" + name, "rb") as file:
            assert file.read() == b"%d" % number


def test_an_odd_name_as_the_mounted_directory(mount, remote):
    directory = remote / "dir with 'odd\" $name*"
    directory.mkdir()
    (directory / "file").write_text("x")
    assert os.listdir(mount(remote=directory).point) == ["file"]


def test_a_listing_has_dot_and_dot_dot(mnt):
    os.mkdir(mnt / "sub")
    assert run("ls", "-a", mnt / "sub").stdout.split() == [".", ".."]


def test_types_come_with_the_listing(mnt, remote):
    (remote / "file").write_text("x")
    (remote / "dir").mkdir()
    (remote / "link").symlink_to("file")
    kinds = {entry.name: (entry.is_symlink(), entry.is_dir(follow_symlinks=False),
                          entry.is_file(follow_symlinks=False)) for entry in os.scandir(mnt)}
    assert kinds == {"file": (False, False, True), "dir": (False, True, False),
                     "link": (True, False, False)}


def test_what_is_made_and_removed_here_is_listed_at_once(mnt):
    for number in range(50):
        make(mnt / f"f{number:02}")
        assert len(os.listdir(mnt)) == number + 1
    for number in range(0, 50, 2):
        os.unlink(mnt / f"f{number:02}")
    assert sorted(os.listdir(mnt)) == [f"f{number:02}" for number in range(1, 50, 2)]


def test_removing_while_listing_skips_nothing(mnt):
    """As rm -r does: every name is met once although the directory shrinks."""
    for number in range(1000):
        make(mnt / f"f{number}")
    met = []
    with os.scandir(mnt) as entries:
        for entry in entries:
            met.append(entry.name)
            os.unlink(entry.path)
    assert sorted(met) == sorted(f"f{number}" for number in range(1000))
    assert os.listdir(mnt) == []


def test_rm_r_of_a_tree(mnt, remote):
    for top in range(10):
        os.makedirs(mnt / "tree" / f"d{top}" / "sub")
        for number in range(20):
            make(mnt / "tree" / f"d{top}" / "sub" / f"f{number}")
    run("rm", "-r", mnt / "tree")
    assert os.listdir(remote) == []


class Dirent(ctypes.Structure):
    _fields_ = [("ino", ctypes.c_ulong), ("off", ctypes.c_long), ("reclen", ctypes.c_ushort),
                ("type", ctypes.c_ubyte), ("name", ctypes.c_char * 256)]


class Directory:
    """opendir(3) and its family."""

    def __init__(self, path):
        for name in ("opendir", "readdir"):
            getattr(LIBC, name).restype = ctypes.c_void_p
        LIBC.telldir.restype = ctypes.c_long
        self.stream = ctypes.c_void_p(LIBC.opendir(os.fsencode(path)))

    def read(self):
        entry = LIBC.readdir(self.stream)
        return ctypes.cast(entry, ctypes.POINTER(Dirent)).contents.name if entry else None

    def read_all(self):
        names = []
        while (name := self.read()) is not None:
            names.append(name)
        return names

    def tell(self):
        return LIBC.telldir(self.stream)

    def seek(self, position):
        LIBC.seekdir(self.stream, ctypes.c_long(position))

    def rewind(self):
        LIBC.rewinddir(self.stream)

    def close(self):
        LIBC.closedir(self.stream)


def test_seekdir_returns_to_a_position(mnt, remote):
    for number in range(3000):
        (remote / f"f{number}").touch()
    directory = Directory(mnt)
    for _ in range(1500):
        directory.read()
    position = directory.tell()
    rest = directory.read_all()
    directory.seek(position)
    assert directory.read_all() == rest
    assert len(rest) == 3002 - 1500
    directory.close()


def test_rewinddir_starts_again_and_sees_new_names(mnt):
    make(mnt / "a")
    directory = Directory(mnt)
    assert sorted(directory.read_all()) == [b".", b"..", b"a"]
    make(mnt / "b")
    directory.rewind()
    assert sorted(directory.read_all()) == [b".", b"..", b"a", b"b"]
    directory.close()


@pytest.mark.heavy
@pytest.mark.limit(120)
def test_fifty_thousand_files_in_one_directory(mnt, remote):
    for number in range(50_000):
        (remote / f"file-{number:05}").touch()
    assert run("find", mnt, "-type", "f").stdout.count("\n") == 50_000
    assert len(os.listdir(mnt)) == 50_000
    run("du", "-s", mnt)
    lines = run("ls", "-l", mnt).stdout.splitlines()
    assert len(lines) == 50_001
    assert lines[1].endswith("file-00000") and lines[-1].endswith("file-49999")
    assert os.stat(mnt / "file-25000").st_size == 0
    with fails("ENOENT"):
        os.stat(mnt / "file-50000")


def test_a_deep_tree(mnt, remote):
    path = mnt
    for level in range(60):
        path = path / f"level{level}"
        os.mkdir(path)
    make(path / "bottom", b"x")
    assert run("find", mnt, "-name", "bottom").stdout.strip() == str(path / "bottom")
    assert len(list(os.walk(remote))) == 61
    run("rm", "-rf", mnt / "level0")


def test_a_path_longer_than_the_protocol_s_usual_buffers(mnt):
    path = mnt
    for _ in range(12):
        path = path / ("d" * 250)
        os.mkdir(path)
    make(path / "file", b"deep")
    assert (path / "file").read_bytes() == b"deep"
