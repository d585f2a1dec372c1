"""Lines that break, servers that go away and come back: nothing hangs and nothing is lost."""

import errno
import os
import random
import signal
import subprocess
import threading
import time

import pytest

from mount.expect import make, pattern, sha256
from servers.openssh import Sshd
from servers.process import wait_until

MIB = 1 << 20
GONE = {errno.ETIMEDOUT, errno.EIO, errno.ENOTCONN, errno.ECONNREFUSED, errno.ECONNRESET,
        errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.EPIPE, errno.ECONNABORTED}

pytestmark = pytest.mark.transports("ssh2", "ssh")


def works(action):
    try:
        action()
        return True
    except OSError:
        return False


def test_the_mount_heals_when_the_server_was_restarted(sshd, mount, remote):
    mnt = mount().point
    make(mnt / "before", b"1")
    sshd.restart()
    assert wait_until(lambda: works(lambda: make(mnt / "after", b"2")), 20, 0.2)
    assert (remote / "after").read_bytes() == b"2"
    assert sorted(os.listdir(mnt)) == ["after", "before"]


def test_a_lost_connection_is_not_noticed(sshd, mount):
    mnt = mount().point
    make(mnt / "file", b"content")
    for number in range(3):
        sshd.drop_sessions()
        assert (mnt / "file").read_bytes() == b"content"
        make(mnt / f"new{number}", b"x")
        os.mkdir(mnt / f"dir{number}")
        os.rename(mnt / f"new{number}", mnt / f"dir{number}" / "moved")
    assert len(os.listdir(mnt)) == 4


def test_open_files_go_on_after_a_restart(sshd, mount, remote):
    mnt = mount().point
    (remote / "read").write_bytes(pattern(8 * MIB))
    with open(mnt / "read", "rb", buffering=0) as reader, \
            open(mnt / "write", "wb", buffering=0) as writer:
        assert reader.read(10) == pattern(8 * MIB)[:10]
        writer.write(b"first ")
        os.fsync(writer.fileno())
        sshd.restart()
        assert wait_until(lambda: works(lambda: os.listdir(mnt)), 20, 0.2)
        assert os.pread(reader.fileno(), 100, 7 * MIB) == pattern(8 * MIB)[7 * MIB:7 * MIB + 100]
        writer.write(b"second")
    assert (remote / "write").read_bytes() == b"first second"


def test_an_open_file_replaced_during_the_restart_is_stale(sshd, mount, remote):
    mnt = mount().point
    (remote / "file").write_bytes(pattern(4 * MIB, 1))
    with open(mnt / "file", "rb", buffering=0) as reader:
        reader.read(10)
        sshd.stop()
        (remote / "new").write_bytes(pattern(3 * MIB, 2))
        os.utime(remote / "new", (1_000_000_000, 1_000_000_000))
        os.rename(remote / "new", remote / "file")
        sshd.start()
        assert wait_until(lambda: works(lambda: os.listdir(mnt)), 20, 0.2)
        try:
            got = os.pread(reader.fileno(), 1000, 3 * MIB - 2000)
        except OSError as error:
            assert error.errno in (errno.ESTALE, errno.EIO)
        else:  # from the cache: then it is the old file's
            assert got == pattern(4 * MIB, 1)[3 * MIB - 2000:3 * MIB - 1000]


def test_reading_survives_cuts(sshd, line, mount, remote):
    (remote / "big").write_bytes(pattern(64 * MIB))
    mnt = mount().point
    stop = threading.Event()

    def cut():
        while not stop.wait(random.uniform(0.3, 1.2)):
            line.drop_connections()
    cutter = threading.Timer(0.05, cut)
    cutter.start()
    try:
        with open(mnt / "big", "rb", buffering=0) as file:
            done = 0
            while chunk := file.read(MIB):
                assert chunk == pattern(64 * MIB)[done:done + len(chunk)] if done % (8 * MIB) == 0 \
                    else chunk
                done += len(chunk)
                if done > 32 * MIB:
                    stop.set()
    finally:
        stop.set()
        cutter.join()
    assert done == 64 * MIB
    assert sha256(mnt / "big") == sha256(remote / "big")


def test_writing_survives_a_cut_or_says_so(sshd, line, mount, remote):
    mnt = mount().point
    content = pattern(32 * MIB)
    threading.Timer(0.15, line.drop_connections).start()
    try:
        make(mnt / "big", content)
    except OSError as error:
        assert error.errno in GONE
    else:
        assert sha256(remote / "big") == sha256(mnt / "big")
        assert (remote / "big").read_bytes() == content


