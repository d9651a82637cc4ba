"""Writes: within the limits of each system, and to a disk with little space or none."""

import errno
import io
import os
from pathlib import Path
from typing import Any

import pytest

from deedbook import EventStore
from deedbook._cli import main
from deedbook._system import compressed as _compressed
from deedbook._system import durable as _durable
from line_files import SUFFIXES, Short
from nostr_events import SMALL


class Windows:
    """The module ``os`` with the limits of Windows."""

    name = "nt"

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Path, flags: int) -> int:
        if path.is_dir():
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return os.open(path, flags)

    def fsync(self, fd: int) -> None:
        os.write(fd, b"")  # fails on a read-only descriptor
        os.fsync(fd)


def test_windows_syncs_files_and_leaves_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_durable, "os", Windows())
    file = tmp_path / "new" / "facts.json"
    _durable.store_json(file, {"is": 1})
    _durable.sync_file(file)
    _durable.sync_folders(file.parent, [file])
    assert _durable.load_json(file) == {"is": 1}


class Full(io.FileIO):
    """A file on a full disk: a small write waits in a buffer, and fails at the end."""

    def write(self, data: Any) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture(params=SUFFIXES)
def out(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / f"out{request.param}"


def test_compressed_writer_continues_after_short_writes(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_compressed, "open", lambda *a, buffering: Short(*a), raising=False)
    writer = _compressed.Writer(str(out))
    writer.write(b"line\n" * 1000)
    writer.close(True)
    monkeypatch.undo()
    assert _compressed.read_all(out) == b"line\n" * 1000


def test_failed_compressed_export_leaves_no_file(
    path: Path, out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (path.parent / "events").write_bytes(SMALL.read_bytes().splitlines()[0])
    assert main(["import", str(path), str(path.parent / "events")]) == 0
    capsys.readouterr()
    monkeypatch.setattr(_compressed, "open", lambda *a, buffering: Full(*a), raising=False)
    with EventStore.open(path) as store, pytest.raises(OSError, match="No space left on device"):
        store.export_json(out)
    assert not out.exists()
