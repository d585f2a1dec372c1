#!/usr/bin/env python3
"""
A folder of src/ includes only headers of the folders below it; a third-party header appears
only where the design has its place.
"""

import re

from sources import ROOT, c_files, finish

# From the top floor down; protocols stand side by side.
BELOW = {
    "fuse": {"vfs", "io", "remote", "base"},
    "vfs": {"io", "remote", "base"},
    "io": {"remote", "base"},
    "remote": {"sftp", "ftp", "transport", "base"},
    "sftp": {"transport", "base"},
    "ftp": {"transport", "base"},
    "transport": {"base"},
    "base": set(),
    # beside the floors
    "config": {"vfs", "io", "remote", "sftp", "ftp", "transport", "control", "base"},
    "control": {"base"},
}
# Single headers that may be included across: the contracts between pool and protocols, and what
# the user asked for.
ALSO = {
    "sftp": {"remote/op.h", "remote/session.h", "remote/file.h"},
    "ftp": {"remote/op.h", "remote/session.h", "remote/file.h"},
    "fuse": {"config/config.h"},
}
THIRD_PARTY = {
    r"libssh2.*\.h": r"src/transport/ssh2",
    r"curl/.*": r"src/(transport/tcp|config/url)",
    r"openssl/.*": r"src/transport/",
    r"fuse.*\.h": r"src/fuse/",
    r"cmocka\.h": r"tests/unit/",
}
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def complain_about_floor(path, header):
    parts = path.parts
    if parts[0] != "src" or len(parts) < 3:  # main.c and its neighbours build the whole house
        return None
    folder = parts[1]
    if folder not in BELOW:
        return f"the folder {folder}/ has no place in the table of {__file__}"
    target = header.split("/")[0]
    if "/" not in header:
        return f"'{header}': name headers from src/ on, as \"{folder}/{header}\""
    if target == folder or target in BELOW[folder] or header in ALSO.get(folder, ()):
        return None
    return f"'{header}': {folder}/ may not include {target}/"


def complain_about_third_party(path, header):
    for pattern, place in THIRD_PARTY.items():
        if re.fullmatch(pattern, header) and not re.match(place, str(path)):
            return f"<{header}> belongs into {place} only"
    return None


def main():
    complaints, files = [], c_files()
    for path in files:
        for quote, header in INCLUDE.findall((ROOT / path).read_text()):
            complain = complain_about_floor if quote == '"' else complain_about_third_party
            complaint = None if header == "config.h" else complain(path, header)
            if complaint:
                complaints.append(f"{path}: {complaint}")
    finish(complaints, len(files))


main()
