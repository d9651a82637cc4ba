"""What a reader sees of a page that stands alone, in a real browser."""

from __future__ import annotations

from collections.abc import Sequence
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
    isVisible: heading.checkVisibility() && heading.getBoundingClientRect().height > 0,
    pictures: [...document.images].map(one => [one.getAttribute('src'), one.complete,
        one.naturalWidth, one.alt, one.getBoundingClientRect().width]),
    rows: Object.fromEntries([...document.querySelectorAll('table[id]')].map(table => [table.id,
        [...table.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell =>
            [cell.innerText, getComputedStyle(cell).color]))])),
    tiles: Object.fromEntries([...document.querySelectorAll('.tiles div')].map(one =>
        [one.querySelector('dt').innerText, one.querySelector('dd').innerText])),
    text: document.body.innerText,
};
"""


def look(window: Browser, page: Path, width: int, pictures: Sequence[str] = ()) -> dict[str, Any]:
    """What is on the page in a window of that width; checks what holds for all pages.

    It stands alone, but for the ``pictures`` beside it.
    """
    window.go(page.as_uri(), width)
    seen: dict[str, Any] = window.run(_SEEN)
    assert window.console() == []
    assert seen["window"] == width
    assert seen["page"] <= width and seen["widest"] <= width, "it has to be scrolled sideways"
    beside = {(page.parent / picture).as_uri() for picture in pictures}
    assert beside.issuperset(seen["foreign"]) and seen["scripts"] == 0, "it does not stand alone"
    return seen
