"""What `help()` shows: the texts and signatures of the stub, of everything public."""

from __future__ import annotations

import ast
import doctest
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import deedbook
from deedbook import _core, _errors

STUB = ast.parse(Path(deedbook.__file__).with_name("_core.pyi").read_text())
PURE = (
    "deedbook.aio",
    "deedbook.http",
    "deedbook.http.endpoint",
    "deedbook.http.presets",
    "deedbook.spark",
    "deedbook.spark.jobs",
    "deedbook.transient",
    "deedbook.formats",
    "deedbook.metrics",
    "deedbook._backup",
    "deedbook._errors",
    "deedbook._payload",
    "deedbook._report",
)
SHOWN_AS_IS = {"method_descriptor", "getset_descriptor", "member_descriptor", "staticmethod"}


def of_the_stub() -> Iterator[tuple[str, list[ast.FunctionDef] | ast.ClassDef]]:
    """Classes, members (all overloads of one together) and functions by their names."""
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


# -- the compiled classes -------------------------------------------------------------------------


def test_every_docstring_of_the_stub_is_that_of_the_module() -> None:
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
            assert member.startswith("_") or f"{owner}.{member}" in known


def test_every_signature_is_shown_with_the_names_and_defaults_of_the_stub() -> None:
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


# -- the modules in Python ------------------------------------------------------------------------


@pytest.mark.parametrize("module", PURE)
def test_everything_public_in_a_module_has_a_docstring(module: str) -> None:
    if module.startswith("deedbook.spark"):
        pytest.importorskip("pyspark")
    found = importlib.import_module(module)
    assert inspect.getdoc(found)
    for name in public(found):
        value = getattr(found, name)
        if inspect.isclass(value):
            assert without(value) == [], f"{module}.{name}"
        elif inspect.isfunction(value):
            assert value.__doc__, f"{module}.{name}"


def public(module: ModuleType) -> list[str]:
    here = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]
    return getattr(module, "__all__", here)


def without(found: type) -> list[str]:
    """What a class of the package shows without a docstring; fields need one in the source."""
    missing = []
    if not found.__doc__ or found.__doc__.startswith(f"{found.__name__}("):
        missing.append(found.__name__)
    for name, value in vars(found).items():
        function = getattr(value, "__func__", value)
        told = inspect.isroutine(function) or isinstance(value, property)
        if told and not name.startswith("_") and not inspect.getdoc(getattr(found, name)):
            missing.append(f"{found.__name__}.{name}")
    if hasattr(found, "__dataclass_fields__") or issubclass(found, tuple):
        missing += sorted({*inspect.get_annotations(found)} - told_in_source(found))
    return missing


def told_in_source(found: type) -> set[str]:
    # A class may say that it is the package's: its own functions know the file.
    codes = (getattr(value, "__code__", None) for value in vars(found).values())
    files = {code.co_filename for code in codes if code} | {inspect.getfile(found)}
    trees = (ast.parse(Path(file).read_text()) for file in files if Path(file).exists())
    classes = (n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.ClassDef))
    node = next(n for n in classes if n.name == found.__name__)
    texts = (ast.Expr, ast.Constant)
    return {
        field.target.id
        for field, after in zip(node.body, node.body[1:], strict=False)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(after, texts[0]) and isinstance(after.value, texts[1])
    }


@pytest.mark.parametrize("name", _errors.__all__)
def test_every_error_says_when_it_is_raised_and_what_to_do(name: str) -> None:
    text = vars(_errors)[name].__doc__
    first, _, rest = inspect.cleandoc(text).partition("\n\n")
    assert len(first.splitlines()) == 1 and len(rest) > 30


# -- the examples ---------------------------------------------------------------------------------

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
    value: object = deedbook
    for part in name.split("."):
        value = getattr(value, part)
    text = inspect.getdoc(value)
    assert text is not None
    example = doctest.DocTestParser().get_doctest(text, {"deedbook": deedbook}, name, None, 0)
    assert example.examples
    out: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert runner.run(example, out=out.append).failed == 0, "".join(out)
