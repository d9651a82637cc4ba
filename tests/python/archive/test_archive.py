"""Archives in a directory: sealed files go there once, and come back byte for byte."""

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from archived import FORMATS, grow
from log_bytes import flip
from logs import append_to

pytest.importorskip("obstore", reason="obstore is not installed")

import deedbook
from deedbook import Book, Ledger, Pier, Wal, archive
from deedbook.archive import _manifest, _store
from shell import complaint, ok
from shell import deedbook as run

SEGMENT = 4096
EPOCH = ("book.log", "epoc.txt", "meta.bin")


def add(path: Path, count: int = 500) -> None:
    with Wal.open(path, "a", segment_bytes=SEGMENT) as wal:
        first = len(wal)
        wal.append_many(b"%d " % (first + number) * (1 + number % 30) for number in range(count))


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@pytest.fixture
def url(tmp_path: Path) -> str:
    return (tmp_path / "store").as_uri()


def test_sealed_segments_come_back_byte_for_byte(path: Path, url: str, tmp_path: Path) -> None:
    add(path)
    report = archive.upload(path, url)
    sealed = {name: data for name, data in files(path).items() if len(data) == SEGMENT}
    assert (report.sent, report.adopted) == (len(sealed), 0) and report.sent > 3
    assert archive.restore(url, tmp_path / "back").files == len(sealed)
    assert files(tmp_path / "back") == sealed
    with Wal.open(path) as wal, Wal.open(tmp_path / "back") as back:
        assert list(back.payloads()) == list(wal.payloads(None, back.end))
        assert len(back) in (report.records, report.records - 1)


def test_archive_keeps_dropped_segments_and_head(path: Path, url: str, tmp_path: Path) -> None:
    add(path)
    with Wal.open(path, "a") as wal:
        head = [record.lsn for record in wal][50]
        wal.truncate_before(head)
    archive.upload(path, url)
    add(path)
    archive.upload(path, url)
    with Wal.open(path, "a") as wal:
        kept = list(wal.payloads())
        assert wal.retain(consumed=True).records > 0
    archive.restore(url, tmp_path / "back")
    with Wal.open(tmp_path / "back") as back:
        assert back.head == head
        found = list(back.payloads())
    assert found == kept[: len(found)] and len(found) > 300


def test_retention_waits_for_the_archive(path: Path, url: str) -> None:
    add(path)
    archive.upload(path, url)
    add(path)
    with Wal.open(path, "a") as wal:
        wal.retain(max_bytes=0)
        archived = archive.verify(url).bounds
        assert archived is not None and wal.head <= archived[1]
    report = archive.upload(path, url)
    assert report.sent > 0 and archive.verify(url).ok


def test_retention_waits_for_a_running_upload(path: Path, url: str) -> None:
    add(path)
    with Wal.open(path, "a") as wal:
        report = archive.upload(path, url, progress=lambda *_: wal.retain(max_bytes=0))
        assert report.sent == report.pieces > 3
        assert wal.retain(max_bytes=0).records > 0
    assert archive.verify(url).ok


def test_conditional_put_refuses_another_version(tmp_path: Path, url: str) -> None:
    store = _store.Store(url, 10, creates=True)
    store.replace("m", b"one", None)
    version = store.get("m")[1]
    store.replace("m", b"two", version)
    for stale in (version, None):
        with pytest.raises(_store.Conflict):
            store.replace("m", b"lost", stale)
    with pytest.raises(_store.Conflict):
        store.replace("other", b"lost", version)
    assert store.get("m")[0] == b"two" and store.size("other") is None


