"""The workflows of the forge, as far as they can be judged without it."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")

pytestmark = pytest.mark.skipif(not WORKFLOWS, reason=".github is not in this checkout")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_by_its_commit(workflow: Path) -> None:
    used = re.findall(r"\buses: (.+)", workflow.read_text())
    assert used
    for action in used:
        assert PINNED.fullmatch(action), action


def test_one_action_has_one_commit() -> None:
    commits: dict[str, set[str]] = {}
    for workflow in WORKFLOWS:
        for name, commit in re.findall(r"\buses: ([\w./-]+)@(.+)", workflow.read_text()):
            commits.setdefault(name, set()).add(commit)
    assert {name: len(of) for name, of in commits.items() if len(of) > 1} == {}


def test_wheels_are_built_by_the_locked_maturin() -> None:
    """The action took the newest maturin of the day: a release could not be built again."""
    (locked,) = re.findall(
        r"^maturin==(\S+)", (ROOT / "requirements" / "build.txt").read_text(), re.MULTILINE
    )
    text = (ROOT / ".github" / "workflows" / "wheels.yml").read_text()
    pinned = re.findall(r"maturin-version: v(\S+)", text)
    assert len(pinned) == text.count("PyO3/maturin-action@") and set(pinned) == {locked}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_do_little_and_ends(workflow: Path) -> None:
    yaml = pytest.importorskip("yaml")
    read = yaml.safe_load(workflow.read_text())
    assert read["permissions"] == {"contents": "read"}
    for name, job in read["jobs"].items():
        writes = {key for key, may in job.get("permissions", {}).items() if may != "read"}
        assert writes <= {"id-token"}, name
        assert "timeout-minutes" in job or name == "publish", name


def test_the_fuzzers_end_before_their_job_does() -> None:
    """With each target that came, the last ones had less of the night, and then none."""
    yaml = pytest.importorskip("yaml")
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
def test_the_files_for_which_a_workflow_runs_are_there(workflow: Path) -> None:
    yaml = pytest.importorskip("yaml")
    asked = yaml.safe_load(workflow.read_text())[True]  # what YAML makes of `on`
    for event in filter(None, asked.values() if isinstance(asked, dict) else ()):
        for pattern in event.get("paths", ()) if isinstance(event, dict) else ():
            assert any(ROOT.glob(pattern)), pattern


def test_a_wheel_is_tested_with_all_that_is_tracked() -> None:
    """Tests read pages, scripts, workflows and results: a list of what they need grows stale."""
    yaml = pytest.importorskip("yaml")
    read = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text())
    (step,) = (
        step["run"]
        for step in read["jobs"]["linux"]["steps"]
        if "docker run" in step.get("run", "")
    )
    (archive,) = re.findall(r"git archive --output (\S+) HEAD", step)
    before, _, after = step.partition("python -m pytest")
    assert f"tar -xf /src/{archive} -C tree && cd tree &&" in before
    assert after.strip().strip("'") == '-m "not spark"'  # and not a file of them


def test_every_python_of_the_classifiers_is_tested() -> None:
    yaml = pytest.importorskip("yaml")
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    tried = {row["python"] for row in jobs["test-core"]["strategy"]["matrix"]["include"]}
    tried |= set(jobs["test"]["strategy"]["matrix"]["python"])
    named = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert len(named) >= 5 and set(named) <= tried
    steps = [step.get("run", "") for step in jobs["test"]["steps"]]
    browser = next(number for number, run in enumerate(steps) if "scripts/browser.sh" in run)
    assert browser < steps.index("make test PYTHON=python")


# Of the standard library, and not on Windows.
POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}
HERE = Path(__file__).parent
PLACES = [HERE, ROOT / "python", *(ROOT / "scripts").glob("*/")]


def at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, in their order."""
    for node in body:
        if isinstance(node, ast.If):
            if ast.unparse(node.test) != "TYPE_CHECKING":
                yield from at_import([*node.body, *node.orelse])
        elif not isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Try):
            yield node


@cache
def steps(file: Path) -> list[tuple[int, list[str], str]]:
    """What a module imports and asks for with `importorskip` when it is imported, by lines."""
    found = []
    for node in at_import(ast.parse(file.read_text(encoding="utf-8")).body):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None and node.level == 0, "imports are absolute here"
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        asked = re.search(r"importorskip\('(\w+)", ast.unparse(node))
        if names or asked:
            found.append((node.lineno, names, asked[1] if asked else ""))
    return found


@cache
def files_of(module: str) -> list[Path]:
    """The files of ours that run when this is imported, packages first; none of another module."""
    parts = module.split(".")
    stems = ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]
    ends = (".py", "/__init__.py")
    paths = [place / f"{stem}{end}" for stem in stems for place in PLACES for end in ends]
    return [path for path in paths if path.exists()]


def unmet(file: Path, given: set[str], asked: set[str], seen: set[Path]) -> Iterator[str]:
    """What a module, or one of ours that it imports, needs and neither is given nor asked for."""
    seen.add(file)
    for line, names, skips in steps(file):
        asked |= {skips}
        for name in names:
            ours = files_of(name)
            for path in ours:
                if path not in seen:
                    yield from unmet(path, given, asked, seen)
            if not ours and name.partition(".")[0] not in given | asked:
                yield f"{file.name}:{line} imports {name}"


def test_the_least_that_runs_the_tests_suffices_to_collect_them() -> None:
    """One `import pyarrow` at the top of a module, and runs without it end before the first test.

    It may stand there after a `pytest.importorskip("pyarrow")`, or in a test.
    """
    locked = (ROOT / "requirements" / "core.txt").read_text()
    packages = re.findall(r"^([\w.-]+)==", locked, re.MULTILINE)
    given = (set(sys.stdlib_module_names) - POSIX_ONLY) | set(packages)
    modules = [HERE / "conftest.py", *sorted(HERE.glob("test_*.py"))]
    assert [one for module in modules for one in unmet(module, given, set(), set())] == []


