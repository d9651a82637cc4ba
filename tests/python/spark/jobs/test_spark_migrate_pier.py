"""A pier in LMDB comes to books through Spark: a task for each epoch, whatever is killed."""

import errno
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import deedbook
from deedbook import AlreadyExistsError, Book, ContiguityError, InvalidArgumentError, Pier
from deedbook.spark.jobs import _migrate_pier, is_lmdb_pier, migrate, migrate_pier
from logs import append_to, make_epochs
from places import DATA
from spark_session import kill_when

GOLDEN = DATA / "lmdb" / "pier-lmdb"


def pier_of(home: Path, epochs: int, events: int, size: int) -> Path:
    """A pier in LMDB, made by the way back from books."""
    jams = [b"%0*d" % (size, n) for n in range(events)]
    numbers = [number * events for number in range(epochs)]
    log = make_epochs(home / "books", dict.fromkeys(numbers, jams), mugs=range(events))
    for made in list(log.iterdir()):
        (made / "epoc.txt").write_text("3")
        (made / "vere.txt").write_text("3.1")
    shutil.copy(GOLDEN / ".urb" / "log" / "data.mdb", log)
    Book.export_lmdb(home / "books", home / "pier")
    return home / "pier"


def held(pier: Path) -> list[tuple[int, int, bytes]]:
    with Pier.open(pier) as opened:
        return [(deed.event, deed.mug, deed.jam) for deed in opened]


def names(pier: Path) -> list[str]:
    return sorted(path.name for path in (pier / ".urb" / "log").iterdir())


def test_spark_migrates_lmdb_pier_as_the_core_does(spark: Any, tmp_path: Path) -> None:
    Book.migrate_lmdb(GOLDEN, tmp_path / "core", layout="slots")
    dest = tmp_path / "dest"
    planned = migrate_pier(spark, GOLDEN, dest, layout="slots", dry_run=True)
    assert not dest.exists() and planned.dry_run
    assert [(one.epoch, one.first, one.last) for one in planned.epochs] == [
        (0, 1, 60),
        (60, 61, 100),
    ]
    report = migrate_pier(spark, GOLDEN, dest, layout="slots")
    assert (report.events, report.brought) == (planned.events, planned.brought) == (100, 100)
    assert held(dest) == held(tmp_path / "core")
    assert names(dest) == names(tmp_path / "core")
    for epoch in ("0i0", "0i60"):
        log = dest / ".urb" / "log" / epoch
        assert (log / "epoc.txt").read_text() == "3" and (log / "vere.txt").exists()
        with Book.open(log) as book:
            assert book.layout == "slots"
    again = migrate_pier(spark, GOLDEN, dest)
    assert (again.events, again.brought, again.passed_over) == (100, 0, 0)
    quick = migrate_pier(spark, GOLDEN, dest, verify=False)
    assert (quick.events, quick.passed_over) == (40, 1)
    with pytest.raises(InvalidArgumentError, match=r"packed asked for.*has slots"):
        migrate_pier(spark, GOLDEN, dest, layout="packed")


def test_what_differs_from_the_source_is_noticed(spark: Any, tmp_path: Path) -> None:
    dest = tmp_path / "dest"
    migrate_pier(spark, GOLDEN, dest)
    shutil.rmtree(dest / ".urb" / "log" / "0i60")
    append_to("book", dest / ".urb" / "log" / "0i60", [b"another event"], epoch=60)
    with pytest.raises(AlreadyExistsError, match="event 61 is another one in the destination"):
        migrate_pier(spark, GOLDEN, dest)


def test_what_is_no_pier_in_lmdb_is_refused(spark: Any, tmp_path: Path) -> None:
    Book.migrate_lmdb(GOLDEN, tmp_path / "books")
    assert is_lmdb_pier(GOLDEN) and not is_lmdb_pier(tmp_path / "books")
    with pytest.raises(InvalidArgumentError, match="is no pier with epochs in LMDB"):
        migrate_pier(spark, tmp_path / "books", tmp_path / "dest")
    with pytest.raises(InvalidArgumentError, match="migrate_pier makes books of it"):
        migrate(spark, GOLDEN, tmp_path / "dest", format="book")
    source = tmp_path / "gap"
    shutil.copytree(GOLDEN, source)
    (source / ".urb" / "log" / "0i60").rename(source / ".urb" / "log" / "0i61")
    with pytest.raises(ContiguityError, match="epoch 61 comes after an epoch that ends with 60"):
        migrate_pier(spark, source, tmp_path / "dest")
    assert not (tmp_path / "dest").exists()


