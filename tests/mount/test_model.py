"""
Random operations on the mount and on a local directory, answer by answer the same: see
model.py. The seeds are fixed; MOORFS_MODEL_RUNS=50 makes as many runs of each kind with other
seeds, and a failure tells its own.
"""

import os
import random
import sys
from pathlib import Path

import pytest

from mount import compare, model
from mount.expect import run

RUNS = int(os.environ.get("MOORFS_MODEL_RUNS", "0"))
PROGRAM = Path(model.__file__)
KINDS = {
    # name: (options, processes, operations left out)
    "one-process": ((), 1, ""),
    "three-processes": ((), 3, ""),
    "one-connection": (("max_conns=1", "sync"), 1, ""),
    "no-room": (("cache_size=1M", "write_queue=256K", "max_conns=2"), 3, ""),
    "nothing-kept": (("attr_timeout=0", "entry_timeout=0", "negative_timeout=0",
                      "dir_cache=no"), 2, ""),
    "small-requests": (("max_read=5000", "max_write=4096", "max_conns=8"), 3, ""),
    "direct": (("direct_io", "attr_timeout=1"), 2, "map"),  # such files are not mapped
}


def same_trees(reference, other):
    return compare.tree_differences(compare.tree(reference), compare.tree(other))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", range(RUNS or 1))
@pytest.mark.transports("server", "ssh2")
@pytest.mark.limit(120)
def test_the_mount_answers_as_a_local_directory_does(mount, remote, base, variant, kind, number):
    options, processes, without = KINDS[kind]
    if not RUNS and variant[0] != "server" and kind != "three-processes":
        pytest.skip("without MOORFS_MODEL_RUNS one kind runs over SSH")
    seed = random.randrange(1 << 30) if RUNS else 1 + list(KINDS).index(kind)
    reference = base / "reference"
    reference.mkdir()
    mounted = mount(*options)
    result = run(sys.executable, "-B", PROGRAM, reference, mounted.point, "--seed", seed,
                 "--operations", 1500 if RUNS else 800, "--processes", processes,
                 "--history", base / "history", "--without", without, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    # All files are closed: the server has what the programs saw, with no more waiting.
    assert same_trees(reference, remote) == []


def test_the_reference_agrees_with_itself(base):
    """That a difference comes from the mount, and not from the model."""
    for name in ("one", "other"):
        (base / name).mkdir()
    result = run(sys.executable, "-B", PROGRAM, base / "one", base / "other", "--seed", 1,
                 "--operations", 800, "--processes", 2, "--history", base / "history",
                 check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_difference_is_found(base):
    """That the model can fail."""
    for name, content in (("one", b"content"), ("other", b"confent")):
        (base / name).mkdir()
        (base / name / "file").write_bytes(content)
    sides = compare.Sides((base / "one", base / "other"), lambda *words: None)
    for call in (lambda side: sides.roots[side].joinpath("file").read_bytes(),
                 lambda side: os.rmdir(sides.roots[side]) if side else os.mkdir(base / "one"),
                 lambda side: side):
        with pytest.raises(compare.Mismatch):
            sides.both("call", call)
    sides.both("call", lambda side: sides.roots[side].joinpath("missing").exists())
    assert "first difference at 3" in same_trees(base / "one", base / "other")[0]
