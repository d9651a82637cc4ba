"""The formats that the data source reads: the only module that knows them all."""

from __future__ import annotations

from deedbook.spark._book import BOOK
from deedbook.spark._format import LogFormat
from deedbook.spark._ledger import LEDGER
from deedbook.spark._nostr import NOSTR
from deedbook.spark._wal import WAL

__all__ = ["formats"]


def formats() -> tuple[LogFormat, ...]:
    """All formats, in the order in which detection tries them."""
    return (BOOK, WAL, LEDGER, NOSTR)
