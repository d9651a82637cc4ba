"""The tasks of a distributed check, and merging their reports to a report of the core.

**Logs, and the files of a ledger.** The driver cuts a log into parts, and a task checks each part
except the last. A part is intact if the part has no damage, the counted number of records, and a
last record that ends with the part. The core then makes the report from the rest. If all earlier
parts are intact, the rest is the last part. If not, the rest begins at the first damaged part, in a
second round. The skipped parts are intact and follow each other from the first record on, so
reading them again would not change the report. If the log is no longer the log that was cut, the
core reads all parts.

**Event stores.** Each part of a store begins with an intact event, so no damage lies in two parts,
and the report has the sums of the parts. But no single part shows an event stored twice. Parts
therefore return the first bytes of their events' ids. If the same bytes occur twice, a task checks
the whole store, in a second round. A second round also follows if a compaction changed a part
meanwhile.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from deedbook import Book, Error, EventStore, Ledger, Wal
from deedbook._system.sidecar import SIDECAR
from deedbook.jobs import Split
from deedbook.reports import EventStoreReport, Loss, VerifyReport

__all__ = ["Check", "Found", "Level", "Target", "first_round", "joined", "run"]

Level = Literal["none", "id", "signature"]
"""The checks of an event."""

_FAULTS_KEPT = 1000
"""The most faults in a report of a store."""


@dataclass(frozen=True)
class Target:
    """The subject of a single report: a log, a file of a ledger, or an event store."""

    format: str
    path: str
    parts: tuple[Split, ...]
    """The parts of a log from the first record on, up to the last counted record."""
    bytes: int
    """All bytes of the target."""
    segments: tuple[tuple[int, int], ...] = ()
    """For a store: number and bytes of each segment."""
    is_loss: bool = False
    """For a store: whether a repair noted a loss."""


class Check(NamedTuple):
    """A task's share of the work: a part, or the rest of a target."""

    target: int
    path: str
    format: str
    level: Level
    part: Split | None
    """The part to check; None: the rest."""
    intact: tuple[Split, ...]
    """The parts to skip."""
    bytes: int
    """To be read."""


class Found(NamedTuple):
    """The result of a task: a report, or an error."""

    target: int
    report: Any
    error: Exception | None


def first_round(number: int, target: Target, level: Level) -> list[Check]:
    """The separate parts, and the rest."""
    apart, left = _SHARING[target.format].share(number, target, level)
    checks = [
        Check(number, target.path, target.format, level, part, (), part.end - part.offset)
        for part in apart
    ]
    return [*checks, *left]


def joined(number: int, target: Target, found: Sequence[Found], level: Level) -> Any:
    """The target's report, or a `Check` still to do. Raises the errors of the core.

    ``found`` has the results of the first round, in order.
    """
    return _SHARING[target.format].join(number, target, found, level)


def run(checks: Iterable[Check], count: Callable[[int], object]) -> Iterator[Found]:
    """On an executor: do each; ``count`` is called with the bytes done."""
    for check in checks:
        sharing = _SHARING[check.format]
        report: Any = None
        failed: Exception | None = None
        try:
            if check.part is None:
                report = sharing.check(check)
            else:
                report = sharing.check_part(check.part, check.level)
        except (Error, OSError) as error:
            failed = error
        count(check.bytes)
        yield Found(check.target, report, failed)


class _Sharing(Protocol):
    """Sharing the check of a target among tasks."""

    def share(
        self, number: int, target: Target, level: Level
    ) -> tuple[Sequence[Split], Sequence[Check]]:
        """The separate parts, and the rest."""

    def check_part(self, part: Split, level: Level) -> Any:
        """Check a part."""

    def check(self, check: Check) -> Any:
        """Check the rest."""

    def join(self, number: int, target: Target, found: Sequence[Found], level: Level) -> Any:
        """As `joined`."""


