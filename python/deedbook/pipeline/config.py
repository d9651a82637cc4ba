"""The file that describes a pipeline."""

from __future__ import annotations

import difflib
import glob
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from deedbook import InvalidArgumentError
from deedbook._amounts import duration

__all__ = ["Config", "Source", "load"]

Kind = Literal["lines", "log"]
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,40}")
_TABLES: Final = ("parquet", "delta")
_BRONZE: Final = {"lines": ("nostr", "book", "wal"), "log": ("book", "wal")}
_CHECKS: Final = ("id", "signature")
_ON_LOSS: Final = ("fail", "go on")
_OF_LOGS: Final = ("consumer", "on_loss")
_RESERVED: Final = ("silver", "gold", "run")


@dataclass(frozen=True)
class Source:
    """One source of events."""

    name: str
    kind: Kind
    path: Path
    bronze: str
    """Format of its bronze log."""
    check: str
    """What is checked of an event."""
    consumer: str | None = None
    """Of a WAL: the consumer for which it keeps what was not read yet."""
    goes_on: bool = False
    """Of a log: whether it goes on where what was not read yet is gone, or fails."""


@dataclass(frozen=True)
class Config:
    """A pipeline. Paths are absolute."""

    file: Path
    name: str
    directory: Path
    trigger_seconds: float
    """In continuous mode a round begins at most so often."""
    lateness_seconds: float
    """An event is late that is older than the newest one before its batch, less this."""
    window_seconds: int
    """Gold counts by windows of this length, which begin with 1970."""
    batch_bytes: int
    checkpoints: Path
    """Where Spark's checkpoints are."""
    sources: tuple[Source, ...]
    tables: tuple[Literal["parquet", "delta"], ...]


def load(path: str | os.PathLike[str]) -> Config:
    """Read a pipeline's file; relative paths are relative to it.

    Raises OSError, and `InvalidArgumentError` with the key, its value and what is allowed.
    """
    file = Path(os.path.abspath(path))
    data = file.read_bytes()
    toml: Any = _toml()
    try:
        found = toml.loads(data.decode())
    except (UnicodeDecodeError, toml.TOMLDecodeError) as error:
        raise InvalidArgumentError(f"{file}: {error}") from error
    return _Parser(file).config(found)


def _toml() -> Any:
    """The standard library's module since Python 3.11, or the one that it was made of."""
    import importlib

    name = "tomllib" if sys.version_info >= (3, 11) else "tomli"
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InvalidArgumentError(
            "a pipeline's file needs Python 3.11, or: pip install 'deedbook[pipeline]'"
        ) from error