def test_every_lock_file_of_crates_is_kept_up_to_date() -> None:
    yaml = pytest.importorskip("yaml")
    read = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text())
    (cargo,) = (one for one in read["updates"] if one["package-ecosystem"] == "cargo")
    tracked = subprocess.run(
        ["git", "ls-files", "*Cargo.lock", "Cargo.lock"], cwd=ROOT, capture_output=True, text=True
    )
    if tracked.returncode != 0:
        pytest.skip("this is no checkout of git")
    locks = {f"/{Path(name).parent}".removesuffix(".") for name in tracked.stdout.split()}
    assert len(locks) >= 6 and set(cargo["directories"]) == locks


def test_what_a_release_check_leaves_out_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tomllib")
    sys.path.insert(0, str(ROOT / "scripts" / "release"))
    import check

    monkeypatch.setattr(sys, "argv", ["check.py", "--only", "versions"])
    assert check.main() == 0
    rows = [line.split(None, 1) for line in capsys.readouterr().out.splitlines()]
    left_out = {name: text for name, text in rows if text.startswith("left out")}
    steps = set(check.STEPS) - {"versions"}
    assert set(left_out) == steps | {"tests", "site", "forge"}
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for name, command in (("tests", "test"), ("site", "docs")):
        assert f"make {command}" in left_out[name] and command in targets


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX")
def test_a_hole_fails_a_release_check_and_no_network_leaves_the_audit_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tomllib")
    sys.path.insert(0, str(ROOT / "scripts" / "release"))
    import check

    text = (ROOT / ".github" / "workflows" / "advisories.yml").read_text()
    assert re.findall(r"for lock in (.+); do", text) == [" ".join(check.AUDITED)]
    program = tmp_path / "pip-audit"
    monkeypatch.setattr(check, "tool", lambda name: tmp_path / name)

    def says(line: str) -> None:
        program.write_text(f'#!/bin/sh\necho "{line}" >&2\nexit 1\n')
        program.chmod(0o755)

    says("Found 2 known vulnerabilities in 1 package")
    with pytest.raises(check.Failed, match="Found 2 known vulnerabilities in 1 package, of test"):
        check.wheels_advisories(None)
    says("requests.exceptions.ConnectionError: no name was resolved")
    with pytest.raises(check.LeftOut, match="no network"):
        check.wheels_advisories(None)
    says("ERROR:pip_audit._cli:idna: could not be audited")
    with pytest.raises(check.Failed, match="exits with 1"):
        check.wheels_advisories(None)


def test_a_release_is_what_its_tag_says() -> None:
    tomllib = pytest.importorskip("tomllib")
    sys.path.insert(0, str(ROOT / "scripts" / "release"))
    import check

    number = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert check.versions(None).startswith(f"{number} (")
    with pytest.raises(check.Failed, match=f"the tag is v9.9.9, the manifests say {number}"):
        check.versions("v9.9.9")


def test_what_is_packed_has_every_file_that_the_manifest_names_and_no_environment() -> None:
    """The sdist had no file of an example, so that it did not build; and licences of .venv."""
    tomllib = pytest.importorskip("tomllib")
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    command = ["cargo", "package", "--list", "--allow-dirty", "--offline", "-p", "deedbook"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    packed = set(done.stdout.replace("\\", "/").splitlines())
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    for kind, folder in (("test", "tests"), ("example", "examples"), ("bench", "benches")):
        for target in manifest[kind]:
            paths = {f"{folder}/{target['name']}.rs", f"{folder}/{target['name']}/main.rs"}
            assert paths & packed, paths
    assert {name.partition("/")[0] for name in packed if "/" in name} == {
        *("src", "tests", "examples", "benches", "docs")
    }


def test_a_list_of_materials_has_no_place_and_no_crate_of_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sys.path.insert(0, str(ROOT / "scripts" / "release"))
    import sbom

    def component(name: str, ref: str) -> dict[str, str]:
        return {"name": name, "version": "1.0.0", "bom-ref": ref}

    place = "path+file:///home/someone/python#deedbook-python@1.0.0"
    bill = {
        "metadata": {"component": component("deedbook-python", place)},
        "components": [component("linked", "a#1"), component("proptest", "b#1")],
        "dependencies": [{"ref": place, "dependsOn": ["a#1", "b#1"]}, {"ref": "b#1"}],
    }
    wheel = tmp_path / "deedbook-1.0.0-py3-none-any.whl"
    name = "deedbook-1.0.0.dist-info/sboms/bill.json"
    with zipfile.ZipFile(wheel, "w") as written:
        written.writestr(name, json.dumps(bill))
        written.writestr("deedbook-1.0.0.dist-info/RECORD", f"{name},sha256=x,1\nother,,\n")
    crates = {("linked", "1.0.0")}
    monkeypatch.setattr(sbom, "linked", lambda: crates)
    assert sbom.main(["--check", str(wheel)]) == 1
    assert sbom.main([str(wheel)]) == 0
    with zipfile.ZipFile(wheel) as read:
        content, record = read.read(name), read.read("deedbook-1.0.0.dist-info/RECORD").decode()
    found = json.loads(content)
    assert [one["name"] for one in found["components"]] == ["linked"]
    assert found["dependencies"] == [
        {"ref": "pkg:cargo/deedbook-python@1.0.0", "dependsOn": ["a#1"]}
    ]
    assert b"someone" not in content
    assert f",{len(content)}\n" in record and "sha256=x" not in record and "other,,\n" in record
