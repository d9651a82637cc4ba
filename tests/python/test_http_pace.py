"""When a sender goes on, waits and gives up: batches that change under it, and rates."""

from __future__ import annotations

import contextlib
from pathlib import Path

from deedbook import CorruptError, Ledger
from deedbook.http import Answer, Rates
from deedbook.http._steps import Plan, Send, Step, Wait
from http_kinds import events, store_of
from test_http_flow import Run


def test_a_file_that_is_damaged_after_it_was_fetched_is_fetched_again(tmp_path: Path) -> None:
    """Its reader, which knew the bytes as they had been, was asked for ever: nothing was sent."""
    file = tmp_path / "spool" / "0-events"

    def damage(step: Step) -> None:
        if isinstance(step, Plan) and not run.sent:
            whole = file.read_bytes()
            file.write_bytes(whole.replace(b'"n":1', b'"n":7'))

    with Ledger.open(tmp_path / "spool") as ledger:
        ledger.append_many(events(3))
        run = Run(ledger, tmp_path / "dead")
        run.flow.close(float("inf"))
        run.drive(run.flow.worker(), before=damage)
        assert [records for _, records in run.sent] == [events(1)] and not ledger.has_data()
    assert (tmp_path / "spool" / ".deedbook" / "quarantine" / "0-events").exists()
    stats = run.flow.snapshot()
    assert (stats.batches_sent, stats.batches_in_flight, stats.events_dead) == (1, 0, 0)


def test_a_batch_that_stays_damaged_ends_a_drain(tmp_path: Path) -> None:
    """Asking for it again at once, and again, would neither end nor tell."""

    def damage(step: Step) -> None:
        if isinstance(step, Send):
            raise CorruptError("the file was changed since")

    store = store_of(events(1))
    run = Run(store, tmp_path)
    run.flow.open(patient=False)
    run.drive(run.flow.worker(), before=damage)
    assert run.flow.problem == "reading failed: the file was changed since"
    assert run.waits == [1.0] and store.has_data()


def test_a_drain_that_runs_out_of_time_uses_up_no_rate(tmp_path: Path) -> None:
    """Each was charged for the request that it waited to make: 0.1 a second became 1 in 200 s."""
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


def test_what_waited_for_the_server_goes_at_the_rate(tmp_path: Path) -> None:
    """All that had been charged before a Retry-After was over left together when it was."""
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
