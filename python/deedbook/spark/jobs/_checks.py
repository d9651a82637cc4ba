"""What the tasks of a distributed check do, and when their answers make one of the core's.

**Logs, and the files of a ledger.** One is cut into parts, and a task checks each but the last. A
part is intact if it has no damage, as many records as were counted, and its last record ends where
it does. The report is that of the rest, which the core makes: it begins at the last part where all
before it are intact, else, in a second round, at the first part that is not. What the core then
does not read again are intact parts that follow each other from the first record on, so reading
them would change nothing in its report. It reads them all the same where the log is not the one
that was cut.

**Event stores.** Each part of a store begins with an intact event, so that no damage lies in two,
and what tasks find in the parts is what one walk finds: the report has the sums. Only whether an
event is stored twice no part shows: parts give the first bytes of their events' ids, and where any
are there twice, one task checks the store, in a second round. So it does where a part is not what
was cut, because the store was compacted meanwhile.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from deedbook import Book, Error, EventStore, Ledger, Wal
from deedbook._sidecar import SIDECAR
from deedbook.jobs import Split
from deedbook.reports import EventStoreReport, Loss, VerifyReport

__all__ = ["Check", "Found", "Level", "Target", "first_round", "joined", "run"]

Level = Literal["none", "id", "signature"]
"""What is checked of an event."""

_FAULTS_KEPT = 1000
"""So many faults a report of a store names."""


@dataclass(frozen=True)
class Target:
    """What the core has one report of: a log, a file of a ledger, or an event store."""

    format: str
    path: str
    parts: tuple[Split, ...]
    """Of a log from its first record on, as far as records were counted."""
    bytes: int
    """All its bytes."""
    segments: tuple[tuple[int, int], ...] = ()
    """Of a store, number and bytes of each segment."""
    is_loss: bool = False
    """Of a store, whether a repair noted a loss."""


class Check(NamedTuple):
    """A task's share of the work: a part, or what is left of its target."""

    target: int
    path: str
    format: str
    level: Level
    part: Split | None
    """The part to be checked; None: what is left."""
    intact: tuple[Split, ...]
    """What is not to be read again."""
    bytes: int
    """To be read."""


class Found(NamedTuple):
    """What a task found: a report, or why there is none."""

    target: int
    report: Any
    error: Exception | None


def first_round(number: int, target: Target, level: Level) -> list[Check]:
    """The parts that are checked apart, and what is left then."""
    apart, left = _SHARING[target.format].share(number, target, level)
    checks = [
        Check(number, target.path, target.format, level, part, (), part.end - part.offset)
        for part in apart
    ]
    return [*checks, *left]


def joined(number: int, target: Target, found: Sequence[Found], level: Level) -> Any:
    """The target's report; a `Check` where that must be done yet. Raises what the core raised.

    ``found`` is what the first round found, in its order.
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
    """How the check of a target is shared."""

    def share(
        self, number: int, target: Target, level: Level
    ) -> tuple[Sequence[Split], Sequence[Check]]:
        """The parts that are checked apart, and what is left then."""

    def check_part(self, part: Split, level: Level) -> Any:
        """Check a part."""

    def check(self, check: Check) -> Any:
        """Check what is left."""

    def join(self, number: int, target: Target, found: Sequence[Found], level: Level) -> Any:
        """As `joined`."""


class _Log:
    """A log, or a file of a ledger: intact parts, and the rest after them."""

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
    """An event store: its parts, whose reports are added up."""

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
            # Only a check of the whole notes damage, or deletes the note of an earlier one.
            noted=os.path.exists(os.path.join(target.path, SIDECAR, "damage")),
        )

    def _whole(self, number: int, target: Target, level: Level) -> Check:
        return Check(number, target.path, target.format, level, None, (), target.bytes)


def _report(found: Found) -> Any:
    if found.error is not None:
        raise found.error
    return found.report


def _is_any_twice(ids: Sequence[bytes]) -> bool:
    """Whether any of the ids, of 8 bytes each, is there twice."""
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
