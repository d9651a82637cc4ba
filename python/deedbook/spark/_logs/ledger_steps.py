"""Streams through a ledger, by whole files: a place is after the last file read.

The checkpoint keeps the file's index (``after``), the file's identity (``last``: the first and last
record by byte and checksum), and the index before the first file of the ledger (``origin``).
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Sequence
from pathlib import Path

from deedbook import Error, Ledger, NotALogError, OutOfRangeError
from deedbook.jobs import Split
from deedbook.reports import LedgerFileInfo
from deedbook.spark._logs.format import Limits, Place, Step, not_opened
from deedbook.spark._logs.parts import Piece
from deedbook.spark._options.options import ReadOptions

__all__ = ["FileSteps"]

_log = logging.getLogger("deedbook")


class FileSteps:
    """Steps through the finished files of a ledger."""

    def begin(
        self, log: Path, position: str | int, options: ReadOptions, alone: bool = False
    ) -> Place:
        """Before the first file, after the last finished file, or before a file by index."""
        if isinstance(position, int):
            return {"after": position - 1}
        with Ledger.open(log, base=options.base) as snapshot:
            finished = _finished(snapshot)
            if position == "latest" and finished:
                return _after({}, finished[-1].index, _identity(snapshot, finished[-1]))
            return _before([file.index for file in snapshot.files])

    def origin(self, place: Place) -> Place:
        """The index before the first file of the ledger."""
        return {"after": place["origin"]} if "origin" in place else {}

    def advance(self, log: Path, place: Place, limits: Limits, options: ReadOptions) -> Step:
        """Whole files, up to the first unfinished file. A later file may be finished first.

        The step stops before a gap, so the missing files come first in the next step, and raise
        `OutOfRangeError`. Raises `NotALogError` for another ledger.
        """
        rows = size = 0
        start = after = place.get("after")
        taken: LedgerFileInfo | None = None
        with Ledger.open(log, base=options.base) as snapshot:
            if (another := _another(log, snapshot, place)) is not None:
                raise another
            for file in _finished(snapshot):
                if after is not None and file.index <= int(after):
                    continue
                if limits.to is not None and file.index > int(limits.to.get("after", -1)):
                    break
                records = 0 if limits.rows is None else _records(snapshot, file)
                is_over = limits.rows is not None and rows + records > limits.rows
                is_over = is_over or (limits.bytes is not None and size + file.bytes > limits.bytes)
                if is_over and size > 0:
                    break
                gap = None if after is None else _gap(log, int(after), file.index)
                if gap is not None and after != start:
                    break
                if gap is not None:
                    raise gap
                if after is None:
                    place = _before([file.index])
                taken, after = file, file.index
                rows, size = rows + records, size + file.bytes
            if taken is None:
                return Step(place, 0, 0)
            return Step(_after(place, taken.index, _identity(snapshot, taken)), rows, size)

    def between(
        self, log: Path, start: Place, stop: Place, options: ReadOptions, split_size: int
    ) -> list[Piece]:
        """The parts of the files between two places.

        Raises `OutOfRangeError` if a file is missing, and `NotALogError` for another ledger. With
        ``failOnDataLoss`` false, warns instead: the query will not come back for the other files.
        """
        # A stream that began without a file took the first new file.
        before = start.get("after", stop.get("origin"))
        pieces: list[Piece] = []
        with Ledger.open(log, base=options.base) as snapshot:
            others = [_another(log, snapshot, place) for place in (start, stop)]
            for other in others:
                if other is not None and options.fail_on_data_loss:
                    raise other
            if others[1] is not None or "after" not in stop:
                return []  # the next step begins with the first file that is there
            if others[0] is not None:
                before = None
            last = int(stop["after"])
            for file in _finished(snapshot):
                if file.index > last or (before is not None and file.index <= int(before)):
                    continue
                if before is not None:
                    _pass_gap(log, _after(start, int(before)), file.index, options)
                before = file.index
                try:
                    pieces += snapshot.splits(split_size, (file.index, 0), (file.index + 1, 0))
                except Error as error:
                    pieces += not_opened(file.path, error, options)
        if before is not None:
            _pass_gap(log, _after(start, int(before)), last + 1, options)
        return pieces

    def resume(self, log: Path, place: Place, options: ReadOptions) -> Place:
        """Before the first unread file; in another ledger, before the first file."""
        with Ledger.open(log, base=options.base) as snapshot:
            indexes = [file.index for file in snapshot.files]
            if _another(log, snapshot, place) is not None:
                return _before(indexes)
        after = int(place.get("after", -1))
        later = [index for index in indexes if index > after]
        return _after(place, later[0] - 1) if later else place


def _finished(snapshot: Ledger) -> list[LedgerFileInfo]:
    """The files before the first unfinished file."""
    return list(itertools.takewhile(lambda file: not file.active, snapshot.files))


def _before(indexes: Sequence[int]) -> Place:
    """Before the first of these files; without files, the beginning of any ledger."""
    return {"after": indexes[0] - 1, "origin": indexes[0] - 1} if indexes else {}


def _after(place: Place, index: int, identity: str | None = None) -> Place:
    """A place of the same stream after a file, with the file's identity if known."""
    kept = {name: value for name, value in place.items() if name != "last"}
    return {**kept, "after": index} | ({} if identity is None else {"last": identity})


