"""The pace of a flow: going on, waiting, giving up."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from deedbook._errors import CorruptError, IoError
from deedbook.http._flow.stats import Tally
from deedbook.http._flow.steps import Bury, Plan, Prepare, Send, Step, Wait
from deedbook.http._policy import Action, Answer
from deedbook.http._rates import Limiter
from deedbook.http._settings import Settings, shown_url

log = logging.getLogger("deedbook.http")

_READING: Final = (Plan, Prepare, Send, Bury)
"""The step that reads the events of a batch."""


class Stopped(Exception):
    """The sender stops; unsent events stay in the store."""


class Damaged(Exception):
    """A batch changed after the fetch. The cause names the place."""


@dataclass(frozen=True)
class Job:
    """The sender of a batch: a worker, or a single attempt."""

    opened: int
    """The number of the flow's opening. A worker of an earlier opening is left over: a request took
    longer than the sender waited. A worker left over must not go on next to the present workers.
    """
    once: bool = False
    """Whether the job is a single attempt: the caller waits until the attempt ends by itself."""


class Pace:
    """Waits of all workers of a sender: for the server, for the rates, after failures."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.tally = Tally()
        self.problem: str | None = None
        """Why nothing is sent though all is up: the endpoint refuses the sender, or the store or
        the dead letters fail."""
        self.cause: BaseException | None = None
        """The error behind the problem, if any."""
        self.patient = True
        """Whether workers go on after a problem. If not, all end, and the first problem stays."""
        self.tell: Callable[[], None] = lambda: None
        """Called after each change that others may wait for."""
        self._limiter = Limiter(settings.rates)
        self._damaged_in_a_row = 0
        self._asked = 0
        self._opened = 0
        self._not_before = -inf
        self._stop_at = inf

    def stop(self) -> None:
        """Let workers end at the next step."""
        self._stop_at = -inf

    def error(self) -> IoError:
        """The problem, to be raised."""
        error = IoError(f"{shown_url(self.settings.url)}: {self.problem}; the events are kept")
        error.__cause__ = self.cause
        return error

    def _turn(self, job: Job, size_bytes: int, events: int) -> Generator[Step, Any, None]:
        """Wait until the rates and the server allow a request, then count the request.

        Counting before the wait would count requests given up during the wait, and would let all
        requests that wait for the server leave at once. Another worker may come first meanwhile.
        """
        clock = self.settings.clock
        while True:
            yield from self._pause(job, self._limiter.delay(clock.monotonic()))
            now = clock.monotonic()
            if self._limiter.delay(now) <= 0:
                break
        self._limiter.count(size_bytes, events, now)

    def _pause(self, job: Job, seconds: float, hasty: bool = False) -> Generator[Step, Any, None]:
        """Wait for the time, and until the server allows requests; `Stopped` if the job must stop.

        `Stopped` at once if the wait would end after the deadline. If ``hasty``, `ask_drain` ends
        the wait.
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
        """Repeat a step of the store or the dead letters until the step succeeds.

        The step also runs once after the deadline, because the sender must not send accepted events
        again. `Damaged` if repeating is useless, because the batch changed after the fetch.
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
        """Have the store check a batch again that was damaged after the last check.

        The same batch again is a problem.
        """
        self._damaged_in_a_row += 1
        if self._damaged_in_a_row > 1:
            cause = damaged.__cause__
            self._is_problem(f"reading failed: {cause}", cause)
        policy = self.settings.policy
        delay = policy.delay_after(self._damaged_in_a_row, self.settings.chance)
        yield from self._pause(job, delay, hasty=True)

    def _is_problem(self, problem: str, cause: BaseException | None) -> None:
        """Note a problem that waiting may not cure, and end if no caller wants to wait."""
        if self.patient or self.problem is None:
            self.problem, self.cause = problem, cause
        self.tell()
        if not self.patient:
            raise Stopped

    def _no_problem(self) -> None:
        """Forget the problem, unless workers ended: a waiting call then reports the problem."""
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
