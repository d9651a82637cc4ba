"""The arrows between the files of ``src``: imports and paths, with re-exports resolved."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

Name = tuple[str, ...]

# Comments, strings and characters: paths inside do not count.
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', re.DOTALL)
UNIT_TESTS = re.compile(r"#\[cfg\(test\)\]\s*mod \w+ \{.*", re.DOTALL)
USE = re.compile(r"(?P<public>pub(?:\([^)]*\))?\s+)?use\s+(?P<tree>[^;]+);")
# `pub(in crate::wal)` limits who sees a name, and uses nothing.
VISIBLE = re.compile(r"\bpub\(in [^)]*\)")
PATH = re.compile(r"\b(?:crate|super|self)(?:\s*::\s*(?:\w+))+")
# A parent names a child without `self`.
CHILD = re.compile(r"^\s*(?:pub(?:\([^)]*\))?\s+)?mod (\w+);", re.MULTILINE)


class Module:
    """A Rust file, with the re-exports and the used paths."""

    def __init__(self, name: Name, file: Path) -> None:
        self.name, self.file = name, file
        text = UNIT_TESTS.sub("", NOISE.sub("", file.read_text("utf-8")))
        self.exports: dict[str, Name] = {}
        self.globs: list[Name] = []
        self.imports: dict[str, Name] = {}
        self.uses: set[Name] = set()
        for found in USE.finditer(text):
            for path, alias in leaves(found["tree"]):
                if found["public"] and path[-1] == "*":
                    self.globs.append(path[:-1])
                elif found["public"]:
                    self.exports[alias] = path
                else:
                    self.imports[alias] = path
                    self.uses.add(path)
        self.text = rest = VISIBLE.sub("", USE.sub("", text))
        self.uses.update(tuple(re.split(r"\s*::\s*", path[0])) for path in PATH.finditer(rest))
        for child in CHILD.findall(rest):
            used = re.findall(rf"(?<!::)(?<!\w)\b{child}::(\w+)", rest)
            self.uses.update((child, name) for name in used)


def leaves(tree: str) -> Iterator[tuple[Name, str]]:
    """Give each path of a ``use``, and the path's name in the file."""
    tree = tree.strip()
    head, brace, inside = tree.partition("{")
    if not brace:
        path, _, alias = tree.partition(" as ")
        name = tuple(part.strip() for part in path.split("::"))
        if len(name) > 1 and name[-1] == "self":
            name = name[:-1]
        yield name, alias.strip() or name[-1]
        return
    before = tuple(part.strip() for part in head.split("::") if part.strip())
    for part in split(inside[: inside.rindex("}")]):
        for path, alias in leaves(part):
            if path == ("self",):
                yield before, before[-1]
            else:
                yield (*before, *path), alias


def split(text: str) -> Iterator[str]:
    """Split at the commas outside of braces."""
    depth, begin = 0, 0
    for at, letter in enumerate(text):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            yield text[begin:at]
            begin = at + 1
    if text[begin:].strip():
        yield text[begin:]


class Crate:
    """The modules of a crate."""

    def __init__(self, src: Path) -> None:
        self.src = src
        self.modules: dict[Name, Module] = {}
        for file in sorted(src.rglob("*.rs")):
            name = file.relative_to(src).with_suffix("").parts
            if name[-1] in ("mod", "lib"):
                name = name[:-1]
            self.modules[name] = Module(name, file)

    def arrows(self) -> dict[str, set[str]]:
        """Give the files that each file uses."""
        arrows: dict[str, set[str]] = defaultdict(set)
        for module in self.modules.values():
            for path in module.uses:
                used = self.find(module.name, path)
                if used is not None and used != module.name:
                    arrows[self.file(module.name)].add(self.file(used))
        return dict(arrows)

    def file(self, name: Name) -> str:
        """Name the file of a module."""
        return self.modules[name].file.relative_to(self.src).as_posix()

    def find(self, at: Name, path: Name, depth: int = 0) -> Name | None:
        """Find the module with the definition for a path in the module ``at``."""
        if depth > 20:
            return None
        first, rest = path[0], path[1:]
        if first == "crate":
            here: Name = ()
        elif first == "self":
            here = at
        elif first == "super":
            here = at[:-1]
            while rest and rest[0] == "super":
                here, rest = here[:-1], rest[1:]
        elif (*at, first) in self.modules:
            here = (*at, first)
        elif first in self.modules[at].imports and self.modules[at].imports[first] != path:
            return self.find(at, self.modules[at].imports[first] + rest, depth + 1)
        else:
            return None  # another crate
        while rest:
            child = (*here, rest[0])
            module = self.modules.get(here)
            if child in self.modules and not (module and rest[0] in module.exports):
                here, rest = child, rest[1:]
                continue
            if module is None:
                return None
            if rest[0] in module.exports:
                found = self.find(here, module.exports[rest[0]] + rest[1:], depth + 1)
                return found if found is not None else here
            for glob in module.globs:
                found = self.find(here, (*glob, rest[0]), depth + 1)
                if found is not None and found != here:
                    return found
            return here
        return here if here in self.modules else None


def circles(arrows: dict[str, set[str]]) -> list[list[str]]:
    """Give the groups of files that use each other, largest first (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(file: str) -> None:
        index[file] = low[file] = len(index)
        stack.append(file)
        for used in sorted(arrows.get(file, ())):
            if used not in index:
                visit(used)
                low[file] = min(low[file], low[used])
            elif used in stack:
                low[file] = min(low[file], index[used])
        if low[file] == index[file]:
            group = stack[stack.index(file) :]
            del stack[stack.index(file) :]
            if len(group) > 1:
                found.append(sorted(group))

    for file in sorted(arrows):
        if file not in index:
            visit(file)
    return sorted(found, key=len, reverse=True)
