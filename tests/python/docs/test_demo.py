"""The demo with Spark as a user runs it, and proof that its checks can fail."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook._cli import first_minute
from places import ROOT

EXAMPLE = ROOT / "examples" / "demo"
sys.path.insert(0, str(EXAMPLE))

from workspace import require  # noqa: E402

pytestmark = pytest.mark.promise("kill")

EVENTS = 3000
SEED = 5


def run(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=580,
    )


def demo(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(EXAMPLE, *arguments, **environment)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output directory of a run that went well."""
    require()
    out = tmp_path_factory.mktemp("demo") / "out"
    done = demo("--events", str(EVENTS), "--seed", str(SEED), "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "checks passed" in done.stdout
    return out


def report_of(out: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((out / "report.json").read_text())
    return report


@pytest.mark.full
@pytest.mark.spark
def test_demo_kills_are_real_and_log_equals_input(finished: Path) -> None:
    """test_demo_small.py checks where each writer went on."""
    report = report_of(finished)
    kills = report["writing"]["kills"]
    assert [kill["returncode"] for kill in kills] == [-9, -9]
    for kill in kills:
        assert EVENTS / 3 - 1 <= kill["after_events"] <= kill["acknowledged"] <= kill["last"]
        assert kill["acknowledged"] < EVENTS
        assert kill["recovery"]["verdict"] in ("clean", "open", "torn")
    assert report["ok"] and all(check["ok"] for check in report["checks"])
    lines = (finished / "input.jsonl").read_bytes().splitlines()
    assert report["writing"]["acknowledged"] == len(lines) == EVENTS
    with deedbook.Book.open(finished / "log") as book:
        assert list(book.payloads()) == lines
    assert deedbook.Book.verify(finished / "log").ok


@pytest.mark.full
@pytest.mark.spark
def test_the_tables_count_every_event(finished: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    lines = (finished / "input.jsonl").read_bytes().splitlines()
    expected = Counter(json.loads(line)["type"] for line in lines)
    report = report_of(finished)
    assert {row["type"]: row["events"] for row in report["by_type"]} == expected
    assert report["by_type_and_time"]["unit"] == "hour"
    assert report["fields"] == {"type": {"type": EVENTS}, "time": {"ts": EVENTS}}
    table = parquet.read_table(finished / "by-type-and-time.parquet").to_pydict()
    assert sum(table["events"]) == EVENTS
    assert sum(table["bytes"]) == report["input"]["bytes"]
    assert (finished / "report.png").read_bytes().startswith(b"\x89PNG\r\n")
    assert "checks passed" in (finished / "report.md").read_text()


def test_a_directory_of_others_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "report.json").write_text("mine")
    with pytest.raises(first_minute.DemoError, match="not a former output"):
        first_minute.Workspace(tmp_path).prepare(None)
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    assert (tmp_path / "report.json").read_text() == "mine"


def test_a_former_output_is_cleared_and_nothing_else(tmp_path: Path) -> None:
    space = first_minute.Workspace(tmp_path / "out")
    space.prepare(None)
    space.log.mkdir()
    (space.log / "book.log").write_text("old")
    note = space.root / "note"
    note.write_text("mine")
    space.generated.write_text("an input of the next run")
    with pytest.raises(first_minute.DemoError, match="a new run clears"):
        space.prepare(space.generated)
    space.prepare(None)
    assert not space.log.exists()
    assert note.read_text() == "mine"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("arguments", "java", "said"),
    [
        (["--input", "missing.jsonl"], None, "no such file"),
        (["--events", "20"], None, "at least 100"),
        ([], "nowhere", "missing: java"),
    ],
)
def test_what_cannot_work_is_told_in_a_line(
    tmp_path: Path, arguments: list[str], java: str | None, said: str
) -> None:
    environment = {"JAVA_HOME": str(tmp_path / java)} if java else {}
    done = demo(*arguments, "--out", tmp_path / "out", **environment)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
