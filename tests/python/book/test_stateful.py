"""A book against a list: random histories of appends, syncs and reopenings."""

import contextlib
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hypothesis")

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import tiers
from deedbook import Book, ContiguityError, Deed, Durability, OutOfRangeError
from logs import span

SMALL = st.binary(max_size=40)
# Around the sizes at which the writer changes its way of writing, and of nested deeds.
SIZES = st.sampled_from([0, 1, 255, 4096, 16384 - 24, 16385, 65536 - 24, 65537, 300_000])
JAMS = SMALL | st.builds(lambda size, fill: bytes([fill]) * size, SIZES, st.integers(0, 255))
MUGS = st.integers(0, 2**32 - 1)
DURABILITIES = st.sampled_from(
    ["always", timedelta(milliseconds=5), Durability.bytes(1000), "manual", "none"]
)


class BookMachine(RuleBasedStateMachine):
    """`model` holds mug and jam of every deed; `synced` how many must survive a power cut."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="deedbook-"))
        self.model: list[tuple[int, bytes]] = []

    @initialize(epoch=st.sampled_from([0, 1, 100, 2**40, 2**63]), durability=DURABILITIES)
    def create(self, epoch: int, durability: Any) -> None:
        self.epoch = epoch
        self.path = self.place / "log"
        self.book = Book.create(self.path, epoch=epoch, durability=durability)
        self.reader = Book.open(self.path)

    def teardown(self) -> None:
        with contextlib.suppress(AttributeError):
            self.book.close()
            assert Book.verify(self.path).ok
            assert Book.verify(self.path).records == len(self.model)
        shutil.rmtree(self.place)

    # -- writing

    @property
    def next(self) -> int:
        return self.epoch + len(self.model) + 1

    def appended(self, deeds: list[tuple[int, bytes]]) -> range:
        first = self.next
        self.model += deeds
        return range(first, first + len(deeds))

    @rule(jam=JAMS, mug=MUGS)
    def append(self, jam: bytes, mug: int) -> None:
        assert self.book.append(jam, mug) == self.appended([(mug, jam)])[0]

    @rule(jam=JAMS, mug=MUGS)
    def commit(self, jam: bytes, mug: int) -> None:
        assert self.book.commit(bytearray(jam), mug) == self.appended([(mug, jam)])[0]
        assert self.book.durable_last == self.book.last

    @rule(jams=st.lists(JAMS, max_size=20))
    def append_many(self, jams: list[bytes]) -> None:
        numbers = self.book.append_many(iter(jams))
        assert range(*span(numbers)) == self.appended([(0, jam) for jam in jams])

    @rule(jam=SMALL, count=st.integers(1000, 9000))
    def append_very_many(self, jam: bytes, count: int) -> None:
        numbers = self.book.append_many([jam] * count, range(count))
        assert [*numbers] == [*self.appended([(mug, jam) for mug in range(count)])]

    @rule(deeds=st.lists(st.tuples(MUGS, JAMS), max_size=5))
    def append_batch(self, deeds: list[tuple[int, bytes]]) -> None:
        mugs, jams = [mug for mug, _ in deeds], [jam for _, jam in deeds]
        numbers = self.book.append_many(jams, mugs, event=self.next, epoch=self.epoch, atomic=True)
        assert range(*span(numbers)) == self.appended(deeds)

    @rule(jams=st.lists(SMALL, min_size=1, max_size=3), off=st.sampled_from([-1, 1, 1000]))
    def a_batch_elsewhere_is_refused(self, jams: list[bytes], off: int) -> None:
        event = self.next + off
        with pytest.raises(ContiguityError):
            self.book.append_many(jams, event=event, atomic=True)

    @rule(jams=st.lists(SMALL, max_size=3))
    def append_from_an_iterable_that_breaks(self, jams: list[bytes]) -> None:
        with pytest.raises(TypeError):
            self.book.append_many([*jams, None, b"never"])  # type: ignore[list-item]
        self.appended([(0, jam) for jam in jams])

    @rule()
    def sync(self) -> None:
        self.book.sync()
        assert self.book.durable_last == self.book.last

    # -- ends

    @rule(durability=DURABILITIES, recovery=st.sampled_from(["valid", "spec"]))
    def reopen(self, durability: Any, recovery: str) -> None:
        self.book.close()
        size = (self.path / "book.log").stat().st_size
        self.book = Book.open(self.path, "a", durability=durability, recovery=recovery)  # type: ignore[arg-type]
        assert self.book.recovery.verdict == "clean" and self.book.recovery.valid_end == size

    @precondition(lambda self: self.model)
    @rule(durability=DURABILITIES)
    def reopen_without_the_sidecar(self, durability: Any) -> None:
        self.book.close()
        shutil.rmtree(self.path / ".deedbook")
        self.book = Book.open(self.path, "a", durability=durability)
        assert self.book.recovery.source == "scan"

    @rule()
    def forget_without_closing(self) -> None:
        if isinstance(self.book.durability, timedelta):
            self.book.close()  # its thread may hold the handle, and the lock, a little longer
        del self.book
        self.book = Book.open(self.path, "a", durability="manual")

    # -- reading

    def check_deeds(self, book: Book) -> None:
        wanted = [Deed(self.epoch + 1 + n, mug, jam) for n, (mug, jam) in enumerate(self.model)]
        assert list(book) == wanted
        assert list(reversed(book)) == wanted[::-1]

    @rule()
    def iterate(self) -> None:
        self.check_deeds(self.book)
        self.reader.refresh()
        self.check_deeds(self.reader)

    @rule(data=st.data())
    def slice(self, data: st.DataObject) -> None:
        count = len(self.model)
        near = st.none() | st.integers(-count - 3, -1) | st.integers(self.epoch, self.next + 2)
        start, stop = data.draw(near), data.draw(near)

        def position(key: int | None, default: int) -> int:
            if key is None:
                return default
            return min(max(key + count if key < 0 else key - self.epoch - 1, 0), count)

        jams = [jam for _, jam in self.model[position(start, 0) : position(stop, count)]]
        deeds = self.book[start:stop]
        assert list(deeds.payloads()) == jams and len(deeds) == len(jams)
        assert [deed.jam for deed in reversed(deeds)] == jams[::-1]

    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        event = data.draw(st.integers(max(self.epoch - 1, 0), self.next + 1))
        if self.epoch < event < self.next:
            assert self.book.read(event) == Deed(event, *self.model[event - self.epoch - 1])
        else:
            with pytest.raises(OutOfRangeError):
                self.book.read(event)

    @rule()
    def verify(self) -> None:
        report = Book.verify(self.path)
        assert report.ok and report.records == len(self.model) and report.verdict != "corrupt"

    @invariant()
    def bounds_agree(self) -> None:
        if not hasattr(self, "book"):
            return
        last = self.next - 1
        bounds = (self.epoch + 1, last) if self.model else None
        book = self.book
        assert (book.bounds, book.last, book.epoch, len(book)) == (
            bounds,
            last,
            self.epoch,
            len(self.model),
        )
        assert book.durable_last is not None and book.durable_last <= last
        if book.durability == "always":
            assert book.durable_last == last


TestBook = BookMachine.TestCase
TestBook.settings = tiers.histories()
