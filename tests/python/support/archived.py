"""Logs with archives, and the rows that executors read from them."""

from pathlib import Path
from typing import Any

from deedbook import Ledger, Pier, Wal, archive
from spark_session import reader_of, rows_of

FORMATS = ["wal", "pier", "ledger"]
SEGMENT = 16384
FIRST = {"wal": "lsn", "pier": "event", "ledger": "file"}


def grow(format: str, path: Path, first: int, count: int = 120) -> None:
    """Append records of 1 to 3,000 bytes; some span two segments."""
    payloads = [b"%d" % number * (1 + number * 7 % 1000) for number in range(first, first + count)]
    if format == "wal":
        with Wal.open(path, "a", segment_bytes=SEGMENT) as wal:
            wal.append_many(payloads)
    elif format == "pier":
        with Pier.open(path, "a") as pier:
            for start in range(0, count, 40):
                pier.append_many(payloads[start : start + 40])
                pier.roll()
    else:
        with Ledger.open(path, "a", batch_bytes=5000) as ledger:
            ledger.append_many(payloads)


def rows(source: object, **options: Any) -> list[Any]:
    return [tuple(row.values()) for row in rows_of(reader_of(source, **options))]


def archived(format: str, log: Path, url: str) -> list[Any]:
    bounds = archive.open(url).bounds
    assert bounds is not None
    return rows(log, end=bounds[1])


def catalog(format: str, tmp_path: Path, root: str, names: str = "abc", count: int = 120) -> None:
    """Logs with an entry each in the catalog, from equal records."""
    for name in names:
        grow(format, tmp_path / name, 0, count)
        archive.upload(tmp_path / name, f"{root}/{name}", catalog=root)


def uploaded(format: str, tmp_path: Path, root: str, name: str, first: int, count: int) -> Any:
    grow(format, tmp_path / name, first, count)
    return archive.upload(tmp_path / name, f"{root}/{name}", catalog=root)
