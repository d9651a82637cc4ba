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
    """Base of all errors raised by Deedbook: catch it for whatever may go wrong with a log.

    ``kind``: the name of the error kind, for example ``"corrupt"``. ``format``: the log format, for
    example ``"book"``, ``path``: the file concerned, and ``offset``: the byte in it; None where
    there is none. ``durable``: of a write ``"no"`` (not in the log) or ``"unknown"`` (it may be in
    the log after a restart; reopen it and look), else None.
    """

    kind: str = "error"
    format: str | None = None
    path: str | None = None
    offset: int | None = None
    durable: str | None = None


class IoError(Error, OSError):
    """The operating system refused an operation, or a function of the caller failed one.

    ``errno`` and ``filename`` are set if the system gave a number; what a function raised is the
    ``__cause__``. Remove the cause (space, permissions, the function) and do it again; after a
    failed sync the handle is poisoned (`PoisonedError`), so reopen the log first.
    """

    kind = "io"


class MissingError(IoError, FileNotFoundError):
    """The log, or a file that belongs to it, does not exist.

    Raised on opening for reading, and by checks. Compare the path; mode ``"a"`` creates the log. If
    it was there, put it back from a copy.
    """

    kind = "missing"


class AlreadyExistsError(IoError, FileExistsError):
    """A log is created where one exists, or a copy is to be written where something lies.

    Raised by ``create``, mode ``"x"``, salvages and exports, which replace nothing. Open the log
    with mode ``"a"``, or name another path.
    """

    kind = "already_exists"


class NotALogError(Error):
    """The file is not of the format: wrong magic, version, size, file type, or another log.

    Raised on opening and checking; nothing was changed. Compare the path; the text names the format
    that lies there, if one does, and `deedbook.open` takes any of them.
    """

    kind = "not_a_log"


class UnsupportedError(Error):
    """The file is of a known layout that this version cannot do this with.

    Raised for an LMDB environment opened as a book, a layout that is only read, or a truncation of
    a single file. The text says what can be done instead, such as converting or migrating.
    """

    kind = "unsupported"


class CorruptError(Error):
    """Damage with intact records after it; ``next_intact`` is the byte of the next one.

    ``reason`` says what is wrong, with both values. Raised by reads that meet the damage, and on
    opening for appending; nothing was changed. ``verify`` lists all damage, ``on_corrupt="skip"``
    reads past it, ``salvage`` copies what is intact to a new log.
    """

    kind = "corrupt"
    reason: str | None = None
    next_intact: int | None = None


class LostRecordsError(CorruptError):
    """Records that were acknowledged as durable are missing or damaged.

    Raised on opening for appending, so that none takes their place unseen; nothing was changed. Put
    the log back from a copy that has them, or let ``repair`` go on without them
    (``accept_loss=True``): the loss stays noted in ``recovery.loss``.
    """

    kind = "lost_records"


class LockedError(Error):
    """Another writer holds the log; ``holder`` is its process id, if known.

    Raised on opening for writing, and by repairs. A log has one writer: let that one end, or send
    it what is to be appended, or wait for it with ``lock_timeout``. Reading needs no lock. A lock
    ends with its process.
    """

    kind = "locked"
    holder: int | None = None


class PoisonedError(Error):
    """An earlier sync of this handle failed, or a write that could not be cut off again.

    What is on the disk is not known then. Raised by each later write; reads go on. Remove the
    cause, close the handle and open the log again: that finds out which records are there.
    ``durable`` is ``"no"`` for a later append, which was never begun, and ``"unknown"`` for a sync.
    """

    kind = "poisoned"


class ReadOnlyError(Error):
    """A write through a handle that was opened for reading.

    Nothing was written. Open the log with mode ``"a"``.
    """

    kind = "read_only"


class ClosedError(Error, ValueError):
    """A call on a closed handle.

    Raised after ``close`` or the end of a ``with`` block. Open the log again.
    """

    kind = "closed"


class ForkedError(Error):
    """A call on a handle that was opened before a fork, in the child.

    The handle stays the parent's. Open the log in the child, or start processes by ``spawn``.
    """

    kind = "forked"


class OutOfRangeError(Error, IndexError):
    """No record with that number, or none begins at that position.

    Raised by reads and truncations; ``bounds`` says which records there are. A prefix may have been
    dropped meanwhile.
    """

    kind = "out_of_range"


class ContiguityError(Error):
    """An event number that would leave a gap, or repeat one; or an epoch that differs.

    Raised by appends that say which number they expect, and by `Pier.roll` where the last epoch is
    empty; nothing was appended. Compare with ``last``: another writer may have gone on.
    """

    kind = "contiguity"


class TooLargeError(Error, ValueError):
    """A record, or what is asked for at once, is beyond the format's or the caller's limit.

    Nothing of the record was written. Raise the limit given on opening, or split the payload.
    """

    kind = "too_large"


class InvalidArgumentError(Error, ValueError):
    """An argument outside its domain.

    Nothing was done. The text names the argument, its value and what is allowed.
    """

    kind = "invalid_argument"


for _name in __all__:
    # Shown, and pickled, by the name that users import; and so in Spark's errors.
    globals()[_name].__module__ = "deedbook"
