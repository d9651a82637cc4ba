"""How senders end: by a deadline, by a restart, in the child of a fork."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("urllib3")
pytest.importorskip("aiohttp")

from deedbook import ForkedError, IoError
from deedbook.http import AsyncSender, Policy
from deedbook.http.endpoint import Endpoint, Faults
from deedbook.transient import MemoryStore
from http_kinds import Both, DiskStore, events, store_of

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


def test_closing_sends_what_is_there(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    store = MemoryStore()
    with sender(kind, store, endpoint, tmp_path, interval_seconds=1000.0) as both:
        both.start()
        store.append_many(events(10))
        assert both.close(30)
    assert endpoint.events == events(10)


@pytest.mark.parametrize("behaviour", ["stall", 503])
def test_closing_keeps_its_deadline(
    kind: str, endpoint: Endpoint, tmp_path: Path, behaviour: Any
) -> None:
    """A server that never answers held the end up for the whole read timeout."""
    endpoint.script.extend([behaviour] * 100)
    store = store_of(events(3))
    policy = Policy(delay_seconds=0.05, delay_seconds_max=30)
    with sender(kind, store, endpoint, tmp_path, policy=policy) as both:
        both.start()
        with endpoint.changed:
            assert endpoint.changed.wait_for(lambda: endpoint.requests, 30)
        begun = time.monotonic()
        assert not both.close(0.3)
        assert time.monotonic() - begun < 2.5
    assert store.stats().events == 3
    endpoint.script.clear()
    with sender(kind, store, endpoint, tmp_path) as both:
        assert both.drain(30)
    assert endpoint.events == events(3)


def test_a_request_that_connects_at_the_end_is_not_sent(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had no socket to end, and was sent when the sender was long closed."""
    import urllib3.connection

    connecting, go_on = threading.Event(), threading.Event()
    connect = urllib3.connection.HTTPConnection.connect

    def slow(self: Any) -> None:
        connecting.set()
        go_on.wait(30)
        connect(self)

    monkeypatch.setattr(urllib3.connection.HTTPConnection, "connect", slow)
    monkeypatch.setattr("deedbook.http._sender._GRACE_SECONDS", 0.05)
    with sender("threads", store_of(events(1)), endpoint, tmp_path) as both:
        both.start()
        assert connecting.wait(30)
        (thread,) = both.sender._threads
        assert not both.close(0)
        go_on.set()
        thread.join(30)
    assert not thread.is_alive() and endpoint.requests == []


