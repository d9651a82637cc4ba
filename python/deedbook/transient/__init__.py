"""Stores of events that wait to be sent, and the request bodies that they give.

>>> from deedbook.transient import MemoryStore, TransientDB
>>> db = TransientDB(MemoryStore(header=b'{"batch":[', footer=b"]}"))
>>> db.append({"event": "page_view"})
>>> db.append({"event": "button_click"})
>>> result = db.fetch()
>>> [(body.content_length, body.read()) for body in result.data]
[(58, b'{"batch":[{"event":"page_view"},{"event":"button_click"}]}')]
>>> db.remove(result.removable)
>>> db.has_data()
False
"""

from deedbook.transient._body import BatchBody
from deedbook.transient._db import TransientDB
from deedbook.transient._envelope import Envelope, Sealed, Text
from deedbook.transient._ledger import LedgerBody
from deedbook.transient._memory import MemoryStore
from deedbook.transient._store import AsyncBody, Batch, DataResult, DataStore, StoreStats

__all__ = [
    "AsyncBody",
    "Batch",
    "BatchBody",
    "DataResult",
    "DataStore",
    "Envelope",
    "LedgerBody",
    "MemoryStore",
    "Sealed",
    "StoreStats",
    "Text",
    "TransientDB",
]
