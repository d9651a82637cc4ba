"""``deedbook cat``: the entries of a log on standard output, as text, JSON lines or payloads."""

from __future__ import annotations

import argparse
import base64
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Protocol

from deedbook import Book, Damage, Deed, Record, Wal
from deedbook.cli.failure import EXIT_DAMAGE, EXIT_OK, CliError, printable
from deedbook.cli.output import Output, to_json
from deedbook.formats import require

EVENT_MAX: Final = 2**64 - 1
_PATIENCE: Final = 0.5
"""Seconds between two looks of a follower."""

Entry = Deed | Record


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the entries that ``args`` select; return the exit code.

    Raises `CliError` for senseless options, and `CorruptError` at damage, after everything
    before it is on standard output.
    """
    start, stop = _selection(args)
    encode = _encoder(args)
    if require(args.path) == "wal":
        with Wal.open(args.path) as wal:
            return _run(args, _Records(wal), start, stop, encode, out)
    if 0 in (start, stop):
        raise CliError("cat: 0 is not an event number: they are 1 to 2**64-1")
    with Book.open(args.path) as book:
        return _run(args, _Deeds(book), start, stop, encode, out)


class _Log(Protocol):
    """What ``cat`` asks of a log. Positions are event numbers, or LSNs."""

    @property
    def first(self) -> int:
        """Position of the first entry."""

    @property
    def end(self) -> int:
        """Position behind the last entry."""

    def read(self, at: int) -> Entry: ...

    def iter(self, start: int | None, stop: int | None, *, reverse: bool) -> Iterable[Entry]: ...

    def skipping(self, start: int | None, stop: int | None) -> _Skipping: ...

    def payloads(self, start: int | None, stop: int | None) -> Iterable[bytes]: ...

    def follow(self, start: int, timeout_seconds: float | None) -> Iterable[Entry]: ...


class _Skipping(Protocol):
    """Entries around damage."""

    @property
    def damages(self) -> list[Damage]: ...

    def __iter__(self) -> Iterator[Any]: ...


class _Deeds:
    """A book."""

    def __init__(self, book: Book) -> None:
        self._book = book
        self.first, self.end = book.epoch + 1, book.last + 1
        self.read = book.read
        self.payloads = book.jams

    def iter(self, start: int | None, stop: int | None, *, reverse: bool) -> Iterable[Entry]:
        return self._book.iter(start, stop, reverse=reverse)

    def skipping(self, start: int | None, stop: int | None) -> _Skipping:
        return self._book.iter(start, stop, on_corrupt="skip")

    def follow(self, start: int, timeout_seconds: float | None) -> Iterable[Entry]:
        return self._book.follow(start, timeout=timeout_seconds)


class _Records:
    """A write-ahead log. A range may reach beyond its end, as that of a book may."""

    def __init__(self, wal: Wal) -> None:
        self._wal = wal
        self.first, self.end = wal.head, wal.end
        # Behind damage the end is not known.
        self._is_whole = wal.recovery.verdict != "corrupt"

    def read(self, at: int) -> Entry:
        return Record(at, self._wal.read(at))

    def iter(self, start: int | None, stop: int | None, *, reverse: bool) -> Iterable[Entry]:
        return self._wal.iter(*self._within(start, stop), reverse=reverse)

    def skipping(self, start: int | None, stop: int | None) -> _Skipping:
        return self._wal.iter(*self._within(start, stop), on_corrupt="skip")  # type: ignore[return-value]

    def payloads(self, start: int | None, stop: int | None) -> Iterable[bytes]:
        return self._wal.payloads(*self._within(start, stop))

    def follow(self, start: int, timeout_seconds: float | None) -> Iterable[Entry]:
        return self._wal.follow(start, timeout=timeout_seconds)

    def _within(self, start: int | None, stop: int | None) -> tuple[int | None, int | None]:
        if self._is_whole and start is not None:
            start = min(start, self.end)
        return start, None if stop is not None and stop > self.end else stop


def _run(
    args: argparse.Namespace,
    log: _Log,
    start: int | None,
    stop: int | None,
    encode: Callable[[Entry], bytes],
    out: Output,
) -> int:
    if args.event is not None:
        out.data(encode(log.read(args.event)))
        out.flush()
    elif args.follow:
        _follow(log, start, stop, args.timeout, encode, out)
    elif args.skip_corrupt:
        return _skip_corrupt(log.skipping(start, stop), encode, out)
    elif args.raw and not args.reverse:
        end = b"\0" if args.null else b"\n"
        _print(log.payloads(start, stop), lambda payload: payload + end, out)
    else:
        _print(log.iter(start, stop, reverse=args.reverse), encode, out)
    return EXIT_OK


def _print(entries: Iterable[Any], encode: Callable[[Any], bytes], out: Output) -> None:
    try:
        for entry in entries:
            out.data(encode(entry))
    finally:
        out.flush()


def _skip_corrupt(entries: _Skipping, encode: Callable[[Entry], bytes], out: Output) -> int:
    """Print what is intact, and name each damaged stretch where it is passed over."""
    named = 0
    following: int | None = None

    def name_new() -> int:
        for damage in entries.damages[named:]:
            out.flush()
            out.talk(f"skipping damage: bytes {damage.offset} to {damage.end}: {damage.reason}")
        return len(entries.damages)

    try:
        for entry in entries:
            at = _position(entry)
            if at is None or at != following:
                named = name_new()
            out.data(encode(entry))
            following = _behind(entry)
    finally:
        out.flush()
    return EXIT_DAMAGE if name_new() else EXIT_OK


def _follow(
    log: _Log,
    start: int | None,
    stop: int | None,
    timeout_seconds: float | None,
    encode: Callable[[Entry], bytes],
    out: Output,
) -> None:
    """Print what is there, then each entry as it comes, until ``stop`` or the timeout."""
    following = log.first if start is None else start
    present_stop = log.end if stop is None else min(stop, log.end)
    if following < present_stop:
        _print(log.iter(following, present_stop, reverse=False), encode, out)
        following = present_stop
    if stop is not None and following >= stop:
        return
    # Now and then it looks whether anybody still reads.
    patience = _PATIENCE if timeout_seconds is None else min(_PATIENCE, timeout_seconds)
    entries = iter(log.follow(following, patience))
    came = time.monotonic()
    while True:
        entry = next(entries, None)
        if entry is None:
            out.check_reader()
            if timeout_seconds is not None and time.monotonic() - came >= timeout_seconds:
                return
            continue
        came = time.monotonic()
        at, behind = _position(entry), _behind(entry)
        if stop is not None and at is not None and at >= stop:
            return
        out.data(encode(entry))
        out.flush()
        if stop is not None and behind is not None and behind >= stop:
            return


def _position(entry: Entry) -> int | None:
    """Where the entry is: event number (None where damage hid it) or LSN."""
    return entry.event if isinstance(entry, Deed) else entry.lsn


def _behind(entry: Entry) -> int | None:
    """Where the next entry is."""
    if isinstance(entry, Record):
        return entry.next_lsn
    return None if entry.event is None else entry.event + 1


def _payload(entry: Entry) -> bytes:
    return entry.jam if isinstance(entry, Deed) else entry.payload


def _encoder(args: argparse.Namespace) -> Callable[[Entry], bytes]:
    if args.json:
        return lambda entry: to_json(as_json(entry))
    if args.raw:
        end = b"\0" if args.null else b"\n"
        return lambda entry: _payload(entry) + end
    return lambda entry: as_text(entry).encode() + b"\n"


def as_json(entry: Entry) -> dict[str, Any]:
    """An entry as plain values: the payload as text where it is UTF-8, else in ``..._base64``."""
    value: dict[str, Any]
    if isinstance(entry, Deed):
        name, payload, value = "jam", entry.jam, {"event": entry.event, "mug": entry.mug}
    else:
        name, payload, value = "payload", entry.payload, {"lsn": entry.lsn}
    try:
        value[name] = payload.decode("utf-8")
    except UnicodeDecodeError:
        value[f"{name}_base64"] = base64.b64encode(payload).decode("ascii")
    return value


def as_text(entry: Entry) -> str:
    """An entry on one line: position, tab, payload with everything unprintable escaped."""
    at = _position(entry)
    text = printable(_payload(entry).decode("utf-8", "backslashreplace"))
    return f"{'?' if at is None else at}\t{text}"


def event_range(text: str) -> tuple[int | None, int | None, bool]:
    """Parse ``START:STOP`` (each may be empty) or ``EVENT``; whether it was a single event.

    Raises `argparse.ArgumentTypeError`.
    """
    first, colon, second = text.partition(":")
    if not colon:
        return event_number(first), event_number(first) + 1, True
    start = event_number(first) if first else None
    return start, event_number(second) if second else None, False


def event_number(text: str) -> int:
    """Parse an event number, or an LSN, which may be 0. Raises `argparse.ArgumentTypeError`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 20):
        raise argparse.ArgumentTypeError(f"{text!r} is neither an event number nor an LSN")
    number = int(text)
    if not number <= EVENT_MAX:
        raise argparse.ArgumentTypeError(f"{text} is beyond 2**64-1")
    return number


def seconds(text: str) -> float:
    """Parse a number of seconds, 0 or more. Raises `argparse.ArgumentTypeError`."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return value


def _selection(args: argparse.Namespace) -> tuple[int | None, int | None]:
    """The half-open range of events that the options name; checks options against each other."""
    start, stop = args.start, args.stop
    args.event = None
    if args.range is not None:
        if start is not None or stop is not None:
            raise CliError("cat: give either RANGE or --start and --stop")
        start, stop, single = args.range
        if single:
            args.event = start
    if start is not None and stop is not None and start > stop:
        raise CliError(f"cat: the range {start}:{stop} ends before it begins")
    if args.follow and (args.reverse or args.skip_corrupt or args.event is not None):
        raise CliError("cat: --follow goes with neither --reverse, --skip-corrupt nor one event")
    if args.reverse and args.skip_corrupt:
        raise CliError("cat: --skip-corrupt reads forward only, not with --reverse")
    if args.timeout is not None and not args.follow:
        raise CliError("cat: --timeout needs --follow")
    if args.json and (args.raw or args.null):
        raise CliError("cat: give either --json or --raw")
    args.raw = args.raw or args.null
    return start, stop
