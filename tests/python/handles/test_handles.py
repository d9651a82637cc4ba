"""Handles of all formats behave as Python expects: `in`, `bool`, `with`, warnings, the GIL."""

import gc
import json
import os
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import (
    Book,
    ClosedError,
    EventStore,
    InvalidArgumentError,
    IoError,
    Ledger,
    NotALogError,
    Pier,
    Wal,
)
from logs import snapshot
from nostr_events import made
from rhymes import CLASSES, members, record

Log = type[Book] | type[Wal]

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX")


@pytest.fixture(params=[Book, Wal], ids=["book", "wal"])
def kind(request: pytest.FixtureRequest) -> Log:
    return request.param  # type: ignore[no-any-return]


def test_in_goes_by_number(kind: Log, path: Path) -> None:
    with kind.create(path) as log:
        assert 0 not in log and 1 not in log
        first, second = log.append(b"first"), log.append(b"second")
        assert first in log and second in log
        for none in (-1, second - 1, second + 1, 2**63, 2**64, -(2**200)):
            assert none not in log or none == first
        records = list(log)
        assert all(record in log for record in records)
    with kind.create(path.with_name("other")) as other:
        other.append(b"another")
        assert records[0] not in other and records[1] not in other


@pytest.mark.parametrize("what", [b"first", "1", None, 1.0, [1]], ids=repr)
def test_in_takes_nothing_but_numbers_and_records(kind: Log, path: Path, what: object) -> None:
    with kind.create(path) as log:
        log.append(b"first")
        with pytest.raises(TypeError, match="'in' takes an"):
            what in log  # noqa: B015


CLOSES: dict[str, tuple[Callable[[Path], Any], Any, str]] = {
    "book": (lambda path: Book.create(path, durability="manual"), b"x", "book.log"),
    "slots": (
        lambda path: Book.create(path, durability="manual", layout="slots"),
        b"x",
        "book.log",
    ),
    "wal": (Wal.create, b"x", "*.wal"),
    "single": (lambda path: Wal.create(path, single_file=True), b"x", "."),
    "pier": (
        lambda path: deedbook.Pier.create(path, durability="manual"),
        b"x",
        ".urb/log/*/book.log",
    ),
    "nostr": (
        lambda path: EventStore.create(path, durability="manual"),
        deedbook.Event(**made("content")),
        "wal/wal.log",
    ),
}


@posix
@pytest.mark.parametrize("raises", [False, True], ids=["left", "raised"])
@pytest.mark.parametrize("how", ["cut", "gone"])
@pytest.mark.parametrize("name", CLOSES)
def test_failed_close_at_the_end_of_with_raises(
    path: Path, name: str, how: str, raises: bool
) -> None:
    """The record is not durable then. An exception of the block itself wins, as it tells more."""
    create, record, pattern = CLOSES[name]
    log = create(path)
    expected = LookupError if raises else IoError
    with pytest.raises(expected) as raised, log:
        log.append(record)
        (file,) = [path] if pattern == "." else path.glob(pattern)
        file.unlink() if how == "gone" else os.truncate(file, 1)
        if raises:
            raise LookupError("of the block")
    assert log.closed
    if not raises:
        assert raised.value.kind == "io" and str(file.parent) in str(raised.value)


@pytest.mark.parametrize("name", ["Book", "Wal", "Pier", "Ledger", "EventStore"])
def test_unclosed_handle_gives_a_resource_warning(name: str, path: Path) -> None:
    kind = getattr(deedbook, name)
    modes = [("a",)] if kind is Ledger else [("a",), ("r",)]  # a reader of files holds nothing
    for mode in modes:
        log = kind.open(path, *mode)
        with pytest.warns(ResourceWarning, match=f"unclosed <deedbook.{name} .*{path}"):
            del log
            gc.collect()


