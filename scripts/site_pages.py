"""Hooks of `mkdocs build`: pages next to the code become pages of the site.

The byte tables lie in src/, where the crate's documentation includes them, and the benchmarks in
benches/results, where the benchmarks write them. All pages have links of the repository, which work
in a checkout. The hooks turn them into links of the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
FORMATS = ("book", "wal", "ledger", "nostr")
RUSTDOC = "rustdoc/deedbook/index.html"
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")


def outside() -> dict[str, str]:
    """The place in the site of each file outside docs/."""
    places = {f"src/{name}/FORMAT.md": f"formats/{name}.md" for name in FORMATS}
    for file in sorted((ROOT / "benches" / "results").iterdir()):
        places[f"benches/results/{file.name}"] = f"benchmarks/{file.name}"
    return places


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the files from outside."""
    from mkdocs.structure.files import File

    for source, place in outside().items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links of the repository become links of the site, and rustdoc's marks go."""
    return for_site(markdown, page.file.src_uri)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """A page that would load something from another host fails the build."""
    foreign = re.findall(
        r"<(?:script|img|iframe|source)\b[^>]*\bsrc=[\"']?https?://[^\s>]*", output
    )
    foreign += re.findall(r"<link\b[^>]*stylesheet[^>]*https?://[^\s>]*", output)
    if foreign:
        raise SystemExit(f"{page.file.src_uri} loads from another host: {foreign[0]}")
    return output


def for_site(markdown: str, place: str) -> str:
    """The text of the page at ``place``, with links that lead within the site."""
    places = outside()
    origins = {to: source for source, to in places.items()}
    origin = origins.get(place, f"docs/{place}")

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(origin), match[2]))
        inside = places.get(target, target.removeprefix("docs/"))
        if inside == target:
            return match[0]  # the build complains of it
        return match[1] + posixpath.relpath(inside, posixpath.dirname(place) or ".") + match[3]

    if origin.startswith("src/"):
        markdown = without_rustdoc(markdown)
    # `make docs` puts the Rust documentation next to the pages. The repository has no such page to
    # link to.
    markdown = markdown.replace(f"`{RUSTDOC}`", f'<a href="{RUSTDOC}">{RUSTDOC}</a>')
    # Only rustdoc reads the words after the language.
    markdown = re.sub(r"^```rust,\w+$", "```rust", markdown, flags=re.MULTILINE)
    return LINK.sub(moved, markdown)


def without_rustdoc(markdown: str) -> str:
    """Hidden lines of examples go, a fence without a language is Rust, and names lose brackets."""

    def shown(match: re.Match[str]) -> str:
        lines = [line for line in match[1].splitlines(True) if not re.match(r"# |#$", line)]
        return "```rust\n" + "".join(lines) + "```\n"

    markdown = re.sub(r"^```\n(.*?)^```\n", shown, markdown, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"\[(`[^`\]]+`)\](?![(\[])", r"\1", markdown)
