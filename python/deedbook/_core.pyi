"""The native core of Deedbook. Import its names from `deedbook`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Literal, final, overload

from typing_extensions import Buffer, Self

__all__ = [
    "BatchStream",
    "Book",
    "Damage",
    "Deed",
    "DeedIterator",
    "DeedRange",
    "Meta",
    "Record",
    "RecordIterator",
    "RecoveryReport",
    "RepairReport",
    "SalvageReport",
    "SalvageRun",
    "Split",
    "VerifyReport",
    "Wal",
    "WalRecoveryReport",
    "WalSalvageReport",
    "WalSalvageRun",
    "WalSplit",
    "WalStats",
    "WalVerifyReport",
    "__version__",
]

__version__: str

_Path = str | PathLike[str]
_Mode = Literal["r", "a", "x"]
_Verdict = Literal["clean", "torn", "corrupt"]
_OnCorrupt = Literal["raise", "skip"]

@final
class Deed:
    """One event of a book: its number, mug and jam.

    Source: book-uip.md, "Deed Format".
    """

    def __new__(cls, event: int | None, mug: int, jam: bytes) -> Self: ...
    @property
    def event(self) -> int | None:
        """Event number, from 1 up. None only behind damage that hid the count."""
    @property
    def mug(self) -> int:
        """The 32-bit mug as stored; 0 where the writer gave none."""
    @property
    def jam(self) -> bytes:
        """The payload, 0 bytes or more."""
    def __len__(self) -> int:
        """Length of the jam in bytes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]:
        """Event, mug and jam, so that ``event, mug, jam = deed`` works."""

@final
class Meta:
    """The ship metadata in ``meta.bin``; a field is None where nothing was saved.

    Source: book-uip.md, "Metadata Format".
    """

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

    @property
    def offset(self) -> int:
        """First byte of the damage in the file."""
    @property
    def end(self) -> int:
        """First byte behind the damage: the next intact record, or the end of the file."""
    @property
    def reason(self) -> str:
        """What is wrong there, with both values."""
    @property
    def next_intact(self) -> int | None:
        """Byte of the next intact record, if there is one."""
    @property
    def first_event(self) -> int | None:
        """Number of the first event lost here, where it is known."""
    @property
    def events_lost(self) -> int | None:
        """How many events are lost here, where it is known."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""

@final
class RecoveryReport:
    """What opening a log found and did."""

    @property
    def verdict(self) -> _Verdict:
        """``clean``, ``torn`` (an incomplete or unwritten tail) or ``corrupt``."""
    @property
    def source(self) -> Literal["mark", "scan"]:
        """Where the end of the log came from: the high-water mark, or a scan of the file."""
    @property
    def scanned_bytes(self) -> int:
        """Bytes of the log that opening had to read."""
    @property
    def scanned_deeds(self) -> int:
        """Deeds that opening had to look at."""
    @property
    def valid_end(self) -> int:
        """Byte behind the last intact deed."""
    @property
    def file_end(self) -> int:
        """Size of the file as found, bytes."""
    @property
    def cut_bytes(self) -> int:
        """Bytes that opening for write cut from the tail; preallocated zeros included."""
    @property
    def torn_bytes(self) -> int:
        """Bytes behind the last intact deed, up to the last byte that is not zero."""
    @property
    def cut_deeds(self) -> int:
        """Intact but unacknowledged deeds cut, with ``recovery="acknowledged"``."""
    @property
    def durable_end(self) -> int | None:
        """End of the acknowledged-durable prefix by the mark, bytes; None without a mark."""
    @property
    def mark(self) -> Literal["used", "missing", "damaged", "foreign"]:
        """What became of the high-water mark."""
    @property
    def damage(self) -> Damage | None:
        """The first damage, for ``torn`` and ``corrupt``."""
    @property
    def saved_to(self) -> str | None:
        """File in which the cut bytes were saved (``recovery="spec"``)."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""

