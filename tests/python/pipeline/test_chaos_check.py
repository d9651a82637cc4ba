"""The check of the trials finds each loss: a handmade pipeline with one fault each."""

import json
import shutil
import threading
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from log_bytes import flip

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from chaos.check import COLUMNS, check, input_of
from chaos.follow import Followed, follow
from chaos.home import DELAY_SECONDS, WINDOW_SECONDS, Home
from chaos.inputs.events import REASONS, judge
from chaos.inputs.generate import start
from chaos.inputs.notes import expected_file, notes_of
from deedbook import Book, Wal

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("pubkey", pa.string()),
        ("created_at", pa.int64()),
        ("kind", pa.int32()),
        ("tags", pa.list_(pa.list_(pa.string()))),
        ("content", pa.string()),
        ("sig", pa.string()),
        ("time", pa.timestamp("us", "UTC")),
    ]
)


def in_utc(seconds: int) -> datetime:
    return datetime.fromtimestamp(seconds, timezone.utc)


def table(folder: Path, rows: list[dict[str, Any]], schema: Any = None, name: str = "0") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema), folder / f"{name}.parquet")
    return folder / f"{name}.parquet"


def rows_in(file: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.ParquetFile(file).read().to_pylist()
    return found


def make(folder: Path) -> Home:
    home = Home(folder)
    home.begin()
    assert start(folder / "in", events=600, seed=5).wait().complete
    silver: dict[str, dict[str, Any]] = {}
    bad = []
    for source in home.sources:
        taken = [(w, p) for w, p in input_of(source) if p or source.kind != "lines"]
        opener: Any = Book if source.bronze == "book" else Wal
        home.bronze(source.name).parent.mkdir(parents=True, exist_ok=True)
        with opener.open(home.bronze(source.name), "a") as log:
            log.append_many(payload for _, payload in taken)
        for where, payload in taken:
            key, fault = judge(payload)
            if key is not None:
                event = json.loads(payload)
                row = {name: event[name] for name in COLUMNS}
                silver.setdefault(key, {**row, "time": in_utc(event["created_at"])})
            elif fault is not None:
                name, _, position = where.rpartition(":")
                place = {"source": f"file:/x/{name}", "position": int(position)}
                bad.append({**place, "reason": REASONS[fault], "value": payload})
    table(home.table("quarantine"), bad)
    rows = [*silver.values()]
    _gold(home, [rows[:200], rows[200:400], rows[400:]])
    return home


def _gold(home: Home, batches: list[list[dict[str, Any]]]) -> None:
    checkpoint = home.checkpoint("gold/windows")
    for folder in ("offsets", "sources/0"):
        (checkpoint / folder).mkdir(parents=True)
    windows: Counter[tuple[int, int]] = Counter()
    authors: Counter[str] = Counter()
    newest = 0
    for number, batch in enumerate(batches):
        file = table(home.table("silver"), batch, SCHEMA, str(number))
        note = json.dumps({"path": file.as_uri(), "batchId": number})
        (checkpoint / "sources" / "0" / str(number)).write_text(f"v1\n{note}\n")
        offset = json.dumps({"logOffset": number})
        (checkpoint / "offsets" / str(number)).write_text(f"v1\n{{}}\n{offset}")
        for row in batch:
            start = row["created_at"] // WINDOW_SECONDS * WINDOW_SECONDS
            if start + WINDOW_SECONDS > newest:
                windows[start, row["kind"]] += 1
            authors[row["pubkey"]] += 1
        newest = max(newest, *(row["created_at"] - DELAY_SECONDS for row in batch))
    passed = [one for one in windows if one[0] + WINDOW_SECONDS <= newest]
    table(
        home.table("gold/windows"),
        [{"start": in_utc(one[0]), "kind": one[1], "events": windows[one]} for one in passed],
    )
    table(home.table("gold/authors"), [{"pubkey": o, "events": n} for o, n in authors.items()])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("chaos") / "home").folder


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Home:
    """A copy for one fault; silver's files are named by path."""
    home = Home(Path(shutil.copytree(made, tmp_path / "home")))
    for note in (home.checkpoint("gold/windows") / "sources" / "0").iterdir():
        note.write_text(note.read_text().replace(str(made), str(home.folder)))
    return home


def failed(home: Home, **given: Any) -> set[str]:
    return {one.name for one in check(home, **given) if not one.ok}


def follow_briefly(home: Home) -> list[Followed]:
    stop = threading.Event()
    threading.Timer(2, stop.set).start()
    return follow(home, stop)


