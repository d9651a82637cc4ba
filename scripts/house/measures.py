"""Measure the structure of the sources: lines, circles, arrows that run up, public items.

    python scripts/house/measures.py [--doc DIRECTORY] [--why] [--write]

``--doc`` is the crate's documentation (cargo doc), for counting public items. ``--write`` writes
the table to scripts/house/measures.md, next to the numbers from before.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from imports import Crate, circles

ROOT = Path(__file__).parents[2]
PAGE = Path(__file__).with_name("measures.md")
LAYERS = Path(__file__).with_name("layers.txt")
# Each number before the first step, and the goal.
GOALS = {
    "lines of src": (50_326, 42_000),
    "lines of src/nostr": (16_172, 12_000),
    "files in the fullest room of src": (57, 12),
    "methods of Format": (38, 14),
    "methods of Format that one format has": (23, 0),
    "methods of Framing": (23, 9),
    "circles of files": (17, 0),
    "arrows that run up, in src": (5, 0),
    "arrows that run up, in nostr": (82, 0),
    "public items": (222, 120),
    "public fields": (393, None),
    "lines of Python in the wheel, without the stub": (33_664, 22_000),
    "leaf commands": (54, 32),
    "lines of tests": (102_900, 75_000),
}


def tracked(under: str, *ends: str) -> list[Path]:
    """Give the files that git tracks, or would."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", under]
    names = subprocess.run(
        listed, cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    files = [ROOT / name for name in names if not ends or name.endswith(ends)]
    return [file for file in files if file.is_file()]


def lines(files: list[Path]) -> int:
    return sum(file.read_bytes().count(b"\n") for file in files)


def layers() -> list[tuple[str, str]]:
    """Give the files and directories of each layer, in order."""
    listed = []
    for line in LAYERS.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            layer, _, names = line.partition(": ")
            inside = f"{layer.rpartition('/')[0]}/".removeprefix("/")
            listed += [(f"{inside}{name}", layer) for name in names.split()]
    return listed


def upward(arrows: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Give the uses of files in a higher layer."""
    listed = layers()
    order = list(dict.fromkeys(layer for _, layer in listed))

    def floor(file: str) -> tuple[int, int]:
        name = file.removesuffix(".rs")
        found = [
            (place, order.index(layer))
            for place, layer in listed
            if f"{name}/".startswith(f"{place}/")
        ]
        outer = [at for place, at in found if "/" not in place]
        inner = [at for place, at in found if "/" in place]
        if not outer:
            raise SystemExit(f"house: {LAYERS.name} has no layer for {file}")
        return outer[0], inner[0] if inner else -1

    up = []
    for file, used in sorted(arrows.items()):
        for other in sorted(used):
            below, above = floor(file), floor(other)
            same_format = file.split("/")[0] == other.split("/")[0]
            if below[0] < above[0] or (
                below[0] == above[0] and same_format and 0 <= below[1] < above[1]
            ):
                up.append((file, other))
    return up


def methods(file: Path, trait: str) -> list[str]:
    """Give the names of a trait's methods."""
    body = re.search(
        rf"pub trait {trait}\b.*?^}}", file.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    if body is None:
        raise SystemExit(f"house: no trait {trait} in {file}")
    return re.findall(r"^    fn (\w+)", body[0], re.MULTILINE)


def users(trait: str) -> Counter[str]:
    """Count the formats of src with an implementation of each method."""
    count: Counter[str] = Counter()
    for file in tracked("src", ".rs"):
        text = file.read_text("utf-8")
        for body in re.finditer(
            rf"^impl (?:\w+::)?{trait} for .*?^}}", text, re.DOTALL | re.MULTILINE
        ):
            count.update(re.findall(r"^    fn (\w+)", body[0], re.MULTILINE))
    return count


def public(doc: Path) -> tuple[int, int]:
    """Count the public items and fields in the crate's documentation."""
    listed = (doc / "all.html").read_text("utf-8")
    items = set(re.findall(r'<li><a href="([^"#]+)"', listed))
    if not items:
        raise SystemExit(f"house: no items in {doc / 'all.html'}")
    fields = sum(
        len(set(re.findall(r'id="structfield\.\w+"', (doc / item).read_text("utf-8"))))
        for item in items
    )
    return len(items), fields


def commands() -> int:
    """Count the commands that do something."""
    from deedbook._cli.man import _commands
    from deedbook._cli.parser import whole

    return len(list(_commands(whole())))


def measure(doc: Path | None) -> dict[str, int | None]:
    """Measure everything, by the names of ``GOALS``."""
    crate = Crate(ROOT / "src")
    arrows = crate.arrows()
    up = upward(arrows)
    rooms: dict[Path, int] = defaultdict(int)
    for file in tracked("src", ".rs"):
        rooms[file.parent] += 1
    formats, framings = (
        methods(ROOT / "src/log/format.rs", "Format"),
        methods(ROOT / "src/scan/framing.rs", "Framing"),
    )
    of_formats = users("Format")
    items, fields = public(doc) if doc else (None, None)
    in_nostr = [arrow for arrow in up if all(file.startswith("nostr/") for file in arrow)]
    wheel = [
        file for file in tracked("python", ".py") if "deedbook" in file.relative_to(ROOT).parts[1]
    ]
    return {
        "lines of src": lines(tracked("src", ".rs")),
        "lines of src/nostr": lines(tracked("src/nostr", ".rs")),
        "files in the fullest room of src": max(rooms.values()),
        "methods of Format": len(formats),
        "methods of Format that one format has": sum(of_formats[name] == 1 for name in formats),
        "methods of Framing": len(framings),
        "circles of files": len(circles(arrows)),
        "arrows that run up, in src": len(up) - len(in_nostr),
        "arrows that run up, in nostr": len(in_nostr),
        "public items": items,
        "public fields": fields,
        "lines of Python in the wheel, without the stub": lines(wheel),
        "leaf commands": commands(),
        "lines of tests": lines(tracked("tests")),
    }


def table(now: dict[str, int | None]) -> str:
    rows = ["| what | before | now | goal |", "|---|---:|---:|---:|"]
    for name, (before, goal) in GOALS.items():
        shown = ["" if value is None else f"{value:,}" for value in (before, now[name], goal)]
        rows.append(f"| {name} | {' | '.join(shown)} |")
    return "\n".join(rows) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--doc", type=Path, help="the crate's documentation")
    parser.add_argument(
        "--why", action="store_true", help="also print the circles and the arrows that run up"
    )
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}")
    args = parser.parse_args()
    shown = table(measure(args.doc))
    print(shown, end="")
    if args.why:
        arrows = Crate(ROOT / "src").arrows()
        for group in circles(arrows):
            print(f"circle of {len(group)}: {' '.join(group)}")
        for file, other in upward(arrows):
            print(f"up: {file} uses {other}")
    if args.write:
        about = "`make house` writes this page. Before: at commit f7cbefb, before the first step.\n"
        PAGE.write_text(f"# The structure of the sources\n\n{about}\n{shown}", "utf-8")


if __name__ == "__main__":
    main()
