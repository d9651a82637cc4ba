"""Tail a write-ahead log into a DuckDB table, each record exactly once.

    python tail_duckdb.py orders.wal orders.duckdb
    duckdb orders.duckdb "SELECT count(*), sum(amount) FROM orders"

The program writes the rows and the next position in one transaction of DuckDB. After a kill, the
tail goes on at the end of the table. A consumer of the log keeps the records not yet in the table:
the writer may drop the others (`wal.retain(consumed=True)`).
"""

from __future__ import annotations

import argparse
import time

import duckdb
import pyarrow as pa

from deedbook import Wal

CONSUMER = "duckdb"


def prepare(base: duckdb.DuckDBPyConnection, first: int) -> None:
    """Create missing tables."""
    base.execute("CREATE TABLE IF NOT EXISTS orders (lsn BIGINT, id BIGINT, amount BIGINT)")
    base.execute("CREATE TABLE IF NOT EXISTS position (next BIGINT)")
    base.execute("INSERT INTO position SELECT ? WHERE NOT EXISTS (FROM position)", [first])


def take(base: duckdb.DuckDBPyConnection, wal: Wal) -> int:
    """Copy the durable records missing in the table, and return the number."""
    [(start,)] = base.execute("SELECT next FROM position").fetchall()
    stop = wal.durable_end or wal.end
    if stop <= start:
        return 0
    # DuckDB reads the record batches directly: no row becomes a Python object.
    batches = pa.RecordBatchReader.from_stream(wal.batches(start, stop))
    base.register("records", batches)
    base.execute("BEGIN")
    base.execute(
        "INSERT INTO orders SELECT lsn, (text->>'id')::BIGINT, (text->>'amount')::BIGINT "
        "FROM (SELECT lsn, decode(payload)::JSON AS text FROM records)"
    )
    base.execute("UPDATE position SET next = ?", [stop])
    base.execute("COMMIT")
    wal.set_consumer(CONSUMER, stop)  # after the commit: the table has them
    [(count,)] = base.execute("SELECT count(*) FROM orders WHERE lsn >= ?", [start]).fetchall()
    return int(count)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("log")
    parser.add_argument("base")
    parser.add_argument("--once", action="store_true", help="end when the table has all records")
    options = parser.parse_args()
    with Wal.open(options.log) as wal, duckdb.connect(options.base) as base:
        wal.set_consumer(CONSUMER, wal.consumers().get(CONSUMER, wal.head))
        prepare(base, wal.head)
        while True:
            taken = take(base, wal)
            if taken:
                print(f"{taken} records, up to LSN {wal.consumers()[CONSUMER]}", flush=True)
            elif options.once:
                return
            else:
                time.sleep(0.1)
            wal.refresh()


if __name__ == "__main__":
    main()
