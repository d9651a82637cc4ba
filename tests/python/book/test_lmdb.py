"""Urbit's LMDB logs come to books, and back: from Python, from the shell, and after Ctrl-C."""

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Book, CorruptError, Meta, Pier
from places import DATA
from shell import ok, outputs, refused

VECTORS = DATA / "lmdb"
META = Meta(who=0x11223344, version=3, life=7, fake=False)


def golden() -> list[bytes]:
    return [bytes.fromhex(line) for line in (VECTORS / "events.hex").read_text().split()]


def values(path: Path) -> list[bytes]:
    with Book.open(path) as book:
        return [deed.mug.to_bytes(4, "little") + deed.jam for deed in book]


def tree(path: Path) -> dict[Path, bytes]:
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    shutil.copytree(VECTORS / "lmdb-100", tmp_path / "env")
    return tmp_path / "env"


def test_lmdb_environment_migrates_with_report(source: Path, tmp_path: Path) -> None:
    before, told = tree(source), list[tuple[int, int]]()
    looked = Book.migrate_lmdb(source, tmp_path / "b", dry_run=True)
    assert looked.dry_run and not (tmp_path / "b").exists()
    report = Book.migrate_lmdb(
        source, tmp_path / "b", progress=lambda done, total: told.append((done, total))
    )
    assert (report.events, report.found, report.resumed_from) == (100, 0, None)
    assert told == sorted(told) and told[-1] == (100, 100)
    assert values(tmp_path / "b") == golden() and report.meta == META
    assert report.epochs[0].first == 1 and report.epochs[0].last == 100
    assert pickle.loads(pickle.dumps(report)) == report
    facts = json.loads(json.dumps(report.to_dict()))
    assert facts["epochs"][0]["meta"]["who"] == 0x11223344 == facts["meta"]["who"]
    assert tree(source) == before


def test_the_commands_say_what_they_brought(source: Path, tmp_path: Path) -> None:
    dest, back = tmp_path / "b", tmp_path / "back"
    assert b"would bring 100 events" in ok("migrate", source, dest, "--dry-run")
    shown = ok("migrate", source, dest, "--layout", "slots").decode()
    assert "brought 100 events" in shown and "epoch 0: events 1 to 100" in shown
    assert "life 7" in shown
    with Book.open(dest) as book:
        assert book.layout == "slots"
    for dry_run in (True, False):
        with pytest.raises(deedbook.InvalidArgumentError, match=r"packed asked for.*has slots"):
            Book.migrate_lmdb(source, dest, layout="packed", dry_run=dry_run)
    facts = json.loads(ok("migrate", source, dest, "--json"))
    assert facts["ok"] and facts["found"] == 100 == facts["events"]
    assert json.loads(ok("migrate", dest, back, "--format", "lmdb", "--json"))["events"] == 100
    assert "holds a book.log" in refused("migrate", dest, dest, "--format", "lmdb")
    missing, _ = outputs("migrate", tmp_path / "none", dest, "--json", code=2)
    assert json.loads(missing)["error"]["kind"] == "missing"


def test_metadata_of_a_pier_that_differs_is_told(tmp_path: Path) -> None:
    path = tmp_path / "zod"
    Book.migrate_lmdb(VECTORS / "pier-lmdb", path)
    with Pier.open(path, "a") as pier:
        assert pier.meta == Meta(who=0x100, version=3, life=4, fake=True)
        pier.save_meta(life=5)
    with Book.open(path / ".urb" / "log" / "0i60", "a") as copy:
        assert copy.meta.life == 5
        copy.save_meta(life=6)
    with Pier.open(path) as pier, pytest.raises(CorruptError) as error:
        pier.meta  # noqa: B018
    assert error.value.path == str(path / ".urb" / "log" / "data.mdb")
    says = "metadata life is 5 in data.mdb, the pier's own, but 6 in 0i60/meta.bin"
    assert says in ok("info", path).decode()
    facts = json.loads(ok("info", "--json", path))
    assert facts["meta"] is None and says in facts["meta_error"]


INTERRUPTED = """
import os, signal, sys
from deedbook._cli import main
from deedbook._cli.terminal import progress
progress.Progress.update = lambda *_, **__: os.kill(os.getpid(), signal.SIGINT)
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(os.name != "posix", reason="needs signals")
def test_ctrl_c_ends_lmdb_migration_without_a_traceback(
    source: Path, tmp_path: Path, run_child: Any
) -> None:
    done = run_child(INTERRUPTED, "migrate", source, tmp_path / "dest")
    assert (done.returncode, done.stderr) == (130, "deedbook: interrupted\n")
    assert Book.migrate_lmdb(source, tmp_path / "dest").events == 100