def test_unclosed_warning_does_not_hide_an_exception(kind: Log, path: Path) -> None:
    def work() -> None:
        log = kind.create(path)
        log.append(b"x")
        raise LookupError("what happened")

    with pytest.warns(ResourceWarning), pytest.raises(LookupError, match="what happened"):
        work()


ENDS = """
import gc, os, sys, warnings, deedbook
name, path, end, record = sys.argv[1:]
kind = getattr(deedbook, name)
warnings.simplefilter("error")
log = kind.create(path)
log.append(record.encode())
cycle = [log]; cycle.append(cycle)
if end == "fork":
    child = os.fork()
    if child == 0:
        assert "of process %d" % os.getppid() in repr(log) and not log.closed, repr(log)
        try:
            log.append(record.encode())
        except deedbook.ForkedError:
            del log, cycle
            gc.collect()
            sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert ", closed" not in repr(log) and ", of process" not in repr(log)
    try:
        kind.open(path, "a")
    except deedbook.LockedError:
        log.append(record.encode())
        log.close()
    kind.open(path, "a").close()
print("end")
"""


@posix
@pytest.mark.parametrize("end", ["fork", "exit"])
@pytest.mark.parametrize("name", ["Book", "Wal", "EventStore"])
def test_fork_and_interpreter_exit_neither_hang_nor_warn(
    name: str, path: Path, run_child: Any, end: str
) -> None:
    done = run_child(ENDS, name, path, end, json.dumps(made()))
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


GETTERS: dict[Any, list[str]] = {
    Book: ["bounds", "epoch", "last", "durable_last", "end"],
    Wal: ["bounds", "head", "end", "durable_end", "segment_paths"],
    Ledger: ["unsynced_bytes"],
    EventStore: ["unsynced_bytes"],
}


def another_thread_runs_during(
    call: str, names: dict[str, Any], prepare: Callable[[], object] = lambda: None
) -> bool:
    """Whether another thread runs during the call, with several tries if necessary.

    The interpreter itself switches no threads between the two readings: only the call can.
    """
    ran, done = [0], threading.Event()

    def count() -> None:
        while not done.is_set():
            ran[0] += 1

    names.update(ran=ran, found=False)
    look = compile(f"before = ran[0]; {call}; after = ran[0]; found = after > before", "", "exec")
    other = threading.Thread(target=count)
    other.start()
    give_up = time.monotonic() + 30
    while not names["found"] and time.monotonic() < give_up:
        prepare()
        exec(look, names)
    done.set()
    other.join()
    return bool(names["found"])


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in GETTERS.items() for name in names]
)
def test_a_getter_lets_other_threads_run(kind: Any, path: Path, name: str) -> None:
    with kind.create(path) as log:
        log.append(made() if kind is EventStore else b"x")
        assert another_thread_runs_during(f"log.{name}", {"log": log})


@pytest.mark.filterwarnings("ignore:unclosed")
def test_a_handle_that_goes_lets_other_threads_run(kind: Log, path: Path) -> None:
    names: dict[str, Any] = {}

    def prepare() -> None:
        names["log"] = kind.open(path, "a", durability="manual")
        names["log"].append(bytes(100_000))

    assert another_thread_runs_during("del log", names, prepare)


@pytest.mark.parametrize("view", [lambda buffer: buffer, memoryview], ids=["itself", "view"])
def test_changing_buffer_is_appended_consistently(
    kind: Log, path: Path, view: Callable[[bytearray], Any]
) -> None:
    # These bytes are no valid length of a record, so the search after the damage is fast.
    old, new = b"\xfe" * (8 << 20), b"\xff" * (8 << 20)
    buffer = bytearray(old)
    done = threading.Event()

    def change() -> None:
        while not done.is_set():
            buffer[:] = new
            buffer[:] = old

    with kind.create(path, durability="none") as log:
        other = threading.Thread(target=change)
        other.start()
        for _ in range(20):
            log.append(view(buffer))
        log.append_many([view(buffer)] * 2, atomic=True)
        log.append_many([view(buffer)] * 2)
        done.set()
        other.join()
        parts = [getattr(record, "parts", None) or [record.payload] for record in log]
        payloads = [payload for part in parts for payload in part]
    assert len(payloads) == 24 and all(payload in (old, new) for payload in payloads)
    assert kind.verify(path).ok


