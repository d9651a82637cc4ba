"""``deedbook cat``: the records of a log on standard output, as text, JSON lines or payloads."""

from __future__ import annotations

import argparse
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, Final, cast

from deedbook import CorruptError
from deedbook._cli.archive import ArchiveView, is_url
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError, printable
from deedbook._cli.instead import instead_of
from deedbook._cli.keep.check import asked_for, each
from deedbook._cli.terminal.output import Output, to_json
from deedbook._cli.terminal.payloads import in_base64, json_of, text_of
from deedbook._formats.info import Entry, FormatInfo, Skipping, View
from deedbook._formats.log import LogView
from deedbook._show.text import count

EVENT_MAX: Final = 2**64 - 1
_RANGE: Final = re.compile("[0-9]*:?[0-9]*")
_PATIENCE: Final = 0.5
"""Seconds between two looks of a follower."""

Encode = Callable[[Entry], bytes]


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the records that ``args`` select; return the exit code.

    Raises `CliError` for senseless options, and `CorruptError` at damage, after everything
    before it is on standard output.
    """
    _take_range(args)
    start, stop = _selection(args)
    if args.follow and len(args.paths) > 1:
        raise CliError(f"cat: --follow follows one log, not {len(args.paths)}")
    return each(args, out, lambda path: _cat(path, start, stop, args, out), as_json=False)


def run_tail(args: argparse.Namespace, out: Output) -> int:
    """Print the last records, and with ``-f`` new records; return the exit code.

    Raises as `run`.
    """
    args.start = args.stop = args.range = None
    args.reverse = args.skip_corrupt = False
    _selection(args)
    if args.follow and len(args.paths) > 1:
        raise CliError(f"tail: --follow follows one log, not {len(args.paths)}")
    return each(args, out, lambda path: _cat(path, None, None, args, out), as_json=False)


def _cat(
    path: str, start: int | None, stop: int | None, args: argparse.Namespace, out: Output
) -> int:
    name = path if len(args.paths) > 1 else None
    if is_url(path):
        for option in ("reverse", "follow", "tail"):
            if getattr(args, option):
                raise CliError(f"cat: --{option} is for logs, and {path} is an archive")
        view = ArchiveView(path)
        return _Cat(view.info, view, name, args, out).run(start, stop)
    found, options = asked_for(args, path)
    info = found.format
    for option in ("reverse", "follow"):
        if getattr(args, option) and (instead := instead_of(info).get(option)):
            raise CliError(f"{args.command}: --{option}: {path} is a {info.title}; {instead}")
    if args.follow and not info.is_position_of_one and (start, stop) != (None, None):
        raise CliError(f"cat: --follow of a {info.title} takes no range; -n gives the last records")
    first = info.position_min
    if any(position is not None and position < first for position in (start, stop)):
        raise CliError(f"cat: {info.position}s are numbers from {first} to 2**64-1")
    with info.read(path, **options) as log:
        if log.left_out is not None and args.tail is None and not args.follow:
            out.talk(f"{path}: {log.left_out}")
        return _Cat(info, log, name, args, out).run(start, stop)


def _take_range(args: argparse.Namespace) -> None:
    """Take the last word as the range if the word looks like a range, or names no file."""
    *paths, last = args.paths
    args.range = None
    if paths and (_RANGE.fullmatch(last) or not (is_url(last) or os.path.lexists(last))):
        try:
            args.range = event_range(last)
        except argparse.ArgumentTypeError as error:
            raise CliError(f"cat: {last!r} is no file, and no range: {error}") from error
        args.paths = paths


class _Cat:
    """A run of ``cat``."""

    def __init__(
        self, info: FormatInfo, log: View, name: str | None, args: argparse.Namespace, out: Output
    ) -> None:
        self._info = info
        self._view = log
        self._entry = info.entry if name is None else _naming(name, info.entry)
        self._args = args
        self._encode = self._counting(_encoder(args))
        self._out = out
        self._packed = 0

    def run(self, start: int | None, stop: int | None) -> int:
        try:
            return self._run(start, stop)
        finally:
            if self._packed:
                self._out.talk(
                    f"{count(self._packed, self._info.noun)} with several payloads each, which"
                    " append_many packed, atomic: Record.parts has them"
                )

    def _counting(self, encode: Encode) -> Encode:
        """``encode`` with a count of the packed records."""
        magic = self._info.packed
        if magic is None:
            return encode

        def counted(entry: Entry) -> bytes:
            self._packed += entry.payload.startswith(magic)
            return encode(entry)

        return counted

    def _run(self, start: int | None, stop: int | None) -> int:
        args, log = self._args, self._view
        if args.event is not None and self._info.is_position_of_one:
            self._out.data(self._encode(self._entry(self._log.read(args.event))))
            self._out.flush()
        elif args.tail is not None:
            self._tail(args.tail)
        elif args.follow:
            self._follow(start, stop)
        elif args.reverse:
            self._print_records(self._log.reversed(start, stop))
        elif args.skip_corrupt:
            return self._skip_corrupt(log.skipping(start, stop))
        elif args.raw:
            end = b"\0" if args.null else b"\n"
            self._print(log.payloads(start, stop), lambda payload: payload + end)
        else:
            self._print_records(log.records(start, stop))
        return EXIT_OK

    def _tail(self, records: int) -> None:
        """Print the last records, found from the end; with ``--follow`` also new records."""
        if not self._info.is_position_of_one:
            last, damage = self._files.last(records)
            self._print_records(last)
            if damage is not None:
                raise damage
            if self._args.follow:
                self._print_coming(self._files.follow(self._patience), None)
            return
        # Keep only the position: all records together may exceed the memory.
        start, met = self._log.end, None
        try:
            for record in islice(self._log.reversed(None, None), records):
                position = self._entry(record).position
                start = start if position is None else position
        except CorruptError as error:
            met = error
        if self._args.follow:
            self._follow(start, None)
        elif start < self._log.end:
            self._print_records(self._log.records(start, None))
        if met is not None:
            raise met

    @property
    def _log(self) -> LogView:
        """The view of a log, for methods of logs; `_cat` refused other formats before."""
        return cast("LogView", self._view)

    @property
    def _files(self) -> Any:
        """The view of a ledger or event store: ``last``, and for a ledger also ``follow``."""
        return self._view

    @property
    def _patience(self) -> float:
        """Seconds until a follower checks again that the reader is there."""
        timeout_seconds = self._args.timeout
        return _PATIENCE if timeout_seconds is None else min(_PATIENCE, timeout_seconds)

    def _print_records(self, records: Iterable[Any]) -> None:
        entry, encode = self._entry, self._encode
        self._print(records, lambda record: encode(entry(record)))

    def _print(self, items: Iterable[Any], encode: Callable[[Any], bytes]) -> None:
        try:
            for item in items:
                self._out.data(encode(item))
        finally:
            self._out.flush()

    def _skip_corrupt(self, records: Skipping) -> int:
        """Print the intact records, and name each damaged range in between."""
        out = self._out
        named = 0
        following: int | None = None

        def name_new() -> int:
            for damage in records.damages[named:]:
                out.flush()
                out.talk(f"skipping damage: bytes {damage.offset} to {damage.end}: {damage.reason}")
            return len(records.damages)

        try:
            for record in records:
                entry = self._entry(record)
                if entry.position is None or entry.position != following:
                    named = name_new()
                out.data(self._encode(entry))
                following = entry.next_position
        finally:
            out.flush()
        return EXIT_DAMAGE if name_new() else EXIT_OK

    def _follow(self, start: int | None, stop: int | None) -> None:
        """Print the present records, then each new record, until ``stop`` or the timeout."""
        if not self._info.is_position_of_one:
            self._print_coming(self._files.follow(self._patience), None)
            return
        log = self._log
        following = log.first if start is None else start
        present_stop = log.end if stop is None else min(stop, log.end)
        if following < present_stop:
            self._print_records(log.records(following, present_stop))
            following = present_stop
        if stop is not None and following >= stop:
            return
        self._print_coming(iter(log.follow(following, self._patience)), stop)

    def _print_coming(self, records: Iterator[Any], stop: int | None) -> None:
        """Print new records. ``next`` gives None after `_patience` without a record."""
        out, timeout_seconds = self._out, self._args.timeout
        came = time.monotonic()
        while True:
            record = next(records, None)
            if record is None:
                out.check_reader()
                if timeout_seconds is not None and time.monotonic() - came >= timeout_seconds:
                    return
                continue
            came = time.monotonic()
            entry = self._entry(record)
            if stop is not None and entry.position is not None and entry.position >= stop:
                return
            out.data(self._encode(entry))
            out.flush()
            after = entry.next_position
            if stop is not None and after is not None and after >= stop:
                return


def _naming(name: str, entry: Callable[[Any], Entry]) -> Callable[[Any], Entry]:
    """``entry`` with the log's name before the position."""

    def named(record: Any) -> Entry:
        found = entry(record)
        return found._replace(facts={"path": name, **found.facts}, label=f"{name}:{_place(found)}")

    return named


