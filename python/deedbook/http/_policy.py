"""The meaning of an answer: statuses, the delay before the next attempt, Retry-After."""

from __future__ import annotations

import email.utils
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timezone
from typing import Final, Literal

from deedbook._errors import InvalidArgumentError

Action = Literal["accept", "retry", "split", "refuse", "hold"]
"""The next step after an answer.

- ``accept``: the server has the events.
- ``retry``: temporary; send the same again after a delay.
- ``split``: the batch is too large or has a wrong event; send each half, and a single event to the
  dead letters.
- ``refuse``: permanent; the events go to the dead letters.
- ``hold``: the server refuses the sender, not the events (a wrong key or URL). The events stay in
  the store until the next attempt after the longest delay, and `stats` shows the problem.
"""

ACTIONS: Final = ("accept", "retry", "split", "refuse", "hold")

STATUSES: Final[Mapping[int, Action]] = {
    400: "split",
    401: "hold",
    402: "hold",
    403: "hold",
    404: "hold",
    405: "hold",
    407: "hold",
    408: "retry",
    409: "retry",
    410: "hold",
    413: "split",
    415: "hold",
    421: "hold",
    422: "split",
    423: "retry",
    425: "retry",
    426: "hold",
    429: "retry",
    451: "hold",
    511: "hold",
}
"""The meaning of statuses that break the rule for their hundreds: see `action_for`."""

_HUNDREDS: Final[Mapping[int, Action]] = {2: "accept", 3: "hold", 4: "refuse", 5: "retry"}


@dataclass(frozen=True)
class Answer:
    """The outcome of a request: a status, or the error that prevented an answer."""

    status: int | None
    """The HTTP status, or None if there was no answer."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the answer, names in lower case."""
    body: bytes = b""
    """The beginning of the answer's body, 2,048 bytes at most."""
    error: str | None = None
    """Why there was no answer."""
    hold: bool = False
    """Whether a quick retry is useless, because the server's certificate is not trusted."""

    def __str__(self) -> str:
        if self.status is None:
            return printable(self.error or "no answer")
        text = printable(self.body[:200].decode("utf-8", "replace"))
        return f"status {self.status}: {text}" if text else f"status {self.status}"


def printable(text: str) -> str:
    """Foreign text as a line that is safe to log, to print on a terminal and to store.

    A lone surrogate is replaced like a control character: JSON may hold surrogates, UTF-8 may not.
    """
    return "".join(char if char.isprintable() else "\ufffd" for char in " ".join(text.split()))


@dataclass(frozen=True)
class Policy:
    """The meaning of statuses, and the length of waits."""

    statuses: Mapping[int, Action] = field(default_factory=dict)
    """Statuses with another meaning than in `STATUSES`."""
    delay_seconds: float = 0.5
    """The longest first delay. Each later delay is at most twice as long as the delay before."""
    delay_seconds_max: float = 60.0
    """The longest delay, unless the server asks for a longer delay."""
    retry_after_seconds_max: float = 3600.0
    """The longest wait that a server can ask for by Retry-After."""
    attempts_max: int | None = None
    """After so many ``retry`` attempts, with or without an answer, the events go to the dead
    letters; by default never. Attempts with ``hold`` do not count. Each drain, `send_once` and
    process counts from 0 again, because nothing stores the count.
    """

    def __post_init__(self) -> None:
        for status, action in self.statuses.items():
            if isinstance(status, bool) or not isinstance(status, int):
                raise InvalidArgumentError(f"{status!r} is not a status, which is a number")
            if action not in ACTIONS:
                raise InvalidArgumentError(f"status {status}: {action!r} is none of {ACTIONS}")
        for name in ("delay_seconds", "delay_seconds_max", "retry_after_seconds_max"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InvalidArgumentError(f"{name} is {getattr(self, name)}, not 0 or more")
        if self.attempts_max is not None and self.attempts_max < 1:
            raise InvalidArgumentError(f"attempts_max is {self.attempts_max}, not 1 or more")

    def action_for(self, answer: Answer) -> Action:
        """The next step after an answer. Without an answer: retry, or hold."""
        status = answer.status
        if status is None:
            return "hold" if answer.hold else "retry"
        for table in (self.statuses, STATUSES):
            if status in table:
                return table[status]
        return _HUNDREDS.get(status // 100, "hold")

    def delay_after(self, failures: int, chance: random.Random) -> float:
        """Seconds to wait after so many failures in a row: evenly from 0 to a bound that doubles.

        With "full jitter", senders that failed together do not come back together.
        """
        # Beyond 2**60 nothing grows, and a float overflows.
        bound = self.delay_seconds * 2.0 ** min(failures - 1, 60)
        return chance.uniform(0, min(bound, self.delay_seconds_max))

    def asked_delay(self, answer: Answer, now: float) -> float | None:
        """Seconds that the server asks to wait, at most ``retry_after_seconds_max``; or None.

        ``now`` is in seconds since 1970, for a Retry-After that is a date.
        """
        delay = retry_after(answer.headers, now)
        return None if delay is None else min(delay, self.retry_after_seconds_max)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds from now until the time of the header Retry-After, 0 or more; None without one.

    A date counts from the answer's own Date, so a wrong clock does no harm.
    """
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    if text.isascii() and text.replace(".", "", 1).isdigit():
        return float(text[:20])
    then = _http_date(text)
    if then is None:
        return None
    sent = _http_date(headers.get("date", ""))
    return max(then - (now if sent is None else sent), 0.0)


def _http_date(text: str) -> float | None:
    try:
        moment = email.utils.parsedate_to_datetime(text)
        if moment.tzinfo is None:  # "-0000" and no zone: HTTP knows only GMT
            moment = moment.replace(tzinfo=timezone.utc)
        return moment.timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
