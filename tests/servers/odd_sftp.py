#!/usr/bin/env python3
"""
An SFTP v3 server on standard input and output that is honest but for one thing.

  odd_sftp.py [GREETING]

GREETING says what is odd about the start (see GREETINGS). All else is asked for by name: a file
or directory called "odd-KIND" (or "odd-KIND.anything") is served from the disk as others are,
save for what `Odd.KIND` does to the replies about it. Odd files need not exist where their
oddity makes the reply up.
"""

import errno
import os
import stat
import struct
import sys
import time

(INIT, VERSION, OPEN, CLOSE, READ, WRITE, LSTAT, FSTAT, SETSTAT, FSETSTAT, OPENDIR, READDIR, REMOVE,
 MKDIR, RMDIR, REALPATH, STAT, RENAME, READLINK, SYMLINK) = range(1, 21)
STATUS, HANDLE, DATA, NAME, ATTRS = range(101, 106)
OK, EOF, NO_SUCH_FILE, PERMISSION_DENIED, FAILURE, BAD_MESSAGE, _, _, UNSUPPORTED = range(9)
CODES = {errno.ENOENT: NO_SUCH_FILE, errno.ENOTDIR: NO_SUCH_FILE,
         errno.EACCES: PERMISSION_DENIED, errno.EPERM: PERMISSION_DENIED}
OPEN_FLAGS = {1: os.O_RDONLY, 2: os.O_WRONLY, 3: os.O_RDWR}
MANY = 1 << 20


def u32(value):
    return struct.pack(">I", value)


def text(value):
    return u32(len(value)) + value


def attrs(st):
    return struct.pack(">IQIIIII", 15, st.st_size, st.st_uid, st.st_gid, st.st_mode,
                       int(st.st_atime), int(st.st_mtime))


class Reader:
    """Takes the fields of a packet one after the other."""

    def __init__(self, body):
        self.body, self.at = body, 0

    def take(self, count):
        self.at += count
        return self.body[self.at - count:self.at]

    def u32(self):
        return struct.unpack(">I", self.take(4))[0]

    def u64(self):
        return struct.unpack(">Q", self.take(8))[0]

    def text(self):
        return self.take(self.u32())

    def attrs(self):
        flags, found = self.u32(), {}
        if flags & 1:
            found["size"] = self.u64()
        if flags & 2:
            found["owner"] = self.u32(), self.u32()
        if flags & 4:
            found["mode"] = self.u32()
        if flags & 8:
            found["times"] = self.u32(), self.u32()
        return found


