"""What a trial of a pipeline finds its victims and moments by, and how it makes trouble."""

import contextlib
import json
import random
import sys
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from deedbook import Book, Error, EventStore, Wal
from deedbook.pipeline.config import Config, Source, load
from deedbook.pipeline.layout import Layout
from deedbook.pipeline.moments import MOMENTS, Watch
from deedbook.pipeline.progress import Journal
from deedbook.pipeline.runs import Once
from deedbook.pipeline.trouble import LogCut, NotNowError, Place
from deedbook.pipeline.troubles import judge

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="finds processes in /proc"
)


@pytest.fixture
def config(tmp_path: Path) -> Config:
    file = tmp_path / "pipeline.toml"
    example = resources.files("deedbook.pipeline") / "example.toml"
    file.write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    return load(file)


# -- moments --------------------------------------------------------------------------------------


def left_by(layout: Layout) -> dict[str, Path]:
    """A file that each step of a commit leaves."""
    sidecar = layout.bronze("orders") / ".deedbook"
    return {
        "staged": sidecar / "staged" / "job.0.0.1",
        "intent": sidecar / "transaction",
        "recorded": sidecar / "transactions",
        "table staged": layout.work / "delta" / "staged" / "part.parquet",
        "table intent": layout.work / "windows" / "intent.json",
        "delta commit": layout.silver("delta") / "_delta_log" / "00000000000000000001.json",
        "checkpoint offsets": layout.checkpoint("silver") / "offsets" / "3",
        "checkpoint commit": layout.checkpoint("spool") / "commits" / "3",
    }


def test_each_step_is_seen_by_the_file_that_it_leaves_and_no_other(config: Config) -> None:
    files = left_by(Layout(config))
    assert set(files) == set(MOMENTS) - {"at random"}
    watches = {moment: Watch(config, moment) for moment in files}
    assert not any(watch.sees() for watch in watches.values())
    for moment, file in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"")
        assert watches[moment].sees(), moment
        assert not Watch(config, moment).sees(), "what was there before is no step"
        new = {other for other, watch in watches.items() if watch.sees()}
        assert new == {one for one in files if files[one].exists()}


# -- processes ------------------------------------------------------------------------------------

# -- troubles -------------------------------------------------------------------------------------


def test_a_run_must_refuse_say_why_and_change_nothing() -> None:
    refused = Once(1, "deedbook: /log: no checkpoint is at /there\n", {})
    assert judge(refused, ["no checkpoint", "/there"], True) is None
    assert judge(refused, ["no checkpoint", "/elsewhere"], True) == (
        "it did not say '/elsewhere': deedbook: /log: no checkpoint is at /there"
    )
    assert judge(refused, ["no checkpoint"], False) == (
        "it changed something: deedbook: /log: no checkpoint is at /there"
    )
    assert judge(Once(0, "{}", {"orders": 3}), ["no checkpoint"], True) == (
        "it went on: {'orders': 3}"
    )


class Refusing:
    """Runs of a pipeline as far as the first look at one source, which needs no Spark."""

    def __init__(self, config: Config, source: Source) -> None:
        self._config, self._source = config, source

    def once(self) -> Once:
        run = pytest.importorskip("deedbook.pipeline.run", reason="pyspark is not installed")
        try:
            layout = Layout(self._config)
            run._take(None, self._config, self._source, layout, Journal(layout), set())
        except Error as error:
            return Once(1, f"deedbook: {error}\n", {})
        return Once(0, "{}", {})


def take_batch(config: Config, source: Source, number: int) -> None:
    """What a job leaves of a batch: in the log, and in its checkpoint."""
    stream = pytest.importorskip("deedbook.spark.jobs._stream", reason="pyspark is not installed")
    layout = Layout(config)
    log, checkpoint = layout.bronze(source.name), layout.checkpoint(source.name)
    is_store = source.bronze == "nostr"
    job = "import" if is_store else "ingest"
    app = stream.Checkpoint.of(job, str(source.path), log, checkpoint).app
    log.parent.mkdir(parents=True, exist_ok=True)
    opened: Any = EventStore if is_store else Book
    with opened.open(log, "a") as target:
        target.transactions.publish(
            "job", [], app=f"{app}-q" if is_store else app, version=number, query="q"
        )
    for name in ("metadata", f"offsets/{number}", f"commits/{number}"):
        (checkpoint / name).parent.mkdir(parents=True, exist_ok=True)
        (checkpoint / name).write_text(json.dumps({"id": "q"}))


@pytest.mark.parametrize("name", ["files", "orders"])
def test_a_log_that_was_cut_is_refused_with_what_is_missing(
    config: Config, tmp_path: Path, name: str
) -> None:
    source = next(one for one in config.sources if one.name == name)
    source.path.parent.mkdir(parents=True)
    if source.kind == "log":
        Wal.create(source.path).close()
    else:
        source.path.mkdir()
        (source.path / "a.jsonl").write_text("{}\n")
    runs: Any = Refusing(config, source)
    place = Place(config, runs, tmp_path, contextlib.nullcontext, random.Random(1))
    trouble = LogCut(place)
    for number in range(3):
        take_batch(config, source, number)
        trouble.look()
    run, must_say, is_unchanged = trouble.make()
    assert judge(run, must_say, is_unchanged) is None
    assert "has them up to 0: batches 1 to 2 are missing there" in run.said
    with pytest.raises(NotNowError):
        LogCut(place).make()
