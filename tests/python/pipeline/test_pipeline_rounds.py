"""Runs of a pipeline and their rounds, as far as they need no Spark."""

import json
import os
import signal
import sys
import threading
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deedbook import ContiguityError, Ledger, LockedError, LostRecordsError, Wal

pytest.importorskip("pyspark", reason="pyspark is not installed")
if sys.version_info < (3, 11):
    pytest.importorskip("tomli", reason="tomli is not installed")

from deedbook._cli import main
from deedbook._lock import alone
from deedbook.pipeline import run as rounds
from deedbook.pipeline.config import Config, load
from deedbook.pipeline.layout import Layout
from deedbook.pipeline.progress import Journal
from deedbook.pipeline.runs import Once, Runs
from deedbook.spark._options import parse
from deedbook.spark._sinks import SINKS
from deedbook.spark.jobs import JobFailedError

DONE = rounds.Round({}, {}, 0.0)
FILE = '[pipeline]\ntrigger = "1 second"\n[[source]]\nname = "a"\nlog = "a.wal"\n'


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """A pipeline whose rounds need no Spark."""
    file = tmp_path / "pipeline.toml"
    file.write_text(FILE, encoding="utf-8")
    monkeypatch.setattr(rounds, "session", lambda *_: nullcontext())
    monkeypatch.setattr(rounds.time, "sleep", lambda _: None)
    return load(file)


def answers(monkeypatch: pytest.MonkeyPatch, *given: rounds.Round | Exception) -> list[object]:
    """Have rounds end so, one after the other; returns those that are left."""
    left: list[object] = list(given)

    def one(*_: object) -> object:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(rounds, "_round", one)
    return left


def take(config: Config, source: Any = None, journal: Any = None, warned: Any = ()) -> int:
    """Take what is at a source, the only one by default; how many rows there were."""
    source = source or config.sources[0]
    return rounds._take(None, config, source, Layout(config), journal, set(warned))


