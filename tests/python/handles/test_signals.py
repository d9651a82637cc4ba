"""Ctrl-C, fork, the end of the interpreter, garbage collection: nothing acknowledged is lost."""

import json
import operator
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from deedbook import Book, Durability, Wal
from nostr_events import made

pytestmark = pytest.mark.promise("interrupt", "fork", "no-close")

if os.name != "posix":
    pytest.skip("needs POSIX signals and fork", allow_module_level=True)


STORM = """
import os, signal, sys, deedbook
path, how, durability = sys.argv[1:]
count = 1 if how == "append" else 100
armed = stopped = False
def interrupt(*_):
    global armed
    if armed and not stopped:  # and not while the last interrupt is being looked at
        armed = False
        raise KeyboardInterrupt
def stop(*_):
    global stopped
    stopped = True
signal.signal(signal.SIGINT, interrupt)
signal.signal(signal.SIGTERM, stop)
book = deedbook.Book.create(path, durability=durability)
print("ready", flush=True)
interrupted = wrong = recorded = 0
def work():  # a function: in 3.13 the jump back of a loop right inside of `try` is not caught
    global recorded
    while not stopped:
        numbers = range(recorded + 1, recorded + 1 + count)
        if how == "append":
            recorded = book.append(b"%d" % numbers[0], numbers[0])
        elif how == "many":
            recorded = book.append_many((b"%d" % n for n in numbers), numbers).end - 1
        else:
            recorded = book.append_many([b"%d" % n for n in numbers], numbers, atomic=True).end - 1
while not stopped:
    try:
        armed = True
        work()
    except KeyboardInterrupt:
        interrupted += 1
        more = book.last - recorded  # by the one call that was interrupted
        wrong += not 0 <= more <= count if how == "many" else more not in (0, count)
        wrong += durability == "always" and book.durable_last != book.last
        recorded = book.last
armed = False
print(interrupted, wrong, book.last, flush=True)
os._exit(0)  # without a close
"""


@pytest.mark.parametrize("durability", ["manual", "always"])
@pytest.mark.parametrize("how", ["append", "many", "batch"])
def test_interrupt_storm_neither_tears_nor_loses_records(
    path: Path, how: str, durability: str
) -> None:
    chance = random.Random(17)
    command = [sys.executable, "-c", STORM, str(path), how, durability]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    for _ in range(400):
        child.send_signal(signal.SIGINT)
        time.sleep(chance.random() * 0.003)
    child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 0, err
    interrupted, wrong, last = map(int, out.split())
    assert interrupted > 50 and wrong == 0
    report = Book.verify(path)
    assert report.ok and report.records == last
    with Book.open(path) as book:
        assert all(map(operator.eq, book.payloads(), map(b"%d".__mod__, range(1, last + 1))))
        assert book[-1].mug == book[-1].event == last


def test_interrupted_generator_keeps_its_yielded_records(path: Path, run_child) -> None:
    code = """
import os, signal, sys, deedbook
def jams():
    for number in range(1, 1_000_000):
        if number == 500_001:
            os.kill(os.getpid(), signal.SIGINT)
        yield b"%d" % number
book = deedbook.Book.create(sys.argv[1])
try:
    book.append_many(jams())
except KeyboardInterrupt:
    print(book.last == book.durable_last, 500_000 <= book.last <= 500_001)
"""
    assert run_child(code, path).stdout == "True True\n"


OPENS = """
import os, signal, sys, threading, time, deedbook
signal.signal(signal.SIGINT, signal.default_int_handler)
kind, path, how = getattr(deedbook, sys.argv[1]), sys.argv[2], sys.argv[3]
def took(call, *arguments, interrupt=False):
    begun = time.monotonic()
    try:
        if interrupt:
            threading.Timer(0.02, os.kill, (os.getpid(), signal.SIGINT)).start()
        call(*arguments)
        return time.monotonic() - begun, "opened"
    except KeyboardInterrupt:
        return time.monotonic() - begun, "interrupted"
whole, opened = took(kind.open, path)
tries = []
for i in range(3):  # one of them without much ado on a busy machine
    call = {"verify": (kind.verify, path), "salvage": (kind.salvage, path, f"{path}-{i}")}
    tries.append(took(*call.get(how, (kind.open, path, how)), interrupt=True))
until, interrupted = min(tries)
print(opened, interrupted, until < whole / 2, whole, tries)
"""


@pytest.fixture(scope="module", params=[Book, Wal])
def large(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Path]]:
    """The class of a log and its one file: three records, then 300 MB of noise."""
    path = tmp_path_factory.mktemp("large") / "log"
    with request.param.create(path) as log:
        log.append_many([b"deed"] * 3)
    shutil.rmtree(path / ".deedbook")
    (file,) = path.iterdir()
    noise = random.Random(7).randbytes(1 << 20)
    with file.open("ab") as tail:
        for _ in range(300):
            tail.write(noise)
    yield request.param.__name__, file
    shutil.rmtree(path.parent)