class _Parser:
    def __init__(self, file: Path) -> None:
        self._file = file

    def config(self, found: Mapping[str, Any]) -> Config:
        self._known("", found, ("pipeline", "source", "tables"))
        pipeline = self._table(found, "pipeline")
        self._known(
            "pipeline",
            pipeline,
            (
                *("name", "directory", "checkpoints"),
                *("trigger", "lateness", "window", "batch_bytes"),
            ),
        )
        tables = self._table(found, "tables", {})
        self._known("tables", tables, ("silver",))
        silver = tables.get("silver", ["parquet"])
        if not isinstance(silver, list) or not silver or any(one not in _TABLES for one in silver):
            raise self._wrong("tables.silver", silver, 'a list of "parquet" and "delta"')
        sources = found.get("source", [])
        if not isinstance(sources, list) or not sources:
            raise self._wrong("source", sources, "at least one [[source]]")
        parsed = tuple(self._source(number, one) for number, one in enumerate(sources, 1))
        names = [one.name for one in parsed]
        for name in names:
            if names.count(name) > 1:
                raise self._wrong("source.name", name, "a name of its own for each source")
        size = pipeline.get("batch_bytes", 1 << 28)
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise self._wrong("pipeline.batch_bytes", size, "bytes, from 1 up")
        window = self._seconds("pipeline.window", pipeline.get("window", "1 hour"))
        if window == 0:
            raise self._wrong("pipeline.window", pipeline["window"], "a second, or longer")
        directory = self._path("pipeline.directory", pipeline.get("directory", "out"))
        given = pipeline.get("checkpoints")
        own = directory / "checkpoints"
        checkpoints = own if given is None else self._path("pipeline.checkpoints", given)
        return Config(
            self._file,
            self._name("pipeline.name", pipeline.get("name", "pipeline")),
            directory,
            self._seconds("pipeline.trigger", pipeline.get("trigger", "5 seconds")),
            self._seconds("pipeline.lateness", pipeline.get("lateness", "1 hour")),
            window,
            size,
            checkpoints,
            parsed,
            tuple(dict.fromkeys(silver)),
        )

    def _source(self, number: int, found: Any) -> Source:
        at = f"source {number}"
        if not isinstance(found, dict):
            raise self._wrong(at, found, "a table [[source]]")
        self._known(at, found, ("name", "lines", "log", "bronze", "check", *_OF_LOGS))
        name = self._name(f"{at}.name", found.get("name"))
        kinds = [kind for kind in _BRONZE if kind in found]
        if len(kinds) != 1:
            raise self._wrong(at, kinds, "one of lines = PATH and log = PATH")
        kind: Any = kinds[0]
        allowed = _BRONZE[kind]
        bronze = found.get("bronze", allowed[0])
        if bronze not in allowed:
            raise self._wrong(f"{at}.bronze", bronze, ", ".join(allowed))
        check = found.get("check", "id")
        if check not in _CHECKS:
            raise self._wrong(f"{at}.check", check, ", ".join(_CHECKS))
        for key in _OF_LOGS:
            if kind != "log" and key in found:
                raise self._wrong(f"{at}.{key}", found[key], "a key of sources with log = PATH")
        consumer, on_loss = found.get("consumer"), found.get("on_loss", _ON_LOSS[0])
        if "consumer" in found and not _is_word(consumer):
            raise self._wrong(f"{at}.consumer", consumer, "a name without white space")
        if on_loss not in _ON_LOSS:
            raise self._wrong(f"{at}.on_loss", on_loss, ", ".join(_ON_LOSS))
        path = self._path(f"{at}.{kind}", found[kind])
        if glob.has_magic(found[kind]) and not path.exists():
            raise self._wrong(f"{at}.{kind}", found[kind], "a file or a directory, and no glob")
        return Source(name, kind, path, bronze, check, consumer, on_loss != _ON_LOSS[0])

    def _table(self, found: Mapping[str, Any], name: str, default: Any = None) -> dict[str, Any]:
        value = found.get(name, default)
        if not isinstance(value, dict):
            raise self._wrong(name, value, f"a table [{name}]")
        return value

    def _known(self, at: str, found: Mapping[str, Any], names: tuple[str, ...]) -> None:
        for key in found:
            if key not in names:
                close = difflib.get_close_matches(key, names, n=1)
                hint = f" (did you mean {close[0]}?)" if close else ""
                where = f"{at}.{key}" if at else key
                raise InvalidArgumentError(
                    f"{self._file}: unknown key {where}{hint}; allowed: {', '.join(names)}"
                )

    def _name(self, at: str, value: Any) -> str:
        if not isinstance(value, str) or not _NAME.fullmatch(value) or value in _RESERVED:
            *some, last = _RESERVED
            reserved = f"{', '.join(some)} or {last}"
            raise self._wrong(
                at, value, f"letters, digits and '-', a letter first, and not {reserved}"
            )
        return value

    def _path(self, at: str, value: Any) -> Path:
        if not isinstance(value, str) or not value:
            raise self._wrong(at, value, "a path")
        return Path(os.path.abspath(self._file.parent / value))

    def _seconds(self, at: str, value: Any) -> int:
        try:
            seconds = duration(value) if isinstance(value, str) else -1
        except ValueError:
            seconds = -1
        if not 0 <= seconds < 2**63 or seconds != int(seconds):
            raise self._wrong(at, value, 'as "5 seconds", "1 minute", "2 hours", "1 day", "10m"')
        return int(seconds)

    def _wrong(self, at: str, value: Any, allowed: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"{self._file}: {at}: {value!r} is not allowed; allowed: {allowed}"
        )


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and len(value.split()) == 1 and value == value.strip()