def test_a_writer_drops_only_archived_segments(path: Path, url: str, tmp_path: Path) -> None:
    to = archive.before_drop(url)
    with Wal.create(path, segment_bytes=SEGMENT, archive=to, retain_bytes=SEGMENT) as wal:
        for number in range(300):
            wal.commit(b"%3d" % number * 30)
        assert wal.stats().dropped_files > 3
        archived = archive.verify(url)
        assert archived.ok and archived.bounds is not None
        assert archived.bounds[0] == 0 and archived.bounds[1] >= wal.head
        dropped = wal.stats().dropped_files
        (tmp_path / "store" / "manifest.json").write_bytes(b"damaged")
        with pytest.raises(deedbook.IoError, match="archive segment"):
            wal.retain(max_bytes=0)
        assert wal.stats().dropped_files == dropped


@pytest.mark.parametrize("change", ["cut", "another", "older", "dropped", "sizes"])
def test_another_log_is_refused(change: str, path: Path, url: str, tmp_path: Path) -> None:
    add(path)
    if change == "older":
        deedbook.backup(path, tmp_path / "old")
        add(path)
    archive.upload(path, url)
    log = path
    if change == "cut":
        with Wal.open(path, "a") as wal:
            lsn = [record.lsn for record in wal][5]
            wal.truncate_after(lsn)
            wal.append_many(b"x" * 100 for _ in range(400))
    elif change == "another":
        log = tmp_path / "another"
        append_to("wal", log, (b"y" * 100 for _ in range(400)), segment_bytes=SEGMENT)
    elif change == "older":
        log = tmp_path / "old"
    elif change == "dropped":
        add(path, 1000)
        with Wal.open(path, "a") as wal:
            wal.truncate_before(wal.end, force=True)
        add(path, 1000)
    else:
        log = tmp_path / "sizes"
        append_to("wal", log, (b"y" * 100 for _ in range(400)), segment_bytes=2 * SEGMENT)
    before = archive.verify(url)
    with pytest.raises(deedbook.NotALogError, match="the archive holds another log"):
        archive.upload(log, url)
    assert archive.verify(url) == before


STATES = ("absent", "whole", "torn", "other")


@pytest.mark.parametrize("listed", [0, 1])
def test_every_unlisted_state_becomes_a_right_archive(
    listed: int, path: Path, url: str, tmp_path: Path
) -> None:
    """A killed upload leaves any of these at a store; a power cut in a directory leaves all."""
    store = tmp_path / "store"
    manifest, old = b"", set()
    for _ in range(listed + 1):
        with Wal.open(path, "a", segment_bytes=SEGMENT) as wal:
            wal.append_many(b"%4d" % number * 250 for number in range(len(wal), len(wal) + 13))
        if (store / "manifest.json").exists():
            manifest = (store / "manifest.json").read_bytes()
            old = set(_objects(store))
        archive.upload(path, url)
    complete = {
        name: (store / name).read_bytes()
        for name in _objects(store)
        if name != "manifest.json" and name not in old
    }
    assert len(complete) == 3
    sealed = {name: data for name, data in files(path).items() if len(data) == SEGMENT}
    for number, states in enumerate(itertools.product(STATES, repeat=3)):
        for (name, data), state in zip(complete.items(), states, strict=True):
            (store / name).unlink(missing_ok=True)
            if state != "absent":
                made = {"whole": data, "torn": data[:1000], "other": bytes(len(data))}[state]
                (store / name).write_bytes(made)
        (store / "manifest.json").unlink(missing_ok=True)
        if listed:
            (store / "manifest.json").write_bytes(manifest)
        report = archive.upload(path, url)
        assert report.adopted == states.count("whole") and report.sent == 3 - report.adopted
        checked = archive.verify(url)
        assert checked.ok and checked.unlisted == [] and checked.pieces == len(sealed)
        if number % 16 == 0:
            archive.restore(url, tmp_path / f"back{number}")
            assert files(tmp_path / f"back{number}") == sealed


def _objects(store: Path) -> list[str]:
    found = [file for file in store.rglob("*") if file.is_file() and file.name != ".lock"]
    return sorted(str(file.relative_to(store)) for file in found)


