"""Files written with their attributes set: nothing of it may be lost or told wrong."""

import os
import stat
import subprocess

import pytest

from mount.expect import fails, make, needs, pattern, run
from mount.test_programs import git

pytestmark = pytest.mark.limit(120)
MIB = 1 << 20
MODES = (0o644, 0o600, 0o755, 0o444, 0o400, 0o664)
FIRST_TIME = 978307200


@pytest.fixture
def source(base):
    """A tree of small files with modes and times of their own."""
    top = base / "source"
    for number in range(40):
        directory = top / f"dir{number % 4}"
        directory.mkdir(parents=True, exist_ok=True)
        path = directory / f"file{number}"
        make(path, pattern(number * 1000, number))
        path.chmod(MODES[number % len(MODES)])
        os.utime(path, (FIRST_TIME + 7, FIRST_TIME + number * 86400))
    for number in range(4):
        os.utime(top / f"dir{number}", (FIRST_TIME, FIRST_TIME + number))
    return top


def told(path):
    """Mode, time and, of a file, size: a directory's is its file system's affair."""
    status = os.stat(path)
    size = 0 if stat.S_ISDIR(status.st_mode) else status.st_size
    return status.st_mode, int(status.st_mtime), size


def check_tree(source, copy, remote_copy):
    """The copy is the source, as the mount shows it and as it is on the server."""
    for directory, names, files in os.walk(source):
        for name in names + files:
            path = os.path.relpath(os.path.join(directory, name), source)
            assert told(copy / path) == told(source / path), path
            assert told(remote_copy / path) == told(source / path), path
        for name in files:
            path = os.path.relpath(os.path.join(directory, name), source)
            assert (remote_copy / path).read_bytes() == (source / path).read_bytes(), path


def test_tar(mnt, remote, source, base):
    run("tar", "cf", base / "tree.tar", "-C", source.parent, "source")
    run("tar", "xpf", base / "tree.tar", cwd=mnt)
    check_tree(source, mnt / "source", remote / "source")


def test_cp(mnt, remote, source):
    run("cp", "-a", source, mnt / "copy")
    check_tree(source, mnt / "copy", remote / "copy")


def test_rsync_has_nothing_to_do_the_second_time(mnt, remote, source):
    needs("rsync")
    run("rsync", "-a", f"{source}/", mnt / "copy")
    check_tree(source, mnt / "copy", remote / "copy")
    assert run("rsync", "-ai", f"{source}/", mnt / "copy").stdout == ""


def test_git_checkout_knows_its_files(mnt, remote):
    needs("git")
    repo = mnt / "repo"
    repo.mkdir()
    git("init", "-q", cwd=repo)
    for number in range(20):
        make(repo / f"file{number}", pattern(number * 100, number))
        (repo / f"file{number}").chmod(0o755 if number % 2 else 0o644)
    git("add", ".", cwd=repo)
    git("commit", "-q", "-m", "first", cwd=repo)
    for number in range(20):
        os.unlink(repo / f"file{number}")
    git("checkout", "-q", ".", cwd=repo)
    assert git("status", "--porcelain", cwd=repo) == ""
    for number in range(20):
        assert bool((remote / "repo" / f"file{number}").stat().st_mode & 0o100) == number % 2


def test_what_was_set_is_seen_before_and_after_the_close(mnt, remote):
    with open(mnt / "file", "xb") as file:
        file.write(b"contents")
        file.flush()
        os.utime(file.fileno(), (FIRST_TIME, FIRST_TIME))
        os.fchmod(file.fileno(), 0o640)
        assert told(mnt / "file") == (0o100640, FIRST_TIME, 8)
    assert told(mnt / "file") == (0o100640, FIRST_TIME, 8)
    assert told(remote / "file") == (0o100640, FIRST_TIME, 8)


def test_writing_after_the_times_were_set_moves_them(mnt, remote):
    with open(mnt / "file", "xb", buffering=0) as file:
        os.utime(file.fileno(), (FIRST_TIME, FIRST_TIME))
        file.write(b"contents")
        assert os.fstat(file.fileno()).st_mtime > FIRST_TIME
    assert (mnt / "file").stat().st_mtime > FIRST_TIME
    assert (remote / "file").stat().st_mtime > FIRST_TIME


def test_renaming_an_open_file_takes_its_attributes_along(mnt, remote):
    with open(mnt / "old", "xb", buffering=0) as file:
        file.write(b"contents")
        os.utime(file.fileno(), (FIRST_TIME, FIRST_TIME))
        os.rename(mnt / "old", mnt / "new")
        assert told(remote / "new")[1] == FIRST_TIME
        os.truncate(mnt / "new", 3)
        assert (remote / "new").read_bytes() == b"con"
    assert (mnt / "new").stat().st_mtime > FIRST_TIME


