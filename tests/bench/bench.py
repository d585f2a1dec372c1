#!/usr/bin/env python3
"""
Measures moorfs beside sshfs and rclone mount: a private sshd on the loopback, a proxy that adds
the round-trip time, a fresh and cold mount for each run, the subjects in alternating order.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections import namedtuple
from pathlib import Path

from moorbench import loads as load_module
from moorbench import proc
from moorbench.report import Cell, Report
from moorbench.server import (BenchError, Data, Server, build_delayproxy, data_home,
                              forward_signals)
from moorbench.subjects import MOUNT_LIMIT, Mount, make_subjects

HERE = Path(__file__).resolve().parent
Size = namedtuple("Size", "big_mib small_files tree_dirs tree_files flat_files archive_files "
                          "stat_seconds box")
FULL = Size(256, 500, 100, 20, 2000, 50, 6, 10)
QUICK = Size(64, 100, 25, 20, 1000, 25, 3, 5)


def names(text):
    return [name for name in text.split(",") if name]


def parse_arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="loads: " + ", ".join(load.name for load in load_module.LOADS))
    add = parser.add_argument
    add("--moorfs", default="./moorfs", help="the binary to measure (default: ./moorfs)")
    add("--moorfs-option", action="append", default=[], metavar="OPT",
        help="mount moorfs with -o OPT; may be repeated")
    add("--subjects", type=names, metavar="A,B", help="only these subjects")
    add("--loads", type=names, metavar="A,B", help="only these loads")
    add("--only", type=names, metavar="SUBJECT/LOAD,...",
        help="only these pairs; either side may be *")
    add("--rtt", type=names, metavar="MS,MS", help="round-trip times (default: 0,10,50)")
    add("--runs", type=int, help="runs of each cell (default: 5)")
    add("--quick", action="store_true",
        help="smaller sizes, 3 runs, RTT 0 and 50: too few runs to prove a difference")
    add("--box", type=float, metavar="SECONDS", help="longest time of one run's load")
    add("--patience", type=float, metavar="SECONDS",
        help="a slow peer other than sshfs gets no further run of a cell after this time")
    add("--delayproxy", help="the proxy's binary (default: built from ../servers)")
    add("--json", metavar="FILE", help="write all values here")
    add("--markdown", metavar="FILE", help="write the tables here")
    add("--no-drop-caches", action="store_true",
        help="leave the machine's page cache alone, even when the data lies on a disk")
    options = parser.parse_args()
    options.size = QUICK if options.quick else FULL
    if options.box:
        options.size = options.size._replace(box=options.box)
    options.runs = options.runs or (3 if options.quick else 5)
    options.patience = options.patience or (8 if options.quick else 20)
    try:
        options.rtt = [float(t) if "." in t else int(t)
                       for t in options.rtt or (["0", "50"] if options.quick else
                                                ["0", "10", "50"])]
    except ValueError:
        parser.error("--rtt takes numbers of milliseconds")
    if options.runs < 1 or any(t < 0 for t in options.rtt):
        parser.error("--runs must be at least 1 and --rtt not negative")
    return parser, options


class Bench:
    """One whole measurement."""

    def __init__(self, options, subjects, loads, server, mountpoint, drops, log):
        self.options = options
        self.subjects = subjects
        self.loads = loads
        self.server = server
        self.mountpoint = mountpoint
        self.log = log
        self.cells = []
        self.verified = set()
        self.drops = drops

    def wanted(self, subject, rtt, load):
        if self.options.only:
            return any(pair.split("/")[0] in ("*", subject.name)
                       and pair.split("/")[-1] in ("*", load.name)
                       for pair in self.options.only)
        return bool(self.options.subjects) or subject.wants(rtt, load.name)

    def run(self):
        for rtt in self.options.rtt:
            for load in self.loads:
                chosen = [s for s in self.subjects if self.wanted(s, rtt, load)]
                if chosen:
                    self.run_row(chosen, rtt, load)

    def run_row(self, chosen, rtt, load):
        """All runs of a load, the subjects taking turns, each second round the other way."""
        row = {s.name: Cell(s.name, rtt, load.name, [], 0, [], [], {}, [], [],
                            self.options.runs) for s in chosen}
        spent = dict.fromkeys(row, 0.0)
        try:
            for turn in range(self.options.runs):
                for subject in chosen if turn % 2 == 0 else reversed(chosen):
                    cell = row[subject.name]
                    slow = not subject.full_runs and spent[subject.name] > self.options.patience
                    if slow or len(cell.failures) >= 2:
                        continue
                    start = time.monotonic()
                    row[subject.name] = self.run_once(subject, rtt, load, cell)
                    spent[subject.name] += time.monotonic() - start
        finally:
            self.cells += [cell for cell in row.values() if cell.values or cell.failures]

    def run_once(self, subject, rtt, load, cell):
        self.make_cold(subject)
        mount = Mount(subject, self.server, rtt, load, self.mountpoint)
        key = (subject.name, load.name, 0 if subject.peer else rtt)
        try:
            with mount:
                if load.name == "first":
                    result = self.first_byte(mount)
                    cpu = mount.cpu()
                else:
                    mount.start()
                    mount.wait()
                    result = load.run(mount, self.server)
                    cpu = mount.cpu()
                    if result.cut:
                        time.sleep(1)  # for the replies to what was killed
                    if key not in self.verified and not result.cut:
                        if load.verify(mount, self.server):
                            result.notes.append("contents verified")
                        self.verified.add(key)
        except (load_module.Failed, BenchError, proc.Stuck) as problem:
            self.log(f"  {subject.name} {load.name} RTT {rtt}: FAILED: {problem}")
            cell.failures.append(str(problem))
            return cell
        finally:
            load.cleanup(self.server)
        return self.record(cell, load, result, cpu, mount)

    def record(self, cell, load, result, cpu, mount):
        cell.values.append(result.value)
        cell.cpu.append(cpu)
        if mount.peak_mib:
            cell.peak.append(mount.peak_mib)
        for name, value in result.more.items():
            cell.more.setdefault(name, []).append(value)
        cell.notes.extend(result.notes + mount.trouble)
        more = "".join(f", {name} {value:.4g}" for name, value in result.more.items())
        trouble = "".join(f" ({text})" for text in mount.trouble)
        self.log(f"  {cell.subject:12} {cell.load:6} RTT {cell.rtt:<3} "
                 f"{'~' if result.cut else ' '}{result.value:9.2f} {load.unit}{more}{trouble}")
        return cell._replace(cut=cell.cut + result.cut)

    def first_byte(self, mount):
        """From the exec of the daemon to the first byte of a file, by a waiting process."""
        waiter = subprocess.Popen(
            [sys.executable, load_module.WORKER, "first", mount.path], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            if waiter.stdout.readline().strip() != "ready":
                raise BenchError(f"the waiting process failed: {waiter.stderr.read()}")
            started = mount.start()
            while waiter.poll() is None:
                if (mount.daemon.poll() is not None
                        or time.monotonic() > started + MOUNT_LIMIT):
                    raise BenchError(f"no first byte: {mount.last_words()}")
                time.sleep(0.01)
            if waiter.returncode != 0:
                raise BenchError(f"no first byte: {waiter.stderr.read().strip()}")
            return load_module.Result((float(waiter.stdout.read()) - started) * 1000)
        finally:
            if waiter.poll() is None:
                proc.kill_group(waiter, mount.rescue)
            waiter.stdout.close()
            waiter.stderr.close()

    def make_cold(self, subject):
        """Drops the page cache, then reads the programs in again: it is not the disk's day."""
        if not self.drops:
            return
        os.sync()
        with open("/proc/sys/vm/drop_caches", "w", encoding="ascii") as drop:
            drop.write("3")
        for command in ([subject.program, "--version"], ["ssh", "-V"], ["fusermount3", "-V"],
                        ["dd", "--version"], ["tar", "--version"], ["ls", "--version"],
                        [sys.executable, load_module.WORKER, "help"]):
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL, check=False, timeout=60)


