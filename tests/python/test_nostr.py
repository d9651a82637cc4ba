"""The event store from Python: values, appending, finding, import and export, damage, kills."""

from __future__ import annotations

import copy
import gc
import gzip
import hashlib
import io
import json
import os
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Event, EventOutcome, EventStore, ImportReport
from deedbook.pipeline._signing import public_key, sign

ROOT = Path(__file__).parents[2]
SMALL = ROOT / "tests" / "data" / "nostr" / "events.jsonl"
LARGE = ROOT.parent / "shared" / "data" / "nostr-events.jsonl"


def as_event(line: bytes) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(line)
    return event


LINES = SMALL.read_bytes().splitlines()
EVENTS = [as_event(line) for line in LINES]


SECRET = 7
AUTHOR = public_key(SECRET)


def made(content: str = "hello", **fields: Any) -> dict[str, Any]:
    """An event whose id is right; only a deletion request of ``AUTHOR`` has a true signature."""
    event = {"pubkey": AUTHOR, "created_at": 1_700_000_000, "kind": 1, "tags": [], **fields}
    event["content"] = content
    parts = [0, *(event[name] for name in ("pubkey", "created_at", "kind", "tags", "content"))]
    text = json.dumps(parts, separators=(",", ":"), ensure_ascii=False)
    event["id"] = hashlib.sha256(text.encode()).hexdigest()
    is_request = event["kind"] == 5 and event["pubkey"] == AUTHOR
    event["sig"] = sign(event["id"], SECRET) if is_request else "cd" * 64
    return event


@pytest.fixture
def store(path: Path) -> Iterator[EventStore]:
    with EventStore.create(path, durability="manual") as store:
        yield store


# -- values ---------------------------------------------------------------------------------------


def test_an_event_is_a_value() -> None:
    event = Event(**made("content", tags=[["t", "a"], []], kind=65535))
    assert event == Event.from_json(event.to_json()) == Event.from_json(event.to_json().encode())
    assert event != Event(**made("other")) and event != 1 and hash(event) == hash(copy.copy(event))
    assert len({event, copy.deepcopy(event), pickle.loads(pickle.dumps(event))}) == 1
    assert event.to_dict() == made("content", tags=[["t", "a"], []], kind=65535)
    assert event.tags == [["t", "a"], []] and event.location is None
    assert list(json.loads(event.to_json())) == list(Event.__match_args__)
    match event:
        case Event(_, _, created_at, 65535):
            assert created_at == 1_700_000_000
        case _:
            raise AssertionError("does not match")
    assert repr(event).startswith(f"<Event {event.id}, kind 65535, at 1700000000, 'content'>")
    event.check_id()
    with pytest.raises(AttributeError):
        event.kind = 2  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("id", "AB" * 32, "id: character 'A' at 0"),
        ("id", "ab", "id: 2 bytes of text, 64 needed"),
        ("pubkey", None, "pubkey: "),
        ("created_at", -1, "created_at: "),
        ("created_at", 2**32, "created_at: 4294967296, limit 4294967295"),
        ("kind", 65536, "kind: 65536, limit 65535"),
        ("kind", True, "kind: "),
        ("tags", [[1]], "tags: "),
        ("content", 1, "content: "),
        ("sig", "ab" * 63, "sig: 126 bytes of text, 128 needed"),
    ],
)
def test_a_wrong_field_is_named(store: EventStore, name: str, value: object, says: str) -> None:
    fields = {**made(), name: value}
    for call in (lambda: Event(**fields), lambda: store.append(fields)):
        with pytest.raises(deedbook.InvalidArgumentError, match=says):
            call()
    assert store.census().events == 0


def test_what_an_event_may_be_given_as(store: EventStore) -> None:
    events = [made(str(number)) for number in range(5)]
    texts = [json.dumps(event) for event in events]
    given = [events[0], texts[1], texts[2].encode(), bytearray(texts[3].encode())]
    outcomes = [*map(store.append, given), store.append(Event(**events[4]))]
    assert [outcome.what for outcome in outcomes] == ["stored"] * 5
    assert [event.to_dict() for event in store] == events
    for wrong in (1, None, ["x"]):
        with pytest.raises(TypeError, match="an event is a dict, JSON or an Event, not"):
            store.append(wrong)  # type: ignore[arg-type]


# -- appending and finding ------------------------------------------------------------------------


