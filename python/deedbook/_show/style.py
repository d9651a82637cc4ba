"""How our pictures look."""

from __future__ import annotations

from typing import Any

__all__ = ["COLOURS", "GREY", "INK", "RED", "STYLE"]

# Most readers with a colour vision deficiency tell these apart; grey is for the rest.
COLOURS = (
    "#4269d0",
    "#efb118",
    "#ff725c",
    "#6cc5b0",
    "#3ca951",
    "#ff8ab7",
    "#a463f2",
    "#9c6b4e",
)
GREY = "#b4b8bf"
INK = "#24292f"
RED = "#cf222e"

STYLE: dict[Any, Any] = {
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#8c959f",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "date.converter": "concise",
    "figure.constrained_layout.h_pad": 0.12,
    "figure.constrained_layout.w_pad": 0.12,
}
