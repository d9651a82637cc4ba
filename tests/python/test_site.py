"""The pages of the site: their blocks run, and nothing that they should explain is left out."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

import deedbook
from deedbook import _errors
from doc_blocks import blocks, run

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Their own tests run them: with Spark, with a server, with a C compiler.
ELSEWHERE = {"spark.md", "spark-jobs.md", "spark-clusters.md", "pipeline.md", "http.md", "c.md"}
PAGES = sorted(page for page in DOCS.glob("*.md") if page.name not in ELSEWHERE)
LANGUAGES = {"python", "sh", "text", "rust", "c", "sql", "toml", "json"}

pytestmark = [
    pytest.mark.skipif(not DOCS.exists(), reason="docs is not in this checkout"),
    pytest.mark.skipif(os.name != "posix", reason="the pages are for POSIX shells"),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert {block.language for block in blocks(page)} <= LANGUAGES
    assert run(page, tmp_path) >= len(blocks(page, "python", "sh"))
