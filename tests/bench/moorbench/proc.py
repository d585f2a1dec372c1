"""
Processes that may hang. The benchmark itself never touches a mount: whatever does runs in a child
with a time limit and is killed when it is over.

Every subject runs with a mark in its environment, so that its helpers (an ssh that detached
itself) are found for accounting and for cleaning up, and nothing else ever is.
"""

import os
import select
import signal
import subprocess
import time
from collections import namedtuple

MARK = "MOORBENCH_RUN"
TICKS = os.sysconf("SC_CLK_TCK")

Finished = namedtuple("Finished", "seconds status cut out err")


class Stuck(Exception):
    """A child that even SIGKILL did not end within the time allowed."""


# ---- mounts ----


def mount_device(path):
    """The device number ("0:52") mounted on `path`, or None. Never asks the file system."""
    path = os.fspath(path)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as table:
        for line in table:
            fields = line.split(" ")
            if fields[4].replace("\\040", " ") == path:
                return fields[2]
    return None


def wait_for_mount(path, deadline, alive):
    """True once `path` is a mount point; False at the deadline or when `alive()` ends."""
    table = os.open("/proc/self/mountinfo", os.O_RDONLY)
    try:
        changes = select.poll()
        changes.register(table, select.POLLPRI | select.POLLERR)
        while True:
            if mount_device(path):
                return True
            left = deadline - time.monotonic()
            if left <= 0 or not alive():
                return False
            changes.poll(min(left, 0.05) * 1000)
    finally:
        os.close(table)


def abort_mount(path):
    """Ends a FUSE connection whose daemon is gone or stuck, and detaches the mount."""
    device = mount_device(path)
    if not device:
        return
    control = f"/sys/fs/fuse/connections/{device.split(':')[1]}/abort"
    try:
        with open(control, "w", encoding="ascii") as abort:
            abort.write("1")
    except OSError:
        pass  # no fusectl here, or not ours to write: the lazy unmount below still detaches
    command = ["umount", "-l", path] if os.geteuid() == 0 else ["fusermount3", "-uz", path]
    subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                   timeout=20)


# ---- children with a limit ----


def signal_group(child, number):
    try:
        os.killpg(child.pid, number)
    except ProcessLookupError:
        pass


def kill_group(child, rescue=None):
    """Kills a child and its group. When it hangs in a mount, `rescue()` ends the mount."""
    signal_group(child, signal.SIGKILL)
    try:
        child.wait(timeout=3)
        return
    except subprocess.TimeoutExpired:
        pass
    if rescue:
        rescue()
    try:
        child.wait(timeout=10)
    except subprocess.TimeoutExpired as late:
        raise Stuck(f"process {child.pid} does not end, even killed") from late


def run(command, limit, rescue=None, at_cut=None, sink=None):
    """
    Runs a command for at most `limit` seconds; then `at_cut(pid)` may look at it, and it is
    killed, with the help of `rescue()` when it hangs in a mount. Standard output goes to
    `sink(bytes)` as it comes, or into the result.
    """
    start = time.monotonic()
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True, env={**os.environ, "LC_ALL": "C"})
    kept = {child.stdout: [], child.stderr: []}
    takers = {stream: blocks.append for stream, blocks in kept.items()}
    if sink:
        takers[child.stdout] = sink
    cut = not _drain(takers, child, start + limit)
    seconds = time.monotonic() - start
    if cut:
        if at_cut:
            at_cut(child.pid)
        kill_group(child, rescue)
    for stream in kept:
        stream.close()
    return Finished(seconds, child.returncode, cut, b"".join(kept[child.stdout]),
                    b"".join(kept[child.stderr]).decode(errors="replace"))


def _drain(takers, child, deadline):
    """Hands output to its takers until the child has ended: True; False at the deadline."""
    poller = select.poll()
    for stream in takers:
        poller.register(stream, select.POLLIN)
    while takers:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        for number, _ in poller.poll(left * 1000):
            stream = next(s for s in takers if s.fileno() == number)
            data = os.read(number, 1 << 20)
            if data:
                takers[stream](data)
            else:
                poller.unregister(number)
                del takers[stream]
    try:
        child.wait(timeout=max(0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def position(pid, descriptor):
    """Where a process stands in a file it reads or writes in order; None when it is gone."""
    try:
        with open(f"/proc/{pid}/fdinfo/{descriptor}", encoding="ascii") as info:
            return int(info.readline().split()[1])
    except OSError:
        return None


# ---- the processes of a subject ----


def marked(token):
    """The pids whose environment holds our mark with this token."""
    wanted = f"{MARK}={token}".encode()
    pids = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as environment:
                if wanted in environment.read().split(b"\0"):
                    pids.append(int(name))
        except OSError:
            continue
    return pids


def cpu_seconds(pids):
    """CPU used so far by the processes and the children they waited for."""
    total = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
                fields = stat.read().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(field) for field in fields[11:15])
    return total / TICKS


def peak_rss_mib(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as status:
            for line in status:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024
    except OSError:
        pass
    return None


def kill_marked(token):
    for pid in marked(token):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
