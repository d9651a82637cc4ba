"""Writing ledgers and event stores through Spark."""

import json
from pathlib import Path
from typing import Any

import pytest

from deedbook import EventStore, Ledger
from logs import append_to
from nostr_events import events
from spark_session import finish, forget_end, load, write

pytestmark = pytest.mark.spark


def spooled(at: Path, base: str) -> list[bytes]:
    with Ledger.open(at, base=base) as snapshot:
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
    with Ledger.open(spool, "a", base="orders") as ledger:
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
    with Ledger.open(spool, "a", base="events") as ledger:
        for number in range(3):
            text = b"\n".join(lines(10 * number, 10 * number + 10)).decode()
            (source / f"{number}.txt").write_text(text)
            ledger.append(b'{"n":"from the application"}')
            stream = spark.readStream.format("text").load(str(source)).writeStream
            finish(stream.format("deedbook"), tmp_path / "c", spool)
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
    append_to("nostr", tmp_path / "from", written)
    frame = load(spark, tmp_path / "from").drop("flags")
    for _ in range(2):  # without an application's number, too: by their ids
        write(frame.repartition(4), tmp_path / "to", log="nostr")
    assert ids(tmp_path / "to") == sorted(event["id"] for event in written)
    assert load(spark, tmp_path / "to").exceptAll(load(spark, tmp_path / "from")).count() == 0


def test_a_stream_fills_an_event_store(spark: Any, tmp_path: Path) -> None:
    """A batch whose end the checkpoint does not know is written again, and known."""
    source, to, checkpoint = tmp_path / "from", tmp_path / "to", tmp_path / "checkpoint"

    def run() -> None:
        frame = spark.readStream.format("deedbook").option("maxRowsPerTrigger", 30)
        stream = frame.load(str(source)).drop("flags").writeStream.format("deedbook")
        finish(stream.option("log", "nostr"), checkpoint, to)

    def last() -> list[int]:
        with EventStore.open(to) as store:
            return [of.version for of in store.transactions.committed()]

    append_to("nostr", source, events(0, 70))
    run()
    assert ids(to) == sorted(event["id"] for event in events(0, 70)) and last() == [2]
    forget_end(checkpoint, 2)
    run()
    assert len(ids(to)) == 70 and last() == [2]
    append_to("nostr", source, events(70, 90))
    run()
    assert ids(to) == sorted(event["id"] for event in events(0, 90)) and last() == [3]


def ids(at: Path) -> list[str]:
    with EventStore.open(at) as store:
        return sorted(str(event.id) for event in store)
