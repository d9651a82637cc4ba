"""Stores of events, and the bodies of their batches, without any network."""

import doctest
import errno
import importlib
import io
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from deedbook import InvalidArgumentError, IoError, Ledger, TooLargeError
from deedbook.transient import Batch, BatchBody, DataStore, Envelope, MemoryStore, TransientDB
from deedbook.transient._body import CHUNK_BYTES
from http_kinds import events, store_of


def only(store: MemoryStore) -> BatchBody:
    result = store.fetch()
    assert result is not None and len(result.data) == len(result.removable) == 1
    return result.data[0]


@pytest.mark.parametrize("name", ["deedbook.transient", "deedbook.http", "endpoint"])
def test_the_examples_in_the_docstrings_run(name: str) -> None:
    if name == "deedbook.http":
        pytest.importorskip("urllib3")
    done = doctest.testmod(importlib.import_module(name))
    assert done.attempted > 0 and done.failed == 0


@pytest.mark.parametrize("make", [MemoryStore, lambda: TransientDB(MemoryStore())])
def test_what_a_store_is(make) -> None:
    store = make()
    assert isinstance(store, DataStore)
    assert not store.has_data() and store.fetch() is None
    store.append(b"1")
    store.append_many([bytearray(b"2"), memoryview(b"3")])
    assert store.has_data()
    result = store.fetch()
    assert isinstance(result.data[0], Batch)
    assert [list(batch.records()) for batch in result.data] == [[b"1", b"2", b"3"]]
    store.append(b"4")
    again = store.fetch()
    assert [list(batch.records()) for batch in again.data] == [[b"1", b"2", b"3"], [b"4"]]
    assert again.data[0].id == result.data[0].id, "a batch keeps its id until it is removed"
    store.remove(result.removable)
    store.remove(result.removable)
    assert [list(batch.records()) for batch in store.fetch().data] == [[b"4"]]
    store.reset()
    assert not store.has_data() and store.fetch() is None


def test_batch_ends_by_size_count_or_fetch() -> None:
    sizes = store_of([b"x" * 10] * 5, batch_bytes=20)
    assert [batch.count for batch in sizes.fetch().data] == [2, 2, 1]
    numbers = store_of([b"x"] * 7, batch_records=3)
    assert [batch.count for batch in numbers.fetch().data] == [3, 3, 1]
    assert [batch.count for batch in numbers.fetch(2).data] == [3, 3]


def test_fetch_respects_max_bytes_beyond_the_first_batch() -> None:
    store = store_of([b"x" * 10] * 4, batch_records=1)
    assert len(store.fetch(max_bytes=25).data) == 2
    assert len(store.fetch(max_bytes=5).data) == 1
    assert store.fetch(0) is None


def test_events_that_a_store_refuses() -> None:
    store = MemoryStore(record_bytes_max=10)
    with pytest.raises(InvalidArgumentError, match="at least one byte"):
        store.append(b"")
    with pytest.raises(TooLargeError, match="11 bytes, at most 10"):
        store.append(b"x" * 11)
    with pytest.raises(TypeError):
        store.append("text")  # type: ignore[arg-type]
    assert not store.has_data()
    with pytest.raises(InvalidArgumentError, match="batch_bytes is 0"):
        MemoryStore(batch_bytes=0)
    with pytest.raises(InvalidArgumentError, match="on_full"):
        MemoryStore(on_full="oldest")  # type: ignore[arg-type]


def test_a_full_store_refuses_and_counts() -> None:
    store = store_of([b"x" * 10] * 2, max_bytes=25)
    with pytest.raises(IoError, match="20 of max_bytes=25, and 10 bytes more") as refused:
        store.append(b"x" * 10)
    assert (refused.value.errno, refused.value.durable) == (errno.EDQUOT, "no")
    with pytest.raises(TooLargeError, match="26 bytes at once, max_bytes=25"):
        store.append(b"x" * 26)
    stats = store.stats()
    assert (stats.events, stats.bytes, stats.rejected_events) == (2, 20, 2)
    assert stats.to_dict()["dropped_events"] == 0
    store.remove(store.fetch().removable)
    store.append(b"x" * 10)


def test_full_stores_of_both_kinds_raise_alike(tmp_path: Path) -> None:
    with Ledger.open(tmp_path, "a", batch_bytes=100, max_bytes=100) as ledger:
        for store in (MemoryStore(max_bytes=100), ledger):
            store.append(b"x" * 80)
            with pytest.raises(IoError, match=r"of max_bytes=100, and 8[08] bytes more") as full:
                store.append(b"x" * 80)
            assert (full.value.errno, full.value.durable) == (errno.EDQUOT, "no")
            with pytest.raises(TooLargeError, match="bytes at once, max_bytes=100") as large:
                store.append(b"x" * 200)
            assert large.value.durable == "no"


def test_a_full_store_drops_the_oldest_and_counts() -> None:
    store = store_of(
        [b"a" * 10, b"b" * 10, b"c" * 10], max_bytes=25, batch_records=1, on_full="drop_oldest"
    )
    assert [list(batch.records()) for batch in store.fetch().data] == [[b"b" * 10], [b"c" * 10]]
    stats = store.stats()
    assert (stats.dropped_events, stats.dropped_bytes, stats.bytes) == (1, 10, 20)
    with pytest.raises(TooLargeError):
        store.append(b"x" * 26)


