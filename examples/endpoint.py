"""A server for testing senders: counts and stores events, and fails on request.

    python examples/endpoint.py --out received.jsonl

The server needs only Python; zstd needs Python 3.14 or backports.zstd. For tests: the server
listens on this machine, without encryption, and keeps the keys of all requests in memory.

>>> import urllib.request
>>> with Endpoint(script=["ok", 503]) as endpoint:
...     with urllib.request.urlopen(endpoint.url, data=b'[{"event":"page_view"}]') as answer:
...         answer.status, endpoint.events, endpoint.stats().requests
(200, [b'{"event":"page_view"}'], 1)
"""

from __future__ import annotations

import argparse
import contextlib
import http.server
import importlib
import ipaddress
import json
import math
import os
import random
import signal
import socket
import struct
import sys
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from typing_extensions import Self


# Seconds to finish running requests when an endpoint ends.
_GRACE_SECONDS = 1.0

_BODY_BYTES_MAX: Final = 256 << 20
_ACCEPTED: Final = "gzip, zstd, identity"
_decode = json.JSONDecoder().raw_decode
_SPACE: Final = " \t\n\r"
# Usual names of event arrays: in batches of Segment, PostHog and RudderStack, OTLP logs, etc.
_KEYS: Final = ("batch", "events", "resourceLogs", "scopeLogs", "logRecords")

Behaviour = int | Literal["ok", "reset", "stall", "drop"]
"""The treatment of a request.

- ``"ok"``: accept a good request, refuse a bad one.
- a status: answer with the status, and store nothing.
- ``"reset"``: reset the connection in the middle of the request, and store nothing.
- ``"stall"``: read the request, and answer nothing.
- ``"drop"``: store the events, and end the connection without an answer.
"""


@dataclass(frozen=True)
class Faults:
    """The failures of an endpoint, as shares from 0 to 1 of all requests."""

    statuses: Mapping[int, float] = field(default_factory=dict)
    """Share of requests answered with each status."""
    reset: float = 0.0
    """Share of requests reset in the middle."""
    stall: float = 0.0
    """Share of requests without an answer."""
    drop: float = 0.0
    """Share of requests stored without an answer."""
    retry_after: str | None = None
    """Retry-After of the answers 429 and 503: seconds or an HTTP date."""
    max_bytes: int | None = None
    """Larger bodies, after decompression, are answered with 413."""
    stall_seconds: float = 60.0
    """Seconds to hold a stalled request open."""
    seed: int = 0
    """With the same seed, the same requests in the same order fail in the same way."""

    def __post_init__(self) -> None:
        shares = [*self.statuses.values(), self.reset, self.stall, self.drop]
        if any(not 0 <= share <= 1 for share in shares) or sum(shares) > 1:
            raise ValueError("shares lie between 0 and 1, and so does their sum")
        if any(not 200 <= status <= 599 for status in self.statuses):
            raise ValueError("a status lies between 200 and 599")

    def choose(self, chance: random.Random) -> Behaviour:
        """Choose the treatment of the next request."""
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
    """A received request."""

    path: str
    """The requested path, with the query."""
    headers: Mapping[str, str]
    """The headers, with names in lower case."""
    length: int
    """Received bytes of the body."""
    key: str | None
    """The Idempotency-Key."""
    status: int | None
    """Status of the answer, None without an answer."""
    events: int
    """Number of events, if the body was understood."""
    duplicate: bool
    """Whether a request with the same key had been stored before."""


@dataclass(frozen=True)
class EndpointStats:
    """The counts of an endpoint."""

    requests: int = 0
    """Requests, including refused requests."""
    events: int = 0
    """Stored events. Repeated requests do not count again."""
    bytes: int = 0
    """Bytes of all bodies, as received."""
    duplicates: int = 0
    """Requests with an Idempotency-Key stored before."""
    conflicts: int = 0
    """Duplicates with other events than before."""
    without_length: int = 0
    """Chunked requests, or requests without a valid Content-Length."""
    short: int = 0
    """Requests with a shorter body than the Content-Length."""
    failed: int = 0
    """Requests failed on purpose."""
    statuses: Mapping[int, int] = field(default_factory=dict)
    """Number of answers by status."""

    def to_dict(self) -> dict[str, Any]:
        """The values by name; the statuses as text."""
        return {**asdict(self), "statuses": {str(k): v for k, v in sorted(self.statuses.items())}}


