"""Real programs at work on the mount."""

import mmap
import os
import sqlite3
import subprocess

import pytest

from mount.expect import make, needs, pattern, run, sha256

pytestmark = [pytest.mark.heavy, pytest.mark.limit(120)]
MIB = 1 << 20

GIT = ["git", "-c", "user.name=T", "-c", "user.email=t@example.org", "-c",
       "init.defaultBranch=main", "-c", "gc.auto=0", "-c", "safe.directory=*"]


def git(*words, cwd):
    return run(*GIT, *words, cwd=cwd).stdout


def test_git(mnt, base):
    needs("git")
    repo = mnt / "repo"
    repo.mkdir()
    git("init", "-q", cwd=repo)
    for number in range(40):
        directory = repo / f"dir{number % 5}"
        directory.mkdir(exist_ok=True)
        make(directory / f"file{number}", b"line\n" * number)
    git("add", ".", cwd=repo)
    git("commit", "-q", "-m", "first", cwd=repo)
    for _ in range(2):
        assert git("status", "--porcelain", cwd=repo) == ""
    make(repo / "dir0" / "file0", b"changed\n")
    assert git("status", "--porcelain", cwd=repo) == " M dir0/file0\n"
    git("commit", "-q", "-a", "-m", "second", cwd=repo)
    git("checkout", "-q", "-b", "branch", "HEAD~1", cwd=repo)
    git("mv", "dir1", "moved", cwd=repo)
    git("commit", "-q", "-m", "moved", cwd=repo)
    git("merge", "-q", "-m", "merged", "main", cwd=repo)
    git("gc", "-q", "--prune=now", cwd=repo)
    git("fsck", "--strict", cwd=repo)
    git("clone", "-q", repo, mnt / "clone", cwd=mnt)
    git("clone", "-q", repo, base / "outside", cwd=mnt)
    for _ in range(2):
        assert git("status", "--porcelain", cwd=repo) == ""
        assert git("status", "--porcelain", cwd=mnt / "clone") == ""
    assert git("log", "--oneline", cwd=mnt / "clone").count("\n") == 4
    assert git("rev-parse", "HEAD", cwd=mnt / "clone") == git(
        "rev-parse", "HEAD", cwd=base / "outside")


@pytest.mark.parametrize("mode", ["DELETE", "TRUNCATE", "PERSIST", "WAL"])
def test_sqlite(mnt, remote, mode):
    with sqlite3.connect(mnt / "data.db") as database:
        assert database.execute(f"PRAGMA journal_mode={mode}").fetchone()[0].upper() == mode
        database.execute("CREATE TABLE t (n INTEGER PRIMARY KEY, text TEXT)")
        for turn in range(10):
            with database:
                database.executemany("INSERT INTO t VALUES (?, ?)", [
                    (turn * 100 + n, "text %d " % n * 20) for n in range(100)])
        try:
            with database:
                database.execute("DELETE FROM t")
                raise RuntimeError
        except RuntimeError:
            pass  # rolled back
        assert database.execute("SELECT count(*) FROM t").fetchone() == (1000,)
        database.execute("VACUUM")
    with sqlite3.connect(mnt / "data.db") as second:
        assert second.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert second.execute("SELECT count(*), sum(n) FROM t").fetchone() == (1000, 499500)
        second.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()
    second.close()
    with sqlite3.connect(remote / "data.db") as behind:
        assert behind.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert behind.execute("SELECT count(*) FROM t").fetchone() == (1000,)
    behind.close()


def test_two_sqlite_processes_take_turns(mnt):
    needs("sqlite3")
    database = mnt / "data.db"
    run("sqlite3", database, "CREATE TABLE t (who, n)")
    script = ".timeout 60000\n" + "".join(f"INSERT INTO t VALUES ('{{}}', {n});\n"
                                          for n in range(30))
    children = [subprocess.Popen(["sqlite3", str(database)], stdin=subprocess.PIPE, text=True)
                for _ in range(2)]
    for name, child in zip("ab", children):
        child.stdin.write(script.format(*[name] * 30))
        child.stdin.close()
    for child in children:
        assert child.wait() == 0
    assert run("sqlite3", database, "SELECT who, count(*) FROM t GROUP BY who").stdout == \
        "a|30\nb|30\n"
    assert run("sqlite3", database, "PRAGMA integrity_check").stdout == "ok\n"


