"""The small demo: a writer is killed again and again, and what it acknowledged is counted.

It needs nothing but this package. The processes, the SIGKILLs and the log are real. It ends with a
picture in the terminal and a page of HTML.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import deedbook
from deedbook.demo.workspace import (
    Check,
    DemoError,
    Workspace,
    prepare,
    put,
    put_json,
    require_kill,
    save,
    size,
)

if TYPE_CHECKING:
    from deedbook.demo.crash import Writing
    from deedbook.demo.generate import Source
    from deedbook.demo.report import Result

__all__ = ["EVENTS", "KILLS", "run"]

EVENTS: Final = 20_000
KILLS: Final = 5
_CHARS: Final = 48
"""Of a bar in the terminal."""
_COLOURS: Final = {"#": "\x1b[34m", "+": "\x1b[33m", "x": "\x1b[31m"}
_PLAIN: Final = "\x1b[0m"


def run(args: argparse.Namespace, say: Callable[[str], None]) -> int:
    """Run it. Returns 0 if all numbers add up, else 1. Raises `DemoError` if it cannot go on."""
    require_kill()
    if args.input is not None and not args.input.is_file():
        raise DemoError(f"no such file: {args.input}", 2)
    space = prepare(args.out, args.input)

    # Slower to load than all else that `deedbook demo --help` needs.
    from deedbook.demo import crash, generate, small_page
    from deedbook.demo.report import Result, as_json, check_rows, text_table

    began = time.monotonic()
    if args.input is None:
        generate.generate(space.generated, args.events or EVENTS, args.seed)
    path = args.input or space.generated
    source = _stock(path, args.input is None, args.events)
    say(f"input: {path}, {source.lines:,} lines, {size(source.bytes)}")
    writing = crash.write_with_kills(space.log, source, args.seed, say, KILLS)
    checks = [*crash.checks_of(writing, source), _sum(writing, source), *_read(space, source)]
    checks.append(crash.verified(space.log, source))
    versions = {"deedbook": deedbook.__version__, "Python": platform.python_version()}
    result = Result(source, writing, None, checks, {"all": time.monotonic() - began}, versions)

    text = as_json(result) + "\n"
    written = [space.report.with_suffix(suffix) for suffix in (".html", ".json")]
    save(written[0], small_page.page_of(result))
    save(written[1], text)
    if args.json:
        put_json(text)
    else:
        put("\n" + "\n".join(_picture(result, _is_coloured())))
        put("\n" + text_table(*check_rows(checks)))
        put(f"\n{result.title}")
        put(f"wrote {', '.join(map(str, written))} in {time.monotonic() - began:.1f} s")
    return 0 if result.ok else 1


def _stock(path: Path, generated: bool, lines_max: int | None) -> Source:
    """Count the lines of the input."""
    from deedbook.demo.generate import Source, read_lines

    lines = nbytes = 0
    for line in read_lines(path, 1, (lines_max or 2**62) + 1):
        lines += 1
        nbytes += len(line)
    return Source(path, generated, lines, nbytes)


def _sum(writing: Writing, source: Source) -> Check:
    """Whether each writer went on where the log stood, and all of them together wrote the input."""
    found = [kill.last for kill in writing.kills]
    begun = [kill.resumed_at for kill in writing.kills]
    parts = [last - first for first, last in zip(begun, found, strict=True)]
    parts.append(writing.acknowledged - found[-1])
    good = begun == [0, *found[:-1]] and sum(parts) == source.lines
    detail = f"{' + '.join(f'{part:,}' for part in parts)} = {sum(parts):,} of {source.lines:,}"
    return Check("what the writers added is the input", good, detail)


def _read(space: Workspace, source: Source) -> Iterator[Check]:
    """Compare the finished log with the input, as a reader of both."""
    from deedbook.demo.generate import read_lines

    lost = invented = different = 0
    lines = read_lines(source.path, 1, source.lines + 1)
    with deedbook.Book.open(space.log) as book:
        jams = book.jams()
        while True:
            line, jam = next(lines, None), next(jams, None)
            if line is None and jam is None:
                break
            lost += jam is None
            invented += line is None
            different += line is not None and jam is not None and line != jam
    yield Check("no line is missing in the log", lost == 0, f"{lost:,} missing")
    yield Check("no event was invented", invented == 0, f"{invented:,} beyond the input")
    yield Check("every event is its line", different == 0, f"{different:,} differ")


def _picture(result: Result, coloured: bool) -> list[str]:
    """A row for each writer: where it began, what it acknowledged, what was found after its end."""
    total = result.source.lines
    rows = [
        (f"writer {kill.number}", kill.resumed_at, kill.acknowledged, kill.last, True)
        for kill in result.writing.kills
    ]
    found = result.writing.kills[-1].last
    end = result.writing.acknowledged
    rows.append((f"writer {len(rows) + 1}", found, end, end, False))
    lines = []
    for name, begun, acknowledged, last, killed in rows:
        text = f"acknowledged {acknowledged:>8,}  found {last:>8,}"
        if killed:
            text += f"  {last - acknowledged:+,}"
        bar = _bar(begun, acknowledged, last, total, killed)
        lines.append(f"{name} |{_paint(bar) if coloured else bar}|  {text}")
    key = "# acknowledged   + found beyond that   x SIGKILL"
    return [*lines, "         " + (_paint(key) if coloured else key)]


def _bar(begun: int, acknowledged: int, last: int, total: int, killed: bool) -> str:
    """A row over the whole input. A writer that wrote anything has a mark of its own."""

    def place(event: int) -> int:
        return event * _CHARS // max(1, total)

    cells = ["."] * place(begun) + [" "] * (_CHARS - place(begun))
    for number in range(place(begun), min(_CHARS, max(place(begun) + 1, place(acknowledged)))):
        cells[number] = "#"
    for number in range(place(acknowledged), place(last)):
        cells[number] = "+"
    if killed:
        cells[min(_CHARS - 1, place(last))] = "x"
    return "".join(cells)


def _paint(text: str) -> str:
    """The marks in colour; words keep theirs."""
    shown = ""
    for number, char in enumerate(text):
        alone = char != "x" or not text[number - 1 : number].isalpha()
        colour = _COLOURS.get(char) if alone else None
        shown += f"{colour}{char}{_PLAIN}" if colour else char
    return shown


def _is_coloured() -> bool:
    """Whether colour is wanted: only by a terminal, and not with ``NO_COLOR`` (no-color.org)."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "") == "dumb":
        return False
    return sys.stdout.isatty()
