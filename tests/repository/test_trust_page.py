"""The published trust table, its data, its tests, and the seeded stories agree."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "scripts" / "trust"))

import filters  # noqa: E402
import inputs  # noqa: E402
import markers  # noqa: E402
import page  # noqa: E402
import results  # noqa: E402
import stories  # noqa: E402


def test_each_marker_names_a_promise() -> None:
    assert markers.wrong(ROOT) == []


def test_each_promise_has_a_proof_or_a_reason() -> None:
    proofs = markers.proofs(ROOT)
    promised = [one for section in markers.sections(ROOT) for one in section.promises]
    assert [one.name for one in promised if one.name not in proofs] == ["clock"]


def test_unknown_and_repeated_promises_are_wrong(tmp_path: Path) -> None:
    files = {
        markers.TABLE: "# Outcomes. **K** kept.\n## One\na | K | x\nb | R | y | z\nb | R | y\n",
        "src/one.rs": "    // Promise: a, b.\n    #[test]\n    fn unit() {}\n",
        "tests/ledger/two.rs": "// Promise: none.\npub fn shared() {}\n",
        "capi/tests/c.rs": "",
        "examples/power/main.rs": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert markers.wrong(tmp_path) == [
        "b: two promises of this name",
        "ledger::two::shared: no promise none",
    ]


def test_the_pages_are_made_from_the_data() -> None:
    published = json.loads((ROOT / page.DATA).read_text())
    assert (ROOT / page.DOCUMENT).read_text() == page.document(ROOT, published)
    index = (ROOT / page.INDEX).read_text()
    assert index == page.with_numbers(index, page.figures(published))
    assert page.with_numbers("**7 writers killed**", page.figures(published)) == (
        f"**{published['kill']['cycles']:,} writers killed**"
    )


def trust(tmp_path: Path, code: int = 0, failures: int = 0) -> Path:
    part = {"commit": "new", "inputs": "a", "code": code, "seconds": 1, "results": ["one"]}
    run = {"parts": {"first": {**part, "skipped": {}}}}
    (tmp_path / "run.json").write_text(json.dumps(run))
    (tmp_path / "one.json").write_text(json.dumps({"nested": {"failures": failures}}))
    return tmp_path


def test_results_of_one_commit_are_merged(tmp_path: Path) -> None:
    merged = results.merge(trust(tmp_path), "new", {"first": "b"})
    assert set(merged) == {"one", "run"}
    # Results of an earlier commit count if all inputs are the same.
    assert results.merge(tmp_path, "newer", {"first": "a"}) == merged


@pytest.mark.parametrize(
    ("commit", "wanted", "code", "failures", "why"),
    [
        ("newer", ["first"], 0, 0, "is of commit new"),
        ("new-changed", ["first"], 0, 0, "commit first"),
        ("new", ["first", "second"], 0, 0, "second was not run"),
        ("new", ["first"], 1, 0, "first failed"),
        ("new", ["first"], 0, 3, "has failures"),
    ],
)
def test_stale_and_failed_results_are_refused(
    tmp_path: Path, commit: str, wanted: list[str], code: int, failures: int, why: str
) -> None:
    with pytest.raises(results.Stale, match=why):
        results.merge(trust(tmp_path, code, failures), commit, dict.fromkeys(wanted, "b"))


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_proof_depends_on_sources_helpers_and_own_tests(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True, capture_output=True)

    files = ("src/lib.rs", "tests/one/a.rs", "tests/one/b/mod.rs", "tests/support/mod.rs")
    files += ("tests/mutants/explained.txt", "tests/python/test_x.py", "python/x.py", "docs/x.md")
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("1")
    (tmp_path / "tests/one/main.rs").write_text("")
    git("init")
    git("add", "-A")
    uses: dict[str, list[str] | None] = {"one": ["one::a"], "python": ["python"], "all": None}

    def hashes() -> dict[str, str]:
        inputs.files_of.cache_clear()
        return {name: inputs.inputs(tmp_path, targets) for name, targets in uses.items()}

    def voided_by(name: str) -> set[str]:
        before = hashes()
        (tmp_path / name).write_text("2")
        after = hashes()
        return {use for use in uses if before[use] != after[use]}

    everything = {"one", "python", "all"}
    assert [voided_by(name) for name in files] == [
        everything, {"one", "all"}, {"all"}, everything,
        set(), {"python", "all"}, {"python", "all"}, {"python", "all"},
    ]  # fmt: skip


def test_a_skipped_test_does_not_prove_its_promise(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    junit.write_text(
        '<testsuites><testsuite><testcase classname="deedbook::book" name="limits::deep::an_event">'
        "<system-out>running\nskipped: needs 5 GB of memory\n</system-out></testcase>"
        '<testcase classname="deedbook::book" name="limits::other"/></testsuite></testsuites>'
    )
    skipped = results.skipped_by(junit, 0)
    assert skipped == {"book::limits::an_event": "needs 5 GB of memory"}
    assert results.skipped_by(junit, junit.stat().st_mtime + 1) == {}
    output = "SKIPPED [1] tests/python/spark/read/test_x.py:21: no /proc\n"
    assert results.skipped_in(output) == {"py:test_x.py": "no /proc"}
    line = page.promise(markers.Promise("x", "K", "y"), ["book::limits::an_event"], skipped)
    assert "**not proved** — skipped: `book::limits::an_event`, needs 5 GB" in line


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
