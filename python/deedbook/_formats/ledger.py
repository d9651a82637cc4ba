"""Ledger: files of events in a directory, each closed for good once finished."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from deedbook._core import (
    Ledger,
    LedgerFileInfo,
    LedgerFileReport,
    LedgerRecord,
    Stats,
)
from deedbook._errors import (
    CorruptError,
    MissingError,
)
from deedbook._formats.info import (
    Description,
    Entry,
    Figures,
    FormatInfo,
    Found,
    Outcome,
    Part,
    Progress,
    part_of,
)
from deedbook._formats.ledger_summary import Summary, dead_letters_of, quarantined
from deedbook._show.text import count, damage_text

__all__ = ["LEDGER"]

DEFAULT_BASE = "events"
"""The last part of the file names of a new ledger."""


class _LedgerInfo(FormatInfo):
    """LedgerStore's files: closed, numbered, removed once sent."""

    name = "ledger"
    title = "ledger"
    noun = "record"
    position = "file"
    columns = ("file", "record")
    is_position_of_one = False
    log = Ledger
    read_options = ("base",)

    def open_store(self, path: str, base: str | None) -> Ledger:
        """The ledger of a base, or the only ledger."""
        return Ledger.open(path, base=base)

    def open(self, path: str, mode: str, **options: Any) -> Ledger:
        """The ledger of a base, or the only ledger, to read or to append."""
        return Ledger.open(path, mode, **options)  # type: ignore[arg-type]

    @contextmanager
    def read(self, path: str, **options: Any) -> Iterator[_Events]:
        """The finished files."""
        with Ledger.open(path, **options) as snapshot:
            yield _Events(snapshot)

    def entry(self, record: LedgerRecord) -> Entry:
        number = record.record
        label = f"{record.file}/{'?' if number is None else number}"
        facts = {"file": record.file, "record": number}
        after = None if number is None else number + 1
        return Entry(number, after, record.payload, facts, "payload", label)

    def describe(self, path: str, found: Found, **options: Any) -> Description:
        """The result of checking every file of every ledger, because a ledger keeps no counts."""
        directory = path if os.path.isdir(path) else os.path.dirname(os.path.abspath(path))
        bases = _asked(path, **options)
        ledgers = [Summary.of(path, directory, base) for base in bases]
        letters = sum(len(dead_letters_of(directory, base)) for base in bases)
        together = ("records", "bytes", "finished_files", "active_files", "quarantined_files")
        facts = {
            "path": os.path.abspath(path),
            "format": self.name,
            **{name: sum(ledger.facts[name] for ledger in ledgers) for name in together},
            "dead_letters": letters,
            "ledgers": [ledger.facts for ledger in ledgers],
        }
        rows = [("path", str(facts["path"])), ("format", self.title)]
        for ledger in ledgers:
            rows += ledger.rows
        if letters:
            of = f"{count(letters, 'event')}; 'deedbook dead-letters' prints them"
            rows.append(("dead letters", of))
        return Description(facts, rows, any(ledger.corrupt for ledger in ledgers))

    def stats_of(self, handle: Ledger) -> Stats | None:
        """The counters of a ledger that appends."""
        return None if handle.mode == "r" else handle.stats().log

    def readers(self, path: str) -> Mapping[str, Ledger]:
        """A snapshot of each ledger."""
        bases = _asked(path)
        if len(bases) == 1:
            return {"": Ledger.open(path, base=bases[0])}
        return {base: Ledger.open(path, base=base) for base in bases}

    def figures(self, handle: Ledger) -> Figures:
        """The facts of the files' names and sizes, because a ledger keeps no counts."""
        path, base, files = handle.path, handle.base, handle.files
        directory = path if os.path.isdir(path) else os.path.dirname(path)
        return Figures(
            bytes=sum(file.bytes for file in files),
            files=len(files),
            unsynced_bytes=None if handle.mode == "r" else handle.unsynced_bytes,
            quarantined_files=len(quarantined(directory, base)),
        )

    def verify(self, path: str, progress: Progress, **options: Any) -> Outcome:
        """Check every file, by default of every ledger."""
        checked: list[LedgerFileReport] = []
        bases = _asked(path, **options)
        for base in bases:
            checked += Ledger.verify(path, base=base, progress=progress).files
        return _outcome(path, checked, bases)

    def parts(self, path: str, checked: dict[str, Any]) -> list[Part]:
        """A part for each file. An unfinished record may look torn."""
        parts = []
        for one in checked["files"]:
            part = part_of(os.path.basename(one["file"]["path"]), one["report"])
            fine = one["file"]["active"] and one["report"]["verdict"] != "corrupt"
            parts.append(part._replace(damages=()) if fine else part)
        return parts

    def data_files(self, path: str, **options: Any) -> list[str]:
        """The files of the given ledger, or of all ledgers."""
        found: list[str] = []
        for base in _asked(path, **options):
            with Ledger.open(path, base=base) as snapshot:
                found += [file.path for file in snapshot.files]
        return found

    def outcome(self, path: str, report: Sequence[LedgerFileReport]) -> Outcome:
        """The outcome of the reports on a ledger's files."""
        return _outcome(path, report, _asked(path))


class _Passed(NamedTuple):
    """Damage, with its file in the reason."""

    offset: int
    end: int
    reason: str