@final
class VerifyReport:
    """What a full check of a log found."""

    @property
    def verdict(self) -> _Verdict:
        """``clean``, ``torn`` or ``corrupt``."""
    @property
    def ok(self) -> bool:
        """Whether nothing is damaged, torn or lost (a preallocated tail of zeros is fine)."""
    @property
    def deeds(self) -> int:
        """Intact deeds; of an unacknowledged tail those before its first damage."""
    @property
    def bytes(self) -> int:
        """Bytes of intact deeds."""
    @property
    def bounds(self) -> tuple[int, int] | None:
        """First and last event of the valid prefix."""
    @property
    def valid_end(self) -> int:
        """Byte behind the valid prefix."""
    @property
    def file_end(self) -> int:
        """Size of the file in bytes."""
    @property
    def durable_end(self) -> int | None:
        """Acknowledged end by the mark, in bytes."""
    @property
    def lost_acknowledged(self) -> bool:
        """Whether the valid prefix ends below the mark."""
    @property
    def damages(self) -> list[Damage]:
        """Every damaged stretch, in file order."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""

@final
class RepairReport:
    """What `Book.repair` cut, and where it saved it."""

    @property
    def path(self) -> str:
        """The log file that was repaired."""
    @property
    def valid_end(self) -> int:
        """New size of the file in bytes."""
    @property
    def cut_bytes(self) -> int:
        """Bytes removed from the end of the file."""
    @property
    def saved_to(self) -> str | None:
        """File beside the log that holds the bytes cut, or None if nothing was cut."""
    @property
    def damage(self) -> Damage | None:
        """The damage at which the log was cut."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""

@final
class SalvageRun:
    """Consecutive intact deeds copied by `Book.salvage`."""

    @property
    def source_event(self) -> int | None:
        """Number of the run's first deed in the source, where it is known."""
    @property
    def event(self) -> int:
        """Number of the run's first deed in the new log."""
    @property
    def deeds(self) -> int:
        """Number of deeds in the run."""
    @property
    def source_offset(self) -> int:
        """Byte of the run's first deed in the source."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""

@final
class SalvageReport:
    """What `Book.salvage` copied, and what it could not."""

    @property
    def deeds(self) -> int:
        """Deeds copied."""
    @property
    def runs(self) -> list[SalvageRun]:
        """The runs of intact deeds, with their old and new numbers."""
    @property
    def damages(self) -> list[Damage]:
        """The stretches left out."""
    @property
    def renumbered(self) -> bool:
        """Whether any deed has another number in the new log than in the source."""
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""

@final
class BatchStream:
    """Deeds as Arrow record batches, once; also an iterator of Arrow arrays.

    Each item has ``__arrow_c_array__`` (a struct array): ``pyarrow.record_batch(item)`` takes it.
    ``pyarrow.RecordBatchReader.from_stream(stream)`` takes the stream whole.
    """

    @property
    def damages(self) -> list[Damage]:
        """Damaged stretches passed over so far (``on_corrupt="skip"``)."""
    def __iter__(self) -> Iterator[Any]: ...
    def __next__(self) -> Any: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Split:
    """A part of a book between two deeds, readable without opening the whole book.

    Made by `Book.splits`, or from its numbers on another machine.
    """

    def __new__(
        cls, path: _Path, first_event: int | None, deeds: int | None, offset: int, end: int
    ) -> Self:
        """Name the deeds in bytes ``offset..end`` of the log at ``path``.

        ``first_event`` None: unknown number (behind damage); ``deeds`` None: not counted.
        """
    @property
    def path(self) -> str:
        """Directory of the book."""
    @property
    def first_event(self) -> int | None:
        """Number of the first deed."""
    @property
    def deeds(self) -> int | None:
        """Number of deeds, where it is known."""
    @property
    def offset(self) -> int:
        """Byte of the first deed in ``book.log``."""
    @property
    def end(self) -> int:
        """Byte behind the last deed."""
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
        deed_bytes_max: int = 4294967296,
    ) -> BatchStream:
        """Read the deeds of the split, of events ``start <= event < stop``.

        Columns: ``event`` int64, ``mug`` int32 (bits as stored), ``jam`` binary, and on request
        ``offset`` int64 (byte of the deed), ``length`` int64 (bytes of the deed with framing).
        Raises `CorruptError` at damage, or with ``on_corrupt="skip"`` notes it in ``damages``.
        ``verify="none"`` checks lengths but no checksums.
        """
    def __eq__(self, other: object, /) -> bool: ...

@final
class DeedIterator:
    """Deeds in order; what `Book.iter` gives."""

    @property
    def damages(self) -> list[Damage]:
        """Damaged stretches passed over so far (``on_corrupt="skip"``)."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> Deed: ...

