"""Lines that jobs put aside, without Spark: each bad line is there once, after any restart."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deedbook.spark.jobs._input import aside as _aside
from deedbook.spark.jobs._input.aside import Aside
from deedbook.spark.jobs._input.stream import Checkpoint

pytestmark = pytest.mark.spark


@pytest.fixture(autouse=True)
def _in_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    task = SimpleNamespace(partitionId=lambda: 3, taskAttemptId=lambda: 7)
    monkeypatch.setattr(_aside, "TaskContext", SimpleNamespace(get=lambda: task))


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Files with a bad line each."""
    made = [tmp_path / f"{number}.jsonl" for number in range(2)]
    for file in made:
        file.write_text("{\n")
    return made


@pytest.fixture
def own(tmp_path: Path) -> Checkpoint:
    """The checkpoint of a job over the files."""
    return Checkpoint.of("import", str(tmp_path), tmp_path / "store", None)


def put_aside(
    at: Path, own: Checkpoint, query: str, files: list[Path], batch: int = 0, value: bytes = b"{"
) -> None:
    """The work of a batch with files of one bad line each."""
    aside = Aside(str(at), own, query, batch, "no event")
    aside.begin()
    names = [str(file) for file in files]
    lines = pa.RecordBatch.from_pydict(
        {"file": names, "byte": [0] * len(names), "value": [value] * len(names)}
    )
    counted = (SimpleNamespace(add=int), SimpleNamespace(add=int))
    for good in aside.good(iter([lines]), lambda batch: (batch, ["no"] * len(names)), counted):
        assert good.num_rows == 0
    aside.finish()


def lines(at: Path) -> list[tuple[str, str, int]]:
    """Query, file and line of each line in the folder."""
    rows = pq.read_table(at).to_pylist()
    return sorted((row["query"], Path(row["file"]).name, row["line"]) for row in rows)


def test_lines_of_a_lost_checkpoint_are_there_once(
    tmp_path: Path, own: Checkpoint, files: list[Path]
) -> None:
    """Another query then reads all files again; earlier, its folder repeated the same lines."""
    at = tmp_path / "bad"
    for number, file in enumerate(files):
        put_aside(at, own, "a", [file], number)
    assert lines(at) == [("a", "0.jsonl", 1), ("a", "1.jsonl", 1)]
    put_aside(at, own, "b", files)
    assert lines(at) == [("b", "0.jsonl", 1), ("b", "1.jsonl", 1)]
    assert [folder.name for folder in at.iterdir()] == ["query=b"]
    put_aside(at, own, "b", files[:1], 1)  # the query keeps its own lines
    assert len(lines(at)) == 3


def test_lines_of_files_that_are_gone_stay(
    tmp_path: Path, own: Checkpoint, files: list[Path]
) -> None:
    """No job can read these lines again: only the folder of bad lines has them."""
    at = tmp_path / "bad"
    put_aside(at, own, "a", files)
    files[0].unlink()
    put_aside(at, own, "b", files[1:])
    assert lines(at) == [("a", "0.jsonl", 1), ("b", "1.jsonl", 1)]
    put_aside(at, own, "c", files[1:])
    assert lines(at) == [("a", "0.jsonl", 1), ("c", "1.jsonl", 1)]
    # A new file has the same name: the old line exists nowhere else.
    put_aside(at, own, "d", files[1:], value=b"[")
    assert lines(at) == [("a", "0.jsonl", 1), ("c", "1.jsonl", 1), ("d", "1.jsonl", 1)]


def test_lines_of_other_jobs_stay(tmp_path: Path, own: Checkpoint, files: list[Path]) -> None:
    """Other jobs, other targets and other programs may share the directory."""
    at = tmp_path / "bad"
    others = [
        replace(own, app="import-other"),
        replace(own, target=str(tmp_path / "other")),
        replace(own, path=tmp_path / "kept"),
    ]
    for number, other in enumerate(others):
        put_aside(at, other, f"other{number}", files[:1])
    foreign = at / "query=foreign" / "batch=0" / "part-0.parquet"
    foreign.parent.mkdir(parents=True)
    pq.write_table(pa.table({"file": [str(files[0])], "line": [9]}), foreign)
    before = lines(at)
    assert len(before) == 4
    put_aside(at, own, "b", files[:1])
    assert lines(at) == [("b", "0.jsonl", 1), *before]


def test_aside_keeps_no_lines_in_memory_unless_needed(
    tmp_path: Path, own: Checkpoint, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    at = tmp_path / "bad"
    put_aside(at, own, "a", files)

    def held(_: Path) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(_aside, "_lines_in", held)
        assert Aside(str(at), own, "a", 0, "no event").finish() == 2
        with pytest.raises(MemoryError):
            put_aside(at, own, "b", files)
    assert Aside(None, own, "a", 0, "no event").finish() == 0
