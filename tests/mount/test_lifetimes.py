"""Programs that are killed, mounts that are taken away, and crowds: nothing is lost or stuck."""

import concurrent.futures
import errno
import os
import random
import signal
import subprocess
import sys
import threading
import time

import pytest

from mount.expect import make, needs, pattern, run, sha256
from mount.mounted import is_mounted
from servers.process import wait_until

MIB = 1 << 20
ENDLESS_WRITER = """
import os, sys
block = bytes(range(256)) * 512
while True:
    for number in range(20):
        with open(f"{sys.argv[1]}/{sys.argv[2]}.{number}", "wb", buffering=0) as file:
            for _ in range(4):
                file.write(block)
        print(number, flush=True)
"""


def program(text, *words, **kwargs):
    return subprocess.Popen([sys.executable, "-c", text, *map(str, words)], **kwargs)


def crowd(count, action):
    """Runs action(number) in so many threads; the first exception is raised."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        for result in [pool.submit(action, number) for number in range(count)]:
            result.result()


# ---- killing ----

def test_killed_readers_and_writers_leave_a_healthy_mount(mnt, remote):
    (remote / "large").write_bytes(pattern(32 * MIB))
    for turn in range(6):
        killed = [program(ENDLESS_WRITER, mnt, f"writer{turn}", stdout=subprocess.DEVNULL),
                  subprocess.Popen(["sh", "-c", f"while cat {mnt}/large; do :; done"],
                                   stdout=subprocess.DEVNULL, start_new_session=True),
                  subprocess.Popen(["ls", "-lR", mnt], stdout=subprocess.DEVNULL)]
        time.sleep(0.1 + 0.05 * turn)
        os.killpg(killed[1].pid, signal.SIGKILL)
        for process in killed:
            process.kill()
            process.wait(3)
    assert sha256(mnt / "large") == sha256(remote / "large")
    make(mnt / "after", b"fine")
    assert (remote / "after").read_bytes() == b"fine"


def test_what_was_closed_before_sigterm_is_on_the_server(mount, remote):
    mounted = mount()
    with program(ENDLESS_WRITER, mounted.point, "w", stdout=subprocess.PIPE,
                 stderr=subprocess.DEVNULL) as writer:
        closed = [int(writer.stdout.readline()) for _ in range(15)]
        mounted.process.send_signal(signal.SIGTERM)
        assert mounted.wait_exit(15) == 0
        writer.kill()
    assert not is_mounted(mounted.point)
    block = bytes(range(256)) * 512
    for number in closed:
        assert (remote / f"w.{number}").read_bytes() == block * 4


# ---- taking away ----

def test_a_lazy_unmount_lets_open_files_finish(mount, remote):
    mounted = mount()
    content = pattern(3 * MIB)
    make(mounted.point / "read", content)
    with open(mounted.point / "read", "rb", buffering=0) as reader, \
            open(mounted.point / "write", "wb", buffering=0) as writer:
        writer.write(content[:MIB])
        assert mounted.unmount(lazy=True).returncode == 0
        assert not is_mounted(mounted.point)
        assert not (mounted.point / "read").exists()
        writer.write(content[MIB:])
        assert os.pread(reader.fileno(), len(content), 0) == content
        os.fsync(writer.fileno())
    assert (remote / "write").read_bytes() == content
    assert mounted.wait_exit(15) == 0


def test_removed_files_go_on_while_they_are_open(mnt, remote):
    """As temporary files are used: written, removed, and read back at leisure."""
    content = pattern(8 * MIB)

    def use(number):
        path = mnt / f"temporary{number}"
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        with open(fd, "r+b", buffering=0) as file:
            for at in range(0, len(content), MIB // 2):
                os.pwrite(fd, content[at:at + MIB // 2], at)
            os.unlink(path)
            assert os.fstat(fd).st_size == len(content)
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            os.pwrite(fd, b"later", 100)
            os.fsync(fd)
            assert os.pread(fd, len(content), 0) == content[:100] + b"later" + content[105:]
            os.truncate(fd, 7)
            assert file.read() == content[:7]
    crowd(4, use)
    assert os.listdir(remote) == []


def test_files_replaced_by_renames_go_on_while_they_are_open(mnt):
    content = pattern(4 * MIB)
    make(mnt / "old", content)
    with open(mnt / "old", "r+b", buffering=0) as old:
        os.pwrite(old.fileno(), b"changed", 10)
        make(mnt / "new", b"new")
        os.rename(mnt / "new", mnt / "old")
        os.pwrite(old.fileno(), b"again", 3 * MIB)
        os.posix_fadvise(old.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        assert old.read(17) == content[:10] + b"changed"
        assert os.pread(old.fileno(), 5, 3 * MIB) == b"again"
        assert os.fstat(old.fileno()).st_nlink == 0
    assert (mnt / "old").read_bytes() == b"new"


# ---- crowds ----

def test_many_children_share_a_file(mnt, remote):
    fd = os.open(mnt / "shared", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    children = []
    for number in range(40):
        pid = os.fork()
        if pid == 0:
            try:
                for line in range(20):
                    os.write(fd, b"%03d %05d\n" % (number, line))
                os.close(fd)
                os._exit(0)
            finally:
                os._exit(1)
        children.append(pid)
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 40
    os.close(fd)
    lines = (remote / "shared").read_bytes().splitlines()
    assert sorted(lines) == [b"%03d %05d" % (number, line) for number in range(40)
                             for line in range(20)]


def test_two_hundred_threads_open_and_close(mnt, remote):
    for number in range(20):
        (remote / f"f{number}").write_bytes(b"%d" % number * 1000)

    def use(thread):
        chance = random.Random(thread)
        for _ in range(15):
            number = chance.randrange(20)
            with open(mnt / f"f{number}", "rb", buffering=0) as file:
                assert file.read() == b"%d" % number * 1000
            if chance.random() < 0.2:
                make(mnt / f"own{thread}", b"x" * thread)
                assert os.stat(mnt / f"own{thread}").st_size == thread
    crowd(200, use)


@pytest.mark.heavy
@pytest.mark.limit(120)
def test_a_large_directory_is_emptied_by_many(mnt, remote):
    directory = remote / "large"
    directory.mkdir()
    for number in range(50_000):
        os.close(os.open(directory / f"{number:05}", os.O_CREAT | os.O_WRONLY))
    gone = set(range(0, 50_000, 20))

    def remove(share):
        for number in sorted(gone)[share::4]:
            os.unlink(mnt / "large" / f"{number:05}")

    listings = []
    with concurrent.futures.ThreadPoolExecutor(5) as pool:
        removals = [pool.submit(remove, share) for share in range(4)]
        while not all(removal.done() for removal in removals):
            listings.append(os.listdir(mnt / "large"))
            time.sleep(0.2)
        for removal in removals:
            removal.result()
    left = {f"{number:05}" for number in range(50_000) if number not in gone}
    for names in listings:
        assert len(names) == len(set(names))
        assert left <= set(names)
    assert set(os.listdir(mnt / "large")) == left == set(os.listdir(directory))


def test_renames_and_lookups_do_not_lose_files(mnt, remote):
    """What is renamed to and fro is always found by one of its names."""
    for name in ("a", "b", "c"):
        os.makedirs(mnt / name / "deep")
        make(mnt / name / "deep" / "file", name.encode() * 1000)
    over = threading.Event()
    wrong = []

    def rename(name):
        end = time.monotonic() + 3
        while time.monotonic() < end:
            os.rename(mnt / name, mnt / f"{name}2")
            os.rename(mnt / f"{name}2" / "deep", mnt / f"{name}2" / "deeper")
            os.rename(mnt / f"{name}2" / "deeper", mnt / f"{name}2" / "deep")
            os.rename(mnt / f"{name}2", mnt / name)

    def look(name):
        found = 0
        while not over.is_set():
            for directory in (name, f"{name}2"):
                try:
                    if (mnt / directory / "deep" / "file").read_bytes() != \
                            name.encode() * 1000:
                        wrong.append(f"{name} has another's content")
                    found += 1
                except OSError as error:
                    if error.errno != errno.ENOENT:
                        wrong.append(repr(error))
        if not found:
            wrong.append(f"{name} was never found")

    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        looks = [pool.submit(look, name) for name in ("a", "b", "c") for _ in range(2)]
        renames = [pool.submit(rename, name) for name in ("a", "b", "c")]
        concurrent.futures.wait(renames)
        over.set()
        for done in looks + renames:
            done.result()
    assert wrong == []
    assert sorted(os.listdir(mnt)) == ["a", "b", "c"]
    for name in ("a", "b", "c"):
        assert (remote / name / "deep" / "file").read_bytes() == name.encode() * 1000


@pytest.mark.heavy
def test_git_repacks_while_others_work(mnt):
    needs("git")
    repository = mnt / "repository"
    git = ["git", "-C", repository, "-c", "user.name=a", "-c", "user.email=a@b"]
    run("git", "init", "-q", repository)
    over = threading.Event()

    def load():
        number = 0
        while not over.is_set():
            number += 1
            make(mnt / "load", pattern(MIB, number))
            assert (mnt / "load").read_bytes() == pattern(MIB, number)
            os.rename(mnt / "load", mnt / "load2")

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        worker = pool.submit(load)
        try:
            for number in range(8):
                make(repository / f"file{number % 3}", pattern(20_000, number))
                run(*git, "add", "-A")
                run(*git, "commit", "-q", "-m", f"commit {number}")
                if number % 3 == 2:
                    run(*git, "repack", "-q", "-a", "-d")
            run(*git, "gc", "-q", "--prune=now")
        finally:
            over.set()
        worker.result()
    run(*git, "fsck", "--strict")
    assert len(run(*git, "log", "--oneline").stdout.splitlines()) == 8
    assert run(*git, "status", "--porcelain").stdout == ""


def descriptors_into(directory):
    """How many descriptors of all processes lead into a directory: the server's."""
    count = 0
    for entry in os.listdir("/proc"):
        try:
            for fd in os.listdir(f"/proc/{entry}/fd") if entry.isdigit() else ():
                count += os.readlink(f"/proc/{entry}/fd/{fd}").startswith(f"{directory}/")
        except OSError:
            continue
    return count


def test_files_of_killed_programs_are_closed_on_the_server(mnt, remote):
    (remote / "file").write_bytes(pattern(MIB))
    holders = [program("import sys, time; f = [open(sys.argv[1], 'r+b') for _ in range(5)];"
                       "print(1, flush=True); time.sleep(60)", mnt / "file",
                       stdout=subprocess.PIPE) for _ in range(4)]
    try:
        for holder in holders:
            holder.stdout.readline()
        assert descriptors_into(remote) > 0
    finally:
        for holder in holders:
            holder.kill()
            holder.wait()
            holder.stdout.close()
    assert wait_until(lambda: descriptors_into(remote) == 0, 5, 0.1)
