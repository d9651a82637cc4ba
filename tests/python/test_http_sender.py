"""Both senders against a real server that fails, and the promise that no event is lost."""

from __future__ import annotations

import http.server
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("urllib3")
pytest.importorskip("aiohttp")

from deedbook import ClosedError, IoError
from deedbook.http import DeadLetters, Limits
from deedbook.http.endpoint import Endpoint, Faults
from deedbook.transient import BatchBody, DataResult, MemoryStore
from http_kinds import Both, SkippingClock, events, store_of

pytestmark = pytest.mark.promise("ledger-server")


@pytest.fixture(params=["threads", "asyncio"])
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint() as endpoint:
        yield endpoint


def sender(kind: str, store: Any, endpoint: Endpoint, folder: Path, **options: Any) -> Both:
    return Both(kind, store, endpoint.url, dead_letters=folder, **options)


# -- sending --------------------------------------------------------------------------------------


def test_an_empty_store_sends_nothing(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    with sender(kind, MemoryStore(), endpoint, tmp_path) as both:
        assert both.drain(10) and not both.send_once()
    assert endpoint.stats().requests == 0


def test_events_arrive_and_are_removed(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    items = events(3000, 250)
    store = store_of(items, batch_bytes=100_000)
    with sender(kind, store, endpoint, tmp_path) as both:
        assert both.drain(30)
        stats = both.sender.stats()
    assert endpoint.events == items, "in order"
    assert not store.has_data() and not DeadLetters(tmp_path)
    assert (stats.events_sent, stats.batches_sent, stats.retries) == (3000, 8, 0)
    assert stats.bytes_sent == endpoint.stats().bytes and stats.to_dict()["last_status"] == 200
    seen = endpoint.stats()
    assert seen.without_length == seen.short == seen.duplicates == 0
    assert endpoint.requests[0].headers["user-agent"].startswith("deedbook/")


def test_send_once_sends_the_oldest_batch(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    items = events(4)
    store = store_of(items, batch_records=2)
    endpoint.script.append(503)
    with sender(kind, store, endpoint, tmp_path) as both:
        assert not both.send_once() and endpoint.events == []
        assert both.send_once() and endpoint.events == items[:2]
        assert both.send_once() and not both.send_once()
    assert endpoint.events == items


@pytest.mark.parametrize("compression", [None, "gzip", "zstd", "auto"])
@pytest.mark.parametrize("failure", [503, "reset", "drop"])
def test_a_failed_attempt_is_repeated_whole(
    kind: str, endpoint: Endpoint, tmp_path: Path, failure: Any, compression: Any
) -> None:
    if compression == "zstd" and sys.version_info < (3, 14):
        pytest.importorskip("backports.zstd")
    items = events(4000, 250)
    endpoint.script.extend(["ok", failure, failure])
    store = store_of(items, batch_bytes=475_000)
    with sender(kind, store, endpoint, tmp_path, compression=compression) as both:
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


class Unreadable(MemoryStore):
    """Gives batches whose records cannot be read."""

    def fetch(self, count: int | None = None, max_bytes: int | None = None) -> DataResult | None:
        def broken(start: int, stop: int) -> Iterator[bytes]:
            raise OSError(5, "the disk is broken")

        found = super().fetch(count, max_bytes)
        if found is None:
            return None
        bodies = [BatchBody(b.id, broken, b.count, 10, b.envelope) for b in found.data]
        return DataResult(bodies, found.removable)


def test_a_body_that_cannot_be_read_is_told(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    """It was taken for a server that does not answer, and sent again for ever."""
    store = Unreadable()
    store.append_many(events(1))
    with sender(kind, store, endpoint, tmp_path) as both:
        with pytest.raises(IoError, match=r"reading failed: .*the disk is broken"):
            both.drain(30)
        with pytest.raises(OSError, match="the disk is broken"):
            both.send_once()
        assert both.sender.stats().events_dead == 0
    assert store.stats().events == 1 and endpoint.events == []


def test_a_server_that_is_down_and_comes_back(kind: str, tmp_path: Path) -> None:
    store = store_of(events(10))
    with Endpoint() as first:
        port = first.port
    with Both(kind, store, first.url, dead_letters=tmp_path) as both:
        assert not both.drain(0.1) and store.stats().events == 10
        assert "connect" in both.sender.stats().last_error.lower()
        with Endpoint(port) as second:
            assert both.drain(30)
            assert second.events == events(10)


def test_413_is_answered_by_halves(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    items = events(40, 100)
    items[17] = events(1, 900, start=17)[0]
    endpoint.faults = Faults(max_bytes=600)
    store = store_of(items)
    with sender(kind, store, endpoint, tmp_path) as both:
        assert both.drain(30).empty
    assert endpoint.events == items[:17] + items[18:]
    (letter,) = DeadLetters(tmp_path)
    assert (letter.payload, letter.record, letter.status) == (items[17], 17, 413)
    assert not store.has_data()


def test_dead_letters_are_replayed(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    store = store_of(events(5))
    endpoint.script.append(406)
    with sender(kind, store, endpoint, tmp_path) as both:
        assert both.drain(30).empty
        assert not store.has_data() and endpoint.events == []
        assert both.sender.stats().events_dead == 5
        assert both.sender.dead_letters.replay(store) == 5
        assert both.drain(30)
    assert endpoint.events == events(5)


def test_limits_make_parts(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    store = store_of(events(10))
    with sender(kind, store, endpoint, tmp_path, limits=Limits(batch_events_max=4)) as both:
        assert both.drain(30)
    assert [request.events for request in endpoint.requests] == [4, 4, 2]
    assert endpoint.events == events(10)


@pytest.mark.parametrize("concurrency", [1, 4])
def test_the_background_sends_what_is_appended(
    kind: str, endpoint: Endpoint, tmp_path: Path, concurrency: int
) -> None:
    store = MemoryStore(batch_records=10)
    options = {"interval_seconds": 0.01, "concurrency": concurrency}
    with sender(kind, store, endpoint, tmp_path, **options) as both:
        both.start()
        both.start()
        for event in events(300):
            store.append(event)
        assert endpoint.wait(events=300, timeout_seconds=30)
        assert both.close(30)
    assert sorted(endpoint.events) == sorted(events(300))
    assert endpoint.stats().duplicates == 0 and not store.has_data()


def test_flush_does_not_wait_for_the_interval(
    kind: str, endpoint: Endpoint, tmp_path: Path
) -> None:
    store = MemoryStore()
    with sender(kind, store, endpoint, tmp_path, interval_seconds=1000.0) as both:
        both.start()
        assert both.drain(30)
        store.append(b"[1]")
        both.flush()
        assert endpoint.wait(events=1, timeout_seconds=30)


def test_retry_after_is_honoured_without_waiting(
    kind: str, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.faults = Faults(retry_after="90")
    endpoint.script.extend([429, 503])
    clock = SkippingClock()
    with sender(kind, store_of(events(1)), endpoint, tmp_path, clock=clock) as both:
        assert both.drain(30)
    assert sum(clock.waits) >= 180 and len(endpoint.requests) == 3


# -- the sender's own faults ----------------------------------------------------------------------


@pytest.mark.parametrize("status", [401, 404, 302])
def test_a_wrong_key_or_url_is_told_and_nothing_is_lost(
    kind: str, endpoint: Endpoint, tmp_path: Path, status: int
) -> None:
    endpoint.script.extend([status, status, status])
    store = store_of(events(2))
    with sender(kind, store, endpoint, tmp_path) as both:
        for call in ("drain", "send_once", "drain"):
            with pytest.raises(IoError, match=rf"status {status}.*the events are kept"):
                both.call(call)
        assert store.stats().events == 2 and not DeadLetters(tmp_path)
        assert both.drain(30)


def test_a_redirect_is_not_followed(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    """The events and the key would go to another place."""

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(307)
            self.send_header("Location", endpoint.url)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        refused = pytest.raises(IoError, match="status 307")
        with Both(kind, store_of(events(1)), url, dead_letters=tmp_path) as both, refused:
            both.drain(30)
        server.shutdown()
    assert endpoint.requests == []


@pytest.mark.parametrize("stalls", [False, True])
def test_an_answer_whose_body_does_not_end_counts_by_its_status(
    kind: str, tmp_path: Path, stalls: bool
) -> None:
    """The events were sent for ever, though the server had said that it had them."""
    requests, done = [], threading.Event()

    class Short(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            requests.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.end_headers()
            self.wfile.write(b"{}")
            if stalls:
                done.wait(30)
            self.close_connection = True

        def log_message(self, *args: object) -> None:
            pass

    store = store_of(events(1))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Short) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        with Both(kind, store, url, dead_letters=tmp_path, read_seconds=0.3) as both:
            assert both.drain(30)
        done.set()
        server.shutdown()
    assert len(requests) == 1 and not store.has_data()


def test_a_store_that_fails_is_told(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    class Failing(MemoryStore):
        failures = 2

        def fetch(self, count: int | None = None, max_bytes: int | None = None) -> Any:
            if self.failures:
                self.failures -= 1
                raise OSError("the disk is gone")
            return super().fetch(count, max_bytes)

    store = Failing()
    store.append_many(events(2))
    with sender(kind, store, endpoint, tmp_path) as both:
        with pytest.raises(IoError, match="fetching failed: the disk is gone") as info:
            both.drain(30)
        assert isinstance(info.value.__cause__, OSError)
        with pytest.raises(OSError, match="the disk is gone"):
            both.send_once()
        assert both.drain(30)
    assert endpoint.events == events(2)


def test_a_closed_sender(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    store = store_of(events(1))
    with sender(kind, store, endpoint, tmp_path) as both:
        assert "idle" in repr(both.sender)
        assert not both.close() and not both.close(), "what is in the store was not sent"
        for name in ("start", "flush", "drain", "send_once"):
            with pytest.raises(ClosedError):
                both.call(name)
        assert both.sender.stats().requests == 0 and "closed" in repr(both.sender)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
def test_a_certificate_is_checked(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
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
    with Both(kind, store, url, dead_letters=tmp_path / "dead") as both, refused:
        both.drain(30)
    assert store.stats().events == 2000 and not DeadLetters(tmp_path / "dead")
    trusting = ssl.create_default_context(cafile=str(certificate))
    with Both(kind, store, url, dead_letters=tmp_path, ssl_context=trusting) as both:
        assert both.drain(30)
    assert endpoint.events == events(2000, 100)


# -- nothing is lost ------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_every_event_arrives_whatever_the_server_does(kind: str, tmp_path: Path, seed: int) -> None:
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
    folder = tmp_path / "dead"
    options = {
        "concurrency": chance.choice([1, 3]),
        "compression": chance.choice([None, "gzip"]),
        "interval_seconds": 0.01,
    }
    with Endpoint(faults=faults) as endpoint:
        with sender(kind, store, endpoint, folder, **options) as both:
            both.start()
            for event in items:
                store.append(event)
            both.close(0.05)  # whatever is under way is cut off
        endpoint.faults = Faults({503: 0.2}, drop=0.1, max_bytes=faults.max_bytes)
        with sender(kind, store, endpoint, folder, **options) as both:
            assert both.drain(60).empty
        dead = [letter.payload for letter in DeadLetters(folder)]
        assert not store.has_data()
        assert set(endpoint.events) | set(dead) == set(items), "none is lost"
        assert len(set(endpoint.events)) == len(endpoint.events), "none is stored twice"
        assert endpoint.stats().conflicts == endpoint.stats().without_length == 0
