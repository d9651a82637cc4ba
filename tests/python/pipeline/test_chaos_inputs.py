"""A trial: inputs match the notes, moments are seen, and runs are judged."""

import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from chaos.home import Home
from chaos.inputs.events import judge
from chaos.inputs.generate import Generated, start
from chaos.inputs.notes import Note, digest, expected_file, lines_of_files, notes_of
from chaos.inputs.plan import INPUTS, SETTINGS_FILE, Settings, plan
from chaos.kills import troubles
from chaos.kills.moments import MOMENTS, Watch
from chaos.runs import Once
from deedbook import InvalidArgumentError, Ledger, Wal
from deedbook._system.compressed import read_all
from nostr_events import EVENTS, SMALL


def made(directory: Path, **options: Any) -> Generated:
    done = start(directory, **options).wait()
    assert done.failures == {}
    return done


def held(directory: Path, name: str) -> list[tuple[str | None, bytes]]:
    path = directory / INPUTS[name]
    if name == "files":
        return list(lines_of_files(path))
    if name == "orders":
        with Wal.open(path) as wal:
            return [(None, payload) for payload in wal.payloads()]
    with Ledger.open(path) as ledger:
        return [(None, payload) for payload in ledger.payloads()]


def noted(directory: Path, name: str) -> list[Note]:
    return list(notes_of(expected_file(directory, name)))


def assert_in_step(directory: Path, name: str) -> list[Note]:
    notes = noted(directory, name)
    there = [
        (number, where, digest(data))
        for number, (where, data) in enumerate(held(directory, name), 1)
    ]
    assert [(note.n, note.where, note.sha256) for note in notes] == there
    return notes


def assert_complete(directory: Path) -> None:
    settings = Settings.load(directory / "expected" / SETTINGS_FILE)
    for name in INPUTS:
        planned = [(digest(line.data), line.id, line.fault) for _, line in plan(settings, name)]
        found = assert_in_step(directory, name)
        assert [(note.sha256, note.id, note.fault) for note in found] == planned != []


def test_notes_say_what_the_inputs_hold(tmp_path: Path) -> None:
    begun = time.time()
    done = made(tmp_path, events=3000, seed=1)
    assert (done.complete, done.events) == (True, "synthetic")
    assert "synthetic" in (tmp_path / "expected" / "README").read_text()
    assert_complete(tmp_path)
    ids: dict[str, list[str]] = {}
    faults = set()
    for name in INPUTS:
        notes = noted(tmp_path, name)
        assert len(notes) == done.lines[name]
        times = [note.at or 0.0 for note in notes]
        assert begun <= times[0] and times == sorted(times) and times[-1] <= time.time()
        # The generator's fault for a line equals the judgement of its bytes.
        judged = [judge(data) for _, data in held(tmp_path, name)]
        assert [(note.id, note.fault) for note in notes] == judged
        assert [note.good for note in notes] == [fault is None for _, fault in judged]
        ids[name] = [note.id for note in notes if note.id]
        faults |= {note.fault for note in notes}
    assert faults == {None, "json", "text", "object", "schema", "key", "time", "empty"}
    assert len(set.union(*map(set, ids.values()))) == 3000
    assert all(len(set(one)) < len(one) for one in ids.values()), "no duplicate within an input"
    assert set(ids["files"]) & set(ids["orders"]) and set(ids["files"]) & set(ids["spool"])
    names = {file.suffix for file in (tmp_path / "files").iterdir()}
    assert names == {".jsonl"}
    assert len(Ledger.open(tmp_path / "spool").files) > 1
    events = [json.loads(data) for _, data in held(tmp_path, "files") if judge(data)[0]]
    created = [event["created_at"] for event in events]
    assert created != sorted(created) and (max(created) - min(created)) < 3 * 86400
    kinds = {event["kind"] for event in events}
    assert {0, 1, 3, 5, 7, 20001, 30023} <= kinds
    assert any(tag[0] == "expiration" for event in events for tag in event["tags"])


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_events_of_a_file(tmp_path: Path, suffix: str) -> None:
    source = tmp_path / f"events.jsonl{suffix}"
    lines = SMALL.read_bytes() + b"\n{}\n"
    source.write_bytes(gzip.compress(lines) if suffix else lines)
    assert read_all(source) == lines
    done = made(tmp_path / "in", source=source)
    assert done.events == str(source)
    found = [note for name in INPUTS for note in noted(tmp_path / "in", name)]
    assert {note.id for note in found if note.id} == {event["id"] for event in EVENTS}
    assert "key" in {note.fault for note in found}
    with pytest.raises(InvalidArgumentError, match="are asked for"):
        start(tmp_path / "more", source=source, events=10**6)


def test_input_with_losses_or_changes_is_not_resumed(tmp_path: Path) -> None:
    made(tmp_path, events=3000, seed=3)
    files = sorted((tmp_path / "files").iterdir())
    data = files[0].read_bytes()
    lines = data.splitlines(keepends=True)
    files[0].write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))
    numbered = (tmp_path / "spool").glob("*-events")
    last = max(numbered, key=lambda file: int(file.name.partition("-")[0]))
    last.unlink()
    assert last.name != "0-events"
    done = start(tmp_path, resume=True).wait()
    assert "record 1 is not the one that was sent" in done.failures["files"]
    assert "records were acknowledged and are not there" in done.failures["spool"]
    assert set(done.failures) == {"files", "spool"}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def left_by(home: Home) -> dict[str, Path]:
    sidecar = home.bronze("orders") / ".deedbook"
    return {
        "staged": sidecar / "staged" / "job.0.0.1",
        "intent": sidecar / "transaction",
        "recorded": sidecar / "transactions",
        "quarantined": home.table("quarantine") / "_spark_metadata" / "0",
        "silver": home.table("silver") / "_spark_metadata" / "1",
        "gold": home.table("gold/windows") / "_spark_metadata" / "9.compact",
        "state": home.checkpoint("silver") / "state" / "0" / "1" / "3.zip",
        "checkpoint offsets": home.checkpoint("silver") / "offsets" / "3",
        "checkpoint commit": home.checkpoint("bronze/spool") / "commits" / "3",
    }


def test_watch_sees_each_step_only_by_its_file(home: Home) -> None:
    files = left_by(home)
    assert set(files) == set(MOMENTS) - {"at random"}
    watches = {moment: Watch(home, moment) for moment in files}
    assert not any(watch.sees() for watch in watches.values())
    for moment, file in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
        assert watches[moment].sees(), moment
        assert not Watch(home, moment).sees(), "what was there before is no step"
        new = {other for other, watch in watches.items() if watch.sees()}
        assert new == {one for one in files if files[one].exists()}


def test_run_must_refuse_with_reason_and_change_nothing() -> None:
    refused = Once(2, "pipeline: /log: no checkpoint is at /there\n", {})
    assert troubles.judge(refused, ["no checkpoint", "/there"], True) is None
    assert troubles.judge(refused, ["no checkpoint", "/elsewhere"], True) == (
        "it did not say '/elsewhere': pipeline: /log: no checkpoint is at /there"
    )
    assert troubles.judge(refused, ["no checkpoint"], False) == (
        "it changed something: pipeline: /log: no checkpoint is at /there"
    )
    assert troubles.judge(Once(0, "{}", {"orders": 3}), ["no checkpoint"], True) == (
        "it went on: {'orders': 3}"
    )