class Endpoint:
    """A threaded HTTP server on this machine for batches of events.

    ``with Endpoint() as endpoint:`` serves until the end of the block; ``endpoint.url`` is the
    address. The endpoint appends events to the file ``out``, one a line. ``script`` controls the
    first requests, ``faults`` the later requests. With ``keep=False`` events and requests are not
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
        """The failures; may be replaced while the endpoint runs."""
        self.script: deque[Behaviour] = deque(script)
        """The treatment of the next requests."""
        self.events: list[bytes] = []
        """The stored events, in the order of arrival."""
        self.requests: list[Request] = []
        """The finished requests, in order."""
        self.parse = parse
        self.ended = threading.Event()
        """Set when the endpoint ends: stalled requests then end, too."""
        self.changed = threading.Condition()
        """Notified after each request; guards `stats` and the lists."""
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
        """The port of the endpoint."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The address for batches."""
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
        """Accept no more requests. Running requests get answers, or end after a second."""
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
        """The counts so far."""
        with self.changed:
            return self._stats

    def wait(self, *, events: float, timeout_seconds: float | None = None) -> bool:
        """Wait until ``events`` events are stored. Returns False after the timeout."""
        with self.changed:
            return self.changed.wait_for(lambda: self._stats.events >= events, timeout_seconds)

    # -- for the handler ---------------------------------------------------------------------------

    @contextlib.contextmanager
    def serving(self) -> Iterator[None]:
        """Surrounds the reading and answering of a request."""
        with self.changed:
            self._busy += 1
        try:
            yield
        finally:
            with self.changed:
                self._busy -= 1
                self.changed.notify_all()

    def behaviour(self) -> Behaviour:
        """Choose the treatment of the next request."""
        with self.changed:
            return self.script.popleft() if self.script else self.faults.choose(self._chance)

    def store(self, key: str | None, events: list[bytes]) -> bool:
        """Store the events, unless the key was stored before. Returns True for a repeated key."""
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
        """Count a request before answering; ``values`` are the fields of `Request`."""
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Endpoint at {self.url}>"


