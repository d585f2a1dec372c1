"""The bytes of files: reading, writing, appending, mapping, syncing and copying them."""

import errno
import mmap
import os
import threading

import pytest

from mount.expect import fails, make, pattern, run, sha256
from servers.process import wait_until

KIB, MIB = 1 << 10, 1 << 20


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 32 * KIB, 128 * KIB + 1, 255 * KIB,
                                  256 * KIB, 3 * MIB + 7])
def test_what_is_written_is_read(mnt, remote, size):
    content = pattern(size)
    make(mnt / "file", content)
    assert (remote / "file").read_bytes() == content
    assert (mnt / "file").read_bytes() == content


def test_writes_into_the_middle(mnt, remote):
    content = bytearray(pattern(700 * KIB))
    make(mnt / "file", bytes(content))
    with open(mnt / "file", "r+b", buffering=0) as file:
        for offset, length in ((0, 1), (4095, 2), (100_000, 70_000), (300 * KIB - 1, 3),
                               (700 * KIB - 10, 50)):
            piece = pattern(length, seed=offset + 1)
            assert os.pwrite(file.fileno(), piece, offset) == length
            content[offset:offset + length] = piece
            assert os.pread(file.fileno(), length + 20, max(0, offset - 10)) == \
                content[max(0, offset - 10):max(0, offset - 10) + length + 20]
    assert (remote / "file").read_bytes() == content


def test_a_read_behind_the_end_gives_nothing(mnt):
    make(mnt / "file", b"12345")
    with open(mnt / "file", "rb", buffering=0) as file:
        assert os.pread(file.fileno(), 10, 5) == b""
        assert os.pread(file.fileno(), 10, 1 << 40) == b""
        assert os.pread(file.fileno(), 10, 3) == b"45"


def test_a_hole_reads_as_zeros(mnt, remote):
    with open(mnt / "file", "wb", buffering=0) as file:
        os.pwrite(file.fileno(), b"end", 5 * MIB)
    assert os.stat(mnt / "file").st_size == 5 * MIB + 3
    assert (mnt / "file").read_bytes() == bytes(5 * MIB) + b"end"
    assert (remote / "file").read_bytes() == bytes(5 * MIB) + b"end"


def test_a_file_larger_than_4_gib(mnt, remote):
    with open(mnt / "file", "w+b", buffering=0) as file:
        os.pwrite(file.fileno(), b"far", (5 << 30) + 1)
        assert os.pread(file.fileno(), 10, 5 << 30) == b"\0far"
    assert os.stat(remote / "file").st_size == (5 << 30) + 4


def test_o_trunc_empties_the_file(mnt, remote):
    make(mnt / "file", b"a long content")
    fd = os.open(mnt / "file", os.O_WRONLY | os.O_TRUNC)
    assert os.fstat(fd).st_size == 0
    os.write(fd, b"short")
    os.close(fd)
    assert (remote / "file").read_bytes() == b"short"
    assert (mnt / "file").read_bytes() == b"short"


def test_append_goes_to_the_end(mnt, remote):
    make(mnt / "file", b"one\n")
    with open(mnt / "file", "ab", buffering=0) as file:
        file.write(b"two\n")
        file.seek(0)
        file.write(b"three\n")
    assert (remote / "file").read_bytes() == b"one\ntwo\nthree\n"
    assert (mnt / "file").read_bytes() == b"one\ntwo\nthree\n"


def test_append_by_the_shell(mnt, remote):
    for number in range(5):
        run("sh", "-c", f"echo {number} >> file", cwd=mnt)
    assert (remote / "file").read_text() == "0\n1\n2\n3\n4\n"


