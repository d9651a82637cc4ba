"""Measure HTTP clients and our senders on loopback, with batches of 475 KB.

Each client sends the same body, a file-like object read in Python, to a server in another process.
The server reads the body and answers 200. Clients take turns, each in its own process. A client
that fails gets no more turns, and its row shows the failure. If one of our senders fails, the
program fails:

    python benches/python/http_clients.py --results benches/results
    python benches/python/http_clients.py --with niquests=/other/python --with httpx2=/other/python
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import os
import platform
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from facts import occasion, provisional, when

EVENT = b'{"event":"page_view","userId":"u-000001","properties":{"path":"/a/b/c","ref":"%s"}}' % (
    b"x" * 170
)
EVENTS = 475_000 // (len(EVENT) + 1)
NOT_INSTALLED = 3
"""The exit code of a child without the client."""
OURS = ("Sender", "Sender, 2 requests", "Sender, Segment", "Sender, gzip", "AsyncSender")
CLIENTS = (
    "http.client",
    "urllib3",
    "requests",
    "httpx",
    "httpx async",
    "httpx2",
    "httpx2 async",
    "niquests",
    "niquests async",
    "aiohttp",
    *OURS,
)


def serve() -> None:
    """Read and answer requests until the end of standard input."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=64)
    print(listening.getsockname()[1], flush=True)
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    while True:
        client, _ = listening.accept()
        threading.Thread(target=answer, args=(client,), daemon=True).start()


def answer(client: socket.socket) -> None:
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer = bytearray(1 << 20)
    while True:
        head = b""
        while b"\r\n\r\n" not in head:
            more = client.recv(65536)
            if not more:
                return
            head += more
        head, _, body = head.partition(b"\r\n\r\n")
        length = re.search(rb"content-length: *(\d+)", head, re.IGNORECASE)
        if length is None:  # chunked: not measured
            client.close()
            return
        left = int(length[1]) - len(body)
        while left > 0:
            got = client.recv_into(buffer, min(left, len(buffer)))
            if not got:
                return
            left -= got
        client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


def measure(name: str, url: str, batches: int) -> tuple[float, float]:
    """Seconds, and seconds of CPU time, for `batches` batches."""
    if name in OURS:
        return ours(name, url, batches)
    post = client_named(name, url)
    if not asyncio.iscoroutinefunction(post):
        for _ in range(5):
            post()
        begun, cpu = time.perf_counter(), time.process_time()
        for _ in range(batches):
            post()
        return time.perf_counter() - begun, time.process_time() - cpu

    async def run() -> tuple[float, float]:
        for _ in range(5):
            await post()
        begun, cpu = time.perf_counter(), time.process_time()
        for _ in range(batches):
            await post()
        return time.perf_counter() - begun, time.process_time() - cpu

    return asyncio.run(run())


def ours(name: str, url: str, batches: int) -> tuple[float, float]:
    """The same as `measure`, with a sender and batches from a store."""
    from deedbook.http import AsyncSender, Sender, presets
    from deedbook.transient import MemoryStore

    options: dict[str, Any] = {
        "Sender, 2 requests": {"concurrency": 2},
        "Sender, Segment": {"preset": presets.segment("key")},
        "Sender, gzip": {"compression": "gzip"},
    }.get(name, {})
    store = MemoryStore(header=b'{"batch":[', footer=b"]}", batch_records=EVENTS)
    store.append_many([EVENT] * (EVENTS * batches))
    made = AsyncSender if name == "AsyncSender" else Sender
    with tempfile.TemporaryDirectory() as folder:
        sender = made(store, url, dead_letters=folder, **options)
        begun, cpu = time.perf_counter(), time.process_time()
        done = asyncio.run(sender.drain()) if made is AsyncSender else sender.drain()
        spent = time.perf_counter() - begun, time.process_time() - cpu
    assert done and sender.stats().events_sent == EVENTS * batches
    return spent


