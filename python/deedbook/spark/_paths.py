"""From the paths of a read to the directories of its logs.

Only paths that every node sees as files: no ``s3://`` or ``hdfs://``.
"""

from __future__ import annotations

import glob
import json
import os
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

from deedbook import InvalidArgumentError
from deedbook._core import _LOOKED_FOR
from deedbook._formats import detect, missing
from deedbook.spark._options import NO_TABLE

__all__ = [
    "Look",
    "escape_glob",
    "file_url",
    "find_logs",
    "input_paths",
    "local_path",
    "natural_key",
]

Log = TypeVar("Log")
_Natural: TypeAlias = "tuple[tuple[int, int, str], ...]"
_DIGITS: Final = re.compile(r"([0-9]+)")


class Look:
    """A path, and what was seen there: looked at once, whichever formats ask."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def at(cls, path: Path | Look) -> Look:
        """A look at a path, or the one that there is."""
        return path if isinstance(path, Look) else cls(path)

    @cached_property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return self.path.is_dir()

    @cached_property
    def children(self) -> list[Look]:
        """The directories in it, with digits in their names by value.

        Not those whose names begin with ``.``: an unfinished log is made under such a name.
        """
        with os.scandir(self.path) as entries:
            names = [one.name for one in entries if one.is_dir() and not one.name.startswith(".")]
        return [Look(self.path / name) for name in sorted(names, key=_natural)]

    @cached_property
    def format(self) -> str | None:
        """The name of the format of the log there, if one is. Raises as `find`."""
        return detect(self.path)


def input_paths(options: Mapping[str, str]) -> list[str]:
    """The paths that the user gave: ``load(path)``, ``load([a, b])`` or option ``path``.

    `InvalidArgumentError` where there is none.
    """
    paths: list[str] = []
    if options.get("path"):
        paths.append(options["path"])
    if options.get("paths"):
        try:
            listed = json.loads(options["paths"])
        except ValueError:
            listed = None
        if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
            raise InvalidArgumentError(
                f"option paths: {options['paths']!r} is not allowed; allowed: a JSON array of paths"
            )
        paths.extend(listed)
    if not paths:
        raise InvalidArgumentError(
            "option path is missing; allowed: a log, a directory of logs, or a glob of them,"
            f" as in .load(path). CREATE TABLE ... USING deedbook {NO_TABLE}"
        )
    return paths


def find_logs(paths: list[str], expand: Callable[[Path], list[Log]]) -> list[Log]:
    """The logs at ``paths``, in the order of the paths; ``expand`` finds those at an absolute one.

    A path that exists is taken literally, otherwise as a glob; of what a glob matches, whatever
    holds no log is passed over. Raises `MissingError` where a path leads to no log, and
    `InvalidArgumentError` for a URL that is not of a file.
    """
    logs: list[Log] = []
    for given in paths:
        path = local_path(given, "option path")
        if os.path.lexists(path):
            matches = [path]
        elif glob.has_magic(str(path)):
            matches = sorted(map(Path, glob.glob(str(path), recursive=True)), key=natural_key)
            if not matches:
                raise missing("the glob matches nothing", path)
        else:
            raise missing("no such file or directory", path)
        found = [log for match in matches for log in expand(match)]
        if not found:
            raise missing(
                f"no log there (looked for {_LOOKED_FOR}, also one directory below)",
                path,
            )
        logs.extend(found)
    return logs


def natural_key(path: Path) -> tuple[_Natural, ...]:
    """A sort key that orders digits in names by value: ``0i9`` before ``0i10``."""
    return tuple(map(_natural, path.parts))


def _natural(name: str) -> _Natural:
    return tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part)
        for part in _DIGITS.split(name)
        if part
    )


def escape_glob(path: str) -> str:
    """A path, or a name, as Spark takes it where it expects a glob."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def file_url(path: str | os.PathLike[str]) -> str:
    """The URL by which Spark reads this path, and no other that it would match as a glob."""
    return f"file://{escape_glob(os.fspath(path))}"


def local_path(given: str, what: str = "path") -> Path:
    """The file that a path names, which may be a URL of a file; ``what`` names it in the error.

    A colon alone makes no URL: names may have times in them.
    """
    scheme = re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/|file:", given, re.IGNORECASE)
    if scheme is None or os.path.lexists(given):
        return Path(os.path.abspath(given))
    url = urlsplit(given)
    if url.scheme.lower() != "file" or url.netloc not in ("", "localhost"):
        raise InvalidArgumentError(
            f"{what}: {given!r} is not allowed; allowed: paths of files that every node sees, with"
            " or without file://"
        )
    return Path(os.path.abspath(unquote(url.path)))
