"""The ledger from Python: events survive the process, as batches for any HTTP client."""

from __future__ import annotations

import copy
import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deedbook
from deedbook import Ledger
from deedbook._core import _not_json
from deedbook._show.json import JsonLines, why_not_json
from http_kinds import events
from ledgers import files, payloads

pytestmark = pytest.mark.promise("ledger-several")


def test_bodies_outlive_their_ledger_and_support_seek(tmp_path: Path) -> None:
    items = events(500, 200)
    with Ledger.open(tmp_path / "spool", "a", batch_bytes=1 << 30) as ledger:
        ledger.append_many(items)
        (body,) = ledger.fetch().data
    whole = body.read()
    assert whole == b"[" + b",".join(items) + b"]"
    for at, size in ((0, 1), (len(whole) - 5, 9), (len(whole), 4), (30_000, 40_000)):
        body.seek(at)
        assert body.read(size) == whole[at : at + size], at
    assert list(body.records(498)) == items[498:] and list(body.records(7, 7)) == []
    assert list(body.records(0, 1 << 40)) == items
    with pytest.raises(OSError, match="fileno"):
        body.fileno()
    body.close()
    for call in (body.read, body.tell, lambda: body.seek(0), lambda: body.records()):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_batch_ids_survive_restarts_and_never_repeat(tmp_path: Path) -> None:
    """A server that remembers ids would drop the events of a batch with an old id."""
    seen: set[str] = set()
    for _ in range(3):
        ids = []
        for payload in ([b"the same"], []):
            with Ledger.open(tmp_path / "spool", "a") as ledger:
                ledger.append_many(payload)
                ids += [batch.id for batch in ledger.fetch().data]
        assert ids == [ids[0]] * 2 and ids[0] not in seen
        seen.add(ids[0])
        shutil.rmtree(tmp_path / "spool")


def test_envelope_function_errors_propagate_without_loss(tmp_path: Path) -> None:
    answers: list[object] = [ZeroDivisionError("no time"), "text", b"]"]

    def footer() -> bytes:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[return-value]

    with Ledger.open(tmp_path / "s", "a", footer=footer) as ledger:
        ledger.append(b"1")
        with pytest.raises(ZeroDivisionError, match="no time"):
            ledger.fetch()
        with pytest.raises(TypeError, match="bytes are needed"):
            ledger.fetch()
        assert ledger.fetch().data[0].read() == b"[1]"


def test_bytes_like_objects_and_arrow_columns_are_events(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    with Ledger.open(tmp_path / "s", "a") as ledger:
        ledger.append(bytearray(b"1"))
        ledger.append_many([memoryview(b"2"), b"3"])
        ledger.append_many(pyarrow.array(["4", "5"]))
        ledger.append_many(pyarrow.table({"payload": [b"6"]}))
        assert payloads(ledger) == [b"%d" % n for n in range(1, 7)]
        with pytest.raises(TypeError, match="bytes are needed"):
            ledger.append("text")  # type: ignore[arg-type]
        with pytest.raises(deedbook.TooLargeError):
            ledger.append(b"x" * (1 << 20) + b"x")
        with pytest.raises(deedbook.InvalidArgumentError):
            ledger.append(b"")
        with pytest.raises(TypeError, match="removable"):
            ledger.remove(["0-events"])  # type: ignore[list-item]
        assert ledger.fetch(count=0) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch_bytes": 99},
        {"on_full": "drop"},
        {"on_corrupt": "ignore"},
        {"durability": "often"},
        {"base": "a/b"},
        {"max_bytes": 1000},
        {"batch_records": -1},
    ],
    ids=str,
)
def test_wrong_options_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises((deedbook.InvalidArgumentError, OverflowError)):
        Ledger.open(tmp_path / "s", "a", **wrong)
    assert not (tmp_path / "s").exists()


def test_ledger_is_no_container(tmp_path: Path) -> None:
    """As with a log, a meaningless operation raises TypeError and does not return False."""
    ledger = Ledger.open(tmp_path / "s", "a", durability="always")
    ledger.append(b"1")
    assert ledger.stats().log.syncs > 0
    assert (ledger.durability, ledger.base) == ("always", "events")
    assert bool(ledger) and "closed" not in repr(ledger)
    for what in (b"1", 0, None, "0-events"):
        with pytest.raises(TypeError):
            what in ledger  # type: ignore[operator]  # noqa: B015
    with pytest.raises(TypeError):
        len(ledger)  # type: ignore[arg-type]
    ledger.close()
    ledger.close()
    assert not ledger and "closed" in repr(ledger)
    assert ledger.path == os.path.realpath(tmp_path / "s")


SENDER = """
import sys
from deedbook import Ledger
from deedbook.http import Policy, Sender
spool, url, dead = sys.argv[1:]
with Ledger.open(spool, "a", batch_bytes=4000) as ledger:
    quick = Policy(delay_seconds=0.001, delay_seconds_max=0.01)
    with Sender(ledger, url, dead_letters=dead, policy=quick, interval_seconds=0.01) as sender:
        print("sending", flush=True)
        sender.drain(120)
"""


