"""The core's quick check of JSON lines agrees with Python's decoder."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deedbook._core import _not_json
from deedbook._show.json import JsonLines, why_not_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES, st.data())
def test_what_was_changed_is_judged_as_python_does(value: object, data: st.DataObject) -> None:
    line = bytearray(json.dumps(value).encode())
    assert _not_json([bytes(line)]) == []
    at = data.draw(st.integers(0, len(line) - 1))
    line[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    changed = bytes(line)
    assert (JsonLines([changed]).why_not(0) is None) == (why_not_json(changed) is None)
    if not _not_json([changed]):
        assert why_not_json(changed) is None


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b" ", b"NaN", b"-Infinity", b"01", b"+1", b"1.", b".5", b"'a'", b"[1,]", b"{1:2}"),
        *(b'"\x1f"', b'"\xff"', b'"\\x"', b'"\\ud80"', b"{} {}", b"\xef\xbb\xbf1", b"nul", b"1 2"),
    ],
)
def test_non_json_line_is_refused_with_a_reason(line: bytes) -> None:
    good = b'{"a":1}'
    lines = JsonLines([good, line, good])
    assert lines.why_not(1)
    assert (lines.why_not(0), lines.why_not(2)) == (None, None)


def test_deep_nesting_and_long_numbers_are_json() -> None:
    lines = [b"[" * 500 + b"]" * 500, b"1" * 10_000, b'"\\ud800"', b" 1\r"]
    assert [JsonLines(lines).why_not(index) for index in range(4)] == [None] * 4
