"""Limits on the requests in a second, and the clock for the limits."""

from __future__ import annotations

import time
from dataclasses import dataclass

from deedbook._errors import InvalidArgumentError


class Clock:
    """The time for senders; a test uses another clock."""

    def monotonic(self) -> float:
        """Seconds that never go back."""
        return time.monotonic()

    def time(self) -> float:
        """Seconds since 1970."""
        return time.time()

    def wait_seconds(self, seconds: float) -> float:
        """The time to block for a wait: ``seconds``, unless a test skips waits."""
        return seconds


@dataclass(frozen=True)
class Rates:
    """How much may be sent in a second, over all connections; None: no limit."""

    bytes_per_second: float | None = None
    """Bytes of bodies on the wire."""
    events_per_second: float | None = None
    """Events of any size."""
    requests_per_second: float | None = None
    """Requests, retries included."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and not value > 0:
                raise InvalidArgumentError(f"{name} is {value}, not more than 0")


class Limiter:
    """Delays requests to keep the rates over time. A second's worth may go at once."""

    def __init__(self, rates: Rates) -> None:
        # The time until which each rate has paid for the sent requests.
        self._paid: list[tuple[float | None, float]] = [
            (rates.bytes_per_second, float("-inf")),
            (rates.events_per_second, float("-inf")),
            (rates.requests_per_second, float("-inf")),
        ]

    def delay(self, now: float) -> float:
        """Seconds until a request of any size may go; 0 or less: now.

        A request waits until the earlier requests are paid for, but never for itself. A request
        larger than a second's worth can therefore go, too.
        """
        return max((paid - now for rate, paid in self._paid if rate is not None), default=0.0)

    def count(self, size_bytes: int, events: int, now: float) -> None:
        """Count a request of this size that goes now."""
        costs = (size_bytes, events, 1)
        for i, (cost, (rate, paid)) in enumerate(zip(costs, self._paid, strict=True)):
            if rate is not None:
                self._paid[i] = (rate, max(paid, now - 1.0) + cost / rate)
