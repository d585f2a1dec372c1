"""A private sshd with throw-away keys, a line of a given round trip before it, and its data."""

import hashlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import tarfile
import tempfile
import time
from pathlib import Path

SFTP_SERVERS = (
    "/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server",
    "/usr/lib/ssh/sftp-server", "/usr/libexec/sftp-server")

# A hole this long takes no room and no run reads to its end.
ENDLESS = 1 << 40


class BenchError(Exception):
    """Something the benchmark itself needs is missing or failed."""


def find_program(name, *more):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    for candidate in more:
        if not path and os.access(candidate, os.X_OK):
            path = candidate
    if not path:
        raise BenchError(f"{name} was not found: install it or add it to PATH")
    return path


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, child, what, log):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and child.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.05)
    raise BenchError(f"{what} does not answer on port {port}:\n{log.read_text(errors='replace')}")


def end(child):
    child.terminate()
    try:
        child.wait(timeout=5)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


class Data:
    """What the server serves. Made once; the same for every subject."""

    def __init__(self, root, size):
        self.root = root
        self.size = size
        self.big = root / "big"
        self.big_sha = self._make_big()
        self._make_small()
        self._make_tree()
        self._make_flat()
        self.archive = root / "archive.tar"
        self._make_archive()
        (root / "first").write_bytes(os.urandom(4096))
        with open(root / "endless", "wb") as hole:
            hole.truncate(ENDLESS)
        self._age()

    def _make_big(self):
        digest = hashlib.sha256()
        with open(self.big, "wb") as out:
            for _ in range(self.size.big_mib):
                block = os.urandom(1 << 20)
                digest.update(block)
                out.write(block)
        return digest.hexdigest()

    def _make_small(self):
        folder = self.root / "small"
        folder.mkdir()
        for i in range(self.size.small_files):
            (folder / f"file{i:04}").write_bytes(os.urandom(4096))

    def _make_tree(self):
        rng = random.Random(5)
        for i in range(self.size.tree_dirs):
            folder = self.root / "tree" / f"dir{i:03}"
            folder.mkdir(parents=True)
            for j in range(self.size.tree_files):
                (folder / f"name{j:02}.txt").write_bytes(b"x" * rng.randint(0, 2000))

    def _make_flat(self):
        folder = self.root / "flat"
        folder.mkdir()
        for i in range(self.size.flat_files):
            (folder / f"entry{i:05}").touch()

    def _make_archive(self):
        source = self.root / "small"
        with tarfile.open(self.archive, "w") as archive:
            for i in range(self.size.archive_files):
                archive.add(source / f"file{i:04}", arcname=f"unpacked/file{i:04}")

    def _age(self):
        """Most files of a server were not written a minute ago: these are up to a year old."""
        rng, now = random.Random(3), time.time()
        for folder, _, files in os.walk(self.root, topdown=False):
            for name in [*files, "."]:
                then = now - rng.uniform(3600, 365 * 86400)
                os.utime(os.path.join(folder, name), (then, then))

    def names(self):
        """Entries that `ls -lR` of the tree shows."""
        return self.size.tree_dirs * (1 + self.size.tree_files)


