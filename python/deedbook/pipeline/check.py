"""Whether a pipeline kept what it was given: everything once, and nothing else.

Nothing here is of the pipeline but where things lie. Inputs are known by the notes that their
producers made; logs are read by the core, tables by pyarrow and delta-rs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

from deedbook import Event
from deedbook._durable import load_json
from deedbook.pipeline.config import Config, Source
from deedbook.pipeline.events import judge
from deedbook.pipeline.follow import Followed
from deedbook.pipeline.gathered import (
    Bronze,
    Silver,
    UnreadableError,
    bronze_of,
    rows_of,
    silver_of,
)
from deedbook.pipeline.kept import Kept
from deedbook.pipeline.late import late_by_batch
from deedbook.pipeline.layout import SILVER, Layout
from deedbook.pipeline.notes import (
    Note,
    digest,
    expected_file,
    json_lines,
    lines_of_files,
    notes_of,
)
from deedbook.pipeline.quarantine import in_words, reasons_of

__all__ = ["Check", "check", "text_of"]

_TOP: Final = 20
"""So many are in a top list, if there are as many."""


@dataclass(frozen=True)
class Check:
    """One thing that was checked."""

    name: str
    ok: bool | None
    """None if there was nothing to hold it against."""
    expected: Any
    found: Any

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values, ready for JSON."""
        return asdict(self)


def check(config: Config, followed: Sequence[Followed] = ()) -> list[Check]:
    """Check a pipeline that has read all of its inputs, and does not run. Changes nothing.

    ``followed`` is what followers of bronze say that followed to its end.
    """
    layout = Layout(config)
    bronzes = {
        one.name: bronze_of(layout.bronze(one.name), one.bronze, one.check)
        for one in config.sources
    }
    checks: list[Check] = []
    for source in config.sources:
        bronze = bronzes[source.name]
        file = expected_file(source.path.parent, source.name)
        checks.append(_intact(source, bronze))
        if file.exists():
            notes = _judged(source, notes_of(file))
            checks.append(_input(source, notes, bronze))
            checks.extend(_readable(_bad_lines(source, notes, layout)))
        else:
            checks.append(Check(f"{source.name}: bronze has the input", None, str(file), "missing"))
            checks.extend(_aside(source.name, layout))
        checks.extend(_followed(source, bronze, layout))
        checks.extend(_all_seen(bronze, one) for one in followed if one.source == source.name)
    by_source = {one.name: one.check for one in config.sources}
    tables = {
        kind: silver_of(layout.silver(kind), kind, config.window_seconds, by_source)
        for kind in config.tables
    }
    checks.extend(_readable(_no_events(config, bronzes, layout)))
    what = "ids and signatures" if "signature" in by_source.values() else "ids"
    checks.extend(_silver(bronzes, tables, what))
    checks.extend(_readable(_gold(tables[config.tables[0]], layout)))
    checks.extend(_readable(_late(config, layout)))
    return checks