@pytest.fixture
def tree(base):
    """A local tree with what trees have."""
    top = base / "tree"
    for directory in range(6):
        (top / f"dir{directory}" / "sub").mkdir(parents=True)
        for number in range(25):
            path = top / f"dir{directory}" / "sub" / f"file {number}"
            path.write_bytes(pattern(number * 517, number))
            os.chmod(path, 0o755 if number % 5 == 0 else 0o644)
            os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
    (top / "empty").mkdir()
    (top / "big").write_bytes(pattern(3 * MIB))
    (top / "link").symlink_to("dir0/sub/file 1")
    os.link(top / "big", top / "hard")
    return top


def test_tar_out_and_in(mnt, tree, base):
    run("tar", "-C", tree, "-cf", mnt / "tree.tar", ".")
    (mnt / "out").mkdir()
    run("tar", "-C", mnt / "out", "-xpf", mnt / "tree.tar")
    run("diff", "-r", "--no-dereference", tree, mnt / "out")
    run("tar", "-C", mnt / "out", "-df", mnt / "tree.tar")
    run("tar", "-C", mnt / "out", "-cf", base / "again.tar", ".")
    assert os.stat(mnt / "out" / "dir1" / "sub" / "file 7").st_mtime == 1_000_000_007


def test_rsync_twice(mnt, tree, remote):
    needs("rsync")
    words = ["rsync", "-aH", "--itemize-changes", f"{tree}/", f"{mnt}/copy/"]
    first = run(*words).stdout
    assert first.count("\n") > 150
    assert run(*words).stdout == ""
    run("diff", "-r", "--no-dereference", tree, remote / "copy")
    assert run("rsync", "-aH", "--itemize-changes", "--checksum", f"{mnt}/copy/",
               f"{tree}/").stdout == ""
    assert os.stat(remote / "copy" / "big").st_ino == os.stat(remote / "copy" / "hard").st_ino


def test_rsync_inplace_and_delete(mnt, tree):
    needs("rsync")
    run("rsync", "-a", f"{tree}/", f"{mnt}/copy/")
    content = bytearray(pattern(3 * MIB))
    content[MIB:MIB + 10] = b"0123456789"
    (tree / "big").write_bytes(content)
    os.utime(tree / "big", (1_100_000_000, 1_100_000_000))
    run("rm", "-r", tree / "dir3")
    run("rsync", "-a", "--inplace", "--no-whole-file", "--delete", f"{tree}/", f"{mnt}/copy/")
    run("diff", "-r", "--no-dereference", tree, mnt / "copy")


def test_cp_and_mv_of_a_tree(mnt, tree):
    run("cp", "-a", tree, mnt / "one")
    run("cp", "-a", mnt / "one", mnt / "two")
    run("mv", mnt / "two", mnt / "three")
    run("diff", "-r", "--no-dereference", tree, mnt / "three")
    assert run("find", mnt / "three", "-newermt", "2010-01-01", "-name", "file*").stdout == ""
    assert not (mnt / "two").exists()


def test_du_and_find_agree_with_the_server(mnt, tree, remote):
    run("cp", "-a", tree, remote / "tree")
    words = ["find", ".", "-printf", "%y %m %p %l %s %TY-%Tm-%Td %TH:%TM\n"]
    ours, theirs = (sorted(run(*words, cwd=top).stdout.splitlines()) for top in (mnt, remote))
    assert ours == theirs
    assert run("du", "-sb", "--apparent-size", mnt / "tree" / "dir1" / "sub").returncode == 0


PROJECT = {
    "main.c": '#include <stdio.h>\n#include "part.h"\n'
              'int main(void) { printf("%d\\n", part(20) + part(22)); return 0; }\n',
    "part.h": "int part(int n);\n",
    "part.c": '#include "part.h"\nint part(int n) { return n; }\n',
    "Makefile": "prog: main.o part.o\n\t$(CC) -o $@ main.o part.o\n"
                "main.o part.o: part.h\nclean:\n\trm -f prog *.o\n",
}


