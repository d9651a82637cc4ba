"""The tables of ``docs/spark.md``, made from the code.

``python -m deedbook.spark._doc docs/spark.md`` brings the tables in the file up to date; without a
file, the module prints the tables. A test checks that the file is current.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from pathlib import Path

from deedbook.spark._logs.formats import formats
from deedbook.spark._options.option_table import OPTIONS

__all__ = ["render", "tables"]


def tables() -> dict[str, str]:
    """Every generated table in Markdown, by the name in the markers."""
    made = {
        "options": _table(
            ("option", "for", "default", "allowed", "meaning"),
            (
                (
                    f"`{option.name}`",
                    ", ".join(option.scopes),
                    option.default,
                    option.allowed,
                    option.meaning,
                )
                for option in OPTIONS
            ),
        )
    }
    for log in formats():
        made[f"columns {log.name}"] = _table(
            ("column", "type", "by default", "meaning"),
            (
                (
                    f"`{column.name}`",
                    f"`{column.type.simpleString()}`",
                    "yes" if column.default else "on request",
                    column.meaning,
                )
                for column in log.columns
            ),
        )
    return made


def render(text: str) -> str:
    """``text`` with new tables between ``<!-- begin NAME -->`` and ``<!-- end -->``.

    Raises ValueError if a table has no place in the text.
    """
    for name, table in tables().items():
        place = re.compile(rf"(<!-- begin {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not place.search(text):
            raise ValueError(f"no place for the table {name!r}")
        text = place.sub(lambda match, table=table: match[1] + table + match[2], text)  # type: ignore[misc]
    return text


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(
        "| " + " | ".join(cell.replace("|", r"\|") for cell in line) + " |\n" for line in lines
    )


def main(arguments: list[str]) -> None:
    """Update the file named, or print the tables."""
    if arguments:
        path = Path(arguments[0])
        path.write_text(render(path.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        for name, table in tables().items():
            print(f"{name}\n\n{table}")


if __name__ == "__main__":
    main(sys.argv[1:])
