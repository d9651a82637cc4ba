"""The native core of Deedbook. Import its names from `deedbook`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from os import PathLike
from types import GenericAlias, TracebackType
from typing import Any, ClassVar, Generic, Literal, TypeVar, final, overload

from _typeshed import SupportsRead
from typing_extensions import Buffer, Self, disjoint_base

from deedbook._payload import PayloadReader
from deedbook.transient import DataResult, Text

__all__ = [
    "BackupReport",
    "BadLine",
    "BatchStream",
    "Book",
    "Bookmark",
    "Committed",
    "CommittedTransaction",
    "CompactionReport",
    "ConvertReport",
    "Damage",
    "DamagedPart",
    "Deed",
    "DeedRange",
    "Dropped",
    "DroppedEpochs",
    "Durability",
    "Epoch",
    "EpochReport",
    "EpochSalvage",
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
    "Fragmentation",
    "ImportReport",
    "Ledger",
    "LedgerFile",
    "LedgerFileInfo",
    "LedgerFileMigration",
    "LedgerFileRepair",
    "LedgerFileReport",
    "LedgerFileSalvage",
    "LedgerPosition",
    "LedgerRecord",
    "LedgerRepair",
    "LedgerReport",
    "LedgerSalvage",
    "LedgerStats",
    "LmdbEpoch",
    "LmdbMigration",
    "Log",
    "Loss",
    "Meta",
    "PartReport",
    "PayloadParts",
    "Pier",
    "PierReport",
    "PierSalvage",
    "Positions",
    "Record",
    "RecordIterator",
    "RecordRange",
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
    "Transactions",
    "VerifyReport",
    "Wal",
    "__version__",
    "backup",
    "parse_events",
]

__version__: str

_Path = str | bytes | PathLike[str] | PathLike[bytes]
_Mode = Literal["r", "a", "x"]
_Verdict = Literal["clean", "open", "torn", "corrupt"]
_OnCorrupt = Literal["raise", "skip"]
_R = TypeVar("_R", Deed, Record, LedgerRecord)
_P = TypeVar("_P", int, LedgerPosition)

def _not_json(lines: list[bytes], /) -> list[int]:
    """The indices of the lines that are not JSON in UTF-8, or nested deeper than 128 levels."""

_LOOKED_FOR: str

def _detect(path: _Path, base: str | None = None, /) -> tuple[str, bool, int | None] | None:
    """The format of what lies at a path, whether it is a saved end, and where that began."""

def _require(path: _Path, base: str | None = None, /) -> tuple[str, bool, int | None]:
    """As ``_detect``, but `MissingError` if there is nothing."""

def _is_at(path: _Path, format: str, /) -> bool:
    """Whether a format certainly lies at a path, by a quick look."""

def _check_format(path: _Path, format: str, /) -> None:
    """`NotALogError` if a log of another format lies at a path."""

def _wal_head(lsn: int, /) -> bytes:
    """The bytes of the file ``head`` of a WAL whose first record is at an LSN."""

_SMALL_BYTES_MAX: int

def _open_regular(path: _Path, write: bool, create: bool, new: bool, mode: int, /) -> int:
    """A descriptor of a regular file; `NotALogError` for a link, a FIFO and all else. OSError."""

def _read_small(path: _Path, /) -> bytes:
    """The bytes of a small regular file; `NotALogError`, `TooLargeError` and OSError."""

def _is_regular(path: _Path, /) -> bool:
    """Whether a regular file lies at a path; `NotALogError` for all else, and OSError."""

def _is_directory(path: _Path, /) -> bool:
    """Whether a directory lies at a path; `NotALogError` for all else, and OSError."""

def backup(
    source: _Path,
    target: _Path,
    *,
    progress: Callable[[int], object] | None = None,
) -> BackupReport:
    """Copy a log in use, or bring such a copy up to date. Restoring is opening the copy.

    The copy has every record that was acknowledged before the call, with the same numbers or LSNs,
    consumers and committed transactions. The backup reads its new records back, and compares their
    checksums. When this returns, the copy is on stable storage. The next call continues an
    interrupted one.

    The log may be written meanwhile. A ``target`` with other files than the beginning of the log's
    files, or a backup of another event store, is an InvalidArgumentError, and stays unchanged.
    ``progress`` gets the bytes read so far; an error from ``progress`` ends the copy.

    >>> with deedbook.Book.create("log") as book:
    ...     lsns = book.append_many([b"one", b"two"])
    ...     deedbook.backup("log", "copy").bounds
    (1, 2)

    Raises MissingError, also where the directory above ``target`` is not there, NotALogError for a
    ``target`` of another format and for a link or a FIFO in place of a file of the log, LockedError
    for one that is written or backed up, CorruptError, UnsupportedError, IoError or OSError.
    """

def parse_events(
    lines: Iterable[Buffer] | Any,
    /,
    *,
    check: Literal["none", "id", "signature"] = "id",
    event_bytes_max: int = 100_000_000,
) -> Any:
    """Parse and check JSON lines of Nostr events: one row a line in an Arrow record batch.

    ``lines`` is any Arrow array of binary or text (of a table, the column ``value``), or an
    iterable of bytes-like objects, with or without line breaks. The result has
    ``__arrow_c_array__``: ``pyarrow.record_batch(result)`` takes the result. The columns ``id``,
    ``pubkey``, ``created_at``, ``kind``, ``tags``, ``content`` and ``sig`` have the types of
    `EventStore.batches`. ``error`` is null for a good event. For a line without a valid event, or
    with a too large event, ``error`` has the text of `BadLine.reason`, and the other columns are
    null. For an empty line all columns are null.

    ``check`` adds checks of an event to the check of its form, as in `EventStore.import_json`.
    ``event_bytes_max`` is the limit of the store for the events: a larger event is an error, too.
    One thread does the work, without the GIL.

    Raises `InvalidArgumentError` for another word or a null among the lines, TypeError for lines
    without bytes, and `TooLargeError` if the columns would take 2 GiB: give fewer lines at once.
    """

@final
class Durability:
    """When appends are synced, where a word or a ``timedelta`` does not say it.

    The argument ``durability`` of every ``open`` and ``create`` is ``"always"`` (an append that
    returned is on stable storage), ``"manual"`` (you call ``sync``), ``"none"`` (the operating
    system decides), a ``timedelta`` (synced so much later, at least a millisecond), or
    ``Durability.bytes(n)`` (synced after so many bytes). None, the default, is the format's own:
    ``"always"`` for `Book` and `Pier`, ``"manual"`` for `Wal`, ``"none"`` for `Ledger`, and for
    `EventStore` 100 milliseconds. The ``repr`` of a handle names it.

    With every setting, an append that returned survives a crash of your process.

    >>> with deedbook.Wal.create("log", durability=deedbook.Durability.bytes(1 << 20)) as log:
    ...     log.durability
    Durability.bytes(1048576)
    """

    def __new__(cls, n: int) -> Self: ...
    @staticmethod
    def bytes(n: int) -> Durability:
        """Sync once ``n`` bytes were appended; at least 1."""
    @property
    def n(self) -> int:
        """The number of bytes."""
    def __getnewargs__(self) -> tuple[int]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class LedgerPosition:
    """The location of a record in a ledger. Positions have the order of their records.

    Wherever a position is needed, you can pass a tuple of both numbers.
    """

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, file: int, record: int) -> Self: ...
    @property
    def file(self) -> int:
        """Index of the file."""
    @property
    def record(self) -> int:
        """Number of the record in its file, from 0 on."""
    def __getnewargs__(self) -> tuple[int, int]: ...
    def __iter__(self) -> Iterator[int]:
        """The numbers in order: ``file, record = position``."""
    def __lt__(self, other: LedgerPosition, /) -> bool: ...
    def __le__(self, other: LedgerPosition, /) -> bool: ...
    def __gt__(self, other: LedgerPosition, /) -> bool: ...
    def __ge__(self, other: LedgerPosition, /) -> bool: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

_Durability = Literal["always", "manual", "none"] | timedelta | Durability
_InLedger = LedgerPosition | tuple[int, int]

@final
class Positions(Generic[_P]):
    """The positions of records that were appended together, as ``append_many`` returns them.

    ``log[positions.first : positions.end]`` reads the records. The positions of a book are numbers
    without gaps, so you can iterate them. Other logs know only the first and the last position.
    """

    @property
    def first(self) -> _P:
        """Position of the first record."""
    @property
    def last(self) -> _P:
        """Position of the last record; `OutOfRangeError` if nothing was appended."""
    @property
    def end(self) -> _P:
        """The position after the last record."""
    def __len__(self) -> int:
        """Number of records."""
    def __iter__(self) -> Iterator[_P]:
        """The positions; TypeError if only the first and the last are known."""
    @classmethod
    def __class_getitem__(cls, item: Any, /) -> GenericAlias: ...

@final
class Deed:
    """One event of a book: its number, mug and jam.

    Source: src/book/FORMAT.md.
    """

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, event: int | None, mug: int, jam: bytes) -> Self: ...
    @property
    def event(self) -> int | None:
        """Event number, from 1 up. None only after damage that hid the count."""
    @property
    def mug(self) -> int:
        """The 32-bit mug as stored; 0 if the writer gave no mug."""
    @property
    def jam(self) -> bytes:
        """The payload, 0 bytes or more."""
    @property
    def position(self) -> int | None:
        """The event number, under the name used for records of every format."""
    @property
    def payload(self) -> bytes:
        """The jam, under the name used for records of every format."""
    def to_dict(self) -> dict[str, Any]:
        """Event, mug and jam by their names."""
    def __getnewargs__(self) -> tuple[int | None, int, bytes]: ...
    def __len__(self) -> int:
        """Length of the jam in bytes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]:
        """Event, mug and jam, so that ``event, mug, jam = deed`` works."""

