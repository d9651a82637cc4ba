"""Running a pipeline: rounds, each of which takes what is there through all tables."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from deedbook import LostRecordsError, MissingError
from deedbook._formats import by_name
from deedbook._lock import alone
from deedbook._spark_session import clear, session
from deedbook.pipeline.config import Config, Source
from deedbook.pipeline.gold import Gold
from deedbook.pipeline.lag import looks_of
from deedbook.pipeline.layout import Layout
from deedbook.pipeline.progress import Journal
from deedbook.pipeline.quarantine import Quarantine
from deedbook.pipeline.silver import refine
from deedbook.spark._detect import detect_logs
from deedbook.spark._options import parse
from deedbook.spark._sinks import SINKS
from deedbook.spark.jobs import JobFailedError, import_events, ingest
from deedbook.spark.jobs._stream import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SETTINGS", "Round", "run"]

_log = logging.getLogger("deedbook")

_STOP_SECONDS: Final = 0.2

FAILURES_MAX: Final = 3
"""After so many rounds in a row in which Spark failed, a run ends."""

SETTINGS: Final = {
    "spark.sql.shuffle.partitions": "4",
    # Gold has a small file for each batch: a task takes hundreds of them, not 32.
    "spark.sql.files.openCostInBytes": str(256 << 10),
    # The ids of all events that were seen: on disk, not in the memory of the JVM.
    "spark.sql.streaming.stateStore.providerClass": "org.apache.spark.sql.execution.streaming.state"
    ".RocksDBStateStoreProvider",
}
"""Of Spark, where the caller gives no others."""


@dataclass(frozen=True)
class Round:
    """What one round did."""

    rows: dict[str, int]
    """Rows read, by source, and of ``silver``."""
    totals: dict[str, Any]
    """Of gold."""
    seconds: float
    quarantined: dict[str, int] = field(default_factory=dict)
    """Rows that were put aside, by reason: they are no Nostr events."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing was new."""
        return not any(self.rows.values())

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


def run(
    config: Config,
    *,
    once: bool = False,
    master: str | None = None,
    settings: Mapping[str, str] | None = None,
    tell: Callable[[Round], object] | None = None,
) -> Round:
    """Run a pipeline: one round, or rounds until something is raised.

    In a round the sources are read into their logs at the same time, then bronze into silver and
    gold. ``tell`` gets each round as it ends. Returns the last one. Whatever is killed meanwhile, a
    later run goes on where it was. A round in which Spark failed, as where too many of its workers
    died, is tried again, but not after three in a row.

    Raises `deedbook.LockedError` where another process runs the pipeline, and as the jobs do:
    `deedbook.Error`, `deedbook.spark.jobs.JobFailedError`.
    """
    layout = Layout(config)
    # Two would write a batch into the same folders, and remove each other's files.
    with alone(layout.lock, f"runs the pipeline in {layout.directory}"):
        _create_bronze(config, layout)
        journal = Journal(layout, looks_of(config, layout))
        name = f"deedbook pipeline {config.name}"
        with (
            session(name, layout.spark_log, master, {**SETTINGS, **(settings or {})}) as spark,
            journal.running(),
        ):
            return _rounds(spark, config, layout, journal, Quarantine(layout), once, tell)


def _rounds(
    spark: SparkSession,
    config: Config,
    layout: Layout,
    journal: Journal,
    aside: Quarantine,
    once: bool,
    tell: Callable[[Round], object] | None,
) -> Round:
    failures = 0
    warned: set[str] = set()
    while True:
        begun = time.monotonic()
        try:
            done = _round(spark, config, layout, journal, warned)
            if bad := aside.new():
                done = replace(done, quarantined=bad)
        except Exception as error:
            cleared = clear(error)
            failures += 1
            if failures == FAILURES_MAX or not _is_tried_again(error):
                raise cleared from error
            _log.warning("pipeline %s: %s; trying again", config.name, cleared)
        else:
            failures = 0
            if tell is not None:
                tell(done)
            if once:
                return done
        time.sleep(max(0.0, begun + config.trigger_seconds - time.monotonic()))