@final
class DeedRange:
    """The deeds ``start <= event < stop`` of a book; iterable again and again."""

    @property
    def start(self) -> int:
        """Number of the first deed, clipped to the book."""
    @property
    def stop(self) -> int:
        """Number behind the last deed, clipped to the book."""
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Deed]: ...
    def __reversed__(self) -> Iterator[Deed]: ...
    def jams(self) -> Iterator[bytes]:
        """The payloads alone, the quickest way to iterate."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __arrow_c_schema__(self) -> object: ...

@final
class Book:
    """An event log in Urbit's Book format: a directory with ``book.log`` and ``meta.bin``.

    A handle may be shared by threads; no call holds the GIL while it works or waits. It is a
    context manager, an iterable of `Deed`, and an Arrow table for every library that knows
    ``__arrow_c_stream__``. One that goes without a `close` gives a ResourceWarning, as files do.
    """

    @staticmethod
    def open(
        path: _Path,
        mode: _Mode = "r",
        *,
        durability: str = "always",
        recovery: Literal["valid", "acknowledged", "spec"] = "valid",
        epoch: int | None = None,
        deed_bytes_max: int = 4294967296,
        file_mode: int = 0o644,
    ) -> Book:
        """Open the book in directory ``path`` (or the path of its ``book.log``).

        ``mode``: ``"r"`` reads, takes no lock and never writes; ``"a"`` appends, creating the book
        if it is missing; ``"x"`` creates and fails if it exists.

        ``durability``: ``"always"`` (each append is on stable storage when it returns),
        ``"interval:MS"`` (synced within MS milliseconds), ``"bytes:N"`` (synced every N bytes),
        ``"manual"`` (the caller syncs; close syncs), ``"none"`` (never synced). Whatever is
        chosen, an append that returned survives the death of the process.

        ``recovery``: ``"valid"`` keeps every intact deed, ``"acknowledged"`` cuts back to what was
        acknowledged, ``"spec"`` cuts behind the last valid deed whatever lies there, after saving
        what it cuts.

        ``epoch``: last event before this log's first one; only for an empty log (default 0, or
        the N of a directory named ``0iN``). ``deed_bytes_max``: limit of ``len_d``.

        `deedbook.open` opens a log of any format.

        Raises: `MissingError`, `AlreadyExistsError`, `NotALogError` (also for a log of another
        format, which it names), `UnsupportedError`, `LockedError`, `CorruptError` and
        `LostRecordsError` (modes ``"a"``; files unchanged), `IoError`.
        """
    @staticmethod
    def create(
        path: _Path,
        *,
        durability: str = "always",
        epoch: int | None = None,
        deed_bytes_max: int = 4294967296,
        file_mode: int = 0o644,
    ) -> Book:
        """Create an empty book; the same as ``open(path, "x")``."""
    def close(self) -> None:
        """Sync (unless ``durability="none"``), cut preallocated space, and release the lock."""
    def __enter__(self) -> Self:
        """The book, to be closed at the end of ``with``; `ClosedError` if it is closed already."""
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    @property
    def path(self) -> str:
        """Directory of the book."""
    @property
    def mode(self) -> _Mode:
        """The mode as given to `open`."""
    @property
    def closed(self) -> bool:
        """Whether `close` was called; every call but `close` then raises `ClosedError`."""
    @property
    def layout(self) -> Literal["packed"]:
        """Name of the layout on disk."""
    @property
    def durability(self) -> str:
        """The durability option as given."""
    @property
    def bounds(self) -> tuple[int, int] | None:
        """First and last event number, or None while empty."""
    @property
    def epoch(self) -> int:
        """The last event before this log's first one."""
    @property
    def last(self) -> int:
        """Last event number; the epoch while empty."""
    @property
    def durable_last(self) -> int | None:
        """Last event known to be on stable storage; None if a reader finds no mark."""
    @property
    def end(self) -> int:
        """Byte behind the last deed."""
    @property
    def recovery(self) -> RecoveryReport:
        """What opening found and did."""
    def append(self, jam: Buffer, mug: int = 0) -> int:
        """Append one deed and return its event number.

        Raises `TooLargeError`, `PoisonedError`, `IoError` (``durable`` says ``"no"`` or
        ``"unknown"``), `ReadOnlyError`, `ClosedError`, `ForkedError`.
        """
    def append_unsynced(self, jam: Buffer, mug: int = 0) -> int:
        """Append one deed, but with ``durability="always"`` leave the sync to the caller.

        For callers that sync once for many appends, or in another thread.
        """
    def commit(self, jam: Buffer, mug: int = 0) -> int:
        """Append one deed and sync, whatever the durability option."""
    def append_many(
        self,
        jams: Iterable[Buffer] | object,
        mugs: Iterable[int] | None = None,
    ) -> range:
        """Append every item of an iterable of bytes-like objects, or of an Arrow binary array.

        Arrow: anything with ``__arrow_c_array__`` or ``__arrow_c_stream__`` of type binary,
        large_binary, binary_view, string, large_string or string_view, without nulls; or a
        stream or batch with a column named ``jam`` and optionally ``mug``.
        Synced once, at the end, with ``durability="always"``. If the iterable raises, what it
        gave before stays appended. Returns the range from the first to the last event number;
        what other threads append meanwhile may lie between (`append_batch` leaves no gap).
        """
    def append_batch(
        self,
        jams: Iterable[Buffer],
        mugs: Iterable[int] | None = None,
        *,
        event: int | None = None,
        epoch: int | None = None,
    ) -> range:
        """Append deeds as one batch, all or nothing for the caller that is told it succeeded.

        ``event``: the number the first deed must get, else `ContiguityError`. ``epoch``: as in
        `open`, checked. This is ``u3_book_save`` of the specification.
        """
    def sync(self) -> None:
        """Return when every deed appended so far is on stable storage."""
    def refresh(self) -> int:
        """Look for deeds that another process appended; return the last event number."""
    def read(self, event: int) -> Deed:
        """The deed with that number; `OutOfRangeError` if there is none."""
    @overload
    def __getitem__(self, key: int, /) -> Deed: ...
    @overload
    def __getitem__(self, key: slice, /) -> DeedRange: ...
    def __len__(self) -> int:
        """Number of deeds."""
    def __bool__(self) -> bool:
        """Whether the book is open, also while it is empty."""
    def __contains__(self, item: int | Deed, /) -> bool:
        """Whether there is an event of that number, or just that deed under its number.

        TypeError for anything else: payloads are not looked for.
        """
    def __iter__(self) -> Iterator[Deed]: ...
    def __reversed__(self) -> Iterator[Deed]: ...
    @overload
    def iter(
        self,
        start: int | None = None,
        stop: int | None = None,
        *,
        reverse: Literal[False] = False,
        on_corrupt: _OnCorrupt = "raise",
    ) -> DeedIterator:
        """Iterate the deeds ``start <= event < stop``; CRC-checked.

        ``on_corrupt="skip"`` goes on behind damage (forward only), which ``damages`` of the
        iterator tells.
        """
    @overload
    def iter(
        self,
        start: int | None = None,
        stop: int | None = None,
        *,
        reverse: bool,
        on_corrupt: _OnCorrupt = "raise",
    ) -> Iterator[Deed]: ...
    def jams(self, start: int | None = None, stop: int | None = None) -> Iterator[bytes]:
        """The payloads alone of ``start <= event < stop``, CRC-checked."""
    def follow(self, start: int | None = None, *, timeout: float | None = None) -> Iterator[Deed]:
        """Iterate deeds as they are appended, by this or another process.

        Begins at ``start`` (default: the first event) and waits for more. Ends when nothing came
        for ``timeout`` seconds (None: never). A tail that is still being written is waited
        for; damage raises `CorruptError`.
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
        """Deeds as Arrow record batches; columns as in `Split.batches`."""
    def splits(
        self,
        split_bytes: int = 67108864,
        start: int | None = None,
        stop: int | None = None,
    ) -> list[Split]:
        """Cut the log between deeds into parts of about ``split_bytes`` bytes.

        Uses the index; without one, walks the deeds' headers.
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
        """Change metadata fields, durably and all at once; None leaves a field as it is."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """A fresh stream of all deeds; each call is a new snapshot."""
    def __arrow_c_schema__(self) -> object: ...
    @staticmethod
    def verify(
        path: _Path,
        *,
        deed_bytes_max: int = 4294967296,
        progress: Callable[[int, int], object] | None = None,
    ) -> VerifyReport:
        """Check every deed of a log without changing it.

        ``progress(bytes_done, bytes_total)`` is called now and then; what it raises ends the
        check.
        """
    @staticmethod
    def repair(path: _Path, *, deed_bytes_max: int = 4294967296) -> RepairReport:
        """Cut the log behind its valid prefix, after saving what is cut beside it.

        The saved file is named ``book.log.cut-OFFSET`` (a number is added if it exists).
        """
    @staticmethod
    def salvage(
        source: _Path,
        target: _Path,
        *,
        deed_bytes_max: int = 4294967296,
        progress: Callable[[int, int], object] | None = None,
    ) -> SalvageReport:
        """Copy every intact deed, and the metadata, to a new book at ``target``.

        A packed book has no gaps, so deeds behind a gap get new numbers; the report tells them.
        What ``progress`` raises ends it, and leaves a book with what was copied so far.
        """
    def __repr__(self) -> str: ...

@final
class Record:
    """One record of a write-ahead log: its position and payload.

    Source: wal-db-format.md, "Record layout".
    """

    def __new__(cls, lsn: int, payload: bytes) -> Self: ...
    @property
    def lsn(self) -> int:
        """Log sequence number: the byte of the log at which the record begins."""
    @property
    def payload(self) -> bytes:
        """The payload, 0 bytes or more."""
    @property
    def next_lsn(self) -> int:
        """LSN of the record behind this one: 8 bytes of header and the payload further on."""
    @property
    def parts(self) -> list[bytes] | None:
        """What :meth:`Wal.append_atomic` packed into the record; None for any other record."""
    def __len__(self) -> int:
        """Length of the payload in bytes."""
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __iter__(self) -> Iterator[Any]:
        """LSN and payload, so that ``lsn, payload = record`` works."""

@final
class RecordIterator:
    """Records of a log, as :meth:`Wal.iter` gives them."""

    @property
    def damages(self) -> list[Damage]:
        """The damaged stretches passed over so far, with ``on_corrupt="skip"``."""
    def __iter__(self) -> Self: ...
    def __next__(self) -> Record: ...

@final
class WalRecoveryReport:
    """What opening a write-ahead log found and did."""

    @property
    def verdict(self) -> _Verdict:
        """``clean``, ``torn`` (an incomplete or unwritten tail) or ``corrupt``."""
    @property
    def source(self) -> Literal["mark", "scan"]:
        """Where the end of the log came from: the high-water mark, or a scan of the whole log."""
    @property
    def scanned_bytes(self) -> int:
        """Bytes of the log that opening had to read."""
    @property
    def scanned_records(self) -> int:
        """Records that opening had to look at."""
    @property
    def valid_end(self) -> int:
        """Byte behind the last intact record."""
    @property
    def file_end(self) -> int:
        """Byte behind the last one as found, over all segments."""
    @property
    def cut_bytes(self) -> int:
        """Bytes that opening for write cut from the tail; preallocated zeros included."""
    @property
    def torn_bytes(self) -> int:
        """Bytes behind the last intact record, up to the last byte that is not zero."""
    @property
    def cut_records(self) -> int:
        """Intact but unacknowledged records cut, with ``recovery="acknowledged"``."""
    @property
    def durable_end(self) -> int | None:
        """End of the acknowledged-durable prefix by the mark, bytes; None without a mark."""
    @property
    def mark(self) -> Literal["used", "missing", "damaged", "foreign"]:
        """What became of the high-water mark."""
    @property
    def damage(self) -> Damage | None:
        """The first damage."""
    @property
    def saved_to(self) -> str | None:
        """File in which the bytes cut were saved, with ``recovery="spec"``."""
    @property
    def removed_segments(self) -> list[int]:
        """Numbers of segments below the head that a crash had brought back."""
    @property
    def finished_truncation(self) -> bool:
        """Whether a truncation that a crash interrupted was brought to its end."""
    def __eq__(self, other: object, /) -> bool: ...
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""

@final
class WalVerifyReport:
    """What a full check of a write-ahead log found."""

    @property
    def verdict(self) -> _Verdict:
        """``clean``, ``torn`` or ``corrupt``."""
    @property
    def ok(self) -> bool:
        """Whether nothing is damaged, torn or lost."""
    @property
    def records(self) -> int:
        """Intact records."""
    @property
    def bytes(self) -> int:
        """Bytes of intact records with their headers."""
    @property
    def bounds(self) -> tuple[int, int] | None:
        """LSN of the first record and byte behind the last one of the valid prefix."""
    @property
    def valid_end(self) -> int:
        """Byte behind the valid prefix."""
    @property
    def file_end(self) -> int:
        """Byte behind the last one there is."""
    @property
    def durable_end(self) -> int | None:
        """Byte up to which the mark says the log is durable."""
    @property
    def lost_acknowledged(self) -> bool:
        """Whether the valid prefix ends below the mark."""
    @property
    def damages(self) -> list[Damage]:
        """Every damaged stretch, in log order."""
    def __eq__(self, other: object, /) -> bool: ...
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""

@final
class WalSalvageRun:
    """Consecutive intact records copied by a salvage."""

    @property
    def source_lsn(self) -> int:
        """LSN of the first record in the source."""
    @property
    def lsn(self) -> int:
        """LSN of the first record in the new log."""
    @property
    def records(self) -> int:
        """Number of records."""
    def __eq__(self, other: object, /) -> bool: ...
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""

@final
class WalSalvageReport:
    """What a salvage copied, and what it could not."""

    @property
    def records(self) -> int:
        """Records copied."""
    @property
    def runs(self) -> list[WalSalvageRun]:
        """The runs, with old and new positions."""
    @property
    def damages(self) -> list[Damage]:
        """The stretches left out."""
    def __eq__(self, other: object, /) -> bool: ...
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""

@final
class WalStats:
    """What a handle did since it was opened. Latencies in seconds."""

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
        """Of these, longer than ``slow_sync``. Each is told to the logger ``deedbook``, too."""
    @property
    def sync_seconds(self) -> float:
        """Time of all syncs."""
    @property
    def sync_max(self) -> float:
        """Time of the longest sync."""
    @property
    def sync_median(self) -> float | None:
        """Half of the syncs took no longer (to within a factor of two); None without syncs."""
    @property
    def sync_p99(self) -> float | None:
        """99 of 100 syncs took no longer (to within a factor of two); None without syncs."""
    @property
    def sync_latency(self) -> list[tuple[int, int]]:
        """A histogram of latencies.

        Upper bounds in microseconds, doubling, and how many syncs lay below each but not below the
        one before. The last bound is 2**64 - 1.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""

