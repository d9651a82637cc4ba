"""A server to try senders against: it counts and stores events, and fails on request.

``deedbook spool endpoint`` runs one. It is for tests: it listens on this machine, without
encryption, and keeps the keys of all requests in memory.

>>> import urllib.request
>>> from deedbook.http.endpoint import Endpoint
>>> with Endpoint(script=["ok", 503]) as endpoint:
...     with urllib.request.urlopen(endpoint.url, data=b'[{"event":"page_view"}]') as answer:
...         answer.status, endpoint.events, endpoint.stats().requests
(200, [b'{"event":"page_view"}'], 1)
"""

from __future__ import annotations

import contextlib
import http.server
import os
import random
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from deedbook._errors import InvalidArgumentError
from deedbook.http._endpoint_handler import Handler

if TYPE_CHECKING:
    from typing_extensions import Self

# For requests that are under way when an endpoint ends, seconds.
_GRACE_SECONDS = 1.0

Behaviour = int | Literal["ok", "reset", "stall", "drop"]
"""What the endpoint does with one request.

- ``"ok"``: take it, or refuse it for what it is.
- a status: answer with it, and store nothing.
- ``"reset"``: end the connection in the middle of the request, and store nothing.
- ``"stall"``: read the request, and answer nothing.
- ``"drop"``: store the events, and end the connection without an answer.
"""


@dataclass(frozen=True)
class Faults:
    """How often an endpoint fails, as shares from 0 to 1 of all requests, and how."""

    statuses: Mapping[int, float] = field(default_factory=dict)
    """Share of the requests that are answered with a status."""
    reset: float = 0.0
    """Share that is ended in the middle."""
    stall: float = 0.0
    """Share that is never answered."""
    drop: float = 0.0
    """Share that is stored, but whose answer is lost."""
    retry_after: str | None = None
    """Retry-After of the answers 429 and 503: seconds or an HTTP date."""
    max_bytes: int | None = None
    """Larger bodies, after decompression, are answered with 413."""
    stall_seconds: float = 60.0
    """How long a request that is never answered is held open."""
    seed: int = 0
    """Makes the same requests in the same order fail in the same way."""

    def __post_init__(self) -> None:
        shares = [*self.statuses.values(), self.reset, self.stall, self.drop]
        if any(not 0 <= share <= 1 for share in shares) or sum(shares) > 1:
            raise InvalidArgumentError("shares lie between 0 and 1, and so does their sum")
        if any(not 200 <= status <= 599 for status in self.statuses):
            raise InvalidArgumentError("a status lies between 200 and 599")

    def choose(self, chance: random.Random) -> Behaviour:
        """What to do with the next request."""
        left = chance.random()
        choices: list[tuple[Behaviour, float]] = [
            *self.statuses.items(),
            ("reset", self.reset),
            ("stall", self.stall),
            ("drop", self.drop),
        ]
        for behaviour, share in choices:
            if left < share:
                return behaviour
            left -= share
        return "ok"


@dataclass(frozen=True)
class Request:
    """A request as the endpoint saw it."""

    path: str
    """The path that was asked for, with its query."""
    headers: Mapping[str, str]
    """Its headers, names in lower case."""
    length: int
    """Bytes of its body that came."""
    key: str | None
    """Its Idempotency-Key."""
    status: int | None
    """Status of the answer, None if there was none."""
    events: int
    """Events in it, if it was understood."""
    duplicate: bool
    """Whether a request with the same key had been stored before."""


@dataclass(frozen=True)
class EndpointStats:
    """What an endpoint saw."""

    requests: int = 0
    """Requests, the refused ones included."""
    events: int = 0
    """Events stored, those of repeated requests not counted again."""
    bytes: int = 0
    """Bytes of all bodies, as they came."""
    duplicates: int = 0
    """Requests whose Idempotency-Key had been stored before."""
    conflicts: int = 0
    """Those of them that held other events."""
    without_length: int = 0
    """Requests that were chunked, or had no valid Content-Length."""
    short: int = 0
    """Requests whose body was shorter than their Content-Length."""
    failed: int = 0
    """Requests that failed on request."""
    statuses: Mapping[int, int] = field(default_factory=dict)
    """How many answers had which status."""

    def to_dict(self) -> dict[str, Any]:
        """The values by name; the statuses as text."""
        return {**asdict(self), "statuses": {str(k): v for k, v in sorted(self.statuses.items())}}