def _place(entry: Entry) -> str:
    return entry.label or ("?" if entry.position is None else str(entry.position))


def _encoder(args: argparse.Namespace) -> Encode:
    if args.json:
        return _JSON_ENCODERS[args.payload]
    if args.raw:
        end = b"\0" if args.null else b"\n"
        return lambda entry: entry.payload + end
    return lambda entry: as_text(entry).encode() + b"\n"


def as_json(entry: Entry) -> dict[str, Any]:
    """A record as plain values: the payload as text where it is UTF-8, else in ``..._base64``."""
    try:
        return {**entry.facts, entry.payload_name: entry.payload.decode("utf-8")}
    except UnicodeDecodeError:
        return _as_base64(entry)


def _as_base64(entry: Entry) -> dict[str, Any]:
    return {**entry.facts, f"{entry.payload_name}_base64": in_base64(entry)}


def _with_value(entry: Entry) -> bytes:
    """A record as a line of JSON in which the payload, JSON itself, is a value as it stands."""
    payload = json_of("cat", entry)
    facts = to_json(entry.facts).removesuffix(b"}\n")
    comma = b"," if entry.facts else b""
    return b'%s%s"%s":%s}\n' % (facts, comma, entry.payload_name.encode(), payload.encode())


_JSON_ENCODERS: Final[dict[str | None, Encode]] = {
    None: lambda entry: to_json(as_json(entry)),
    "json": _with_value,
    "text": lambda entry: to_json({**entry.facts, entry.payload_name: text_of("cat", entry)}),
    "base64": lambda entry: to_json(_as_base64(entry)),
}


