"""The event store is a format like the others: recognised, opened, described, checked, printed."""

import json
from pathlib import Path
from typing import Any

import pytest

import deedbook
from deedbook import Book, EventStore, InvalidArgumentError, NotALogError
from deedbook import _formats as formats
from log_bytes import flip
from nostr_events import made
from shell import deedbook as run
from shell import outputs

EVENTS = [made(f"event {number}", created_at=1_700_000_000 + number) for number in range(5)]


@pytest.fixture
def store(path: Path) -> Path:
    with EventStore.create(path, durability="manual") as store:
        store.append_many(EVENTS)
    return path


def ok(*args: object) -> Any:
    return outputs(*args)[0]


def test_store_is_detected_by_segments_and_opens_generically(store: Path) -> None:
    assert formats.detect(store) == "nostr"
    with deedbook.open(store) as opened:
        assert isinstance(opened, EventStore) and opened.mode == "r"
        assert [event.content for event in opened] == [event["content"] for event in EVENTS]
    with deedbook.open(store, "a", format="nostr", durability="always") as opened:
        assert opened.append(made("more")).stored
    new = store.with_name("new")
    with deedbook.open(new, "x", format="nostr") as opened:
        assert opened.path == str(new)
    for wrong in ("book", "wal", "ledger"):
        with pytest.raises(NotALogError, match="holds a Nostr event store"):
            deedbook.open(store, format=wrong)  # type: ignore[call-overload]
    with pytest.raises(NotALogError, match=r"EventStore\.open or deedbook\.open"):
        Book.open(store)
    (store / "book.log").write_bytes(b"")
    with pytest.raises(InvalidArgumentError, match=r"both a book .+ and a Nostr"):
        deedbook.open(store)


def test_cat_prints_the_events(store: Path) -> None:
    lines = ok("cat", store).splitlines()
    assert [line.partition("\t")[0] for line in lines] == [f"0:{4096 * n}" for n in range(1, 6)]
    raw = [json.loads(line) for line in ok("cat", "--raw", store).splitlines()]
    assert raw == EVENTS
    (first, *_) = map(json.loads, ok("cat", "--json", store, "0").splitlines())
    assert first["segment"] == 0 and json.loads(first["event"]) == EVENTS[0]
    reverse = [json.loads(line) for line in ok("cat", "--reverse", "--raw", store).splitlines()]
    assert ok("cat", store, "1:") == "" and len(reverse) == 5


def test_store_cat_continues_after_damage_on_request(store: Path) -> None:
    flip(store / "data" / "segments" / "data.0.seg", 2 * 4096 + 60)
    found = run("cat", store)
    assert found.returncode == 1 and len(found.stdout.splitlines()) == 1
    found = run("cat", "--skip-corrupt", store)
    assert found.returncode == 1 and len(found.stdout.splitlines()) == 4
    assert b"skipping damage: bytes 8192 to 12288: checksum" in found.stderr
    assert b"(segment 0)" in found.stderr


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("append", "{store}"), "'deedbook import' stores events in it"),
        (("retain", "--consumed", "{store}"), "this is for write-ahead logs and piers"),
        (("cat", "--follow", "{store}"), "a reader sees"),
        (("info", "--base", "x", "{store}"), "--base is for ledgers"),
    ],
)
def test_unsupported_store_command_names_its_alternative(
    store: Path, args: tuple[str, ...], says: str
) -> None:
    found = run(*(arg.format(store=store) for arg in args))
    assert found.returncode == 2 and says in found.stderr.decode()
    assert not store.with_name(f"{store.name}-copy").exists()
