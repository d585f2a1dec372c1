#!/usr/bin/env python3
"""
Asks each subject, mounted over a private server, questions of yes and no: what happens when the
server restarts or falls silent, on a full disk, to links, to a copy inside the mount. The table
"Beside others" of README.md is its output. Needs root for the full disk.
"""

import argparse
import errno
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from moorbench import loads as load_module
from moorbench import proc
from moorbench.server import BenchError, Data, Server, build_delayproxy, forward_signals
from moorbench.subjects import Mount, make_subjects

from bench import HERE, QUICK, check_machine

SIZE = QUICK._replace(big_mib=8, small_files=50, tree_dirs=2, flat_files=10)
RTT = 10


class World:
    """One mount of one subject, and the server behind it."""

    def __init__(self, mount, server):
        self.mount = mount
        self.server = server
        self.here = Path(mount.path)
        self.there = server.data.root

    def shell(self, script, limit=20):
        """A shell script in the mount: its Finished. $there is the server's side."""
        start = f"there='{self.there}'; cd '{self.here}' || exit 9\n"
        return proc.run(["bash", "-c", start + script], limit, self.mount.rescue)

    def works(self, script, limit=20):
        done = self.shell(script, limit)
        return not done.cut and done.status == 0


def restart(world):
    """The server restarts: the next cat of a file works, with no new mount, within 20 s."""
    world.works("cat first")
    world.server.restart_sshd()
    return world.works(
        "for i in $(seq 40); do cat small/file0001 && exit 0; sleep 0.5; done; exit 1", 30)


def silent(world):
    """The server says nothing more: ls of a directory fails within 40 s instead of hanging."""
    world.works("cat first")
    world.server.signal_sshd(signal.SIGSTOP)
    try:
        done = world.shell("ls -l tree", 40)
        return not done.cut
    finally:
        world.server.signal_sshd(signal.SIGCONT)


def killable(world):
    """A program blocked on a silent server is gone 2 s after kill."""
    world.works("cat first")
    world.server.signal_sshd(signal.SIGSTOP)
    child = subprocess.Popen(["ls", "-l", str(world.here / "tree")], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        time.sleep(2)
        child.kill()
        child.wait(timeout=2)
        return True
    except subprocess.TimeoutExpired:
        return False
    finally:
        world.server.signal_sshd(signal.SIGCONT)
        proc.kill_group(child, world.mount.rescue)


def full_disk(world):
    """A write to a full disk is told as ENOSPC before or at close."""
    target = world.there / "tiny"
    target.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", target], check=False)
    if done.returncode != 0:
        return None
    try:
        wrote = world.shell("dd if=/dev/zero of=tiny/file bs=64k count=64")
        return not wrote.cut and wrote.status != 0 and os.strerror(errno.ENOSPC) in wrote.err
    finally:
        subprocess.run(["umount", "-l", target], check=False)


def closed_is_stored(world):
    """After close() returned the whole file is on the server."""
    done = world.shell("cp '" + str(world.server.data.big) + "' closed")
    return done.status == 0 and load_module.sha256_of(world.there / "closed") == (
        world.server.data.big_sha)


def appends(world):
    """Two programs that append to a file at once lose nothing."""
    done = world.works("""
        for w in a b; do for i in $(seq 50); do echo "$w line $i"; done >>shared & done; wait""")
    if not done:
        return False
    time.sleep(1)
    lines = (world.there / "shared").read_text().splitlines()
    return sorted(lines) == sorted(f"{w} line {i}" for w in "ab" for i in range(1, 51))


def edits(world):
    """Bytes in the middle of a file are replaced in place."""
    if not world.works("printf 0123456789 >edit"):
        return False
    if not world.works("printf AB | dd of=edit bs=1 seek=4 conv=notrunc"):
        return False
    time.sleep(1)
    return (world.there / "edit").read_text() == "0123AB6789"


def attributes(world):
    """chmod and touch -d reach the server."""
    if not world.works("chmod 640 small/file0002 && touch -d '2001-02-03 04:05:06 UTC' "
                       "small/file0002"):
        return False
    time.sleep(1)
    seen = (world.there / "small/file0002").stat()
    return seen.st_mode & 0o777 == 0o640 and int(seen.st_mtime) == 981173106


def hard_links(world):
    """ln makes a hard link on the server, and both names show one inode."""
    if not world.works("ln first second && test first -ef second"):
        return False
    return os.path.samefile(world.there / "first", world.there / "second")


def symlinks(world):
    """ln -s makes a symbolic link on the server that works in the mount."""
    if not world.works("ln -s first soft && cmp soft first"):
        return False
    return os.readlink(world.there / "soft") == "first"


def contains(world):
    """A symbolic link of the server that leads out of the mount is not followed."""
    secret = world.server.folder / "secret"
    secret.write_text("local\n")
    (world.there / "escape").symlink_to(secret)
    done = world.shell("cat escape")
    return not done.cut and b"local" not in done.out


def sizes(world):
    """df shows the size of the server's file system."""
    done = world.shell("stat -f -c '%b %S' .")
    if done.cut or done.status != 0:
        return False
    blocks, size = map(int, done.out.split())
    real = os.statvfs(world.there)
    return abs(blocks * size - real.f_blocks * real.f_frsize) < real.f_blocks * real.f_frsize / 100


def copies_there(world):
    """cp of 8 MiB inside the mount moves less than 1 MiB over the line."""
    before = world.server.moved(RTT)
    if not world.works("cp big copied"):
        return False
    time.sleep(1)
    moved = world.server.moved(RTT) - before
    same = load_module.sha256_of(world.there / "copied") == world.server.data.big_sha
    return same and moved < 1 << 20


def mount_fails(world):
    """Mounting a directory that does not exist is an error, and nothing is mounted."""
    command = [part.replace(str(world.there), str(world.there) + "/absent")
               for part in world.mount.command]
    where = world.server.folder / "other"
    where.mkdir(exist_ok=True)
    command = [str(where) if part == world.mount.path else part for part in command]
    environment = {**os.environ, proc.MARK: world.mount.token}
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, env=environment, start_new_session=True)
    try:
        return child.wait(timeout=10) != 0 and not proc.mount_device(where)
    except subprocess.TimeoutExpired:
        return False
    finally:
        proc.abort_mount(os.fspath(where))
        if child.poll() is None:
            proc.kill_group(child)


