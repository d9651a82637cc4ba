"""The end of senders: deadlines, restarts, forks, batches that change, rates."""

import asyncio
import contextlib
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from deedbook import CorruptError, ForkedError, IoError, Ledger
from deedbook.http import Answer, AsyncSender, Policy, Rates
from deedbook.http._flow.steps import Plan, Send, Step, Wait
from deedbook.transient import MemoryStore
from endpoint import Endpoint, Faults
from flows import Run
from http_kinds import MakeSender, events, spool_of, store_of

pytestmark = pytest.mark.promise("ledger-server")

threads_alone = pytest.mark.parametrize("sender", ["threads"], indirect=True)


def has_requests(endpoint: Endpoint, count: int = 1) -> bool:
    with endpoint.changed:
        return endpoint.changed.wait_for(lambda: len(endpoint.requests) >= count, 30)


def test_closing_sends_what_is_there(sender: MakeSender, endpoint: Endpoint) -> None:
    store = MemoryStore()
    with sender(store, interval_seconds=1000.0) as both:
        both.start()
        store.append_many(events(10))
        assert both.close(30)
    assert endpoint.events == events(10)


@pytest.mark.parametrize("behaviour", ["stall", 503])
def test_closing_keeps_its_deadline(sender: MakeSender, endpoint: Endpoint, behaviour: Any) -> None:
    endpoint.script.extend([behaviour] * 100)
    store = store_of(events(3))
    policy = Policy(delay_seconds=0.05, delay_seconds_max=30)
    with sender(store, policy=policy) as both:
        both.start()
        assert has_requests(endpoint)
        begun = time.monotonic()
        assert not both.close(0.3)
        assert time.monotonic() - begun < 2.5
    assert store.stats().events == 3
    endpoint.script.clear()
    with sender(store) as both:
        assert both.drain(30)
    assert endpoint.events == events(3)


@threads_alone
@pytest.mark.parametrize("held", ["connecting", "answering"])
def test_request_delayed_past_the_close_has_no_effect(
    sender: MakeSender, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    """Earlier, a request had no socket during the connect, and was sent long after the close."""
    connection = pytest.importorskip("urllib3.connection").HTTPConnection
    begun, go_on = threading.Event(), threading.Event()
    connect = connection.connect

    def slow(*args: Any) -> Answer:
        begun.set()
        go_on.wait(30)
        if held == "connecting":
            connect(args[0])
        return Answer(200)

    monkeypatch.setattr("deedbook.http._sender._GRACE_SECONDS", 0.05)
    store = store_of(events(1))
    with sender(store) as both:
        if held == "connecting":
            monkeypatch.setattr(connection, "connect", slow)
        else:
            both.sender._transport.send = slow
        both.start()
        assert begun.wait(30)
        (thread,) = both.sender._threads
        assert not both.close(0)
        go_on.set()
        thread.join(30)
    assert not thread.is_alive() and endpoint.requests == [] and store.stats().events == 1


def test_drain_with_timeout_leaves_no_request(sender: MakeSender, endpoint: Endpoint) -> None:
    endpoint.script.append("stall")
    with sender(store_of(events(1))) as both:
        begun = time.monotonic()
        assert not both.drain(0.1) and time.monotonic() - begun < 2.5
        assert not [t for t in threading.enumerate() if t.name.startswith("deedbook-http-")]
        assert both.drain(30) and endpoint.events == events(1)


@threads_alone
def test_leftover_request_of_a_drain_keeps_its_order(
    sender: MakeSender, endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, bool]] = []
    sending, go_on = threading.Event(), threading.Event()
    store = store_of(events(2), batch_records=1)
    monkeypatch.setattr("deedbook.http._sender._GRACE_SECONDS", 0.05)
    with ThreadPoolExecutor(1) as pool, sender(store) as both:
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


def test_timed_out_drain_does_not_end_another_drain(sender: MakeSender, endpoint: Endpoint) -> None:
    endpoint.script.append("stall")
    with ThreadPoolExecutor(1) as pool, sender(store_of(events(1))) as both:
        first = pool.submit(both.drain, 0.5)
        assert has_requests(endpoint)
        assert not both.drain(0)
        assert both.drain(30)
        assert not first.result(30)
    assert endpoint.events == events(1)


@pytest.mark.parametrize("call", ["flush", "send_once"])
async def test_failed_drain_raises_despite_concurrent_calls(
    endpoint: Endpoint, tmp_path: Path, call: str
) -> None:
    pytest.importorskip("aiohttp")
    endpoint.script.extend([401, 503])
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