def facts_about(options, subjects, caches):
    model = "unknown CPU"
    with open("/proc/cpuinfo", encoding="utf-8") as info:
        for line in info:
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    facts = {
        "machine": f"{os.cpu_count()} cores, {model}, Linux {platform.release()}",
        "date": time.strftime("%Y-%m-%d %H:%M %Z"),
        "runs": f"{options.runs} of each cell, time box {options.size.box:g} s"
                f"{', quick sizes' if options.quick else ''}",
        "server": f"OpenSSH on the loopback, {caches}",
    }
    for subject in subjects:
        facts[subject.name] = f"{subject.about}; {subject.version()}"
    return facts


def choose(parser, wanted, known, what):
    for name in wanted or []:
        if name != "*" and name not in known:
            parser.error(f"unknown {what} '{name}': known are {', '.join(known)}")
    return [item for name, item in known.items() if not wanted or name in wanted]


def check_machine():
    if not os.path.exists("/dev/fuse"):
        raise BenchError("/dev/fuse is missing: load the fuse module, or give the container "
                         "--device /dev/fuse --cap-add SYS_ADMIN")
    for program in ("ssh", "fusermount3", "tar", "dd"):
        if not shutil.which(program):
            raise BenchError(f"{program} was not found: install it")


def main():
    parser, options = parse_arguments()
    known, absent = make_subjects(
        shutil.which(options.moorfs) or options.moorfs,
        [word for option in options.moorfs_option for word in ("-o", option)])
    for name in absent:
        if name == "moorfs" and not (options.subjects and "moorfs" not in options.subjects):
            parser.error(f"{options.moorfs} is not a program: build it, or give --moorfs PATH")
        print(f"{name} is not installed: left out", file=sys.stderr)
    subjects = choose(parser, options.subjects, known, "subject")
    classes = {load.name: load for load in load_module.LOADS}
    chosen_loads = [load(options.size) for load in
                    choose(parser, options.loads, classes, "load")]
    for pair in options.only or []:
        left, _, right = pair.partition("/")
        choose(parser, [left], known, "subject")
        choose(parser, [right], classes, "load")
    return measure(options, subjects, chosen_loads)


