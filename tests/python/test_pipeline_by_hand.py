"""The check of a pipeline that was made by hand, and what is said of checks."""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import pyarrow as pa
import pyarrow.parquet as pq

from deedbook import Book, Event, EventStore
from deedbook.cli import main
from deedbook.pipeline.check import Check, check
from deedbook.pipeline.config import load
from deedbook.pipeline.events import Line, judge
from deedbook.pipeline.follow import Followed
from deedbook.pipeline.notes import JsonLines, Note, expected_file
from test_nostr import EVENTS, LINES

WINDOW = 600
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
        put(
            home / "out" / "quarantine" / "silver" / "a.parquet",
            [row],
            {"source": text, "position": pa.int64(), "reason": text, "value": binary},
        )
    else:
        (home / "in" / "lines").mkdir()
        (home / "in" / "lines" / "a.jsonl").write_bytes(b"\n".join([*lines, b""]))
        with EventStore.create(bronze) as store:
            store.append_many([Event.from_json(line) for line in lines if line != FORGED])
        row = {"file": "/in/a.jsonl", "line": at, "value": FORGED}
        put(
            home / "out" / "quarantine" / "orders" / "a.parquet",
            [row],
            {"file": text, "line": pa.int64(), "value": binary},
        )
    put_tables(home / "out", [Event.from_json(line) for line in silver])
    return config


def put_tables(out: Path, events: list[Event]) -> None:
    """Silver, and gold that follows from it."""
    times = pa.timestamp("us", "UTC")
    for number, event in enumerate(events):
        created = datetime.fromtimestamp(event.created_at, timezone.utc)
        row = {
            **event.to_dict(),
            **{name: bytes.fromhex(getattr(event, name)) for name in ("id", "pubkey", "sig")},
            "source": "orders",
            "created_at": created,
        }
        put(
            out
            / "silver"
            / "parquet"
            / f"day={created:%Y-%m-%d}"
            / f"part-01234567-000000-{number:04}.parquet",
            [row],
            {
                **dict.fromkeys(("source", "content"), pa.string()),
                **dict.fromkeys(("id", "pubkey", "sig"), pa.binary()),
                **{"created_at": times, "kind": pa.int32()},
                "tags": pa.list_(pa.list_(pa.string())),
            },
        )
    windows: Counter[tuple[int, int]] = Counter()
    sizes: Counter[tuple[int, int]] = Counter()
    for event in events:
        key = event.created_at // WINDOW * WINDOW, event.kind
        windows[key] += 1
        sizes[key] += len(event.content.encode())
    numbers = dict.fromkeys(("kind", "events", "bytes", "batch", "late"), pa.int64())
    put(
        out / "gold" / "windows" / "part-01234567-000000-0000.parquet",
        [
            {
                "window": datetime.fromtimestamp(at, timezone.utc),
                **{"kind": kind, "events": count, "bytes": sizes[at, kind]},
                **{"batch": 0, "late": 0},
            }
            for (at, kind), count in windows.items()
        ],
        {"window": times, **numbers},
    )
    authors = Counter(event.pubkey for event in events)
    put(
        out / "gold" / "authors" / "a.parquet",
        [{"pubkey": bytes.fromhex(one), "events": count} for one, count in authors.items()],
        {"pubkey": pa.binary(), "events": pa.int64()},
    )
    kinds = Counter(str(event.kind) for event in events)
    totals = {"events": len(events), "bytes": sizes.total(), "late": 0}
    top = {"kinds": dict(kinds.most_common(20)), "authors": dict(authors.most_common(20))}
    (out / "gold" / "top.json").write_text(json.dumps({**totals, **top}))
    (out / "gold" / "state.json").write_text(json.dumps({"lateness": [[0, 3600]]}))


def wrong(config: Path) -> set[str]:
    return {one.name for one in check(load(config)) if one.ok is not True}


@pytest.mark.parametrize("kind", ['log = "in/app.wal"', 'lines = "in/lines"'])
def test_signatures_are_judged_where_a_source_checks_them(tmp_path: Path, kind: str) -> None:
    """A pipeline that put forged events aside, as configured, was called wrong."""
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
    """One that had ended early, or with an error, was held against what it had seen alone."""
    config = load(make(tmp_path / "home", 'log = "in/app.wal"', [*GOOD, FORGED], GOOD))
    found = {one.name: one for one in check(config, [Followed("orders", records, error)])}
    one = found["orders: a follower saw all of bronze"]
    assert one.ok is ok
    assert error is None or error in str(one.found)


def test_an_event_on_another_day_is_wrong(tmp_path: Path) -> None:
    """Any day was right that both tables had, which are made of the same rows."""
    config = make(tmp_path / "home", 'log = "in/app.wal"', [*GOOD, FORGED], GOOD)
    table = tmp_path / "home" / "out" / "silver" / "parquet"
    next(table.glob("day=*")).rename(table / "day=1999-12-31")
    assert wrong(config) == {"silver: parquet has each event on the day of its time"}


def test_a_gold_that_finds_no_event_late_is_wrong(tmp_path: Path) -> None:
    """The check took the number that gold gave."""
    config = make(tmp_path / "home", 'log = "in/app.wal"', [*GOOD, FORGED], GOOD)
    assert wrong(config) == set()
    times = [json.loads(line)["created_at"] for line in GOOD]
    oldest = times.index(min(times))
    assert min(times) < max(times) - 3600
    silver = tmp_path / "home" / "out" / "silver" / "parquet"
    (file,) = silver.glob(f"day=*/*-{oldest:04}.parquet")
    file.rename(file.with_name(f"part-01234567-000001-{oldest:04}.parquet"))
    assert wrong(config) == {"gold: late events by batch"}


PASSED, FAILED, LEFT = (Check(str(ok), ok, "", "") for ok in (True, False, None))


def test_a_check_that_was_not_made_did_not_pass() -> None:
    report = pytest.importorskip("deedbook.pipeline.report", reason="matplotlib is not installed")
    passed, failed, left = PASSED, FAILED, LEFT
    assert report.verdict_of([passed] * 3) == "all 3 checks passed"
    assert report.verdict_of([passed, left, passed, left]) == "2 passed, 2 not checked"
    assert report.verdict_of([passed, left, failed]) == "1 of 3 checks FAILED, 1 not checked"
    assert report.verdict_of([]) == "not checked"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds processes in /proc")
def test_a_trial_says_how_many_checks_it_did_not_make(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    trial = pytest.importorskip("deedbook.pipeline.trial", reason="matplotlib is not installed")
    ended = trial.Ended("dir", (), (), 0, {}, (), (PASSED, LEFT), "page", 1.0)
    monkeypatch.setattr(trial.Trial, "run", lambda *_: ended)
    assert main(["pipeline", "chaos", str(tmp_path / "trial")]) == 0
    said = capsys.readouterr().out
    assert "in 1 s; 0 of 2 checks failed, 1 not checked" in said