@final
class WalSplit:
    """A part of a log between two records.

    Made by `Wal.splits`, or anew from its path and numbers in another process.
    """

    def __new__(cls, path: _Path, lsn: int, end: int, records: int | None) -> Self: ...
    @property
    def path(self) -> str:
        """The log."""
    @property
    def lsn(self) -> int:
        """LSN of the first record."""
    @property
    def end(self) -> int:
        """Byte behind the last record."""
    @property
    def records(self) -> int | None:
        """Number of records, where it is known."""
    def batches(
        self,
        *,
        columns: Sequence[str] | None = None,
        batch_rows: int = 65536,
        batch_bytes: int = 2097152,
        on_corrupt: _OnCorrupt = "raise",
        verify: Literal["crc", "none"] = "crc",
        record_bytes_max: int | None = None,
    ) -> BatchStream:
        """The records of the part as Arrow batches, as :meth:`Wal.batches` gives them."""
    def __eq__(self, other: object, /) -> bool: ...

@final
class Wal:
    """A write-ahead log: records at byte positions, in one file or in segments.

    Handles may be shared by threads; no call holds the GIL while it works or waits. After a fork
    the child must open the log itself. Errors are those of :mod:`deedbook`, one class per kind. A
    handle that goes without a :meth:`close` gives a ResourceWarning, as files do.

    Source: wal-db-format.md; RULINGS.md, "WAL".
    """

    @staticmethod
    def open(
        path: _Path,
        mode: _Mode = "r",
        *,
        durability: str = "manual",
        recovery: Literal["valid", "acknowledged", "spec"] = "valid",
        segment_bytes: int | None = None,
        single_file: bool = False,
        record_bytes_max: int | None = None,
        slow_sync: float = 1.0,
        archive: Callable[[int, Any], object] | None = None,
        file_mode: int = 0o600,
    ) -> Wal:
        """Open the log in a directory of segments, or in one file.

        ``mode``: ``"r"`` reads, ``"a"`` appends and creates what is missing, ``"x"`` creates and
        fails if the log exists.

        ``durability``: ``"manual"`` (the caller syncs), ``"always"`` (each append is on stable
        storage when it returns), ``"interval:MS"``, ``"bytes:N"``, ``"none"`` (the operating
        system decides). An append that returned survives the death of the process in any case.

        ``recovery``: what opening for write does with a tail that is not clean. ``"valid"`` keeps
        every intact record and cuts a torn tail; ``"acknowledged"`` cuts unacknowledged records,
        too; ``"spec"`` cuts behind the last valid record whatever lies there, after saving it.

        ``segment_bytes``: size of a segment, for a new log 64 MiB by default; another than the
        log's is refused. ``single_file``: the log is one file. ``record_bytes_max``: limit of a
        payload in bytes, by default the log's own, or 64 MiB.

        ``slow_sync``: a sync that takes longer, in seconds, is told to the logger ``deedbook``.
        ``archive``: called with number and path of every segment before it is dropped; if it
        raises, nothing is dropped, and what it raised is the cause of the IoError (a
        KeyboardInterrupt stays one). Appends go on meanwhile; truncations and consumers wait for
        it, and from within they would wait for ever. It may get a segment again after a failure.
        ``file_mode``: permissions of new files, less the umask.

        :func:`deedbook.open` opens a log of any format.

        Raises MissingError, AlreadyExistsError, NotALogError (also for a log of another format,
        which it names), LockedError (with the holder's process id), CorruptError,
        LostRecordsError, InvalidArgumentError, IoError.
        """
    @staticmethod
    def create(
        path: _Path,
        *,
        durability: str = "manual",
        segment_bytes: int | None = None,
        single_file: bool = False,
        record_bytes_max: int | None = None,
        slow_sync: float = 1.0,
        archive: Callable[[int, Any], object] | None = None,
        file_mode: int = 0o600,
    ) -> Wal:
        """Create a log that must not exist; as :meth:`open` with mode ``"x"``."""
    def close(self) -> None:
        """Sync (unless durability is ``"none"``), cut the space reserved ahead, release the lock.

        Closing twice is fine.
        """
    def __enter__(self) -> Self:
        """The log, to be closed at the end of ``with``; ClosedError if it is closed already."""
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
    @property
    def path(self) -> str:
        """The single file, or the directory of the segments."""
    @property
    def mode(self) -> _Mode:
        """``"r"``, ``"a"`` or ``"x"``."""
    @property
    def closed(self) -> bool:
        """Whether the handle is closed."""
    @property
    def layout(self) -> Literal["single", "segmented"]:
        """Where the log's bytes lie."""
    @property
    def segment_bytes(self) -> int | None:
        """Size of every segment but the last; None for a single file."""
    @property
    def record_bytes_max(self) -> int:
        """Limit of a payload for appends, bytes."""
    @property
    def segment_paths(self) -> list[str]:
        """The segment files from the one with the head on; of a single file that file."""
    @property
    def durability(self) -> str:
        """The durability it was opened with."""
    @property
    def bounds(self) -> tuple[int, int] | None:
        """LSN of the first and of the last record; None while there are none."""
    @property
    def head(self) -> int:
        """Where the first record begins, or will: 0 until a prefix is dropped."""
    @property
    def end(self) -> int:
        """Where the next record will begin."""
    @property
    def durable_end(self) -> int | None:
        """End of what is on stable storage, bytes; None if a reader finds nothing that tells it."""
    @property
    def recovery(self) -> WalRecoveryReport:
        """What opening found and did."""
    def append(self, payload: Buffer) -> int:
        """Append one record and return its LSN.

        When this returns, the record survives the death of the process, and with durability
        ``"always"`` a power cut. Raises TooLargeError, PoisonedError, ReadOnlyError, IoError.
        """
    def append_unsynced(self, payload: Buffer) -> int:
        """Append one record, but with durability ``"always"`` leave the sync to the caller.

        For callers that sync once for many appends, or in another thread.
        """
    def commit(self, payload: Buffer) -> int:
        """Append one record and sync, whatever the durability. Returns its LSN.

        Threads that commit at once share one fsync.
        """
    def append_many(self, payloads: Iterable[Buffer] | Any) -> tuple[int, int]:
        """Append all payloads of an iterable, or of an Arrow array or table (column ``payload``).

        A table needs a column of that name.

        Returns the LSN of the first record and the byte behind the last one. What came before an
        error stays appended.
        """
    def append_batch(self, payloads: Iterable[Buffer]) -> list[int]:
        """Append payloads with one write, all or nothing for a caller that is told it succeeded.

        Returns their LSNs. After a crash before the sync, a part of them may be there; see
        :meth:`append_atomic`.
        """
    def append_atomic(self, parts: Iterable[Buffer]) -> int:
        """Append payloads packed into one record: after a crash all of them are there, or none.

        Returns the record's LSN; :attr:`Record.parts` takes it apart.
        """
    def sync(self) -> None:
        """Return when every record appended so far is on stable storage."""
    def wait_durable(self, lsn: int) -> None:
        """Return when the record at an LSN is on stable storage; syncs if nobody else does."""
    def refresh(self) -> int:
        """Look for records that other processes appended; returns the end."""
    def read(self, lsn: int) -> bytes:
        """The payload of the record that begins at an LSN.

        Raises OutOfRangeError for what is no record's beginning, was dropped, or lies behind the
        end; CorruptError for damage.
        """
    def __len__(self) -> int:
        """Number of records."""
    def __bool__(self) -> bool:
        """Whether the log is open, also while it is empty."""
    def __contains__(self, item: int | Record, /) -> bool:
        """Whether a record begins at that LSN, or just that record lies at its LSN.

        TypeError for anything else: payloads are not looked for. CorruptError at damage.
        """
    def __iter__(self) -> Iterator[Record]:
        """The records, as far as the log goes now."""
    def __reversed__(self) -> Iterator[Record]:
        """The records, the last one first."""
    def iter(
        self,
        start: int | None = None,
        stop: int | None = None,
        *,
        reverse: bool = False,
        on_corrupt: _OnCorrupt = "raise",
    ) -> Iterator[Record]:
        """The records in ``start <= lsn < stop``, both of which must lie between records.

        A ``stop`` behind the end is the end.

        With ``on_corrupt="skip"`` damage is passed over, and the iterator's ``damages`` tells it.
        """
    def payloads(self, start: int | None = None, stop: int | None = None) -> Iterator[bytes]:
        """The payloads alone, which is quicker."""
    def follow(self, start: int | None = None, *, timeout: float | None = None) -> Iterator[Record]:
        """The records from ``start`` (default: the first) on, waiting for more.

        Ends when nothing came for ``timeout`` seconds; without it never. A torn tail is "not yet",
        damage is CorruptError, and a log truncated under its follower is OutOfRangeError.
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
        """The records as Arrow batches.

        Columns: ``lsn`` int64, ``payload`` binary; on request ``length`` int64, bytes with the
        header.
        """
    def splits(
        self, split_bytes: int = 67108864, start: int | None = None, stop: int | None = None
    ) -> list[WalSplit]:
        """Parts of about ``split_bytes`` bytes, none longer than a segment, for parallel readers.

        A log that is damaged behind its valid prefix gets one more part for what lies there.
        """
    def truncate_before(self, lsn: int, *, force: bool = False) -> None:
        """Drop every record before the one at an LSN; with :attr:`end`, all.

        The LSN must be a record's beginning and durable. Refused for a single file
        (UnsupportedError), and if a consumer still needs what would go, unless forced. A crash at
        any step leaves the old or the new log.
        """
    def truncate_after(self, lsn: int) -> None:
        """Keep the record at an LSN as the last one, and drop all behind it.

        Consumers that stood above the new end stand there then.
        """
    def truncate_from(self, lsn: int) -> None:
        """Drop the record at an LSN and all behind it, as :meth:`truncate_after`."""
    def retain(
        self,
        *,
        max_bytes: int | None = None,
        max_age: float | None = None,
        consumed: bool = False,
    ) -> int | None:
        """Drop whole segments that are too much, too old (seconds), or read by all consumers.

        A segment's age counts from when the log went on in the next one.

        Each rule allows more to go; what a consumer needs, or is not durable, stays. Returns the
        new head if it moved.
        """
    def consumers(self) -> dict[str, int]:
        """The named consumers, each with the LSN of the record that it needs next.

        Opening for write lowers those that stand above what a crash left, so that none misses what
        is appended there.
        """
    def set_consumer(self, name: str, lsn: int) -> None:
        """Note, durably, that a consumer needs the record at an LSN and all behind it."""
    def remove_consumer(self, name: str) -> None:
        """Forget a consumer, durably."""
    def stats(self) -> WalStats:
        """What this handle did since it was opened."""
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The log as an Arrow table, a fresh snapshot for each call."""
    def __arrow_c_schema__(self) -> object:
        """The schema of the table: ``lsn`` int64, ``payload`` binary."""
    @staticmethod
    def verify(
        path: _Path,
        *,
        segment_bytes: int | None = None,
        record_bytes_max: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> WalVerifyReport:
        """Check every record; changes nothing. ``progress`` gets bytes done and bytes in all."""
    @staticmethod
    def repair(
        path: _Path,
        *,
        segment_bytes: int | None = None,
        record_bytes_max: int | None = None,
    ) -> RepairReport:
        """Cut a log behind its valid prefix, after saving what is cut beside it."""
    @staticmethod
    def salvage(
        source: _Path,
        target: _Path,
        *,
        record_bytes_max: int | None = None,
        progress: Callable[[int, int], object] | None = None,
    ) -> WalSalvageReport:
        """Copy every intact record to a new log of the same layout.

        What ``progress`` raises ends it, and leaves a log with what was copied so far.
        """
