"""Archives at URLs, for the commands ``backup``, ``verify`` and ``cat``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from typing import Any, Final

from deedbook._cli.failure import CliError
from deedbook._cli.terminal.output import Output
from deedbook._cli.terminal.progress import Progress
from deedbook._formats import by_name
from deedbook._formats.info import FormatInfo, Skipping
from deedbook._show.text import count, exact_size

__all__ = ["ArchiveView", "is_url", "run_restore", "run_upload", "verify_archive"]

_URL: Final = re.compile("[a-z][a-z0-9+.-]*://")


def is_url(text: str) -> bool:
    """Whether an argument is a URL; a path is written ``./s3://...``."""
    return _URL.match(text) is not None


def archives(command: str) -> Any:
    """The package of archives. Raises `CliError` without the library."""
    try:
        from deedbook import archive
    except ImportError as error:
        raise CliError(f"{command}: {error}") from error
    return archive


def run_upload(args: argparse.Namespace, out: Output) -> int:
    """Send the sealed files of ``args.source`` to ``args.target``."""
    archive = archives("backup")
    with Progress(f"backup {args.source}", enabled=not args.quiet) as progress:
        report = archive.upload(
            args.source,
            args.target,
            consumer=args.consumer or "archive",
            base=args.base,
            catalog=args.catalog,
            timeout=args.timeout or archive.TIMEOUT_SECONDS,
            progress=progress.update,
        )
    adopted = f", found {count(report.adopted, 'piece')} there" if report.adopted else ""
    entry = f"; entry {report.entry} of the catalog" if report.entry is not None else ""
    text = (
        f"{report.url}: sent {count(report.sent, 'piece')}, {exact_size(report.sent_bytes)}"
        f"{adopted}; it has {_content(report)}{entry}"
    )
    return out.result(args.json, report.to_dict(), [text])


def run_restore(args: argparse.Namespace, out: Output) -> int:
    """Write the log of the archive ``args.source`` to ``args.target``."""
    if any(value is not None for value in (args.consumer, args.base, args.catalog)):
        raise CliError("backup: --consumer, --base and --catalog go with a URL as DST")
    archive = archives("backup")
    with Progress(f"restore {args.source}", enabled=not args.quiet) as progress:
        report = archive.restore(
            args.source,
            args.target,
            timeout=args.timeout or archive.TIMEOUT_SECONDS,
            progress=progress.update,
        )
    lines = [f"{args.target}: wrote {count(report.files, 'file')}, with {_content(report)}"]
    if report.unfinished is not None:
        lines.append(f"  the end of the record at LSN {report.unfinished} is not in the archive")
    return out.result(args.json, report.to_dict(), lines)


def verify_archive(url: str, args: argparse.Namespace, out: Output) -> int:
    """Read every piece of an archive, and print the damage; return the exit code."""
    archive = archives("verify")
    with Progress(f"verify {url}", enabled=not args.quiet) as progress:
        report = archive.verify(url, progress=progress.update)
    lines = [f"{url}: {'ok' if report.ok else 'damaged'}, {_content(report)}"]
    lines += [f"  {one['path']}: {one['reason']} ({one['name']})" for one in report.damages]
    if report.unlisted:
        objects = count(len(report.unlisted), "object")
        lines.append(f"  {objects} of an unfinished upload; the next upload lists them")
    facts = {"path": url, **report.to_dict()}
    return out.result(args.json, facts, lines, report.ok, "green" if report.ok else "red")


class ArchiveView:
    """The records of an archive, for ``cat``."""

    left_out = None

    def __init__(self, url: str) -> None:
        self._archive = archives("cat").open(url)
        self.info: FormatInfo = by_name(self._archive.format)

    def records(self, start: int | None, stop: int | None) -> Iterator[Any]:
        """The records of a range."""
        found: Iterator[Any] = self._archive.iter(start, stop)
        return found

    def payloads(self, start: int | None, stop: int | None, /) -> Iterator[bytes]:
        """The payloads of a range."""
        found: Iterator[bytes] = self._archive.payloads(start, stop)
        return found

    def read(self, position: int) -> Any:
        """The record at a position."""
        return self._archive.read(position)

    def skipping(self, start: int | None, stop: int | None) -> Skipping:
        """Refused: an archive is read as a whole, or restored and salvaged."""
        raise CliError("cat: --skip-corrupt is for logs: restore the archive first")


def _content(report: Any) -> str:
    """The records and the bytes of an archive."""
    info = by_name(report.format)
    has = f"{count(report.records, info.noun)}, {exact_size(report.bytes)}"
    if report.bounds is None:
        return has
    return f"{has}, {info.position}s {report.bounds[0]}..{report.bounds[1] - 1}"
