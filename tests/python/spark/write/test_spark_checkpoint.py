"""Spark's notes about a batch are on stable storage before the batch, and belong to the target."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import BinaryType, StructField, StructType

from deedbook import Book, ContiguityError, InvalidArgumentError
from deedbook.spark._write import checkpoint as _checkpoint
from deedbook.spark._write import writer as _writer
from deedbook.spark.jobs import ingest
from deedbook.spark.jobs._input.stream import Checkpoint

pytestmark = pytest.mark.promise("spark-power-loss", "spark-checkpoint")


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    top = tmp_path / "checkpoint"
    names = ["metadata", "offsets/0", "offsets/.0.crc", "offsets/1", "offsets/.1.crc", "commits/0"]
    names += [f"sources/0/{name}" for name in ("8", "9.compact", "10", ".10.crc", "left.tmp")]
    for name in names:
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text("v1\n")
    (top / "sources" / "1").mkdir()
    (top / "metadata").write_text(json.dumps({"id": "query"}))
    return top


def synced(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    found: list[Path] = []

    def sync(path: Path) -> None:
        os.stat(path)
        found.append(path)

    monkeypatch.setattr(_checkpoint, "sync_file", sync)
    monkeypatch.setattr(_checkpoint, "sync_folder", sync)
    return found


@pytest.mark.parametrize("url", [False, True])
def test_all_that_names_a_batch_is_synced(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, url: bool
) -> None:
    found = synced(monkeypatch)
    _checkpoint.sync_checkpoint(f"file://{checkpoint}" if url else str(checkpoint), 1)
    files = ["metadata", "offsets/1", "offsets/.1.crc", "sources/0/10", "sources/0/.10.crc"]
    folders = ["", "offsets", "sources", "sources/0", "sources/1"]
    assert sorted(found) == sorted([checkpoint.parent, *(checkpoint / n for n in files + folders)])
    assert found.index(checkpoint / "offsets/1") < found.index(checkpoint / "offsets")


def test_remote_checkpoint_is_not_synced(monkeypatch: pytest.MonkeyPatch) -> None:
    found = synced(monkeypatch)
    _checkpoint.sync_checkpoint("hdfs://node/checkpoint", 1)
    assert found == []


def test_writer_syncs_the_checkpoint_before_the_log(
    tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    Book.create(log).close()
    seen: list[tuple[str, int, int]] = []

    def sync(folder: str, batch: int) -> None:
        with Book.open(log) as book:
            seen.append((folder, batch, len(book)))

    monkeypatch.setattr(_writer, "sync_checkpoint", sync)
    options: dict[str, Any] = {"path": str(log), "checkpointlocation": str(checkpoint)}
    schema = StructType([StructField("payload", BinaryType())])
    writer = _writer.make_stream_writer(options, schema, False)
    with Book.open(log) as book, book.transactions.stage("job", 0, 1) as stage:
        stage.extend([b"one"])
        parts = stage.finish()
    writer.commit([_writer.Message("job", parts, "query")], 0)
    assert seen == [(str(checkpoint), 0, 0)]
    with Book.open(log) as book:
        assert [deed.jam for deed in book] == [b"one"]


def test_batch_files_are_read_from_the_right_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "sources" / "0"
    offsets = tmp_path / "offsets"
    notes.mkdir(parents=True)
    offsets.mkdir()

    def note(name: str, *plans: int) -> None:
        lines = [json.dumps({"path": f"file:///in/{plan}", "batchId": plan}) for plan in plans]
        (notes / name).write_text("\n".join(["v1", *lines]))

    # A plan may be in a single note, or in the next note with all earlier plans, or in both.
    for plan in (7, 8, 10, 11):
        note(str(plan), plan)
    note("9.compact", *range(10))
    note("19.compact", *range(20))
    for batch, plan in enumerate((3, 7, 8, 10, 10, 12)):
        log = json.dumps({"logOffset": plan})
        (offsets / str(batch)).write_text(f"v1\n{{}}\n{log}")
    read: list[str] = []
    entries = _checkpoint._entries

    def noted(file: Path) -> Any:
        read.append(file.name)
        return entries(file)

    monkeypatch.setattr(_checkpoint, "_entries", noted)

    def planned(batch: int) -> tuple[set[str], set[str]]:
        read.clear()
        found = _checkpoint.files_of_batch(tmp_path, batch)
        return {file.rpartition("/")[2] for file in found}, set(read)

    assert planned(0) == ({"0", "1", "2", "3"}, {"9.compact"})
    assert planned(1) == ({"4", "5", "6", "7"}, {"7", "9.compact"})
    assert planned(2) == ({"8"}, {"8"})
    assert planned(3) == ({"9", "10"}, {"9.compact", "10"})
    assert planned(4) == (set(), set())
    assert planned(5) == ({"11", "12"}, {"11", "19.compact"})


@pytest.mark.parametrize(
    ("committed", "wrong"),
    [
        (None, "has batches 0 to 0 as done, .* has none .*: batches 0 to 0 are missing"),
        (0, None),
        (1, None),  # a run was killed before Spark noted the batch as done: the batch comes again
        (2, r"has batches 0 to 2 .* and the checkpoint .* knows only batches 0 to 1: it is of an"),
    ],
)
def test_a_checkpoint_and_a_target_belong_together(
    checkpoint: Path, committed: int | None, wrong: str | None
) -> None:
    job = Checkpoint(str(checkpoint.parent / "log"), "ingest-x", checkpoint)
    if wrong is None:
        job.check(committed)
        return
    with pytest.raises(ContiguityError, match=wrong):
        job.check(committed)


def test_checkpoint_without_batches_is_refused_as_older(checkpoint: Path) -> None:
    for file in (checkpoint / "offsets").iterdir():
        file.unlink()
    job = Checkpoint(str(checkpoint.parent / "log"), "ingest-x", checkpoint)
    with pytest.raises(ContiguityError, match="knows no batch: it is of an earlier time"):
        job.check(0)
    (checkpoint / "metadata").unlink()
    with pytest.raises(InvalidArgumentError, match=r"no checkpoint is at .* restore the last"):
        job.check(0)


def test_job_refuses_an_older_checkpoint_without_spark(tmp_path: Path, checkpoint: Path) -> None:
    source, log = tmp_path / "in", tmp_path / "log"
    source.mkdir()
    (source / "a.jsonl").write_text("{}\n")
    app = Checkpoint.of("ingest", str(source), log, None).app
    with Book.create(log) as book:
        for batch in range(4):
            book.transactions.publish("job", [], app=app, version=batch, query="query")
    none: Any = None
    with pytest.raises(ContiguityError, match=r"has batches 0 to 3 .* knows only batches 0 to"):
        ingest(none, source, log, checkpoint=checkpoint)