def test_names_are_made_once_over_a_cutting_line(sshd, line, mount, remote):
    """mkdir, exclusive create, rename and unlink must not fail for having been repeated."""
    mnt = mount().point
    stop = threading.Event()

    def cut():
        while not stop.wait(random.uniform(0.3, 1.2)):
            line.drop_connections()
    cutter = threading.Thread(target=cut)
    cutter.start()
    try:
        end = time.monotonic() + 8
        number = 0
        while time.monotonic() < end:
            os.mkdir(mnt / f"dir{number}")
            os.close(os.open(mnt / f"dir{number}" / "x", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            os.rename(mnt / f"dir{number}" / "x", mnt / f"dir{number}" / "y")
            os.unlink(mnt / f"dir{number}" / "y")
            os.rmdir(mnt / f"dir{number}")
            number += 1
    finally:
        stop.set()
        cutter.join()
    assert number > 3
    assert os.listdir(remote) == []


def test_a_gone_server_fails_fast_and_comes_back(sshd, line, mount):
    mnt = mount("timeout=3").point
    make(mnt / "file", b"x")
    sshd.stop()
    start = time.monotonic()
    with pytest.raises(OSError) as caught:
        os.mkdir(mnt / "dir")
    assert caught.value.errno in GONE
    assert time.monotonic() - start < 10
    sshd.start()
    assert wait_until(lambda: works(lambda: os.mkdir(mnt / "dir")), 20, 0.2)
    assert (mnt / "file").read_bytes() == b"x"


def test_a_silent_line_is_an_error_in_time(sshd, line, mount):
    mnt = mount("timeout=2").point
    make(mnt / "file", b"x")
    line.pause()
    start = time.monotonic()
    with pytest.raises(OSError) as caught:
        os.mkdir(mnt / "dir")
    assert caught.value.errno in GONE
    assert time.monotonic() - start < 12
    line.resume()
    assert wait_until(lambda: works(lambda: os.listdir(mnt / "dir")) or
                      works(lambda: os.mkdir(mnt / "dir")), 20, 0.2)


def test_a_short_silence_only_delays(sshd, line, mount, remote):
    mnt = mount().point
    make(mnt / "file", b"x")
    line.pause()
    threading.Timer(1.0, line.resume).start()
    os.mkdir(mnt / "dir")
    assert (remote / "dir").is_dir()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_blocked_process_can_be_ended(sshd, line, mount, remote, number):
    (remote / "file").write_bytes(pattern(8 * MIB))
    mnt = mount().point
    os.stat(mnt / "file")
    line.pause()
    for words in (["cat", str(mnt / "file")], ["mkdir", str(mnt / "dir")], ["ls", str(mnt)],
                  ["touch", str(mnt / "new")]):
        child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.3)
        if child.poll() is None:
            child.send_signal(number)
        start = time.monotonic()
        child.wait(10)
        assert time.monotonic() - start < 2, words
    line.resume()


def test_a_blocked_writer_can_be_killed(sshd, line, mount):
    mnt = mount().point
    line.pause()
    child = subprocess.Popen(["dd", "if=/dev/zero", f"of={mnt}/big", "bs=1M", "count=4000"],
                             stderr=subprocess.DEVNULL)
    time.sleep(1)
    child.kill()
    start = time.monotonic()
    child.wait(10)
    assert time.monotonic() - start < 2
    line.resume()


def test_umount_works_while_the_server_is_silent(sshd, line, mount):
    mounted = mount("timeout=3")
    make(mounted.point / "file", b"x")
    line.pause()
    start = time.monotonic()
    assert mounted.unmount().returncode == 0
    assert mounted.wait_exit(10) == 0
    assert time.monotonic() - start < 10
    line.resume()


def test_umount_works_while_the_server_is_gone(sshd, mount):
    mounted = mount("timeout=3")
    make(mounted.point / "file", b"x")
    sshd.stop()
    time.sleep(0.2)
    assert mounted.unmount().returncode == 0
    assert mounted.wait_exit(10) == 0


def test_a_signal_unmounts(mount, variant):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        mounted = mount()
        mounted.process.send_signal(number)
        assert mounted.wait_exit(10) == 0
        assert not os.path.ismount(mounted.point)


def test_listing_goes_on_during_a_long_transfer(sshd, line, mount, remote, proxy_program):
    """Metadata is not queued behind bulk: ls takes a few round trips, not the transfer's time."""
    from servers.proxy import Proxy
    (remote / "dir").mkdir()
    (remote / "big").write_bytes(bytes(40 * MIB))
    with Proxy(proxy_program, sshd.port, delay_ms=10, rate=8 * MIB) as slow:
        config = sshd.write_client_config("slow", port=slow.port)
        mounted = mount(config=config)
        mnt = mounted.point
        reader = threading.Thread(target=lambda: (mnt / "big").read_bytes())
        reader.start()
        time.sleep(1)
        worst = 0.0
        for number in range(10):
            start = time.monotonic()
            os.mkdir(mnt / f"dir{number}")
            worst = max(worst, time.monotonic() - start)
        assert reader.is_alive(), "the transfer was over too early to tell"
        reader.join()
        mount.finish()
    assert worst < 1.0


def test_the_line_is_kept_alive_when_idle(sshd, line, mount):
    mnt = mount("keepalive=1").point
    os.listdir(mnt)
    before = line.wait_idle(1)
    time.sleep(2.5)
    assert line.counters()["up"] > before["up"]


def test_the_server_drops_new_connections_while_full(base, keys, mount, remote):
    """Only one connection is let in; a second mount's lanes must not disturb the first's."""
    with Sshd(base / "one", keys, options=["MaxStartups 1:100:1"]) as one:
        mnt = mount("max_conns=4", config=one.client_config).point
        threads = [threading.Thread(target=make, args=(mnt / f"f{n}", pattern(MIB, n)))
                   for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        mount.finish()
    for n in range(8):
        assert (remote / f"f{n}").read_bytes() == pattern(MIB, n)