class _Events:
    """A ledger for ``cat``."""

    def __init__(self, snapshot: Ledger) -> None:
        self._snapshot = snapshot
        self._given: dict[int, int | None] = {}
        """The number of an unfinished file's records returned by `last`; None: finished."""
        self._single = not os.path.isdir(snapshot.path)
        active = 0 if self._single else sum(file.active for file in snapshot.files)
        self.left_out = f"left out {count(active, 'file')} being written" if active else None

    def records(self, start: int | None, stop: int | None) -> Iterable[LedgerRecord]:
        for file in self._files(start, stop):
            yield from self._snapshot.iter(*_whole(file))

    def reversed(self, start: int | None, stop: int | None) -> Iterable[LedgerRecord]:
        """The records of a range, the last one first."""
        for file in reversed(self._files(start, stop)):
            yield from self._snapshot.iter(*_whole(file), reverse=True)

    def skipping(self, start: int | None, stop: int | None) -> _Around:
        return _Around(self._snapshot, self._files(start, stop))

    def payloads(self, start: int | None, stop: int | None) -> Iterable[bytes]:
        for file in self._files(start, stop):
            yield from self._snapshot.payloads(*_whole(file))

    def last(self, records: int) -> tuple[list[LedgerRecord], CorruptError | None]:
        """The last records, also of unfinished files, and the damage met."""
        found: list[LedgerRecord] = []
        damage: CorruptError | None = None
        for file in reversed(self._snapshot.files):
            self._given[file.index] = None
            if len(found) >= records and not file.active:
                continue
            newest: deque[LedgerRecord] = deque(maxlen=records - len(found))
            given = 0
            try:
                with Ledger.open(file.path) as snapshot:
                    for given, record in enumerate(snapshot, 1):  # noqa: B007
                        newest.append(record)
            except CorruptError as error:
                damage = error
            except MissingError:  # sent meanwhile
                pass
            if file.active:
                self._given[file.index] = given
            found = [*newest, *found]
        return found, damage

    def follow(self, patience: float) -> Iterator[LedgerRecord | None]:
        """The records after `last`, as appended; None while no record is new.

        `OutOfRangeError` where a file was sent before it was read.
        """
        given = self._given
        unfinished = [(index, number) for index, number in given.items() if number is not None]
        start = min(unfinished, default=(max(given) + 1, 0) if given else None)
        records = self._snapshot.follow(start, timeout=patience)
        while True:
            record = next(records, None)
            if record is None or not self._was_given(record):
                yield record

    def _was_given(self, record: LedgerRecord) -> bool:
        number = self._given.get(record.file, 0)
        return number is None or (record.record is not None and record.record < number)

    def _files(self, start: int | None, stop: int | None) -> list[LedgerFileInfo]:
        return [
            file
            for file in self._snapshot.files
            if (self._single or not file.active)
            and file.index >= (start or 0)
            and (stop is None or file.index < stop)
        ]


class _Around:
    """The intact records of some files."""

    def __init__(self, snapshot: Ledger, files: Sequence[LedgerFileInfo]) -> None:
        self._snapshot = snapshot
        self._files = files
        self.damages: list[_Passed] = []

    def __iter__(self) -> Iterator[LedgerRecord]:
        for file in self._files:
            records = self._snapshot.iter(*_whole(file), on_corrupt="skip")
            noted = 0
            while True:
                record = next(records, None)
                for damage in records.damages[noted:]:
                    noted += 1
                    reason = f"{damage.reason} ({file.path})"
                    self.damages.append(_Passed(damage.offset, damage.end, reason))
                if record is None:
                    break
                yield record


def _whole(file: LedgerFileInfo) -> tuple[tuple[int, int], tuple[int, int]]:
    """From the first record of a file to before the first record of the next file."""
    return (file.index, 0), (file.index + 1, 0)


def _asked(path: str, base: str | None = None) -> list[str]:
    """The given base, the base of a single file, or all bases in a directory."""
    if base is not None:
        return [base]
    if os.path.isdir(path):
        return Ledger.bases(path)
    with Ledger.open(path) as snapshot:
        return [snapshot.base]


def _outcome(path: str, report: Sequence[LedgerFileReport], bases: Sequence[str]) -> Outcome:
    """The outcome of the reports on these ledgers' files, with the files in the quarantine."""
    bad = [one for one in report if not _is_fine(one)]
    records = sum(one.report.records for one in report)
    lines = [
        f"{one.file.path}: {text}"
        for one in bad
        for text in [damage_text(damage, LEDGER.noun) for damage in one.report.damages]
        or [one.report.verdict]
    ]
    directory = path if os.path.isdir(path) else os.path.dirname(path)
    aside = [file for base in bases for file in quarantined(directory, base)]
    lines += [f"{file}: damaged, in the quarantine" for file in aside]
    ok = "ok" if not bad else count(len(bad), "damaged file")
    lines.append(f"{path}: {ok}, {count(len(report), 'file')}, {count(records, LEDGER.noun)}")
    files = [one.to_dict() for one in report]
    facts = {"ok": not bad, "records": records, "files": files, "quarantined": aside}
    return Outcome(not bad, facts, lines)


def _is_fine(checked: LedgerFileReport) -> bool:
    """Whether a file is whole. An unfinished record may look torn."""
    report = checked.report
    return report.verdict != "corrupt" if checked.file.active else report.ok


LEDGER = _LedgerInfo()
