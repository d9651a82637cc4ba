"""The inputs of a proof. A result stands for every commit with the same inputs.

A cargo test depends on the crate, on the files shared by all tests, and on the test's module. A
Python test depends on nearly everything. The published pages, and the lists of promises and
mutations, are no input.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Collection
from functools import cache
from pathlib import Path

PYTHON = "python"
"""The test target with the tests of pytest."""
_MADE = {"docs/trust.json", "docs/trust.md", "docs/index.md", "README.md", "CHANGELOG.md"}
_TABLES = ("scripts/trust/", "tests/mutants/", "tests/promises.txt")
_OF_CARGO = ("Cargo.toml", "Cargo.lock", "src/", "capi/", "examples/", "fuzz/", "tests/")


def inputs(root: Path, targets: Collection[str] | None) -> str:
    """A hash of the inputs of test targets, or with None of all inputs."""
    digest = hashlib.sha256(_compiler().encode())
    own = _programs(root)
    for path, content in files_of(root):
        if _matters(path, targets, own):
            digest.update(f"{path} {content}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _matters(path: str, targets: Collection[str] | None, own: Collection[str]) -> bool:
    if path in _MADE or path.startswith(_TABLES):
        return False
    if targets is None:
        return True
    _, program, module, *_ = [*path.split("/"), "", ""] if path.startswith("tests/") else [""] * 3
    if program == PYTHON or not path.startswith(_OF_CARGO):
        return PYTHON in targets
    if program not in own:
        return True
    name = f"{program}::{module.removesuffix('.rs')}"
    return module == "main.rs" or program in targets or name in targets


@cache
def _programs(root: Path) -> frozenset[str]:
    """The test programs of cargo."""
    return frozenset(found.parent.name for found in (root / "tests").glob("*/main.rs"))


@cache
def files_of(root: Path) -> tuple[tuple[str, str], ...]:
    """Every tracked file, and a hash of the file's present content."""
    command = ["git", "ls-files", "-z"]
    listed = subprocess.run(command, cwd=root, capture_output=True, check=True).stdout
    names = sorted(name for name in listed.decode("utf-8", "surrogateescape").split("\0") if name)
    return tuple((name, _content(root / name)) for name in names)


def _content(file: Path) -> str:
    if file.is_symlink():
        return str(file.readlink())
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else "none"


@cache
def _compiler() -> str:
    command = ["rustc", "--version"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError:
        return "none"
