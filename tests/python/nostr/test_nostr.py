"""The event store from Python: values, appends, searches, import and export, damage, kills."""

import copy
import gzip
import io
import json
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Book, Event, EventStore, InvalidArgumentError, NotALogError
from deedbook import _formats as formats
from line_files import has_zstd
from log_bytes import flip
from nostr_events import LINES, SMALL, made
from shell import deedbook as run
from shell import outputs


@pytest.fixture
def store(path: Path) -> Iterator[EventStore]:
    with EventStore.create(path, durability="manual") as store:
        yield store


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
    assert pickle.loads(pickle.dumps(outcomes)) == outcomes
    assert [event.to_dict() for event in store] == events
    for wrong in (1, None, ["x"]):
        with pytest.raises(TypeError, match="an event is a dict, JSON or an Event, not"):
            store.append(wrong)  # type: ignore[arg-type]


def test_events_are_found_by_id(store: EventStore) -> None:
    event = made()
    assert event["id"] not in store and store.get(event["id"]) is None
    store.append(event)
    for key in (event["id"], bytes.fromhex(event["id"])):
        found = store.get(key)
        assert found is not None and found.to_dict() == event and key in store
    place = found.location
    assert place is not None and store.read(place) == store.get(place) == found
    for wrong in ("zz", event["id"].upper(), b"short"):
        with pytest.raises(deedbook.InvalidArgumentError):
            wrong in store  # noqa: B015
    for other in (1, None, bytearray(32), found, place):
        with pytest.raises(TypeError, match="an id is a str or bytes, not"):
            other in store  # type: ignore[operator]  # noqa: B015
    # A deleted event is still there.
    store.set_flags(place, deleted=True)
    assert store.get(event["id"]) is None and store.get(place).deleted
    wrong: list[tuple[Any, type[Exception]]] = [
        ((0, 4095), deedbook.OutOfRangeError),
        ((0, -1), OverflowError),
        ((0,), ValueError),
    ]
    for place, kind in wrong:
        for way in (store.get, store.read):
            with pytest.raises(kind):
                way(place)


def test_filter_accepts_dict_list_or_json(store: EventStore) -> None:
    store.append_many(made(str(kind), kind=kind) for kind in range(1, 4))
    filters = [{"kinds": [1]}, {"kinds": [3]}]
    for given in (filters, json.dumps(filters)):
        assert {event.content for event in store.query(given)} == {"1", "3"}
    assert [event.content for event in store.query({"kinds": [2]})] == ["2"]


@pytest.mark.parametrize("wrong", ['{"kinds":1}', {"kinds": ["1"]}, {"oops": 1}, "[1]", "{", "1"])
def test_a_wrong_filter_is_refused(store: EventStore, wrong: Any) -> None:
    with pytest.raises(deedbook.InvalidArgumentError, match="filter: "):
        store.query(wrong)
    with pytest.raises(TypeError, match="a filter is a dict, a list of them, or JSON"):
        store.query(1)  # type: ignore[arg-type]


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


def test_modes_and_errors(path: Path) -> None:
    with EventStore.open(path, "a", history="keep") as store:
        assert store.mode == "a" and store.path == str(path) and store and not store.closed
        with EventStore.open(path) as reader:
            assert reader.history == "keep"
            for refused in (lambda: reader.append(made()), reader.reindex):
                with pytest.raises(deedbook.ReadOnlyError):
                    refused()
    with pytest.raises(TypeError, match="oops"):
        EventStore.create(path, oops=1)
    for options in (
        *({"page_bytes": 5000}, {"segment_bytes": 1}, {"history": "x"}, {"mode": "w"}),
        *({"batch_interval": 2.0}, {"batch_interval": -1.0}, {"batch_bytes": 1000}),
        *({"wal_segment_bytes": 1 << 20}, {"compaction_ratio": 0.9}),
        *({"checkpoint_interval": 0.5}, {"checkpoint_interval": 86_401.0}),
    ):
        with pytest.raises(deedbook.InvalidArgumentError):
            EventStore.open(path.with_name("other"), **{"mode": "x", **options})  # type: ignore
    with pytest.raises(OverflowError, match=r"^page_bytes must not be negative"):
        EventStore.open(path, "a", page_bytes=-1)


def test_threads_append_at_once(store: EventStore) -> None:
    def work(number: int) -> None:
        for count in range(100):
            store.append(made(f"{number} {count}"))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.sync()
    assert store.census().events == 400 and EventStore.verify(store.path).ok


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


def test_zstd_is_supported_or_refused_by_name(store: EventStore, tmp_path: Path) -> None:
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


FIVE = [made(f"event {number}", created_at=1_700_000_000 + number) for number in range(5)]


@pytest.fixture
def stored(path: Path) -> Path:
    with EventStore.create(path, durability="manual") as stored:
        stored.append_many(FIVE)
    return path


def ok(*args: object) -> Any:
    return outputs(*args)[0]


def test_store_is_detected_by_segments_and_opens_generically(stored: Path) -> None:
    assert formats.detect(stored) == "nostr"
    with deedbook.open(stored) as opened:
        assert isinstance(opened, EventStore) and opened.mode == "r"
        assert [event.content for event in opened] == [event["content"] for event in FIVE]
    with deedbook.open(stored, "a", format="nostr", durability="always") as opened:
        assert opened.append(made("more")).stored
    new = stored.with_name("new")
    with deedbook.open(new, "x", format="nostr") as opened:
        assert opened.path == str(new)
    for wrong in ("book", "wal", "ledger"):
        with pytest.raises(NotALogError, match="holds a Nostr event store"):
            deedbook.open(stored, format=wrong)  # type: ignore[call-overload]
    with pytest.raises(NotALogError, match=r"EventStore\.open or deedbook\.open"):
        Book.open(stored)
    (stored / "book.log").write_bytes(b"")
    with pytest.raises(InvalidArgumentError, match=r"both a book .+ and a Nostr"):
        deedbook.open(stored)


def test_cat_prints_the_events(stored: Path) -> None:
    lines = ok("cat", stored).splitlines()
    assert [line.partition("\t")[0] for line in lines] == [f"0:{4096 * n}" for n in range(1, 6)]
    raw = [json.loads(line) for line in ok("cat", "--raw", stored).splitlines()]
    assert raw == FIVE
    (first, *_) = map(json.loads, ok("cat", "--json", stored, "0").splitlines())
    assert first["segment"] == 0 and json.loads(first["event"]) == FIVE[0]
    reverse = [json.loads(line) for line in ok("cat", "--reverse", "--raw", stored).splitlines()]
    assert ok("cat", stored, "1:") == "" and len(reverse) == 5


def test_store_cat_continues_after_damage_on_request(stored: Path) -> None:
    flip(stored / "data" / "segments" / "data.0.seg", 2 * 4096 + 60)
    found = run("cat", stored)
    assert found.returncode == 1 and len(found.stdout.splitlines()) == 1
    found = run("cat", "--skip-corrupt", stored)
    assert found.returncode == 1 and len(found.stdout.splitlines()) == 4
    assert b"skipping damage: bytes 8192 to 12288: checksum" in found.stderr
    assert b"(segment 0)" in found.stderr
