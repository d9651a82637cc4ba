"""Try every step of a release that needs no forge, and list the steps left out.

    python scripts/release/check.py                 the tree as it is
    python scripts/release/check.py --tag v0.1.0    and whether it is what the tag says
    python scripts/release/check.py --only versions,crate

Builds below target/release-check. Exits with 1 if a step failed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "target" / "release-check"
PYTHON = sys.executable
AUDITED = ("test", "bench", "docs", "release", "types")
"""The audited lock files, the same as in advisories.yml."""
HOLES = re.compile(r"^Found \d+ known vulnerabilit.*", re.MULTILINE)
NOT_ASKED = re.compile(
    r"^requests\.exceptions\.(?:Connection|Proxy|SSL)Error"
    r"|^requests\.exceptions\.(?:Connect|Read)Timeout"
    r"|Could not connect to PyPI",
    re.MULTILINE,
)
"""The messages of pip-audit without a connection."""
SMOKE = """
import deedbook
with deedbook.Book.open("log", "a") as book:
    book.append_many([b"one", b"two"])
with deedbook.open("log") as book:
    assert [deed.jam for deed in book] == [b"one", b"two"]
"""


class LeftOut(Exception):
    """Why a step was not done."""


class Failed(Exception):
    """A failed step, with the output of the command."""

    def __init__(self, what: str, said: str = "") -> None:
        super().__init__(what)
        self.said = said


def run(*command: str | Path, cwd: Path = ROOT, **env: str) -> str:
    """Run a command; its output. Raises `Failed`."""
    words = [str(word) for word in command]
    print("==", " ".join(words), flush=True)
    done = subprocess.run(
        words, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, errors="replace"
    )
    if done.returncode != 0:
        sys.stdout.write(done.stdout[-4000:] + done.stderr[-4000:])
        said = done.stdout + done.stderr
        raise Failed(f"{words[0]} exits with {done.returncode}", said)
    return done.stdout


def tool(name: str) -> Path:
    """A command of the lock file release.txt."""
    found = Path(PYTHON).with_name(name)
    if not found.exists():
        raise LeftOut(f"{name} is not installed (make release-check installs it)")
    return found


def version() -> str:
    """The workspace's version."""
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text())
    found: str = manifest["workspace"]["package"]["version"]
    return found


def versions(tag: str | None) -> str:
    """Every manifest has the workspace's version, and the changelog has an entry for the
    version."""
    ours = version()
    for name in ("Cargo.toml", "python/Cargo.toml", "capi/Cargo.toml"):
        package = tomllib.loads((ROOT / name).read_text())["package"]
        if package["version"] != {"workspace": True}:
            raise Failed(f"{name} has a version of its own: {package['version']}")
    capi = tomllib.loads((ROOT / "capi/Cargo.toml").read_text())["dependencies"]["deedbook"]
    if capi["version"] != ours:
        raise Failed(f"capi/Cargo.toml needs deedbook {capi['version']}, this is {ours}")
    changes = (ROOT / "CHANGELOG.md").read_text()
    entry = re.search(rf"^## {re.escape(ours)} \((.+)\)\n\n(?=\S)", changes, re.MULTILINE)
    if tag is not None and tag != f"v{ours}":
        raise Failed(f"the tag is {tag}, the manifests say {ours}")
    if entry is None:
        raise Failed(f'CHANGELOG.md has no entry "## {ours} (DATE)"')
    if tag is not None and not re.fullmatch(r"\d{4}-\d\d-\d\d", entry[1]):
        raise Failed(f"CHANGELOG.md dates {ours} {entry[1]!r}, a release has a date")
    return f"{ours} ({entry[1]})"


def crate(tag: str | None) -> str:
    """The packed crate for crates.io builds alone."""
    dirty = [] if tag is not None else ["--allow-dirty"]
    run("cargo", "package", "--locked", "-p", "deedbook", *dirty, "--target-dir", OUT / "crate")
    packed = OUT / "crate" / "package" / f"deedbook-{version()}.crate"
    with tarfile.open(packed) as archive:
        names = archive.getnames()
    for needed in ("README.md", "LICENSE-MIT", "LICENSE-APACHE", "CHANGELOG.md", "src/lib.rs"):
        if f"deedbook-{version()}/{needed}" not in names:
            raise Failed(f"{needed} is not in the crate")
    nothing_else(names, "the crate")
    return f"{len(names)} files, {packed.stat().st_size:,} bytes"


def nothing_else(names: list[str], what: str) -> None:
    """Fail for an untracked file, unless packing makes the file."""
    made = {"Cargo.toml.orig", ".cargo_vcs_info.json", "PKG-INFO", "Cargo.lock"}
    known = set(run("git", "ls-files").splitlines()) | made
    strays = [name for name in names if name.partition("/")[2] not in known]
    if strays:
        raise Failed(f"{what} has {len(strays)} files that git does not have: {strays[0]}")


def semver(tag: str | None) -> str:
    """The version fits the changes to the public interface."""
    if shutil.which("cargo-semver-checks") is None:
        raise LeftOut("cargo-semver-checks is not installed")
    last = run("git", "tag", "--list", "v*", "--sort=-v:refname").split()
    last = [one for one in last if one != f"v{version()}"]
    if not last:
        raise LeftOut("there is no release before this one")
    run("cargo", "semver-checks", "-p", "deedbook", "--baseline-rev", last[0])
    return f"against {last[0]}"