def test_an_answer_after_the_end_leaves_the_store_alone(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store may be closed, or belong to the next sender."""
    from deedbook.http import Answer

    sending, answers = threading.Event(), threading.Event()

    def send(*args: object) -> Answer:
        sending.set()
        answers.wait(30)
        return Answer(200)

    monkeypatch.setattr("deedbook.http._sender._GRACE_SECONDS", 0.05)
    store = store_of(events(1))
    with sender("threads", store, endpoint, tmp_path) as both:
        both.sender._transport.send = send
        both.start()
        assert sending.wait(30)
        (thread,) = both.sender._threads
        assert not both.close(0)
        answers.set()
        thread.join(30)
    assert not thread.is_alive() and store.stats().events == 1


def test_a_drain_with_a_timeout_leaves_no_request_behind(
    kind: str, endpoint: Endpoint, tmp_path: Path
) -> None:
    endpoint.script.append("stall")
    with sender(kind, store_of(events(1)), endpoint, tmp_path) as both:
        begun = time.monotonic()
        assert not both.drain(0.1) and time.monotonic() - begun < 2.5
        assert not [t for t in threading.enumerate() if t.name.startswith("deedbook-http-")]
        assert both.drain(30) and endpoint.events == events(1)


def test_a_request_that_a_drain_left_behind_is_not_overtaken(
    endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hung where nothing ends it, as in a name server; the next drain sent what came later."""
    from deedbook.http import Answer

    calls: list[tuple[str, bool]] = []
    sending, go_on = threading.Event(), threading.Event()
    store = store_of(events(2), batch_records=1)
    monkeypatch.setattr("deedbook.http._sender._GRACE_SECONDS", 0.05)
    with (
        ThreadPoolExecutor(1) as pool,
        sender("threads", store, endpoint, tmp_path) as both,
    ):
        really = both.sender._transport.send

        def send(prepared: Any, headers: Any) -> Answer:
            calls.append((prepared.part.id, go_on.is_set()))
            if len(calls) == 1:
                sending.set()
                assert go_on.wait(30)
                return Answer(None, error="no such host")
            return really(prepared, headers)

        both.sender._transport.send = send
        assert not both.drain(1) and sending.is_set()
        assert not both.send_once() and not both.drain(0.1)
        later = pool.submit(both.drain, 30)
        time.sleep(0.2)
        go_on.set()
        assert later.result(30)
    assert endpoint.events == events(2)
    first, second = calls[0][0], calls[-1][0]
    assert calls == [(first, False), (first, True), (second, True)], "one at a time, in order"


def test_a_drain_that_times_out_does_not_end_another(
    kind: str, endpoint: Endpoint, tmp_path: Path
) -> None:
    """It took the threads with it, and the other drain waited for ever."""
    endpoint.script.append("stall")
    with (
        ThreadPoolExecutor(1) as pool,
        sender(kind, store_of(events(1)), endpoint, tmp_path) as both,
    ):
        first = pool.submit(both.drain, 0.5)
        with endpoint.changed:
            assert endpoint.changed.wait_for(lambda: endpoint.requests, 30)
        assert not both.drain(0)
        assert both.drain(30)
        assert not first.result(30)
    assert endpoint.events == events(1)


@pytest.mark.parametrize("call", ["flush", "send_once"])
def test_a_drain_that_fails_is_told_whatever_is_called_meanwhile(
    endpoint: Endpoint, tmp_path: Path, call: str
) -> None:
    """The call took the error away before the drain saw it, which then waited for ever."""
    endpoint.script.extend([401, 503])

    async def main() -> None:
        sender = AsyncSender(store_of(events(1)), endpoint.url, dead_letters=tmp_path)
        flow, others = sender._flow, []
        tell = flow.tell

        def tell_and_call() -> None:
            tell()
            if flow.problem is not None and not others:
                others.append(asyncio.ensure_future(other()))

        async def other() -> None:
            if call == "flush":
                sender.flush()
            else:
                with pytest.raises(IoError, match="status 401"):
                    await sender.send_once()

        flow.tell = tell_and_call
        with pytest.raises(IoError, match="status 401"):
            await asyncio.wait_for(sender.drain(), 10)
        await asyncio.gather(*others)
        assert len(others) == 1
        await sender.close()

    asyncio.run(main())


def test_a_start_during_a_drain_holds(kind: str, endpoint: Endpoint, tmp_path: Path) -> None:
    """The end of the drain undid it, and nothing was sent in the background."""
    endpoint.script.append("stall")
    with (
        ThreadPoolExecutor(1) as pool,
        sender(kind, store_of(events(1)), endpoint, tmp_path, interval_seconds=0.05) as both,
    ):
        drain = pool.submit(both.drain, 0.5)
        with endpoint.changed:
            assert endpoint.changed.wait_for(lambda: endpoint.requests, 30)
        both.start()
        assert not drain.result(30)
        assert endpoint.wait(events=1, timeout_seconds=30)
        assert both.close(30)
    assert endpoint.events == events(1)


def test_a_server_that_takes_no_bytes_ends_by_the_read_timeout(kind: str, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        options = {"read_seconds": 0.05, "dead_letters": tmp_path}
        with Both(kind, store_of(events(1)), url, **options) as both:
            assert not both.send_once()
            assert "imeout" in both.sender.stats().last_error


def test_the_keys_are_the_same_after_a_restart(
    kind: str, endpoint: Endpoint, tmp_path: Path
) -> None:
    """The second sender knows nothing of the first; the server knows the keys."""
    store = DiskStore(tmp_path)
    store.add_batch(events(8))
    endpoint.faults = Faults(max_bytes=100)
    endpoint.script.extend(["ok", "drop", "stall"])
    with sender(kind, store, endpoint, tmp_path / "dead") as first:
        first.start()
        with endpoint.changed:
            assert endpoint.changed.wait_for(lambda: len(endpoint.requests) >= 3, 30)
        first.close(0)
    assert store.has_data() and endpoint.events == events(4)
    with sender(kind, store, endpoint, tmp_path / "dead") as second:
        assert second.drain(30)
    assert endpoint.events == events(8) and endpoint.stats().duplicates == 1
    keys = [request.key for request in endpoint.requests]
    halves = ["spool-0.0-4", "spool-0.4-8"]
    # The answer to the first half was lost, and then the first sender ended.
    assert keys == ["spool-0", halves[0], halves[0], "spool-0", *halves]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_a_fork_is_refused(endpoint: Endpoint, tmp_path: Path) -> None:
    """A thread that the child has not may hold the lock for ever, for which `stats` waited, too."""
    with sender("threads", MemoryStore(), endpoint, tmp_path) as both:
        pid = os.fork()
        if pid == 0:  # pragma: no cover
            good = False
            try:
                for call in (lambda: both.sender.drain(1), both.sender.stats):
                    with pytest.raises(ForkedError):
                        call()
                good = both.sender.close() is False
            finally:
                os._exit(0 if good else 1)
        assert os.waitpid(pid, 0)[1] == 0