def test_a_start_during_a_drain_holds(sender: MakeSender, endpoint: Endpoint) -> None:
    endpoint.script.append("stall")
    with ThreadPoolExecutor(1) as pool, sender(store_of(events(1)), interval_seconds=0.05) as both:
        drain = pool.submit(both.drain, 0.5)
        assert has_requests(endpoint)
        both.start()
        assert not drain.result(30)
        assert endpoint.wait(events=1, timeout_seconds=30)
        assert both.close(30)
    assert endpoint.events == events(1)


def test_the_keys_are_the_same_after_a_restart(
    sender: MakeSender, endpoint: Endpoint, tmp_path: Path
) -> None:
    """The second sender starts without any state; only the server knows the keys."""
    store = spool_of(events(8), tmp_path)
    endpoint.faults = Faults(max_bytes=100)
    endpoint.script.extend(["ok", "drop", "stall"])
    with sender(store) as first:
        first.start()
        assert has_requests(endpoint, 3)
        first.close(0)
    assert store.has_data() and endpoint.events == events(4)
    with sender(store) as second:
        assert second.drain(30)
    assert endpoint.events == events(8) and endpoint.stats().duplicates == 1
    keys = [request.key for request in endpoint.requests]
    halves = ["spool-0.0-4", "spool-0.4-8"]
    # The answer to the first half was lost, and then the first sender ended.
    assert keys == ["spool-0", halves[0], halves[0], "spool-0", *halves]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@threads_alone
def test_a_child_of_a_fork_is_refused(sender: MakeSender) -> None:
    """A thread missing in the child may hold the lock forever; earlier, `stats` waited for it."""
    with sender(MemoryStore()) as both:
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


def test_damaged_batch_is_fetched_again(tmp_path: Path) -> None:
    file = tmp_path / "spool" / "0-events"

    def damage(step: Step) -> None:
        if isinstance(step, Plan) and not run.sent:
            whole = file.read_bytes()
            file.write_bytes(whole.replace(b'"n":1', b'"n":7'))

    with Ledger.open(tmp_path / "spool", "a") as ledger:
        ledger.append_many(events(3))
        run = Run(ledger, tmp_path / "dead")
        run.flow.close(float("inf"))
        run.drive(run.flow.worker(), before=damage)
        assert [records for _, records in run.sent] == [events(1)] and not ledger.has_data()
    assert (tmp_path / "spool" / ".deedbook" / "quarantine" / "0-events").exists()
    stats = run.flow.snapshot()
    assert (stats.batches_sent, stats.batches_in_flight, stats.events_dead) == (1, 0, 0)


def test_a_batch_that_stays_damaged_ends_a_drain(tmp_path: Path) -> None:
    """An immediate retry would neither end nor report the damage."""

    def damage(step: Step) -> None:
        if isinstance(step, Send):
            raise CorruptError("the file was changed since")

    store = store_of(events(1))
    run = Run(store, tmp_path)
    run.flow.open(patient=False)
    run.drive(run.flow.worker(), before=damage)
    assert run.flow.problem == "reading failed: the file was changed since"
    assert run.waits == [1.0] and store.has_data()


def test_timed_out_drain_consumes_no_rate(tmp_path: Path) -> None:
    store = store_of(events(30), batch_records=1)
    run = Run(store, tmp_path, rates=Rates(requests_per_second=0.1))
    for _ in range(40):
        run.flow.open(patient=False)
        worker, end = run.flow.worker(), run.clock.now + 5
        step = next(worker)
        with contextlib.suppress(StopIteration):
            while True:
                if isinstance(step, Wait) and run.clock.now + (step.seconds or 0) > end:
                    run.clock.now = end
                    run.flow.stop()
                    step = worker.send(None)
                else:
                    step = worker.send(run.answer(step))
        for released in run.flow.release():
            released.batch.close()
    assert len(run.sent) == 21, "the first at once, and one after 9, 19, ... 199 seconds"


def test_delayed_requests_obey_the_rate(tmp_path: Path) -> None:
    store = store_of(events(4), batch_records=1)
    run = Run(store, tmp_path, rates=Rates(requests_per_second=0.5))
    first, second, third = (run.flow.worker() for _ in range(3))
    run.drive(first, until=Send)
    assert first.send(Answer(503, {"retry-after": "30"})) == Wait(30)
    for worker in (second, third):
        run.drive(worker, until=Wait)
    run.clock.now += 31
    assert isinstance(second.send(None), Send)
    assert third.send(None) == Wait(1) and first.send(None) == Wait(1)
    run.clock.now += 1
    assert isinstance(first.send(None), Send)
    assert third.send(None) == Wait(2), "another was first"
