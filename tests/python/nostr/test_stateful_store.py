"""An event store against NIP-01 and NIP-09: random histories and compactions."""

import contextlib
import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("hypothesis")

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import deedbook
import tiers
from chaos.inputs.signing import public_key, sign
from deedbook import Durability, Event, EventOutcome, EventStore
from nostr_events import made

DELETED, REPLACED = 1, 2
FIELDS = ("pubkey", "created_at", "kind", "tags", "content")
SECRETS = {public_key(secret): secret for secret in (1, 2, 3)}
AUTHORS = list(SECRETS)
DURABILITIES = st.sampled_from([None, "always", Durability.bytes(1000), "manual", "none"])
HISTORIES = st.sampled_from(["drop", "drop", "keep"])
AUTHOR = st.sampled_from(AUTHORS)
SECOND = st.integers(1, 5)
KINDS = st.sampled_from([0, 1, 1, 3, 7, 10002, 20001, 30023, 30023])
CONTENTS = st.sampled_from(["", "short", "\N{SNOWMAN}", "long " * 900, "longer" * 2000])
PLACES = st.sampled_from([None, "", "one", "two"])


def signed(pubkey: str, at: int, kind: int, tags: list[list[str]], content: str) -> dict[str, Any]:
    event = made(content, pubkey=pubkey, created_at=at, kind=kind, tags=tags)
    return event if kind != 5 else event | {"sig": sign(event["id"], SECRETS[pubkey])}


def tagged(event: dict[str, Any], name: str) -> list[str]:
    return [tag[1] for tag in event["tags"] if tag[0] == name and len(tag) > 1]


def address_of(event: dict[str, Any]) -> str | None:
    """``KIND:AUTHOR:D`` of an event with a single current version."""
    kind = event["kind"]
    if kind in (0, 3) or 10_000 <= kind < 20_000:
        return f"{kind}:{event['pubkey']}:"
    if 30_000 <= kind < 40_000:
        return f"{kind}:{event['pubkey']}:{(tagged(event, 'd') or [''])[0]}"
    return None


def newest_first(event: dict[str, Any]) -> tuple[int, str]:
    return -event["created_at"], event["id"]