def test_all_events_arrive_though_server_and_senders_fail(tmp_path: Path) -> None:
    """A sender killed at any moment continues after a restart, and no event is lost."""
    pytest.importorskip("urllib3")
    from endpoint import Endpoint, Faults

    items = events(4000, 200)
    spool = tmp_path / "spool"
    with Ledger.open(spool, "a", batch_bytes=4000) as ledger:
        ledger.append_many(items)
    faults = Faults(statuses={503: 0.2}, reset=0.1, drop=0.1, seed=7)
    with Endpoint(faults=faults) as endpoint:
        arguments = [str(spool), endpoint.url, str(tmp_path / "dead")]
        for wanted in (500, 1500, 2500, None):
            sender = subprocess.Popen(
                [sys.executable, "-c", SENDER, *arguments], stdout=subprocess.PIPE
            )
            if wanted is None:
                assert sender.wait(120) == 0
                break
            assert endpoint.wait(events=wanted, timeout_seconds=60)
            sender.kill()
            sender.wait()
        assert sorted(endpoint.events) == sorted(items), "each once, by its batch's id"
        assert endpoint.stats().conflicts == 0
    with Ledger.open(spool, "a") as ledger:
        assert not ledger.has_data()
    assert not (tmp_path / "dead").exists() or not list((tmp_path / "dead").iterdir())


def test_a_removable_is_a_value(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "s", "a", batch_records=1) as ledger:
        ledger.append_many([b"1", b"2"])
        one, two = ledger.fetch().removable
        assert one == one and one != two and len({one, two, ledger.fetch().removable[0]}) == 2
        status = os.stat(tmp_path / "s" / "0-events")
        assert (one.index, one.inode, one.device) == (0, status.st_ino, status.st_dev)
        if one.born_ns == 0:
            with pytest.raises(deedbook.UnsupportedError, match="birth"):
                pickle.dumps(one)
            assert copy.copy(one) == copy.deepcopy(one) == one
            return
        for same in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
            assert same == one and hash(same) == hash(one) and repr(same) == repr(one)
        values = one.to_dict()
        assert eval(repr(one), {"Removable": deedbook.reports.Removable}) == one
        assert tuple(values) == deedbook.reports.Removable.__match_args__
        with pytest.raises(deedbook.UnsupportedError, match="birth"):
            deedbook.reports.Removable(**{**values, "born_ns": 0})
        with pytest.raises(OverflowError, match="inode must not be negative"):
            deedbook.reports.Removable(**{**values, "inode": -1})
        for field in ("index", "device", "inode", "born_ns"):
            ledger.remove([deedbook.reports.Removable(**{**values, field: values[field] + 1})])
        assert payloads(ledger) == [b"1", b"2"]
        ledger.remove([deedbook.reports.Removable(**values)])
        assert payloads(ledger) == [b"2"]


def test_atomic_batch_is_appended_whole_or_not(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "s", "a", batch_records=4, durability="always") as ledger:
        for wrong in ([b"1", b""], [b"1", "text"], [b"1", b"x" * (1 << 20) + b"x"]):
            with pytest.raises((TypeError, deedbook.Error)):
                ledger.append_many(wrong, atomic=True)  # type: ignore[arg-type]
        ledger.append_many((b"%d" % n for n in range(10)), atomic=True)
        assert payloads(ledger) == [b"%d" % n for n in range(10)]
        assert ledger.stats().log.appends == 1
        syncs = ledger.stats().log.syncs
        ledger.append_many(b"x" * 5000 for _ in range(240))
        assert ledger.stats().log.syncs == syncs + 1, "one sync for all parts"
        ledger.append(b"y", sync=False)
        assert ledger.stats().log.syncs == syncs + 1


def test_a_ledger_is_read_backwards_between_positions(tmp_path: Path) -> None:
    sent = files(tmp_path / "spool", 2, 10)
    with Ledger.open(tmp_path / "spool") as ledger:
        assert [one.payload for one in ledger.iter(reverse=True)] == sent[::-1]
        assert [one.position for one in reversed(ledger)] == [one.position for one in ledger][::-1]
        for start, stop in (
            ((2, 1), (10, 2)),
            ((2, 3), (10, 0)),
            ((3, 0), (10, 0)),
            (None, (2, 2)),
        ):
            forwards = [one.payload for one in ledger.iter(start, stop)]
            assert [one.payload for one in ledger.iter(start, stop, reverse=True)] == forwards[::-1]
        assert [one.payload for one in reversed(ledger[(2, 1) : (10, 1)])] == sent[3:0:-1]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES, st.data())
def test_what_was_changed_is_judged_as_python_does(value: object, data: st.DataObject) -> None:
    line = bytearray(json.dumps(value).encode())
    assert _not_json([bytes(line)]) == []
    at = data.draw(st.integers(0, len(line) - 1))
    line[at : at + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    changed = bytes(line)
    assert (JsonLines([changed]).why_not(0) is None) == (why_not_json(changed) is None)
    if not _not_json([changed]):
        assert why_not_json(changed) is None


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b" ", b"NaN", b"-Infinity", b"01", b"+1", b"1.", b".5", b"'a'", b"[1,]", b"{1:2}"),
        *(b'"\x1f"', b'"\xff"', b'"\\x"', b'"\\ud80"', b"{} {}", b"\xef\xbb\xbf1", b"nul", b"1 2"),
    ],
)
def test_non_json_line_is_refused_with_a_reason(line: bytes) -> None:
    good = b'{"a":1}'
    lines = JsonLines([good, line, good])
    assert lines.why_not(1)
    assert (lines.why_not(0), lines.why_not(2)) == (None, None)


def test_deep_nesting_and_long_numbers_are_json() -> None:
    lines = [b"[" * 500 + b"]" * 500, b"1" * 10_000, b'"\\ud800"', b" 1\r"]
    assert [JsonLines(lines).why_not(index) for index in range(4)] == [None] * 4
