"""Every spool in turn, then the ledger alone: reading, sending, memory."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING

from clock import Figures, Watch, say
from peers import CHILD, DURABLE, EACH, KILLED, Peers
from spools import BATCH_BYTES, BLOCK_BYTES, LEDGER, Spool
from stores import PART, Store

if TYPE_CHECKING:
    from deedbook import Ledger
    from deedbook.http import SenderStats

MIB = 1 << 20
HEADER_BYTES = 8
"""Bytes of a ledger's record in addition to its payload."""

BATCH = f"append in batches of {PART}, surviving kill -9"
READ = "read a batch of 475 KB as a request's body, again and again"
TAKE = "fetch, read and remove batches of 475 KB"
FILL = "append to a backlog that grows to"
SEND = "send batches of 475 KB on loopback"
BEGUN = "before it began"
"""Memory of the process before the work, for the interpreter and the modules."""

FAR = "send batches of 475 KB over a link of 50 ms"
FAR_REQUESTS = (1, 4, 16)
"""Requests at a time over the link."""

OUR_ENDPOINT = "the test endpoint, which parses every event"
COUNTING = "a server that only reads"


def drained(what: str) -> str:
    """Name of the measurement of a sender's memory."""
    return f"peak memory of a process that sends {what}"


def streamed(total: int) -> str:
    """Name of the measurement of a reader's memory."""
    return f"peak memory of a process that reads one file of {total // MIB} MiB"


