"""When a flow goes on, when it waits, and when it gives up."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from deedbook._errors import CorruptError, IoError
from deedbook.http._policy import Action, Answer
from deedbook.http._rates import Limiter
from deedbook.http._settings import Settings, shown_url
from deedbook.http._stats import Tally
from deedbook.http._steps import Bury, Plan, Prepare, Send, Step, Wait

log = logging.getLogger("deedbook.http")

_READING: Final = (Plan, Prepare, Send, Bury)
"""What reads the events of a batch."""


class Stopped(Exception):
    """The sender stops; what is not done stays in the store."""


class Damaged(Exception):
    """A batch is not any more what it was when it was fetched; its cause says where."""


@dataclass(frozen=True)
class Job:
    """What sends a batch: a worker, or one attempt."""

    opened: int
    """Which opening of the flow it is of. A worker of an earlier one is left over: it was held up
    in a request for longer than its sender waited, and must not go on beside the present ones."""
    once: bool = False
    """Whether it is one attempt: its caller waits for it, and it ends by itself."""


class Pace:
    """Waits of all workers of a sender: for the server, for the rates, after failures."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.tally = Tally()
        self.problem: str | None = None
        """Why nothing is sent though all is up: the endpoint refuses the sender, or the store or
        the dead letters fail."""
        self.cause: BaseException | None = None
        """The error that caused it, if there was one."""
        self.patient = True
        """Whether workers go on at a problem; else they end, and the first problem stays."""
        self.tell: Callable[[], None] = lambda: None
        """Called when something changed that others may wait for."""
        self._limiter = Limiter(settings.rates)
        self._damaged_in_a_row = 0
        self._asked = 0
        self._opened = 0
        self._not_before = -inf
        self._stop_at = inf

    def stop(self) -> None:
        """Let workers end as soon as they ask."""
        self._stop_at = -inf

    def error(self) -> IoError:
        """The problem, to be raised."""
        error = IoError(f"{shown_url(self.settings.url)}: {self.problem}; the events are kept")
        error.__cause__ = self.cause
        return error

    def _turn(self, job: Job, size_bytes: int, events: int) -> Generator[Step, Any, None]:
        """Wait until the rates and the server allow a request; it counts from then on.

        Not from before the wait: one that is given up in it was not made, and those that waited
        for the server would leave all at once. Another worker may have come first meanwhile.
        """
        clock = self.settings.clock
        while True:
            yield from self._pause(job, self._limiter.delay(clock.monotonic()))
            now = clock.monotonic()
            if self._limiter.delay(now) <= 0:
                break
        self._limiter.count(size_bytes, events, now)

    def _pause(self, job: Job, seconds: float, hasty: bool = False) -> Generator[Step, Any, None]:
        """Wait so long, and until the server allows requests; `Stopped` if the job is to stop.

        Also at once if that would be after the deadline. If ``hasty``, `ask_drain` ends it.
        """
        clock = self.settings.clock
        begun, asked = clock.monotonic(), self._asked
        while True:
            now = clock.monotonic()
            until = now if hasty and self._asked != asked else begun + seconds
            until = max(until, self._not_before)
            self._check_stop(job)
            if until > self._stop_at:
                raise Stopped
            if now >= until:
                break
            yield Wait(until - now)
        self.tally.count(wait_seconds=max(now - begun, 0.0))

    def _check_stop(self, job: Job) -> None:
        if self._is_left_over(job) or self.settings.clock.monotonic() >= self._stop_at:
            raise Stopped

    def _is_left_over(self, job: Job) -> bool:
        return job.opened != self._opened and not job.once

    def _must(self, job: Job, step: Step, doing: str) -> Generator[Step, Any, Any]:
        """Carry out a step of the store or the dead letters, again and again until it works.

        Once also after the deadline: what was accepted shall not be sent again. `Damaged` where
        that is of no use, because the batch was changed after it was fetched.
        """
        failures = 0
        while True:
            try:
                outcome = yield step
            except Exception as error:
                failures += 1
                self.tally.failed(f"{doing} failed: {error}")
                log.error("%s failed: %s", doing, error, exc_info=error)
                if job.once:
                    raise
                if isinstance(error, CorruptError) and isinstance(step, _READING):
                    raise Damaged from error
                self._is_problem(f"{doing} failed: {error}", error)
                policy = self.settings.policy
                delay = policy.delay_after(failures, self.settings.chance)
                yield from self._pause(job, delay, hasty=True)
            else:
                if failures:
                    self._no_problem()
                return outcome

    def _fetch_anew(self, job: Job, damaged: Damaged) -> Generator[Step, Any, None]:
        """Have the store look again at a batch that was damaged after it had looked.

        A store that gives the same again is a problem.
        """
        self._damaged_in_a_row += 1
        if self._damaged_in_a_row > 1:
            cause = damaged.__cause__
            self._is_problem(f"reading failed: {cause}", cause)
        policy = self.settings.policy
        delay = policy.delay_after(self._damaged_in_a_row, self.settings.chance)
        yield from self._pause(job, delay, hasty=True)

    def _is_problem(self, problem: str, cause: BaseException | None) -> None:
        """Note what waiting may not cure, and end if no caller wants to wait."""
        if self.patient or self.problem is None:
            self.problem, self.cause = problem, cause
        self.tell()
        if not self.patient:
            raise Stopped

    def _no_problem(self) -> None:
        """Forget the problem, unless workers ended at it: a call that waits for them reports it."""
        if self.patient:
            self.problem = self.cause = None

    def _put_off(
        self, job: Job, answer: Answer, action: Action, attempts: int
    ) -> Generator[Step, Any, None]:
        """Wait before the next attempt; all workers wait if the server says for how long."""
        settings = self.settings
        policy, clock = settings.policy, settings.clock
        asked = policy.asked_delay(answer, clock.time())
        if asked is not None:
            self._not_before = max(self._not_before, clock.monotonic() + asked)
        if action == "hold":
            if self.problem is None:
                log.error("%s refuses the sender: %s", shown_url(settings.url), answer)
            self._is_problem(str(answer), None)
        if job.once:
            raise Stopped
        held = policy.delay_seconds_max if action == "hold" else 0.0
        delay = max(policy.delay_after(attempts, settings.chance), held, asked or 0.0)
        if self.tally.values.failures_in_a_row == 1:
            log.warning("%s: %s; trying again", shown_url(settings.url), answer)
        yield from self._pause(job, delay, hasty=True)