@pytest.mark.parametrize("how", ["r", "a", "verify", "salvage"])
def test_interrupt_ends_opening_a_large_log(
    large: tuple[str, Path], path: Path, run_child, how: str
) -> None:
    """Without its `.deedbook` a log is read to its end to be opened: Ctrl-C waited for that."""
    kind, file = large
    size = file.stat().st_size
    path.mkdir()
    os.link(file, path / file.name)
    done = run_child(OPENS, kind, path, how)
    assert done.stdout.startswith("opened interrupted True "), (done.stdout, done.stderr)
    assert file.stat().st_size == size and not [*path.glob("*.cut-*")], "it was changed"


def test_a_fork_while_threads_append_harms_nobody(path: Path, run_child) -> None:
    code = """
import os, sys, threading, deedbook
book = deedbook.Book.create(sys.argv[1], durability="manual")
done = threading.Event()
def work():
    while not done.is_set():
        book.append(b"deed")
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
codes = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        try:
            book.append(b"child")
        except deedbook.ForkedError:
            del book
            os._exit(7)
        os._exit(1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
done.set()
for thread in threads: thread.join()
book.close()
report = deedbook.Book.verify(sys.argv[1])
print(set(codes), report.ok, report.records == len(deedbook.Book.open(sys.argv[1])))
"""
    done = run_child(code, path)
    assert done.stdout == "{7} True True\n", done.stderr


ENDS = {
    "exit": "",
    "sys.exit": "sys.exit(0)",
    "an exception": "raise LookupError",
    "os._exit": "os._exit(0)",
    "kill -9": "os.kill(os.getpid(), 9)",
    "a cycle": "cycle = [book]; cycle.append(cycle); del book, cycle",
    "a thread that goes on": """
def work():
    while True:
        book.append_many([b"more"], atomic=True)
threading.Thread(target=work, daemon=True).start()
time.sleep(0.02)
""",
}


@pytest.mark.parametrize(
    "durability", ["always", timedelta(milliseconds=1), Durability.bytes(10), "manual", "none"]
)
@pytest.mark.parametrize("end", ENDS)
def test_an_end_without_close_keeps_everything(
    path: Path, run_child, end: str, durability: object
) -> None:
    code = f"""
import datetime, os, sys, threading, time, deedbook
from deedbook import Durability
book = deedbook.Book.create(sys.argv[1], durability=eval(sys.argv[2]))
book.append_many([b"deed"] * 1000)
book.append(b"last")
iterator, stream, following = iter(book), book.batches(), book.follow()
next(iterator)
{ENDS[end]}
"""
    done = run_child(code, path, repr(durability))
    assert done.returncode == {"an exception": 1, "kill -9": -9}.get(end, 0), done.stderr
    assert "panicked" not in done.stderr
    with Book.open(path, "a") as book:
        assert [*book.payloads(stop=1002)] == [b"deed"] * 1000 + [b"last"]
        assert set(book.payloads(1002)) <= {b"more"}
    assert Book.verify(path).ok


CALLS = [(kind, call) for kind in ("Book", "Wal") for call in ("append_many", "atomic")]
PAYLOADS = ["b''", "b'deed' * 1000", "bytearray(1000)"]
LONG = "[sys.argv[2].encode()] * 20_000_000"


@pytest.mark.parametrize(
    ("kind", "call", "iterable"),
    [
        *((*call, f"itertools.repeat({payload})") for call in CALLS for payload in PAYLOADS),
        *((*call, LONG) for call in CALLS),
        *((kind, "extend", LONG) for kind in ("Book", "Wal", "Ledger", "EventStore")),
    ],
)
def test_an_interrupt_ends_an_endless_iterable(
    path: Path, run_child, kind: str, call: str, iterable: str
) -> None:
    code = f"""
import itertools, resource, signal, sys, deedbook
signal.signal(signal.SIGALRM, signal.default_int_handler)
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
log = deedbook.{kind}.create(sys.argv[1], durability="none")
taker = log.transactions.stage("job", 0, 1) if "{call}" == "extend" else log
take = getattr(taker, "{call}", None) or (lambda given: log.append_many(given, atomic=True))
payloads = {iterable}
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    take(payloads)
except KeyboardInterrupt:
    print("interrupted", "{call}" != "extend" or len(taker) < 20_000_000)
"""
    done = run_child(code, path, json.dumps(made()))
    assert done.stdout == "interrupted True\n", done.stderr


def test_waiting_takes_descriptors_of_any_number(run_child: Any) -> None:
    """A pier of many epochs is opened with more than 1,024, which `select` does not take."""
    code = """
import os, resource
from deedbook._cli.signals import Stop

hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard if hard != resource.RLIM_INFINITY else 4096, hard))
held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
read, write = os.pipe()
with Stop() as stop:
    print(read > 1100, stop.wait(read, 0.01))
    os.write(write, b"x")
    print(stop.wait(read, 60), stop.wait(read, None))
    os.close(write)
    print(os.read(read, 9), stop.wait(read, 60), stop.wait(held[0], 60))
"""
    done = run_child(code)
    assert done.stdout == "True False\nTrue True\nb'x' True True\n", done.stderr
