"""Payloads read from files, and as files."""

import gzip
import io
import shutil
import threading
from pathlib import Path

import pytest

import deedbook
from deedbook import Book, Pier, Wal
from deedbook.reports import PayloadReader

LONG = bytes(range(256)) * 12_289  # three parts and a little


def create(kind: str, path: Path) -> Book | Pier | Wal:
    others = {"wal": Wal.create, "pier": Pier.create}
    return others[kind](path) if kind in others else Book.create(path, layout=kind)


@pytest.fixture(params=["packed", "slots", "wal", "pier"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_payload_file_is_appended_and_read_back(kind: str, tmp_path: Path) -> None:
    source, copy = tmp_path / "source", tmp_path / "copy"
    source.write_bytes(b"skipped" + LONG)
    with create(kind, tmp_path / "log") as log:
        with source.open("rb") as file:
            file.seek(len("skipped"))
            place = log.append_from(file)
            assert file.read() == b""
        if isinstance(log, Pier):
            log.roll()
        assert log.append(b"after") > place
        with log.reader(place) as reader, copy.open("wb") as file:
            assert isinstance(reader, PayloadReader)
            assert (reader.size, reader.readable(), reader.seekable()) == (len(LONG), True, False)
            assert reader.mug == (None if kind == "wal" else 0)
            shutil.copyfileobj(reader, file)
        assert copy.read_bytes() == LONG
        with pytest.raises(ValueError, match="closed"):
            reader.read(1)
        assert log.read(place).payload == LONG
    with deedbook.open(tmp_path / "log") as again:
        assert isinstance(again, Book | Pier | Wal)
        assert io.BufferedReader(again.reader(place)).read(300) == LONG[:300]
        left = again.reader(place)
    with pytest.raises(deedbook.ClosedError):  # closing gave its file back
        left.read()


class Broken(io.RawIOBase):
    def __init__(self, given: int, raises: BaseException) -> None:
        self.given, self.raises = given, raises

    def read(self, size: int = -1, /) -> bytes:
        if self.given == 0:
            raise self.raises
        part = b"x" * min(size, self.given)
        self.given -= len(part)
        return part


def test_failing_payload_file_is_the_cause_of_errors(kind: str, tmp_path: Path) -> None:
    with create(kind, tmp_path / "log") as log:
        log.append(b"before")
        end = getattr(log, "end", None)
        for given in (0, 5, (1 << 20) + 5):
            with pytest.raises(deedbook.IoError, match="cannot read the payload") as caught:
                log.append_from(Broken(given, RuntimeError("no more")), 2 << 20)
            assert repr(caught.value.__cause__) == "RuntimeError('no more')"
            assert caught.value.durable == "no"
            with pytest.raises(KeyboardInterrupt):
                log.append_from(Broken(given, KeyboardInterrupt()), 2 << 20)
            with pytest.raises(deedbook.InvalidArgumentError, match=f"ends after {given} bytes"):
                log.append_from(io.BytesIO(b"x" * given), 2 << 20)
        assert len(log) == 1 and getattr(log, "end", None) == end
        log.append(b"after")
    with deedbook.open(tmp_path / "log") as again:
        assert len(again) == 2
    assert deedbook.open(tmp_path / "log").recovery.verdict == "clean"


def test_files_that_cannot_be_taken_are_refused(tmp_path: Path) -> None:
    with Wal.create(tmp_path / "log", record_bytes_max=100) as wal:
        with pytest.raises(deedbook.InvalidArgumentError, match="`size` is needed") as caught:
            wal.append_from(Broken(1, RuntimeError()))
        assert isinstance(caught.value.__cause__, io.UnsupportedOperation)
        with pytest.raises(deedbook.TooLargeError):
            wal.append_from(io.BytesIO(b"x" * 101))
        for file, says in (
            (io.StringIO("text"), "no bytes"),
            (Answers(None), "not blocking"),
            (Answers(b"more than asked for"), "returned 19 bytes"),
        ):
            with pytest.raises(deedbook.IoError, match="cannot read the payload") as failed:
                wal.append_from(file, 4)  # type: ignore[arg-type]
            assert says in str(failed.value.__cause__)
        with pytest.raises(OverflowError, match="size must not be negative, not -1"):
            wal.append_from(io.BytesIO(b""), -1)
        assert len(wal) == 0


class Answers:
    """A file that gives the same answer whatever it is asked for."""

    def __init__(self, answer: bytes | None) -> None:
        self.answer = answer

    def read(self, size: int = -1, /) -> bytes | None:
        return self.answer


def test_unseekable_payload_file_needs_a_size(tmp_path: Path) -> None:
    packed = io.BytesIO(gzip.compress(LONG))
    with Book.create(tmp_path / "log") as book, gzip.open(packed) as file:
        event = book.append_from(file, len(LONG), mug=7)  # type: ignore[arg-type]
        assert (book.reader(event).mug, book.reader(event).read()) == (7, LONG)


def test_other_threads_run_while_a_file_is_read(tmp_path: Path) -> None:
    with Book.create(tmp_path / "log") as book:
        asked, answered = threading.Event(), threading.Event()

        class Asking(io.RawIOBase):
            def read(self, size: int = -1, /) -> bytes:
                asked.set()
                assert answered.wait(30)
                return b"x"

        def other() -> None:
            assert asked.wait(30)
            assert not book.closed
            assert book.path == str(tmp_path / "log")
            answered.set()

        thread = threading.Thread(target=other)
        thread.start()
        assert book.append_from(Asking(), 1) == 1
        thread.join()
