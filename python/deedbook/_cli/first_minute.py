"""``deedbook demo --small``: a writer is killed again and again, and its acknowledgements counted.

The demo needs only this package. The processes, the SIGKILLs and the log are real. The check after
each kill: the log has every event that the writer acknowledged, and each event in the log is, byte
for byte, the input line of its number. The demo ends with a picture in the terminal and a page of
HTML.

The writer is ``python -m deedbook._cli.first_minute LOG INPUT STOP BATCH``.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, Final

import deedbook
from deedbook._show.text import escape_steering

EVENTS: Final = 20_000
KILLS: Final = 5
BATCH_LINES_MAX: Final = 500
BATCHES_MIN: Final = 100
LINES_MIN: Final = 100
ATTEMPTS: Final = 6
# Each kill comes after a count drawn from its part of this stretch of the input.
KILL_FROM, KILL_TO = 1 / 3, 2 / 3
MARKER: Final = ".deedbook-demo"
_CHARS: Final = 48
"""Width of a bar in the terminal."""
_COLOURS: Final = {"#": "\x1b[34m", "+": "\x1b[33m", "x": "\x1b[31m"}
_PLAIN: Final = "\x1b[0m"

Say = Callable[[str], None]
Rows = list[tuple[str, ...]]


class DemoError(Exception):
    """The demo cannot go on. The text is written for the user; ``code`` is the exit code."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Check:
    """One tested statement about the log."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Workspace:
    """The output directory and its files."""

    root: Path

    @property
    def generated(self) -> Path:
        """The generated input, where none is given."""
        return self.root / "input.jsonl"

    @property
    def log(self) -> Path:
        """The book."""
        return self.root / "log"

    @property
    def report(self) -> Path:
        """The report; `.json` and `.html` are appended by ``with_suffix``."""
        return self.root / "report"

    def made(self) -> list[Path]:
        """All files of a run, the only names that the demo ever removes."""
        reports = (self.report.with_suffix(suffix) for suffix in (".json", ".html"))
        return [self.generated, self.log, *reports]

    def prepare(self, source: Path | None) -> None:
        """Make the output directory, or clear the output of a former run.

        Raises `DemoError` if the directory holds anything but a former output, or if the input is
        one of the files to clear.
        """
        root = self.root
        if root.exists() and not root.is_dir():
            raise DemoError(f"{root} is not a directory", 2)
        if root.is_dir() and any(root.iterdir()) and not (root / MARKER).is_file():
            raise DemoError(
                f"{root} is not a former output of the demo; choose another directory", 2
            )
        if source is not None:
            real = source.resolve()
            for path in self.made():
                if path.exists() and (real == path.resolve() or path.resolve() in real.parents):
                    raise DemoError(f"the input {source} is in what a new run clears", 2)
        root.mkdir(parents=True, exist_ok=True)
        (root / MARKER).write_text("Made by the demo of Deedbook, which may remove it again.\n")
        for path in self.made():
            remove(path)


@dataclass(frozen=True)
class Source:
    """The input: event k of the log must be line k of this file."""

    path: Path
    generated: bool
    lines: int
    bytes: int
    """Sum of the lines' lengths, line ends not counted."""


def read_lines(path: Path, start: int, stop: int) -> Iterator[bytes]:
    """The lines ``start <= number < stop``, counted from 1, without the newline at their end."""
    with path.open("rb") as file:
        for line in islice(file, start - 1, stop - 1):
            yield line[:-1] if line.endswith(b"\n") else line


@dataclass(frozen=True)
class Kill:
    """One SIGKILL in the middle of writing, and the state of the log afterwards."""

    number: int
    after_events: int
    """The count of acknowledged events before the kill."""
    delay_ms: float
    """Wait after the count, a random part of the time of a batch."""
    returncode: int
    resumed_at: int
    """Last event in the log when this writer began."""
    acknowledged: int
    """Last event acknowledged by the writer before the kill."""
    last: int
    """Last event in the log after the kill."""
    equal: bool
    """Whether all events found are byte-equal to their lines."""
    recovery: dict[str, Any]
    """The report of opening the log for writing."""

    @property
    def kept(self) -> bool:
        """Whether every acknowledged event is there."""
        return self.last >= self.acknowledged


