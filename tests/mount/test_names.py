"""Names: making, removing, renaming and linking them, and the errors a local program expects."""

import os
import stat

import pytest

from mount.expect import RENAME_EXCHANGE, RENAME_NOREPLACE, fails, make, renameat2


def test_a_new_file_is_on_the_server(mnt, remote):
    make(mnt / "new", b"hello")
    assert (remote / "new").read_bytes() == b"hello"
    assert os.listdir(mnt) == ["new"]


def test_a_file_of_the_server_is_seen(mnt, remote):
    (remote / "there").write_bytes(b"content")
    assert (mnt / "there").read_bytes() == b"content"


def test_create_exclusive_on_an_existing_name(mnt):
    make(mnt / "x")
    with fails("EEXIST"):
        os.open(mnt / "x", os.O_CREAT | os.O_EXCL | os.O_WRONLY)


def test_create_exclusive_on_a_name_that_appeared_on_the_server(mnt, remote):
    with fails("ENOENT"):
        os.stat(mnt / "x")
    make(remote / "x")
    with fails("EEXIST"):
        os.open(mnt / "x", os.O_CREAT | os.O_EXCL | os.O_WRONLY)


def test_open_a_missing_file(mnt):
    with fails("ENOENT"):
        os.open(mnt / "none", os.O_RDONLY)


def test_a_file_is_no_directory(mnt):
    make(mnt / "file")
    with fails("ENOTDIR"):
        os.stat(mnt / "file" / "below")
    with fails("ENOTDIR"):
        os.listdir(mnt / "file")
    with fails("ENOTDIR"):
        os.rmdir(mnt / "file")


def test_a_directory_is_no_file(mnt):
    os.mkdir(mnt / "dir")
    with fails("EISDIR"):
        os.open(mnt / "dir", os.O_WRONLY)
    with fails("EISDIR"):
        os.unlink(mnt / "dir")


def test_a_name_of_256_bytes_is_too_long(mnt):
    with fails("ENAMETOOLONG"):
        make(mnt / ("n" * 256))
    with fails("ENAMETOOLONG"):
        os.mkdir(mnt / ("n" * 256))


@pytest.mark.parametrize("mode", [0o755, 0o700, 0o1777, 0o2775])
def test_mkdir_sets_the_mode(mnt, remote, mode):
    old = os.umask(0)
    try:
        os.mkdir(mnt / "dir", mode)
    finally:
        os.umask(old)
    expected = mode & 0o1777  # mkdir(2) ignores the set-group-id bit
    assert stat.S_IMODE(os.stat(remote / "dir").st_mode) & 0o1777 == expected
    assert stat.S_IMODE(os.stat(mnt / "dir").st_mode) & 0o1777 == expected


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o444])
def test_create_sets_the_mode(mnt, remote, mode):
    old = os.umask(0)
    try:
        make(mnt / "file", b"x", mode)
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(remote / "file").st_mode) == mode
    assert stat.S_IMODE(os.stat(mnt / "file").st_mode) == mode


def test_mkdir_on_an_existing_name(mnt):
    os.mkdir(mnt / "dir")
    make(mnt / "file")
    for name in ("dir", "file"):
        with fails("EEXIST"):
            os.mkdir(mnt / name)


def test_mkdir_on_a_name_that_appeared_on_the_server(mnt, remote):
    with fails("ENOENT"):
        os.stat(mnt / "dir")
    os.mkdir(remote / "dir")
    with fails("EEXIST"):
        os.mkdir(mnt / "dir")


def test_mkdir_below_nothing(mnt):
    with fails("ENOENT"):
        os.mkdir(mnt / "none" / "dir")


def test_rmdir_removes_an_empty_directory(mnt, remote):
    os.mkdir(mnt / "dir")
    os.rmdir(mnt / "dir")
    assert not (remote / "dir").exists()
    with fails("ENOENT"):
        os.stat(mnt / "dir")


def test_rmdir_of_a_directory_with_entries(mnt):
    os.makedirs(mnt / "dir" / "sub")
    with fails("ENOTEMPTY"):
        os.rmdir(mnt / "dir")
    assert (mnt / "dir" / "sub").is_dir()


def test_rmdir_and_unlink_of_nothing(mnt):
    with fails("ENOENT"):
        os.rmdir(mnt / "none")
    with fails("ENOENT"):
        os.unlink(mnt / "none")


def test_unlink_removes_the_link_and_not_its_target(mnt, remote):
    make(mnt / "target", b"keep")
    os.symlink("target", mnt / "link")
    os.unlink(mnt / "link")
    assert sorted(os.listdir(remote)) == ["target"]
    assert (mnt / "target").read_bytes() == b"keep"


def test_rename_to_a_new_name(mnt, remote):
    make(mnt / "a", b"1")
    os.rename(mnt / "a", mnt / "b")
    assert os.listdir(remote) == ["b"]
    assert not (mnt / "a").exists()
    assert (mnt / "b").read_bytes() == b"1"


