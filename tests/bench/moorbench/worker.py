"""
What touches a mount with a clock in hand. A process of its own, so that it can be killed.

  worker.py first MOUNTPOINT       waits for the mount, reads the first byte of "first",
                                   prints the monotonic time
  worker.py stat MOUNTPOINT COUNT SECONDS
                                   lstat of up to COUNT new names in "flat" while dd reads
                                   "endless", prints JSON
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


def stat(mountpoint, count, seconds):
    # The names are known, so that no listing fills a cache: each is a question to the server.
    names = [f"entry{i:05}" for i in range(count)]
    random.Random(9).shuffle(names)
    times = []
    reader = subprocess.Popen(
        ["dd", f"if={mountpoint}/endless", "of=/dev/null", "bs=1M"],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    start = time.monotonic()
    time.sleep(0.5)
    for name in names:
        if time.monotonic() - start > seconds:
            break
        asked = time.monotonic()
        os.lstat(f"{mountpoint}/flat/{name}")
        times.append((time.monotonic() - asked) * 1000)
        time.sleep(PAUSE)
    lasted = time.monotonic() - start
    reader.send_signal(signal.SIGINT)
    last = reader.communicate(timeout=20)[1].strip().splitlines()[-1:]
    if not last or "bytes" not in last[0]:
        raise SystemExit(f"dd failed beside the stats: {last}")
    print(json.dumps({
        "p50": stats.percentile(times, 50), "p99": stats.percentile(times, 99),
        "samples": len(times), "read": int(last[0].split()[0]) / lasted / 1e6}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["first"] and len(sys.argv) == 3:
        first(sys.argv[2])
    elif sys.argv[1:2] == ["stat"] and len(sys.argv) == 5:
        stat(sys.argv[2], int(sys.argv[3]), float(sys.argv[4]))
    else:
        raise SystemExit(__doc__)