def test_two_writers_that_append_lose_nothing(mnt, remote):
    def writer(letter):
        with open(mnt / "log", "ab", buffering=0) as file:
            for number in range(200):
                file.write(b"%s%04d%s\n" % (letter, number, letter * 50))
    make(mnt / "log")
    threads = [threading.Thread(target=writer, args=(letter,)) for letter in (b"a", b"b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (remote / "log").read_bytes().splitlines()
    assert len(lines) == 400
    for letter in (b"a", b"b"):
        mine = [line for line in lines if line.startswith(letter)]
        assert mine == [b"%s%04d%s" % (letter, n, letter * 50) for n in range(200)]


def test_append_set_later_by_fcntl(mnt, remote):
    import fcntl
    make(mnt / "file", b"12345")
    with open(mnt / "file", "r+b", buffering=0) as file:
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)
        file.write(b"6")
    assert (remote / "file").read_bytes() == b"123456"


def test_wrong_direction(mnt):
    make(mnt / "file", b"x")
    fd = os.open(mnt / "file", os.O_RDONLY)
    with fails("EBADF"):
        os.write(fd, b"y")
    os.close(fd)
    fd = os.open(mnt / "file", os.O_WRONLY)
    with fails("EBADF"):
        os.read(fd, 1)
    os.close(fd)


def test_a_write_is_seen_by_another_reader_at_once(mnt):
    with open(mnt / "file", "wb", buffering=0) as writer, \
            open(mnt / "file", "rb", buffering=0) as reader:
        for number in range(50):
            writer.write(b"%08d" % number)
            assert reader.read(100) == b"%08d" % number


@pytest.mark.parametrize("sync", [os.fsync, os.fdatasync])
def test_after_fsync_the_server_has_it(mnt, remote, sync):
    with open(mnt / "file", "wb", buffering=0) as file:
        file.write(pattern(300 * KIB))
        sync(file.fileno())
        assert (remote / "file").read_bytes() == pattern(300 * KIB)


def test_after_close_the_server_has_it(mnt, remote):
    for number in range(30):
        make(mnt / f"f{number}", pattern(70_000, number))
        assert (remote / f"f{number}").read_bytes() == pattern(70_000, number)


def test_fsync_of_a_directory(mnt):
    os.mkdir(mnt / "dir")
    fd = os.open(mnt / "dir", os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)


def test_o_sync_writes_are_on_the_server_when_they_return(mnt, remote):
    fd = os.open(mnt / "file", os.O_WRONLY | os.O_CREAT | os.O_SYNC)
    os.write(fd, b"now")
    assert (remote / "file").read_bytes() == b"now"
    os.close(fd)


def test_the_sync_option_waits_for_each_write(mount, remote):
    mnt = mount("sync").point
    with open(mnt / "file", "wb", buffering=0) as file:
        for number in range(10):
            file.write(b"%d" % number)
            assert (remote / "file").stat().st_size == number + 1


def test_a_mapped_file_reads_right(mnt, remote):
    content = pattern(2 * MIB)
    (remote / "file").write_bytes(content)
    with open(mnt / "file", "rb") as file, \
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        assert view[MIB:MIB + 100] == content[MIB:MIB + 100]
        assert view[:] == content


def test_a_shared_mapping_writes_to_the_server(mnt, remote):
    make(mnt / "file", pattern(MIB))
    with open(mnt / "file", "r+b") as file:
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_WRITE) as view:
            view[5:10] = b"HELLO"
            view[MIB - 3:] = b"END"
            view.flush()
        os.fsync(file.fileno())
    expected = bytearray(pattern(MIB))
    expected[5:10], expected[MIB - 3:] = b"HELLO", b"END"
    assert (remote / "file").read_bytes() == expected
    assert (mnt / "file").read_bytes() == expected


def test_a_private_mapping_changes_nothing(mnt, remote):
    make(mnt / "file", b"x" * 10_000)
    with open(mnt / "file", "r+b") as file, \
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as view:
        view[0:5] = b"HELLO"
        assert view[0:6] == b"HELLOx"
    assert (remote / "file").read_bytes() == b"x" * 10_000


def test_a_mapping_grows_with_its_file(mnt, remote):
    with open(mnt / "file", "w+b") as file:
        os.ftruncate(file.fileno(), 100_000)
        with mmap.mmap(file.fileno(), 100_000) as view:
            view[99_999:] = b"!"
    assert (remote / "file").read_bytes() == bytes(99_999) + b"!"


def test_lseek_finds_data_and_the_end(mnt):
    make(mnt / "file", b"12345")
    with open(mnt / "file", "rb", buffering=0) as file:
        assert os.lseek(file.fileno(), 0, os.SEEK_END) == 5
        assert os.lseek(file.fileno(), 0, os.SEEK_DATA) == 0
        assert os.lseek(file.fileno(), 0, os.SEEK_HOLE) == 5
        with fails("ENXIO"):
            os.lseek(file.fileno(), 10, os.SEEK_DATA)