def test_outcomes(store: EventStore) -> None:
    old, new = made("old", kind=0), made("new", kind=0, created_at=1_700_000_001)
    gone = made("gone")
    request = made("", kind=5, tags=[["e", gone["id"]]], created_at=1_700_000_002)
    events = [new, old, new, gone, request, gone]
    events += [made("", kind=20000), made("", tags=[["expiration", "1700000000"]])]
    outcomes = store.append_many(events)
    assert [outcome.what for outcome in outcomes] == [
        *("stored", "superseded", "duplicate", "stored", "stored", "duplicate"),
        *("ephemeral", "expired"),
    ]
    assert [outcome.stored for outcome in outcomes].count(True) == 4
    assert outcomes[0].location == outcomes[2].location and outcomes[6].location is None
    assert [event.content for event in store] == ["new", ""]
    stored = {event.content: event for event in store.iter(include="all")}
    assert stored["gone"].deleted and stored["old"].replaced and not stored["new"].replaced
    assert store.get(gone["id"]) is None and gone["id"] not in store
    assert isinstance(pickle.loads(pickle.dumps(outcomes[0])), EventOutcome)


def test_a_request_without_a_true_signature_deletes_nothing(store: EventStore) -> None:
    """Anybody could delete the events of others with a request that only names their author."""
    note = made("note")
    request = made("", kind=5, tags=[["e", note["id"]]], created_at=1_700_000_002)
    store.append_many([note, request | {"sig": "cd" * 64}])
    assert note["id"] in store
    assert store.append(made("later")).what == "stored"


def test_history_keeps_every_version(path: Path) -> None:
    with EventStore.create(path, history="keep") as store:
        versions = [made(str(at), kind=0, created_at=1_700_000_000 + at) for at in range(3)]
        store.append_many(versions)
        assert [event.content for event in store.query({"kinds": [0]})] == ["2", "1", "0"]
    with EventStore.open(path) as reader:
        assert reader.history == "keep"
    with EventStore.open(path, "a", history="drop") as store:
        assert store.history == "drop"
        assert [event.content for event in store.query({"kinds": [0]})] == ["2", "1", "0"]
        store.append(made("3", kind=0, created_at=1_700_000_003))
        assert "2" not in [event.content for event in store]
    with EventStore.open(path, "a") as store:
        assert store.history == "drop"


def test_events_are_found_by_id(store: EventStore) -> None:
    event = made()
    assert event["id"] not in store and store.get(event["id"]) is None
    store.append(event)
    for key in (event["id"], bytes.fromhex(event["id"])):
        found = store.get(key)
        assert found is not None and found.to_dict() == event and key in store
    assert found.location is not None and store.read(found.location) == found
    for wrong in ("zz", event["id"].upper(), b"short"):
        with pytest.raises(deedbook.InvalidArgumentError):
            wrong in store  # noqa: B015
    for other in (1, None, bytearray(32), found, found.location):
        with pytest.raises(TypeError, match="an id is a str or bytes, not"):
            other in store  # type: ignore[operator]  # noqa: B015


def test_events_are_got_by_location(store: EventStore) -> None:
    """``get`` refused a location, which only ``read`` took."""
    place = store.append(made()).location
    assert place is not None and store.get(place) == store.read(place) == store.get(made()["id"])
    # What does not count is still there.
    store.set_flags(place, deleted=True)
    assert store.get(made()["id"]) is None and store.get(place).deleted
    wrong: list[tuple[Any, type[Exception]]] = [
        ((0, 4095), deedbook.OutOfRangeError),
        ((7, 4096), deedbook.OutOfRangeError),
        ((0, -1), OverflowError),
        ((0,), ValueError),
    ]
    ways: list[Any] = [store.get, store.read]
    for other, kind in wrong:
        for way in ways:
            with pytest.raises(kind):
                way(other)


def test_flags_and_compaction(store: EventStore) -> None:
    store.append_many(made(str(number)) for number in range(100))
    for event in list(store)[:60]:
        assert event.location is not None
        store.set_flags(event.location, deleted=True)
    assert store.census().events == 40 and store.verify().deleted == 60
    planned = store.compact(dry_run=True)
    assert (planned.kept, planned.deleted, planned.written) == (40, 60, [])
    assert store.verify().deleted == 60
    report = store.compact()
    assert (report.kept, report.deleted) == (40, 60) and report.bytes_after < report.bytes_before
    assert store.verify().to_dict()["deleted"] == 0
    assert [event.content for event in store] == [str(number) for number in range(60, 100)]
    assert all(event.id in store for event in store)
    assert store.compact(0.0).segments == []
    with pytest.raises(deedbook.InvalidArgumentError, match="compaction ratio 2"):
        store.compact(2.0)


