"""Streams through Spark: every record once, in order, within limits, and only from the same log."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.datasource import ReadMaxBytes, ReadMaxRows

import deedbook
from deedbook import Book, ContiguityError, EventStore, InvalidArgumentError, LostRecordsError, Wal
from deedbook.spark import register
from deedbook.spark._read.reader import default_schema
from deedbook.spark._read.stream import DeedbookStreamReader
from log_bytes import flip
from logs import append_to, make_epochs
from nostr_events import events
from streams import ALL, Query, all_after, append, begin, payloads, read, reader

pytestmark = pytest.mark.promise(
    "spark-query-killed", "spark-power-loss", "spark-log-changed", "spark-log-appears"
)


@pytest.fixture(params=["book", "wal"])
def grow(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """A log and a function that appends records to the log: `log, more = grow`."""
    log = tmp_path / "log"

    def more(start: int, stop: int) -> None:
        options = {"segment_bytes": 20_000} if request.param == "wal" else {}
        append_to(request.param, log, payloads(start, stop), **options)

    return log, more


def given(rows: list[Any]) -> list[bytes]:
    """Payloads in the order of positions; both formats have the position in the first column."""
    return [bytes(row["jam"] if "jam" in row else row["payload"]) for row in sorted(rows)]


def test_a_query_reads_every_record_once_over_restarts(
    spark: Any, grow: Any, tmp_path: Path
) -> None:
    log, more = grow
    more(0, 500)
    query = Query(spark, log, tmp_path / "checkpoint")
    assert given(query.run()) == payloads(0, 500)
    assert query.run() == []
    more(500, 1300)
    assert given(query.run()) == payloads(500, 1300)
    assert [given([row]) for batch in query.batches for row in batch] == [
        [payload] for payload in payloads(0, 1300)
    ]


def test_stream_leaves_shared_spark_state_unchanged(spark: Any, tmp_path: Path) -> None:
    """Two streams with a simultaneous start could break the map; then executors read no tasks."""
    session = spark.newSession()
    register(session)
    manager = session._jsparkSession.sessionState().dataSourceManager()
    shared = manager.lookupDataSource("deedbook").dataSourceCls().envVars()
    before = sorted(shared.keySet())
    append_to("book", tmp_path / "log", [b"one"])
    assert len(Query(session, tmp_path / "log", tmp_path / "checkpoint").run()) == 1
    assert "SPARK_LOCAL_DIRS" in before
    assert sorted(shared.keySet()) == before


def test_stream_batches_respect_max_rows_and_report_lag(
    spark: Any, grow: Any, tmp_path: Path
) -> None:
    log, more = grow
    more(0, 1000)
    query = Query(spark, log, tmp_path / "checkpoint", maxRowsPerTrigger=300)
    assert given(query.run()) == payloads(0, 1000)
    assert [len(batch) for batch in query.batches if batch] == [300, 300, 300, 100]
    source = query.progress[0]["sources"][0]
    ends = [json.loads(source[name])["logs"][str(log)] for name in ("endOffset", "latestOffset")]
    with deedbook.open(log) as opened:
        assert ends[1]["byte"] == opened.end
    assert ends[0]["byte"] < ends[1]["byte"]
    lags = [json.loads(one["sources"][0]["latestOffset"])["lag"] for one in query.progress]
    assert lags[0] == {"bytes": ends[1]["byte"] - ends[0]["byte"]}
    assert sorted(lags, key=lambda lag: lag["bytes"], reverse=True) == lags
    assert lags[-1] == {"bytes": 0}


def test_truncated_log_ends_or_warns_a_query(spark: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    append(log, 0, 100)
    with Wal.open(log) as wal:
        middle = list(wal)[60].lsn
    query = Query(spark, log, tmp_path / "checkpoint")
    assert len(query.run()) == 100
    with Wal.open(log, "a") as wal:
        wal.truncate_from(middle)
        end = wal.end
    with pytest.raises(StreamingQueryException, match=f"ends at byte {end} now: its end was cut"):
        query.run()
    goes_on = Query(spark, log, tmp_path / "checkpoint", failOnDataLoss="false")
    assert goes_on.run() == []
    append(log, 200, 210)
    assert given(goes_on.run()) == payloads(200, 210)


# The tests below need no query: they call the reader as Spark does.


def everything(stream: DeedbookStreamReader) -> list[tuple[Any, ...]]:
    return read(stream, *begin(stream))


def intact_by_mode(
    stream: DeedbookStreamReader, start: Any, limit: Any, mode: str
) -> list[bytes] | None:
    """The payloads of a stream without one damaged record; None if the mode ends the stream."""
    if mode == "FAILFAST":
        with pytest.raises(
            deedbook.CorruptError, match="mode DROPMALFORMED or PERMISSIVE reads on"
        ):
            all_after(stream, start, limit)
        return None
    rows = all_after(stream, start, limit)
    shows = mode == "PERMISSIVE"
    damaged = [row for row in rows if shows and row[-1] is not None]
    assert len(damaged) == int(shows)
    return [row[-2 if shows else -1] for row in rows if row not in damaged]


def test_wrong_stream_option_raises_on_the_first_call(tmp_path: Path) -> None:
    """Spark 4.3.0 hides an error that is raised during the making of a reader."""
    Wal.create(tmp_path / "log").close()
    schema = default_schema({"path": str(tmp_path / "log")})
    stream = DeedbookStreamReader({"path": str(tmp_path / "log"), "start": "7"}, schema)
    with pytest.raises(InvalidArgumentError, match="option start: is for batch reads"):
        stream.initialOffset()
    with pytest.raises(InvalidArgumentError, match="option start"):
        stream.getDefaultReadLimit()


def test_limits_of_rows_and_bytes_hold_together(grow: Any) -> None:
    log, more = grow
    more(0, 400)
    stream = reader(log, maxRowsPerTrigger="50", maxBytesPerTrigger="900")
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxRows(50)
    start, total = stream.initialOffset(), 0
    while (stop := stream.latestOffset(start, limit)) != start:
        rows = read(stream, start, stop)
        (place,), (before,) = stop["logs"].values(), start["logs"].values()
        assert 1 <= len(rows) <= 50
        assert place["byte"] - before["byte"] <= 900 or len(rows) == 1
        start, total = stop, total + len(rows)
    assert total == 400
    assert reader(log, maxBytesPerTrigger="1k").getDefaultReadLimit() == ReadMaxBytes(1024)
    # Trigger.Once requests everything, whatever the options.
    assert len(read(stream, stream.initialOffset(), stop)) == 400
    assert stream.latestOffset(stream.initialOffset(), ALL) == stop


@pytest.mark.parametrize(
    ("position", "first"), [("earliest", 0), ("latest", 40), ("17", 17), ("99999", None)]
)
def test_a_query_begins_where_it_is_told(grow: Any, position: str, first: int | None) -> None:
    log, more = grow
    more(0, 40)
    if position == "17":
        with deedbook.open(log) as opened:
            position = str(getattr(list(opened)[17], "event", None) or list(opened)[17].lsn)
    stream = reader(log, startingPosition=position)
    if first is None:
        with pytest.raises(deedbook.OutOfRangeError, match=position):
            stream.initialOffset()
        return
    start = stream.initialOffset()
    more(40, 60)
    rows = read(stream, start, stream.latestOffset(start, ALL))
    assert [row[-1] for row in rows] == payloads(first, 60)


def test_stream_reads_only_durable_records_by_default(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "log"
    with Wal.create(log) as wal:
        wal.append_many(payloads(0, 10))
        wal.sync()
        wal.append_many(payloads(10, 15))
        start, stop = begin(reader(log))
        assert len(read(reader(log), start, stop)) == 10
        assert reader(log).latestOffset(stop, ALL) == stop
        assert caplog.text == "", "the writer will sync"
        assert len(everything(reader(log, readUntil="written"))) == 15
        wal.sync()
        assert len(everything(reader(log))) == 15
    never = tmp_path / "never"
    with Wal.create(never, durability="none") as wal:
        wal.append_many(payloads(0, 10))
        assert everything(reader(never)) == []
        assert "readUntil=written reads it" in caplog.text
        assert len(everything(reader(never, readUntil="written"))) == 10
    assert len(everything(reader(never))) == 10, "closing syncs"


def test_planned_batch_is_planned_again_identically(grow: Any) -> None:
    """After a crash Spark requests a batch again, with the offsets from its checkpoint."""
    log, more = grow
    more(0, 300)
    stream = reader(log, maxRowsPerTrigger="70")
    offsets = begin(stream, stream.getDefaultReadLimit())
    rows = read(stream, *offsets)
    more(300, 600)
    assert read(reader(log), *json.loads(json.dumps(offsets))) == rows
    assert len(rows) == 70


def test_late_log_is_streamed_from_its_first_record(tmp_path: Path) -> None:
    append(tmp_path / "a", 0, 20)
    stream = reader(tmp_path, startingPosition="latest")
    start = stream.initialOffset()
    append(tmp_path / "b", 100, 120)
    stop = stream.latestOffset(start, ALL)
    assert [row[-1] for row in read(stream, start, stop)] == payloads(100, 120)
    # The first records are dropped before Spark requests the batch again.
    with Wal.open(tmp_path / "b", "a", segment_bytes=None) as wal:
        wal.truncate_before(list(wal)[5].lsn)
    with pytest.raises(LostRecordsError, match="was dropped"):
        stream.partitions(start, stop)
    told = reader(tmp_path, failOnDataLoss="false")
    assert len(read(told, start, stop)) == 15


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_late_log_with_damaged_first_record_is_reported(
    tmp_path: Path, grow: Any, mode: str
) -> None:
    log, more = grow
    logs = tmp_path / "logs"
    logs.mkdir()
    more(0, 5)
    log.rename(logs / "a")
    stream = reader(logs, mode=mode)
    _, start = begin(stream)
    more(5, 25)
    log.rename(logs / "b")
    book = logs / "b" / "book.log"
    file = book if book.exists() else min((logs / "b").glob("*.wal"))
    flip(file, 28 if file is book else 12)  # in the first payload
    shutil.rmtree(logs / "b" / ".deedbook")
    intact = intact_by_mode(stream, start, ALL, mode)
    assert intact is None or intact == payloads(6, 25)


@pytest.mark.parametrize("limit", [{"maxRowsPerTrigger": "2"}, {"maxBytesPerTrigger": "20"}])
def test_no_log_of_many_waits_for_ever(tmp_path: Path, limit: dict[str, str]) -> None:
    names = ("a", "b", "c")
    for name in names:
        Wal.create(tmp_path / name).close()
    stream = reader(tmp_path, **limit)
    start = begin = stream.initialOffset()
    rows: list[Any] = []
    for round_ in range(3):
        for name in names:
            append_to("wal", tmp_path / name, [b"%s %d" % (name.encode(), round_)])
        stop = stream.latestOffset(start, stream.getDefaultReadLimit())
        assert list(stop["logs"]) == [str(tmp_path / name) for name in names], "in their order"
        rows += read(stream, start, stop)
        start = stop
    assert len(rows) == 6
    assert all(start["logs"][path] != begin["logs"][path] for path in start["logs"])
    assert {row[-1] for row in rows} >= {b"c 0", b"c 1"}


def test_stream_follows_epochs_and_refuses_a_gap(tmp_path: Path) -> None:
    make_epochs(tmp_path, {0: payloads(0, 30)})
    stream = reader(tmp_path, maxRowsPerTrigger="20")
    start = stream.initialOffset()
    make_epochs(tmp_path, {30: payloads(30, 45)})
    rows = all_after(stream, start, stream.getDefaultReadLimit())
    assert [row[0] for row in rows] == list(range(1, 46))
    make_epochs(tmp_path, {50: payloads(50, 52)})
    with pytest.raises(ContiguityError, match="events 46 to 50 are missing"):
        stream.latestOffset(start, ALL)


@pytest.mark.parametrize("mode", ["FAILFAST", "PERMISSIVE"])
def test_missing_or_replaced_log_is_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    for name in ("a", "b"):
        append(tmp_path / name, 0, 50)
    stream = reader(tmp_path, mode=mode)
    _, stop = begin(stream)
    shutil.rmtree(tmp_path / "b")
    with pytest.raises(LostRecordsError, match="not there any more"):
        stream.latestOffset(stop, ALL)
    told = reader(tmp_path, mode=mode, failOnDataLoss="false")
    assert list(told.latestOffset(stop, ALL)["logs"]) == [str(tmp_path / "a")]
    place = stop["logs"][str(tmp_path / "b")]
    assert f"had read up to {place} and goes on without the log" in caplog.text
    # A new log of the same length.
    append_to("wal", tmp_path / "b", [payload[::-1] for payload in payloads(0, 50)])
    with pytest.raises(LostRecordsError, match="another log"):
        stream.latestOffset(stop, ALL)
    again = told.latestOffset(stop, ALL)
    assert f"had read up to {place} and goes on at {{'byte': 0, 'first': " in caplog.text
    assert again["logs"][str(tmp_path / "b")] != place
    assert len(read(told, stop, again)) == 50, "another log is read from its first record on"


@pytest.mark.parametrize("mode", ["FAILFAST", "DROPMALFORMED", "PERMISSIVE"])
def test_stream_handles_damage_by_mode_and_continues(grow: Any, mode: str) -> None:
    log, more = grow
    more(0, 60)
    stream = reader(log, mode=mode, maxRowsPerTrigger="7")
    file = next(
        path for path in sorted(log.iterdir()) if path.is_file() and path.stat().st_size > 2000
    )
    with deedbook.open(log) as opened:
        at = opened.bookmark(
            list(opened)[20].event if file.name == "book.log" else list(opened)[20].lsn
        )
    flip(file, at.offset + 30)
    intact = intact_by_mode(stream, stream.initialOffset(), stream.getDefaultReadLimit(), mode)
    assert intact is None or intact == payloads(0, 20) + payloads(21, 60)


def test_late_ledger_reports_lost_files(tmp_path: Path) -> None:
    """After a crash Spark requests a batch again; a sender has removed the ledger's first file."""
    append_to("ledger", tmp_path / "a", payloads(0, 15), batch_records=10)
    stream = reader(tmp_path)
    start = stream.initialOffset()
    with deedbook.Ledger.open(tmp_path / "b", "a", batch_records=10) as ledger:
        ledger.append_many(payloads(0, 35))
        stop = stream.latestOffset(start, ALL)
        assert len(read(stream, start, stop)) >= 30
        fetched = ledger.fetch(1)
        assert fetched is not None
        ledger.remove(fetched.removable)
        with pytest.raises(LostRecordsError, match="file 0 is not there any more"):
            stream.partitions(start, stop)


