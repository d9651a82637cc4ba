"""The lines of the logger ``deedbook``, by level, and signals and exits during logging."""

import logging
import signal
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Book, Wal
from log_bytes import flip
from logs import append_to


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    told = [record for record in caplog.records if record.name == "deedbook"]
    caplog.clear()
    return [(record.levelname, record.getMessage()) for record in told]


def test_damage_during_a_read_is_logged_with_place(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    append_to("book", tmp_path / "book", [b"x" * 40] * 4)
    (tmp_path / "book/.deedbook/mark").unlink()
    log = tmp_path / "book/book.log"
    flip(log, 16 + 64 + 20)
    with caplog.at_level(logging.WARNING, "deedbook"), Book.open(tmp_path / "book") as book:
        assert lines(caplog) == []
        with pytest.raises(deedbook.CorruptError) as raised:
            list(book)
        assert lines(caplog) == [("WARNING", f"damage met: {raised.value}")]
        assert len(list(book.iter(on_corrupt="skip"))) == 3
        [(level, line)] = lines(caplog)
        assert level == "WARNING" and line.startswith("damage passed over: deed 2: ")


def test_dropped_segments_are_logged_at_info_level(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Wal.create(tmp_path / "wal", segment_bytes=64) as wal:
        lsns = [wal.append(b"x" * 56) for _ in range(8)]
        wal.sync()
        with caplog.at_level(logging.INFO, "deedbook"):
            wal.truncate_before(lsns[4])
    [(level, line)] = lines(caplog)
    assert level == "INFO" and line.startswith("segments dropped: 4, ")


class Ended(BaseException):
    """A program may raise such an exception for SIGTERM; no ``except Exception`` catches it."""


def end(*_: object) -> None:
    raise Ended


@pytest.mark.parametrize(
    ("number", "handle", "error"),
    [(signal.SIGINT, signal.default_int_handler, KeyboardInterrupt), (signal.SIGTERM, end, Ended)],
    ids=["SIGINT", "SIGTERM"],
)
def test_signal_during_a_log_line_ends_the_call(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    handle: Any,
    error: type[BaseException],
) -> None:
    append_to("wal", tmp_path / "wal", [b"x" * 40] * 3)
    file = tmp_path / "wal" / f"{0:020}.wal"
    file.write_bytes(file.read_bytes() + b"torn")
    lines = []

    class Interrupted(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())
            signal.raise_signal(number)

    handler = Interrupted()
    monkeypatch.setattr(logging.getLogger("deedbook"), "handlers", [handler])
    before = signal.signal(number, handle)
    try:
        with pytest.raises(error):
            Wal.open(tmp_path / "wal", "a")
        assert len(lines) == 1 and "4 bytes cut" in lines[0]
        Wal.open(tmp_path / "wal", "a").close()  # the interrupted call released the lock
        flip(file, 60)
        records = Wal.open(tmp_path / "wal").iter(on_corrupt="skip")
        with pytest.raises(error):
            list(records)
        assert len(lines) == 2 and "damage passed over" in lines[1]
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("kept", ["", "del wal, cycle"], ids=["until the end", "for the collector"])
def test_log_line_at_interpreter_exit_does_not_panic(
    tmp_path: Path, run_child: Any, kept: str
) -> None:
    code = f"""
import sys, deedbook
wal = deedbook.Wal.create(sys.argv[1], durability="manual", slow_sync=0.0)
wal.append(b"x")
cycle = [wal]
cycle.append(cycle)
{kept}
"""
    done = run_child(code, tmp_path / "wal")
    assert done.returncode == 0, done.stderr
    assert "deedbook: slow sync: " in done.stderr
    assert "panicked" not in done.stderr and "Exception ignored" not in done.stderr