@pytest.mark.parametrize("damage", ["missing", "shorter", "flipped"])
def test_verify_and_restore_name_a_damaged_piece(
    damage: str, path: Path, url: str, tmp_path: Path
) -> None:
    add(path)
    archive.upload(path, url)
    piece = sorted((tmp_path / "store" / "pieces").iterdir())[1]
    data = bytearray(piece.read_bytes())
    if damage == "missing":
        piece.unlink()
    else:
        data[7] ^= 1
        piece.write_bytes(data if damage == "flipped" else data[:-1])
    report = archive.verify(url)
    assert not report.ok and [one["name"] for one in report.damages] == [f"pieces/{piece.name}"]
    with pytest.raises((deedbook.CorruptError, deedbook.IoError), match=piece.name):
        archive.restore(url, tmp_path / "back")
    assert [file.name for file in tmp_path.iterdir()] == ["log", "store"]
    done = run("verify", url)
    assert done.returncode == 1 and piece.name in done.stdout.decode()


@pytest.mark.parametrize("data", [b"", b"{}", b"[1]", b'{"deedbook_archive":1,"sha256":"0"}'])
def test_damaged_manifest_is_an_error(data: bytes, path: Path, url: str, tmp_path: Path) -> None:
    add(path)
    archive.upload(path, url)
    (tmp_path / "store" / "manifest.json").write_bytes(data)
    for call in (archive.verify, lambda url: archive.upload(path, url)):
        with pytest.raises(deedbook.CorruptError, match=r"manifest\.json"):
            call(url)
    assert (tmp_path / "store" / "manifest.json").read_bytes() == data


def test_manifest_cannot_lead_out_of_the_directory(path: Path, url: str, tmp_path: Path) -> None:
    """A bucket may be written by others."""
    add(path)
    archive.upload(path, url)
    store = _store.Store(url, 10)
    manifest, version = _manifest.load(store)
    for name in ("../out", "/tmp/out", "a/../../out", ""):
        bad = _manifest.replace(manifest.pieces[0], path=name)
        made = _manifest.replace(manifest, pieces=(bad,))
        store.replace("manifest.json", made.encode(), version)
        version = _manifest.load(store)[1]
        with pytest.raises(deedbook.CorruptError, match="manifest names a file"):
            archive.restore(url, tmp_path / "back")
        with pytest.raises(deedbook.CorruptError, match="manifest names a file"):
            list(archive.open(url).iter())
    assert not (tmp_path / "out").exists() and not (tmp_path / "back").exists()


HOSTILE: list[Any] = [None, "x", -1, 1 << 70, 1.5, {"a": 1}, [[0, "x", 0]]]
"""Values that another writer may put into a manifest or an entry, under a right checksum."""


@pytest.mark.parametrize("format", FORMATS)
def test_wrong_values_in_a_manifest_raise_our_errors(format: str, tmp_path: Path, url: str) -> None:
    log, file = tmp_path / "log", tmp_path / "store" / "manifest.json"
    grow(format, log, 0)
    archive.upload(log, url)
    calls: list[Callable[[], object]] = [
        lambda: archive.verify(url),
        lambda: list(archive.open(url).iter()),
        lambda: list(archive.open(url, log=log).iter()),
        lambda: archive.restore(url, tmp_path / "back"),
        lambda: archive.upload(log, url),
    ]
    good = json.loads(file.read_bytes())
    del good["sha256"]
    places = [(good["facts"], name) for name in good["facts"]]
    places += [(piece, name) for piece in good["pieces"][:1] for name in piece]
    for holder, name in places:
        before = holder[name]
        for holder[name], call in itertools.product(HOSTILE, calls):
            file.write_bytes(_manifest.with_checksum(good))
            with contextlib.suppress(deedbook.Error):
                call()
            shutil.rmtree(tmp_path / "back", ignore_errors=True)
        holder[name] = before


