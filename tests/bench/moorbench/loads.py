"""
What is measured. A load gets a fresh, cold mount and returns a Result. None runs longer than its
time box: a load that is cut tells the rate up to then, so that a slow subject on a distant
server costs seconds, not minutes, and still has a number.
"""

import hashlib
import json
import os
import re
import shutil
import sys
import time
from pathlib import Path

from . import proc

WORKER = Path(__file__).with_name("worker.py")


class Failed(Exception):
    """The subject did not do what was asked."""


class Result:
    """
    `value` in the load's unit. `cut`: the time box ended it, the value is the rate until then.
    `more`: further numbers by name. `notes`: facts a reader must know.
    """

    def __init__(self, value, cut=False, more=None, notes=()):
        self.value = value
        self.cut = cut
        self.more = more or {}
        self.notes = list(notes)


class Load:
    """name, title and unit are shown; `box` seconds at most for one run."""

    name = title = unit = ""
    more_is_better = True
    writes = False
    box = 15

    def __init__(self, size):
        self.size = size
        self.box = size.box

    def run(self, mount, server):
        """Measures one run."""
        raise NotImplementedError

    def verify(self, mount, server):
        """After a whole run: raises Failed unless the bytes are right. True when it looked."""
        return False

    def cleanup(self, server):
        """Removes what the run left on the server."""


def _check_ended(what, finished, whole=False):
    if whole and finished.cut:
        raise Failed(f"{what} did not end within {finished.seconds:.0f} s")
    if not finished.cut and finished.status != 0:
        raise Failed(f"{what}: exit status {finished.status}: {finished.err.strip()[-300:]}")


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


class SequentialRead(Load):
    name, unit = "read", "MB/s"

    @property
    def title(self):
        return f"read {self.size.big_mib} MiB (dd)"

    def run(self, mount, server):
        whole, moved = server.data.size.big_mib << 20, []
        # dd has what it reads as descriptor 0, and reads it in pieces of 1 MiB.
        done = proc.run(["dd", f"if={mount.path}/big", "of=/dev/null", "bs=1M"], self.box,
                        mount.rescue, at_cut=lambda pid: moved.append(proc.position(pid, 0)))
        _check_ended("dd", done)
        if done.cut:
            if not moved[0]:
                raise Failed(f"dd read nothing within {self.box:g} s")
            return Result(moved[0] / done.seconds / 1e6, True)
        counted = re.search(r"(\d+) bytes.*copied, ([0-9.e+-]+) s", done.err)
        if not counted or int(counted[1]) != whole:
            raise Failed(f"dd did not read {whole} bytes: {done.err.strip()}")
        return Result(whole / float(counted[2]) / 1e6)

    def verify(self, mount, server):
        summed = proc.run(["sha256sum", f"{mount.path}/big"], 120, mount.rescue)
        _check_ended("sha256sum", summed, whole=True)
        if summed.out.split()[0].decode() != server.data.big_sha:
            raise Failed("the bytes read are not the bytes of the file")
        return True


class SequentialWrite(Load):
    name, unit = "write", "MB/s"
    writes = True

    @property
    def title(self):
        return f"write {self.size.big_mib} MiB, fsync (dd)"

    def run(self, mount, server):
        target = server.data.root / "written"
        start = time.monotonic()
        done = proc.run(
            ["dd", f"if={server.data.big}", f"of={mount.path}/written", "bs=1M", "conv=fsync"],
            self.box * 2, mount.rescue)
        _check_ended("dd", done)
        whole = server.data.size.big_mib << 20
        notes = []
        if not done.cut and self._size(target) != whole:
            notes.append("fsync and close returned before the data was on the server")
            while self._size(target) != whole and time.monotonic() < start + 2 * self.box:
                time.sleep(0.01)
        seconds = max(done.seconds, time.monotonic() - start if notes else 0)
        arrived = self._size(target)
        return Result(arrived / seconds / 1e6, arrived != whole, notes=notes)

    def verify(self, mount, server):
        # A peer that returned early may still fill a file of the right size.
        for _ in range(20):
            if sha256_of(server.data.root / "written") == server.data.big_sha:
                return True
            time.sleep(0.1)
        raise Failed("the bytes on the server are not the bytes written")

    @staticmethod
    def _size(path):
        try:
            return path.stat().st_size
        except FileNotFoundError:
            return 0

    def cleanup(self, server):
        for path in server.data.root.glob("written*"):
            path.unlink()


