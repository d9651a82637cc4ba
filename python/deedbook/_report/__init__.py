"""A report of a log: figures, and a page with the figures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from typing import Any, TypeAlias

from deedbook._core import Book, EventStore, Ledger, Pier, Wal
from deedbook._errors import Error, InvalidArgumentError
from deedbook._formats import Found, of_handle, require
from deedbook._formats.info import FormatInfo
from deedbook._report._figures import DataFile, LogReport, Size, Sizes, Stretch, Times, Type
from deedbook._report._scan import Scan

__all__ = [
    "DataFile",
    "LogReport",
    "Scan",
    "Size",
    "Sizes",
    "Stretch",
    "Times",
    "Type",
    "look",
    "report",
]

LogReport.__module__ = "deedbook.reports"  # from where it is imported

Progress = Callable[[int, int], object]


Handle: TypeAlias = "Book | Pier | Wal | Ledger | EventStore"


def report(
    log: str | os.PathLike[str] | Handle,
    *,
    base: str | None = None,
    progress: Progress | None = None,
) -> LogReport:
    """Check a log of any format, read all records once, and return the figures.

    ``log`` is a path or an open log. For an open log, the report also has the counters of the
    handle (`Stats`, with the latencies of syncs), and the bytes that the handle knows as not yet
    durable.

    ``base`` names the ledger in a directory. ``progress`` is called with bytes done and bytes in
    all, of the check and of the reading together. The report changes nothing, and another process
    may write meanwhile. The memory needed does not grow with the log, except by the longest
    payload.

    The report of a damaged log lists the damage. Raises `MissingError` without a log,
    `InvalidArgumentError` if there are several ledgers and no ``base``, and the errors of opening
    if nothing can be read.
    """
    options = {} if base is None else {"base": base}
    if isinstance(log, str | os.PathLike):
        return look(os.fspath(log), require(log, **options), options, progress=progress)
    info = of_handle(log)
    if isinstance(log, Ledger):
        if base not in (None, log.base):
            raise InvalidArgumentError(f'base "{base}" of a ledger of the base "{log.base}"')
        options = {"base": log.base}
    return look(log.path, Found(info), options, progress=progress, handle=log)


def look(
    path: str,
    found: Found,
    options: dict[str, Any],
    *,
    check: bool = True,
    progress: Progress | None = None,
    handle: Handle | None = None,
) -> LogReport:
    """The report of the log that `require` found; without ``check`` the bytes are not checked."""
    figures = None if handle is None else found.format.figures(handle)
    stats = None if handle is None else found.format.stats_of(handle)
    step = progress or (lambda done, total: None)
    shares = 2 if check else 1
    info, findings = found.format, []
    errors: list[Error] = []
    ok, checked, described, parts = True, {}, None, []
    total = 0

    def tell(done: int, of: int) -> None:
        step(done, of * shares)

    if check:
        try:
            outcome = info.verify(path, tell, **options)
            ok, checked, findings = outcome.ok, outcome.facts, list(outcome.lines)
            parts = info.parts(path, outcome.facts)
        except Error as error:
            _note(error, errors)
    try:
        described = info.describe(path, found, **options)
        ok = ok and not described.corrupt
    except Error as error:
        _note(error, errors)
    files = _files(info, path, options, errors)
    total = sum(part.end - part.begin for part in parts) or sum(file.bytes for file in files)
    scan = Scan()
    try:
        with info.read(path, **options) as view:
            if view.left_out is not None:
                findings.append(f"{path}: {view.left_out}")
            around = view.skipping(None, None)
            payloads = (info.entry(record).payload for record in around)
            scan.run(
                payloads, lambda done: step(total * (shares - 1) + min(done, total), total * shares)
            )
            ok = ok and not around.damages
            if not check:
                findings += [
                    f"bytes {one.offset:,}..{one.end:,}: {one.reason}" for one in around.damages
                ]
    except Error as error:
        _note(error, errors)
    if errors and not checked and described is None and scan.records == 0:
        raise errors[0]
    return LogReport(
        path=path,
        format=info.name,
        noun=info.noun,
        ok=ok and not errors,
        records=scan.records,
        bytes=scan.bytes,
        objects=scan.objects,
        sizes=scan.sizes(),
        times=scan.times(),
        types=scan.types(),
        parts=tuple(parts),
        files=files,
        info={} if described is None else described.facts,
        rows=() if described is None else tuple(described.rows),
        checked=checked,
        handle=None if handle is None else repr(handle),
        stats=stats,
        unsynced_bytes=None if figures is None else figures.unsynced_bytes,
        unsynced_records=None if figures is None else figures.unsynced_records,
        findings=tuple(dict.fromkeys([*findings, *map(str, errors)])),
        made=datetime.now(timezone.utc),
    )


def _files(
    info: FormatInfo, path: str, options: dict[str, Any], errors: list[Error]
) -> tuple[DataFile, ...]:
    """The existing files with records."""

    def found() -> Iterator[DataFile]:
        for file in info.data_files(path, **options):
            try:
                status = os.stat(file)
            except FileNotFoundError:  # retention, or a sender, removed it
                continue
            changed = datetime.fromtimestamp(status.st_mtime, timezone.utc)
            yield DataFile(file, status.st_size, changed)

    try:
        return tuple(found())
    except Error as error:
        _note(error, errors)
        return ()


def _note(error: Error, errors: list[Error]) -> None:
    """Add an error to the findings; raise an error about the arguments."""
    if isinstance(error, InvalidArgumentError):
        raise error
    errors.append(error)
