"""The page docs/conformance.md, made from scripts/conformance/rows.tsv.

    python scripts/conformance.py            exits with 1 for another page, or a wrong row
    python scripts/conformance.py --write    writes the page

A row has a number, the demand of a document, the state, a file, tests, the page that decides, and
a note. A test is ``program::path::name``: ``lib`` stands for src, ``capi`` for capi/tests,
``interop`` for tests/interop/tests, ``relay`` for nostr/tests, every other program for its folder
of tests. A Python test is ``file::name``.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
ROWS = Path("scripts/conformance/rows.tsv")
HEAD = Path("scripts/conformance/head.md")
PAGE = Path("docs/conformance.md")
DOCUMENTS = {
    "U": 'UIP "Book Event Log Persistence"',
    "P": 'Pull request "book" of Vere',
    "L": "LedgerStore specification",
    "W": "On-disk format of wal-db",
    "N": "Nostr event store",
    "C": "Design of the project",
}
STATES = ("done", "partly", "missing", "ruled", "not applicable")
FOLDERS = {
    "lib": "src",
    "capi": "capi/tests",
    "interop": "tests/interop/tests",
    "relay": "nostr/tests",
}


class Row(NamedTuple):
    id: str
    asks: str
    state: str
    file: str
    tests: str
    page: str
    note: str


def rows(root: Path = ROOT) -> list[Row]:
    """The rows of all documents."""
    lines = (root / ROWS).read_text(encoding="utf-8").splitlines()
    return [Row(*line.split("\t")) for line in lines[1:]]


def has(test: str, root: Path = ROOT) -> bool:
    """Whether the file of a test has a function of this name."""
    first, *path, name = test.split("::")
    base = root.joinpath(FOLDERS.get(first, f"tests/{first}"), *path)
    files = [root / first, base.with_suffix(".rs"), base / "mod.rs", base / "main.rs"]
    function = re.compile(rf"\b(?:fn|def) {name}\(")
    return any(file.is_file() and function.search(file.read_text("utf-8")) for file in files)


def wrong(row: Row, root: Path = ROOT) -> list[str]:
    """The complaints about a row."""
    named = [name for name in (row.file, row.page) if name]
    found = [f"no file {name}" for name in named if not (root / name).is_file()]
    found += [f"no test {test}" for test in row.tests.split() if not has(test, root)]
    needs = {
        f"no state {row.state!r}": row.state in STATES,
        "no demand": row.asks,
        "no file": row.file or row.state in ("missing", "not applicable"),
        "no page that decides": row.page or row.state != "ruled",
        "no note": row.note or row.state == "done",
    }
    return [
        f"{row.id}: {what}" for what in found + [no for no, there in needs.items() if not there]
    ]


def shown(row: Row) -> str:
    """A row of the page's table."""
    tests = ", ".join(f"`{test}`" for test in row.tests.split()).replace(".py::", ".py` `")
    page = row.page.removeprefix("docs/")
    link = f"[{page}]({page if page != row.page else '../' + page})" if page else ""
    last = " ".join(filter(None, (row.note, link)))
    cells = (row.id, row.asks, row.state, f"`{row.file}`" if row.file else "", tests, last)
    return f"| {' | '.join(cells)} |"


def document(all_of: list[Row]) -> str:
    """The page."""
    counts = Counter((row.id[0], row.state) for row in all_of)
    lines = [
        (ROOT / HEAD).read_text(encoding="utf-8"),
        f"| document | rows | {' | '.join(STATES)} |",
        "|---" * 7 + "|",
    ]
    for letters, title in {**DOCUMENTS, "".join(DOCUMENTS): "**all**"}.items():
        of = [sum(counts[letter, state] for letter in letters) for state in STATES]
        lines.append(f"| {title} | {sum(of)} | {' | '.join(map(str, of))} |")
    for letter, title in DOCUMENTS.items():
        head = "| # | demand | state | code | tests | difference, or the page that decides |"
        lines += ["", f"## {title}", "", head, "|---" * 6 + "|"]
        lines += [shown(row) for row in all_of if row.id[0] == letter]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page, or check rows and page."""
    all_of = rows()
    complaints = [text for row in all_of for text in wrong(row)]
    made = document(all_of)
    if "--write" in sys.argv[1:]:
        (ROOT / PAGE).write_text(made, encoding="utf-8")
    elif (ROOT / PAGE).read_text(encoding="utf-8") != made:
        complaints.append(f"{PAGE} is another page than scripts/conformance.py --write makes")
    print(*complaints, sep="\n", end="\n" * bool(complaints), file=sys.stderr)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
