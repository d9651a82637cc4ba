"""Both senders against a real server that fails, and the promise that no event is lost."""

import random
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from deedbook import ClosedError, IoError
from deedbook.transient import MemoryStore
from endpoint import Endpoint, Faults
from http_kinds import MakeSender, answering, events, store_of

pytestmark = pytest.mark.promise("ledger-server")


def test_events_arrive_and_are_removed(sender: MakeSender, endpoint: Endpoint) -> None:
    items = events(3000, 250)
    store = store_of(items, batch_bytes=100_000)
    with sender(store) as both:
        assert both.drain(30)
        stats = both.sender.stats()
    assert endpoint.events == items, "in order"
    assert not store.has_data() and not both.sender.dead_letters
    assert (stats.events_sent, stats.batches_sent, stats.retries) == (3000, 8, 0)
    assert stats.bytes_sent == endpoint.stats().bytes and stats.to_dict()["last_status"] == 200
    seen = endpoint.stats()
    assert seen.without_length == seen.short == seen.duplicates == 0
    assert endpoint.requests[0].headers["user-agent"].startswith("deedbook/")


@pytest.mark.parametrize("compression", [None, "gzip", "zstd", "auto"])
@pytest.mark.parametrize("failure", [503, "reset", "drop"])
def test_a_failed_attempt_is_repeated_whole(
    sender: MakeSender, endpoint: Endpoint, failure: Any, compression: Any
) -> None:
    if compression == "zstd" and sys.version_info < (3, 14):
        pytest.importorskip("backports.zstd")
    items = events(4000, 250)
    endpoint.script.extend(["ok", failure, failure])
    store = store_of(items, batch_bytes=475_000)
    with sender(store, compression=compression) as both:
        assert both.drain(30)
    assert endpoint.events == items
    assert endpoint.stats().duplicates == (2 if failure == "drop" else 0)
    assert endpoint.stats().conflicts == endpoint.stats().short == 0
    requests = endpoint.requests
    assert len({request.key for request in requests}) == 3 and len(requests) == 5
    assert requests[0].headers.get("content-encoding") == (
        None if compression == "auto" else compression
    )
    assert requests[-1].headers.get("content-encoding") in (compression, "zstd", "gzip")


def test_a_server_that_is_down_and_comes_back(sender: MakeSender) -> None:
    store = store_of(events(10))
    with Endpoint() as first:
        port = first.port
    with sender(store, first.url) as both:
        # A busy machine may not come to the first request in this time.
        while both.sender.stats().last_error is None:
            assert not both.drain(0.1) and store.stats().events == 10
        assert "connect" in both.sender.stats().last_error.lower()
        with Endpoint(port) as second:
            assert both.drain(30)
            assert second.events == events(10)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_the_background_sends_what_is_appended(
    sender: MakeSender, endpoint: Endpoint, concurrency: int
) -> None:
    store = MemoryStore(batch_records=10)
    options = {"interval_seconds": 0.01, "concurrency": concurrency}
    with sender(store, **options) as both:
        both.start()
        both.start()
        for event in events(300):
            store.append(event)
        assert endpoint.wait(events=300, timeout_seconds=30)
        assert both.close(30)
    assert sorted(endpoint.events) == sorted(events(300))
    assert endpoint.stats().duplicates == 0 and not store.has_data()


def test_flush_does_not_wait_for_the_interval(sender: MakeSender, endpoint: Endpoint) -> None:
    store = MemoryStore()
    with sender(store, interval_seconds=1000.0) as both:
        both.start()
        assert both.drain(30)
        store.append(b"[1]")
        both.flush()
        assert endpoint.wait(events=1, timeout_seconds=30)


@pytest.mark.parametrize("status", [401, 404, 302])
def test_wrong_key_or_url_raises_and_keeps_events(
    sender: MakeSender, endpoint: Endpoint, status: int
) -> None:
    endpoint.script.extend([status, status, status])
    store = store_of(events(2))
    with sender(store) as both:
        for call in ("drain", "send_once", "drain"):
            with pytest.raises(IoError, match=rf"status {status}.*the events are kept"):
                getattr(both, call)()
        assert store.stats().events == 2 and not both.sender.dead_letters
        assert both.drain(30)


def test_a_redirect_is_not_followed(sender: MakeSender, endpoint: Endpoint) -> None:
    """The events and the key would go to another place."""

    def elsewhere(request: BaseHTTPRequestHandler) -> None:
        request.send_response(307)
        request.send_header("Location", endpoint.url)
        request.send_header("Content-Length", "0")
        request.end_headers()

    refused = pytest.raises(IoError, match="status 307")
    with answering(elsewhere) as url, sender(store_of(events(1)), url) as both, refused:
        both.drain(30)
    assert endpoint.requests == []


