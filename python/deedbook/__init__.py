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

from deedbook import _early  # noqa: F401  before anything that takes its time to load

# isort: split
from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from deedbook._core import (
    BackupReport,
    BadLine,
    BatchStream,
    Book,
    Bookmark,
    Committed,
    CommittedTransaction,
    CompactionReport,
    ConvertReport,
    Damage,
    DamagedPart,
    Deed,
    DeedRange,
    Dropped,
    DroppedEpochs,
    Epoch,
    EpochReport,
    Event,
    EventCensus,
    EventFault,
    EventIterator,
    EventOutcome,
    EventStore,
    EventStoreOpening,
    EventStorePartReport,
    EventStoreRepair,
    EventStoreReport,
    EventStoreSalvage,
    ExportReport,
    Fragmentation,
    ImportReport,
    Ledger,
    LedgerFile,
    LedgerFileInfo,
    LedgerFileMigration,
    LedgerFileReport,
    LedgerFileSalvage,
    LedgerRecord,
    LedgerSnapshot,
    LedgerStats,
    LmdbEpoch,
    LmdbMigration,
    Log,
    Loss,
    Meta,
    PartReport,
    Pier,
    PierReport,
    Record,
    RecordIterator,
    RecoveryReport,
    Removable,
    RepairReport,
    SalvageReport,
    SalvageRun,
    Split,
    Stage,
    StagedJob,
    StagedPart,
    Stats,
    Transactions,
    VerifyReport,
    Wal,
    __version__,
    backup,
    parse_events,
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
from deedbook._shown import show as _show

if TYPE_CHECKING:
    from deedbook._formats import open
    from deedbook._payload import PayloadReader
    from deedbook._report import LogReport, report

__all__ = [
    "AlreadyExistsError",
    "BackupReport",
    "BadLine",
    "BatchStream",
    "Book",
    "Bookmark",
    "ClosedError",
    "Committed",
    "CommittedTransaction",
    "CompactionReport",
    "ContiguityError",
    "ConvertReport",
    "CorruptError",
    "Damage",
    "DamagedPart",
    "Deed",
    "DeedRange",
    "Dropped",
    "DroppedEpochs",
    "Epoch",
    "EpochReport",
    "Error",
    "Event",
    "EventCensus",
    "EventFault",
    "EventIterator",
    "EventOutcome",
    "EventStore",
    "EventStoreOpening",
    "EventStorePartReport",
    "EventStoreRepair",
    "EventStoreReport",
    "EventStoreSalvage",
    "ExportReport",
    "ForkedError",
    "Fragmentation",
    "ImportReport",
    "InvalidArgumentError",
    "IoError",
    "Ledger",
    "LedgerFile",
    "LedgerFileInfo",
    "LedgerFileMigration",
    "LedgerFileReport",
    "LedgerFileSalvage",
    "LedgerRecord",
    "LedgerSnapshot",
    "LedgerStats",
    "LmdbEpoch",
    "LmdbMigration",
    "LockedError",
    "Log",
    "LogReport",
    "Loss",
    "LostRecordsError",
    "Meta",
    "MissingError",
    "NotALogError",
    "OutOfRangeError",
    "PartReport",
    "PayloadReader",
    "Pier",
    "PierReport",
    "PoisonedError",
    "ReadOnlyError",
    "Record",
    "RecordIterator",
    "RecoveryReport",
    "Removable",
    "RepairReport",
    "SalvageReport",
    "SalvageRun",
    "Split",
    "Stage",
    "StagedJob",
    "StagedPart",
    "Stats",
    "TooLargeError",
    "Transactions",
    "UnsupportedError",
    "VerifyReport",
    "Wal",
    "__version__",
    "backup",
    "open",
    "parse_events",
    "report",
]

_add_methods()
_show()


_LATER = {
    "LogReport": "_report",
    "PayloadReader": "_payload",
    "open": "_formats",
    "report": "_report",
}
"""Names that are loaded when they are asked for, and the modules that have them."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(_import_module(f"deedbook.{_LATER[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