@pytest.mark.parametrize("kind", ["small segments", "large segments", "pier", "ledger"])
def test_damaged_log_is_not_archived(kind: str, path: Path, url: str) -> None:
    if kind == "pier":
        with Pier.create(path) as pier:
            pier.append_many([b"x" * 100] * 10)
            pier.roll()
        file = path / ".urb/log/0i0/book.log"
    elif kind == "ledger":
        append_to("ledger", path, [b"x" * 100] * 50, batch_bytes=1000)
        file = path / "1-events"
    else:
        large = kind.startswith("large")
        with Wal.create(path, segment_bytes=1_000_000 if large else SEGMENT) as wal:
            wal.append_many([b"x" * 100] * (30_000 if large else 200))
        file = sorted(path.glob("*.wal"))[1]
    flip(file, file.stat().st_size // 2)
    with pytest.raises(deedbook.CorruptError):
        archive.upload(path, url)
    with pytest.raises(deedbook.MissingError, match="no archive"):
        archive.verify(url)


def test_log_without_a_mark_is_refused(path: Path, url: str) -> None:
    add(path)
    shutil.rmtree(path / ".deedbook")
    with pytest.raises(deedbook.UnsupportedError, match="no mark"):
        archive.upload(path, url)
    add(path, 1)
    assert archive.upload(path, url).sent > 3


def test_restore_refuses_whatever_is_there(path: Path, url: str, tmp_path: Path) -> None:
    add(path)
    archive.upload(path, url)
    target = tmp_path / "back"
    target.mkdir()
    with pytest.raises(deedbook.AlreadyExistsError):
        archive.restore(url, target)
    target.rmdir()
    target.symlink_to(tmp_path / "nowhere")
    with pytest.raises(deedbook.AlreadyExistsError):
        archive.restore(url, target)
    with pytest.raises(deedbook.MissingError, match="no such object"):
        archive.restore((tmp_path / "none").as_uri(), tmp_path / "other")
    assert not (tmp_path / "none").exists()


def test_closed_epochs_of_a_pier_come_back(path: Path, url: str, tmp_path: Path) -> None:
    with Pier.create(path) as pier:
        for epoch in range(3):
            pier.append_many(b"%d" % number for number in range(epoch + 5))
            pier.save_meta(who=7, life=1, fake=False)
            pier.roll()
        pier.append(b"open")
        assert archive.upload(path, url).bounds == (1, 19)
        assert pier.consumers() == {"archive": 12}
        assert pier.retain(max_bytes=0).epochs == [0, 5]
        pier.roll()
        report = archive.upload(path, url)
        assert (report.sent, report.pieces, report.records) == (1, 4, 19)
        names = [f".urb/log/0i{number}/{name}" for number in (11, 18) for name in EPOCH]
        kept = {name: (path / name).read_bytes() for name in names}
    archive.restore(url, tmp_path / "back")
    for name, data in kept.items():
        assert (tmp_path / "back" / name).read_bytes() == data
    with Pier.open(tmp_path / "back", "a") as back:
        assert [epoch.number for epoch in back.epochs] == [0, 5, 11, 18]
        assert back.bounds == (1, 19) and back[19].payload == b"open" and back.meta.who == 7
        assert back.append(b"goes on") == 20
    with Pier.create(tmp_path / "other") as pier:
        pier.append_many([b"x"] * 5)
        pier.roll()
    with pytest.raises(deedbook.NotALogError):
        archive.upload(tmp_path / "other", url)


def test_finished_files_of_a_ledger_come_back(path: Path, url: str, tmp_path: Path) -> None:
    with Ledger.create(path, batch_bytes=1000) as ledger:
        ledger.append_many(b"%d" % number * 10 for number in range(300))
        first = archive.upload(path, url)
        assert first.sent == len([file for file in ledger.files if not file.active]) > 5
        here = {file.path: Path(file.path).read_bytes() for file in ledger.files if not file.active}
        fetched = ledger.fetch()
        assert fetched is not None
        ledger.remove(fetched.removable)  # all of them: no archived file is left
        ledger.append_many(b"%d" % number * 10 for number in range(300, 500))
        second = archive.upload(path, url)
        assert second.sent == second.pieces - first.pieces > 3
    report = archive.restore(url, tmp_path / "back")
    assert report.files == second.pieces
    for name, data in here.items():
        assert (tmp_path / "back" / Path(name).name).read_bytes() == data
    with Ledger.open(tmp_path / "back") as back:
        found = list(back.payloads())
    assert len(found) == second.records and len(set(found)) == second.records
    append_to("ledger", tmp_path / "other", [b"another"] * 300, batch_bytes=1000)
    with pytest.raises(deedbook.NotALogError):
        archive.upload(tmp_path / "other", url)


def test_logs_without_sealed_files_are_refused(tmp_path: Path, url: str) -> None:
    Book.create(tmp_path / "book").close()
    Wal.create(tmp_path / "one.wal", single_file=True).close()
    for log in ("book", "one.wal"):
        with pytest.raises(deedbook.UnsupportedError, match="sealed"):
            archive.upload(tmp_path / log, url)
    with pytest.raises(deedbook.MissingError):
        archive.upload(tmp_path / "none", url)


@pytest.mark.parametrize(
    "url", ["x", "http://h/b", "s3://", "s3://key:word@bucket/x", "s3://b/x?y=1", "file://h/x"]
)
def test_bad_urls_are_refused_without_their_secrets(url: str, path: Path) -> None:
    add(path)
    with pytest.raises(deedbook.InvalidArgumentError) as raised:
        archive.upload(path, url)
    assert "word" not in str(raised.value).replace("password", "")


def test_writer_appends_during_uploads(path: Path, url: str, tmp_path: Path) -> None:
    script = (
        "import sys, time, deedbook\n"
        f"with deedbook.Wal.open(sys.argv[1], 'a', segment_bytes={SEGMENT}) as wal:\n"
        "    while True:\n"
        "        wal.append_many(b'%d' % n * 20 for n in range(50)); wal.sync()\n"
        "        print(wal.end, flush=True); time.sleep(0.02)\n"
    )
    command = [sys.executable, "-c", script, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        try:
            for _ in range(5):
                for _ in range(10):
                    writer.stdout.readline()
                report = archive.upload(path, url)
        finally:
            writer.kill()
    assert report.pieces > 5 and archive.verify(url).ok
    archive.restore(url, tmp_path / "back")
    here = files(path)
    assert all(here[name] == data for name, data in files(tmp_path / "back").items())


def test_shell_archives_verifies_and_restores(path: Path, url: str, tmp_path: Path) -> None:
    add(path)
    facts = json.loads(ok("archive", path, url, "--json"))
    assert facts["ok"] and facts["sent"] == facts["pieces"] > 3 and facts["url"] == url
    assert b"ok, " in ok("verify", url)
    assert json.loads(ok("verify", url, "--json"))["path"] == url
    assert ok("restore", url, tmp_path / "back").startswith(os.fsencode(tmp_path / "back"))
    assert b"wrote " in ok("backup", url, tmp_path / "again")
    assert files(tmp_path / "back") == files(tmp_path / "again")
    assert ok("consumers", path).startswith(b"archive ")
    assert "something is there" in complaint(run("restore", url, tmp_path / "back"), 2)
    assert "one of them must be a path" in complaint(run("archive", url, url), 2)
    assert "go with a URL" in complaint(run("backup", path, "x", "--timeout", "1s"), 2)


@pytest.mark.parametrize(("scheme", "vendor"), [("s3", "AWS"), ("az", "AZURE")])
def test_plain_http_names_its_variable(
    scheme: str, vendor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "name")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "a2V5")
    for name in ("AWS_ENDPOINT_URL", "AZURE_ENDPOINT"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with pytest.raises(deedbook.IoError, match=f"{vendor}_ALLOW_HTTP=true allows http"):
        archive.open(f"{scheme}://logs/one", timeout=2)