class StoreMachine(RuleBasedStateMachine):
    """`model` maps the id of each stored event to the event and its flags."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp(prefix="deedbook-"))
        self.root = self.place / "events"
        self.model: dict[str, tuple[dict[str, Any], int]] = {}
        self.tried: list[dict[str, Any]] = []

    @initialize(durability=DURABILITIES, history=HISTORIES, checksums=st.booleans())
    def create(self, durability: str | None, history: str, checksums: bool) -> None:
        self.options: dict[str, Any] = {"history": history, "checksums": checksums}
        self.store = EventStore.open(self.root, "x", durability=durability, **self.options)

    def teardown(self) -> None:
        with contextlib.suppress(AttributeError):
            self.store.close()
            with EventStore.open(self.root) as reader:
                self.check(reader)
        shutil.rmtree(self.place)

    # -- expectations

    def expect(self, event: dict[str, Any]) -> str:
        kind, id, address = event["kind"], event["id"], address_of(event)
        if 20_000 <= kind < 30_000:
            return "ephemeral"
        if id in self.model:
            return "duplicate"
        if tagged(event, "expiration"):
            return "expired"
        if self.is_deleted(event, address):
            return "deleted"
        flags = 0
        if address and self.options["history"] == "drop":
            for other in self.counting():
                if address_of(other) == address:
                    older = max(event, other, key=newest_first)
                    if older is event:
                        flags = REPLACED
                    else:
                        self.hide(other["id"], REPLACED)
        self.model[id] = (event, flags)
        if kind == 5:
            self.delete(event)
        return "superseded" if flags else "stored"

    def is_deleted(self, event: dict[str, Any], address: str | None) -> bool:
        requests = [stored for stored, _ in self.model.values() if stored["kind"] == 5]
        return any(
            request["pubkey"] == event["pubkey"]
            and (
                event["id"] in tagged(request, "e")
                or (
                    address in tagged(request, "a") and event["created_at"] <= request["created_at"]
                )
            )
            for request in requests
        )

    def delete(self, request: dict[str, Any]) -> None:
        for id in tagged(request, "e"):
            event, _ = self.model.get(id, (None, 0))
            if event and event["pubkey"] == request["pubkey"] and event["kind"] != 5:
                self.hide(id, DELETED)
        for event in self.counting():
            if (
                address_of(event) in tagged(request, "a")
                and event["pubkey"] == request["pubkey"]
                and event["created_at"] <= request["created_at"]
            ):
                self.hide(event["id"], DELETED)

    def hide(self, id: str, flag: int) -> None:
        event, flags = self.model[id]
        self.model[id] = (event, flags | flag)

    def counting(self) -> list[dict[str, Any]]:
        return [event for event, flags in self.model.values() if not flags]

    # -- appending

    def append_all(self, events: list[dict[str, Any]]) -> None:
        self.tried += events
        expected = [self.expect(event) for event in events]
        if len(events) == 1:
            outcomes: list[EventOutcome] = [self.store.append(events[0])]
        else:
            outcomes = self.store.append_many(events)
        assert [outcome.what for outcome in outcomes] == expected
        for event, outcome in zip(events, outcomes, strict=True):
            assert (outcome.location is None) == (event["id"] not in self.model)
            if outcome.location is not None:
                assert plain(self.store.read(outcome.location)) == event

    def draw(self, data: st.DataObject) -> dict[str, Any]:
        what = data.draw(st.sampled_from(["new", "new", "new", "delete", "again", "over"]))
        author, at = data.draw(AUTHOR), data.draw(SECOND)
        if what == "again" and self.tried:
            return data.draw(st.sampled_from(self.tried))
        if what == "delete" and self.tried:
            targets = data.draw(st.lists(st.sampled_from(self.tried), min_size=1, max_size=3))
            tags = [["e", event["id"]] for event in targets]
            if data.draw(st.booleans()):
                tags = [["a", address_of(event) or "1:none:"] for event in targets]
            author = data.draw(st.sampled_from([targets[0]["pubkey"], author]))
            return signed(author, at, 5, tags, "")
        tags = [["expiration", "1000"]] if what == "over" else []
        place = data.draw(PLACES)
        tags += [] if place is None else [["d", place]]
        tags += [["t", data.draw(st.sampled_from(["x", "y"]))]]
        return signed(author, at, data.draw(KINDS), tags, data.draw(CONTENTS))

    @rule(data=st.data())
    def append(self, data: st.DataObject) -> None:
        self.append_all([self.draw(data)])

    @rule(data=st.data(), count=st.integers(2, 8))
    def append_many(self, data: st.DataObject, count: int) -> None:
        self.append_all([self.draw(data) for _ in range(count)])

    @rule(data=st.data())
    def flag_by_hand(self, data: st.DataObject) -> None:
        counting = self.counting()
        if not counting:
            return
        event = data.draw(st.sampled_from(counting))
        again = self.store.append(event)
        assert again.what == "duplicate" and again.location is not None
        self.store.set_flags(again.location, deleted=True)
        self.hide(event["id"], DELETED)

    # -- operations that change nothing, or drop only hidden events

    @rule()
    def commit(self) -> None:
        self.store.sync()
        # From now on, other processes see which events were replaced or deleted.
        with EventStore.open(self.root) as reader:
            self.check(reader)

    @rule()
    def checkpoint(self) -> None:
        self.store.checkpoint()

    @rule()
    def reindex(self) -> None:
        assert self.store.reindex() == len(self.model)

    @rule(ratio=st.sampled_from([0.0, 0.2, None]), dry_run=st.booleans())
    def compact(self, ratio: float | None, dry_run: bool) -> None:
        self.store.compact(ratio, dry_run=dry_run)
        there = {event.id for event in self.store.iter(include="all")}
        if dry_run:
            assert there == set(self.model)
            return
        gone = set(self.model) - there
        assert all(self.model[id][1] for id in gone), "a compaction dropped what counts"
        if ratio == 0.0:
            assert there == {event["id"] for event in self.counting()}
        for id in gone:
            del self.model[id]

    @rule(durability=DURABILITIES, index=st.booleans())
    def reopen(self, durability: str | None, index: bool) -> None:
        self.store.close()
        if not index:
            shutil.rmtree(self.root / ".deedbook")
        self.store = EventStore.open(self.root, "a", durability=durability, **self.options)
        assert not self.store.opening.is_loss

    # -- reading

    def check(self, store: EventStore) -> None:
        every = list(store.iter(include="all"))
        assert {event.id: flags_of(event) for event in every} == {
            id: flags for id, (_, flags) in self.model.items()
        }
        assert all(plain(event) == self.model[event.id][0] for event in every)
        live = [event for event in every if not flags_of(event)]
        assert list(store) == live
        assert list(reversed(store)) == live[::-1]
        ordered = sorted(self.counting(), key=newest_first)
        assert [plain(event) for event in store.query({})] == ordered

    @rule()
    def verify_while_open(self) -> None:
        report = EventStore.verify(self.store.path)
        assert report.ok and report.live == len(self.counting())
        assert report.live + report.deleted + report.replaced >= len(self.model)
        with pytest.raises(deedbook.LockedError):
            EventStore.open(self.root, "a")

    @invariant()
    def it_is_as_the_model(self) -> None:
        if not hasattr(self, "store"):
            return
        self.check(self.store)
        for event in self.tried[-10:]:
            found = self.store.get(event["id"])
            _, flags = self.model.get(event["id"], (None, 1))
            assert (found is None) == bool(flags)
            assert (event["id"] in self.store) == (not flags)


def flags_of(event: Event) -> int:
    return DELETED * event.deleted + REPLACED * event.replaced


def plain(event: Event) -> dict[str, Any]:
    found = event.to_dict()
    return {name: found[name] for name in ("id", *FIELDS, "sig")}


TestStore = StoreMachine.TestCase
TestStore.settings = tiers.histories(4)
