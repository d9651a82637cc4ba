"""The formats that the data source reads: the only module that knows them all."""

from __future__ import annotations

from deedbook.spark._logs.book import BOOK
from deedbook.spark._logs.format import LogFormat
from deedbook.spark._logs.ledger import LEDGER
from deedbook.spark._logs.nostr import NOSTR
from deedbook.spark._logs.wal import WAL

__all__ = ["format_named", "formats"]


def formats() -> tuple[LogFormat, ...]:
    """All formats, in the order in which detection tries them."""
    return (BOOK, WAL, LEDGER, NOSTR)


def format_named(name: str) -> LogFormat:
    """The format of that name."""
    return next(log for log in formats() if log.name == name)
