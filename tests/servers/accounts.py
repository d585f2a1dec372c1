"""A temporary user with a password, where the test runs as root."""

import os
import pwd
import shutil
import subprocess

from servers.process import wait_until

PASSWORD = "open: s e s a m e #%/"


def missing():
    if os.getuid() != 0:
        return "a temporary user needs root"
    if not shutil.which("useradd", path="/usr/sbin:/sbin"):
        return "useradd is not installed (Debian: passwd)"
    return None


class Account:
    def __init__(self, home):
        self.home = home
        self.name = f"moorfs-test-{os.getpid()}"

    def __enter__(self):
        # Another test may hold the lock of /etc/passwd for a moment.
        assert wait_until(self.add, 10, step=0.2), "useradd failed"
        subprocess.run(["/usr/sbin/chpasswd"], input=f"{self.name}:{PASSWORD}\n", text=True,
                       check=True)
        entry = pwd.getpwnam(self.name)
        self.uid, self.gid = entry.pw_uid, entry.pw_gid
        os.makedirs(self.home, exist_ok=True)
        os.chown(self.home, self.uid, self.gid)
        return self

    def add(self):
        return subprocess.run(
            ["/usr/sbin/useradd", "--no-create-home", "--home-dir", str(self.home), "--shell",
             "/bin/sh", self.name]).returncode == 0

    def __exit__(self, *_):
        subprocess.run(["/usr/sbin/userdel", "--force", self.name], check=False,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