def matches(event: dict[str, Any], wanted: dict[str, Any]) -> bool:
    """A filter of NIP-01, once more."""
    for name, value in wanted.items():
        if name == "since" and event["created_at"] < value:
            return False
        if name == "until" and event["created_at"] > value:
            return False
        field = {"ids": "id", "authors": "pubkey", "kinds": "kind"}.get(name)
        if field is not None and event[field] not in value:
            return False
        if name.startswith("#") and not any(
            tag[:1] == [name[1:]] and tag[1:2] and tag[1] in value for tag in event["tags"]
        ):
            return False
    return True


FILTERS: list[dict[str, Any]] = [
    {},
    {"limit": 3},
    {"kinds": [1, 5]},
    {"kinds": []},
    {"ids": [EVENTS[0]["id"], EVENTS[7]["id"], "00" * 32]},
    {"authors": [EVENTS[3]["pubkey"]]},
    {"authors": [EVENTS[3]["pubkey"]], "kinds": [EVENTS[3]["kind"]]},
    {"since": EVENTS[4]["created_at"], "limit": 5},
    {"until": EVENTS[4]["created_at"]},
    {"#e": [tag[1] for event in EVENTS for tag in event["tags"] if tag[0] == "e"][:5]},
    {"#p": [tag[1] for event in EVENTS for tag in event["tags"] if tag[0] == "p"][:5]},
]


def test_queries_give_what_a_filter_wants_with_an_index_and_without(path: Path) -> None:
    with EventStore.create(path, history="keep") as store:
        store.append_many(LINES)
        live = [event.to_dict() for event in store]
        assert len(live) >= 28
        with EventStore.open(path) as reader:
            for wanted in FILTERS:
                right = [event for event in live if matches(event, wanted)]
                right.sort(key=lambda event: (-event["created_at"], event["id"]))
                right = right[: wanted.get("limit")]
                for handle in (store, reader):
                    assert [event.to_dict() for event in handle.query(wanted)] == right, wanted
                    text = json.dumps([wanted])
                    assert [event.to_dict() for event in handle.query(text)] == right
            either = {event.id for event in store.query([{"kinds": [1]}, {"kinds": [5]}])}
            assert either == {event["id"] for event in live if event["kind"] in (1, 5)}


@pytest.mark.parametrize("wrong", ['{"kinds":1}', {"kinds": ["1"]}, {"oops": 1}, "[1]", "{", "1"])
def test_a_wrong_filter_is_refused(store: EventStore, wrong: Any) -> None:
    with pytest.raises(deedbook.InvalidArgumentError, match="filter: "):
        store.query(wrong)
    with pytest.raises(TypeError, match="a filter is a dict, a list of them, or JSON"):
        store.query(1)  # type: ignore[arg-type]


def test_iteration_goes_both_ways_and_sees_no_later_event(store: EventStore) -> None:
    store.append_many(made(str(number)) for number in range(200))
    walk = iter(store)
    first = next(walk)
    store.append(made("later"))
    assert [first.content, *(event.content for event in walk)] == list(map(str, range(200)))
    assert [event.content for event in reversed(store)][:2] == ["later", "199"]
    assert [event.id for event in store.iter(reverse=True)] == [e.id for e in store][::-1]
    with pytest.raises(deedbook.InvalidArgumentError, match='include "dead", must be one of'):
        store.iter(include="dead")  # type: ignore[arg-type]


def test_an_iterable_that_fails_leaves_what_came_before(store: EventStore) -> None:
    def events() -> Iterator[dict[str, Any]]:
        yield made("first")
        yield made("second")
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        store.append_many(events())
    with pytest.raises(TypeError):
        store.append_many([made("third"), 3])  # type: ignore[list-item]
    assert [event.content for event in store] == ["first", "second", "third"]


# -- handles --------------------------------------------------------------------------------------


