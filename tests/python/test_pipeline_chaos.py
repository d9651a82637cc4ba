"""A pipeline that is killed again and again loses nothing, and doubles nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from spark_cluster import require_spark

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from deedbook.pipeline.trial import Trial

pytestmark = [pytest.mark.spark, pytest.mark.slow]

KILLS = 10


def test_each_event_comes_through_once_whatever_is_killed(tmp_path: Path) -> None:
    """Driver, JVM, workers and a producer are killed, at random and at the steps of commits."""
    require_spark()
    ended = Trial(tmp_path / "trial", seed=11, events=6000, rate=60.0).run(KILLS)
    assert len(ended.kills) >= KILLS
    targets = Counter(kill.target for kill in ended.kills)
    assert {"all", "worker"} <= set(targets)
    wrong = [(one.name, one.expected, one.found) for one in ended.checks if not one.ok]
    assert wrong == []
    assert len(ended.checks) == 22
    assert all(one.records > 0 and one.error is None for one in ended.followed)
    page = Path(ended.page).read_text(encoding="utf-8")
    assert "all 22 checks passed" in page
    assert "Latency from append to gold" in page
    for picture in ("events", "run", "latency", "quarantine"):
        assert (Path(ended.page).parent / f"{picture}.png").read_bytes()[:4] == b"\x89PNG"
