"""Whose files they are: owners shown, mapped and obeyed."""

import os
import pwd
import stat

import pytest

from mount.expect import make, run
from mount.mounted import as_user
from servers import accounts
from servers.openssh import Sshd


def run_as(user, *words, check=True):
    return run(*as_user(*user), *words, check=check)


def denied(user, *words):
    result = run_as(user, *words, check=False)
    return result.returncode != 0 and "Permission denied" in result.stderr


@pytest.fixture
def files(remote, as_root):
    """Files of several owners and modes."""
    for name, uid, gid, mode in (("mine", 0, 0, 0o600), ("shared", 0, 0, 0o644),
                                 ("other", 65534, 65534, 0o600), ("high", 70000, 70001, 0o644)):
        make(remote / name, name.encode())
        os.chmod(remote / name, mode)
        os.chown(remote / name, uid, gid)
    return remote


def test_the_server_s_numbers_are_shown(mnt, files):
    st = os.stat(mnt / "high")
    assert (st.st_uid, st.st_gid) == (70000, 70001)


def test_uid_and_gid_and_umask_replace_what_the_server_says(mount, files):
    mnt = mount("uid=1234", "gid=4321", "umask=027").point
    for name in ("mine", "shared", "other"):
        st = os.stat(mnt / name)
        assert (st.st_uid, st.st_gid) == (1234, 4321)
        assert stat.S_IMODE(st.st_mode) & 0o027 == 0
    assert {entry.stat().st_uid for entry in os.scandir(mnt)} == {1234}


def test_idmap_file_maps_both_ways(mount, files, base):
    (base / "uids").write_text("root:0\ndaemon:70000\n")
    (base / "gids").write_text("root:0\ndaemon:70001\n")
    daemon = pwd.getpwnam("daemon")
    mnt = mount("idmap=file", f"uidfile={base}/uids", f"gidfile={base}/gids").point
    st = os.stat(mnt / "high")
    assert (st.st_uid, st.st_gid) == (daemon.pw_uid, daemon.pw_gid)
    os.chown(mnt / "shared", daemon.pw_uid, daemon.pw_gid)
    st = os.stat(files / "shared")
    assert (st.st_uid, st.st_gid) == (70000, 70001)


def test_idmap_file_may_refuse_what_it_does_not_know(mount, files, base):
    (base / "uids").write_text("root:0\ndaemon:70000\n")
    (base / "gids").write_text("root:0\ndaemon:70001\n")
    mnt = mount("idmap=file", "nomap=error", f"uidfile={base}/uids",
                f"gidfile={base}/gids").point
    assert os.stat(mnt / "high").st_uid == pwd.getpwnam("daemon").pw_uid
    with pytest.raises(OSError):
        os.stat(mnt / "other")


@pytest.fixture
def account(base):
    if accounts.missing():
        pytest.skip(accounts.missing())
    with accounts.Account(base / "account") as account:
        yield account


@pytest.mark.transports("ssh2", "ssh")
def test_idmap_user_shows_the_login_s_files_as_mine(mount, account, base, keys):
    with Sshd(base / "sshd-account", keys, user=account.name) as server:
        mnt = mount("idmap=user", remote="", config=server.client_config).point
        make(mnt / "file", b"x")
        assert os.stat(mnt / "file").st_uid == os.getuid()
        assert os.stat(account.home / "file").st_uid == account.uid
        os.chown(mnt / "file", os.getuid(), -1)
        assert os.stat(account.home / "file").st_uid == account.uid
        mount.finish()


@pytest.mark.transports("ssh2", "ssh")
def test_the_home_directory_is_mounted_when_none_is_named(mount, account, base, keys):
    (account.home / "at-home").touch()
    (account.home / "sub").mkdir()
    (account.home / "sub" / "below").touch()
    with Sshd(base / "sshd-account", keys, user=account.name) as server:
        mounted = mount(remote="", config=server.client_config)
        assert "at-home" in os.listdir(mounted.point)
        assert mounted.finish() == []
        for spelling in ("sub", "~/sub"):
            mounted = mount(remote=spelling, config=server.client_config)
            assert os.listdir(mounted.point) == ["below"]
            assert mounted.finish() == []


@pytest.mark.transports("ssh2", "ssh")
def test_the_server_s_refusal_is_eacces(mount, account, base, keys, remote):
    from mount.expect import fails
    make(remote / "secret", b"x")
    os.chmod(remote / "secret", 0o600)
    (remote / "locked").mkdir(mode=0o700)
    with Sshd(base / "sshd-account", keys, user=account.name) as server:
        mnt = mount(config=server.client_config).point
        for refused in (lambda: os.open(mnt / "secret", os.O_RDONLY),
                        lambda: os.open(mnt / "secret", os.O_WRONLY),
                        lambda: os.listdir(mnt / "locked"),
                        lambda: os.stat(mnt / "locked" / "x"),
                        lambda: make(mnt / "new"),
                        lambda: os.mkdir(mnt / "newdir"),
                        lambda: os.unlink(mnt / "secret"),
                        lambda: os.rename(mnt / "secret", mnt / "renamed"),
                        lambda: os.symlink("x", mnt / "link")):
            with fails("EACCES"):
                refused()
        for refused in (lambda: os.chmod(mnt / "secret", 0o666),
                        lambda: os.chown(mnt / "secret", account.uid, -1),
                        lambda: os.utime(mnt / "secret", (1, 1))):
            with fails("EACCES", "EPERM"):
                refused()
        mount.finish()


def test_others_are_kept_out_by_default(mnt, files, ordinary_user):
    assert denied(ordinary_user, "ls", mnt)


def test_allow_other_lets_them_in_and_keeps_the_modes(mount, files, ordinary_user):
    mnt = mount("allow_other").point
    assert run_as(ordinary_user, "cat", mnt / "shared").stdout == "shared"
    assert run_as(ordinary_user, "cat", mnt / "other").stdout == "other"
    assert denied(ordinary_user, "cat", mnt / "mine")
    assert denied(ordinary_user, "touch", mnt / "new")
    assert denied(ordinary_user, "sh", "-c", f"echo > {mnt}/shared")


@pytest.fixture
def own_mount(mount, point, remote, ordinary_user):
    """A mount by an ordinary user whose server runs with this user's rights."""
    for directory in (point, remote):
        os.chown(directory, *ordinary_user)
    return mount(prefix=as_user(*ordinary_user)).point


@pytest.mark.transports("server")
def test_an_ordinary_user_mounts(own_mount, remote, ordinary_user):
    run_as(ordinary_user, "sh", "-c", f"echo hello > {own_mount}/file")
    assert (remote / "file").read_text() == "hello\n"
    assert os.stat(remote / "file").st_uid == ordinary_user[0]
    assert run_as(ordinary_user, "cat", own_mount / "file").stdout == "hello\n"


@pytest.mark.transports("server")
def test_an_ordinary_user_s_errors(own_mount, files, ordinary_user):
    (files / "locked").mkdir(mode=0o700)
    for words in (("cat", own_mount / "mine"), ("ls", own_mount / "locked"),
                  ("sh", "-c", f"echo >> {own_mount}/shared"),
                  ("touch", own_mount / "locked" / "x")):
        assert denied(ordinary_user, *words), words
    refused = run_as(ordinary_user, "chown", "0", own_mount / "other", check=False)
    assert "not permitted" in refused.stderr or "Permission denied" in refused.stderr


@pytest.mark.transports("server")
def test_an_ordinary_user_unmounts(own_mount, mount, ordinary_user):
    run_as(ordinary_user, "fusermount3", "-u", own_mount)
    assert mount.mounts[0].wait_exit(10) == 0
