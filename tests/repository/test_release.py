"""The steps of a release that need no forge."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


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
def test_release_check_fails_on_vulnerabilities_and_skips_offline(
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


def test_package_has_all_manifest_files_and_no_environment() -> None:
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
            named = f"{folder}/{target['name']}"
            paths = {f"{named}.rs", f"{named}/main.rs", target.get("path")}
            assert paths & packed, paths
    assert {name.partition("/")[0] for name in packed if "/" in name} == {
        *("src", "tests", "examples", "benches", "docs")
    }


def test_sbom_has_no_local_path_or_test_crate(
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
