"""Sends the events of a store over HTTP, at least once, and loses none silently.

>>> import tempfile
>>> from deedbook.http import Sender
>>> from endpoint import Endpoint  # examples/endpoint.py, a server to try it with
>>> from deedbook.transient import MemoryStore
>>> store = MemoryStore(header=b'{"batch":[', footer=b"]}")
>>> store.append_many([b'{"event":"page_view"}', b'{"event":"button_click"}'])
>>> with Endpoint() as endpoint:
...     sender = Sender(store, endpoint.url, dead_letters=tempfile.mkdtemp())
...     bool(sender.drain()), sender.stats().events_sent, sender.close()
(True, 2, True)
>>> endpoint.events
[b'{"event":"page_view"}', b'{"event":"button_click"}']
"""

from deedbook.http._async_sender import AsyncSender
from deedbook.http._dead import DeadLetter, DeadLetters
from deedbook.http._flow.plan import Limits
from deedbook.http._flow.stats import Drained, SenderStats
from deedbook.http._policy import STATUSES, Answer, Policy
from deedbook.http._rates import Clock, Rates
from deedbook.http._sender import Sender
from deedbook.http.presets import Preset

__all__ = [
    "STATUSES",
    "Answer",
    "AsyncSender",
    "Clock",
    "DeadLetter",
    "DeadLetters",
    "Drained",
    "Limits",
    "Policy",
    "Preset",
    "Rates",
    "Sender",
    "SenderStats",
]
