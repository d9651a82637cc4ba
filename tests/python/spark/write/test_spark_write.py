"""Writing through Spark: every row once, in order, also after repeats, refusals and kills."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException, StreamingQueryException

from deedbook import Book, EventStore, Ledger, Wal
from deedbook import open as open_log
from logs import append_to, payloads
from nostr_events import events
from spark_session import finish, forget_end, load, write

pytestmark = pytest.mark.promise("spark-repeat", "spark-executor-killed")


class Target:
    def __init__(self, spark: Any, home: Path, format: str) -> None:
        self._spark, self._home, self.format = spark, home, format
        self.log = home / "log"

    @property
    def columns(self) -> str:
        stored = "id, pubkey, created_at, kind, tags, content, sig"
        return {"book": "jam", "nostr": stored}.get(self.format, "payload")

    def rows(self, start: int, stop: int, parts: int = 4) -> Any:
        if self.format == "nostr":
            append_to("nostr", self._home / f"from {start}", events(start, stop))
            return load(self._spark, self._home / f"from {start}").drop("flags")
        numbers = self._spark.range(start, stop, 1, parts)
        return numbers.selectExpr("cast(concat('record ', id) as binary) as payload")

    def write(self, start: int, stop: int, parts: int = 4, **options: Any) -> None:
        write(self.rows(start, stop, parts), self.log, log=self.format, **options)

    def has(self, start: int, stop: int) -> bool:
        """Whether the log has exactly these records, in order if the format keeps an order."""
        if self.format == "nostr":
            with EventStore.open(self.log) as store:
                found = sorted(event.id for event in store)
            return found == sorted(event["id"] for event in events(start, stop))
        expected = [b"record %d" % number for number in range(start, stop)]
        if self.format == "ledger":
            with Ledger.open(self.log) as snapshot:
                return list(snapshot.payloads()) == expected
        return payloads(self.log) == expected


@pytest.fixture(params=["book", "wal", "ledger", "nostr"])
def target(request: pytest.FixtureRequest, spark: Any, tmp_path: Path) -> Target:
    return Target(spark, tmp_path, request.param)


in_order = pytest.mark.parametrize("target", ["book", "wal"], indirect=True)


@in_order
def test_spark_appends_rows_in_dataframe_order(spark: Any, target: Target) -> None:
    target.write(0, 1000, parts=7)
    assert target.has(0, 1000)
    write(target.rows(1000, 1010), target.log)  # the format is detected
    assert target.has(0, 1010)
    assert list((target.log / ".deedbook" / "staged").iterdir()) == []
    assert load(spark, target.log).count() == 1010


def test_spark_copies_rows_between_logs(spark: Any, tmp_path: Path) -> None:
    append_to("book", tmp_path / "from", [b"x%d" % i for i in range(300)], mugs=range(300))
    write(load(spark, tmp_path / "from", minPartitions=3), tmp_path / "to", log="book")
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


def test_a_repeated_write_appends_nothing(target: Target) -> None:
    """A number identifies a repeat, whatever the rows."""
    target.write(0, 50, txnAppId="load", txnVersion=3)
    target.write(70, 90, txnAppId="load", txnVersion=3)
    assert target.has(0, 50)
    target.write(50, 55, txnAppId="load", txnVersion=9)
    target.write(90, 90, txnAppId="none", txnVersion=1)  # a write without rows is also a write
    assert target.has(0, 55)
    mode = "a" if target.format == "ledger" else "r"  # a reader of a ledger has no transactions
    with open_log(target.log, mode) as opened:
        assert [of.to_dict() for of in opened.transactions.committed()] == [
            {"app": "load", "version": 9, "query": None},
            {"app": "none", "version": 1, "query": None},
        ]


@pytest.mark.parametrize(
    ("columns", "options", "wanted"),
    [
        ("id", {}, "column id: a book does not take it"),
        ("1 as jam", {}, "column jam is int, must be binary or string"),
        ("'a' as jam, 'b' as payload", {}, "columns jam and payload are both the jam"),
        ("1 as mug", {}, "no column jam or payload or value among mug"),
        ("'a' as jam", {"txnVersion": "1"}, "txnAppId and txnVersion go together"),
        ("'a' as jam", {"txnQuery": "q"}, "txnQuery goes together with txnAppId"),
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
        write(spark.range(1), tmp_path / "log", mode="overwrite")
    with pytest.raises(PySparkException, match="option log says which to create"):
        write(spark.range(1), tmp_path / "none")
    with pytest.raises(PySparkException, match="option path is missing"):
        spark.range(1).write.format("deedbook").mode("append").save()
    with pytest.raises(PySparkException, match="option path is missing"):
        spark.sql("CREATE TABLE t USING deedbook AS SELECT 'a' AS jam")
    spark.sql("DROP TABLE IF EXISTS t")


def test_sql_inserts_into_a_view_once(spark: Any, target: Target) -> None:
    target.write(0, 3)
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW target USING deedbook OPTIONS (path '{target.log}',"
        f" columns '{target.columns}', txnAppId 'sql', txnVersion '1')"
    )
    for start in (3, 10):  # the second has the number of the first, so it is a repeat
        target.rows(start, start + 2).createOrReplaceTempView("given")
        spark.sql("INSERT INTO target SELECT * FROM given")
    assert target.has(0, 5)


@pytest.mark.parametrize("target", ["book", "wal", "nostr"], indirect=True)
def test_a_commit_waits_for_another_writer(target: Target) -> None:
    target.write(0, 1)
    other = open_log(target.log, "a")
    with pytest.raises(PySparkException, match="as option lockTimeout says"):
        write(target.rows(2, 3), target.log, lockTimeout="100ms")
    assert target.has(0, 1)
    threading.Timer(2, other.close).start()
    write(target.rows(1, 2), target.log, lockTimeout="1m")
    assert target.has(0, 2)


@in_order
def test_a_task_that_fails_leaves_nothing(spark: Any, target: Target) -> None:
    target.write(0, 2)
    wrong = spark.range(0, 400, 1, 4).selectExpr(
        "if(id = 399, raise_error('the last row'), cast(id as string)) as payload"
    )
    with pytest.raises(PySparkException, match="the last row"):
        write(wrong, target.log)
    assert target.has(0, 2)
    # Either the tasks that were running are dead by the next commit, or their job is alive and
    # their files wait for the end of the job.
    with open_log(target.log) as opened:
        for job in opened.transactions.staged():
            assert opened.transactions.discard(job.job)


class Stream:
    def __init__(self, spark: Any, tmp_path: Path, at: Path, **options: Any) -> None:
        self._spark, self._log, self._options = spark, at, options
        self._input, self.checkpoint = tmp_path / "input", tmp_path / "checkpoint"
        self._input.mkdir(exist_ok=True)

    def add(self, name: str, lines: list[str]) -> None:
        hidden = self._input / f".{name}"
        hidden.write_text("\n".join(lines), encoding="utf-8")
        hidden.rename(self._input / name)

    def run(self) -> None:
        lines = self._spark.readStream.format("text").option("maxFilesPerTrigger", 1)
        writer = lines.load(str(self._input)).writeStream.format("deedbook")
        finish(writer.options(path=str(self._log), **self._options), self.checkpoint)


@pytest.mark.parametrize("format", ["book", "wal"])
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
    # Spark repeats a batch if Spark has not noted its end.
    last = max(int(file.name) for file in (stream.checkpoint / "commits").glob("[0-9]*"))
    forget_end(stream.checkpoint, last)
    stream.run()
    assert payloads(log) == [b"a", b"b", b"c", b"d", b"e"]
    query = json.loads((stream.checkpoint / "metadata").read_text())["id"]
    with open_log(log) as opened:
        assert [of.to_dict() for of in opened.transactions.committed()] == [
            {"app": query, "version": last, "query": query}
        ]
        assert opened.transactions.staged() == []


# The core writes the notes of transactions, the same for all formats (tests/transactions).
def test_new_checkpoint_with_an_old_application_is_refused(spark: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    for place in ("first", "second"):
        (tmp_path / place).mkdir()
        stream = Stream(spark, tmp_path / place, log, log="book", txnAppId="mine")
        stream.add("1", ["a"])
        if place == "first":
            stream.run()
    with pytest.raises(StreamingQueryException, match="give another txnAppId"):
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


@pytest.mark.parametrize("target", ["wal"], indirect=True)
def test_new_wal_has_the_requested_segment_size(target: Target) -> None:
    target.write(0, 1000, segmentSize="4k")
    with Wal.open(target.log) as wal:
        assert wal.segment_bytes == 4096
    assert target.has(0, 1000)


@pytest.mark.parametrize("target", ["ledger"], indirect=True)
def test_a_ledger_gets_whole_files_once(target: Target) -> None:
    for _ in range(2):
        target.write(0, 90, base="orders", txnAppId="a", txnVersion=1)
    assert target.has(0, 90)
    with Ledger.open(target.log, "a", base="orders") as ledger:
        fetched = ledger.fetch()
        assert fetched is not None and sum(body.count for body in fetched.data) == 90
        ledger.remove(fetched.removable)
        # A sender took the files of a transaction: it is known all the same.
        target.write(0, 90, txnAppId="a", txnVersion=1)
        assert not ledger.has_data()
        target.write(90, 95, txnAppId="a", txnVersion=2)
        assert ledger.has_data()
    assert target.has(90, 95)
