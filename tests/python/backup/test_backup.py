"""Backups from Python and the shell: next to active writers, killed, interrupted, and errors."""

import json
import os
import pickle
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import EventStore, Ledger, Pier, backup
from deedbook._cli import main
from deedbook._system.sidecar import dead_letters_of
from deedbook.http import DeadLetters
from logs import KINDS, append_to, payload, write
from nostr_events import event

WRITER = """
import sys, deedbook
kind, path, options = sys.argv[1], sys.argv[2], eval(sys.argv[3])
log = getattr(deedbook, kind).open(path, "a", **options)
number = 0
while True:
    log.append_many(b"%d " % (number + i) * (1 + i % 40) for i in range(50))
    number += 50
    log.sync()
    print(number, flush=True)
"""
WHY: dict[str, Any] = {"reason": "no", "status": 400, "attempts": 1, "now": 1.0, "url": "http://h"}


TOOLS = {
    "cp": "mkdir copied && cp -r --sparse=always log copied/",
    "tar": "mkdir copied && tar -cf - log | tar -xf - -C copied",
    "rsync": "rsync -a log copied/",
}


def require(tool: str, tmp_path: Path) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"there is no {tool}")
    if tool == "cp":  # cp of Alpine copies no holes
        (tmp_path / "probe").write_bytes(b"x")
        words = ["cp", "--sparse=always", "probe", "probed"]
        if subprocess.run(words, cwd=tmp_path, capture_output=True).returncode != 0:
            pytest.skip("this cp has no --sparse")