@dataclass
class _Verdict:
    """The answer to a request, and the counts."""

    status: int | None
    """Status to answer with; None: end the connection."""
    values: dict[str, Any] = field(default_factory=dict)
    """The values in the answer."""
    headers: dict[str, str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    events: int = 0
    duplicate: bool = False
    stall: bool = False


class Handler(http.server.BaseHTTPRequestHandler):
    """Reads and checks a request, and follows the endpoint's decision."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 120
    server: Any

    def do_POST(self) -> None:
        """Accept a batch, or fail on request."""
        endpoint: Endpoint = self.server.endpoint
        with endpoint.serving():
            self._serve(endpoint)

    def _serve(self, endpoint: Endpoint) -> None:
        self._length = 0
        verdict = self._take(endpoint)
        # Count before answering: a client with an answer finds the request in the counters.
        endpoint.note(
            path=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            length=self._length,
            key=self.headers.get("Idempotency-Key"),
            status=verdict.status,
            events=verdict.events,
            duplicate=verdict.duplicate,
            counts=verdict.counts,
        )
        if verdict.stall:
            endpoint.ended.wait(endpoint.faults.stall_seconds)
        if verdict.status is None:
            self._hang_up()
        else:
            self._reply(verdict.status, verdict.headers, verdict.values)

    do_PUT = do_POST

    def do_GET(self) -> None:
        """The counts so far, as JSON."""
        self._reply(200, {}, self.server.endpoint.stats().to_dict())

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the endpoint counts."""

    def _take(self, endpoint: Endpoint) -> _Verdict:
        """Read a request, and store the events unless the request must fail."""
        behaviour = endpoint.behaviour()
        length = self._claimed()
        if length is None:
            self.close_connection = True  # where the next request begins is not known
            error = {"error": "no valid Content-Length"}
            return _Verdict(411, error, counts={"without_length": 1})
        if behaviour == "reset":
            self._length = len(self.rfile.read(length // 2))
            return _Verdict(None, counts={"failed": 1})
        body = self.rfile.read(length)
        self._length = len(body)
        if len(body) < length:
            return _Verdict(None, counts={"short": 1})
        if behaviour == "stall":
            return _Verdict(None, counts={"failed": 1}, stall=True)
        if isinstance(behaviour, int):
            retry_after = endpoint.faults.retry_after
            asked = behaviour in (429, 503) and retry_after is not None
            headers = {"Retry-After": str(retry_after)} if asked else {}
            return _Verdict(behaviour, {"error": "failed on request"}, headers, {"failed": 1})
        verdict = self._keep(endpoint, body)
        if behaviour == "drop" and verdict.status == 200:
            verdict.status, verdict.counts = None, {"failed": 1}
        return verdict

    def _keep(self, endpoint: Endpoint, body: bytes) -> _Verdict:
        """Store the events of a body, or refuse the body."""
        accepted = {"Accept-Encoding": _ACCEPTED}  # RFC 7694: what requests may be encoded with
        coding = self.headers.get("Content-Encoding", "").strip().lower()
        largest = endpoint.faults.max_bytes
        most = _BODY_BYTES_MAX if largest is None else min(largest, _BODY_BYTES_MAX)
        try:
            undo = decompressor(coding, most)
        except ValueError as error:
            return _Verdict(415, {"error": str(error)}, accepted)
        try:
            body = undo(body)
            if len(body) > most:
                there = f"more than {most}" if coding in ("gzip", "zstd") else f"{len(body)}"
                return _Verdict(413, {"error": f"{there} bytes, at most {most}"})
            kind = self.headers.get("Content-Type", "")
            events = events_in(body, kind) if endpoint.parse else []
        except Exception as error:  # of the decompressor or the parser
            return _Verdict(400, {"error": f"not understood: {error}"})
        duplicate = endpoint.store(self.headers.get("Idempotency-Key"), events)
        values = {"events": len(events), "duplicate": duplicate}
        return _Verdict(200, values, accepted, events=len(events), duplicate=duplicate)

    def _claimed(self) -> int | None:
        """The Content-Length; None without a valid length."""
        claimed = self.headers.get_all("Content-Length", [])
        if "Transfer-Encoding" in self.headers or len(claimed) != 1:
            return None
        text = claimed[0].strip()
        if not (text.isascii() and text.isdigit()) or int(text[:20]) > _BODY_BYTES_MAX:
            return None
        return int(text)

    def _reply(self, status: int, headers: dict[str, str], values: dict[str, Any]) -> None:
        body = b"" if status in (204, 304) else json.dumps(values).encode() + b"\n"
        with contextlib.suppress(OSError):  # the client is gone
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            for name, value in headers.items():
                self.send_header(name, value)
            if body:
                self.send_header("Content-Length", str(len(body)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

    def _hang_up(self) -> None:
        """Reset the connection: the client must see an error, not an end."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            at_once = struct.pack("hh" if os.name == "nt" else "ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, at_once)
            self.connection.close()


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a request that stalls must not hold the end up
    request_queue_size = 128
    endpoint: Endpoint

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A disconnected client is no error of the endpoint."""


def _write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        with contextlib.suppress(BlockingIOError):
            rest = rest[os.write(fd, rest) :]


def _inflated(undo: Any, data: bytes, bytes_max: int) -> bytes:
    body: bytes = undo.decompress(data, bytes_max + 1)
    if len(body) <= bytes_max and not undo.eof:
        raise EOFError("the compressed body ends too early")
    return body


def decompressor(coding: str, bytes_max: int) -> Callable[[bytes], bytes]:
    """The decompressor for a Content-Encoding; ValueError for an unknown encoding.

    Returns at most ``bytes_max + 1`` bytes: two megabytes may expand to gigabytes.
    """
    if coding in ("", "identity"):
        return bytes
    if coding == "gzip":
        return lambda data: _inflated(zlib.decompressobj(wbits=31), data, bytes_max)
    if coding == "zstd" and (zstd := _zstd()) is not None:
        return lambda data: _inflated(zstd.ZstdDecompressor(), data, bytes_max)
    raise ValueError(f"content encoding {coding!r}")


def _zstd() -> Any:
    for name in ("compression.zstd", "backports.zstd"):
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    return None


def events_in(body: bytes, content_type: str) -> list[bytes]:
    """The events of a request body, unchanged; ValueError for an unknown body.

    The content type may name JSON lines. Otherwise the body is an array of events, or an object
    with an array under a usual name: ``batch``, ``events``, or OTLP's ``logRecords``.
    """
    if "ndjson" in content_type or "jsonl" in content_type:
        lines = body.split(b"\n")
        if lines.pop() != b"":
            raise ValueError("the last line has no newline")
        for line in lines:
            json.loads(line)
        return lines
    text = body.decode()
    begin = _skip(text, 0)
    _, end = _decode(text, begin)
    if _skip(text, end) != len(text):
        raise ValueError("something follows the JSON value")
    return [text[first:last].encode() for first, last in _events(text, begin)]


def _events(text: str, begin: int) -> Iterator[tuple[int, int]]:
    """The positions of the events of a JSON value in valid JSON text."""
    if text[begin] == "[":
        yield from _elements(text, begin)
        return
    if text[begin] != "{":
        raise ValueError("neither an array nor an object")
    found = False
    for key, first in _members(text, begin):
        if key in ("resourceLogs", "scopeLogs"):
            found = True
            for inner, _ in _elements(text, first):
                yield from _events(text, inner)
        elif key in _KEYS:
            found = True
            yield from _elements(text, first)
    if not found:
        raise ValueError(f"no array under any of {_KEYS}")


def _elements(text: str, begin: int) -> Iterator[tuple[int, int]]:
    if text[begin] != "[":
        raise ValueError("an array is expected")
    at = _skip(text, begin + 1)
    while text[at] != "]":
        _, end = _decode(text, at)
        yield at, end
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _members(text: str, begin: int) -> Iterator[tuple[str, int]]:
    at = _skip(text, begin + 1)
    while text[at] != "}":
        key, end = _decode(text, at)
        first = _skip(text, _skip(text, end) + 1)  # after the colon
        yield key, first
        _, end = _decode(text, first)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


# -- the command line ------------------------------------------------------------------------------

_WORDS: Final = ("ok", "reset", "stall", "drop")


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="endpoint",
        description="Run a server on this machine that takes batches of events, counts and stores "
        "them, and fails on request. The first line of the output is its URL; the last one says "
        "what came. It runs until Ctrl-C or SIGTERM.",
        epilog="Shares go from 0 to 1, of all requests. Events of a request whose Idempotency-Key "
        "was stored before are counted and not stored again. Requests without an exact "
        "Content-Length are refused. Gzip and zstd are understood, and the bodies of Segment, "
        "PostHog, RudderStack, OTLP logs, JSON arrays and JSON lines.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address (default: 127.0.0.1)")
    parser.add_argument(
        "--public",
        action="store_true",
        help="allow a --host that other machines reach: whoever does can fill memory and disk",
    )
    parser.add_argument("--port", type=_port, default=0, help="port (default: 0, any that is free)")
    parser.add_argument("--out", metavar="FILE", help="append each event to FILE, one a line")
    parser.add_argument(
        "--fail",
        metavar="STATUS=SHARE",
        type=_failure,
        action="append",
        default=[],
        help="answer this share with a status; may be repeated",
    )
    parser.add_argument(
        "--retry-after", metavar="WHEN", help="Retry-After of 429 and 503: seconds or a date"
    )
    parser.add_argument(
        "--max-bytes", metavar="BYTES", type=_positive, help="answer larger bodies with 413"
    )
    parser.add_argument(
        "--reset", metavar="SHARE", type=_share, default=0.0, help="cut off in the middle"
    )
    parser.add_argument("--stall", metavar="SHARE", type=_share, default=0.0, help="never answer")
    parser.add_argument(
        "--drop",
        metavar="SHARE",
        type=_share,
        default=0.0,
        help="store the events, and lose the answer",
    )
    parser.add_argument(
        "--script",
        metavar="LIST",
        type=_script,
        default=[],
        help="what to do with the first requests, with commas: ok, reset, stall, drop, a status",
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, default=0, help="which requests fail (default: 0)"
    )
    parser.add_argument(
        "--until-events", metavar="N", type=_positive, help="end when N events are stored"
    )
    parser.add_argument("--json", action="store_true", help="JSON objects as the result")
    parser.add_argument("-q", "--quiet", action="store_true", help="only the URL, and errors")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Serve until a signal or enough events arrive. Prints the URL first, and the counts last."""
    parser = _arguments()
    args = parser.parse_args(argv)
    if not args.public and not _is_loopback(args.host):
        parser.error(
            f"other machines may reach {args.host}: it is a server for tests, without passwords; "
            "--public allows that"
        )
    try:
        faults = Faults(
            statuses=dict(args.fail),
            reset=args.reset,
            stall=args.stall,
            drop=args.drop,
            retry_after=args.retry_after,
            max_bytes=args.max_bytes,
            seed=args.seed,
        )
        endpoint = Endpoint(
            args.port, args.host, out=args.out, faults=faults, script=args.script, keep=False
        )
    except ValueError as error:
        parser.error(str(error))
    except OSError as error:
        where = error.filename or f"cannot listen on {args.host}:{args.port}"
        parser.error(f"{where}: {error.strerror}")
    ended: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: ended.append(number))
    with endpoint:
        where = {"ok": True, "url": endpoint.url, "port": endpoint.port}
        print(json.dumps(where) if args.json else endpoint.url, flush=True)
        wanted = math.inf if args.until_events is None else args.until_events
        while not ended and not endpoint.wait(events=wanted, timeout_seconds=0.1):
            pass
    _tell(endpoint.stats(), args)
    return 128 + ended[0] if ended else 0


def _tell(stats: EndpointStats, args: argparse.Namespace) -> None:
    if args.json:
        print(json.dumps({"ok": True, **stats.to_dict()}))
    elif not args.quiet:
        statuses = ", ".join(f"{count} x {code}" for code, count in sorted(stats.statuses.items()))
        print(
            f"{stats.events} events in {stats.requests} requests ({statuses or 'none answered'}); "
            f"{stats.duplicates} repeated, {stats.failed} failed on request",
            file=sys.stderr,
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower().rstrip(".") == "localhost"


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a share from 0 to 1")
    return share


def _status(text: str) -> int:
    if len(text) != 3 or not (text.isascii() and text.isdigit()) or not 200 <= int(text) <= 599:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a status from 200 to 599")
    return int(text)


def _failure(text: str) -> tuple[int, float]:
    status, equals, share = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not STATUS=SHARE, such as 503=0.2")
    return _status(status), _share(share)


def _script(text: str) -> list[Behaviour]:
    found: list[Any] = [word if word in _WORDS else _status(word) for word in text.split(",")]
    return found


def _positive(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or not 0 < int(text[:20]) < 2**63:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 1 up")
    return int(text)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 5 or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a port from 0 to 65535")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())
