"""The delay proxy: a long, narrow, breakable line to a server on this machine."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

from servers.process import wait_until

SOURCE = Path(__file__).with_name("delayproxy.c")


def program(build, scratch):
    """The program of the build tree, or one compiled for this run."""
    built = Path(build) / "tests/servers/delayproxy" if build else None
    if built and built.exists():
        return built
    path = Path(scratch) / "delayproxy"
    if not path.exists():
        compiler = os.environ.get("CC") or shutil.which("cc") or "gcc"
        subprocess.run([*compiler.split(), "-std=gnu17", "-D_GNU_SOURCE", "-O2", str(SOURCE),
                        "-o", str(path)], check=True)
    return path


class Proxy:
    def __init__(self, program_path, connect_port, delay_ms=0, rate=0, kill_after=0, log=None):
        self.argv = [str(program_path), "--connect", f"127.0.0.1:{connect_port}",
                     "--delay-ms", str(delay_ms), "--rate", str(rate),
                     "--kill-after", str(kill_after)]
        self.process = self.port = None
        self.silent = False

    def __enter__(self):
        self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.communicate(timeout=10)

    def drop_connections(self):
        self.process.send_signal(signal.SIGUSR1)

    def pause(self):
        """Silence: nothing moves and nothing closes, as if a cable had been pulled."""
        assert not self.silent
        self.toggle()

    def resume(self):
        assert self.silent
        self.toggle()

    def toggle(self):
        """Returns when the proxy has done it."""
        self.silent = not self.silent
        self.process.send_signal(signal.SIGUSR2)
        assert self.process.stdout.readline() == ("silent\n" if self.silent else "open\n")

    def counters(self):
        """{"up": bytes, "down": bytes, "connections": number} so far."""
        self.process.send_signal(signal.SIGHUP)
        words = self.process.stdout.readline().split()
        return {name: int(value) for name, value in (word.split("=") for word in words)}

    def wait_idle(self, seconds=10):
        """Waits until no bytes have moved for a quarter of a second; returns the counters."""
        last = [self.counters()]

        def same():
            now = self.counters()
            quiet, last[0] = now == last[0], now
            return quiet
        wait_until(same, seconds, step=0.25)
        return last[0]
