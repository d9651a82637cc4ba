"""All classes work alike: names, defaults, order, reports, texts."""

from __future__ import annotations

import inspect
import re
import stat
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Durability, EventStore, InvalidArgumentError, _core, aio
from deedbook._renamed import GONE
from rhymes import (
    CLASSES,
    DEFAULTS,
    DIFFERS,
    DURABILITY,
    FILE_MODE,
    REPORT_FIELDS,
    SHARED,
    TWINS,
    doc,
    members,
    parameters,
    record,
    report_class,
    returned,
)

every_class = pytest.mark.parametrize("owner", CLASSES, ids=lambda one: one.__name__)
every_twin = pytest.mark.parametrize("twin", TWINS, ids=lambda one: one.__name__)


def differs(owner: type, *names: str) -> bool:
    return ".".join((owner.__name__, *names)) in DIFFERS


# -- names, order, defaults ------------------------------------------------------------------------


@every_class
def test_a_class_has_each_shared_name(owner: type) -> None:
    stub = members(owner)
    for name in SHARED:
        if not differs(owner, name):
            assert hasattr(owner, name), name
            assert name in stub, f"{name} is not in the stub"


@every_class
def test_shared_parameters_have_one_name_and_one_order(owner: type) -> None:
    for name, wanted in SHARED.items():
        if differs(owner, name):
            continue
        given = [one for one in parameters(owner, name) if one in wanted]
        expected = [one for one in wanted if not differs(owner, name, one)]
        assert given == expected, name


@every_class
def test_shared_parameters_have_one_default(owner: type) -> None:
    for (name, parameter), default in DEFAULTS.items():
        if not (differs(owner, name) or differs(owner, name, parameter)):
            assert parameters(owner, name)[parameter].default == default, (name, parameter)
    for name in ("open", "create"):
        assert parameters(owner, name)["file_mode"].default == FILE_MODE[owner], name


@every_class
def test_create_accepts_the_options_of_open(owner: type) -> None:
    opened, created = parameters(owner, "open"), parameters(owner, "create")
    of_old_logs = {"mode", "recovery", "lock_timeout", "check"}
    assert list(created) == [name for name in opened if name not in of_old_logs]
    for name, parameter in created.items():
        assert parameter == opened[name]
        assert parameter.kind is not inspect.Parameter.VAR_KEYWORD


@every_class
def test_the_first_parameters_alone_are_given_by_position(owner: type) -> None:
    keywords = {"open": ["path", "mode"], "create": ["path"], "verify": ["path"]}
    keywords |= {"repair": ["path"], "salvage": ["path", "to"]}
    for name, wanted in keywords.items():
        found = parameters(owner, name).values()
        assert [one.name for one in found if one.kind is not one.KEYWORD_ONLY] == wanted, name


@every_class
def test_verify_repair_and_salvage_are_static(owner: type) -> None:
    for name in ("open", "create", "verify", "repair", "salvage"):
        assert isinstance(inspect.getattr_static(owner, name), staticmethod), name


@every_class
def test_reports_are_of_one_family(owner: type) -> None:
    for name in ("verify", "repair", "salvage"):
        report = report_class(owner, name)
        for field in REPORT_FIELDS:
            assert field in members(report), f"{report.__name__}.{field}"
            assert doc(report, field)
        assert callable(report.to_dict)  # type: ignore[attr-defined]


@every_class
def test_many_are_answered_with_a_range(owner: type) -> None:
    answer = returned(owner, "append_many")
    assert (
        ("list" in answer)
        if differs(owner, "append_many", "range")
        else answer.startswith("Positions[")
    )


@every_class
def test_texts_have_the_same_sections(owner: type) -> None:
    for name in ("open", "append", "verify", "repair", "salvage"):
        assert "Raise" in doc(owner, name), f"{name} does not say what it raises"
    assert "``durability``" in doc(owner, "open")
    assert "``file_mode``" in doc(owner, "open")


@every_twin
def test_a_twin_has_the_names_of_its_class(twin: type) -> None:
    plain = TWINS[twin]
    for name in ("open", "create", "append", "append_many", "commit"):
        wanted = [one for one in parameters(plain, name) if one != "sync"]
        assert [*parameters(twin, name)] == wanted, name
        for one, parameter in parameters(twin, name).items():
            assert parameter.default == parameters(plain, name)[one].default, (name, one)
    for name in ("sync", "stats", "close", "__aenter__", "__aexit__"):
        assert hasattr(twin, name)


def test_open_reads_by_default() -> None:
    for function in (deedbook.open, aio.open):
        assert inspect.signature(function).parameters["mode"].default == "r"


def test_each_difference_is_one() -> None:
    """A row of the table must describe a real difference."""
    for row in DIFFERS:
        owner_name, name, *parameter = row.split(".")
        owner = next(one for one in CLASSES if one.__name__ == owner_name)
        if not parameter:
            assert not hasattr(owner, name), row
        elif parameter[0] not in ("range", "slice"):
            assert parameter[0] not in parameters(owner, name), row


# -- behaviour -------------------------------------------------------------------------------------


@every_class
def test_positions_from_append_read_the_same_records(owner: Any, tmp_path: Path) -> None:
    with owner.create(tmp_path / "log") as log:
        first = log.append(record(owner, 1))
        many = log.append_many([record(owner, 2), record(owner, 3)])
        last = log.commit(record(owner, 4))
        log.sync()
    places = (
        [first.location, *(one.location for one in many), last.location]
        if (owner is EventStore)
        else [first, many.first, many.last, last]
    )
    with owner.open(tmp_path / "log") as log:
        assert [one.position for one in log] == places
        assert [one.position for one in log.iter()] == places
        assert [log[place].payload for place in places] == [one.payload for one in log]
        assert [*log.payloads()] == [one.payload for one in log]
        if owner is EventStore:
            return
        assert many.first < many.last < many.end and len(many) == 2
        assert [one.position for one in log[many.first : many.end]] == places[1:3]
        assert [one.position for one in log.iter(many.first, many.end)] == places[1:3]


