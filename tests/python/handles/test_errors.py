"""The exceptions: one class per kind of the core, with place and durability."""

import errno
import os
import struct
import sys
import zlib
from pathlib import Path

import pytest

import deedbook
from deedbook import AlreadyExistsError, Book, ClosedError, CorruptError, Error, IoError
from log_bytes import make_book, packed
from this_process import held

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")

# Record 2 of three has a wrong payload byte. It begins at byte 43, and record 3 at byte 70.
DAMAGED = bytearray(packed([b"one", b"two", b"three"]))
DAMAGED[43 + 12] ^= 1


def caught(expected: type[Error], call) -> Error:
    with pytest.raises(Error) as info:
        call()
    assert type(info.value) is expected, repr(info.value)
    return info.value


def test_error_kinds_and_classes_match_one_to_one() -> None:
    classes = [
        value
        for value in vars(deedbook).values()
        if isinstance(value, type) and issubclass(value, Error) and value is not Error
    ]
    assert len({value.kind for value in classes}) == len(classes) == 16
    for value in classes:
        words = value.__name__.removesuffix("Error")
        snake = "".join("_" + c.lower() if c.isupper() else c for c in words).lstrip("_")
        assert value.kind == ("not_a_log" if words == "NotALog" else snake)


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (IoError, OSError),
        (deedbook.MissingError, FileNotFoundError),
        (AlreadyExistsError, FileExistsError),
        (ClosedError, ValueError),
        (deedbook.OutOfRangeError, IndexError),
        (deedbook.TooLargeError, ValueError),
        (deedbook.InvalidArgumentError, ValueError),
        (deedbook.LostRecordsError, CorruptError),
    ],
)
def test_errors_inherit_from_matching_builtin_errors(error: type, builtin: type) -> None:
    assert issubclass(error, builtin)


def test_missing(path: Path) -> None:
    error = caught(deedbook.MissingError, lambda: Book.open(path))
    assert (error.errno, error.filename) == (errno.ENOENT, str(path / "book.log"))
    assert (error.kind, error.format, error.path) == ("missing", "book", str(path / "book.log"))
    assert error.offset is error.durable is None
    assert not path.exists()


def test_io_keeps_the_errno_of_the_system(path: Path) -> None:
    path.parent.joinpath("file").touch()
    error = caught(IoError, lambda: Book.create(path.parent / "file" / "log"))
    assert error.errno == errno.ENOTDIR
    assert "Not a directory" in str(error)


def test_unsupported(path: Path) -> None:
    body = struct.pack("<QI", 6, 7) + b"ab"
    deed = struct.pack("<QIxxxx2sIxxxxQ", 6, 7, b"ab", zlib.crc32(body), 6)
    make_book(path, struct.pack("<IIQ", 0x424F4F4B, 1, 1) + deed)
    assert [deed.jam for deed in Book.open(path)] == [b"ab"]
    error = caught(deedbook.UnsupportedError, lambda: Book.open(path, "a"))
    assert error.path == str(path / "book.log")


def test_corrupt(path: Path) -> None:
    make_book(path, DAMAGED)
    error = caught(CorruptError, lambda: list(Book.open(path)))
    assert (error.path, error.offset) == (str(path / "book.log"), 43)
    assert error.next_intact == 70 and error.durable is None
    assert "checksum" in error.reason and error.reason in str(error)


def test_lost_records(path: Path) -> None:
    with Book.create(path) as book:
        book.append_many([b"one", b"two"])
    (path / "book.log").write_bytes(packed([b"one"]))
    error = caught(deedbook.LostRecordsError, lambda: Book.open(path, "a"))
    assert (error.offset, error.next_intact) == (43, None)


def test_locked(path: Path) -> None:
    with Book.create(path):
        error = caught(deedbook.LockedError, lambda: Book.open(path, "a"))
    assert error.holder == os.getpid()


@posix
def test_poisoned(path: Path) -> None:
    book = Book.create(path, durability="manual")
    book.append(b"deed")
    os.truncate(path / "book.log", 16)
    error = caught(IoError, book.sync)
    assert error.durable == "unknown"
    # A later append writes nothing; earlier, its error said that the record may be in the log.
    for call, durable in (
        (book.sync, "unknown"),
        (lambda: book.append(b"more"), "no"),
        (lambda: book.append_many([b"more"]), "no"),
    ):
        error = caught(deedbook.PoisonedError, call)
        assert error.durable == durable
    caught(deedbook.PoisonedError, book.close)
    assert book.closed


def closed(path: Path) -> None:
    book = Book.open(path, "a")
    book.close()
    book.append(b"x")


@pytest.mark.parametrize(
    ("expected", "call", "durable"),
    [
        (AlreadyExistsError, Book.create, None),
        (deedbook.ReadOnlyError, lambda path: Book.open(path).append(b"x"), "no"),
        (ClosedError, closed, "no"),
        (deedbook.OutOfRangeError, lambda path: Book.open(path)[1], None),
        (
            deedbook.ContiguityError,
            lambda path: Book.open(path, "a").append_many([b""], event=7, atomic=True),
            "no",
        ),
        (
            deedbook.TooLargeError,
            lambda path: Book.open(path, "a", deed_bytes_max=8).append(b"12345"),
            "no",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:unclosed")
def test_errors_name_the_log_and_what_is_durable(path: Path, expected, call, durable) -> None:
    Book.create(path).close()
    error = caught(expected, lambda: call(path))
    assert (error.path, error.durable) == (str(path / "book.log"), durable)
    if expected is AlreadyExistsError:
        assert (error.errno, error.filename) == (errno.EEXIST, error.path)


def test_a_file_of_others_and_a_wrong_argument(path: Path) -> None:
    make_book(path, b"something else, of more than 16 bytes")
    error = caught(deedbook.NotALogError, lambda: Book.open(path))
    assert error.path == str(path / "book.log") and "magic" in str(error)
    assert caught(deedbook.InvalidArgumentError, lambda: Book.open(path, "w")).path is None


def test_errors_without_a_place_still_have_the_attributes() -> None:
    error = Error("made in Python")
    assert (error.kind, error.format, error.path, error.offset) == ("error", None, None, None)
    assert error.durable is None and CorruptError("x").next_intact is None
    assert deedbook.LockedError("x").holder is None


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_no_error_leaves_a_file_open(path: Path) -> None:
    damaged = make_book(path.parent / "damaged", DAMAGED + b"torn")
    for _ in range(20):
        for call in (
            lambda: Book.open(path),
            lambda: Book.open(damaged, "a"),
            lambda: Book.open(damaged, "x"),
            lambda: list(Book.open(damaged)),
            lambda: Book.salvage(damaged, damaged),
        ):
            with pytest.raises(Error):
                call()
    # Handles of other tests may close only now; only the files of this test count.
    assert held(damaged.parent) == []
