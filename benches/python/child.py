"""Work that needs its own process: to be killed, or to have its memory measured.

Usage: child.py fill STORE PATH RECORDS BYTES SEED | child.py memory iterate|arrow|verify PATH
       child.py drain PATH URL | child.py stream PATH
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from random import Random

EACH = 1000
"""The number of records that a killed process appended one by one at the end."""


def fill(name: str, path: Path, records: int, size: int, seed: int) -> None:
    """Append, print a line, and wait to be killed."""
    from spools import SPOOLS, Spool, events
    from stores import STORES, make_keys

    kind = next(store for store in (*STORES, *SPOOLS) if store.name == name)
    random = Random(seed)
    if issubclass(kind, Spool):
        jams = events(records, size, seed)
    else:
        jams = [random.randbytes(size) for _ in range(records)]
    store = kind(path, make_keys(records))
    store.open()
    if store.name != "mcap":  # mcap writes files either with chunks or without
        store.append_batch(1, jams[:-EACH])
        jams = jams[-EACH:]
    store.append_each(records - len(jams) + 1, jams)
    print("filled", flush=True)
    time.sleep(600)


def status(key: str) -> int:
    """A line of /proc/self/status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(key)


def memory(what: str, path: str) -> None:
    """Print the peak of resident memory, minus the memory after the import."""
    from deedbook import Book

    if what == "arrow":
        import pyarrow as pa
    before = status("VmRSS")
    if what == "verify":
        assert Book.verify(path).ok
    else:
        book = Book.open(path)
        if what == "iterate":
            count = sum(1 for _ in book.payloads())
        elif what == "deeds":
            count = sum(1 for _ in book)
        else:
            count = sum(len(pa.record_batch(batch)) for batch in book.batches())
        assert count == len(book)
    print(status("VmHWM") - before)


def drain(path: str, url: str) -> None:
    """Send a whole ledger; print the peak of resident memory, and the memory before."""
    from deedbook import Ledger
    from deedbook.http import Sender

    before = status("VmRSS")
    with Ledger.open(path, "a") as ledger, Sender(ledger, url) as sender:
        assert sender.drain() and not ledger.has_data()
    print(status("VmHWM"), before)


def stream(path: str) -> None:
    """Read a ledger's only file as a body; print the same as `drain`."""
    from deedbook import Ledger

    before = status("VmRSS")
    with Ledger.open(path, "a") as ledger:
        result = ledger.fetch()
        assert result is not None
        (body,) = result.data
        buffer, total = bytearray(1 << 16), 0
        while read := body.readinto(buffer):
            total += read
        assert total == len(body)
    print(status("VmHWM"), before)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["fill", name, path, records, size, seed]:
            fill(name, Path(path), int(records), int(size), int(seed))
        case ["memory", what, path]:
            memory(what, path)
        case ["drain", path, url]:
            drain(path, url)
        case ["stream", path]:
            stream(path)
        case _:
            sys.exit(__doc__)
