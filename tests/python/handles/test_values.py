"""Values of every format: they can be compared, copied, pickled, matched and shown."""

import copy
import json
import multiprocessing
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Book, Deed, Ledger, Log, Meta, Pier, Record, Wal
from deedbook.jobs import Split
from logs import span

PAYLOADS = [b"%d" % number * (number % 30) for number in range(2000)]

KINDS: dict[str, Any] = {"book": Book, "wal": Wal}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]


@pytest.fixture
def place(kind: Any, tmp_path: Path) -> Path:
    path = tmp_path / "log"
    with kind.create(path, durability="manual") as log:
        log.append_many(PAYLOADS)
    return path


@pytest.fixture
def arrow() -> Any:
    return pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def damaged(place: Path) -> Path:
    file = next(file for file in (place / "book.log", place / f"{0:020d}.wal") if file.exists())
    data = bytearray(file.read_bytes()[:-1])
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    return place


def values(kind: Any, place: Path, tmp_path: Path) -> list[Any]:
    with kind.open(place) as log:
        found = [next(iter(log)), log.recovery, log.stats(), *log.splits(10_000)]
        if kind is Book:
            found.append(log.meta)
    damaged(place)
    with kind.open(place) as log:
        found += [log.recovery, log.recovery.damage, *log.splits(10_000)]
    verified = kind.verify(place)
    found += [verified, *verified.damages]
    salvaged = kind.salvage(place, tmp_path / "copy")
    found += [salvaged, *salvaged.runs, salvaged.loss]
    found += [kind.repair(place, dry_run=True)]
    with Ledger.open(tmp_path / "ledger", "a") as ledger:
        ledger.append(b"1")
        found.append(ledger.stats())
    with Ledger.open(tmp_path / "ledger") as snapshot:
        found += [*snapshot, *snapshot.files, Ledger.verify(tmp_path / "ledger")]
        found += [*Ledger.verify(tmp_path / "ledger").files]
    with Pier.create(tmp_path / "pier") as pier:
        pier.append(b"1")
        pier.roll()
        found += [*pier.epochs, pier.retain(max_bytes=0, dry_run=True)]
    return found


def test_values_are_copied_and_pickled(kind: Any, place: Path, tmp_path: Path) -> None:
    found = values(kind, place, tmp_path)
    classes = {type(value).__name__ for value in found}
    assert classes >= {"Damage", "Loss", "RecoveryReport", "RepairReport", "SalvageReport"}
    assert classes >= {"SalvageRun", "Split", "Stats", "VerifyReport"}
    copies: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy]
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        copies.append(lambda value, protocol=protocol: pickle.loads(pickle.dumps(value, protocol)))
    for value in found:
        for copied in copies:
            again = copied(value)
            assert type(again) is type(value) and again == value
            assert repr(again) == repr(value)


def test_values_are_matched_and_shown_by_their_fields(
    kind: Any, place: Path, tmp_path: Path
) -> None:
    for value in values(kind, place, tmp_path):
        fields = value.to_dict()
        assert tuple(fields) == type(value).__match_args__
        assert json.loads(json.dumps(fields, default=bytes.hex)).keys() == fields.keys()
        assert repr(value).startswith(f"{type(value).__name__}(")
        for name, plain in fields.items():
            with pytest.raises(AttributeError):
                setattr(value, name, plain)
            assert f"{name}=" in repr(value)
            own = getattr(value, name)
            assert plain == (own.to_dict() if hasattr(own, "to_dict") else plain_list(own))
        assert type(value)(**{name: getattr(value, name) for name in fields}) == value


def plain_list(own: Any) -> Any:
    if not isinstance(own, list):
        return own
    return [item.to_dict() if hasattr(item, "to_dict") else item for item in own]


def test_a_report_is_not_made_without_its_fields() -> None:
    with pytest.raises(TypeError, match="missing argument: records"):
        deedbook.reports.Loss()
    with pytest.raises(TypeError, match="unknown argument: more"):
        deedbook.reports.Loss(records=1, first=2, offset=3, more=4)


def test_a_record_is_matched_by_position() -> None:
    match Deed(1, 2, b"three"):
        case Deed(event, mug, jam):
            assert (event, mug, jam) == (1, 2, b"three")
    match Record(8, b"payload"):
        case Record(lsn, payload):
            assert (lsn, payload) == (8, b"payload")
    match Meta(who=5):
        case Meta(who, None, None, None):
            assert who == 5


def test_a_log_of_any_format_is_a_log(kind: Any, place: Path) -> None:
    with deedbook.open(place, "a") as log:
        assert isinstance(log, Log) and type(log) is kind
        first, end = span(log.append_many([b"x", b"y"]))
        assert [record.payload for record in log.iter(first, end)] == [b"x", b"y"]
        assert span(log.append_many([], atomic=True)) == (end, end)
        assert log.append_many([b"z"], atomic=True).first == end
        assert log.stats().records == 3 and log.stats().appends >= 2
    assert not isinstance(place, Log)
    assert str(Log[Deed]).endswith("Log[deedbook.Deed]")


def count_and_process(split: Split) -> tuple[int, int, list[bytes]]:
    import pyarrow  # in a process of the pool, too

    table = pyarrow.table(split.batches(columns=["payload"], on_corrupt="skip"))
    return table.num_rows, os.getpid(), table["payload"].to_pylist()


@pytest.mark.usefixtures("arrow")
def test_a_pool_of_processes_reads_the_splits(kind: Any, place: Path) -> None:
    with kind.open(place) as log:
        splits = log.splits(5_000)
    assert len(splits) > 1
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        parts = pool.map(count_and_process, splits)
    assert [payload for _, _, payloads in parts for payload in payloads] == PAYLOADS
    assert [count for count, _, _ in parts] == [split.records for split in splits]
    assert os.getpid() not in {process for _, process, _ in parts}


@pytest.mark.usefixtures("arrow")
def test_pickled_split_carries_the_mark_for_executors(kind: Any, place: Path) -> None:
    damaged(place)
    with kind.open(place) as log:
        splits = log.splits()
    assert splits[-1].known_end is not None
    expected = [count_and_process(pickle.loads(pickle.dumps(split)))[2] for split in splits]
    for name in ("mark", "index"):
        (place / ".deedbook" / name).unlink(missing_ok=True)
    assert [count_and_process(split)[2] for split in splits] == expected


def test_a_split_reads_from_start_to_stop(kind: Any, place: Path, arrow: Any) -> None:
    with kind.open(place) as log:
        positions = [next(iter(record)) for record in log]
        (split,) = log.splits()
    assert split.format == {Book: "book", Wal: "wal"}[kind]
    part = split.batches(start=positions[10], stop=positions[20], columns=["payload"])
    assert arrow.table(part)["payload"].to_pylist() == PAYLOADS[10:20]
    nothing = split.batches(start=positions[-1] + 10**6, columns=["payload"])
    assert arrow.table(nothing).num_rows == 0


@pytest.mark.parametrize(
    "wrong",
    [{"columns": []}, {"columns": ["events"]}, {"on_corrupt": "drop"}, {"verify": "sha"}],
    ids=str,
)
def test_split_options_outside_their_range_are_refused(
    kind: Any, place: Path, wrong: dict[str, Any]
) -> None:
    with kind.open(place) as log, pytest.raises(deedbook.InvalidArgumentError):
        log.splits()[0].batches(**wrong)
    with pytest.raises(deedbook.InvalidArgumentError, match="must be one of"):
        Split("tar", place, None, None, 0, 1)
