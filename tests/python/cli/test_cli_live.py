"""The command line while things happen to it: signals, kills, closed pipes, other processes."""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from deedbook import Book, Pier, Wal
from live import GIVE_UP_SECONDS, ended, ends_quietly, next_line, running, send
from shell import complaint, deedbook, environment, json_lines, ok, payloads

pytest.importorskip("pty", reason="signals and pipes here are POSIX")


def send_and_see(process: subprocess.Popen[bytes], line: bytes, ack: int) -> None:
    send(process, line)
    assert next_line(process) == b"%d\n" % ack


def book_of(path: Path, payloads: Iterable[bytes]) -> Path:
    with Book.create(path) as book:
        book.append_many(payloads)
    return path


each_format = pytest.mark.parametrize("log_format", ["book", "wal"])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@each_format
def test_interrupted_append_stops_at_a_commit_boundary(
    tmp_path: Path, number: signal.Signals, log_format: str
) -> None:
    log, last = tmp_path / "log", b"3\n" if log_format == "book" else b"27\n"
    with running("append", "--format", log_format, log, "--acks") as process:
        send(process, b"1\n2\n3\n")
        # The pipe may give the lines in pieces.
        assert next(ack for ack in iter(lambda: next_line(process), b"") if ack == last)
        send(process, b'{"half": "a li')
        time.sleep(0.2)
        process.send_signal(number)
        done = ended(process)
    said = "3 deeds (events 1..3)" if log_format == "book" else "3 records (bytes 0 to 27)"
    assert complaint(done, 128 + number) == f"interrupted; appended {said}; all durable"
    assert payloads(log) == [b"1", b"2", b"3"]
    assert json.loads(ok("verify", log, "--json"))["ok"] is True
    ok("append", log, stdin=b"4\n")


def test_an_interrupted_append_tells_its_state_as_json(tmp_path: Path) -> None:
    with running("append", tmp_path / "book", "--json", "--acks") as process:
        send_and_see(process, b"1\n", 1)
        process.send_signal(signal.SIGINT)
        done = ended(process)
    assert done.returncode == 130
    result = json.loads(done.stdout)
    assert (result["ok"], result["interrupted"], result["durable_event"]) == (False, True, 1)


