"""Pages of HTML in a single file, dark and light, without links to other files."""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Final

from deedbook._show.text import STEERING

__all__ = ["escaped", "fragment", "page", "table", "tiles"]

_WORD_MAX: Final = 16
"""In a narrow window, longer words may be broken."""


def page(
    title: str, body: Iterable[str], *, ok: bool, subtitle: str = "", images: str = "data:"
) -> str:
    """A whole page. ``title`` and ``subtitle`` are text, ``body`` is HTML.

    ``images`` names the sources of images that the page's Content-Security-Policy allows.
    """
    verdict = "ok" if ok else "bad"
    head = _HEAD.format(title=escaped(title), verdict=verdict, style=STYLE, images=images)
    under = f'<p class="soft">{escaped(subtitle)}</p>\n' if subtitle else ""
    return f"{head}{under}{''.join(body)}</main></html>\n"


def escaped(text: str) -> str:
    """A text as HTML; U+FFFD replaces control characters and marks of direction."""
    return html.escape(STEERING.sub("\ufffd", text))


def fragment(body: str) -> str:
    """HTML as a part of another page, such as a notebook, with a style for this part only."""

    def within(found: re.Match[str]) -> str:
        names = [name.strip() for name in found[1].split(",")]
        whole = ("body", ":root")
        scoped = [".deedbook" if name in whole else f".deedbook {name}" for name in names]
        return f"{', '.join(scoped)} {{"

    style = re.sub(r"(?:(?<=[{}])|^)\s*([^{}@]+)\{", within, STYLE.strip())
    return f'<div class="deedbook"><style>{style}</style>{body}</div>'


def tiles(facts: Iterable[tuple[str, str]]) -> str:
    """The main figures: names and values."""
    shown = [
        f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)}</dd></div>" for name, value in facts
    ]
    # No tile stands alone in the last row.
    columns = next((one for one in (5, 4, 3) if len(shown) % one != 1), 5)
    return f'<dl class="tiles" style="--columns: {columns}">{"".join(shown)}</dl>\n'


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    id_: str = "",
    classes: Sequence[str] = (),
    links: Sequence[str] = (),
) -> str:
    """A table; ``classes`` for the rows, ``links`` for their first cells."""
    head = "".join(f"<th>{escaped(cell)}</th>" for cell in header)
    body = "".join(
        (f'<tr class="{of}">' if of else "<tr>")
        + "".join(_cell(text, "" if at else link) for at, text in enumerate(row))
        + "</tr>\n"
        for row, of, link in itertools.zip_longest(rows, classes, links, fillvalue="")
    )
    name = f' id="{id_}"' if id_ else ""
    top = f"<thead><tr>{head}</tr></thead>\n" if any(header) else ""
    return f"<table{name}>\n{top}<tbody>{body}</tbody></table>\n"


def _cell(text: str, link: str = "") -> str:
    """A cell. In a narrow window, only long words may be broken."""
    is_long = max(map(len, text.split()), default=0) > _WORD_MAX
    shown = f'<a href="{escaped(link)}">{escaped(text)}</a>' if link else escaped(text)
    return f"<td{' class=long' if is_long else ''}>{shown}</td>"


STYLE: Final = """
:root { color-scheme: light dark; --ink: #24292f; --page: #fff; --line: #d8dee4; --soft: #59636e;
  --bad: #cf222e; --one: #4269d0; --two: #efb118; --ground: #f0f3f6; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --page: #0d1117; --line: #30363d;
  --soft: #9198a1; --bad: #ff7b72; --one: #7c9cf5; --two: #e3b341; --ground: #1c2129; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  margin: 0; }
main { max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; margin-bottom: .3rem; } h1.bad, tr.bad td, .bad { color: var(--bad); }
h2 { font-size: 1.1rem; margin: 2rem 0 .5rem; } h1, p, td.long { overflow-wrap: anywhere; }
.soft, dt, .axis, .note { color: var(--soft); } .note { font-size: .9em; }
dl.tiles { display: grid; grid-template-columns: repeat(var(--columns), minmax(0, 1fr));
  gap: .8rem; margin: 1.2rem 0; }
dl.tiles div { background: var(--ground); border-radius: 6px; padding: .5rem .8rem; }
dt { font-size: .85em; } dd { margin: 0; font-size: 1.15em; font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; max-width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .2rem .8rem .2rem 0;
  border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
figure { margin: .5rem 0 1.5rem; } img { max-width: 100%; }
svg { display: block; width: 100%; background: var(--ground); }
.half { stroke: var(--soft); stroke-dasharray: 4; vector-effect: non-scaling-stroke; }
.silence { fill: var(--line); } .each span { flex: 1 1 0; text-align: center; }
svg.plot { height: 180px; } svg.bar, svg.map { height: 1.1rem; }
.one { fill: var(--one); } .two { fill: var(--two); } rect.bad { fill: var(--bad); }
.axis { display: flex; justify-content: space-between; gap: .5rem; font-size: .85em; }
.bars { display: grid; grid-template-columns: minmax(0, 14rem) minmax(3rem, 1fr) auto;
  gap: .25rem .8rem; align-items: center; font-variant-numeric: tabular-nums; }
.bars span { overflow-wrap: anywhere; } .bars span:nth-child(3n) { text-align: right; }
@media (max-width: 600px) { body { font-size: 13px; } th, td { padding-right: .4rem; }
  .bars { grid-template-columns: minmax(0, 8rem) minmax(2rem, 1fr) auto; }
  dl.tiles { grid-template-columns: 1fr 1fr; } }
"""

_HEAD: Final = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; style-src 'unsafe-inline'; img-src {images}">
<title>{title}</title>
<link rel="icon" href="data:,">
<style>{style}</style>
<main><h1 class="{verdict}">{title}</h1>
"""
