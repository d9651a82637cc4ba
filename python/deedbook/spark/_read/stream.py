"""The stream reader: batches of a streaming query between places in the logs."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxBytes,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from deedbook import (
    Error,
    InvalidArgumentError,
    LostRecordsError,
    MissingError,
    NotALogError,
    OutOfRangeError,
)
from deedbook.spark._logs.format import Limits, LogFormat, Place, Planned, Step
from deedbook.spark._logs.parts import LogPartition, Piece
from deedbook.spark._options.options import ReadOptions, parse
from deedbook.spark._options.paths import archive_url, input_paths
from deedbook.spark._read.detect import detect_logs
from deedbook.spark._read.offsets import Offset
from deedbook.spark._read.plan import partitions_of
from deedbook.spark._read.reader import check_columns
from deedbook.spark._read.refused import is_refused, known, loss, refused, refused_as, warn
from deedbook.spark._read.rows import Rows

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["DeedbookStreamReader", "make_stream_reader"]

_log = logging.getLogger("deedbook")


class DeedbookStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads growing logs of a format. The driver has the reader; tasks get pickled copies.

    The constructor never raises, because Spark (4.3.0) would show another error. The first call
    raises.
    """

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._given = dict(options)
        self._goal: Offset | None = None
        self._seen: Offset | None = None
        self._served: str | None = None
        self._failed: Exception | None = None
        try:
            self._options = parse(options, scope="stream")
            log, _ = detect_logs(options, self._options)
            check_columns(log, schema, self._options)
            self._rows = Rows(log.name, self._options, schema)
        except Exception as error:
            self._failed = error

    def initialOffset(self) -> dict[str, Any]:
        """The beginning of a new query: ``startingPosition`` in every existing log."""
        options, log = self._options_now(), self._format()
        paths, position = self._paths(), options.starting_position
        if not log.in_sequence and len(paths) > 1 and isinstance(position, int):
            raise InvalidArgumentError(
                f"option startingPosition: {position} is a place in one {log.name}, there are"
                f" {len(paths)}: {', '.join(paths)}"
            )
        alone = len(paths) == 1
        places: dict[str, Place] = {}
        for path in paths:
            try:
                places[path] = log.begin(Path(path), position, options, alone)
            except Error as error:
                # Once the log opens, read from the first record, as for a log that appears later.
                # Any other position needs an open log.
                if position != "earliest":
                    raise
                refused(path, None, error, options)
        self._keep(places)
        return Offset(log.name, places).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit of the options. Spark takes only a single limit."""
        options = self._options_now()
        if options.max_rows_per_trigger is not None:
            return ReadMaxRows(options.max_rows_per_trigger)
        if options.max_bytes_per_trigger is not None:
            return ReadMaxBytes(options.max_bytes_per_trigger)
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:
        """The end of the next batch; ``start`` itself if nothing is unread."""
        log, begin = self._format(), Offset.of_json(start, self._format().name)
        found = self._paths()
        places = {path: begin.places[path] for path in found if path in begin.places}
        known_paths = [Path(path) for path in {**begin.places, **dict.fromkeys(found)}]
        for path, place in begin.places.items():
            read_to = known(place)
            is_read = read_to is not None and log.was_read(Path(path), read_to, known_paths)
            if path not in places and not is_read:
                gone = MissingError(2, "the log is not there any more", path)
                self._lost(path, read_to, None, gone)
        if log.in_sequence and any(known(places.get(path)) is None for path in found):
            self._check_sequence(log, found)
        rows, size = self._limits(limit)
        taken = False
        # Otherwise a budget of fewer records than logs would never reach the last logs.
        order = found if log.in_sequence else _after(self._served, found)
        for position, path in enumerate(order):
            goal = self._goal.places.get(path) if self._goal is not None else None
            is_done = (rows is not None and rows <= 0) or (size is not None and size <= 0)
            if is_done or (self._goal is not None and goal is None):
                continue
            if goal is not None and known(goal) is None:
                # The log did not open when the query took its goal, so this query reads no records
                # here.
                places[path] = refused_as(places.get(path), goal)
                warn(path, begin.places.get(path), places[path])
                continue
            # Logs of a sequence come one after the other; other logs get a share each.
            shares = 1 if log.in_sequence else len(found) - position
            limits = Limits(_share(rows, shares), _share(size, shares), known(goal))
            begun, step = self._advance(path, places.get(path), limits)
            if log.in_sequence and taken and _exceeds(step, limits):
                break  # its first record begins the next batch
            if path in places or step.place != begun:
                places[path] = step.place
                warn(path, begin.places.get(path), step.place)
            rows = None if rows is None else rows - step.rows
            size = None if size is None else size - step.bytes
            taken = taken or step.bytes > 0
            if step.bytes > 0:
                self._served = path
            if log.in_sequence and step.more:
                break  # else the next one would overtake the rest
        latest = Offset(log.name, {path: places[path] for path in found if path in places})
        self._seen = latest
        return start if latest.places == begin.places else latest.to_json()

    def reportLatestOffset(self) -> dict[str, Any]:
        """For the query's progress: the ends of all logs, and the bytes up to there."""
        ends, lag = self._ends()
        return {**ends.to_json(), "lag": {"bytes": lag}}

    def prepareForTriggerAvailableNow(self) -> None:
        """Take the ends of all logs for the goal of the query."""
        self._goal, _ = self._ends()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[LogPartition]:
        """Parts of the logs between two offsets, in order."""
        log = self._format()
        first, last = Offset.of_json(start, log.name), Offset.of_json(end, log.name)

        def cut(size: int) -> list[Piece]:
            pieces: list[Piece] = []
            for path, stop in last.places.items():
                before, end_of_log = first.places.get(path), known(stop)
                if end_of_log is not None:
                    place = known(before)
                    if place is None:
                        place = log.origin(end_of_log)
                    if place != end_of_log:
                        pieces += self._between(path, place, end_of_log, size)
                damage = loss(before, stop)
                if damage is not None:
                    pieces.append(damage)
            return pieces

        return partitions_of(cut, self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Batches with exactly the schema."""
        self._options_now()
        return self._rows.read(partition)

    def commit(self, end: dict[str, Any]) -> None:
        """Let the logs keep the records after a finished batch, for the option ``consumer``.

        Nothing else is needed: a query's places are in the checkpoint.
        """
        self._keep(Offset.of_json(end, self._format().name).places)

    def _keep(self, places: Mapping[str, Place]) -> None:
        consumer = self._options_now().consumer
        if consumer is None:
            return
        for path, place in places.items():
            if is_refused(place):
                continue  # it keeps what it kept
            try:
                self._format().keep(Path(path), place, consumer)
            except Error as error:
                # The next batch decides how the query goes on.
                is_told = isinstance(error, MissingError | OutOfRangeError)
                if not is_told and self._options.mode == "FAILFAST":
                    raise
                _log.warning("%s: the consumer was not set: %s", path, error)

    def _options_now(self) -> ReadOptions:
        if self._failed is not None:
            raise self._failed
        return self._options

    def _format(self) -> LogFormat:
        self._options_now()
        return self._rows.format

    def _paths(self) -> list[str]:
        """The present logs, in order; empty if the paths lead to no log."""
        try:
            log, series = detect_logs(self._given, self._options)
        except MissingError:
            return []
        if log is not self._format():
            raise InvalidArgumentError(
                f"the query reads logs of format {self._format().name}, at the path lies a"
                f" {log.name}; say which to read with the option log"
            )
        return [path for one in series for path in one.logs]

    def _limits(self, limit: ReadLimit) -> tuple[int | None, int | None]:
        """Rows and bytes of a batch."""
        if isinstance(limit, ReadMaxRows):
            return limit.max_rows, self._options.max_bytes_per_trigger
        if isinstance(limit, ReadMaxBytes):
            return None, limit.max_bytes
        return None, None

    def _ends(self) -> tuple[Offset, int]:
        """The ends of all logs, and the bytes from the last batch to the ends.

        The look begins at the last batch, so no record is walked twice.
        """
        log, options, lag = self._format(), self._options_now(), 0
        seen = {} if self._seen is None else self._seen.places
        ends: dict[str, Place] = {}
        for path in self._paths():
            place, size = known(seen.get(path)), 0
            try:
                if place is None and self._seen is not None:
                    place = log.begin(Path(path), "earliest", options)  # it came since
                while place is not None:
                    step = log.advance(Path(path), place, Limits(), options)
                    if step.place == place:
                        break
                    place, size = step.place, size + step.bytes
                place = place or log.begin(Path(path), "latest", options)
            except (OutOfRangeError, NotALogError):
                size = 0  # the next batch says what that means
                place = self._latest(path)
            except Error as error:
                place = refused(path, seen.get(path), error, options)
            lag += size
            ends[path] = place
        return Offset(log.name, ends), lag

    def _latest(self, path: str) -> Place:
        try:
            return self._format().begin(Path(path), "latest", self._options)
        except Error as error:
            return refused(path, None, error, self._options)

    def _advance(
        self, path: str, before: Place | None, limits: Limits
    ) -> tuple[Place | None, Step]:
        """The place from which to read a log, and the step from there.

        Without ``before``, the place is the first record. A log that does not open makes no step.
        """
        log, options, file = self._format(), self._options, Path(path)
        place, resumed, why = known(before), None, None
        try:
            if place is None:
                place = log.begin(file, "earliest", options)
            try:
                step = log.advance(file, place, limits, options)
            except (OutOfRangeError, NotALogError) as error:
                resumed, why = log.resume(file, place, options), error
                step = log.advance(file, resumed, limits, options)
        except Error as error:
            return before, Step(refused(path, before, error, options), 0, 0)
        if why is not None:
            self._lost(path, place, resumed, why)
        return place, step

    def _between(self, path: str, start: Place, stop: Place, size: int) -> list[Piece]:
        log, options = self._format(), self._options
        try:
            return log.between(Path(path), start, stop, options, size)
        except (OutOfRangeError, NotALogError, MissingError) as error:
            if isinstance(error, MissingError):
                self._lost(path, start, None, error)
                return []
            start = self._resume(path, start, error)
            stop = log.advance(Path(path), start, Limits(to=stop), options).place
            return log.between(Path(path), start, stop, options, size)

    def _resume(self, path: str, place: Place, error: OutOfRangeError | NotALogError) -> Place:
        resumed = self._format().resume(Path(path), place, self._options)
        self._lost(path, place, resumed, error)
        return resumed

    def _lost(self, path: str, place: Place | None, resumed: Place | None, why: Exception) -> None:
        """Fail, or warn that the query goes on elsewhere in a log, or without the log."""
        then = "goes on without the log" if resumed is None else f"goes on at {resumed}"
        read = "nothing of it" if place is None else f"up to {place}"
        if self._options.fail_on_data_loss:
            error = LostRecordsError(
                f"{path}: {why}; the query had read {read}. With the option"
                f" failOnDataLoss=false it {then}"
            )
            error.format, error.path = self._format().name, path
            raise error from why
        _log.warning("%s: the query had read %s and %s: %s", path, read, then, why)

    def _check_sequence(self, log: LogFormat, paths: list[str]) -> None:
        """Refuse an epoch that does not begin at the end of the epoch before."""
        planned = []
        for path in paths:
            try:
                bounds = log.plan(Path(path), self._options, 2**62).bounds
            except Error as error:
                refused(path, None, error, self._options)
                bounds = None
            planned.append(Planned(path, (), bounds))
        log.check(planned, self._options)

    def __getstate__(self) -> dict[str, Any]:
        """The state for a task."""
        return {**self.__dict__, "_goal": None, "_seen": None}


def make_stream_reader(options: Mapping[str, str], schema: StructType) -> DeedbookStreamReader:
    """A reader of logs, or of archives. Never raises, as the constructors."""
    try:
        is_archive = any(map(archive_url, input_paths(options)))
    except Error:
        is_archive = False  # the first call raises
    if not is_archive:
        return DeedbookStreamReader(options, schema)
    from deedbook.spark._read.archive_stream import ArchiveStreamReader  # needs the extra s3

    return ArchiveStreamReader(options, schema)


def _after(path: str | None, paths: list[str]) -> list[str]:
    """Paths after ``path``, and then the others; unchanged if ``path`` is missing."""
    at = paths.index(path) + 1 if path in paths else 0
    return paths[at:] + paths[:at]


def _exceeds(step: Step, limits: Limits) -> bool:
    over_rows = limits.rows is not None and step.rows > limits.rows
    return over_rows or (limits.bytes is not None and step.bytes > limits.bytes)


def _share(budget: int | None, shares: int) -> int | None:
    return None if budget is None else max(1, budget // shares)