def text_of(value: Any) -> str:
    """What was expected or found, in a line."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {text_of(one)}" for name, one in value.items())
    if isinstance(value, list):
        return f"{len(value)} with {sum(value)}"
    return str(value)


def _aside(name: str, layout: Layout) -> Iterator[Check]:
    """What is in quarantine, where anything is: whether it should be, only expected lines say."""
    reasons = reasons_of(layout, name)
    if reasons:
        yield Check(f"{name}: is in quarantine", None, "nothing", in_words(reasons))


def _readable(checks: Iterable[Check]) -> Iterator[Check]:
    """Checks, and one more that fails if a table cannot be read."""
    try:
        yield from checks
    except UnreadableError as error:
        yield Check("tables can be read", False, "readable", str(error))


def _intact(source: Source, bronze: Bronze) -> Check:
    found = bronze.problems[0] if bronze.problems else "intact"
    return Check(f"{source.name}: bronze is intact", not bronze.problems, "intact", found)


def _judged(source: Source, notes: Iterable[Note]) -> list[Note]:
    """The notes of an input. Producers check no signatures; of lines, an event store does."""
    found = list(notes)
    if source.check != "signature" or source.bronze != "nostr":
        return found
    forged = {
        where
        for where, line in lines_of_files(source.path)
        if judge(line, source.check)[1] == "signature"
    }
    return [
        replace(one, id=None, good=False, fault="signature") if one.where in forged else one
        for one in found
    ]


def _input(source: Source, notes: Sequence[Note], bronze: Bronze) -> Check:
    """Whether a log has what its input had, once, and in order."""
    name = f"{source.name}: bronze has the input"
    if source.bronze == "nostr":
        return _stored(name, source, notes, bronze)
    # An event that is wrong is a record all the same; of lines, those that are JSON are.
    passed_over = ("json", "empty") if source.kind == "lines" else ()
    expected = [note.sha256 for note in notes if note.fault not in passed_over]
    found = [record.sha256 for record in bronze.records]
    if expected == found:
        return Check(name, True, f"{len(expected)} records in order", f"{len(found)} records")
    compared = _compared(expected, found, "records")
    pairs = enumerate(zip_longest(expected, found), 1)
    first = next(at for at, (one, other) in pairs if one != other)
    return Check(
        name, False, f"{len(expected)} records in order", f"{compared}; differs at {first}"
    )


def _stored(name: str, source: Source, notes: Sequence[Note], bronze: Bronze) -> Check:
    """Whether an event store has each event once that the NIPs have it keep."""
    lines = list(lines_of_files(source.path))
    there = [(where, digest(line)) for where, line in lines]
    if there != [(one.where, one.sha256) for one in notes]:
        return Check(name, False, f"{len(notes)} lines as noted", f"other lines in {source.path}")
    good = (line for (_, line), note in zip(lines, notes, strict=True) if note.good)
    files = source.path.iterdir() if source.path.is_dir() else [source.path]
    earliest = min((file.stat().st_mtime for file in files), default=0.0)
    kept = Kept(map(Event.from_json, good), earliest, time.time())
    found = [record.id or "" for record in bronze.records if record.id not in kept.open]
    return Check(
        name,
        sorted(kept.ids) == sorted(found),
        f"{len(kept.ids)} events",
        _compared(kept.ids, found, "events"),
    )


def _bad_lines(source: Source, notes: Sequence[Note], layout: Layout) -> Iterator[Check]:
    """Whether each bad line, and no other, is in the quarantine with its place."""
    if source.kind == "log":
        faults: tuple[str, ...] = ()
    elif source.bronze == "nostr":  # which passes over empty lines
        faults = ("json", "event", "id", "signature")
    else:
        faults = ("json", "empty")
    expected = [(note.where, note.sha256) for note in notes if note.fault in faults]
    found = [
        (f"{Path(row['file']).name}:{row['line']}", digest(row["value"]))
        for row in rows_of(layout.quarantine(source.name))
    ]
    yield _same(f"{source.name}: bad lines are in quarantine", expected, found, "lines")


def _no_events(config: Config, bronzes: dict[str, Bronze], layout: Layout) -> Iterator[Check]:
    """Whether each record that is no event is in the quarantine of silver with its place."""
    expected = [
        (source.name, record.position, record.sha256)
        for source in config.sources
        for record in bronzes[source.name].records
        if record.id is None
    ]
    rows = rows_of(layout.quarantine(SILVER))
    found = [(row["source"], row["position"], digest(row["value"])) for row in rows]
    yield _same("silver: records that are no events are in quarantine", expected, found, "records")


def _silver(bronzes: dict[str, Bronze], tables: dict[Any, Silver], what: str) -> Iterator[Check]:
    expected = {record.id for bronze in bronzes.values() for record in bronze.records if record.id}
    first, *others = tables
    for kind, table in tables.items():
        if table.problem is not None:
            yield Check(f"silver: {kind} can be read", False, "readable", table.problem)
        found = list(table.ids.elements())
        yield _same(f"silver: {kind} has each event of bronze once", expected, found, "events")
        yield Check(
            f"silver: {kind} has the content that the {what} say",
            not table.forged,
            "0 wrong rows",
            f"{table.forged} wrong rows",
        )
        yield Check(
            f"silver: {kind} has each event on the day of its time",
            not table.misplaced,
            "0 wrong rows",
            f"{table.misplaced} wrong rows",
        )
    for other in others:
        one, two = tables[first].rows, tables[other].rows
        yield _same(f"silver: {other} is equal to {first}", one.elements(), two.elements(), "rows")


def _gold(silver: Silver, layout: Layout) -> Iterator[Check]:
    """Whether the sums of gold are those of silver."""
    windows: Counter[tuple[int, int]] = Counter()
    sizes: Counter[tuple[int, int]] = Counter()
    late = 0
    for row in rows_of(layout.windows):
        windows[row["window"], row["kind"]] += row["events"]
        sizes[row["window"], row["kind"]] += row["bytes"]
        late += row["late"]
    yield _sums("gold: events by window and kind", silver.windows, windows)
    yield _sums("gold: bytes by window and kind", silver.sizes, sizes)
    authors: Counter[str] = Counter()
    for row in rows_of(layout.authors):
        authors[row["pubkey"].hex()] += row["events"]
    yield _sums("gold: events by author", silver.authors, authors)
    kinds: Counter[str] = Counter()
    for (_, kind), events in silver.windows.items():
        kinds[str(kind)] += events
    expected: dict[str, Any] = {
        "events": silver.windows.total(),
        "bytes": silver.sizes.total(),
        "late": late,
        "kinds": sorted(kinds.values(), reverse=True),
        "authors": sorted(silver.authors.values(), reverse=True),
    }
    top = _json_of(layout.top)
    found = {name: top.get(name) for name in expected}
    for name, counts in (("kinds", kinds), ("authors", silver.authors)):
        # Which of two with as many events is shown is open.
        expected[name] = expected[name][:_TOP]
        shown = top.get(name, {})
        wrong = {one: count for one, count in shown.items() if counts[one] != count}
        found[name] = wrong or list(shown.values())
    yield Check("gold: totals", expected == found, expected, found)


def _late(config: Config, layout: Layout) -> Iterator[Check]:
    """Whether gold counts those events as late that were late when their batch came."""
    name = "gold: late events by batch"
    kind = config.tables[0]
    found: Counter[int] = Counter()
    for row in rows_of(layout.windows):
        found[row["batch"]] += row["late"]
    try:
        lateness = _json_of(layout.state).get("lateness", [])
        due = late_by_batch(layout.silver(kind), kind, layout.windows, lateness)
    except LookupError as error:
        yield Check(name, None, "late events of each batch", str(error))
        return
    wrong = [one for one in due.keys() | found.keys() if found[one] not in due.get(one, range(1))]
    expected = f"{sum(one.start for one in due.values())} in {len(due)} batches"
    text = f"{found.total()} in {len(found)} batches"
    yield Check(name, not wrong, expected, f"{text}; {len(wrong)} differ" if wrong else text)


def _followed(source: Source, bronze: Bronze, layout: Layout) -> Iterator[Check]:
    """Whether all that a follower saw is in the log still, from its first record on."""
    file = layout.follower(source.name)
    if not file.exists():
        return
    seen = [(line["position"], line["sha256"]) for line in json_lines(file)]
    there = [(record.position, record.sha256) for record in bronze.records[: len(seen)]]
    wrong = sum(one != other for one, other in zip(seen, there, strict=False))
    wrong += max(0, len(seen) - len(there))
    yield Check(
        f"{source.name}: what a follower saw is there",
        not wrong,
        f"{len(seen)} records from the first on",
        f"{len(seen) - wrong} of them",
    )


def _all_seen(bronze: Bronze, followed: Followed) -> Check:
    """Whether a follower saw each record of a log, and nothing ended it before."""
    due = len(bronze.records)
    ended = "" if followed.error is None else f"; ended by: {followed.error}"
    return Check(
        f"{followed.source}: a follower saw all of bronze",
        followed.error is None and followed.records == due,
        f"{due} records",
        f"{followed.records} records{ended}",
    )


def _sums(name: str, expected: Counter[Any], found: Counter[Any]) -> Check:
    wrong = [key for key in expected.keys() | found.keys() if expected[key] != found[key]]
    text = f"{found.total()} in {len(found)} groups"
    return Check(
        name,
        not wrong,
        f"{expected.total()} in {len(expected)} groups",
        f"{text}; {len(wrong)} differ" if wrong else text,
    )


def _same(name: str, expected: Iterable[Any], found: Iterable[Any], what: str) -> Check:
    """Whether both have the same elements as often."""
    one, two = Counter(expected), Counter(found)
    return Check(name, one == two, f"{one.total()} {what}", _difference(one, two, what))


def _compared(expected: Iterable[Any], found: Iterable[Any], what: str) -> str:
    return _difference(Counter(expected), Counter(found), what)


def _difference(expected: Counter[Any], found: Counter[Any], what: str) -> str:
    text = f"{found.total()} {what}"
    missing = expected - found
    more = found - expected
    if missing:
        text += f"; {missing.total()} missing"
    if more:
        text += f"; {more.total()} too many"
    return text


def _json_of(file: Path) -> dict[str, Any]:
    return load_json(file) or {}
