"""Numbers and damage in words, for the command line and all formats; also unfit characters."""

from __future__ import annotations

import re
from typing import Final

from deedbook._core import Damage

_BIDI: Final = "\u200e\u200f\u202a-\u202e\u2066-\u2069"
STEERING: Final = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{_BIDI}]")
"""Characters that steer a terminal, or turn the direction of text, except newline and tab. Foreign
names and payloads may have these characters.
"""
_RAW_IN_JSON: Final = re.compile(f"[\x7f-\x9f{_BIDI}]")
"""The characters of `STEERING` that JSON allows without an escape."""


def escape_json(text: str) -> str:
    """JSON text of the same value, without characters that steer a terminal."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _RAW_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def escape_steering(text: str) -> str:
    """The text with Python's escapes in place of characters that steer a terminal."""
    return STEERING.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def size(count_bytes: int) -> str:
    """A number of bytes for people: ``512 bytes``, ``1.5 MiB``."""
    if count_bytes == 1:
        return "1 byte"
    if count_bytes < 1024:
        return f"{count_bytes} bytes"
    amount = float(count_bytes)
    for unit in ("KiB", "MiB", "GiB", "TiB"):
        amount /= 1024
        if round(amount, 1) < 1024 or unit == "TiB":  # as it is shown
            break
    return f"{amount:,.1f} {unit}"


def exact_size(count_bytes: int) -> str:
    """As `size`, with the exact bytes after a rounded number."""
    exact = count(count_bytes, "byte")
    return exact if count_bytes < 1024 else f"{size(count_bytes)} ({exact})"


def count(number: int, noun: str) -> str:
    """``1 deed``, ``1,234 deeds``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def damage_text(damage: Damage, noun: str) -> str:
    """A damaged stretch in a line; ``noun`` is the word for a record."""
    text = f"bytes {damage.offset:,}..{damage.end:,}: {damage.reason}"
    if damage.records_lost is not None:
        text += f"; {count(damage.records_lost, noun)} lost"
        if damage.first_lost is not None and damage.records_lost > 0:
            text += f" from event {damage.first_lost}"
    elif damage.first_lost is not None:
        text += f"; from event {damage.first_lost} on"
    if damage.next_intact is not None:
        text += f"; next intact {noun} at byte {damage.next_intact:,}"
    return text
