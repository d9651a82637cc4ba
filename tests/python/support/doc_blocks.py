"""The blocks of a page, run one after the other as a reader would type them.

``python``: in one session; with ``>>>`` the output must match. ``sh``: line by line; a comment
names an exit code other than 0 (``# exits with 1``). A block ``text title="prints"`` must equal the
output of the block before, with ``...`` for any text. Other languages do not run.
"""

import contextlib
import doctest
import io
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import pytest

from deedbook import _cli as cli
from places import ROOT

OPTIONAL = (
    "pyarrow",
    "polars",
    "duckdb",
    "pandas",
    "pyspark",
    "numpy",
    "lmdb",
    "urllib3",
    "prometheus_client",
    "obstore",
)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    """A block of a page: the first line, the language, the rest of that line, and the text."""

    line: int
    language: str
    info: str
    text: str


def blocks(page: Path, *languages: str) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = (
        Block(text.count("\n", 0, match.start()) + 2, match[1], match[2].strip(), match[3])
        for match in FENCE.finditer(text)
    )
    return [block for block in found if not languages or block.language in languages]


def run(page: Path, directory: Path, *languages: str) -> int:
    names: dict[str, object] = {"__name__": "__main__"}
    printed, count = "", 0
    with background() as started:
        for block in blocks(page, *languages):
            if block.language == "python" and "pyspark" not in block.text:
                printed = run_python(page, block, names)
            elif block.language == "sh":
                printed = run_shell(page, block, directory, started)
            elif block.info == 'title="prints"':
                same = doctest.OutputChecker().check_output(block.text, printed, FLAGS)
                assert same, f"{page.name}:{block.line} prints\n{printed}"
            else:
                continue
            count += 1
    return count


@contextlib.contextmanager
def background() -> Iterator[list[subprocess.Popen[bytes]]]:
    started: list[subprocess.Popen[bytes]] = []
    try:
        yield started
    finally:
        for process in started:
            process.terminate()
            process.wait(30)


def run_python(page: Path, block: Block, names: dict[str, object]) -> str:
    for module in OPTIONAL:
        if re.search(rf"\bimport\b.*\b{module}\b|\bfrom {module}\b", block.text):
            pytest.importorskip(module)
    if "deedbook.http" in block.text:
        pytest.importorskip("urllib3")
    if block.text.lstrip().startswith(">>>"):
        where = f"{page.name} line {block.line}"
        test = doctest.DocTestParser().get_doctest(block.text, names, where, str(page), block.line)
        runner = doctest.DocTestRunner(optionflags=FLAGS)
        out: list[str] = []
        runner.run(test, out=out.append, clear_globs=False)
        names.update(test.globs)
        assert runner.summarize(verbose=False).failed == 0, "".join(out)
        return ""
    # A block that parses arguments, as a script does, must not see pytest's arguments.
    alone = mock.patch.object(sys, "argv", [str(page)])
    with alone, contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile("\n" * (block.line - 1) + block.text, str(page), "exec"), names)
    return printed.getvalue()


def run_shell(
    page: Path, block: Block, directory: Path, started: list[subprocess.Popen[bytes]]
) -> str:
    printed = ""
    text = block.text.replace("\\\n", " ").replace("8080", str(PORT))
    for line in text.replace(" examples/", f" {EXAMPLES}/").splitlines():
        says = re.search(r"# exits with ([0-9]+)", line)
        command = line.split(" #")[0].strip()
        if command.endswith("&"):
            words = shlex.split(command.removesuffix("&"))
            started.append(subprocess.Popen(words, cwd=directory, env=environment()))
            continue
        code, output = run_line(command, directory)
        assert code == (int(says[1]) if says else 0), (page.name, line, output)
        printed += output
    return printed


def run_line(line: str, directory: Path) -> tuple[int, str]:
    if line.startswith("deedbook ") and not re.search(r"[|<>;$*`]", line):
        return run_here(shlex.split(line)[1:])
    done = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=directory,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
    )
    return done.returncode, done.stdout


def environment() -> dict[str, str]:
    command = Path(sys.executable).with_name("deedbook")
    assert command.exists()
    return {**os.environ, "PATH": os.pathsep.join((str(command.parent), os.environ["PATH"]))}


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


EXAMPLES = ROOT / "examples"
# Replaces the 8080 of the pages.
PORT = free_port()


def run_here(words: list[str]) -> tuple[int, str]:
    with tempfile.TemporaryFile("w+", encoding="utf-8", buffering=1) as out:
        with mock.patch.object(sys, "stdout", out), mock.patch.object(sys, "stderr", out):
            code = cli.main(words)
        out.seek(0)
        return code, out.read()


if __name__ == "__main__":
    run(Path(sys.argv[1]), Path.cwd())
