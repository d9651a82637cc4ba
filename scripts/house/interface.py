"""The engine's interface for formats: the used names, and the members of the engine's log.

    python scripts/house/interface.py [--write]

``--write`` writes the list to scripts/house/interface.txt; otherwise the script prints the list.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from imports import Crate, Name

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).with_name("interface.txt")
FORMATS = ("book", "wal", "ledger", "nostr")
ROOMS = ("storage", "scan", "commit", "columns", "sidecar", "saving", "transaction", "log")
# The types of the log with members for formats.
OPEN = ("Log", "Shared")
HEADER = """\
# The engine for formats: the names that src/book, src/wal, src/ledger and src/nostr use of each
# room, and the members of the log's types that are not the engine's own.
# `python scripts/house/interface.py --write` writes this list.
"""


def names(crate: Crate) -> dict[str, set[str]]:
    """Give the names that formats use of each room of the engine."""
    used: dict[str, set[str]] = defaultdict(set)

    def note(path: Name) -> None:
        if path[:1] == ("crate",) and len(path) > 2 and path[1] in ROOMS:
            # The functions of a type come after the type.
            end = next((at for at, part in enumerate(path) if not part.islower()), len(path))
            used[path[1]].add("::".join(path[2 : end + 1]))

    for module in crate.modules.values():
        if module.name[:1] and module.name[0] in FORMATS and module.name[-1] != "tests":
            for path in module.uses | set(module.exports.values()):
                note(path)
            for alias, path in module.imports.items():
                if path in crate.modules or path[1:] in crate.modules:
                    for name in re.findall(rf"(?<!::)\b{alias}::(\w+)", module.text):
                        note((*path, name))
    return used


def members(src: Path) -> dict[str, set[str]]:
    """Give the methods and fields of the log's types, without the engine's private members."""
    found: dict[str, set[str]] = defaultdict(set)
    body = re.compile(
        r"^(?:pub struct|impl<F: Format>) (\w+)(?:<F(?:: Format)?>)? \{\n(.*?)^\}",
        re.DOTALL | re.MULTILINE,
    )
    for file in sorted((src / "log").rglob("*.rs")):
        for name, inside in body.findall(file.read_text("utf-8")):
            if name in OPEN:
                found[name].update(
                    re.findall(r"^    pub(?:\(crate\))? (?:fn )?(\w+)", inside, re.MULTILINE)
                )
    return found


def listed() -> str:
    """Give the list."""
    found = names(Crate(ROOT / "src"))
    found |= members(ROOT / "src")
    rows = [f"{name}: {' '.join(sorted(found[name]))}" for name in (*ROOMS, *OPEN)]
    return HEADER + "".join(f"{textwrap.fill(row, 120, subsequent_indent='  ')}\n" for row in rows)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(listed(), "utf-8")
    else:
        print(listed(), end="")
