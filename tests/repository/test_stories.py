"""The seeded stories, their code and the promises that they break agree."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "scripts" / "trust"))

import filters  # noqa: E402
import markers  # noqa: E402
import stories  # noqa: E402

SEEDED = ROOT / "tests" / "python" / "seeded" / "sitecustomize.py"


def test_stories_and_their_code_match_one_to_one() -> None:
    listed = [story.name for story in stories.stories()]
    assert len(listed) == len(set(listed))
    of_python = {one.name for one in stories.stories() if one.target == filters.PYTHON}
    in_src = {
        name
        for file in (ROOT / "src").rglob("*.rs")
        if file.name != "seeded.rs"
        for name in re.findall(r'seeded!\([^;]*?"([\w-]+)" =>', file.read_text())
    }
    assert in_src == set(listed) - of_python
    table = SEEDED.read_text().partition("STORIES")[2]
    assert set(re.findall(r'^    "([\w-]+)": \(', table, re.MULTILINE)) == of_python


def test_each_story_breaks_a_promise() -> None:
    promises = {one.name for section in markers.sections(ROOT) for one in section.promises}
    assert {story.promise for story in stories.stories()} <= promises
