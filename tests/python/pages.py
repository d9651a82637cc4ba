"""What a reader sees of a page that stands alone, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from browser import Browser

__all__ = ["WIDTHS", "look"]

WIDTHS = (390, 1200)
"""Of a telephone and of a desk."""

_SEEN = """
const all = [...document.querySelectorAll('body *')];
const sized = one => { const box = one.getBoundingClientRect(); return box.width * box.height > 0 };
const heading = document.querySelector('h1');
return {
    heading: heading.innerText,
    headingColour: getComputedStyle(heading).color,
    background: getComputedStyle(document.body).backgroundColor,
    window: window.innerWidth,
    page: document.documentElement.scrollWidth,
    widest: Math.max(...all.map(one => one.getBoundingClientRect().right)),
    charts: [...document.querySelectorAll('svg')].map(one => [one.getAttribute('aria-label'),
        sized(one) ? [...one.querySelectorAll('rect')].filter(sized).length : -1]),
    foreign: performance.getEntriesByType('resource').map(one => one.name)
        .filter(name => !name.startsWith('data:')),
    scripts: document.scripts.length,
    tiles: Object.fromEntries([...document.querySelectorAll('.tiles div')].map(one =>
        [one.querySelector('dt').innerText, one.querySelector('dd').innerText])),
    text: document.body.innerText,
};
"""


def look(window: Browser, page: Path, width: int) -> dict[str, Any]:
    """What is on the page in a window of that width; checks what holds for all pages."""
    window.go(page.as_uri(), width)
    seen: dict[str, Any] = window.run(_SEEN)
    assert window.console() == []
    assert seen["window"] == width
    assert seen["page"] <= width and seen["widest"] <= width, "it has to be scrolled sideways"
    assert seen["foreign"] == [] and seen["scripts"] == 0, "it does not stand alone"
    return seen
