"""What a test endpoint finds in a request: the events, byte by byte."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

_decode = json.JSONDecoder().raw_decode
_SPACE: Final = " \t\n\r"
# Where events lie: Segment's, PostHog's and RudderStack's batches, OTLP logs, and the like.
_KEYS: Final = ("batch", "events", "resourceLogs", "scopeLogs", "logRecords")


def events_in(body: bytes, content_type: str) -> list[bytes]:
    """The events of a request body, as they stand in it; ValueError if it is not understood.

    A body is JSON lines if its type says so; otherwise an array of events, or an object that has
    one under a usual name: ``batch``, ``events``, or OTLP's ``logRecords``.
    """
    if "ndjson" in content_type or "jsonl" in content_type:
        lines = body.split(b"\n")
        if lines.pop() != b"":
            raise ValueError("the last line has no newline")
        for line in lines:
            json.loads(line)
        return lines
    text = body.decode()
    begin = _skip(text, 0)
    _, end = _decode(text, begin)
    if _skip(text, end) != len(text):
        raise ValueError("something follows the JSON value")
    return [text[first:last].encode() for first, last in _events(text, begin)]


def _events(text: str, begin: int) -> Iterator[tuple[int, int]]:
    """Where the events of a JSON value lie in the text, which is known to be JSON."""
    if text[begin] == "[":
        yield from _elements(text, begin)
        return
    if text[begin] != "{":
        raise ValueError("neither an array nor an object")
    found = False
    for key, first in _members(text, begin):
        if key in ("resourceLogs", "scopeLogs"):
            found = True
            for inner, _ in _elements(text, first):
                yield from _events(text, inner)
        elif key in _KEYS:
            found = True
            yield from _elements(text, first)
    if not found:
        raise ValueError(f"no array under any of {_KEYS}")


def _elements(text: str, begin: int) -> Iterator[tuple[int, int]]:
    if text[begin] != "[":
        raise ValueError("an array is expected")
    at = _skip(text, begin + 1)
    while text[at] != "]":
        _, end = _decode(text, at)
        yield at, end
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _members(text: str, begin: int) -> Iterator[tuple[str, int]]:
    at = _skip(text, begin + 1)
    while text[at] != "}":
        key, end = _decode(text, at)
        first = _skip(text, _skip(text, end) + 1)  # after the colon
        yield key, first
        _, end = _decode(text, first)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at
