"""The counts of gold, batch by batch: which events are late, and what moves the watermark."""

import json
import os
import sys
from collections import Counter
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Final

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")
if sys.version_info < (3, 11):
    pytest.importorskip("tomli", reason="tomli is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from deedbook import ContiguityError, MissingError
from deedbook._durable import store_json
from deedbook.pipeline import silver
from deedbook.pipeline.config import Config, load
from deedbook.pipeline.gathered import rows_of
from deedbook.pipeline.gold import Gold
from deedbook.pipeline.late import late_by_batch
from deedbook.pipeline.layout import Layout
from deedbook.pipeline.silver import EVENT_COLUMNS

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
    count(spark, config, 0, T, 4_000_000_000)
    count(spark, config, 1, T - HOUR, T - HOUR - 1)
    found = totals(spark, config)
    assert (found["events"], found["late"]) == (4, 1)
    assert datetime.fromisoformat(found["watermark"]).timestamp() == T - HOUR


def test_another_lateness_counts_from_the_next_batch_on(spark: Any, config: Config) -> None:
    events, windows = Layout(config).silver("parquet"), Layout(config).windows
    events.mkdir(parents=True)
    for number, hours in enumerate((1, 1, 2, 2)):
        changed = replace(config, lateness_seconds=hours * HOUR)
        times = (T, T - 90 * 60)
        count(spark, changed, number, *times)
        if number == 2:  # it is repeated after a kill, and the file was changed meanwhile
            count(spark, config, number, *times)
        added(events, number, T + HOUR, *times)
        lateness = json.loads(Layout(config).state.read_text())["lateness"]
    assert lateness == [[0, HOUR], [2, 2 * HOUR]]
    late: Counter[int] = Counter()
    for row in rows_of(windows):
        late[row["batch"]] += row["late"]
    assert +late == Counter({1: 1})
    due = late_by_batch(events, "parquet", windows, lateness)
    assert due == {0: range(1), 1: range(1, 2), 2: range(1), 3: range(1)}


def test_totals_are_summed_up_where_there_is_anything_new(spark: Any, config: Config) -> None:
    count(spark, config, 0, T)
    first = totals(spark, config)
    assert totals(None, config) == first  # without Spark
    count(spark, config, 1, T)
    assert totals(spark, config)["events"] == 2
    longer = replace(config, lateness_seconds=2 * HOUR)
    watermark = datetime.fromisoformat(totals(spark, longer)["watermark"])
    assert watermark.timestamp() == T - 2 * HOUR


def test_a_lost_note_of_the_newest_event_is_refused(spark: Any, config: Config) -> None:
    count(spark, config, 0, T)
    Layout(config).state.unlink()
    with pytest.raises(MissingError, match=r"windows has batches 0 to 0, .*state\.json"):
        count(spark, config, 1, T)


def test_a_table_of_gold_that_is_gone_is_refused(
    spark: Any, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = Layout(config)
    checkpoint = layout.checkpoint("silver")
    store_json(checkpoint / "metadata", {"id": QUERY})
    for folder in ("offsets", "commits"):
        store_json(checkpoint / folder / "0", {})
    for path in (layout.silver("parquet"), layout.quarantine("silver")):
        store_json(path / "_deedbook" / "silver.json", {"query": QUERY, "batch": 0})
    count(spark, config, 0, T)

    def reached(*_: object) -> None:
        raise LookupError

    monkeypatch.setattr(silver, "_events", reached)
    with pytest.raises(LookupError):
        silver.refine(spark, config, layout, None)
    for gone in (layout.windows, layout.authors):
        kept = gone.rename(gone.with_name("kept"))
        with pytest.raises(ContiguityError, match=rf"{gone.name} has none of this source"):
            silver.refine(spark, config, layout, None)
        kept.rename(gone)


# -- the check's own count ------------------------------------------------------------------------


def added(folder: Path, batch: int, written: int, *seconds: int) -> None:
    """A file of a table that a batch added at a time."""
    times = pa.array(seconds, pa.timestamp("s", "UTC"))
    folder.mkdir(exist_ok=True)
    file = folder / f"part-{QUERY[:8]}-{batch:06}-0000.parquet"
    pq.write_table(pa.table({"created_at": times}), file)
    os.utime(file, (written, written))


def test_the_check_counts_late_events_by_the_batches_of_silver(tmp_path: Path) -> None:
    events, windows = tmp_path / "silver", tmp_path / "windows"
    now = T + 2 * HOUR
    soon = now + 60  # before the batch is counted or after it, nobody knows
    added(events, 0, now, T, T - 5 * HOUR, T + 9 * HOUR)
    added(windows, 0, now + 100)
    added(events, 1, now + 200, T - HOUR - 1, T - HOUR, T + HOUR)
    added(windows, 1, now + 300)
    added(events, 2, now + 400, T - 1, T, soon + 2 * HOUR)
    assert late_by_batch(events, "parquet", windows, [(0, HOUR)]) == {
        0: range(1),
        1: range(1, 2),
        2: range(1, 2),
    }
    added(events, 0, now, T, T - 5 * HOUR, soon)
    assert late_by_batch(events, "parquet", windows, [(0, HOUR)]) == {
        0: range(1),
        1: range(1, 4),
        2: range(1, 3),
    }


def test_the_check_does_not_guess_the_batch_of_a_file_of_another_program(tmp_path: Path) -> None:
    added(tmp_path / "silver", 0, T, T)
    (tmp_path / "silver" / "rewritten.parquet").write_bytes(
        next((tmp_path / "silver").iterdir()).read_bytes()
    )
    with pytest.raises(LookupError, match=r"rewritten.parquet is not named by its batch"):
        late_by_batch(tmp_path / "silver", "parquet", tmp_path / "windows", [(0, HOUR)])
    (tmp_path / "silver" / "rewritten.parquet").unlink()
    with pytest.raises(LookupError, match=r"no lateness is noted for batch 0"):
        late_by_batch(tmp_path / "silver", "parquet", tmp_path / "windows", [(1, HOUR)])
