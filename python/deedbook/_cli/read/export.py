"""``deedbook export``: the records of a log as Parquet, Arrow, CSV or JSON lines."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Final, cast

from deedbook._cli.arguments import (
    Commands,
    add_json,
    add_path,
    add_quiet,
    add_skip_corrupt,
    add_which,
)
from deedbook._cli.failure import EXIT_DAMAGE, EXIT_OK, CliError
from deedbook._cli.files.aside import refuse_within, written_aside
from deedbook._cli.files.export_files import KINDS, JsonText, Sink, compressing, kind_of, sink_of
from deedbook._cli.keep.check import asked_for
from deedbook._cli.read.export_events import Standard, export_events
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.payloads import add_payload, in_base64, json_of, text_of
from deedbook._cli.terminal.progress import Progress
from deedbook._formats.info import Entry, FormatInfo, View, size_of
from deedbook._formats.nostr import NOSTR
from deedbook._show.text import count, size

__all__ = ["add_arguments", "run"]

_ROWS_MAX: Final = 8192
_BYTES_MAX: Final = 8 << 20
"""Rows are handed on in batches; a batch ends at either."""

Encode = Callable[[Entry], Any]


def add_arguments(commands: Commands) -> None:
    """Add the command."""
    parser = commands.add_parser(
        "export",
        help="write the records as JSON lines, CSV, Parquet or Arrow",
        description="Write the records of a log of any format, with the positions, to one file, "
        "or as JSON lines to standard output. A complete file replaces FILE; an incomplete file "
        "never has the name FILE. The command only reads, and works while another process writes.",
        epilog="examples:\n"
        "  deedbook export events.book -o events.jsonl --payload json\n"
        "  deedbook export events.wal -o events.parquet\n"
        "  deedbook export events.book -o events.csv --payload base64\n"
        "  deedbook export store -o notes.jsonl.gz     the events, for 'import'\n\n"
        "The columns are: event and mug for a book or a pier, lsn for a WAL, file and record\n"
        "for a ledger, segment and offset for an event store, and payload. The payload is bytes\n"
        "in Parquet and Arrow, else text. With --payload base64, the column is payload_base64.\n"
        "With --payload json, a payload is a value in JSON lines, and checked text in other\n"
        "formats. JSON lines of an event store are the events, in the order of storing; with\n"
        "--payload, the lines have the columns above. Files named .jsonl.gz, .jsonl.zst,\n"
        ".csv.gz and .csv.zst are compressed.\n\n"
        "A spreadsheet runs a cell that begins with = + - @ as a formula. With --csv-safe, a '\n"
        "stands before such a payload. Use --csv-safe if people open the file in a spreadsheet.\n\n"
        "At damage, the command writes no file. With --skip-corrupt, the command writes the\n"
        "intact records. The exit code is 1 in both cases. Parquet and Arrow need pyarrow.",
    )
    add_path(parser)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="-",
        help="write to FILE, and replace an existing FILE (default: JSON lines on standard output)",
    )
    parser.add_argument(
        "--format",
        choices=tuple(KINDS),
        help="choose the format of FILE (default: by the extension of FILE)",
    )
    add_payload(
        parser,
        "write payloads as JSON values, as text, or in base64 (default: text, or bytes in "
        "Parquet and Arrow)",
    )
    parser.add_argument(
        "--csv-safe",
        action="store_true",
        help="for CSV: put ' before a payload that a spreadsheet would run as a formula",
    )
    parser.add_argument(
        "--include",
        choices=("live", "all"),
        help="for event stores: write only live events (default), or also deleted, replaced and "
        "expired events",
    )
    add_skip_corrupt(parser)
    add_which(parser)
    add_json(parser)
    add_quiet(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace, out: Output) -> int:
    """Write ``args.output``; return the exit code.

    Raises `CliError` for senseless options, a payload that is not what was asked for, a missing
    library and a failed write, and `CorruptError` at damage.
    """
    to_stdout = args.output == "-"
    kind = args.format or ("jsonl" if to_stdout else kind_of(args.output))
    if kind is None:
        known = ", ".join(f"--format {one}" for one in KINDS)
        raise CliError(f"export: say what to write: {known}")
    if to_stdout and args.json:
        raise CliError("export: --json needs -o FILE: standard output has the records")
    if to_stdout and kind != "jsonl":
        raise CliError(f"export: {KINDS[kind]} needs -o FILE")
    if args.csv_safe and kind != "csv":
        raise CliError(f"export: --csv-safe is for CSV, not for {KINDS[kind]}")
    found, options = asked_for(args, args.path)
    info = found.format
    of_events = info is NOSTR and kind == "jsonl" and args.payload is None
    if args.include is not None and not of_events:
        raise CliError("export: --include is for event stores as JSON lines, without --payload")
    if not to_stdout:
        refuse_within("export", args.path, args.output)
    with _opened(args.output, out) as file:
        if of_events:
            done = export_events(args, file, out)
        else:
            done = _export(args, info, options, kind, file, out)
    written = os.path.getsize(args.output) if os.path.isfile(args.output) else None
    if args.json:
        facts = {"path": args.path, "format": info.name, "output": args.output, "kind": kind}
        facts |= {**done, "bytes": written}
        out.emit({"ok": not done["damages"], **facts})
    else:
        of = "" if written is None else f", {size(written)}"
        name = "" if to_stdout else f"{args.output}: "
        out.talk(f"{name}exported {count(done['records'], info.noun)}{of}")
    return EXIT_DAMAGE if done["damages"] else EXIT_OK


@contextmanager
def _opened(path: str, out: Output) -> Iterator[BinaryIO]:
    """Standard output, or a file. The file gets its name after the last byte."""
    if path == "-":
        yield cast("BinaryIO", Standard(out))
        return
    with written_aside(path) as file, compressing(path, file) as inner:
        yield inner


def _export(
    args: argparse.Namespace,
    info: FormatInfo,
    options: dict[str, Any],
    kind: str,
    file: BinaryIO,
    out: Output,
) -> dict[str, Any]:
    """Write the records with all columns."""
    name, encode = _encoder(args.payload, kind)
    columns = (*info.columns, name)
    damages: list[Any] = []
    total = sum(map(size_of, info.data_files(args.path, **options)))
    shown = not args.quiet and args.output != "-"
    with (
        info.read(args.path, **options) as view,
        Progress(f"export {args.path}", total, enabled=shown) as progress,
    ):
        if view.left_out is not None:
            out.talk(f"{args.path}: {view.left_out}")
        with sink_of(kind, file, columns, raw=args.payload is None, safe=args.csv_safe) as sink:
            entries = _entries(info, view, damages if args.skip_corrupt else None)
            records, nbytes = _write(entries, encode, sink, progress)
    for one in damages:
        out.talk(f"skipping damage: bytes {one.offset} to {one.end}: {one.reason}")
    return {"records": records, "payload_bytes": nbytes, "damages": len(damages)}


def _entries(info: FormatInfo, view: View, damages: list[Any] | None) -> Iterator[Entry]:
    """All records; around damage if a list for it is given."""
    if damages is None:
        yield from map(info.entry, view.records(None, None))
        return
    around = view.skipping(None, None)
    yield from map(info.entry, around)
    damages += around.damages


def _write(
    entries: Iterable[Entry], encode: Encode, sink: Sink, progress: Progress
) -> tuple[int, int]:
    """Hand all records on in batches; return how many, and the bytes of their payloads."""
    records = nbytes = held = 0
    rows: list[tuple[Any, ...]] = []
    for entry in entries:
        rows.append((*entry.facts.values(), encode(entry)))
        held += len(entry.payload)
        if len(rows) >= _ROWS_MAX or held >= _BYTES_MAX:
            sink.add(rows)
            records, nbytes = records + len(rows), nbytes + held
            rows, held = [], 0
            progress.update(nbytes)
    sink.add(rows)
    return records + len(rows), nbytes + held


def _encoder(payload: str | None, kind: str) -> tuple[str, Encode]:
    """The name of the payload's column, and what is written there."""
    if payload == "base64":
        return "payload_base64", in_base64
    if payload == "json":
        return "payload", lambda entry: JsonText(json_of("export", entry))
    if payload is None and kind in ("parquet", "arrow"):
        return "payload", lambda entry: entry.payload
    return "payload", lambda entry: text_of("export", entry)
