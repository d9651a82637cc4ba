"""What an event store keeps of events, by NIP-01, NIP-09 and NIP-40: written again, in a few lines.

A version that another replaced, and an event that was deleted after it came, are kept and flagged.
What is ephemeral, over, or deleted by its author before it came is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from deedbook import Event
from deedbook.pipeline.events import is_signed

__all__ = ["Kept"]

_Address = tuple[int, str, str]


class Kept:
    """The ids that a store has after events came in their order.

    Whether an event was over depends on when it came, which is known to lie between ``earliest``
    and ``latest``.
    """

    def __init__(self, events: Iterable[Event], earliest: float, latest: float) -> None:
        self.ids: set[str] = set()
        """Those that it has for certain."""
        self.open: set[str] = set()
        """Those that it may have."""
        self._earliest = earliest
        self._latest = latest
        self._deleted: set[tuple[str, str]] = set()
        self._deleted_until: dict[_Address, int] = {}
        for event in events:
            self._come(event)

    def _come(self, event: Event) -> None:
        if event.id in self.ids or 20_000 <= event.kind < 30_000:
            return
        ends = _expiration(event)
        if ends is not None and ends <= self._earliest:
            return
        address = _address(event)
        until = None if address is None else self._deleted_until.get(address)
        if (event.id, event.pubkey) in self._deleted or (
            until is not None and event.created_at <= until
        ):
            return
        if ends is not None and ends <= self._latest:
            self.open.add(event.id)
            return
        self.ids.add(event.id)
        if event.kind == 5 and is_signed(event.to_json().encode()):
            self._delete(event)

    def _delete(self, request: Event) -> None:
        for name, value in _values(request):
            if value is None:
                continue
            if name == "e":
                self._deleted.add((value, request.pubkey))
            elif name == "a":
                kind, _, rest = value.partition(":")
                pubkey, _, d = rest.partition(":")
                if kind.isdigit() and pubkey == request.pubkey:
                    address = (int(kind), pubkey, d if _is_addressable(int(kind)) else "")
                    before = self._deleted_until.get(address, 0)
                    self._deleted_until[address] = max(before, request.created_at)


def _is_addressable(kind: int) -> bool:
    return 30_000 <= kind < 40_000


def _address(event: Event) -> _Address | None:
    """What versions of a replaceable event have in common."""
    if _is_addressable(event.kind):
        return event.kind, event.pubkey, _first(event, "d") or ""
    if event.kind in (0, 3) or 10_000 <= event.kind < 20_000:
        return event.kind, event.pubkey, ""
    return None


def _expiration(event: Event) -> int | None:
    value = _first(event, "expiration")
    return int(value) if value is not None and value.isascii() and value.isdigit() else None


def _first(event: Event, wanted: str) -> str | None:
    """The value of the first tag of a name."""
    return next((value for name, value in _values(event) if name == wanted), None)


def _values(event: Event) -> Iterator[tuple[str, str | None]]:
    """Names and values of the tags."""
    for tag in event.tags:
        if tag:
            yield tag[0], tag[1] if len(tag) > 1 else None
