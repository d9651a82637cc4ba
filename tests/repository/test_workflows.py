"""The workflows of the forge, as far as they can be judged without it."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

pytestmark = pytest.mark.skipif(not WORKFLOWS, reason=".github is not in this checkout")


def test_wheels_are_built_by_the_locked_maturin() -> None:
    """The action took the newest maturin of the day: a release could not be built again."""
    (locked,) = re.findall(
        r"^maturin==(\S+)", (ROOT / "requirements" / "build.txt").read_text(), re.MULTILINE
    )
    text = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    pinned = re.findall(r"maturin-version: v(\S+)", text)
    assert len(pinned) == text.count("PyO3/maturin-action@") and set(pinned) == {locked}


def test_the_fuzzers_end_before_their_job_does() -> None:
    """With each target that came, the last ones had less of the night, and then none."""
    text = (ROOT / ".github" / "workflows" / "fuzz.yml").read_text()
    seconds = int(re.findall(r"FUZZ_SECONDS=(\d+)", text)[0])
    targets = len(list((ROOT / "fuzz" / "fuzz_targets").glob("*.rs")))
    (job,) = yaml.safe_load(text)["jobs"].values()
    assert targets * seconds < (job["timeout-minutes"] - 30) * 60


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_what_a_workflow_calls_is_there(workflow: Path) -> None:
    text = workflow.read_text()
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z-]+)", text)) <= targets
    for path in re.findall(r"\b((?:scripts|requirements)/[\w/.-]+\.(?:py|sh|txt))", text):
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_path_filters_match_existing_files(workflow: Path) -> None:
    asked = yaml.safe_load(workflow.read_text())[True]  # what YAML makes of `on`
    for event in filter(None, asked.values() if isinstance(asked, dict) else ()):
        for pattern in event.get("paths", ()) if isinstance(event, dict) else ():
            assert any(ROOT.glob(pattern)), pattern


def test_every_python_of_the_classifiers_is_tested() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    tried = {row["python"] for row in jobs["test-core"]["strategy"]["matrix"]["include"]}
    tried |= set(jobs["test"]["strategy"]["matrix"]["python"])
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert len(named) >= 5 and set(named) <= tried
    steps = [step.get("run", "") for step in jobs["test"]["steps"]]
    browser = next(number for number, run in enumerate(steps) if "scripts/browser.sh" in run)
    assert browser < steps.index("make test PYTHON=python")


def test_dependabot_covers_every_cargo_lock_file() -> None:
    read = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())
    (cargo,) = (one for one in read["updates"] if one["package-ecosystem"] == "cargo")
    tracked = subprocess.run(
        ["git", "ls-files", "*Cargo.lock", "Cargo.lock"], cwd=ROOT, capture_output=True, text=True
    )
    if tracked.returncode != 0:
        pytest.skip("this is no checkout of git")
    locks = {f"/{Path(name).parent}".removesuffix(".") for name in tracked.stdout.split()}
    assert len(locks) >= 5 and set(cargo["directories"]) == locks