@final
class Record:
    """One record of a write-ahead log: its position and payload.

    Source: src/wal/FORMAT.md.
    """

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, lsn: int, payload: bytes) -> Self: ...
    @property
    def lsn(self) -> int:
        """Log sequence number: the byte of the log at which the record begins."""
    @property
    def payload(self) -> bytes:
        """The payload, 0 bytes or more."""
    @property
    def position(self) -> int:
        """The LSN, under the name used for records of every format."""
    @property
    def next_lsn(self) -> int:
        """LSN of the next record: 8 bytes of header and the payload further on."""
    @property
    def parts(self) -> list[bytes] | None:
        """Payloads packed by :meth:`Wal.append_many` with ``atomic``; None for other records."""
    def to_dict(self) -> dict[str, Any]:
        """LSN and payload by their names."""
    def __getnewargs__(self) -> tuple[int, bytes]: ...
    def __len__(self) -> int:
        """Length of the payload in bytes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]:
        """LSN and payload, so that ``lsn, payload = record`` works."""

@final
class LedgerRecord:
    """One event of a ledger's file."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, file: int, record: int | None, payload: bytes) -> Self: ...
    @property
    def file(self) -> int:
        """Index of the file."""
    @property
    def record(self) -> int | None:
        """Number of the record in its file, from 0 on; None after damage that hid the count."""
    @property
    def payload(self) -> bytes:
        """The payload, at least 1 byte."""
    @property
    def position(self) -> LedgerPosition | None:
        """Both numbers; None after damage that hid the count."""
    def to_dict(self) -> dict[str, Any]:
        """The fields by their names."""
    def __getnewargs__(self) -> tuple[int, int | None, bytes]: ...
    def __len__(self) -> int:
        """Number of bytes of the payload."""
    def __iter__(self) -> Iterator[Any]:
        """The fields in order: ``file, record, payload = event``."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Meta:
    """The ship metadata in ``meta.bin``; a field is None where nothing was saved.

    Source: src/book/FORMAT.md.
    """

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(
        cls,
        who: int | None = None,
        version: int | None = None,
        life: int | None = None,
        fake: bool | None = None,
    ) -> Self: ...
    def to_dict(self) -> dict[str, Any]:
        """The fields by their names."""
    def __getnewargs__(self) -> tuple[int | None, int | None, int | None, bool | None]: ...
    @property
    def who(self) -> int | None:
        """Ship identity, an unsigned 128-bit number."""
    @property
    def version(self) -> int | None:
        """Version of the metadata, unsigned 32-bit."""
    @property
    def life(self) -> int | None:
        """Length of the lifecycle, unsigned 32-bit."""
    @property
    def fake(self) -> bool | None:
        """Whether the ship is fake (stored as a loobean: 0 = yes)."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Damage:
    """One damaged stretch of a log."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def offset(self) -> int:
        """First byte of the damage."""
    @property
    def end(self) -> int:
        """First byte after the damage: the next intact record, or the end of the log."""
    @property
    def reason(self) -> str:
        """The error there, with both values."""
    @property
    def next_intact(self) -> int | None:
        """Byte of the next intact record, if any."""
    @property
    def next_proved(self) -> bool:
        """Whether the next intact record is proved to be a record, and no part of a payload."""
    @property
    def first_lost(self) -> int | None:
        """Number of the first lost record, if known: in a book, the event."""
    @property
    def records_lost(self) -> int | None:
        """Number of lost records, if known."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Loss:
    """Acknowledged records missing at the end of a log."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def records(self) -> int:
        """Number of missing records; 0 if unknown."""
    @property
    def first(self) -> int:
        """Number of the first missing record: in a book, the event."""
    @property
    def offset(self) -> int:
        """First byte of the missing records."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class RecoveryReport:
    """The result of opening a log."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def verdict(self) -> _Verdict:
        """How the log ends.

        ``clean``; ``open`` (only unwritten space follows, which a writer took beforehand);
        ``torn`` (an incomplete or unwritten tail); ``corrupt``.
        """
    @property
    def source(self) -> Literal["mark", "scan"]:
        """The source of the log's end: the high-water mark, or a scan of the log."""
    @property
    def scanned_bytes(self) -> int:
        """Bytes of the log that opening had to read."""
    @property
    def scanned_records(self) -> int:
        """Records that opening had to look at."""
    @property
    def valid_end(self) -> int:
        """Byte after the last intact record that is kept."""
    @property
    def file_end(self) -> int:
        """Byte after the last one as found, over all files."""
    @property
    def cut_bytes(self) -> int:
        """Bytes that opening for write cut from the tail; unwritten zeros included."""
    @property
    def torn_bytes(self) -> int:
        """Bytes after the last intact record, kept or cut, up to the last that is not zero."""
    @property
    def cut_records(self) -> int:
        """Intact but unacknowledged records cut, with ``recovery="acknowledged"``."""
    @property
    def durable_end(self) -> int | None:
        """Byte up to which the mark says the log is durable; None without a mark."""
    @property
    def mark(self) -> Literal["used", "missing", "damaged", "foreign"]:
        """The state of the high-water mark."""
    @property
    def damage(self) -> Damage | None:
        """The first damage."""
    @property
    def saved_to(self) -> str | None:
        """File in which the bytes cut were saved; None if they were zeros, or nothing was cut."""
    @property
    def set_aside(self) -> list[str]:
        """Segments after a gap, by the new names under which none is read as a part of the log."""
    @property
    def loss(self) -> Loss | None:
        """Acknowledged records that earlier repairs went on without (``accept_loss``), together."""
    @property
    def removed_segments(self) -> list[int]:
        """Segments of a write-ahead log below its head that were removed again."""
    @property
    def finished_truncation(self) -> bool:
        """Whether a truncation that a crash interrupted was brought to its end."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class VerifyReport:
    """The result of a full check of a log."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def verdict(self) -> _Verdict:
        """How the log ends; as in `RecoveryReport`."""
    @property
    def ok(self) -> bool:
        """Whether nothing is damaged, torn or lost (unwritten zeros at the end are fine).

        A loss that a repair accepted (``accept_loss``) is in ``loss``, and does not count.
        """
    @property
    def records(self) -> int:
        """Intact records; in an unacknowledged tail, only the records before its first damage."""
    @property
    def uncertain(self) -> int:
        """Intact records that may lie inside the payload of a damaged record."""
    @property
    def bytes(self) -> int:
        """Bytes of intact records."""
    @property
    def bounds(self) -> tuple[int, int] | None:
        """First and last record of the valid prefix: event numbers, or LSNs."""
    @property
    def valid_end(self) -> int:
        """Byte after the valid prefix."""
    @property
    def file_end(self) -> int:
        """Byte after the last one there is, over all files."""
    @property
    def durable_end(self) -> int | None:
        """Byte up to which the mark says the log is durable."""
    @property
    def lost_acknowledged(self) -> bool:
        """Whether the valid prefix ends below the mark."""
    @property
    def loss(self) -> Loss | None:
        """Acknowledged records that earlier repairs went on without (``accept_loss``), together."""
    @property
    def damages(self) -> list[Damage]:
        """Every damaged stretch, in log order."""
    @property
    def noted(self) -> bool:
        """Whether a note next to the log lists damage that opening does not see.

        Opening for writing is then refused, until a repair, or a check without a find. There is no
        note for a log without ``.deedbook``, nor if the caller may not write.
        """
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class BackupReport:
    """The files and records that a backup copied, and the bounds of the copy."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def source(self) -> str:
        """The log."""
    @property
    def target(self) -> str:
        """The backup."""
    @property
    def format(self) -> str:
        """Name of the format."""
    @property
    def copied_files(self) -> int:
        """Files that were written."""
    @property
    def copied_bytes(self) -> int:
        """Bytes that were written."""
    @property
    def new_records(self) -> int | None:
        """Records that were copied and read back; None where the whole backup was read."""
    @property
    def bounds(self) -> tuple[int, int] | None:
        """Positions of the first and the last record of the backup; None where it has none."""
    @property
    def total_bytes(self) -> int:
        """Bytes of the backup's records, from the log's first byte on."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class PartReport:
    """The result of a check of a part."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def intact(self) -> bool:
        """Whether the part is unchanged since the split.

        The part has no damage, as many records, and its last record ends at the end of the part.
        """
    @property
    def records(self) -> int:
        """Intact records."""
    @property
    def uncertain(self) -> int:
        """Intact records that may lie inside the payload of a damaged record."""
    @property
    def bytes(self) -> int:
        """Bytes of intact records."""
    @property
    def end(self) -> int:
        """Byte after the last one."""
    @property
    def damages(self) -> list[Damage]:
        """Every damaged stretch."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class ConvertReport:
    """The result of a conversion of a book."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def source_layout(self) -> str:
        """Layout of the source: ``"packed"``, ``"slots"`` or ``"padded"``."""
    @property
    def target_layout(self) -> str:
        """Layout of the copy: ``"packed"`` or ``"slots"``."""
    @property
    def deeds(self) -> int:
        """Deeds copied, read back and compared."""
    @property
    def jam_bytes(self) -> int:
        """Bytes of the deeds' jams."""
    @property
    def bounds(self) -> tuple[int, int] | None:
        """First and last event; None for a book without deeds."""
    @property
    def source_bytes(self) -> int:
        """Size of the source up to its last deed, bytes."""
    @property
    def target_bytes(self) -> int:
        """Size of the copy, bytes."""
    @property
    def left_out(self) -> Damage | None:
        """The bytes of a torn source after its last valid deed: the copy lacks them."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class RepairReport:
    """The cut of a repair, and the saved bytes; in a dry run, the planned cut."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def ok(self) -> bool:
        """Whether the log is whole, or was repaired."""
    @property
    def verdict(self) -> _Verdict:
        """How the log ends after the repair; in a dry run, before the repair."""
    @property
    def records(self) -> int:
        """Intact records that stay: the repair reads them up to the first damage.

        Without a repair, because acknowledged records are missing, the records before that place.
        """
    @property
    def damages(self) -> list[Damage]:
        """The damage at which the log was cut; empty without any."""
    @property
    def path(self) -> str:
        """The log that was repaired."""
    @property
    def valid_end(self) -> int:
        """Byte at which the log ends now."""
    @property
    def cut_bytes(self) -> int:
        """Bytes removed from the log's end."""
    @property
    def cut_records(self) -> int:
        """Intact records among the removed bytes."""
    @property
    def saved_to(self) -> str | None:
        """File next to the log with the bytes cut, or None if nothing was cut."""
    @property
    def set_aside(self) -> list[str]:
        """Segments after a gap, by the new names under which none is read as a part of the log.

        In a dry run, the current names.
        """
    @property
    def damage(self) -> Damage | None:
        """The damage at which the log was cut."""
    @property
    def loss(self) -> Loss | None:
        """Missing acknowledged records, or the losses that earlier repairs accepted.

        A loss accepted by a repair (``accept_loss``) stays noted next to the log.
        """
    @property
    def mended(self) -> bool:
        """Whether the log can be opened for appending now."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Dropped:
    """Records dropped from a write-ahead log, or to be dropped, and the remaining range."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def records(self) -> int:
        """Number of dropped records."""
    @property
    def bytes(self) -> int:
        """Size of the dropped records with their headers."""
    @property
    def head(self) -> int:
        """LSN at which the log begins now."""
    @property
    def end(self) -> int:
        """LSN at which the log ends now."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class SalvageRun:
    """Consecutive intact records copied by a salvage."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def source_ordinal(self) -> int | None:
        """Number of the first record in the source, if known: in a book, the event."""
    @property
    def source_offset(self) -> int:
        """Byte of the first record in the source."""
    @property
    def ordinal(self) -> int:
        """Number of the first record in the new log."""
    @property
    def offset(self) -> int:
        """Byte of the first record in the new log."""
    @property
    def records(self) -> int:
        """How many records."""
    @property
    def proved(self) -> bool:
        """Whether the records are proved to be records, and no part of a payload."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class SalvageReport:
    """The copied and the lost records of a salvage."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def ok(self) -> bool:
        """Whether the copy has all of the source: nothing is damaged or lost."""
    @property
    def verdict(self) -> _Verdict:
        """How the source ends."""
    @property
    def records(self) -> int:
        """Records copied."""
    @property
    def uncertain(self) -> int:
        """Copied records that may lie inside the payload of a damaged record."""
    @property
    def renumbered(self) -> bool:
        """Whether any record has another number in the new log than in the source."""
    @property
    def runs(self) -> list[SalvageRun]:
        """The runs of intact records, with their old and new positions."""
    @property
    def damages(self) -> list[Damage]:
        """The stretches left out."""
    @property
    def loss(self) -> Loss | None:
        """Acknowledged records missing after the last copied record.

        ``damages`` has the earlier losses.
        """
    @property
    def source_bytes(self) -> int:
        """Bytes of the source, without its header."""
    @property
    def stubs(self) -> list[int]:
        """Events of the new book that stand for lost deeds, with ``keep_numbers``."""
    @property
    def consumers(self) -> int:
        """Consumers copied from the source, each at the LSN of its record there."""
    @property
    def moved_consumers(self) -> list[str]:
        """Consumers with a lost record: they need the next intact record, or the new end."""
    @property
    def transactions(self) -> int:
        """Applications with a last transaction in the source, which the new log knows."""
    @property
    def unfinished_transactions(self) -> int:
        """Unfinished transactions, staged or begun in the source: the new log lacks them."""
    @property
    def not_carried(self) -> list[str]:
        """Errors of unreadable files next to the source: the new log lacks their content."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Stats:
    """Counters of a handle since its opening. Latencies in seconds."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def appends(self) -> int:
        """Calls that appended."""
    @property
    def records(self) -> int:
        """Records appended."""
    @property
    def bytes(self) -> int:
        """Bytes appended, headers included."""
    @property
    def syncs(self) -> int:
        """Syncs of the log; commits by several threads share one."""
    @property
    def slow_syncs(self) -> int:
        """Syncs longer than ``slow_sync``. The logger ``deedbook`` reports each, too."""
    @property
    def sync_seconds(self) -> float:
        """Time of all syncs."""
    @property
    def sync_max(self) -> float:
        """Time of the longest sync."""
    @property
    def sync_median(self) -> float | None:
        """Half of the syncs took at most this time (within a factor of two); None without syncs."""
    @property
    def sync_p99(self) -> float | None:
        """99 % of the syncs took at most this time (within a factor of two); None without syncs."""
    @property
    def sync_latency(self) -> list[tuple[int, int]]:
        """A histogram of latencies.

        Upper bounds in microseconds, doubling, each with the number of syncs between the bound
        before and this bound. The last bound is 2**64 - 1.
        """
    @property
    def dropped_files(self) -> int:
        """Files dropped from the log's beginning, by any call or rule.

        Segments of a WAL, epochs of a pier, files of a ledger that was full.
        """
    @property
    def dropped_records(self) -> int:
        """Records in the dropped files."""
    @property
    def dropped_bytes(self) -> int:
        """Bytes in the dropped files."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class LedgerFileInfo:
    """A file of a ledger."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def index(self) -> int:
        """The number of the file; no other file of the ledger ever gets it."""
    @property
    def path(self) -> str:
        """The file."""
    @property
    def bytes(self) -> int:
        """The size of the file in bytes."""
    @property
    def active(self) -> bool:
        """Whether a ledger is writing the file."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class LedgerFileReport:
    """The result of a full check of one file. Records are numbered from 0 on."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def file(self) -> LedgerFileInfo:
        """The file."""
    @property
    def report(self) -> VerifyReport:
        """The report of the file."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class LedgerFileRepair:
    """The repair of one file of a ledger."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def file(self) -> LedgerFileInfo:
        """The file as the repair found it."""
    @property
    def report(self) -> RepairReport:
        """The report of the file.

        ``saved_to`` has the bytes of a cut end, or the whole damaged file.
        """
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class LedgerFileSalvage:
    """The copied records of one file. Records of both files are numbered from 0 on."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def file(self) -> LedgerFileInfo:
        """The file."""
    @property
    def copy(self) -> str | None:
        """The copy; None if there was nothing to copy."""
    @property
    def report(self) -> SalvageReport:
        """The report of the copy."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class LedgerReport:
    """The result of a full check of a ledger."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def ok(self) -> bool:
        """Whether every file is whole; a file being written may end in a torn record."""
    @property
    def verdict(self) -> _Verdict:
        """The worst verdict of a file."""
    @property
    def records(self) -> int:
        """Intact records of all files."""
    @property
    def damages(self) -> list[Damage]:
        """Every damaged stretch, by its bytes in the file."""
    @property
    def loss(self) -> Loss | None:
        """Always None: a sent file is no loss, and a repair keeps the damaged file."""
    @property
    def files(self) -> list[LedgerFileReport]:
        """A report for each file, the oldest first."""
    @property
    def quarantined(self) -> list[str]:
        """The damaged files that a sender or a repair put into ``.deedbook/quarantine``.

        They are no files of the ledger any more, and do not count for ``ok``.
        """
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class LedgerRepair:
    """The repairs of a ledger's files; in a dry run, the planned repairs."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def ok(self) -> bool:
        """Whether every file is whole, or was repaired."""
    @property
    def verdict(self) -> _Verdict:
        """The worst verdict of a file after the repair; in a dry run, before the repair."""
    @property
    def records(self) -> int:
        """Records of all finished files that stay; the repair reads every record."""
    @property
    def damages(self) -> list[Damage]:
        """The first damage of each damaged file, by its bytes in the file."""
    @property
    def loss(self) -> Loss | None:
        """Records lost in the damage of the first damaged file; None for torn ends.

        ``records`` is 0 if their number is unknown.
        """
    @property
    def files(self) -> list[LedgerFileRepair]:
        """A report for each file, the oldest first."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class LedgerSalvage:
    """The copied and the lost records of a ledger's salvage."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def ok(self) -> bool:
        """Whether the copy has all of the source: no file is damaged."""
    @property
    def verdict(self) -> _Verdict:
        """The state of the source: the verdict of its first damaged file."""
    @property
    def records(self) -> int:
        """Records copied."""
    @property
    def damages(self) -> list[Damage]:
        """The stretches left out, by their bytes in the file."""
    @property
    def loss(self) -> Loss | None:
        """Always None, as in `LedgerReport`."""
    @property
    def files(self) -> list[LedgerFileSalvage]:
        """A report for each file, the oldest first."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class LmdbEpoch:
    """The migration of one log: the log of a pier's epoch, or the only log."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def source(self) -> str:
        """Directory that was read."""
    @property
    def dest(self) -> str:
        """Directory that was written."""
    @property
    def epoch(self) -> int:
        """The last event before the log."""
    @property
    def first(self) -> int | None:
        """The first event; None for a log without events."""
    @property
    def last(self) -> int | None:
        """The last event; None for a log without events."""
    @property
    def bytes(self) -> int:
        """Bytes of the events' jams."""
    @property
    def found(self) -> int:
        """Events already in the destination: compared, not written."""
    @property
    def meta(self) -> Meta:
        """The metadata of the log."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class LmdbMigration:
    """The result of `Book.migrate_lmdb` or `Book.export_lmdb`, or the plan of a dry run."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def source(self) -> str:
        """The source path."""
    @property
    def dest(self) -> str:
        """The destination path."""
    @property
    def dry_run(self) -> bool:
        """Whether nothing was changed."""
    @property
    def events(self) -> int:
        """All events, found events included."""
    @property
    def bytes(self) -> int:
        """Bytes of the events' jams."""
    @property
    def found(self) -> int:
        """Events from an earlier run: compared, not written."""
    @property
    def resumed_from(self) -> int | None:
        """The first missing event; None if all events were there, or none."""
    @property
    def epochs(self) -> list[LmdbEpoch]:
        """The logs, in the order of their events."""
    @property
    def meta(self) -> Meta:
        """The metadata; for a pier, from its top directory."""
    @property
    def seconds(self) -> float:
        """The duration of the migration."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class LedgerFileMigration:
    """The migration of one file of a DirectoryStore: see `Ledger.migrate_directory_store`."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def path(self) -> str:
        """The file."""
    @property
    def bytes(self) -> int:
        """The size of the file in bytes."""
    @property
    def active(self) -> bool:
        """Whether the file was being written, and never finished."""
    @property
    def events(self) -> int:
        """Events moved to the ledger, or to be moved."""
    @property
    def rest_from(self) -> int | None:
        """The bytes from here on are no event; None if the file is intact."""
    @property
    def rest_reason(self) -> str | None:
        """The wrong byte, with the expected and the found value."""
    @property
    def set_aside(self) -> str | None:
        """The copy of the rest; None if there is no copy, or the rest is all zeros."""
    @property
    def removed(self) -> bool:
        """Whether the file was removed."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class LedgerStats:
    """Counters of a ledger since its opening."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def log(self) -> Stats:
        """Appends and syncs."""
    @property
    def dropped_files(self) -> int:
        """Files dropped because the ledger was full."""
    @property
    def dropped_events(self) -> int:
        """Records in the dropped files."""
    @property
    def dropped_bytes(self) -> int:
        """Bytes in the dropped files."""
    @property
    def rejected_events(self) -> int:
        """Events refused because the ledger was full, or because they exceed its limit."""
    @property
    def rejected_bytes(self) -> int:
        """Bytes of the refused events."""
    @property
    def quarantined_files(self) -> int:
        """Damaged files moved to ``.deedbook/quarantine``."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Removable:
    """A fetched file, to be removed after it was sent: this very file.

    A later file with the same name stays untouched, even if another process removes this file. A
    removable can be pickled. Removables compare and hash by their values.
    """

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, index: int, device: int, inode: int, born_ns: int, quarantine: bool) -> Self:
        """Name a file again, with the values from `Ledger.fetch`.

        Raises `UnsupportedError` without a birth, and so does pickling: the system reuses inodes,
        and then only the birth distinguishes a file from a later file.
        """
    @property
    def index(self) -> int:
        """The file's number."""
    @property
    def device(self) -> int:
        """The device that the file is on."""
    @property
    def inode(self) -> int:
        """The file's inode."""
    @property
    def born_ns(self) -> int:
        """Nanoseconds from 1970 to the file's creation; 0 if the file system does not record it."""
    @property
    def quarantine(self) -> bool:
        """Whether removing moves the file to ``.deedbook/quarantine``: records lie after damage."""
    def to_dict(self) -> dict[str, Any]:
        """The values by their names."""
    def __getnewargs__(self) -> tuple[int, int, int, int, bool]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class LedgerFile:
    """A fetched file, open for reading by ``deedbook.transient.LedgerBody``."""

    @property
    def id(self) -> str:
        """A name that no other file ever gets; the same after a restart.

        Without births of files in the file system, the name is valid for one handle only.
        """
    @property
    def index(self) -> int:
        """The file's number."""
    @property
    def path(self) -> str:
        """The file."""
    @property
    def count(self) -> int:
        """The number of records in the body."""
    @property
    def content_length(self) -> int:
        """Bytes of the body, header and footer included."""
    @property
    def verdict(self) -> _Verdict:
        """How the file ends; as in `VerifyReport`."""
    @property
    def damages(self) -> list[Damage]:
        """The damaged stretches of the file."""
    @property
    def envelope(self) -> tuple[bytes, bytes, bytes]:
        """Header, footer and separator of the body."""
    def readinto(self, buffer: Buffer, position: int) -> int:
        """Fill ``buffer`` from byte ``position`` of the body on; returns the number of bytes.

        The call returns fewer bytes only at the end. Raises `CorruptError` if the file was changed
        since the fetch, and `IoError`.
        """
    def records(self, start: int, stop: int) -> Iterator[bytes]:
        """The payloads of the records from ``start`` to before ``stop``."""
    def copy(self) -> LedgerFile:
        """The same file, for separate reading."""