class Server:
    def __init__(self):
        self.handles = {}
        self.count = 0
        self.root_names = None  # what REALPATH says, if not the truth

    # ---- packets ----

    def receive(self):
        head = sys.stdin.buffer.read(4)
        if len(head) < 4:
            sys.exit(0)
        return sys.stdin.buffer.read(struct.unpack(">I", head)[0])

    def raw(self, data):
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()

    def send(self, kind, number, body):
        self.raw(text(bytes([kind]) + u32(number) + body))

    def status(self, number, code, message=b"what it means"):
        self.send(STATUS, number, u32(code) + text(message) + text(b"en"))

    def names(self, number, names):
        body = b"".join(text(name) + text(name) + more for name, more in names)
        self.send(NAME, number, u32(len(names)) + body)

    # ---- serving ----

    def run(self):
        while True:
            packet = Reader(self.receive())
            kind = packet.take(1)[0]
            number = packet.u32()
            target = self.target(kind, packet)
            try:
                oddity = getattr(Odd, kind_of(target), None) if target else None
                if oddity is None or oddity(self, kind, number, packet, target) is HONEST:
                    self.serve(kind, number, packet, target)
            except OSError as error:
                self.status(number, CODES.get(error.errno, FAILURE))

    def target(self, kind, packet):
        """The path that a request is about; handles know theirs."""
        if kind in (CLOSE, READ, WRITE, FSTAT, FSETSTAT, READDIR):
            return self.handles.get(packet.text(), {}).get("path")
        return packet.text() if kind <= SYMLINK else None

    def new_handle(self, number, path, **more):
        self.count += 1
        handle = b"%d" % self.count
        self.handles[handle] = {"path": path, "name": handle, **more}
        return handle

    def handle_of(self, packet):
        return self.handles[Reader(packet.body[5:]).text()]

    def serve(self, kind, number, packet, path):
        if kind == REALPATH:
            truth = [(os.path.realpath(path), u32(0))]
            return self.names(number, truth if self.root_names is None else self.root_names)
        if kind in (STAT, LSTAT):
            st = os.stat(path) if kind == STAT else os.lstat(path)
            return self.send(ATTRS, number, attrs(st))
        if kind == READLINK:
            return self.names(number, [(os.readlink(path), u32(0))])
        if kind == OPEN:
            return self.open(number, path, packet.u32(), packet.attrs())
        if kind == OPENDIR:
            names = os.listdir(path)
            return self.send(HANDLE, number, text(self.new_handle(number, path, names=names)))
        if kind in (CLOSE, READ, WRITE, FSTAT, FSETSTAT, READDIR):
            return self.serve_handle(kind, number, packet, self.handle_of(packet))
        simple = {REMOVE: os.unlink, RMDIR: os.rmdir, MKDIR: os.mkdir,
                  RENAME: lambda old: os.rename(old, packet.text()),
                  SETSTAT: lambda name: set_attrs(name, packet.attrs()),
                  SYMLINK: lambda name: os.symlink(name, packet.text())}
        if kind not in simple:
            return self.status(number, UNSUPPORTED)
        simple[kind](path)
        return self.status(number, OK)

    def open(self, number, path, flags, more):
        wanted = OPEN_FLAGS[flags & 3]
        for bit, flag in ((8, os.O_CREAT), (16, os.O_TRUNC), (32, os.O_EXCL)):
            wanted |= flag if flags & bit else 0
        fd = os.open(path, wanted, more.get("mode", 0o666))
        self.send(HANDLE, number, text(self.new_handle(number, path, fd=fd)))

    def serve_handle(self, kind, number, packet, handle):
        if kind == CLOSE:
            if "fd" in handle:
                os.close(handle["fd"])
            del self.handles[handle["name"]]
            return self.status(number, OK)
        if kind == READ:
            offset, length = packet.u64(), packet.u32()
            data = os.pread(handle["fd"], length, offset)
            return self.send(DATA, number, text(data)) if data else self.status(number, EOF)
        if kind == WRITE:
            offset, data = packet.u64(), packet.text()
            os.pwrite(handle["fd"], data, offset)
            return self.status(number, OK)
        if kind == FSTAT:
            return self.send(ATTRS, number, attrs(os.fstat(handle["fd"])))
        if kind == FSETSTAT:
            set_attrs(handle["fd"], packet.attrs())
            return self.status(number, OK)
        names, handle["names"] = handle["names"], []
        if not names:
            return self.status(number, EOF)
        return self.names(number, [(name, attrs(os.lstat(os.path.join(handle["path"], name))))
                                   for name in names])


def set_attrs(target, found):
    if "size" in found:
        os.truncate(target, found["size"])
    if "owner" in found:
        os.chown(target, *found["owner"])
    if "mode" in found:
        os.chmod(target, stat.S_IMODE(found["mode"]))
    if "times" in found:
        os.utime(target, found["times"])


def kind_of(path):
    name = os.path.basename(path)
    if not name.startswith(b"odd-"):
        return ""
    return name[4:].partition(b".")[0].decode()


HONEST = object()  # what an oddity gives when it leaves the request to the server
LOOKS = (STAT, LSTAT)


def regular(size=5, mode=stat.S_IFREG | 0o644, time_=1_000_000_000):
    return struct.pack(">IQIIIII", 15, size, 0, 0, mode, time_, time_)


def on(kinds, reply):
    """An oddity in the replies to these requests alone."""
    def oddity(server, kind, number, packet, path):
        if kind not in kinds:
            return HONEST
        return reply(server, number, packet, path)
    return oddity


def looks_like(body):
    """A file whose attributes are made up."""
    return on((*LOOKS, FSTAT), lambda server, number, packet, path:
              server.send(ATTRS, number, body))


def refused_with(code):
    return on(LOOKS, lambda server, number, packet, path: server.status(number, code))


