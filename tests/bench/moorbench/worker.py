"""
What touches a mount with a clock in hand. A process of its own, so that it can be killed.

  worker.py first MOUNTPOINT       waits for the mount, reads the first byte of "first",
                                   prints the monotonic time
  worker.py stat-read MOUNTPOINT COUNT SECONDS
  worker.py stat-write MOUNTPOINT COUNT SECONDS
                                   lstat of up to COUNT new names in "flat" while another
                                   process reads "endless" or writes "written"; prints JSON
  worker.py read|write FILE        reads on and on, or writes 256 MiB over and over, until
                                   SIGTERM; prints the bytes moved
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).parents[1]))

from moorbench import proc, stats  # noqa: E402  (after the path is set)

PAUSE = 0.02


def first(mountpoint, limit=60):
    print("ready", flush=True)
    if not proc.wait_for_mount(mountpoint, time.monotonic() + limit, lambda: True):
        raise SystemExit("the mount did not appear")
    with open(os.path.join(mountpoint, "first"), "rb", buffering=0) as file:
        if len(file.read(1)) != 1:
            raise SystemExit("the first byte is missing")
    print(time.monotonic(), flush=True)


def move(direction, path):
    """Until SIGTERM; dd cannot write over and over the same 256 MiB."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    flags = os.O_RDONLY if direction == "read" else os.O_WRONLY | os.O_CREAT
    file = os.open(path, flags, 0o644)
    block, moved, region = os.urandom(1 << 20), 0, 256 << 20
    try:
        while True:
            if direction == "read":
                moved += len(os.read(file, 1 << 20))
            else:
                moved += os.pwrite(file, block, moved % region)
    finally:
        print(moved, flush=True)


def stat(direction, mountpoint, count, seconds):
    # The names are known, so that no listing fills a cache: each is a question to the server.
    names = [f"entry{i:05}" for i in range(count)]
    random.Random(9).shuffle(names)
    times = []
    path = f"{mountpoint}/{'endless' if direction == 'read' else 'written'}"
    mover = subprocess.Popen(
        [sys.executable, __file__, direction, path], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, text=True)
    start = time.monotonic()
    time.sleep(1)
    for name in names:
        if time.monotonic() - start > seconds:
            break
        asked = time.monotonic()
        os.lstat(f"{mountpoint}/flat/{name}")
        times.append((time.monotonic() - asked) * 1000)
        time.sleep(PAUSE)
    lasted = time.monotonic() - start
    mover.terminate()
    moved = mover.communicate(timeout=20)[0].strip()
    if not moved:
        raise SystemExit(f"the {direction} beside the stats failed")
    print(json.dumps({
        "p50": stats.percentile(times, 50), "p99": stats.percentile(times, 99),
        "samples": len(times), "rate": int(moved) / lasted / 1e6}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["first"] and len(sys.argv) == 3:
        first(sys.argv[2])
    elif sys.argv[1:2] in (["stat-read"], ["stat-write"]) and len(sys.argv) == 5:
        stat(sys.argv[1].partition("-")[2], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
    elif sys.argv[1:2] in (["read"], ["write"]) and len(sys.argv) == 3:
        move(sys.argv[1], sys.argv[2])
    else:
        raise SystemExit(__doc__)