def as_text(entry: Entry) -> str:
    """A record on one line: position, tab, payload with everything unprintable escaped."""
    text = printable(entry.payload.decode("utf-8", "backslashreplace"))
    return f"{printable(_place(entry))}\t{text}"


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


def records(text: str) -> int:
    """Parse a number of records, 0 or more. Raises `argparse.ArgumentTypeError`."""
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of records")
    return int(text)


def _selection(args: argparse.Namespace) -> tuple[int | None, int | None]:
    """The half-open range of events that the options name; checks options against each other."""
    start, stop = args.start, args.stop
    args.event = None
    if args.range is not None:
        if start is not None or stop is not None:
            raise CliError("cat: give either RANGE or --from and --to")
        start, stop, single = args.range
        if single:
            args.event = start
    if start is not None and stop is not None and start > stop:
        raise CliError(f"cat: the range {start}:{stop} ends before it begins")
    if args.follow and (args.reverse or args.skip_corrupt or args.event is not None):
        raise CliError("cat: --follow goes with neither --reverse, --skip-corrupt nor one event")
    if args.reverse and args.skip_corrupt:
        raise CliError("cat: --skip-corrupt reads forward only, not with --reverse")
    if args.tail is not None and (
        args.reverse or args.skip_corrupt or args.range or (start, stop) != (None, None)
    ):
        raise CliError("cat: --tail goes with neither a range, --reverse nor --skip-corrupt")
    if args.timeout is not None and not args.follow:
        raise CliError(f"{args.command}: --timeout needs --follow")
    if args.payload is not None and not args.json:
        raise CliError(f"{args.command}: --payload needs --json")
    if args.json and (args.raw or args.null):
        raise CliError(f"{args.command}: give either --json or --raw")
    args.raw = args.raw or args.null
    return start, stop
