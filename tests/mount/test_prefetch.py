"""What is fetched ahead over a long line: requests are counted rather than seconds."""

import os
import random
import re
import signal
import time

import pytest

from mount.expect import make, needs, pattern, run, sha256
from servers.openssh import SFTP_SERVER
from servers.process import wait_until
from servers.proxy import Proxy

pytestmark = [pytest.mark.transports("ssh2"), pytest.mark.limit(90)]
DELAY_MS = 25  # each way
RTT = 2 * DELAY_MS / 1000
FILES = 300
DIRS = 100


@pytest.fixture
def far(sshd, proxy_program, mount):
    """Mounts over a line of 50 ms."""
    with Proxy(proxy_program, sshd.port, delay_ms=DELAY_MS) as proxy:
        sshd.write_client_config(port=proxy.port)
        yield mount
        mount.finish()


@pytest.fixture
def flat(remote):
    """A directory of small files, made in an order that is neither theirs nor by name."""
    numbers = list(range(FILES))
    random.Random(1).shuffle(numbers)
    for number in numbers:
        make(remote / f"file{number:03}", pattern(1000 + number, number))
    return remote


@pytest.fixture
def tree(remote):
    for directory in range(DIRS):
        (remote / f"dir{directory:03}").mkdir()
        for number in range(5):
            make(remote / f"dir{directory:03}" / f"file{number}",
                 pattern(500, directory * 10 + number))
    return remote


def counters(mounted):
    """What the program says of itself: {"open": requests, ..., "used": files, ...}."""
    before = mounted.log_text().count("directories ahead")
    mounted.process.send_signal(signal.SIGUSR1)
    assert wait_until(lambda: mounted.log_text().count("directories ahead") > before, 5)
    text = mounted.log_text()
    text = text[text.rindex("pool: lanes up"):]
    found = dict.fromkeys(("open", "fetch", "list", "lstat", "read"), 0)
    found.update((kind, int(count)) for kind, count in
                 re.findall(r"op (\w+): count (\d+)", text))
    for what in ("files", "directories"):
        words = re.search(rf"prefetch of {what}: (\d+) asked for, (\d+) used", text)
        found[what], found[f"used {what}"] = int(words[1]), int(words[2])
    found["bytes"] = int(re.search(r"io whole-file bytes: (\d+)", text)[1])
    found["used bytes"] = int(re.search(r"io whole-file bytes used: (\d+)", text)[1])
    return found


def timed(*words, cwd):
    start = time.monotonic()
    result = run(*words, cwd=cwd)
    return time.monotonic() - start, result


def hashes(directory):
    return {path.relative_to(directory): sha256(path)
            for path in sorted(directory.rglob("*")) if path.is_file()}


READERS = {
    "tar": ["tar", "cf", "{out}/all.tar", "."],
    "grep": ["grep", "-rc", "no such text", "."],
    "cp": ["cp", "-r", ".", "{out}/copy"],
    "by name": ["sh", "-c", "cat * >{out}/all"],
    "four at a time": ["sh", "-c", "ls | xargs -P 4 -n 5 cat >{out}/all"],
}


@pytest.mark.parametrize("reader", READERS)
def test_a_program_that_reads_all_files_of_a_directory(far, flat, base, reader):
    mounted = far()
    out = base / "out"
    out.mkdir()
    words = [word.format(out=out) for word in READERS[reader]]
    status = run(*words, cwd=mounted.point, check=False).returncode
    assert status == (1 if reader == "grep" else 0)
    asked = counters(mounted)
    assert asked["open"] <= (40 if reader == "four at a time" else 12)
    assert asked["open"] + asked["used files"] >= FILES
    assert asked["bytes"] <= 1.1 * asked["used bytes"]
    assert asked["lstat"] <= 10
    if reader == "tar":
        (out / "copy").mkdir()
        run("tar", "xf", out / "all.tar", "-C", out / "copy")
    if reader in ("tar", "cp"):
        assert hashes(out / "copy") == hashes(flat)
    if reader == "by name":
        assert (out / "all").read_bytes() == b"".join(
            path.read_bytes() for path in sorted(flat.iterdir()))


def test_it_takes_a_fraction_of_the_round_trips(far, flat):
    mounted = far()
    seconds, result = timed("tar", "cf", "-", ".", cwd=mounted.point)
    assert seconds < FILES * 2 * RTT / 4
    assert len(result.stdout) > FILES * 1000


WALKERS = {
    "find": ["find", "."],
    "ls": ["ls", "-lR", "."],
    "du": ["du", "-s", "."],
    "rsync": ["rsync", "-an", ".", "{out}/"],
}


