"""The page of the small demo."""

from __future__ import annotations

from collections.abc import Iterator

from deedbook._charts import Bar, Piece, bars
from deedbook._page import page, table, tiles
from deedbook.demo.crash import tell_recovery
from deedbook.demo.report import Result, check_rows
from deedbook.demo.workspace import size

__all__ = ["page_of"]


def page_of(result: Result) -> str:
    """The page, in HTML."""
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    return page(result.title, _body(result), ok=result.ok, subtitle=f"deedbook demo, {versions}")


def _body(result: Result) -> Iterator[str]:
    source, writing = result.source, result.writing
    beyond = sum(kill.last - kill.acknowledged for kill in writing.kills)
    yield tiles(
        [
            ("events", f"{source.lines:,}"),
            ("bytes", size(source.bytes)),
            ("kills (SIGKILL)", f"{len(writing.kills):,}"),
            ("acknowledged", f"{writing.acknowledged:,}"),
            ("lost", f"{_lost(result):,}"),
            ("seconds", f"{sum(result.seconds.values()):.1f}"),
        ]
    )
    yield (
        "<p>A process appends events to a log, makes each batch durable and acknowledges it. It is"
        " killed in the middle, the log is opened again, and what is found is compared with what"
        " was acknowledged, byte by byte. The next writer goes on from there.</p>\n"
    )
    yield "<h2>Writers</h2>\n"
    yield bars(_rows(result), source.lines, "Events of each writer")
    yield (
        '<p class="note">Blue: acknowledged. Yellow: found beyond that, written but not yet'
        f" acknowledged when the kill came ({beyond:,} events). Red: the kill.</p>\n"
    )
    yield "<h2>Kills</h2>\n"
    yield table(
        ["kill", "acknowledged", "found", "exit code", "what opening the log said"],
        [
            [
                str(kill.number),
                f"{kill.acknowledged:,}",
                f"{kill.last:,}",
                str(kill.returncode),
                tell_recovery(kill.recovery),
            ]
            for kill in writing.kills
        ],
        "kills",
        ["" if kill.kept and kill.equal else "bad" for kill in writing.kills],
    )
    yield "<h2>Checks</h2>\n"
    yield table(
        *check_rows(result.checks), "checks", ["" if one.ok else "bad" for one in result.checks]
    )


def _lost(result: Result) -> int:
    """Acknowledged events that were not found after a kill."""
    return sum(max(0, kill.acknowledged - kill.last) for kill in result.writing.kills)


def _rows(result: Result) -> Iterator[Bar]:
    total = result.source.lines
    begun = 0
    for kill in result.writing.kills:
        pieces = [
            Piece(begun, kill.acknowledged, "one", f"acknowledged to event {kill.acknowledged:,}"),
            Piece(kill.acknowledged, kill.last, "two", f"found to event {kill.last:,}"),
            Piece(kill.last, kill.last + total / 200, "bad", f"kill {kill.number}"),
        ]
        yield Bar(f"writer {kill.number}", pieces, f"{kill.last - begun:,}")
        begun = kill.last
    end = result.writing.acknowledged
    last = [Piece(begun, end, "one", f"acknowledged to event {end:,}")]
    yield Bar(f"writer {len(result.writing.kills) + 1}", last, f"{end - begun:,}")