def test_attempts_at_one_time_make_one_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Speculation, or an executor whose driver is dead: another attempt is at the same epoch."""
    log = make_epochs(tmp_path, {})
    task = _migrate_pier._Task(GOLDEN, tmp_path, None, False, [0, 60])
    context = SimpleNamespace(taskAttemptId=lambda: 7)
    monkeypatch.setattr(_migrate_pier, "TaskContext", SimpleNamespace(get=lambda: context))
    task.bring(60)  # before the epoch that comes before it
    assert names(tmp_path) == [".making-0i60"]
    making = log / ".making-0i60"
    making.joinpath("ready").unlink()  # signed, and its directory still to be synced
    _migrate_pier.publish(log, [60])
    assert names(tmp_path) == [".making-0i60"]
    other = log / ".making-0i0" / ".urb" / "log"
    other.mkdir(parents=True)
    with Book.create(other / "0i0"):
        assert task.bring(0).events == 60
    assert "0i60" not in names(tmp_path)
    real = _migrate_pier._Task._stage

    def overtaken(task: Any, making: Path, epoch: int) -> Any:
        """Another attempt ends while this one signs its epoch."""
        monkeypatch.setattr(_migrate_pier._Task, "_stage", real)
        task.bring(epoch)
        path = making / ".urb" / "log" / f"0i{epoch}" / "epoc.txt"
        raise deedbook.MissingError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))

    monkeypatch.setattr(_migrate_pier._Task, "_stage", overtaken)
    assert task.bring(60).found == 40
    assert {"0i0", "0i60"} < set(names(tmp_path))
    assert len(held(tmp_path)) == 100


def test_finished_epoch_that_grew_gets_the_rest(spark: Any, tmp_path: Path) -> None:
    before = pier_of(tmp_path / "a", 2, 5, 10)
    dest, books = tmp_path / "dest", tmp_path / "a" / "books"
    make_epochs(dest, {})
    _migrate_pier._Task(before, dest, None, False, [0, 5]).bring(5)
    assert names(dest) == [".making-0i5"]
    append_to("book", books / ".urb" / "log" / "0i5", [b"later"] * 3, mugs=range(3))
    Book.export_lmdb(books, tmp_path / "grown")
    report = migrate_pier(spark, tmp_path / "grown", dest)
    assert (report.events, report.brought) == (13, 8)
    assert [event for event, _, _ in held(dest)] == list(range(1, 14))


@pytest.mark.parametrize("kind", ["packed", "slots"])
def test_migrated_book_has_the_requested_layout(spark: Any, tmp_path: Path, kind: Any) -> None:
    append_to("wal", tmp_path / "wal", [b"one", b"two"])
    if kind == "slots":  # a run that was killed as it made the book left its directory
        (tmp_path / "book").mkdir()
    migrate(spark, tmp_path / "wal", tmp_path / "book", format="book", layout=kind)
    other: Any = "slots" if kind == "packed" else "packed"
    with Book.open(tmp_path / "book") as book:
        assert (book.layout, list(book.payloads())) == (kind, [b"one", b"two"])
    report = migrate(spark, tmp_path / "book", tmp_path / "other", format="book", layout=other)
    assert report.records == 2
    with Book.open(tmp_path / "other") as book:
        assert book.layout == other
    with pytest.raises(InvalidArgumentError, match=f"{kind} asked for, it has {other}"):
        migrate(spark, tmp_path / "book", tmp_path / "other", layout=kind)
    with pytest.raises(InvalidArgumentError, match="is for books, there is a wal"):
        migrate(spark, tmp_path / "book", tmp_path / "w", format="wal", layout=kind)


@pytest.mark.full
def test_killed_pier_migration_resumes(tmp_path: Path, run_spark: Any) -> None:
    # Many small epochs give the kill as much time as few large ones, for less data.
    epochs, events = 8, 5000
    source, dest = pier_of(tmp_path, epochs, events, 1000), tmp_path / "dest"
    command = ["spark", "migrate", source, dest, "--master", "local[1]", "--json"]
    first = dest / ".urb" / "log" / "0i0" / "epoc.txt"
    kill_when(first.exists, command, look_every_s=0.002)
    assert not (dest / ".urb" / "log" / "data.mdb").exists()
    ran = run_spark(*command)
    assert ran.code == 0, ran.err
    report = json.loads(ran.out)
    assert report["ok"] and report["events"] == epochs * events
    assert 0 < report["brought"] <= (epochs - 1) * events
    made = {f"0i{number * events}" for number in range(epochs)}
    assert set(names(dest)) == {*made, "data.mdb", "lock.mdb"}
    assert held(dest) == held(tmp_path / "books")