def measure(options, subjects, chosen_loads):
    started = time.monotonic()
    forward_signals()
    check_machine()

    def log(text):
        print(f"[{time.monotonic() - started:5.0f} s]{text}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="moorbench-") as scratch:
        home, in_memory = data_home(3 * options.size.big_mib)
        # What lies in memory is never cold; a mount of its own for each run is.
        drops = not in_memory and os.geteuid() == 0 and not options.no_drop_caches
        server = bench = None
        try:
            proxy = options.delayproxy or build_delayproxy(
                HERE.parent / "servers" / "delayproxy.c", scratch)
            server = Server(scratch, proxy)
            server.data = Data(Path(home), options.size)
            mountpoint = Path(scratch) / "mnt"
            mountpoint.mkdir()
            bench = Bench(options, subjects, chosen_loads, server, mountpoint, drops,
                          log)
            bench.run()
        except KeyboardInterrupt as signal_name:
            log(f" interrupted {signal_name}: the tables show what was done")
        finally:
            if server:
                server.close()
            shutil.rmtree(home, ignore_errors=True)
    facts = facts_about(options, subjects, "data in memory" if in_memory else (
        f"data on disk, page cache {'dropped' if drops else 'not dropped'} before each run"))
    facts["took"] = f"{(time.monotonic() - started) / 60:.1f} minutes"
    return write_report(options, Report(subjects, chosen_loads, bench.cells if bench else [],
                                        facts))


def write_report(options, report):
    print(report.text())
    if options.json:
        Path(options.json).write_text(report.json() + "\n", encoding="utf-8")
    if options.markdown:
        Path(options.markdown).write_text(report.markdown(), encoding="utf-8")
    failed = any(cell.failures for cell in report.cells.values())
    return 1 if failed or not report.cells else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BenchError as problem:
        sys.exit(f"bench: {problem}")
