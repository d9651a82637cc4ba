"""Input for ``deedbook append``: lines from a file or pipe, gathered into batches.

The first bytes show gzip and zstd: no text in UTF-8 begins with the same bytes.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from deedbook._cli.failure import CliError
from deedbook._cli.signals import Stop
from deedbook._system.compressed import CompressionError, Inflater, inflater_for, is_too_short

READ_BYTES: Final = 1 << 18
"""Bytes asked for in one read."""
BATCH_BYTES_MAX: Final = 16 << 20
"""Bytes after which a batch ends, for any number of lines."""
LINGER_SECONDS: Final = 0.05
"""A line from a slow producer waits at most this long for others to share its commit."""


class Batch(NamedTuple):
    """Consecutive lines of the input, without their newlines."""

    first_line: int
    """Number of the first line, from 1."""
    lines: list[bytes]


def open_input(file: str) -> tuple[int, str]:
    """Open a file, or standard input for ``-``; return the descriptor, and the name for errors.

    Raises `CliError`.
    """
    if file == "-":
        if sys.stdin is None:
            raise CliError("standard input is closed")
        return 0, "standard input"
    try:
        fd = os.open(file, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise CliError(f"{file}: {error.strerror}", path=file) from error
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        os.close(fd)
        raise CliError(f"{file}: is a directory, not a file of lines", path=file)
    return fd, file


class LineSource:
    """Lines from a file descriptor. A last line without a newline counts as a line.

    Raises `CliError` on a read error, and on a line over ``line_bytes_max``. ``option`` is the name
    of the option for the limit.
    """

    def __init__(
        self, fd: int, name: str, *, owned: bool, line_bytes_max: int, option: str | None
    ) -> None:
        self.name = name
        self.bytes_read = 0
        self.total_bytes = _size_if_regular(fd)
        """Size of the input in bytes, if known."""
        self._fd = fd
        self._owned = owned
        self._line_bytes_max = line_bytes_max
        self._option = option
        self._lines = 0
        """Lines read completely."""
        self._partial: list[bytes] = []
        self._partial_bytes = 0
        self._first: bytes | None = b""
        """The first bytes, until the compression is known."""
        self._inflater: Inflater | None = None
        self._has_more = False
        """Whether the inflater has more plain bytes."""

    @classmethod
    def open(cls, file: str, *, line_bytes_max: int, option: str | None = None) -> LineSource:
        """Open a file, or standard input for ``-``. Raises `CliError`."""
        fd, name = open_input(file)
        owned = file != "-"
        return cls(fd, name, owned=owned, line_bytes_max=line_bytes_max, option=option)

    def __enter__(self) -> LineSource:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._owned:
            os.close(self._fd)

    @property
    def is_terminal(self) -> bool:
        """Whether a person types the lines."""
        return os.isatty(self._fd)

    def is_file(self, path: str) -> bool:
        """Whether the input is the file at ``path``, under any name."""
        try:
            return os.path.samestat(os.fstat(self._fd), os.stat(path))
        except OSError:
            return False

    def batches(self, lines_max: int, stop: Stop) -> Iterator[Batch]:
        """Yield the lines in batches of at most ``lines_max``, until the end or a stop.

        A batch is short if the input pauses: no line waits long for a commit. After a stop, no new
        batch begins. Lines read but not yielded are dropped.
        """
        waiting: list[bytes] = []
        waiting_bytes = 0
        first_line = 1
        deadline = 0.0
        ended = False
        while not ended and not stop.requested:
            timeout = max(deadline - time.monotonic(), 0.0) if waiting else None
            ready = self._has_more or stop.wait(self._fd, timeout)
            if ready:
                if not waiting:
                    deadline = time.monotonic() + LINGER_SECONDS
                lines, ended = self._read()
                waiting += lines
                waiting_bytes += sum(map(len, lines))
            paused = not ready or (self.total_bytes is None and time.monotonic() >= deadline)
            all_now = ended or paused or waiting_bytes >= BATCH_BYTES_MAX
            done = 0
            while not stop.requested and (
                len(waiting) - done >= lines_max or (all_now and done < len(waiting))
            ):
                batch = waiting[done : done + lines_max]
                yield Batch(first_line, batch)
                done += len(batch)
                first_line += len(batch)
            waiting_bytes -= sum(map(len, waiting[:done]))
            del waiting[:done]

    def _read(self) -> tuple[list[bytes], bool]:
        """Read once; return the completed lines, and whether the input ended."""
        chunk, ended = self._plain()
        if ended:
            last = [b"".join(self._partial)] if self._partial else []
            self._partial = []
            return last, True
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._partial, lines[0]])
            self._partial, self._partial_bytes = [], 0
        if rest:
            self._partial.append(rest)
            self._partial_bytes += len(rest)
        lengths = [*map(len, lines), self._partial_bytes]
        if max(lengths) > self._line_bytes_max:
            too_long = next(at for at, size in enumerate(lengths, 1) if size > self._line_bytes_max)
            number = self._lines + too_long
            hint = f" ({self._option})" if self._option else ""
            text = f"line {number} of {self.name} is longer than {self._line_bytes_max:,} bytes"
            raise CliError(text + hint, line=number)
        self._lines += len(lines)
        return lines, False

    def _plain(self) -> tuple[bytes, bool]:
        """Some bytes of lines, maybe none yet, and whether the input ended."""
        try:
            if self._has_more:
                assert self._inflater is not None
                return self._inflated(self._inflater), False
            try:
                chunk = os.read(self._fd, READ_BYTES)
            except OSError as error:
                raise CliError(f"cannot read {self.name}: {error.strerror}") from error
            self.bytes_read += len(chunk)
            if self._first is not None:
                self._first, chunk = self._look(self._first + chunk, is_all=not chunk)
                if self._first is not None:
                    return b"", False
                if not chunk:
                    return b"", True
            elif not chunk:
                if self._inflater is not None and self._inflater.is_within:
                    kind = self._inflater.kind
                    raise CompressionError(f"{kind}: the input ends within compressed bytes")
                return b"", True
            if self._inflater is None:
                return chunk, False
            self._inflater.feed(chunk)
            return self._inflated(self._inflater), False
        except (CompressionError, ImportError) as error:
            raise CliError(f"{self.name}: {error}", path=self.name) from error

    def _look(self, first: bytes, *, is_all: bool) -> tuple[bytes | None, bytes]:
        """Detect compression; return the bytes to keep for the next look, and the bytes to read."""
        if not is_all and is_too_short(first):
            return first, b""
        self._inflater = inflater_for(first)
        return None, first

    def _inflated(self, inflater: Inflater) -> bytes:
        plain = inflater.read(READ_BYTES)
        self._has_more = bool(plain)
        return plain


def _size_if_regular(fd: int) -> int | None:
    try:
        found = os.fstat(fd)
    except OSError:
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