def _records(snapshot: Ledger, file: LedgerFileInfo) -> int:
    """The records of a file; 0 if the file does not open: `between` follows the mode."""
    try:
        return sum(
            split.records or 0
            for split in snapshot.splits(start=(file.index, 0), stop=(file.index + 1, 0))
        )
    except Error:
        return 0


def _identity(snapshot: Ledger, file: LedgerFileInfo) -> str | None:
    """The file's identity; None if the file has no records, does not open or was sent meanwhile."""
    try:
        return next(
            (
                split.identity
                for split in snapshot.splits(start=(file.index, 0), stop=(file.index + 1, 0))
            ),
            None,
        )
    except Error:
        return None


def _another(log: Path, snapshot: Ledger, place: Place) -> NotALogError | None:
    """The error of another ledger than the place's, or of a ledger whose numbers began again.

    No number comes twice in a ledger. If the next file gets a number already read, or if the last
    number has other records, a stream would skip unseen files.
    """
    after, identity = place.get("after"), place.get("last")
    if after is None or (identity is None and "origin" not in place):
        return None  # a number that was asked for: nothing was read
    following = snapshot.next_index()
    if following is not None and following <= int(after):
        why = f"its next file is {following}"
    elif isinstance(identity, str) and _is_replaced(snapshot, int(after), identity):
        why = f"other records are in its file {after}"
    else:
        return None
    error = NotALogError(
        f"another ledger than the one that was read up to file {after}, or its numbers began again:"
        f" {why}"
    )
    error.format, error.path = "ledger", str(log)
    return error


def _is_replaced(snapshot: Ledger, index: int, identity: str) -> bool:
    """Whether a file is there with other records; damage and absence prove nothing."""
    for file in snapshot.files:
        if file.index == index:
            try:
                # The look reads the first and the last record.
                Split("ledger", file.path, None, None, 0, 0, identity=identity).batches()
            except NotALogError:
                return True
            except Error:
                return False
    return False


def _gap(log: Path, after: int, index: int) -> OutOfRangeError | None:
    """The error of missing files between two files."""
    if index <= after + 1:
        return None
    which = (
        f"file {after + 1} is" if index == after + 2 else f"files {after + 1} to {index - 1} are"
    )
    error = OutOfRangeError(
        f"{which} not there any more: sent, or dropped for want of space, before the stream read"
        " them"
    )
    error.format, error.path = "ledger", str(log)
    return error


def _pass_gap(log: Path, place: Place, index: int, options: ReadOptions) -> None:
    """Go on from a place to a file; past a gap only if the query is to go on after a loss."""
    gap = _gap(log, int(place["after"]), index)
    if gap is None:
        return
    if options.fail_on_data_loss:
        raise gap
    resumed = _after(place, index - 1)
    _log.warning("%s: the query had read up to %s and goes on at %s: %s", log, place, resumed, gap)