class _Log:
    """A log, or a file of a ledger: intact parts, and the rest."""

    def __init__(self, verify: Callable[..., VerifyReport]) -> None:
        self._verify = verify

    def share(
        self, number: int, target: Target, level: Level
    ) -> tuple[Sequence[Split], Sequence[Check]]:
        apart = target.parts[:-1]
        return apart, [self._rest(number, target, apart, level)]

    def check_part(self, part: Split, level: Level) -> Any:
        return part.check()

    def check(self, check: Check) -> Any:
        return self._verify(check.path, intact=check.intact)

    def join(self, number: int, target: Target, found: Sequence[Found], level: Level) -> Any:
        *parts, rest = found
        whole = itertools.takewhile(lambda one: one.error is None and one.report.intact, parts)
        intact = target.parts[: sum(1 for _ in whole)]
        if len(intact) < len(parts):
            return self._rest(number, target, intact, level)
        return _report(rest)

    def _rest(self, number: int, target: Target, intact: tuple[Split, ...], level: Level) -> Check:
        rest = max(target.bytes - sum(part.end - part.offset for part in intact), 0)
        return Check(number, target.path, target.format, level, None, intact, rest)


class _Store:
    """An event store: the sum of the parts' reports."""

    def share(
        self, number: int, target: Target, level: Level
    ) -> tuple[Sequence[Split], Sequence[Check]]:
        if len(target.parts) > 1:
            return target.parts, []
        return [], [self._whole(number, target, level)]

    def check_part(self, part: Split, level: Level) -> Any:
        return EventStore.verify_part(part, check=level)

    def check(self, check: Check) -> Any:
        return EventStore.verify(check.path, check=check.level)

    def join(self, number: int, target: Target, found: Sequence[Found], level: Level) -> Any:
        if len(target.parts) <= 1:
            return _report(found[0])
        are_as_cut = all(
            one.error is None and one.report.report.bytes == part.end - part.offset
            for part, one in zip(target.parts, found, strict=True)
        )
        if not are_as_cut or _is_any_twice([one.report.ids for one in found]):
            return self._whole(number, target, level)
        reports: list[EventStoreReport] = [one.report.report for one in found]
        added = ("live", "deleted", "replaced", "recovered", "lossy", "faults")
        sums = {name: sum(getattr(report, name) for report in reports) for name in added}
        with EventStore.open(target.path) as store:
            log_damages = store.verify_log()
        sums["faults"] += len(log_damages)
        return EventStoreReport(
            **sums,
            ok=sums["faults"] == 0,
            verdict="corrupt" if sums["faults"] else "clean",
            records=sums["live"] + sums["deleted"] + sums["replaced"],
            loss=Loss(records=0, first=0, offset=0) if target.is_loss else None,
            segments=len(target.segments),
            bytes=sum(size for _, size in target.segments),
            damages=[one for report in reports for one in report.damages][:_FAULTS_KEPT],
            log_damages=log_damages,
            is_loss=target.is_loss,
            # Only a check of the whole store notes damage, or deletes an earlier note.
            noted=os.path.exists(os.path.join(target.path, SIDECAR, "damage")),
        )

    def _whole(self, number: int, target: Target, level: Level) -> Check:
        return Check(number, target.path, target.format, level, None, (), target.bytes)


def _report(found: Found) -> Any:
    if found.error is not None:
        raise found.error
    return found.report


def _is_any_twice(ids: Sequence[bytes]) -> bool:
    """Whether any of the ids, of 8 bytes each, occurs twice."""
    import pyarrow as pa
    import pyarrow.compute as pc

    data = b"".join(ids)
    numbers = pa.Array.from_buffers(pa.uint64(), len(data) // 8, [None, pa.py_buffer(data)])
    different: int = pc.count_distinct(numbers).as_py()
    return different < len(numbers)


_SHARING: dict[str, _Sharing] = {
    "book": _Log(Book.verify),
    "wal": _Log(Wal.verify),
    "ledger": _Log(Ledger.verify_file),
    "nostr": _Store(),
}