def test_threads_share_a_store() -> None:
    store = TransientDB(MemoryStore(batch_records=7))
    seen: list[bytes] = []

    def write(first: int) -> None:
        for event in events(200, start=first):
            store.append(event)

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, n * 200) for n in range(4)]
        while not all(done.done() for done in writing) or store.has_data():
            if (result := store.fetch(3)) is not None:
                seen += [record for batch in result.data for record in batch.records()]
                store.remove(result.removable)
    assert sorted(seen) == sorted(events(800))


def test_values_become_compact_json_and_bytes_stay() -> None:
    db = TransientDB(MemoryStore(header=b'{"batch":[', footer=lambda: b'],"sentAt":"now"}'))
    db.append({"event": "page_view", "who": "Zoë"})
    db.append_many([[1, 2], b'{"a": 1}'])
    body = '{"batch":[{"event":"page_view","who":"Zoë"},[1,2],{"a": 1}],"sentAt":"now"}'
    assert db.fetch().data[0].read() == body.encode()
    with pytest.raises(TypeError, match="encode a string first"):
        db.append("text")
    with pytest.raises(ValueError):
        db.append({"a": float("nan")})
    with pytest.raises(AttributeError):
        _ = db.unknown
    assert db.stats().events == 3 and db.store.has_data()


def test_batch_body_is_a_raw_stream_without_descriptor() -> None:
    body = only(store_of([b"1", b"2"]))
    assert isinstance(body, io.RawIOBase) and body.readable() and body.seekable()
    assert len(body) == body.content_length == 5 and body.read() == b"[1,2]" and body.read() == b""
    with pytest.raises(OSError):
        body.fileno()  # a client would take the length of a whole file from it
    body.close()
    with pytest.raises(ValueError, match="closed"):
        body.read()


def test_header_and_footer_are_made_once_per_body() -> None:
    made = iter(range(100))
    body = only(store_of([b"1"], header=lambda: b"%d:" % next(made), footer=b"", separator=b""))
    assert [(body.seek(0), body.read()) for _ in range(3)] == [(0, b"0:1")] * 3


@pytest.mark.parametrize("sizes", [[1], [5, 1, 9], [CHUNK_BYTES], [CHUNK_BYTES, 1], [30_000] * 7])
def test_body_reads_the_same_in_any_pieces(sizes: list[int]) -> None:
    chance = random.Random(1)
    items = [bytes([65 + n % 26]) * size for n, size in enumerate(sizes)]
    envelope = Envelope(b"<<", b">>", b"--")
    store = store_of(items, header=b"<<", footer=b">>", separator=b"--")
    body = only(store)
    whole = b"<<" + b"--".join(items) + b">>"
    assert body.envelope == envelope.seal() and body.content_length == len(whole)
    for size in (1, 2, 3, 1000, 70_000) if len(whole) < 100 else (1000, 70_000, 1 << 20):
        body.seek(0)
        assert b"".join(iter(lambda size=size: body.read(size), b"")) == whole
    for _ in range(30):
        first, size = chance.randrange(len(whole) + 2), chance.randrange(1, 200_000)
        assert body.seek(first) == body.tell() == first
        assert body.read(0) == b"" and body.tell() == first
        assert body.read(size) == whole[first : first + size]
    assert body.seek(-3, 2) == len(whole) - 3 and body.read() == whole[-3:]
    assert body.seek(-1, 1) == len(whole) - 1
    with pytest.raises(ValueError):
        body.seek(-1)
    with pytest.raises(ValueError):
        body.seek(0, 7)


def test_records_leave_the_position_alone() -> None:
    body = only(store_of([b"1", b"2", b"3"]))
    assert body.read(2) == b"[1"
    assert list(body.records(1)) == [b"2", b"3"] and list(body.records(0, 2)) == [b"1", b"2"]
    assert body.read() == b",2,3]"


def test_a_read_that_failed_can_be_repeated() -> None:
    fails = [True]

    def records(start: int, stop: int):
        yield b"1"
        if fails:
            fails.clear()
            raise OSError("disk")
        yield b"2"

    body = BatchBody("id", records, 2, 2, Envelope().seal())
    with pytest.raises(OSError, match="disk"):
        body.read()
    body.seek(0)
    assert body.read() == b"[1,2]"


@pytest.mark.parametrize("count", [1, 3])
def test_a_body_whose_records_changed_is_refused(count: int) -> None:
    """The Content-Length would be wrong: a server would wait forever, or truncate the body."""
    body = BatchBody("id", lambda start, stop: iter([b"x"] * count), 2, 2, Envelope().seal())
    with pytest.raises(ValueError, match="other records"):
        while body.read(1 << 20):
            pass


async def test_the_asynchronous_body_has_only_an_iterator() -> None:
    body = only(store_of([b"x" * 50_000] * 4))
    stream = body.stream()
    for name in ("read", "seek", "__len__", "__iter__", "__next__", "fileno"):
        assert not hasattr(stream, name)
    first = [piece async for piece in stream]
    second = [piece async for piece in stream]
    assert b"".join(first) == b"".join(second) == body.read() and len(first) > 1
