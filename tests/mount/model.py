"""
Random operations against a reference: the same calls go to a plain local directory and to the
mount, and both must answer alike: values, errnos, contents, and at the end the whole tree.

  python3 tests/mount/model.py REFERENCE MOUNTED --seed 7 --operations 2000 --processes 3

Each process works in a subtree of its own and, one at a time, in one that all share. With one
process a seed always gives the same run; with more, the history tells who did what and when.
"""

import argparse
import collections
import fcntl
import mmap
import os
import random
import stat
import sys
import time
import traceback

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from mount.compare import Mismatch, Sides, facts, tree, tree_differences  # noqa: E402
from mount.expect import RENAME_NOREPLACE, renameat2  # noqa: E402

NAMES = ("a", "b", "c", "with space", "ümlaut", "d", "e")
LEAVES = NAMES + (".", "..", "a/", "b/.", "x" * 255, "x" * 256)
DEPTHS = (0, 0, 0, 1, 1, 2)
OPEN_AT_MOST = 12
SIZES = (0, 1, 7, 100, 4095, 4096, 4097, 20_000, 65_536, 131_072, 131_073, 300_000)
OFFSETS = SIZES + (12_288, 262_144, 500_001)


class Open:
    """One descriptor on each side."""

    def __init__(self, fds, flags, common):
        self.fds, self.flags, self.common = fds, flags, common

    def may_write(self):
        return self.flags & os.O_ACCMODE != os.O_RDONLY


def read_directory_while_changing(top, change_at, changes):
    """The names seen by a reader under whom names come and go."""
    seen = []
    with os.scandir(top) as entries:
        for number, entry in enumerate(entries):
            if number == change_at:
                for kind, name in changes:
                    try:
                        if kind == "make":
                            os.close(os.open(os.path.join(top, name), os.O_CREAT | os.O_WRONLY))
                        else:
                            os.unlink(os.path.join(top, name))
                    except OSError:
                        pass
            seen.append(entry.name)
    changed = {name for _, name in changes}
    if len(seen) != len(set(seen)):
        raise Mismatch(f"a name was listed twice: {sorted(seen)}")
    return sorted(set(seen) - changed)


