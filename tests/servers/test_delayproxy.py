"""The line that other tests and the benchmarks rely on keeps its promises."""

import contextlib
import socket
import threading
import time

import pytest

from servers.process import wait_until
from servers.proxy import Proxy

ATTEMPTS = 8
MIB = 1 << 20


@contextlib.contextmanager
def server(handler):
    """Runs handler(connection) in a thread for each connection."""
    def accept():
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=handler, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)


def echo(connection):
    with connection, contextlib.suppress(OSError):
        while data := connection.recv(MIB):
            connection.sendall(data)


def swallow(connection):
    with connection, contextlib.suppress(OSError):
        while connection.recv(MIB):
            pass


def pour(connection):
    with connection, contextlib.suppress(OSError):
        while True:
            connection.sendall(bytes(MIB))


def dial(proxy):
    connection = socket.create_connection(("127.0.0.1", proxy.port), timeout=20)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def ask(connection, question=b"?"):
    connection.sendall(question)
    return connection.recv(100)


def upload(connection, size):
    for _ in range(size // MIB):
        connection.sendall(bytes(MIB))
    connection.shutdown(socket.SHUT_WR)
    while connection.recv(100):
        pass


def test_each_direction_is_delayed(proxy_program):
    with server(echo) as port, Proxy(proxy_program, port, delay_ms=20) as proxy:
        with dial(proxy) as connection:
            ask(connection)
            times = []
            for _ in range(15):
                start = time.monotonic()
                assert ask(connection) == b"?"
                times.append(time.monotonic() - start)
    # A busy machine only adds time, so the best of several is the proxy's own.
    assert 0.040 <= min(times) < 0.045


def test_connecting_costs_round_trips(proxy_program):
    def greet(connection):
        connection.sendall(b"hello")
    times = []
    with server(greet) as port, Proxy(proxy_program, port, delay_ms=20) as proxy:
        for _ in range(ATTEMPTS):
            start = time.monotonic()
            with dial(proxy) as connection:
                assert connection.recv(10) == b"hello"
            times.append(time.monotonic() - start)
    assert 0.080 <= min(times) < 0.110


def test_without_delay_it_costs_little(proxy_program):
    with server(swallow) as port, Proxy(proxy_program, port) as proxy:
        rates = []
        while len(rates) < ATTEMPTS and max(rates, default=0) <= 100e6:
            rates.append(rate_of(proxy, 1, 256 * MIB))
    assert max(rates) > 100e6


def rate_of(proxy, connections, size):
    start = time.monotonic()
    senders = []
    for _ in range(connections):
        connection = dial(proxy)
        thread = threading.Thread(target=upload, args=(connection, size // connections))
        thread.start()
        senders.append((thread, connection))
    for thread, connection in senders:
        thread.join()
        connection.close()
    return size / (time.monotonic() - start)


@pytest.mark.parametrize("connections", [1, 4])
def test_the_rate_is_shared_by_all_connections(proxy_program, connections):
    rate, rates = 20_000_000, []
    with server(swallow) as port, Proxy(proxy_program, port, 10, rate) as proxy:
        while len(rates) < ATTEMPTS and max(rates, default=0) <= 0.8 * rate:
            rates.append(rate_of(proxy, connections, 16 * MIB))
    assert 0.8 * rate < max(rates) < 1.1 * rate


def test_the_sender_is_not_limited_by_a_window(proxy_program):
    """At 200 ms a window of 1 MiB would give 5 MB/s; 32 MiB in flight must be possible."""
    with server(swallow) as port, Proxy(proxy_program, port, delay_ms=100) as proxy:
        rates = []
        while len(rates) < ATTEMPTS and max(rates, default=0) <= 64 * MIB:
            rates.append(rate_of(proxy, 1, 128 * MIB))
    assert max(rates) > 64 * MIB


def test_both_directions_at_once(proxy_program):
    with server(echo) as port, Proxy(proxy_program, port, delay_ms=5) as proxy:
        with dial(proxy) as connection:
            threading.Thread(target=lambda: connection.sendall(b"ab" * (8 * MIB))).start()
            got = bytearray()
            while len(got) < 16 * MIB:
                got += connection.recv(MIB)
    assert got == b"ab" * (8 * MIB)


def test_the_end_of_a_stream_arrives_behind_its_bytes(proxy_program):
    def last_words(connection):
        connection.sendall(b"bye")
        connection.close()
    with server(last_words) as port, Proxy(proxy_program, port, delay_ms=10) as proxy:
        with dial(proxy) as connection:
            assert connection.recv(10) == b"bye"
            assert connection.recv(10) == b""


def test_silence_holds_everything_and_loses_nothing(proxy_program):
    with server(echo) as port, Proxy(proxy_program, port) as proxy:
        with dial(proxy) as connection:
            ask(connection)
            proxy.pause()
            time.sleep(0.1)
            connection.sendall(b"late")
            connection.settimeout(0.4)
            with pytest.raises(TimeoutError):
                connection.recv(10)
            proxy.resume()
            connection.settimeout(5)
            assert connection.recv(10) == b"late"


def test_dropped_connections_are_reset_and_new_ones_work(proxy_program):
    with server(echo) as port, Proxy(proxy_program, port) as proxy:
        with dial(proxy) as old:
            ask(old)
            proxy.drop_connections()
            with pytest.raises(ConnectionResetError):
                while old.recv(10):
                    pass
        with dial(proxy) as new:
            assert ask(new) == b"?"


def test_a_connection_dies_after_so_many_bytes(proxy_program):
    with server(pour) as port, Proxy(proxy_program, port, kill_after=4 * MIB) as proxy:
        with dial(proxy) as connection:
            with pytest.raises(ConnectionResetError):
                while connection.recv(MIB):
                    pass


def test_it_counts_what_passes(proxy_program):
    with server(echo) as port, Proxy(proxy_program, port) as proxy:
        with dial(proxy) as connection:
            ask(connection, b"12345")
        assert proxy.wait_idle() == {"up": 5, "down": 5, "connections": 1}


def test_a_hundred_connections(proxy_program):
    with server(echo) as port, Proxy(proxy_program, port, delay_ms=5) as proxy:
        lines = [dial(proxy) for _ in range(100)]
        for number, line in enumerate(lines):
            line.sendall(b"%d" % number)
        assert [int(line.recv(10)) for line in lines] == list(range(100))
        for line in lines:
            line.close()


def test_an_unreachable_server_resets_the_client(proxy_program):
    with server(echo) as port:
        pass
    with Proxy(proxy_program, port) as proxy, dial(proxy) as connection:
        with pytest.raises(ConnectionResetError):
            connection.recv(10)
    assert wait_until(lambda: proxy.process.poll() is not None, 5)