@every_class
def test_modes_read_append_and_create(owner: Any, tmp_path: Path) -> None:
    path = tmp_path / "log"
    with pytest.raises(deedbook.MissingError):
        owner.open(path)
    with owner.open(path, "a") as log:
        assert log.mode == "a"
        log.append(record(owner, 1))
    with pytest.raises(deedbook.AlreadyExistsError):
        owner.open(path, "x")
    with pytest.raises(deedbook.AlreadyExistsError):
        owner.create(path)
    with owner.open(path) as log:
        assert log.mode == "r"
        with pytest.raises(deedbook.ReadOnlyError):
            log.append(record(owner, 2))
    with deedbook.open(path) as log:
        assert type(log) is owner and log.mode == "r"


@every_class
def test_verify_repair_and_salvage_take_a_path(owner: Any, tmp_path: Path) -> None:
    with owner.create(tmp_path / "log") as log:
        log.append_many([record(owner, number) for number in range(3)])
    reports = [owner.verify(tmp_path / "log"), owner.salvage(tmp_path / "log", tmp_path / "copy")]
    reports += [owner.repair(tmp_path / "log", dry_run=dry_run) for dry_run in (True, False)]
    assert all(one.records == 3 for one in reports)
    with owner.open(tmp_path / "log", "a") as log:
        log.backup(tmp_path / "backup")
    for report in reports:
        assert report.ok is True and report.verdict in ("clean", "open")
        assert report.damages == [] and report.loss is None
        assert all(name in report.to_dict() for name in REPORT_FIELDS)
    for name in ("copy", "backup"):
        with owner.open(tmp_path / name) as copy:
            assert sum(1 for _ in copy) == 3


@every_class
def test_the_durability_of_a_format_is_its_own(owner: Any, tmp_path: Path) -> None:
    with owner.create(tmp_path / "log") as log:
        assert log.durability == DURABILITY[owner]
        assert f"durability {log.durability!r}" in repr(log)


DURABILITIES: list[Any] = [
    "always",
    "manual",
    "none",
    timedelta(milliseconds=50),
    Durability.bytes(4096),
]


@every_class
@pytest.mark.parametrize("durability", DURABILITIES, ids=repr)
def test_a_durability_is_taken_and_shown(owner: Any, durability: Any, tmp_path: Path) -> None:
    with owner.create(tmp_path / "log", durability=durability) as log:
        assert log.durability == durability
        assert f"durability {durability!r}" in repr(log)
        log.append(record(owner, 1))


@every_class
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("interval:100", "timedelta(milliseconds=100)"),
        ("bytes:4096", "Durability.bytes(4096)"),
        ("rotate", '"manual"'),
        ("often", '"always"'),
    ],
)
def test_old_durability_is_refused_with_its_new_spelling(
    owner: Any, old: str, new: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        owner.create(tmp_path / "log", durability=old)
    assert new in str(refused.value)
    assert not (tmp_path / "log").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="has no modes of files")
@every_class
@pytest.mark.parametrize("given", [None, 0o640])
def test_files_are_private_except_files_of_books(
    owner: Any, given: int | None, tmp_path: Path
) -> None:
    options = {} if given is None else {"file_mode": given}
    with owner.create(tmp_path / "log", **options) as log:
        log.append(record(owner, 1))
    wanted = FILE_MODE[owner] if given is None else given
    data = [one for one in (tmp_path / "log").rglob("*") if is_data(one)]
    assert data
    for file in data:
        assert stat.S_IMODE(file.stat().st_mode) == wanted, file
    readable = wanted & 0o444  # a reader of a file may also list the directory
    assert stat.S_IMODE((tmp_path / "log").stat().st_mode) == wanted | readable >> 2


def is_data(path: Path) -> bool:
    names: tuple[Callable[[Path], bool], ...] = (
        lambda one: one.name in ("book.log", "data.0", "data.0.seg"),
        lambda one: one.name.endswith((".wal", "-events")),
    )
    return path.is_file() and ".deedbook" not in path.parts and any(name(path) for name in names)


# -- names that are gone ---------------------------------------------------------------------------


OLD = [(owner, old, now) for owner, names in GONE.items() for old, now in names.items()]


@pytest.mark.parametrize(("owner", "old", "now"), OLD)
def test_removed_name_reports_its_replacement(owner: str, old: str, now: str) -> None:
    of = getattr(_core, owner)
    assert not hasattr(of, old)
    with pytest.raises(AttributeError, match=re.escape(f"{owner}.{old} is gone: use {now}")):
        getattr(of, old)
    assert hasattr(of, now.partition("(")[0])


def test_a_handle_names_what_replaced_a_method(tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match="append_batch is gone: use append_many"):
        aio.AsyncLedger.append_batch  # noqa: B018
    book, gone = (
        deedbook.Book.create(tmp_path / "book"),
        pytest.raises(AttributeError, match="many"),
    )
    with book, gone:
        book.append_batch([])  # type: ignore[attr-defined]
    store, gone = EventStore.create(tmp_path / "store"), pytest.raises(AttributeError, match="sync")
    with store, gone:
        store.commit()  # type: ignore[call-arg]


def test_the_top_has_few_names() -> None:
    assert len(deedbook.__all__) <= 35
    for name in ("VerifyReport", "Split", "LedgerSnapshot", "Transactions"):
        with pytest.raises(AttributeError, match=r"deedbook\.(reports|jobs|Ledger)"):
            getattr(deedbook, name)
