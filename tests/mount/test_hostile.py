"""
Servers that lie, talk nonsense or die: what programs see, and that the mount goes on working.
The server is tests/servers/odd_sftp.py; what is odd about a file is said by its name.
"""

import errno
import os
import shlex
import subprocess
import sys
import time

import pytest

from mount.expect import fails, make, pattern
from mount.mounted import is_mounted
from servers import odd_sftp
from servers.process import wait_until

pytestmark = pytest.mark.transports("server")

GONE = ("EIO", "ETIMEDOUT", "ENOTCONN")  # the connection was given up, again and again


@pytest.fixture
def odd_server(base):
    """Gives the path of a program that is the odd server, with a greeting."""
    def make_program(greeting=""):
        program = base / f"server-{greeting}"
        command = shlex.join([sys.executable, "-B", odd_sftp.__file__, greeting])
        program.write_text(f"#!/bin/sh\nexec {command}\n")
        program.chmod(0o755)
        return program
    return make_program


@pytest.fixture
def odd(mount, odd_server, remote):
    """The mount of an odd server with one honest file in it."""
    (remote / "honest").write_bytes(b"honest")
    return mount(f"sftp_server={odd_server()}", "max_conns=1", "timeout=2").point


def is_usable(mnt):
    """True when honest files are served at once."""
    return (mnt / "honest").read_bytes() == b"honest" and "honest" in os.listdir(mnt)


# ---- the start ----

@pytest.mark.parametrize("greeting, code, message", [
    ("version-2", 7, "speaks SFTP version 2"),
    ("shell", 7, "prints text at login"),
    ("shell-before", 7, "prints text at login"),
    ("end", 7, "ended at once"),
    ("huge", 7, "does not speak SFTP"),
    ("cut", 7, "does not speak SFTP"),
    ("another", 7, "does not speak SFTP"),
    ("silence", 7, "does not speak SFTP"),
    ("cut-extension", 7, "is malformed"),
    ("realpath-relative", 6, "cannot use the directory 'somewhere'"),
    ("realpath-long", 6, "cannot use the directory '/xxx"),
    ("realpath-file", 6, "is not a directory"),
    ("realpath-missing", 6, "cannot use the directory"),
])
def test_a_start_that_makes_no_sense_is_refused(program, environment, odd_server, point, remote,
                                                fuse, greeting, code, message):
    begun = time.monotonic()
    result = subprocess.run(
        [program, f":{remote}", point, "-o",
         f"sftp_server={odd_server(greeting)},connect_timeout=2"],
        env=environment.variables, capture_output=True, text=True, timeout=30)
    assert result.returncode == code
    assert message in result.stderr
    assert len(result.stderr) < 2000, "a server's text must not flood the terminal"
    assert time.monotonic() - begun < 10
    assert not is_mounted(point)


@pytest.mark.parametrize("greeting", [
    "version-4", "version-6",  # many claim more than was asked for, and go on with version 3
    "nonsense-extension", "limits-of-zero", "realpath-none", "realpath-empty", "realpath-nul"])
def test_a_start_that_is_only_strange_will_do(mount, odd_server, remote, greeting):
    (remote / "honest").write_bytes(b"honest")
    mnt = mount(f"sftp_server={odd_server(greeting)}").point
    assert is_usable(mnt)
    make(mnt / "new", b"content")
    assert (remote / "new").read_bytes() == b"content"


# ---- replies ----

@pytest.mark.parametrize("kind, errnos", [
    ("wrong_id", GONE),
    ("huge_packet", GONE),
    ("empty_packet", GONE),
    ("cut_packet", GONE),
    ("cut_attrs", GONE),
    ("unknown_type", GONE),
    ("another_type", GONE),
    ("many_extensions", GONE),
    ("dead", GONE),
    ("silent", GONE),
    ("ok_without_attrs", ("EIO",)),
    ("status_11", ("EEXIST",)),  # of later versions, which servers use in this one too
    ("status_255", ("EIO",)),
    ("status_max", ("EIO",)),
    ("status_eof", ("EIO",)),
    ("status_bare", ("EIO",)),
])
def test_a_bad_reply_is_an_error_of_that_file_alone(odd, remote, kind, errnos):
    make(remote / f"odd-{kind}")
    begun = time.monotonic()
    with fails(*errnos):
        os.stat(odd / f"odd-{kind}")
    assert time.monotonic() - begun < 10
    assert wait_until(lambda: is_usable(odd), 5)


