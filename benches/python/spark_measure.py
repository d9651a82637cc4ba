"""Shared by the benchmarks of Spark: a session, CPU time of processes, medians, table rows."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

# tests/chaos makes the events and the clusters.
sys.path.insert(0, str(Path(__file__).absolute().parents[2] / "tests"))

CORES = 2
PAYLOAD_BYTES = 200
BATCH_ROWS = 200_000
"""Rows of a stream's batch."""


@dataclass(frozen=True)
class Sizes:
    """The sizes of a run."""

    events: int
    """Events of 200 bytes in most logs."""
    rounds: int
    """Rounds for the medians, after one round that warms up."""
    results: Path | None = None
    """The directory for pictures."""


@dataclass(frozen=True)
class Spent:
    """Seconds of one piece of work."""

    wall: float
    python: float | None = None
    """CPU of Spark's Python workers."""
    jvm: float | None = None
    """CPU of the JVM, here both driver and executor."""

    @property
    def cpu(self) -> float:
        """CPU of both together."""
        return (self.python or 0.0) + (self.jvm or 0.0)


@dataclass
class Row:
    """A row of the table: the measurements by the name of each side, and the required ratio."""

    what: str
    sides: Mapping[str, Spent]
    """Our side, then the peer."""
    unit: str
    """Unit of the ratio: rows a second, wall, CPU, Python's CPU."""
    ratio: float
    asked: float | None = None
    at_most: bool = False
    """If false, ``asked`` is the minimum."""
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def is_met(self) -> bool | None:
        """Whether the ratio is as required; None without a requirement."""
        if self.asked is None:
            return None
        shown = round(self.ratio, 2)
        return shown <= self.asked if self.at_most else shown >= self.asked

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON; seconds with three digits."""
        found = asdict(self)
        found["ratio"] = round(self.ratio, 3)
        found["met"] = self.is_met
        for side in found["sides"].values():
            for name, value in side.items():
                side[name] = None if value is None else round(value, 3)
        return found


def rate(what: str, ours: str, peer: str, found: Mapping[str, Spent], asked: float | None) -> Row:
    """A row of rows a second, at least ``asked`` times the peer's."""
    sides = {name: found[name] for name in (ours, peer)}
    return Row(what, sides, "rows a second", found[peer].wall / found[ours].wall, asked)


def cost(
    what: str, ours: str, peer: str, found: Mapping[str, Spent], unit: str, asked: float
) -> Row:
    """A row of costs, at most ``asked`` times the peer's."""
    values = {
        name: {"wall": spent.wall, "CPU": spent.cpu, "Python's CPU": spent.python or 0.0}[unit]
        for name, spent in found.items()
    }
    sides = {name: found[name] for name in (ours, peer)}
    return Row(what, sides, unit, values[ours] / values[peer], asked, at_most=True)


def session(master: str = f"local[{CORES}]", **settings: str) -> Any:
    """A session without noise. Setting names have ``_`` in place of ``.``."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    ours = {
        "spark_ui_enabled": "false",
        "spark_ui_showConsoleProgress": "false",
        "spark_python_unix_domain_socket_enabled": "true",
    }
    for name, value in {**ours, **settings}.items():
        builder = builder.config(name.replace("_", "."), value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


def cpu_seconds(root: int) -> dict[str, float]:
    """CPU of the Python workers and of the JVMs below a process, reaped children included."""
    parents, spent, names = {}, {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal():
            continue
        try:
            name, _, fields = (entry / "stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        values = fields.split()
        parents[int(entry.name)] = int(values[1])
        spent[int(entry.name)] = sum(map(int, values[11:15])) / os.sysconf("SC_CLK_TCK")
        names[int(entry.name)] = name
    total = {"python": 0.0, "jvm": 0.0}
    for process in parents:
        above = process
        while above in parents and above != root:
            above = parents[above]
        if above == root and process != root:
            total["jvm" if names[process] == "java" else "python"] += spent[process]
    return total


def spend(work: Callable[[], object], check: Callable[[Any], object] | None = None) -> Spent:
    """Do the work once, then check its result."""
    before, begun = cpu_seconds(os.getpid()), time.perf_counter()
    done = work()
    wall, after = time.perf_counter() - begun, cpu_seconds(os.getpid())
    if check is not None:
        check(done)
    return Spent(wall, after["python"] - before["python"], after["jvm"] - before["jvm"])


def median(runs: Iterable[Spent]) -> Spent:
    """The median of each value separately."""
    values = zip(*((one.wall, one.python or 0.0, one.jvm or 0.0) for one in runs), strict=True)
    return Spent(*(statistics.median(column) for column in values))


def medians(
    measured: Mapping[str, Callable[[], object]],
    rounds: int,
    before: Callable[[], object] = lambda: None,
    checks: Mapping[str, Callable[[Any], object]] | None = None,
) -> dict[str, Spent]:
    """Medians of all work, in turns; the first round warms up. The times exclude ``before`` and the
    ``checks`` of the results, which have the names of the work."""
    runs: dict[str, list[Spent]] = {name: [] for name in measured}
    for _ in range(rounds + 1):
        for name, work in measured.items():
            before()
            runs[name].append(spend(work, (checks or {}).get(name)))
    return {name: median(all_[1:]) for name, all_ in runs.items()}


def is_verified(done: Any) -> None:
    """For the job verify: there are logs, and all passed the check."""
    assert done and all(one.ok for one in done), done


def has_rows(rows: int) -> Callable[[Any], None]:
    """For the jobs ingest and export: they read ``rows`` rows."""

    def check(done: Any) -> None:
        assert done.rows == rows, done

    return check


def warm(path: Path) -> None:
    """Read the files below a path, so that no run waits for the disk longer than another."""
    for file in sorted(path.rglob("*")):
        if file.is_file():
            with file.open("rb", buffering=0) as data:
                while data.read(1 << 24):
                    pass


def payloads(count: int) -> Iterator[bytes]:
    """Payloads of 200 bytes, all different, because Parquet stores equal values once."""
    return (b"%0*d" % (PAYLOAD_BYTES, number) for number in range(count))


def book(path: Path, events: int) -> str:
    """Make a book of ``events`` events of 200 bytes."""
    from deedbook import Book

    with Book.create(path, durability="manual") as made:
        made.append_many(payloads(events))
        made.sync()
    return str(path)


def wal(path: Path, records: int, segment_bytes: int) -> str:
    """Make a WAL of ``records`` records of 200 bytes."""
    from deedbook import Wal

    with Wal.create(path, segment_bytes=segment_bytes, durability="manual") as made:
        made.append_many(payloads(records))
        made.sync()
    return str(path)


def read_all(frame: Any) -> None:
    """Read every column of every row of a DataFrame, and discard them."""
    frame.write.format("noop").mode("append").save()


def deedbook(spark: Any, path: str, **options: object) -> Any:
    return spark.read.format("deedbook").options(**options).load(path)
