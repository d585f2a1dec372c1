"""Servers that lack something, and servers that are not OpenSSH's."""

import os

import pytest

from mount.expect import fails, make, pattern, run, sha256
from servers import openssh
from servers.openssh import Sshd
from servers.peers import ProftpdServer, RcloneServer
from servers.process import wait_until

MIB = 1 << 20


def has(path, content, patience):
    """The server's file has the content; a server that writes behind gets some patience."""
    return wait_until(lambda: path.exists() and path.read_bytes() == content, patience, 0.1)


def change_in_place(path):
    """Writes into the middle and at the end; returns the bytes that must be there then."""
    expected = bytearray(path.read_bytes())
    with open(path, "r+b") as file:
        file.seek(1000)
        file.write(b"in the middle")
        file.flush()
        os.fsync(file.fileno())
    with open(path, "ab") as file:
        file.write(b"the end")
    expected[1000:1013] = b"in the middle"
    return bytes(expected + b"the end")


def replace_by_rename(directory, content):
    make(directory / "over", b"replaced")
    os.rename(directory / "moved", directory / "over")
    assert os.stat(directory / "over").st_size == len(content)
    run("cp", directory / "over", directory / "copy")
    assert (directory / "copy").read_bytes() == content
    os.rename(directory / "over", directory / "moved")


def everyday_work(mnt, remote, patience=0, in_place=True):
    """What every server must carry."""
    content = pattern(MIB + 13)
    make(mnt / "file", content)
    assert (mnt / "file").read_bytes() == content
    assert has(remote / "file", content, patience)
    os.mkdir(mnt / "dir")
    for number in range(30):
        make(mnt / "dir" / f"f{number}", b"%d" % number)
    assert len(os.listdir(mnt / "dir")) == 30
    if in_place:
        content = change_in_place(mnt / "file")
        assert has(remote / "file", content, patience)
    os.rename(mnt / "file", mnt / "dir" / "moved")
    os.rename(mnt / "dir", mnt / "renamed")
    assert (mnt / "renamed" / "moved").stat().st_size == len(content)
    if in_place:
        replace_by_rename(mnt / "renamed", content)
    with fails("ENOENT"):
        os.stat(mnt / "none")
    with fails("EEXIST"):
        os.mkdir(mnt / "renamed")
    with fails("ENOTEMPTY"):
        os.rmdir(mnt / "renamed")
    assert (mnt / "renamed" / "moved").read_bytes() == content
    run("rm", "-r", mnt / "renamed")
    assert wait_until(lambda: os.listdir(remote) == [], patience, 0.1)


@pytest.fixture
def mount_without(mount, base, keys):
    servers = []

    def mount_it(*requests, options=()):
        server = Sshd(base / "sshd-without", keys, subsystem=openssh.without(*requests))
        servers.append(server.start())
        return mount(*options, config=server.client_config).point
    yield mount_it
    mount.finish()
    for server in servers:
        server.stop()


EXTENSIONS = ["posix-rename", "statvfs", "fstatvfs", "hardlink", "fsync", "lsetstat", "limits",
              "copy-data", "expand-path", "home-directory", "users-groups-by-id"]


@pytest.mark.transports("ssh2")
@pytest.mark.parametrize("missing", [*EXTENSIONS, "fstat", "fsetstat", "realpath"])
def test_a_server_without(missing, mount_without, remote):
    everyday_work(mount_without(missing), remote)


@pytest.mark.transports("ssh2", "ssh")
def test_a_server_without_any_extension(mount_without, remote):
    everyday_work(mount_without(*EXTENSIONS), remote)


@pytest.mark.transports("ssh2")
def test_what_cannot_be_is_said(mount_without, remote):
    mnt = mount_without("hardlink", "lsetstat", "statvfs", "fstatvfs")
    make(mnt / "file")
    os.symlink("file", mnt / "link")
    with fails("EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"):
        os.link(mnt / "file", mnt / "second")
    with fails("ENOTSUP", "EOPNOTSUPP", "ENOSYS"):
        os.utime(mnt / "link", (1, 1), follow_symlinks=False)
    assert os.stat(remote / "file").st_mtime > 1000


@pytest.mark.transports("ssh2")
def test_a_refused_write_is_told_to_the_writer(mount_without):
    mnt = mount_without("write")
    with pytest.raises(OSError):
        make(mnt / "file", b"this cannot arrive")


@pytest.mark.transports("ssh2")
def test_a_refused_read_is_told_to_the_reader(mount_without, remote):
    mnt = mount_without("read")
    make(remote / "file", b"this cannot be had")
    with fails("EACCES", "EPERM", "EIO"):
        (mnt / "file").read_bytes()


@pytest.mark.transports("ssh2", "ssh")
def test_few_connections_allowed(mount, base, keys, remote):
    """A server that lets in one client at a time teaches the pool its limit."""
    with Sshd(base / "sshd-one", keys, options=["MaxStartups 1:100:1", "MaxSessions 1"]) as one:
        everyday_work(mount("max_conns=8", config=one.client_config).point, remote)
        mount.finish()


PEERS = {"rclone": RcloneServer, "proftpd": ProftpdServer}


@pytest.fixture(params=PEERS)
def peer(request, base, keys, remote):
    kind = PEERS[request.param]
    if kind.missing():
        pytest.skip(kind.missing())
    if os.getuid() == 0:
        os.chown(remote, 65534, 65534)
    with kind(base / "peer", keys, remote) as server:
        yield server


@pytest.mark.transports("ssh2", "ssh")
def test_a_peer_carries_everyday_work(peer, mount, remote):
    everyday_work(mount(remote=peer.remote_dir, config=peer.client_config).point, remote,
                  peer.patience, peer.in_place)


@pytest.mark.transports("ssh2")
def test_a_peer_lists_two_thousand_files(peer, mount, remote):
    for number in range(2000):
        (remote / f"f{number}").touch()
    mnt = mount(remote=peer.remote_dir, config=peer.client_config).point
    assert len(os.listdir(mnt)) == 2000
    assert run("find", mnt, "-type", "f").stdout.count("\n") == 2000


@pytest.mark.transports("ssh2", "ssh")
def test_a_peer_gives_a_large_file_right(peer, mount, remote):
    (remote / "big").write_bytes(pattern(20 * MIB))
    mnt = mount(remote=peer.remote_dir, config=peer.client_config).point
    assert sha256(mnt / "big") == sha256(remote / "big")