@final
class Ledger:
    """Events kept in files until they are sent: a ``deedbook.transient.DataStore`` on disk.

    A ledger is a directory of files ``N-BASE``, each a batch. An append goes to the file being
    written; a fetch finishes the file. Any number of processes, handles and threads may share a
    directory: each handle writes files of its own, and a fetch returns the finished files of all
    handles.

    >>> with deedbook.Ledger.open("spool", "a") as ledger:
    ...     places = ledger.append(b'{"n": 1}'), ledger.append(b'{"n": 2}')
    ...     fetched = ledger.fetch()
    ...     bodies = [bytes(data.read()) for data in fetched.data]  # send these
    ...     ledger.remove(fetched.removable)
    >>> bodies
    [b'[{"n": 1},{"n": 2}]']
    """

    __contains__: ClassVar[None]
    @staticmethod
    def open(
        path: _Path,
        mode: _Mode = "r",
        *,
        base: str | None = None,
        header: Text | None = None,
        footer: Text | None = None,
        separator: bytes | None = None,
        batch_bytes: int = 475_000,
        batch_records: int | None = None,
        record_bytes_max: int = 1_048_576,
        max_bytes: int | None = None,
        on_full: Literal["reject", "drop_oldest"] = "reject",
        durability: _Durability | None = None,
        on_corrupt: Literal["quarantine", "skip", "stop"] = "quarantine",
        slow_sync: float = 1.0,
        file_mode: int = 0o600,
    ) -> Ledger:
        """Open the ledger in directory ``path``, whose files' names end with ``base``.

        ``mode``: ``"r"`` reads the current files, or the one file at the given path, and removes
        nothing; ``"a"`` appends and sends; ``"x"`` does the same, and fails if the ledger exists. A
        reader returns the finished files, in the order of sending. A reader returns a file being
        written only if its path was given. A file sent meanwhile is skipped.

        You may leave out ``base`` if the directory holds one ledger; a new ledger has ``"events"``.
        No file is created before the first append. There is no ``lock_timeout``: a ledger may have
        many writers, each with files of its own.

        ``header``, ``footer`` and ``separator`` make the body of a batch, by default a JSON array.
        A function for one of the first two is called for each fetched batch.

        ``batch_bytes``: the size at which a file is finished, at least 100; ``batch_records``: the
        number of records at which a file is finished. ``record_bytes_max``: limit of a payload.
        ``max_bytes``: limit of all files. Beyond the limit, an append is refused (`IoError` with
        errno EDQUOT), or with ``on_full="drop_oldest"`` the oldest files are dropped, and `stats`
        counts their records. The files are counted if the last count is a second old, and again
        before a drop.

        ``durability``: see `Durability`; by default ``"none"``, as in the specification. With
        ``"manual"`` each file is synced when it is finished. ``file_mode``: permissions of new
        files, minus the umask.

        ``on_corrupt``, for a file with intact records after damage: ``"quarantine"`` sends the
        records before the damage, and `remove` moves the file to ``.deedbook/quarantine``.
        ``"skip"`` also sends the records after the damage, except records that may lie inside a
        damaged record: `remove` moves a file with such records to the quarantine. ``"stop"`` sends
        the records before the damage, and `remove` removes the file, as in the specification. With
        every setting, a file goes to the quarantine if a record is longer than
        ``record_bytes_max``, and does not follow damage.

        Raises: `MissingError`, `AlreadyExistsError`, `InvalidArgumentError` also for several
        ledgers without ``base``, `NotALogError` for a file with another name than ``N-BASE``,
        `IoError`.
        """
    @staticmethod
    def create(
        path: _Path,
        *,
        base: str | None = None,
        header: Text | None = None,
        footer: Text | None = None,
        separator: bytes | None = None,
        batch_bytes: int = 475_000,
        batch_records: int | None = None,
        record_bytes_max: int = 1_048_576,
        max_bytes: int | None = None,
        on_full: Literal["reject", "drop_oldest"] = "reject",
        durability: _Durability | None = None,
        on_corrupt: Literal["quarantine", "skip", "stop"] = "quarantine",
        slow_sync: float = 1.0,
        file_mode: int = 0o600,
    ) -> Ledger:
        """Create a ledger that must not exist; as `open` with mode ``"x"``."""
    def append(self, payload: Buffer, *, sync: bool = True) -> LedgerPosition:
        """Append one event, at least one byte; returns its position.

        With ``sync=False`` durability ``"always"`` leaves the sync to you.

        Raises `TooLargeError`, `InvalidArgumentError` for an empty event, `IoError` (``durable``
        says ``"no"`` or ``"unknown"``), `PoisonedError`, `ClosedError`, `ForkedError`.
        """
    def commit(self, payload: Buffer) -> LedgerPosition:
        """Append one event and sync, whatever the durability option."""
    def try_append(self, payload: Buffer) -> LedgerPosition | None:
        """Append one event if one write to the open file is enough.

        Returns None, and appends nothing, if `append` must do the work: with a sync, another file,
        a look at the files, or a wait for another thread. For event loops; with
        ``durability="always"`` the sync is left to the caller. Errors as in `append`.
        """
    def append_many(
        self, payloads: Iterable[Buffer] | object, *, atomic: bool = False
    ) -> Positions[LedgerPosition]:
        """Append the events of an iterable or an Arrow object; events before an error stay.

        >>> with deedbook.Ledger.create("spool") as ledger:
        ...     added = ledger.append_many([b"1", b"2", b"3"])
        ...     added.first, len(added), ledger[added.last].payload
        (LedgerPosition(file=0, record=0), 3, b'3')

        With ``atomic`` nothing is appended if one event of an iterable is refused; an `IoError`
        reports a partial batch in the ledger. A crash may leave the first events.
        """
    def iter(
        self,
        start: _InLedger | None = None,
        stop: _InLedger | None = None,
        *,
        reverse: bool = False,
        on_corrupt: _OnCorrupt = "raise",
    ) -> RecordIterator[LedgerRecord]:
        """The records of the finished files, from ``start`` to before ``stop``.

        ``ledger.iter((7, 0), (8, 0))`` has the records of file 7. Raises `CorruptError` at damage,
        or with ``on_corrupt="skip"`` skips it and notes it in ``damages``.

        With ``reverse`` the last record comes first, and the newest file before the others. In a
        damaged file the records after the last damage come before the error. Skipping backwards
        holds one file in memory.
        """
    def __iter__(self) -> RecordIterator[LedgerRecord]:
        """The records of all finished files; `CorruptError` at damage."""
    def __reversed__(self) -> RecordIterator[LedgerRecord]:
        """The same records, the last first."""
    @overload
    def __getitem__(self, key: _InLedger, /) -> LedgerRecord: ...
    @overload
    def __getitem__(self, key: slice, /) -> RecordRange[LedgerRecord]: ...
    def payloads(
        self, start: _InLedger | None = None, stop: _InLedger | None = None
    ) -> Iterator[bytes]:
        """Only the payloads of the same records."""
    def follow(
        self, start: _InLedger | None = None, *, timeout: float | None = None
    ) -> Iterator[LedgerRecord]:
        """The records from ``start`` (default: the first) on, waiting for more.

        This process or another may append them; the iterator goes on into new files, and also
        reads files that are being written. Each record comes once, those of a file in their order.
        Several writers' files are read side by side.

        The iterator ends if no record comes for ``timeout`` seconds (None: never), and when this
        handle is closed. A sender may remove a file while the iterator reads it. A file removed
        before that raises `OutOfRangeError`, and damage raises `CorruptError`.
        """
    def batches(
        self,
        start: _InLedger | None = None,
        stop: _InLedger | None = None,
        *,
        columns: Sequence[str] | None = None,
        batch_rows: int = 65536,
        batch_bytes: int = 2097152,
        on_corrupt: _OnCorrupt = "raise",
    ) -> BatchStream:
        """As `iter`, as Arrow record batches; no batch holds records of two files.

        Columns: ``file`` int64 (index of the file), ``record`` int64 (in the file, from 0 on),
        ``payload`` binary; on request ``offset``, ``length`` int64 (bytes of the record with its
        header). A batch ends at ``batch_rows`` records, or at ``batch_bytes`` bytes of payload.
        Raises as `iter`, and `InvalidArgumentError` for a position within a file.
        """
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """All records of the finished files as an Arrow table."""
    def __arrow_c_schema__(self) -> object: ...
    def splits(
        self,
        split_bytes: int = 67108864,
        start: _InLedger | None = None,
        stop: _InLedger | None = None,
    ) -> list[Split]:
        """Split files between records into parts of about ``split_bytes`` bytes.

        Reads the files. The bytes after damage make a part of their own. A file sent meanwhile has
        no part. Raises `InvalidArgumentError` for a position within a file.
        """
    @property
    def files(self) -> list[LedgerFileInfo]:
        """The files, the oldest first; files being written, too.

        A file that cannot be opened has 0 bytes, and reading it raises the error.
        """
    def next_index(self) -> int | None:
        """The lowest index for the next file; None without files and without a counter.

        The number of a ledger never falls. A lower number means another ledger, or numbers that
        began again. Raises `IoError`.
        """
    @staticmethod
    def bases(path: _Path) -> list[str]:
        """The bases of the ledgers in a directory, sorted; empty without ledgers.

        A name is no proof: a ledger has a counter in ``.deedbook``, or one of its first files holds
        an intact record. `IoError` if a file cannot be read, and no ledger is found.
        """
    @staticmethod
    def is_file(path: _Path) -> bool:
        """Whether a file is named ``N-BASE`` and holds an intact record. Raises `IoError`."""
    def fetch(self, count: int | None = None, max_bytes: int | None = None) -> DataResult | None:
        """Finish the file being written, and return the oldest finished files; None without any.

        At most ``count`` files (and 256: each is open), with at most ``max_bytes`` together, but at
        least one. ``data`` has a ``deedbook.transient.LedgerBody`` for each, and ``removable`` the
        items to give to `remove` after sending; ``more`` says whether there are further files. This
        handle leases the files until `remove` or `release` returns them, or the handle is closed,
        or its process ends. A fetch leaves out files leased or written by other handles and
        processes; a second fetch of this handle returns its own files again. Files without an
        intact record are set aside. An error of the header's or the footer's function is raised.
        """
    def remove(self, items: Iterable[Removable]) -> None:
        """Remove sent files; a missing file is no error.

        With ``durability="none"`` a power cut may bring them back.
        """
    def release(self, items: Iterable[Removable]) -> None:
        """Return fetched files that you will not send now: others may send them."""
    def has_data(self) -> bool:
        """Whether any file is to be sent, even a file that another process writes or sends."""
    def reset(self) -> None:
        """Remove every file except files of other writers; numbers go on, the quarantine stays."""
    def sync(self) -> None:
        """Wait until every append of this handle is on stable storage."""
    def backup(
        self,
        target: _Path,
        *,
        progress: Callable[[int], object] | None = None,
    ) -> BackupReport:
        """Copy the log, or bring a copy up to date; see `deedbook.backup`.

        A writer syncs first, so the copy has all appended records.
        """
    def stats(self) -> LedgerStats:
        """Counters of this handle since its opening."""
    def close(self) -> None:
        """Finish the file being written, and sync unless the durability is none.

        A second call waits for the first, and fails if the first failed.
        """
    @property
    def transactions(self) -> Transactions:
        """Records of many tasks, appended once, all or none."""
    @property
    def path(self) -> str:
        """The directory, absolute."""
    @property
    def base(self) -> str:
        """The end of the files' names."""
    @property
    def unsynced_bytes(self) -> int:
        """Bytes appended by this handle and not yet synced by it.

        A power cut could lose them. With ``durability="none"`` the system decides when to write
        them.
        """
    @property
    def mode(self) -> _Mode:
        """The mode as given to `open`."""
    @property
    def closed(self) -> bool:
        """Whether the handle is closed."""
    @property
    def durability(self) -> _Durability:
        """When appends are synced, as a `Durability`."""
    @staticmethod
    def verify(
        path: _Path,
        *,
        base: str | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> LedgerReport:
        """Check every record of every file, or of the file at ``path``; changes nothing.

        ``base`` as in `open`. ``progress`` is called with the bytes done and the total; an error
        from ``progress`` ends the check.

        Raises `MissingError`, and `InvalidArgumentError` for several ledgers without ``base``.
        """
    @staticmethod
    def verify_file(
        path: _Path,
        *,
        intact: Sequence[Split] | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> VerifyReport:
        """Check every record of one file; changes nothing. `MissingError` for a missing file.

        ``intact``: parts found intact by `Split.check`, from the file's first part on; the check
        skips them. ``progress`` as in `verify`.
        """
    @staticmethod
    def repair(
        path: _Path,
        *,
        force: bool = False,
        dry_run: bool = False,
        accept_loss: bool = False,
        base: str | None = None,
    ) -> LedgerRepair:
        """Repair the damaged finished files of a ledger, or the file at ``path``.

        A torn end is cut, and its bytes are saved to ``.deedbook/quarantine``. A file with intact
        records after damage stays unchanged, and ``mended`` is False. With ``accept_loss`` the
        intact records take its place, and the damaged file goes to the quarantine, where `verify`
        names it and `salvage` reads it. Records after the damage get lower numbers. A crash leaves
        the file as it was, or repaired.

        Raises `CorruptError` if intact records may lie inside a damaged one, because the repair
        leaves these out, unless ``force`` is set; and for a record that is only longer than the
        limit. Raises `LockedError` for a damaged file that a sender has leased; earlier files may
        be repaired by then. `MissingError` for a missing ledger. A file that is being written
        stays as it is. ``dry_run`` changes nothing and reports the planned work.
        """
    @staticmethod
    def salvage(
        path: _Path,
        to: _Path,
        *,
        base: str | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> LedgerSalvage:
        """Copy every intact record to a new ledger, each file to a file of its own.

        ``base`` as in `open`. The source may be a quarantine, ``.deedbook/quarantine``. Raises
        `AlreadyExistsError` for a ledger with the same base at ``to``.
        """
    @staticmethod
    def migrate_directory_store(
        source: _Path,
        path: _Path,
        base: str = "events",
        *,
        old_base: str = "events",
        keep: bool = False,
        dry_run: bool = False,
        batch_bytes: int = 475_000,
        record_bytes_max: int = 1_048_576,
        progress: Callable[[int, int], object] | None = None,
    ) -> list[LedgerFileMigration]:
        """Append the events of a DirectoryStore's files to the ledger at ``path``, oldest first.

        The program that wrote the files (crate ``transientdb``) must have ended. Each file of
        ``source``, finished or not, is removed when its events are on stable storage; with ``keep``
        the file stays, and a second call migrates it again. From a torn or damaged file, the events
        before the damage are migrated, and the other bytes are copied to ``.deedbook/quarantine``
        of the ledger. A file without the beginning of a DirectoryStore's file stays (``rest_from``
        0). ``dry_run`` only reads.

        You can end a migration at any moment, and repeat it. Events of the interrupted file may
        then come twice.

        ``progress`` is called with the bytes done and the total; an error from ``progress`` ends
        the migration. Raises `MissingError`, `LockedError` (a second migration, or a file that
        grows), `TooLargeError` for an event over ``record_bytes_max``, `InvalidArgumentError` if
        both are one directory, `IoError`.
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
    def __bool__(self) -> bool:
        """Whether the ledger is open."""

@final
class Event:
    """A Nostr event (NIP-01). Events with the same fields are equal, wherever they are stored.

    Fields are checked for form and range; `check_id` compares the id with the content.
    """

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(
        cls,
        id: str,
        pubkey: str,
        created_at: int,
        kind: int,
        tags: Sequence[Sequence[str]],
        content: str,
        sig: str,
        *,
        location: tuple[int, int] | None = None,
        deleted: bool = False,
        replaced: bool = False,
        lossy: bool = False,
    ) -> Self:
        """Raises `InvalidArgumentError` for a field that no event can have."""
    @staticmethod
    def from_json(text: str | Buffer) -> Event:
        """The event of a JSON object; fields unknown to NIP-01 are skipped.

        Raises `InvalidArgumentError` with the field, the error, and the column.
        """
    @property
    def id(self) -> str:
        """SHA-256 of the canonical form, 64 lower-case hexadecimal digits."""
    @property
    def pubkey(self) -> str:
        """The author's public key, 64 lower-case hexadecimal digits."""
    @property
    def created_at(self) -> int:
        """Seconds since 1970, below 2**32."""
    @property
    def kind(self) -> int:
        """The kind of the event, 0 to 65,535."""
    @property
    def tags(self) -> list[list[str]]:
        """The tags: lists of texts, each with the tag's name first; a new list each time."""
    @property
    def content(self) -> str:
        """The content."""
    @property
    def sig(self) -> str:
        """The signature of the id, 128 lower-case hexadecimal digits."""
    @property
    def location(self) -> tuple[int, int] | None:
        """Segment and byte in a store; None for an event from elsewhere.

        A compaction changes the location.
        """
    @property
    def position(self) -> tuple[int, int] | None:
        """The location, under the name used for records of every format."""
    @property
    def payload(self) -> bytes:
        """The event as JSON, under the name used for records of every format."""
    @property
    def deleted(self) -> bool:
        """Whether the store notes the event as deleted."""
    @property
    def replaced(self) -> bool:
        """Whether the store notes the event as replaced by a newer version."""
    @property
    def lossy(self) -> bool:
        """Whether the writing program lost names of tags, and no known names match the id.

        If known names match, the event has them.
        """
    def check_id(self) -> None:
        """Compare the id with the content. Raises `InvalidArgumentError` with both ids."""
    def to_dict(self) -> dict[str, Any]:
        """The seven fields of NIP-01 by their names."""
    def to_json(self) -> str:
        """The event as a JSON object without white space, as an export writes it."""
    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]: ...
    def __copy__(self) -> Self: ...
    def __deepcopy__(self, _memo: object, /) -> Self: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class EventOutcome:
    """The outcome of an append of an event."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def what(
        self,
    ) -> Literal["stored", "duplicate", "superseded", "deleted", "expired", "ephemeral"]:
        """The outcome, as a word.

        ``"stored"``; ``"duplicate"``, the event was stored already; ``"superseded"``, the event is
        stored, but a newer version counts. Not stored: ``"deleted"`` by its author; ``"expired"``;
        ``"ephemeral"``, a kind that the store does not keep.
        """
    @property
    def stored(self) -> bool:
        """Whether this call stored the event."""
    @property
    def location(self) -> tuple[int, int] | None:
        """The location of the event, if stored."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class BadLine:
    """A line of an import without a valid event, or with an event too large for the store."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def line(self) -> int:
        """The number of the line, from 1 on."""
    @property
    def reason(self) -> str:
        """The error, with the field and the column or both values."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class ExportReport:
    """The report of `EventStore.export_json`."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def events(self) -> int:
        """Events."""
    @property
    def lossy(self) -> int:
        """Exported events that are `lossy`: their ids do not verify."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Fragmentation:
    """The effect of a compaction on a segment."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def segment(self) -> int:
        """The number of the segment."""
    @property
    def kept(self) -> int:
        """Events to keep."""
    @property
    def deleted(self) -> int:
        """Deleted events."""
    @property
    def replaced(self) -> int:
        """Replaced events."""
    @property
    def expired(self) -> int:
        """Expired events."""
    @property
    def live_bytes(self) -> int:
        """Bytes of the events to keep."""
    @property
    def dead_bytes(self) -> int:
        """Bytes of the events to drop."""
    @property
    def share(self) -> float:
        """The share of the bytes in events to drop, 0 to 1."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class ImportReport:
    """The report of `EventStore.import_json`."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def lines(self) -> int:
        """Lines read, empty ones included."""
    @property
    def bytes(self) -> int:
        """Bytes read, uncompressed."""
    @property
    def stored(self) -> int:
        """Stored events."""
    @property
    def superseded(self) -> int:
        """Stored events for which a newer version counts."""
    @property
    def duplicates(self) -> int:
        """Events that were stored before."""
    @property
    def deleted(self) -> int:
        """Events not stored, because their author deleted them."""
    @property
    def expired(self) -> int:
        """Events not stored, because they are expired."""
    @property
    def ephemeral(self) -> int:
        """Events of kinds that the store does not keep."""
    @property
    def bad(self) -> int:
        """Lines without a valid event, or with a too large event."""
    @property
    def bad_lines(self) -> list[BadLine]:
        """The first 1,000 bad lines."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class EventFault:
    """A damaged place in a segment, or a wrong event."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def location(self) -> tuple[int, int]:
        """Segment and first byte."""
    @property
    def end(self) -> int:
        """The byte after the place."""
    @property
    def reason(self) -> str:
        """The error, with both values."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class EventStoreReport:
    """The result of `EventStore.verify`."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def verdict(self) -> _Verdict:
        """``"clean"`` or ``"corrupt"``."""
    @property
    def records(self) -> int:
        """Stored events, deleted and replaced events included."""
    @property
    def loss(self) -> Loss | None:
        """Set if acknowledged events are missing. Its numbers are 0, for unknown."""
    @property
    def ok(self) -> bool:
        """Whether there is no error."""
    @property
    def segments(self) -> int:
        """Segments read."""
    @property
    def bytes(self) -> int:
        """Size of the segments, bytes."""
    @property
    def live(self) -> int:
        """Events neither deleted nor replaced, expired events included."""
    @property
    def deleted(self) -> int:
        """Deleted events still stored."""
    @property
    def replaced(self) -> int:
        """Replaced events still stored."""
    @property
    def recovered(self) -> int:
        """Events whose writer lost names of tags, with known names that match the id."""
    @property
    def lossy(self) -> int:
        """Events without matching names for their id: each is a fault."""
    @property
    def faults(self) -> int:
        """Damaged places and wrong events."""
    @property
    def damages(self) -> list[EventFault]:
        """The first 1,000 faults in the segments."""
    @property
    def log_damages(self) -> list[DamagedPart]:
        """Damage in the write-ahead log.

        It may prevent opening for writing, until a repair removes the damage.
        """
    @property
    def is_loss(self) -> bool:
        """Whether acknowledged events are missing.

        A repair, or opening with ``recovery="spec"``, noted the loss, or pages are missing. ``ok``
        judges the remaining events, and is false for missing pages.
        """
    @property
    def noted(self) -> bool:
        """Whether a note next to the store lists damaged pages.

        Opening for writing is then refused, until a repair, or a check without a find. There is no
        note if the caller may not write.
        """
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class EventStorePartReport:
    """The result of verifying a part of a store."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def report(self) -> EventStoreReport:
        """The report of the part: bytes, events and errors."""
    @property
    def ids(self) -> bytes:
        """The first 8 bytes of each current event's id, as a little-endian number.

        If no number repeats across all parts, no event is stored twice.
        """
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class CompactionReport:
    """The report of `EventStore.compact`, or the plan of a dry run."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def segments(self) -> list[int]:
        """The old segments."""
    @property
    def written(self) -> list[int]:
        """The new segments; none in a dry run."""
    @property
    def kept(self) -> int:
        """Events copied."""
    @property
    def deleted(self) -> int:
        """Deleted events to drop."""
    @property
    def replaced(self) -> int:
        """Replaced events to drop."""
    @property
    def expired(self) -> int:
        """Expired events to drop."""
    @property
    def bytes_before(self) -> int:
        """Size of the old segments."""
    @property
    def bytes_after(self) -> int:
        """Size of the new segments; in a dry run an estimate."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class EventStoreOpening:
    """The result of opening an event store."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def replayed(self) -> int:
        """Entries of the write-ahead log after the last checkpoint."""
    @property
    def appended_again(self) -> int:
        """Replayed events missing from the segments.

        A writer appends them again. A reader reads them from the log.
        """
    @property
    def flags_set_again(self) -> int:
        """Replayed flags, set again."""
    @property
    def saved(self) -> list[str]:
        """Files with the saved bytes of a cut segment or write-ahead log."""
    @property
    def removed(self) -> list[str]:
        """Removed files: old or unfinished segments of a compaction, and empty unlisted ones."""
    @property
    def manifest_rebuilt(self) -> bool:
        """Whether the manifest was missing, wrong or older than its copy, and rebuilt.

        The source is the copy, or else the segments.
        """
    @property
    def indexed(self) -> int:
        """Events added to the index."""
    @property
    def cut_bytes(self) -> int:
        """With ``recovery="spec"``: bytes cut from the write-ahead log."""
    @property
    def cut_events(self) -> int:
        """Intact events among the cut bytes, in no segment."""
    @property
    def is_loss(self) -> bool:
        """Whether acknowledged events are missing.

        A repair or this opening noted the loss, or pages are missing.
        """
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class DamagedPart:
    """A stretch of an event store's file without an intact part."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def path(self) -> str:
        """The file."""
    @property
    def offset(self) -> int:
        """The first byte."""
    @property
    def end(self) -> int:
        """The byte after the last."""
    @property
    def reason(self) -> str:
        """The error, with both values."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class EventStoreRepair:
    """The report of a repair of an event store."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def ok(self) -> bool:
        """Whether the store is whole, or was repaired."""
    @property
    def verdict(self) -> _Verdict:
        """``"clean"`` if `ok`, otherwise ``"corrupt"``."""
    @property
    def records(self) -> int:
        """Intact events in the segments after the repair; the repair reads every page.

        In a dry run, before the repair: without the events that a repair would append from the
        write-ahead log. Deleted and replaced events count while they are stored.
        """
    @property
    def loss(self) -> Loss | None:
        """Set if acknowledged events are missing. Its numbers are 0, for unknown."""
    @property
    def path(self) -> str:
        """The store's directory, absolute."""
    @property
    def damages(self) -> list[DamagedPart]:
        """The damaged parts of the store's files."""
    @property
    def cut_bytes(self) -> int:
        """Bytes removed from files; in a dry run, bytes to be removed."""
    @property
    def cut_events(self) -> int:
        """Intact events in a cut part of the write-ahead log, in no segment."""
    @property
    def lost_segments(self) -> list[int]:
        """Numbers of the missing segments."""
    @property
    def is_loss(self) -> bool:
        """Whether acknowledged events are missing.

        They are lost with segments, damaged pages, or the end of the write-ahead log. A repair that
        continues without them notes the loss.
        """
    @property
    def was_loss(self) -> bool:
        """Whether an earlier repair noted the loss."""
    @property
    def saved(self) -> list[str]:
        """Files with the removed bytes."""
    @property
    def mended(self) -> bool:
        """Whether the store now opens for writing, and has no damage."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class EventStoreSalvage:
    """The copied and the lost events of an event store's salvage."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def ok(self) -> bool:
        """Whether no file is damaged, and no segment is missing."""
    @property
    def verdict(self) -> _Verdict:
        """The state of the source: ``"clean"`` or ``"corrupt"``."""
    @property
    def records(self) -> int:
        """Events copied, whatever their flags."""
    @property
    def loss(self) -> Loss | None:
        """Set if segments are missing. Its numbers are 0, for unknown."""
    @property
    def hidden(self) -> int:
        """Copied events that are deleted or replaced."""
    @property
    def from_log(self) -> int:
        """Copied events that only the write-ahead log had."""
    @property
    def from_saved(self) -> int:
        """Copied events from the saved bytes of earlier cuts only."""
    @property
    def uncertain(self) -> int:
        """Copied events without proof.

        The id is not the hash of the content, or the event may be a part of a damaged log entry, or
        the event lies before the log's last checkpoint and a compaction may have dropped it.
        """
    @property
    def copies(self) -> int:
        """Intact records not copied, because their event was already copied."""
    @property
    def left_out(self) -> int:
        """Events of the log not copied, because they are expired or deleted by their author."""
    @property
    def lost_segments(self) -> list[int]:
        """Numbers of the missing segments in the manifest."""
    @property
    def damages(self) -> list[DamagedPart]:
        """The damaged parts of the files."""
    @property
    def source_bytes(self) -> int:
        """Size of the files read, bytes."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class EventCensus:
    """Counts of an event store's current events."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def events(self) -> int:
        """Number of events."""
    @property
    def kinds(self) -> dict[int, int]:
        """Number of events by kind."""
    @property
    def authors(self) -> dict[str, int]:
        """Number of events by author."""
    @property
    def days(self) -> dict[int, int]:
        """Number of events by day, as days from 1970 on (UTC)."""
    @property
    def tags(self) -> dict[str, int]:
        """Number of tags by name."""
    @property
    def damages(self) -> list[EventFault]:
        """The skipped damaged places."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class EventIterator:
    """Events of an event store, from the time of the call."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Event: ...
    @property
    def damages(self) -> list[EventFault]:
        """Damaged places skipped so far."""

@final
class EventStore:
    """Nostr events in pages, with a write-ahead log, an index, and compaction.

    The store is a directory. One process writes; any number read. Threads may share a handle.
    Appended events survive a crash of your process.
    """

    @staticmethod
    def open(
        path: _Path,
        mode: _Mode = "r",
        *,
        durability: _Durability | None = None,
        recovery: Literal["valid", "spec"] = "valid",
        batch_interval: float | None = None,
        batch_bytes: int | None = None,
        page_bytes: int | None = None,
        segment_bytes: int | None = None,
        wal_segment_bytes: int = 1_073_741_824,
        checkpoint_bytes: int | None = None,
        checkpoint_interval: float | None = None,
        compaction_ratio: float | None = None,
        auto_compact: bool = True,
        archive: Callable[[int, Any], object] | None = None,
        retain_bytes: int | None = None,
        retain_age: float | None = None,
        retain_kinds: Mapping[int, float] | None = None,
        checksums: bool = True,
        event_bytes_max: int = 100_000_000,
        history: Literal["drop", "keep"] | None = None,
        mapped_reads: bool = False,
        slow_sync: float = 1.0,
        lock_timeout: float = 0.0,
        check: Literal["end", "all"] = "end",
        file_mode: int = 0o600,
    ) -> EventStore:
        """Open the store of a directory: ``"r"`` read, ``"a"`` append or create, ``"x"`` create.

        A reader's first query copies the writer's index, and later queries use the copy; a reader
        without rights to write next to the index scans all events for each query. A reader sees the
        events stored at its opening, without the events deleted or replaced since. If a profile is
        replaced meanwhile, the reader sees neither version. Open the store again to see later
        events.

        Seven settings belong to the store: ``page_bytes``, ``segment_bytes``, ``batch_interval``,
        ``batch_bytes``, ``checkpoint_bytes``, ``checkpoint_interval`` and ``compaction_ratio``.
        None, the default, stands for the stored value. Opening for writing stores another value,
        and later openings use it.

        ``durability``: see `Durability`; by default appends are synced within ``batch_interval``
        seconds (0.01 to 1; 0.1 for a new store), or after ``batch_bytes`` (1 to 100 MiB; 10 MiB) if
        earlier.

        ``recovery``: how opening for write treats a write-ahead log with damage after its last
        checkpoint. ``"valid"`` refuses the log. ``"spec"`` saves and cuts the bytes from the damage
        on, as the format's specification requires, and notes missing acknowledged events as a loss.
        `opening` reports both. If the last segment has a damaged page after the checkpoint, opening
        cuts the segment there, too, and saves the rest.

        ``page_bytes``, of new segments: a power of two from 1024 to 65536. The reference
        implementation reads 4096, 8192 and 16384 only, and an event in pages of 1024 bytes has 66
        MB at most. The stored value is the page size of the last segment, and 4096 for a new store.
        ``segment_bytes``: the size at which a segment gets no more events, 10 MiB to 4 GiB minus a
        page; 1 GiB for a new store.

        ``wal_segment_bytes``: the size at which a file of the write-ahead log is finished, 10 MiB
        to 10 GiB; `checkpoint` describes the remaining files.

        ``checkpoint_bytes``: the bytes of the log between two checkpoints, so opening replays about
        as many at most; 256 MiB for a new store. ``checkpoint_interval``: the seconds from an
        append to the next checkpoint, 1 to 86,400; 300 for a new store. The thread that syncs
        appends in time makes the checkpoint; with ``"always"`` and other words without such a
        thread, a later append does.

        ``compaction_ratio``: the default of `compact`, 0.1 to 0.5; 0.2 for a new store.
        ``auto_compact``: whether a handle for appending compacts by itself, at most once an hour,
        if a segment reaches the ratio. Appends and queries go on meanwhile.

        ``archive``: called with number and path of each segment that a compaction will replace,
        while the segment still has the events to drop. If ``archive`` raises, the compaction ends
        with an `IoError`, and the segment stays. ``archive`` may get a segment again, and must not
        compact or close the store.

        ``retain_bytes``, ``retain_age`` (seconds), ``retain_kinds`` (seconds by kind): hide events
        beyond a size or an age, soon after the opening and once an hour, as `retain` does. The
        first two are about the regular kinds.

        ``checksums``: whether new records have a checksum of their own.

        ``event_bytes_max``: limit of a new record, 4,096 to 100,000,000; readers accept larger
        stored records.

        ``history="keep"`` keeps every version of replaceable events, and finds them; ``"drop"``
        hides replaced versions, and the next compaction drops them. The store keeps the setting:
        None, the default, continues as before, and is ``"drop"`` for a new store. A reader ignores
        the setting.

        ``mapped_reads``: whether segments are read through a shared map of their bytes at the
        opening: some per cent quicker, and pages read count as memory of the process (Linux).

        ``slow_sync``: a longer sync, in seconds, is logged.

        ``lock_timeout``: how long opening for writing waits for another writer, seconds; then
        `LockedError`. Other threads continue meanwhile, and Ctrl-C ends the wait.

        ``file_mode``: permissions of new files, minus the umask.

        ``check="all"`` reads the whole store first, and raises for damage anywhere. Damaged pages
        found by `verify` prevent opening for writing, until a `repair`, or a `verify` without a
        find.

        Raises `MissingError`, `AlreadyExistsError`, `LockedError`, `NotALogError` for a log of
        another format, `CorruptError`, `InvalidArgumentError`, `IoError`.
        """
    @staticmethod
    def create(
        path: _Path,
        *,
        durability: _Durability | None = None,
        batch_interval: float | None = None,
        batch_bytes: int | None = None,
        page_bytes: int | None = None,
        segment_bytes: int | None = None,
        wal_segment_bytes: int = 1_073_741_824,
        checkpoint_bytes: int | None = None,
        checkpoint_interval: float | None = None,
        compaction_ratio: float | None = None,
        auto_compact: bool = True,
        archive: Callable[[int, Any], object] | None = None,
        retain_bytes: int | None = None,
        retain_age: float | None = None,
        retain_kinds: Mapping[int, float] | None = None,
        checksums: bool = True,
        event_bytes_max: int = 100_000_000,
        history: Literal["drop", "keep"] | None = None,
        mapped_reads: bool = False,
        slow_sync: float = 1.0,
        file_mode: int = 0o600,
    ) -> EventStore:
        """Create a store; `open` with mode ``"x"`` and these options."""
    @staticmethod
    def repair(
        path: _Path,
        *,
        force: bool = False,
        dry_run: bool = False,
        accept_loss: bool = False,
        event_bytes_max: int = 100_000_000,
    ) -> EventStoreRepair:
        """Make a damaged store usable again, after saving the removed bytes next to their file.

        A repair cuts the write-ahead log at its first damage after the last checkpoint, removes
        damaged pages from their segments, and rebuilds a lost header or manifest. If the cut would
        remove intact events that only the log has, a repair raises `CorruptError`, unless ``force``
        is set; `salvage` copies the events. If acknowledged events are missing, with segments,
        pages, or the end of the log, the store stays unchanged and ``mended`` is False. With
        ``accept_loss`` the repair continues without them, and the loss stays noted. ``dry_run``
        changes nothing and reports the planned work. ``event_bytes_max`` is the limit of a record,
        4,096 to 100,000,000 bytes. The removed bytes are saved as ``FILE.cut-BYTE``, with another
        number appended if the file exists.

        Raises `MissingError` if there is no store, `LockedError` if it is being written, and
        `CorruptError` if only `salvage` helps.
        """
    @staticmethod
    def salvage(
        path: _Path,
        to: _Path,
        *,
        page_bytes: int | None = None,
        segment_bytes: int | None = None,
        checksums: bool = True,
        event_bytes_max: int = 100_000_000,
        progress: Callable[[int, int], object] | None = None,
    ) -> EventStoreSalvage:
        """Copy every intact event, each once, to a new store at ``to``.

        The events come from the segments with their flags, from the write-ahead log, and from the
        saved bytes of earlier cuts. The source stays unchanged, and need not be in a state to open.
        The options apply to the new store, which keeps the settings of the source otherwise.
        ``progress`` is called with the bytes done and the total; an error from ``progress`` ends
        the work, and leaves a store with the events copied so far.

        Raises `MissingError` if there is no file of a store, and `AlreadyExistsError` if the target
        is a store.
        """
    def append(self, event: Event | dict[str, Any] | str | Buffer) -> EventOutcome:
        """Append an event whose id is the hash of its content.

        Raises `InvalidArgumentError` for a wrong field or id, `TooLargeError`, `ReadOnlyError`,
        `IoError` (``durable`` says ``"no"`` or ``"unknown"``), `PoisonedError`, `ClosedError`,
        `ForkedError`; `CorruptError` where a deletion request is damaged, until `repair` takes it
        out.
        """
    def append_many(
        self, events: Iterable[Event | dict[str, Any] | str | Buffer]
    ) -> list[EventOutcome]:
        """Append events in their order, and return the outcome of each.

        The events before a refused event are stored. After an error append all again: the stored
        events count as duplicates.
        """
    def commit(self, event: Event | dict[str, Any] | str | Buffer) -> EventOutcome:
        """Append an event and sync, whatever the durability option; as `append`."""
    def sync(self) -> None:
        """Wait until every append is on stable storage."""
    def checkpoint(self) -> None:
        """Make the segments hold all appends durably: opening then replays nothing older.

        Files of the write-ahead log wholly before the checkpoint are deleted. The file with the
        checkpoint stays, up to ``wal_segment_bytes`` of it, and deleted events stay readable there
        until a later file has a checkpoint.
        """
    @overload
    def get(self, id: str | bytes) -> Event | None: ...
    @overload
    def get(self, id: tuple[int, int]) -> Event:
        """The event with this id, if stored and current: not deleted, replaced or expired.

        With a location, the event there, as from `read`. Raises `InvalidArgumentError` for an
        invalid id.
        """
    def __getitem__(self, location: tuple[int, int], /) -> Event:
        """The event at a location, as from `read`."""
    def __contains__(self, id: str | bytes, /) -> bool: ...
    def read(self, location: tuple[int, int]) -> Event:
        """The event at a location, even if deleted or replaced.

        Raises `CorruptError`, and `OutOfRangeError` if no event begins there.
        """
    def set_flags(
        self, location: tuple[int, int], *, deleted: bool = False, replaced: bool = False
    ) -> None:
        """Note whether an event is deleted or replaced.

        Queries skip such an event, and the next compaction drops it.
        """
    def iter(
        self,
        *,
        reverse: bool = False,
        include: Literal["live", "all"] = "live",
        on_corrupt: _OnCorrupt = "raise",
    ) -> EventIterator:
        """All events in the order of storage, or the last event first.

        ``include="all"`` adds the deleted, replaced and expired events still stored. The beginning
        of the walk decides which events are expired (NIP-40). ``on_corrupt="skip"`` skips damage,
        and ``damages`` of the iterator names it.
        """
    def payloads(self) -> Iterator[bytes]:
        """The payload of each event of `iter`: its JSON, as `Event.payload` and `export_json`.

        Raises `CorruptError` at damage.
        """
    def __iter__(self) -> EventIterator:
        """As `iter` without arguments."""
    def __reversed__(self) -> EventIterator:
        """As `iter` with ``reverse=True``."""
    def batches(
        self,
        *,
        columns: Sequence[str] | None = None,
        batch_rows: int = 65536,
        batch_bytes: int = 2097152,
        include: Literal["live", "all"] = "live",
        filter: dict[str, Any] | list[dict[str, Any]] | str | None = None,
        on_corrupt: _OnCorrupt = "raise",
        verify: Literal["crc", "none"] = "crc",
    ) -> BatchStream:
        """The events as Arrow record batches, in the order of storage.

        The batches are a snapshot, without later appends. Columns, never null: ``id`` and
        ``pubkey`` fixed_size_binary[32], ``created_at`` timestamp[us, UTC], ``kind`` int32,
        ``tags`` list<list<string>>, ``content`` string, ``sig`` fixed_size_binary[64], ``flags``
        int32 (1 deleted, 2 replaced, 64 names of tags lost; added up); on request ``segment``,
        ``offset`` and ``length`` int64, the location and the bytes of the pages. Tags are lossless:
        each value is text, and a record with a value not in UTF-8 is damaged.

        A batch has at most ``batch_rows`` events, and ends once their records have ``batch_bytes``
        bytes; some are shorter, because all cores read. ``include="all"`` adds the deleted,
        replaced and expired events still stored. ``filter``, as for `query` but without ``limit``:
        only matching events. ``on_corrupt="skip"`` skips damage, and ``damages`` of the stream
        names the damage by bytes of the segment; the reason begins with the segment.
        ``verify="none"`` checks lengths and text but no checksums.

        Raises `InvalidArgumentError` for an unknown column or an invalid filter, `ClosedError`;
        from the stream `CorruptError`, `IoError`.
        """
    def splits(self, split_bytes: int = 67_108_864) -> list[Split]:
        """Split the stored events into parts of about ``split_bytes`` bytes for separate readers.

        Each part lies in one segment and ends at an intact event. A part stays valid until its
        segment is compacted. Reads one page for each part. Raises `ClosedError`, `IoError`.
        """
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The current events as an Arrow table, a fresh snapshot for each call."""
    def __arrow_c_schema__(self) -> object: ...
    def query(
        self,
        filter: dict[str, Any] | list[dict[str, Any]] | str,
        *,
        on_corrupt: _OnCorrupt = "raise",
    ) -> EventIterator:
        """The events that match a filter of NIP-01, or any filter of a list; the newest first.

        A str is JSON. ``on_corrupt="skip"`` skips damage, and ``damages`` of the iterator names it:
        damage may hide further events. With ``"skip"`` a reader scans all events, and meets all
        damage; an index meets only the damage of the events that it has for the filter.

        Raises `InvalidArgumentError` for an invalid filter, and `CorruptError`.

        >>> import hashlib, json
        >>> def note(at, text):  # not signed, which `append` does not ask for
        ...     event = {"pubkey": "ab" * 32, "created_at": at, "kind": 1, "tags": []}
        ...     fields = [0, *event.values(), text]
        ...     hashed = hashlib.sha256(json.dumps(fields, separators=(",", ":")).encode())
        ...     return {**event, "content": text, "id": hashed.hexdigest(), "sig": "00" * 64}
        >>> with deedbook.EventStore.create("notes") as store:
        ...     outcomes = store.append_many([note(1, "older"), note(2, "newer")])
        ...     [event.content for event in store.query({"kinds": [1], "limit": 10})]
        ['newer', 'older']
        """
    def import_json(
        self,
        source: _Path | Any,
        *,
        check: Literal["none", "id", "signature"] = "id",
        aside: _Path | Any = None,
        stop_at_bad: bool = False,
        after: ImportReport | None = None,
        progress: Callable[[ImportReport], object] | None = None,
    ) -> ImportReport:
        """Store the events of JSON lines from a path or a binary file; gzip and zstd, too.

        Stored events are skipped, so you can repeat an interrupted import. ``check`` adds checks of
        an event to the check of its form. The import reports bad lines, and lines with events too
        large for the store, and continues; ``aside`` (a path, or a binary file) gets them
        unchanged, and ``stop_at_bad`` ends the import at the first. ``progress`` is called with the
        report so far, and may commit the store; an error from ``progress`` ends the import.
        ``after`` is such a report of the same lines: the import skips as many bytes unread, and
        continues the counts. If a source cannot be read to its end, like a torn ``.gz``, the whole
        lines before are stored, and then the error is raised: its ``path`` is the path of the
        source, or the ``name`` of a file.

        Raises `InvalidArgumentError` with ``stop_at_bad``, and if ``aside`` is the file being read,
        `ReadOnlyError`, `IoError`, `PoisonedError`, `ClosedError`, `ForkedError`; ImportError for
        zstd without a module for it.
        """
    def export_json(
        self,
        target: _Path | Any,
        *,
        include: Literal["live", "all"] = "live",
        on_corrupt: _OnCorrupt = "raise",
        progress: Callable[[int], object] | None = None,
    ) -> ExportReport:
        """Write events as JSON lines in the order of storage.

        The target is a binary file, or the path of a new file: compressed, if the path ends in
        ``.gz`` or ``.zst``. After an error a new file is removed. ``progress`` is called with the
        number of events so far.
        """
    @staticmethod
    def verify(
        path: _Path,
        *,
        check: Literal["none", "id", "signature"] = "id",
        event_bytes_max: int = 100_000_000,
        mapped_reads: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> EventStoreReport:
        """Read every page, and check every record, every id and, on request, every signature.

        All cores work, and then the write-ahead log is checked, as in `verify_log`; nothing is
        changed. ``mapped_reads`` as in `open`. ``progress`` is called with the bytes done and the
        total; an error from ``progress`` ends the check.

        Raises `MissingError`, `NotALogError` and the errors of opening for reading.
        """
    def verify_log(self) -> list[DamagedPart]:
        """The damaged parts of the write-ahead log: `repair` names the same parts.

        Nothing is changed. Opening for writing refuses a damaged log; the events of the segments
        stay readable.
        """
    @property
    def segments(self) -> list[tuple[int, int]]:
        """Number and bytes of each segment."""
    @staticmethod
    def verify_part(
        part: Split,
        *,
        check: Literal["none", "id", "signature"] = "id",
        progress: Callable[[int, int], object] | None = None,
    ) -> EventStorePartReport:
        """Verify one of the `splits`, without an open store; as `verify`.

        Several processes can share the work: the reports of all parts and `verify_log` together
        make the report of the store. The ids of all parts reveal events stored twice. Raises
        `NotALogError` if another segment than the part's lies at the path, and `MissingError` for
        no segment.
        """
    def compact(
        self,
        ratio: float | None = None,
        *,
        dry_run: bool = False,
        progress: Callable[[int, int], object] | None = None,
    ) -> CompactionReport:
        """Drop deleted, replaced and expired events from segments with at least this share of them.

        Without ``ratio`` the store's `compaction_ratio` counts; 0 selects all segments with any
        such event. Segments with nothing to drop stay unchanged. Appends and queries go on, and
        wait only while the new segments take the place of the old ones. Raises `CorruptError` for a
        damaged segment, and changes nothing. ``dry_run`` only reports, and works on a store open
        for reading, too.

        ``progress`` is called with the bytes done and the total, which grows once the events to
        copy are known; ``progress`` must not close or compact the store. An error from
        ``progress``, or Ctrl-C, ends the work: the segments compacted so far stay compacted, and
        the next compaction continues.
        """
    def retain(
        self,
        *,
        max_bytes: int | None = None,
        max_age: float | None = None,
        kinds: Sequence[int] | None = None,
        dry_run: bool = False,
        progress: Callable[[int], object] | None = None,
    ) -> int:
        """Hide the events beyond a size or an age (seconds); returns their number.

        Each rule hides more. The age of an event comes from its ``created_at``; ``max_bytes`` keeps
        so many bytes of pages, the newest events first. Without ``kinds`` the rules are about the
        events of regular kinds, but deletion requests: a profile counts until its author replaces
        it, and without a request the deleted events could come back.

        Queries and iterators skip a hidden event at once, and the next compaction drops it. A later
        append of a dropped event stores the event again. ``dry_run`` hides nothing, and returns the
        number of events that would go.

        ``progress`` is called with the number of events read; its error, or Ctrl-C, ends the work,
        and the events hidden so far stay hidden. ``progress`` must not close or compact the store.

        >>> with deedbook.EventStore.create("events") as store:
        ...     store.retain(max_age=30 * 24 * 3600, kinds=[7])
        0

        Raises `ReadOnlyError`, `ClosedError`, `IoError`.
        """
    def fragmentation(
        self, *, progress: Callable[[int, int], object] | None = None
    ) -> list[Fragmentation]:
        """The effect of a compaction on each segment; reads all segments, on all cores.

        ``progress`` is called with the bytes done and the total; an error from ``progress`` ends
        the work. Raises `CorruptError` for a damaged segment.
        """
    def compaction_due(self) -> bool:
        """Whether `compact` without a ratio would rewrite any segment.

        A handle for appending counts the dead bytes of each segment, so it reads nothing. It first
        reads the segments without a count, once: after a crash with changed flags, after another
        program, and once an event expires that an earlier handle appended. A reader has no counts
        at first. Raises `CorruptError` for damage in a segment that it reads.
        """
    @property
    def compaction_ratio(self) -> float:
        """As given to `open`, or as stored."""
    def reindex(self, *, progress: Callable[[int, int], object] | None = None) -> int:
        """Delete the index and build it again from the segments; returns the number of events.

        ``progress`` is called with the bytes done and the total, and must not call the store. After
        an error from ``progress``, or Ctrl-C, open the store again to build the index.
        """
    def census(
        self,
        *,
        on_corrupt: _OnCorrupt = "raise",
        progress: Callable[[int], object] | None = None,
    ) -> EventCensus:
        """Count the events by kind, author, day and name of tag; reads all events.

        ``on_corrupt="skip"`` skips damage, and ``damages`` names it. ``progress`` is called with
        the number of events so far.
        """
    def backup(
        self,
        target: _Path,
        *,
        progress: Callable[[int], object] | None = None,
    ) -> BackupReport:
        """Copy the log, or bring a copy up to date; see `deedbook.backup`.

        A writer syncs first, so the copy has all appended records.
        """
    def close(self) -> None:
        """Make a `checkpoint`, and close.

        A second call waits for the first, and fails if the first failed.
        """
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        _exc_value: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None: ...
    def __bool__(self) -> bool:
        """Whether the store is open."""
    @property
    def transactions(self) -> Transactions:
        """Records of many tasks, appended once, all or none."""
    @property
    def path(self) -> str:
        """The directory, absolute."""
    @property
    def mode(self) -> _Mode:
        """The mode of the opening."""
    @property
    def durability(self) -> _Durability:
        """When appends are synced, as a `Durability`; by default the ``batch_interval``."""
    @property
    def history(self) -> Literal["drop", "keep"]:
        """The treatment of replaced versions: as given to `open` for writing, or as stored."""
    @property
    def closed(self) -> bool:
        """Whether the handle is closed."""
    @property
    def unsynced_bytes(self) -> int:
        """Unsynced bytes of the write-ahead log, which a power cut could lose.

        0 for a reader. Raises `ClosedError`.
        """
    def stats(self) -> Stats:
        """Counters of this handle's work on the write-ahead log.

        A record is an event, a change of flags or a checkpoint. All zero for a reader.
        """
    @property
    def opening(self) -> EventStoreOpening:
        """The report of the opening."""

@final
class BatchStream:
    """Records as Arrow record batches, once; also an iterator of Arrow arrays.

    Each item has ``__arrow_c_array__`` (a struct array): ``pyarrow.record_batch(item)`` takes it.
    ``pyarrow.RecordBatchReader.from_stream(stream)`` takes the whole stream.
    """

    @property
    def damages(self) -> list[Damage]:
        """Damaged stretches skipped so far (``on_corrupt="skip"``)."""
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Split:
    """A part of a log between two records, readable without opening the whole log.

    `Log.splits` and `EventStore.splits` make splits. Another process can make a split from its
    values: it can be pickled.
    """

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(
        cls,
        format: Literal["book", "wal", "ledger", "nostr"],
        path: _Path,
        ordinal: int | None,
        records: int | None,
        offset: int,
        end: int,
        unacknowledged_from: int | None = None,
        known_end: int | None = None,
        identity: str | None = None,
        segment_bytes: int | None = None,
    ) -> Self:
        """Name the records in bytes ``offset..end`` of the log at ``path``.

        Raises `InvalidArgumentError` for an invalid ``identity``.
        """
    @property
    def format(self) -> Literal["book", "wal", "ledger", "nostr"]:
        """The log's format."""
    @property
    def path(self) -> str:
        """The log: ``book.log``, the directory of the segments, or a file; a segment of a store."""
    @property
    def ordinal(self) -> int | None:
        """Number of the first record, if known: in a book, the event."""
    @property
    def records(self) -> int | None:
        """Number of records, if known."""
    @property
    def offset(self) -> int:
        """Byte of the first record; in a write-ahead log, its LSN."""
    @property
    def end(self) -> int:
        """Byte after the last record."""
    @property
    def unacknowledged_from(self) -> int | None:
        """Byte from which on nothing was acknowledged, if known."""
    @property
    def known_end(self) -> int | None:
        """A byte known to lie between records: readers of damage need no mark to find it."""
    @property
    def identity(self) -> str | None:
        """The log of the part, known by two of its records; None for a log without records.

        ``"BYTE:CHECKSUM BYTE:CHECKSUM"`` of the log's first and last record at the time of the
        split. A copy of the log has the same identity, and appends do not change it.
        """
    @property
    def segment_bytes(self) -> int | None:
        """Size of a segment; None for a log in one file.

        A reader without it, and without the log's ``.deedbook``, guesses the size from the files.
        """
    def check(
        self,
        *,
        record_bytes_max: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> PartReport:
        """Check every record of the part, without opening the log; changes nothing.

        Not for a part of an event store: use `EventStore.verify_part`. ``progress`` is called with
        the bytes done and the total; an error from ``progress`` ends the check. Raises
        `NotALogError` if another log than the log of ``identity`` lies at the path, and
        `MissingError` for no log. ``record_bytes_max`` as in `batches`.

        Several processes can share a check. ``verify`` of the log's class takes the ``intact``
        parts, from the log's first part on, and reads the rest:

        >>> import deedbook
        >>> with deedbook.Book.open("events", "x") as book:
        ...     _ = book.append_many([b"%d" % i for i in range(30_000)])
        ...     parts = book.splits(200_000)
        >>> intact = [part for part in parts[:-1] if part.check().intact]
        >>> deedbook.Book.verify("events", intact=intact).records
        30000

        The result is the report of one process. ``verify`` reads parts again that are not the
        beginning of the current log.
        """
    def batches(
        self,
        *,
        start: int | None = None,
        stop: int | None = None,
        columns: Sequence[str] | None = None,
        batch_rows: int = 65536,
        batch_bytes: int = 2097152,
        on_corrupt: _OnCorrupt = "raise",
        verify: Literal["crc", "none"] = "crc",
        record_bytes_max: int | None = None,
        include: Literal["live", "all"] | None = None,
        filter: dict[str, Any] | list[dict[str, Any]] | str | None = None,
    ) -> BatchStream:
        """Read the records of the part, from position ``start`` to before ``stop``.

        Columns of a book: ``event`` int64, ``mug`` int32 (bits as stored), ``jam`` binary; on
        request ``payload`` (the same as ``jam``), ``offset`` int64 (byte of the deed), ``length``
        int64 (bytes of the deed with framing). Columns of a write-ahead log: ``lsn`` int64,
        ``payload`` binary; on request ``length``. Columns of a ledger's file, without ``start`` and
        ``stop``: ``record`` int64 (in the file, from 0 on), ``payload`` binary; on request
        ``offset``, ``length``. An event store, without ``start`` and ``stop``, has the columns of
        `EventStore.batches`, and only its parts take ``include`` and ``filter``. Raises
        `CorruptError` at damage, or with ``on_corrupt="skip"`` notes it in ``damages``;
        `NotALogError` if another log than the log of ``identity`` lies at the path.
        ``verify="none"`` checks lengths but no checksums. ``record_bytes_max``: limit of a record,
        as ``deed_bytes_max`` or ``record_bytes_max`` of the log's class.
        """
    def to_dict(self) -> dict[str, Any]:
        """The values by their names."""
    def __getnewargs__(
        self,
    ) -> tuple[str, str, int | None, int | None, int, int, int | None, int | None, str | None]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Bookmark:
    """A place between two records of a log, from which a reader continues later.

    `Log.bookmark` and `Log.advance` make bookmarks. Another process can make a bookmark from its
    values: it can be pickled. With a bookmark, a reader notices that the log was cut, replaced, or
    overwritten to the same length.
    """

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(
        cls,
        offset: int,
        ordinal: int | None = None,
        first: str | None = None,
        before: str | None = None,
    ) -> Self:
        """Name a place by its values.

        Raises `InvalidArgumentError` for an invalid record in ``first`` or ``before``.
        """
    @property
    def offset(self) -> int:
        """Byte of the record to come; in a write-ahead log, its LSN."""
    @property
    def ordinal(self) -> int | None:
        """In a book: the number of the event to come, if known."""
    @property
    def first(self) -> str | None:
        """``"BYTE:CHECKSUM"`` of the log's first record then; None without a record."""
    @property
    def before(self) -> str | None:
        """``"BYTE:CHECKSUM"`` of the record before; None at a log's begin and after damage."""
    def to_dict(self) -> dict[str, Any]:
        """The values by their names."""
    def __getnewargs__(self) -> tuple[int, int | None, str | None, str | None]: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class StagedPart:
    """A file staged by a task: `Stage.finish` returns it and `Transactions.publish` takes it."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def partition(self) -> int:
        """Number of the task's partition: parts are appended in this order."""
    @property
    def sequence(self) -> int:
        """Number among the parts of the task."""
    @property
    def attempt(self) -> int:
        """Number of the attempt."""
    @property
    def bytes(self) -> int:
        """Size of the file, bytes."""
    @property
    def records(self) -> int:
        """Records in the file."""
    @property
    def sum(self) -> int:
        """CRC-32 of the file."""
    @property
    def first(self) -> int | None:
        """The number that the first record must get; None for any."""
    def to_dict(self) -> dict[str, Any]:
        """The values by their names."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class StagedJob:
    """The staged, uncommitted files of a job: an item of `Transactions.staged`."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def job(self) -> str:
        """The name of the job."""
    @property
    def files(self) -> int:
        """How many files."""
    @property
    def bytes(self) -> int:
        """The size of the files, bytes."""
    @property
    def modified(self) -> float | None:
        """When the last file was written, seconds since 1970, if known."""
    @property
    def is_committing(self) -> bool:
        """Whether the commit has begun: the next opening for writing finishes it."""
    def to_dict(self) -> dict[str, Any]:
        """The values by their names."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Committed:
    """The result of `Transactions.publish`."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def repeated(self) -> bool:
        """Whether the log had the transaction already, and nothing was appended."""
    @property
    def records(self) -> int:
        """Records appended."""
    @property
    def first(self) -> int | None:
        """Event, LSN or file of the first record; None without records."""
    def to_dict(self) -> dict[str, Any]:
        """The values by their names."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class CommittedTransaction:
    """The last transaction of an application: an item of `Transactions.committed`."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def app(self) -> str:
        """The application."""
    @property
    def version(self) -> int:
        """Number of the transaction; for a stream, number of the batch."""
    @property
    def query(self) -> str | None:
        """For a stream: the id of its query."""
    def to_dict(self) -> dict[str, Any]:
        """The values by their names."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Stage:
    """Records on their way into a staged file. Left without `finish`, the file is removed."""

    def extend(
        self,
        records: Iterable[Buffer] | object,
        /,
        mugs: Iterable[int] | None = None,
    ) -> None:
        """Add records: bytes-like objects, or an Arrow object as `Book.append_many` takes.

        For an event store, add events as in `EventStore.append`, or Arrow batches with the columns
        ``id, pubkey, created_at, kind, tags, content, sig``. ``mugs`` is for deeds, one each.

        After an error, leave the stage: a part of the records may be in it. Raises `TooLargeError`
        for a record beyond the log's limit, and `InvalidArgumentError` for an event whose id is not
        its hash, and for a finished stage. During the call, other calls on the stage raise
        `InvalidArgumentError`, too: from another thread, or from the iterable itself.
        """
    def finish(self) -> list[StagedPart]:
        """Make the file durable. Give the result to `Transactions.publish`."""
    def __len__(self) -> int:
        """Records so far."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...

@final
class Transactions:
    """Records of many tasks, appended once, all or none: ``log.transactions``.

    Tasks, perhaps in other processes, `stage` records in files next to the log; then a task commits
    the staged records of all. A commit stores its intent, appends, syncs, notes the transaction,
    and removes the intent. After a crash, the next opening for writing finishes the commit. No
    reader sees a record that vanishes later.

    >>> import deedbook
    >>> with deedbook.Book.create("events") as book:
    ...     with book.transactions.stage("load-7", 0, 1) as stage:
    ...         stage.extend([b"one", b"two"])
    ...         parts = stage.finish()
    ...     done = book.transactions.publish("load-7", parts, app="load", version=7)
    ...     again = book.transactions.publish("load-7", parts, app="load", version=7)
    >>> done.records, again.repeated
    (2, True)
    """

    def stage(self, job: str, partition: int, attempt: int, first: int | None = None) -> Stage:
        """Begin the file of one attempt of a task; a handle for reading is enough.

        ``job`` is a name of letters, digits, ``-`` and ``_``, the same in all tasks of a commit.
        ``first``: the event number that the first record must get; otherwise the commit is refused.
        """
    def publish(
        self,
        job: str,
        parts: Sequence[StagedPart],
        *,
        app: str | None = None,
        version: int | None = None,
        query: str | None = None,
    ) -> Committed:
        """Append the records of the parts, in the order of their partitions, durably.

        Partitions from 2^31 on are names, for tasks that do not know their number: these come last,
        as given.

        ``app`` and ``version`` identify a repeat: a version not above the last appends nothing.
        With ``query``, versions are the batches of a stream: from 0 on, without a gap, and only the
        last may be repeated. Without ``app``, a repeated commit appends again.

        If ``durable`` of an error is ``"no"``, nothing was appended; otherwise the next opening for
        writing finishes the commit. Raises `ContiguityError` for a batch that is neither the next
        nor the last and for a record that would get another number than its part says,
        `InvalidArgumentError` for another query of the same application and for two parts of one
        partition, and `CorruptError` or `MissingError` for a staged file changed since its task
        wrote it.
        """
    def committed(self) -> list[CommittedTransaction]:
        """The last transaction of each application."""
    def staged(self) -> list[StagedJob]:
        """The staged, uncommitted files, by job."""
    def discard(self, job: str, /) -> bool:
        """Remove the staged files of a job, unless its commit has begun; whether they are gone."""
    def abandon(self) -> str | None:
        """Give up a commit that has begun and cannot finish, because staged files are lost.

        Its appended records stay. Returns the name of the job, or None without a commit. For a
        handle for reading: raises `LockedError` while the log is open for writing.
        """

@final
class PayloadParts:
    """The payload of a record, in parts, for ``deedbook.reports.PayloadReader``."""

    @property
    def size(self) -> int:
        """Size of the whole payload, bytes."""
    @property
    def mug(self) -> int | None:
        """The mug of the deed; None for a record of a write-ahead log."""
    def readinto(self, buffer: Buffer) -> int:
        """Fill a buffer with the next bytes; returns their number, 0 at the end."""

@final
class RecordIterator(Generic[_R]):
    """Records in order, forwards or backwards, from `Log.iter`."""

    @property
    def damages(self) -> list[Damage]:
        """Damaged stretches skipped so far (``on_corrupt="skip"``)."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> _R: ...
    @classmethod
    def __class_getitem__(cls, item: Any, /) -> GenericAlias: ...

@final
class DeedRange:
    """The deeds ``start <= event < stop`` of a book or a pier; iterable again and again."""

    @property
    def start(self) -> int:
        """Number of the first deed, clipped to the existing deeds."""
    @property
    def stop(self) -> int:
        """Number after the last deed, clipped to the existing deeds."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Deed]: ...
    def __reversed__(self) -> Iterator[Deed]: ...
    def payloads(self) -> Iterator[bytes]:
        """The payloads alone, the quickest way to iterate."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class RecordRange(Generic[_R]):
    """The records between two positions, ``log[first:end]``; iterable again and again."""

    def __iter__(self) -> RecordIterator[_R]: ...
    def __reversed__(self) -> RecordIterator[_R]: ...
    def payloads(self) -> Iterator[bytes]:
        """The payloads alone, the quickest way to iterate."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@disjoint_base
class Log(Generic[_R]):
    """The common interface of books and write-ahead logs: `Book` and `Wal` are subclasses.

    Positions identify records: the event numbers of a book, the LSNs of a write-ahead log. Threads
    may share a handle; no call holds the GIL while it works or waits. After a fork the child must
    open the log itself. A log is a context manager, an iterable of its records, and an Arrow table
    for every library with ``__arrow_c_stream__``. A log dropped without a `close` gives a
    ResourceWarning, like a file.
    """

    def close(self) -> None:
        """Sync, cut the space reserved ahead, release the lock.

        Files and maps are released at once. Unfinished iterators raise `ClosedError` when they
        would read on.

        A second call waits for the first, and fails if the first failed.
        """
    def __enter__(self) -> Self:
        """The log, to be closed at the end of ``with``; `ClosedError` if it is closed already."""
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    @property
    def path(self) -> str:
        """Directory of a book or of segments; or the single file."""
    @property
    def mode(self) -> _Mode:
        """The mode as given to ``open``."""
    @property
    def closed(self) -> bool:
        """Whether `close` was called; every call but `close` then raises `ClosedError`."""
    @property
    def layout(self) -> Literal["packed", "slots", "padded", "single", "segmented"]:
        """Name of the layout on disk."""
    @property
    def durability(self) -> _Durability:
        """When appends are synced, as a `Durability`."""
    @property
    def recovery(self) -> RecoveryReport:
        """The report of the opening."""
    @property
    def bounds(self) -> tuple[int, int] | None:
        """Positions of the first and of the last record; None without records."""
    @property
    def end(self) -> int:
        """Byte after the last record."""
    @property
    def durable_end(self) -> int | None:
        """Byte up to which the log is on stable storage.

        None if a reader finds no mark, or if another program appended since.
        """
    @property
    def transactions(self) -> Transactions:
        """Records of many tasks, appended once, all or none."""
    def sync(self) -> None:
        """Wait until every record appended so far is on stable storage."""
    def wait_durable(self, position: int, /) -> None:
        """Wait until the record at a position is on stable storage.

        The next sync serves all waiting calls; without a sync in progress, this call syncs.
        `OutOfRangeError` for a missing record.
        """
    def refresh(self) -> int:
        """Look for records from other processes; return the last event, or the end.

        An unfinished tail is left for the next call; damage is `CorruptError`.
        """
    def backup(
        self,
        target: _Path,
        *,
        progress: Callable[[int], object] | None = None,
    ) -> BackupReport:
        """Copy the log, or bring a copy up to date; see `deedbook.backup`.

        A writer syncs first, so the copy has all appended records.
        """
    def stats(self) -> Stats:
        """Counters of this handle since its opening."""
    def __len__(self) -> int:
        """Number of records."""
    def __bool__(self) -> bool:
        """Whether the log is open, even if empty."""
    def __iter__(self) -> RecordIterator[_R]:
        """The records, as far as the log goes now."""
    def __reversed__(self) -> RecordIterator[_R]:
        """The records, the last first."""
    def iter(
        self,
        start: int | None = None,
        stop: int | None = None,
        *,
        reverse: bool = False,
        on_corrupt: _OnCorrupt = "raise",
    ) -> RecordIterator[_R]:
        """The records from position ``start`` to before ``stop``; checksums are compared.

        A ``stop`` after the end is the end; LSNs must lie between records. With
        ``on_corrupt="skip"`` (forwards only) the iterator skips damage, and its ``damages`` lists
        it.
        """
    def payloads(self, start: int | None = None, stop: int | None = None) -> Iterator[bytes]:
        """Only the payloads of the same records, which is quicker."""
    def follow(self, start: int | None = None, *, timeout: float | None = None) -> Iterator[_R]:
        """The records from ``start`` (default: the first) on, waiting for more.

        This process or another may append them. The iterator ends if no record comes for
        ``timeout`` seconds (None: never), and when the log is closed. It waits for an unfinished
        tail; damage raises `CorruptError`, and a log truncated under its follower
        `OutOfRangeError`.
        """
    def batches(
        self,
        start: int | None = None,
        stop: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        batch_rows: int = 65536,
        batch_bytes: int = 2097152,
        on_corrupt: _OnCorrupt = "raise",
        verify: Literal["crc", "none"] = "crc",
    ) -> BatchStream:
        """The records as Arrow record batches; columns as in `Split.batches`."""
    def splits(
        self, split_bytes: int = 67108864, start: int | None = None, stop: int | None = None
    ) -> list[Split]:
        """Split the log between records into parts of about ``split_bytes`` bytes.

        Uses the index; without an index, walks the records' headers. If damage follows the valid
        prefix of a log, the bytes from there on make one or more further parts.
        """
    def bookmark(self, position: int | None = None, /) -> Bookmark:
        """The place of the record at a position, or of the record to come; None: the first.

        `OutOfRangeError` if there is no such place.
        """
    def advance(
        self,
        bookmark: Bookmark,
        /,
        *,
        to: Bookmark | None = None,
        records: int | None = None,
        bytes: int | None = None,
        durable: bool = True,
    ) -> Bookmark:
        """The place up to which a reader can continue, as the handle knows the log (see `refresh`).

        At most ``records`` records and ``bytes`` bytes with framing, but at least one record; not
        beyond ``to``; with ``durable`` not beyond `durable_end`, if known. Returns ``bookmark``
        itself if there is nothing to read. Takes the bytes after damage in one step, whatever the
        limits.

        Raises `NotALogError` if another log than the bookmark's lies at the path, and
        `OutOfRangeError` if the place was dropped or cut off.
        """
    def splits_between(
        self, start: Bookmark, stop: Bookmark, /, split_bytes: int = 67108864
    ) -> list[Split]:
        """Split the records between two bookmarks into parts of about ``split_bytes`` bytes.

        Raises as `advance` does.
        """
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The log as an Arrow table, a fresh snapshot for each call."""
    def __arrow_c_schema__(self) -> object: ...
    @classmethod
    def __class_getitem__(cls, item: Any, /) -> GenericAlias: ...

@final
class Book(Log[Deed]):
    """An event log in Urbit's Book format: a directory with ``book.log`` and ``meta.bin``.

    Positions are event numbers, payloads are jams. `Log` has the common interface of all formats.

    >>> with deedbook.Book.create("zod") as book:
    ...     added = book.append_many([b"one", b"two", b"three"])
    >>> added.first, added.last, list(added)
    (1, 3, [1, 2, 3])
    >>> with deedbook.Book.open("zod") as book:
    ...     book[2].payload, [deed.position for deed in book], len(book)
    (b'two', [1, 2, 3], 3)
    """

    @staticmethod
    def open(
        path: _Path,
        mode: _Mode = "r",
        *,
        durability: _Durability | None = None,
        recovery: Literal["valid", "acknowledged", "spec"] = "valid",
        epoch: int | None = None,
        layout: Literal["packed", "slots", "padded"] | None = None,
        deed_bytes_max: int = 4294967296,
        slow_sync: float = 1.0,
        lock_timeout: float = 0.0,
        check: Literal["end", "all"] = "end",
        file_mode: int = 0o644,
    ) -> Book:
        """Open the book in directory ``path`` (or the path of its ``book.log``).

        ``mode``: ``"r"`` reads, takes no lock and never writes; ``"a"`` appends, creating the book
        if it is missing; ``"x"`` creates and fails if it exists.

        ``durability``: see `Durability`; by default ``"always"``: an append returns once the deed
        is on stable storage. Closing syncs with every setting.

        ``recovery``: ``"valid"`` keeps every intact deed, ``"acknowledged"`` cuts back to the
        acknowledged deeds, ``"spec"`` cuts after the last valid deed in any case, after saving the
        bytes, and notes missing acknowledged deeds, as `repair` does.

        ``epoch``: the last event before the first of this log; only for an empty log (default 0, or
        the N of a directory named ``0iN``). ``deed_bytes_max``: limit of ``len_d``.

        ``layout``: the layout of the log, and for a new log ``"packed"`` (the UIP's text) by
        default. ``"slots"`` is the layout of the reference implementation's head, ``"padded"`` the
        layout of January 2026, for reading only. A log of another layout is refused with
        `InvalidArgumentError`; `convert` makes a copy.

        ``slow_sync``: the logger ``deedbook`` reports a longer sync, in seconds.

        ``lock_timeout``: how long opening for writing waits for another writer, seconds; then
        `LockedError`. Other threads continue meanwhile, and Ctrl-C ends the wait.

        ``check``: ``"end"`` reads only as much as finds the end, and trusts bytes covered by a
        mark. ``"all"`` reads the whole log first, and raises for damage anywhere. Damage found by
        `verify` prevents opening for writing, until a `repair`, or a `verify` without a find.

        ``file_mode``: permissions of new files, minus the umask; by default all may read them, as
        the specification asks.

        `deedbook.open` opens a log of any format.

        >>> with deedbook.Book.open("zod", "a") as book:  # created, because it is missing
        ...     book.append(b"hello")
        1
        >>> with deedbook.Book.open("zod") as book:
        ...     book.recovery.verdict, book.read(1).payload
        ('clean', b'hello')

        Raises: `MissingError`, `AlreadyExistsError`, `NotALogError` (also for a log of another
        format, which it names), `UnsupportedError`, `LockedError`, `CorruptError` and
        `LostRecordsError` (modes ``"a"``; files unchanged), `IoError`.
        """
    @staticmethod
    def create(
        path: _Path,
        *,
        durability: _Durability | None = None,
        epoch: int | None = None,
        layout: Literal["packed", "slots", "padded"] | None = None,
        deed_bytes_max: int = 4294967296,
        slow_sync: float = 1.0,
        file_mode: int = 0o644,
    ) -> Book:
        """Create an empty book; the same as ``open(path, "x")``.

        >>> with deedbook.Book.create("zod", durability=timedelta(milliseconds=100)) as book:
        ...     book.last, book.durability
        (0, datetime.timedelta(microseconds=100000))
        >>> deedbook.Book.create("zod")
        Traceback (most recent call last):
        deedbook.AlreadyExistsError: [Errno 17] cannot create the log: entity already exists: ...
        """
    @property
    def epoch(self) -> int:
        """The last event before the first of this log."""
    @property
    def last(self) -> int:
        """Last event number; the epoch for an empty log."""
    @property
    def durable_last(self) -> int | None:
        """Last event known to be on stable storage.

        None if a reader finds no mark, or if another program appended since.
        """
    def append(self, payload: Buffer, mug: int = 0, *, sync: bool = True) -> int:
        """Append one deed and return its event number.

        With ``sync=False`` durability ``"always"`` leaves the sync to you: for many appends and one
        `sync`, or a sync in another thread.

        >>> with deedbook.Book.create("zod") as book:
        ...     book.append(b"no mug"), book.append(b"a mug", mug=0x1234)
        (1, 2)

        Raises `TooLargeError`, `PoisonedError`, `IoError` (``durable`` says ``"no"`` or
        ``"unknown"``), `ReadOnlyError`, `ClosedError`, `ForkedError`.
        """
    def commit(self, payload: Buffer, mug: int = 0) -> int:
        """Append one deed and sync, whatever the durability option."""
    def append_many(
        self,
        payloads: Iterable[Buffer] | object,
        mugs: Iterable[int] | None = None,
        *,
        atomic: bool = False,
        event: int | None = None,
        epoch: int | None = None,
    ) -> Positions[int]:
        """Append every item of an iterable of bytes-like objects, or of an Arrow binary array.

        >>> with deedbook.Book.create("zod") as book:
        ...     added = book.append_many(f"deed {n}".encode() for n in range(1000))
        ...     added.first, added.last, added.end, len(added)
        (1, 1000, 1001, 1000)

        Arrow: anything with ``__arrow_c_array__`` or ``__arrow_c_stream__`` of type binary,
        large_binary, binary_view, string, large_string or string_view, without nulls; or a
        stream or batch with a column named ``jam`` and optionally ``mug``.

        Synced once, at the end, with ``durability="always"``. If the iterable raises, the earlier
        deeds stay appended.

        Deeds from other threads may lie between the deeds of this call.

        With ``atomic`` the deeds of an iterable are one batch, without deeds of others between: if
        the iterable raises or a deed is refused, nothing is appended. A crash before the sync may
        leave the first deeds of the batch. ``event`` is the number that the first deed must get, or
        the call raises `ContiguityError`; ``epoch`` as in `open`, checked; both need ``atomic``.
        This is ``u3_book_save`` of the specification.
        """
    def append_from(
        self, file: SupportsRead[bytes], size: int | None = None, *, mug: int = 0
    ) -> int:
        """Append one deed whose jam is read from an open binary file; return its event number.

        ``size``: bytes to read; None for the rest of a seekable file. The call holds one part at a
        time, so a jam may be longer than the memory. The promise of `append` holds; if the file
        ends early or its ``read`` raises, the log stays unchanged, and the exception is the cause.
        Other calls on this handle may wait meanwhile: ``read`` must not use this log.

        Raises `InvalidArgumentError` for a file that ends before ``size`` bytes, `TooLargeError`
        before the first read, and the errors of `append`.
        """
    def reader(self, event: int) -> PayloadReader:
        """The jam of a deed as a binary file, which holds one part at a time.

        Raises `OutOfRangeError` for a missing deed, `CorruptError` for damage of its lengths;
        reading raises `CorruptError` for a wrong checksum, in place of the last part.
        """
    def read(self, event: int) -> Deed:
        """The deed with this number; `OutOfRangeError` for a missing deed."""
    @overload
    def __getitem__(self, key: int, /) -> Deed: ...
    @overload
    def __getitem__(self, key: slice, /) -> DeedRange: ...
    def __contains__(self, item: int | Deed, /) -> bool:
        """Whether the book has an event of this number, or exactly this deed under its number.

        TypeError for anything else: the search never reads payloads.
        """
    @property
    def meta(self) -> Meta:
        """The metadata in ``meta.bin``."""
    def save_meta(
        self,
        *,
        who: int | None = None,
        version: int | None = None,
        life: int | None = None,
        fake: bool | None = None,
    ) -> None:
        """Change metadata fields, durably and all at once; None leaves a field unchanged."""
    @staticmethod
    def verify(
        path: _Path,
        *,
        deed_bytes_max: int = 4294967296,
        intact: Sequence[Split] | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> VerifyReport:
        """Check every deed of a log without changing it.

        ``progress(bytes_done, bytes_total)`` is called now and then; an error from ``progress``
        ends the check. ``intact``: parts found intact by `Split.check`, from the log's first part
        on; the check skips them.

        Raises `MissingError` and `NotALogError`.
        """
    @staticmethod
    def repair(
        path: _Path,
        *,
        force: bool = False,
        dry_run: bool = False,
        accept_loss: bool = False,
        deed_bytes_max: int = 4294967296,
    ) -> RepairReport:
        """Save the bytes after the log's valid prefix to a file next to the log, and cut them.

        Raises `CorruptError` if the cut would remove intact records (`salvage` copies them), unless
        ``force`` is set; `LockedError` while another process writes the log; `MissingError` for a
        missing log. If acknowledged records are missing, the log stays unchanged and ``mended`` is
        False. With ``accept_loss`` the repair continues without them, and the loss stays noted.
        ``dry_run`` changes nothing and reports the planned work. The saved file is named
        ``book.log.cut-OFFSET`` (a number is added if the file exists).
        """
    @staticmethod
    def salvage(
        path: _Path,
        to: _Path,
        *,
        keep_numbers: bool = False,
        deed_bytes_max: int = 4294967296,
        progress: Callable[[int, int], object] | None = None,
    ) -> SalvageReport:
        """Copy every intact deed, and the metadata, to a new book at ``to``.

        A book has no gaps, so deeds after a gap get new numbers; the report lists them. The copy
        has the layout of the source, or ``packed`` for ``padded``. An error from ``progress`` ends
        the copy, and leaves a book with the deeds copied so far. Committed transactions stay known.

        With ``keep_numbers``, deeds keep their numbers: a stub, the noun ``0``, stands for each
        lost deed before an intact deed. A ship cannot replay a stub. Raises `CorruptError` if the
        number of lost deeds is not proved; then the copy ends there.
        """
    @staticmethod
    def migrate_lmdb(
        source: _Path,
        dest: _Path,
        *,
        layout: Literal["packed", "slots"] | None = None,
        epochs: Sequence[int] | None = None,
        dry_run: bool = False,
        deed_bytes_max: int = 4_294_967_296,
        progress: Callable[[int, int], object] | None = None,
    ) -> LmdbMigration:
        """Convert an LMDB environment of Urbit to a book, or a pier to a new pier of books.

        ``source`` is the environment's directory, its ``data.mdb``, or a pier (with ``.urb/log``);
        the ship must have ended. The source is only read: no lock file, no change. ``dest`` is the
        book's directory, or the new pier. Every batch is synced, read back, and compared with the
        source. You can repeat an interrupted call: it compares the events in ``dest`` from the
        first on, and adds the rest. New books are in ``layout``, by default ``packed``; existing
        books must have the named layout. With ``epochs``, only these epochs of a pier are
        converted, so other processes can convert the rest at the same time. The pier gets its
        metadata from the call that finds all epochs there; ``epochs=[]`` does nothing else.
        ``progress`` is called between batches with the events done and the total; an error from
        ``progress``, or Ctrl-C, ends the work.

        Raises `AlreadyExistsError` if ``dest`` holds anything else, `InvalidArgumentError` for an
        unknown layout or another layout than in ``dest`` and for ``epochs`` missing in the source,
        `ContiguityError` for events or epochs with a gap, `NotALogError`, `CorruptError` or
        `UnsupportedError` for a file that is no environment, a damaged environment, or another
        version, `LockedError` for a source written meanwhile or open in this process,
        `MissingError` for a missing source.
        """
    @staticmethod
    def export_lmdb(
        source: _Path,
        dest: _Path,
        *,
        dry_run: bool = False,
        deed_bytes_max: int = 4_294_967_296,
        progress: Callable[[int, int], object] | None = None,
    ) -> LmdbMigration:
        """The way back: a book to an LMDB environment, or a pier of books to one of environments.

        Otherwise as `migrate_lmdb`. Metadata is stored as Urbit stores it, without trailing zeros.
        """
    @staticmethod
    def convert(
        source: _Path,
        target: _Path,
        layout: Literal["packed", "slots"],
        *,
        deed_bytes_max: int = 4294967296,
        progress: Callable[[int, int], object] | None = None,
    ) -> ConvertReport:
        """Copy a book, with its epoch and metadata, to a new book in another layout.

        Then both are read, and each event is compared. The source never changes.
        ``progress(bytes_done, bytes_total)`` counts both passes; an error from ``progress`` ends
        the conversion. The copy is made in ``.converting`` of its directory: no log lies at
        ``target`` until the whole copy is compared. A log that another program makes there
        meanwhile stays.

        Raises: `CorruptError` for a corrupt source (`salvage` copies the intact deeds),
        `AlreadyExistsError`, `LockedError` while a writer or another conversion runs,
        `InvalidArgumentError` for an unknown layout, `UnsupportedError` for ``"padded"``.
        """

@final
class Epoch:
    """An epoch of a pier, at the time of the call of `Pier.epochs`."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def number(self) -> int:
        """The N of the name ``0iN``: the last event before the epoch."""
    @property
    def path(self) -> str:
        """The directory of the epoch, for `Book.open`."""
    @property
    def layout(self) -> str:
        """Name of the layout on disk."""
    @property
    def bounds(self) -> tuple[int, int] | None:
        """First and last event; None without events."""
    @property
    def deeds(self) -> int:
        """Number of deeds."""
    @property
    def bytes(self) -> int:
        """Bytes of the log up to the end of the last deed."""
    @property
    def verdict(self) -> _Verdict:
        """How the log ended at the opening; as in `RecoveryReport`."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class EpochReport:
    """The result of a full check of an epoch."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def number(self) -> int:
        """The N of the name ``0iN``."""
    @property
    def path(self) -> str:
        """The directory of the epoch."""
    @property
    def report(self) -> VerifyReport:
        """As for any book."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class DroppedEpochs:
    """The epochs dropped from a pier, or to be dropped."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def epochs(self) -> list[int]:
        """Numbers of the dropped epochs, in the order of their events."""
    @property
    def deeds(self) -> int:
        """Number of deeds in the epochs."""
    @property
    def bytes(self) -> int:
        """Bytes of the epochs' logs."""
    @property
    def epoch(self) -> int:
        """The last event before the remaining epochs, as `Pier.epoch`."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class PierReport:
    """The result of a full check of a pier."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def ok(self) -> bool:
        """Whether nothing is damaged, torn, lost or missing between epochs."""
    @property
    def verdict(self) -> _Verdict:
        """The worst verdict of an epoch; ``"corrupt"`` if events are missing between two epochs."""
    @property
    def records(self) -> int:
        """Intact deeds of all epochs."""
    @property
    def damages(self) -> list[Damage]:
        """Every damaged stretch, each by its bytes in the log of its epoch."""
    @property
    def loss(self) -> Loss | None:
        """The first loss that a repair of an epoch accepted."""
    @property
    def epochs(self) -> list[EpochReport]:
        """A report for each epoch, in the order of their events."""
    @property
    def gaps(self) -> list[str]:
        """Gaps and overlaps between epochs, in words with the numbers."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class EpochSalvage:
    """The copied and the lost deeds of one epoch."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def number(self) -> int:
        """Its number: the last event before its first event."""
    @property
    def path(self) -> str:
        """Its directory."""
    @property
    def copy(self) -> str:
        """The directory of the copy."""
    @property
    def report(self) -> SalvageReport:
        """As for any book. ``stubs`` reaches up to the next epoch."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class PierSalvage:
    """The copied and the lost deeds of a pier's salvage."""

    __match_args__: ClassVar[tuple[str, ...]]
    def __new__(cls, **fields: Any) -> Self: ...
    @property
    def ok(self) -> bool:
        """Whether the copy has all of the source: nothing is damaged, lost or missing."""
    @property
    def verdict(self) -> _Verdict:
        """How the source is; ``"corrupt"`` if events are missing between two epochs."""
    @property
    def records(self) -> int:
        """Deeds copied from all epochs, without the stubs."""
    @property
    def uncertain(self) -> int:
        """Copied deeds that may lie inside the payload of a damaged deed: always 0."""
    @property
    def damages(self) -> list[Damage]:
        """The stretches left out, each by its bytes in the log of its epoch."""
    @property
    def loss(self) -> Loss | None:
        """Acknowledged deeds missing at the end of an epoch: the first such loss."""
    @property
    def stubs(self) -> list[int]:
        """Events of the new pier that stand for lost deeds."""
    @property
    def gaps(self) -> list[str]:
        """Events missing before an epoch, in words with the numbers; stubs replace them."""
    @property
    def consumers(self) -> int:
        """Consumers copied from the source."""
    @property
    def moved_consumers(self) -> list[str]:
        """Consumers that needed an event after the end of the copy: they need the next event."""
    @property
    def transactions(self) -> int:
        """Applications with a last transaction in the source, which the new pier knows."""
    @property
    def unfinished_transactions(self) -> int:
        """Unfinished transactions, staged or begun in the source: the new pier lacks them."""
    @property
    def not_carried(self) -> list[str]:
        """Errors of unreadable files next to the logs: the new pier lacks their content."""
    @property
    def epochs(self) -> list[EpochSalvage]:
        """A report for each epoch, in the order of the events."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
    def __getnewargs_ex__(self) -> tuple[tuple[()], dict[str, Any]]: ...
    def __eq__(self, other: object, /) -> bool: ...

@final
class Pier:
    """The epochs of an Urbit pier, each a book in ``.urb/log/0iN``, as one log.

    N is the last event before an epoch, so each epoch must begin right after the last event of the
    epoch before; a gap or an overlap is refused with its numbers. Appends go to the last epoch,
    until `roll` begins another. The other epochs are only read, until `retain` drops the first
    epochs.

    Threads may share a handle; no call holds the GIL while it works or waits. After a fork the
    child must open the pier itself. A pier is a context manager, an iterable of its deeds, and an
    Arrow table for every library with ``__arrow_c_stream__``. A pier dropped without a `close`
    gives a ResourceWarning, like a file.
    """

    @staticmethod
    def open(
        path: _Path,
        mode: _Mode = "r",
        *,
        durability: _Durability | None = None,
        recovery: Literal["valid", "acknowledged", "spec"] = "valid",
        epoch: int | None = None,
        epoch_part_bytes: int | None = None,
        deed_bytes_max: int = 4294967296,
        slow_sync: float = 1.0,
        lock_timeout: float = 0.0,
        check: Literal["end", "all"] = "end",
        file_mode: int = 0o644,
    ) -> Pier:
        """Open the pier in directory ``path``, or the path of its ``.urb/log``.

        ``mode``: ``"r"`` reads, takes no lock and never writes; ``"a"`` appends, creating the pier
        with one epoch if it is missing; ``"x"`` creates and fails if there is an epoch. One writer
        has the pier, whatever its epoch.

        ``epoch``: number of the first epoch, the last event before it; for a new pier 0 by default,
        and a number other than an existing pier's is refused. ``epoch_part_bytes``: a commit of
        `transactions` whose parts have so many bytes or more on average renames each part to an
        epoch, instead of copying the part to the last epoch; only in layout ``packed``, and only
        after an epoch with events. The other options, also ``durability`` and ``file_mode``, are
        the options of `Book.open`; ``recovery`` is for the last epoch.

        Raises: `MissingError` (no epoch, or an epoch without ``book.log``), `ContiguityError` (a
        gap or an overlap), `UnsupportedError` (an epoch in LMDB, by its name), and the errors of
        `Book.open`.
        """
    @staticmethod
    def create(
        path: _Path,
        *,
        durability: _Durability | None = None,
        epoch: int | None = None,
        epoch_part_bytes: int | None = None,
        deed_bytes_max: int = 4294967296,
        slow_sync: float = 1.0,
        file_mode: int = 0o644,
    ) -> Pier:
        """Create a pier with one empty epoch; the same as ``open(path, "x")``."""
    def close(self) -> None:
        """Sync, close every epoch, release the lock.

        A second call waits for the first, and fails if the first failed.
        """
    def __enter__(self) -> Self:
        """The pier, to be closed at the end of ``with``; `ClosedError` if it is closed already."""
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    def __bool__(self) -> bool:
        """Whether the pier is open, even if empty."""
    @property
    def path(self) -> str:
        """The opened path."""
    @property
    def log_path(self) -> str:
        """The directory of the epochs, ``.urb/log``."""
    @property
    def mode(self) -> _Mode:
        """The mode as given to `open`."""
    @property
    def closed(self) -> bool:
        """Whether `close` was called; every call but `close` then raises `ClosedError`."""
    @property
    def durability(self) -> _Durability:
        """When appends are synced, as a `Durability`."""
    @property
    def recovery(self) -> RecoveryReport:
        """The report of opening the last epoch."""
    def stats(self) -> Stats:
        """Counters of this handle since its opening, over all epochs."""
    @property
    def transactions(self) -> Transactions:
        """Records of many tasks, appended to the last epoch once, all or none.

        A transaction in an earlier epoch is a repeat, too. Records staged before a roll are
        committed after it.
        """
    @property
    def epochs(self) -> list[Epoch]:
        """The current epochs, in the order of their events."""
    @property
    def bounds(self) -> tuple[int, int] | None:
        """First and last event over all epochs; None without events."""
    @property
    def epoch(self) -> int:
        """The last event before the first epoch."""
    @property
    def last(self) -> int:
        """Last event; `epoch` without events."""
    @property
    def durable_last(self) -> int | None:
        """Last event known to be on stable storage.

        None if a reader finds no mark, or if another program appended since. The earlier epochs
        were synced when the last epoch began.
        """
    def retain(
        self,
        *,
        max_bytes: int | None = None,
        max_age: float | None = None,
        consumed: bool = False,
        dry_run: bool = False,
    ) -> DroppedEpochs:
        """Drop whole epochs beyond a size, beyond an age (seconds), or read by all consumers.

        The oldest epochs are dropped first, and the last epoch stays. An epoch's age counts from
        the beginning of the next epoch. Each rule permits more drops; epochs that a consumer needs
        stay.

        A crash at any step leaves the epochs from some epoch on. Returns the dropped epochs. With
        ``dry_run`` nothing is dropped, and the result is the plan; a handle for reading may ask,
        too.

        >>> with deedbook.Pier.create("zod") as pier:
        ...     pier.append(b"of epoch 0"), pier.roll(), pier.append(b"of epoch 1")
        ...     pier.retain(max_bytes=0).epochs, pier.bounds
        (1, 1, 2)
        ([0], (2, 2))

        Raises `ReadOnlyError`, `ClosedError`, `IoError`, and `CorruptError` if the file of
        consumers is damaged. If the handle cannot tell whether an epoch is gone, the handle is
        closed.
        """
    def consumers(self) -> dict[str, int]:
        """The named consumers, each with the next event that it needs.

        After a crash, opening for write lowers consumers above the end, so no consumer misses an
        append.
        """
    def set_consumer(self, name: str, event: int) -> None:
        """Note, durably, that a consumer needs a deed and all later deeds.

        A handle for reading may do the same: then the writer, in another process, drops nothing
        from there on. `OutOfRangeError` for an event before the pier's first, or beyond the next
        event.
        """
    def remove_consumer(self, name: str) -> None:
        """Forget a consumer, durably; a handle for reading may do the same."""
    def roll(self) -> int:
        """Begin a new epoch after the last event, durably, for all later appends.

        Returns the number of the epoch, the last event before it. The old epoch is synced and
        closed. The new epoch is completed next to the others (``meta.bin`` and ``vere.txt`` copied,
        ``epoc.txt`` ``3``) and then named: a crash leaves the pier with the epoch or without it.
        Appends of other threads wait.

        >>> with deedbook.Pier.create("zod") as pier:
        ...     pier.append(b"of epoch 0"), pier.roll(), pier.append(b"of epoch 1")
        (1, 1, 2)

        Raises `ContiguityError` if the last epoch has no event, `ReadOnlyError`, `ClosedError` and
        `IoError`. After an error the last epoch takes appends as before; if the handle cannot tell
        whether the new epoch exists, the handle is closed.
        """
    def append(self, payload: Buffer, mug: int = 0, *, sync: bool = True) -> int:
        """Append one deed to the last epoch and return its number; as `Book.append`.

        Raises the errors of `Book.append`.
        """
    def append_from(
        self, file: SupportsRead[bytes], size: int | None = None, *, mug: int = 0
    ) -> int:
        """Append one deed whose jam is read from an open binary file; as `Book.append_from`."""
    def reader(self, event: int) -> PayloadReader:
        """The jam of a deed as a binary file; as `Book.reader`."""
    def commit(self, payload: Buffer, mug: int = 0) -> int:
        """Append one deed and sync, whatever the durability option."""
    def append_many(
        self,
        payloads: Iterable[Buffer] | object,
        mugs: Iterable[int] | None = None,
        *,
        atomic: bool = False,
        event: int | None = None,
        epoch: int | None = None,
    ) -> Positions[int]:
        """Append every item of an iterable, or of an Arrow binary array; as `Book.append_many`.

        ``epoch``: the number that the last epoch must have.
        """
    def backup(
        self,
        target: _Path,
        *,
        progress: Callable[[int], object] | None = None,
    ) -> BackupReport:
        """Copy the log, or bring a copy up to date; see `deedbook.backup`.

        A writer syncs first, so the copy has all appended records.
        """
    def sync(self) -> None:
        """Wait until every deed appended so far is on stable storage."""
    def wait_durable(self, position: int, /) -> None:
        """Wait until the deed with this number is on stable storage; as `Log.wait_durable`.

        A deed of an earlier epoch is: `roll` synced its epoch.
        """
    def refresh(self) -> int:
        """Look for deeds and epochs of other processes; return the last event.

        An unfinished tail is left for the next call; damage is `CorruptError`.
        """
    def read(self, event: int) -> Deed:
        """The deed with this number; `OutOfRangeError` for a missing deed."""
    def __len__(self) -> int:
        """Number of deeds in all epochs."""
    @overload
    def __getitem__(self, key: int, /) -> Deed: ...
    @overload
    def __getitem__(self, key: slice, /) -> DeedRange: ...
    def __contains__(self, item: int | Deed, /) -> bool:
        """Whether the pier has an event of this number, or exactly this deed under its number.

        TypeError for anything else: the search never reads payloads.
        """
    def __iter__(self) -> RecordIterator[Deed]:
        """The deeds, as far as the pier goes now."""
    def __reversed__(self) -> RecordIterator[Deed]:
        """The deeds, the last first."""
    def iter(
        self,
        start: int | None = None,
        stop: int | None = None,
        *,
        reverse: bool = False,
        on_corrupt: _OnCorrupt = "raise",
    ) -> RecordIterator[Deed]:
        """The deeds from event ``start`` to before ``stop``; checksums are compared.

        With ``on_corrupt="skip"`` (forwards only) the iterator skips from damage to the end of its
        epoch, and its ``damages`` lists each damage by bytes in the log of the epoch.
        """
    def payloads(self, start: int | None = None, stop: int | None = None) -> Iterator[bytes]:
        """Only the payloads of the same deeds, which is quicker."""
    def follow(self, start: int | None = None, *, timeout: float | None = None) -> Iterator[Deed]:
        """The deeds from ``start`` (default: the first) on, waiting for more.

        Continues in the epochs that begin meanwhile. The iterator ends if no deed comes for
        ``timeout`` seconds (None: never), and when the pier is closed. Raises `OutOfRangeError` if
        ``start``, or the deed after the last returned deed, was dropped.
        """
    def batches(
        self,
        start: int | None = None,
        stop: int | None = None,
        *,
        columns: Sequence[str] | None = None,
        batch_rows: int = 65536,
        batch_bytes: int = 2097152,
        on_corrupt: _OnCorrupt = "raise",
        verify: Literal["crc", "none"] = "crc",
    ) -> BatchStream:
        """The deeds as Arrow record batches; columns as in `Split.batches`.

        No batch has deeds of two epochs.
        """
    def splits(
        self, split_bytes: int = 67108864, start: int | None = None, stop: int | None = None
    ) -> list[Split]:
        """Split the deeds into parts of about ``split_bytes`` bytes, for separate readers.

        The parts are in the order of the events, and each part lies in a single epoch, whose
        ``book.log`` is its ``path``. If an epoch is damaged after its valid prefix, the bytes from
        there on make one or more further parts. `Split.batches` reads a part, also in another
        process.

        >>> with deedbook.Pier.create("zod") as pier:
        ...     pier.append(b"of epoch 0"), pier.roll(), pier.append(b"of epoch 1")
        ...     [(part.ordinal, part.records) for part in pier.splits()]
        (1, 1, 2)
        [(1, 1), (2, 1)]
        """
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The pier as an Arrow table, a fresh snapshot for each call."""
    def __arrow_c_schema__(self) -> object: ...
    @property
    def meta(self) -> Meta:
        """The metadata that Vere keeps in the LMDB environment ``.urb/log/data.mdb``.

        The last epoch's ``meta.bin`` is a copy, and stands in for a missing ``data.mdb``. Raises
        `CorruptError` with both values if the two differ; `save_meta` repairs the difference.
        """
    def save_meta(
        self,
        *,
        who: int | None = None,
        version: int | None = None,
        life: int | None = None,
        fake: bool | None = None,
    ) -> None:
        """Change metadata fields, durably; None leaves a field.

        ``.urb/log/data.mdb`` is changed first, then its copy, the last epoch's ``meta.bin``. A
        crash between the two leaves a difference, and a repeated call ends it. Raises
        `CorruptError` if both differ in a field given as None. Without a ``data.mdb``, only the
        copy is changed.
        """
    @staticmethod
    def verify(
        path: _Path,
        *,
        deed_bytes_max: int = 4294967296,
        progress: Callable[[int, int], object] | None = None,
    ) -> PierReport:
        """Check every deed of every epoch, and the steps between epochs, without any change.

        ``progress(bytes_done, bytes_total)`` is called now and then; an error from ``progress``
        ends the check. Raises `MissingError` without an epoch, and `UnsupportedError` for an epoch
        in LMDB.
        """
    @staticmethod
    def repair(
        path: _Path,
        *,
        force: bool = False,
        dry_run: bool = False,
        accept_loss: bool = False,
        deed_bytes_max: int = 4294967296,
    ) -> RepairReport:
        """Save the bytes after the newest epoch's valid prefix, and cut them; as `Book.repair`.

        The report is about the newest epoch, the only epoch that a repair changes. The repair also
        reads the other epochs in full, even with ``dry_run``.

        Raises the errors of `Book.repair`; `CorruptError` for a damaged older epoch (`salvage`
        copies the pier), whatever the keywords; `ContiguityError` (a gap or an overlap);
        `UnsupportedError` (an epoch in LMDB).
        """
    @staticmethod
    def salvage(
        path: _Path,
        to: _Path,
        *,
        deed_bytes_max: int = 4294967296,
        progress: Callable[[int, int], object] | None = None,
    ) -> PierSalvage:
        """Copy every intact deed to a new pier at ``to``, under the same number.

        Each epoch is copied by `Book.salvage` with ``keep_numbers``. A stub also replaces each deed
        lost at the end of an epoch before another epoch. The copy has the metadata, the consumers
        and the committed transactions. ``progress(bytes_done, bytes_total)`` is called now and
        then. An error, also of ``progress``, leaves a pier with the epochs copied so far.

        Raises `AlreadyExistsError` if ``to`` is a pier; `CorruptError` if the number of lost deeds
        is not proved; `ContiguityError` if epochs overlap, or leave out more events than the logs
        have bytes; `MissingError` without an epoch; `UnsupportedError` for an epoch in LMDB.

        >>> with deedbook.Pier.create("zod") as pier:
        ...     pier.append(b"of epoch 0"), pier.roll(), pier.append(b"of epoch 1")
        (1, 1, 2)
        >>> report = deedbook.Pier.salvage("zod", "copy")
        >>> report.ok, report.records, report.stubs
        (True, 2, [])
        """

@final
class Wal(Log[Record]):
    """A write-ahead log: records at byte positions, in one file or in segments.

    Positions are LSNs. `Log` has the common interface of all formats.

    Source: src/wal/FORMAT.md.
    """

    @staticmethod
    def open(
        path: _Path,
        mode: _Mode = "r",
        *,
        durability: _Durability | None = None,
        recovery: Literal["valid", "acknowledged", "spec"] = "valid",
        segment_bytes: int | None = None,
        single_file: bool = False,
        record_bytes_max: int | None = None,
        slow_sync: float = 1.0,
        lock_timeout: float = 0.0,
        check: Literal["end", "all"] = "end",
        archive: Callable[[int, Any], object] | None = None,
        retain_bytes: int | None = None,
        retain_age: float | None = None,
        retain_consumers: bool = False,
        file_mode: int = 0o600,
    ) -> Wal:
        """Open the log in a directory of segments, or in one file.

        ``mode``: ``"r"`` reads, ``"a"`` appends and creates what is missing, ``"x"`` creates and
        fails if the log exists.

        ``durability``: see `Durability`; by default ``"manual"``: you call `sync` or `commit`.
        Closing syncs with every setting.

        ``recovery``: how opening for write treats a tail that is not clean. ``"valid"`` keeps every
        intact record and cuts a torn tail; ``"acknowledged"`` cuts unacknowledged records, too;
        ``"spec"`` saves and cuts the bytes after the last valid record in any case, and notes
        missing acknowledged records, as `repair` does.

        ``segment_bytes``: size of a segment, for a new log 64 MiB by default; another size than the
        log's is refused. ``single_file``: the log is one file. ``record_bytes_max``: limit of a
        payload in bytes, by default the log's own, or 64 MiB.

        ``slow_sync``: the logger ``deedbook`` reports a longer sync, in seconds.

        ``lock_timeout``: how long opening for writing waits for another writer, seconds; then
        `LockedError`. Other threads continue meanwhile, and Ctrl-C ends the wait.

        ``archive``: called with number and path of every segment before it is dropped. If
        ``archive`` raises, nothing is dropped, and its error is the cause of the IoError (a
        KeyboardInterrupt is raised unchanged). Appends continue meanwhile. Truncations and
        consumers wait for ``archive``, and would wait forever if called from within. After a
        failure, ``archive`` may get a segment again.

        ``retain_bytes``, ``retain_age`` (seconds), ``retain_consumers``: an open writer drops
        segments by the rules of :meth:`retain`: at opening, and after the first sync in each
        segment. If a drop fails, the logger ``deedbook`` reports the error, and appends continue.
        UnsupportedError for a single file.

        ``file_mode``: permissions of new files, minus the umask; a new directory is listable for
        everyone who may read the files. ``.deedbook`` is for its owner alone.

        ``check``: ``"end"`` reads only as much as finds the end, and trusts bytes covered by a
        mark. ``"all"`` reads the whole log first, and raises for damage anywhere. Damage found by
        `verify` prevents opening for writing, until a `repair`, or a `verify` without a find.

        :func:`deedbook.open` opens a log of any format.

        Raises MissingError, AlreadyExistsError, NotALogError (also for a log of another format,
        which it names), LockedError (with the holder's process id), CorruptError,
        LostRecordsError, InvalidArgumentError, IoError.
        """
    @staticmethod
    def create(
        path: _Path,
        *,
        durability: _Durability | None = None,
        segment_bytes: int | None = None,
        single_file: bool = False,
        record_bytes_max: int | None = None,
        slow_sync: float = 1.0,
        archive: Callable[[int, Any], object] | None = None,
        retain_bytes: int | None = None,
        retain_age: float | None = None,
        retain_consumers: bool = False,
        file_mode: int = 0o600,
    ) -> Wal:
        """Create a log that must not exist; as :meth:`open` with mode ``"x"``."""
    @property
    def segment_bytes(self) -> int | None:
        """Size of every segment but the last; None for a single file."""
    @property
    def record_bytes_max(self) -> int:
        """Limit of a payload for appends, bytes."""
    @property
    def segment_paths(self) -> list[str]:
        """The segment files from the segment with the head on; for a single file, the file."""
    @property
    def head(self) -> int:
        """The beginning of the first record: 0 until a prefix is dropped."""
    def append(self, payload: Buffer, *, sync: bool = True) -> int:
        """Append one record and return its LSN.

        On return, the record survives a crash of your process, and with durability ``"always"`` a
        power cut. With ``sync=False``, ``"always"`` leaves the sync to you: for many appends and
        one `sync`, or a sync in another thread. Raises TooLargeError, PoisonedError, ReadOnlyError,
        IoError.
        """
    def commit(self, payload: Buffer) -> int:
        """Append one record and sync, whatever the durability. Returns its LSN.

        >>> with deedbook.Wal.create("wal") as wal:
        ...     lsns = [wal.commit(b"begin"), wal.commit(b"end")]
        ...     lsns, wal.read(lsns[1]).payload
        ([0, 13], b'end')

        Threads committing at once share one fsync.
        """
    def append_many(
        self, payloads: Iterable[Buffer] | Any, *, atomic: bool = False
    ) -> Positions[int]:
        """Append all payloads of an iterable, or of an Arrow array or table (column ``payload``).

        >>> with deedbook.Wal.create("wal") as wal:
        ...     added = wal.append_many([b"one", b"two"])
        ...     added.first, added.last, added.end, list(wal[added.first : added.end].payloads())
        (0, 11, 22, [b'one', b'two'])

        A table needs a column named ``payload``. The payloads before an error stay appended.

        With ``atomic`` the payloads of an iterable are packed into one record: after a crash, all
        are there, or none. :attr:`Record.parts` unpacks the record. ``payloads()``, Arrow and
        ``deedbook cat`` show the stored bytes: ``DBPK``, and the payloads with their lengths.
        """
    def append_from(self, file: SupportsRead[bytes], size: int | None = None) -> int:
        """Append one record whose payload is read from an open binary file; return its LSN.

        ``size``: bytes to read; None for the rest of a seekable file. The call holds one part at a
        time, so a payload may be longer than the memory. The promise of `append` holds; if the file
        ends early or its ``read`` raises, the log stays unchanged, and the exception is the cause.
        Other calls on this handle may wait meanwhile: ``read`` must not use this log.

        Raises `InvalidArgumentError` for a file that ends before ``size`` bytes, `TooLargeError`
        before the first read, and the errors of `append`.
        """
    def reader(self, lsn: int) -> PayloadReader:
        """The payload of a record as a binary file, which holds one part at a time.

        Raises `OutOfRangeError` if no record begins there, `CorruptError` for damage of its
        lengths; reading raises `CorruptError` for a wrong checksum, in place of the last part.
        """
    def read(self, lsn: int) -> Record:
        """The record that begins at an LSN.

        Raises OutOfRangeError if no record begins there, or for a dropped record, or after the end;
        CorruptError for damage.
        """
    @overload
    def __getitem__(self, key: int, /) -> Record: ...
    @overload
    def __getitem__(self, key: slice, /) -> RecordRange[Record]: ...
    def __contains__(self, item: int | Record, /) -> bool:
        """Whether a record begins at this LSN, or exactly this record lies at its LSN.

        TypeError for anything else: the search never reads payloads. CorruptError at damage.
        """
    def truncate_before(self, lsn: int, *, force: bool = False, dry_run: bool = False) -> Dropped:
        """Drop every record before the record at an LSN; with :attr:`end`, all.

        The LSN must be a record's beginning and durable. Refused for a single file
        (UnsupportedError), and if a consumer still needs a dropped record, unless forced. A crash
        at any step leaves the old or the new log.

        Returns the dropped records. With ``dry_run`` nothing is dropped, and the result is the
        plan; a handle for reading may ask, too.
        """
    def truncate_after(self, lsn: int, *, dry_run: bool = False) -> Dropped:
        """Keep the record at an LSN as the last record, and drop all later records.

        Consumers above the new end move to the new end. Returns the dropped records; with
        ``dry_run``, the plan.
        """
    def truncate_from(self, lsn: int, *, dry_run: bool = False) -> Dropped:
        """Drop the record at an LSN and all later records, as :meth:`truncate_after`."""
    def retain(
        self,
        *,
        max_bytes: int | None = None,
        max_age: float | None = None,
        consumed: bool = False,
        dry_run: bool = False,
    ) -> Dropped:
        """Drop whole segments beyond a size, beyond an age (seconds), or read by all consumers.

        A segment's age counts from the beginning of the next segment.

        Each rule permits more drops; segments that a consumer needs, and segments not yet durable,
        stay. Returns the dropped records. With ``dry_run`` nothing is dropped, and the result is
        the plan; a handle for reading may ask, too.
        """
    def consumers(self) -> dict[str, int]:
        """The named consumers, each with the LSN of the next record that it needs.

        After a crash, opening for write lowers consumers above the end, so no consumer misses an
        append.
        """
    def set_consumer(self, name: str, lsn: int) -> None:
        """Note, durably, that a consumer needs the record at an LSN and all later records.

        A handle for reading may do the same: then the writer, in another process, drops nothing
        from there on. `OutOfRangeError` if no record begins there, or for a dropped record.
        """
    def remove_consumer(self, name: str) -> None:
        """Forget a consumer, durably; a handle for reading may do the same."""
    @staticmethod
    def verify(
        path: _Path,
        *,
        segment_bytes: int | None = None,
        record_bytes_max: int | None = None,
        intact: Sequence[Split] | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> VerifyReport:
        """Check every record; changes nothing. ``progress`` gets the bytes done and the total.

        ``intact``: parts found intact by `Split.check`, from the log's first part on; the check
        skips them.

        Raises `MissingError` and `NotALogError`.
        """
    @staticmethod
    def repair(
        path: _Path,
        *,
        force: bool = False,
        dry_run: bool = False,
        accept_loss: bool = False,
        segment_bytes: int | None = None,
        record_bytes_max: int | None = None,
    ) -> RepairReport:
        """Save the bytes after the log's valid prefix to a file next to the log, and cut them.

        Raises `CorruptError` if the cut would remove intact records (`salvage` copies them), unless
        ``force`` is set; `LockedError` while another process writes the log; `MissingError` for a
        missing log. If acknowledged records are missing, the log stays unchanged and ``mended`` is
        False. With ``accept_loss`` the repair continues without them, and the loss stays noted.
        ``dry_run`` changes nothing and reports the planned work. The saved file is named
        ``log.cut-BYTE``, for a single file ``NAME.cut-BYTE``.
        """
    @staticmethod
    def salvage(
        path: _Path,
        to: _Path,
        *,
        segment_bytes: int | None = None,
        record_bytes_max: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> SalvageReport:
        """Copy every intact record to a new log of the same layout.

        Consumers keep their records, which have other LSNs in the copy. A consumer of a lost record
        needs the next intact record. Committed transactions stay known. An error from ``progress``
        ends the copy, and leaves a log with the records copied so far.

        Raises `MissingError`, and `AlreadyExistsError` if there is a log at ``to``.
        """
