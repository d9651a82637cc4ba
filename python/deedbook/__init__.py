"""Deedbook: append-only logs that never lose what they acknowledged.

>>> import deedbook, tempfile
>>> path = tempfile.mkdtemp() + "/log"
>>> with deedbook.Book.create(path) as book:
...     book.append(b"first"), book.append(b"second")
(1, 2)
>>> with deedbook.Book.open(path) as book:
...     [deed.payload for deed in book]
[b'first', b'second']
"""

from deedbook import _early  # noqa: F401  before anything that takes its time to load

# isort: split
from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from deedbook._core import (
    Book,
    Deed,
    Durability,
    Event,
    EventOutcome,
    EventStore,
    Ledger,
    LedgerPosition,
    LedgerRecord,
    Log,
    Meta,
    Pier,
    Record,
    Wal,
    __version__,
    backup,
)
from deedbook._errors import (
    AlreadyExistsError,
    ClosedError,
    ContiguityError,
    CorruptError,
    Error,
    ForkedError,
    InvalidArgumentError,
    IoError,
    LockedError,
    LostRecordsError,
    MissingError,
    NotALogError,
    OutOfRangeError,
    PoisonedError,
    ReadOnlyError,
    TooLargeError,
    UnsupportedError,
)
from deedbook._methods import add as _add_methods
from deedbook._renamed import missing as _missing
from deedbook._shown import show as _show

if TYPE_CHECKING:
    from deedbook import jobs as jobs
    from deedbook import reports as reports
    from deedbook._formats import open
    from deedbook._report import report

__all__ = [
    "AlreadyExistsError",
    "Book",
    "ClosedError",
    "ContiguityError",
    "CorruptError",
    "Deed",
    "Durability",
    "Error",
    "Event",
    "EventOutcome",
    "EventStore",
    "ForkedError",
    "InvalidArgumentError",
    "IoError",
    "Ledger",
    "LedgerPosition",
    "LedgerRecord",
    "LockedError",
    "Log",
    "LostRecordsError",
    "Meta",
    "MissingError",
    "NotALogError",
    "OutOfRangeError",
    "Pier",
    "PoisonedError",
    "ReadOnlyError",
    "Record",
    "TooLargeError",
    "UnsupportedError",
    "Wal",
    "__version__",
    "backup",
    "open",
    "report",
]

_add_methods()
_show()


_LATER = {"open": "_formats", "report": "_report"}
"""Names loaded on first use, and their modules."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise _missing(__name__, name)
    value = getattr(_import_module(f"deedbook.{_LATER[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
