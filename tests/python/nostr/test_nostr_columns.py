"""Arrow columns have the events of a store, and the events of JSON lines."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nostr_columns import SCHEMA, TAGS, walked

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import deedbook  # noqa: E402
from deedbook import EventStore, InvalidArgumentError  # noqa: E402
from deedbook.jobs import parse_events  # noqa: E402
from nostr_events import EVENTS, LINES, REAL, made  # noqa: E402
from this_process import counts_during  # noqa: E402


@pytest.fixture
def store(path: Path) -> Iterator[EventStore]:
    with EventStore.create(path, durability="manual") as store:
        for number, tags in enumerate(TAGS):
            store.append(made(f"odd {number}", tags=tags, created_at=2**32 - 1 - number))
        store.append_many(EVENTS)
        yield store


def rows(stream: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pa.RecordBatchReader.from_stream(stream).read_all().to_pylist()
    return found


def test_nostr_columns_are_typed_and_match_iteration(store: EventStore) -> None:
    store.set_flags(next(iter(store)).location, deleted=True)  # type: ignore[arg-type]
    assert pa.schema(store) == pa.table(store).schema == SCHEMA
    assert rows(store) == rows(store.batches()) == walked(store)
    everything = walked(store, include="all")
    assert len(everything) > len(rows(store)) and everything[0]["flags"] == 1
    assert rows(store.batches(include="all", verify="none")) == everything
    # Parquet has neither seconds nor unsigned numbers, but returns the same values.
    parquet = pytest.importorskip("pyarrow.parquet")
    sink = pa.BufferOutputStream()
    parquet.write_table(pa.table(store), sink)
    assert parquet.read_table(pa.BufferReader(sink.getvalue())).to_pylist() == walked(store)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX")
def test_sparse_filter_skips_empty_batches_and_heeds_signals(path: Path) -> None:
    """Otherwise the walk would reach the end of the store, and then report no batch."""

    def interrupt(*_: object) -> None:
        raise InterruptedError

    with EventStore.create(path, durability="manual") as store:
        store.append_many(made("x" * (1 << 20), created_at=number) for number in range(70))
        stream = store.batches(columns=["created_at"], filter={"since": 69})
        assert [pa.record_batch(batch).num_rows for batch in stream] == [1]
        assert pa.table(store.batches(filter={"kinds": [7]})).num_rows == 0
        stream = store.batches(filter={"kinds": [7]})
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            with pytest.raises(InterruptedError):
                signal.setitimer(signal.ITIMER_REAL, 0.002)
                next(stream)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def test_wrong_batch_options_are_refused_by_name(store: EventStore) -> None:
    for wrong, says in [
        ({"columns": ["payload"]}, 'column "payload", must be one of id, pubkey'),
        ({"columns": []}, "no columns"),
        ({"filter": {"limit": 1}}, "limit"),
        ({"filter": {"kind": [1]}}, 'unknown field "kind"'),
        ({"include": "dead"}, 'include "dead"'),
        ({"verify": "md5"}, 'verify "md5"'),
        ({"on_corrupt": "cry"}, 'on_corrupt "cry"'),
    ]:
        with pytest.raises(InvalidArgumentError, match=says):
            store.batches(**wrong)  # type: ignore[arg-type]
    part = store.splits()[0]
    with pytest.raises(InvalidArgumentError, match="start and stop"):
        part.batches(start=1)
    with deedbook.Wal.create(Path(store.path).with_name("wal")) as wal:
        wal.append(b"1")
        wal.sync()
        with pytest.raises(InvalidArgumentError, match="include and filter"):
            wal.splits()[0].batches(include="all")
    store.close()
    for ask in (store.batches, store.splits, store.__arrow_c_stream__):
        with pytest.raises(deedbook.ClosedError):
            ask()


def test_a_batch_is_made_without_the_gil(store: EventStore) -> None:
    """The stream lacks events appended after its start."""
    store.append_many(made(f"{'x' * 3000} {number}") for number in range(3000))
    before = len(list(store))
    stream = store.batches(batch_rows=10**6, batch_bytes=1 << 30)
    store.append_many(made(f"later {number}") for number in range(10))
    batches = []
    during, _ = counts_during(lambda: batches.append(next(stream)))
    assert pa.record_batch(batches[0]).num_rows == before and during > 5


ODD = [json.dumps(made(f"odd {number}", tags=tags)).encode() for number, tags in enumerate(TAGS)]


def damaged() -> list[bytes]:
    lines = list(ODD)
    for number, line in enumerate(LINES):
        flipped = bytearray(line)
        flipped[number * 37 % len(line)] ^= 1
        lines += [line, bytes(flipped), line[: number * 101 % len(line)], line + b"\r"]
    return [line for line in lines if b"\n" not in line] + [b"", b" ", b"{}", b"\xff", b"[1]"]


def parsed(lines: Any, **options: Any) -> Any:
    return pa.record_batch(parse_events(lines, **options))


def test_parser_accepts_lines_as_arrow_bytes_and_iterables() -> None:
    lines = damaged()
    expected = parsed(lines)
    text = [line.decode() for line in LINES]
    table = pa.table({"file": ["x"] * len(lines), "value": lines})
    given: list[Any] = [
        iter(lines),
        [bytearray(line) for line in lines],
        [memoryview(line + b"\n") for line in lines],
        pa.array(lines, pa.binary()),
        pa.array(lines, pa.large_binary()),
        pa.chunked_array([lines[:3], lines[3:]], pa.binary()),
        table,
        table.to_batches()[0],
    ]
    for one in given:
        assert parsed(one) == expected
    for kind in (pa.string(), pa.large_string()):
        assert parsed(pa.array(text, kind)) == parsed(LINES)
    assert parsed(pa.array(lines).slice(5, 7)) == expected.slice(5, 7)
    assert parsed([]).num_rows == 0 == parsed(pa.array([], pa.binary())).num_rows


def test_what_is_refused() -> None:
    with pytest.raises(
        InvalidArgumentError, match='check "ids", must be one of "none", "id", "sig'
    ):
        parse_events(LINES, check="ids")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="value is null in row 1"):
        parse_events(pa.array([LINES[0], None]))
    with pytest.raises(InvalidArgumentError, match="value of Arrow type Int64, binary or string"):
        parse_events(pa.array([1]))
    with pytest.raises(InvalidArgumentError, match='no column "value" among line'):
        parse_events(pa.table({"line": LINES}))
    with pytest.raises(TypeError, match="bytes are needed, not str: encode it"):
        parse_events(["{}"])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="event_bytes_max"):
        parse_events(LINES, event_bytes_max="much")  # type: ignore[arg-type]


def test_other_threads_go_on_while_lines_are_parsed() -> None:
    lines = pa.array(REAL * (20_000 // len(REAL)))
    during, _ = counts_during(lambda: parse_events(lines, check="signature"))
    assert during > 10
