"""A write-ahead log against a list: histories of a writer that drops records, and a reader."""

import contextlib
import shutil
import struct
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hypothesis")

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import deedbook
import tiers
from deedbook import Durability, InvalidArgumentError, OutOfRangeError, Record, Wal
from logs import span

pytestmark = pytest.mark.promise("wal-beside")

LIMIT = 300_000
SEGMENTS = st.sampled_from([None, 64, 600, 4096, 1 << 20])
SMALL = st.binary(max_size=40)
# Sizes around which the writer changes its method; and a payload with whole records inside.
SIZES = st.sampled_from([0, 1, 56, 255, 592, 4088, 4097, 65536 - 8, 65537, LIMIT])
NESTED = struct.pack("<II", 0x48674BC7, 0) * 3 + b"."
LONG = st.builds(lambda size, fill: bytes([fill]) * size, SIZES, st.integers(0, 255))
PAYLOADS = SMALL | st.just(NESTED) | LONG
DURABILITIES = st.sampled_from(
    ["always", timedelta(milliseconds=5), Durability.bytes(1000), "manual", "none"]
)
RECOVERIES = st.sampled_from(["valid", "acknowledged", "spec"])
NAMES = st.sampled_from(["a", "b", "c"])


class WalMachine(RuleBasedStateMachine):
    """`model` has the records from `head` to `end`; `consumers` has the next needed positions."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="deedbook-"))
        self.root = self.place / "log"
        self.head = self.end = 0
        self.model: list[Record] = []
        self.consumers: dict[str, int] = {}

    @initialize(segment_bytes=SEGMENTS, durability=DURABILITIES)
    def create(self, segment_bytes: int | None, durability: str) -> None:
        self.segment_bytes = segment_bytes
        self.longest = 8 * (segment_bytes or LIMIT)
        self.open(durability, "valid", "x", single_file=segment_bytes is None)
        self.reader = Wal.open(self.wal.path)

    def open(self, durability: str, recovery: str, mode: str = "a", **layout: bool) -> None:
        self.appends, self.records, self.bytes = 0, 0, 0
        options: dict[str, Any] = {"segment_bytes": self.segment_bytes, "recovery": recovery}
        options |= {"durability": durability, "record_bytes_max": LIMIT, **layout}
        path = self.root / "one.wal" if self.segment_bytes is None else self.root
        self.wal = Wal.open(path, mode, **options)  # type: ignore[call-overload]
        assert self.wal.durable_end == self.wal.end

    def teardown(self) -> None:
        with contextlib.suppress(AttributeError):
            self.wal.close()
            report = Wal.verify(self.wal.path)
            assert report.ok and (report.records, report.valid_end) == (len(self.model), self.end)
            assert report.verdict == "clean"
        shutil.rmtree(self.place)

    # -- writing

    def appended(self, payloads: list[bytes]) -> list[int]:
        first = len(self.model)
        for payload in payloads:
            self.model.append(Record(self.end, payload))
            self.bytes += self.model[-1].next_lsn - self.end
            self.end = self.model[-1].next_lsn
        self.records += len(payloads)
        self.appends += bool(payloads)
        return [record.lsn for record in self.model[first:]]

    @rule(payload=PAYLOADS, durably=st.booleans())
    def append(self, payload: bytes, durably: bool) -> None:
        payload = payload[: self.longest]
        append = self.wal.commit if durably else self.wal.append
        assert append(bytearray(payload)) == self.appended([payload])[0]
        assert self.wal.durable_end == self.end or not durably

    @rule(payloads=st.lists(PAYLOADS, max_size=8))
    def append_many(self, payloads: list[bytes]) -> None:
        payloads = [payload[: self.longest] for payload in payloads]
        first, added = self.end, self.wal.append_many(iter(payloads))
        lsns = self.appended(payloads)
        assert span(added) == (first, self.end) and len(added) == len(payloads)
        assert not lsns or added.last == lsns[-1]

    @rule(payload=SMALL, count=st.integers(100, 3000))
    def append_very_many(self, payload: bytes, count: int) -> None:
        payloads = [payload] * min(count, self.longest // 16)
        assert span(self.wal.append_many(payloads)) == (self.appended(payloads)[0], self.end)

    @rule(parts=st.lists(SMALL, min_size=1, max_size=4))
    def append_atomic(self, parts: list[bytes]) -> None:
        added = self.wal.append_many(iter(parts), atomic=True)
        assert self.appended([self.wal[added.first].payload]) == [added.first]
        assert (len(added), added.last, added.end) == (1, added.first, self.end)
        assert [record.parts for record in self.wal[added.first :]] == [parts]

    @rule()
    def sync(self) -> None:
        self.wal.sync()
        assert self.wal.durable_end == self.end

    # -- dropping

    def borders(self) -> list[int]:
        return [*(record.lsn for record in self.model), self.end]

    def positions(self) -> st.SearchStrategy[int]:
        borders = self.borders()
        return st.sampled_from(borders[:5] + borders[-50:]) | st.integers(0, self.end + 100)

    @staticmethod
    def raises(*errors: type[Exception] | None) -> contextlib.AbstractContextManager[Any]:
        """Expect any one of the given errors, or none if none is given."""
        kinds = tuple(error for error in errors if error)
        return pytest.raises(kinds) if kinds else contextlib.nullcontext()

    def durable_end(self, resting: bool = False) -> int:
        """The durable end; with `resting`, the thread of "interval" does not move it."""
        if resting and isinstance(self.wal.durability, timedelta):
            self.wal.sync()
        durable = self.wal.durable_end
        assert durable is not None
        return durable

    def dropped_before(self, lsn: int) -> None:
        self.head = lsn
        self.model = [record for record in self.model if record.lsn >= lsn]
        self.reader = Wal.open(self.wal.path)
        paths, size = self.wal.segment_paths, self.segment_bytes or 1
        assert paths[0].endswith(f"{lsn // size:020}.wal")
        assert sorted(map(str, self.root.glob("*.wal")))[0] == paths[0]

    def dropped_from(self, lsn: int) -> None:
        self.end = lsn
        self.model = [record for record in self.model if record.lsn < lsn]
        self.consumers = {name: min(at, lsn) for name, at in self.consumers.items()}
        assert self.wal.consumers() == self.consumers
        error = OutOfRangeError if self.reader.end > lsn else None
        with self.raises(error):
            self.reader.refresh()
        with self.raises(error):
            list(self.reader.follow(timeout=0.0))
        self.reader = Wal.open(self.wal.path)

    @rule(data=st.data(), force=st.booleans())
    def truncate_before(self, data: st.DataObject, force: bool) -> None:
        lsn, durable = data.draw(self.positions()), self.durable_end(resting=True)
        needed = not force and any(at < lsn for at in self.consumers.values())
        errors: list[type[Exception] | None] = [
            None if lsn in self.borders() else OutOfRangeError,
            InvalidArgumentError if needed or lsn > durable else None,
        ]
        with self.raises(*errors if self.segment_bytes else [deedbook.UnsupportedError]):
            self.wal.truncate_before(lsn, force=force)
            self.dropped_before(lsn)
            # With force, the consumer's records are dropped.
            self.consumers = {name: max(at, lsn) for name, at in self.consumers.items()}

    @rule(data=st.data(), keep=st.booleans())
    def truncate_the_end(self, data: st.DataObject, keep: bool) -> None:
        lsn, durable = data.draw(self.positions()), self.durable_end(resting=True)
        ends = {record.lsn: record.next_lsn if keep else record.lsn for record in self.model}
        end = ends.get(lsn, 0)
        errors = OutOfRangeError if lsn not in ends else InvalidArgumentError
        with self.raises(errors if lsn not in ends or end > durable else None):
            (self.wal.truncate_after if keep else self.wal.truncate_from)(lsn)
            self.dropped_from(end)
            assert self.wal.durable_end == end

    @rule(data=st.data(), name=NAMES)
    def set_consumer(self, data: st.DataObject, name: str) -> None:
        lsn = data.draw(self.positions())
        with self.raises(None if lsn in self.borders() else OutOfRangeError):
            self.wal.set_consumer(name, lsn)
            self.consumers[name] = lsn

    @rule(name=NAMES)
    def remove_consumer(self, name: str) -> None:
        self.wal.remove_consumer(name)
        self.consumers.pop(name, None)

    # -- ends

    @rule(durability=DURABILITIES, recovery=RECOVERIES, forget=st.booleans())
    def reopen(self, durability: str, recovery: str, forget: bool) -> None:
        """A close syncs, also with "none": by `close`, and by dropping the handle."""
        if forget:
            del self.wal
        else:
            self.wal.close()
        self.open(durability, recovery)
        report = self.wal.recovery
        assert (report.verdict, report.source, report.mark) == ("clean", "mark", "used")
        assert report.cut_records == 0

    @rule(durability=DURABILITIES, recovery=RECOVERIES)
    def reopen_without_the_sidecar(self, durability: str, recovery: str) -> None:
        self.wal.close()
        shutil.rmtree(self.root / ".deedbook")
        self.consumers = {}
        self.open(durability, recovery)
        report = self.wal.recovery
        assert (report.verdict, report.source, report.mark) == ("clean", "scan", "missing")

    # -- reading

    def check_records(self, wal: Wal, wanted: list[Record]) -> None:
        assert list(wal) == wanted
        assert list(reversed(wal)) == wanted[::-1]
        assert len(wal) == len(wanted)

    @rule(data=st.data())
    def iterate(self, data: st.DataObject) -> None:
        assert self.reader.refresh() == self.end
        self.check_records(self.reader, self.model)
        durable = self.reader.durable_end
        # The thread of "interval" stores the mark first, so a reader may be ahead of the writer.
        assert durable is None or durable <= self.durable_end(resting=True)
        number = data.draw(st.integers(0, len(self.model)))
        for wal in self.wal, self.reader:
            assert list(wal.follow(self.borders()[number], timeout=0.0)) == self.model[number:]

    @rule(data=st.data())
    def read_one_and_some(self, data: st.DataObject) -> None:
        start, given = data.draw(self.positions()), data.draw(self.positions())
        payloads = {record.lsn: record.payload for record in self.model}
        with self.raises(None if start in payloads else OutOfRangeError):
            assert self.wal.read(start).payload == payloads[start]
        stop = min(given, self.end)
        wanted = [record for record in self.model if start <= record.lsn < stop]
        error = None if {start, stop} <= set(self.borders()) else OutOfRangeError
        with self.raises(error):
            assert list(self.wal.iter(start, given)) == wanted
        with self.raises(error):
            assert list(self.wal.iter(start, given, reverse=True)) == wanted[::-1]
        with self.raises(error):
            assert list(self.wal.payloads(start, given)) == [record.payload for record in wanted]

    @rule()
    def verify_while_open(self) -> None:
        report = Wal.verify(self.wal.path)
        assert report.ok and report.records == len(self.model) and report.verdict != "corrupt"

    @invariant()
    def it_is_as_the_model(self) -> None:
        if not hasattr(self, "wal"):
            return
        wal, durable = self.wal, self.durable_end()
        assert list(wal) == self.model
        assert wal.bounds == ((self.head, self.model[-1].lsn) if self.model else None)
        assert (wal.head, wal.end, len(wal)) == (self.head, self.end, len(self.model))
        assert self.head <= durable <= self.end
        assert durable == self.end or wal.durability != "always"
        assert wal.consumers() == self.consumers
        stats = wal.stats()
        assert (stats.records, stats.bytes) == (self.records, self.bytes)
        # A large batch is appended in parts.
        assert self.appends <= stats.appends <= self.records


TestWal = WalMachine.TestCase
TestWal.settings = tiers.histories()
