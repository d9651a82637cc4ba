"""The stub tells the truth, everything public is documented, and the examples run."""

from __future__ import annotations

import ast
import doctest
import inspect
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import deedbook
from deedbook import _core, _errors
from doc_blocks import blocks, run_python, run_shell

ROOT = Path(__file__).parents[2]
STUB = Path(deedbook.__file__).with_name("_core.pyi")
README = ROOT / "README.md"


# -- the stub -------------------------------------------------------------------------------------


def test_the_stub_agrees_with_the_module(tmp_path: Path) -> None:
    pytest.importorskip("mypy.stubtest")
    if _core.__file__ is None or Path(_core.__file__).parent != STUB.parent:
        pytest.skip("the module does not lie beside its stub")
    config = ROOT / "pyproject.toml"
    options = ["--mypy-config-file", str(config)] if config.exists() else []
    # mypy finds an installed package by itself, and refuses to be told where that is.
    installed = "site-packages" in STUB.parts
    path = {} if installed else {"MYPYPATH": str(STUB.parents[1])}
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "deedbook._core", *options],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
        env={**os.environ, **path},
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_options_of_the_crate_may_grow() -> None:
    """A field more would break every program that names all of them."""
    # Those of books and write-ahead logs are made by one macro.
    places = ("log/options", "book/lmdb/trip", "ledger/options", "retention")
    places += ("nostr/options", "nostr/wal_options", "nostr/import")
    for place in places:
        text = (ROOT / "src" / f"{place}.rs").read_text()
        kept = re.findall(r"#\[non_exhaustive\]\n *pub struct (?:\w*Options|Retention) ", text)
        assert len(kept) == 1 == len(re.findall(r"pub struct (?:\w*Options|Retention) ", text)), (
            place
        )


def stub_classes() -> list[ast.ClassDef]:
    tree = ast.parse(STUB.read_text())
    return [node for node in tree.body if isinstance(node, ast.ClassDef)]


@pytest.mark.parametrize("node", stub_classes(), ids=lambda node: node.name)
def test_every_public_name_in_the_stub_has_a_docstring(node: ast.ClassDef) -> None:
    assert ast.get_docstring(node)
    methods = [method for method in node.body if isinstance(method, ast.FunctionDef)]
    documented = {method.name for method in methods if ast.get_docstring(method)}
    public = {method.name for method in methods if not method.name.startswith("_")}
    assert public <= documented, "of overloads one is enough"


def test_every_name_in_a_see_also_of_the_stub_exists() -> None:
    names = set(re.findall(r"(?<!`)`([A-Za-z_.]+)`(?!`)", STUB.read_text()))
    known = {*vars(deedbook), "deedbook"}
    members = {member for node in stub_classes() for member in vars(getattr(_core, node.name))}
    unknown = {
        name for name in names if name not in known | members and name.split(".")[-1] not in members
    }
    assert not unknown


def test_the_stub_names_every_error_that_a_method_says_it_raises() -> None:
    raised = set(re.findall(r"`(\w+Error)`", STUB.read_text()))
    assert raised <= set(_errors.__all__)


def test_the_package_exports_the_core_and_the_errors() -> None:
    # The file that a reader gives is of Python, over these parts.
    core = {*_core.__all__} - {"PayloadParts"} | {"PayloadReader"}
    of_python = {"BackupReport", "LogReport", "backup", "open", "report"}
    assert {*core, *_errors.__all__, *of_python} == set(deedbook.__all__)
    assert sorted(deedbook.__all__) == deedbook.__all__
    assert deedbook.__version__ == _core.__version__


def test_classes_say_where_they_are_imported_from() -> None:
    for name in deedbook.__all__:
        value = getattr(deedbook, name)
        if inspect.isclass(value) and not issubclass(value, Exception):
            assert (value.__module__, value.__qualname__) == ("deedbook", name)


def test_every_error_has_a_docstring() -> None:
    for name in _errors.__all__:
        assert vars(_errors)[name].__doc__


# -- examples -------------------------------------------------------------------------------------


def test_the_docstring_of_the_package_is_true() -> None:
    (found,) = doctest.DocTestFinder(recurse=False).find(deedbook, "deedbook")
    done = doctest.DocTestRunner().run(found)
    assert done.attempted > 0 and done.failed == 0


@pytest.mark.skipif(os.name != "posix", reason="the lines are for POSIX shells")
def test_the_readme_runs_top_to_bottom_in_one_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each block ran in a directory of its own, and the shell's failed where Python's had been.

    A newcomer typed the page from top to bottom: `deedbook append log` met the log of the first
    block. The file of Nostr events is the reader's own. Lines for a checkout have tests elsewhere.
    """
    monkeypatch.chdir(tmp_path)
    shutil.copy(ROOT / "tests" / "data" / "nostr" / "events.jsonl", "notes.jsonl")
    names: dict[str, object] = {"__name__": "__main__"}
    ran = []
    for block in blocks(README, "python", "sh"):
        if block.language == "python":
            run_python(README, block, names)
        elif "make " not in block.text:
            run_shell(README, block, tmp_path, [])
        ran.append(block.language)
    assert ran.count("python") >= 2 and ran.count("sh") >= 3
    assert Path("report.html").exists() and Path("copy.jsonl.gz").stat().st_size > 1000