QUESTIONS = (
    ("a server restart heals without a new mount (defaults)", restart),
    ("a silent server: calls fail within 40 s (defaults)", silent),
    ("a program blocked on a silent server can be killed", killable),
    ("a full disk is told as ENOSPC", full_disk),
    ("after `close` the data is on the server", closed_is_stored),
    ("two writers append to one file, nothing is lost", appends),
    ("writing in the middle of a file", edits),
    ("`chmod` and `touch -d` reach the server", attributes),
    ("hard links, both names with one inode", hard_links),
    ("symbolic links", symlinks),
    ("links that lead out of the mount are contained (defaults)", contains),
    ("`df` shows the server's disk", sizes),
    ("`cp` inside the mount is done by the server", copies_there),
    ("mounting an absent directory fails", mount_fails),
)


class Writing:
    """What the rclone subject needs to know: these questions write."""

    writes = True
    name = "behaviour"


def ask(subject, question, options):
    """True, False or None (cannot be asked here); with a server and a mount of its own."""
    with tempfile.TemporaryDirectory(prefix="moorbench-") as scratch:
        folder = Path(scratch)
        proxy = options.delayproxy or build_delayproxy(
            HERE.parent / "servers" / "delayproxy.c", scratch)
        server = None
        try:
            server = Server(scratch, proxy)
            (folder / "data").mkdir()
            server.data = Data(folder / "data", SIZE)
            (folder / "mnt").mkdir()
            mount = Mount(subject, server, RTT, Writing, folder / "mnt")
            with mount:
                mount.start()
                mount.wait()
                return question(World(mount, server))
        finally:
            if server:
                server.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moorfs", default="./moorfs")
    parser.add_argument("--delayproxy")
    parser.add_argument("--subjects", default="moorfs,sshfs-plain,rclone")
    parser.add_argument("--questions", help="only those whose function is named, by commas")
    options = parser.parse_args()
    forward_signals()
    check_machine()
    known, _ = make_subjects(shutil.which(options.moorfs) or options.moorfs, [])
    chosen = options.subjects.split(",")
    for name in chosen:
        if name not in known:
            parser.error(f"{name} is not here: known are {', '.join(known)}")
    print("| | " + " | ".join(name.removesuffix("-plain") for name in chosen) + " |")
    print("|---|" + "---|" * len(chosen))
    for text, question in QUESTIONS:
        if options.questions and question.__name__ not in options.questions.split(","):
            continue
        answers = []
        for name in chosen:
            try:
                answer = ask(known[name], question, options)
            except BenchError as problem:
                print(f"{name}, {question.__name__}: not asked: {problem}", file=sys.stderr)
                answer = None
            except (proc.Stuck, OSError) as problem:
                print(f"{name}, {question.__name__}: {problem}", file=sys.stderr)
                answer = False
            answers.append({True: "yes", False: "no", None: "-"}[answer])
        print(f"| {text} | " + " | ".join(answers) + " |", flush=True)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as problem:
        sys.exit(f"behaviour: {problem}")
