"""Deedbook: append-only logs that never lose what they acknowledged.

>>> import deedbook, tempfile
>>> path = tempfile.mkdtemp() + "/log"
>>> with deedbook.Book.create(path) as book:
...     book.append(b"first"), book.append(b"second")
(1, 2)
>>> with deedbook.Book.open(path) as book:
...     [deed.jam for deed in book]
[b'first', b'second']
"""

from deedbook._core import (
    BatchStream,
    Book,
    Damage,
    Deed,
    DeedRange,
    Log,
    Loss,
    Meta,
    Record,
    RecordIterator,
    RecoveryReport,
    RepairReport,
    SalvageReport,
    SalvageRun,
    Split,
    Stats,
    VerifyReport,
    Wal,
    __version__,
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
from deedbook.formats import open

__all__ = [
    "AlreadyExistsError",
    "BatchStream",
    "Book",
    "ClosedError",
    "ContiguityError",
    "CorruptError",
    "Damage",
    "Deed",
    "DeedRange",
    "Error",
    "ForkedError",
    "InvalidArgumentError",
    "IoError",
    "LockedError",
    "Log",
    "Loss",
    "LostRecordsError",
    "Meta",
    "MissingError",
    "NotALogError",
    "OutOfRangeError",
    "PoisonedError",
    "ReadOnlyError",
    "Record",
    "RecordIterator",
    "RecoveryReport",
    "RepairReport",
    "SalvageReport",
    "SalvageRun",
    "Split",
    "Stats",
    "TooLargeError",
    "UnsupportedError",
    "VerifyReport",
    "Wal",
    "__version__",
    "open",
]
