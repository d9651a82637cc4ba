"""Inputs of a trial: the notes match the input, whatever process is killed."""

from __future__ import annotations

import gzip
import json
import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tiers
from chaos.inputs.events import judge
from chaos.inputs.generate import Generated, start
from chaos.inputs.notes import Note, digest, expected_file, lines_of_files, notes_of
from chaos.inputs.plan import INPUTS, SETTINGS_FILE, Settings, plan
from deedbook import InvalidArgumentError, Ledger, Wal
from deedbook._system.compressed import read_all
from nostr_events import EVENTS, SMALL

KILLS = tiers.number("PRODUCER_KILLS")


def made(directory: Path, **options: Any) -> Generated:
    done = start(directory, **options).wait()
    assert done.failures == {}
    return done


def held(directory: Path, name: str) -> list[tuple[str | None, bytes]]:
    """The lines of an input, with their places."""
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
    """Check that the notes match the input."""
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


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="kills with SIGKILL")
def test_what_was_killed_is_resumed(tmp_path: Path) -> None:
    """SIGKILL hits each of the producers repeatedly, at any moment."""
    generation = start(tmp_path, events=6000, seed=2, rate=700)
    killed = 0
    for round_ in range(KILLS):
        time.sleep(0.3 + round_ % 5 * 0.17)
        generation.processes[tuple(INPUTS)[round_ % 3]].kill()
        if round_ % 2:
            generation.stop()
        else:
            for process in generation.processes.values():
                process.kill()
        done = generation.wait()
        killed += len(done.failures)
        assert set(done.failures.values()) <= {"killed by signal 9"}
        assert not done.complete
        generation = start(tmp_path, resume=True, rate=700)
    generation.stop()
    generation.wait()
    there = [len(noted(tmp_path, name)) for name in INPUTS]
    assert killed > KILLS and all(there), "the kills came too early"
    assert sum(there) < 6000, "the kills came too late"
    assert made(tmp_path, resume=True, rate=1e6).complete
    assert_complete(tmp_path)
    again = made(tmp_path, resume=True)
    assert again.complete and set(again.lines.values()) == {0}


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


def test_torn_note_and_missing_notes_are_completed(tmp_path: Path) -> None:
    made(tmp_path, events=500, seed=4)
    expected = expected_file(tmp_path, "orders")
    whole = expected.read_bytes()
    before = noted(tmp_path, "orders")
    expected.write_bytes(whole[: len(whole) // 2])
    assert not whole[: len(whole) // 2].endswith(b"\n")
    half = tmp_path / "files" / ".000002.jsonl.new"
    half.write_bytes(b"half")
    made(tmp_path, resume=True)
    after = noted(tmp_path, "orders")
    kept = whole[: len(whole) // 2].count(b"\n")
    assert after[:kept] == before[:kept]
    # The times of the other acknowledgements are unknown now.
    assert after[kept:] == [replace(note, at=None) for note in before[kept:]] != []
    assert not half.exists()


def test_what_is_there_is_not_begun_again(tmp_path: Path) -> None:
    made(tmp_path, events=50)
    with pytest.raises(InvalidArgumentError, match=r"files, app\.wal, spool, expected is there"):
        start(tmp_path, events=50)
    with pytest.raises(InvalidArgumentError, match="events was 50 when this was begun, not 60"):
        start(tmp_path, events=60, resume=True)
