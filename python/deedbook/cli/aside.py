"""Files that are written beside their place and renamed: a reader sees the old or the new one."""

from __future__ import annotations

import contextlib
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from deedbook.cli.failure import CliError, describe

__all__ = ["refuse_within", "written_aside"]


@contextmanager
def written_aside(path: str) -> Iterator[BinaryIO]:
    """A file that gets its name when all of it is written; if anything fails, nothing is left.

    What is there and no regular file (a pipe, a device) is written to as it is. Raises `CliError`
    if writing fails, and `BrokenPipeError` if the reader of a pipe went away.
    """
    aside: str | None = None
    try:
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "wb") as file:
                yield file
            return
        folder = os.path.dirname(os.path.abspath(path))
        fd, aside = tempfile.mkstemp(prefix=f".{os.path.basename(path)[:100]}.", dir=folder)
        with open(fd, "wb") as file:
            yield file
            file.flush()
            _set_mode(file.fileno())
            os.fsync(file.fileno())  # else a power cut could leave the name without the bytes
        os.replace(aside, path)
        aside = None
    except BrokenPipeError:  # the reader went away
        raise
    except OSError as error:
        if getattr(error, "kind", None) is not None:  # the log's, not the file's
            raise
        raise CliError(f"cannot write {path}: {_reason(error)}", path=path) from error
    finally:
        if aside is not None:
            with contextlib.suppress(OSError):
                os.unlink(aside)


def refuse_within(command: str, log: str, path: str) -> None:
    """`CliError` if a file to be written is the log, or in its directory."""
    inside, of = os.path.realpath(path), os.path.realpath(log)
    if inside == of or (os.path.isdir(of) and inside.startswith(of + os.sep)):
        raise CliError(f"{command}: {path} lies in the log {log}; choose another file", path=log)


def _reason(error: OSError) -> str:
    return error.strerror or describe(error)


def _set_mode(fd: int) -> None:
    """As of any new file: a temporary one is for its owner alone."""
    if hasattr(os, "fchmod"):
        mask = os.umask(0)
        os.umask(mask)
        os.fchmod(fd, 0o666 & ~mask)
