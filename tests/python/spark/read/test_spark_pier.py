"""A pier migrates from LMDB, and Spark reads the pier, as well as the layouts slots and padded."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException

from deedbook import Book, InvalidArgumentError, Pier
from deedbook._cli import main
from deedbook.spark.jobs import ingest, migrate
from logs import append_to
from places import DATA
from spark_session import finish, forget_end, load, tuples, write

PIER = DATA / "lmdb" / "pier-lmdb"

Event = tuple[int, int, bytes]


def golden(name: str, count: int, epoch: int = 0) -> list[Event]:
    lines = (DATA / name / "events.hex").read_text().split()[:count]
    values = [bytes.fromhex(line) for line in lines]
    return [
        (number, int.from_bytes(value[:4], "little", signed=True), value[4:])
        for number, value in enumerate(values, epoch + 1)
    ]


def read(spark: Any, log: Path, **options: Any) -> list[Event]:
    return tuples(load(spark, log, **options))


def stream(spark: Any, log: Path, checkpoint: Path, **options: Any) -> list[Any]:
    rows: list[Any] = []
    frame = spark.readStream.format("deedbook").options(**options).load(str(log))
    finish(
        frame.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect())), checkpoint
    )
    return [tuple(row) for row in rows]


def write_jams(spark: Any, at: Path, jams: list[str], **options: Any) -> None:
    frame = spark.createDataFrame([(jam,) for jam in jams], "jam string")
    write(frame.repartitionByRange(2, "jam"), at, **options)


@pytest.mark.parametrize("layout", ["packed", "slots"])
def test_migrated_pier_verifies_and_is_readable_through_spark(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], layout: str
) -> None:
    source, pier = tmp_path / "zod", tmp_path / "new-zod"
    shutil.copytree(PIER, source)
    wanted = golden("lmdb", 100)
    with pytest.raises(PySparkException, match=r"0i0 holds an epoch in LMDB.*migrate it first"):
        read(spark, source)

    assert main(["migrate", str(source), str(pier), "--layout", layout, "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [(epoch["first"], epoch["last"]) for epoch in report["epochs"]] == [(1, 60), (61, 100)]
    for epoch in (0, 60):
        with Book.open(pier / ".urb" / "log" / f"0i{epoch}") as book:
            assert (book.layout, book.epoch) == (layout, epoch)
    assert read(spark, pier) == wanted
    assert read(spark, pier, start=59, end=63) == wanted[58:62]
    assert stream(spark, pier, tmp_path / "checkpoint") == wanted
    with Pier.open(pier, "a") as opened:
        opened.append(b"event 101", mug=5)
    assert stream(spark, pier, tmp_path / "checkpoint") == [(101, 5, b"event 101")]
    assert read(spark, pier)[100:] == [(101, 5, b"event 101")]


def test_slots_book_is_split_streamed_and_written(spark: Any, tmp_path: Path) -> None:
    log, checkpoint = tmp_path / "log", tmp_path / "checkpoint"
    jams = [b"%d" % number * 30 for number in range(3000)]
    append_to("book", log, jams, mugs=range(3000), layout="slots")
    wanted = [(number + 1, number, jam) for number, jam in enumerate(jams)]
    frame = load(spark, log, minPartitions=3)
    assert frame.rdd.getNumPartitions() >= 3
    assert tuples(frame) == wanted
    assert stream(spark, log, checkpoint) == wanted

    for _ in range(2):  # the second write is a repeat
        write_jams(spark, log, ["a", "b", "c"], txnAppId="load", txnVersion=1)
    added = [(3001, 0, b"a"), (3002, 0, b"b"), (3003, 0, b"c")]
    assert stream(spark, log, checkpoint) == added
    assert read(spark, log) == wanted + added
    with Book.open(log) as book:
        assert (book.layout, book.last) == ("slots", 3003)
    assert Book.verify(log).ok


def test_unwritable_targets_are_refused_before_tasks_run(spark: Any, tmp_path: Path) -> None:
    log, pier = tmp_path / "log", tmp_path / "zod"
    shutil.copytree(DATA / "book" / "specC-3", log)
    with pytest.raises(PySparkException, match="padded, which is only read; 'deedbook convert'"):
        write_jams(spark, log, ["a"])
    assert [file.name for file in log.rglob("*")] == ["book.log"]
    with pytest.raises(PySparkException, match=r"0i0 is in LMDB .*'deedbook migrate'"):
        write_jams(spark, PIER, ["a"])
    Book.migrate_lmdb(PIER, pier)
    with pytest.raises(PySparkException, match=r"wal is to be written, at .* lies a pier"):
        write_jams(spark, pier, ["a"], log="wal")


def test_pier_writes_append_once_across_rolls(spark: Any, tmp_path: Path) -> None:
    pier, wal = tmp_path / "zod", tmp_path / "wal"
    Book.migrate_lmdb(PIER, pier)
    write_jams(spark, pier, ["a"])
    write_jams(spark, pier / ".urb" / "log", ["b"], log="book")

    def roll() -> None:
        with Pier.open(pier, "a") as opened:
            opened.roll()

    def stream() -> None:
        frame = spark.readStream.format("deedbook").load(str(wal)).select("payload")
        writer = frame.writeStream.format("deedbook").option("log", "book")
        finish(writer, tmp_path / "checkpoint", pier)

    for text in ("c", "not again"):
        write_jams(spark, pier, [text], txnAppId="load", txnVersion=1)
        roll() if text == "c" else None
    for number in range(2):
        append_to("wal", wal, [b"streamed %d" % number])
        stream()
        roll()
    forget_end(tmp_path / "checkpoint", 1)
    stream()
    added = [b"a", b"b", b"c", b"streamed 0", b"streamed 1"]
    assert read(spark, pier)[99:] == [
        golden("lmdb", 100)[99],
        *((101 + number, 0, jam) for number, jam in enumerate(added)),
    ]
    with Pier.open(pier) as opened:
        assert [epoch.number for epoch in opened.epochs] == [0, 60, 103, 104, 105]
        assert len(opened.transactions.committed()) == 2
        assert opened.transactions.staged() == []


def test_jobs_append_to_a_pier(spark: Any, tmp_path: Path) -> None:
    pier, other, source = tmp_path / "zod", tmp_path / "nec", tmp_path / "source"
    for each in (pier, other):
        Pier.open(each, "a").close()
    (tmp_path / "in").mkdir()
    for number, format in enumerate((None, "book")):
        (tmp_path / "in" / f"{number}.jsonl").write_text(f"{number}\n")
        report = ingest(spark, tmp_path / "in", pier, format=format)
        assert (report.format, report.appended, report.last_batch) == ("pier", 1, number)
    assert read(spark, pier) == [(1, 0, b"0"), (2, 0, b"1")]
    append_to("book", source, [b"one", b"two"], mugs=[5, 6])
    copied = migrate(spark, source, other)
    assert (copied.format, copied.appended, copied.records) == ("pier", 2, 2)
    assert read(spark, other) == [(1, 5, b"one"), (2, 6, b"two")]
    with pytest.raises(InvalidArgumentError, match="zod holds a pier, not a write-ahead log"):
        ingest(spark, tmp_path / "in", pier, format="wal")
    with pytest.raises(InvalidArgumentError, match="to create one, say its format: book, wal"):
        ingest(spark, tmp_path / "in", tmp_path / "none", format="pier")


def test_large_write_makes_one_epoch_per_task(spark: Any, tmp_path: Path) -> None:
    pier = tmp_path / "zod"
    append_to("pier", pier, [b"before"])
    rows = spark.range(10, 40, numPartitions=3).selectExpr("cast(id AS string) AS payload")
    for _ in range(2):
        write(rows, pier, epochSize="100", txnAppId="load", txnVersion=7)
    with Pier.open(pier) as opened:
        epochs = [(epoch.number, epoch.deeds) for epoch in opened.epochs]
        assert epochs == [(0, 1), (1, 10), (11, 10), (21, 10)]
        assert [one.version for one in opened.transactions.committed()] == [7]
        assert opened.transactions.staged() == []
    events = [b"before", *(b"%d" % number for number in range(10, 40))]
    assert read(spark, pier) == [(number, 0, jam) for number, jam in enumerate(events, 1)]
    # No task has the default size; the write goes to the last epoch.
    write_jams(spark, pier, ["after"], txnAppId="load", txnVersion=8)
    with Pier.open(pier) as opened:
        assert [epoch.deeds for epoch in opened.epochs] == [1, 10, 10, 11]
        assert opened.read(32).jam == b"after"
        assert [one.version for one in opened.transactions.committed()] == [8]
    assert main(["verify", str(pier), "--json"]) == 0
