"""JSON lines as Arrow columns: bad where an import says so, and else what a store gives."""

import json
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")

from deedbook import InvalidArgumentError  # noqa: E402
from deedbook.jobs import parse_events  # noqa: E402
from nostr_columns import TAGS  # noqa: E402
from nostr_events import LINES, REAL, made  # noqa: E402
from this_process import counts_during  # noqa: E402

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
