"""Every store in turn: appending, iterating, reopening. Each repetition visits every store."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from random import Random

from clock import Figures, Watch, human, say
from stores import OURS, ArrowStream, OwnStore, Store

CHILD = Path(__file__).with_name("child.py")

BATCH = "append as a batch, not synced"
EACH = "append one by one, surviving kill -9"
DURABLE = "append one by one, each on stable storage"
ITERATE = "iterate as bytes"
ARROW = "to Arrow, streamed in record batches"
TABLE = "to Arrow, one table in memory"
CLEAN = "reopen after a clean close"
KILLED = "reopen after kill -9"
LOST = "records lost by kill -9"
READER = "reopen after kill -9, for reading"


def group(threads: int) -> str:
    """Name of the measurement of group commit."""
    return f"durable appends by {threads} threads"


# Consecutive commits of one task.
COMMITS = 10
# The floor: begin as many tasks, each with one wait.
WAITING = "floor: asyncio tasks that wait for one future each"


def in_tasks(tasks: int) -> str:
    """Name of the measurement of commits from one event loop."""
    return f"durable appends by {human(tasks)} asyncio tasks, {COMMITS} each"


def in_new_tasks(tasks: int) -> str:
    """Name of the same measurement with new tasks: begin, commit once, end."""
    return f"durable appends by {human(tasks)} asyncio tasks begun for one each"


class Peers:
    """The measurements that a run makes for every store."""

    def __init__(
        self,
        figures: Figures,
        stores: Sequence[type[Store]],
        place: Path,
        jams: list[bytes],
        keys: list[bytes],
        seed: int,
    ) -> None:
        self.figures, self.stores, self.place = figures, stores, place
        self.jams, self.keys, self.seed = jams, keys, seed
        self.bytes = sum(map(len, jams))
        self.random = Random(seed)

    def turn(
        self,
        repetition: int,
        title: str,
        measure: Callable[[type[Store], Path], None],
        stores: Iterable[type[Store]] | None = None,
    ) -> None:
        """Measure every store once, in a new order each time."""
        say(f"repetition {repetition}: {title}")
        order = list(self.stores if stores is None else stores)
        self.random.shuffle(order)
        for store in order:
            place = self.place / "store"
            place.mkdir()
            try:
                measure(store, place / "log")
            except Exception as error:
                self.figures.fail(title, store.name, error)
            finally:
                shutil.rmtree(place)

    def run(self, repetition: int, durable: int, threads: int, tasks: int) -> None:
        """One repetition of all measurements."""
        self.turn(repetition, BATCH, self.batch)
        self.turn(repetition, EACH, self.each)
        self.turn(repetition, KILLED, self.killed)
        # Write the unwritten pages of earlier work now, not in the measured syncs.
        os.sync()
        self.turn(repetition, DURABLE, lambda store, path: self.durable(store, path, durable))
        sharing = [store for store in self.stores if store.threads]
        title = group(threads)
        self.turn(
            repetition,
            title,
            lambda store, path: self.grouped(store, path, title, durable, threads),
            sharing,
        )
        title = in_tasks(tasks)
        self.turn(
            repetition,
            title,
            lambda store, path: self.tasks(store, path, tasks),
            [store for store in self.stores if issubclass(store, OwnStore)],
        )

    def settle(self) -> None:
        """Give every store the same page cache at the start.

        The store before decides which pages are free, and in what pieces. A virtual machine may
        return free memory to the host; the next use of such a piece waits several times as long as
        the write. So this writes and removes a file before each store, in single pages and in
        pieces of all sizes.
        """
        os.sync()
        path = self.place / "settle"
        for size in (4 << 10, 256 << 10, 1020 << 10):
            block = bytes(size)
            with open(path, "wb", buffering=0) as file:
                for _ in range(2 * self.bytes // len(block)):
                    file.write(block)
            path.unlink()

    def batch(self, kind: type[Store], path: Path) -> None:
        figures, name, count = self.figures, kind.name, len(self.jams)
        self.settle()
        store = kind(path, self.keys)
        store.open()
        watch = Watch()
        store.append_batch(1, self.jams)
        figures.rate(BATCH, name, count, watch)
        store.close()

        watch = Watch()
        store.open()
        last = store.last()
        figures.span(CLEAN, name, watch)
        assert last == count, f"{last} records, {count} were written"

        watch = Watch()
        total = sum(map(len, store.jams()))
        figures.rate(ITERATE, name, count, watch)
        assert total == self.bytes, f"{total} bytes read, {self.bytes} were written"
        if isinstance(store, OwnStore):
            self.arrow(store)
        if isinstance(store, ArrowStream):
            self.arrow_stream(store)
        store.close()

    def arrow(self, store: OwnStore) -> None:
        try:
            import pyarrow as pa
        except ImportError:
            return
        watch = Watch()
        reader = pa.RecordBatchReader.from_stream(store.log)
        rows = sum(batch.num_rows for batch in reader)
        self.figures.rate(ARROW, store.name, rows, watch)
        watch = Watch()
        table = pa.RecordBatchReader.from_stream(store.log).read_all()
        self.figures.rate(TABLE, store.name, table.num_rows, watch)
        assert rows == table.num_rows == len(self.jams)

    def arrow_stream(self, store: ArrowStream) -> None:
        import pyarrow as pa

        watch = Watch()
        with pa.memory_map(str(store.path)) as file:
            rows = sum(batch.num_rows for batch in store.readable(file))
        self.figures.rate(ARROW, store.name, rows, watch)
        watch = Watch()
        with pa.memory_map(str(store.path)) as file:
            table = pa.ipc.open_stream(file).read_all()
        self.figures.rate(TABLE, store.name, table.num_rows, watch)
        assert rows == table.num_rows == len(self.jams)

    def each(self, kind: type[Store], path: Path) -> None:
        self.settle()
        store = kind(path, self.keys)
        store.open()
        watch = Watch()
        store.append_each(1, self.jams)
        self.figures.rate(EACH, kind.name, len(self.jams), watch)
        store.close()

    def durable(self, kind: type[Store], path: Path, count: int) -> None:
        store = kind(path, self.keys)
        store.open(durable=True)
        watch = Watch()
        store.append_durable(1, self.jams[:count])
        self.figures.rate(DURABLE, kind.name, count, watch)
        store.close()

    def grouped(self, kind: type[Store], path: Path, title: str, count: int, threads: int) -> None:
        store = kind(path, self.keys)
        store.open(durable=True)
        share = max(1, count * 4 // threads)
        ready = threading.Barrier(threads + 1)

        def work(i: int) -> None:
            ready.wait()
            store.append_durable(i * share + 1, self.jams[i * share : (i + 1) * share])

        workers = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
        for worker in workers:
            worker.start()
        ready.wait()
        watch = Watch()
        for worker in workers:
            worker.join()
        self.figures.rate(title, kind.name, share * threads, watch)
        total = sum(1 for _ in store.jams())
        store.close()
        assert total == share * threads, f"{total} records, {share * threads} were written"

    def tasks(self, kind: type[Store], path: Path, tasks: int) -> None:
        store = kind(path, self.keys)
        assert isinstance(store, OwnStore)
        store.open()
        # The first call pays for the loop, the worker thread and the reserved space.
        store.append_in_tasks(self.jams[:1], 1)
        for title, each in ((in_tasks(tasks), COMMITS), (in_new_tasks(tasks), 1)):
            jams = self.jams[: tasks * each]
            watch = Watch()
            store.append_in_tasks(jams, each)
            self.figures.rate(title, store.name, len(jams), watch)
            assert store.is_durable(), f"{store.log!r} is not durable"
        store.close()
        watch = Watch()
        asyncio.run(wait_in_tasks(tasks))
        self.figures.rate(WAITING, human(tasks), tasks, watch)

    def killed(self, kind: type[Store], path: Path) -> None:
        count = len(self.jams)
        size = len(self.jams[0])
        arguments = ["fill", kind.name, path, count, size, self.seed]
        command = [sys.executable, str(CHILD), *map(str, arguments)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            said = child.stdout.readline()
            child.kill()
        assert said == "filled\n", "the process that was to be killed ended by itself"
        if kind.name == OURS:
            # The reader comes first, because a writer leaves nothing to recover.
            from deedbook import Book

            watch = Watch()
            book = Book.open(path)
            last = book.last
            self.figures.span(READER, kind.name, watch)
            book.close()
            assert last == count
        store = kind(path, self.keys)
        watch = Watch()
        store.open()
        last = store.last()
        self.figures.span(KILLED, kind.name, watch)
        self.figures.value(LOST, kind.name, count - last, "records")
        store.close()


async def wait_in_tasks(tasks: int) -> None:
    """Begin tasks; each waits for a future that is done at once."""
    loop = asyncio.get_running_loop()

    async def wait() -> None:
        future = loop.create_future()
        loop.call_soon(future.set_result, None)
        await future

    await asyncio.gather(*(wait() for _ in range(tasks)))
