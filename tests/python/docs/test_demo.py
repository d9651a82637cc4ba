"""The demos as a user runs them, with Spark and small, and proof that their checks can fail."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import deedbook
from browser import WIDTHS, Browser, look
from deedbook._cli import first_minute, main
from places import ROOT

EXAMPLE = ROOT / "examples" / "demo"
sys.path.insert(0, str(EXAMPLE))

from workspace import require  # noqa: E402

pytestmark = pytest.mark.promise("kill")

EVENTS = 3000
SEED = 5


def demo(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, EXAMPLE, *map(str, arguments)],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=580,
    )


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


ALONE = """
import sys
sys.modules.update(dict.fromkeys(["pyspark", "pyarrow", "matplotlib", "pandas", "numpy"]))
from deedbook._cli import main
sys.exit(main(["demo", "--small", "-o", sys.argv[1]]))
"""


def complaints(said: str) -> list[str]:
    """The lines of stderr without recoveries: a kill during a write leaves a torn log."""
    return [line for line in said.splitlines() if not line.startswith("book recovered: torn, ")]


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    out = tmp_path_factory.mktemp("small") / "out"
    done = subprocess.run(
        [sys.executable, "-c", ALONE, str(out)],
        env={"PATH": "", "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, complaints(done.stderr)) == (0, [])
    return out, done.stdout


def test_small_demo_adds_up_with_only_the_wheel(small: tuple[Path, str]) -> None:
    out, said = small
    report = report_of(out)
    kills = report["writing"]["kills"]
    assert [kill["returncode"] for kill in kills] == [-9] * first_minute.KILLS
    resumed_at = 0
    for kill in kills:
        assert kill["resumed_at"] == resumed_at
        assert kill["resumed_at"] <= kill["acknowledged"] <= kill["last"] < first_minute.EVENTS
        resumed_at = kill["last"]
        assert f"acknowledged {kill['acknowledged']:>8,}  found {kill['last']:>8,}" in said
    with deedbook.Book.open(out / "log") as book:
        assert list(book.payloads()) == (out / "input.jsonl").read_bytes().splitlines()
        assert len(book) == first_minute.EVENTS
    assert report["ok"] and all(check["ok"] for check in report["checks"])
    assert said.isascii() and "\x1b" not in said
    assert said.count("x ") >= first_minute.KILLS and "report.html" in said


def test_small_demo_page_renders_for_readers(small: tuple[Path, str], window: Browser) -> None:
    out, _ = small
    seen_by_width = {width: look(window, out / "report.html", width) for width in WIDTHS}
    for width, seen in seen_by_width.items():
        shapes = [count for _, count in seen["charts"]]
        assert len(shapes) == first_minute.KILLS + 1, width
        # A writer that was killed at once has only the kill.
        assert all(1 <= count <= 3 for count in shapes[:-1]) and shapes[-1] == 1, width
        assert sum(shapes) > 7, width
        assert seen["tiles"]["lost"] == "0", width
        assert seen["tiles"]["acknowledged"] == f"{first_minute.EVENTS:,}", width
        assert seen["heading"].endswith("checks passed"), width


def test_demo_with_wrong_numbers_exits_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the last kill, the log loses an acknowledged event and gains another."""
    honest = first_minute.write_with_kills

    def dishonest(log: Path, *rest: Any) -> first_minute.Writing:
        writing = honest(log, *rest)
        with deedbook.Book.open(log) as book:
            jams = list(book.payloads())
        first_minute.remove(log)
        with deedbook.Book.create(log, durability="manual") as book:
            book.append_many([*jams[:100], *jams[101:], b"invented", b"invented"])
        return writing

    monkeypatch.setattr(first_minute, "write_with_kills", dishonest)
    out = tmp_path / "out"
    assert main(["demo", "--small", "--json", "--events", "2000", "-o", str(out)]) == 1
    report = json.loads(capsys.readouterr().out)
    failed = {check["name"] for check in report["checks"] if not check["ok"]}
    assert failed == {
        "no event was invented",
        "every event is its line",
        "deedbook verify finds the log intact",
    }
    assert not report["ok"] and "FAILED" in (out / "report.html").read_text()


@pytest.mark.skipif(os.name != "posix", reason="kills with SIGKILL")
def test_demo_ends_silently_after_its_reader_left(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "deedbook", "demo", "--small", "--events", "1000"]
    command += ["-o", str(tmp_path / "out")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as demo:
        assert demo.stdout.readline().startswith(b"input: ")
        demo.stdout.close()
        said = demo.stderr.read()
    assert (demo.returncode, complaints(os.fsdecode(said))) == (141, [])
