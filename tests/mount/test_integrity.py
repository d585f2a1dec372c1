"""Large files arrive and leave whole, however they are read and written."""

import os
import random
import threading

import pytest

from mount.expect import needs, pattern, run, sha256

pytestmark = [pytest.mark.heavy, pytest.mark.limit(180)]
MIB = 1 << 20
SIZE = 48 * MIB + 12_345


@pytest.fixture(scope="module")
def content():
    return pattern(SIZE)


@pytest.fixture
def big(remote, content):
    (remote / "big").write_bytes(content)
    return content


def test_read_in_order(mnt, remote, big):
    assert sha256(mnt / "big") == sha256(remote / "big")


def test_written_in_order(mnt, remote, content):
    with open(mnt / "big", "wb") as file:
        for start in range(0, SIZE, 100_000):
            file.write(content[start:start + 100_000])
    assert (remote / "big").read_bytes() == content


def test_read_in_odd_pieces(mnt, big):
    choose = random.Random(1)
    with open(mnt / "big", "rb", buffering=0) as file:
        offset = 0
        while offset < SIZE:
            length = choose.choice((1, 511, 4096, 70_000, 300_001, 2 * MIB))
            assert os.pread(file.fileno(), length, offset) == big[offset:offset + length]
            offset += length


def test_read_backward(mnt, big):
    with open(mnt / "big", "rb", buffering=0) as file:
        for offset in range(SIZE // 65_536 * 65_536, -1, -65_536):
            assert os.pread(file.fileno(), 65_536, offset) == big[offset:offset + 65_536]


def test_read_at_random(mnt, big):
    choose = random.Random(2)
    with open(mnt / "big", "rb", buffering=0) as file:
        for _ in range(600):
            offset, length = choose.randrange(SIZE), choose.choice((1, 4096, 20_000, 200_000))
            assert os.pread(file.fileno(), length, offset) == big[offset:offset + length]


def test_read_in_several_streams_at_once(mnt, big):
    wrong = []

    def stream(start):
        with open(mnt / "big", "rb", buffering=0) as file:
            for offset in range(start, min(start + 16 * MIB, SIZE), 131_072):
                if os.pread(file.fileno(), 131_072, offset) != big[offset:offset + 131_072]:
                    wrong.append(offset)
    threads = [threading.Thread(target=stream, args=(n * 8 * MIB,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_written_at_random_and_read_between(mnt, remote):
    """Against a model in memory."""
    choose = random.Random(3)
    model = bytearray()
    with open(mnt / "file", "w+b", buffering=0) as file:
        for turn in range(800):
            action = choose.random()
            offset = choose.randrange(4 * MIB)
            length = choose.choice((1, 100, 4096, 33_000, 150_000))
            if action < 0.55:
                piece = pattern(length, turn)
                os.pwrite(file.fileno(), piece, offset)
                if offset > len(model):
                    model.extend(bytes(offset - len(model)))
                model[offset:offset + length] = piece
            elif action < 0.9:
                assert os.pread(file.fileno(), length, offset) == model[offset:offset + length]
            elif action < 0.95:
                os.ftruncate(file.fileno(), offset)
                model = model[:offset] + bytes(max(0, offset - len(model)))
            else:
                os.fsync(file.fileno())
                assert (remote / "file").read_bytes() == model
            assert os.fstat(file.fileno()).st_size == len(model)
    assert (remote / "file").read_bytes() == model
    assert (mnt / "file").read_bytes() == model


def test_written_by_several_threads(mnt, remote, content):
    def writer(start):
        with open(mnt / "big", "r+b", buffering=0) as file:
            for offset in range(start, SIZE, 4 * MIB):
                os.pwrite(file.fileno(), content[offset:offset + MIB], offset)
    (mnt / "big").touch()
    threads = [threading.Thread(target=writer, args=(n * MIB,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (remote / "big").read_bytes() == content


def test_many_files_written_and_read_in_parallel(mnt, remote):
    wrong = []

    def worker(number):
        for turn in range(25):
            path = mnt / f"w{number}-{turn}"
            path.write_bytes(pattern(turn * 3001, number))
            if path.read_bytes() != pattern(turn * 3001, number):
                wrong.append(path)
            if turn % 3 == 0:
                path.unlink()
    threads = [threading.Thread(target=worker, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(os.listdir(remote)) == 8 * 16


FIO = {
    "write": ["--rw=write", "--bs=64k", "--size=24m"],
    "randwrite": ["--rw=randwrite", "--bs=16k", "--size=8m"],
    "randrw": ["--rw=randrw", "--bs=8k", "--size=8m", "--fsync=50"],
    "mmap": ["--rw=randwrite", "--bs=4k", "--size=4m", "--ioengine=mmap"],
    "jobs": ["--rw=randwrite", "--bs=32k", "--size=4m", "--numjobs=4"],
    "direct": ["--rw=randwrite", "--bs=16k", "--size=4m", "--direct=1"],
}


@pytest.mark.parametrize("kind", FIO)
def test_fio_verifies(mnt, base, kind):
    needs("fio")
    run("fio", "--name=job", f"--directory={mnt}", "--verify=crc32c", "--verify_fatal=1",
        "--do_verify=1", "--randrepeat=1", "--minimal", *FIO[kind], cwd=base)