def test_check_passes_a_correct_pipeline(home: Home) -> None:
    followed = follow_briefly(home)
    assert failed(home, followed=followed) == set()
    assert len(check(home, followed)) == 3 * 4 + 7
    faults = {
        note.fault
        for one in home.sources
        for note in notes_of(expected_file(one.path.parent, one.name))
    }
    assert faults >= {None, "json", "schema", "object"}


def edit(file: Path, change: Callable[[list[dict[str, Any]]], Any]) -> None:
    schema = pq.ParquetFile(file).schema_arrow
    rows = rows_in(file)
    change(rows)
    pq.write_table(pa.Table.from_pylist(rows, schema), file)


def set_first(**values: Any) -> Callable[[list[dict[str, Any]]], None]:
    return lambda rows: rows[0].update(values)


def twice(rows: list[dict[str, Any]]) -> None:
    rows.append(rows[0])


def without_first(rows: list[dict[str, Any]]) -> None:
    del rows[0]


QUARANTINE = "bad lines are in quarantine, with place and reason"
KEYS, AUTHORS = "silver has each key of bronze once", "gold: events by author"
WINDOWS, ONCE = "gold: events of the windows that have passed", "gold: each window is there once"
CONTENT, TIMES = "silver has what the lines say", "silver has the times of the lines"


@pytest.mark.parametrize(
    ("name", "change", "due"),
    [
        ("quarantine", without_first, {QUARANTINE}),
        ("quarantine", twice, {QUARANTINE}),
        ("quarantine", set_first(position=1_000_000), {QUARANTINE}),
        ("quarantine", set_first(reason="because"), {QUARANTINE}),
        ("quarantine", set_first(value=b"another"), {QUARANTINE}),
        ("silver", without_first, {KEYS, AUTHORS}),
        ("silver", twice, {KEYS, AUTHORS}),
        ("silver", set_first(content="forged"), {CONTENT}),
        ("silver", set_first(time=in_utc(0)), {TIMES}),
        ("gold/windows", without_first, {WINDOWS}),
        ("gold/windows", twice, {ONCE}),
        ("gold/windows", set_first(events=1_000_000), {WINDOWS}),
        ("gold/authors", without_first, {AUTHORS}),
        ("gold/authors", set_first(events=0), {AUTHORS}),
    ],
)
def test_a_table_that_is_wrong_is_found(home: Home, name: str, change: Any, due: set[str]) -> None:
    edit(home.table(name) / "0.parquet", change)
    # A row missing in silver may also be missing in a window.
    assert failed(home) - (set() if WINDOWS in due else {WINDOWS}) == due


@pytest.mark.parametrize(
    ("payloads", "wrong"),
    [
        (lambda all: all[:-1], "a record less"),
        (lambda all: [*all, all[-1]], "a record twice"),
        (lambda all: [*all[:-2], all[-1], all[-2]], "another order"),
    ],
)
@pytest.mark.parametrize("source", ["files", "orders", "spool"])
def test_a_log_that_is_wrong_is_found(home: Home, source: str, payloads: Any, wrong: str) -> None:
    path = home.bronze(source)
    opener: Any = Wal if source == "spool" else Book
    with opener.open(path) as log:
        before = list(log.payloads())
    shutil.rmtree(path)
    with opener.open(path, "a") as log:
        log.append_many(payloads(before))
    assert f"{source}: bronze has the input" in failed(home), wrong


def test_a_damaged_log_is_found(home: Home) -> None:
    file = home.bronze("files") / "book.log"
    flip(file, file.stat().st_size // 2)
    assert "files: bronze is intact" in failed(home)


def test_check_finds_lost_followed_records(home: Home) -> None:
    followed = follow_briefly(home)
    note = home.follower("orders")
    lines = note.read_text().splitlines()
    lines[0] = json.dumps({**json.loads(lines[0]), "sha256": "0" * 64})
    note.write_text("\n".join(lines) + "\n")
    assert failed(home) == {"orders: what a follower saw is there"}
    note.write_text("\n".join(lines[1:]) + "\n")
    again = follow_briefly(home)
    assert again != followed
    assert "orders: a follower saw all of bronze" in failed(home, followed=again)


def test_check_ignores_leftover_table_files_of_kills(home: Home) -> None:
    silver = home.table("silver")
    log = silver / "_spark_metadata"
    log.mkdir()
    files = sorted(silver.glob("*.parquet"))
    lines = [json.dumps({"path": one.as_uri(), "action": "add"}) for one in files]
    (log / "0.compact").write_text("\n".join(["v1", *lines[:2]]))
    (log / "1").write_text("\n".join(["v1", lines[2]]))
    shutil.copy(files[0], silver / "left.parquet")
    assert failed(home) == set()
    (log / "1").write_text("\n".join(["v1", lines[1]]))
    assert "silver can be read" in failed(home)
