"""The C files of the repository, for the checks in this folder."""

import os
import sys
from pathlib import Path

ROOT = Path(os.environ.get("srcdir") or Path(__file__).resolve().parents[2]).resolve()
FOLDERS = ("src", "mount", "tests")


def c_files(folders=FOLDERS):
    """Paths of all .c and .h files, below the root, sorted."""
    found = [path for folder in folders for path in (ROOT / folder).rglob("*.[ch]")]
    return sorted(path.relative_to(ROOT) for path in found)


def finish(complaints, checked):
    """Prints the complaints; the exit code of the check."""
    for complaint in complaints:
        print(complaint)
    print(f"{checked} files checked, {len(complaints)} complaints")
    if checked == 0:
        print("nothing was found to check")
        sys.exit(1)
    sys.exit(1 if complaints else 0)
