"""The file of a pipeline: what it says, and what is said about a wrong one."""

import sys
import threading
from datetime import datetime
from importlib import resources
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from deedbook import InvalidArgumentError, Wal
from deedbook._cli import main
from deedbook._cli.signals import Terminated
from deedbook.pipeline.config import load
from deedbook.pipeline.layout import Layout
from deedbook.pipeline.progress import Journal, Lag, batches_of, kills_of, lines_of
from deedbook.pipeline.status import status

if sys.version_info < (3, 11):
    pytest.importorskip("tomli", reason="tomli is not installed")

LEAST = '[pipeline]\n[[source]]\nname = "a"\nlog = "a.wal"\n'


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "pipeline.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_the_example_that_ships_is_a_pipeline(tmp_path: Path) -> None:
    text = (resources.files("deedbook.pipeline") / "example.toml").read_text(encoding="utf-8")
    config = load(written(tmp_path, text))
    assert (config.name, config.directory) == ("notes", tmp_path / "out")
    assert (config.trigger_seconds, config.lateness_seconds) == (5.0, 3600.0)
    found = [(one.name, one.kind, one.bronze, one.check) for one in config.sources]
    assert found == [
        ("files", "lines", "nostr", "id"),
        ("orders", "log", "book", "id"),
        ("spool", "log", "wal", "id"),
    ]
    assert config.sources[1].path == tmp_path / "in" / "app.wal"
    assert config.tables == ("parquet", "delta")
    assert (config.window_seconds, config.checkpoints) == (3600, tmp_path / "out" / "checkpoints")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10m", 600), ("1h", 3600), ("2 days", 172_800), ("90 s", 90), ("1 minute", 60)],
)
def test_a_length_of_time_is_a_number_and_a_unit(tmp_path: Path, text: str, seconds: int) -> None:
    given = LEAST.replace("[pipeline]", f'[pipeline]\nwindow = "{text}"\ncheckpoints = "../kept"')
    config = load(written(tmp_path, given))
    assert (config.window_seconds, config.checkpoints) == (seconds, tmp_path.parent / "kept")
    assert Layout(config).checkpoint("silver") == tmp_path.parent / "kept" / "silver"


def test_what_is_left_out_has_a_default(tmp_path: Path) -> None:
    config = load(written(tmp_path, LEAST))
    assert (config.name, config.tables, config.sources[0].bronze) == (
        "pipeline",
        ("parquet",),
        "book",
    )
    assert (config.window_seconds, config.checkpoints) == (3600, tmp_path / "out" / "checkpoints")


def test_a_log_may_be_held_and_a_loss_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = pytest.importorskip("deedbook.pipeline.run", reason="pyspark is not installed")
    held = LEAST + 'consumer = "notes"\non_loss = "go on"\n'
    asked: list[Any] = []

    def ingest(*_: Any, consumer: str | None, fail_on_data_loss: bool, **__: Any) -> Any:
        asked.append((consumer, fail_on_data_loss))
        return SimpleNamespace(rows=0, batches=0, seconds=0.0)

    monkeypatch.setattr(run, "ingest", ingest)
    Wal.create(tmp_path / "a.wal").close()
    for text in (LEAST, held):
        config = load(written(tmp_path, text))
        layout = Layout(config)
        assert run._take(None, config, config.sources[0], layout, Journal(layout), set()) == 0
    assert asked == [(None, True), ("notes", False)]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[pipeline]", "[pipelin]", r"unknown key pipelin \(did you mean pipeline\?\)"),
        ("[pipeline]", "[pipeline", r"pipeline\.toml: .*line 1"),
        ("[pipeline]", '[pipeline]\ntriger = "1 second"', r"pipeline\.triger \(did you mean tri"),
        (
            "[pipeline]",
            "[pipeline]\ntrigger = 5",
            r'pipeline\.trigger: 5 .*allowed: as "5 seconds"',
        ),
        ("[pipeline]", '[pipeline]\nlateness = "5 years"', "'5 years' is not allowed"),
        ("[pipeline]", '[pipeline]\nwindow = "0s"', "'0s' is not allowed; allowed: a second, or"),
        ("[pipeline]", '[pipeline]\nwindow = "10ms"', "'10ms' is not allowed; allowed: as"),
        ("[pipeline]", "[pipeline]\ncheckpoints = 1", r"pipeline\.checkpoints: 1 .*a path"),
        ("[pipeline]", "[pipeline]\nbatch_bytes = 0", "0 is not allowed; allowed: bytes, from 1"),
        ("[pipeline]", '[pipeline]\nname = "a b"', "'a b' is not allowed; allowed: letters"),
        ("[pipeline]", "[pipeline]\ndirectory = 1", r"pipeline\.directory: 1 .*allowed: a path"),
        ('name = "a"', 'name = "silver"', "and not silver, gold or run"),
        ('name = "a"', 'name = "run"', "'run' is not allowed"),
        ('log = "a.wal"', 'log = "logs/*.wal"', "a file or a directory, and no glob"),
        ('name = "a"', "", r"source 1\.name: None is not allowed"),
        ('log = "a.wal"', "", "allowed: one of lines = PATH and log = PATH"),
        ('log = "a.wal"', 'log = "a"\nlines = "b"', "one of lines = PATH and log = PATH"),
        (
            'log = "a.wal"',
            'log = "a"\nbronze = "nostr"',
            "'nostr' is not allowed; allowed: book, w",
        ),
        (
            'log = "a.wal"',
            'log = "a"\nconsumer = "a b"',
            "'a b' is not allowed; allowed: a name wi",
        ),
        ('log = "a.wal"', 'log = "a"\non_loss = "no"', "'no' is not allowed; allowed: fail, go on"),
        ('log = "a.wal"', 'lines = "a"\nconsumer = "b"', "consumer: 'b' .*of sources with log = "),
        ('log = "a.wal"', 'lines = "a"\non_loss = "fail"', "on_loss: 'fail' .*sources with log ="),
        ('log = "a.wal"', 'log = "a"\ncheck = "no"', "'no' is not allowed; allowed: id, signature"),
        ('log = "a.wal"', 'log = "a"\n[[source]]\nname = "a"\nlog = "b"', "a name of its own"),
        ('log = "a.wal"', 'log = "a"\n[tables]\nsilver = ["csv"]', 'a list of "parquet" and "del'),
    ],
)
def test_a_wrong_file_is_refused_with_the_key_and_what_is_allowed(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        load(written(tmp_path, LEAST.replace(old, new)))


def test_a_file_without_sources_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"at least one \[\[source\]\]"):
        load(written(tmp_path, "[pipeline]\n"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "pipeline.toml: No such file or directory\n"),
        (b"x", "pipeline.toml: Expected '='"),
        (LEAST.encode() + b"# na\xefve\n", "pipeline.toml: 'utf-8' codec can't decode byte 0xef"),
    ],
)
def test_the_command_says_what_is_wrong_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], content: bytes | None, said: str
) -> None:
    file = tmp_path / "pipeline.toml"
    if content is not None:
        file.write_bytes(content)
    for command in ("status", "run"):
        assert main(["pipeline", command, str(file)]) == 2
        error = capfd.readouterr().err
        assert said in error and "internal" not in error and error.count("\n") == 1