def test_a_build(mnt):
    needs("make", "cc")
    for name, text in PROJECT.items():
        make(mnt / name, text.encode())
    run("make", "-j2", cwd=mnt)
    assert run(mnt / "prog").stdout == "42\n"
    assert "up to date" in run("make", cwd=mnt).stdout
    make(mnt / "part.h", PROJECT["part.h"].encode() + b"/* changed */\n")
    os.utime(mnt / "part.h", (os.stat(mnt / "prog").st_mtime + 2,) * 2)
    assert "main.c" in run("make", cwd=mnt).stdout
    run("make", "clean", cwd=mnt)
    assert sorted(os.listdir(mnt)) == sorted(PROJECT)


def save_as_an_editor(path, content):
    """Write a temporary file, sync it, rename it over the old one, as vim and emacs do."""
    temporary = path.with_name(f".{path.name}.swp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, content)
    os.fchmod(fd, 0o644)
    os.fsync(fd)
    os.close(fd)
    os.rename(temporary, path)
    directory = os.open(path.parent, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def test_saving_in_an_editor(mnt, remote):
    for number in range(25):
        text = b"version %d\n" % number * (number + 1)
        save_as_an_editor(mnt / "text", text)
        assert (mnt / "text").read_bytes() == text
        assert (remote / "text").read_bytes() == text
        assert os.stat(mnt / "text").st_size == len(text)
    assert os.listdir(remote) == ["text"]


def test_saving_with_a_backup_copy(mnt, remote):
    make(mnt / "text", b"old")
    for number in range(5):
        os.rename(mnt / "text", mnt / "text~")
        make(mnt / "text", b"new %d" % number)
        assert (mnt / "text").read_bytes() == b"new %d" % number
    assert (remote / "text~").read_bytes() == b"new 3"


def test_sed_in_place_and_patch(mnt):
    make(mnt / "file", b"one\ntwo\nthree\n")
    run("sed", "-i", "s/two/TWO/", mnt / "file")
    assert (mnt / "file").read_bytes() == b"one\nTWO\nthree\n"
    needs("patch")
    make(mnt / "diff", b"--- file\n+++ file\n@@ -1,3 +1,3 @@\n one\n-TWO\n+2\n three\n")
    run("patch", "-p0", "-i", "diff", cwd=mnt)
    assert (mnt / "file").read_bytes() == b"one\n2\nthree\n"


def test_python_runs_from_the_mount_and_maps_files(mnt):
    os.mkdir(mnt / "package")
    make(mnt / "package" / "__init__.py", b"")
    make(mnt / "package" / "module.py", b"def answer():\n    return 42\n")
    for _ in range(2):
        assert run("python3", "-c", "from package import module; print(module.answer())",
                   cwd=mnt).stdout == "42\n"
    make(mnt / "data", pattern(5 * MIB))
    with open(mnt / "data", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        assert view.find(pattern(5 * MIB)[4 * MIB:4 * MIB + 64]) >= 0
        view[100:104] = b"mmap"
        view.flush()
    assert (mnt / "data").read_bytes()[100:104] == b"mmap"


def test_zip_and_gzip(mnt, tree):
    run("python3", "-m", "zipfile", "-c", mnt / "a.zip", tree / "dir1")
    run("python3", "-m", "zipfile", "-e", mnt / "a.zip", mnt / "out")
    run("diff", "-r", tree / "dir1", mnt / "out" / "dir1")
    run("cp", tree / "big", mnt / "big")
    digest = sha256(mnt / "big")
    run("gzip", mnt / "big")
    run("gunzip", mnt / "big.gz")
    assert sha256(mnt / "big") == digest


def test_a_program_is_executed_from_the_mount(mnt):
    make(mnt / "script", b"#!/bin/sh\necho ran $1\n", 0o755)
    assert run(mnt / "script", "well").stdout == "ran well\n"
    run("cp", "/bin/true", mnt / "true")
    run(mnt / "true")
