"""Files of a DirectoryStore come to a ledger: from Python, from the shell, and after kill -9."""

import json
import pickle
import shutil
from pathlib import Path

import pytest

from deedbook import Ledger
from places import DATA
from shell import complaint, ok, outputs
from shell import deedbook as command

VECTORS = DATA / "directory_store"
FOOTER = '],"sentAt":"2026-01-02T03:04:05.678Z","writeKey":"key"}'


def events(path: Path) -> list[bytes]:
    found = []
    with Ledger.open(path, "a") as ledger:
        while (result := ledger.fetch()) is not None:
            found += [event for batch in result.data for event in batch.records()]
            ledger.remove(result.removable)
    return found


def old(path: Path, items: list[str], end: str = FOOTER) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text('{ "batch": [' + ",".join(items) + end)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Files that the real store wrote."""
    shutil.copytree(VECTORS, tmp_path / "old")
    return tmp_path / "old"


def test_ledger_migration_reports_progress_and_each_file(source: Path, tmp_path: Path) -> None:
    names = sorted(path.name for path in source.iterdir())
    told: list[tuple[int, int]] = []
    looked = Ledger.migrate_directory_store(source, tmp_path / "s", dry_run=True)
    files = Ledger.migrate_directory_store(
        source, tmp_path / "s", progress=lambda done, total: told.append((done, total))
    )
    assert [file.events for file in files] == [file.events for file in looked]
    assert [Path(file.path).name for file in files] == names and files[-1].active
    assert told == sorted(told) and told[-1][0] == told[-1][1] == sum(file.bytes for file in files)
    for file in files:
        assert file.removed and file.rest_from is None
        assert pickle.loads(pickle.dumps(file)) == file and file.to_dict()["removed"] is True


def test_the_shell_migrates_and_tells(source: Path, tmp_path: Path) -> None:
    spool = tmp_path / "s"
    files = len(list(source.iterdir()))
    said = f"{spool}: would move 9 events of {files} files\n"
    assert ok("migrate", source, spool, "--dry-run").decode() == said
    assert not spool.exists()
    told = json.loads(ok("migrate", source, spool, "--keep", "--json"))
    assert told["ok"] and told["events"] == 9
    assert len(told["files"]) == files == len(list(source.iterdir()))
    said = f"{spool}: moved 9 events of {files} files\n"
    assert ok("migrate", source, spool).decode() == said
    assert not list(source.iterdir()) and len(events(spool)) == 18


def test_the_shell_names_what_is_left_over(tmp_path: Path) -> None:
    source, spool = tmp_path / "old", tmp_path / "s"
    old(source / "1-events", ["{}", '{"torn'], end="")
    (source / "3-events").write_text("?")
    out, _ = outputs("migrate", source, spool, "--dry-run", code=1)
    assert "6 bytes from byte 15 on would be left" in out
    out, _ = outputs("migrate", source, spool, code=1)
    aside = f"{spool}/.deedbook/quarantine/1-events.cut-15"
    assert f"6 bytes from byte 15 on are in {aside}\n" in out
    assert f"{source}/1-events: byte 21: " in out and f"{source}/3-events: byte 0: " in out
    assert out.endswith(f"{spool}: moved 1 event of 2 files\n")
    complaint(command("migrate", tmp_path / "none", spool, "--format", "ledger"), 2)