@dataclass(frozen=True)
class Writing:
    """The whole of the writing, from the first event to the close."""

    batch: int
    attempts: int
    kills: list[Kill]
    acknowledged: int
    seconds: float


class Missed(Exception):
    """The writer was done before the kill."""


@dataclass(frozen=True)
class Result:
    """All results of a run."""

    source: Source
    writing: Writing
    checks: list[Check]
    seconds: dict[str, float]
    versions: dict[str, str]

    @property
    def ok(self) -> bool:
        """Whether every check passed."""
        return all(check.ok for check in self.checks)

    @property
    def verdict(self) -> str:
        """The outcome in a line."""
        failed = sum(not check.ok for check in self.checks)
        if failed:
            return f"{failed} of {len(self.checks)} checks FAILED"
        return f"all {len(self.checks)} checks passed"

    @property
    def title(self) -> str:
        """The test and its outcome."""
        kills = len(self.writing.kills)
        return f"{self.source.lines:,} events, writer killed {kills} times, {self.verdict}"


def run(args: argparse.Namespace) -> int:
    """Run the demo.

    Returns 0 if every check passed, 1 if a check failed or the demo could not go on, 2 for a
    useless argument. Raises BrokenPipeError if the reader of standard output went away.
    """
    return guarded(lambda: _run(args))


def guarded(work: Callable[[], int]) -> int:
    """Run a demo; an error of the environment is one line on standard error."""
    try:
        return work()
    except DemoError as error:
        text, code = str(error), error.code
    except KeyboardInterrupt:
        text, code = "interrupted", 130
    except BrokenPipeError:  # the command line reports it by its exit code alone
        raise
    except (deedbook.Error, OSError) as error:
        text, code = str(error), 1
    print(escape_steering(f"deedbook demo: {text}"), file=sys.stderr)
    return code


def _run(args: argparse.Namespace) -> int:
    say: Say = (lambda _: None) if args.json else put
    require(args.input)
    space = Workspace(args.out)
    space.prepare(args.input)

    began = time.monotonic()
    if args.input is None:
        _generate(space.generated, args.events or EVENTS, args.seed)
    path = args.input or space.generated
    source = _stock(path, args.input is None, args.events)
    say(f"input: {path}, {source.lines:,} lines, {size(source.bytes)}")
    writing = write_with_kills(space.log, source, args.seed, say, KILLS)
    checks = [*checks_of(writing, source), _sum(writing, source), *_read(space, source)]
    checks.append(verified(space.log, source))
    versions = {"deedbook": deedbook.__version__, "Python": platform.python_version()}
    result = Result(source, writing, checks, {"all": time.monotonic() - began}, versions)

    text = json.dumps(as_dict(result), indent=2, ensure_ascii=False) + "\n"
    written = [space.report.with_suffix(suffix) for suffix in (".html", ".json")]
    save(written[0], page_of(result))
    save(written[1], text)
    if args.json:
        put_json(text)
    else:
        put("\n" + "\n".join(_picture(result, _is_coloured())))
        put("\n" + text_table(*check_rows(checks)))
        put(f"\n{result.title}")
        put(f"wrote {', '.join(map(str, written))} in {time.monotonic() - began:.1f} s")
    return 0 if result.ok else 1


def require(source: Path | None) -> None:
    """Raise `DemoError` (exit code 2) if no process can be killed, or the input is missing."""
    if not hasattr(signal, "SIGKILL"):
        raise DemoError("this system has no SIGKILL, and the demo is about surviving it", 2)
    if source is not None and not source.is_file():
        raise DemoError(f"no such file: {source}", 2)


def _generate(path: Path, events: int, seed: int) -> None:
    """Write JSON lines of different lengths."""
    random = Random(seed)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for number in range(1, events + 1):
            words = " ".join(random.choices(("red", "blå", "冬", "winter"), k=random.randrange(60)))
            event = {"n": number, "type": random.choice(("view", "click", "buy")), "words": words}
            file.write(json.dumps(event, ensure_ascii=False) + "\n")


def _stock(path: Path, generated: bool, lines_max: int | None) -> Source:
    """Count the lines of the input."""
    lines = nbytes = 0
    for line in read_lines(path, 1, (lines_max or 2**62) + 1):
        lines += 1
        nbytes += len(line)
    return Source(path, generated, lines, nbytes)


