"""Charts as inline SVG: shapes stretch with the window, the text next to the shapes does not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from deedbook._show.page import escaped

__all__ = ["Bar", "Piece", "bars", "columns", "strip"]

_WIDTH: Final = 1000.0
_HEIGHT: Final = 100.0
_LEAST: Final = 1.0
"""The least width of a value above 0. A narrower shape would be invisible."""


class Piece(NamedTuple):
    """A stretch of a strip."""

    begin: float
    end: float
    style: str
    """``one``, ``two`` or ``bad``."""
    title: str
    """The text under a resting pointer."""


class Bar(NamedTuple):
    """A row of a chart: name, strip, and the text after the strip."""

    name: str
    pieces: Sequence[Piece]
    text: str


def columns(
    values: Sequence[tuple[str, float]],
    top: str,
    labels: Sequence[str],
    alt: str,
    half: str = "",
    silent: bool = False,
) -> str:
    """Columns from left to right, each with a title and a height.

    ``top`` is the label of the highest value, ``half`` the label of the line at half height.
    ``labels`` stand below from left to right, each under its column if there are as many.
    ``silent``: a stretch without a value is drawn as silence.
    """
    highest = max((value for _, value in values), default=0) or 1
    width = _WIDTH / max(1, len(values))
    shapes = "".join(
        _rect(
            number * width,
            _HEIGHT - height,
            width * (0.92 if len(values) < 120 else 1),
            height,
            "one",
            title,
        )
        for number, (title, value) in enumerate(values)
        if value
        for height in [max(_LEAST, _HEIGHT * value / highest)]
    )
    silence = "".join(
        f'<path class="silence" d="M{number * width:.2f} 0h{width:.2f}V{_HEIGHT:g}h{-width:.2f}z">'
        f"<title>{escaped(title)}</title></path>"
        for number, (title, value) in enumerate(values)
        if silent and not value
    )
    line = f'<path class="half" d="M0 {_HEIGHT / 2:g}H{_WIDTH:g}"/>' if half else ""
    legend = f"<span>{escaped(top)}</span>" + (f"<span>{escaped(half)}</span>" if half else "")
    each = len(labels) == len(values) > 2
    return (
        f'<figure><div class="axis">{legend}</div>'
        f"{_svg('plot', silence + shapes + line, alt)}{_axis(labels, each)}</figure>\n"
    )


def bars(rows: Iterable[Bar], total: float, alt: str) -> str:
    """Rows of the same scale, from 0 to ``total``."""
    cells = "".join(
        f"<span>{escaped(row.name)}</span>"
        f"{_strip('bar', row.pieces, total, f'{alt}: {row.name}')}"
        f"<span>{escaped(row.text)}</span>\n"
        for row in rows
    )
    return f'<figure class="bars">{cells}</figure>\n'


def strip(pieces: Sequence[Piece], total: float, labels: Sequence[str], alt: str) -> str:
    """A single row over the whole width, from 0 to ``total``."""
    return f"<figure>{_strip('map', pieces, total, alt)}{_axis(labels)}</figure>\n"


def _strip(style: str, pieces: Sequence[Piece], total: float, alt: str) -> str:
    scale = _WIDTH / total if total > 0 else 0.0
    shapes = ""
    for piece in pieces:
        if piece.end <= piece.begin:
            continue
        width = min(_WIDTH, max(_LEAST * 2, (piece.end - piece.begin) * scale))
        left = min(piece.begin * scale, _WIDTH - width)
        shapes += _rect(left, 0, width, _HEIGHT, piece.style, piece.title)
    return _svg(style, shapes, alt)


def _svg(style: str, shapes: str, alt: str) -> str:
    return (
        f'<svg class="{style}" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" preserveAspectRatio="none"'
        f' role="img" aria-label="{escaped(alt)}">{shapes}</svg>'
    )


def _rect(x: float, y: float, width: float, height: float, style: str, title: str) -> str:
    return (
        f'<rect class="{style}" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}">'
        f"<title>{escaped(title)}</title></rect>"
    )


def _axis(labels: Sequence[str], each: bool = False) -> str:
    if not labels:
        return ""
    style = "axis each" if each else "axis"
    cells = "".join(f"<span>{escaped(one)}</span>" for one in labels)
    return f'<div class="{style}">{cells}</div>'