def test_rename_replaces_a_file(mnt, remote):
    make(mnt / "a", b"new")
    make(mnt / "b", b"old one")
    (mnt / "b").read_bytes()
    os.rename(mnt / "a", mnt / "b")
    assert (mnt / "b").read_bytes() == b"new"
    assert os.stat(mnt / "b").st_size == 3
    assert os.listdir(remote) == ["b"]


def test_a_replaced_file_that_is_open_keeps_its_content(mnt):
    make(mnt / "a", b"new")
    make(mnt / "b", b"old one")
    with open(mnt / "b", "rb") as old:
        os.rename(mnt / "a", mnt / "b")
        assert old.read() == b"old one"
    assert (mnt / "b").read_bytes() == b"new"


def test_rename_to_itself(mnt):
    make(mnt / "a", b"1")
    os.rename(mnt / "a", mnt / "a")
    assert (mnt / "a").read_bytes() == b"1"


def test_rename_errors(mnt):
    make(mnt / "file")
    os.makedirs(mnt / "dir" / "full")
    os.mkdir(mnt / "empty")
    with fails("ENOENT"):
        os.rename(mnt / "none", mnt / "x")
    with fails("ENOENT"):
        os.rename(mnt / "file", mnt / "none" / "x")
    with fails("EISDIR"):
        os.rename(mnt / "file", mnt / "empty")
    with fails("ENOTDIR"):
        os.rename(mnt / "empty", mnt / "file")
    with fails("ENOTEMPTY", "EEXIST"):
        os.rename(mnt / "empty", mnt / "dir")
    with fails("EINVAL"):
        os.rename(mnt / "dir", mnt / "dir" / "full" / "x")


def test_rename_of_a_directory_over_an_empty_one(mnt, remote):
    os.makedirs(mnt / "a" / "sub")
    os.mkdir(mnt / "b")
    os.rename(mnt / "a", mnt / "b")
    assert os.listdir(remote) == ["b"]
    assert os.listdir(mnt / "b") == ["sub"]


def test_rename_noreplace(mnt, remote):
    make(mnt / "a", b"1")
    make(mnt / "b", b"2")
    with fails("EEXIST"):
        renameat2(mnt / "a", mnt / "b", RENAME_NOREPLACE)
    assert (mnt / "a").read_bytes() == b"1"
    assert (mnt / "b").read_bytes() == b"2"
    renameat2(mnt / "a", mnt / "c", RENAME_NOREPLACE)
    assert sorted(os.listdir(remote)) == ["b", "c"]


def test_rename_noreplace_sees_what_the_server_has(mnt, remote):
    make(mnt / "a", b"1")
    with fails("ENOENT"):
        os.stat(mnt / "b")
    make(remote / "b", b"2")
    with fails("EEXIST"):
        renameat2(mnt / "a", mnt / "b", RENAME_NOREPLACE)
    assert (remote / "b").read_bytes() == b"2"


def test_rename_exchange_is_not_possible(mnt):
    make(mnt / "a", b"1")
    make(mnt / "b", b"2")
    with fails("EINVAL"):
        renameat2(mnt / "a", mnt / "b", RENAME_EXCHANGE)
    assert (mnt / "a").read_bytes() == b"1"


def test_rename_across_mounts(mount, mnt, base):
    other = base / "mnt2"
    other.mkdir()
    make(mnt / "a")
    mount(point=other)
    with fails("EXDEV"):
        os.rename(mnt / "a", other / "a")


def test_a_directory_is_renamed_with_open_files_below(mnt, remote):
    os.makedirs(mnt / "old" / "sub")
    make(mnt / "old" / "sub" / "file", b"first ")
    with open(mnt / "old" / "sub" / "file", "r+b", buffering=0) as file:
        os.rename(mnt / "old", mnt / "new")
        assert file.read() == b"first "
        file.write(b"second")
        file.flush()
        os.fsync(file.fileno())
        assert os.fstat(file.fileno()).st_size == 12
    assert (remote / "new" / "sub" / "file").read_bytes() == b"first second"
    assert (mnt / "new" / "sub" / "file").read_bytes() == b"first second"
    with fails("ENOENT"):
        os.stat(mnt / "old" / "sub" / "file")


def test_a_renamed_tree_is_found_at_its_new_place(mnt):
    os.makedirs(mnt / "a" / "b" / "c")
    make(mnt / "a" / "b" / "c" / "deep", b"x")
    os.stat(mnt / "a" / "b" / "c" / "deep")
    os.mkdir(mnt / "z")
    os.rename(mnt / "a" / "b", mnt / "z" / "b")
    assert (mnt / "z" / "b" / "c" / "deep").read_bytes() == b"x"
    os.mkdir(mnt / "a" / "b")
    assert os.listdir(mnt / "a" / "b") == []


