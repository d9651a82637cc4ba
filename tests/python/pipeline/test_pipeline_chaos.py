"""A pipeline that is killed repeatedly loses nothing, and repeats nothing."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from spark_session import require_spark

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")

import tiers
from chaos.kills.chaos import Kill
from chaos.kills.troubles import TROUBLES
from chaos.trial import TROUBLES_FROM, Ended, Trial

pytestmark = [
    pytest.mark.spark,
    pytest.mark.full,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds processes in /proc"),
    pytest.mark.promise("spark-pipeline"),
]

KILLS = tiers.number("CHAOS_KILLS")
"""Fewer kills make no `TROUBLES`, and do not hit every target."""
CLUSTER_KILLS = tiers.number("CLUSTER_KILLS")
"""Ten kills or more make `TROUBLES` on the cluster, too, as in `make trust`."""
CHECKS = 3 * 4 + 7


def tried(trial: Trial, kills: int = KILLS) -> tuple[Ended, Counter[str]]:
    require_spark()
    seen: list[Kill] = []
    ended = trial.run(kills, seen.append)
    assert tuple(seen) == ended.kills
    killed = Counter(kill.target for kill in ended.kills if kill.is_kill)
    assert killed.total() == kills
    wrong = [(one.name, one.expected, one.found) for one in ended.checks if not one.ok]
    assert wrong == []
    made = {kill.target for kill in ended.kills if not kill.is_kill}
    left_out = {reason.partition(":")[0] for reason in ended.not_tried}
    tried_ones = set(TROUBLES) if kills >= TROUBLES_FROM else set()
    assert made | left_out == tried_ones and not made & left_out
    assert left_out <= ({"disk full"} if may_not_mount() else set())
    assert len(ended.checks) == CHECKS + len(made)
    assert all(one.records > 0 and one.error is None for one in ended.followed)
    assert not ended.generated["complete"], "the producers ended before the kills"
    return ended, killed


def may_not_mount() -> bool:
    probe = ["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    return os.geteuid() != 0 or subprocess.run(probe, capture_output=True).returncode != 0


def test_each_event_comes_through_once_whatever_is_killed(tmp_path: Path) -> None:
    """The trial kills driver, JVM, workers and a producer, at the steps of commits, too."""
    _, killed = tried(Trial(tmp_path / "trial", seed=11, rate=60.0))
    if KILLS >= TROUBLES_FROM:
        assert {"all", "worker"} <= set(killed) and killed["all"] + killed["jvm"] >= 2


def test_the_same_on_a_cluster_with_speculation(tmp_path: Path) -> None:
    """Kills also hit executors, and whole nodes; by default without `TROUBLES`."""
    trial = Trial(tmp_path / "trial", seed=12, rate=60.0, cluster=True)
    _, killed = tried(trial, CLUSTER_KILLS)
    assert {"executor", "node"} & set(killed)