class Endpoint:
    """A threaded HTTP server on this machine that takes batches of events.

    ``with Endpoint() as endpoint:`` serves until the end of the block; ``endpoint.url`` is where.
    ``out`` is a file to which events are appended, one a line. ``script`` says what to do with the
    first requests; after those ``faults`` does. With ``keep=False`` events and requests are not
    kept in memory, with ``parse=False`` bodies are only counted. OSError if the port is taken.
    """

    def __init__(
        self,
        port: int = 0,
        host: str = "127.0.0.1",
        *,
        out: str | PathLike[str] | None = None,
        faults: Faults | None = None,
        script: Iterable[Behaviour] = (),
        keep: bool = True,
        parse: bool = True,
    ) -> None:
        self.faults = Faults() if faults is None else faults
        """How often it fails; may be replaced while it runs."""
        self.script: deque[Behaviour] = deque(script)
        """What it does with the next requests."""
        self.events: list[bytes] = []
        """The events stored, in the order in which they came."""
        self.requests: list[Request] = []
        """The requests, in the order in which they were done."""
        self.parse = parse
        self.ended = threading.Event()
        """Set when it ends: what stalls goes on."""
        self.changed = threading.Condition()
        """Notified after each request; `stats` and the lists are changed under it."""
        self._busy = 0
        self._keep = keep
        self._stats = EndpointStats()
        self._keys: dict[str, int] = {}
        self._chance = random.Random(self.faults.seed)
        self._out = None if out is None else open(out, "ab", buffering=0)  # noqa: SIM115
        try:
            self._server = _Server((host, port), Handler)
        except BaseException:
            if self._out is not None:
                self._out.close()
            raise
        self._server.endpoint = self
        self._thread: threading.Thread | None = None

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """Where to send batches."""
        host = self._server.server_address[0]
        return f"http://{host if isinstance(host, str) else host.decode()}:{self.port}/v1/batch"

    def start(self) -> None:
        """Serve, in threads, until `close`."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._server.serve_forever, args=(0.05,), name="deedbook-endpoint"
            )
            self._thread.daemon = True
            self._thread.start()

    def close(self) -> None:
        """Take no more requests; those under way are answered, or ended after a second."""
        self.ended.set()
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()
        with self.changed:
            self.changed.wait_for(lambda: not self._busy, _GRACE_SECONDS)
            if self._out is not None:
                self._out.close()
                self._out = None

    def stats(self) -> EndpointStats:
        """What came so far."""
        with self.changed:
            return self._stats

    def wait(self, *, events: float, timeout_seconds: float | None = None) -> bool:
        """Wait until so many events are stored; whether they are."""
        with self.changed:
            return self.changed.wait_for(lambda: self._stats.events >= events, timeout_seconds)

    # -- for the handler ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """While a request is read and answered."""
        with self.changed:
            self._busy += 1
        try:
            yield
        finally:
            with self.changed:
                self._busy -= 1
                self.changed.notify_all()

    def behaviour(self) -> Behaviour:
        """What to do with the next request."""
        with self.changed:
            return self.script.popleft() if self.script else self.faults.choose(self._chance)

    def store(self, key: str | None, events: list[bytes]) -> bool:
        """Store the events, unless that key was stored before; whether it was."""
        with self.changed:
            known = None if key is None else self._keys.get(key)
            print_ = hash(tuple(events))
            if known is not None:
                more = int(known != print_)
                self._count(duplicates=1, conflicts=more)
                return True
            if key is not None:
                self._keys[key] = print_
            self._count(events=len(events))
            if self._keep:
                self.events += events
            if self._out is not None and events:
                _write_all(self._out.fileno(), b"\n".join(events) + b"\n")
            return False

    def note(self, *, counts: Mapping[str, int], **values: Any) -> None:
        """Count a request that is about to be answered; ``values`` are those of `Request`."""
        request = Request(**values)
        with self.changed:
            self._count(requests=1, bytes=request.length, **counts)
            if request.status is not None:
                statuses = dict(self._stats.statuses)
                statuses[request.status] = statuses.get(request.status, 0) + 1
                self._stats = replace(self._stats, statuses=statuses)
            if self._keep:
                self.requests.append(request)
            self.changed.notify_all()

    def _count(self, **more: int) -> None:
        held = {name: getattr(self._stats, name) + value for name, value in more.items()}
        self._stats = replace(self._stats, **held)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Endpoint at {self.url}>"


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a request that stalls must not hold the end up
    request_queue_size = 128
    endpoint: Endpoint

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error of the endpoint."""


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        with contextlib.suppress(BlockingIOError):
            rest = rest[os.write(fd, rest) :]