def listed_as(*names):
    """A directory that lists these names, once, and can be looked into by them."""
    def reply(server, number, packet, path):
        handle = server.handle_of(packet)
        if not handle["names"] and handle.setdefault("told", False):
            return server.status(number, EOF)
        handle["names"], handle["told"] = [], True
        return server.names(number, [(name, regular()) for name in names])
    return on((READDIR,), reply)


def linked_to(target):
    return on((READLINK,), lambda server, number, packet, path:
              server.names(number, [(target, u32(0))]))


def opened_as(handle):
    """A file whose handle is this."""
    def reply(server, number, packet, path):
        fd = os.open(path, OPEN_FLAGS[packet.u32() & 3])
        server.handles[handle] = {"path": b"plain", "name": handle, "fd": fd}
        server.send(HANDLE, number, text(handle))
    return on((OPEN,), reply)


def reads(reply):
    """reply(server, number, offset, length, data) in place of the bytes of the file."""
    def read(server, number, packet, path):
        fd = server.handle_of(packet)["fd"]
        offset, length = packet.u64(), packet.u32()
        return reply(server, number, offset, length, os.pread(fd, length, offset))
    return on((READ,), read)


def short_read(server, number, offset, length, data):
    if not data:
        return server.status(number, EOF)
    return server.send(DATA, number, text(data[:max(1, length // 3)]))


def once(path, what):
    """Calls `what` the first time that anybody comes here; the disk remembers."""
    try:
        os.close(os.open(path + b"~was here", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    what()


def die_when_written(server, kind, number, packet, path):
    if kind == WRITE:
        once(path, lambda: os._exit(1))
    return HONEST


def endless(server, number, packet, path):
    handle = server.handle_of(packet)
    handle["told"] = handle.get("told", 0) + 1000
    server.names(number, [(b"%d" % (handle["told"] + i) + b"x" * 200, regular())
                          for i in range(1000)])


def slow(seconds):
    def reply(server, kind, number, packet, path):
        time.sleep(seconds)
        return HONEST
    return reply


class Odd:
    """What each kind of odd name does; the name of the attribute is the kind."""

    # whole packets
    wrong_id = on(LOOKS, lambda server, number, packet, path: server.send(
        ATTRS, number + 12345, regular()))
    answered_twice = on(LOOKS, lambda server, number, packet, path: [server.send(
        ATTRS, number, regular()) for _ in range(2)])
    huge_packet = on(LOOKS, lambda server, number, packet, path: server.raw(
        u32(0xfffffff0) + bytes([ATTRS]) + u32(number) + regular()))
    empty_packet = on(LOOKS, lambda server, number, packet, path: server.raw(u32(0)))
    cut_packet = on(LOOKS, lambda server, number, packet, path: (server.raw(
        u32(500) + bytes([ATTRS]) + u32(number)), os._exit(0)))
    cut_attrs = on(LOOKS, lambda server, number, packet, path: server.send(
        ATTRS, number, regular()[:10]))
    unknown_type = on(LOOKS, lambda server, number, packet, path: server.send(
        200, number, b"what?"))
    another_type = on(LOOKS, lambda server, number, packet, path: server.send(
        HANDLE, number, text(b"handle")))
    ok_without_attrs = refused_with(OK)
    dead = on(LOOKS, lambda server, number, packet, path: os._exit(1))
    silent = on(LOOKS, lambda server, number, packet, path: None)
    slow = slow(0.7)

    # status codes
    status_11 = refused_with(11)
    status_255 = refused_with(255)
    status_max = refused_with(0xffffffff)
    status_eof = refused_with(EOF)
    status_bare = on(LOOKS, lambda server, number, packet, path: server.send(
        STATUS, number, u32(FAILURE)))

    # attributes
    sizeless = looks_like(struct.pack(">IIIIII", 14, 0, 0, stat.S_IFREG | 0o644, 5, 5))
    modeless = looks_like(struct.pack(">IQII", 9, 5, 7, 7))
    without_attrs = looks_like(u32(0))
    size_2_63 = looks_like(regular(size=(1 << 63) + 5))
    size_max = looks_like(regular(size=(1 << 64) - 1))
    typeless = looks_like(regular(mode=0o644))
    odd_type = looks_like(regular(mode=0o150644))
    late = looks_like(regular(time_=0xffffffff))
    many_extensions = looks_like(u32(0x80000000) + u32(0xffffffff))

    # contents
    short_reads = reads(short_read)
    long_reads = reads(lambda server, number, offset, length, data: server.send(
        DATA, number, text(data + b"more than asked for")))
    empty_reads = reads(lambda server, number, offset, length, data: server.send(
        DATA, number, text(b"")))
    lying_reads = reads(lambda server, number, offset, length, data: server.send(
        DATA, number, u32(MANY) + data))
    ok_reads = reads(lambda server, number, offset, length, data: server.status(number, OK))
    failing_reads = reads(lambda server, number, offset, length, data: server.status(
        number, FAILURE) if offset else server.send(DATA, number, text(data[:10])))
    handle_empty = opened_as(b"")
    handle_256 = opened_as(b"h" * 256)
    handle_300 = opened_as(b"h" * 300)
    handle_binary = opened_as(bytes(range(256)))
    ok_open = on((OPEN,), lambda server, number, packet, path: server.status(number, OK))
    dies_when_written = die_when_written
    refuses_writes = on((WRITE,), lambda server, number, packet, path: server.status(
        number, FAILURE))
    refuses_to_close = on((CLOSE,), lambda server, number, packet, path: server.status(
        number, FAILURE))

    # directories
    bad_names = listed_as(b"good", b"a/b", b"/etc", b"..", b".", b"", b"nul\0nul", b"x" * 300,
                          b"also good")
    twice = listed_as(b"one", b"two", b"one")
    endless = on((READDIR,), endless)
    lying_count = on((READDIR,), lambda server, number, packet, path: server.send(
        NAME, number, u32(0xffffffff) + text(b"one") + text(b"one") + regular()))
    empty_lists = on((READDIR,), lambda server, number, packet, path: server.names(number, []))
    ok_lists = on((READDIR,), lambda server, number, packet, path: server.status(number, OK))

    # symbolic links
    link_outside = linked_to(b"../../../../etc/passwd")
    link_absolute = linked_to(b"/etc/passwd")
    link_empty = linked_to(b"")
    link_nul = linked_to(b"a\0b")
    link_long = linked_to(b"a/" * 4000)
    link_inside = linked_to(b"sub/file")
    link_two = on((READLINK,), lambda server, number, packet, path: server.names(
        number, [(b"one", u32(0)), (b"two", u32(0))]))
    link_none = on((READLINK,), lambda server, number, packet, path: server.names(number, []))


def version(number, more=b""):
    return lambda server: server.raw(text(bytes([VERSION]) + u32(number) + more))


GREETINGS = {
    "": version(3),
    "version-2": version(2),
    "version-4": version(4),
    "version-6": version(6),
    "shell": lambda server: server.raw(b"Welcome to the shell of odd!\nYou have mail.\n"),
    "shell-before": lambda server: (server.raw(b"Welcome!\n"), version(3)(server)),
    "silence": lambda server: time.sleep(60),
    "end": lambda server: sys.exit(0),
    "huge": lambda server: server.raw(u32(0xffffffff) + bytes([VERSION])),
    "cut": lambda server: server.raw(text(bytes([VERSION, 0]))),
    "another": lambda server: server.status(0, FAILURE),
    "cut-extension": version(3, text(b"posix-rename@openssh.com") + u32(5000) + b"1"),
    "nonsense-extension": version(3, text(b"odd@example.org") + text(b"\xff\0")),
    "limits-of-zero": version(3, text(b"limits@openssh.com") + text(b"1")),
}


def realpath_says(*names):
    def greet(server):
        version(3)(server)
        server.root_names = [(name, u32(0)) for name in names]
    return greet


GREETINGS |= {
    "realpath-none": realpath_says(),
    "realpath-two": realpath_says(b"/tmp", b"/etc"),
    "realpath-empty": realpath_says(b""),
    "realpath-relative": realpath_says(b"somewhere"),
    "realpath-nul": realpath_says(b"/tmp\0/etc"),
    "realpath-long": realpath_says(b"/" + b"x" * 100_000),
    "realpath-file": realpath_says(b"/etc/passwd"),
    "realpath-missing": realpath_says(b"/there is no such directory"),
}


def main():
    server = Server()
    server.receive()
    GREETINGS[sys.argv[1] if len(sys.argv) > 1 else ""](server)
    server.run()


if __name__ == "__main__":
    main()