@pytest.mark.skipif(sys.platform != "linux", reason="the options are those of GNU")
@pytest.mark.parametrize("tool", TOOLS)
@pytest.mark.parametrize("name", ["packed", "segments", "pier", "ledger"])
def test_foreign_copy_is_a_prefix_or_refused(name: str, tool: str, tmp_path: Path) -> None:
    """The tools choose the order. In any order, a copy has only appended records."""
    require(tool, tmp_path)
    kind, options = (Ledger, {"batch_bytes": 20_000}) if name == "ledger" else KINDS[name]
    command = [sys.executable, "-c", WRITER, kind.__name__, str(tmp_path / "log"), repr(options)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        try:
            acknowledged = [int(writer.stdout.readline()) for _ in range(20)][-1]
            done = subprocess.run(TOOLS[tool], shell=True, cwd=tmp_path, capture_output=True)
            assert done.returncode in (0, 1), done.stderr  # tar reports a changed file with 1
        finally:
            writer.kill()
    copy = tmp_path / "copied" / "log"
    found, met = [], None
    with deedbook.open(copy) as log:
        records = log.payloads()
        try:
            for record in records:
                found.append(record)
        except deedbook.CorruptError as error:  # the tool copied the mark later than the log
            met = error
    assert found == [payload(number) for number in range(len(found))]
    assert len(found) >= acknowledged
    try:
        (kind.open(copy) if name == "ledger" else kind.open(copy, "a")).close()
    except (deedbook.LostRecordsError, deedbook.CorruptError) as error:
        # Refused: the end is missing, or, if a tool read a later part later, there is a hole.
        assert met is not None
        assert re.search("this copy has less than its mark|next intact record", str(error)), error
    else:
        if met is not None:
            # Opening does not read a hole far from the end: the hole stays, and verify reports it.
            assert not kind.verify(copy).ok


def make(name: str, path: Path, count: int = 300) -> Any:
    kind, options = KINDS[name]
    options = {key: value for key, value in options.items() if not key.startswith("retain")}
    log = kind.create(path, **options)
    log.append_many(payload(i) for i in range(count))
    log.sync()
    return log


def test_the_report_is_a_value(tmp_path: Path) -> None:
    make("packed", tmp_path / "log").close()
    report = backup(os.fsencode(tmp_path / "log"), str(tmp_path / "copy"))
    assert (report.source, report.target) == (str(tmp_path / "log"), str(tmp_path / "copy"))
    assert (report.format, report.new_records, report.bounds) == ("book", 300, (1, 300))
    assert report == pickle.loads(pickle.dumps(report)) != backup(report.source, report.target)
    assert json.loads(json.dumps(report.to_dict()))["copied_files"] == report.copied_files > 0
    assert "copied_bytes" in report._repr_html_()  # type: ignore[attr-defined]


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
@pytest.mark.parametrize("name", [*KINDS, "ledger", "store"])
def test_backup_files_keep_the_permissions_of_the_log(name: str, tmp_path: Path) -> None:
    """Earlier, only the owner could read the copy of a book and of all small files."""
    log, copy = tmp_path / "here" / "log", tmp_path / "there" / "log"
    log.parent.mkdir()
    copy.parent.mkdir()
    write(name, log)
    files = [file for file in log.parent.rglob("*") if file.is_file()]
    for number, file in enumerate(files):
        file.chmod((0o664, 0o640, 0o444)[number % 3])
    if log.is_dir():
        log.chmod(0o700)
    backup(log, copy)
    # A directory closed to other users stays closed in the copy.
    assert log.is_file() or stat.S_IMODE(copy.stat().st_mode) == 0o700
    found = 0
    for file in files:
        copied = copy.parent / file.relative_to(log.parent)
        if copied.exists() and copied.name != "lock":
            mode = stat.S_IMODE(file.stat().st_mode) | 0o600
            assert (copied.name, stat.S_IMODE(copied.stat().st_mode)) == (copied.name, mode)
            found += 1
    assert found >= 2 or name == "ledger"


def test_pier_backup_remembers_transactions_of_its_epochs(tmp_path: Path) -> None:
    """Without the note next to the epochs, a repeated load after a restore appended again."""

    def load(pier: Pier, version: int) -> bool:
        with pier.transactions.stage("load", 0, version) as stage:
            stage.extend([b"%d" % version] * 3)
            parts = stage.finish()
        return pier.transactions.publish("load", parts, app="etl", version=version).repeated

    append_to("pier", tmp_path / "pier", [b"first"])
    with Pier.open(tmp_path / "pier", "a", epoch_part_bytes=1) as pier:
        for version in (1, 2):
            assert not load(pier, version)
            assert pier.backup(tmp_path / "copy").bounds == (1, 1 + 3 * version)
    with Pier.open(tmp_path / "copy", "a", epoch_part_bytes=1) as copy:
        assert [epoch.number for epoch in copy.epochs] == [0, 1, 4]
        assert load(copy, 2) and not load(copy, 3)
        assert copy.last == 10


def test_ledger_backup_includes_dead_letters(tmp_path: Path) -> None:
    """Earlier, backups had no dead letters, the only copy of refused events."""
    log, copy = tmp_path / "ledger", tmp_path / "copy"
    for base in ("events", "clicks"):
        append_to("ledger", log, [b"waits"], base=base)
        DeadLetters(dead_letters_of(log, base)).write("batch", enumerate([base.encode()]), **WHY)

    def copied(base: str) -> list[bytes]:
        return [letter.payload for letter in DeadLetters(dead_letters_of(copy, base))]

    backup(log, copy)
    assert (copied("events"), copied("clicks")) == ([b"events"], [b"clicks"])
    with Ledger.open(log, "a", base="events") as ledger:
        assert DeadLetters(dead_letters_of(log, "events")).replay(ledger) == 1
    backup(log, copy)
    assert (copied("events"), copied("clicks")) == ([], [b"clicks"])
    with Ledger.open(copy, base="events") as snapshot:
        assert [record.payload for record in snapshot] == [b"waits", b"events"]


def test_backup_includes_events_refused_and_replayed_during_it(tmp_path: Path) -> None:
    """The event leaves its file before the copy, and enters another file after it."""
    log, copy = tmp_path / "ledger", tmp_path / "copy"
    with Ledger.open(log, "a") as ledger:
        for payload in (b"one", b"two"):
            ledger.append(payload)
            ledger.fetch()
    seen: list[int] = []

    def refuse(read: int) -> None:
        seen.append(read)
        if len(seen) == 1:
            letters = DeadLetters(dead_letters_of(log, "events"))
            letters.write("batch", enumerate([b"two"]), **WHY)
            (log / "1-events").unlink()
            with Ledger.open(log, "a") as ledger:
                assert letters.replay(ledger) == 1

    backup(log, copy, progress=refuse)
    with Ledger.open(copy, base="events") as snapshot:
        assert [record.payload for record in snapshot] == [b"one", b"two"]


def test_ledger_backup_includes_committed_transactions(tmp_path: Path) -> None:
    """Earlier, the backup failed, because the folder of the note was missing."""
    with Ledger.open(tmp_path / "ledger", "a") as ledger:
        with ledger.transactions.stage("job", 0, 1) as file:
            file.extend([b"1", b"2"])
            parts = file.finish()
        ledger.transactions.publish("job", parts, app="app", version=0)
        ledger.backup(tmp_path / "copy")
    with Ledger.open(tmp_path / "copy", "a") as copy:
        assert [noted.app for noted in copy.transactions.committed()] == ["app"]
    with Ledger.open(tmp_path / "copy") as reader:
        assert reader.backup(tmp_path / "again").format == "ledger"


def test_the_command_says_what_it_copied(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make("packed", tmp_path / "log").close()
    assert main(["backup", str(tmp_path / "log"), str(tmp_path / "copy")]) == 0
    said = capsys.readouterr().out
    assert "read 300 new deeds back; it has deeds 1..300, " in said
    assert main(["backup", str(tmp_path / "log"), str(tmp_path / "copy"), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["ok"], report["copied_bytes"], report["bounds"]) == (True, 0, [1, 300])
    assert main(["backup", str(tmp_path / "log"), str(tmp_path / "log")]) == 2
    assert "is the log itself" in capsys.readouterr().err


def test_backup_replaces_the_index_of_a_changed_copy(tmp_path: Path) -> None:
    """Earlier, the next backup kept the index, and queries did not find stored events."""
    source, target = tmp_path / "store", tmp_path / "copy"
    append_to("nostr", source, (event(number) for number in range(10)))
    backup(source, target)
    append_to("nostr", target, [event(1001)])
    with EventStore.open(source, "a") as store:
        for number in range(10, 30):
            store.append(event(number))
            store.checkpoint()
        ids = {found.id for found in store}
    backup(source, target)
    with EventStore.open(target, "a") as copy:
        assert {found.id for found in copy} == ids
        assert all(copy.get(id) is not None for id in ids)
        assert copy.get(event(1001)["id"]) is None
