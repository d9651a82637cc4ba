"""Dead letters: complete on disk or not there, readable, and put back into a store."""

import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deedbook import CorruptError, Ledger, TooLargeError
from deedbook.http import DeadLetters
from deedbook.transient import MemoryStore, TransientDB
from http_kinds import events

WHY: dict[str, Any] = {
    "reason": "status 400: bad",
    "status": 400,
    "attempts": 1,
    "now": 1_700_000_000.25,
    "url": "https://host/v1",
}


@pytest.fixture
def folder(tmp_path: Path) -> DeadLetters:
    return DeadLetters(tmp_path / "dead")


def written(folder: DeadLetters, id: str = "batch", items: list[bytes] | None = None) -> Path:
    return folder.write(id, enumerate(events(3) if items is None else items), **WHY)


def test_dead_letter_has_the_event_and_its_reason(folder: DeadLetters) -> None:
    assert not folder and len(folder) == 0 and list(folder) == []
    file = written(folder, items=[b'{"a":1}', b"\xff\x00"])
    assert folder.files() == [file] and len(folder) == 2
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert lines[0] == {
        "id": "batch",
        "record": 0,
        "reason": "status 400: bad",
        "status": 400,
        "attempts": 1,
        "time": "2023-11-14T22:13:20.250+00:00",
        "url": "https://host/v1",
        "payload": '{"a":1}',
    }
    assert lines[1]["payload_base64"] == "/wA="
    assert [letter.payload for letter in folder] == [b'{"a":1}', b"\xff\x00"]


def test_repeated_refusal_replaces_only_its_own_file(folder: DeadLetters) -> None:
    """After a crash a batch is refused again; a new store may give an old id to other events."""
    assert written(folder) == written(folder)
    written(folder, items=events(3, start=100))
    written(folder, "batch.0-2")
    assert len(folder.files()) == 3


def test_two_writers_of_a_refusal_do_not_interfere(folder: DeadLetters) -> None:
    def beside_another() -> Iterator[tuple[int, bytes]]:
        for record, payload in enumerate(events(3)):
            if record == 1:
                files.append(written(DeadLetters(folder.path)))
            yield record, payload

    files: list[Path] = []
    files.append(folder.write("batch", beside_another(), **WHY))
    assert files[0] == files[1] and list(folder.path.iterdir()) == files[:1]
    assert [letter.payload for letter in folder] == events(3)


def test_non_utf8_reason_of_a_letter_round_trips(folder: DeadLetters) -> None:
    why = 'it says "\ud800" and \U0001f600'
    folder.write("batch", enumerate(events(1)), **(WHY | {"reason": why}))
    (letter,) = folder
    assert (letter.reason, letter.payload) == (why, events(1)[0])


@pytest.mark.parametrize("id", ["../../x", "a/b", ".hidden", "x" * 300, "ü"])
def test_no_id_leads_out_of_the_folder(folder: DeadLetters, id: str) -> None:
    file = written(folder, id)
    assert file.parent == folder.path and folder.files() == [file]
    assert next(iter(folder)).id == id


def test_what_a_crash_left_is_no_letter(folder: DeadLetters) -> None:
    folder.path.mkdir()
    (folder.path / ".batch.1.tmp").write_bytes(b'{"id"')
    (folder.path / "notes.txt").write_bytes(b"hello")
    assert folder.files() == [] and not folder


def test_what_a_replay_removes_meanwhile_is_passed_over(
    folder: DeadLetters, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (written(folder, id) for id in "abc")
    listed = os.listdir

    def listdir(path: Path) -> list[str]:
        found = listed(path)
        third.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(os, "listdir", listdir)
    assert folder.files() == [first, second]
    letters = iter(folder)
    assert next(letters).id == "a"
    second.unlink()
    assert [letter.id for letter in letters] == ["a", "a"]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_the_order_of_writing_is_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes before the name, and the name before the store forgets the events."""
    calls: list[str] = []
    sync, swap = os.fsync, os.replace

    def fsync(fd: int) -> None:
        calls.append("folder" if stat.S_ISDIR(os.fstat(fd).st_mode) else "file")
        sync(fd)

    def replace(source: Any, target: Any) -> None:
        calls.append("name")
        swap(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    folder = DeadLetters(tmp_path / "new" / "dead")
    file = written(folder)
    assert calls == ["folder", "folder", "file", "name", "folder"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700


def test_a_failed_write_leaves_nothing(folder: DeadLetters) -> None:

    def failing():
        yield 0, b"1"
        raise OSError("the batch cannot be read")

    with pytest.raises(OSError, match="cannot be read"):
        folder.write("batch", failing(), **WHY)
    assert list(folder.path.iterdir()) == []


def test_replay_puts_the_events_back(folder: DeadLetters) -> None:
    written(folder, "a", events(3))
    second = written(folder, "b", [b"\xff", b"2"])
    store = MemoryStore()
    assert folder.replay(store, [second]) == 2 and len(folder.files()) == 1
    assert folder.replay(store) == 3 and not folder
    assert list(store.fetch().data[0].records()) == [b"\xff", b"2", *events(3)]
    assert folder.replay(store) == 0


def test_replay_syncs_before_it_removes(folder: DeadLetters) -> None:
    written(folder)
    files_at_sync = []

    class Store(MemoryStore):
        def sync(self) -> None:
            files_at_sync.append(len(folder.files()))

    folder.replay(Store())
    assert files_at_sync == [1] and folder.files() == []


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_replay_that_is_refused_appends_nothing(
    folder: DeadLetters, tmp_path: Path, wrapped: bool
) -> None:
    file = written(folder, items=[b"1", b"x" * (1 << 20) + b"x", b"2"])
    with Ledger.open(tmp_path / "spool", "a") as ledger:
        for _ in range(2):
            with pytest.raises(TooLargeError):
                folder.replay(TransientDB(ledger) if wrapped else ledger)
        assert ledger.fetch() is None and folder.files() == [file]
    with Ledger.open(tmp_path / "spool", "a", record_bytes_max=2 << 20) as ledger:
        assert folder.replay(TransientDB(ledger) if wrapped else ledger) == 3
        bodies = ledger.fetch().data
        assert [len(e) for body in bodies for e in body.records()] == [1, 1_048_577, 1]


@pytest.mark.parametrize(
    "line", [b"{", b"[]", b'{"id":"x"}', b'{"payload":1}', b'{"payload":"x","more":1}', b"\xff"]
)
def test_a_damaged_file_is_told_and_kept(folder: DeadLetters, line: bytes) -> None:
    file = written(folder)
    file.write_bytes(file.read_bytes() + line + b"\n")
    store = MemoryStore()
    with pytest.raises(CorruptError, match="line 4: not a dead letter") as info:
        folder.replay(store)
    assert info.value.path == str(file) and file.exists() and not store.has_data()
