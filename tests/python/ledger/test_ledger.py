"""The ledger from Python: events survive the process, as batches for any HTTP client."""

import copy
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import ClosedError, Ledger
from http_kinds import events
from ledgers import payloads

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


def test_ledger_is_no_container_and_refuses_after_close(tmp_path: Path) -> None:
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
    for call in (
        lambda: ledger.append(b"2"),
        ledger.fetch,
        ledger.has_data,
        ledger.sync,
        ledger.__enter__,
    ):
        with pytest.raises(ClosedError):
            call()
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
    """A sender killed at any moment continues after a restart, and no event is lost.

    The server recognizes a repeated batch by its name.
    """
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


def test_a_part_that_failed_is_not_appended_again(tmp_path: Path, run_child: Any) -> None:
    pytest.importorskip("resource", reason="needs POSIX")
    child = run_child(
        """
import resource, sys
import deedbook
with deedbook.Ledger.open(sys.argv[1], "a", batch_records=3, batch_bytes=50_000) as ledger:
    resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, resource.RLIM_INFINITY))
    try:
        ledger.append_many([b"1", b"2", b"3", b"x" * 60_000])
    except deedbook.IoError as error:
        print(error)
""",
        tmp_path / "s",
    )
    assert "3 of 4 records" in child.stdout, child.stderr
    with Ledger.open(tmp_path / "s", "a") as ledger:
        assert payloads(ledger) == [b"1", b"2", b"3"]


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
