"""A distributed check returns the same result as the core, for any state of the log."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import ContiguityError, Event, EventStore, InvalidArgumentError, Ledger, MissingError
from deedbook._formats import Outcome, find
from deedbook.spark.jobs import _checks, verify
from deedbook.spark.jobs import _verify as job
from log_bytes import flip, overwrite
from logs import append_to, make_epochs
from nostr_events import made

PAYLOADS = [b"payload %06d " % number * 20 for number in range(4000)]  # 1.1 MB
PART_BYTES = 100_000
DAMAGED = 600_000


def write_book(path: Path) -> Path:
    append_to("book", path, PAYLOADS)
    return path / "book.log"


def write_single(path: Path) -> Path:
    append_to("wal", path, PAYLOADS, single_file=True)
    return path


def write_segments(path: Path) -> Path:
    append_to("wal", path, PAYLOADS, segment_bytes=200_000)
    return path / f"{DAMAGED // 200_000:020d}.wal"


WRITERS = {"book": write_book, "single": write_single, "segments": write_segments}


def damage(file: Path) -> None:
    flip(file, DAMAGED % (200_000 if file.name.startswith("0") else 1 << 40), 0x10)


def last_of(file: Path) -> Path:
    return sorted(file.parent.glob("*.wal"))[-1] if file.suffix == ".wal" else file


def append_half(file: Path) -> None:
    with last_of(file).open("ab") as stream:
        stream.write(PAYLOADS[0][:40])


def cut_end(file: Path) -> None:
    os.truncate(last_of(file), last_of(file).stat().st_size - 1000)


def forget(file: Path) -> None:
    """Damage a log without its mark, which has the acknowledged end."""
    damage(file)
    at = file.parent if file.parent.name == "log" else file
    beside = at / ".deedbook" if at.is_dir() else at.parent / ".deedbook"
    shutil.rmtree(beside)


CHANGES: dict[str, Callable[[Path], None]] = {
    "healthy": lambda file: None,
    "damaged in the middle": damage,
    "a torn end": append_half,
    "a lost end": cut_end,
    "no mark": forget,
}


def alone(path: Path, **options: Any) -> Outcome:
    found = find(path)
    assert found is not None
    return found.format.verify(str(path), lambda done, total: None, **options)


def shared(
    path: Path, check: _checks.Level = "id", before: Callable[[], object] = lambda: None
) -> tuple[Outcome, int, int]:
    """The outcome of a shared check without Spark, the number of parts, and the number of rounds.

    ``before`` runs after the split of the log, before the check of the parts.
    """
    logs = job._logs_at(str(path))
    job._cut(logs, PART_BYTES, 2)
    (log,) = logs
    before()
    rounds: list[int] = []

    def spread(checks: Sequence[_checks.Check]) -> Iterator[_checks.Found]:
        rounds.append(len(checks))
        return _checks.run(checks, lambda done: None)

    first = [_checks.first_round(n, target, check) for n, target in enumerate(log.targets)]
    found = log.verified(job._reports(log.targets, first, check, spread))
    if found.error is not None:
        raise found.error
    return found.outcome, rounds[0], sum(1 for count in rounds if count)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", WRITERS)
def test_a_log_has_one_answer_alone_and_shared(tmp_path: Path, name: str, change: str) -> None:
    path = tmp_path / "log"
    file = WRITERS[name](path)
    CHANGES[change](file)
    expected = alone(path)
    assert expected.ok == (change == "healthy")
    outcome, parts, rounds = shared(path)
    assert outcome == expected
    if change != "no mark":
        assert parts > 8
        # Only damage in a part before the last causes a second round.
        assert rounds == (2 if change == "damaged in the middle" else 1)


def test_log_changed_during_verify_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "log"
    write_book(path)

    def append() -> None:
        append_to("book", path, PAYLOADS[:500])

    outcome, _, rounds = shared(path, before=append)
    assert (outcome, rounds) == (alone(path), 1)
    assert outcome.facts["records"] == 4500

    def replace() -> None:
        shutil.rmtree(path)
        append_to("book", path, PAYLOADS[7:3500])

    outcome, _, rounds = shared(path, before=replace)
    assert (outcome, rounds) == (alone(path), 2)
    assert outcome.facts["records"] == 3493
    with pytest.raises(deedbook.Error) as gone:
        shared(path, before=lambda: shutil.rmtree(path))
    assert isinstance(gone.value, MissingError)


def test_the_files_of_a_ledger_are_checked_apart(tmp_path: Path) -> None:
    path = tmp_path / "spool"
    for base in ("events", "other"):
        with Ledger.open(path, "a", base=base, batch_bytes=20_000) as ledger:
            for payload in PAYLOADS[:300]:
                ledger.append(payload)
    expected = alone(path)
    outcome, parts, _ = shared(path)
    assert outcome == expected and outcome.ok and parts > 8
    flip(sorted(path.glob("*-other"))[2], 5000)
    expected = alone(path)
    assert shared(path)[0] == expected and not expected.ok
    # A file that a sender removed in between is no longer part of the ledger.
    outcome, parts, _ = shared(path, before=lambda: sorted(path.glob("*-events"))[0].unlink())
    assert outcome == alone(path) and len(outcome.facts["files"]) == parts - 1


def note(number: int, kind: int = 1, *tag: str) -> Event:
    """A long note. Only deletion requests have a valid signature, because others do not count."""
    content = f"note {number} " * 40
    fields = made(content, created_at=number, kind=kind, tags=[[*(tag or ("n", "note"))]])
    return Event.from_json(json.dumps(fields))


def store_of(home: Path, count: int) -> Path:
    append_to("nostr", home / "store", [note(number) for number in range(count)])
    return home / "store"


def segment_of(store: Path) -> Path:
    return next((store / "data" / "segments").iterdir())


@pytest.mark.parametrize("check", ["none", "id", "signature"])
def test_a_store_has_one_answer_alone_and_shared(tmp_path: Path, check: _checks.Level) -> None:
    path = store_of(tmp_path, 900)
    expected = alone(path, check=check)
    assert expected.ok == (check != "signature")
    outcome, parts, rounds = shared(path, check)
    assert (outcome, rounds) == (expected, 1) and parts > 5
    wrong = [note(n).to_json().replace("note", "other") for n in range(1000, 1020)]
    lines = tmp_path / "lines"
    lines.write_text("\n".join([note(n).to_json() for n in range(1020, 1500)] + wrong))
    with EventStore.open(path, "a") as store:
        assert store.import_json(lines, check="none").stored == 500
    writer = EventStore.open(path, "a")  # before a check notes the damage
    overwrite(segment_of(path), 3 * 4096, bytes(6 * 4096))
    expected = alone(path, check=check)
    assert expected.facts["faults"] > (0 if check == "none" else 20)
    outcome, parts, rounds = shared(path, check)
    assert (outcome, rounds) == (expected, 1) and parts > 5

    def append() -> None:
        with writer:
            writer.append_many([note(number) for number in range(2000, 2010)])

    # The result belongs to the moment of the split.
    outcome, _, rounds = shared(path, check, append)
    assert (outcome, rounds) == (expected, 1) and alone(path, check=check) != expected


def test_shared_verify_reports_an_event_stored_twice(tmp_path: Path) -> None:
    path = store_of(tmp_path, 300)
    segment = segment_of(path)
    overwrite(segment, 280 * 4096, segment.read_bytes()[4096 : 2 * 4096])
    expected = alone(path)
    assert "stored twice" in expected.facts["damages"][0]["reason"]
    outcome, parts, rounds = shared(path)
    assert (outcome, rounds) == (expected, 2) and parts > 5


def test_a_loss_that_a_repair_noted_is_said(tmp_path: Path) -> None:
    path = store_of(tmp_path, 300)
    overwrite(segment_of(path), 9 * 4096, bytes(4096))
    assert EventStore.repair(path, accept_loss=True).mended
    outcome, parts, rounds = shared(path)
    assert (outcome, rounds) == (alone(path), 1) and parts > 5
    assert outcome.facts["is_loss"]


@pytest.mark.parametrize("change", ["compacted", "cut"])
def test_store_changed_during_verify_is_checked_again(tmp_path: Path, change: str) -> None:
    path = store_of(tmp_path, 900)
    with EventStore.open(path, "a") as store:
        ids = [event.id for event in store]
        store.append_many([note(901 + n, 5, "e", ids[n]) for n in range(30)])

    def happens() -> None:
        if change == "cut":
            os.truncate(segment_of(path), 500 * 4096)
            return
        with EventStore.open(path, "a") as store:
            assert store.compact(0.0).deleted == 30

    outcome, parts, rounds = shared(path, before=happens)
    assert (outcome, rounds) == (alone(path), 2) and parts > 5
    assert outcome.facts["live"] == {"compacted": 900, "cut": 499 - 30}[change]


@pytest.mark.parametrize(
    ("total_mib", "cores", "tasks"),
    [(10, 8, 1), (200, 2, 8), (4096, 2, 8), (11 * 512, 2, 12), (100_000, 8, 200)],
)
def test_all_cores_get_as_many_tasks(total_mib: int, cores: int, tasks: int) -> None:
    total, most = total_mib << 20, 512 << 20
    size = job._task_bytes(total, most, cores)
    assert size <= most and -(-total // size) == tasks


# -- with Spark


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    logs = tmp_path_factory.mktemp("logs")
    write_book(logs / "book")
    damage(write_book(logs / "damaged"))
    cut_end(write_segments(logs / "lost"))
    append_to("ledger", logs / "spool", [PAYLOADS[0]])
    store_of(logs, 300)
    (logs / "none").mkdir()
    make_epochs(logs / "pier", {number: [b"one"] for number in range(30)})
    return logs


def test_logs_of_all_formats_are_checked_by_tasks(spark: Any, logs: Path) -> None:
    seen: list[tuple[int, int | None]] = []
    found = verify(
        spark,
        logs,
        str(logs / "[bp]*"),
        logs / "none",
        part_bytes=PART_BYTES,
        progress=lambda done, total, note: seen.append((done, total)),
    )
    names = ["book", "damaged", "lost", "spool", "store", "book"]
    names += [*(f"0i{number}" for number in range(30)), "none"]
    assert [Path(one.path).name for one in found] == names
    for one in found[:-1]:
        assert one.error is None and one.outcome == alone(Path(one.path)), one
    assert [one.ok for one in found[:5]] == [True, False, False, True, True]
    assert all(one.parts > 8 for one in found[:3])
    assert isinstance(found[-1].error, MissingError) and not found[-1].ok
    totals = {total for _, total in seen}
    assert len(totals) == 1 and all(0 <= done <= (total or 0) for done, total in seen)


def test_a_pier_without_an_epoch_is_not_well(spark: Any, tmp_path: Path) -> None:
    make_epochs(tmp_path / "pier", {number: [b"one"] for number in (0, 1, 3)})
    write_book(tmp_path / "other")
    for dry_run in (True, False):
        *each, pier, other = verify(spark, tmp_path / "pier", tmp_path / "other", dry_run=dry_run)
        assert [one.ok for one in each] == [True] * 3 and other.ok
        assert not pier.ok and Path(pier.path) == tmp_path / "pier"
        assert isinstance(pier.error, ContiguityError) and "event 3 is missing" in str(pier.error)


def test_unreadable_log_does_not_stop_a_directory_check(tmp_path: Path) -> None:
    write_book(tmp_path / "book")
    write_segments(tmp_path / "wal")
    mixed = tmp_path / "mixed"
    write_book(mixed)
    (mixed / f"{0:020d}.wal").touch()
    for given in (tmp_path, tmp_path / "*"):
        found = {Path(log.path).name: log for log in job._logs_at(str(given))}
        job._cut(list(found.values()), PART_BYTES, 2)
        assert {name: log.format for name, log in found.items()} == {
            "book": "book",
            "wal": "wal",
            "mixed": None,
        }
        assert found["book"].targets and found["wal"].targets and not found["mixed"].targets
        refused = found["mixed"].verified([])
        assert not refused.ok and isinstance(refused.error, InvalidArgumentError)
        assert "mixed holds both a book (book.log) and a write-ahead log" in str(refused.error)


def test_a_dry_run_says_what_would_be_read(spark: Any, logs: Path) -> None:
    found = verify(spark, logs / "damaged", logs / "absent", part_bytes=PART_BYTES, dry_run=True)
    (book, absent) = found
    assert book.ok and book.bytes == (logs / "damaged" / "book.log").stat().st_size - 16
    assert book.outcome.facts == {"parts": book.parts, "bytes": book.bytes} and book.parts > 8
    assert isinstance(absent.error, MissingError)


def test_wrong_arguments_are_refused(spark: Any, logs: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="no path"):
        verify(spark)
    with pytest.raises(InvalidArgumentError, match="part_bytes 0, must be at least 1"):
        verify(spark, logs, part_bytes=0)
    with pytest.raises(InvalidArgumentError, match='check "all", must be one of'):
        verify(spark, logs, check="all")  # type: ignore[arg-type]


def test_the_command_prints_what_verify_prints(logs: Path) -> None:
    """In a new process: one JSON object per log, in the order of the paths."""

    def ran(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "deedbook", *words, "--json"]
        command += [
            str(logs / name) for name in ("book", "damaged", "lost", "spool", "store", "gone")
        ]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)

    local = ran("verify")
    spread = ran("spark", "verify", "--part-size", "100k", "--master", "local[2]")
    *found, gone = [json.loads(line) for line in spread.stdout.splitlines()]
    assert found == [json.loads(line) for line in local.stdout.splitlines()][:-1]
    assert spread.returncode == local.returncode == 2, spread.stderr
    assert not gone["ok"] and gone["error"]["kind"] == "missing"
    # The output of Spark and its JVM goes to a file.
    said = spread.stderr.splitlines()
    assert said and all(line.startswith("deedbook: ") for line in said), spread.stderr
