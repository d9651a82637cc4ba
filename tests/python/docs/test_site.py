"""The blocks of the pages of the site run, and their commands are accepted."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from deedbook._cli import parser
from doc_blocks import blocks, run
from places import DOCS, SUPPORT

# Other tests run the pages with Spark, with a server, or with a C compiler.
ELSEWHERE = {"pipeline.md", "http.md", "c.md", *(page.name for page in DOCS.glob("spark*.md"))}
PAGES = sorted(page for page in DOCS.glob("*.md") if page.name not in ELSEWHERE)
HELPER = SUPPORT / "doc_blocks.py"
RUN = {"python", "sh", "text", "rust", "c", "sql", "toml", "json"}
LANGUAGES = RUN | {"ini", "yaml", "dockerfile"}  # of test_service.py

pytestmark = [
    pytest.mark.skipif(not DOCS.exists(), reason="docs is not in this checkout"),
    pytest.mark.skipif(os.name != "posix", reason="the pages are for POSIX shells"),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_blocks_of_a_page_run(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {block.language for block in blocks(page)} <= LANGUAGES
    if "os.fork" in page.read_text():  # children of this process would inherit the locks of threads
        done = subprocess.run(
            [sys.executable, HELPER, page], cwd=tmp_path, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return
    monkeypatch.chdir(tmp_path)
    run(page, tmp_path)


@pytest.mark.parametrize("page", sorted(ELSEWHERE))
def test_the_commands_of_the_other_pages_are_accepted(page: str) -> None:
    """The commands need a cluster, or never end; the test only parses them."""
    for block in blocks(DOCS / page, "sh"):
        for line in block.text.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["deedbook"]:
                parser.build(words[1:]).parse_args(words[1:])
