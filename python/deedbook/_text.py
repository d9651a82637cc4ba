"""Numbers and damage in words: for the command line, whatever the format."""

from __future__ import annotations

from deedbook._core import Damage


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
    """As `size`, with the bytes where that leaves some out."""
    exact = count(count_bytes, "byte")
    return exact if count_bytes < 1024 else f"{size(count_bytes)} ({exact})"


def count(number: int, noun: str) -> str:
    """``1 deed``, ``1,234 deeds``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def damage_text(damage: Damage, noun: str) -> str:
    """A damaged stretch in one line; ``noun`` is what the log consists of."""
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
