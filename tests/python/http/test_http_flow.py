"""The decisions of senders, without threads, network or time: scripted answers, a clock by hand."""

from email.utils import formatdate
from pathlib import Path

import pytest

from deedbook.http import Answer, DeadLetters, Limits, Policy, Rates
from deedbook.http._flow.steps import Bury, Fetch, Remove, Send, Step, Wait
from deedbook.transient import Envelope, MemoryStore
from flows import Run
from http_kinds import events, spool_of, store_of

pytestmark = pytest.mark.promise("ledger-server")


def ids(run: Run) -> list[str]:
    return [id for id, _ in run.sent]


def test_batch_is_removed_only_after_acceptance(tmp_path: Path) -> None:
    store = store_of(events(3))
    run = Run(store, tmp_path, [503, Answer(None, error="reset"), 200])
    run.flow.close(float("inf"))
    run.drive(run.flow.worker(), until=Remove)
    assert store.has_data(), "not before the step is carried out"
    assert run.kinds() == ["Fetch", "Plan", "Prepare", "Send", "Send", "Send", "Remove"]
    assert run.waits == [1.0, 2.0]


def test_attempts_of_a_batch_share_id_and_body(tmp_path: Path) -> None:
    made = iter(range(100))
    envelope = Envelope(footer=lambda: b"],%d" % next(made))
    run = Run(store_of(events(3)), tmp_path, [503, 503], envelope=envelope).drain()
    sends = [step for step in run.steps if isinstance(step, Send)]
    assert len(sends) == 3 and len(set(ids(run))) == 1
    assert {step.prepared.rewound().read() for step in sends} == {
        b"[" + b",".join(events(3)) + b"],0"
    }
    stats = run.flow.snapshot()
    assert (stats.requests, stats.retries, stats.events_sent, stats.batches_sent) == (3, 2, 3, 1)


def test_status_413_divides_down_to_the_large_event(tmp_path: Path) -> None:
    items = events(6)
    large = items[4]

    class Server(list):
        def pop(self, index: int = 0) -> int:
            return 413 if large in run.sent[-1][1] else 200

    store = spool_of(items, tmp_path)
    run = Run(store, tmp_path / "dead")
    run.answers = Server([0])
    run.drain()
    assert [len(records) for _, records in run.sent] == [6, 3, 3, 2, 1, 1, 1]
    names = ["spool-0"] + [f"spool-0.{r}" for r in ("0-3", "3-6", "3-5", "3-4", "4-5", "5-6")]
    assert ids(run) == names, "in order, and each part has an id of its own"
    (letter,) = DeadLetters(tmp_path / "dead")
    assert (letter.payload, letter.record, letter.status) == (large, 4, 413)
    assert not store.has_data()
    stats = run.flow.snapshot()
    assert (stats.splits, stats.events_dead, stats.events_sent) == (3, 1, 5)


def test_refused_batch_becomes_dead_letter_before_removal(tmp_path: Path) -> None:
    store = store_of(events(2))
    run = Run(store, tmp_path, [Answer(406, body=b'{"error": "no user"}\n')])
    run.flow.close(float("inf"))
    run.drive(run.flow.worker(), until=Remove)
    letters = list(DeadLetters(tmp_path))
    assert [letter.payload for letter in letters] == events(2) and store.has_data()
    assert letters[0].reason == 'status 406: {"error": "no user"}'


