"""The report of a pipeline: its numbers, and the page as a browser shows it."""

import json
import re
import shutil
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from browser import WIDTHS, Browser, look
from deedbook import Book, Event, EventStore, Ledger, Wal
from deedbook._cli import main
from deedbook.pipeline.check import check
from deedbook.pipeline.config import Config, load
from deedbook.pipeline.gathered import rows_of
from deedbook.pipeline.lag import lag_of_silver, lag_of_source
from deedbook.pipeline.latency import Spread, Taken, latency_of
from deedbook.pipeline.layout import Layout
from deedbook.pipeline.notes import expected_file, notes_of
from deedbook.pipeline.progress import Lag, lines_of
from deedbook.pipeline.report import write_report
from nostr_events import made
from pipeline_breaks import TOTALS, change_top

pytestmark = pytest.mark.spark

PICTURES = ["events.png", "run.png", "latency.png", "quarantine.png"]
RED = "rgb(207, 34, 46)"


@pytest.fixture
def home(pipeline_ran: Path, tmp_path: Path) -> Path:
    """A copy to change, whose checkpoints name the logs of the copy."""
    home = Path(shutil.copytree(pipeline_ran, tmp_path / "home"))
    for file in (home / "kept" / "checkpoints").rglob("offsets/[0-9]*"):
        file.write_text(file.read_text().replace(str(pipeline_ran), str(home)))
    return home


@pytest.fixture
def config(home: Path) -> Config:
    return load(home / "pipeline.toml")


# -- lag ------------------------------------------------------------------------------------------


def lags(config: Config) -> dict[str, Lag | None]:
    layout = Layout(config)
    found = {source.name: lag_of_source(source, layout) for source in config.sources}
    return {**found, "silver": lag_of_silver(config, layout)}


NONE = {
    "files": Lag(None, 0, 0),
    "orders": Lag(0, 0),
    "spool": Lag(0, 0),
    "silver": Lag(0, 0),
}


def test_what_was_read_to_its_end_has_no_lag(config: Config) -> None:
    assert lags(config) == NONE
    layout = Layout(config)
    noted = {name: lines_of(layout.progress(name))[-1]["lag"] for name in NONE}
    assert noted == {name: vars(lag) for name, lag in NONE.items()}


def test_the_lag_is_what_has_come_since(home: Path, config: Config) -> None:
    with Wal.open(home / "in" / "app.wal", "a") as wal:
        before = wal.end
        wal.append_many([b"{}"] * 7)
        in_wal = wal.end - before
    with Ledger.open(home / "in" / "spool", "a") as ledger:
        ledger.append_many([b"one", b"two", b"three"])
        # A file that is being written cannot be read by others.
        assert lags(config) == {**NONE, "orders": Lag(7, in_wal)}
        index = Ledger.open(home / "in" / "spool").files[-1].index
    file = home / "in" / "spool" / f"{index}-events"
    (home / "in" / "files" / "000009.jsonl").write_bytes(b"{}\n{}\n")
    (home / "in" / "files" / "000010.jsonl.gz").write_bytes(b"12345")
    (home / "in" / "files" / ".000011.jsonl.new").write_bytes(b"not yet")
    assert lags(config) == {
        "files": Lag(None, 11, 2),
        "orders": Lag(7, in_wal),
        "spool": Lag(3, file.stat().st_size),
        "silver": Lag(0, 0),
    }


def test_the_lag_of_silver_is_what_bronze_has_more(home: Path, config: Config) -> None:
    bronze = home / "out" / "bronze"
    with Book.open(bronze / "orders", "a") as book, Wal.open(bronze / "spool", "a") as wal:
        before = wal.end
        book.append_many([b"12345"] * 4)
        wal.append_many([b"12345"] * 2)
        size = 4 * (24 + 5) + wal.end - before
    assert lags(config) == {**NONE, "silver": Lag(6, size)}
    with EventStore.open(bronze / "files", "a") as store:
        store.append_many([Event(**made(f"event {number}")) for number in range(3)])
    silver = lags(config)["silver"]
    assert silver.records == 9 and silver.bytes > size


