"""What is put on stable storage, as far as each system can."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from deedbook import _durable


class Windows:
    """The module ``os``, within the limits of Windows."""

    name = "nt"

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Path, flags: int) -> int:
        if path.is_dir():
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return os.open(path, flags)

    def fsync(self, fd: int) -> None:
        os.write(fd, b"")  # fails if it is open for reading only
        os.fsync(fd)


def test_windows_syncs_files_and_leaves_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It opens no folder, and syncs nothing that is open for reading: all of this failed there."""
    monkeypatch.setattr(_durable, "os", Windows())
    file = tmp_path / "new" / "facts.json"
    _durable.store_json(file, {"is": 1})
    _durable.sync_file(file)
    _durable.sync_folders(file.parent, [file])
    assert _durable.load_json(file) == {"is": 1}
