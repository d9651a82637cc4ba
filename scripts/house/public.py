"""The public items of the crate, as in the crate's documentation, by module.

    python scripts/house/public.py [--write]

``--write`` writes the list to scripts/house/public.txt; otherwise the script prints the list. The
list leaves out ``#[doc(hidden)]`` names, which are for tests and bindings.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).with_name("public.txt")
HEADER = """\
# The public items of the crate, with all features, by module. A change here is a change for users.
# `python scripts/house/public.py --write` writes this list.
"""
COMMENT = re.compile(r"^\s*//.*\n", re.MULTILINE)
HIDDEN = "#[doc(hidden)]"
# Attributes, and the item after the attributes.
ITEM = re.compile(
    r"^(?P<attributes>(?:#\[[^\n]*\]\n)*)(?:"
    r"pub use (?P<tree>[^;]+);|"
    r"pub (?:const fn|fn|struct|enum|trait|type|const) (?P<name>\w+)|"
    r"pub mod (?P<module>\w+);|"
    r"facade! \{\s*(?P<facade>\w+)\()",
    re.MULTILINE,
)


def leaves(tree: str) -> Iterator[str]:
    """Give the names made by a ``use``."""
    for part in re.findall(r"[\w:]+(?: as \w+)?(?=\s*[,}]|$)", tree.strip()):
        yield re.split(r"::| as ", part)[-1]


def items(file: Path, module: str) -> Iterator[tuple[str, str]]:
    """Give the public items of a module and of the modules inside: module and name."""
    for found in ITEM.finditer(COMMENT.sub("", file.read_text("utf-8"))):
        if HIDDEN in found["attributes"] or "#[cfg(test)]" in found["attributes"]:
            continue
        if inner := found["module"]:
            inside = file.parent if file.name in ("lib.rs", "mod.rs") else file.with_suffix("")
            files = inside / f"{inner}.rs", inside / inner / "mod.rs"
            yield from items(next(filter(Path.is_file, files)), f"{module}::{inner}")
        elif found["tree"]:
            # The versions of Arrow are separate crates.
            names = leaves(found["tree"])
            yield from ((module, name) for name in names if not name.startswith("arrow_"))
        else:
            yield module, found["name"] or found["facade"]


def listed() -> str:
    """Give the list."""
    modules: dict[str, set[str]] = {}
    for module, name in items(ROOT / "src/lib.rs", "deedbook"):
        modules.setdefault(module, set()).add(name)
    rows = [f"{module}: {' '.join(sorted(names))}" for module, names in sorted(modules.items())]
    filled = (textwrap.fill(row, 120, subsequent_indent="  ") for row in rows)
    count = sum(map(len, modules.values()))
    return f"{HEADER}# {count} items.\n" + "".join(f"{row}\n" for row in filled)


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(listed(), "utf-8")
    else:
        print(listed(), end="")
