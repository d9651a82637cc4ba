"""Compacting and migrating logs with Spark."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import deedbook
from deedbook import Book, CorruptError, EventStore, InvalidArgumentError, Ledger, OutOfRangeError
from deedbook._formats import find
from deedbook._spark_session import clear
from deedbook._system.durable import unfinished
from deedbook.spark.jobs import JobFailedError, _compact, compact, migrate
from deedbook.spark.jobs._copies import COPIES
from deedbook.spark.jobs._engine.run import watch
from logs import append_to, make_epochs
from nostr_events import events, made
from spark_session import kill_when


def names_in(few: Path) -> list[str]:
    return sorted(one.name for one in few.iterdir() if one.name != ".compaction.lock")


def test_interrupt_is_raised_after_the_jvm_ended(
    spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from py4j.protocol import Py4JError

    def gone(*_: object) -> None:
        raise Py4JError("Answer from Java side is empty")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(spark.sparkContext, "cancelJobGroup", gone)
    with pytest.raises(KeyboardInterrupt):
        watch(spark, "test", lambda: time.sleep(0.5), lambda: (0, None, ""), interrupted)


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("MemoryError", "MemoryError"),
        ("KeyError: 'a'", "'a'"),
        ("pyarrow.lib.ArrowInvalid: no file of Parquet", "no file of Parquet"),
        ("deedbook.CorruptError: byte 7: no deed", "byte 7: no deed"),
    ],
)
def test_what_failed_is_told_without_a_traceback(last: str, said: str) -> None:
    from pyspark.errors import PySparkException

    trace = "Traceback (most recent call last):\n  File 'worker.py', line 1, in main\n"
    error = clear(
        PySparkException(
            "[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted due to stage"
            " failure: Lost task 0.0: org.apache.spark.api.python.PythonException: Traceback (most"
            f" recent call last):\n{trace}{last}\n\n"
            "\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)\n"
            f"org.apache.spark.api.python.PythonException: {trace}"
        )
    )
    assert str(error) == said
    assert isinstance(error, CorruptError if "Corrupt" in last else JobFailedError)


def small_logs(directory: Path, kind: str, count: int) -> list[Any]:
    directory.mkdir()
    expected: list[Any] = []
    for number in range(count):
        records: Any = [b"log %d record %d" % (number, n) for n in range(number % 4 + 1)]
        options: dict[str, Any] = {"base": "own"} if kind == "ledger" else {}
        if kind == "nostr":  # half of the events are also in the next store
            records = events(number * 20, number * 20 + 40)
        if kind == "book":
            options["mugs"] = range(0xFFFF_FF00, 0xFFFF_FF00 + len(records))
        append_to(kind, directory / f"log{number}", records, **options)
        expected += records
    return expected


def plan_of(small: Path, few: Path, at_most: int = 1 << 20) -> Any:
    plan = _compact._planned([str(small)], few, at_most)
    few.mkdir(exist_ok=True)
    _compact.store_json(few / "compaction.json", plan)
    return plan


@pytest.mark.parametrize("kind", ["book", "wal", "ledger", "nostr"])
def test_many_small_logs_become_few(spark: Any, tmp_path: Path, kind: str) -> None:
    small, few = tmp_path / "small", tmp_path / "few"
    expected = small_logs(small, kind, 12)
    size = 1 << 30 if kind == "nostr" else 200
    planned = compact(spark, [small], few, size_bytes=size, dry_run=True)
    assert planned.made == 0 and not few.exists()
    report = compact(spark, [small], few, size_bytes=size)
    assert report.made == len(report.logs) == len(planned.logs) < 10
    found: list[Any] = []
    for log in report.logs:
        with find(log.path).format.open(log.path, "r") as made:
            records = list(made)
        assert len(records) == log.records
        found += records
        if kind == "book":
            assert records[0].event == log.first
            assert all(deed.mug >= 0xFFFF_FF00 for deed in records)
    if kind == "nostr":
        assert planned.logs[0].records > len(found)
        assert sorted(event.id for event in found) == sorted({event["id"] for event in expected})
        assert EventStore.verify(report.logs[0].path).ok
    else:
        assert [record.payload for record in found] == expected and report.made > 1
    names = [Path(source).name for log in report.logs for source in log.sources]
    assert names == [f"log{number}" for number in range(12)]
    again = compact(spark, [small], few, size_bytes=size)
    assert (again.made, again.logs) == (0, report.logs)
    shutil.rmtree(few / "00000")
    assert compact(spark, [small], few, size_bytes=size).made == 1


def test_a_compacted_ledger_is_sent_and_appended_to(spark: Any, tmp_path: Path) -> None:
    options = {"base": "own", "record_bytes_max": 4 << 20}
    append_to("ledger", tmp_path / "spool", [bytes(2 << 20)], **options)
    (log,) = compact(spark, [tmp_path / "spool"], tmp_path / "few").logs
    with Ledger.open(log.path, base="own") as made:
        assert not any(file.active for file in made.files)
        assert list(made.payloads()) == [bytes(2 << 20)]
    with Ledger.open(log.path, "a", base="own") as ledger:
        ledger.append(b"later")
        assert ledger.fetch(1) is not None


def test_compaction_keeps_numbers_of_consecutive_books(spark: Any, tmp_path: Path) -> None:
    jams = [b"%d" % n for n in range(1, 32)]
    log = make_epochs(tmp_path / "pier", {0: jams[:10], 10: jams[10:30], 30: jams[30:]})
    report = compact(spark, [log / f"0i{n}" for n in (10, 30)], tmp_path / "few")
    (log,) = report.logs
    assert (log.first, log.records) == (11, 21)
    with Book.open(log.path) as book:
        assert all(deed.jam == b"%d" % deed.event for deed in book)


@pytest.mark.parametrize("kind", ["book", "wal", "ledger", "nostr"])
def test_finished_compaction_refuses_changed_sources(tmp_path: Path, kind: str) -> None:
    small, few = tmp_path / "small", tmp_path / "few"

    def append(name: str, start: int) -> None:
        records = events(start, start + 5) if kind == "nostr" else [b"x", b"y"]
        append_to(kind, small / name, records)

    small.mkdir()
    append("a", 0)
    append("b", 5)
    plan = plan_of(small, few)
    for bin in plan["logs"]:
        assert sum(records for records, _ in _compact._make(few, bin, kind)) > 0
    assert _compact._planned([str(small)], few, 1 << 20) == plan
    none: Any = None  # a refusal needs no session
    append("b", 100)
    with pytest.raises(OutOfRangeError, match=r"b has \d+ bytes, the plan says \d+: it was chang"):
        compact(none, [small], few)
    append("c", 10)
    with pytest.raises(InvalidArgumentError, match=r"was made without .*/c, which came later; com"):
        compact(none, [small], few)
    for gone in ("b", "c"):
        shutil.rmtree(small / gone)
    with pytest.raises(
        InvalidArgumentError, match=r"was made of .*/b, too, which is not there any"
    ):
        compact(none, [small], few)


def test_a_damaged_ledger_is_refused(spark: Any, tmp_path: Path) -> None:
    append_to("ledger", tmp_path / "spool", [b"%04d" % n for n in range(50)])
    (file,) = (tmp_path / "spool").glob("*-events")
    whole = file.read_bytes()
    for damaged in (whole[:-1], whole[:200] + b"\xff" + whole[201:]):
        file.write_bytes(damaged)
        with pytest.raises(CorruptError, match="spool is damaged: verify says where"):
            compact(spark, [tmp_path / "spool"], tmp_path / "few")


def test_expired_event_does_not_block_a_planned_compaction(tmp_path: Path) -> None:
    small, few = tmp_path / "small", tmp_path / "few"
    over_at = int(time.time()) + 2
    with EventStore.create(small) as store:
        store.append_many(events(0, 5))
        store.append(made("over soon", tags=[["expiration", str(over_at)]]))
    plan = plan_of(small, few)
    (bin,) = plan["logs"]
    assert bin["sources"][0]["records"] == 6
    while time.time() <= over_at + 1:
        time.sleep(0.05)
    assert sum(records for records, _ in _compact._make(few, bin, "nostr")) == 5
    assert _compact._planned([str(small)], few, 1 << 20) == plan
    _compact._count(few, plan)
    assert bin["records"] == 5


@pytest.mark.parametrize("kind", ["wal", "nostr"])
def test_compaction_task_refuses_a_grown_source(tmp_path: Path, kind: str) -> None:
    """A run looks at all sources first; a source may grow while the tasks wait."""
    small = tmp_path / "small"
    small_logs(small, kind, 1)
    plan = plan_of(small, tmp_path / "few")
    append_to(kind, small / "log0", [b"late"] if kind == "wal" else events(90, 91))
    task = COPIES[kind].fill(tmp_path / "making", plan["logs"][0]["sources"])
    with pytest.raises(OutOfRangeError, match=r"log0 has \d+ \w+, the plan says \d+: it was chang"):
        list(task)


def test_compaction_killed_while_storing_its_plan_restarts(tmp_path: Path) -> None:
    small_logs(tmp_path / "small", "book", 2)
    given, few = [str(tmp_path / "small")], tmp_path / "few"
    plan = _compact._planned(given, few, 1 << 20)

    few.mkdir()
    unfinished(few / "compaction.json").write_bytes(b"{")
    assert _compact._planned(given, few, 1 << 20) == plan
    _compact.store_json(few / "compaction.json", plan)
    assert [one.name for one in few.iterdir()] == ["compaction.json"]
    (few / "compaction.json").rename(few / "notes.json")
    with pytest.raises(InvalidArgumentError, match="few is not empty; new logs go into a new dire"):
        _compact._planned(given, few, 1 << 20)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["book", "nostr"])
def test_a_killed_compaction_goes_on_where_it_was(
    tmp_path: Path, kind: str, run_spark: Any
) -> None:
    (tmp_path / "small").mkdir()
    for number in range(8):
        path = tmp_path / "small" / f"s{number}"
        if kind == "book":
            jams = [b"%d %04d" % (number, n) + bytes(2000) for n in range(4000)]
            append_to("book", path, jams, durability="none")
        else:
            append_to("nostr", path, events(number * 200, number * 200 + 200))
    few = tmp_path / "few"
    command = ["spark", "compact", tmp_path / "small", few]
    command += ["--size", "1", "--master", "local[1]", "--json"]
    kill_when((few / "00000").exists, command, look_every_s=0.002)
    assert not (few / "00007").exists()
    ran = run_spark(*command)
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    assert 0 < report["made"] < 8 == len(report["logs"])
    assert names_in(few) == [*(f"{number:05}" for number in range(8)), "compaction.json"]
    for number, log in enumerate(report["logs"]):
        with find(log["path"]).format.open(log["path"], "r") as made:
            if kind == "book":
                assert all(one.startswith(b"%d " % number) for one in made.payloads())
                assert len(made) == log["records"] == 4000
            else:
                assert sum(1 for _ in made) == log["records"] > 0


def test_two_attempts_of_a_task_make_one_log(spark: Any, tmp_path: Path) -> None:
    """With speculation, or with a new driver, Spark may give both attempts the same number."""
    small_logs(tmp_path / "small", "book", 3)
    path = tmp_path / "few"
    (bin,) = plan_of(tmp_path / "small", path)["logs"]
    (path / "compaction.json").unlink()

    attempts = []
    for _ in range(2):
        attempt = _compact._make(path, bin, "book")
        next(attempt)
        attempts.append(attempt)
    assert len(list(path.iterdir())) == 2
    for attempt in reversed(attempts):
        assert sum(records for records, _ in attempt) == sum(
            one["records"] for one in bin["sources"][1:]
        )
    assert [one.name for one in path.iterdir()] == ["00000"]
    with Book.open(path / "00000") as book:
        assert len(book) == sum(one["records"] for one in bin["sources"])


def test_what_died_left_is_removed(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, few = tmp_path / "small", tmp_path / "few"
    small_logs(small, "book", 2)
    plan_of(small, few)
    killed, died = few / ".00000.making-6", few / ".00000.making-7"
    killed.mkdir()
    (killed / "book.log").write_bytes(b"half")

    def watch_and_leave(*args: Any) -> None:
        assert not killed.exists(), "of an earlier run"
        watch(*args)
        died.mkdir()

    with monkeypatch.context() as patch:
        patch.setattr(_compact, "watch", watch_and_leave)
        assert compact(spark, [small], few, size_bytes=1 << 20).made == 1
    assert names_in(few) == ["00000", "compaction.json"]
    died.mkdir()
    assert compact(spark, [small], few, dry_run=True).made == 0
    assert died.exists()
    assert compact(spark, [small], few).made == 0
    assert not died.exists()


def test_late_task_cannot_publish_a_removed_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = tmp_path / "few"
    making = few / ".00000.making-7"
    making.mkdir(parents=True)
    (making / "book.log").write_bytes(b"half")

    def removed(path: Path, *given: Any, **more: Any) -> None:
        with pytest.raises(FileNotFoundError):
            _compact._publish(making, few / "00000")  # the task ends now
        shutil.rmtree(path, *given, **more)

    monkeypatch.setattr(_compact, "shutil", SimpleNamespace(rmtree=removed))
    _compact._remove_strays(few)
    assert list(few.iterdir()) == []


def test_the_same_compaction_at_once_is_refused(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_logs(tmp_path / "small", "book", 2)
    half = tmp_path / "few" / ".00000.making-7"
    seen: list[Any] = []

    def watch_and_begin_again(*args: Any) -> None:
        half.mkdir()
        with pytest.raises(deedbook.LockedError, match=r"compacts into .*/few already") as raised:
            compact(spark, [tmp_path / "small"], tmp_path / "few")
        seen.append((raised.value.holder, half.exists()))
        watch(*args)

    monkeypatch.setattr(_compact, "watch", watch_and_begin_again)
    assert compact(spark, [tmp_path / "small"], tmp_path / "few").made == 1
    assert seen == [(os.getpid(), True)]


def test_what_cannot_be_compacted_is_refused(spark: Any, tmp_path: Path) -> None:
    with pytest.raises(deedbook.MissingError, match="no such file or directory"):
        compact(spark, [tmp_path / "none"], tmp_path / "far" / "few")
    assert list(tmp_path.iterdir()) == [], "no target is made"
    with Ledger.open(tmp_path / "spool", "a") as ledger:
        ledger.append(b"x")
        with pytest.raises(InvalidArgumentError, match=r"0-events is being written: close"):
            compact(spark, [tmp_path / "spool"], tmp_path / "few")
    append_to("ledger", tmp_path / "other", [b"x"], base="others")
    with pytest.raises(InvalidArgumentError, match="several bases, events, others: compact"):
        compact(spark, [tmp_path / "spool", tmp_path / "other"], tmp_path / "few")
    small_logs(tmp_path / "small", "book", 2)
    with pytest.raises(InvalidArgumentError, match="small is not empty; new logs go into a new"):
        compact(spark, [tmp_path / "small"], tmp_path / "small")
    compact(spark, [tmp_path / "small"], tmp_path / "few")
    with pytest.raises(InvalidArgumentError, match=r"few was made from .*/small, not from"):
        compact(spark, [tmp_path / "small" / "log0"], tmp_path / "few")
    assert issubclass(JobFailedError, RuntimeError)


def test_spark_migration_keeps_pier_numbers_and_compares(spark: Any, tmp_path: Path) -> None:
    pier = tmp_path / "pier"
    pier.mkdir()
    for epoch, count in [(10, 5), (15, 40)]:
        with Book.create(pier / f"0i{epoch}", epoch=epoch) as book:
            payloads = [b"%d" % n for n in range(epoch + 1, epoch + 1 + count)]
            book.append_many(payloads, mugs=[0xFFFF_0000 + n for n in range(count)])
    report = migrate(spark, pier, tmp_path / "one", format="book", batch_bytes=400)
    assert (report.appended, report.records, report.source_format) == (45, 45, "book")
    with Book.open(tmp_path / "one") as book:
        assert book.bounds == (11, 55)
        assert [deed.jam for deed in book] == [b"%d" % n for n in range(11, 56)]
        assert book[16].mug == 0xFFFF_0000
    other = migrate(spark, tmp_path / "one", tmp_path / "wal", format="wal")
    back = migrate(spark, tmp_path / "wal", tmp_path / "back", format="book")
    assert other.digest == back.digest != report.digest  # a WAL has no mugs
    assert migrate(spark, pier, tmp_path / "one").appended == 0


@pytest.mark.parametrize("kind", [Book, deedbook.Wal])
def test_unsynced_source_is_refused_before_any_copy(spark: Any, tmp_path: Path, kind: Any) -> None:
    source, log = tmp_path / "source", tmp_path / "log"
    died = f"""if True:
        import os, sys, deedbook
        log = deedbook.{kind.__name__}.create(sys.argv[1], durability="none")
        log.append_many([b"one", b"two"])
        os._exit(0)"""
    subprocess.run([sys.executable, "-c", died, source], check=True)
    with kind.open(source) as opened:
        assert opened.durable_end is not None and opened.durable_end < opened.end
        said = rf"source is synced up to byte {opened.durable_end}, and written up to byte"
    none: Any = None  # a refusal needs no session
    with pytest.raises(InvalidArgumentError, match=said):
        migrate(none, source, log, format="book")
    assert not log.exists()
    with kind.open(source, "a") as opened:
        opened.sync()
    assert migrate(spark, source, log, format="book").records == 2


@pytest.mark.parametrize("kind", ["book", "wal", "ledger"])
def test_nonconsecutive_logs_are_refused_before_any_copy(tmp_path: Path, kind: str) -> None:
    source, log = tmp_path / "source", tmp_path / "log"
    source.mkdir()
    for name in ("a", "b"):
        append_to(kind, source / name, [b"x"])
    none: Any = None  # a refusal needs no session
    said = "b begins with event 1, and .*a ends with event 1" if kind == "book" else "there are 2 l"
    for dry_run in (True, False):
        with pytest.raises(InvalidArgumentError, match=f"{said}.*: migrate could not .* compact t"):
            migrate(none, source, log, format="wal", dry_run=dry_run)
    assert not log.exists()


def test_a_copy_that_differs_is_noticed(spark: Any, tmp_path: Path) -> None:
    append_to("wal", tmp_path / "wal", [b"one", b"two", b"three"])
    migrate(spark, tmp_path / "wal", tmp_path / "book", format="book")
    for number, payloads in enumerate(
        ([b"two", b"one", b"three"], [b"one", b"two", b"threE"], [b"one", b"two"])
    ):
        with Book.create(tmp_path / f"other {number}") as book:
            book.append_many(payloads)
            shutil.copy(Path(book.path) / "book.log", tmp_path / "book" / "book.log")
        for mark in (tmp_path / "book" / ".deedbook").glob("mark*"):
            mark.unlink()
        with pytest.raises(CorruptError, match=r"is not what .* is: [23] records of digest"):
            migrate(spark, tmp_path / "wal", tmp_path / "book")
