"""The facts of ``info`` for a ledger: files, damaged files and refused events."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from deedbook._core import Ledger, LedgerFileInfo
from deedbook._show.text import count, damage_text, exact_size, size
from deedbook._system.regular import is_folder, names_in
from deedbook._system.sidecar import SIDECAR

if TYPE_CHECKING:
    from deedbook.http import DeadLetters

__all__ = ["Summary", "dead_letters_of", "quarantined"]


class Summary(NamedTuple):
    """A ledger, as ``info`` shows."""

    facts: dict[str, Any]
    rows: list[tuple[str, str]]
    corrupt: bool

    @classmethod
    def of(cls, path: str, directory: str, base: str) -> Summary:
        checked = Ledger.verify(path, base=base).files
        finished = [one for one in checked if not one.file.active]
        active = [one for one in checked if one.file.active]
        corrupt = [one for one in checked if one.report.verdict == "corrupt"]
        verdicts = Counter(one.report.verdict for one in checked)
        aside = len(quarantined(directory, base))
        facts = {
            "base": base,
            "records": sum(one.report.records for one in checked),
            "bytes": sum(one.file.bytes for one in checked),
            "finished_files": len(finished),
            "active_files": len(active),
            "quarantined_files": aside,
            "verdicts": dict(verdicts),
            "files": [
                {
                    **one.file.to_dict(),
                    "records": one.report.records,
                    "verdict": one.report.verdict,
                }
                for one in checked
            ],
        }
        rows = [
            ("base", base),
            ("files", _files_text([one.file for one in finished])),
            ("records", f"{facts['records']:,}"),
            ("size", exact_size(int(str(facts["bytes"])))),
        ]
        rows += [
            ("active", f"{one.file.path}, {size(one.file.bytes)}, being written") for one in active
        ]
        rows += [
            (verdict, count(n, "file")) for verdict, n in verdicts.items() if verdict != "clean"
        ]
        rows += [
            ("damage", f"{one.file.path}: {damage_text(damage, 'record')}")
            for one in corrupt
            for damage in one.report.damages
        ]
        if aside:
            rows.append(("quarantine", f"{count(aside, 'file')} in {_quarantine(directory)}"))
        return cls(facts, rows, bool(corrupt))


def dead_letters_of(directory: str, base: str) -> DeadLetters:
    """The events of a ledger that a server refused."""
    from deedbook._system.sidecar import dead_letters_of
    from deedbook.http import DeadLetters

    return DeadLetters(dead_letters_of(directory, base))


def quarantined(directory: str, base: str) -> list[str]:
    """The damaged files of a ledger that were set aside."""
    folder = _quarantine(directory)
    try:
        names = names_in(folder) if is_folder(os.path.dirname(folder)) else []
    except OSError:
        return []
    aside = re.compile(rf"[0-9]+-{re.escape(base)}(\.[0-9]+)?")
    return [os.path.join(folder, name) for name in names if aside.fullmatch(name)]


def _quarantine(directory: str) -> str:
    return os.path.join(directory, SIDECAR, "quarantine")


def _files_text(files: Sequence[LedgerFileInfo]) -> str:
    if not files:
        return "none finished"
    first, last = files[0].index, files[-1].index
    return f"{count(len(files), 'finished file')}, {first} to {last}"
