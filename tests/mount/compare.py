"""The model's measure: two results, or two trees, that must be the same."""

import errno
import os
import stat

TIME_TOLERANCE_SECONDS = 3  # a time of ours is whole seconds; "now" is not the same twice


class Mismatch(Exception):
    pass


def result_of(call, *args):
    """What a call gives, comparable: its value, or the name of its errno."""
    try:
        return "ok", call(*args)
    except OSError as error:
        return "error", errno.errorcode.get(error.errno, str(error.errno))


def facts(st):
    """What both sides must agree on: a directory's size and count of links mean nothing."""
    is_dir = stat.S_ISDIR(st.st_mode)
    return {"mode": oct(st.st_mode), "size": None if is_dir else st.st_size,
            "nlink": None if is_dir else st.st_nlink, "uid": st.st_uid, "gid": st.st_gid,
            "mtime": st.st_mtime}


def differ(one, other):
    """Compares two results; times within the tolerance."""
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return any(differ(a, b) for a, b in zip(one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() != other.keys() or any(differ(one[key], other[key]) for key in one)
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) > TIME_TOLERANCE_SECONDS
    return one != other


def brief(value):
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:200]}...({len(text)} characters)"


def first_difference(one, other):
    if not (isinstance(one, bytes) and isinstance(other, bytes)):
        return ""
    for at, (left, right) in enumerate(zip(one, other)):
        if left != right:
            return f" (lengths {len(one)} and {len(other)}, first difference at {at})"
    return f" (lengths {len(one)} and {len(other)})"


def difference(one, other):
    """Two results that differ, in words."""
    if isinstance(one[1], dict) and isinstance(other[1], dict):
        lines = tree_differences(one[1], other[1])
        if lines:
            return "reference and mount: " + "; ".join(lines[:10])
    return (f"reference {brief(one)}, mount {brief(other)}"
            f"{first_difference(one[1], other[1])}")


def tree(top, data=True):
    """All that is below a directory: names, attributes and, if wanted, contents."""
    found = {}
    for directory, dirs, files in os.walk(top):
        for name in dirs + files:
            path = os.path.join(directory, name)
            st = os.lstat(path)
            entry = facts(st)
            if stat.S_ISLNK(st.st_mode):
                entry["target"] = os.readlink(path)
            elif stat.S_ISREG(st.st_mode) and data:
                with open(path, "rb") as file:
                    entry["data"] = file.read()
            found[os.path.relpath(path, top)] = entry
    return found


def tree_differences(one, other):
    """Sentences about where two trees, or the facts about one file, differ."""
    lines = [f"only in one of them: {name}" for name in sorted(one.keys() ^ other.keys())]
    for name in sorted(one.keys() & other.keys()):
        if not isinstance(one[name], dict):
            if differ(one[name], other[name]):
                lines.append(f"{name} is {brief(one[name])} and {brief(other[name])}")
            continue
        for key in one[name]:
            left, right = one[name][key], other[name].get(key)
            if differ(left, right):
                lines.append(f"{name}: {key} is {brief(left)[:80]} and {brief(right)[:80]}"
                             f"{first_difference(left, right)}")
    return lines


class Sides:
    """The reference (0) and the mount (1); every call is made on both and compared."""

    def __init__(self, roots, history):
        self.roots, self.history = roots, history

    def path(self, side, relative):
        return os.path.join(self.roots[side], relative)

    def both(self, name, call, *shown):
        """call(side) on both; the reference's result, once the mount's is the same."""
        self.history(name, *shown)
        results = [result_of(call, side) for side in (0, 1)]
        if differ(*results):
            raise Mismatch(f"{name}{shown}: {difference(*results)}")
        return results[0]
