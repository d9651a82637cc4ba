"""One deliberate bug."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

# Modules of the subjects in the crash and fault tests, by format.
SUBJECTS = {
    "book": ("book", "book_epoch"),
    "wal": ("wal_single", "wal_segments", "wal_tiny", "wal_large"),
}

Tests = list[tuple[str, str]]


@dataclass(frozen=True)
class Bug:
    """One deliberate bug: ``old``, once in ``file``, becomes ``new``.

    ``tests`` are pairs of a test program, or of one of its modules (``engine::crash``; ``lib`` for
    unit tests), and parts of the names of its tests (``""`` for all of them), tried in turn until
    one fails. Of the program ``python`` they are the arguments of pytest, below tests/python. Where
    one names ``{subject}``, it is run for the format whose file it is, or for each format apart if
    the file is shared: then the tests of every one of them have to catch the bug.
    """

    name: str
    row: str
    file: str
    old: str
    new: str
    tests: Tests
    # Whether running out of time is how it shows; else that says only that the machine is slow.
    hangs: bool = False
    # Further replacements in the same file.
    also: tuple[tuple[str, str], ...] = ()
    # Whether CI leaves it to `make trust`: its tests take longer than a few seconds, or have not
    # been seen to catch it in less.
    slow: bool = False

    def by_format(self) -> dict[str, Tests]:
        """The tests of each format that has to catch it; ``""`` where they are not apart."""
        apart = [test for test in self.tests if "{subject}" in test[1]]
        if not apart:
            return {"": self.tests}
        own = [name for name in SUBJECTS if self.file.startswith(f"src/{name}/")]
        tests = self.tests if own else apart
        return {name: [(t, filled(f, name)) for t, f in tests] for name in own or SUBJECTS}

    def changed(self, text: str) -> str | int:
        """The file with the bug in it, or how often a text is there that must be there once."""
        text = plain(text)
        for old, new in ((self.old, self.new), *self.also):
            count = text.count(old)
            if count != 1:
                return count
            text = text.replace(old, new)
        return text


def filled(arguments: str, name: str) -> str:
    """A filter for each subject of a format."""
    words = []
    for word in arguments.split():
        subjects = SUBJECTS[name] if "{subject}" in word else ("",)
        words += [word.replace("{subject}", subject) for subject in subjects]
    return " ".join(words)


@cache
def plain(text: str) -> str:
    """A source as it would be without the stories of `make stories`."""
    if "seeded!(" not in text:
        return text
    text = re.sub(r"^ *seeded!\(\"[^;\n]*;\n", "", text, flags=re.MULTILINE)
    while (begin := text.find("seeded!(")) >= 0:
        inside = begin + len("seeded!(")
        end, depth = inside, 1
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        right = re.split(r",\s*\"[\w-]+\" =>", text[inside : end - 1])[0]
        text = text[:begin] + right + text[end:]
    formatter = ["rustfmt", "--edition", "2024", "--config", "use_small_heuristics=Max"]
    done = subprocess.run(formatter, input=text, capture_output=True, text=True, check=True)
    return done.stdout


def stale(bugs: list[Bug], root: Path) -> list[str]:
    """The bugs whose text is not in the sources exactly once, or which change nothing."""
    wrong = []
    for bug in bugs:
        file = root / bug.file
        changed = bug.changed(file.read_text()) if file.exists() else 0
        if isinstance(changed, int):
            wrong.append(f"{bug.name}: its text is {changed} times in {bug.file}, must be once")
        elif bug.old == bug.new:
            wrong.append(f"{bug.name}: changes nothing")
    names = [bug.name for bug in bugs]
    wrong += [f"{name}: two bugs of this name" for name in set(names) if names.count(name) > 1]
    return sorted(wrong)
