"""Write the project's addresses from mkdocs.yml into every file with an address of the project.

    python scripts/host.py           after site_url or extra.repository were changed
    python scripts/host.py --check   exits with 1 and says which files name another place

The script replaces the addresses found in pyproject.toml. Until there is a host, the links of the
README lead through the checkout. Later they lead to the site, as the registries need.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import NamedTuple

import site_pages

ROOT = Path(__file__).resolve().parents[1]
FILES = ("README.md", "pyproject.toml", "Cargo.toml", ".github/ISSUE_TEMPLATE/config.yml")
"""The files with an address of the project."""
NO_HOST = "//example.org/"
"""While the site has no host, the links of the README lead through the checkout."""


class Places(NamedTuple):
    """The project's site, with a slash at the end, and the repository, without a slash."""

    site: str
    repository: str


def wanted(root: Path = ROOT) -> Places:
    """The addresses in mkdocs.yml."""
    text = (root / "mkdocs.yml").read_text()
    places = Places(
        _one(text, r"^site_url: (\S+)", "mkdocs.yml"),
        _one(text, r"^  repository: (\S+)", "mkdocs.yml"),
    )
    if not places.site.endswith("/") or places.repository.endswith("/"):
        raise SystemExit("mkdocs.yml: site_url ends with a slash, repository without one")
    return places


def written(root: Path = ROOT) -> Places:
    """The addresses in pyproject.toml."""
    text = (root / "pyproject.toml").read_text()
    return Places(
        _one(text, r'^Documentation = "([^"]+)"', "pyproject.toml"),
        _one(text, r'^Source = "([^"]+)"', "pyproject.toml"),
    )


def rewritten(root: Path = ROOT) -> dict[Path, str]:
    """The files with other addresses than in mkdocs.yml, and the right text of each."""
    old, new = written(root), dict(zip(written(root), wanted(root), strict=True))
    # Replace both in one step, the longer address first: the longer may begin with the shorter.
    either = re.compile("|".join(map(re.escape, sorted(old, key=len, reverse=True))))
    found = {}
    for name in FILES:
        text = (root / name).read_text()
        should = either.sub(lambda match: new[match[0]], text)
        if name == "README.md" and NO_HOST not in wanted(root).site:
            should = with_links(should, wanted(root))
        if should != text:
            found[root / name] = should
    return found


def with_links(readme: str, places: Places) -> str:
    """The README for the registries: links that work in a checkout become links to the site."""
    brought = site_pages.outside()

    def absolute(match: re.Match[str]) -> str:
        page = brought.get(match[2], match[2].removeprefix("docs/"))
        if page == match[2]:  # of the repository alone
            return f"{match[1]}{places.repository}/blob/HEAD/{page}{match[3]}"
        page = re.sub(r"\.md$", ".html", page)
        return f"{match[1]}{places.site}{page}{match[3]}"

    return site_pages.LINK.sub(absolute, readme)


def _one(text: str, pattern: str, name: str) -> str:
    found: list[str] = re.findall(pattern, text, re.MULTILINE)
    if len(found) != 1:
        raise SystemExit(f"{name}: {len(found)} lines like {pattern}, one is needed")
    return found[0]


def main(arguments: list[str] | None = None, root: Path = ROOT) -> int:
    """Write the files, or say which differ; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args(arguments)
    for file, text in rewritten(root).items():
        if not args.check:
            file.write_text(text)
        print(f"{file.relative_to(root)}: {'names another place' if args.check else 'written'}")
    return 1 if args.check and rewritten(root) else 0


if __name__ == "__main__":
    sys.exit(main())