@pytest.mark.parametrize("walker", WALKERS)
def test_a_program_that_walks_through_directories(far, tree, base, walker):
    needs(WALKERS[walker][0])
    mounted = far()
    words = [word.format(out=base / "out") for word in WALKERS[walker]]
    seconds, _ = timed(*words, cwd=mounted.point)
    asked = counters(mounted)
    assert asked["list"] <= 1.1 * DIRS + 1
    assert asked["used directories"] >= 0.9 * DIRS
    assert asked["lstat"] <= 5
    assert asked["fetch"] == 0
    assert seconds < DIRS * 2 * RTT / 2


def test_a_program_that_reads_a_tree(far, tree, base):
    mounted = far()
    seconds, _ = timed("cp", "-r", ".", base / "copy", cwd=mounted.point)
    asked = counters(mounted)
    assert hashes(base / "copy") == hashes(tree)
    assert asked["open"] <= 12
    assert asked["bytes"] <= 1.1 * asked["used bytes"]
    assert seconds < DIRS * 5 * 2 * RTT / 4


def test_who_only_looks_fetches_nothing(far, flat):
    mounted = far()
    run("ls", "-l", ".", cwd=mounted.point)
    run("sh", "-c", "stat * >/dev/null", cwd=mounted.point)
    assert counters(mounted)["fetch"] == 0


def test_random_reading_fetches_next_to_nothing(far, flat):
    mounted = far()
    names = os.listdir(mounted.point)
    for name in random.Random(2).sample(names, 60):
        assert (mounted.point / name).read_bytes() == (flat / name).read_bytes()
    assert counters(mounted)["fetch"] <= 6


def test_it_can_be_turned_off(far, flat, tree):
    mounted = far("prefetch=no")
    for name in sorted(os.listdir(mounted.point))[:20]:
        if name.startswith("file"):
            (mounted.point / name).read_bytes()
    run("sh", "-c", "ls dir00* >/dev/null", cwd=mounted.point)
    asked = counters(mounted)
    assert asked["fetch"] == asked["files"] == asked["directories"] == 0


# ---- what was fetched is not believed for ever ----

def start_reading(mounted):
    """Reads the first two files, so that the third is fetched; the third's name."""
    names = os.listdir(mounted.point)
    for name in names[:2]:
        (mounted.point / name).read_bytes()
    assert wait_until(lambda: counters(mounted)["fetch"] >= 3, 5)
    time.sleep(4 * RTT)
    return names[2]


def test_a_change_by_others_is_seen(far, flat):
    mounted = far()
    name = start_reading(mounted)
    make(flat / name, b"changed")
    time.sleep(3.2)
    assert (mounted.point / name).read_bytes() == b"changed"


def test_our_own_changes_are_seen_at_once(far, flat):
    mounted = far()
    name = start_reading(mounted)
    with open(mounted.point / name, "r+b") as file:
        file.write(b"WRITTEN")
    assert (mounted.point / name).read_bytes() == b"WRITTEN" + (flat / name).read_bytes()[7:]
    other = os.listdir(mounted.point)[3]
    content = (flat / name).read_bytes()
    os.rename(mounted.point / name, mounted.point / other)
    assert (mounted.point / other).read_bytes() == content


def test_a_file_that_grows_while_it_is_open(far, flat):
    mounted = far()
    name = start_reading(mounted)
    old = (flat / name).read_bytes()
    with open(mounted.point / name, "rb") as file:
        assert counters(mounted)["used files"] >= 1  # the server has not opened it
        assert file.read() == old
        with open(flat / name, "ab") as behind:
            behind.write(b"more")

        def grown():
            return os.fstat(file.fileno()).st_size == len(old) + 4
        assert wait_until(grown, 10, step=0.2)
        assert file.read() == b"more"


def test_a_file_that_is_removed_while_it_is_open(far, flat):
    mounted = far()
    name = start_reading(mounted)
    old = (flat / name).read_bytes()
    with open(mounted.point / name, "rb", buffering=0) as file:
        os.unlink(mounted.point / name)
        assert not (flat / name).exists()
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        assert file.read() == old
        assert os.fstat(file.fileno()).st_size == len(old)


def test_a_file_that_may_not_be_read(far, flat, ordinary_user):
    """The refusal of a fetch is the refusal of the open that follows, and of no other."""
    mounted = far("sftp_server=setpriv --reuid=65534 --regid=65534 --clear-groups "
                  f"{SFTP_SERVER}")
    names = os.listdir(mounted.point)
    os.chmod(flat / names[4], 0o600)
    for number, name in enumerate(names[:20]):
        if number == 4:
            with pytest.raises(PermissionError):
                (mounted.point / name).read_bytes()
        else:
            assert (mounted.point / name).read_bytes() == (flat / name).read_bytes()
