"""The moments of a trial, and the judgement of a run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from chaos.home import Home
from chaos.kills.moments import MOMENTS, Watch
from chaos.kills.troubles import judge
from chaos.runs import Once, Runs


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def left_by(home: Home) -> dict[str, Path]:
    """For each step of a commit, a file left by the step."""
    sidecar = home.bronze("orders") / ".deedbook"
    return {
        "staged": sidecar / "staged" / "job.0.0.1",
        "intent": sidecar / "transaction",
        "recorded": sidecar / "transactions",
        "quarantined": home.table("quarantine") / "_spark_metadata" / "0",
        "silver": home.table("silver") / "_spark_metadata" / "1",
        "gold": home.table("gold/windows") / "_spark_metadata" / "9.compact",
        "state": home.checkpoint("silver") / "state" / "0" / "1" / "3.zip",
        "checkpoint offsets": home.checkpoint("silver") / "offsets" / "3",
        "checkpoint commit": home.checkpoint("bronze/spool") / "commits" / "3",
    }


def test_watch_sees_each_step_only_by_its_file(home: Home) -> None:
    files = left_by(home)
    assert set(files) == set(MOMENTS) - {"at random"}
    watches = {moment: Watch(home, moment) for moment in files}
    assert not any(watch.sees() for watch in watches.values())
    for moment, file in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
        assert watches[moment].sees(), moment
        assert not Watch(home, moment).sees(), "what was there before is no step"
        new = {other for other, watch in watches.items() if watch.sees()}
        assert new == {one for one in files if files[one].exists()}


def test_run_must_refuse_with_reason_and_change_nothing() -> None:
    refused = Once(2, "pipeline: /log: no checkpoint is at /there\n", {})
    assert judge(refused, ["no checkpoint", "/there"], True) is None
    assert judge(refused, ["no checkpoint", "/elsewhere"], True) == (
        "it did not say '/elsewhere': pipeline: /log: no checkpoint is at /there"
    )
    assert judge(refused, ["no checkpoint"], False) == (
        "it changed something: pipeline: /log: no checkpoint is at /there"
    )
    assert judge(Once(0, "{}", {"orders": 3}), ["no checkpoint"], True) == (
        "it went on: {'orders': 3}"
    )


def test_run_with_bad_lines_counts_as_complete(
    home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = Runs(home, "local[1]", (), tmp_path)
    for code, said, wanted in (
        (0, '{"silver": 3}', Once(0, '{"silver": 3}', {"silver": 3})),
        (1, '{"silver": 3}', Once(0, '{"silver": 3}', {"silver": 3})),
        (1, "", Once(1, "", {})),
        (2, "", Once(2, "", {})),
    ):
        done = SimpleNamespace(returncode=code, stdout=said, stderr="")
        monkeypatch.setattr("chaos.runs.subprocess.run", lambda *_, **__: done)  # noqa: B023
        assert runs.once() == wanted
