"""Tables of a finished (or interrupted) run: text for the terminal, markdown, JSON."""

import json
from collections import namedtuple

from . import stats

Cell = namedtuple("Cell", "subject rtt load values cut cpu peak more notes failures planned")


def number(value):
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def shown(cell):
    """A cell as text: the median, "~" when runs were cut, the count when runs are missing."""
    if cell is None:
        return ""
    if not cell.values:
        return "failed" if cell.failures else "-"
    text = ("~" if cell.cut else "") + number(stats.median(cell.values))
    if len(cell.values) < cell.planned:
        text += f" (n={len(cell.values)})"
    return text


def against(ours, theirs, load):
    """The comparison as text, e.g. "8.1x [7.9, 8.4]" or "1.0x no difference"."""
    if not (ours and theirs and ours.values and theirs.values):
        return ""
    seen = stats.compare(ours.values, theirs.values, load.more_is_better)
    ratio = f"{number(seen.ratio)}x [{number(seen.low)}, {number(seen.high)}]"
    if seen.verdict in ("better", "worse"):
        return f"{ratio} p={seen.p:.3g}" + (" SLOWER" if seen.verdict == "worse" else "")
    return f"{ratio} {seen.verdict}"


class Report:
    """Built from cells; `subjects` and `loads` give the order and the words."""

    def __init__(self, subjects, loads, cells, facts):
        self.subjects = subjects
        self.loads = loads
        self.cells = {(c.rtt, c.load, c.subject): c for c in cells}
        self.facts = facts
        self.rtts = sorted({c.rtt for c in cells})

    def tables(self):
        """[(title, header, rows)] in the order of printing."""
        made = []
        for rtt in self.rtts:
            made.append(self._medians(rtt))
            comparison = self._comparisons(rtt)
            if comparison[2]:
                made.append(comparison)
            made.append(self._costs(rtt))
        return made

    def _used(self, rtt):
        return [s for s in self.subjects
                if any((rtt, load.name, s.name) in self.cells for load in self.loads)]

    def _medians(self, rtt):
        used = self._used(rtt)
        rows = [
            [load.title, load.unit]
            + [shown(self.cells.get((rtt, load.name, s.name))) for s in used]
            for load in self._run(rtt)]
        rows += self._further(rtt, used)
        return (f"RTT {rtt} ms: medians", ["load", "unit"] + [s.name for s in used], rows)

    def _further(self, rtt, used):
        rows = []
        for load in self._run(rtt):
            cells = [self.cells.get((rtt, load.name, s.name)) for s in used]
            for name in sorted({name for c in cells if c for name in c.more}):
                rows.append([f"  {load.name}: {name}", ""] + [
                    number(stats.median(c.more[name])) if c and c.more.get(name) else ""
                    for c in cells])
        return rows

    def _run(self, rtt):
        return [load for load in self.loads
                if any((rtt, load.name, s.name) in self.cells for s in self.subjects)]

    def _comparisons(self, rtt):
        used = self._used(rtt)
        ours = next((s for s in used if not s.peer), None)
        peers = [s for s in used if s.peer] if ours else []
        rows = [
            [load.title] + [
                against(self.cells.get((rtt, load.name, ours.name)),
                        self.cells.get((rtt, load.name, peer.name)), load) for peer in peers]
            for load in self._run(rtt)] if peers else []
        title = (f"RTT {rtt} ms: how many times better moorfs is (ratio of medians, 95 % "
                 "bootstrap interval, Mann-Whitney U)")
        return (title, ["load"] + [f"vs {peer.name}" for peer in peers], rows)

    def _costs(self, rtt):
        used = self._used(rtt)
        rows = []
        for load in self._run(rtt):
            row = [load.title]
            for subject in used:
                cell = self.cells.get((rtt, load.name, subject.name))
                if not cell or not cell.cpu:
                    row.append("")
                    continue
                peak = number(stats.median(cell.peak)) if cell.peak else "-"
                row.append(f"{stats.median(cell.cpu):.2f} s, {peak} MiB")
            rows.append(row)
        return (f"RTT {rtt} ms: CPU of daemon and helpers in one run, peak RSS of the daemon",
                ["load"] + [s.name for s in used], rows)

    def remarks(self):
        """Facts about single cells, each once."""
        lines = []
        for cell in self.cells.values():
            place = f"{cell.subject}, {cell.load}, RTT {cell.rtt} ms"
            if cell.cut:
                lines.append(f"{place}: {cell.cut} of {len(cell.values)} runs were cut by the "
                             "time box; their rate until then counts")
            if len(cell.values) < cell.planned and not cell.failures:
                lines.append(f"{place}: {len(cell.values)} of {cell.planned} runs, "
                             "as it is slow")
            lines += [f"{place}: {note}" for note in dict.fromkeys(cell.notes)
                      if note != "contents verified"]
            lines += [f"{place}: FAILED: {text}" for text in dict.fromkeys(cell.failures)]
        checked = [c for c in self.cells.values() if "contents verified" in c.notes]
        if checked:
            lines.append(f"contents verified in {len(checked)} cells")
        return lines

    def text(self):
        out = [f"{name}: {value}" for name, value in self.facts.items()]
        for title, header, rows in self.tables():
            out += ["", title, *_aligned([header, *rows])]
        return "\n".join(out + [""] + self.remarks()) + "\n"

    def markdown(self):
        out = [f"- {name}: {value}" for name, value in self.facts.items()]
        for title, header, rows in self.tables():
            out += ["", f"### {title}", "", _row(header), _row(["---"] * len(header))]
            out += [_row([cell.strip() for cell in row]) for row in rows]
        return "\n".join(out + [""] + [f"- {line}" for line in self.remarks()]) + "\n"

    def json(self):
        cells = [cell._asdict() for cell in self.cells.values()]
        units = {load.name: {"unit": load.unit, "title": load.title,
                             "more_is_better": load.more_is_better} for load in self.loads}
        return json.dumps({"facts": self.facts, "loads": units, "cells": cells}, indent=1)


def _aligned(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip()
             for row in rows]
    return [lines[0], "  ".join("-" * width for width in widths), *lines[1:]]


def _row(cells):
    return "| " + " | ".join(cells) + " |"
