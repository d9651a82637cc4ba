"""The check of a pipeline that was made by hand, and what is said of checks."""

import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from deedbook import Book, Event, EventStore
from deedbook.pipeline.check import Check, check
from deedbook.pipeline.config import load
from deedbook.pipeline.events import Line, judge
from deedbook.pipeline.follow import Followed
from deedbook.pipeline.notes import JsonLines, Note, expected_file
from nostr_events import EVENTS, LINES

TRUE = "silver: parquet has the content that the ids and signatures say"
ONCE = "silver: parquet has each event of bronze once"
CONFIG = """
[pipeline]
directory = "out"
window = "10m"

[[source]]
name = "orders"
{kind}
check = "signature"
"""

FORGED = json.dumps({**EVENTS[0], "sig": EVENTS[1]["sig"]}).encode()
GOOD = list(dict.fromkeys(LINES[1:20]))


def put(file: Path, rows: list[dict[str, Any]], types: dict[str, Any]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(types)), file)


def make(home: Path, kind: str, lines: list[bytes], silver: list[bytes]) -> Path:
    """A pipeline that read these lines, and has these in silver; the forged one is put aside."""
    home.mkdir()
    config = home / "pipeline.toml"
    config.write_text(CONFIG.format(kind=kind))
    is_log = kind.startswith("log")
    noted = [Line(line, *judge(line)) for line in lines]
    wheres = [None if is_log else f"a.jsonl:{n}" for n in range(1, len(lines) + 1)]
    with JsonLines(expected_file(home / "in", "orders")) as notes:
        notes.add_notes(
            [Note.of(n, *of, None) for n, of in enumerate(zip(noted, wheres, strict=True), 1)]
        )
    bronze = home / "out" / "bronze" / "orders"
    bronze.parent.mkdir(parents=True)
    binary, text = pa.binary(), pa.string()
    at = lines.index(FORGED) + 1
    if is_log:
        with Book.create(bronze) as book:
            book.append_many(lines)
        row = {"source": "orders", "position": at, "reason": "forged", "value": FORGED}
        types = {"source": text, "position": pa.int64(), "reason": text, "value": binary}
        put(home / "out" / "quarantine" / "silver" / "a.parquet", [row], types)
    else:
        (home / "in" / "lines").mkdir()
        (home / "in" / "lines" / "a.jsonl").write_bytes(b"\n".join([*lines, b""]))
        with EventStore.create(bronze) as store:
            store.append_many([Event.from_json(line) for line in lines if line != FORGED])
        row = {"file": "/in/a.jsonl", "line": at, "value": FORGED}
        types = {"file": text, "line": pa.int64(), "value": binary}
        put(home / "out" / "quarantine" / "orders" / "a.parquet", [row], types)
    put_silver(home / "out", [Event.from_json(line) for line in silver])
    return config


def put_silver(out: Path, events: list[Event]) -> None:
    """Silver; there is no gold."""
    for number, event in enumerate(events):
        created = datetime.fromtimestamp(event.created_at, timezone.utc)
        day = out / "silver" / "parquet" / f"day={created:%Y-%m-%d}"
        row = {
            **event.to_dict(),
            **{name: bytes.fromhex(getattr(event, name)) for name in ("id", "pubkey", "sig")},
            "source": "orders",
            "created_at": created,
        }
        types = {
            **dict.fromkeys(("source", "content"), pa.string()),
            **dict.fromkeys(("id", "pubkey", "sig"), pa.binary()),
            **{"created_at": pa.timestamp("us", "UTC"), "kind": pa.int32()},
            "tags": pa.list_(pa.list_(pa.string())),
        }
        put(day / f"part-01234567-000000-{number:04}.parquet", [row], types)


def wrong(config: Path) -> set[str]:
    """The checks that fail, of those that need no gold."""
    found = {one.name for one in check(load(config)) if one.ok is not True}
    return {name for name in found if not name.startswith("gold: ")}


@pytest.mark.parametrize("kind", ['log = "in/app.wal"', 'lines = "in/lines"'])
def test_signatures_are_judged_where_a_source_checks_them(tmp_path: Path, kind: str) -> None:
    lines = [*GOOD[:5], FORGED, *GOOD[5:]]
    assert wrong(make(tmp_path / "right", kind, lines, GOOD)) == set()
    assert wrong(make(tmp_path / "wrong", kind, lines, [*GOOD, FORGED])) == {TRUE, ONCE}


@pytest.mark.parametrize(
    ("records", "error", "ok"),
    [(len(GOOD) + 1, None, True), (len(GOOD), None, False), (len(GOOD) + 1, "damage", False)],
)
def test_a_follower_must_have_seen_all(
    tmp_path: Path, records: int, error: str | None, ok: bool
) -> None:
    config = load(make(tmp_path / "home", 'log = "in/app.wal"', [*GOOD, FORGED], GOOD))
    found = {one.name: one for one in check(config, [Followed("orders", records, error)])}
    one = found["orders: a follower saw all of bronze"]
    assert one.ok is ok
    assert error is None or error in str(one.found)


PASSED, FAILED, LEFT = (Check(str(ok), ok, "", "") for ok in (True, False, None))


def test_a_check_that_was_not_made_did_not_pass() -> None:
    report = pytest.importorskip("deedbook.pipeline.report", reason="matplotlib is not installed")
    passed, failed, left = PASSED, FAILED, LEFT
    assert report.verdict_of([passed] * 3) == "all 3 checks passed"
    assert report.verdict_of([passed, left, passed, left]) == "2 passed, 2 not checked"
    assert report.verdict_of([passed, left, failed]) == "1 of 3 checks FAILED, 1 not checked"
    assert report.verdict_of([]) == "not checked"
