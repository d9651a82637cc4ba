"""The look of values at a prompt and in a notebook, and of sizes everywhere."""

import inspect
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Book, EventStore, Ledger, Pier, Wal, _core
from deedbook._cli import first_minute
from deedbook._show.text import size
from deedbook._shown import HANDLES, REPORTS
from nostr_events import made

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path / HOSTILE
    place.mkdir()
    return place


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.names: set[str] = set()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.names.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def shown(value: Any) -> _Tags:
    """The HTML in a notebook: well-formed, and without tags from values."""
    tags = _Tags()
    tags.feed(value._repr_html_())
    tags.close()
    assert tags.open == [] and not tags.names & {"img", "script"}
    return tags


def values_of(home: Path) -> list[Any]:
    with Book.create(home / "book") as book:
        book.append_many([b'{"type":"a"}'] * 50)
        stats = book.stats()
    log = home / "book" / "book.log"
    data = bytearray(log.read_bytes())
    for at in range(30, 900, 90):
        data[at] ^= 1
    log.write_bytes(data)
    pier = Pier.create(home / "pier")
    pier.append(b"x")
    wal = Wal.create(home / "wal")
    wal.append(b"x")
    copy = deedbook.backup(home / "pier", home / "copy")
    with Ledger.open(home / "ledger", "a") as ledger:
        ledger.append(b"x")
        of_ledger = ledger.stats()
    snapshot = Ledger.open(home / "ledger")
    store = EventStore.create(home / "nostr")
    store.append_many([deedbook.Event(**made(f"event {n}", kind=n)) for n in range(9)])
    checked = Book.verify(home / "book")
    opened = Book.open(home / "book")
    return [
        *(opened, pier, wal, snapshot, store),
        *(checked, checked.damages[0], opened.recovery, stats, of_ledger, pier.recovery),
        *(Pier.verify(home / "pier"), Ledger.verify(home / "ledger"), store.opening),
        EventStore.verify(home / "nostr"),
        *(
            copy,
            store.census(),
            Book.salvage(home / "book", home / "saved"),
            deedbook.report(home / "wal"),
        ),
    ]


def test_logs_and_reports_show_themselves_in_a_notebook(home: Path) -> None:
    for value in values_of(home):
        tags = shown(value)
        assert {"table"} <= tags.names, type(value)
        if hasattr(value, "path"):
            assert HOSTILE in tags.text
        if isinstance(value, deedbook.reports.VerifyReport):
            assert value.verdict == "corrupt" and len(value.damages) > 3
            assert {"svg", "rect"} <= tags.names and "checksum" in tags.text
            assert f"{value.damages[-1].offset:,}" in tags.text
        if isinstance(value, deedbook.reports.LogReport):
            assert "svg" in tags.names


def test_a_closed_log_shows_what_is_left(home: Path) -> None:
    with Wal.create(home / "wal") as wal:
        wal.append(b"x")
    assert "closed" in shown(wal).text and HOSTILE in shown(wal).text


def test_notebook_style_applies_only_to_its_part(home: Path) -> None:
    with Wal.create(home / "wal") as wal:
        (style,) = re.findall(r"<style>(.*?)</style>", wal._repr_html_(), re.DOTALL)
    for names in re.findall(r"(?:^|[{}])\s*([^{}@]+)\{", style):
        assert all(name.strip().startswith(".deedbook") for name in names.split(",")), names
    assert ".deedbook td" in style and "@media (prefers-color-scheme: dark)" in style


def test_values_are_short_and_have_no_address(home: Path) -> None:
    values = values_of(home)
    book, _, wal, snapshot, store = values[:5]
    values += [book.iter(), store.iter(), book.transactions, wal.reader(0), wal.batches()]
    values += [next(iter(wal)), wal.splits(1)[0], snapshot.files[0], wal.bookmark(0)]
    for value in values:
        line = repr(value)
        assert type(value).__name__ in line and "0x" not in line and len(line) < 1600, line
    census = next(one for one in values if isinstance(one, deedbook.reports.EventCensus))
    assert "kinds={0: 1, 1: 1, 2: 1, ... 6 more}" in repr(census)
    for name in deedbook.__all__:
        found = getattr(deedbook, name)
        if inspect.isclass(found) and not issubclass(found, Exception):
            assert found.__repr__ is not object.__repr__, name


def test_every_report_and_every_handle_has_both() -> None:
    assert [name for name in (*HANDLES, *REPORTS) if not hasattr(_core, name)] == []
    of_reports = {name for name in _core.__all__ if name.endswith(("Report", "Stats", "Repair"))}
    assert of_reports <= set(REPORTS)
    for name in (*HANDLES, *REPORTS):
        assert callable(getattr(_core, name)._repr_html_)


@pytest.mark.parametrize(
    ("told", "nbytes", "text"),
    [
        (size, 0, "0 bytes"),
        (size, 1, "1 byte"),
        (size, 1023, "1023 bytes"),
        (size, 1024, "1.0 KiB"),
        (size, (1 << 20) - 52, "1,023.9 KiB"),
        (size, (1 << 20) - 1, "1.0 MiB"),
        (size, (1 << 30) - 1, "1.0 GiB"),
        (size, (1 << 40) - 1, "1.0 TiB"),
        (size, 3 << 50, "3,072.0 TiB"),
        (first_minute.size, 999, "999 B"),
        (first_minute.size, 1000, "1.0 kB"),
        (first_minute.size, 999_949, "999.9 kB"),
        (first_minute.size, 999_950, "1.0 MB"),
        (first_minute.size, 999_999_999, "1.0 GB"),
        (first_minute.size, 5 * 10**15, "5,000.0 TB"),
    ],
)
def test_size_is_printed_in_its_rounded_unit(
    told: Callable[[int], str], nbytes: int, text: str
) -> None:
    assert told(nbytes) == text
