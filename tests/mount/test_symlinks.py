"""Where links may lead: inside the mount by default, and what the options change."""

import errno
import os
import stat

import pytest

from mount.expect import fails, make, run
from servers.process import wait_until

ESCAPES = ["..", "../outside", "sub/../../outside", "./../outside", "/etc/passwd", "/",
           "sub/../../../../../../../../etc/passwd"]


@pytest.fixture
def tree(remote):
    (remote / "sub").mkdir()
    (remote / "sub" / "file").write_text("inside")
    (remote.parent / "outside").write_text("outside")
    return remote


@pytest.mark.parametrize("target", ["sub/file", "./sub/../sub/file", "sub//file"])
def test_a_link_that_stays_inside_is_followed(mnt, tree, target):
    (tree / "link").symlink_to(target)
    assert (mnt / "link").read_text() == "inside"


def test_a_link_may_climb_within_the_mount(mnt, tree):
    (tree / "sub" / "up").symlink_to("../sub/file")
    assert (mnt / "sub" / "up").read_text() == "inside"
    (tree / "sub" / "deep").mkdir()
    (tree / "sub" / "deep" / "up").symlink_to("../../sub/file")
    assert (mnt / "sub" / "deep" / "up").read_text() == "inside"


@pytest.mark.parametrize("target", ESCAPES)
def test_a_link_that_leaves_the_mount_is_refused(mnt, tree, target):
    os.symlink(target, tree / "link")
    with fails("EPERM", "EACCES"):
        os.stat(mnt / "link")
    with fails("EPERM", "EACCES"):
        os.open(mnt / "link", os.O_RDONLY)


def test_a_refused_link_does_not_spoil_the_listing(mnt, tree):
    (tree / "link").symlink_to("/etc/passwd")
    assert sorted(os.listdir(mnt)) == ["link", "sub"]
    assert stat.S_ISLNK(os.lstat(mnt / "link").st_mode)
    os.unlink(mnt / "link")
    assert sorted(os.listdir(tree)) == ["sub"]


def test_a_link_that_climbs_out_of_the_directory_that_was_moved(mnt, tree):
    """Legal in the depth where it was made, an escape after the move."""
    (tree / "sub" / "deep").mkdir()
    (tree / "sub" / "deep" / "up").symlink_to("../../sub/file")
    assert (mnt / "sub" / "deep" / "up").read_text() == "inside"
    os.rename(mnt / "sub" / "deep", mnt / "deep")

    def refused():
        """The kernel forgets what it knew of the link a moment after the move."""
        try:
            os.stat(mnt / "deep" / "up")
        except OSError as error:
            return error.errno in (errno.EPERM, errno.EACCES)
        return False
    assert wait_until(refused, 2)


def test_links_may_leave_when_the_user_says_so(mount, tree):
    mnt = mount("no_contain_symlinks").point
    (tree / "link").symlink_to("/etc/hostname")
    (tree / "up").symlink_to("../outside")
    assert os.readlink(mnt / "link") == "/etc/hostname"
    assert os.readlink(mnt / "up") == "../outside"


def test_absolute_links_inside_the_share_are_made_relative(mount, tree):
    mnt = mount("transform_symlinks").point
    (tree / "link").symlink_to(tree / "sub" / "file")
    (tree / "sub" / "link").symlink_to(tree / "sub" / "file")
    (tree / "sub" / "root").symlink_to(tree)
    for name in ("link", "sub/link"):
        assert not os.readlink(mnt / name).startswith("/")
        assert (mnt / name).read_text() == "inside"
    assert sorted(os.listdir(mnt / "sub" / "root")) == ["link", "sub"]


def test_transformed_links_are_contained_too(mount, tree):
    mnt = mount("transform_symlinks").point
    (tree / "link").symlink_to(tree.parent / "outside")
    with fails("EPERM", "EACCES"):
        os.stat(mnt / "link")


def test_the_server_may_follow_the_links(mount, tree):
    mnt = mount("follow_symlinks").point
    (tree / "link").symlink_to("sub/file")
    (tree / "out").symlink_to("../outside")
    (tree / "dir").symlink_to("sub")
    assert stat.S_ISREG(os.lstat(mnt / "link").st_mode)
    assert stat.S_ISDIR(os.lstat(mnt / "dir").st_mode)
    assert (mnt / "link").read_text() == "inside"
    assert (mnt / "out").read_text() == "outside"
    assert os.listdir(mnt / "dir") == ["file"]
    assert os.lstat(mnt / "link").st_size == 6


def test_a_loop_of_links_is_an_error(mnt, tree):
    (tree / "a").symlink_to("b")
    (tree / "b").symlink_to("a")
    with fails("ELOOP"):
        os.stat(mnt / "a")


def test_grep_over_a_tree_with_links(mnt, tree):
    make(mnt / "sub" / "more", b"inside too\n")
    os.symlink("sub/more", mnt / "link")
    assert sorted(run("grep", "-r", "-l", "inside", ".", cwd=mnt).stdout.split()) == [
        "./sub/file", "./sub/more"]
