#!/usr/bin/env python3
"""Functions that have a safer form are not called."""

import re

from sources import ROOT, c_files, finish

BANNED = {
    "strcpy": "snprintf or memcpy with a known length", "strcat": "bytes_add or snprintf",
    "strncpy": "snprintf: strncpy may leave no NUL", "strncat": "snprintf",
    "sprintf": "snprintf", "vsprintf": "vsnprintf", "gets": "getline",
    "atoi": "strtol with checks", "atol": "strtol with checks", "atoll": "strtoll with checks",
    "atof": "strtod with checks", "strtok": "strsep or strcspn",
    "scanf": "strtol and friends", "sscanf": "strtol and friends",
    "fscanf": "getline and strtol",
    "system": "fork and exec with an argument list", "popen": "fork and exec",
    "tmpnam": "mkstemp", "mktemp": "mkstemp", "tempnam": "mkstemp",
    "alloca": "malloc",
    "gethostbyname": "getaddrinfo", "inet_ntoa": "inet_ntop", "inet_addr": "inet_pton",
    "localtime": "localtime_r", "gmtime": "gmtime_r", "ctime": "strftime",
    "asctime": "strftime",
}
CALL = re.compile(r"(?<![\w.>])(" + "|".join(BANNED) + r")\s*\(")
NOISE = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'", re.DOTALL)


def blank(match):
    """Comments and strings go, line ends stay."""
    return re.sub(r"[^\n]", " ", match.group())


def main():
    complaints, files = [], c_files()
    for path in files:
        text = NOISE.sub(blank, (ROOT / path).read_text())
        for match in CALL.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            complaints.append(f"{path}:{line}: {match[1]}: use {BANNED[match[1]]}")
    finish(complaints, len(files))


main()
