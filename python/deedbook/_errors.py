"""The exceptions of Deedbook, one to one with the `ErrorKind` of the Rust core.

Every exception carries the place and, for writes, what is known of durability:

- ``kind``: the name of the error kind, for example ``"corrupt"``.
- ``format``: the log format (``"book"``), or ``None``.
- ``path``: the file concerned, or ``None``.
- ``offset``: the byte in that file, or ``None``.
- ``durable``: for writes ``"no"`` or ``"unknown"``; else ``None``.
"""

from __future__ import annotations

__all__ = [
    "AlreadyExistsError",
    "ClosedError",
    "ContiguityError",
    "CorruptError",
    "Error",
    "ForkedError",
    "InvalidArgumentError",
    "IoError",
    "LockedError",
    "LostRecordsError",
    "MissingError",
    "NotALogError",
    "OutOfRangeError",
    "PoisonedError",
    "ReadOnlyError",
    "TooLargeError",
    "UnsupportedError",
]


class Error(Exception):
    """Base of all errors raised by Deedbook."""

    kind: str = "error"
    format: str | None = None
    path: str | None = None
    offset: int | None = None
    durable: str | None = None


class IoError(Error, OSError):
    """The operating system refused an operation, or a function of the caller failed one.

    ``errno`` and ``filename`` are set if the system gave a number; what a function raised is the
    ``__cause__``.
    """

    kind = "io"


class MissingError(IoError, FileNotFoundError):
    """The log, or a file that belongs to it, does not exist."""

    kind = "missing"


class AlreadyExistsError(IoError, FileExistsError):
    """A log is created where one exists."""

    kind = "already_exists"


class NotALogError(Error):
    """The file is not of the format: wrong magic, version, size, file type, or another log."""

    kind = "not_a_log"


class UnsupportedError(Error):
    """The file is of a known layout that this version cannot read or write."""

    kind = "unsupported"


class CorruptError(Error):
    """Damage with intact records after it; ``next_intact`` is the byte of the next one."""

    kind = "corrupt"
    reason: str | None = None
    next_intact: int | None = None


class LostRecordsError(CorruptError):
    """Records that were acknowledged as durable are missing or damaged."""

    kind = "lost_records"


class LockedError(Error):
    """Another writer holds the log; ``holder`` is its process id, if known."""

    kind = "locked"
    holder: int | None = None


class PoisonedError(Error):
    """An earlier write or sync failed; reopen the log to go on."""

    kind = "poisoned"


class ReadOnlyError(Error):
    """A write through a handle that was opened for reading."""

    kind = "read_only"


class ClosedError(Error, ValueError):
    """A call on a closed handle."""

    kind = "closed"


class ForkedError(Error):
    """A call on a handle that was opened before a fork, in the child."""

    kind = "forked"


class OutOfRangeError(Error, IndexError):
    """No record with that number."""

    kind = "out_of_range"


class ContiguityError(Error):
    """An event number that would leave a gap, or repeat one."""

    kind = "contiguity"


class TooLargeError(Error, ValueError):
    """A record beyond the format's or the caller's limit."""

    kind = "too_large"


class InvalidArgumentError(Error, ValueError):
    """An argument outside its domain."""

    kind = "invalid_argument"


for _name in __all__:
    # Shown, and pickled, by the name that users import; and so in Spark's errors.
    globals()[_name].__module__ = "deedbook"
