"""The decisions of a sender, without I/O: the next step, and the meaning of an outcome.

A worker is a generator. A worker yields a `Step` and gets the outcome; an error of the step is
thrown into the worker. `Sender` runs workers in threads, `AsyncSender` in tasks; only this module
decides. Under a lock, the workers of a flow yield steps and get outcomes. The drivers carry out the
steps of all workers at the same time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from dataclasses import dataclass, replace
from math import inf
from typing import Any

from deedbook.http._flow.encode import Codings, Prepared
from deedbook.http._flow.pace import Damaged, Job, Pace, Stopped, log
from deedbook.http._flow.plan import Part
from deedbook.http._flow.stats import Drained, SenderStats
from deedbook.http._flow.steps import (
    Bury,
    Fetch,
    Plan,
    Prepare,
    Release,
    Remove,
    Send,
    Step,
    Wait,
    Worker,
)
from deedbook.http._policy import Action, Answer, printable
from deedbook.http._settings import Settings, shown_url
from deedbook.transient import Batch, DataResult

FETCH_BATCHES = 16
"""Batches to fetch at once, because each fetch ends the unfinished batch."""


@dataclass
class _Taken:
    """A fetched batch with unsent records."""

    batch: Batch
    removable: Any
    job: Job | None = None
    """The job that sends the batch, once the batch has left the queue."""


class Flow(Pace):
    """The common state of a sender's workers. The driver makes a single call at a time."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._codings = Codings(settings.compression)
        self._queue: deque[_Taken] = deque()
        self._in_flight: dict[str, _Taken] = {}
        self._left: dict[str, _Taken] = {}  # fetched, tried, and still in the store
        self._fetching = 0
        self._removed: set[str] = set()  # since the fetch under way began
        self._fetch_at = -inf
        self._drained = 0
        self._closing = False

    # -- calls of the driver -----------------------------------------------------------------------

    def ask_drain(self) -> int:
        """Empty the store as soon as possible; give the result to `is_drained`.

        Attempts that wait after a failure begin now, unless the server asked for the wait.
        """
        self._asked += 1
        self._no_problem()
        self._fetch_at = -inf
        return self._asked

    def is_drained(self, ticket: int) -> bool:
        """Whether the store was found empty, and nothing in flight, since then."""
        return self._drained >= ticket

    def close(self, deadline: float) -> int:
        """Let workers end once the store is empty, at the deadline (monotonic) at the latest."""
        self._closing = True
        self._stop_at = deadline
        return self.ask_drain()

    def open(self, patient: bool) -> None:
        """Let workers begin, also again after `close` or `stop`, when none is left."""
        self.patient = patient
        self.problem = self.cause = None
        self._opened += 1
        self._closing = False
        self._stop_at = inf

    def release(self) -> list[Release]:
        """Forget the batches without a worker; return the steps that give the batches back."""
        for taken in self._queue:
            del self._in_flight[taken.batch.id]
        left = [*self._left.values(), *self._queue]
        self._left.clear()
        self._queue.clear()
        return [Release(taken.batch, taken.removable) for taken in left]

    def drained(self, before: SenderStats, *, empty: bool) -> Drained:
        """The result of a drain that began with these counters."""
        now = self.tally.values
        dead = now.events_dead - before.events_dead
        return Drained(empty, now.events_sent - before.events_sent, dead)

    def snapshot(self) -> SenderStats:
        """The counters now, with the store's counters."""
        stats = getattr(self.settings.store, "stats", None)
        held = stats() if stats is not None else None
        return replace(
            self.tally.values,
            batches_in_flight=len(self._in_flight),
            events_dropped=getattr(held, "dropped_events", 0),
            events_rejected=getattr(held, "rejected_events", 0),
        )

    # -- workers -----------------------------------------------------------------------------------

    def worker(self) -> Worker:
        """Send batches until the sender stops, or until new workers replace this worker."""
        return self._work(Job(self._opened))  # known now, not when the worker gets to run

    def _work(self, job: Job) -> Worker:
        try:
            while (taken := (yield from self._take(job))) is not None:
                yield from self._deliver(job, taken)
        except Stopped:
            return False
        return True

    def once(self) -> Worker:
        """Fetch a batch and try once; unsent events stay in the store."""
        job = Job(self._opened, once=True)
        if self._is_one_left_over():
            return False
        try:
            yield from self._fetch(job, 1)
            if not self._queue:
                return False
            yield from self._deliver(job, self._queue.popleft())
        except Stopped:
            return False
        return True

    def _take(self, job: Job) -> Generator[Step, Any, _Taken | None]:
        """The next batch, fetched if need be; None at the end."""
        while True:
            self._check_stop(job)
            wait = self._fetch_at - self.settings.clock.monotonic()
            if self._is_one_left_over():
                yield Wait(None)
            elif self._queue:
                return self._queue.popleft()
            elif self._fetching:
                yield Wait(None)
            elif wait <= 0:
                asked, idle = self._asked, not self._in_flight
                found = yield from self._fetch(job, FETCH_BATCHES)
                if not found and idle and not self._in_flight:
                    self._drained = asked
                    self.tell()
            elif self._closing and self.is_drained(self._asked):
                return None
            elif self._asked > self._drained and not self._in_flight:
                self._fetch_at = -inf  # the last of those in flight is done: look again
            else:
                yield Wait(wait)

    def _is_one_left_over(self) -> bool:
        """Whether a stopped worker still sends a batch, so that no other worker may overtake."""
        jobs = (taken.job for taken in self._in_flight.values())
        return any(job is not None and self._is_left_over(job) for job in jobs)

    def _fetch(self, job: Job, count: int) -> Generator[Step, Any, bool]:
        """Fetch ``count`` batches more than are in flight; return whether a batch is new."""
        wanted = count + len(self._in_flight)
        if not self._fetching:
            self._removed.clear()
        self._fetching += 1
        try:
            result: DataResult | None = yield from self._must(job, Fetch(wanted), "fetching")
        finally:
            self._fetching -= 1
            self.tell()
        new = []
        if result is not None:
            for batch, removable in zip(result.data, result.removable, strict=True):
                if batch.id in self._in_flight or batch.id in self._removed:
                    batch.close()  # it is being sent, or was while the store was looked at
                    continue
                self._left.pop(batch.id, None)
                taken = self._in_flight[batch.id] = _Taken(batch, removable)
                new.append(taken)
        self._queue.extend(new)
        full = result is not None and len(result.data) >= wanted
        # A fetch ends the unfinished batch, so fetch less often while the store has no more.
        pause = 0 if full else self.settings.interval_seconds
        self._fetch_at = self.settings.clock.monotonic() + pause
        return bool(new)

    def _deliver(self, job: Job, taken: _Taken) -> Generator[Step, Any, None]:
        """Send a batch part by part, then remove the batch. A stop leaves the batch.

        A damaged batch also stays, and the store reads the batch again.
        """
        batch, taken.job = taken.batch, job
        done = False
        try:
            parts: deque[Part] = deque((yield from self._must(job, Plan(batch), "reading")))
            while parts:
                part = parts.popleft()
                if part.reason is not None:
                    yield from self._bury(job, part, part.reason, None, 0)
                elif (yield from self._send(job, part)) == "split":
                    parts.extendleft(reversed(part.halves()))
            # Only now is every event accepted, or durably a dead letter.
            yield from self._must(job, Remove(batch, taken.removable), "removing")
            self._removed.add(batch.id)
            done = True
            self._damaged_in_a_row = 0
            self.tally.count(batches_sent=1)
        except Damaged as damaged:
            yield from self._fetch_anew(job, damaged)
            self._fetch_at = -inf
        finally:
            batch.close()
            self._in_flight.pop(batch.id, None)
            if not done:
                self._left[batch.id] = taken
            self.tell()

    def _send(self, job: Job, part: Part) -> Generator[Step, Any, Action]:
        """Send a part until the server accepts the part, the part is buried, or a split is due."""
        attempts = failures = 0
        prepared: Prepared | None = None
        while True:
            coding = self._codings.best
            if prepared is None or prepared.coding != coding:
                prepared = yield from self._must(job, Prepare(part, coding), "reading")
                assert prepared is not None
            yield from self._turn(job, prepared.length, part.count)
            headers = prepared.headers(self.settings.headers, self.settings.key_header)
            answer: Answer = yield from self._must(job, Send(prepared, headers), "reading")
            attempts += 1
            self.tally.count(requests=1, retries=int(attempts > 1))
            if self._codings.change(answer.status, answer.headers, coding):
                continue  # the same body, encoded as the server can read it
            action = self.settings.policy.action_for(answer)
            if action == "split" and part.count == 1:
                action = "refuse"
            if action == "accept":
                yield from self._accept(job, prepared, answer, attempts)
                return action
            self.tally.refused(answer.status, str(answer))
            if action == "split":
                self.tally.count(splits=1)
                return action
            if action == "refuse":
                yield from self._bury(job, part, str(answer), answer.status, attempts)
                return action
            # A refusal of the sender says nothing about the events.
            failures += action == "retry"
            if failures >= (self.settings.policy.attempts_max or inf):
                held = "" if failures == attempts else f", {failures} of which failed"
                reason = f"given up after {attempts} attempts{held}: {answer}"
                yield from self._bury(job, part, reason, answer.status, attempts)
                return "refuse"
            yield from self._put_off(job, answer, action, attempts)

    def _accept(
        self, job: Job, prepared: Prepared, answer: Answer, attempts: int
    ) -> Generator[Step, Any, None]:
        part = prepared.part
        dropped = self.settings.partly_refused(answer)
        if dropped is not None:
            # The server does not name the dropped events, so keep all. A replay repeats the
            # accepted events.
            count, message = dropped
            reason = (
                f"the endpoint dropped {count} of these {part.count} events: {printable(message)}"
            )
            yield from self._bury(job, part, reason, answer.status, attempts, count)
        if self.tally.values.failures_in_a_row:
            log.info("%s accepts events again", shown_url(self.settings.url))
        self._no_problem()
        self.tally.accepted(answer.status)
        self.tally.count(events_sent=part.count, bytes_sent=prepared.length)

    def _bury(
        self,
        job: Job,
        part: Part,
        reason: str,
        status: int | None,
        attempts: int,
        partly: int | None = None,
    ) -> Generator[Step, Any, None]:
        yield from self._must(job, Bury(part, reason, status, attempts), "writing dead letters")
        log.warning("%d events are dead letters: %s", part.count, reason)
        self.tally.count(events_dead=part.count, events_partly_refused=partly or 0)
