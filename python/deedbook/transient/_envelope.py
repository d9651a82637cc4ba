"""What stands around the events of a request: header, footer, separator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Text = bytes | Callable[[], bytes]
"""Bytes, or a function that makes them when a batch is fetched or sent."""


@dataclass(frozen=True)
class Envelope:
    """Header, footer and separator of a request body; without arguments a JSON array.

    A function for the header or the footer is called once for each body, so that it can hold the
    time of sending. The bodies of retries are the same bytes.
    """

    header: Text = b"["
    """What stands before the first event."""
    footer: Text = b"]"
    """What stands after the last one."""
    separator: bytes = b","
    """What stands between two events."""

    def seal(self) -> Sealed:
        """Header and footer as bytes, made now."""
        return Sealed(_bytes(self.header), _bytes(self.footer), bytes(self.separator))


@dataclass(frozen=True)
class Sealed:
    """An envelope whose header and footer are made: what one body has, however often it is sent."""

    header: bytes
    """What stands before the first event."""
    footer: bytes
    """What stands after the last one."""
    separator: bytes
    """What stands between two events."""

    def length(self, count: int, payload_bytes: int) -> int:
        """Bytes of a body with so many records that hold so many bytes."""
        separators = len(self.separator) * max(count - 1, 0)
        return len(self.header) + payload_bytes + separators + len(self.footer)


def _bytes(text: Text) -> bytes:
    return bytes(text() if callable(text) else text)
