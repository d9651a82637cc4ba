"""The check of a pipeline: all is well after a run, and each check fails when its thing is broken.

The pipeline runs once. Each test breaks a copy.
"""

import glob
import json
import shutil
import threading
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")
pytest.importorskip("deltalake", reason="deltalake is not installed")

from deedbook import Event, EventStore
from deedbook.pipeline.check import Check, check
from deedbook.pipeline.config import load
from deedbook.pipeline.events import judge
from deedbook.pipeline.follow import follow
from deedbook.pipeline.generate import start
from deedbook.pipeline.kept import Kept
from deedbook.pipeline.notes import lines_of_files
from nostr_events import AUTHOR, made
from pipeline_breaks import (
    BROKEN,
    BYTES,
    DELTA,
    EQUAL,
    EVENTS,
    HAS,
    INTACT,
    LATE,
    SAW,
    TOTALS,
    change_log,
    change_top,
    swap,
)
from shell import outputs

pytestmark = pytest.mark.spark


@pytest.fixture
def home(pipeline_ran: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(pipeline_ran, tmp_path / "home"))


def checked(home: Path) -> dict[str, Check]:
    return {one.name: one for one in check(load(home / "pipeline.toml"))}


def wrong(home: Path) -> set[str]:
    return {name for name, one in checked(home).items() if one.ok is False}


def test_all_is_well_after_a_run(pipeline_ran: Path) -> None:
    ran = pipeline_ran
    found = checked(ran)
    assert {name: one for name, one in found.items() if one.ok is not True} == {}
    assert len(found) == 25
    out, err = outputs("pipeline", "check", ran / "pipeline.toml")
    assert (out.count("ok "), err) == (25, "")


def test_a_pipeline_may_lie_in_a_directory_whose_name_is_a_glob(pipeline_ran: Path) -> None:
    assert glob.has_magic(str(pipeline_ran)) and not glob.glob(str(pipeline_ran))
    totals = json.loads((pipeline_ran / "out" / "gold" / "top.json").read_text())
    assert totals["events"] > 0 and totals["authors"]


def test_a_command_with_streams_says_nothing_of_spark(pipeline_ran: Path) -> None:
    """What Spark and its JVM have to say is in a file."""
    said = (pipeline_ran / "said.txt").read_text().splitlines()
    assert 1 <= len(said) <= 2 and all(line.startswith("deedbook: ") for line in said)
    assert any(" events in all, " in line for line in said)


# -- what is broken -------------------------------------------------------------------------------


@pytest.mark.parametrize("what", BROKEN)
def test_a_check_fails_when_its_thing_is_broken(home: Path, what: str) -> None:
    break_it, expected = BROKEN[what]
    break_it(home)
    failed = wrong(home)
    bronze = {name for name in expected if HAS in name or INTACT in name}
    if bronze:
        # What follows from bronze may be wrong with it.
        assert expected <= failed
        source = next(iter(bronze)).partition(":")[0]
        others = {name for name in failed if HAS in name or INTACT in name} - expected
        assert others <= {f"{source}: {HAS}"}
    else:
        # The row that is missing or doubled may be of a late event, and of one without content.
        may = {LATE} if expected & {EVENTS, EQUAL} else set()
        must = expected - {BYTES} or expected
        assert failed - expected <= may and must <= failed


def test_the_command_shows_what_is_wrong(home: Path) -> None:
    change_top(events=1)(home)
    command = ("pipeline", "check", home / "pipeline.toml")
    found = json.loads(outputs(*command, "--json", code=1)[0])
    assert found["ok"] is False
    (failed,) = [one for one in found["checks"] if not one["ok"]]
    assert (failed["name"], failed["found"]["events"]) == (TOTALS, 1)
    out, _ = outputs(*command, code=1)
    assert out.count("WRONG") == 1 and "expected: events" in out


def test_without_notes_an_input_is_not_checked(home: Path) -> None:
    (home / "in" / "expected" / "orders.jsonl").unlink()
    found = checked(home)
    assert [name for name, one in found.items() if one.ok is not True] == [f"orders: {HAS}"]
    assert found[f"orders: {HAS}"].ok is None


def test_a_log_or_table_that_is_not_there_is_wrong(home: Path) -> None:
    for gone in ("bronze/spool", "silver/delta", "gold/windows"):
        shutil.rmtree(home / "out" / gone)
    of_the_log = {f"spool: {what}" for what in (INTACT, HAS, SAW)}
    assert wrong(home) >= of_the_log | {DELTA, EQUAL, EVENTS, BYTES}


def test_a_follower_sees_that_what_it_saw_was_changed(home: Path) -> None:
    change_log("orders", swap)(home)
    change_log("spool", lambda log: log.append(b"new"))(home)
    followed = follow(load(home / "pipeline.toml"), threading.Event(), 1.0)
    found = {one.source: one for one in followed}
    assert "record 41 was" in str(found["orders"].error)
    assert found["spool"].error is None
    assert f"spool: {SAW}" not in wrong(home)


# -- the rules of a store -------------------------------------------------------------------------


def test_rules_are_those_of_the_store(tmp_path: Path) -> None:
    """The short version of the NIPs that checks go by keeps what a store keeps."""
    me, other = AUTHOR, "ef" * 32
    page, old, new = (
        made(f"page {at}", kind=30_023, tags=[["d", "a:b"]], created_at=at) for at in (20, 10, 90)
    )
    note, early, foreign = made("note"), made("early"), made("foreign", pubkey=other)
    cases = [
        page,
        note,
        note,
        made("typing", kind=20_000),
        made("over", tags=[["expiration", "1000"]]),
        made("not over", tags=[["expiration", "99999999999"]]),
        made("no time", tags=[["expiration", "soon"]]),
        made("profile", kind=0, created_at=5),
        made("older profile", kind=0, created_at=4),
        made("", kind=5, tags=[["e", note["id"]], ["e", early["id"]], ["e", foreign["id"]]]),
        early,
        foreign,
        note,
        made("", kind=5, tags=[["a", f"30023:{me}:a:b"]], created_at=50),
        old,
        new,
        made("", kind=5, tags=[["a", f"0:{me}:"], ["a", f"0:{other}:"], ["a"], []], created_at=60),
        made("profile again", kind=0, created_at=55),
        made("foreign profile", kind=0, created_at=55, pubkey=other),
    ]
    events = [Event(**one) for one in cases]
    assert start(tmp_path / "in", events=2000).wait().complete
    lines = [line for _, line in lines_of_files(tmp_path / "in" / "files")]
    events += [Event.from_json(line) for line in lines if judge(line)[0]]
    with EventStore.create(tmp_path / "store", durability="manual") as store:
        store.append_many(events)
        there = {event.id for event in store.iter(include="all")}
    kept = Kept(events, 1.7e9, 3e9)
    assert kept.ids == there
    assert kept.open == set()
    assert early["id"] not in there and old["id"] not in there and foreign["id"] in there