def test_the_status_of_a_pipeline_that_never_ran(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["pipeline", "status", str(written(tmp_path, LEAST))]) == 0
    shown = capfd.readouterr().out
    assert "never run; 0 runs, 0 killed" in shown
    assert "book, no records, not there yet" in shown


def test_progress_goes_on_behind_a_torn_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = load(written(tmp_path, LEAST))
    layout, (source,) = Layout(config), config.sources
    for torn in (b'{"query": "ru', b""):
        journal = Journal(layout)
        with journal.running():
            journal.batch(source.name, 0, 5, 1.0)
        for query in ("run", source.name):
            with layout.progress(query).open("ab") as file:
                file.write(torn)
    assert main(["pipeline", "status", str(config.file)]) == 0
    assert "ended; 2 runs, 0 killed" in capfd.readouterr().out
    assert [one.rows for one in batches_of(layout, source.name)] == [5, 5]


def test_a_follower_that_cannot_note_is_an_error_of_its_source(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    from deedbook.pipeline.follow import follow

    config = load(written(tmp_path, LEAST))
    notes = Layout(config).follower("a").parent
    notes.parent.mkdir(parents=True)
    notes.write_bytes(b"no directory")
    (found,) = follow(config, threading.Event(), 0.0)
    assert (found.source, found.records) == ("a", 0)
    assert str(notes) in (found.error or "")


def test_the_error_of_a_run_is_told_even_if_its_end_cannot_be_noted(tmp_path: Path) -> None:
    layout = Layout(load(written(tmp_path, LEAST)))
    with pytest.raises(LookupError, match="why"), Journal(layout).running():
        layout.progress("run").unlink()
        layout.progress("run").mkdir()
        raise LookupError("why")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, Terminated])
def test_a_run_that_was_stopped_did_not_break_off(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], stop: type[BaseException]
) -> None:
    config = load(written(tmp_path, LEAST))
    for _ in range(2):
        with pytest.raises(stop), Journal(Layout(config)).running():
            raise stop
    assert kills_of(Layout(config)) == []
    assert main(["pipeline", "status", str(config.file)]) == 0
    assert "stopped; 2 runs, 0 killed" in capfd.readouterr().out


def test_the_last_run_broke_off_if_it_failed(tmp_path: Path) -> None:
    layout = Layout(load(written(tmp_path, LEAST)))
    with pytest.raises(LookupError), Journal(layout).running():
        raise LookupError
    failed = datetime.fromisoformat(lines_of(layout.progress("run"))[-1]["at"])
    assert kills_of(layout) == [failed]
    with Journal(layout).running():  # this one may be running
        assert kills_of(layout) == [failed]


def test_the_looks_of_a_run_are_those_of_all_its_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    from deedbook.pipeline import lag as lag_module

    config = load(written(tmp_path, LEAST))
    layout = Layout(config)
    now = 100.0

    def walk(*_: object) -> Lag:
        nonlocal now
        now += 2.0
        return Lag(1, 1)

    monkeypatch.setattr(lag_module.time, "monotonic", lambda: now)
    monkeypatch.setattr(lag_module, "_places", lambda *_: {})
    monkeypatch.setattr(lag_module, "_lag_of_logs", walk)
    journal = Journal(layout, lag_module.looks_of(config, layout))
    for _ in range(3):  # rounds
        for batch in range(2):
            journal.batch("a", batch, 1, 1.0)
    assert [one.lag for one in batches_of(layout, "a")] == [Lag(1, 1), *[None] * 5]
    assert status(config).sources[0].lag == Lag(1, 1)  # the last one noted
    for seconds, lag in ((17.9, None), (0.2, Lag(1, 1))):  # a look takes a tenth of the time
        now += seconds
        journal.batch("a", 2, 1, 1.0)
        assert batches_of(layout, "a")[-1].lag == lag
    for batch in range(2):  # what a batch of silver left counts in the latency
        journal.batch("silver", batch, 1, 1.0)
    assert [one.lag for one in batches_of(layout, "silver")] == [Lag(1, 1)] * 2
