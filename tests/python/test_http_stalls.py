"""Servers that take no more of a body: how both senders give them up."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("urllib3")
pytest.importorskip("aiohttp")

from deedbook.transient import MemoryStore
from http_kinds import Both, events, store_of


@pytest.fixture(params=["threads", "asyncio"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that has connections, and reads nothing."""
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server


@pytest.fixture
def store() -> MemoryStore:
    """One batch of 8 MB: more than the buffers of a connection take."""
    return store_of(events(100, 80_000), batch_bytes=1 << 24)


def url_of(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}/"


def sockets() -> int:
    """How many this process has open, where the system says so."""
    count = 0
    if sys.platform == "linux":
        for fd in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # that of the listing
                count += os.readlink(f"/proc/self/fd/{fd}").startswith("socket:")
    return count


def test_a_server_that_takes_no_more_is_given_up(
    kind: str, silent: socket.socket, store: MemoryStore, tmp_path: Path
) -> None:
    """The asynchronous sender waited for ever, the other for as long as for a connection."""
    options = {"connect_seconds": 60.0, "read_seconds": 0.2, "dead_letters": tmp_path}
    with Both(kind, store, url_of(silent), **options) as both:
        before = sockets()
        for _ in range(3):
            begun = time.monotonic()
            assert not both.send_once()
            assert time.monotonic() - begun < 10
            assert "TimeoutError" in both.sender.stats().last_error
        assert sockets() == before, "what is not taken keeps no connection open"
    assert store.stats().events == 100


def test_a_server_that_takes_its_time_is_waited_for(
    kind: str, silent: socket.socket, store: MemoryStore, tmp_path: Path
) -> None:
    """It had as long as for a connection: 128 KiB had to be taken in that time."""

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
    options = {"connect_seconds": 0.2, "read_seconds": 5.0, "dead_letters": tmp_path}
    with Both(kind, store, url_of(silent), **options) as both:
        assert both.send_once()
    thread.join(30)
    assert not thread.is_alive() and not store.has_data()


def test_a_drain_that_ends_meanwhile_closes_the_connection(
    kind: str, silent: socket.socket, store: MemoryStore, tmp_path: Path
) -> None:
    """With asyncio it stayed open, for what was written and not taken, each time."""
    with Both(kind, store, url_of(silent), dead_letters=tmp_path) as both:
        before = sockets()
        for _ in range(3):
            assert not both.drain(0.3)
        end = time.monotonic() + 10
        while sockets() > before and time.monotonic() < end:
            time.sleep(0.01)
        assert sockets() == before


@pytest.fixture(params=["status line", "headers", "body"])
def dripping(request: pytest.FixtureRequest) -> Iterator[socket.socket]:
    """A server that takes requests, and gives a byte of its answer each 50 ms, for ever."""
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"
    at_once = {"status line": 13, "headers": 17, "body": len(answer)}[request.param]
    ended = threading.Event()

    def answer_one(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            received = b""
            while b"\r\n\r\n" not in received:
                received += client.recv(1 << 16)
            client.sendall(answer[:at_once])
            if request.param == "headers":
                client.sendall(b"X-Long: ")
            while not ended.wait(0.05):
                client.sendall(b"x")

    def serve(server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                threading.Thread(target=answer_one, args=(client,), daemon=True).start()

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        threading.Thread(target=serve, args=(server,), daemon=True).start()
        yield server
        ended.set()
        server.shutdown(socket.SHUT_RDWR)


def test_a_server_that_drips_its_answer_holds_a_request_no_longer_than_it_may(
    kind: str, dripping: socket.socket, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Each byte began the time for reading again: one request took days, and nothing else went."""
    store = store_of(events(3, 20))
    options = {"read_seconds": 5.0, "request_seconds": 1.0, "dead_letters": tmp_path}
    with Both(kind, store, url_of(dripping), **options) as both:
        begun = time.monotonic()
        sent = both.send_once()
        took = time.monotonic() - begun
        error = both.sender.stats().last_error
    assert took < 4
    # The status decides: of the body no more is waited for.
    has_status = "body" in request.node.callspec.params["dripping"]
    assert sent is has_status and (store.stats().events == 0) is has_status
    if not has_status:
        assert "request_seconds=1" in error
