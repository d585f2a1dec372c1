"""
Fixtures of the mount tests. The usual ones:

  remote   the served directory, seen from behind (a local path on the server's side)
  mnt      the same directory through a plain mount
  mount    mounts it with options: mount("umask=022").point
  sshd     the server; line: a proxy before it (delay, silence, cuts)

Tests that use them run once for each variant: a transport and a number of connections. After
each test nothing may be left: no mount, no process, no suspicious word in the program's output.
"""

import os
import shutil
from pathlib import Path

import pytest

from mount.mounted import (Environment, Mounted, Watchdog, describe, marked_processes,
                           mounts_below)
from servers import openssh
from servers.openssh import HOST, SFTP_SERVER, Sshd
from servers.process import wait_until
from servers.proxy import Proxy

ALL = [(transport, conns) for transport in ("ssh2", "ssh", "server") for conns in (1, 4)]
VARIANTS = {  # (usual tests, heavy tests)
    "full": (ALL, [("ssh2", 4), ("ssh", 1), ("server", 4)]),
    "reduced": ([("ssh2", 4), ("ssh", 1), ("server", 4)], [("ssh2", 4)]),
    "quick": ([("server", 4)], [("server", 4)]),
}
USUAL_LIMIT_SECONDS = 60


def pytest_generate_tests(metafunc):
    if "variant" in metafunc.fixturenames:
        usual, heavy = VARIANTS[metafunc.config.getoption("--matrix")]
        chosen = heavy if metafunc.definition.get_closest_marker("heavy") else usual
        only = metafunc.definition.get_closest_marker("transports")
        if only:
            chosen = [one for one in ALL if one[0] in only.args and one[1] == 4]
        metafunc.parametrize("variant", chosen, ids=lambda one: f"{one[0]}-{one[1]}",
                             indirect=True)


@pytest.fixture
def variant(request):
    return request.param


@pytest.fixture(scope="session")
def program(request, build):
    chosen = Path(request.config.getoption("--program") or build / "moorfs")
    found = shutil.which(str(chosen))
    if not found:
        pytest.fail(f"there is no program {chosen}: build it, or name its directory by --build")
    return Path(found).resolve()


@pytest.fixture(scope="session")
def fuse():
    try:
        os.close(os.open("/dev/fuse", os.O_RDWR))
    except OSError as error:
        if not shutil.which("fusermount3"):
            pytest.skip(f"no FUSE here: /dev/fuse: {error.strerror}")


@pytest.fixture
def environment(tmp_path, request, base):
    """The program's environment; its user: checks at the end that no process is left."""
    home = tmp_path / "home"
    home.mkdir()
    home.chmod(0o777)
    environment = Environment(home)
    marker = request.node.get_closest_marker("limit")
    limit = (marker.args[0] if marker else USUAL_LIMIT_SECONDS) \
        * request.config.getoption("--time-factor")
    with Watchdog(limit, environment, base) as watchdog:
        yield environment
    left = []
    if not wait_until(lambda: not marked_processes(environment.mark), 5):
        left = [describe(pid) for pid in marked_processes(environment.mark)]
        environment.kill_all()
    points = mounts_below(base)
    for point in points:
        os.spawnlp(os.P_WAIT, "umount", "umount", "-l", point)
    if watchdog.report:
        pytest.fail(watchdog.report)
    if left:
        pytest.fail("processes left behind: " + "; ".join(left))
    if points:
        pytest.fail(f"mounts left behind: {points}")


@pytest.fixture
def base(tmp_path):
    """A directory of this test that every user can reach."""
    for part in (tmp_path, *tmp_path.parents):
        if os.stat(part).st_uid == os.getuid() and str(part).startswith("/tmp/"):
            part.chmod(part.stat().st_mode | 0o755)
    return tmp_path


@pytest.fixture
def remote(base):
    directory = base / "remote"
    directory.mkdir()
    return directory


@pytest.fixture
def point(base):
    directory = base / "mnt"
    directory.mkdir()
    return directory


@pytest.fixture(scope="session")
def shared_sshd(scratch, keys):
    with Sshd(scratch / "sshd", keys) as server:
        yield server


@pytest.fixture
def sshd(base, keys):
    """A server of this test's own, which it may restart or kill."""
    with Sshd(base / "sshd", keys) as server:
        yield server


@pytest.fixture
def line(sshd, proxy_program):
    """A proxy before the test's own server; clients that use `mount` go through it."""
    with Proxy(proxy_program, sshd.port) as proxy:
        sshd.write_client_config(port=proxy.port)
        yield proxy
        if proxy.silent:
            proxy.resume()


def transport_options(program, variant, config):
    """The options that make the program use a variant's transport."""
    transport, conns = variant
    if program.name == "sshfs":
        return ["-F", config, "-o", f"max_conns={conns}"]
    words = ["-o", f"max_conns={conns}"]
    if transport == "server":
        return [*words, "-o", f"sftp_server={SFTP_SERVER}"]
    return [*words, "-F", config, "-o", f"transport={transport}"]


class Mounter:
    def __init__(self, request, program, variant, point, base, environment):
        self.request, self.program, self.variant = request, program, variant
        self.point, self.base, self.environment = point, base, environment
        self.remote = base / "remote"
        self.factor = request.config.getoption("--time-factor")
        self.mounts = []

    def config(self):
        if "sshd" in self.request.fixturenames:
            return self.request.getfixturevalue("sshd").client_config
        return self.request.getfixturevalue("shared_sshd").client_config

    def __call__(self, *options, point=None, remote=None, prefix=(), config=None, log="log"):
        """Mounts; each of `options` is what follows -o, or a flag with a dash."""
        words = []
        for option in options:
            words += [option] if option.startswith("-") else ["-o", option]
        if self.variant[0] != "server" or self.program.name == "sshfs":
            config = config or self.config()
        host = "" if config is None else HOST  # an empty host: the server runs on this machine
        point = point or self.point
        mounted = Mounted(
            [self.program, f"{host}:{self.remote if remote is None else remote}", point, "-f",
             *transport_options(self.program, self.variant, config), *words],
            point, self.base / f"{log}{len(self.mounts)}", self.environment, prefix,
            patience=15 * self.factor)
        self.mounts.append(mounted)
        return mounted.start()

    def finish(self):
        wrong = []
        for mounted in reversed(self.mounts):
            wrong += mounted.finish()
        if wrong:
            pytest.fail("\n".join(wrong) + "\n" + self.logs())

    def logs(self):
        return "\n".join(f"--- {mounted.log.name}\n{mounted.log_text()[-20000:]}"
                         for mounted in self.mounts)


@pytest.fixture
def mount(request, program, fuse, variant, remote, point, base, environment):
    mounter = Mounter(request, program, variant, point, base, environment)
    yield mounter
    if getattr(request.node, "call_failed", False):
        print(mounter.logs())
    mounter.finish()


@pytest.fixture
def mnt(mount):
    return mount().point


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call" and report.failed:
        item.call_failed = True


@pytest.fixture
def as_root():
    if os.getuid() != 0:
        pytest.skip("needs root")


@pytest.fixture
def ordinary_user(as_root):
    """(uid, gid) of a user without rights."""
    if not shutil.which("setpriv"):
        pytest.skip("setpriv is not installed (Debian: util-linux)")
    # udev gives everybody the device; containers without udev may have it for root alone.
    os.chmod("/dev/fuse", 0o666)
    return 65534, 65534


def pytest_configure(config):
    config.addinivalue_line("markers", "transports(names): only over these transports")
    if openssh.missing():
        pytest.exit(openssh.missing(), 1)
