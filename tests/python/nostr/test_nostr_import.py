"""Imports into an event store that continue: after kills, after stops, of many files."""

import contextlib
import gzip
import io
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import EventStore
from deedbook._cli import main
from deedbook._cli.write.import_notes import Notes
from deedbook.reports import ImportReport
from live import GIVE_UP_SECONDS, ended, running, send
from nostr_events import made

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
COUNT = 8000


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    """Events of 2 KB, some twice, with bad lines in between, some equal."""
    found = []
    for number in range(COUNT):
        event = made(f"{number} " + "x" * 2000, created_at=1_700_000_000 + number)
        line = json.dumps(event).encode()
        found += [line, line] if number % 100 == 7 else [line]
        if number % 50 == 3:
            found.append(b"oops" if number % 100 == 3 else b"oops %d" % number)
    return found


def is_bad(line: bytes) -> bool:
    return line.startswith(b"oops")


# The command, with a note after each commit. Otherwise a fast machine ends before the first note.
NOTING = """
import sys
from deedbook._cli import main
from deedbook._cli.write import import_events
import_events.NOTE_SECONDS = 0
sys.exit(main(sys.argv[1:]))
"""


def imported(path: Path, *words: Any, end: Any = None, seconds: float = 0) -> dict[str, Any]:
    """Run an import and return its output. `end` ends it, `seconds` after the first note."""
    note = path / ".deedbook" / "imports.json"

    def noted() -> int | None:
        with contextlib.suppress(FileNotFoundError):
            return note.stat().st_mtime_ns
        return None

    before = noted()
    command = [sys.executable, "-c", NOTING, "import", "--json", path, *words]
    child = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE)
    if end is not None:
        while child.poll() is None and noted() in (before, None):
            time.sleep(0.001)
        time.sleep(seconds)
        end(child)
    out, _ = child.communicate(timeout=120)
    return json.loads(out) if out else {}


@posix
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_a_killed_import_goes_on_where_it_was(
    path: Path, tmp_path: Path, lines: list[bytes], packed: bool
) -> None:
    source, aside = tmp_path / "events.jsonl", tmp_path / "bad"
    text = b"\n".join(lines)
    source.write_bytes(gzip.compress(text, 1) if packed else text)
    words, chance, kill = (source, "--aside", aside), random.Random(7), subprocess.Popen.kill
    for _ in range(3):
        result = imported(path, *words, end=kill, seconds=chance.uniform(0, 0.05))
        if result:  # a fast machine may end before the last kill
            break
    else:
        result = imported(path, *words)
    assert result["resumed_lines"] > 0
    bad = [(at, line) for at, line in enumerate(lines, 1) if is_bad(line)]
    assert [one["line"] for one in result["bad_lines"]] == [at for at, _ in bad]
    assert (result["lines"], result["bad"]) == (len(lines), len(bad))
    assert result["bytes"] == len(text)
    # Apart from repeated lines, only events that no commit covered count as duplicates.
    twice = len(lines) - len(bad) - COUNT
    assert result["stored"] + result["duplicates"] == COUNT + twice
    assert result["duplicates"] >= twice
    assert aside.read_bytes() == b"".join(line + b"\n" for _, line in bad)
    with EventStore.open(path) as store:
        stored = [json.loads(event.to_json()) for event in store]
        assert EventStore.verify(store.path).ok
    assert stored == [json.loads(line) for line in dict.fromkeys(lines) if not is_bad(line)]
    # A finished import leaves no note.
    assert not (path / ".deedbook" / "imports.json").exists()


@posix
def test_an_import_that_a_signal_ended_repeats_nothing(
    path: Path, tmp_path: Path, lines: list[bytes]
) -> None:
    source = tmp_path / "events.jsonl"
    source.write_bytes(b"\n".join(lines))
    stopped = imported(path, source, end=subprocess.Popen.terminate)
    assert stopped["interrupted"], stopped
    result = imported(path, source)
    assert result["resumed_lines"] == stopped["lines"] < result["lines"] == len(lines)
    assert result["stored"] == COUNT and result["duplicates"] == len(lines) - COUNT - result["bad"]


