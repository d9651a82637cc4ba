"""The results of calls other than records: reports, counts, ranges and iterators."""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING, Any

from deedbook._core import (
    BackupReport,
    BadLine,
    CompactionReport,
    ConvertReport,
    Damage,
    DamagedPart,
    DeedRange,
    Dropped,
    DroppedEpochs,
    Epoch,
    EpochReport,
    EpochSalvage,
    EventCensus,
    EventFault,
    EventIterator,
    EventStoreOpening,
    EventStorePartReport,
    EventStoreRepair,
    EventStoreReport,
    EventStoreSalvage,
    ExportReport,
    Fragmentation,
    ImportReport,
    LedgerFile,
    LedgerFileInfo,
    LedgerFileMigration,
    LedgerFileRepair,
    LedgerFileReport,
    LedgerFileSalvage,
    LedgerRepair,
    LedgerReport,
    LedgerSalvage,
    LedgerStats,
    LmdbEpoch,
    LmdbMigration,
    Loss,
    PartReport,
    PierReport,
    PierSalvage,
    Positions,
    RecordIterator,
    RecordRange,
    RecoveryReport,
    Removable,
    RepairReport,
    SalvageReport,
    SalvageRun,
    Stats,
    VerifyReport,
)
from deedbook._renamed import missing as _missing

if TYPE_CHECKING:
    from deedbook._payload import PayloadReader
    from deedbook._report import LogReport

__all__ = [
    "BackupReport",
    "BadLine",
    "CompactionReport",
    "ConvertReport",
    "Damage",
    "DamagedPart",
    "DeedRange",
    "Dropped",
    "DroppedEpochs",
    "Epoch",
    "EpochReport",
    "EpochSalvage",
    "EventCensus",
    "EventFault",
    "EventIterator",
    "EventStoreOpening",
    "EventStorePartReport",
    "EventStoreRepair",
    "EventStoreReport",
    "EventStoreSalvage",
    "ExportReport",
    "Fragmentation",
    "ImportReport",
    "LedgerFile",
    "LedgerFileInfo",
    "LedgerFileMigration",
    "LedgerFileRepair",
    "LedgerFileReport",
    "LedgerFileSalvage",
    "LedgerRepair",
    "LedgerReport",
    "LedgerSalvage",
    "LedgerStats",
    "LmdbEpoch",
    "LmdbMigration",
    "LogReport",
    "Loss",
    "PartReport",
    "PayloadReader",
    "PierReport",
    "PierSalvage",
    "Positions",
    "RecordIterator",
    "RecordRange",
    "RecoveryReport",
    "Removable",
    "RepairReport",
    "SalvageReport",
    "SalvageRun",
    "Stats",
    "VerifyReport",
]

_LATER = {"LogReport": "_report", "PayloadReader": "_payload"}
"""Names that are loaded when they are asked for, and the modules that have them."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise _missing(__name__, name)
    value = getattr(_import_module(f"deedbook.{_LATER[name]}"), name)
    globals()[name] = value
    return value