def client_named(name: str, url: str) -> Callable[[], None] | Callable[[], Awaitable[None]]:
    """A function that sends one batch with a client."""
    from deedbook.transient import MemoryStore

    store = MemoryStore(header=b'{"batch":[', footer=b"]}", batch_bytes=1 << 20)
    store.append_many([EVENT] * EVENTS)
    body = store.fetch().data[0]
    headers = {"Content-Length": str(len(body)), "Content-Type": "application/json"}
    module = importlib.import_module(name.split()[0])
    if name == "http.client":
        connection = module.HTTPConnection(re.search(r"//(.*)/", url)[1], blocksize=1 << 17)

        def post() -> None:
            body.seek(0)
            connection.request("POST", "/", body, headers)
            connection.getresponse().read()
    elif name == "urllib3":
        pool = module.PoolManager(retries=False, blocksize=1 << 17)

        def post() -> None:
            body.seek(0)
            assert pool.request("POST", url, body=body, headers=headers).status == 200
    elif name == "aiohttp":
        sessions: list[Any] = []

        async def post() -> None:
            if not sessions:
                sessions.append(module.ClientSession())
            async with sessions[0].post(url, data=body.stream(), headers=headers) as response:
                assert response.status == 200
    elif name.endswith("async"):
        made = (module.AsyncSession if "niquests" in name else module.AsyncClient)()

        async def post() -> None:
            body.seek(0)
            content = {"data": body} if "niquests" in name else {"content": body.stream()}
            response = await made.post(url, headers=headers, **content)
            assert response.status_code == 200
    else:
        session = module.Client() if name.startswith("httpx") else module.Session()

        def post() -> None:
            body.seek(0)
            content = {"content": body} if name.startswith("httpx") else {"data": body}
            assert session.post(url, headers=headers, **content).status_code == 200

    return post


def main() -> None:
    """Measure all installed clients, and print or write a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=200)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--with", dest="other", action="append", default=[])
    parser.add_argument("--results", type=Path)
    parser.add_argument("--child", nargs=2, metavar=("NAME", "URL"))
    parser.add_argument("--serve", action="store_true")
    given = parser.parse_args()
    if given.serve:
        return serve()
    if given.child:
        name, url = given.child
        if name not in OURS and not _is_installed(name.split()[0]):
            sys.exit(NOT_INSTALLED)
        spent, cpu = measure(name, url, given.batches)
        version = "" if name in OURS or name == "http.client" else _version(name.split()[0])
        print(json.dumps({"seconds": spent, "cpu": cpu, "version": version}))
        return None
    pythons = dict(pair.split("=", 1) for pair in given.other)
    load, now = os.getloadavg()[0], occasion()
    runs: dict[str, list[dict[str, Any]]] = {}
    failed: set[str] = set()
    with subprocess.Popen(
        [sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None and server.stdin is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/"
        for _ in range(given.repetitions):
            for name in CLIENTS:
                if name in failed:
                    continue
                python = pythons.get(name.split()[0], sys.executable)
                found = subprocess.run(
                    [python, __file__, "--child", name, url, "--batches", str(given.batches)],
                    capture_output=True,
                    text=True,
                )
                if found.returncode == 0:
                    runs.setdefault(name, []).append(json.loads(found.stdout))
                elif found.returncode != NOT_INSTALLED:
                    print(f"{name}: failed\n{found.stderr}", file=sys.stderr, flush=True)
                    failed.add(name)
        server.stdin.close()
    text = table(runs, failed, given, load, when(now))
    print(text)
    if given.results is not None:
        (given.results / "http.md").write_text(text)
    if ours_failed := [name for name in OURS if name in failed]:
        sys.exit(f"http_clients: failed: {'; '.join(ours_failed)}")


def _is_installed(name: str) -> bool:
    return importlib.util.find_spec(name.partition(".")[0]) is not None


def _version(name: str) -> str:
    return str(importlib.import_module(name).__version__)


def table(
    runs: dict[str, list[dict[str, Any]]],
    failed: set[str],
    given: argparse.Namespace,
    load: float,
    day: str,
) -> str:
    """The medians, as a page."""
    lines = [
        "# Speed of HTTP clients and of the senders",
        "",
        f"Made by `benches/python/http_clients.py`{day}: batches of 475 KB on loopback, "
        f"{EVENTS} events of {len(EVENT)} bytes each, {given.batches} batches, medians of "
        f"{given.repetitions} repetitions in which the clients take turns. "
        f"{os.cpu_count()} cores, {platform.system()}, CPython {platform.python_version()}; load "
        f"{load:.1f} before and {os.getloadavg()[0]:.1f} after. The senders take the batches from "
        "a `MemoryStore`, with an Idempotency-Key, and remove them. Required: 200,000 events/s.",
        "",
        *provisional(load),
        "| client | version | events/s | MB/s | CPU ms a batch |",
        "|---|---|---|---|---|",
    ]
    for name in CLIENTS:
        found = runs.get(name, [])
        version = found[0]["version"] if found else ""
        if name in failed:
            lines.append(f"| {name} | {version} | failed | | |")
        if name in failed or not found:
            continue
        seconds = statistics.median(run["seconds"] for run in found)
        cpu = statistics.median(run["cpu"] for run in found)
        rate = EVENTS * given.batches / seconds
        lines.append(
            f"| {name} | {version} | {rate:,.0f} | {rate * len(EVENT) / 1e6:,.0f} "
            f"| {cpu / given.batches * 1000:.2f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