class SmallFiles(Load):
    name, unit = "small", "files/s"

    @property
    def title(self):
        return f"tar of {self.size.small_files} files of 4 KiB"

    def run(self, mount, server):
        seen = [0]

        def take(data):
            seen[0] += len(data)

        done = proc.run(["tar", "-C", mount.path, "-cf", "-", "small"], self.box, mount.rescue,
                        sink=take)
        _check_ended("tar", done)
        # A header block and 4 KiB for each file; a cut run is counted by the bytes it gave.
        count = self.size.small_files if not done.cut else seen[0] // (512 + 4096)
        return Result(count / done.seconds, done.cut)

    def verify(self, mount, server):
        compared = proc.run(["diff", "-r", f"{mount.path}/small", f"{server.data.root}/small"],
                            60, mount.rescue)
        _check_ended("diff -r with the server's files", compared, whole=True)
        return True


class Tree(Load):
    name, unit = "tree", "entries/s"

    @property
    def title(self):
        return f"ls -lR of {self.size.tree_dirs * self.size.tree_files} files"

    def run(self, mount, server):
        lines = [0]

        def take(data):
            lines[0] += data.count(b"\n")

        done = proc.run(["ls", "-lR", f"{mount.path}/tree"], self.box, mount.rescue, sink=take)
        _check_ended("ls", done)
        # Besides its entries a directory gives three lines: its name, the total, a blank one.
        folders = self.size.tree_dirs + 1
        whole = server.data.names() + 3 * folders - 1
        if not done.cut and lines[0] != whole:
            raise Failed(f"ls -lR printed {lines[0]} lines where {whole} were due")
        count = server.data.names() * min(1, lines[0] / whole)
        return Result(count / done.seconds, done.cut)


class Unpack(Load):
    name, unit = "untar", "files/s"
    writes = True

    @property
    def title(self):
        return f"tar x of {self.size.archive_files} files of 4 KiB"

    def run(self, mount, server):
        target = server.data.root / "unpacked"
        start = time.monotonic()
        done = proc.run(["tar", "-C", mount.path, "-xf", server.data.archive], self.box,
                        mount.rescue)
        _check_ended("tar", done)
        notes, wanted = [], self.size.archive_files
        count = self._arrived(target)
        if not done.cut and count < wanted:
            notes.append("tar returned before the files were on the server")
            while count < wanted and time.monotonic() < start + self.box:
                time.sleep(0.01)
                count = self._arrived(target)
        seconds = time.monotonic() - start if notes else done.seconds
        return Result(count / seconds, count != wanted, notes=notes)

    def verify(self, mount, server):
        for path in (server.data.root / "unpacked").iterdir():
            if path.read_bytes() != (server.data.root / "small" / path.name).read_bytes():
                raise Failed(f"{path.name} was not unpacked as it is in the archive")
        return True

    @staticmethod
    def _arrived(folder):
        if not folder.is_dir():
            return 0
        return sum(1 for entry in os.scandir(folder) if entry.stat().st_size == 4096)

    def cleanup(self, server):
        shutil.rmtree(server.data.root / "unpacked", ignore_errors=True)


class FirstByte(Load):
    name, title, unit = "first", "mount command to first byte", "ms"
    more_is_better = False

    def run(self, mount, server):
        raise NotImplementedError("measured by the runner around the start of the mount")


class StatUnderRead(Load):
    """The latency of lstat on names never seen before, beside a bulk transfer."""

    name, title, unit = "stat", "lstat while a file is read, P50", "ms"
    more_is_better = False
    beside = "read"

    def run(self, mount, server):
        done = proc.run(
            [sys.executable, WORKER, f"stat-{self.beside}", mount.path,
             str(self.size.flat_files), str(self.size.stat_seconds)],
            self.size.stat_seconds + 30, mount.rescue)
        if done.cut:
            raise Failed(f"lstat hung while a file was being {self.beside}")
        _check_ended("the stat worker", done)
        seen = json.loads(done.out)
        return Result(seen["p50"], more={"P99 ms": seen["p99"], "samples": seen["samples"],
                                         f"{self.beside} MB/s": seen["rate"]})


class StatUnderWrite(StatUnderRead):
    name, title = "statw", "lstat while a file is written, P50"
    beside = "write"
    writes = True

    def cleanup(self, server):
        (server.data.root / "written").unlink(missing_ok=True)


LOADS = (SequentialRead, SequentialWrite, SmallFiles, Tree, Unpack, FirstByte, StatUnderRead,
         StatUnderWrite)
