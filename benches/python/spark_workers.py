"""The gain of more workers: a standalone cluster of 1, 2, 4 and 8, each with a fifth of a core.

Rows a second against one worker, the share that does not become shorter (fitted: seconds are
``serial + parallel / workers``), and the steps of Spark: before the first stage (planning), between
stages, and after the last stage (commit, checkpoint). The driver has no quota, but shares the
machine. Draws spark-workers.svg.
"""

from __future__ import annotations

import json
import shutil
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from spark_cgroup import Group, groups
from spark_measure import (
    Row,
    Sizes,
    Spent,
    book,
    deedbook,
    has_rows,
    is_verified,
    read_all,
    session,
    warm,
)

from chaos.kills.cluster import standalone_cluster

WORKERS = (1, 2, 4, 8)
QUOTA_CORES = 0.2
READ_TIMES = 4
"""Multiple of the table's events, so that eight workers have enough to do."""
VERIFY_TIMES = 40
SOME_TIMES = 2
WAVES = 4
"""Tasks for each worker."""
ASKED = {"read": 0.75, "verify": 0.75, "write": 0.6}
"""Required share of linear, by eight workers."""
LINEAR_MAX = 1.1
"""Above this, one worker was slower than the work explains, and the ratio means nothing."""
Check = Callable[[Any], object]
Checks = Mapping[str, Check]
"""Checks of the results, by the name of the work; not measured."""


@dataclass(frozen=True)
class Run:
    """Seconds of one run, and of its steps."""

    wall: float
    planning: float
    stages: float
    between: float
    ending: float
    """Seconds after the last stage."""


def stages_since(spark: Any, begun: datetime) -> list[tuple[datetime, datetime]]:
    """Begins and ends of the stages since ``begun``, by Spark's own interface."""
    context = spark.sparkContext
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages?status=complete"
    for _ in range(50):  # the interface lags a little
        with urllib.request.urlopen(url, timeout=120) as answer:
            found = [
                tuple(_time(stage[name]) for name in ("submissionTime", "completionTime"))
                for stage in json.load(answer)
            ]
        new = sorted(one for one in found if one[0] >= begun)
        if new:
            return new
        time.sleep(0.1)
    return []


def _time(text: str) -> datetime:
    return datetime.strptime(text.removesuffix("GMT"), "%Y-%m-%dT%H:%M:%S.%f").replace(
        tzinfo=timezone.utc
    )


def timed(spark: Any, work: Callable[[], object], check: Check | None) -> Run:
    """Run the work once, split the time, and check the result."""
    begun = datetime.now(timezone.utc)
    clock = time.perf_counter()
    done = work()
    found = parted(spark, begun, time.perf_counter() - clock)
    if check is not None:
        check(done)
    return found


