"""The two forms of the pipeline in examples/pipeline: the same rows, each once, on real Spark."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from deedbook import Book, Event, EventStore, Wal
from places import ROOT
from spark_session import require_spark

pytestmark = pytest.mark.spark

EXAMPLES = ROOT / "examples" / "pipeline"
HOUR = "2026-11-01T{:02}:00:00Z"
SHOP = {"name": "shop", "path": "in"}
TILL = {"name": "till", "path": "till.wal", "kind": "wal", "bronze": "wal"}


def order(number: int) -> bytes:
    found = {"order": number, "item": "abc"[number % 3], "amount": number / 4}
    return json.dumps({**found, "at": HOUR.format(number // 100)}).encode()


BAD = {
    b"{half": "not JSON",
    b"\xff\xfe{}": "not UTF-8",
    b"[1]": "not an object",
    b'{"item":"a"}': "no order",
    b'{"order":7}': "no time",
    b'{"order":"x","item":5,"at":"never"}': "not of the schema: order, at",
}


class Place:
    def __init__(self, folder: Path, example: str = "orders", **changes: Any) -> None:
        shutil.copytree(EXAMPLES / example, folder)
        self.folder = folder
        settings = folder / "pipeline.json"
        found = json.loads(settings.read_text()) | changes
        settings.write_text(json.dumps({k: v for k, v in found.items() if v is not None}))
        (folder / "in").mkdir()

    def file(self, name: str, lines: Iterable[bytes]) -> None:
        new = self.folder / f".{name}"
        new.write_bytes(b"".join(line + b"\n" for line in lines))
        new.rename(self.folder / "in" / name)

    def till(self, lines: Iterable[bytes]) -> None:
        with Wal.open(self.folder / "till.wal", "a", durability="always") as wal:
            wal.append_many(lines)

    def streaming(self, spark: Any) -> dict[str, int]:
        from pipeline.streaming.pipeline import Streaming, load, once

        return once(Streaming(spark, load(self.folder, spark)))

    def declarative(self) -> None:
        make = [sys.executable, str(EXAMPLES / "declarative" / "project.py"), str(self.folder)]
        subprocess.run(make, check=True, capture_output=True)
        import pyspark

        home = Path(pyspark.__file__).parent
        own = {
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_CONF_DIR": "conf",
        }
        ran = subprocess.run(
            [str(home / "bin" / "spark-pipelines"), "run"],
            cwd=self.folder / "declarative",
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            timeout=400,
        )
        assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]

    def rows(self, spark: Any, form: str, table: str) -> list[tuple[Any, ...]]:
        below = {"streaming": "streaming", "declarative": "declarative/spark-warehouse"}[form]
        is_gold = form == "streaming" and table not in ("silver", "quarantine")
        path = self.folder / below / ("gold" if is_gold else "") / table
        found = spark.read.parquet(f"file://{path}").collect()
        return sorted(found, key=repr)

    def bronze(self, form: str, name: str) -> list[bytes]:
        log = self.folder / form / "bronze" / name
        opened: Any = Wal.open(log) if name == "till" else Book.open(log)
        with opened:
            return list(opened.payloads())


def places(rows: Iterable[Any]) -> set[tuple[str, bytes, str]]:
    at = ((row.source.rsplit("/", 1)[-1], row) for row in rows)
    return {(f"{name}:{row.position}", bytes(row.value), row.reason) for name, row in at}


@pytest.fixture
def shop(tmp_path: Path) -> Place:
    require_spark()
    return Place(tmp_path / "orders")


def test_streaming_takes_every_line_once(spark: Any, shop: Place) -> None:
    shop.file("1.jsonl", [*map(order, range(300)), *BAD, b"", order(5)])
    first = shop.streaming(spark)
    due = {f"1.jsonl:{301 + at}": item for at, item in enumerate(BAD.items())}
    assert places(shop.rows(spark, "streaming", "quarantine")) == {
        (place, value, reason) for place, (value, reason) in due.items()
    }
    assert first == {"bronze/shop": 307, "quarantine": 6, "silver": 300, "gold/by_hour": 3}
    # The last hour is still open: an order within an hour counts.
    assert len(shop.rows(spark, "streaming", "totals")) == 3
    shop.file("2.jsonl", [*map(order, range(290, 500)), b"{"])
    shop.file("3.jsonl", map(order, range(500, 600)))
    second = shop.streaming(spark)
    assert (second["bronze/shop"], second["quarantine"], second["silver"]) == (311, 1, 300)
    assert [row.order for row in sorted(shop.rows(spark, "streaming", "silver"))] == [*range(600)]
    files = [(shop.folder / "in" / f"{n}.jsonl").read_bytes().split(b"\n") for n in (1, 2, 3)]
    lines = [line for file in files for line in file if line]
    assert shop.bronze("streaming", "shop") == lines
    hours = [row for row in shop.rows(spark, "streaming", "by_hour")]
    assert len({(row.hour, row.item) for row in hours}) == len(hours)
    assert sum(row.orders for row in shop.rows(spark, "streaming", "totals")) == 600
    assert shop.streaming(spark) == dict.fromkeys(second, 0)


def test_streaming_waits_for_the_first_line(spark: Any, shop: Place) -> None:
    assert set(shop.streaming(spark).values()) == {0}
    shop.file("1.jsonl", map(order, range(10)))
    assert shop.streaming(spark)["silver"] == 10


@pytest.mark.parametrize(
    ("name", "kind"),
    [("it's", "STRING"), ("a`b", "STRING"), ("", "STRING"), ("a", "struct<it's:bigint>")],
)
def test_a_column_that_would_be_sql_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    from pipeline.streaming.pipeline import load

    place = Place(tmp_path / "orders", columns={name: kind})
    spark: Any = None
    with pytest.raises(ValueError, match="column "):
        load(place.folder, spark)


def test_both_forms_have_the_same_rows(spark: Any, tmp_path: Path) -> None:
    require_spark()
    pytest.importorskip("grpc", reason="grpcio is not installed")
    shop = Place(tmp_path / "orders", sources=[SHOP, TILL])
    shop.file("1.jsonl", [*map(order, range(400)), *BAD, order(5)])
    shop.till([*map(order, range(1000, 1100)), *BAD])
    both = ("streaming", "declarative")
    shop.declarative()
    shop.streaming(spark)
    shop.file("2.jsonl", [*map(order, range(390, 700)), b"{"])
    shop.till([*map(order, range(1090, 1300)), b"{}"])
    shop.declarative()
    shop.streaming(spark)
    for table in ("silver", "quarantine", "by_hour", "totals"):
        one, other = (shop.rows(spark, form, table) for form in both)
        assert one == other, table
    silver = [row.order for row in shop.rows(spark, "declarative", "silver")]
    assert sorted(silver) == [*range(700), *range(1000, 1300)]
    bad = places(shop.rows(spark, "declarative", "quarantine"))
    assert len(bad) == 2 * len(BAD) + 2 and ("2.jsonl:311", b"{", "not JSON") in bad
    with Wal.open(shop.folder / "till.wal") as wal:
        last = [record.lsn for record in wal][-1]
    assert (f"till.wal:{last}", b"{}", "no order") in bad
    for name, lines in (("shop", 718), ("till", 317)):
        one, other = (shop.bronze(form, name) for form in both)
        assert len(one) == lines and sorted(one) == sorted(other)


@pytest.mark.full
def test_declarative_takes_an_event_store(spark: Any, tmp_path: Path) -> None:
    require_spark()
    pytest.importorskip("grpc", reason="grpcio is not installed")
    notes = nostr_pipeline(tmp_path)
    notes.declarative()
    notes.streaming(spark)
    for table in ("silver", "quarantine", "authors"):
        one, other = (notes.rows(spark, form, table) for form in ("streaming", "declarative"))
        assert one == other and (len(one) > 0) == (table != "quarantine")


def nostr_pipeline(folder: Path) -> Place:
    import nostr_events

    notes = Place(folder / "nostr", "nostr")
    with EventStore.open(notes.folder / "notes", "a") as store:
        for number in range(200):
            made = nostr_events.made(f"note {number}", created_at=1_700_000_000 + 60 * number)
            store.append(Event(**made))
    return notes


def test_streaming_takes_an_event_store(spark: Any, tmp_path: Path) -> None:
    require_spark()
    notes = nostr_pipeline(tmp_path)
    rows = notes.streaming(spark)
    assert (rows["bronze/notes"], rows["silver"], rows["quarantine"]) == (200, 200, 0)
    found = {row.id: row for row in notes.rows(spark, "streaming", "silver")}
    with EventStore.open(notes.folder / "notes") as store:
        for event in store:
            row = found.pop(event.id)
            assert (row.pubkey, row.kind, row.content, row.sig, row.created_at) == (
                event.pubkey,
                event.kind,
                event.content,
                event.sig,
                event.created_at,
            )
    assert not found


def test_columns_are_inferred_once_and_kept(spark: Any, tmp_path: Path) -> None:
    require_spark()
    shop = Place(tmp_path / "orders", columns=None, time="CAST(at AS TIMESTAMP)")
    shop.file("1.jsonl", [*map(order, range(100)), b"{half"])
    rows = shop.streaming(spark)
    assert (rows["silver"], rows["quarantine"]) == (100, 1)
    kept = json.loads((shop.folder / "columns.json").read_text())
    assert kept == {"amount": "double", "at": "string", "item": "string", "order": "bigint"}
    # Later lines must fit these columns.
    shop.file("2.jsonl", [order(100), b'{"order":"101"}'])
    rows = shop.streaming(spark)
    assert (rows["silver"], rows["quarantine"]) == (1, 1)


@pytest.mark.parametrize(
    "query",
    [
        *("bronze/shop", "silver"),
        pytest.param("quarantine", marks=pytest.mark.full),
        pytest.param("gold/by_hour", marks=pytest.mark.full),
    ],
)
def test_a_lost_checkpoint_is_refused(spark: Any, shop: Place, query: str) -> None:
    shop.file("1.jsonl", map(order, range(300)))
    shop.file("2.jsonl", [b"{half"])
    shop.streaming(spark)
    before = {name: shop.rows(spark, "streaming", name) for name in ("silver", "quarantine")}
    checkpoint = shop.folder / "streaming" / "checkpoints" / query
    checkpoint.rename(shop.folder / "aside")
    with pytest.raises(Exception, match=r"no checkpoint is at|give another txnAppId"):
        shop.streaming(spark)
    shutil.rmtree(checkpoint, ignore_errors=True)
    (shop.folder / "aside").rename(checkpoint)
    assert shop.streaming(spark) == dict.fromkeys(shop.streaming(spark), 0)
    for name, rows in before.items():
        assert shop.rows(spark, "streaming", name) == rows


@pytest.mark.full
def test_the_command_counts_what_it_put_aside(tmp_path: Path) -> None:
    require_spark()
    shop = Place(tmp_path / "orders")
    shop.file("1.jsonl", [*map(order, range(100)), *BAD])
    command = [sys.executable, str(EXAMPLES / "streaming" / "pipeline.py"), str(shop.folder)]
    command += ["--once", "--master", "local[2]"]
    codes = []
    for _ in range(2):
        ran = subprocess.run(command, capture_output=True, text=True, timeout=300)
        codes.append(ran.returncode)
        counted = json.loads(ran.stdout)["quarantine"]
        said = f"{counted} rows came into the quarantine, {shop.folder}" in ran.stderr
        assert (counted, said) in [(len(BAD), True), (0, False)]
    assert codes == [1, 0]


@pytest.mark.full
def test_declarative_demo_survives_its_kills(tmp_path: Path) -> None:
    require_spark()
    command = [sys.executable, str(ROOT / "examples/demo/declarative.py"), str(tmp_path / "demo")]
    ran = subprocess.run([*command, "--orders", "20000"], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
    report = json.loads((tmp_path / "demo" / "report.json").read_text())
    assert {name: len(part["rows_at_kills"]) for name, part in report.items()} == {
        "orders": 2,
        "events": 1,
    }