def test_a_reply_that_comes_twice_or_late_harms_nobody(odd, remote):
    kinds = ("answered_twice", "slow")
    for kind in kinds:
        make(remote / f"odd-{kind}", b"12345")
    for kind in kinds:
        assert os.stat(odd / f"odd-{kind}").st_size == 5
        assert wait_until(lambda: is_usable(odd), 5)


@pytest.mark.parametrize("kind, size", [
    ("sizeless", 0), ("modeless", 5), ("without_attrs", 0), ("typeless", 5), ("odd_type", 5),
    ("late", 5), ("size_2_63", (1 << 63) - 1), ("size_max", (1 << 63) - 1)])
def test_strange_attributes_are_shown_as_far_as_they_go(odd, remote, kind, size):
    make(remote / f"odd-{kind}", b"12345")
    path = odd / f"odd-{kind}"
    st = os.stat(path)
    assert st.st_size == size
    assert os.path.isfile(path)
    if kind == "late":
        assert st.st_mtime == 0xffffffff
    with open(path, "rb", buffering=0) as file:
        os.fstat(file.fileno())
        if size == 5:
            assert file.read() == b"12345"
    assert is_usable(odd)


# ---- contents ----

CONTENT = pattern(300_000)


@pytest.mark.parametrize("kind", ["short_reads", "handle_256", "handle_binary"])
def test_odd_but_legal_reading_gives_the_content(odd, remote, kind):
    make(remote / f"odd-{kind}", CONTENT)
    assert (odd / f"odd-{kind}").read_bytes() == CONTENT
    assert is_usable(odd)


@pytest.mark.parametrize("kind, errnos", [
    ("long_reads", GONE), ("lying_reads", GONE), ("ok_reads", ("EIO",)),
    ("failing_reads", ("EIO",)), ("ok_open", ("EIO",)), ("handle_empty", GONE),
    ("handle_300", GONE)])
def test_wrong_contents_are_never_given(odd, remote, kind, errnos):
    make(remote / f"odd-{kind}", CONTENT)
    with fails(*errnos):
        (odd / f"odd-{kind}").read_bytes()
    assert wait_until(lambda: is_usable(odd), 5)


def test_a_file_without_its_bytes_is_not_taken_for_whole(odd, remote):
    """A server that goes on sending nothing does not keep a reader busy for ever."""
    make(remote / "odd-empty_reads", CONTENT)
    try:
        assert (odd / "odd-empty_reads").read_bytes() == b""
    except OSError as error:
        assert error.errno == errno.EIO
    assert is_usable(odd)


def test_a_server_that_dies_in_the_middle_of_a_write_loses_nothing(odd, remote):
    path = odd / "odd-dies_when_written"
    with open(path, "wb", buffering=0) as file:
        for at in range(0, len(CONTENT), 50_000):
            file.write(CONTENT[at:at + 50_000])
    assert (remote / "odd-dies_when_written").read_bytes() == CONTENT
    assert (remote / "odd-dies_when_written~was here").exists()
    assert is_usable(odd)


def test_refused_writes_are_told_by_close_and_by_fsync(odd):
    for finish in (os.fsync, os.close):
        fd = os.open(odd / "odd-refuses_writes", os.O_WRONLY | os.O_CREAT)
        os.write(fd, b"lost")
        with fails("EIO"):
            finish(fd)
        if finish is os.fsync:
            os.close(fd)
    assert is_usable(odd)


def test_a_refused_close_behind_written_data_leaves_the_mount_well(odd, remote):
    make(odd / "odd-refuses_to_close", CONTENT)
    assert (remote / "odd-refuses_to_close").read_bytes() == CONTENT
    assert is_usable(odd)


# ---- directories ----