def test_unwritable_dead_letters_keep_the_batch(tmp_path: Path) -> None:
    """The disk is full, or the folder is a file: nothing may be removed."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    store = store_of(events(2))
    run = Run(store, blocked / "dead", [406])
    tries = []

    def mend_at_the_third(step: Step) -> None:
        if not isinstance(step, Bury):
            return
        tries.append(step)
        if len(tries) == 3:
            assert store.has_data() and run.waits == [1.0, 2.0]
            assert "writing dead letters failed" in run.flow.snapshot().last_error
            blocked.unlink()
            run.flow.close(float("inf"))

    run.drive(run.flow.worker(), before=mend_at_the_third)
    assert not store.has_data() and len(DeadLetters(blocked / "dead")) == 2


def test_attempts_can_be_bounded(tmp_path: Path) -> None:
    policy = Policy(delay_seconds=1, attempts_max=3)
    run = Run(store_of(events(2)), tmp_path, [500] * 9, policy=policy).drain()
    assert len(run.sent) == 3 and run.waits == [1, 2]
    letters = list(DeadLetters(tmp_path))
    assert [letter.attempts for letter in letters] == [3, 3]
    assert letters[0].reason == "given up after 3 attempts: status 500"


def test_attempts_of_a_refused_sender_are_unbounded(tmp_path: Path) -> None:
    policy = Policy(delay_seconds=1, attempts_max=3)
    answers = [401, 401, 401, 503, 401, 503, 200]
    run = Run(store_of(events(2)), tmp_path, answers, policy=policy).drain()
    assert not DeadLetters(tmp_path) and run.flow.snapshot().events_sent == 2
    assert run.waits[:3] == [60] * 3
    run = Run(store_of(events(2)), tmp_path, [*answers[:-1], 503], policy=policy).drain()
    letters = list(DeadLetters(tmp_path))
    assert [letter.attempts for letter in letters] == [7, 7]
    assert letters[0].reason == "given up after 7 attempts, 3 of which failed: status 503"


def test_415_changes_the_encoding_not_the_events(tmp_path: Path) -> None:
    pytest.importorskip("backports.zstd")
    refusing = Answer(415, {"accept-encoding": "br, gzip;q=0.5"})
    store = store_of(events(4), batch_records=2)
    run = Run(store, tmp_path, [refusing, 200, 200], compression="zstd").drain()
    codings = [step.prepared.coding for step in run.steps if isinstance(step, Send)]
    assert codings == ["zstd", "gzip", "gzip"] and run.waits == []
    plain = Run(store_of(events(1)), tmp_path, [Answer(415), Answer(415)], compression="gzip")
    plain.flow.close(float("inf"))
    plain.drive(plain.flow.worker(), until=Wait)
    codings = [step.prepared.coding for step in plain.steps if isinstance(step, Send)]
    assert codings == ["gzip", None], "a plain body that is refused is the sender's fault"


def test_auto_takes_what_the_server_names(tmp_path: Path) -> None:
    store = store_of(events(3), batch_records=1)
    named = Answer(200, {"accept-encoding": "gzip, zstd;q=0"})
    run = Run(store, tmp_path, [200, named, 200], compression="auto").drain()
    codings = [step.prepared.coding for step in run.steps if isinstance(step, Send)]
    assert codings == [None, None, "gzip"]


def test_event_beyond_the_limit_is_never_sent(tmp_path: Path) -> None:
    items = [b"1", b"x" * 50, b"2"]
    run = Run(store_of(items), tmp_path, limits=Limits(event_bytes_max=32)).drain()
    assert [records for _, records in run.sent] == [[b"1"], [b"2"]]
    (letter,) = DeadLetters(tmp_path)
    assert (letter.payload, letter.attempts, letter.status) == (items[1], 0, None)
    assert letter.reason == "an event of 50 bytes, the endpoint takes 32"


@pytest.mark.parametrize("status", [429, 503, 500])
def test_retry_after_accepts_seconds_and_dates(tmp_path: Path, status: int) -> None:
    seconds = Answer(status, {"retry-after": "30"})
    run = Run(store_of(events(1)), tmp_path, [seconds, 200]).drain()
    assert sum(run.waits) == 30
    run = Run(store_of(events(1)), tmp_path, [])
    date = formatdate(run.clock.time() + 45, usegmt=True)
    run.answers = [Answer(status, {"retry-after": date}), 200]
    run.drain()
    assert 44 < sum(run.waits) <= 45 and len(run.sent) == 2


def test_retry_after_cannot_stop_a_sender_for_ever(tmp_path: Path) -> None:
    answers = [Answer(503, {"retry-after": "99999999999"}), 200]
    assert sum(Run(store_of(events(1)), tmp_path, answers).drain().waits) == 3600


def test_retry_after_applies_to_all_workers_and_flushes(tmp_path: Path) -> None:
    run = Run(store_of(events(2), batch_records=1), tmp_path, [Answer(503, {"retry-after": "30"})])
    first, second = run.flow.worker(), run.flow.worker()
    assert not run.drive(first, until=Wait)
    assert not run.drive(second, until=Wait) and run.steps[-1] == Wait(30)
    run.flow.ask_drain()
    assert isinstance(first.send(None), Wait) and isinstance(second.send(None), Wait)
    assert len(run.sent) == 1
    run.clock.now += 30
    assert isinstance(first.send(None), Send) and isinstance(second.send(None), Send)


def test_a_flush_does_not_wait_for_a_backoff(tmp_path: Path) -> None:
    run = Run(store_of(events(1)), tmp_path, [500])
    worker = run.flow.worker()
    run.drive(worker, until=Wait)
    assert isinstance(worker.send(None), Wait), "woken for nothing"
    run.flow.ask_drain()
    assert isinstance(worker.send(None), Send)


@pytest.mark.parametrize(
    ("rates", "seconds"),
    [
        (Rates(requests_per_second=2), 9 / 2 - 1),
        (Rates(events_per_second=10), 81 / 10 - 1),
        (Rates(bytes_per_second=100), None),
        (Rates(requests_per_second=2, events_per_second=10), 81 / 10 - 1),
    ],
)
def test_rates_hold_over_time(tmp_path: Path, rates: Rates, seconds: float | None) -> None:
    store = store_of(events(90), batch_records=9)
    run = Run(store, tmp_path, rates=rates).drain()
    # All but the last request is paid for, less the second that is free.
    sizes = [step.prepared.length for step in run.steps if isinstance(step, Send)]
    seconds = sum(sizes[:-1]) / 100 - 1 if seconds is None else seconds
    assert sum(run.waits) == pytest.approx(seconds)
    assert run.flow.snapshot().wait_seconds == pytest.approx(seconds)


def test_an_idle_sender_looks_again_after_the_interval(tmp_path: Path) -> None:
    """Each look ends the batch that is being filled, so looking all the time makes small ones."""
    store = MemoryStore()
    run = Run(store, tmp_path, interval_seconds=5)
    worker = run.flow.worker()
    run.drive(worker, until=Wait)
    assert run.steps[-1] == Wait(5)
    store.append(b"1")
    run.clock.now += 2
    assert worker.send(None) == Wait(3)
    run.clock.now += 3
    assert isinstance(worker.send(None), Fetch)


def test_a_backlog_is_fetched_without_a_pause(tmp_path: Path) -> None:
    run = Run(store_of(events(100), batch_records=1), tmp_path).drain()
    fetches = [step for step in run.steps if isinstance(step, Fetch)]
    assert len(run.sent) == 100 and len(fetches) <= 8 and run.waits == []


def test_batch_removed_during_a_fetch_is_not_resent(tmp_path: Path) -> None:
    store = store_of(events(1))
    run = Run(store, tmp_path, interval_seconds=1)
    first, second = run.flow.worker(), run.flow.worker()
    run.drive(first, until=Remove)
    run.clock.now += 2
    step = second.send(None)
    assert isinstance(step, Fetch)
    seen = run.answer(step)  # it still has the batch
    assert first.send(run.answer(run.steps[-2])) == Wait(None)  # which is removed now
    assert isinstance(second.send(seen), Wait) and len(run.sent) == 1


def test_drain_waits_for_the_last_batch_of_others(tmp_path: Path) -> None:
    """It fetched the batch while a worker looked; the worker found nothing new."""
    run = Run(store_of(events(1)), tmp_path)
    worker, once = run.flow.worker(), run.flow.once()
    ticket = run.flow.ask_drain()
    step = worker.send(None)
    run.drive(once, until=Send)
    assert isinstance(worker.send(run.answer(step)), Wait) and not run.flow.is_drained(ticket)
    with pytest.raises(StopIteration):
        once.send(Answer(503))
    assert run.drive(worker, until=Wait) is False and run.flow.is_drained(ticket)
    assert [records for _, records in run.sent] == [events(1)]


@pytest.mark.parametrize("answer", [200, 406])
def test_answer_at_the_deadline_still_counts(tmp_path: Path, answer: int) -> None:
    store = store_of(events(2), batch_records=1)
    run = Run(store, tmp_path)
    worker = run.flow.worker()
    run.drive(worker, until=Send)
    run.flow.stop()
    step = worker.send(Answer(answer))
    assert isinstance(step, Remove if answer == 200 else Bury)
    with pytest.raises(StopIteration):
        while True:
            step = worker.send(run.answer(step))
    assert store.stats().batches == 1 and run.sent == []


@pytest.mark.parametrize("answer", [503, 401])
def test_once_means_one_attempt(tmp_path: Path, answer: int) -> None:
    store = store_of(events(2), batch_records=1)
    run = Run(store, tmp_path, [answer])
    assert not run.drive(run.flow.once()) and len(run.sent) == 1 and run.waits == []
    assert run.drive(run.flow.once()) and len(run.sent) == 2
    assert run.sent[0] == run.sent[1] and store.stats().events == 1