class Spools(Peers):
    """The measurements of every spool."""

    turns = 0

    def run(self, repetition: int, durable: int, threads: int = 0, tasks: int = 0) -> None:
        """One repetition of all measurements; spools ignore threads and tasks."""
        spools = [kind for kind in self.stores if issubclass(kind, Spool)]
        self.turn(repetition, BATCH, self.batch, [kind for kind in spools if kind.batches])
        self.turn(repetition, EACH, self.each)
        os.sync()
        self.turn(
            repetition,
            DURABLE,
            lambda store, path: self.durable(store, path, durable),
            [kind for kind in spools if kind.syncs],
        )
        self.turn(repetition, READ, self.read, [kind for kind in spools if kind.read_mode])

    def turn(
        self,
        repetition: int,
        title: str,
        measure: Callable[[type[Store], Path], None],
        stores: Iterable[type[Store]] | None = None,
    ) -> None:
        """The same as the peers' turn, but only empty the files, and remove them after the run.

        ext4 reuses the inode of a removed file only after one to five minutes, and creating a file
        passes over each such inode. A ledger has many files, and would pay for the files of the
        store before.
        """
        self.turns += 1

        def measure_there(kind: type[Store], path: Path) -> None:
            place = self.place / f"kept-{self.turns}-{list(self.stores).index(kind)}"
            place.mkdir()
            try:
                measure(kind, place / path.name)
            finally:
                for file in place.rglob("*"):
                    if file.is_file():
                        os.truncate(file, 0)

        super().turn(repetition, title, measure_there, stores)

    def share(self, kind: type[Store]) -> list[bytes]:
        """The events for a spool."""
        assert issubclass(kind, Spool)
        return self.jams[: kind.given(len(self.jams))]

    def batch(self, kind: type[Store], path: Path) -> None:
        self.fill(kind, path, BATCH)

    def each(self, kind: type[Store], path: Path) -> None:
        self.fill(kind, path, EACH)

    def fill(self, kind: type[Store], path: Path, measure: str) -> None:
        """Append, in batches or one by one, and count the events in the store."""
        jams = self.share(kind)
        self.settle()
        store = kind(path, self.keys)
        store.open()
        append = store.append_batch if measure == BATCH else store.append_each
        watch = Watch()
        append(1, jams)
        self.figures.rate(measure, kind.name, len(jams), watch)
        assert store.last() == len(jams), f"{store.last()} events, {len(jams)} were appended"
        store.close()

    def read(self, kind: type[Store], path: Path) -> None:
        """Bytes per second of one batch, read from memory and made a body repeatedly."""
        count = BATCH_BYTES // (len(self.jams[0]) + HEADER_BYTES)
        store = kind(path, self.keys)
        assert isinstance(store, Spool)
        store.open()
        store.append_batch(1, self.jams[:count])
        total = store.body(count)
        bodies = max(len(self.jams) // count, 1)
        watch = Watch()
        for _ in range(bodies):
            store.body(count)
        self.figures.rate(READ, kind.name, total * bodies, watch)
        store.close()

    def lost(self) -> None:
        """Fill each spool in another process, kill it, and count."""
        self.turn(1, KILLED, self.killed)


def fill_ledger(path: Path, event: bytes, total: int, batch_bytes: int = BATCH_BYTES) -> int:
    """Append about ``total`` bytes of equal events; returns the number of events."""
    from deedbook import Ledger

    count = total // (len(event) + HEADER_BYTES)
    with Ledger.open(path, "a", batch_bytes=batch_bytes) as ledger:
        ledger.append_many(repeat(event, count))
    return count


@contextmanager
def served(*command: str) -> Iterator[str]:
    """Run a server, which prints its port or its URL first, until the end of the block."""
    with subprocess.Popen(
        [sys.executable, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdin is not None and server.stdout is not None
        try:
            said = server.stdout.readline().strip()
            yield f"http://127.0.0.1:{said}/" if said.isdigit() else said
        finally:
            server.stdin.close()
            server.terminate()


@contextmanager
def both_servers() -> Iterator[dict[str, str]]:
    """The URLs of the servers that receive batches."""
    clients = str(Path(__file__).with_name("http_clients.py"))
    with (
        served(str(Path(__file__).parents[2] / "examples" / "endpoint.py"), "--quiet") as endpoint,
        served(clients, "--serve") as counting,
    ):
        yield {OUR_ENDPOINT: endpoint, COUNTING: counting}


def take(figures: Figures, place: Path, event: bytes, batches: int) -> None:
    """Bytes per second of a batch from fetch to removal, without a request."""
    from deedbook import Ledger

    path, total = place / "take", 0
    fill_ledger(path, event, batches * BATCH_BYTES)
    os.sync()
    buffer = bytearray(BLOCK_BYTES)
    with Ledger.open(path, "a") as ledger:
        watch = Watch()
        while (result := ledger.fetch(16)) is not None:
            for body in result.data:
                while read := body.readinto(buffer):
                    total += read
                body.close()
            ledger.remove(result.removable)
        figures.rate(TAKE, LEDGER, total, watch)
    shutil.rmtree(path)


def send(figures: Figures, place: Path, event: bytes, batches: int, urls: dict[str, str]) -> None:
    """Events per second of a sender from a ledger to a server in another process."""
    from deedbook import Ledger
    from deedbook.http import AsyncSender, Sender

    for server, url in urls.items():
        for sender_class in (Sender, AsyncSender):
            path = place / "send"
            count = fill_ledger(path, event, batches * BATCH_BYTES)
            os.sync()
            with Ledger.open(path, "a") as ledger:
                watch = Watch()
                if sender_class is Sender:
                    with Sender(ledger, url) as sender:
                        done = sender.drain()
                        stats = sender.stats()
                else:
                    done, stats = asyncio.run(drain_async(ledger, url))
                figures.rate(SEND, f"{sender_class.__name__}, {server}", count, watch)
            assert done and stats.events_sent == count and not stats.retries, stats
            shutil.rmtree(path)


def send_far(figures: Figures, place: Path, event: bytes, batches: int, url: str) -> None:
    """Events per second of a sender to a server that is 50 ms away."""
    from deedbook import Ledger
    from deedbook.http import Sender

    link = str(Path(__file__).with_name("far.py"))
    with served(link, url.rsplit(":", 1)[1].strip("/")) as far:
        for requests in FAR_REQUESTS:
            path = place / "send"
            count = fill_ledger(path, event, batches * BATCH_BYTES)
            with Ledger.open(path, "a") as ledger:
                watch = Watch()
                with Sender(ledger, far, concurrency=requests) as sender:
                    done = sender.drain()
                    stats = sender.stats()
                figures.rate(FAR, f"{requests} at a time", count, watch)
            assert done and stats.events_sent == count and not stats.retries, stats
            shutil.rmtree(path)


async def drain_async(ledger: Ledger, url: str) -> tuple[bool, SenderStats]:
    """Send all of a ledger from an event loop."""
    from deedbook.http import AsyncSender

    async with AsyncSender(ledger, url) as sender:
        return await sender.drain(), sender.stats()


def measure_memory(
    figures: Figures, place: Path, event: bytes, backlogs: list[int], single: int, url: str
) -> None:
    """Peak memory of processes that send a backlog, or read one large file."""
    path = place / "backlog"
    for total in backlogs:
        if shutil.disk_usage(place).free < total * 5 // 4:
            say(f"skipped: a backlog of {total // MIB} MiB needs more disk")
            continue
        watch = Watch()
        count = fill_ledger(path, event, total)
        figures.rate(FILL, f"{total // MIB} MiB", count, watch)
        peak(figures, drained(f"{total // MIB} MiB"), "drain", path, url)
    fill_ledger(path, event, 12 * BATCH_BYTES)
    peak(figures, drained("twelve files of 475 KB"), "drain", path, url)
    fill_ledger(path, event, single, batch_bytes=2 * single)
    peak(figures, streamed(single), "stream", path)
    fill_ledger(path, event, single, batch_bytes=2 * single)
    peak(figures, drained(f"one file of {single // MIB} MiB"), "drain", path, url)


def peak(figures: Figures, measure: str, what: str, path: Path, url: str = "") -> None:
    """Record the peak of a new process, with the interpreter; then remove the data."""
    command = [sys.executable, str(CHILD), what, str(path), *([url] if url else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    shutil.rmtree(path)
    if done.returncode != 0:
        reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        figures.fail(measure, LEDGER, RuntimeError(reason))
        return
    whole, begun = (int(word) / MIB for word in done.stdout.split())
    figures.value(measure, LEDGER, whole, "MiB")
    figures.value(measure, BEGUN, begun, "MiB")
