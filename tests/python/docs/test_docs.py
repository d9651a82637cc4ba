"""The package exports what the stub names, and the README runs."""

import ast
import doctest
import inspect
import os
import re
from pathlib import Path

import pytest

import deedbook
from deedbook import _core, _errors
from doc_blocks import blocks, run_python, run_shell
from places import ROOT

STUB = Path(deedbook.__file__).with_name("_core.pyi")
README = ROOT / "README.md"
MODULES = (deedbook, deedbook.jobs, deedbook.reports)


def test_see_also_names_of_the_stub_exist() -> None:
    names = set(re.findall(r"(?<!`)`([A-Za-z_.]+)`(?!`)", STUB.read_text()))
    known = {"deedbook", *(name for module in MODULES for name in vars(module))}
    classes = [node for node in ast.parse(STUB.read_text()).body if isinstance(node, ast.ClassDef)]
    members = {member for node in classes for member in vars(getattr(_core, node.name))}
    unknown = {
        name for name in names if name not in known | members and name.split(".")[-1] not in members
    }
    assert not unknown


def test_errors_named_in_the_stub_exist() -> None:
    raised = set(re.findall(r"`(\w+Error)`", STUB.read_text()))
    assert raised <= set(_errors.__all__)


def test_the_package_exports_the_core_and_the_errors() -> None:
    """Each name in one module."""
    # The file that a reader gives is of Python, over these parts.
    core = {*_core.__all__} - {"PayloadParts"} | {"PayloadReader"}
    of_python = {"LogReport", "open", "report"}
    names = [name for module in MODULES for name in module.__all__]
    assert sorted(names) == sorted({*core, *_errors.__all__, *of_python})
    for module in MODULES:
        assert sorted(module.__all__) == module.__all__
    assert deedbook.__version__ == _core.__version__


def test_classes_say_where_they_are_imported_from() -> None:
    for module, name in ((place, name) for place in MODULES for name in place.__all__):
        value = getattr(module, name)
        if inspect.isclass(value) and not issubclass(value, Exception):
            assert (value.__module__, value.__qualname__) == (module.__name__, name)


def test_the_docstring_of_the_package_is_true() -> None:
    (found,) = doctest.DocTestFinder(recurse=False).find(deedbook, "deedbook")
    done = doctest.DocTestRunner().run(found)
    assert done.attempted > 0 and done.failed == 0


@pytest.mark.skipif(os.name != "posix", reason="the lines are for POSIX shells")
def test_readme_blocks_run_in_order_in_one_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines for a checkout have tests elsewhere."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    ran = []
    for block in blocks(README, "python", "sh"):
        if block.language == "python":
            run_python(README, block, names)
        elif "make " not in block.text:
            run_shell(README, block, tmp_path, [])
        ran.append(block.language)
    assert ran == ["python", "sh", "sh"] and deedbook.Book.verify("log").ok
