"""Ways to break what a pipeline made, each with the checks that must fail then."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from deedbook import Book, Event, EventStore, Wal
from test_nostr import made

Break = Callable[[Path], object]
"""Changes the pipeline in a directory."""


def log_again(path: Path, payloads: Iterable[bytes]) -> None:
    """Make a log again, of the same format."""
    is_book = (path / "book.log").exists()
    shutil.rmtree(path)
    with Book.create(path) if is_book else Wal.create(path) as log:
        log.append_many(list(payloads))


def change_log(name: str, change: Callable[[list[bytes]], object]) -> Break:
    def broken(home: Path) -> None:
        path = home / "out" / "bronze" / name
        with (Book.open if (path / "book.log").exists() else Wal.open)(path) as log:
            payloads = list(log.payloads())
        change(payloads)
        log_again(path, payloads)

    return broken


def swap(payloads: list[bytes]) -> None:
    payloads[40], payloads[41] = payloads[41], payloads[40]
    assert payloads[40] != payloads[41]


def change_store(change: Callable[[list[Event]], object]) -> Break:
    def broken(home: Path) -> None:
        path = home / "out" / "bronze" / "files"
        with EventStore.open(path) as store:
            events = list(store.iter(include="all"))
        change(events)
        shutil.rmtree(path)
        with EventStore.create(path, durability="manual") as store:
            store.append_many(events)

    return broken


def flip(pattern: str) -> Break:
    """Damage a byte in the middle of a file."""

    def broken(home: Path) -> None:
        file = max((home / "out" / "bronze").glob(pattern), key=lambda file: file.stat().st_size)
        data = bytearray(file.read_bytes())
        data[len(data.rstrip(b"\0")) // 2] ^= 0x55
        file.write_bytes(data)

    return broken


def change_table(folder: str, change: Callable[[Any], Any]) -> Break:
    """Change the rows of the largest file of a table."""

    def broken(home: Path) -> None:
        files = (home / "out" / folder).rglob("*.parquet")
        file = max(files, key=lambda file: (file.stat().st_size, file))
        rows = pq.ParquetFile(file).read()
        pq.write_table(change(rows), file)

    return broken


def tear(pattern: str) -> Break:
    """Leave a part of the last record of a log."""

    def broken(home: Path) -> None:
        (file,) = (home / "out" / "bronze").glob(pattern)
        file.write_bytes(file.read_bytes().rstrip(b"\0")[:-20])

    return broken


def damage_store(home: Path) -> None:
    """Damage an event of a store, which is found by its id."""
    path = home / "out" / "bronze" / "files"
    with EventStore.open(path) as store:
        event = list(store.iter(include="all"))[100]
    (file,) = (path / "data" / "segments").iterdir()
    data = bytearray(file.read_bytes())
    data[data.index(bytes.fromhex(event.id))] ^= 0x55
    file.write_bytes(data)


def cut(folder: str) -> Break:
    """Cut the end off a file of a table."""

    def broken(home: Path) -> None:
        file = next((home / "out" / folder).rglob("*.parquet"))
        file.write_bytes(file.read_bytes()[:-10])

    return broken


def rename_day(home: Path) -> None:
    """Give the folder of a day the name of another one."""
    folder = next((home / "out" / "silver" / "parquet").glob("day=*"))
    folder.rename(folder.with_name("day=1999-12-31"))


def without_first(rows: Any) -> Any:
    assert rows.num_rows > 1
    return rows.slice(1)


def first_twice(rows: Any) -> Any:
    return pa.concat_tables([rows, rows.slice(0, 1)])


def plus_one(column: str) -> Callable[[Any], Any]:
    """Add 1 to a number of the first row."""

    def change(rows: Any) -> Any:
        values = rows[column].to_pylist()
        values[0] += 1
        at = rows.schema.get_field_index(column)
        return rows.set_column(
            at, rows.schema.field(at), pa.array(values, rows.schema.field(at).type)
        )

    return change


def more_content(rows: Any) -> Any:
    at = rows.schema.get_field_index("content")
    longer = pc.binary_join_element_wise(rows["content"], pa.scalar("!"), "")
    return rows.set_column(at, rows.schema.field(at), longer)


def change_top(**fields: Any) -> Break:
    def broken(home: Path) -> None:
        file = home / "out" / "gold" / "top.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))

    return broken


def change_lines(file: str, change: Callable[[list[bytes]], object]) -> Break:
    def broken(home: Path) -> None:
        *lines, rest = (home / file).read_bytes().split(b"\n")
        change(lines)
        (home / file).write_bytes(b"\n".join([*lines, rest]))

    return broken


def change_delta(change: Callable[[Any], Any]) -> Break:
    """Change the rows of the Delta table in a commit."""

    def broken(home: Path) -> None:
        path = str(home / "out" / "silver" / "delta")
        rows = DeltaTable(path).to_pyarrow_dataset().to_table()
        write_deltalake(path, change(rows), mode="overwrite")

    return broken


def seen(payload: bytes) -> bytes:
    return json.dumps({"sha256": payload.hex(), "position": 10**6}).encode()


def rename_quarantined(rows: Any) -> Any:
    at = rows.schema.get_field_index("file")
    names = ["/elsewhere/000009.jsonl"] * rows.num_rows
    return rows.set_column(at, rows.schema.field(at), pa.array(names, pa.string()))


HAS = "bronze has the input"
INTACT = "bronze is intact"
SAW = "what a follower saw is there"
BAD = "files: bad lines are in quarantine"
NO_EVENTS = "silver: records that are no events are in quarantine"
EQUAL = "silver: delta is equal to parquet"
PARQUET, DELTA = (f"silver: {kind} has each event of bronze once" for kind in ("parquet", "delta"))
PARQUET_TRUE, DELTA_TRUE = (
    f"silver: {kind} has the content that the ids say" for kind in ("parquet", "delta")
)
PARQUET_DAY = "silver: parquet has each event on the day of its time"
EVENTS = "gold: events by window and kind"
BYTES = "gold: bytes by window and kind"
AUTHORS = "gold: events by author"
LATE = "gold: late events by batch"
TOTALS = "gold: totals"
GOLD = {EVENTS, BYTES, AUTHORS, TOTALS}

BROKEN: dict[str, tuple[Break, set[str]]] = {
    "a record of a book is missing": (
        change_log("orders", lambda log: log.pop(50)),
        {f"orders: {HAS}"},
    ),
    "a record of a book is doubled": (
        change_log("orders", lambda log: log.insert(50, log[50])),
        {f"orders: {HAS}"},
    ),
    "records of a book are swapped": (change_log("orders", swap), {f"orders: {HAS}"}),
    "a book has one more": (
        change_log("orders", lambda log: log.append(b"more")),
        {f"orders: {HAS}"},
    ),
    "a record of a WAL is missing": (change_log("spool", lambda log: log.pop()), {f"spool: {HAS}"}),
    "an event of a store is missing": (change_store(lambda log: log.pop()), {f"files: {HAS}"}),
    "a store has one more": (
        change_store(lambda log: log.append(Event(**made("more")))),
        {f"files: {HAS}", PARQUET, DELTA},
    ),
    "a book is damaged": (flip("orders/book.log"), {f"orders: {INTACT}", f"orders: {HAS}"}),
    "a WAL is damaged": (flip("spool/*.wal"), {f"spool: {INTACT}", f"spool: {HAS}"}),
    "a book is torn": (tear("orders/book.log"), {f"orders: {INTACT}", f"orders: {HAS}"}),
    "a WAL is torn": (tear("spool/*.wal"), {f"spool: {INTACT}", f"spool: {HAS}"}),
    "a store is damaged": (damage_store, {f"files: {INTACT}", f"files: {HAS}"}),
    "a bad line is not in the quarantine": (change_table("quarantine/files", without_first), {BAD}),
    "a bad line is there twice": (change_table("quarantine/files", first_twice), {BAD}),
    "a bad line has another number": (change_table("quarantine/files", plus_one("line")), {BAD}),
    "a bad line has another file": (change_table("quarantine/files", rename_quarantined), {BAD}),
    "a record is not in the quarantine": (
        change_table("quarantine/silver", without_first),
        {NO_EVENTS},
    ),
    "a record there has another position": (
        change_table("quarantine/silver", plus_one("position")),
        {NO_EVENTS},
    ),
    "an event is missing in Parquet": (
        change_table("silver/parquet", without_first),
        {PARQUET, EQUAL} | GOLD,
    ),
    "an event is doubled in Parquet": (
        change_table("silver/parquet", first_twice),
        {PARQUET, EQUAL} | GOLD,
    ),
    "events are changed in Parquet": (
        change_table("silver/parquet", more_content),
        {PARQUET_TRUE, EQUAL, BYTES, TOTALS},
    ),
    "events are on another day in Parquet": (rename_day, {PARQUET_DAY, EQUAL}),
    "an event is missing in Delta": (change_delta(without_first), {DELTA, EQUAL}),
    "an event is doubled in Delta": (change_delta(first_twice), {DELTA, EQUAL}),
    "events are changed in Delta": (
        change_delta(more_content),
        {DELTA_TRUE, EQUAL},
    ),
    "a file of the Delta table is another": (
        change_table("silver/delta", without_first),
        {"silver: delta can be read", DELTA, EQUAL},
    ),
    "a file of gold is no Parquet file": (
        cut("gold/windows"),
        {"tables can be read"},
    ),
    "a count by window is wrong": (change_table("gold/windows", plus_one("events")), {EVENTS}),
    "bytes by window are wrong": (change_table("gold/windows", plus_one("bytes")), {BYTES}),
    "an event more counts as late": (
        change_table("gold/windows", plus_one("late")),
        {LATE, TOTALS},
    ),
    "a count by kind and window is missing": (
        change_table("gold/windows", without_first),
        {EVENTS, BYTES},
    ),
    "a count by author is wrong": (change_table("gold/authors", plus_one("events")), {AUTHORS}),
    "the total is wrong": (change_top(events=1), {TOTALS}),
    "the bytes are wrong": (change_top(bytes=1), {TOTALS}),
    "a top list is wrong": (change_top(kinds={"1": 2}), {TOTALS}),
    "a top list is gone": (change_top(authors={}), {TOTALS}),
    "a follower saw what is in no log": (
        change_lines("out/follower/orders.jsonl", lambda log: log.append(seen(bytes(32)))),
        {f"orders: {SAW}"},
    ),
    "a follower missed a record": (
        change_lines("out/follower/spool.jsonl", lambda log: log.pop(7)),
        {f"spool: {SAW}"},
    ),
    "a follower saw another order": (
        change_lines("out/follower/files.jsonl", lambda log: log.insert(3, log.pop(4))),
        {f"files: {SAW}"},
    ),
    "an input is not what was noted": (
        change_lines("in/files/000001.jsonl", lambda log: log.pop(3)),
        {f"files: {HAS}"},
    ),
    "a note is gone": (
        change_lines("in/expected/orders.jsonl", lambda log: log.pop()),
        {f"orders: {HAS}"},
    ),
}