def test_modes_and_errors(path: Path) -> None:
    with pytest.raises(deedbook.MissingError):
        EventStore.open(path)
    with EventStore.open(path, "a") as store:
        assert store.mode == "a" and store.path == str(path) and store and not store.closed
        with pytest.raises(deedbook.LockedError):
            EventStore.open(path, "a")
        with EventStore.open(path) as reader:
            with pytest.raises(deedbook.ReadOnlyError):
                reader.append(made())
            with pytest.raises(deedbook.ReadOnlyError):
                reader.reindex()
    assert store.closed and not store and "closed" in repr(store)
    store.close()
    for call in (store.commit, store.census, store.verify, lambda: store.append(made())):
        with pytest.raises(deedbook.ClosedError) as raised:
            call()
        assert raised.value.format == "nostr"
    with pytest.raises(deedbook.ClosedError), store:
        raise AssertionError("entered")
    with pytest.raises(deedbook.AlreadyExistsError):
        EventStore.create(path)
    with pytest.raises(TypeError, match="oops"):
        EventStore.create(path, oops=1)
    for options in ({"page_bytes": 5000}, {"segment_bytes": 1}, {"history": "x"}, {"mode": "w"}):
        with pytest.raises((deedbook.InvalidArgumentError, TypeError)):
            EventStore.open(path.with_name("other"), **{"mode": "x", **options})  # type: ignore
    with pytest.raises(OverflowError, match=r"^page_bytes must not be negative"):
        EventStore.open(path, "a", page_bytes=-1)
    with pytest.raises(ValueError, match="null byte"):
        EventStore.open("a\0b")


def test_a_log_of_another_format_is_refused(path: Path) -> None:
    with deedbook.Book.create(path) as book:
        book.append(b"x")
    before = sorted(os.listdir(path))
    for mode in ("r", "a", "x"):
        with pytest.raises(deedbook.NotALogError):
            EventStore.open(path, mode)  # type: ignore[arg-type]
    assert sorted(os.listdir(path)) == before


def test_a_handle_that_is_never_closed_is_warned_of(path: Path) -> None:
    EventStore.create(path).close()
    for mode in ("r", "a"):
        store = EventStore.open(path, mode)  # type: ignore[arg-type]
        with pytest.warns(ResourceWarning, match=f"unclosed <deedbook.EventStore .*{path}"):
            del store
            gc.collect()


ENDS = """
import gc, os, sys, warnings
from deedbook import EventStore, ForkedError
sys.path.insert(0, sys.argv[3])
from test_nostr import made
warnings.simplefilter("error")
store = EventStore.create(sys.argv[1])
store.append(made())
cycle = [store]; cycle.append(cycle)
if sys.argv[2] == "fork":
    child = os.fork()
    if child == 0:
        assert "of process %d" % os.getppid() in repr(store) and not store.closed, repr(store)
        try:
            store.commit()
        except ForkedError:
            del store, cycle
            gc.collect()
            sys.exit(7)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert ", of process" not in repr(store)
    try:
        EventStore.open(sys.argv[1], "a")
    except Exception as error:
        assert type(error).__name__ == "LockedError", error
    store.append(made("after the fork"))
    store.close()
    with EventStore.open(sys.argv[1], "a") as again:
        assert len(list(again)) == 2
print("end")
"""


@pytest.mark.skipif(os.name != "posix", reason="needs fork")
@pytest.mark.parametrize("end", ["fork", "exit"])
def test_neither_a_fork_nor_the_end_of_the_interpreter_hangs_or_warns(
    path: Path, run_child: Any, end: str
) -> None:
    """A forked child waited for ever for threads of the index, which only its parent has."""
    done = run_child(ENDS, path, end, Path(__file__).parent)
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")


