"""The packages of Python: allowed imports, and the modules that an import loads."""

import ast
import importlib.metadata
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "python" / "deedbook"
# The public packages. Every other module has a leading underscore, or is in such a package.
PUBLIC = {
    *(
        "deedbook",
        "deedbook.aio",
        "deedbook.archive",
        "deedbook.http",
        "deedbook.http.presets",
        "deedbook.jobs",
    ),
    *("deedbook.metrics", "deedbook.reports"),
    *("deedbook.spark", "deedbook.spark.jobs", "deedbook.transient"),
}
# The list may only shrink.
CROSSINGS = {
    ("deedbook._cli.read.report", "deedbook._report._figures"),
    ("deedbook._cli.read.report", "deedbook._report._html"),
}


def modules(top: Path) -> dict[str, Path]:
    found = {}
    for file in top.rglob("*.py"):
        parts = file.relative_to(top.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def imports(file: Path, known: set[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in known else node.module


def owner(module: str) -> str | None:
    parts = module.split(".")
    private = [at for at, part in enumerate(parts) if re.match(r"_(?!_)", part)]
    return ".".join(parts[: private[-1]]) if private else None


def crossings(top: Path) -> set[tuple[str, str]]:
    found = modules(top)
    return {
        (module, used)
        for module, file in found.items()
        for used in imports(file, set(found))
        if used.split(".")[0] == top.name
        and (inside := owner(used)) is not None
        and module != inside
        and not module.startswith(f"{inside}.")
    }


def test_no_import_crosses_into_anothers_private_module() -> None:
    assert crossings(PACKAGE) == CROSSINGS


def test_every_module_that_is_not_public_is_private() -> None:
    public = {
        module
        for module in modules(PACKAGE)
        if owner(module) is None and module != "deedbook.__main__"
    }
    assert public == PUBLIC


def test_a_package_has_at_most_twelve_modules() -> None:
    rooms = Counter(file.parent.relative_to(PACKAGE) for file in PACKAGE.rglob("*.py"))
    assert {room: count for room, count in rooms.items() if count > 12} == {}


def test_the_reference_lists_public_modules_only() -> None:
    listed = {
        name.rpartition(".")[0]
        for page in (ROOT / "docs" / "reference").glob("*.md")
        for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)
    }
    assert listed <= PUBLIC


def test_the_import_loads_the_core_and_the_errors() -> None:
    code = "import sys, deedbook; print(*[m for m in sys.modules if m.startswith('deedbook.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    # Python modules define its lists of names, and the methods and texts of its classes.
    of_core = {"_core", "_early", "_errors", "_methods", "_renamed", "_shown", "jobs", "reports"}
    assert set(done.stdout.split()) == {f"deedbook.{name}" for name in of_core}


@pytest.mark.parametrize("lock", ["demo", "test"])
def test_a_lock_has_what_declarative_pipelines_need(lock: str) -> None:
    """`make demo` and `make test` make their environments from these files alone."""
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    locked = set(re.findall(r"^([a-z0-9.-]+)==", text, re.MULTILINE))
    needed = {
        re.split(r"[^A-Za-z0-9.-]", one)[0].lower()
        for one in importlib.metadata.requires("pyspark") or ()
        if 'extra == "pipelines"' in one
    }
    assert needed and needed <= locked