def _create_bronze(config: Config, layout: Layout) -> None:
    """Make the logs: the stream of silver reads all of them from its first batch on."""
    for source in config.sources:
        path = layout.bronze(source.name)
        # A run that was killed here left a directory, or also settings.
        if not by_name(source.bronze).is_there(str(path)):
            path.parent.mkdir(parents=True, exist_ok=True)
            SINKS[source.bronze].open(path, "a", parse({}, None)).close()


def _round(
    spark: SparkSession, config: Config, layout: Layout, journal: Journal, warned: set[str]
) -> Round:
    """``warned`` has the names of the sources that a warning of this run named."""
    begun = time.monotonic()
    with ThreadPoolExecutor(len(config.sources), "deedbook-source") as pool:
        started: dict[str, Future[int]] = {}
        try:
            for source in config.sources:
                started[source.name] = pool.submit(
                    _take, spark, config, source, layout, journal, warned
                )
            done, _ = wait(started.values(), return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
            rows = {name: future.result() for name, future in started.items()}
        except BaseException as error:
            if not _is_tried_again(error):  # the others may have hours to read
                _stop(spark, started.values())
            raise
    rows["silver"] = refine(spark, config, layout, journal)
    totals = Gold(config, layout, layout.work).write_totals(spark)
    return Round(rows, totals, round(time.monotonic() - begun, 3))


def _is_tried_again(error: BaseException) -> bool:
    """Whether Spark failed. Any other error ends the run, as Ctrl-C and SIGTERM do."""
    return isinstance(error, Exception) and isinstance(clear(error), JobFailedError)


def _stop(spark: SparkSession, running: Iterable[Future[int]]) -> None:
    """End the streams of all sources, also those that have not begun yet."""
    while not all(one.done() for one in running):
        with suppress(Exception):  # the JVM may have ended
            for query in spark.streams.active:
                query.stop()
            spark.sparkContext.cancelAllJobs()
        wait(running, timeout=_STOP_SECONDS)


def _take(
    spark: SparkSession,
    config: Config,
    source: Source,
    layout: Layout,
    journal: Journal,
    warned: set[str],
) -> int:
    """Read what is new at a source into its log; returns the rows. A source may be yet to come.

    Raises `LostRecordsError` for a log that was read and is gone.
    """
    if not _has_come(source):
        _check_never_read(source, layout, warned)
        return 0
    options: dict[str, Any] = {
        "checkpoint": layout.checkpoint(source.name),
        "batch_bytes": config.batch_bytes,
        "on_batch": partial(journal.batch, source.name),
    }
    bronze = layout.bronze(source.name)
    aside = layout.quarantine(source.name)
    if source.bronze == "nostr":
        check: Any = source.check
        return import_events(spark, source.path, bronze, check=check, aside=aside, **options).lines
    if source.kind == "lines":
        options["aside"] = aside
    else:
        options.update(consumer=source.consumer, fail_on_data_loss=not source.goes_on)
    return ingest(spark, source.path, bronze, kind=source.kind, **options).rows


def _check_never_read(source: Source, layout: Layout, warned: set[str]) -> None:
    """Files of lines may be taken away when they are read. A log may have had more."""
    path = layout.checkpoint(source.name)
    last = Checkpoint(str(source.path), source.name, path).begun
    if source.kind == "lines" or last is None:
        return
    text = (
        f"{source.path}: the log of source {source.name} is not there any more; the checkpoint"
        f" {path} has read batches 0 to {last} of it, and what came after them is not known"
    )
    if not source.goes_on:
        raise LostRecordsError(text)
    if source.name not in warned:
        warned.add(source.name)
        _log.warning("%s", text)


def _has_come(source: Source) -> bool:
    """Whether there is anything to read.

    What an application leaves that is killed while it makes its log is no log yet.
    """
    path = source.path
    if source.kind == "lines":
        return path.is_file() or (path.is_dir() and any(path.iterdir()))
    if not path.exists():  # else it would be looked for as a glob
        return False
    try:
        detect_logs({"path": str(path)}, parse({}, scope="stream"))
    except MissingError:
        return False
    return True
