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
from typing import TYPE_CHECKING, Any

from deedbook._core import (
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
from deedbook._payload import PayloadReader
from deedbook._shown import show as _show
from deedbook.formats import open

if TYPE_CHECKING:
    from deedbook._backup import BackupReport, backup
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


def __getattr__(name: str) -> Any:
    """The names that are loaded when they are asked for: most programs need none of them."""
    if name in ("LogReport", "report"):
        from deedbook import _report

        return getattr(_report, name)
    if name in ("BackupReport", "backup"):
        from deedbook import _backup

        return getattr(_backup, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
