"""Files with names for jobs: no name leads out of its folder."""

import contextlib
import copy
import functools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import CorruptError, EventStore, NotALogError, TooLargeError, UnsupportedError
from deedbook._cli.write.import_notes import Notes
from deedbook._system.durable import load_json, store_json
from deedbook._system.lock import alone
from deedbook._system.regular import SMALL_BYTES_MAX, open_regular, read_small
from logs import append_to

pytest.importorskip("pyspark")
tables = pytest.importorskip("deedbook.spark.jobs._tables")

posix = pytest.mark.skipif(os.name != "posix", reason="needs links and FIFOs")


def state(top: Path) -> dict[str, Any]:
    return {
        str(file.relative_to(top)): file.read_bytes() if file.is_file() else None
        for file in sorted(top.rglob("*"))
    }


@posix
@pytest.mark.parametrize("place", ["jobs/staged/day=2026-01-02", "table/day=2026-01-02"])
def test_an_export_follows_no_link_of_a_folder(place: str, tmp_path: Path) -> None:
    pytest.importorskip("deltalake", reason="deltalake is not installed")
    table = tables.DeltaTable(tmp_path / "table", ["day"], "app", tmp_path / "jobs")
    for folder in ("jobs/staged/day=2026-01-02", "table", "outside"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "x.parquet").write_bytes(folder.encode())
    if (tmp_path / place).exists():
        (tmp_path / place).rename(tmp_path / "away")
    (tmp_path / place).symlink_to(tmp_path / "outside")
    before = state(tmp_path / "outside")
    with pytest.raises(NotALogError):
        table._move([("day=2026-01-02/x.parquet", "day=2026-01-02/y.parquet")])
    assert state(tmp_path / "outside") == before


@pytest.mark.parametrize(
    "name", ["../victim", "TOP/victim", "..", ".", "", "00000/..", "0\n", 0, None]
)
def test_a_plan_of_compact_names_no_log_outside(name: Any, tmp_path: Path) -> None:
    """Earlier, the job joined ``name`` of the plan to the target unchecked."""
    compact = pytest.importorskip("deedbook.spark.jobs._compact")
    with deedbook.Book.create(tmp_path / "log") as book:
        book.append(b"deed")
    name = name.replace("TOP", str(tmp_path)) if isinstance(name, str) else name
    source = {"path": str(tmp_path / "log"), "records": 1, "bytes": 40, "first": 1}
    plan = {
        "given": [str(tmp_path / "log")],
        "format": "book",
        "logs": [{"name": name, "sources": [source]}],
    }
    store_json(tmp_path / "made" / "compaction.json", plan)
    before = state(tmp_path)
    with pytest.raises(CorruptError):
        compact.compact(None, [tmp_path / "log"], tmp_path / "made", dry_run=True)
    assert state(tmp_path) == before


@pytest.mark.parametrize("id", ["../x", "/x", "a/b", "", "..", "a\0"])
def test_query_id_cannot_name_outside_folders(id: str, tmp_path: Path) -> None:
    """The folder of bad lines is named by it, and is removed before a batch."""
    stream = pytest.importorskip("deedbook.spark.jobs._input.stream")
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "metadata").write_text(json.dumps({"id": id}))
    with pytest.raises(CorruptError):
        assert stream.Checkpoint("target", "app", tmp_path / "checkpoint").query


@posix
def test_a_linked_folder_of_offsets_keeps_its_files(tmp_path: Path) -> None:
    """A version before removed the files whose names begin with a dot."""
    stream = pytest.importorskip("deedbook.spark.jobs._input.stream")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".profile").write_bytes(b"mine")
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "offsets").symlink_to(tmp_path / "home")
    with pytest.raises(NotALogError):
        stream.Checkpoint("target", "app", tmp_path / "checkpoint").prepare()
    assert (tmp_path / "home" / ".profile").exists()


@posix
def test_notes_are_never_read_or_written_through_links(tmp_path: Path) -> None:
    """Earlier, notes, leftovers of killed writes, and locks were opened through links."""
    victim = tmp_path / "victim"
    victim.write_bytes(b"{}")
    for link in ("note", ".note.new", "lock"):
        (tmp_path / link).symlink_to(victim)
    with pytest.raises(NotALogError):
        load_json(tmp_path / "note")
    with pytest.raises(NotALogError), alone(tmp_path / "lock", "does it"):
        pass
    store_json(tmp_path / "note", {"a": 1})
    assert load_json(tmp_path / "note") == {"a": 1} and victim.read_bytes() == b"{}"
    assert not (tmp_path / "note").is_symlink()


