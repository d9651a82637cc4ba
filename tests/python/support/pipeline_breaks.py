"""Ways to break what a pipeline made, each with the checks that must fail then."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Concatenate, ParamSpec

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

from deedbook import Book, Event, EventStore, Wal
from nostr_events import made

Break = Callable[[Path], object]
"""Changes the pipeline in a directory."""
P = ParamSpec("P")


def breaking(do: Callable[Concatenate[Path, P], object]) -> Callable[P, Break]:
    """A function that breaks a pipeline in some way, as one that makes the break."""
    return lambda *args, **named: lambda home: do(home, *args, **named)


@breaking
def change_log(home: Path, name: str, change: Callable[[list[bytes]], object]) -> None:
    """Make a log again, of the same format, with other payloads."""
    path = home / "out" / "bronze" / name
    kind = Book if (path / "book.log").exists() else Wal
    with kind.open(path) as log:
        payloads = list(log.payloads())
    change(payloads)
    shutil.rmtree(path)
    with kind.create(path) as log:
        log.append_many(payloads)


def swap(payloads: list[bytes]) -> None:
    payloads[40], payloads[41] = payloads[41], payloads[40]
    assert payloads[40] != payloads[41]


@breaking
def change_store(home: Path, change: Callable[[list[Event]], object]) -> None:
    path = home / "out" / "bronze" / "files"
    with EventStore.open(path) as store:
        events = list(store.iter(include="all"))
    change(events)
    shutil.rmtree(path)
    with EventStore.create(path, durability="manual") as store:
        store.append_many(events)


@breaking
def flip(home: Path, pattern: str) -> None:
    """Damage a byte in the middle of a file."""
    file = max((home / "out" / "bronze").glob(pattern), key=lambda file: file.stat().st_size)
    data = bytearray(file.read_bytes())
    data[len(data.rstrip(b"\0")) // 2] ^= 0x55
    file.write_bytes(data)


@breaking
def change_table(home: Path, folder: str, change: Callable[[Any], Any]) -> None:
    """Change the rows of the largest file of a table."""
    files = (home / "out" / folder).rglob("*.parquet")
    file = max(files, key=lambda file: (file.stat().st_size, file))
    rows = pq.ParquetFile(file).read()
    pq.write_table(change(rows), file)


@breaking
def tear(home: Path, pattern: str) -> None:
    """Leave a part of the last record of a log."""
    (file,) = (home / "out" / "bronze").glob(pattern)
    file.write_bytes(file.read_bytes().rstrip(b"\0")[:-20])


def damage_store(home: Path) -> None:
    """Damage an event of a store, which is found by its id."""
    path = home / "out" / "bronze" / "files"
    with EventStore.open(path) as store:
        event = list(store.iter(include="all"))[100]
    (file,) = (path / "data" / "segments").iterdir()
    data = bytearray(file.read_bytes())
    data[data.index(bytes.fromhex(event.id))] ^= 0x55
    file.write_bytes(data)


@breaking
def cut(home: Path, folder: str) -> None:
    """Cut the end off a file of a table."""
    file = next((home / "out" / folder).rglob("*.parquet"))
    file.write_bytes(file.read_bytes()[:-10])


def rename_day(home: Path) -> None:
    """Give the folder of a day the name of another one."""
    folder = next((home / "out" / "silver" / "parquet").glob("day=*"))
    folder.rename(folder.with_name("day=1999-12-31"))


def without_first(rows: Any) -> Any:
    assert rows.num_rows > 1
    return rows.slice(1)


def first_twice(rows: Any) -> Any:
    return pa.concat_tables([rows, rows.slice(0, 1)])


def with_column(rows: Any, name: str, values: list[Any]) -> Any:
    at = rows.schema.get_field_index(name)
    field = rows.schema.field(at)
    return rows.set_column(at, field, pa.array(values, field.type))


def plus_one(column: str) -> Callable[[Any], Any]:
    """Add 1 to a number of the first row."""

    def change(rows: Any) -> Any:
        first, *others = rows[column].to_pylist()
        return with_column(rows, column, [first + 1, *others])

    return change


def more_content(rows: Any) -> Any:
    return with_column(rows, "content", [f"{one}!" for one in rows["content"].to_pylist()])


@breaking
def change_top(home: Path, **fields: Any) -> None:
    file = home / "out" / "gold" / "top.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **fields}))


@breaking
def change_lines(home: Path, file: str, change: Callable[[list[bytes]], object]) -> None:
    *lines, rest = (home / file).read_bytes().split(b"\n")
    change(lines)
    (home / file).write_bytes(b"\n".join([*lines, rest]))


@breaking
def change_delta(home: Path, change: Callable[[Any], Any]) -> None:
    """Change the rows of the Delta table in a commit."""
    path = str(home / "out" / "silver" / "delta")
    rows = DeltaTable(path).to_pyarrow_dataset().to_table()
    write_deltalake(path, change(rows), mode="overwrite")


def seen(payload: bytes) -> bytes:
    return json.dumps({"sha256": payload.hex(), "position": 10**6}).encode()


def rename_quarantined(rows: Any) -> Any:
    return with_column(rows, "file", ["/elsewhere/000009.jsonl"] * rows.num_rows)


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
ORDERS, SPOOL, FILES = ({f"{source}: {HAS}"} for source in ("orders", "spool", "files"))

BROKEN: dict[str, tuple[Break, set[str]]] = {
    "a record of a book is missing": (change_log("orders", lambda log: log.pop(50)), ORDERS),
    "records of a book are swapped": (change_log("orders", swap), ORDERS),
    "a record of a WAL is missing": (change_log("spool", lambda log: log.pop()), SPOOL),
    "an event of a store is missing": (change_store(lambda log: log.pop()), FILES),
    "a store has one more": (
        change_store(lambda log: log.append(Event(**made("more")))),
        FILES | {PARQUET, DELTA},
    ),
    "a book is damaged": (flip("orders/book.log"), ORDERS | {f"orders: {INTACT}"}),
    "a WAL is damaged": (flip("spool/*.wal"), SPOOL | {f"spool: {INTACT}"}),
    "a book is torn": (tear("orders/book.log"), ORDERS | {f"orders: {INTACT}"}),
    "a store is damaged": (damage_store, FILES | {f"files: {INTACT}"}),
    "a bad line is not in the quarantine": (change_table("quarantine/files", without_first), {BAD}),
    "a bad line is there twice": (change_table("quarantine/files", first_twice), {BAD}),
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
    "events are changed in Delta": (change_delta(more_content), {DELTA_TRUE, EQUAL}),
    "a file of the Delta table is another": (
        change_table("silver/delta", without_first),
        {"silver: delta can be read", DELTA, EQUAL},
    ),
    "a file of gold is no Parquet file": (cut("gold/windows"), {"tables can be read"}),
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
    "a top list is wrong": (change_top(kinds={"1": 2}), {TOTALS}),
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
        FILES,
    ),
    "a note is gone": (change_lines("in/expected/orders.jsonl", lambda log: log.pop()), ORDERS),
}
