"""Finding the directories of the logs at the paths of a read.

Every node must see the paths as files. A URL ``s3://``, ``gs://`` or ``az://`` is an archive's.
"""

from __future__ import annotations

import glob
import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias, TypeVar
from urllib.parse import unquote, urlsplit

from deedbook import InvalidArgumentError
from deedbook._core import _LOOKED_FOR
from deedbook._formats import detect, missing
from deedbook.spark._options.options import NO_TABLE

__all__ = [
    "Look",
    "archive_url",
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
    """A path, and the entries found there by a single look for all formats."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def at(cls, path: Path | Look) -> Look:
        """A look at a path, or the existing look."""
        return path if isinstance(path, Look) else cls(path)

    @cached_property
    def is_dir(self) -> bool:
        """Whether the path is a directory."""
        return self.path.is_dir()

    @cached_property
    def children(self) -> list[Look]:
        """The directories in the path, with digits in their names by value.

        Names with a leading ``.`` are left out, because an unfinished log has a name like this.
        """
        with os.scandir(self.path) as entries:
            names = [one.name for one in entries if one.is_dir() and not one.name.startswith(".")]
        return [Look(self.path / name) for name in sorted(names, key=_natural)]

    @cached_property
    def format(self) -> str | None:
        """The name of the format of the log at the path, if any. Raises as `find`."""
        return detect(self.path)


def input_paths(options: Mapping[str, str]) -> list[str]:
    """The user's paths: ``load(path)``, ``load([a, b])`` or option ``path``.

    `InvalidArgumentError` without a path.
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
        of_sail = " Sail leaves out a list of paths: use a glob." if "pysail" in sys.modules else ""
        raise InvalidArgumentError(
            "option path is missing; allowed: a log, a directory of logs, or a glob of them,"
            f" as in .load(path).{of_sail} CREATE TABLE ... USING deedbook {NO_TABLE}"
        )
    return paths


def find_logs(paths: list[str], expand: Callable[[Path], list[Log]]) -> list[Log]:
    """The logs at ``paths``, in order; ``expand`` finds the logs at an absolute path.

    An existing path is taken literally, any other path as a glob. Matches of a glob without a log
    are skipped. Raises `MissingError` if a path leads to no log, and `InvalidArgumentError` for a
    URL of another scheme than ``file``.
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
    """A path, or a name, escaped for Spark's globs."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def file_url(path: str | os.PathLike[str]) -> str:
    """The URL by which Spark reads exactly this path, and no further matches of a glob."""
    return f"file://{escape_glob(os.fspath(path))}"


def archive_url(given: str) -> str | None:
    """The URL of an archive, or of a catalog of archives; None for other paths."""
    if os.path.lexists(given):
        return None
    if re.match(r"(s3|gs|az)://", given):
        return given.rstrip("/")
    if not re.match("file:", given, re.IGNORECASE):
        return None
    place = local_path(given)
    is_archive = (place / "manifest.json").is_file() and (place / "pieces").is_dir()
    is_catalog = (place / "catalog" / f"{1:020d}.json").is_file()
    return place.as_uri() if is_archive or is_catalog else None


def local_path(given: str, what: str = "path") -> Path:
    """The file of a path or of a file's URL; ``what`` is the file's name in the error.

    A colon alone makes no URL, because names may have times in them.
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