def test_an_unlinked_file_that_is_open_goes_on_working(mnt, remote):
    make(mnt / "file", b"content")
    with open(mnt / "file", "r+b", buffering=0) as file:
        os.unlink(mnt / "file")
        assert file.read() == b"content"
        file.write(b" and more")
        file.seek(0)
        assert file.read() == b"content and more"
        assert os.fstat(file.fileno()).st_size == 16
        os.ftruncate(file.fileno(), 4)
        assert os.fstat(file.fileno()).st_size == 4
        with fails("ENOENT"):
            os.stat(mnt / "file")
    assert os.listdir(remote) == []


def test_an_unlinked_name_can_be_used_again_while_the_old_file_is_open(mnt):
    make(mnt / "file", b"old")
    with open(mnt / "file", "rb") as old:
        os.unlink(mnt / "file")
        make(mnt / "file", b"new one")
        assert old.read() == b"old"
        assert (mnt / "file").read_bytes() == b"new one"


def test_hard_links_share_inode_and_count(mnt, remote):
    make(mnt / "a", b"1")
    os.link(mnt / "a", mnt / "b")
    first, second = os.stat(mnt / "a"), os.stat(mnt / "b")
    assert first.st_ino == second.st_ino
    assert first.st_nlink == second.st_nlink == 2
    assert os.stat(remote / "a").st_ino == os.stat(remote / "b").st_ino
    with open(mnt / "b", "ab") as file:
        file.write(b"2")
    assert (mnt / "a").read_bytes() == b"12"
    os.unlink(mnt / "a")
    assert (mnt / "b").read_bytes() == b"12"
    assert os.stat(mnt / "b").st_nlink == 1


def test_link_errors(mnt):
    make(mnt / "a")
    make(mnt / "b")
    os.mkdir(mnt / "dir")
    with fails("EEXIST"):
        os.link(mnt / "a", mnt / "b")
    with fails("ENOENT"):
        os.link(mnt / "none", mnt / "c")
    with fails("EPERM"):
        os.link(mnt / "dir", mnt / "c")


def test_hard_links_can_be_disabled(mount):
    mnt = mount("disable_hardlink").point
    make(mnt / "a")
    with fails("EPERM", "ENOSYS", "EOPNOTSUPP", "ENOTSUP"):
        os.link(mnt / "a", mnt / "b")


def test_a_symlink_says_what_it_was_told(mnt, remote):
    for number, target in enumerate(("file", "./a//b", "dir/with space/é")):
        os.symlink(target, mnt / f"link{number}")
        assert os.readlink(remote / f"link{number}") == target
        assert os.readlink(mnt / f"link{number}") == target
        assert stat.S_ISLNK(os.lstat(mnt / f"link{number}").st_mode)
    make(mnt / "file", b"reached")
    assert (mnt / "link0").read_bytes() == b"reached"


def test_symlink_on_an_existing_name(mnt):
    make(mnt / "file")
    with fails("EEXIST"):
        os.symlink("x", mnt / "file")


def test_a_dangling_link_exists_and_leads_nowhere(mnt):
    os.symlink("nowhere", mnt / "link")
    assert stat.S_ISLNK(os.lstat(mnt / "link").st_mode)
    with fails("ENOENT"):
        os.stat(mnt / "link")
    with fails("EINVAL"):
        make(mnt / "file")
        os.readlink(mnt / "file")


def test_mknod_makes_files_and_nothing_else(mnt, remote):
    os.mknod(mnt / "file", 0o640 | stat.S_IFREG)
    assert (remote / "file").read_bytes() == b""
    with fails("EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"):
        os.mkfifo(mnt / "fifo")
    assert os.listdir(remote) == ["file"]


def test_no_extended_attributes(mnt):
    make(mnt / "file")
    with fails("ENOTSUP"):
        os.setxattr(mnt / "file", "user.x", b"1")
    with fails("ENOTSUP", "ENODATA"):
        os.getxattr(mnt / "file", "user.x")


def test_access_asks_what_the_bits_say(mnt):
    make(mnt / "file", b"", 0o644)
    assert os.access(mnt / "file", os.R_OK | os.W_OK)
    assert os.access(mnt, os.X_OK)
    assert not os.access(mnt / "none", os.F_OK)


def test_a_root_of_the_mount_has_the_server_directory_s_attributes(mnt, remote):
    assert os.path.ismount(mnt)
    assert stat.S_IMODE(os.stat(mnt).st_mode) == stat.S_IMODE(os.stat(remote).st_mode)


def test_statfs_is_the_server_s(mnt, remote):
    ours, theirs = os.statvfs(mnt), os.statvfs(remote)
    assert ours.f_blocks * ours.f_frsize == theirs.f_blocks * theirs.f_frsize
    assert abs(ours.f_bavail * ours.f_frsize - theirs.f_bavail * theirs.f_frsize) < 1 << 31
    assert ours.f_namemax == 255
