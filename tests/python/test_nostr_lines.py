"""JSON lines as Arrow columns: bad where an import says so, and else what a store gives."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import deedbook  # noqa: E402
from deedbook import EventStore, InvalidArgumentError, parse_events  # noqa: E402
from test_nostr import LARGE, LINES, made  # noqa: E402
from test_nostr_columns import SCHEMA, TAGS  # noqa: E402

CHECKS = ("none", "id", "signature")
COLUMNS = [name for name in SCHEMA.names if name != "flags"]
REAL = LARGE.read_bytes().splitlines() if LARGE.exists() else LINES
ODD = [json.dumps(made(f"odd {number}", tags=tags)).encode() for number, tags in enumerate(TAGS)]


def damaged() -> list[bytes]:
    """Real lines, and what may become of them."""
    lines = list(ODD)
    for number, line in enumerate(LINES):
        flipped = bytearray(line)
        flipped[number * 37 % len(line)] ^= 1
        lines += [line, bytes(flipped), line[: number * 101 % len(line)], line + b"\r"]
    return [line for line in lines if b"\n" not in line] + [b"", b" ", b"{}", b"\xff", b"[1]"]


def parsed(lines: Any, **options: Any) -> Any:
    return pa.record_batch(parse_events(lines, **options))


@pytest.mark.parametrize("check", CHECKS)
def test_lines_are_bad_as_in_an_import(path: Path, check: Any) -> None:
    lines = damaged()
    with EventStore.create(path, durability="manual") as store:
        report = store.import_json(io.BytesIO(b"\n".join(lines)), check=check)
    batch = parsed(lines, check=check)
    errors = [(n, text) for n, text in enumerate(batch["error"].to_pylist(), 1) if text is not None]
    assert errors == [(bad.line, bad.reason) for bad in report.bad_lines] != []
    empty = sum(not line.strip() for line in lines)
    for name in COLUMNS:
        assert batch[name].null_count == len(errors) + empty


def test_the_columns_are_those_of_a_store(path: Path) -> None:
    lines = ODD + REAL
    with EventStore.create(path, durability="manual", history="keep") as store:
        store.import_json(io.BytesIO(b"\n".join(lines)), check="none")
        stored = pa.table(store.batches(columns=COLUMNS, include="all"))
    batch = parsed(lines)
    assert batch.schema.names == [*COLUMNS, "error"]
    assert [batch.schema.field(name).type for name in COLUMNS] == stored.schema.types
    assert all(field.nullable for field in batch.schema)
    assert batch["error"].null_count == len(lines)
    kept = {row["id"]: row for row in stored.to_pylist()}
    rows = [row for row in batch.drop_columns(["error"]).to_pylist() if row["id"] in kept]
    # Others were deleted by their authors, or have expired.
    assert len(rows) >= len(kept) > 0.9 * len(lines)
    assert {row["id"]: row for row in rows} == kept
    assert all(row == kept[row["id"]] for row in rows)


def test_lines_come_as_arrow_as_bytes_and_as_anything_that_gives_them() -> None:
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


def test_what_is_too_large_for_a_store_is_wrong() -> None:
    lines = [json.dumps(made("x" * size)).encode() for size in (10, 1000, 10)]
    errors = parsed(lines, event_bytes_max=500)["error"].to_pylist()
    assert errors[::2] == [None, None] and "limit 500" in errors[1]
    assert parsed(lines)["error"].null_count == 3


def test_other_threads_go_on_while_lines_are_parsed() -> None:
    lines = pa.array(REAL * (20_000 // len(REAL)))
    turns = 0
    done = threading.Event()

    def turn() -> None:
        nonlocal turns
        while not done.wait(0.001):
            turns += 1

    thread = threading.Thread(target=turn)
    thread.start()
    try:
        before = turns
        parse_events(lines, check="signature")
        assert turns > before + 10
    finally:
        done.set()
        thread.join()


def test_it_is_documented_where_it_is_called() -> None:
    assert "JSON lines" in (deedbook.parse_events.__doc__ or "")