@pytest.fixture
def small(mount, remote, as_root):
    """A mount whose served directory lies on a file system of 2 MiB."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", remote]).returncode != 0:
        pytest.skip("cannot mount a tmpfs here")
    yield mount().point
    mount.finish()
    subprocess.run(["umount", "-l", remote], check=True)


def test_a_full_disk_is_told_though_times_were_set(small):
    fd = os.open(small / "big", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    with fails("ENOSPC", "EDQUOT"):
        try:
            for number in range(4):
                os.write(fd, pattern(MIB, number))
            os.utime(fd, (FIRST_TIME, FIRST_TIME))
        finally:
            os.close(fd)


def test_a_refused_change_is_told_by_the_close(mnt, remote, as_root):
    fd = os.open(mnt / "file", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    if subprocess.run(["chattr", "+i", remote / "file"], capture_output=True).returncode != 0:
        os.close(fd)
        pytest.skip("there are no immutable files here")
    try:
        os.fchmod(fd, 0o600)
        with fails("EPERM"):
            os.close(fd)
        assert (mnt / "file").stat().st_mode & 0o777 == 0o644
    finally:
        subprocess.run(["chattr", "-i", remote / "file"], check=True)


# ---- writeback=async ----

@pytest.fixture
def hasty(mount):
    return mount("writeback=async")


def test_async_tar_is_whole_after_unmounting(hasty, remote, source, base):
    run("tar", "cf", base / "tree.tar", "-C", source.parent, "source")
    run("tar", "xpf", base / "tree.tar", cwd=hasty.point)
    check_tree(source, hasty.point / "source", remote / "source")
    run("cp", "-a", source, hasty.point / "copy")
    hasty.finish()
    check_tree(source, remote / "copy", remote / "copy")


def test_async_rsync_has_nothing_to_do_the_second_time(hasty, remote, source):
    needs("rsync")
    run("rsync", "-a", f"{source}/", hasty.point / "copy")
    assert run("rsync", "-ai", f"{source}/", hasty.point / "copy").stdout == ""
    check_tree(source, hasty.point / "copy", remote / "copy")


def test_async_work_is_seen_at_once(hasty, remote):
    directory = hasty.point / "dir"
    directory.mkdir()
    for number in range(50):
        path = directory / f"file{number}"
        with open(path, "xb") as file:
            file.write(pattern(number * 10))
        assert path.read_bytes() == pattern(number * 10)
        if number % 3 == 0:
            os.rename(path, directory / f"renamed{number}")
        elif number % 3 == 1:
            os.unlink(path)
    left = {f"renamed{n}" if n % 3 == 0 else f"file{n}" for n in range(50) if n % 3 != 1}
    assert set(os.listdir(directory)) == left
    os.rename(directory, hasty.point / "moved")
    assert set(os.listdir(remote / "moved")) == left


def test_async_git(hasty):
    needs("git")
    repo = hasty.point / "repo"
    repo.mkdir()
    git("init", "-q", cwd=repo)
    for number in range(20):
        make(repo / f"file{number}", pattern(number * 100, number))
    git("add", ".", cwd=repo)
    git("commit", "-q", "-m", "first", cwd=repo)
    git("fsck", "--strict", cwd=repo)
    git("clone", "-q", repo, hasty.point / "clone", cwd=hasty.point)
    assert git("status", "--porcelain", cwd=hasty.point / "clone") == ""


def test_async_fsync_is_as_ever(hasty, remote):
    (hasty.point / "dir").mkdir()
    with open(hasty.point / "dir" / "file", "xb") as file:
        file.write(b"contents")
        file.flush()
        os.fsync(file.fileno())
        assert (remote / "dir" / "file").read_bytes() == b"contents"


def test_async_loss_is_logged(mount, remote, as_root):
    """A file that somebody else was faster to make is left alone, and the log tells of it."""
    mounted = mount("writeback=async")
    mounted.expect_failure = True  # it may be told by the exit status
    (mounted.point / "dir").mkdir()
    (remote / "dir" / "file").write_bytes(b"theirs")
    told = False
    try:
        with open(mounted.point / "dir" / "file", "xb") as file:
            file.write(b"ours")
    except FileExistsError:
        told = True  # in time
    with open(mounted.point / "dir" / "other", "xb") as file:
        try:
            os.fsync(file.fileno())
        except OSError:
            pass
    assert (remote / "dir" / "file").read_bytes() == b"theirs"
    assert told or "could not be created" in mounted.log_text()
