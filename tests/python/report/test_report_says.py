"""Reports about damage, losses and several ledgers claim only known facts."""

import dataclasses
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Book, EventStore, InvalidArgumentError, Ledger, Pier
from deedbook._formats.nostr import _NostrInfo
from deedbook._show.page import tiles
from log_bytes import flip
from logs import append_to
from nostr_events import made
from shell import complaint, ok
from shell import deedbook as command

CHECKED = "Every checksum was checked"


@pytest.fixture
def two(tmp_path: Path) -> Path:
    for base, events in (("a", 1), ("b", 2)):
        with Ledger.open(tmp_path / "two", "a", base=base, batch_records=1) as ledger:
            for number in range(events):
                ledger.append(b"%d" % number)
    return tmp_path / "two"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """An event store with events in the segments and in the write-ahead log, as after a kill."""
    with EventStore.create(tmp_path / "whole") as opened:
        opened.append_many([made(f"event {number}") for number in range(5)])
        opened.sync()
        shutil.copytree(opened.path, tmp_path / "store", ignore=shutil.ignore_patterns("lock"))
    return tmp_path / "store"


@pytest.mark.parametrize("name", ["stats", "report"])
def test_of_several_ledgers_one_must_be_named(two: Path, name: str) -> None:
    done = command(name, two, "--json")
    assert "say which" in complaint(done, 2)
    assert json.loads(done.stdout)["error"]["kind"] == InvalidArgumentError("").kind
    with pytest.raises(InvalidArgumentError, match="say which"):
        deedbook.report(two)
    ok(name, two, "--json", "--base", "b")
    assert deedbook.report(two, base="b").records == 2


def test_report_lists_only_files_of_the_given_ledger(two: Path, tmp_path: Path) -> None:
    for base, files in (("a", ["0-a"]), ("b", ["0-b", "1-b"])):
        found = deedbook.report(two, base=base)
        assert [os.path.basename(file.path) for file in found.files] == files
        counted = json.loads(ok("stats", two, "--base", base, "--json"))
        assert len(counted["files"]) == len(files)
        ok("export", two, "-o", tmp_path / "x.jsonl", "--base", base, "-q")


def test_report_shows_damage_in_a_stores_wal(store: Path, tmp_path: Path) -> None:
    assert CHECKED in deedbook.report(store).to_html()
    (log,) = (store / "wal").glob("*.log")
    flip(log, len(log.read_bytes().rstrip(b"\0")) - 60)
    found = deedbook.report(store)
    (part,) = [part for part in found.parts if part.damages]
    assert not found.ok and found.damages == 1 and part.name == log.name
    assert part.end >= part.damages[0].end
    page = found.to_html()
    assert CHECKED not in page and f"<td>{log.name}</td>" in page
    assert f"{part.damages[0].offset:,}" in page and ", 1 damage</h1>" in page
    assert ok("report", store, "-o", tmp_path / "page.html").endswith(b", 1 damage\n")


def test_faults_beyond_those_that_are_named_are_counted(store: Path) -> None:
    # A checkpoint covers the page. The next opening would repair a later page.
    EventStore.open(store, "a").close()
    (segment,) = (store / "data" / "segments").iterdir()
    flip(segment, 2 * 4096 + 60)
    found = deedbook.report(store)
    assert found.damages == found.checked["faults"] >= 1
    many = dataclasses.replace(found, checked={**found.checked, "faults": 1500})
    assert many.damages == 1500 and repr(many).endswith(", 1,500 damages>")
    named = len([one for part in many.parts for one in part.damages])
    assert f"And {1500 - named:,} more." in many.to_html()
    assert "<dt>damages</dt><dd>1,500</dd>" in many.to_html()


def test_segment_dropped_by_compaction_does_not_end_report(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = _NostrInfo.data_files

    def dropped(info: _NostrInfo, path: str, **options: Any) -> list[str]:
        gone = os.path.join(path, "data", "segments", "data.7.seg")
        return [*listed(info, path, **options), gone]

    monkeypatch.setattr(_NostrInfo, "data_files", dropped)
    found = deedbook.report(store)
    assert found.ok and [part.name for part in found.parts] == ["data.0.seg"]


def test_failed_log_without_damage_has_no_damage_count(tmp_path: Path) -> None:
    with Pier.create(tmp_path / "pier") as pier:
        for number in range(3):
            pier.append_many([b"%d" % number] * 2)
            pier.roll()
        epochs = [Path(epoch.path) for epoch in pier.epochs]
    shutil.rmtree(epochs[1])
    found = deedbook.report(tmp_path / "pier")
    assert not found.ok and found.damages == 0 and repr(found).endswith(", NOT OK>")
    page = found.to_html()
    assert CHECKED not in page and "<dt>damages</dt>" not in page
    assert "pier: " in page and ", NOT OK</h1>" in page and "are missing" in page
    told = ok("report", tmp_path / "pier", "-o", tmp_path / "page.html")
    assert told.endswith(b", NOT OK\n")


def test_report_page_shows_a_loss_of_unknown_size(tmp_path: Path) -> None:
    append_to("book", tmp_path / "book", [b"1"])
    found = deedbook.report(tmp_path / "book")
    for records, said in ((0, "not known how many"), (1, "1 deed"), (2000, "2,000 deeds")):
        checked = {**found.checked, "loss": {"records": records, "first": 2, "offset": 41}}
        page = dataclasses.replace(found, ok=False, checked=checked).to_html()
        assert f"<dt>lost, as was noted</dt><dd>{said}</dd>" in page


def test_report_page_shows_losses_and_a_remedy(tmp_path: Path) -> None:
    """Earlier, the page had "recovery clean" next to "2 damages", and no number of lost deeds."""
    path = tmp_path / "a log"
    append_to(
        "book", path, [b'{"ts":%d}' % (1_700_000_000 + 3600 * (n // 50 * 9)) for n in range(100)]
    )
    raw = bytearray((path / "book.log").read_bytes())
    middle = raw.index(b'{"ts"', len(raw) // 2)
    raw[middle + 2] ^= 1
    (path / "book.log").write_bytes(raw)
    page = deedbook.report(path).to_html()
    assert "<dt>lost deeds</dt><dd>1</dd>" in page
    assert "<th>lost deeds</th>" in page and "1: event " in page
    assert f"deedbook salvage &#x27;{path}&#x27; COPY" in page
    assert "recovery</td><td>clean" not in page and "opening read only the end" in page
    assert "99 are intact" in page
    assert 'class="silence"' in page and "grey: no deed in " in page
    assert '<path class="half"' in page


def test_a_page_about_several_logs_links_to_each(tmp_path: Path) -> None:
    for name in ("a", "b"):
        Book.create(tmp_path / name).close()
    ok("report", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    for number in (1, 2):
        assert f'href="#log-{number}"' in page and f'<h1 id="log-{number}">' in page


@pytest.mark.parametrize("number", range(2, 14))
def test_no_tile_stands_alone(number: int) -> None:
    shown = tiles((str(one), "x") for one in range(number))
    columns = int(shown.partition("--columns: ")[2][0])
    assert number % columns != 1 or number < columns