def test_stream_consumer_keeps_unread_records(spark: Any, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with Wal.create(log, segment_bytes=1000) as wal:
        wal.append_many(payloads(0, 100))
        wal.sync()
        query = Query(spark, log, tmp_path / "c", consumer="query", maxRowsPerTrigger=30)
        stream = reader(log, consumer="query", maxRowsPerTrigger="30")
        start = stream.initialOffset()
        lsns = [record.lsn for record in wal]
        with pytest.raises(InvalidArgumentError, match='consumer "query" needs lsn 0'):
            wal.truncate_before(lsns[1])
        stop = stream.latestOffset(start, ReadMaxRows(30))
        assert len(read(stream, start, stop)) == 30
        stream.commit(stop)
        wal.truncate_before(lsns[30])
        with pytest.raises(InvalidArgumentError, match="needs lsn"):
            wal.truncate_before(lsns[31])
        wal.remove_consumer("query")
        assert len(query.run()) == 70
        assert list(wal.consumers()) == ["query"]
    book = tmp_path / "book"
    Book.create(book).close()
    with pytest.raises(InvalidArgumentError, match="option consumer: is for WALs"):
        reader(book, consumer="query").initialOffset()


def test_an_event_store_is_streamed_over_segments(tmp_path: Path) -> None:
    log = tmp_path / "store"
    written = events(0, 300)
    with EventStore.create(log, segment_bytes=10 << 20) as store:
        store.append_many(written[:200])
        store.sync()
        stream = reader(log, maxRowsPerTrigger="45", columns="content")
        start, contents = stream.initialOffset(), []
        for wanted in (200, 300):
            while (stop := stream.latestOffset(start, stream.getDefaultReadLimit())) != start:
                rows = read(stream, start, stop)
                assert 1 <= len(rows) <= 45
                contents += [row[0] for row in rows]
                start = stop
            assert contents == [event["content"] for event in written[:wanted]]
            store.append_many(written[200:])
            store.sync()
        whole = reader(log, columns="content")
        begun, end = begin(whole)
        assert [row[0] for row in read(whole, begun, end)] == contents
        assert end == start
        assert reader(log, startingPosition="latest").initialOffset() == end
        # The stream repeats moved events, and loses none.
        store.set_flags(next(iter(store)).location, deleted=True)
        store.compact(0.0)
        again = whole.latestOffset(end, ALL)
        rest = [row[0] for row in read(whole, end, again)]
        assert set(rest) <= set(contents)
        store.append_many(more := events(300, 310))
        store.sync()
        last = whole.latestOffset(again, ALL)
        assert [row[0] for row in read(whole, again, last)] == [event["content"] for event in more]
    shutil.rmtree(log)
    append_to("nostr", log, events(500, 510))
    with pytest.raises(LostRecordsError, match="the store"):
        whole.latestOffset(last, ALL)
