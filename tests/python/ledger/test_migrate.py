"""Files of a DirectoryStore come to a ledger: from Python, from the shell, and after kill -9."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Ledger
from deedbook._cli import main
from places import DATA

VECTORS = DATA / "directory_store"
FOOTER = '],"sentAt":"2026-01-02T03:04:05.678Z","writeKey":"key"}'


def events(path: Path) -> list[bytes]:
    found = []
    with Ledger.open(path) as ledger:
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


def test_a_migration_tells_its_progress_and_what_became_of_each_file(
    source: Path, tmp_path: Path
) -> None:
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


def test_what_cannot_be_migrated_is_an_error_of_its_kind(tmp_path: Path) -> None:
    source, spool = tmp_path / "old", tmp_path / "s"
    migrate = Ledger.migrate_directory_store
    with pytest.raises(deedbook.MissingError):
        migrate(source, spool)
    old(source / "1-events", ['"%s"' % ("x" * 2_000_000)])
    with pytest.raises(deedbook.InvalidArgumentError, match="same directory"):
        migrate(source, source)
    with pytest.raises(deedbook.TooLargeError) as raised:
        migrate(source, spool)
    assert raised.value.path == str(source / "1-events")

    def stop(done: int, total: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        migrate(source, spool, record_bytes_max=1 << 22, progress=stop)
    migrate(source, spool, record_bytes_max=1 << 22)
    assert [len(event) for event in events(spool)] == [2_000_002] * 2, "again after an error"


def shell(capfd: Any, *args: object) -> tuple[int, str, str]:
    code = main([*map(str, args)])
    out, err = capfd.readouterr()
    return code, out, err


def test_the_shell_migrates_and_tells(source: Path, tmp_path: Path, capfd: Any) -> None:
    spool = tmp_path / "s"
    files = len(list(source.iterdir()))
    code, out, _ = shell(capfd, "spool", "migrate", source, spool, "--dry-run")
    assert (code, out) == (0, f"{spool}: would move 9 events of {files} files\n")
    assert not spool.exists()
    code, out, _ = shell(capfd, "spool", "migrate", source, spool, "--keep", "--json")
    told = json.loads(out)
    assert code == 0 and told["ok"] and told["events"] == 9
    assert len(told["files"]) == files == len(list(source.iterdir()))
    code, out, _ = shell(capfd, "spool", "migrate", source, spool)
    assert (code, out) == (0, f"{spool}: moved 9 events of {files} files\n")
    assert not list(source.iterdir()) and len(events(spool)) == 18


def test_the_shell_names_what_is_left_over(tmp_path: Path, capfd: Any) -> None:
    source, spool = tmp_path / "old", tmp_path / "s"
    old(source / "1-events", ["{}", '{"torn'], end="")
    (source / "3-events").write_text("?")
    code, out, _ = shell(capfd, "spool", "migrate", source, spool, "--dry-run")
    assert code == 1 and "6 bytes from byte 15 on would be left" in out
    code, out, _ = shell(capfd, "spool", "migrate", source, spool)
    aside = f"{spool}/.deedbook/quarantine/1-events.cut-15"
    assert code == 1 and f"6 bytes from byte 15 on are in {aside}\n" in out
    assert f"{source}/1-events: byte 21: " in out and f"{source}/3-events: byte 0: " in out
    assert out.endswith(f"{spool}: moved 1 event of 2 files\n")
    code, _, err = shell(capfd, "spool", "migrate", tmp_path / "none", spool)
    assert code == 2 and err.count("\n") == 1 and "Traceback" not in err