@posix
def test_open_regular_refuses_other_files_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    for name in ("fifo", "folder", "link"):
        for flags in (os.O_RDONLY, os.O_RDWR, os.O_WRONLY):
            with pytest.raises(NotALogError) as raised:
                open_regular(tmp_path / name, flags)
            assert raised.value.path == str(tmp_path / name)
    with pytest.raises(NotALogError):
        open_regular("/dev/null")
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "none")


def test_a_small_file_is_small(tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(TooLargeError, match=f"has {1 << 30} bytes, at most {SMALL_BYTES_MAX} are"):
        read_small(tmp_path / "large")


@pytest.mark.parametrize("text", ["[" * 200_000, "{", "7", "\x00", "\udc80"])
def test_a_note_that_is_no_object_is_damage(text: str, tmp_path: Path) -> None:
    (tmp_path / "note").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(CorruptError):
        load_json(tmp_path / "note")


@pytest.mark.parametrize("data", [b"", b"v2\n{}\n{}", b"v1\n{}", b"v1\n{}\n{", b"v1\n{}\n\xff"])
def test_a_damaged_plan_of_a_batch_is_named(data: bytes, tmp_path: Path) -> None:
    batches = pytest.importorskip("deedbook.spark.jobs._input.batches")
    checkpoint = batches.Checkpoint("target", "app", tmp_path)
    (tmp_path / "offsets").mkdir()
    (tmp_path / "offsets" / "0").write_bytes(data)
    with pytest.raises((CorruptError, UnsupportedError), match=f"{tmp_path}/offsets/0"):
        batches._offset(checkpoint, 0)


VALUES: list[Any] = [None, "x", -1, 1 << 70, 1.5, True, [], {}, [None], {"a": 1}, [["a"]]]
GONE = object()
Noted = tuple[Path, Callable[[], object]]
"""A file, and a call that reads it."""


def places(found: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys to each value. The first value stands for a list."""
    for key in found if isinstance(found, dict) else range(isinstance(found, list) and bool(found)):
        yield (*above, key)
        yield from places(found[key], (*above, key))


def variants(good: Any) -> Iterator[Any]:
    """The value with another value at each place, and without the place."""
    for *above, last in places({"": good}):
        for value in (*VALUES, GONE):
            whole = holder = copy.deepcopy({"": good})
            for key in above:
                holder = holder[key]
            if value is GONE:
                del holder[last]
            else:
                holder[last] = value
            yield whole.get("")


def noted_compaction(top: Path) -> Noted:
    from deedbook.spark.jobs import _compact

    (top / "small").mkdir()
    append_to("book", top / "small" / "a", [b"x"])
    plan = _compact._planned([str(top / "small")], top / "few", 1 << 20)
    store_json(top / "few" / "compaction.json", plan)
    again = functools.partial(_compact._planned, [str(top / "small")], top / "few", 1 << 20)
    return top / "few" / "compaction.json", again


def noted_import(top: Path) -> Noted:
    (top / "lines").write_bytes(b"bad\n")
    with EventStore.create(top / "store") as store:
        report = store.import_json((top / "lines").open("rb"))
    notes = Notes(str(top / "store"), {})
    notes.keep(str(top / "lines"), report, 0)
    file = top / "store" / ".deedbook" / "imports.json"
    return file, lambda: Notes(str(top / "store"), {}).find(str(top / "lines"))


def noted_offset(top: Path, format: str) -> Noted:
    from deedbook.spark._read.reader import default_schema
    from deedbook.spark._read.stream import make_stream_reader

    options = {"path": str(top / "log")}

    def reader() -> Any:
        return make_stream_reader(options, default_schema(options))

    append_to(format, top / "log", [b"x"] * 10)
    reads = reader()
    offset = reads.latestOffset(reads.initialOffset(), reads.getDefaultReadLimit())
    store_json(top / "offset", offset)
    append_to(format, top / "log", [b"y"] * 10)

    def call() -> None:
        start = json.loads((top / "offset").read_bytes())
        goes_on = reader()
        goes_on.partitions(start, goes_on.latestOffset(start, goes_on.getDefaultReadLimit()))

    return top / "offset", call


@pytest.mark.parametrize(
    "noted",
    [
        noted_compaction,
        noted_import,
        functools.partial(noted_offset, format="book"),
        functools.partial(noted_offset, format="ledger"),
    ],
    ids=["compaction", "import", "book", "ledger"],
)
def test_wrong_values_in_notes_raise_our_errors(
    noted: Callable[[Path], Noted], tmp_path: Path
) -> None:
    file, call = noted(tmp_path)
    call()
    for made in variants(json.loads(file.read_bytes())):
        file.write_text(json.dumps(made))
        with contextlib.suppress(deedbook.Error):
            call()