def wheels(tag: str | None) -> str:
    """Build a wheel for this Python, a wheel for the stable ABI, and the sdist."""
    shutil.rmtree(OUT / "dist", ignore_errors=True)
    each = [tool("maturin"), "build", "--release", "--locked", "--out", OUT / "dist"]
    run(*each, "--interpreter", PYTHON)
    if sys.version_info >= (3, 11):
        run(*each, "--interpreter", PYTHON, "--features", "abi3")
    run(tool("maturin"), "sdist", "--out", OUT / "dist")
    with tarfile.open(built(".tar.gz")[0]) as archive:
        nothing_else([one.name for one in archive if one.isfile()], "the sdist")
    run(PYTHON, "scripts/release/sbom.py", *sorted((OUT / "dist").glob("*.whl")))
    made = built("")
    return ", ".join(f"{one.name} ({one.stat().st_size >> 10:,} KiB)" for one in made)


def built(ending: str) -> list[Path]:
    """The files made by `wheels`. Raises `LeftOut`."""
    found = sorted((OUT / "dist").glob(f"*{ending}"))
    if not found:
        raise LeftOut(f"there is no *{ending}")
    return found


def twine(tag: str | None) -> str:
    """PyPI can show the README, and the links lead to the site."""
    if tag is not None and re.search(r"\]\((?!https://)", (ROOT / "README.md").read_text()):
        raise Failed("README.md has links of a checkout: scripts/host.py writes those of the site")
    run(tool("twine"), "check", "--strict", *built(""))
    return "the README is shown"


def stable_abi(tag: str | None) -> str:
    """The wheel for the stable ABI uses nothing else."""
    run(tool("abi3audit"), "--strict", *built("abi3*.whl"))
    return "nothing but the stable ABI"


def smoke(tag: str | None) -> str:
    """The wheel and the sdist work, each in an environment with nothing else."""
    own = [one for one in built(".whl") if "abi3" not in one.name]
    for file in (*own, *built(".tar.gz")):
        place = OUT / "smoke"
        shutil.rmtree(place, ignore_errors=True)
        run(PYTHON, "-m", "venv", place)
        run(place / "bin" / "python", "-m", "pip", "install", "--quiet", file)
        run(place / "bin" / "python", "-c", SMOKE, cwd=place)
        run(place / "bin" / "deedbook", "verify", "log", cwd=place)
        run(place / "bin" / "deedbook", "demo", "--small", "-o", "demo", cwd=place)
    return "ten lines, verify and demo --small"


def stranger(tag: str | None) -> str:
    """The promises of the README and the site hold for the wheel alone."""
    own = [one for one in built(".whl") if "abi3" not in one.name]
    said = run("scripts/stranger.sh", own[0], PYTHON=PYTHON)
    print(said, end="")
    return f"{len(said.splitlines())} steps: " + ", ".join(
        line.split("  ")[0] for line in said.splitlines()
    )


def crates_advisories(tag: str | None) -> str:
    """No crate has a known vulnerability."""
    if shutil.which("cargo-deny") is None:
        raise LeftOut("cargo-deny is not installed")
    run("cargo", "deny", "--log-level", "error", "check")
    return "advisories, licences, sources"


def wheels_advisories(tag: str | None) -> str:
    """No locked Python package has a known vulnerability."""
    for lock in AUDITED:
        try:
            run(tool("pip-audit"), "-r", f"requirements/{lock}.txt", "--disable-pip", "--strict")
        except Failed as error:
            if holes := HOLES.search(error.said):
                raise Failed(f"{holes[0]}, of {lock}.txt: see above", error.said) from error
            if NOT_ASKED.search(error.said):
                raise LeftOut("there is no network to ask: see above") from error
            raise
    return ", ".join(AUDITED)


STEPS: dict[str, Callable[[str | None], str]] = {
    step.__name__: step
    for step in (
        versions,
        crate,
        semver,
        wheels,
        twine,
        stable_abi,
        smoke,
        stranger,
        crates_advisories,
        wheels_advisories,
    )
}
LEFT_OUT = {
    "tests": "pytest and cargo test: make test; with the wheels for each system: wheels.yml",
    "site": "the pages and the Rust documentation, strictly: make docs",
    "forge": "publishing, attestations, and wheels of other systems: .github/workflows",
}
"""Work without a step here, and the command or workflow for the work."""


def main() -> int:
    """Take the steps; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--tag",
        default=os.environ.get("RELEASE_TAG") or None,
        help="the tag of the release (RELEASE_TAG)",
    )
    parser.add_argument("--only", help="some of: " + ",".join(STEPS))
    args = parser.parse_args()
    only = STEPS if args.only is None else args.only.split(",")
    rows = []
    for name in only:
        try:
            rows.append((name, "ok", STEPS[name](args.tag)))
        except LeftOut as why:
            rows.append((name, "left out", str(why)))
        except Failed as why:
            rows.append((name, "FAILED", str(why)))
    rows += [(name, "left out", "--only does without it") for name in STEPS if name not in only]
    rows += [(name, "left out", text) for name, text in LEFT_OUT.items()]
    for name, outcome, text in rows:
        print(f"{name:18} {outcome:9} {text}")
    return 1 if any(outcome == "FAILED" for _, outcome, _ in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