def _sum(writing: Writing, source: Source) -> Check:
    """Whether each writer went on at the log's end, and all of them together wrote the input."""
    found = [kill.last for kill in writing.kills]
    begun = [kill.resumed_at for kill in writing.kills]
    parts = [last - first for first, last in zip(begun, found, strict=True)]
    parts.append(writing.acknowledged - found[-1])
    good = begun == [0, *found[:-1]] and sum(parts) == source.lines
    detail = f"{' + '.join(f'{part:,}' for part in parts)} = {sum(parts):,} of {source.lines:,}"
    return Check("what the writers added is the input", good, detail)


def _read(space: Workspace, source: Source) -> Iterator[Check]:
    """Compare the finished log with the input, as a reader of both."""
    lost = invented = different = 0
    lines = read_lines(source.path, 1, source.lines + 1)
    with deedbook.Book.open(space.log) as book:
        jams = book.payloads()
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


def write_with_kills(log: Path, source: Source, seed: int, say: Say, kills: int = KILLS) -> Writing:
    """Write the whole input; kill the writer ``kills`` times on the way.

    If the input is too small and a writer ends before the kill, the input is written again from the
    start, in smaller batches. Raises `DemoError` if smaller batches do not help either.
    """
    if source.lines < LINES_MIN:
        raise DemoError(
            f"the input has {source.lines} lines; at least {LINES_MIN} are needed to kill a "
            "writer in the middle of them",
            2,
        )
    batch = max(1, min(BATCH_LINES_MAX, source.lines // BATCHES_MIN))
    # The demo prints each recovery below. Without a handler, Python would print the log records of
    # the recovery a second time.
    logging.getLogger("deedbook").addHandler(logging.NullHandler())
    for attempt in range(1, ATTEMPTS + 1):
        remove(log)
        # Printed after the result is sure: the lines of a failed attempt would only confuse.
        words: list[str] = []
        try:
            writing = _attempt(log, source, batch, attempt, Random(seed), kills, words.append)
        except Missed:
            batch = max(1, batch // 2)
            continue
        for word in words:
            say(word)
        return writing
    raise DemoError(f"the writer was done before the kill landed, {ATTEMPTS} times in a row")


def _attempt(
    log: Path, source: Source, batch: int, attempt: int, random: Random, kills: int, say: Say
) -> Writing:
    began = time.monotonic()
    done: list[Kill] = []
    part = source.lines * (KILL_TO - KILL_FROM) / max(1, kills)
    for number in range(1, kills + 1):
        low = source.lines * KILL_FROM + part * (number - 1)
        target = random.randrange(int(low), max(int(low) + 1, int(low + part)))
        kill = _kill_once(log, source, batch, number, target, random.random())
        done.append(kill)
        say(
            f"kill {number}: SIGKILL with {kill.acknowledged:,} events acknowledged, "
            f"exit code {kill.returncode}"
        )
        say(f"  reopened: {tell_recovery(kill.recovery)}")
        say(
            f"  last event {kill.last:,}, {kill.last - kill.acknowledged:+,} to the acknowledged; "
            f"{'every event equals its line' if kill.equal else 'EVENTS DIFFER FROM THE INPUT'}"
        )
    acknowledged = _finish(log, source, batch)
    say(f"writer {kills + 1}: went on and closed the log at event {acknowledged:,}")
    return Writing(batch, attempt, done, acknowledged, time.monotonic() - began)


def _start(log: Path, source: Source, batch: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "deedbook._cli.first_minute"]
    arguments = [str(log), str(source.path), str(source.lines), str(batch)]
    return subprocess.Popen(
        command + arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def _kill_once(
    log: Path, source: Source, batch: int, number: int, target: int, part: float
) -> Kill:
    """Start the writer, wait for ``target`` acknowledged events and a bit, kill it, look."""
    with _start(log, source, batch) as writer:
        try:
            assert writer.stdout is not None
            if not (line := writer.stdout.readline()):
                writer.wait()
                raise DemoError(f"the writer failed: {_last_words(writer)}")
            resumed_at = acknowledged = int(line)
            began = time.monotonic()
            batches = 0
            while acknowledged < target and (line := writer.stdout.readline()).strip().isdigit():
                acknowledged = int(line)
                batches += 1
            # A part of the time of a batch: the kill then meets appending as well as syncing.
            delay = part * (time.monotonic() - began) / max(1, batches)
            time.sleep(delay)
            if writer.poll() is None:
                writer.send_signal(signal.SIGKILL)
            # Lines written before the kill count as acknowledgements, too.
            words = writer.stdout.read().split()
            returncode = writer.wait()
        finally:
            writer.kill()  # does nothing to a process that is gone
        if returncode == 0:
            raise Missed
        if returncode != -signal.SIGKILL:
            raise DemoError(f"the writer failed: {_last_words(writer)}")
    if words and words[-1] == b"closed":
        raise Missed
    acknowledged = int(words[-1]) if words else acknowledged
    if acknowledged >= source.lines:
        raise Missed
    last, equal, recovery = look(log, source)
    return Kill(
        number, target, delay * 1e3, returncode, resumed_at, acknowledged, last, equal, recovery
    )


def _finish(log: Path, source: Source, batch: int) -> int:
    """Let a writer do the rest undisturbed; return the last acknowledged event."""
    with _start(log, source, batch) as writer:
        try:
            assert writer.stdout is not None
            words = writer.stdout.read().split()
            returncode = writer.wait()
        finally:
            writer.kill()
        if returncode != 0 or words[-1:] != [b"closed"]:
            raise DemoError(f"the writer failed: {_last_words(writer)}")
    return int(words[-2])


def _last_words(writer: subprocess.Popen[bytes]) -> str:
    """The last line of the writer's standard error."""
    assert writer.stderr is not None
    lines = writer.stderr.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit code {writer.returncode}"


def look(log: Path, source: Source) -> tuple[int, bool, dict[str, Any]]:
    """Open the log for writing, as its next writer would, and compare the events with the input.

    Returns the last event, whether all events equal their lines, and the recovery report.
    """
    with deedbook.Book.open(log, "a", durability="manual") as book:
        last = book.last
        equal = book.bounds in ((1, last), None) and last <= source.lines
        compared = 0
        # Unequal lengths show in `compared`: strict=True would raise instead.
        for jam, line in zip(book.payloads(), read_lines(source.path, 1, last + 1), strict=False):
            equal = equal and jam == line
            compared += 1
        return last, equal and compared == last, book.recovery.to_dict()


def tell_recovery(report: dict[str, Any]) -> str:
    """The recovery report in a line."""
    read = f"{report['scanned_bytes']:,} bytes read ({report['source']}, mark {report['mark']})"
    torn, unwritten = report["torn_bytes"], report["cut_bytes"] - report["torn_bytes"]
    return f"{report['verdict']}; {read}; cut {torn:,} torn and {unwritten:,} unwritten bytes"


def checks_of(writing: Writing, source: Source) -> list[Check]:
    """The checks on the writing itself."""
    checks = []
    for kill in writing.kills:
        name = f"kill {kill.number}"
        checks += [
            Check(
                f"{name} landed while the writer worked",
                kill.returncode == -9 and kill.acknowledged < source.lines,
                f"exit code {kill.returncode} at {kill.acknowledged:,} of {source.lines:,}",
            ),
            Check(
                f"{name} lost nothing acknowledged",
                kill.kept,
                f"acknowledged {kill.acknowledged:,}, in the log {kill.last:,}",
            ),
            Check(
                f"{name} left only whole input lines",
                kill.equal,
                f"{kill.last:,} events compared byte by byte",
            ),
        ]
    return [
        *checks,
        Check(
            "the writer acknowledged all lines",
            writing.acknowledged == source.lines,
            f"{writing.acknowledged:,} of {source.lines:,}",
        ),
    ]


def verified(log: Path, source: Source) -> Check:
    """The core's own full check of the finished log."""
    found = deedbook.Book.verify(log)
    good = found.ok and found.bounds == (1, source.lines) and not found.lost_acknowledged
    detail = f"{found.verdict}, {found.records:,} deeds in {found.bytes:,} bytes"
    return Check("deedbook verify finds the log intact", good, detail)


# -- the writer ------------------------------------------------------------------------------------


def _write(log: Path, source: Path, stop: int, batch: int) -> None:
    """Append the lines after the last event of the log, ``batch`` at a time, and sync each."""
    with deedbook.Book.open(log, "a", durability="manual") as book:
        _tell(str(book.last))
        lines = read_lines(source, book.last + 1, stop + 1)
        while jams := list(islice(lines, batch)):
            # With a stated number, a mistake in resuming is an error and not a shift.
            added = book.append_many(jams, atomic=True, event=book.last + 1)
            book.sync()
            # The events are on stable storage now, and may be acknowledged.
            _tell(str(added.last))
    _tell("closed")


def _tell(word: str) -> None:
    """Write a line in one unbuffered call: a reader never sees half a line."""
    os.write(1, f"{word}\n".encode())


def _write_as_process(arguments: list[str]) -> int:
    """Run the writer; errors are one line on standard error and exit code 1."""
    log, source, stop, batch = arguments
    try:
        _write(Path(log), Path(source), int(stop), int(batch))
    except (deedbook.Error, OSError) as error:
        print(escape_steering(f"{type(error).__name__}: {error}"), file=sys.stderr)
        return 1
    return 0


# -- output ----------------------------------------------------------------------------------------


def check_rows(checks: Iterable[Check]) -> tuple[tuple[str, ...], Rows]:
    """Header and rows of the table of checks."""
    rows: Rows = [("ok" if check.ok else "FAILED", check.name, check.detail) for check in checks]
    return ("", "check", "found"), rows


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for the terminal: columns of numbers to the right, others to the left."""
    lines = [header, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    right = [is_number(rows, i) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(cells, widths, right, strict=True)
        )
        return "  ".join(padded).rstrip()

    rule = "  ".join("-" * width for width in widths)
    return "\n".join([line(header), rule, *map(line, rows)])


def is_number(rows: Sequence[Sequence[str]], column: int) -> bool:
    """Whether a column has numbers only, with or without a unit."""
    cells = [row[column] for row in rows if row[column]]
    units = ("", "%", "B", "kB", "MB", "GB", "TB")
    parts = (cell.partition(" ") for cell in cells)
    return bool(cells) and all(p[0][0].isdigit() and p[2] in units for p in parts if p[0])


def as_dict(result: Result) -> dict[str, Any]:
    """The result as plain values, ready for JSON."""
    return {
        "ok": result.ok,
        "versions": result.versions,
        "input": {
            "name": result.source.path.name,
            "generated": result.source.generated,
            "lines": result.source.lines,
            "bytes": result.source.bytes,
        },
        "writing": asdict(result.writing),
        "checks": [asdict(check) for check in result.checks],
        "seconds": {name: round(value, 3) for name, value in result.seconds.items()},
    }


def _picture(result: Result, coloured: bool) -> list[str]:
    """A row for each writer: its first event, acknowledged events, and events found after."""
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
    """A row over the whole input. Each writer with an event has at least one mark."""

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


def put(text: str, end: str = "\n") -> None:
    """Print at once, with escapes for unprintable characters: a file's name need not be UTF-8."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    shown = escape_steering(text).encode(encoding, "backslashreplace")
    print(shown.decode(encoding), end=end, flush=True)


def put_json(text: str) -> None:
    """Print an object, with JSON's own escapes if the output's encoding needs them."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text), indent=1) + "\n"
    put(text, end="")


def save(path: Path, text: str) -> None:
    """Write a file of the report; bytes of a name that are not UTF-8 are escaped."""
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def size(nbytes: int) -> str:
    """Bytes with a decimal unit and three digits or so."""
    value, unit = float(nbytes), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if round(value, 1) < 1000:  # as it is shown
            break
        value, unit = value / 1000, larger
    return f"{nbytes:,} B" if unit == "B" else f"{value:,.1f} {unit}"


def remove(path: Path) -> None:
    """Remove a file, a link or a tree, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def page_of(result: Result) -> str:
    """The page, in HTML."""
    from deedbook._show.page import page  # slower to load than all else that the writer needs

    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    return page(result.title, _body(result), ok=result.ok, subtitle=f"deedbook demo, {versions}")


def _body(result: Result) -> Iterator[str]:
    from deedbook._show.charts import bars
    from deedbook._show.page import table, tiles

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
    """Acknowledged events missing after a kill."""
    return sum(max(0, kill.acknowledged - kill.last) for kill in result.writing.kills)


def _rows(result: Result) -> Iterator[Any]:
    from deedbook._show.charts import Bar, Piece

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


if __name__ == "__main__":
    sys.exit(_write_as_process(sys.argv[1:]))
