"""Reports of logs: the figures against a count of their own, and the page as a reader sees it."""

import json
import os
import shutil
from collections import Counter
from datetime import datetime, timedelta, timezone
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import deedbook
from browser import WIDTHS, Browser, look
from deedbook import Book, EventStore, Ledger, Pier, Wal
from deedbook._report import Scan
from deedbook._show.text import size
from deedbook._show.times import TimeCounts, time_in
from doc_blocks import run
from logs import append_to, make_logs
from nostr_events import made
from places import DOCS
from shell import complaint, json_lines, ok, outputs
from shell import deedbook as command

BEGIN = datetime(2026, 3, 1, tzinfo=timezone.utc)
HOSTILE = "<script>document.title='taken'</script><img src=x onerror=alert(1)>"
PAGE = DOCS / "report.md"
KINDS = ("book", "slots", "pier", "wal", "ledger", "nostr")


def lines_of(records: int) -> list[bytes]:
    """One in ten is no JSON; the others have a time and a type, or keys alone."""
    found = []
    for number in range(records):
        at = (BEGIN + timedelta(minutes=number)).isoformat()
        value: dict[str, Any] = {"created_at": at, "text": "x" * (number % 300)}
        if number % 3:
            value["type"] = HOSTILE if number % 7 == 0 else f"type {number % 4}"
        found.append(b"not JSON %d" % number if number % 10 == 0 else json.dumps(value).encode())
    return found


LINES = lines_of(3000)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = make_logs(tmp_path_factory.mktemp("logs"), LINES, segment_bytes=1 << 16)
    append_to("book", home / "slots", LINES, layout="slots", durability="manual")
    with Pier.open(home / "pier", "a") as pier, Wal.open(home / "wal", "a") as wal:
        pier.set_consumer("<b>spark</b>", 701)
        wal.set_consumer("<b>spark</b>", next(islice(wal, 700, None)).lsn)
    return home


def damaged(log: Path, to: Path) -> Path:
    shutil.copytree(log, to)
    files = [file for file in to.rglob("*") if file.is_file() and ".deedbook" not in file.parts]
    largest = max((file for file in files if "wal.log" not in file.name), key=os.path.getsize)
    data = bytearray(largest.read_bytes())
    place = 4096 * 5 + 60 if "data.0" in largest.name else len(data) // 2
    data[place] ^= 255
    largest.write_bytes(data)
    return to


@pytest.mark.parametrize("name", KINDS[:5])
def test_the_figures_are_those_of_the_payloads(logs: Path, name: str) -> None:
    calls: list[tuple[int, int]] = []
    found = deedbook.report(logs / name, progress=lambda done, total: calls.append((done, total)))
    assert found.ok and found.records == 3000 and found.bytes == sum(map(len, LINES))
    values = [json.loads(line) for line in LINES if line.startswith(b"{")]
    assert found.objects == len(values)
    of = Counter(value.get("type", "{created_at, text}") for value in values)
    assert {one.name: one.records for one in found.types} == {
        name if len(name) <= 60 else name[:59] + "…": n for name, n in of.items()
    }
    assert found.times.source == "created_at"
    assert found.times.records == sum(one.records for one in found.times.stretches) == len(values)
    assert found.times.outside == 0 and len(found.times.stretches) <= 150
    assert found.times.first == BEGIN + timedelta(minutes=1)
    sizes = sorted(map(len, LINES))
    assert (found.sizes.least, found.sizes.most) == (sizes[0], sizes[-1])
    assert sum(step.records for step in found.sizes.steps) == 3000
    for step in found.sizes.steps:
        assert step.records == sum(step.low <= size <= step.high for size in sizes)
    assert sizes[1500] * 7 / 8 - 1 <= found.sizes.median <= sizes[1500]
    assert found.damages == 0 and sum(len(one.damages) for one in found.parts) == 0
    assert calls and calls == sorted(calls) and all(done <= total for done, total in calls)
    json.dumps(found.to_dict())
    begin = f"<LogReport {str(logs / name)!r} {found.format}, 3,000 {found.noun}s, "
    assert repr(found).startswith(begin) and repr(found).endswith(" KiB, ok>")


@pytest.mark.parametrize("name", KINDS)
def test_the_map_shows_the_damage_that_verify_finds(logs: Path, tmp_path: Path, name: str) -> None:
    path = damaged(logs / name, tmp_path / name)
    found = deedbook.report(path)
    assert not found.ok and found.damages >= 1
    (part,) = [one for one in found.parts if one.damages]
    assert part.begin <= part.damages[0].offset < part.damages[0].end <= part.end
    page = found.to_html()
    assert f"{part.damages[0].offset:,}" in page and 'class="bad"' in page
    if name != "slots":  # verify reports a block of many, all of which can be read
        assert found.records == deedbook.report(logs / name).records - 1