@posix
@pytest.mark.parametrize("writes", [True, False])
def test_import_opens_a_pipe_once_and_heeds_signals(
    path: Path, tmp_path: Path, lines: list[bytes], writes: bool
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with running("import", path, fifo, "--json") as process:
        if writes:
            with open(fifo, "wb", buffering=0) as writer:
                for line in lines[:3]:
                    writer.write(line + b"\n")
                    time.sleep(0.1)
        else:
            while not path.exists() and process.poll() is None:
                time.sleep(0.01)
            time.sleep(0.3)
            process.send_signal(signal.SIGTERM)
        done = ended(process)
    if writes:
        assert done.returncode == 0 and json.loads(done.stdout)["stored"] == 3
    else:
        assert done.returncode == 143 and b"Traceback" not in done.stderr


@posix
def test_signal_ends_waiting_for_lines_at_a_commit(path: Path, lines: list[bytes]) -> None:
    with running("import", path, "--json") as process:
        for line in lines[:3]:
            send(process, line + b"\n")
        while not path.exists() and process.poll() is None:
            time.sleep(0.01)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        assert process.wait(GIVE_UP_SECONDS) == 130  # while its input is open
        result = json.loads(ended(process).stdout)
    assert (result["interrupted"], result["stored"]) == (True, 3)
    with EventStore.open(path, "a") as store:
        assert store.opening.replayed == 0, "closed properly"
        assert store.census().events == 3


def report(lines: int, size: int, **more: int) -> ImportReport:
    names = ("stored", "superseded", "duplicates", "deleted", "expired", "ephemeral", "bad")
    numbers = {**dict.fromkeys(names, 0), **more}
    return ImportReport(lines=lines, bytes=size, bad_lines=[], **numbers)


def of(numbers: Iterable[int]) -> list[bytes]:
    return [json.dumps(made(str(number))).encode() + b"\n" for number in numbers]


@pytest.fixture
def run(path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:

    def run(*words: object, code: int = 0) -> dict[str, Any]:
        assert main(["import", str(path), "--json", *map(str, words)]) == code
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return run


def noted(path: Path, source: Path, done: ImportReport | None = None) -> bool:
    """Note the progress of an import, if given; returns whether the next import would skip it."""
    notes = Notes(str(path), {"check": "id", "history": "drop", "aside": None})
    if done is not None:
        with EventStore.open(path, "a"):
            notes.keep(str(source), done, 0)
    return notes.find(str(source)) is not None


def test_noted_lines_are_skipped_unless_something_changed(
    path: Path, tmp_path: Path, run: Any
) -> None:
    source, events = tmp_path / "events.jsonl", of(range(10))
    source.write_bytes(b"".join(events))
    before = source.stat()

    def again(*more: object) -> dict[str, Any]:
        # The noted events are not in the store, so skipped lines are visible.
        noted(path, source, report(4, len(b"".join(events[:4])), stored=4))
        result: dict[str, Any] = run(source, *more)
        assert not (path / ".deedbook" / "imports.json").exists()
        return result

    result = again()
    assert (result["stored"], result["lines"], result["resumed_lines"]) == (10, 10, 4)
    with EventStore.open(path) as store:
        assert [event.content for event in store] == [str(number) for number in range(4, 10)]
    # With other options, no line is skipped: the four missing events are stored, once.
    result = again("--no-resume")
    assert (result["stored"], result["duplicates"], "resumed_lines" in result) == (4, 6, False)
    for way in (["--check", "none"], ["--aside", str(tmp_path / "bad")], ["--history", "keep"]):
        assert "resumed_lines" not in again(*way), way
    for change in ("time", "head", "size"):
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert noted(path, source, report(4, 10))
        if change == "time":
            os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
        else:
            data = bytearray(source.read_bytes())
            data[0:1] = b" " if change == "head" else data[0:1] + b" "
            source.write_bytes(data)
            os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
        assert not noted(path, source), change
        source.write_bytes(b"".join(events))
    (path / ".deedbook" / "imports.json").write_text("{damaged")
    assert not noted(path, source)


def test_many_files_are_one_import(
    path: Path, tmp_path: Path, run: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    sources = [tmp_path / f"{name}.jsonl" for name in "abc"]
    for at, source in enumerate(sources):
        source.write_bytes(b"".join([*of(range(at, at + 5)), b"oops"]))
    # The last file is truncated; its whole lines and the first files are imported.
    sources[2].write_bytes(gzip.compress(sources[2].read_bytes())[:-5])
    result = run(*sources, code=2)
    assert (result["stored"], result["interrupted"], result["ok"]) == (7, True, False)
    assert run(*sources, code=2)["resumed_lines"] == 12 + 5
    sources[2].write_text("\n".join([json.dumps(made("last")), "", "oops"]))
    assert main(["import", str(path), *map(str, sources)]) == 1
    said = capsys.readouterr().err.splitlines()
    places = [
        f"deedbook: {source}: line {at}" for source, at in zip(sources, (6, 6, 3), strict=True)
    ]
    assert [line.rpartition(": ")[0] for line in said[:3]] == places
    assert said[3:] == [
        "deedbook: stored 7 events of 15 lines, 4 there already, 3 bad,"
        " 12 of the lines by an earlier import"
    ]
    assert not (path / ".deedbook" / "imports.json").exists()


def test_import_error_names_the_unreadable_file(path: Path, tmp_path: Path, run: Any) -> None:
    sources = [tmp_path / f"{name}.jsonl.gz" for name in "ab"]
    packed = gzip.compress(b"".join(of(range(9))))
    sources[0].write_bytes(packed)
    sources[1].write_bytes(packed[:-12])
    assert run(*sources, code=2)["error"]["path"] == str(sources[1])
    with EventStore.open(path, "a") as store, sources[1].open("rb") as file:
        for source in (sources[1], file):
            with pytest.raises(deedbook.IoError) as raised:
                store.import_json(source)
            assert raised.value.path == str(sources[1])
            assert f"({sources[1]})" in str(raised.value)
        with pytest.raises(deedbook.IoError, match=r"cannot read the events: .* \(lines\)"):
            store.import_json(io.BytesIO(packed[:-12]))