@pytest.mark.parametrize("failures", [1, 2])
def test_a_single_round_in_which_spark_failed_is_tried_again(
    config: Config, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    failed = [JobFailedError("OptionalDataException")] * failures
    left = answers(monkeypatch, *failed, DONE)
    assert rounds.run(config, once=True) is DONE
    assert left == []


@pytest.mark.parametrize(
    "given",
    [[JobFailedError("0"), JobFailedError("1"), JobFailedError("2")], [ContiguityError("2")]],
)
def test_the_third_failure_of_spark_or_the_first_error_of_the_data_ends_the_run(
    config: Config, monkeypatch: pytest.MonkeyPatch, given: list[Exception]
) -> None:
    left = answers(monkeypatch, *given, DONE)
    with pytest.raises(type(given[0]), match="2"):
        rounds.run(config, once=True)
    assert left == [DONE]


@pytest.mark.parametrize("bronze", ["book", "wal"])
def test_a_run_killed_while_it_made_its_log_is_begun_again(
    config: Config, monkeypatch: pytest.MonkeyPatch, bronze: Any
) -> None:
    log = Layout(config).bronze("a")
    (log / ".deedbook").mkdir(parents=True)
    (log / ".deedbook" / "lock").touch()
    if bronze == "wal":  # whose settings are written before its first segment
        (log / ".deedbook" / "settings").write_text("format wal\n")
    (source,) = config.sources
    answers(monkeypatch, DONE)
    rounds.run(replace(config, sources=(replace(source, bronze=bronze),)), once=True)
    with SINKS[bronze].open(log, "r", parse({}, None)) as opened:
        assert len(opened) == 0


@pytest.mark.parametrize("format", ["wal", "ledger"])
def test_a_log_that_is_half_there_is_yet_to_come(
    config: Config, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    (source,) = config.sources
    left = ".deedbook/lock" if format == "wal" else "0-events"
    (source.path / left).parent.mkdir(parents=True)
    (source.path / left).touch()
    ingested: list[Path] = []

    def ingest(_: Any, path: Path, *__: Any, **___: Any) -> Any:
        ingested.append(path)
        return SimpleNamespace(rows=0, batches=0, seconds=0.0)

    monkeypatch.setattr(rounds, "ingest", ingest)
    assert take(config) == 0
    assert ingested == []
    if format == "wal":
        Wal.open(source.path, "a").close()
    else:
        with Ledger.open(source.path, "a") as ledger:
            ledger.append(b"{}")
    take(config, journal=Journal(Layout(config)))
    assert ingested == [source.path]


def test_a_log_that_was_read_and_is_gone_ends_the_run(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    (source,) = config.sources
    offsets = Layout(config).checkpoint("a") / "offsets"
    offsets.mkdir(parents=True)
    assert take(config) == 0
    for batch in ("0", "1"):
        (offsets / batch).touch()
    with pytest.raises(LostRecordsError, match=r"a\.wal: the log of source a is .* 0 to 1 of it"):
        take(config)
    assert not caplog.records
    goes_on = replace(source, goes_on=True)
    assert take(config, goes_on) == 0
    assert "is not there any more" in caplog.text
    caplog.clear()
    assert take(config, goes_on, warned={"a"}) == 0  # by a round before
    assert caplog.text == ""
    # Files may be taken away once they are read.
    assert take(config, replace(source, kind="lines", path=source.path.with_name("in"))) == 0


@pytest.mark.parametrize(
    ("error", "stops"), [(KeyboardInterrupt, 2), (LostRecordsError, 1), (JobFailedError, 0)]
)
def test_what_ends_a_round_ends_the_streams_of_the_other_sources(
    config: Config, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], stops: int
) -> None:
    """A run went on until all that was at its sources had been read, however long that took.

    Ctrl-C is heard by the main thread, and a stream may begin after the first look at those that
    run. A round in which Spark failed is tried again: what the others read stays read.
    """
    (source,) = config.sources
    two = replace(config, sources=(source, replace(source, name="b")))
    stop = threading.Event()
    spark: Any = SimpleNamespace(
        streams=SimpleNamespace(active=[SimpleNamespace(stop=stop.set)]),
        sparkContext=SimpleNamespace(cancelAllJobs=lambda: None),
    )
    stopped: list[int] = []

    def take_one(_: Any, __: Any, one: Any, *___: Any) -> int:
        if one.name == "a":
            raise error("gone")
        for number in range(stops):
            if stop.wait(20):
                stop.clear()
                stopped.append(number)
        return 1

    monkeypatch.setattr(rounds, "_take", take_one)
    with pytest.raises(error, match="gone"):
        rounds._round(spark, two, Layout(two), None, set())
    assert len(stopped) == stops
    assert stops or not stop.is_set()


# -- one run at a time ----------------------------------------------------------------------------


def test_a_second_run_is_refused_with_the_process_of_the_first(
    config: Config, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fcntl", reason="needs POSIX")
    lock = Layout(config).lock
    refused: list[str] = []

    def meanwhile(*_: object) -> rounds.Round:
        with pytest.raises(LockedError) as caught:
            rounds.run(config, once=True)
        assert (caught.value.holder, caught.value.path) == (os.getpid(), str(lock))
        assert main(["pipeline", "run", str(config.file), "--json"]) == 2
        refused.append(capfd.readouterr().out)
        return DONE

    monkeypatch.setattr(rounds, "_round", meanwhile)
    assert rounds.run(config, once=True) is DONE
    (said,) = refused
    error = json.loads(said)["error"]
    assert (error["kind"], error["holder"]) == ("locked", os.getpid())
    assert f"process {os.getpid()} runs the pipeline in {config.directory} already" in said
    answers(monkeypatch, DONE)
    assert rounds.run(config, once=True) is DONE


def test_what_is_no_nostr_event_is_said_and_the_exit_code_is_1(
    config: Config, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    folder = Layout(config).quarantine("a") / "query=x" / "batch=0"

    def put(name: str, *reasons: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"reason": list(reasons)}), folder / name)

    put("part-00000.parquet", "of an earlier run")
    put(".part-00001.parquet", "of a task that has not ended")
    few = ["missing field `id`, line 1", "missing field `id`, line 2", "byte 7 is not UTF-8"]

    def one(*_: object) -> rounds.Round:
        put("part-00001.parquet", *few)
        return rounds.Round({"a": 3, "silver": 0}, {"events": 0}, 0.5)

    monkeypatch.setattr(rounds, "_round", one)
    assert main(["pipeline", "run", str(config.file), "--once"]) == 1
    said = capfd.readouterr().err
    assert "3 in quarantine, which are no Nostr events (2 x missing field `id`, line …;" in said
    assert main(["pipeline", "run", str(config.file), "--once", "--json"]) == 1
    found = json.loads(capfd.readouterr().out)
    assert found["ok"] is False and sum(found["quarantined"].values()) == 3
    assert main(["pipeline", "status", str(config.file)]) == 0
    assert "4 in quarantine" in capfd.readouterr().out
    assert main(["pipeline", "status", str(config.file), "--json"]) == 0
    (source,) = json.loads(capfd.readouterr().out)["sources"]
    assert source["quarantined"]["of an earlier run"] == 1
    # Nothing new: what lies there is not told again.
    answers(monkeypatch, replace(DONE, totals={"events": 0}))
    assert main(["pipeline", "run", str(config.file), "--once"]) == 0
    main(["pipeline", "check", str(config.file)])
    assert "a: is in quarantine" in capfd.readouterr().out


def test_a_run_with_bad_lines_has_read_all_the_same(
    config: Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    runs = Runs(config, "local[1]", (), tmp_path)
    for code, said, wanted in (
        (1, '{"ok":false,"rows":{"a":3}}', Once(0, '{"ok":false,"rows":{"a":3}}', {"a": 3})),
        (1, '{"ok":false,"error":{}}', Once(1, '{"ok":false,"error":{}}', {})),
        (2, "", Once(2, "", {})),
    ):
        done = SimpleNamespace(returncode=code, stdout=said, stderr="")
        monkeypatch.setattr("deedbook.pipeline.runs.subprocess.run", lambda *_, **__: done)  # noqa: B023
        assert runs.once() == wanted


KILLED = """
import os, signal, subprocess, sys
from pathlib import Path
from deedbook._lock import alone
with alone(Path(sys.argv[1]), "runs"):
    none = subprocess.DEVNULL
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], stdin=none, stdout=none, stderr=none
    )
    print(child.pid, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX")
def test_the_lock_of_a_run_that_was_killed_does_not_stay(tmp_path: Path, run_child: Any) -> None:
    """A process that the run had started, as its JVM, lives on for a while, without the lock."""
    file = tmp_path / "work" / "lock"
    child = int(run_child(KILLED, file).stdout)
    try:
        os.kill(child, 0)
        assert file.read_text() != ""
        with alone(file, "runs"):
            assert file.read_text() == f"{os.getpid()}\n"
        assert file.read_text() == ""
    finally:
        os.kill(child, signal.SIGKILL)