@pytest.mark.parametrize("stalls", [False, True])
def test_answer_with_incomplete_body_counts_by_status(sender: MakeSender, stalls: bool) -> None:
    answers, done = [], threading.Event()

    def short(request: BaseHTTPRequestHandler) -> None:
        answers.append(200)
        request.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}")
        if stalls:
            done.wait(30)

    store = store_of(events(1))
    with answering(short) as url:
        with sender(store, url, read_seconds=0.3) as both:
            assert both.drain(30)
        done.set()
    assert answers == [200] and not store.has_data()


@pytest.mark.parametrize("what", ["fetching", "reading"])
def test_a_store_that_fails_is_told(
    sender: MakeSender, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    def broken(*args: object) -> Any:
        raise OSError(5, "the disk is broken")

    target = {"fetching": "MemoryStore.fetch", "reading": "_memory._Records.__call__"}[what]
    store = store_of(events(2))
    with sender(store) as both:
        with monkeypatch.context() as breaking:
            breaking.setattr(f"deedbook.transient.{target}", broken)
            with pytest.raises(IoError, match=rf"{what} failed: .*the disk is broken") as info:
                both.drain(30)
            assert isinstance(info.value.__cause__, OSError)
            with pytest.raises(OSError, match="the disk is broken"):
                both.send_once()
            assert both.sender.stats().events_dead == 0 and store.stats().events == 2
        assert endpoint.events == [] and both.drain(30)
    assert endpoint.events == events(2)


def test_a_closed_sender(sender: MakeSender, endpoint: Endpoint) -> None:
    store = store_of(events(1))
    with sender(store) as both:
        assert "idle" in repr(both.sender)
        assert not both.close() and not both.close(), "what is in the store was not sent"
        for name in ("start", "flush", "drain", "send_once"):
            with pytest.raises(ClosedError):
                getattr(both, name)()
        assert both.sender.stats().requests == 0 and "closed" in repr(both.sender)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_certificate_is_checked(sender: MakeSender, endpoint: Endpoint, tmp_path: Path) -> None:
    """Until it is trusted the events are kept, and none is sent."""
    import ssl

    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext"
    names = "subjectAltName=DNS:localhost"
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*make.split(), names, *files], check=True, capture_output=True)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(certificate, key)
    listening = endpoint._server
    listening.socket = server.wrap_socket(listening.socket, server_side=True)
    url = f"https://localhost:{endpoint.port}/"
    store = store_of(events(2000, 100))
    refused = pytest.raises(IoError, match=r"(?i)certificate.*the events are kept")
    with sender(store, url) as both, refused:
        both.drain(30)
    assert store.stats().events == 2000 and not both.sender.dead_letters
    trusting = ssl.create_default_context(cafile=str(certificate))
    with sender(store, url, ssl_context=trusting) as both:
        assert both.drain(30)
    assert endpoint.events == events(2000, 100)


@pytest.mark.parametrize("seed", range(6))
def test_every_event_arrives_whatever_the_server_does(sender: MakeSender, seed: int) -> None:
    """Each accepted or refused event is found once by its key, and none is lost."""
    chance = random.Random(seed)
    items = events(400, 60)
    faults = Faults(
        {503: 0.1, 429: 0.05, 500: 0.05, 406: 0.03},
        reset=0.1,
        drop=0.1,
        max_bytes=chance.choice([None, 700, 3000]),
        seed=seed,
    )
    store = MemoryStore(batch_records=chance.choice([7, 40]))
    options = {
        "concurrency": chance.choice([1, 3]),
        "compression": chance.choice([None, "gzip"]),
        "interval_seconds": 0.01,
    }
    with Endpoint(faults=faults) as endpoint:
        with sender(store, endpoint.url, **options) as both:
            both.start()
            for event in items:
                store.append(event)
            both.close(0.05)  # whatever is under way is cut off
        endpoint.faults = Faults({503: 0.2}, drop=0.1, max_bytes=faults.max_bytes)
        with sender(store, endpoint.url, **options) as both:
            assert both.drain(60).empty
        dead = [letter.payload for letter in both.sender.dead_letters]
        assert not store.has_data()
        assert set(endpoint.events) | set(dead) == set(items), "none is lost"
        assert len(set(endpoint.events)) == len(endpoint.events), "none is stored twice"
        assert endpoint.stats().conflicts == endpoint.stats().without_length == 0
