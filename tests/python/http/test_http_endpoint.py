"""The test endpoint: counts, faults, and the command line."""

import contextlib
import gzip
import json
import os
import socket
import subprocess
import sys
import tracemalloc
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from endpoint import Endpoint, Faults
from live import ended, next_line, running
from places import ROOT

COMMAND = [sys.executable, str(ROOT / "examples" / "endpoint.py")]


@pytest.fixture
def endpoint(tmp_path: Path) -> Iterator[Endpoint]:
    with Endpoint(out=tmp_path / "out.jsonl") as endpoint:
        yield endpoint


def post(url: str, body: bytes, **headers: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, body, named)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.load(answer), dict(answer.headers)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error), dict(error.headers)


def test_a_key_is_stored_once(endpoint: Endpoint) -> None:
    assert post(endpoint.url, b"[1]", Idempotency_Key="a")[1]["duplicate"] is False
    assert post(endpoint.url, b"[1]", Idempotency_Key="a")[1]["duplicate"] is True
    assert post(endpoint.url, b"[2]", Idempotency_Key="a")[0] == 200
    assert post(endpoint.url, b"[1]")[0] == post(endpoint.url, b"[1]")[0] == 200
    stats = endpoint.stats()
    assert endpoint.events == [b"1", b"1", b"1"], "without a key nothing is known to be a repeat"
    assert (stats.duplicates, stats.conflicts, stats.requests) == (2, 1, 5)


def test_requests_without_an_exact_length_are_refused(endpoint: Endpoint) -> None:
    with socket.create_connection(("127.0.0.1", endpoint.port), timeout=30) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 411 ")
    with socket.create_connection(("127.0.0.1", endpoint.port), timeout=30) as client:
        client.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n[1]")
        client.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(100) == b"", "no answer"
    with endpoint.changed:
        assert endpoint.changed.wait_for(lambda: len(endpoint.requests) == 2, 30)
    stats = endpoint.stats()
    assert (stats.without_length, stats.short, stats.events) == (1, 1, 0)
    assert stats.to_dict()["statuses"] == {"411": 1}


def test_a_body_is_not_inflated_beyond_the_limit(tmp_path: Path) -> None:
    body = gzip.compress(bytes(64 << 20))
    with Endpoint(faults=Faults(max_bytes=1000)) as endpoint:
        tracemalloc.start()
        status, said, _ = post(endpoint.url, body, **{"Content-Encoding": "gzip"})
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (status, said) == (413, {"error": "more than 1000 bytes, at most 1000"})
    assert peak < 8 << 20


def test_other_machines_reach_the_endpoint_on_request_only() -> None:
    """The endpoint has no passwords, and stores all input in memory and on disk."""
    assert "--public" in complaint("--host", "0.0.0.0")


def complaint(*args: str) -> str:
    done = subprocess.run([*COMMAND, *args], capture_output=True, timeout=60)
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"Traceback" not in done.stderr
    return done.stderr.decode().splitlines()[-1]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_the_endpoint_ends_when_the_events_are_there(tmp_path: Path) -> None:
    file = tmp_path / "out.jsonl"
    with running(program=[*COMMAND, "--out", str(file), "--until-events", "3"]) as process:
        url = next_line(process).decode().strip()
        assert url.startswith("http://127.0.0.1:") and url.endswith("/v1/batch")
        assert post(url, b"[1,2,3]")[0] == 200
        done = ended(process)
    assert (done.returncode, done.stdout) == (0, b"")
    assert done.stderr == (b"3 events in 1 requests (1 x 200); 0 repeated, 0 failed on request\n")
    assert file.read_bytes() == b"1\n2\n3\n"
