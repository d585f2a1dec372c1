"""What all test folders share: the build under test, keys, scratch space."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from servers import openssh, proxy

ROOT = Path(__file__).resolve().parent.parent


def pytest_addoption(parser):
    parser.addoption("--build", default=os.environ.get("MOORFS_BUILD"),
                     help="build directory that holds moorfs (MOORFS_BUILD; else the source's)")
    parser.addoption("--program", default=os.environ.get("MOORFS_PROGRAM"),
                     help="the program to mount with, instead of the build's moorfs")
    parser.addoption("--matrix", default="full", choices=("quick", "reduced", "full"),
                     help="over how many transports and pool sizes the mount tests run")
    parser.addoption("--time-factor", type=float, default=1.0,
                     help="multiplies the tests' time limits (sanitizers are slow)")


@pytest.fixture(scope="session")
def build(request):
    return Path(request.config.getoption("--build") or ROOT).resolve()


@pytest.fixture(scope="session")
def scratch():
    """A directory that every user may enter, removed at the end."""
    directory = Path(tempfile.mkdtemp(prefix="moorfs-test-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="session")
def keys(scratch):
    """Host and user keys, made once."""
    if openssh.missing():
        pytest.skip(openssh.missing())
    directory = scratch / "keys"
    directory.mkdir()
    return openssh.make_keys(directory)


@pytest.fixture(scope="session")
def proxy_program(build, scratch):
    return proxy.program(build, scratch)
