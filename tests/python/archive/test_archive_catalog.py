"""The catalog of many archives: one number is the offset of a stream, and no record comes twice."""

import contextlib
import itertools
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("obstore", reason="obstore is not installed")

import deedbook
from deedbook import Ledger, Pier, Wal, archive
from deedbook.archive import _catalog, _manifest, _store
from shell import complaint, ok
from shell import deedbook as run

SEGMENT = 4096


class Killed(Exception):
    """In place of the death of the process."""


@pytest.fixture
def root(tmp_path: Path) -> str:
    return (tmp_path / "store").as_uri()


def add(path: Path, count: int, size: int = 700) -> None:
    with Wal.open(path, "a", segment_bytes=SEGMENT) as log:
        first = len(log)
        log.append_many(b"%6d" % (first + number) * (size // 6) for number in range(count))


class Stream:
    def __init__(self, root: str) -> None:
        self.catalog = archive.Catalog(root)
        self.offset = 0
        self.found: dict[str, list[bytes]] = defaultdict(list)

    def go_on(self) -> None:
        for entry in self.catalog.entries(self.offset):
            assert entry.number == self.offset + 1
            self.offset = entry.number
            records = entry.archive.iter(entry.start, entry.stop)
            self.found[entry.log] += [record.payload for record in records]


def test_stream_reads_each_record_of_many_logs_once(tmp_path: Path, root: str) -> None:
    (tmp_path / "store").mkdir()
    stream = Stream(root)
    logs = [f"log{number}" for number in range(5)]
    for turn in range(12):
        log = logs[turn * 3 % 5]
        add(tmp_path / log, 5 + turn, size=700 if turn % 2 else 3000)
        archive.upload(tmp_path / log, f"{root}/{log}", catalog=root)
        if turn % 4 != 1:
            stream.go_on()
    stream.go_on()
    for log in logs:
        with Wal.open(tmp_path / log) as opened:
            bounds = archive.open(f"{root}/{log}").bounds
            assert bounds is not None
            assert stream.found[log] == list(opened.payloads(0, bounds[1])) != []
    assert stream.offset == stream.catalog.latest() == 12


def test_piers_and_ledgers_are_in_a_catalog(tmp_path: Path, root: str) -> None:
    with Pier.create(tmp_path / "pier") as pier:
        for epoch in range(3):
            pier.append_many(b"%d %d" % (epoch, number) for number in range(10))
            pier.roll()
            archive.upload(tmp_path / "pier", f"{root}/pier", catalog=root)
    with Ledger.create(tmp_path / "ledger", batch_bytes=500) as ledger:
        for turn in range(3):
            ledger.append_many(b"%d" % (turn * 100 + number) * 10 for number in range(100))
            archive.upload(tmp_path / "ledger", f"{root}/ledger", catalog=root)
        records = list(ledger.payloads())
    stream = Stream(root)
    stream.go_on()
    assert len(stream.found["pier"]) == 30 and stream.offset == 6
    assert stream.found["ledger"] == records


def test_earlier_pieces_come_with_the_first_entry(tmp_path: Path, root: str) -> None:
    add(tmp_path / "log", 30)
    assert archive.upload(tmp_path / "log", f"{root}/log").entry is None
    assert archive.upload(tmp_path / "log", f"{root}/log", catalog=root).entry == 1
    assert archive.upload(tmp_path / "log", f"{root}/log", catalog=root).entry == 1
    [entry] = archive.Catalog(root).entries()
    assert entry.start == 0 and entry.records == archive.verify(f"{root}/log").records


def _die(monkeypatch: pytest.MonkeyPatch, at: int, after: bool) -> None:
    puts = 0

    def dying(whole: Callable[..., Any]) -> Callable[..., Any]:
        def put(*args: Any) -> Any:
            nonlocal puts
            mine, puts = puts, puts + 1  # a piece goes up while the next one is read
            if mine == at and not after:
                raise Killed
            done = whole(*args)
            if mine == at:
                raise Killed
            return done

        return put

    for name in ("_put", "replace"):
        monkeypatch.setattr(_store.Store, name, dying(getattr(_store.Store, name)))


@pytest.mark.parametrize("other", [False, True], ids=["alone", "beside another"])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_uploads_list_each_piece_once(
    after: bool, other: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kill comes at every put: a piece, the manifest, the claim, the entry, or a page."""
    monkeypatch.setattr(_catalog, "_PAGES", (4, 2))
    for name in ("log", "other"):
        add(tmp_path / name, 15)
    for at in range(50):
        root = (tmp_path / f"store{at}").as_uri()
        archive.upload(tmp_path / "other", f"{root}/zero", catalog=root, consumer=None)
        is_killed = False
        with monkeypatch.context() as patch:
            _die(patch, at, after)
            try:
                archive.upload(tmp_path / "log", f"{root}/log", catalog=root, consumer=None)
            except Killed:
                is_killed = True
        if other:
            archive.upload(tmp_path / "other", f"{root}/other", catalog=root, consumer=None)
            archive.upload(tmp_path / "other", f"{root}/third", catalog=root, consumer=None)
        archive.upload(tmp_path / "log", f"{root}/log", catalog=root, consumer=None)
        archive.upload(tmp_path / "log", f"{root}/log", catalog=root, consumer=None)
        entries = list(archive.Catalog(root).entries())
        assert sorted(entry.log for entry in entries) == sorted(
            ["zero", "log", *(("other", "third") if other else ())]
        )
        assert [entry.number for entry in entries] == list(range(1, len(entries) + 1))
        stream = Stream(root)
        stream.go_on()
        with Wal.open(tmp_path / "log") as log:
            bounds = archive.open(f"{root}/log").bounds
            assert bounds is not None
            assert stream.found["log"] == list(log.payloads(0, bounds[1]))
        if not is_killed:
            break
    assert 6 <= at < 49


def test_planning_many_logs_opens_none(
    tmp_path: Path, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, small = 1000, 100
    monkeypatch.setattr(_catalog, "_PAGES", (large, small))
    monkeypatch.setattr(_store, "sync_file", lambda file: None)
    monkeypatch.setattr(_store, "sync_folders", lambda top, files: None)
    add(tmp_path / "log", 12)
    archive.upload(tmp_path / "log", f"{root}/log0", catalog=root)
    catalog, last = archive.Catalog(root), large + small + 50
    value = next(catalog._values(0, 1, ()))
    for number in range(2, last + 1):
        assert catalog._put(number, {**value, "number": number, "log": f"log{number}"})
    asked: list[str] = []
    for name in ("get", "range", "size"):
        whole = getattr(_store.Store, name)

        def ask(store: Any, *args: Any, whole: Callable[..., Any] = whole) -> Any:
            asked.append(store.where(args[0]))
            return whole(store, *args)

        monkeypatch.setattr(_store.Store, name, ask)
    assert catalog.latest() == last
    entries = list(catalog.entries())
    assert [entry.number for entry in entries] == list(range(1, last + 1))
    assert len({entry.log for entry in entries}) == last
    assert len(asked) == 1 + 1 + 50
    asked.clear()
    assert [entry.number for entry in catalog.entries(last - 110)] == list(
        range(last - 109, last + 1)
    )
    assert len(asked) == 110 and all("/catalog/" in name for name in asked)


def test_an_archive_must_lie_below_its_catalog(tmp_path: Path, root: str) -> None:
    add(tmp_path / "log", 15)
    for url in (f"{root}x/log", root, f"{root}/catalog/log", f"{root}/catalog-100/log"):
        with pytest.raises(deedbook.InvalidArgumentError, match="must lie below"):
            archive.upload(tmp_path / "log", url, catalog=root)
    assert archive.Catalog(root).latest() == 0 and list(archive.Catalog(root).entries()) == []
    assert "go with a URL" in complaint(run("backup", tmp_path / "log", "x", "--catalog", root), 2)
    facts = json.loads(ok("archive", tmp_path / "log", f"{root}/log", "--catalog", root, "--json"))
    assert facts["entry"] == 1


def test_damaged_entry_is_named(tmp_path: Path, root: str) -> None:
    add(tmp_path / "log", 15)
    archive.upload(tmp_path / "log", f"{root}/log", catalog=root)
    [file] = (tmp_path / "store" / "catalog").iterdir()
    file.write_bytes(file.read_bytes().replace(b'"start":0', b'"start":1'))
    with pytest.raises(deedbook.CorruptError, match=f"{file.name}: the checksum differs"):
        list(archive.Catalog(root).entries())


def test_wrong_values_in_an_entry_raise_our_errors(tmp_path: Path, root: str) -> None:
    add(tmp_path / "log", 15)
    archive.upload(tmp_path / "log", f"{root}/log", catalog=root)
    [file] = (tmp_path / "store" / "catalog").iterdir()
    good = json.loads(file.read_bytes())
    del good["sha256"]
    for name, value in itertools.product(good, (None, "x", -1, 2, 1 << 70, 1.5, [])):
        file.write_bytes(_manifest.with_checksum({**good, name: value}))
        with contextlib.suppress(deedbook.Error):
            for entry in archive.Catalog(root).entries():
                assert entry.number == 1 and min(entry.records, entry.bytes) >= 0
                list(entry.archive.iter(entry.start, entry.stop))
