"""Numbers in words."""

from __future__ import annotations

import pytest

from deedbook._text import size
from deedbook.demo import workspace


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        ((1 << 20) - 52, "1,023.9 KiB"),
        ((1 << 20) - 1, "1.0 MiB"),
        ((1 << 30) - 1, "1.0 GiB"),
        ((1 << 40) - 1, "1.0 TiB"),
        (3 << 50, "3,072.0 TiB"),
    ],
)
def test_a_size_is_told_in_the_unit_that_it_rounds_to(nbytes: int, text: str) -> None:
    """A byte below a MiB was 1,024.0 KiB."""
    assert size(nbytes) == text


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (999_999_999, "1.0 GB"),
        (5 * 10**15, "5,000.0 TB"),
    ],
)
def test_the_demo_tells_sizes_in_the_unit_that_they_round_to(nbytes: int, text: str) -> None:
    """50 bytes below a MB were 1,000.0 kB."""
    assert workspace.size(nbytes) == text
