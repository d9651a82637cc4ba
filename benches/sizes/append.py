"""Append events of one size to a Book, or to LMDB by py-lmdb; append.c and append.rs do the same.

Each batch is on stable storage before the next. Prints the seconds, and those of processor time.
Usage: append.py STORE DIR BYTES BATCH EVENTS
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import lmdb

from deedbook import Book


def to_book(place: str, event: bytes, batch: int) -> Callable[[int], object]:
    """Create a book; the returned function appends a batch."""
    event = event[4:]  # The mug takes four bytes.
    if batch == 1:
        book = Book.create(place)
        return lambda first: book.append(event)
    book, events = Book.create(place, durability="manual"), [event] * batch

    def append(first: int) -> None:
        book.append_many(events)
        book.sync()

    return append


def to_lmdb(place: str, event: bytes, batch: int) -> Callable[[int], object]:
    """Create an environment; the returned function stores a batch in a transaction."""
    env = lmdb.open(place, map_size=64 << 30, max_dbs=2)
    stored = env.open_db(b"EVENTS", integerkey=True)

    def append(first: int) -> None:
        with env.begin(write=True, db=stored) as txn:
            for number in range(first, first + batch):
                txn.put(number.to_bytes(8, sys.byteorder), event, overwrite=False)

    return append


def main() -> None:
    store, place, *counts = sys.argv[1:]
    size, batch, events = map(int, counts)
    event = bytes((i * 2654435761 >> 13) & 0xFF for i in range(min(size, 1 << 20)))
    event *= max(1, size >> 20)
    append = (to_book if store == "book" else to_lmdb)(place, event, batch)
    wall, busy = time.perf_counter(), time.process_time()
    for first in range(1, events + 1, batch):
        append(first)
    print(time.perf_counter() - wall, time.process_time() - busy)


if __name__ == "__main__":
    main()