def test_fallocate_may_be_refused_but_not_ignored(mnt):
    with open(mnt / "file", "wb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, 10_000)
        except OSError as error:
            assert error.errno in (errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL)
        else:
            assert os.fstat(file.fileno()).st_size == 10_000


def test_copy_file_range_copies(mnt, remote):
    content = pattern(3 * MIB)
    make(mnt / "from", content)
    with open(mnt / "from", "rb") as source, open(mnt / "to", "wb") as target:
        done = 0
        while done < len(content):
            done += os.copy_file_range(source.fileno(), target.fileno(), len(content) - done)
    assert (remote / "to").read_bytes() == content
    assert (mnt / "to").read_bytes() == content


def test_copy_file_range_copies_a_part_into_the_middle(mnt, remote):
    make(mnt / "from", pattern(MIB))
    make(mnt / "to", b"." * MIB)
    (mnt / "to").read_bytes()
    with open(mnt / "from", "rb") as source, open(mnt / "to", "r+b") as target:
        assert os.copy_file_range(source.fileno(), target.fileno(), 1000, 500, 7000) == 1000
    expected = b"." * 7000 + pattern(MIB)[500:1500] + b"." * (MIB - 8000)
    assert (remote / "to").read_bytes() == expected
    assert (mnt / "to").read_bytes() == expected


def test_copy_file_range_sees_what_was_just_written(mnt, remote):
    with open(mnt / "from", "w+b", buffering=0) as source, open(mnt / "to", "wb") as target:
        source.write(b"fresh content")
        assert os.copy_file_range(source.fileno(), target.fileno(), 100, 0, 0) == 13
    assert (remote / "to").read_bytes() == b"fresh content"


def copy_through_the_line(mnt, line):
    make(mnt / "from", pattern(24 * MIB))
    before = line.wait_idle()
    run("cp", "--reflink=auto", mnt / "from", mnt / "to")
    after = line.wait_idle()
    return after["up"] - before["up"] + after["down"] - before["down"]


@pytest.mark.transports("ssh2", "ssh")
def test_cp_inside_the_mount_leaves_the_bytes_on_the_server(line, mount, remote):
    moved = copy_through_the_line(mount().point, line)
    assert sha256(remote / "to") == sha256(remote / "from")
    assert moved < 300 * KIB, f"{moved} bytes went through the client"


def test_concurrent_readers_and_a_writer(mnt, remote):
    """Readers of the written part see it whole while the writer goes on."""
    block, blocks = 64 * KIB, 60
    progress = [0]
    wrong = []

    def reader(step):
        with open(mnt / "file", "rb", buffering=0) as file:
            while progress[0] < blocks:
                for number in range(0, progress[0], step):
                    if os.pread(file.fileno(), block, number * block) != pattern(block, number):
                        wrong.append(number)
                        return

    make(mnt / "file")
    threads = [threading.Thread(target=reader, args=(step,)) for step in (1, 3, 7)]
    for thread in threads:
        thread.start()
    with open(mnt / "file", "r+b", buffering=0) as file:
        for number in range(blocks):
            file.write(pattern(block, number))
            progress[0] = number + 1
    for thread in threads:
        thread.join()
    assert wrong == []


def test_many_files_open_at_once(mnt):
    files = [open(mnt / f"f{number}", "w+b", buffering=0) for number in range(300)]
    for number, file in enumerate(files):
        file.write(b"%d" % number)
    for number, file in enumerate(files):
        assert os.pread(file.fileno(), 10, 0) == b"%d" % number
        file.close()


def test_local_locks_work(mnt):
    import fcntl
    make(mnt / "file")
    with open(mnt / "file", "r+b") as one, open(mnt / "file", "r+b") as two:
        fcntl.flock(one, fcntl.LOCK_EX)
        with fails("EWOULDBLOCK", "EAGAIN"):
            fcntl.flock(two, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(one, fcntl.LOCK_UN)
        fcntl.flock(two, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_queued_writes_are_drained_by_umount(mount, remote):
    mounted = mount()
    child = os.fork()
    if child == 0:
        # Ends without close(): the kernel closes the file as the process dies.
        fd = os.open(mounted.point / "file", os.O_WRONLY | os.O_CREAT)
        for number in range(100):
            os.write(fd, pattern(64 * KIB, number))
        os._exit(0)
    os.waitpid(child, 0)
    assert wait_until(lambda: mounted.unmount().returncode == 0, 5)
    mounted.wait_exit(20)
    assert (remote / "file").read_bytes() == b"".join(pattern(64 * KIB, n) for n in range(100))
