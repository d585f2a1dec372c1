"""A server that runs out of space says so, with the right errno and at the right moment."""

import os
import subprocess

import pytest

from mount.expect import fails, make, pattern
from servers.process import wait_until

MIB = 1 << 20


@pytest.fixture
def small(mount, remote, as_root):
    """A mount whose served directory lies on a file system of 4 MiB."""
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", remote]).returncode != 0:
        pytest.skip("cannot mount a tmpfs here")
    yield mount().point
    mount.finish()
    subprocess.run(["umount", "-l", remote], check=True)


def test_a_full_disk_is_enospc(small, remote):
    with fails("ENOSPC", "EDQUOT"):
        make(small / "big", pattern(8 * MIB))


def test_a_full_disk_is_told_by_fsync_or_close(small):
    fd = os.open(small / "big", os.O_WRONLY | os.O_CREAT)
    with fails("ENOSPC", "EDQUOT"):
        try:
            for number in range(8):
                os.write(fd, pattern(MIB, number))
            os.fsync(fd)
        finally:
            os.close(fd)


def test_the_error_is_told_by_close_when_nothing_else_could(small):
    fd = os.open(small / "big", os.O_WRONLY | os.O_CREAT)
    with fails("ENOSPC", "EDQUOT"):
        told = None
        for number in range(8):
            try:
                os.write(fd, pattern(MIB, number))
            except OSError as error:
                told = error
                break
        os.close(fd)
        if told:
            raise told


def test_a_program_sees_the_full_disk(small):
    result = subprocess.run(["dd", "if=/dev/zero", f"of={small}/big", "bs=1M", "count=8"],
                            capture_output=True, text=True)
    assert result.returncode != 0
    assert "No space left on device" in result.stderr


def test_space_that_was_freed_can_be_used_again(small, remote):
    with fails("ENOSPC", "EDQUOT"):
        make(small / "big", pattern(8 * MIB))
    os.unlink(small / "big")

    def fits():
        """The server frees the space when it has closed the file, a moment after us."""
        try:
            return make(small / "file", pattern(MIB))
        except OSError:
            return False
    assert wait_until(fits, 5)
    assert (remote / "file").read_bytes() == pattern(MIB)


def test_the_files_before_are_whole(small, remote):
    make(small / "first", pattern(2 * MIB))
    with fails("ENOSPC", "EDQUOT"):
        make(small / "second", pattern(4 * MIB))
    assert (remote / "first").read_bytes() == pattern(2 * MIB)


def test_df_shows_the_small_one(small):
    st = os.statvfs(small)
    assert st.f_blocks * st.f_frsize == 4 * MIB


def test_df_is_per_path(mount, remote, as_root):
    """A file system mounted below the served directory has its own numbers."""
    (remote / "sub").mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none",
                       remote / "sub"]).returncode != 0:
        pytest.skip("cannot mount a tmpfs here")
    try:
        mnt = mount().point
        st = os.statvfs(mnt / "sub")
        assert st.f_blocks * st.f_frsize == 4 * MIB
        make(mnt / "file", b"x")
        with fails("EXDEV"):
            os.rename(mnt / "file", mnt / "sub" / "file")
        with fails("EXDEV", "EPERM"):
            os.link(mnt / "file", mnt / "sub" / "file")
    finally:
        mount.finish()
        subprocess.run(["umount", "-l", remote / "sub"], check=True)


def test_a_read_only_file_system_is_erofs(mount, remote, as_root):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", remote]).returncode != 0:
        pytest.skip("cannot mount a tmpfs here")
    try:
        mnt = mount().point
        for change in (lambda: make(mnt / "x"), lambda: os.mkdir(mnt / "x")):
            with fails("EROFS", "EACCES", "EPERM"):
                change()
    finally:
        mount.finish()
        subprocess.run(["umount", "-l", remote], check=True)


def test_the_ro_option_forbids_changes(mount, remote):
    (remote / "file").write_text("x")
    mnt = mount("ro").point
    assert (mnt / "file").read_text() == "x"
    for change in (lambda: make(mnt / "x"), lambda: os.mkdir(mnt / "x"),
                   lambda: os.unlink(mnt / "file"), lambda: os.chmod(mnt / "file", 0o600)):
        with fails("EROFS"):
            change()
