"""What is compared: how each subject is mounted over the private server."""

import itertools
import os
import shutil
import signal
import subprocess
import time

from . import proc
from .server import BenchError

# The cipher ssh would choose last by itself but both ends do fastest; moorfs prefers it too.
FAST_CIPHER = "aes128-gcm@openssh.com"
MOUNT_LIMIT = 30
_tokens = itertools.count(1)


class Subject:
    """
    A way to mount. `peer`: moorfs is compared with it. `full_runs`: it gets every run
    even when it is slow. `rtts`: None, or the only round-trip times it is run at by default.
    """

    def __init__(self, name, about, program, command, peer=True, full_runs=False, rtts=None,
                 loads=None):
        self.name = name
        self.about = about
        self.program = program
        self.command = command
        self.peer = peer
        self.full_runs = full_runs
        self.rtts = rtts
        self.loads = loads

    def wants(self, rtt_ms, load):
        return (self.rtts is None or rtt_ms in self.rtts) and (
            self.loads is None or load in self.loads)

    def version(self):
        run = subprocess.run([self.program, "--version"], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, check=False, timeout=60)
        lines = (run.stdout + run.stderr).strip().splitlines()
        own = [line for line in lines if self.name.split("-")[0] in line.lower()]
        return (own + lines + ["unknown"])[0]


def _moorfs(program, extra):
    def command(server, port, mountpoint, _load):
        config = server.ssh_config(port)
        return [program, f"{server.user}@127.0.0.1:{server.data.root}", mountpoint, "-f",
                "-F", config, "-p", str(port), *extra]
    return command


def _sshfs(program, ciphers, *options):
    def command(server, port, mountpoint, _load):
        config = server.ssh_config(port, ciphers)
        return [program, f"{server.user}@127.0.0.1:{server.data.root}", mountpoint, "-f",
                "-F", config, "-p", str(port), *options]
    return command


def _rclone(program):
    def command(server, port, mountpoint, load):
        # rclone writes well only through its file cache; reads are shown without it.
        mode = "full" if load.writes else "off"
        remote = (f":sftp,host=127.0.0.1,port={port},user={server.user},key_file={server.key},"
                  f"known_hosts_file={server.known_hosts},shell_type=unix:{server.data.root}")
        return [program, "mount", remote, mountpoint, "--config", "/dev/null",
                "--cache-dir", server.folder / "rclone-cache", "--vfs-cache-mode", mode,
                "--vfs-write-back", "0s", "--no-checksum"]
    return command


def make_subjects(moorfs, moorfs_options):
    """All known subjects by name, in the order of the tables; absent programs left out."""
    sshfs, rclone = shutil.which("sshfs"), shutil.which("rclone")
    found, absent = [], []
    if moorfs and os.access(moorfs, os.X_OK):
        found.append(Subject("moorfs", "moorfs with its defaults", moorfs,
                             _moorfs(moorfs, moorfs_options), peer=False, full_runs=True))
    else:
        absent.append("moorfs")
    if sshfs:
        found += [
            Subject("sshfs", f"sshfs, {FAST_CIPHER}", sshfs, _sshfs(sshfs, FAST_CIPHER),
                    full_runs=True),
            Subject("sshfs-plain", "sshfs with its defaults (ssh chooses the cipher)", sshfs,
                    _sshfs(sshfs, None), rtts=(0,), loads=("read", "write", "small")),
            Subject("sshfs-4", f"sshfs -o max_conns=4, {FAST_CIPHER}", sshfs,
                    _sshfs(sshfs, FAST_CIPHER, "-o", "max_conns=4"),
                    loads=("read", "write", "stat", "statw")),
        ]
    else:
        absent.append("sshfs")
    if rclone:
        found.append(Subject(
            "rclone", "rclone mount --no-checksum, vfs-cache-mode off (full for writing loads)",
            rclone, _rclone(rclone)))
    else:
        absent.append("rclone")
    return {subject.name: subject for subject in found}, absent


class Mount:
    """One life of one subject, as a context: mounted, used, unmounted, all helpers gone."""

    def __init__(self, subject, server, rtt_ms, load, mountpoint):
        self.subject = subject
        self.path = os.fspath(mountpoint)
        self.token = f"{os.getpid()}-{next(_tokens)}"
        self.log = server.folder / f"{subject.name}.log"
        self.command = [os.fspath(part) for part in subject.command(
            server, server.line(rtt_ms), self.path, load)]
        self.daemon = None
        self.trouble = []
        self.peak_mib = None
        self._cpu_before = 0

    def start(self):
        """Starts the daemon, in the foreground so that its pid is known. The time of it."""
        environment = {**os.environ, proc.MARK: self.token, "SSH_AUTH_SOCK": ""}
        started = time.monotonic()
        with self.log.open("wb") as log:
            self.daemon = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=environment, start_new_session=True)
        return started

    def wait(self):
        """Until the mount answers a first stat of its root."""
        if not proc.wait_for_mount(self.path, time.monotonic() + MOUNT_LIMIT,
                                   lambda: self.daemon.poll() is None):
            raise BenchError(f"{self.subject.name} did not mount: {self.last_words()}")
        answer = proc.run(["stat", "-c", "%i", self.path], MOUNT_LIMIT, self.rescue)
        if answer.cut or answer.status != 0:
            raise BenchError(f"{self.subject.name} mounted but does not answer: "
                             f"{answer.err.strip() or 'no reply'}; {self.last_words()}")
        self._cpu_before = proc.cpu_seconds(proc.marked(self.token))

    def rescue(self):
        """Ends a mount that hangs, so that what is stuck in it can be killed."""
        proc.signal_group(self.daemon, signal.SIGKILL)
        proc.kill_marked(self.token)
        proc.abort_mount(self.path)

    def cpu(self):
        """CPU seconds of the daemon and its helpers since the mount answered."""
        return proc.cpu_seconds(proc.marked(self.token)) - self._cpu_before

    def last_words(self):
        text = self.log.read_text(errors="replace").strip()
        status = self.daemon.poll() if self.daemon else None
        ended = "" if status is None else f"exit status {status}; "
        return ended + ("\n".join(text.splitlines()[-5:]) or "it said nothing")

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()

    def close(self):
        if not self.daemon:
            return
        self.peak_mib = proc.peak_rss_mib(self.daemon.pid)
        if self.daemon.poll() is None and proc.mount_device(self.path):
            asked = proc.run(["fusermount3", "-u", self.path], 15, self.rescue)
            if asked.status != 0:
                self.trouble.append(f"unmount failed: {asked.err.strip() or 'no reply in 15 s'}")
        elif self.daemon.poll() is not None:
            self.trouble.append(f"the daemon ended by itself: {self.last_words()}")
        try:
            self.daemon.wait(timeout=15 if not self.trouble else 1)
        except subprocess.TimeoutExpired:
            if not self.trouble:
                self.trouble.append("the daemon did not end within 15 s of the unmount")
        self.rescue()
        self.daemon.wait()
