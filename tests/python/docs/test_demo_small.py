"""The small demo from a user's view, and a proof that its check of the numbers can fail."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import deedbook
from browser import WIDTHS, Browser, look
from deedbook._cli import first_minute, main

ALONE = """
import sys
sys.modules.update(dict.fromkeys(["pyspark", "pyarrow", "matplotlib", "pandas", "numpy"]))
from deedbook._cli import main
sys.exit(main(["demo", "--small", "-o", sys.argv[1]]))
"""
"""Run the demo with only the wheel installed."""


def complaints(said: str) -> list[str]:
    """The lines of stderr without recoveries: a kill during a write leaves a torn log."""
    return [line for line in said.splitlines() if not line.startswith("book recovered: torn, ")]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The output directory of a successful run, and its standard output."""
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


def report_of(out: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((out / "report.json").read_text())
    return report


def test_small_demo_adds_up_with_only_the_wheel(finished: tuple[Path, str]) -> None:
    out, said = finished
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


def test_small_demo_page_renders_for_readers(finished: tuple[Path, str], window: Browser) -> None:
    out, _ = finished
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
