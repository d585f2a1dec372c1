"""mount(8), umount(8) and fstab: the program as the system starts it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from mount.expect import make
from mount.mounted import is_mounted, marked_processes
from servers.openssh import HOST, SFTP_SERVER
from servers.process import wait_until

HELPER = Path("/sbin/mount.moorfs")
pytestmark = pytest.mark.xdist_group("mount8")


@pytest.fixture(scope="module")
def helper(build, program):
    """mount(8) looks for its helpers in /sbin alone, and the helper for moorfs in PATH."""
    if os.getuid() != 0:
        pytest.skip("mount(8) needs root")
    if not shutil.which("mount"):
        pytest.skip("mount(8) is not installed")
    built = build / "mount.moorfs"
    if not built.exists():
        pytest.fail(f"{built} is not built")
    links = {HELPER: built, Path("/usr/bin/moorfs"): program}
    made = []
    for link, target in links.items():
        if link.is_symlink() or link.exists():
            if link.resolve() != target.resolve():
                pytest.skip(f"{link} is installed from elsewhere")
            continue
        link.symlink_to(target)
        made.append(link)
    yield HELPER
    for link in made:
        link.unlink(missing_ok=True)


class System:
    def __init__(self, environment, point, remote):
        self.environment, self.point, self.remote = environment, point, remote

    def run(self, *words):
        return subprocess.run([str(word) for word in words], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=60,
                              env=self.environment.variables)

    def mount(self, *words):
        result = self.run("mount", *words)
        assert result.returncode == 0, result.stderr
        assert is_mounted(self.point)

    def umount(self):
        assert wait_until(lambda: self.run("umount", self.point).returncode == 0, 3)
        assert not is_mounted(self.point)
        assert wait_until(lambda: not marked_processes(self.environment.mark), 10)

    def options(self):
        lines = Path("/proc/self/mounts").read_text().splitlines()
        return next(line for line in lines if f" {self.point} " in line).split()[3].split(",")


@pytest.fixture
def system(helper, fuse, environment, point, remote):
    one = System(environment, point, remote)
    yield one
    if is_mounted(point):
        one.umount()


def works(system):
    make(system.point / "file", b"x")
    assert (system.remote / "file").read_bytes() == b"x"


LOCAL = f"sftp_server={SFTP_SERVER}"


@pytest.mark.parametrize("kind", ["moorfs", "fuse.moorfs"])
def test_mount_by_type(system, kind):
    system.mount("-t", kind, f":{system.remote}", system.point, "-o", LOCAL)
    works(system)
    system.umount()


def test_mount_over_ssh(system, shared_sshd, keys):
    hosts = f"{shared_sshd.directory}/ssh_config.known_hosts"
    system.mount("-t", "moorfs", f"{shared_sshd.user}@127.0.0.1:{system.remote}", system.point,
                 "-o", f"port={shared_sshd.port},IdentityFile={keys}/user_ed25519,"
                       f"UserKnownHostsFile={hosts}")
    works(system)
    system.umount()


def test_the_usual_words_of_fstab(system):
    words = ("defaults,noauto,user,_netdev,nofail,exec,suid,dev,x-systemd.automount,"
             "x-systemd.idle-timeout=60,x-foo,comment=hello,noatime,allow_other")
    system.mount("-t", "moorfs", f":{system.remote}", system.point, "-o", f"{LOCAL},{words}")
    works(system)
    assert "noatime" in system.options()


def test_read_only_and_noexec(system):
    make(system.remote / "script", b"#!/bin/sh\n", 0o755)
    system.mount("-t", "moorfs", "-r", f":{system.remote}", system.point, "-o",
                 f"{LOCAL},noexec,nosuid,nodev")
    with pytest.raises(OSError, match="Read-only"):
        make(system.point / "x")
    with pytest.raises(PermissionError):
        subprocess.run([system.point / "script"])
    assert {"ro", "noexec", "nosuid", "nodev"} <= set(system.options())


def test_owner_options(system):
    make(system.remote / "file", b"", 0o666)
    system.mount("-t", "moorfs", f":{system.remote}", system.point, "-o",
                 f"{LOCAL},uid=1234,gid=4321,umask=077,allow_other")
    st = os.stat(system.point / "file")
    assert (st.st_uid, st.st_gid, st.st_mode & 0o777) == (1234, 4321, 0o700)


@pytest.fixture
def fstab(system, base):
    def write(options, kind="moorfs"):
        path = base / "fstab"
        path.write_text(f"# test\n:{system.remote} {system.point} {kind} {LOCAL},{options} 0 0\n")
        return path
    return write


@pytest.mark.parametrize("kind", ["moorfs", "fuse.moorfs"])
def test_mount_all_of_an_fstab(system, fstab, kind):
    result = system.run("mount", "-a", "-T", fstab("defaults,_netdev,nofail", kind))
    assert result.returncode == 0, result.stderr
    assert is_mounted(system.point)
    works(system)
    again = system.run("mount", "-a", "-T", fstab("defaults,_netdev,nofail", kind))
    assert again.returncode == 0, again.stderr
    system.umount()


def test_noauto_waits_until_it_is_named(system, fstab):
    path = fstab("noauto,user,x-systemd.automount")
    assert system.run("mount", "-a", "-T", path).returncode == 0
    assert not is_mounted(system.point)
    result = system.run("mount", "-T", path, system.point)
    assert result.returncode == 0, result.stderr
    works(system)
    assert {"nosuid", "nodev", "noexec"} <= set(system.options())


def test_a_line_that_cannot_be_mounted_fails(system, base):
    path = base / "fstab"
    path.write_text(f":{system.remote}/none {system.point} moorfs {LOCAL} 0 0\n")
    result = system.run("mount", "-a", "-T", path)
    assert result.returncode != 0
    assert "No such file" in result.stderr
    assert not is_mounted(system.point)


def test_remount_is_refused_clearly(system):
    system.mount("-t", "moorfs", f":{system.remote}", system.point, "-o", LOCAL)
    result = system.run("mount", "-t", "moorfs", "-o", f"remount,ro,{LOCAL}",
                        f":{system.remote}", system.point)
    assert result.returncode != 0
    assert "unmount and mount again" in result.stderr
    works(system)


def test_unknown_options_are_refused_and_sloppy_ones_not(system):
    words = ["-t", "moorfs", f":{system.remote}", system.point, "-o", f"{LOCAL},max_cons=2"]
    result = system.run("mount", *words)
    assert result.returncode != 0
    assert "max_conns" in result.stderr
    system.mount("-s", *words)
    works(system)


def test_a_fake_mount_does_nothing(system):
    result = system.run("mount", "-f", "-t", "moorfs", f":{system.remote}", system.point, "-o",
                        LOCAL)
    assert result.returncode == 0, result.stderr
    assert not is_mounted(system.point)


def test_verbose_says_what_is_run(system):
    result = system.run("mount", "-v", "-t", "moorfs", f":{system.remote}", system.point, "-o",
                        LOCAL)
    assert result.returncode == 0, result.stderr
    works(system)


def test_findmnt_and_umount_by_source(system, shared_sshd):
    spec = f"{HOST}:{system.remote}"
    result = system.run("mount", "-t", "moorfs", spec, system.point, "-o",
                        f"ssh_command=ssh -F {shared_sshd.client_config}")
    assert result.returncode == 0, result.stderr
    works(system)
    shown = system.run("findmnt", "-n", "-o", "SOURCE,FSTYPE", system.point).stdout.split()
    assert shown == [spec, "fuse.moorfs"]
    assert system.run("umount", spec).returncode == 0
    assert not is_mounted(system.point)


def test_a_missing_source_or_mountpoint(system):
    result = system.run("mount", "-t", "moorfs", f":{system.remote}", f"{system.point}/none",
                        "-o", LOCAL)
    assert result.returncode != 0
    result = system.run(HELPER)
    assert result.returncode != 0
    assert "usage" in result.stderr.lower() or "moorfs" in result.stderr


def test_mount_a_second_time_is_refused(system):
    system.mount("-t", "moorfs", f":{system.remote}", system.point, "-o", LOCAL)
    result = system.run("mount", "-t", "moorfs", f":{system.remote}", system.point, "-o", LOCAL)
    assert result.returncode != 0
    system.umount()
