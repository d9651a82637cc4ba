"""The programs of examples/python that use Spark, in the session of the tests."""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from deedbook import Wal
from places import EXAMPLES

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(not EXAMPLES.exists(), reason="examples are not in this checkout"),
]


@pytest.fixture(autouse=True)
def examples_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(EXAMPLES), *sys.path])


def append(log: Path, *records: bytes) -> None:
    with Wal.open(log, "a") as wal:
        wal.append_many(records)


def order(number: int, amount: int) -> bytes:
    text = {"id": number, "day": f"2026-11-{1 + number % 2:02}", "amount": amount}
    return json.dumps(text).encode()


def test_revenue_example_reports_and_omits_bad_orders(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example = importlib.import_module("spark_read")
    log, table = tmp_path / "orders", str(tmp_path / "revenue")
    append(log, *(order(number, 10) for number in range(4)))
    assert example.run(spark, str(log), table) == 0
    append(log, b"no order", order(4, 5))
    assert example.run(spark, str(log), table) == 1
    found = spark.read.parquet(table).orderBy("day").collect()
    assert [(str(row.day), row.amount, row.orders) for row in found] == [
        ("2026-11-01", 25, 3),
        ("2026-11-02", 20, 2),
    ]
    assert "'no order'" in capsys.readouterr().err


def test_restarted_stream_example_copies_large_orders_once(spark: Any, tmp_path: Path) -> None:
    example = importlib.import_module("spark_stream")
    log, target, checkpoint = (str(tmp_path / name) for name in ("orders", "large", "checkpoint"))
    wanted = []
    for round_ in range(3):
        orders = [order(number, amount) for number, amount in enumerate((999, 1000, 1001 + round_))]
        append(Path(log), *orders)
        wanted.append(orders[2])
        query = example.start(spark, log, target, checkpoint, above=1000, once=True)
        query.awaitTermination()
    with Wal.open(target) as large:
        assert list(large.payloads()) == wanted