def parted(spark: Any, begun: datetime, wall: float) -> Run:
    """The steps of a run that began at ``begun``."""
    # Spark's times have milliseconds.
    stages = stages_since(spark, begun.replace(microsecond=begun.microsecond // 1000 * 1000))
    if not stages:
        return Run(wall, wall, 0.0, 0.0, 0.0)
    busy, end = 0.0, stages[0][0]
    for one, other in stages:  # stages of one job may overlap
        busy += max(0.0, (other - max(one, end)).total_seconds())
        end = max(end, other)
    planning = max(0.0, (stages[0][0] - begun).total_seconds())
    span = (end - stages[0][0]).total_seconds()
    return Run(wall, planning, busy, span - busy, max(0.0, wall - planning - span))


def works(spark: Any, place: Path, workers: int) -> dict[str, tuple[str, Callable[[], object]]]:
    """The measured work and its input, by name. Each function starts without ``out``."""
    from deedbook.spark import jobs

    out = str(place / "out")
    # As many tasks as verify makes.
    parts = {"minPartitions": WAVES * workers}
    return {
        "read": ("book", lambda: read_all(deedbook(spark, str(place / "book"), **parts))),
        "verify": ("large", lambda: jobs.verify(spark, place / "large")),
        "export": ("some", lambda: jobs.export(spark, place / "some", out)),
        "write": (
            "table",
            lambda: (
                spark.read.parquet(str(place / "table"))
                .write.format("deedbook")
                .option("log", "book")
                .mode("append")
                .save(out)
            ),
        ),
    }


def of_workers(
    master: str, place: Path, confined: list[Group], workers: int, rounds: int, checks: Checks
) -> dict[str, list[Run]]:
    """The runs with ``workers`` workers: a warm-up without a quota, then measurements with it."""
    spark = session(
        master,
        spark_cores_max=str(workers),
        spark_executor_cores="1",
        spark_executor_memory="512m",
        spark_default_parallelism=str(2 * workers),
        spark_ui_enabled="true",
        spark_ui_port="0",
    )
    found: dict[str, list[Run]] = {}
    try:
        measured = works(spark, place, workers)
        for number in range(rounds + 1):
            for group in confined:
                group.limit(QUOTA_CORES if number else None)
            for name, (reads, work) in measured.items():
                for made in ("out", "out.jobs"):  # the log or table, and the job's checkpoint
                    shutil.rmtree(place / made, ignore_errors=True)
                warm(place / reads)
                run = timed(spark, work, checks.get(name))
                if number:
                    found.setdefault(name, []).append(run)
    finally:
        for group in confined:
            group.limit(None)
        spark.stop()
    return found


def fit(seconds: Mapping[int, float]) -> tuple[float, float]:
    """Serial and parallel seconds, neither below 0: least squares of the relative error."""
    import numpy as np

    left = np.array([[1.0, 1.0 / workers] for workers in seconds])
    right = np.array(list(seconds.values()))
    (serial, parallel), *_ = np.linalg.lstsq(left / right[:, None], np.ones(len(right)), rcond=None)
    if parallel < 0:  # more workers take longer
        return float((1 / right).sum() / (1 / right**2).sum()), 0.0
    return max(0.0, float(serial)), float(parallel)


def measure(place: Path, sizes: Sizes) -> list[Row]:
    """The rows of the table about workers."""
    book(place / "book", READ_TIMES * sizes.events)
    book(place / "some", SOME_TIMES * sizes.events)
    book(place / "large", VERIFY_TIMES * sizes.events)
    _table(place / "table", SOME_TIMES * sizes.events)
    rounds = max(1, sizes.rounds // 2)
    checks: Checks = {"verify": is_verified, "export": has_rows(SOME_TIMES * sizes.events)}
    runs: dict[str, dict[int, list[Run]]] = {}
    with (
        groups(max(WORKERS)) as confined,
        tempfile.TemporaryDirectory(dir=place) as work,
        standalone_cluster(Path(work), max(WORKERS)) as cluster,
    ):
        for group, pid in zip(confined, cluster.pids, strict=True):
            group.add(pid)
        for workers in WORKERS:
            found = of_workers(cluster.master, place, confined, workers, rounds, checks)
            for name, ones in found.items():
                runs.setdefault(name, {})[workers] = ones
    if sizes.results is not None:
        draw(runs, sizes.results / "spark-workers.svg")
    return [row(name, by_workers) for name, by_workers in runs.items()]


def _table(path: Path, events: int) -> None:
    """A Parquet table of payloads, written with all cores."""
    from spark_write import PAYLOAD

    spark = session()
    rows = spark.range(0, events, 1, 16).selectExpr(PAYLOAD)
    rows.write.option("compression", "none").parquet(str(path))
    spark.stop()


def row(name: str, runs: Mapping[int, list[Run]]) -> Row:
    """The gain of eight workers, and the serial share."""
    seconds = {
        workers: statistics.median(run.wall for run in ones) for workers, ones in runs.items()
    }
    most = max(seconds)
    serial, parallel = fit(seconds)
    parts = {
        part: statistics.median(getattr(run, part) for run in runs[most])
        for part in ("planning", "stages", "between", "ending")
    }
    linear = seconds[1] / seconds[most] / most
    nothing = {"of linear": "says nothing, one worker was slower than the work explains"}
    return Row(
        f"{name}, {most} workers of {QUOTA_CORES} cores",
        {f"{most} workers": Spent(seconds[most]), "one worker": Spent(seconds[1])},
        "of linear",
        linear,
        ASKED.get(name) if linear <= LINEAR_MAX else None,
        facts={
            **(nothing if linear > LINEAR_MAX else {}),
            "rounds": min(len(ones) for ones in runs.values()),
            "seconds by workers": {workers: round(one, 3) for workers, one in seconds.items()},
            "fitted serial seconds": round(serial, 3),
            "fitted parallel seconds": round(parallel, 3),
            f"seconds of {most} workers": {part: round(one, 3) for part, one in parts.items()},
        },
    )


def draw(runs: Mapping[str, Mapping[int, list[Run]]], path: Path) -> None:
    """Rows a second against one worker, as SVG."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    from deedbook._show.style import COLOURS, GREY, INK, STYLE

    style: dict[Any, Any] = {**STYLE, "svg.hashsalt": "deedbook"}
    with plt.rc_context(style):
        figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
        axes.plot(WORKERS, WORKERS, color=GREY, linestyle="--")
        axes.annotate("linear", (6.2, 6.4), color="#6e7781", ha="right")
        for (name, by_workers), colour in zip(runs.items(), COLOURS, strict=False):
            walls = {
                workers: statistics.median(run.wall for run in ones)
                for workers, ones in by_workers.items()
            }
            faster = [walls[1] / walls[workers] for workers in WORKERS]
            axes.plot(WORKERS, faster, color=colour, marker="o", label=name)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.set_xticks(WORKERS, [str(one) for one in WORKERS])
        axes.set_yticks(WORKERS, [str(one) for one in WORKERS])
        axes.set_xlabel(f"workers of {QUOTA_CORES} cores")
        axes.set_ylabel("rows a second, against one worker")
        axes.set_title("What more workers bring", color=INK, fontweight="bold")
        axes.legend(frameon=False, loc="upper left")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
