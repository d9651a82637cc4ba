"""Servers that stop reading a body: both senders give up."""

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest

from deedbook.transient import MemoryStore
from http_kinds import MakeSender, answering, events, store_of


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


@pytest.fixture
def store() -> MemoryStore:
    """One batch of 8 MB, more than the buffers of a connection hold."""
    return store_of(events(100, 80_000), batch_bytes=1 << 24)


def url_of(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}/"


def sockets() -> int:
    count = 0
    if sys.platform == "linux":
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # the descriptor of the listing
                count += os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
    return count


@pytest.mark.parametrize("size", [20, 80_000])
def test_sender_gives_up_on_stalled_servers(
    sender: MakeSender, silent: socket.socket, size: int
) -> None:
    """Earlier, the asynchronous sender waited forever."""
    store = store_of(events(100, size), batch_bytes=1 << 24)
    options = {"connect_seconds": 60.0, "read_seconds": 0.2}
    with sender(store, url_of(silent), **options) as both:
        before = sockets()
        for _ in range(3):
            begun = time.monotonic()
            assert not both.send_once()
            assert time.monotonic() - begun < 10
            assert "imeout" in both.sender.stats().last_error
        assert sockets() == before, "what is not taken keeps no connection open"
    assert store.stats().events == 100


def test_sender_waits_for_slow_servers(
    sender: MakeSender, silent: socket.socket, store: MemoryStore
) -> None:
    def serve() -> None:
        connection, _ = silent.accept()
        with connection, connection.makefile("rb") as stream:
            while not (line := stream.readline().lower()).startswith(b"content-length:"):
                pass
            while stream.readline() != b"\r\n":
                pass
            time.sleep(1)
            stream.read(int(line.split()[1]))
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    options = {"connect_seconds": 0.2, "read_seconds": 5.0}
    with sender(store, url_of(silent), **options) as both:
        assert both.send_once()
    thread.join(30)
    assert not thread.is_alive() and not store.has_data()


def test_a_drain_that_ends_meanwhile_closes_the_connection(
    sender: MakeSender, silent: socket.socket, store: MemoryStore
) -> None:
    with sender(store, url_of(silent)) as both:
        before = sockets()
        for _ in range(3):
            assert not both.drain(0.3)
        end = time.monotonic() + 10
        while sockets() > before and time.monotonic() < end:
            time.sleep(0.01)
        assert sockets() == before


@pytest.mark.parametrize("part", ["status line", "headers", "body"])
def test_slow_answer_ends_at_the_request_deadline(sender: MakeSender, part: str) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
    at_once = {"status line": answer[:13], "headers": answer[:17] + b"X-Long: ", "body": answer}
    ended = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.wfile.write(at_once[part])
        while not ended.wait(0.05):
            request.wfile.write(b"x")

    store = store_of(events(3, 20))
    with answering(drip) as url:
        with sender(store, url, read_seconds=5.0, request_seconds=1.0) as both:
            begun = time.monotonic()
            sent = both.send_once()
            took = time.monotonic() - begun
            error = both.sender.stats().last_error
        ended.set()
    assert took < 4
    # The status decides: the sender does not wait for the rest of the body.
    has_status = part == "body"
    assert sent is has_status and (store.stats().events == 0) is has_status
    if not has_status:
        assert "request_seconds=1" in error
