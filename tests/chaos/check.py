"""Checks of a pipeline: every record of the inputs is there once, and nothing else."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from chaos.follow import Followed
from chaos.home import DELAY_SECONDS, SILVER, WINDOW_SECONDS, Home, Source
from chaos.inputs.events import REASONS, judge
from chaos.inputs.notes import Note, digest, expected_file, json_lines, lines_of_files, notes_of
from chaos.tables import Bronze, bronze_of, files_by_plan, plans_of, rows_of
from deedbook import Ledger, Wal

COLUMNS: Final = ("id", "pubkey", "created_at", "kind", "tags", "content", "sig")
Place = tuple[str, str, str]
"""A line: its place, its hash, and the begin of the reason."""


@dataclass(frozen=True)
class Check:
    name: str
    ok: bool
    expected: Any
    found: Any


def check(home: Home, followed: Sequence[Followed] = ()) -> list[Check]:
    """Check a pipeline that has read all inputs and does not run. Changes nothing."""
    bronzes = {one.name: bronze_of(home.bronze(one.name), one.bronze) for one in home.sources}
    checks: list[Check] = []
    bad: list[Place] = []
    for source in home.sources:
        bronze = bronzes[source.name]
        notes = list(notes_of(expected_file(source.path.parent, source.name)))
        problem = next(iter(bronze.problems), "intact")
        name = f"{source.name}: bronze is intact"
        checks.append(Check(name, not bronze.problems, "intact", problem))
        checks.append(_input(source, notes, bronze))
        checks.extend(_followed(source, bronze, home))
        checks.extend(_all_seen(bronze, one) for one in followed if one.source == source.name)
        bad.extend(_bad_lines(source))
    checks.extend(_readable("quarantine", lambda: _quarantine(home, bad)))
    checks.extend(_readable(SILVER, lambda: _silver(home, bronzes)))
    checks.extend(_readable("gold", lambda: _gold(home)))
    return checks


def _readable(table: str, checks: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from checks()
    except (OSError, pa.ArrowException, AssertionError, LookupError) as error:
        yield Check(f"{table} can be read", False, "readable", str(error))


def _input(source: Source, notes: Sequence[Note], bronze: Bronze) -> Check:
    """Whether a log has the records of its input, once, and in order. Empty lines do not count."""
    passed_over = "empty" if source.kind == "lines" else None
    expected = [note.sha256 for note in notes if note.fault != passed_over or note.good]
    found = [record.sha256 for record in bronze.records]
    text = _difference(Counter(expected), Counter(found), "records")
    if expected != found:
        pairs = enumerate(zip_longest(expected, found), 1)
        text += f"; differs at {next(at for at, (one, other) in pairs if one != other)}"
    name = f"{source.name}: bronze has the input"
    return Check(name, expected == found, f"{len(expected)} records in order", text)


def _bad_lines(source: Source) -> Iterator[Place]:
    for where, line in input_of(source):
        _, fault = judge(line)
        if fault is not None and not (fault == "empty" and source.kind == "lines"):
            yield where, digest(line), REASONS[fault]


def input_of(source: Source) -> Iterator[tuple[str, bytes]]:
    """The lines or records of an input, each with the place expected in the quarantine."""
    if source.kind == "lines":
        yield from lines_of_files(source.path)
    elif source.kind == "wal":
        with Wal.open(source.path) as wal:
            yield from ((f"{source.path.name}:{one.lsn}", one.payload) for one in wal)
    else:
        with Ledger.open(source.path) as ledger:
            names = {file.index: Path(file.path).name for file in ledger.files}
            for one in ledger:
                yield f"{names[one.file]}:{one.record}", one.payload


def _quarantine(home: Home, bad: Iterable[Place]) -> Iterator[Check]:
    found = []
    for row in rows_of(home.table("quarantine")):
        where = f"{Path(row['source']).name}:{row['position']}"
        begins = [text for text in REASONS.values() if row["reason"].startswith(text)]
        found.append((where, digest(row["value"]), begins[0] if begins else row["reason"]))
    yield _same("bad lines are in quarantine, with place and reason", bad, found, "lines")


def _silver(home: Home, bronzes: dict[str, Bronze]) -> Iterator[Check]:
    records = [record for bronze in bronzes.values() for record in bronze.records if record.key]
    contents: dict[str, set[str]] = {}
    for record in records:
        contents.setdefault(record.key or "", set()).add(_content(json.loads(record.payload)))
    rows = list(rows_of(home.table(SILVER)))
    found = [row["id"] for row in rows]
    yield _same("silver has each key of bronze once", [*contents], found, "keys")
    lies = sum(_content(row) not in contents.get(row["id"], ()) for row in rows)
    late = sum(_seconds(row["time"]) != row["created_at"] for row in rows)
    for name, wrong in (("what the lines say", lies), ("the times of the lines", late)):
        yield Check(f"silver has {name}", not wrong, "0 wrong rows", f"{wrong} wrong rows")


def _content(event: dict[str, Any]) -> str:
    return json.dumps([event.get(name) for name in COLUMNS])


def _seconds(time: datetime) -> int:
    return int(time.replace(tzinfo=time.tzinfo or timezone.utc).timestamp())


def _gold(home: Home) -> Iterator[Check]:
    """Whether gold has the sums of silver, and windows with all events except late ones."""
    silver = list(rows_of(home.table(SILVER)))
    authors: Counter[str] = Counter(row["pubkey"] for row in silver)
    found = {row["pubkey"]: row["events"] for row in rows_of(home.table("gold/authors"))}
    text = f"{sum(found.values())} in {len(found)} groups"
    due = f"{authors.total()} in {len(authors)} groups"
    yield Check("gold: events by author", authors == found, due, text)
    rows = list(rows_of(home.table("gold/windows")))
    windows = {(_seconds(row["start"]), row["kind"]): row["events"] for row in rows}
    twice = len(rows) - len(windows)
    yield Check("gold: each window is there once", not twice, "0 twice", f"{twice} twice")
    least, most = _windows(home)
    every = most.keys() | windows.keys()
    wrong = [one for one in every if not least[one] <= windows.get(one, 0) <= most[one]]
    due = f"{least.total()} to {most.total()} in {len(+most)} groups"
    text = f"{sum(windows.values())} in {len(windows)} groups"
    text = f"{text}; {len(wrong)} differ" if wrong else text
    yield Check("gold: events of the windows that have passed", not wrong, due, text)


def _windows(home: Home) -> tuple[Counter[tuple[int, int]], Counter[tuple[int, int]]]:
    """The least and the most events of each closed window, computed batch by batch.

    A batch drops events behind the watermark of the batch before, or of the batch before that one,
    depending on whether an empty batch came between.
    """
    import pyarrow.parquet as pq

    checkpoint = home.checkpoint("gold/windows")
    plans: dict[int, list[tuple[int, int]]] = {}
    for plan, file in files_by_plan(checkpoint):
        rows = pq.ParquetFile(file).read(columns=["created_at", "kind"]).to_pylist()
        plans.setdefault(plan, []).extend((row["created_at"], row["kind"]) for row in rows)
    least: Counter[tuple[int, int]] = Counter()
    most: Counter[tuple[int, int]] = Counter()
    before = last = float("-inf")
    first = -1
    for plan in sorted(set(plans_of(checkpoint).values())):
        events = [event for one in range(first + 1, plan + 1) for event in plans.get(one, ())]
        for at, kind in events:
            start = at // WINDOW_SECONDS * WINDOW_SECONDS
            least[start, kind] += start + WINDOW_SECONDS > last
            most[start, kind] += start + WINDOW_SECONDS > before
        newest = max((at - DELAY_SECONDS for at, _ in events), default=last)
        before, last, first = last, max(last, newest), plan
    for counts in (least, most):
        for one in [one for one in counts if one[0] + WINDOW_SECONDS > last]:
            del counts[one]
    return least, most


def _followed(source: Source, bronze: Bronze, home: Home) -> Iterator[Check]:
    """Whether the log still has all records that a follower saw, from the first record on."""
    file = home.follower(source.name)
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
    """Whether a follower saw each record of a log, and no error ended it early."""
    due = len(bronze.records)
    ended = "" if followed.error is None else f"; ended by: {followed.error}"
    return Check(
        f"{followed.source}: a follower saw all of bronze",
        followed.error is None and followed.records == due,
        f"{due} records",
        f"{followed.records} records{ended}",
    )


def _same(name: str, expected: Iterable[Any], found: Iterable[Any], what: str) -> Check:
    one, two = Counter(expected), Counter(found)
    return Check(name, one == two, f"{one.total()} {what}", _difference(one, two, what))


def _difference(expected: Counter[Any], found: Counter[Any], what: str) -> str:
    text = f"{found.total()} {what}"
    if missing := expected - found:
        text += f"; {missing.total()} missing, as {next(iter(missing))}"
    if more := found - expected:
        text += f"; {more.total()} too many, as {next(iter(more))}"
    return text
