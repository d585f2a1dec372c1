"""One mount of the program under test, from its start to the proof that nothing is left."""

import os
import re
import signal
import subprocess
import threading
import time
import uuid
from pathlib import Path

from servers.process import kill, wait_until

# Words that no healthy run prints.
SUSPICIOUS = re.compile(
    r"(AddressSanitizer|ThreadSanitizer|LeakSanitizer|UndefinedBehavior|runtime error|"
    r"[Aa]ssertion|\bBUG\b|double free|corrupted|stack smashing|Segmentation fault)")
MARK = "MOORFS_TEST_MARK"


class TimeLimit(Exception):
    """The test took longer than its limit."""


def mounts_below(directory):
    """Mount points at or below a directory, innermost first."""
    found = []
    prefix = os.path.realpath(directory).encode()
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        escaped = line.split()[4]
        point = re.sub(rb"\\(\d{3})", lambda m: bytes([int(m[1], 8)]), escaped)
        if point == prefix or point.startswith(prefix + b"/"):
            found.append(point)
    return found[::-1]


def is_mounted(point):
    return os.fsencode(str(point)) in mounts_below(point)


def marked_processes(mark):
    """Processes whose environment carries the test's mark: what the program left behind."""
    needle = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if needle in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def describe(pid):
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        return f"{pid} {command}"
    except OSError:
        return str(pid)


def thread_states(pid):
    """What each thread of a process waits for, for the report of a test that hung."""
    lines = []
    try:
        for task in sorted(Path(f"/proc/{pid}/task").iterdir()):
            name = (task / "comm").read_text().strip()
            where = (task / "wchan").read_text().strip()
            lines.append(f"  thread {task.name} {name}: {where}")
    except OSError:
        pass
    debugger = subprocess.run(["sh", "-c", "command -v gdb"], capture_output=True, text=True)
    if debugger.returncode == 0:
        lines.append(subprocess.run(
            ["gdb", "-p", str(pid), "-batch", "-ex", "thread apply all bt"],
            capture_output=True, text=True, timeout=60).stdout)
    return "\n".join(lines)


class Environment:
    """What the program under test is run with, and all that carries its mark afterwards."""

    def __init__(self, home):
        self.mark = uuid.uuid4().hex
        self.variables = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin",
            "HOME": str(home), "LANG": "C.UTF-8", "TZ": "UTC", MARK: self.mark,
            "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0:exitcode=99",
            "UBSAN_OPTIONS": "print_stacktrace=1",
            "LSAN_OPTIONS": "exitcode=99",
            "TSAN_OPTIONS": "exitcode=99:second_deadlock_stack=1",
        }

    def kill_all(self):
        for pid in marked_processes(self.mark):
            kill(pid)


def as_user(uid, gid=None):
    """The start of a command line that runs the rest as another user."""
    return ["setpriv", f"--reuid={uid}", f"--regid={uid if gid is None else gid}",
            "--clear-groups"]


class Mounted:
    def __init__(self, argv, point, log, environment, prefix=(), patience=15):
        self.argv, self.point, self.log = [str(word) for word in argv], Path(point), Path(log)
        self.environment, self.prefix, self.patience = environment, list(prefix), patience
        self.process = None
        self.says_ready = os.path.basename(self.argv[0]) == "moorfs"
        self.expect_failure = False

    def start(self):
        with open(self.log, "ab") as out:
            self.process = subprocess.Popen(
                [*self.prefix, *self.argv], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                env=self.environment.variables, start_new_session=True)
        wait_until(lambda: self.process.poll() is not None or self.is_ready(), self.patience,
                   step=0.005)
        if self.process.poll() is not None:
            raise AssertionError(f"mounting failed (exit {self.process.returncode}): "
                                 f"{' '.join(self.argv)}\n{self.log_text()}")
        if not self.is_ready():
            states = thread_states(self.process.pid)
            self.process.kill()
            raise AssertionError(f"no mount after {self.patience} s\n{self.log_text()}\n{states}")
        return self

    def is_ready(self):
        """The program says so, once it has asked itself through the kernel."""
        if self.process.poll() is not None:
            return False
        return is_mounted(self.point) and (not self.says_ready or "mounted " in self.log_text())

    def log_text(self):
        return self.log.read_text(errors="replace")

    def unmount(self, lazy=False):
        if os.getuid() == 0:
            command = ["umount", *(["-l"] if lazy else []), str(self.point)]
        else:
            command = ["fusermount3", "-u", *(["-z"] if lazy else []), str(self.point)]
        return subprocess.run(command, capture_output=True, text=True)

    def wait_exit(self, seconds):
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def finish(self):
        """Unmounts if that has not happened; returns what was wrong, a list of sentences."""
        wrong = []
        if self.process is None:
            return wrong
        if is_mounted(self.point):
            result = [None]

            def unmounted():
                result[0] = self.unmount()
                return result[0].returncode == 0
            if not wait_until(unmounted, 3, step=0.1):
                wrong.append(f"umount failed: {result[0].stderr.strip()}")
                self.unmount(lazy=True)
        if self.wait_exit(self.patience) is None:
            wrong.append("the program goes on running after umount:\n"
                         + thread_states(self.process.pid))
            self.process.kill()
            self.process.wait()
        elif self.process.returncode != 0 and not self.expect_failure:
            wrong.append(f"the program ended with {self.process.returncode}")
        wrong += suspicious_lines(self.log_text())
        self.process = None
        return wrong


def suspicious_lines(text):
    found = SUSPICIOUS.search(text)
    if not found:
        return []
    start = max(0, text.rfind("\n", 0, found.start() - 400))
    return ["suspicious output: " + text[start:found.start() + 6000]]


class Watchdog:
    """
    Ends a test that takes too long. A thread blocked in a system call on the mount does not
    see a Python exception, so the program is killed first: that wakes it up.
    """

    def __init__(self, seconds, environment, directory):
        self.seconds, self.environment, self.directory = seconds, environment, directory
        self.report = None
        self.cancelled = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.main = threading.main_thread().ident

    def watch(self):
        if self.cancelled.wait(self.seconds):
            return
        pids = marked_processes(self.environment.mark)
        self.report = f"time limit of {self.seconds:.0f} s exceeded\n" + "\n".join(
            describe(pid) + "\n" + thread_states(pid) for pid in pids)
        self.environment.kill_all()
        for point in mounts_below(self.directory):
            subprocess.run([b"umount", b"-l", point], capture_output=True)
        time.sleep(0.2)
        if not self.cancelled.is_set():
            signal.pthread_kill(self.main, signal.SIGALRM)

    def __enter__(self):
        def expired(*_):
            raise TimeLimit(self.report)
        self.previous = signal.signal(signal.SIGALRM, expired)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.cancelled.set()
        signal.signal(signal.SIGALRM, self.previous)
