"""The counts of gold, batch by batch: which events are late, and what moves the watermark."""

from __future__ import annotations

import sys
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")
if sys.version_info < (3, 11):
    pytest.importorskip("tomli", reason="tomli is not installed")

from deedbook.pipeline.config import Config, load
from deedbook.pipeline.gathered import rows_of
from deedbook.pipeline.gold import Gold
from deedbook.pipeline.layout import Layout
from deedbook.pipeline.silver import EVENT_COLUMNS
from spark_cluster import local_session

pytestmark = pytest.mark.spark

QUERY: Final = "0123456789ab"
WINDOW: Final = 600
HOUR: Final = 3600
T: Final = 1_700_000_000
FILE: Final = """
[pipeline]
window = "10m"
lateness = "1h"

[[source]]
name = "a"
log = "a.wal"
"""


@pytest.fixture(scope="module")
def spark() -> Any:
    return local_session()


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Of a pipeline whose directory would be a glob, were it not taken as it is."""
    home = tmp_path / "run [1]"
    home.mkdir()
    (home / "pipeline.toml").write_text(FILE, encoding="utf-8")
    return load(home / "pipeline.toml")


def count(spark: Any, config: Config, number: int, *seconds: int) -> None:
    """Add a batch with events of these times, as silver gives it."""
    layout = Layout(config)
    rows = []
    for at in seconds:
        time = datetime.fromtimestamp(at, timezone.utc)
        id_, author, signature = bytes(32), b"a" * 32, bytes(64)
        rows.append(("a", id_, author, time, 1, [["t", "x"]], "text", signature, time.date()))
    batch = spark.createDataFrame(rows, f"source string, {EVENT_COLUMNS}, day date")
    assert Gold(config, layout, layout.work).add(batch, QUERY, number) == len(seconds)


def totals(spark: Any, config: Config) -> dict[str, Any]:
    layout = Layout(config)
    return Gold(config, layout, layout.work).write_totals(spark)


def test_late_events_are_those_older_than_the_newest_before_their_batch_less_the_lateness(
    spark: Any, config: Config
) -> None:
    """No event of any test was late: a gold that took none for late passed all of them."""
    count(spark, config, 0, T, T - 5 * HOUR)  # before the first batch there is no newest
    late = [T - HOUR - 1, T - 3 * HOUR]
    # What a batch brings moves the watermark for those after it.
    count(spark, config, 1, *late, T - HOUR, T + HOUR)
    late.append(T - 1)
    for _ in range(2):  # it is repeated after a kill
        count(spark, config, 2, T - 1, T)
    found = totals(spark, config)
    assert (found["events"], found["late"]) == (8, len(late))
    assert datetime.fromisoformat(found["watermark"]).timestamp() == T
    by_window: Counter[int] = Counter()
    for row in rows_of(Layout(config).windows):
        by_window[row["window"]] += row["late"]
    assert +by_window == Counter(at // WINDOW * WINDOW for at in late)


def test_a_time_after_now_does_not_move_the_watermark(spark: Any, config: Config) -> None:
    """One event of the year 2096 made all others late that were older than an hour before now."""
    count(spark, config, 0, T, 4_000_000_000)
    count(spark, config, 1, T - HOUR, T - HOUR - 1)
    found = totals(spark, config)
    assert (found["events"], found["late"]) == (4, 1)
    assert datetime.fromisoformat(found["watermark"]).timestamp() == T - HOUR