class Server:
    """sshd on a free port of the loopback, and one proxy for each round-trip time."""

    def __init__(self, scratch, delayproxy):
        self.folder = Path(scratch)
        self.delayproxy = delayproxy
        self.user = pwd.getpwuid(os.geteuid()).pw_name
        self.key = self.folder / "user_key"
        self.known_hosts = self.folder / "known_hosts"
        self.port = free_port()
        self.made_run_sshd = False
        self.lines = {}
        self.proxies = {}
        self.children = []
        self._make_keys()
        self._start_sshd()

    def _make_keys(self):
        for name in ("host_key", "user_key"):
            subprocess.run(
                [find_program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f",
                 self.folder / name], check=True, stdin=subprocess.DEVNULL)
        shutil.copy(self.folder / "user_key.pub", self.folder / "authorized_keys")
        self.known_hosts.touch()

    def _know(self, port):
        kind, key = (self.folder / "host_key.pub").read_text().split()[:2]
        with self.known_hosts.open("a") as known:
            known.write(f"[127.0.0.1]:{port} {kind} {key}\n")

    def _start_sshd(self):
        sftp = next((p for p in SFTP_SERVERS if os.access(p, os.X_OK)), "internal-sftp")
        config = self.folder / "sshd_config"
        config.write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host_key\n"
            f"AuthorizedKeysFile {self.folder}/authorized_keys\nPidFile none\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
            "SetEnv SHLVL=1\n"  # or bash reads the user's own .bashrc for each connection
            f"MaxStartups 100\nMaxSessions 100\nPrintMotd no\nSubsystem sftp {sftp}\n")
        if os.geteuid() == 0 and not os.path.isdir("/run/sshd"):
            os.mkdir("/run/sshd", 0o755)  # sshd's privilege separation wants it
            self.made_run_sshd = True
        self.children.append(self._launch_sshd())
        self._know(self.port)

    def _launch_sshd(self):
        log = self.folder / "sshd.log"
        sshd = find_program("sshd", "/usr/sbin/sshd")
        child = subprocess.Popen(
            [sshd, "-D", "-f", self.folder / "sshd_config", "-E", log],
            stdin=subprocess.DEVNULL)
        try:
            wait_for_port(self.port, child, "sshd", log)
        except BenchError:
            end(child)
            raise
        return child

    def sessions(self):
        """The pids of sshd and of all it started."""
        family = [self.children[0].pid]
        for pid in family:
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                family += [int(child) for child in task.read_text().split()]
        return family

    def signal_sshd(self, number):
        for pid in self.sessions():
            os.kill(pid, number)

    def restart_sshd(self):
        """All connections are lost, and the server is back on the same port."""
        self.signal_sshd(signal.SIGKILL)
        self.children[0].wait()
        self.children[0] = self._launch_sshd()

    def moved(self, rtt_ms):
        """Bytes that passed the line so far, both ways."""
        child = self.proxies[rtt_ms]
        child.send_signal(signal.SIGHUP)
        counts = dict(word.split("=") for word in child.stdout.readline().decode().split())
        return int(counts["up"]) + int(counts["down"])

    def line(self, rtt_ms):
        """The port that reaches the server with this round-trip time."""
        if rtt_ms == 0:
            return self.port
        if rtt_ms not in self.lines:
            log = self.folder / f"line{rtt_ms}.log"
            child = subprocess.Popen(
                [self.delayproxy, "--connect", f"127.0.0.1:{self.port}",
                 "--delay-ms", f"{rtt_ms / 2:g}"],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log.open("w"))
            self.children.append(child)
            port = child.stdout.readline().strip()
            if not port:
                raise BenchError(f"{self.delayproxy} did not start: {log.read_text()}")
            self.lines[rtt_ms] = int(port)
            self.proxies[rtt_ms] = child
            self._know(int(port))
        return self.lines[rtt_ms]

    def ssh_config(self, port, ciphers=None):
        """A configuration file for ssh that knows nothing but this server."""
        path = self.folder / f"ssh_config.{port}.{'forced' if ciphers else 'plain'}"
        path.write_text(
            f"Host 127.0.0.1\n  Port {port}\n  User {self.user}\n"
            f"  IdentityFile {self.key}\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.known_hosts}\n  GlobalKnownHostsFile /dev/null\n"
            "  StrictHostKeyChecking yes\n"
            + (f"  Ciphers {ciphers}\n" if ciphers else ""))
        return path

    def close(self):
        sessions = self.sessions() if self.children else []
        for child in reversed(self.children):
            end(child)
        for pid in sessions[1:]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it ended with its connection, as it should
        if self.made_run_sshd:
            try:
                os.rmdir("/run/sshd")
            except OSError:
                pass  # another sshd uses it by now


def data_home(need_mib):
    """A folder in memory when there is room, so that no disk is measured; else on disk."""
    try:
        room = os.statvfs("/dev/shm")
        if room.f_bavail * room.f_frsize > 2 * need_mib * (1 << 20):
            return tempfile.mkdtemp(prefix="moorbench-data-", dir="/dev/shm"), True
    except OSError:
        pass
    return tempfile.mkdtemp(prefix="moorbench-data-"), False


def build_delayproxy(source, folder):
    binary = Path(folder) / "delayproxy"
    compiler = os.environ.get("CC", "cc").split()
    built = subprocess.run(
        [*compiler, "-O2", "-D_GNU_SOURCE", "-o", binary, source], capture_output=True,
        text=True, check=False)
    if built.returncode != 0:
        raise BenchError(f"{source} does not compile: {built.stderr}")
    return binary


def forward_signals():
    """SIGTERM and SIGHUP end the benchmark as ^C does: by an exception, cleaning up."""

    def interrupt(number, _frame):
        raise KeyboardInterrupt(signal.Signals(number).name)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