def test_threads_append_at_once(store: EventStore) -> None:
    def work(number: int) -> None:
        for count in range(100):
            store.append(made(f"{number} {count}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.commit()
    assert store.census().events == 400 and store.verify().ok


# -- import and export ----------------------------------------------------------------------------


def exported(store: EventStore, **options: Any) -> list[bytes]:
    out = io.BytesIO()
    report = store.export_json(out, **options)
    lines = out.getvalue().splitlines()
    assert len(lines) == report.events
    return lines


def test_an_export_is_what_was_imported(path: Path, tmp_path: Path) -> None:
    with EventStore.create(path, history="keep") as store:
        report = store.import_json(SMALL, check="signature")
        assert (report.lines, report.bad, report.bytes) == (32, 0, SMALL.stat().st_size)
        assert (report.stored, report.deleted) == (31, 1) and report.bad_lines == []
        events = [json.loads(line) for line in exported(store, include="all")]
        kept = [event for event in EVENTS if event in events]
        assert events == kept and len(kept) == 31
        again = store.import_json(str(SMALL))
        assert (again.stored, again.duplicates, again.deleted) == (0, 31, 1)
        assert store.export_json(tmp_path / "out.jsonl.gz", include="all").events == 31
        assert gzip.decompress((tmp_path / "out.jsonl.gz").read_bytes()).splitlines() == exported(
            store, include="all"
        )
        with pytest.raises(FileExistsError):
            store.export_json(tmp_path / "out.jsonl.gz")
    with EventStore.create(path.with_name("copy"), history="keep") as copy_of_it:
        assert copy_of_it.import_json(tmp_path / "out.jsonl.gz").stored == 31


def test_bad_lines_are_reported_and_set_aside(store: EventStore, tmp_path: Path) -> None:
    forged = json.dumps({**made("a"), "content": "b"}).encode()
    lines = [LINES[0], b"oops", b"", forged, json.dumps(made("fine")).encode(), b'{"id":1}']
    aside = tmp_path / "aside.jsonl"
    text = b"\n".join(lines)
    report = store.import_json(io.BytesIO(text), aside=aside)
    assert (report.lines, report.stored, report.bad) == (6, 2, 3)
    assert [bad.line for bad in report.bad_lines] == [2, 4, 6]
    reasons = [bad.reason for bad in report.bad_lines]
    assert "expected value" in reasons[0] and "that of the canonical form is" in reasons[1]
    assert reasons[2].startswith("id: ") and "column" in reasons[2]
    assert aside.read_bytes().splitlines() == [lines[1], lines[3], lines[5]]
    into = io.BytesIO()
    report = store.import_json(io.BytesIO(text), check="signature", aside=into)
    assert (report.stored, report.duplicates, report.bad) == (0, 1, 4), report
    assert "sig is not its author's" in report.bad_lines[2].reason or "pubkey" in str(report)
    assert store.import_json(io.BytesIO(forged), check="none").stored == 1
    with pytest.raises(deedbook.InvalidArgumentError, match="line 2: "):
        store.import_json(io.BytesIO(text), stop_at_bad=True)
    with pytest.raises(deedbook.InvalidArgumentError, match="canonical form"):
        store.append(forged)


def test_no_file_is_made_for_bad_lines_without_one(store: EventStore, tmp_path: Path) -> None:
    store.import_json(SMALL, aside=tmp_path / "aside")
    assert not (tmp_path / "aside").exists()


def test_files_of_python_and_their_errors(store: EventStore, tmp_path: Path) -> None:
    packed = gzip.compress(b"\n".join(LINES[:10])) + gzip.compress(b"\n" + b"\n".join(LINES[10:20]))
    assert store.import_json(io.BytesIO(packed)).lines == 20
    with open(SMALL, "rb") as file:
        assert store.import_json(file).lines == 32 and not file.closed
    with pytest.raises(deedbook.IoError, match="Compressed file ended") as raised:
        store.import_json(io.BytesIO(packed[:-30]))
    assert isinstance(raised.value.__cause__, EOFError)
    with pytest.raises(FileNotFoundError):
        store.import_json(tmp_path / "none")
    with open(SMALL) as text, pytest.raises(TypeError, match="a binary file is needed"):
        store.import_json(text)
    with pytest.raises(TypeError, match="a path or a binary file is needed, not 'int'"):
        store.import_json(1)

    class Full:
        def write(self, data: bytes) -> int:
            raise OSError(28, "No space left on device")

    with pytest.raises(deedbook.IoError) as failed:
        store.export_json(Full())
    assert isinstance(failed.value.__cause__, OSError)


def has_zstd() -> bool:
    from deedbook import _compressed

    try:
        _compressed.zstd("this")
    except ImportError:
        return False
    return True


def test_zstd_is_read_and_written_or_refused_by_name(store: EventStore, tmp_path: Path) -> None:
    store.append(made())
    path = tmp_path / "out.zst"
    if has_zstd():
        assert store.export_json(path).events == 1 and path.read_bytes()[:4] == b"\x28\xb5\x2f\xfd"
        assert store.import_json(path).duplicates == 1
        return
    with pytest.raises(ImportError, match=r"writing zstd needs Python 3.14, or: pip install"):
        store.export_json(path)
    assert not path.exists()
    with pytest.raises(ImportError, match="reading zstd needs"):
        store.import_json(io.BytesIO(b"\x28\xb5\x2f\xfdxxxx"))


def test_progress_is_told_and_may_end_the_work(store: EventStore, tmp_path: Path) -> None:
    reports: list[ImportReport] = []
    report = store.import_json(SMALL, progress=reports.append)
    assert reports[-1] == report
    done: list[tuple[int, int]] = []
    store.verify(progress=lambda *now: done.append(now))
    assert done[-1][0] == done[-1][1] == store.verify().bytes

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    calls: list[Any] = [
        lambda: store.import_json(SMALL, progress=stop),
        lambda: store.export_json(tmp_path / "out", progress=stop),
        lambda: store.verify(progress=stop),
    ]
    for call in calls:
        with pytest.raises(KeyboardInterrupt):
            call()
    assert not (tmp_path / "out").exists()
    assert store.census().events > 0


# -- damage and death -----------------------------------------------------------------------------


def flip(file: Path, offset: int) -> None:
    raw = bytearray(file.read_bytes())
    raw[offset] ^= 1
    file.write_bytes(raw)


def test_damage_is_named_with_its_place(path: Path) -> None:
    with EventStore.create(path) as store:
        outcomes = store.append_many(made(str(number)) for number in range(20))
        place = outcomes[7].location
        assert place is not None
        assert store.verify().ok
    (file,) = (path / "data" / "segments").iterdir()
    flip(file, place[1] + 100)
    with EventStore.open(path) as store:
        report = store.verify()
        assert not report.ok and report.faults == 1 and report.live == 19
        (fault,) = report.first_faults
        assert fault.location == place and fault.end > place[1] and fault.reason
        walk = store.iter(on_corrupt="skip")
        assert [event.content for event in walk] == [str(n) for n in range(20) if n != 7]
        assert walk.damages == [fault]
        with pytest.raises(deedbook.CorruptError) as raised:
            list(store)
        assert raised.value.offset == place[1] and raised.value.path == str(file)
        with pytest.raises(deedbook.CorruptError):
            store.read(place)
        assert len(exported(store, on_corrupt="skip")) == 19
        with pytest.raises(deedbook.CorruptError):
            store.query({})
        found = store.query({}, on_corrupt="skip")
        assert sorted(int(event.content) for event in found) == [n for n in range(20) if n != 7]
        assert found.damages == [fault]
        with pytest.raises(deedbook.CorruptError):
            store.census()
        census = store.census(on_corrupt="skip")
        assert (census.events, census.damages) == (19, [fault])
        # Damage elsewhere hides no event; where one is not found, it may have been there.
        assert store.get(made("8")["id"]).content == "8"
        with pytest.raises(deedbook.CorruptError):
            store.get(made("7")["id"])
    with pytest.raises(deedbook.CorruptError) as raised:
        EventStore.open(path, "a")
    assert raised.value.offset == place[1]
    with pytest.raises(deedbook.CorruptError):
        EventStore.open(path, check="all")
    (path / ".deedbook/damage").unlink()
    with EventStore.open(path, "a") as store:  # by the index
        with pytest.raises(deedbook.CorruptError):
            store.query({"ids": [made("7")["id"]]})
        found = store.query({"ids": [made("7")["id"], made("8")["id"]]}, on_corrupt="skip")
        assert [event.content for event in found] == ["8"]
        (fault,) = found.damages
        assert fault.location == place and fault.end == place[1] + 4096


def test_a_damaged_write_ahead_log_is_cut_by_the_letter_of_the_specification(path: Path) -> None:
    """Only a repair went on with such a store, where a book and a WAL have a recovery for it."""
    events = [made(str(number)) for number in range(20)]
    with EventStore.create(path) as store:
        store.append_many(events)
    log = path / "wal" / "wal.log"
    flip(log, log.stat().st_size - 1)  # in the checkpoint of the close
    with pytest.raises(deedbook.Error) as raised:
        EventStore.open(path, "a")
    assert raised.value.path == str(log)
    with pytest.raises(deedbook.InvalidArgumentError, match='has "valid" and "spec"'):
        EventStore.open(path, "a", recovery="acknowledged")  # type: ignore[arg-type]
    assert not list(log.parent.glob("*.cut-*"))
    with EventStore.open(path, "a", recovery="spec") as store:
        opening = store.opening
        assert opening.is_loss and opening.cut_bytes > 0 and opening.cut_events == 0
        assert opening.saved and all(Path(file).parent == log.parent for file in opening.saved)
        assert [event.content for event in store] == [str(number) for number in range(20)]
        store.append(made("later"))
    with EventStore.open(path, "a") as store:
        assert store.opening.is_loss and store.verify().is_loss and len(list(store)) == 21
        assert store.opening.cut_bytes == 0 and not store.opening.saved


def test_a_damaged_store_is_mended_or_copied(path: Path, tmp_path: Path) -> None:
    with EventStore.create(path) as store:
        outcomes = store.append_many(made(str(number)) for number in range(20))
        place = outcomes[7].location
        assert place is not None
        with pytest.raises(deedbook.LockedError):
            EventStore.repair(path)
    (file,) = (path / "data" / "segments").iterdir()
    flip(file, place[1] + 100)
    rest = [str(number) for number in range(20) if number != 7]

    steps: list[tuple[int, int]] = []
    copied = EventStore.salvage(path, tmp_path / "to", progress=lambda *at: steps.append(at))
    # The write-ahead log still has the damaged one.
    assert (copied.events, copied.from_log, copied.complete) == (20, 1, False)
    (damage,) = copied.damages
    assert (damage.path, damage.offset) == (str(file), place[1]) and damage.reason
    assert steps[-1] == (steps[-1][1],) * 2 and copied.source_bytes == steps[-1][1]
    with EventStore.open(tmp_path / "to") as store:
        assert [event.content for event in store] == [*rest, "7"] and store.verify().ok
    with pytest.raises(deedbook.AlreadyExistsError):
        EventStore.salvage(path, tmp_path / "to")
    with pytest.raises(deedbook.MissingError):
        EventStore.salvage(tmp_path / "none", tmp_path / "other")

    before = file.read_bytes()
    dry = EventStore.repair(path, dry_run=True)
    assert (dry.is_loss, dry.mended, dry.damages) == (True, False, copied.damages)
    assert not EventStore.repair(path, force=True).mended
    assert file.read_bytes() == before
    done = EventStore.repair(path, accept_loss=True)
    assert (
        done.mended
        and done.is_loss
        and not done.was_loss
        and not done.cut_events
        and done.path == str(path)
    )
    assert [Path(saved).read_bytes() for saved in done.saved] == [before[place[1] : damage.end]]
    assert pickle.loads(pickle.dumps(done)) == done
    assert json.loads(json.dumps(copied.to_dict()))["damages"][0]["offset"] == place[1]
    with EventStore.open(path, "a") as store:
        assert [event.content for event in store] == rest and store.verify().ok


def test_what_progress_of_a_salvage_raises_ends_it(path: Path, tmp_path: Path) -> None:
    with EventStore.create(path) as store:
        store.append(made())

    def stop(_done: int, _total: int) -> None:
        raise ValueError("enough")

    with pytest.raises(ValueError, match="enough"):
        EventStore.salvage(path, tmp_path / "to", progress=stop)


class Endless(io.RawIOBase):
    """Events without end, the same ones for the same seed."""

    def __init__(self, seed: int) -> None:
        self._number = seed * 1_000_000_000

    def read(self, size: int = -1) -> bytes:
        lines = []
        for _ in range(500):
            self._number += 1
            text = f"{self._number} " + "x" * (self._number * 7919 % 6000)
            lines.append(json.dumps(made(text, created_at=self._number % 2**32)).encode())
        return b"\n".join(lines) + b"\n"


LONG = """
import os, signal, sys, threading, time
from deedbook import EventStore
sys.path.insert(0, sys.argv[2])
from test_nostr import Endless
signal.signal(signal.SIGINT, signal.default_int_handler)
store = EventStore.create(sys.argv[1], durability="none")
threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    store.import_json(Endless(1))
except KeyboardInterrupt:
    print("interrupted", store.census().events > 0)
store.close()
"""


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_ctrl_c_ends_an_import(path: Path, run_child: Any) -> None:
    done = run_child(LONG, path, Path(__file__).parent)
    assert done.stdout == "interrupted True\n", done.stderr
