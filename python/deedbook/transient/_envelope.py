"""The text around the events of a request: header, footer, separator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Text = bytes | Callable[[], bytes]
"""Bytes, or a function that makes the bytes at a fetch or a request."""


@dataclass(frozen=True)
class Envelope:
    """Header, footer and separator of a request body; without arguments a JSON array.

    Each body calls a function for the header or the footer once, so you can put in the time of
    sending. The bodies of retries are the same bytes.
    """

    header: Text = b"["
    """The text before the first event."""
    footer: Text = b"]"
    """The text after the last event."""
    separator: bytes = b","
    """The text between two events."""

    def seal(self) -> Sealed:
        """Header and footer as bytes, made now."""
        return Sealed(_bytes(self.header), _bytes(self.footer), bytes(self.separator))


@dataclass(frozen=True)
class Sealed:
    """An envelope with a fixed header and footer. A body keeps it for all attempts."""

    header: bytes
    """The text before the first event."""
    footer: bytes
    """The text after the last event."""
    separator: bytes
    """The text between two events."""

    def length(self, count: int, payload_bytes: int) -> int:
        """The length of a body with ``count`` records of ``payload_bytes`` in all."""
        separators = len(self.separator) * max(count - 1, 0)
        return len(self.header) + payload_bytes + separators + len(self.footer)


def _bytes(text: Text) -> bytes:
    return bytes(text() if callable(text) else text)
