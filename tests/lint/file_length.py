#!/usr/bin/env python3
"""No source file is longer than 700 lines: a longer one has two subjects."""

from sources import ROOT, c_files, finish

LIMIT = 700


def main():
    files = c_files() + sorted(
        path.relative_to(ROOT) for folder in ("tests", "man") for suffix in ("py", "sh")
        for path in (ROOT / folder).rglob(f"*.{suffix}"))
    complaints = []
    for path in files:
        lines = (ROOT / path).read_text().count("\n")
        if lines > LIMIT:
            complaints.append(f"{path}: {lines} lines, more than {LIMIT}")
    finish(complaints, len(files))


main()