def in_child(action):
    """The result of an action of a child process, which shares our descriptors."""
    pid = os.fork()
    if pid == 0:
        code = 255
        try:
            action()
            code = 0
        except OSError as error:
            code = error.errno
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Worker:
    """One process's sequence of operations."""

    def __init__(self, roots, seed, number, history, lock, drop_caches=False, without=(),
                 careful=False):
        self.random = random.Random(f"{seed}/{number}")
        self.own, self.number = f"p{number}", number
        self.sides = Sides(roots, history)
        self.open_files = []
        self.lock, self.drop_caches, self.careful = lock, drop_caches, careful
        self.common = False
        self.operations = [(weight, getattr(self, name)) for name, weight in WEIGHTS.items()
                           if name not in without]

    # ---- choosing ----

    def path(self, leaf=None):
        parts = [self.random.choice(NAMES) for _ in range(self.random.choice(DEPTHS))]
        if leaf is None:
            odd = self.random.random() < 0.06
            leaf = self.random.choice(LEAVES if odd else NAMES)
        return os.path.join("common" if self.common else self.own, *parts, leaf)

    def file(self, writable=False):
        """An open file that may be used now, or None."""
        usable = [one for one in self.open_files if one.common == self.common
                  and not one.flags & os.O_DIRECTORY and (one.may_write() or not writable)]
        return self.random.choice(usable) if usable else None

    def data(self):
        size = self.random.choice(SIZES)
        if self.random.random() < 0.5:
            size = self.random.randrange(size + 1)
        return self.random.randbytes(size)

    def offset(self):
        offset = self.random.choice(OFFSETS)
        return self.random.randrange(offset + 1) if self.random.random() < 0.5 else offset

    # ---- open files ----

    def open(self):
        if len(self.open_files) >= OPEN_AT_MOST:
            return self.close()
        flags = self.random.choice((os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR))
        for flag, chance in ((os.O_CREAT, 0.75), (os.O_EXCL, 0.1), (os.O_TRUNC, 0.15),
                             (os.O_APPEND, 0.2), (os.O_NOFOLLOW, 0.1), (os.O_SYNC, 0.05),
                             (os.O_DIRECTORY, 0.05)):
            if self.random.random() < chance:
                flags |= flag
        if flags & os.O_DIRECTORY:
            flags &= ~os.O_CREAT  # together they mean different things to different kernels
        if flags & os.O_EXCL and not flags & os.O_CREAT:
            flags &= ~os.O_EXCL
        if flags & os.O_ACCMODE == os.O_RDONLY:
            flags &= ~os.O_TRUNC
        mode = self.random.choice((0o644, 0o600, 0o755, 0o666, 0o444, 0o1777))
        path, fds = self.path(), [None, None]

        def call(side):
            fds[side] = os.open(self.sides.path(side, path), flags, mode)
        if self.sides.both("open", call, path, oct(flags), oct(mode))[0] == "ok":
            if stat.S_ISDIR(os.fstat(fds[0]).st_mode):
                flags |= os.O_DIRECTORY
            self.sides.history("  is", fds[1])
            self.open_files.append(Open(fds, flags, self.common))

    def close(self):
        usable = [one for one in self.open_files if one.common == self.common]
        if usable:
            self.close_this(self.random.choice(usable))

    def close_this(self, one):
        self.open_files.remove(one)
        self.sides.both("close", lambda side: os.close(one.fds[side]), one.fds[1])

    def dup(self):
        one = self.file()
        if not one or len(self.open_files) >= OPEN_AT_MOST:
            return
        fds = [None, None]

        def call(side):
            fds[side] = os.dup(one.fds[side])
        if self.sides.both("dup", call, one.fds[1])[0] == "ok":
            self.sides.history("  is", fds[1])
            self.open_files.append(Open(fds, one.flags, one.common))

    def pread(self):
        one, offset, size = self.file(), self.offset(), self.random.choice(SIZES)
        if one:
            self.sides.both("pread", lambda side: os.pread(one.fds[side], size, offset),
                            one.fds[1], size, offset)

    def pwrite(self):
        one, offset, data = self.file(), self.offset(), self.data()
        if one:
            self.sides.both("pwrite", lambda side: os.pwrite(one.fds[side], data, offset),
                            one.fds[1], len(data), offset)

    def seek_and_write(self):
        """A plain write(), at the descriptor's position or appended."""
        one, offset, data = self.file(), self.offset(), self.data()
        whence = self.random.choice((os.SEEK_SET, os.SEEK_CUR, os.SEEK_END))
        if whence != os.SEEK_SET:
            offset -= self.random.choice((0, 0, 5, 5000))
        if self.random.random() < 0.5:
            whence, offset = os.SEEK_CUR, 0

        def call(side):
            at = os.lseek(one.fds[side], offset, whence)
            if at > 1 << 22:
                at = os.lseek(one.fds[side], 0, os.SEEK_SET)
            return at, os.write(one.fds[side], data), os.lseek(one.fds[side], 0, os.SEEK_CUR)
        if one:
            self.sides.both("write", call, one.fds[1], whence, offset, len(data))

    def seek_and_read(self):
        one, offset, size = self.file(), self.offset(), self.random.choice(SIZES)
        if one:
            self.sides.both(
                "read", lambda side: (os.lseek(one.fds[side], offset, os.SEEK_SET),
                                      os.read(one.fds[side], size)), one.fds[1], offset, size)

    def ftruncate(self):
        one, size = self.file(), self.offset()
        if one:
            self.sides.both("ftruncate", lambda side: os.ftruncate(one.fds[side], size),
                            one.fds[1], size)

    def fallocate(self):
        """libc writes zeros where the mount cannot; only where they are missing, so that the
        time is not always set."""
        one, offset, size = self.file(writable=True), self.offset(), 1 + self.offset()

        def call(side):
            os.posix_fallocate(one.fds[side], offset, size)
            os.pwrite(one.fds[side], b"x", offset)
        if one and one.flags & os.O_ACCMODE == os.O_RDWR and not one.flags & os.O_APPEND:
            self.sides.both("fallocate", call, one.fds[1], offset, size)

    def fsync(self):
        one = self.file()
        call = self.random.choice((os.fsync, os.fdatasync))
        if one:
            self.sides.both("fsync", lambda side: call(one.fds[side]), one.fds[1])

    def fadvise(self):
        """The kernel forgets the pages: the next read comes from moorfs."""
        one = self.file()
        if one:
            self.sides.both("fadvise", lambda side: os.posix_fadvise(
                one.fds[side], 0, 0, os.POSIX_FADV_DONTNEED), one.fds[1])

    def fstat(self):
        if self.open_files:
            usable = [one for one in self.open_files if one.common == self.common]
            if usable:
                one = self.random.choice(usable)
                self.sides.both("fstat", lambda side: facts(os.fstat(one.fds[side])),
                                one.fds[1])

    def fchmod(self):
        one, mode = self.file(), self.random.choice((0o644, 0o600, 0o751, 0o4755))
        if one:
            self.sides.both("fchmod", lambda side: os.fchmod(one.fds[side], mode),
                            one.fds[1], oct(mode))

    def map(self):
        """A shared mapping: read, changed, sometimes synced, and seen by read()."""
        one = self.file(writable=True)
        if not one or one.flags & os.O_ACCMODE != os.O_RDWR:
            return
        size = os.fstat(one.fds[0]).st_size
        if size == 0:
            return
        at, data = self.random.randrange(size), self.data()[:5000]
        data, sync = data[:size - at], self.random.random() < 0.5

        def call(side):
            if os.fstat(one.fds[side]).st_size != size:
                return "another size"
            with mmap.mmap(one.fds[side], size) as mapped:
                before = bytes(mapped[at:at + 100])
                mapped[at:at + len(data)] = data
                if sync:
                    mapped.flush()
            return before, os.pread(one.fds[side], 6000, max(0, at - 500))
        self.sides.both("map", call, one.fds[1], at, len(data), sync)

    def child_writes(self):
        """A child's writes by a descriptor that it has inherited."""
        one, offset, data = self.file(), self.offset(), self.data()

        def call(side):
            def action():
                os.pwrite(one.fds[side], data, offset)
                os.close(one.fds[side])
            return in_child(action)
        if one:
            self.sides.both("child writes", call, one.fds[1], offset, len(data))

    def copy_range(self):
        source, target = self.file(), self.file(writable=True)
        size, offset, at = self.random.choice(SIZES), self.offset(), self.offset()

        def call(side):
            left, done = size, 0
            while left:
                count = os.copy_file_range(source.fds[side], target.fds[side], left,
                                           offset + done, at + done)
                if count == 0:
                    break
                left, done = left - count, done + count
            return done
        if source and target and not target.flags & os.O_APPEND:
            self.sides.both("copy_file_range", call, source.fds[1], target.fds[1], offset, at,
                            size)

    # ---- names ----

    def on_path(self, name, call, *args, **kwargs):
        path = self.path()
        return self.sides.both(
            name, lambda side: call(self.sides.path(side, path), *args, **kwargs), path, *args,
            *kwargs.items())

    def on_two_paths(self, name, call, *args):
        old, new = self.path(), self.path()
        if self.random.random() < 0.05:
            new = os.path.join(old, self.random.choice(NAMES))
        return self.sides.both(
            name, lambda side: call(self.sides.path(side, old), self.sides.path(side, new),
                                    *args), old, new, *args)

    def rename(self):
        self.on_two_paths("rename", os.rename)

    def rename_noreplace(self):
        self.on_two_paths("rename_noreplace", renameat2, RENAME_NOREPLACE)

    def link(self):
        def call(old, new):
            os.link(old, new, follow_symlinks=False)
        self.on_two_paths("link", call)

    def linked_names_are_one_file(self):
        self.on_two_paths("samefile", lambda one, other: os.path.samestat(
            os.lstat(one), os.lstat(other)))

    def symlink(self):
        target = self.random.choice((*NAMES, "a/b", "./c", "missing", "d/e", "b/"))
        path = self.path()
        self.sides.both("symlink", lambda side: os.symlink(target, self.sides.path(side, path)),
                        target, path)

    def readlink(self):
        self.on_path("readlink", os.readlink)

    def unlink(self):
        self.on_path("unlink", os.unlink)

    def mkdir(self):
        self.on_path("mkdir", os.mkdir, self.random.choice((0o755, 0o700, 0o777, 0o1777)))

    def rmdir(self):
        self.on_path("rmdir", os.rmdir)

    def chmod(self):
        self.on_path("chmod", os.chmod, self.random.choice((0o644, 0o600, 0o755, 0o777)))

    def truncate(self):
        self.on_path("truncate", os.truncate, self.offset())

    def times(self):
        """Both times, one of them (the other stays), or now."""
        libc_times = [self.random.choice((-1, 0, 1_000_000_000, 4_000_000_000 - 7))
                      for _ in range(2)]
        path, follow = self.path(), self.random.random() < 0.7

        def call(side):
            full = self.sides.path(side, path)
            st = os.stat(full, follow_symlinks=follow)
            seconds = [int(known) if wanted < 0 else wanted for wanted, known in
                       zip(libc_times, (st.st_atime, st.st_mtime))]
            os.utime(full, tuple(seconds), follow_symlinks=follow)
            # the time of access is moved on by reads that only one side's kernel sees
            return os.stat(full, follow_symlinks=follow).st_mtime
        self.sides.both("times", call, path, libc_times, follow)

    def touch(self):
        self.on_path("touch", os.utime)

    def stat(self):
        self.on_path("stat", lambda path: facts(os.stat(path)))

    def lstat(self):
        self.on_path("lstat", lambda path: facts(os.lstat(path)))

    def access(self):
        self.on_path("access", os.access, self.random.choice((os.F_OK, os.R_OK, os.X_OK)))

    def read_whole(self):
        def call(path):
            if stat.S_ISREG(os.stat(path).st_mode):
                with open(path, "rb") as file:
                    return file.read()
            return None
        self.on_path("read whole", call)

    def write_whole(self):
        data = self.data()

        def call(path):
            with open(path, "wb") as file:
                return file.write(data)
        self.on_path("write whole", call)

    def save_as_editors_do(self):
        data = self.data()

        def call(path):
            with open(path + "~", "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.rename(path + "~", path)
        self.on_path("save", call)

    def listdir(self):
        self.on_path("listdir", lambda path: sorted(os.listdir(path)))

    def scandir(self):
        def call(path):
            with os.scandir(path) as entries:
                return sorted((entry.name, entry.is_dir(follow_symlinks=False),
                               entry.is_symlink()) for entry in entries)
        self.on_path("scandir", call)

    def walk(self):
        path = "common" if self.common else self.own
        self.sides.both("walk", lambda side: tree(self.sides.path(side, path), data=False))

    def list_open_directory(self):
        usable = [one for one in self.open_files if one.common == self.common
                  and one.flags & os.O_DIRECTORY]
        if usable:
            one = self.random.choice(usable)
            self.sides.both("list fd", lambda side: sorted(os.listdir(one.fds[side])),
                            one.fds[1])

    def make_in_open_directory(self):
        usable = [one for one in self.open_files if one.common == self.common
                  and one.flags & os.O_DIRECTORY]
        if usable:
            one, name = self.random.choice(usable), self.random.choice(NAMES)
            self.sides.both("mkdir at", lambda side: os.mkdir(name, dir_fd=one.fds[side]),
                            one.fds[1], name)

    def read_while_changing(self):
        """Wide enough for several kernel requests."""
        path, at = self.path(), self.random.randrange(300)
        wide = [f"{number:04}" + "w" * 60 for number in range(400)]
        changes = [(self.random.choice(("make", "unlink")), name)
                   for name in self.random.sample(wide, 30) + ["new1", "new2"]]

        def call(side):
            top = self.sides.path(side, path) + "-wide"
            os.mkdir(top)
            try:
                for name in wide:
                    os.mknod(os.path.join(top, name), 0o644)
                return read_directory_while_changing(top, at, changes)
            finally:
                for name in os.listdir(top):
                    os.unlink(os.path.join(top, name))
                os.rmdir(top)
        self.sides.both("read while changing", call, path, at)

    # ---- running ----

    def step(self):
        weights, operations = zip(*self.operations)
        operation = self.random.choices(operations, weights)[0]
        self.common = self.random.random() < 0.35
        if not self.common:
            operation()
            return
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        try:
            operation()
        finally:
            fcntl.flock(self.lock, fcntl.LOCK_UN)

    def run(self, count):
        for number in range(count):
            if self.drop_caches and number % 100 == 99:
                with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as file:
                    file.write("2")
            self.step()
            if self.careful:
                self.common = False
                self.walk()
        for one in list(self.open_files):
            self.common = one.common
            fcntl.flock(self.lock, fcntl.LOCK_EX)
            self.close_this(one)
            fcntl.flock(self.lock, fcntl.LOCK_UN)


WEIGHTS = {
    "open": 14, "close": 5, "dup": 1, "pread": 9, "pwrite": 9, "seek_and_write": 6,
    "seek_and_read": 4, "ftruncate": 3, "fallocate": 1, "fsync": 2, "fadvise": 3, "fstat": 4,
    "fchmod": 1, "map": 3, "child_writes": 1, "copy_range": 2, "rename": 8,
    "rename_noreplace": 2, "link": 4, "linked_names_are_one_file": 1, "symlink": 2,
    "readlink": 1, "unlink": 5, "mkdir": 6, "rmdir": 2, "chmod": 2, "truncate": 2, "times": 3,
    "touch": 1, "stat": 4, "lstat": 4, "access": 1, "read_whole": 4, "write_whole": 4,
    "save_as_editors_do": 2, "listdir": 3, "scandir": 2, "walk": 0.5,
    "list_open_directory": 0.5, "make_in_open_directory": 0.5, "read_while_changing": 0.05,
}


class History:
    """What was done, for the report of a failure; one file for all processes."""

    def __init__(self, path, number):
        self.file = open(path, "a", encoding="utf-8")
        self.number, self.count = number, 0

    def __call__(self, *words):
        self.count += 1
        self.file.write(f"p{self.number} {self.count}: {' '.join(map(str, words))}\n")
        self.file.flush()


def run_worker(options, roots, number):
    """The exit code of one process."""
    history = History(options.history, number)
    with open(options.history, "rb") as lock:
        worker = Worker(roots, options.seed, number, history, lock, options.drop_caches,
                        options.without.split(","), options.careful)
        try:
            worker.run(options.operations)
            return 0
        except Mismatch as mismatch:
            print(f"seed {options.seed}, process {number}, step {history.count}: {mismatch}",
                  flush=True)
        except Exception:
            traceback.print_exc()
        return 1


def last_lines(path, count):
    with open(path, encoding="utf-8") as file:
        return "".join(collections.deque(file, count))


def main():
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("reference")
    parser.add_argument("mounted")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--operations", type=int, default=1000, help="of each process")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--history", default="history")
    parser.add_argument("--drop-caches", action="store_true",
                        help="every now and then (root only, and felt by the whole machine)")
    parser.add_argument("--careful", action="store_true",
                        help="compare the process's own tree after each operation")
    parser.add_argument("--without", default="", help="operations not to be done: map,link")
    options = parser.parse_args()
    os.umask(0o022)
    roots = (options.reference, options.mounted)
    open(options.history, "w", encoding="utf-8").close()
    for root in roots:
        for name in ("common", *(f"p{number}" for number in range(options.processes))):
            os.mkdir(os.path.join(root, name))
    children = []
    for number in range(options.processes):
        pid = os.fork()
        if pid == 0:
            os._exit(run_worker(options, roots, number))
        children.append(pid)
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
    wrong = any(codes)
    if not wrong:
        lines = tree_differences(tree(roots[0]), tree(roots[1]))
        if lines:
            print(f"seed {options.seed}: the trees differ:", *lines, sep="\n  ")
        wrong = bool(lines)
    if wrong:
        print(f"seed {options.seed} failed; the last that was done:\n"
              f"{last_lines(options.history, 60)}")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
