"""Files of lines, plain and compressed, and one that takes little at a time."""

import gzip
import io
import os
from pathlib import Path
from typing import Any

from deedbook._system import compressed as _compressed


def has_zstd() -> bool:
    try:
        _compressed.zstd("this")
    except ImportError:
        return False
    return True


SUFFIXES = [".gz", ".zst"] if has_zstd() else [".gz"]


def put(path: Path, lines: list[bytes], changed_at: float | None = None) -> list[bytes]:
    """Write a file of lines as a careful producer does: it appears when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = b"".join(line + b"\n" for line in lines)
    packed = {".gz": gzip.compress, ".zst": lambda data: _compressed.zstd("a test").compress(data)}
    hidden = path.parent / f".{path.name}"
    hidden.write_bytes(packed.get(path.suffix, bytes)(data))
    if changed_at is not None:
        os.utime(hidden, (changed_at, changed_at))
    hidden.replace(path)
    return lines


class Short(io.FileIO):
    """A file that takes a few bytes at a time, as a system may."""

    def write(self, data: Any) -> int:
        return super().write(memoryview(data)[:7])
