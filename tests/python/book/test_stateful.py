"""A book against a list: random histories of appends, syncs, crashes and reopenings."""

import contextlib
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hypothesis")

from hypothesis import HealthCheck, settings
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
        self.copies = 0
        self.model: list[tuple[int, bytes]] = []
        self.meta: dict[str, int | bool | None] = dict.fromkeys(("who", "version", "life", "fake"))

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

    @rule(
        who=st.none() | st.integers(0, 2**128 - 1),
        life=st.none() | st.integers(0, 2**32 - 1),
        fake=st.none() | st.booleans(),
    )
    def save_meta(self, who: int | None, life: int | None, fake: bool | None) -> None:
        self.book.save_meta(who=who, life=life, fake=fake)
        if self.meta["version"] is None:
            # The file has no "not saved" for one field: the others are zero from now on.
            self.meta = {"who": 0, "version": 0, "life": 0, "fake": True}
        given = {"who": who, "life": life, "fake": fake}
        self.meta.update({name: value for name, value in given.items() if value is not None})

    # -- ends and crashes

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

    # A copy of an empty log has another inode: its mark, which has the epoch, is not believed.
    @precondition(lambda self: self.model)
    @rule(tail=st.binary(max_size=60), sidecar=st.booleans())
    def die(self, tail: bytes, sidecar: bool) -> None:
        """As after a kill -9, and with a torn write behind: a copy of the files goes on."""
        self.copies += 1
        copy = self.place / f"copy{self.copies}"
        shutil.copytree(self.path, copy)
        if not sidecar:
            shutil.rmtree(copy / ".deedbook")
        with open(copy / "book.log", "r+b") as log:
            log.seek(self.book.end)
            log.write(tail)
        with Book.open(copy) as reader:
            self.check_deeds(reader)
        with Book.open(copy, "a") as book:
            self.check_deeds(book)
            assert book.append(b"goes on") == self.next
            assert book.last == self.next
        assert Book.verify(copy).ok
        shutil.rmtree(copy)

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

    @rule(split_bytes=st.sampled_from([1, 70_000, 2**40]))
    def splits_cover_everything_once(self, split_bytes: int) -> None:
        at, event = 16, self.epoch + 1
        for split in self.book.splits(split_bytes):
            assert (split.offset, split.ordinal) == (at, event)
            at, event = split.end, event + (split.records or 0)
        assert (at, event) == (self.book.end, self.next)

    @invariant()
    def bounds_and_meta_agree(self) -> None:
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
        meta = book.meta
        assert {name: getattr(meta, name) for name in self.meta} == self.meta


TestBook = BookMachine.TestCase
TestBook.settings = settings(
    max_examples=tiers.number("EXAMPLES"),
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
