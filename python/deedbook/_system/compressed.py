"""Files of lines, plain or compressed: gzip, and zstd if a module is installed."""

from __future__ import annotations

import contextlib
import gzip
import importlib
import io
import os
import stat
import zlib
from collections.abc import Callable
from typing import Any, Final, Protocol

from deedbook._errors import InvalidArgumentError

__all__ = [
    "CompressionError",
    "Inflater",
    "Reader",
    "Writer",
    "inflater_for",
    "is_same",
    "is_too_short",
    "read_all",
    "refuse_same",
    "zstd",
]

_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_READ_BYTES: Final = 1 << 20


class _Readable(Protocol):
    def read(self, size: int, /) -> Any: ...


def zstd(what: str) -> Any:
    """The standard library's module since Python 3.14, or its backport.

    Raises ImportError with ``what`` as the reason.
    """
    for name in ("compression.zstd", "backports.zstd"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise ImportError(f"{what} needs Python 3.14, or: pip install 'deedbook[zstd]'")


def is_same(one: Any, other: Any) -> bool:
    """Whether two paths, descriptors or open files are the same regular file."""
    found = _status(one), _status(other)
    return None not in found and stat.S_ISREG(found[0].st_mode) and os.path.samestat(*found)


def _status(file: Any) -> Any:
    """The status; None for a missing file, or an object without a file of the operating system."""
    try:
        return os.stat(file if isinstance(file, int | str | os.PathLike) else file.fileno())
    except (OSError, AttributeError, ValueError):  # io.UnsupportedOperation is both of the last
        return None


def refuse_same(source: Any, aside: Any) -> None:
    """Raise `InvalidArgumentError` if bad lines would go to the end of an input."""
    if is_same(source, aside):
        raise InvalidArgumentError("aside is the file that is read: bad lines would come again")


class Reader:
    """Reads a path or a binary file. The first bytes show the compression.

    A file that was given stays open.
    """

    def __init__(self, source: str | os.PathLike[str] | _Readable) -> None:
        self._owned: io.IOBase | None = None
        self.name = _name(source)
        """The name for errors; None without a name."""
        if isinstance(source, str | bytes | os.PathLike):
            source = self._owned = open(source, "rb", buffering=0)  # noqa: SIM115
        elif not hasattr(source, "read"):
            name = type(source).__name__
            raise TypeError(f"a path or a binary file is needed, not {name!r}")
        self._file = source
        self._first = b""
        """The first bytes of a plain file, until the first read."""
        try:
            while is_too_short(self._first) and (more := self._pull(len(_ZSTD))):
                self._first += more
            self._inflater = inflater_for(self._first)
        except BaseException:
            self.close()
            raise
        if self._inflater is not None:
            self._inflater.feed(self._first)

    def read(self, size: int) -> bytes:
        """Some bytes, as many as are there; none at the end.

        Raises OSError, `CompressionError`, and EOFError if compressed bytes end too early.
        """
        if self._inflater is None:
            given, self._first = self._first[:size], self._first[size:]
            return given or self._pull(size)
        while not (plain := self._inflater.read(size)):
            data = self._pull(_READ_BYTES)
            if not data:
                if self._inflater.is_within:
                    raise EOFError(
                        "Compressed file ended before the end-of-stream marker was reached"
                    )
                break
            self._inflater.feed(data)
        return plain

    def _pull(self, size: int) -> bytes:
        data = self._file.read(size)
        if not isinstance(data, bytes):
            raise TypeError(f"a binary file is needed, whose read gives bytes, not {data!r:.40}")
        return data

    def close(self) -> None:
        """Close the file, unless the caller opened the file."""
        if self._owned is not None:
            self._owned.close()


def _name(source: Any) -> str | None:
    if isinstance(source, str | bytes | os.PathLike):
        return os.fsdecode(source)
    name = getattr(source, "name", None)  # a number, where a descriptor was opened
    return name if isinstance(name, str) else None


class CompressionError(ValueError):
    """Unreadable compressed bytes, in words."""


class Inflater:
    """Decompresses bytes as they come, in pieces of limited size.

    Several compressed files may follow each other.
    """

    def __init__(self, kind: str, new: Callable[[], Any]) -> None:
        self.kind = kind
        """The name."""
        self._new = new
        self._current: Any = None
        self._ahead = b""

    def feed(self, data: bytes) -> None:
        """Take more compressed bytes."""
        self._ahead += data

    def read(self, size: int) -> bytes:
        """At most ``size`` plain bytes; empty without enough input. Raises `CompressionError`."""
        while True:
            if self._current is None:
                self._ahead = self._ahead.lstrip(b"\0")  # gzip allows zeros at the end
                if not self._ahead:
                    return b""
                self._current = self._new()
            ahead, self._ahead = self._ahead, b""
            try:
                plain: bytes = self._current.decompress(ahead, size)
            except Exception as error:  # each library has its own
                raise CompressionError(f"{self.kind}: {error}") from error
            if self._current.eof:
                self._ahead, self._current = self._current.unused_data, None
            else:
                self._ahead = getattr(self._current, "unconsumed_tail", b"")
            if plain or (self._current is not None and not self._ahead):
                return plain

    @property
    def is_within(self) -> bool:
        """Whether more compressed bytes must follow."""
        return self._current is not None


def is_too_short(first: bytes) -> bool:
    """Whether more bytes are needed to detect the compression of an input."""
    return first not in (_GZIP, _ZSTD) and any(kind.startswith(first) for kind in (_GZIP, _ZSTD))


def inflater_for(first: bytes) -> Inflater | None:
    """The reader for an input that begins with these bytes; None for plain bytes.

    Raises ImportError without a module.
    """
    if first.startswith(_GZIP):
        return Inflater("gzip", lambda: zlib.decompressobj(16 + zlib.MAX_WBITS))
    if first.startswith(_ZSTD):
        return Inflater("zstd", zstd("reading zstd").ZstdDecompressor)
    return None


def read_all(path: str | os.PathLike[str]) -> bytes:
    """The content of a file. Raises OSError."""
    reader = Reader(path)
    try:
        parts = []
        while data := reader.read(_READ_BYTES):
            parts.append(data)
    finally:
        reader.close()
    return b"".join(parts)


class Writer:
    """Writes to a path or a binary file. A new path's suffix (.gz, .zst) tells how to compress.

    With ``append``, writes go to the end of the file, and the first write creates the file. Without
    ``append``, the file must be new.
    """

    def __init__(self, target: Any, append: bool = False) -> None:
        self._path: Any = None
        if isinstance(target, str | bytes | os.PathLike):
            self._path = os.fspath(target)
        elif not hasattr(target, "write"):
            name = type(target).__name__
            raise TypeError(f"a path or a binary file is needed, not {name!r}")
        self._append = append
        self._own: Any = None
        self._file: Any = target if self._path is None else None
        if self._path is not None and not append:
            self._open()

    def write(self, data: bytes) -> None:
        """Write all of it."""
        if self._file is None:
            self._open()
        rest = memoryview(data)
        while rest:
            written = self._file.write(rest)
            rest = rest[len(rest) if written is None else written :]

    def close(self, complete: bool) -> None:
        """Finish the file. An incomplete new file is removed."""
        kept = self._append
        try:
            if self._own is not None:
                if self._file is not self._own:
                    self._file.close()  # of the compression: what it still holds is written
                self._own.flush()
                if complete:
                    os.fsync(self._own.fileno())
                    kept = True
        except OSError as error:
            error.filename = error.filename or self._path
            raise
        finally:
            if self._own is not None:
                with contextlib.suppress(OSError):  # of bytes that could not be written above
                    self._own.close()
                if not kept:
                    os.unlink(self._path)

    def _open(self) -> None:
        name = os.fsdecode(self._path)
        compressed = zstd("writing zstd") if name.endswith(".zst") else None
        mode = "ab" if self._append else "xb"
        self._own = self._file = open(self._path, mode, buffering=0)  # noqa: SIM115
        if name.endswith((".gz", ".zst")):
            # GzipFile and ZstdFile ignore how much a write took; a buffer writes the rest.
            self._own = io.BufferedWriter(self._own)
        if name.endswith(".gz"):
            self._file = gzip.GzipFile("", "wb", 6, self._own, 0)
        elif compressed is not None:
            self._file = compressed.ZstdFile(self._own, "w")
