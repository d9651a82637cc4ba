"""The exceptions of Deedbook, one to one with the `ErrorKind` of the Rust core.

Every exception carries the place and, for writes, the durability:

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
    """Base of all errors raised by Deedbook: catch it for any failure of a log.

    ``kind``: the name of the error kind, for example ``"corrupt"``. ``format``: the log format, for
    example ``"book"``, ``path``: the file concerned, and ``offset``: the byte in the file; None if
    there is none. ``durable``: after a write ``"no"`` (not in the log) or ``"unknown"`` (possibly
    in the log after a restart; reopen the log and look), else None.
    """

    kind: str = "error"
    format: str | None = None
    path: str | None = None
    offset: int | None = None
    durable: str | None = None


class IoError(Error, OSError):
    """The operating system refused an operation, or a function of the caller failed.

    ``errno`` and ``filename`` are set if the system gave a number. The exception of a function is
    the ``__cause__``. Remove the cause (space, permissions, the function) and try again. A failed
    sync poisons the handle (`PoisonedError`): reopen the log first.
    """

    kind = "io"


class MissingError(IoError, FileNotFoundError):
    """The log, or one of its files, does not exist.

    Raised on opening for reading, and by checks. Compare the path; mode ``"a"`` creates the log.
    Put a lost log back from a copy.
    """

    kind = "missing"


class AlreadyExistsError(IoError, FileExistsError):
    """A log is created in the place of an existing one, or a copy would replace a file.

    Raised by ``create``, mode ``"x"``, salvages and exports, which replace nothing. Open the log
    with mode ``"a"``, or name another path.
    """

    kind = "already_exists"


class NotALogError(Error):
    """The file is not of the format: wrong magic, version, size, file type, or another log.

    Raised on opening and checking; nothing was changed. Compare the path. The text names the format
    found at the path, if any, and `deedbook.open` opens all formats.
    """

    kind = "not_a_log"


class UnsupportedError(Error):
    """This version cannot do the operation with the file's layout.

    Raised for an LMDB environment opened as a book, a read-only layout, or a truncation of a single
    file. The text names an alternative, such as converting or migrating.
    """

    kind = "unsupported"


class CorruptError(Error):
    """Damage with intact records after it; ``next_intact`` is the byte of the next one.

    ``reason`` names the cause, with both values. Raised by reads of the damage, and on opening for
    appending; nothing was changed. ``verify`` lists all damage, ``on_corrupt="skip"`` reads past
    it, ``salvage`` copies the intact records to a new log.
    """

    kind = "corrupt"
    reason: str | None = None
    next_intact: int | None = None


class LostRecordsError(CorruptError):
    """Records acknowledged as durable are missing or damaged.

    Raised on opening for appending: new records must not take the lost ones' place unseen. Nothing
    was changed. Put the log back from a copy with the records, or let ``repair`` go on without them
    (``accept_loss=True``); ``recovery.loss`` keeps a note of the loss.
    """

    kind = "lost_records"


class LockedError(Error):
    """Another writer holds the log; ``holder`` is its process id, if known.

    Raised on opening for writing, and by repairs. A log has one writer: let the writer end, or send
    your records to it, or wait with ``lock_timeout``. Reading needs no lock. The lock ends with the
    writer's process.
    """

    kind = "locked"
    holder: int | None = None


class PoisonedError(Error):
    """An earlier sync of this handle failed, or a write that could not be removed again.

    The contents of the disk are then unknown. Raised by each later write; reads go on. Remove the
    cause, close the handle and open the log again: opening finds the records on the disk.
    ``durable`` is ``"no"`` for a later append, which was never begun, and ``"unknown"`` for a sync.
    """

    kind = "poisoned"


class ReadOnlyError(Error):
    """A write through a handle opened for reading.

    Nothing was written. Open the log with mode ``"a"``.
    """

    kind = "read_only"


class ClosedError(Error, ValueError):
    """A call on a closed handle.

    Raised after ``close`` or the end of a ``with`` block. Open the log again.
    """

    kind = "closed"


class ForkedError(Error):
    """A call in a child process, on a handle opened before the fork.

    The handle stays the parent's. Open the log in the child, or start processes by ``spawn``.
    """

    kind = "forked"


class OutOfRangeError(Error, IndexError):
    """No record has that number, or no record begins at that position.

    Raised by reads and truncations; ``bounds`` has the first and last record. A prefix may have
    been dropped meanwhile.
    """

    kind = "out_of_range"


class ContiguityError(Error):
    """An event number that would leave a gap, or repeat a number; or an epoch that differs.

    Raised by appends with an expected number, and by `Pier.roll` if the last epoch is empty;
    nothing was appended. Compare with ``last``: another writer may have gone on.
    """

    kind = "contiguity"


class TooLargeError(Error, ValueError):
    """A record, or the size of a request, is beyond the format's or the caller's limit.

    Nothing of the record was written. Raise the limit given on opening, or split the payload.
    """

    kind = "too_large"


class InvalidArgumentError(Error, ValueError):
    """An argument outside its domain.

    Nothing was done. The text names the argument, its value and the allowed values.
    """

    kind = "invalid_argument"


for _name in __all__:
    # Shown and pickled by the public name, also in Spark's errors.
    globals()[_name].__module__ = "deedbook"
