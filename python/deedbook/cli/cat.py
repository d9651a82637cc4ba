"""``deedbook cat``: deeds on standard output, as text, JSON lines or bare payloads."""

from __future__ import annotations

import argparse
import base64
from collections.abc import Callable, Iterable
from typing import Any, Final

from deedbook import Book, Deed
from deedbook.cli import wal
from deedbook.cli.failure import EXIT_DAMAGE, EXIT_OK, CliError, printable
from deedbook.cli.output import Output, to_json
from deedbook.formats import detect

EVENT_MAX: Final = 2**64 - 1


def run(args: argparse.Namespace, out: Output) -> int:
    """Print the deeds that ``args`` select; return the exit code.

    Raises `CliError` for senseless options, and `CorruptError` at damage, after everything
    before it is on standard output.
    """
    start, stop = _selection(args)
    if detect(args.path) == "wal":
        return wal.run_cat(args, start, stop, out)
    for event in (start, stop):
        if event == 0:
            raise CliError("cat: 0 is not an event number: they are 1 to 2**64-1")
    encode = _encoder(args)
    with Book.open(args.path) as book:
        if args.event is not None:
            out.data(encode(book.read(args.event)))
            out.flush()
            return EXIT_OK
        if args.follow:
            _follow(book, start, stop, args.timeout, encode, out)
            return EXIT_OK
        if args.skip_corrupt:
            return _skip_corrupt(book, start, stop, encode, out)
        if args.raw and not args.reverse:
            _print_jams(book.jams(start, stop), b"\0" if args.null else b"\n", out)
        else:
            _print(book.iter(start, stop, reverse=args.reverse), encode, out)
    return EXIT_OK


def _print(deeds: Iterable[Deed], encode: Callable[[Deed], bytes], out: Output) -> None:
    try:
        for deed in deeds:
            out.data(encode(deed))
    finally:
        out.flush()


def _print_jams(jams: Iterable[bytes], end: bytes, out: Output) -> None:
    try:
        for jam in jams:
            out.data(jam + end)
    finally:
        out.flush()


def _skip_corrupt(
    book: Book,
    start: int | None,
    stop: int | None,
    encode: Callable[[Deed], bytes],
    out: Output,
) -> int:
    """Print what is intact, and name each damaged stretch where it is passed over."""
    deeds, named = book.iter(start, stop, on_corrupt="skip"), 0
    following: int | None = None

    def name_new() -> int:
        for damage in deeds.damages[named:]:
            out.flush()
            out.talk(f"skipping damage: bytes {damage.offset} to {damage.end}: {damage.reason}")
        return len(deeds.damages)

    try:
        for deed in deeds:
            if deed.event is None or deed.event != following:
                named = name_new()
            out.data(encode(deed))
            following = None if deed.event is None else deed.event + 1
    finally:
        out.flush()
    return EXIT_DAMAGE if name_new() else EXIT_OK


def _follow(
    book: Book,
    start: int | None,
    stop: int | None,
    timeout_seconds: float | None,
    encode: Callable[[Deed], bytes],
    out: Output,
) -> None:
    """Print what is there, then each deed as it comes, until ``stop`` or the timeout."""
    following = book.epoch + 1 if start is None else start
    present_stop = book.last + 1 if stop is None else min(stop, book.last + 1)
    if following < present_stop:
        _print(book.iter(following, present_stop), encode, out)
        following = present_stop
    if stop is not None and following >= stop:
        return
    for deed in book.follow(following, timeout=timeout_seconds):
        out.data(encode(deed))
        out.flush()
        if stop is not None and deed.event == stop - 1:
            return


def _encoder(args: argparse.Namespace) -> Callable[[Deed], bytes]:
    if args.json:
        return lambda deed: to_json(as_json(deed))
    if args.raw:
        end = b"\0" if args.null else b"\n"
        return lambda deed: deed.jam + end
    return lambda deed: as_text(deed).encode() + b"\n"


def as_json(deed: Deed) -> dict[str, Any]:
    """A deed as plain values: ``jam`` where the payload is UTF-8, else ``jam_base64``."""
    value: dict[str, Any] = {"event": deed.event, "mug": deed.mug}
    try:
        value["jam"] = deed.jam.decode("utf-8")
    except UnicodeDecodeError:
        value["jam_base64"] = base64.b64encode(deed.jam).decode("ascii")
    return value


def as_text(deed: Deed) -> str:
    """A deed on one line: number, tab, payload with everything unprintable escaped."""
    event = "?" if deed.event is None else str(deed.event)
    return f"{event}\t{printable(deed.jam.decode('utf-8', 'backslashreplace'))}"


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
        raise argparse.ArgumentTypeError(f"{text!r} is not an event number")
    number = int(text)
    if not number <= EVENT_MAX:
        raise argparse.ArgumentTypeError(f"{text} is not an event number: they are 1 to 2**64-1")
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
