"""The results of a sender so far, as values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any


@dataclass(frozen=True)
class SenderStats:
    """Counters since the creation of the sender, and the present state."""

    batches_sent: int = 0
    """Batches done and removed from the store, batches with dead letters included."""
    events_sent: int = 0
    """Events that the server accepted."""
    bytes_sent: int = 0
    """Bytes of accepted bodies on the wire."""
    requests: int = 0
    """Requests made, with or without an answer."""
    retries: int = 0
    """Repeated requests."""
    splits: int = 0
    """Requests refused as a whole and then sent in halves."""
    events_dead: int = 0
    """Events written to the dead letters."""
    events_partly_refused: int = 0
    """Events of accepted requests that the server dropped by its own account; also dead letters."""
    wait_seconds: float = 0.0
    """The delay of attempts in all: after failures, and by limits on rates."""
    failures_in_a_row: int = 0
    """Requests without success since the last accepted one."""
    last_status: int | None = None
    """Status of the last answer."""
    last_error: str | None = None
    """The last problem, if no request succeeded since."""
    batches_in_flight: int = 0
    """Batches fetched and not yet done."""
    events_dropped: int = 0
    """Events that the store dropped to make room, if the store counts."""
    events_rejected: int = 0
    """Events that the full store refused, if the store counts."""

    def to_dict(self) -> dict[str, Any]:
        """The values by name."""
        return asdict(self)


@dataclass(frozen=True)
class Drained:
    """The result of a drain. True if the store was empty and the server accepted every event."""

    empty: bool
    """Whether the sender found nothing more to send before the time was over."""
    events_sent: int = 0
    """Events that the server accepted meanwhile."""
    events_refused: int = 0
    """Events that became dead letters meanwhile and no longer wait."""

    def __bool__(self) -> bool:
        return self.empty and not self.events_refused


class Tally:
    """The counters of a running sender."""

    def __init__(self) -> None:
        self.values = SenderStats()

    def count(self, **more: float) -> None:
        """Add to counters by name."""
        held = {name: getattr(self.values, name) + value for name, value in more.items()}
        self.values = replace(self.values, **held)

    def failed(self, error: str) -> None:
        """Something went wrong, other than a request."""
        self.values = replace(self.values, last_error=error)

    def refused(self, status: int | None, error: str) -> None:
        """A request had no success."""
        self.count(failures_in_a_row=1)
        self.values = replace(self.values, last_status=status, last_error=error)

    def accepted(self, status: int | None) -> None:
        """A request had success."""
        self.values = replace(self.values, failures_in_a_row=0, last_status=status, last_error=None)