def test_impossible_names_are_left_out(odd, remote):
    os.mkdir(remote / "odd-bad_names")
    assert sorted(os.listdir(odd / "odd-bad_names")) == ["also good", "good"]
    assert sorted(os.listdir(os.fsencode(odd / "odd-bad_names"))) == [b"also good", b"good"]
    assert is_usable(odd)


def test_a_name_listed_twice_is_one_file(odd, remote):
    os.mkdir(remote / "odd-twice")
    for name in ("one", "two"):
        make(remote / "odd-twice" / name)
    assert set(os.listdir(odd / "odd-twice")) == {"one", "two"}
    os.unlink(odd / "odd-twice" / "one")
    assert not os.path.exists(odd / "odd-twice" / "one")


def test_a_reply_without_names_ends_a_listing(odd, remote):
    os.mkdir(remote / "odd-empty_lists")
    begun = time.monotonic()
    assert os.listdir(odd / "odd-empty_lists") == []
    assert time.monotonic() - begun < 1
    assert is_usable(odd)


@pytest.mark.parametrize("kind, errnos", [("lying_count", GONE), ("ok_lists", ("EIO",))])
def test_a_listing_that_makes_no_sense_is_an_error(odd, remote, kind, errnos):
    os.mkdir(remote / f"odd-{kind}")
    with fails(*errnos):
        os.listdir(odd / f"odd-{kind}")
    assert wait_until(lambda: is_usable(odd), 5)


def memory_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmRSS"))


def test_an_endless_listing_can_be_killed_and_takes_no_memory(mount, odd_server, remote,
                                                              request):
    os.mkdir(remote / "odd-endless")
    (remote / "honest").write_bytes(b"honest")
    mounted = mount(f"sftp_server={odd_server()}", "max_conns=2")
    before = memory_of(mounted.process.pid)
    with subprocess.Popen(["ls", "-U", mounted.point / "odd-endless"],
                          stdout=subprocess.DEVNULL) as reader:
        time.sleep(3)
        ended, grown = reader.poll() is not None, memory_of(mounted.process.pid) - before
        usable = is_usable(mounted.point)
        reader.kill()
        reader.wait(5)
    assert usable and not ended
    sanitized = request.config.getoption("--time-factor") > 1  # those keep freed memory a while
    assert grown < (600 if sanitized else 200) << 20
    assert is_usable(mounted.point)


# ---- symbolic links ----

@pytest.mark.parametrize("kind, errnos", [
    ("link_outside", ("EPERM",)), ("link_absolute", ("EPERM",)), ("link_empty", ("EIO", "ENOENT")),
    ("link_nul", ("EIO",)), ("link_long", ("ENAMETOOLONG",)), ("link_none", ("EIO",))])
def test_a_link_that_leads_out_or_nowhere_is_refused(odd, remote, kind, errnos):
    os.symlink("anything", remote / f"odd-{kind}")
    with fails(*errnos):
        os.readlink(odd / f"odd-{kind}")
    with fails(*errnos):
        (odd / f"odd-{kind}").read_bytes()
    assert is_usable(odd)


def test_a_link_that_stays_inside_is_followed(odd, remote):
    os.mkdir(remote / "sub")
    make(remote / "sub" / "file", b"inside")
    os.symlink("anything", remote / "odd-link_inside")
    assert (odd / "odd-link_inside").read_bytes() == b"inside"


# ---- the end ----

@pytest.mark.parametrize("kind", ["silent", "dead"])
def test_unmounting_does_not_wait_for_a_server_gone_mad(mount, odd_server, remote, kind):
    make(remote / f"odd-{kind}")
    mounted = mount(f"sftp_server={odd_server()}", "max_conns=1", "timeout=30")
    with subprocess.Popen(["stat", mounted.point / f"odd-{kind}"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as asker:
        time.sleep(0.3)
        asker.kill()
        asker.wait(5)
    begun = time.monotonic()
    assert wait_until(lambda: mounted.unmount().returncode == 0, 5)
    assert mounted.wait_exit(10) == 0
    assert time.monotonic() - begun < 12