def test_a_log_that_lost_its_end_shows_it(logs: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut"
    shutil.copytree(logs / "book", path)
    size = os.path.getsize(path / "book.log")
    with (path / "book.log").open("r+b") as file:
        file.truncate(deedbook.Book.verify(path).valid_end // 2)
    found = deedbook.report(path)
    assert not found.ok and found.parts[0].end == size
    assert any("lost" in text for text in found.findings)
    assert 0 < found.records < 3000


def test_writer_report_has_syncs_and_unsynced_records(tmp_path: Path) -> None:
    wal = Wal.create(tmp_path / "wal")
    book = Book.create(tmp_path / "book", durability="manual")
    pier = Pier.create(tmp_path / "pier", durability="always")
    ledger = Ledger.open(tmp_path / "ledger", "a", base="mine", durability="always")
    store = EventStore.create(tmp_path / "store")
    store.append(deedbook.Event(**made("event")))
    store.sync()
    for log in (wal, book, pier, ledger):
        for number in range(20):
            log.append(b'{"number": %d}' % number)
    wal.sync()
    wal.append(b"not synced")
    book.sync()
    book.append_many([b"one", b"two"])
    for log in (wal, book, pier, ledger, store):
        with log:
            found = deedbook.report(log)
            counted = log.stats()
            counted = counted.log if isinstance(counted, deedbook.reports.LedgerStats) else counted
            assert found.stats == counted and found.ok and found.handle == repr(log)
            assert found.path == log.path
            page = found.to_html()
            assert "only the handle that writes" not in page
            assert json.loads(json.dumps(found.to_dict()))["stats"]["syncs"] == counted.syncs >= 1
            assert sum(syncs for _, syncs in counted.sync_latency) == counted.syncs
            assert f"{counted.syncs} sync" in page
            if log is wal:
                assert found.lag_bytes == found.unsynced_bytes == wal.end - wal.durable_end > 0
                assert f"<dt>not yet durable</dt><dd>{found.lag_bytes} bytes</dd>" in page
            elif log is book:
                assert found.unsynced_records == 2 and "<dd>2 deeds</dd>" in page


def test_report_without_writer_explains_missing_latencies(logs: Path) -> None:
    found = deedbook.report(logs / "wal")
    assert (found.handle, found.stats, found.unsynced_bytes) == (None, None, None)
    assert "No sync latencies: this report was made of a path, and only" in found.to_html()
    with Wal.open(logs / "wal") as reader:
        read = deedbook.report(reader)
        assert read.stats is None and read.handle is not None
        assert "No sync latencies: this handle reads, and only" in read.to_html()
    with Ledger.open(logs / "ledger", "a") as ledger, pytest.raises(ValueError, match='"other"'):
        deedbook.report(ledger, base="other")
    with pytest.raises(TypeError, match="a log or a path is needed, not int"):
        deedbook.report(3)  # type: ignore[arg-type]


def test_report_shows_consumer_lag_in_bytes_or_events(logs: Path) -> None:
    assert "read to event 701</title>" in (page := deedbook.report(logs / "pier").to_html())
    assert "<span>2,300 events to read</span>" in page
    report = deedbook.report(logs / "wal")
    (at,) = report.info["consumers"].values()
    assert f"<span>{size(report.info['end'] - at)} to read</span>" in report.to_html()


def test_a_reader_sees_the_charts_of_every_format(
    logs: Path, tmp_path: Path, window: Browser
) -> None:
    pages = {name: deedbook.report(logs / name) for name in KINDS}
    pages["bad"] = deedbook.report(damaged(logs / "wal", tmp_path / "bad"))
    for name, found in pages.items():
        file = tmp_path / f"{name}.html"
        file.write_text(found.to_html(), encoding="utf-8")
        for width in WIDTHS:
            seen = look(window, file, width)
            charts: dict[str, int] = {}
            for label, shapes in seen["charts"]:
                charts[label.split(":")[0]] = charts.get(label.split(":")[0], 0) + shapes
            noun = found.noun.capitalize() + "s"
            for begin in (f"{noun} per", "Bytes per", "Sizes of payloads", "Types", "Map of"):
                (shapes,) = [n for label, n in charts.items() if label.startswith(begin)]
                assert shapes >= (5 if begin.startswith("Ty") and name not in ("nostr",) else 1)
            assert seen["tiles"][f"{found.noun}s"] == f"{found.records:,}"
            assert HOSTILE[:50] in seen["text"] or name == "nostr"
            if found.format in ("pier", "wal"):
                assert charts["Consumers"] == 2 and "<b>spark</b>" in seen["text"]
            if found.format == "wal":
                assert charts["Files"] == len(found.files) > 3
                assert charts["Map of damage"] == (2 if name == "bad" else 1)


def test_docs_picture_matches_its_report_page(
    tmp_path: Path, window: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Taken again, from the blocks of docs/report.md. DEEDBOOK_PICTURES=docs stores it there."""
    if not PAGE.exists():
        pytest.skip("docs is not in this checkout")
    monkeypatch.chdir(tmp_path)
    run(PAGE, tmp_path, "python")
    page = tmp_path / "orders.html"
    page.write_text(page.read_text(encoding="utf-8").replace(str(tmp_path), "/srv"), "utf-8")
    seen = look(window, page, 885)
    charts = {label.split(":")[0]: shapes for label, shapes in seen["charts"]}
    wanted = ("Records per", "Bytes per", "Sizes of", "Types", "Sync lat", "Files", "Consumers")
    for begin in wanted:
        assert [shapes for label, shapes in charts.items() if label.startswith(begin)] > [0], begin
    assert seen["heading"] == "orders.wal: 3,000 records, ok"
    assert "300 syncs of this handle for 3,000 appends" in seen["text"]
    taken = PAGE.parents[1] / os.environ.get("DEEDBOOK_PICTURES", tmp_path) / "report.png"
    window.picture(taken)
    (width, height), published = pixels(taken), pixels(PAGE.with_name("report.png"))
    assert abs(width - published[0]) < 20 and 860 < width <= 885  # less the bar for scrolling
    assert abs(height - published[1]) < 100, "docs/report.png shows another page"


def pixels(file: Path) -> tuple[int, int]:
    data = file.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) > 10_000
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


def test_report_and_stats_give_the_figures(logs: Path, tmp_path: Path) -> None:
    log, page = logs / "wal", tmp_path / "report.html"
    shown = json.loads(ok("report", log, "-o", page, "--json"))
    expected = deedbook.report(log).to_dict()
    assert {**shown, "made": 0} == {**expected, "made": 0}
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert os.listdir(tmp_path) == ["report.html"]
    counted = json.loads(ok("stats", log, "--json"))
    empty = {"made": 0, "parts": [], "checked": {}, "findings": []}
    assert {**counted, **empty} == {**expected, **empty} and counted["checked"] == {}
    text = ok("stats", log).decode()
    assert "3,000" in text and "54 records/hour" in text and "type 1" in text


def test_several_logs_share_a_page(logs: Path, tmp_path: Path, window: Browser) -> None:
    bad, page = damaged(logs / "book", tmp_path / "bad"), tmp_path / "all.html"
    paths = [str(logs / "wal"), str(bad), str(tmp_path / "none"), str(logs / "nostr")]
    done = command("report", *paths, "-o", page)
    assert "No such file" in complaint(done, 2)  # of what is not there
    assert [line.split(",")[0] for line in done.stdout.decode().splitlines()] == [
        f"{page}: {path}" for path in (paths[0], paths[1], paths[3])
    ]
    assert ok("report", bad, "-o", tmp_path / "bad.html").endswith(b", 1 damage\n")
    out, err = outputs("stats", bad, code=1)
    assert "2,999" in out and "checksum" in err
    seen = look(window, page, WIDTHS[0])
    assert seen["heading"] == "3 logs, 1 NOT OK"
    labels = [label for label, shapes in seen["charts"] if shapes]
    assert labels.count("Sizes of payloads") == 3
    assert labels.count("Map of damage: data.0.seg") + labels.count("Map of damage") == 3
    for text in ("wal: 3,000 records, ok", "bad: 2,999 deeds, 1 damage", "nostr: 30 events, ok"):
        assert text in seen["text"]
    shown = json_lines(ok("report", *paths[:2], "--json"))
    assert [(one["path"], one["ok"]) for one in shown] == [(paths[0], True), (paths[1], False)]
    done = command("report", *paths[:2], "-o", bad / "page.html")
    assert "lies in the log" in complaint(done, 2)


def test_scan_memory_is_constant_in_log_length() -> None:
    scan = Scan()
    for number in range(20_000):
        scan.add(b'{"type":"%d","ts":%d}' % (number, 1_600_000_000 + number * 977))
    assert len(scan._types) == 4096 and len(scan._times._counts) <= 4096
    types, times = scan.types(), scan.times()
    assert sum(one.records for one in types) == 20_000 and len(types) == 21
    assert sum(one.records for one in times.stretches) == 20_000
    assert len(times.stretches) <= 150


def test_a_wrong_clock_does_not_squeeze_the_rest() -> None:
    counts = TimeCounts()
    for number in range(10_000):
        counts.add(1_700_000_000 + number, 1)
    counts.add(5.0, 1)
    counts.add(99_999_999_999.0, 1)
    seconds, outside, stretches = counts.stretches(150)
    assert outside == 2 and 60 <= len(stretches) <= 150 and seconds <= 300
    assert sum(records for _, records, _ in stretches) == 10_000


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ({"created_at": 1_700_000_000}, 1_700_000_000),
        ({"ts": 1_700_000_000_123}, 1_700_000_000.123),
        ({"timestamp": 1_700_000_000_000_000}, 1_700_000_000),
        ({"time": "2023-11-14T22:13:20Z"}, 1_700_000_000),
        ({"time": "2023-11-14T22:13:20.1234567+00:00"}, 1_700_000_000.123456),
        ({"time": "no time", "at": "2023-11-15"}, 1_700_006_400),
        ({"time": True}, None),
        ({"time": 10**400}, None),
        ({"time": float("nan")}, None),
        ({"time": "9999-13-01 00:00"}, None),
        ({}, None),
    ],
)
def test_times_in_payloads(value: dict[str, Any], seconds: float | None) -> None:
    found = time_in(value)
    assert (None if found is None else found[1]) == (
        None if seconds is None else pytest.approx(seconds, abs=1e-3)
    )
