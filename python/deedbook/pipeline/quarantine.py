"""What a pipeline put aside: lines and records that are no Nostr events."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from deedbook.pipeline.layout import Layout

__all__ = ["Quarantine", "in_words", "reasons_of"]

_REASON_MAX: Final = 60


class Quarantine:
    """The rows that come to the tables of a pipeline's quarantine from now on."""

    def __init__(self, layout: Layout) -> None:
        self._folder = layout.quarantine("x").parent
        self._seen = set(self._files())

    def new(self) -> dict[str, int]:
        """How many rows came since the last call, by their reasons."""
        found = [one for one in self._files() if one not in self._seen]
        self._seen.update(found)
        return _reasons(file for file, _ in found)

    def _files(self) -> Iterator[tuple[Path, int]]:
        """The files with their times: a batch that is repeated writes its file again."""
        for file in _files(self._folder):
            try:
                yield file, file.stat().st_mtime_ns
            except FileNotFoundError:  # another run of the batch replaces it
                continue


def reasons_of(layout: Layout, name: str | None = None) -> dict[str, int]:
    """How many rows a source, or ``silver``, has in quarantine, by reason; all without a name.

    Raises ImportError without pyarrow.
    """
    folder = layout.quarantine("x" if name is None else name)
    return _reasons(_files(folder.parent if name is None else folder))


def in_words(reasons: dict[str, int]) -> str:
    """Rows and reasons, the most frequent first: ``300 are no Nostr events (missing field)``."""
    count = sum(reasons.values())
    first = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))[:3]
    why = "; ".join(f"{rows:,} x {reason}" for reason, rows in first)
    more = f"; and {len(reasons) - 3} more reasons" if len(reasons) > 3 else ""
    return f"{count:,} in quarantine, which are no Nostr events ({why}{more})"


def _files(folder: Path) -> list[Path]:
    return [
        file
        for file in sorted(folder.rglob("*.parquet"))
        if not any(part.startswith((".", "_")) for part in file.relative_to(folder).parts)
    ]


def _reasons(files: Iterable[Path]) -> dict[str, int]:
    """By the reason without the numbers in it."""
    import pyarrow.parquet as pq

    found: Counter[str] = Counter()
    for file in files:
        reasons: list[Any] = pq.ParquetFile(file).read(columns=["reason"])["reason"].to_pylist()
        for reason in reasons:
            text = re.sub(r"[0-9a-f]{16,}|[0-9]+", "…", reason)
            found[text if len(text) <= _REASON_MAX else f"{text[: _REASON_MAX - 1]}…"] += 1
    return dict(found)
