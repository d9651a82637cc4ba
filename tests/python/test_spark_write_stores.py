"""Writing ledgers and event stores through Spark."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from spark_cluster import local_session
from test_spark_stream import events

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from pyspark.errors import PySparkException

from deedbook import EventStore, Ledger, LedgerSnapshot

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def spark() -> Any:
    return local_session()


def write(df: Any, at: Path, **options: Any) -> None:
    df.write.format("deedbook").mode("append").options(**options).save(str(at))


def spooled(at: Path, base: str) -> list[bytes]:
    with LedgerSnapshot.open(at, base) as snapshot:
        return list(snapshot.payloads())


def rows(spark: Any, start: int, stop: int) -> Any:
    numbers = spark.range(start, stop, 1, 3)
    return numbers.selectExpr("""concat('{"n":', id, '}') as value""")


def lines(start: int, stop: int) -> list[bytes]:
    return [b'{"n":%d}' % number for number in range(start, stop)]


def test_a_ledger_gets_whole_files_once(spark: Any, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    for _ in range(2):
        write(rows(spark, 0, 90), spool, log="ledger", base="orders", txnAppId="a", txnVersion=1)
    assert spooled(spool, "orders") == lines(0, 90)
    with Ledger.open(spool, base="orders") as ledger:
        fetched = ledger.fetch()
        assert fetched is not None
        fetched_events = [event for body in fetched.data for event in json.loads(body.read())]
        assert fetched_events == [{"n": number} for number in range(90)]
        ledger.remove(fetched.removable)
        assert not ledger.has_data()
        # A sender took the files of a transaction: it is known all the same.
        write(rows(spark, 0, 90), spool, txnAppId="a", txnVersion=1)
        assert not ledger.has_data()
        write(rows(spark, 90, 95), spool, txnAppId="a", txnVersion=2)
        assert ledger.has_data()
    assert spooled(spool, "orders") == lines(90, 95)


def test_a_stream_fills_a_ledger_beside_its_sender(spark: Any, tmp_path: Path) -> None:
    source, spool = tmp_path / "in", tmp_path / "spool"
    source.mkdir()
    sent: list[dict[str, Any]] = []
    with Ledger.open(spool, base="events") as ledger:
        for number in range(3):
            text = b"\n".join(lines(10 * number, 10 * number + 10)).decode()
            (source / f"{number}.txt").write_text(text)
            ledger.append(b'{"n":"from the application"}')
            stream = spark.readStream.format("text").load(str(source)).writeStream
            stream = stream.format("deedbook").option("checkpointLocation", str(tmp_path / "c"))
            query = stream.trigger(availableNow=True).start(str(spool))
            assert query.awaitTermination(60)
            assert query.exception() is None
            fetched = ledger.fetch()
            assert fetched is not None
            for reader in fetched.data:
                sent += json.loads(reader.read())
            ledger.remove(fetched.removable)
    ours = [event for event in sent if event["n"] != "from the application"]
    assert ours == [{"n": number} for number in range(30)]
    assert len(sent) == 33


def test_events_are_written_from_typed_columns(spark: Any, tmp_path: Path) -> None:
    written = events(0, 120)
    written[7]["tags"] = []
    with EventStore.create(tmp_path / "from") as store:
        store.append_many(written)
    frame = spark.read.format("deedbook").load(str(tmp_path / "from")).drop("flags")
    for _ in range(2):  # without an application's number, too: by their ids
        write(frame.repartition(4), tmp_path / "to", log="nostr")
    with EventStore.open(tmp_path / "to") as store:
        ids = sorted(event.id.hex() if isinstance(event.id, bytes) else event.id for event in store)
    assert ids == sorted(event["id"] for event in written)
    back = spark.read.format("deedbook").load(str(tmp_path / "to"))
    assert back.exceptAll(spark.read.format("deedbook").load(str(tmp_path / "from"))).count() == 0


def test_an_event_whose_id_is_not_its_hash_is_refused(spark: Any, tmp_path: Path) -> None:
    with EventStore.create(tmp_path / "from") as store:
        store.append_many(events(1, 10))
    frame = spark.read.format("deedbook").load(str(tmp_path / "from")).drop("flags")
    wrong = frame.withColumn("content", frame.content.substr(1, 1))
    with pytest.raises(PySparkException, match="id"):
        write(wrong, tmp_path / "to", log="nostr")
    with EventStore.open(tmp_path / "to") as store:
        assert list(store) == []
    assert json.dumps([job.job for job in staged(tmp_path / "to")]) == "[]"


def test_sql_inserts_into_a_ledger_once(spark: Any, tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    write(rows(spark, 0, 3), spool, log="ledger", base="orders")
    view(spark, "spool", spool, base="orders", columns="payload", txnAppId="sql", txnVersion=1)
    for _ in range(2):
        spark.sql("""INSERT INTO spool SELECT cast('{"n":3}' AS binary)""")
    assert spooled(spool, "orders") == lines(0, 4)


def test_sql_inserts_into_an_event_store_once(spark: Any, tmp_path: Path) -> None:
    for name, start in (("one", 0), ("two", 20)):
        with EventStore.create(tmp_path / name) as store:
            store.append_many(events(start, start + 20))
        view(spark, name, tmp_path / name, columns=COLUMNS)
    EventStore.create(tmp_path / "to").close()
    view(spark, "stored", tmp_path / "to", columns=COLUMNS, txnAppId="sql", txnVersion=1)
    for name in ("one", "two"):  # the second has the first one's number: it is a repeat
        spark.sql(f"INSERT INTO stored SELECT {COLUMNS} FROM {name}")
    assert ids(tmp_path / "to") == sorted(event["id"] for event in events(0, 20))


def test_a_repeat_is_known_by_its_number(spark: Any, tmp_path: Path) -> None:
    for name, start in (("one", 0), ("two", 20)):
        with EventStore.create(tmp_path / name) as store:
            store.append_many(events(start, start + 20))
        frame = spark.read.format("deedbook").load(str(tmp_path / name)).drop("flags")
        write(frame, tmp_path / "to", log="nostr", txnAppId="load", txnVersion=3)
    assert ids(tmp_path / "to") == sorted(event["id"] for event in events(0, 20))
    for start in (0, 20):
        write(rows(spark, start, start + 9), tmp_path / "spool", log="ledger", txnAppId="load",
              txnVersion=3)  # fmt: skip
    assert spooled(tmp_path / "spool", "events") == lines(0, 9)
    with EventStore.open(tmp_path / "to") as store, Ledger.open(tmp_path / "spool") as ledger:
        for opened in (store, ledger):
            noted = [of.to_dict() for of in opened.transactions.committed()]
            assert noted == [{"app": "load", "version": 3, "query": None}]


def test_a_commit_waits_for_another_writer_of_a_store(spark: Any, tmp_path: Path) -> None:
    with EventStore.create(tmp_path / "from") as store:
        store.append_many(events(0, 5))
    frame = spark.read.format("deedbook").load(str(tmp_path / "from")).drop("flags")
    other = EventStore.create(tmp_path / "to")
    with pytest.raises(PySparkException, match="as option lockTimeout says"):
        write(frame, tmp_path / "to", lockTimeout="100ms")
    assert ids(tmp_path / "to") == []
    threading.Timer(2, other.close).start()
    write(frame, tmp_path / "to", lockTimeout="1m")
    assert len(ids(tmp_path / "to")) == 5
    # Any number of writers share a ledger: nothing waits.
    with Ledger.open(tmp_path / "spool") as ledger:
        ledger.append(b'{"n":0}')
        write(rows(spark, 1, 2), tmp_path / "spool", lockTimeout="1s")
    assert sorted(spooled(tmp_path / "spool", "events")) == lines(0, 2)


def test_a_stream_fills_an_event_store(spark: Any, tmp_path: Path) -> None:
    """A batch whose end the checkpoint does not know is written again, and known."""
    source, to, checkpoint = tmp_path / "from", tmp_path / "to", tmp_path / "checkpoint"

    def run() -> None:
        frame = (
            spark.readStream.format("deedbook").option("maxRowsPerTrigger", 30).load(str(source))
        )
        stream = frame.drop("flags").writeStream.format("deedbook").option("log", "nostr")
        stream = stream.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query = stream.start(str(to))
        assert query.awaitTermination(60)
        assert query.exception() is None

    def last() -> list[int]:
        with EventStore.open(to) as store:
            return [of.version for of in store.transactions.committed()]

    with EventStore.create(source) as store:
        store.append_many(events(0, 70))
    run()
    assert ids(to) == sorted(event["id"] for event in events(0, 70)) and last() == [2]
    (checkpoint / "commits" / "2").unlink()
    (checkpoint / "commits" / ".2.crc").unlink(missing_ok=True)
    run()
    assert len(ids(to)) == 70 and last() == [2]
    with EventStore.open(source, "a") as store:
        store.append_many(events(70, 90))
    run()
    assert ids(to) == sorted(event["id"] for event in events(0, 90)) and last() == [3]


COLUMNS = "id, pubkey, created_at, kind, tags, content, sig"


def view(spark: Any, name: str, at: Path, **options: Any) -> None:
    given = {"path": at, **options}
    text = ", ".join(f"{key} '{value}'" for key, value in given.items())
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} USING deedbook OPTIONS ({text})")


def ids(at: Path) -> list[str]:
    with EventStore.open(at) as store:
        return sorted(str(event.id) for event in store)


def staged(at: Path) -> list[Any]:
    with EventStore.open(at) as store:
        return store.transactions.staged()
