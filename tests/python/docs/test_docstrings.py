"""What `help()` shows: the texts and signatures of the stub, of everything public."""

import ast
import doctest
import inspect
import os
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

import deedbook
from deedbook import _core, _errors
from deedbook._renamed import GONE
from doc_blocks import blocks, run_python, run_shell
from places import ROOT

TEXT = Path(deedbook.__file__).with_name("_core.pyi").read_text()
STUB = ast.parse(TEXT)
SHOWN_AS_IS = {"method_descriptor", "getset_descriptor", "member_descriptor", "staticmethod"}


def of_the_stub() -> Iterator[tuple[str, list[ast.FunctionDef] | ast.ClassDef]]:
    """Classes, members (with all overloads) and functions by name."""
    for node in STUB.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, [node]
        elif isinstance(node, ast.ClassDef):
            yield node.name, node
            members: dict[str, list[ast.FunctionDef]] = {}
            for member in node.body:
                if isinstance(member, ast.FunctionDef):
                    members.setdefault(member.name, []).append(member)
            for name, overloads in members.items():
                yield f"{node.name}.{name}", overloads


def doc_of(node: list[ast.FunctionDef] | ast.ClassDef) -> str | None:
    nodes = node if isinstance(node, list) else [node]
    return next(filter(None, map(ast.get_docstring, nodes)), None)


def at_run_time(name: str) -> object:
    owner, _, member = name.partition(".")
    value = getattr(_core, owner)
    return vars(value).get(member) if member else value


def test_stub_docstrings_equal_module_docstrings() -> None:
    differ: list[tuple[str, str | None, str | None]] = []
    compared = 0
    for name, node in of_the_stub():
        value, member = at_run_time(name), name.partition(".")[2]
        private = member.startswith("_")
        if private and type(value).__name__ not in SHOWN_AS_IS:
            continue  # such as __len__: Python itself says what it does
        raw = getattr(getattr(value, "__func__", value), "__doc__", None)
        shown = inspect.cleandoc(raw) if raw else None
        compared += shown is not None
        if shown != doc_of(node) or (shown is None and not private):
            differ.append((name, doc_of(node), shown))
    assert not differ
    assert compared > 500


def test_nothing_public_is_compiled_that_the_stub_lacks() -> None:
    known = {name for name, _ in of_the_stub()}
    for owner in _core.__all__:
        assert owner in known or owner == "__version__"
        value = getattr(_core, owner)
        for member in vars(value) if inspect.isclass(value) else ():
            is_gone = member in GONE.get(owner, ())
            assert member.startswith("_") or is_gone or f"{owner}.{member}" in known


def test_runtime_signatures_match_names_and_defaults_of_stub() -> None:
    """stubtest passes over what has no signature, and over defaults that are shown as `...`."""
    compared = 0
    for name, node in of_the_stub():
        owner, _, member = name.partition(".")
        made = member == "__new__"
        value = at_run_time(owner if made else name)
        if isinstance(node, ast.ClassDef) or (member.startswith("__") and not made):
            continue
        decorators = {ast.unparse(decorator) for decorator in node[0].decorator_list}
        if "property" in decorators:
            continue
        shown = inspect.signature(getattr(value, "__func__", value)).parameters
        for overload in node:
            wanted = parameters(overload)
            if made:
                del wanted["cls"]
            assert [*shown] == [*wanted], name
            for parameter, default in wanted.items():
                assert shown[parameter].default == default, (name, parameter)
        compared += 1
    assert compared > 150


def parameters(node: ast.FunctionDef) -> dict[str, object]:
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    defaults = [*[None] * (len(plain) - len(args.defaults)), *args.defaults]
    pairs = [*zip(plain, defaults, strict=True)]
    pairs += zip(args.kwonlyargs, args.kw_defaults, strict=True)
    pairs += [(arg, None) for arg in (args.vararg, args.kwarg) if arg is not None]
    return {
        arg.arg: inspect.Parameter.empty if default is None else ast.literal_eval(default)
        for arg, default in pairs
    }


@pytest.mark.parametrize("name", _errors.__all__)
def test_error_docstrings_name_cause_and_remedy(name: str) -> None:
    text = vars(_errors)[name].__doc__
    first, _, rest = inspect.cleandoc(text).partition("\n\n")
    assert len(first.splitlines()) == 1 and len(rest) > 30


MOST_USED = (
    "Book",
    "Book.open",
    "Book.create",
    "Book.append",
    "Book.append_many",
    "Wal.commit",
    "Ledger",
    "EventStore.query",
    "Pier.roll",
    "open",
)
EXAMPLES = {name for name, node in of_the_stub() if ">>>" in (doc_of(node) or "")}


@pytest.mark.parametrize("name", sorted({*MOST_USED, *EXAMPLES}))
def test_the_example_in_a_docstring_runs_as_shown(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    value: object = _core if hasattr(_core, name.partition(".")[0]) else deedbook
    for part in name.split("."):
        value = getattr(value, part)
    text = inspect.getdoc(value)
    example = doctest.DocTestParser().get_doctest(
        text, {"deedbook": deedbook, "timedelta": timedelta}, name, None, 0
    )
    assert example.examples
    out: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(example, out=out.append).failed == 0, "".join(out)


README = ROOT / "README.md"
MODULES = (deedbook, deedbook.jobs, deedbook.reports)


def test_see_also_names_of_the_stub_exist() -> None:
    names = set(re.findall(r"(?<!`)`([A-Za-z_.]+)`(?!`)", TEXT))
    known = {"deedbook", *(name for module in MODULES for name in vars(module))}
    classes = [node for node in STUB.body if isinstance(node, ast.ClassDef)]
    members = {member for node in classes for member in vars(getattr(_core, node.name))}
    unknown = {
        name for name in names if name not in known | members and name.split(".")[-1] not in members
    }
    assert not unknown


def test_errors_named_in_the_stub_exist() -> None:
    raised = set(re.findall(r"`(\w+Error)`", TEXT))
    assert raised <= set(_errors.__all__)


def test_the_package_exports_the_core_and_the_errors() -> None:
    """Each name in one module."""
    # Python has the file of a reader, over these parts.
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
