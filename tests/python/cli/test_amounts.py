"""Sizes and lengths of time as users write them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from deedbook._show import amounts


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("4096", 4096),
        ("64k", 65_536),
        ("64 KiB", 65_536),
        ("2Mb", 2 << 20),
        ("1g", 1 << 30),
    ],
)
def test_a_size_is_bytes_or_has_a_unit(text: str, size: int) -> None:
    assert amounts.size(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 5), ("500ms", 0.5), ("90 s", 90), ("10M", 600), ("2 hours", 7200), ("1 day", 86_400)],
)
def test_a_duration_is_seconds_or_has_a_unit(text: str, seconds: float) -> None:
    assert amounts.duration(text) == seconds


LONG_S, KELVIN, ARABIC_THREE = "\u017f", "\u212a", "\u0663"
WRONG = ["", "k", "-1", "1.5", "1t", "7y", f"1{LONG_S}", f"1{KELVIN}", ARABIC_THREE, " 1", "1" * 21]


@pytest.mark.parametrize("parse", [amounts.size, amounts.duration])
@pytest.mark.parametrize("text", WRONG)
def test_a_text_that_is_neither_is_refused(parse: Callable[[str], float], text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)
