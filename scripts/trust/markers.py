"""The promises, and the tests with markers of proved promises.

``tests/promises.txt`` has the promises. A comment ``// Promise: NAME.`` above a Rust test, or above
a part of ``examples/power``, names the promise proved by the test. A Python test, or a file of
tests, has the marker ``pytest.mark.promise("NAME")``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

TABLE = "tests/promises.txt"
_NAMED = re.compile(r"^\s*// Promise: ([\w, -]+)\.$")
_TEST = re.compile(r"^\s*(?:pub )?(?:async )?fn (\w+)\(")
_PART = re.compile(r'^\s*\("(\w+)", ')


@dataclass(frozen=True)
class Promise:
    """One promise: the outcome of a fault."""

    name: str
    outcome: str
    fault: str
    note: str = ""


@dataclass
class Section:
    """The promises of one kind of log."""

    heading: str
    promises: list[Promise] = field(default_factory=list)


def outcomes(root: Path) -> str:
    """The meaning of the outcomes' letters."""
    comments = [line[2:] for line in _lines(root) if line.startswith("# ")]
    return " ".join(comments).partition("Outcomes. ")[2]


def sections(root: Path) -> list[Section]:
    """The table of promises."""
    found: list[Section] = []
    for line in _lines(root):
        if line.startswith("## "):
            found.append(Section(line[3:]))
        elif line and not line.startswith("#"):
            found[-1].promises.append(Promise(*line.split(" | ")))
    return found


def _lines(root: Path) -> list[str]:
    return (root / TABLE).read_text(encoding="utf-8").splitlines()


def proofs(root: Path) -> dict[str, list[str]]:
    """The tests that prove each promise, by the promise's name.

    A test is ``engine::crash::NAME`` (program, module below, name), ``lib::NAME``, ``capi::NAME``,
    ``models::NAME``, ``py:FILE``, ``py:FILE::NAME`` or ``power:PART``.
    """
    found: dict[str, list[str]] = {}
    for promise, test in _of_rust(root):
        found.setdefault(promise, []).append(test)
    for promise, test in _of_python(root):
        found.setdefault(promise, []).append(test)
    return {name: sorted(set(tests)) for name, tests in found.items()}


def _of_rust(root: Path) -> Iterator[tuple[str, str]]:
    for top in ("src", "capi/tests", "tests", "examples/power"):
        for file in sorted((root / top).rglob("*.rs")):
            named: list[str] = []
            for line in file.read_text(encoding="utf-8").splitlines():
                if marker := _NAMED.match(line):
                    named = marker[1].split(", ")
                elif named and (test := _TEST.match(line) or _PART.match(line)):
                    name = _place(file.relative_to(root)) + test[1]
                    yield from ((promise, name) for promise in named)
                    named = []


def _place(file: Path) -> str:
    """The prefix of the names of a file's tests."""
    top, *rest = file.parts
    if top == "src":
        return "lib::"
    if top == "capi":
        return "capi::"
    if top == "examples":
        return "power:"
    modules = [part.removesuffix(".rs") for part in rest[:2]]
    return "".join(f"{name}::" for name in modules if name not in ("main", "mod"))


def python_tests(root: Path) -> list[Path]:
    """The files of Python tests. No two rooms of tests/python have a file of the same name."""
    return sorted((root / "tests" / "python").rglob("test_*.py"), key=lambda file: file.name)


def _of_python(root: Path) -> Iterator[tuple[str, str]]:
    for file in python_tests(root):
        for statement in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(statement, ast.Assign):
                names = [target.id for target in statement.targets if isinstance(target, ast.Name)]
                if names == ["pytestmark"]:
                    yield from ((name, f"py:{file.name}") for name in _marked(statement.value))
            elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                test = f"py:{file.name}::{statement.name}"
                marks = (name for mark in statement.decorator_list for name in _marked(mark))
                yield from ((name, test) for name in marks)


def _marked(marks: ast.expr) -> Iterator[str]:
    """The promises named by marks."""
    for call in ast.walk(marks):
        is_mark = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)
        if is_mark and call.func.attr == "promise":
            yield from (each.value for each in call.args if isinstance(each, ast.Constant))


def wrong(root: Path) -> list[str]:
    """Duplicate names of promises, and markers without a promise."""
    known = [promise.name for section in sections(root) for promise in section.promises]
    twice = {f"{name}: two promises of this name" for name in known if known.count(name) > 1}
    found = proofs(root).items()
    unknown = {f"{tests[0]}: no promise {name}" for name, tests in found if name not in known}
    return sorted(twice | unknown)