NUMBERS: dict[str, Callable[[Any, Any], object]] = {
    "start": lambda log, number: log.iter(number),
    "stop": lambda log, number: log.iter(None, number),
    "split_bytes": lambda log, number: log.splits(number),
    "batch_rows": lambda log, number: log.batches(batch_rows=number),
    "file_mode": lambda log, number: type(log).open(log.path, "a", file_mode=number),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_a_number_out_of_range_names_its_parameter(kind: Log, path: Path, name: str) -> None:
    with kind.create(path) as log:
        with pytest.raises(OverflowError, match=f"^{name} must not be negative, not -1(\n|$)"):
            NUMBERS[name](log, -1)
        with pytest.raises(OverflowError, match=f"^{name} is too large: "):
            NUMBERS[name](log, 2**64)
        with pytest.raises(TypeError, match=name):
            NUMBERS[name](log, "1")


def test_a_mug_out_of_range_is_named(path: Path) -> None:
    with Book.create(path) as book:
        for mug, says in ((-1, "mug must not be negative, not -1"), (2**32, "mug")):
            for call in (
                lambda mug=mug: book.append(b"x", mug),
                lambda mug=mug: book.append(b"x", mug, sync=False),
                lambda mug=mug: book.append_many([b"x"], [mug], atomic=True),
                lambda mug=mug: book.append_many([b"x"], [mug]),
            ):
                with pytest.raises(OverflowError, match=says):
                    call()
        assert len(book) == 0


@pytest.mark.parametrize("timeout", [-1.0, float("nan"), float("inf")])
def test_a_wrong_timeout_is_shown_as_given(kind: Log, path: Path, timeout: float) -> None:
    with kind.create(path) as log:
        with pytest.raises(InvalidArgumentError) as raised:
            log.follow(timeout=timeout)
        assert str(raised.value).lower() == f"timeout must be 0 seconds or more, not {timeout:g}"


def test_nul_in_path_raises_value_error(kind: Log) -> None:
    for call in (kind.open, kind.create, kind.verify, kind.repair):
        with pytest.raises(ValueError, match="null byte") as raised:
            call("a\0b")
        assert not isinstance(raised.value, deedbook.Error)


@pytest.mark.parametrize("error", [LookupError("no room in the archive"), KeyboardInterrupt()])
def test_archive_hook_exceptions_are_raised_or_chained(path: Path, error: BaseException) -> None:
    got: list[tuple[int, int]] = []

    def refuse(index: int, file: str) -> None:
        if len(got) == 2:
            raise error
        got.append((index, os.path.getsize(file)))

    with Wal.create(path, segment_bytes=512, archive=refuse) as wal:
        wal.append_many([bytes(100)] * 20)
        wal.sync()
        expected = KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else IoError
        with pytest.raises(expected) as raised:
            wal.truncate_before(wal.end)
        assert got == [(0, 512), (1, 512)] and wal.head == 0
        if isinstance(raised.value, IoError):
            assert (raised.value.errno, raised.value.__cause__) == (None, error)


@posix
def test_oversized_payload_is_refused_before_a_copy(kind: Log, path: Path, run_child: Any) -> None:
    code = """
import mmap, re, resource, sys, deedbook
kind = getattr(deedbook, sys.argv[1])
limit = {"deed_bytes_max" if kind is deedbook.Book else "record_bytes_max": 1 << 20}
log = kind.create(sys.argv[2], **limit)
view = memoryview(mmap.mmap(-1, 1 << 30))
size = int(re.search(r"VmSize:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) << 10
resource.setrlimit(resource.RLIMIT_AS, (size + (256 << 20), size + (256 << 20)))
for call in (log.append, log.commit, lambda view: log.append_many([view]),
             lambda view: log.append_many([view], atomic=True)):
    try:
        call(view)
    except deedbook.TooLargeError as error:
        print(error.durable, "1073741824 bytes, limit 1048576" in str(error))
log.close()
"""
    if not Path("/proc/self/status").exists():
        pytest.skip("needs /proc")
    done = run_child(code, kind.__name__, path)
    assert done.stdout == "no True\n" * 4, done.stderr


every_class = pytest.mark.parametrize("owner", CLASSES, ids=lambda one: one.__name__)
FORMATS: dict[type, Any] = {Book: "book", Wal: "wal", EventStore: "nostr", Pier: "pier"}


@every_class
def test_opening_with_the_wrong_class_is_refused(owner: Any, path: Path) -> None:
    with owner.create(path) as log:
        log.append(record(owner, 1))
    before = snapshot(path)
    others: list[Any] = [other for other in FORMATS if other is not owner]
    for other in others:
        calls = [partial(deedbook.open, path, format=FORMATS[other])]
        calls += [partial(other.open, path, mode) for mode in ("r", "a", "x")]
        calls += [partial(other.create, path), partial(other.verify, path)]
        if other is not EventStore:
            calls += [partial(other.repair, path)]
            calls += [partial(other.salvage, path, path.with_name("copy"))]
        for call in calls:
            with pytest.raises(NotALogError, match=rf"{owner.__name__}\.open") as raised:
                call()
            assert raised.value.path == str(path)
    assert snapshot(path) == before and not path.with_name("copy").exists()


# A closed handle still has these; the methods then do nothing, or need no file.
KEPT = {"path", "mode", "closed", "durability", "layout", "recovery", "transactions", "base"}
KEPT |= {"segment_bytes", "record_bytes_max", "log_path", "history", "opening", "stats"}
KEPT |= {"compaction_ratio", "unsynced_bytes", "close", "__bool__", "__arrow_c_schema__"}
STATIC = {"open", "create", "verify", "repair", "salvage", "__new__"}


@every_class
def test_a_closed_handle_refuses_every_call(owner: Any, path: Path) -> None:
    log = owner.create(path)
    log.append(record(owner, 1))
    place = {EventStore: (0, 4096), Ledger: (0, 0)}.get(owner, 1)
    assert log and not log.closed
    log.close()
    log.close()
    assert log.closed and not log and log.path == str(path) and "closed" in repr(log)
    one = record(owner, 2)
    given = {"append": one, "append_many": [one], "commit": one, "read": place, "query": {}}
    given |= {"__getitem__": place, "backup": path.with_name("copy")}
    given["__contains__"] = "00" * 32 if owner is EventStore else 1
    assert {"append", "append_many", "__iter__", "__enter__"} <= set(members(owner))
    for name in set(members(owner)) - KEPT - STATIC:
        with pytest.raises(ClosedError if name in given else (ClosedError, TypeError)):
            value = getattr(log, name)
            value(given[name]) if name in given else value()
    with owner.open(path) as again:
        assert sum(1 for _ in again) == 1


def test_open_creates_what_it_is_told_to(kind: Log, path: Path) -> None:
    name: Any = "wal" if kind is Wal else "book"
    with pytest.raises(deedbook.MissingError):
        deedbook.open(path)
    with pytest.raises(deedbook.MissingError):
        deedbook.open(path, format=name)
    for mode in ("a", "x"):
        with pytest.raises(InvalidArgumentError, match="say format="):
            deedbook.open(path, mode)  # type: ignore[arg-type]
    with pytest.raises(
        InvalidArgumentError, match='format "tape", must be one of "book", "pier", "wal"'
    ):
        deedbook.open(path, "a", format="tape")  # type: ignore[arg-type]
    assert not path.exists()
    with deedbook.open(path, "x", format=name) as log:
        assert type(log) is kind
