"""Child processes that end when their test does, and what is left of them."""

import os
import signal
import socket
import subprocess
import time
from pathlib import Path


def free_port(address="127.0.0.1"):
    with socket.socket() as probe:
        probe.bind((address, 0))
        return probe.getsockname()[1]


def wait_until(condition, seconds, step=0.02):
    """True as soon as condition() is, False when it was not within the time."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(step)
    return True


def port_answers(port, address="127.0.0.1"):
    try:
        socket.create_connection((address, port), timeout=2).close()
        return True
    except OSError:
        return False


def descendants(pid):
    """Process ids of all children, grandchildren and so on."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] != "Z":
                parents.setdefault(int(fields[1]), []).append(int(entry.name))
    found, todo = [], [pid]
    while todo:
        children = parents.get(todo.pop(), [])
        found += children
        todo += children
    return found


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


class Program:
    """A server program; `log` is a file that takes its output."""

    def __init__(self, argv, log, env=None, port=None, address="127.0.0.1"):
        self.argv, self.log, self.env = [str(word) for word in argv], Path(log), env
        self.port, self.address = port, address
        self.process = None

    def start(self):
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=self.env,
                start_new_session=True)
        if self.port:
            up = wait_until(lambda: self.process.poll() is not None
                            or port_answers(self.port, self.address), 15)
            if not up or self.process.poll() is not None:
                self.stop()
                raise RuntimeError(f"{self.argv[0]} did not start: {self.log.read_text()}")
        return self

    def kill_children(self):
        """Ends what the server has forked for its clients; the server itself goes on."""
        for pid in descendants(self.process.pid):
            kill(pid)

    def stop(self):
        """At once, with all its children: it is held still first, so that it makes no more."""
        if self.process is None:
            return
        kill(self.process.pid, signal.SIGSTOP)
        while family := descendants(self.process.pid):
            for pid in family:
                kill(pid)
        self.process.kill()
        self.process.wait()
        self.process = None

    def restart(self):
        self.stop()
        self.start()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