@pytest.mark.parametrize(
    ("number", "said"), [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")]
)
def test_a_signal_ends_a_cat_that_nobody_reads(
    path: Path, number: signal.Signals, said: str
) -> None:
    book_of(path, [bytes(1 << 20)] * 4)
    with running("cat", path, "--raw") as process:
        assert select.select([process.stdout], [], [], GIVE_UP_SECONDS)[0]  # the pipe fills
        process.send_signal(number)
        assert process.wait(10) == 128 + number
        assert process.stderr.read() == f"deedbook: {said}\n".encode()


@each_format
def test_follow_reads_other_writers_until_sigint_or_sigterm(path: Path, log_format: str) -> None:
    ok("append", "--format", log_format, path, stdin=b"1\n2\n")
    for number, said in ((signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")):
        with running("cat", path, "--follow", "--raw") as process:
            for line in payloads(path):
                assert next_line(process) == line + b"\n"
            for line in (b"3\n", b"4\n"):
                ok("append", path, stdin=line)
                assert next_line(process) == line
            began = time.monotonic()
            process.send_signal(number)
            done = ended(process)
        assert complaint(done, 128 + number) == said and done.stdout == b""
        assert time.monotonic() - began < 5


def test_follow_ends_at_the_stop_of_its_range(path: Path) -> None:
    book_of(path, [b"1", b"2", b"3"])
    assert ok("cat", path, "2:4", "--follow", "--raw") == b"2\n3\n"
    with running("cat", path, "3:5", "--follow", "--raw") as process:
        assert next_line(process) == b"3\n"
        ok("append", path, stdin=b"4\n5\n")
        done = ended(process)
    assert (done.returncode, done.stdout) == (0, b"4\n")


@pytest.mark.parametrize(
    ("number", "acks"),
    [(signal.SIGINT, 1), (signal.SIGKILL, 1), (signal.SIGKILL, 7), (signal.SIGKILL, 40)],
)
def test_resume_after_kill_neither_loses_nor_repeats_lines(
    tmp_path: Path, number: signal.Signals, acks: int
) -> None:
    book, file = tmp_path / "book", tmp_path / "lines"
    lines = [b'{"number": %d, "text": "%s"}' % (n, b"x" * (n % 90)) for n in range(30_000)]
    file.write_bytes(b"\n".join(lines) + b"\n")
    acked = b""
    with running("append", book, file, "--acks", "--batch", "25") as process:
        for _ in range(acks):
            acked = next_line(process)
        process.send_signal(number)
        done = ended(process)
    assert done.returncode == (130 if number == signal.SIGINT else -number)
    acked = (acked + done.stdout).split(b"\n")[-2]  # the last whole line
    found = payloads(book)
    assert int(acked) <= len(found) < len(lines) and found == lines[: len(found)]
    assert int(acked) == len(found) or number == signal.SIGKILL
    result = json.loads(ok("append", book, file, "--resume", "--json"))
    assert int(acked) <= result["skipped"]
    assert result["skipped"] + result["appended"] == result["last_event"] == len(lines)
    assert payloads(book) == lines
    assert json.loads(ok("verify", book, "--json"))["ok"] is True


@each_format
def test_second_writer_is_refused_with_the_firsts_pid(path: Path, log_format: str) -> None:
    with running("append", "--format", log_format, path, "--acks") as writer:
        send_and_see(writer, b"1\n", 1 if log_format == "book" else 9)
        dropping = [["retain", "--to", "0"], ["retain", "--consumed"]]
        for words in (["append"], *(dropping if log_format == "wal" else ())):
            assert str(writer.pid) in complaint(deedbook(*words, path, stdin=b"2\n"), 2)
        info = json.loads(ok("info", path, "--json"))
        assert info["writer"]["pid"] == writer.pid
        assert info["writer"]["held"] in ((True,) if os.path.exists("/proc/locks") else (None,))
        assert f"process {writer.pid}" in ok("info", path).decode()
        assert info["records"] == 1
        writer.kill()
        ended(writer)
    info = json.loads(ok("info", path, "--json"))
    assert info["writer"]["held"] is not True
    ok("append", path, stdin=b"2\n")
    assert payloads(path) == [b"1", b"2"]


PRINTING = {
    "cat": ["cat", "LOG"],
    "cat --json": ["cat", "LOG", "--json"],
    "cat --raw": ["cat", "LOG", "--raw"],
    "cat --reverse": ["cat", "LOG", "--reverse"],
    "cat --follow": ["cat", "LOG", "--follow"],
    # A reader that had enough was an error of the file: exit code 2, and a line.
    "export": ["export", "LOG", "-o", "/dev/stdout", "--format", "jsonl"],
}


@pytest.mark.parametrize("words", PRINTING.values(), ids=PRINTING)
def test_a_closed_pipe_ends_what_prints_records_quietly(path: Path, words: list[str]) -> None:
    book_of(path, [b"%01000d" % n for n in range(3000)])
    with running(*(path if word == "LOG" else word for word in words)) as process:
        assert len(next_line(process)) > 1000
        ends_quietly(process)


@pytest.mark.parametrize(
    "words", [["info"], ["verify"], ["repair"], ["info", "--json"], ["cat"], ["--help"]]
)
@each_format
def test_a_closed_pipe_ends_every_command_quietly(
    path: Path, words: list[str], log_format: str
) -> None:
    ok("append", "--format", log_format, path, stdin=b"1\n")
    reading, writing = os.pipe()
    os.close(reading)
    with running(*words, *([] if words == ["--help"] else [path]), stdout=writing) as process:
        os.close(writing)
        done = ended(process)
    assert (done.returncode, done.stderr) == (141, b"")


def test_append_with_unread_acks_stops_with_intact_records(tmp_path: Path) -> None:
    book = tmp_path / "book"
    with running("append", book, "--acks", "--batch", "1") as process:
        send_and_see(process, b"1\n", 1)
        process.stdout.close()
        send(process, b"2\n3\n")
        ends_quietly(process)
    assert payloads(book) == [b"1", b"2"]
    assert json.loads(ok("verify", book, "--json"))["ok"] is True


def test_append_reads_a_fifo(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with running("append", tmp_path / "book", fifo, "--acks") as process:
        with open(fifo, "wb", buffering=0) as writer:
            writer.write(b"1\n")
            assert next_line(process) == b"1\n"
            writer.write(b'"no newline"')
        assert ended(process).returncode == 0
    assert payloads(tmp_path / "book") == [b"1", b'"no newline"']


def test_lines_arrive_whole_however_they_are_cut(tmp_path: Path) -> None:
    text = b'{"a": 1}\n{"b": "' + b"y" * 200_000 + b'"}\n[]\n'
    with running("append", tmp_path / "book") as process:
        for start, end in ((0, 3), (3, 9), (9, 12), (12, 70_000), (70_000, len(text))):
            send(process, text[start:end])
            time.sleep(0.06)
        done = ended(process)
    assert done.returncode == 0, done.stderr
    assert payloads(tmp_path / "book") == text.split(b"\n")[:-1]


@each_format
def test_sigterm_ends_verify_between_two_logs(tmp_path: Path, log_format: str) -> None:
    log = tmp_path / "log"
    ok("append", "--format", log_format, log, stdin=b"1\n")
    with running("verify", *[log] * 8000) as process:
        assert b": ok, " in next_line(process)
        process.send_signal(signal.SIGTERM)
        done = ended(process)
        assert complaint(done, 143) == "terminated"
        assert done.stdout.count(b"\n") < 7999


@pytest.mark.parametrize("command_name", ["verify", "salvage"])
@each_format
def test_sigterm_ends_work_inside_of_one_log(
    tmp_path: Path, log_format: str, command_name: str
) -> None:
    """Long work is done without the GIL, where a handler of Python runs only if it is asked to."""
    log, target = tmp_path / "log", [tmp_path / "copy"] if command_name == "salvage" else []
    lines = b"7" * 1_000_000
    ok("append", "--format", log_format, log, "--durability", "none", stdin=(lines + b"\n") * 24)
    code = """
import os, signal, sys
from deedbook._cli import main
from deedbook._cli.terminal import progress
progress.Progress.update = lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM)
sys.exit(main(sys.argv[1:]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code, command_name, log, *target],
        capture_output=True,
        env=environment(),
    )
    assert complaint(done, 143) == "terminated" and done.stdout == b""


def test_sigterm_that_is_ignored_stays_so(path: Path) -> None:
    ok("append", path, stdin=b"1\n")

    def ignore() -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    with running("cat", path, "--follow", preexec_fn=ignore) as process:
        assert next_line(process) == b"1\t1\n"
        process.send_signal(signal.SIGTERM)
        ok("append", path, stdin=b"2\n")
        assert next_line(process) == b"2\t2\n"


def test_main_restores_the_callers_signal_handler() -> None:
    from deedbook._cli import main

    before = signal.getsignal(signal.SIGTERM)
    assert main(["info", "/nothing/here"]) == 2
    assert signal.getsignal(signal.SIGTERM) == before


WRITERS = {
    "book": lambda path: Book.create(path),
    "slots": lambda path: Book.create(path, layout="slots"),
    "wal": lambda path: Wal.create(path),
    "single": lambda path: Wal.create(path, single_file=True),
    "pier": lambda path: Pier.create(path),
}


@pytest.mark.skipif(sys.platform != "linux", reason="space is taken beforehand on Linux alone")
@pytest.mark.parametrize("name", WRITERS)
def test_log_with_live_writer_is_open_and_intact(tmp_path: Path, name: str) -> None:
    log = tmp_path / name
    with WRITERS[name](log) as writer:
        for _ in range(5):
            writer.append(b"record")
        writer.sync()
        # In slots nothing is taken beforehand.
        word = "clean" if name == "slots" else "open"
        (checked,) = json_lines(ok("verify", log, "--json"))
        epochs = checked.get("epochs", [{"report": checked}])
        assert [epoch["report"]["verdict"] for epoch in epochs] == [word] and checked["ok"]
        (shown,) = json_lines(ok("info", log, "--json"))
        assert shown["recovery"]["verdict"] == word and shown["writer"]["held"]
        texts = [ok("verify", log), ok("info", log)]
        (copied,) = json_lines(ok("salvage", log, tmp_path / "copy", "--json"))
        assert copied["ok"] and (copied["records"], copied["damages"]) == (5, [])
        texts.append(ok("salvage", log, tmp_path / "again"))
        for text in texts:
            assert not re.search(b"torn|damage|corrupt|lost", text), text
        assert (b"unwritten tail" in texts[1]) == (word == "open")
