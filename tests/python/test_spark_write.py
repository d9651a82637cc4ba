"""Writing through Spark: every row once, in order, whatever is repeated, refused or killed."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from spark_cluster import local_session

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from pyspark.errors import PySparkException, StreamingQueryException

from deedbook import Book, Log, Wal
from deedbook import open as open_log

pytestmark = [pytest.mark.spark, pytest.mark.promise("spark-repeat", "spark-executor-killed")]


@pytest.fixture(scope="module")
def spark() -> Any:
    return local_session()


@pytest.fixture(params=["book", "wal"])
def format(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def frame(spark: Any, count: int, parts: int = 4, start: int = 0) -> Any:
    rows = spark.range(start, start + count, 1, parts)
    return rows.selectExpr("cast(concat('record ', id) as binary) as payload")


def expected(count: int, start: int = 0) -> list[bytes]:
    return [b"record %d" % number for number in range(start, start + count)]


def payloads(log: Path) -> list[bytes]:
    with open_log(log) as opened:
        assert isinstance(opened, Log)
        return list(opened.payloads())


def write(df: Any, at: Path, mode: str = "append", **options: Any) -> None:
    df.write.format("deedbook").mode(mode).options(**options).save(str(at))


def test_rows_are_appended_in_the_order_of_the_dataframe(
    spark: Any, tmp_path: Path, format: str
) -> None:
    log = tmp_path / "log"
    write(frame(spark, 1000, parts=7), log, log=format)
    assert payloads(log) == expected(1000)
    write(frame(spark, 10, start=1000), log)  # the format is found
    assert payloads(log) == expected(1010)
    assert list((log / ".deedbook" / "staged").iterdir()) == []
    back = spark.read.format("deedbook").load(str(log))
    assert back.count() == 1010


def test_rows_that_were_read_are_written_to_another_log(spark: Any, tmp_path: Path) -> None:
    with Book.create(tmp_path / "from") as book:
        book.append_many([b"x%d" % i for i in range(300)], mugs=range(300))
    events = spark.read.format("deedbook").option("minPartitions", 3).load(str(tmp_path / "from"))
    write(events, tmp_path / "to", log="book")
    with Book.open(tmp_path / "from") as one, Book.open(tmp_path / "to") as other:
        assert list(one) == list(other)


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [
        ("id + 1", None),
        ("id + 2", "begins with deed 2, and would get 1"),
        ("id * 2 + 1", r"column event: \d+ after \d+ in one partition"),
    ],
)
def test_event_numbers_are_checked(
    spark: Any, tmp_path: Path, rows: str, wanted: str | None
) -> None:
    df = spark.range(0, 20, 1, 3).selectExpr(f"{rows} as event", "cast(id as string) as jam")
    if wanted is None:
        write(df, tmp_path / "log", log="book")
        assert len(payloads(tmp_path / "log")) == 20
        return
    with pytest.raises(PySparkException, match=wanted):
        write(df, tmp_path / "log", log="book")
    assert payloads(tmp_path / "log") == []


def test_a_repeated_write_appends_nothing(spark: Any, tmp_path: Path, format: str) -> None:
    log = tmp_path / "log"
    for _ in range(2):
        write(frame(spark, 50), log, log=format, txnAppId="load", txnVersion=3)
    assert payloads(log) == expected(50)
    write(frame(spark, 5, start=50), log, txnAppId="load", txnVersion=9)
    assert payloads(log) == expected(55)
    with open_log(log) as opened:
        assert [of.to_dict() for of in opened.transactions.committed()] == [
            {"app": "load", "version": 9, "query": None}
        ]


def test_a_write_without_rows_is_one(spark: Any, tmp_path: Path) -> None:
    write(frame(spark, 0), tmp_path / "log", log="book", txnAppId="a", txnVersion=1)
    assert payloads(tmp_path / "log") == []


@pytest.mark.parametrize(
    ("columns", "options", "wanted"),
    [
        ("id", {}, "column id: a book does not take it"),
        ("1 as jam", {}, "column jam is int, must be binary or string"),
        ("'a' as jam, 'b' as payload", {}, "columns jam and payload are both the jam"),
        ("1 as mug", {}, "no column jam or payload or value among mug"),
        ("'a' as jam", {"txnVersion": "1"}, "txnAppId and txnVersion go together"),
        ("'a' as jam", {"txnAppId": "a b", "txnVersion": "1"}, "none of them white space"),
        ("'a' as jam", {"lockTimout": "1"}, "unknown option locktimout .did you mean lockTimeout"),
        ("'a' as jam", {"log": "wal"}, "wal is to be written, at .* lies a book"),
        ("cast(null as string) as jam", {}, "jam is null in row 0"),
    ],
)
def test_what_does_not_fit_is_refused(
    spark: Any, tmp_path: Path, columns: str, options: dict[str, str], wanted: str
) -> None:
    Book.create(tmp_path / "log").close()
    with pytest.raises(PySparkException, match=wanted):
        write(spark.range(1).selectExpr(*columns.split(", ")), tmp_path / "log", **options)
    assert payloads(tmp_path / "log") == []


def test_modes_that_a_log_cannot_have_are_refused(spark: Any, tmp_path: Path) -> None:
    Book.create(tmp_path / "log").close()
    with pytest.raises(PySparkException, match="a log is only appended to"):
        write(frame(spark, 1), tmp_path / "log", mode="overwrite")
    with pytest.raises(PySparkException, match="option log says which to create"):
        write(frame(spark, 1), tmp_path / "none")
    with pytest.raises(PySparkException, match="option path is missing"):
        frame(spark, 1).write.format("deedbook").mode("append").save()
    with pytest.raises(PySparkException, match="option path is missing"):
        spark.sql("CREATE TABLE t USING deedbook AS SELECT 'a' AS jam")
    spark.sql("DROP TABLE IF EXISTS t")


def test_insert_into_a_view(spark: Any, tmp_path: Path, format: str) -> None:
    log = tmp_path / "log"
    write(frame(spark, 3), log, log=format)
    column = "jam" if format == "book" else "payload"
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW events USING deedbook"
        f" OPTIONS (path '{log}', columns '{column}', txnAppId 'sql', txnVersion '1')"
    )
    for _ in range(2):
        spark.sql("INSERT INTO events SELECT cast('from SQL' AS binary)")
    assert payloads(log) == [*expected(3), b"from SQL"]


def test_a_commit_waits_for_another_writer(spark: Any, tmp_path: Path, format: str) -> None:
    log = tmp_path / "log"
    write(frame(spark, 1), log, log=format)
    other = open_log(log, "a")
    with pytest.raises(PySparkException, match="as option lockTimeout says"):
        write(frame(spark, 1, start=1), log, lockTimeout="100ms")
    assert payloads(log) == expected(1)
    threading.Timer(2, other.close).start()
    write(frame(spark, 1, start=1), log, lockTimeout="1m")
    assert payloads(log) == expected(2)


def test_a_task_that_fails_leaves_nothing(spark: Any, tmp_path: Path, format: str) -> None:
    log = tmp_path / "log"
    write(frame(spark, 2), log, log=format)
    wrong = spark.range(0, 400, 1, 4).selectExpr(
        "if(id = 399, raise_error('the last row'), cast(id as string)) as payload"
    )
    with pytest.raises(PySparkException, match="the last row"):
        write(wrong, log)
    assert payloads(log) == expected(2)
    # Tasks that were still running are dead by the time of the next commit, or their job is alive
    # and their files wait for it to end.
    with open_log(log) as opened:
        for job in opened.transactions.staged():
            assert opened.transactions.discard(job.job)


class Stream:
    """A query from a directory of text files into a log."""

    def __init__(self, spark: Any, tmp_path: Path, at: Path, **options: Any) -> None:
        self._spark, self._log, self._options = spark, at, options
        self._input, self.checkpoint = tmp_path / "input", tmp_path / "checkpoint"
        self._input.mkdir(exist_ok=True)

    def add(self, name: str, lines: list[str]) -> None:
        hidden = self._input / f".{name}"
        hidden.write_text("\n".join(lines), encoding="utf-8")
        hidden.rename(self._input / name)

    def run(self, output_mode: str = "append") -> None:
        lines = self._spark.readStream.format("text").option("maxFilesPerTrigger", 1)
        writer = lines.load(str(self._input)).writeStream.format("deedbook")
        writer = writer.options(path=str(self._log), **self._options).outputMode(output_mode)
        writer = writer.option("checkpointLocation", str(self.checkpoint))
        query = writer.trigger(availableNow=True).start()
        try:
            query.awaitTermination(120)
            if query.exception() is not None:
                raise query.exception()
        finally:
            query.stop()


def test_a_stream_writes_each_batch_once(spark: Any, tmp_path: Path, format: str) -> None:
    log = tmp_path / "log"
    stream = Stream(spark, tmp_path, log, log=format)
    stream.add("1", ["a", "b"])
    stream.run()
    stream.add("2", ["c"])
    stream.add("3", [])  # a batch without rows is a batch
    stream.add("4", ["d", "e"])
    stream.run()
    assert payloads(log) == [b"a", b"b", b"c", b"d", b"e"]
    # Spark repeats a batch whose end it has not noted.
    commits = sorted(
        (stream.checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name)
    )
    last = commits[-1]
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    stream.run()
    assert payloads(log) == [b"a", b"b", b"c", b"d", b"e"]
    query = json.loads((stream.checkpoint / "metadata").read_text())["id"]
    with open_log(log) as opened:
        assert [of.to_dict() for of in opened.transactions.committed()] == [
            {"app": query, "version": int(last.name), "query": query}
        ]
        assert opened.transactions.staged() == []


# What is noted of transactions is the core's, and the same for all formats (tests/transactions).
@pytest.mark.parametrize("format", ["book"], indirect=True)
def test_a_new_checkpoint_under_the_same_application_is_refused(
    spark: Any, tmp_path: Path, format: str
) -> None:
    log = tmp_path / "log"
    first, second = tmp_path / "first", tmp_path / "second"
    for place in (first, second):
        place.mkdir()
    stream = Stream(spark, first, log, log=format, txnAppId="mine")
    stream.add("1", ["a"])
    stream.run()
    again = Stream(spark, second, log, txnAppId="mine")
    again.add("1", ["a"])
    with pytest.raises(StreamingQueryException, match="give another txnAppId"):
        again.run()
    assert payloads(log) == [b"a"]


@pytest.mark.parametrize("format", ["wal"], indirect=True)
def test_a_log_without_the_record_of_transactions_refuses_later_batches(
    spark: Any, tmp_path: Path, format: str
) -> None:
    log = tmp_path / "log"
    stream = Stream(spark, tmp_path, log, log=format)
    stream.add("1", ["a"])
    stream.run()
    (log / ".deedbook" / "transactions").unlink()
    stream.add("2", ["b"])
    with pytest.raises(StreamingQueryException, match="batches 0 to 0 are missing"):
        stream.run()
    assert payloads(log) == [b"a"]


def test_other_output_modes_are_refused(spark: Any, tmp_path: Path) -> None:
    Book.create(tmp_path / "log").close()
    (tmp_path / "input").mkdir()
    (tmp_path / "input" / "1").write_text("a\nb\n")
    lines = spark.readStream.format("text").load(str(tmp_path / "input"))
    rows = lines.groupBy("value").count().selectExpr("value as payload")
    modes = {"complete": "a log is only appended to", "update": "does not support Update mode"}
    for mode, wanted in modes.items():
        query = None
        with pytest.raises((PySparkException, StreamingQueryException), match=wanted):
            writer = rows.writeStream.format("deedbook").outputMode(mode)
            writer = writer.option("checkpointLocation", str(tmp_path / mode))
            query = writer.start(str(tmp_path / "log"))
            query.processAllAvailable()
        if query is not None:
            query.stop()
    assert payloads(tmp_path / "log") == []


def test_segments_of_a_new_wal_have_the_size_asked_for(spark: Any, tmp_path: Path) -> None:
    write(frame(spark, 1000), tmp_path / "log", log="wal", segmentSize="4k")
    with Wal.open(tmp_path / "log") as wal:
        assert wal.segment_bytes == 4096
    assert payloads(tmp_path / "log") == expected(1000)