def test_a_source_that_was_replaced_has_no_known_lag(home: Path, config: Config) -> None:
    shutil.rmtree(home / "in" / "app.wal")
    with Wal.create(home / "in" / "app.wal") as wal:
        wal.append_many([b"another"] * 3000)
    assert lags(config) == {**NONE, "orders": None}


def test_the_status_shows_the_lag(
    home: Path, config: Config, capfd: pytest.CaptureFixture[str]
) -> None:
    file = Layout(config).progress("orders")
    line = {**lines_of(file)[-1], "lag": {"records": 1234, "bytes": 56789, "files": None}}
    with file.open("a") as opened:
        opened.write(json.dumps(line) + "\n")
    assert main(["pipeline", "status", str(home / "pipeline.toml")]) == 0
    shown = capfd.readouterr().out
    assert ", lag then 1,234 records, 56,789 bytes" in shown
    assert ", lag then 0 files, 0 bytes" in shown
    assert main(["pipeline", "status", str(home / "pipeline.toml"), "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["sources"][1]["lag"] == line["lag"]
    assert found["silver_lag"] == vars(Lag(0, 0))


# -- latency --------------------------------------------------------------------------------------


def test_a_spread_is_that_of_all_events() -> None:
    at = datetime(2026, 1, 1)
    ones = [Taken("a", at, float(seconds), 1) for seconds in range(100, 0, -1)]
    assert Spread.of(ones) == Spread(100, 50.0, 95.0, 100.0)
    assert Spread.of([Taken("a", at, 2.0, 90), *ones[:10]]) == Spread(100, 2.0, 95.0, 100.0)
    assert Spread.of(ones[:1]) == Spread(1, 100.0, 100.0, 100.0)


def test_the_latency_is_from_the_first_append_to_gold(home: Path, config: Config) -> None:
    """Against the notes and the table; an event that came at two sources counts at the first."""
    notes = {
        source.name: [note for note in notes_of(expected_file(home / "in", source.name)) if note.id]
        for source in config.sources
    }
    ids = [row["id"].hex() for row in rows_of(home / "out" / "silver" / "parquet")]
    (batch,) = lines_of(home / "out" / "progress" / "silver.jsonl")
    done = datetime.fromisoformat(batch["at"]).timestamp()
    first = {
        id_: min((note.at or 0.0, name) for name in notes for note in notes[name] if note.id == id_)
        for id_ in ids
    }
    found = latency_of(config)
    assert (found.begins, found.unknown) == ("append", 0)
    by_source = found.by_source()
    assert set(by_source) == set(notes)
    for name, spread in by_source.items():
        seconds = sorted(done - at for at, of in first.values() if of == name)
        assert spread.events == len(seconds)
        assert spread.worst == pytest.approx(seconds[-1], abs=0.002)
        assert spread.median == pytest.approx(seconds[(len(seconds) - 1) // 2], abs=0.002)
    ((_, all_of_them),) = found.by_time()
    assert all_of_them.events == len(ids)


def without_times(home: Path, source: str, keep: int) -> None:
    file = expected_file(home / "in", source)
    notes = [json.loads(line) for line in file.read_text().splitlines()]
    for note in notes[keep:]:
        note["at"] = None
    file.write_text("".join(json.dumps(note) + "\n" for note in notes))


def test_an_event_whose_append_was_not_noted_is_counted_apart(home: Path, config: Config) -> None:
    before = latency_of(config)
    without_times(home, "orders", 100)
    found = latency_of(config)
    assert found.begins == "append" and found.unknown > 100
    assert Spread.of(found.taken).events == Spread.of(before.taken).events - found.unknown
    write_report(config, [])
    page = (home / "out" / "report" / "index.html").read_text()
    assert f"Of {found.unknown:,} events it is not known when they were appended." in page


def test_without_notes_the_latency_begins_with_bronze(home: Path, config: Config) -> None:
    shutil.rmtree(home / "in" / "expected")
    found = latency_of(config)
    assert (found.begins, found.unknown) == ("bronze", 0)
    progress = home / "out" / "progress"
    (silver,) = lines_of(progress / "silver.jsonl")
    for name, spread in found.by_source().items():
        (line,) = lines_of(progress / f"{name}.jsonl")
        took = datetime.fromisoformat(silver["at"]) - datetime.fromisoformat(line["at"])
        assert spread.events == line["rows"] > 0
        assert spread.median == pytest.approx(took.total_seconds(), abs=0.001)
    page = write_report(config, []).read_text()
    assert "Latency from bronze to gold" in page and "from append" not in page


def test_a_batch_of_silver_that_left_something_in_bronze_does_not_count(
    home: Path, config: Config
) -> None:
    """A batch that was planned before a kill ends after it, without what came to bronze since."""
    shutil.rmtree(home / "in" / "expected")
    file = home / "out" / "progress" / "silver.jsonl"
    (line,) = lines_of(file)
    later = {**line, "batch": 1, "at": line["at"].replace("2026", "2036")}
    left = {**line, "lag": {"records": 5, "bytes": 500, "files": None}}
    file.write_text("".join(json.dumps(one) + "\n" for one in (left, later)))
    assert {one.at for one in latency_of(config).taken} == {datetime.fromisoformat(later["at"])}


# -- the page -------------------------------------------------------------------------------------


def is_red(row: list[tuple[str, str]]) -> bool:
    return RED in [colour for _, colour in row]


def seen_by_readers(window: Browser, page: Path) -> Iterator[dict[str, Any]]:
    """Look at the page in a window of each width; the pictures are in it, too."""
    for width in WIDTHS:
        seen = look(window, page, width, PICTURES)
        assert [picture[0] for picture in seen["pictures"]] == PICTURES
        for name, complete, pixels, alt, shown in seen["pictures"]:
            assert complete and pixels > 0 and shown > 0.8 * min(width, 1100) - 40, name
            assert len(alt) > 10, name
        assert seen["isVisible"] and seen["background"] == "rgb(255, 255, 255)"
        yield seen


@pytest.mark.filterwarnings("error")
def test_a_reader_sees_the_page_of_a_run_in_which_all_is_well(
    home: Path, config: Config, window: Browser
) -> None:
    checks = check(config)
    page = write_report(config, checks)
    events = sum(1 for _ in rows_of(home / "out" / "silver" / "parquet"))
    passed = f"all {len(checks)} checks passed"
    for seen in seen_by_readers(window, page):
        assert seen["heading"] == f"checked: {events:,} events, 0 runs broken off, {passed}"
        assert len(seen["rows"]["checks"]) == len(checks) == 25
        for one, row in zip(checks, seen["rows"]["checks"], strict=True):
            assert any(one.name in text for text, _ in row) and not is_red(row)
        assert seen["headingColour"] != RED
        *of_sources, of_all = [[text for text, _ in row] for row in seen["rows"]["latency"]]
        assert [row[0] for row in of_sources] == ["files", "orders", "spool"]
        assert of_all[:2] == ["all", f"{events:,}"]
        assert all(re.fullmatch(r"[0-9,]+\.[0-9] s", cell) for cell in of_all[2:])


@pytest.mark.filterwarnings("error")
def test_a_reader_sees_a_failed_check_in_red(home: Path, config: Config, window: Browser) -> None:
    change_top(events=1)(home)
    runs = home / "out" / "progress" / "run.jsonl"
    begin = lines_of(runs)[0]
    with runs.open("a") as opened:  # one that was killed, and one that may be running
        for run in "ab":
            opened.write(json.dumps({**begin, "run": run}) + "\n")
    page = write_report(config, check(config))
    for seen in seen_by_readers(window, page):
        assert seen["heading"].endswith("1 run broken off, 1 of 25 checks FAILED")
        assert seen["headingColour"] == RED
        (red,) = [row for row in seen["rows"]["checks"] if is_red(row)]
        text = " ".join(text for text, _ in red)
        assert TOTALS in text and "✗" in text and {colour for _, colour in red} == {RED}
