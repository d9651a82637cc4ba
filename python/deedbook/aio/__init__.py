"""Logs, ledgers and event stores for asyncio.

Tasks that commit at once share one sync, and followers hold no thread.

>>> import asyncio, tempfile
>>> from deedbook.aio import AsyncBook
>>> async def main():
...     async with AsyncBook.create(tempfile.mkdtemp() + "/log") as book:
...         events = await asyncio.gather(*(book.append(b"%d" % i) for i in range(100)))
...         return len(events), book.log.durable_last == book.log.last
>>> asyncio.run(main())
(100, True)
"""

from deedbook.aio._follow import Follower
from deedbook.aio._ledger import AsyncLedger
from deedbook.aio._log import AsyncBook, AsyncLog, AsyncPier, AsyncWal
from deedbook.aio._nostr import AsyncEventStore
from deedbook.aio._open import open
from deedbook.aio._poll import PollingFollower

__all__ = [
    "AsyncBook",
    "AsyncEventStore",
    "AsyncLedger",
    "AsyncLog",
    "AsyncPier",
    "AsyncWal",
    "Follower",
    "PollingFollower",
    "open",
]
